"""`counting="hook"` beside the original trace_eval: what it said of the samples, and the script itself where it is."""

import importlib.util
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.crafter import ACHIEVEMENTS, WEIGHTS, evaluate_event, evaluate_trace, load
from evalkit.io import list_files
from tests.crafter.traces import TRACES, environment, hook, needs_traces, trace, write

SCRIPT = Path(__file__).resolve().parents[3] / "shared" / "originals" / "crafter" / "trace_eval_OLD.py"
needs_script = pytest.mark.skipif(not SCRIPT.is_file(), reason="the original script is not here")

KEYS = ("total_score", "counts", "trajectory", "num_events", "trace_file")

# what the script printed for the samples: score, easy, medium, hard, invalid, events, trajectory
RECORDED = {
    "session_crafter_episode_1_random.json": (-2.2, 0, 0, 0, 44, 24, "------------"),
    "session_crafter_episode_1_scripted-forager.json": (12.5, 3, 4, 0, 10, 60, "++-+-+-+++------"),
    "session_crafter_episode_1_scripted-miner.json": (40.1, 4, 5, 5, 28, 98, "+-++++-+++---+-+-+--+--+----+"),
    "session_crafter_episode_2_random.json": (-1.5, 1, 0, 0, 50, 24, "--------+----"),
    "session_crafter_episode_2_scripted-forager.json": (12.35, 4, 4, 0, 33, 60, "+-+-++--+++----------"),
    "session_crafter_episode_2_scripted-miner.json": (36.35, 5, 5, 4, 23, 100, "++-+-+++-+-+-+----++-+--+-----"),
    "session_crafter_episode_3_random.json": (-1.0, 1, 0, 0, 40, 24, "----------+--"),
    "session_crafter_episode_3_scripted-forager.json": (13.95, 5, 4, 0, 21, 60, "+-+++-+--++-+------"),
    "session_crafter_episode_3_scripted-miner.json": (43.45, 4, 6, 5, 11, 100, "+-+++-+-++-+-++-+--+--+-+"),
    "session_crafter_episode_4_random.json": (-1.35, 1, 0, 0, 47, 24, "------------+"),
    "session_crafter_episode_4_scripted-forager.json": (17.8, 4, 4, 1, 24, 60, "-+-++--+---++-+-----"),
    "session_crafter_episode_4_scripted-miner.json": (32.95, 4, 6, 3, 21, 100, "+-++++++-+-+--++--+-+----"),
    "session_crafter_episode_5_random.json": (2.5, 2, 1, 0, 40, 24, "----+---+---+--"),
    "session_crafter_episode_5_scripted-forager.json": (14.65, 5, 4, 0, 7, 60, "-+-+++--++++-"),
    "session_crafter_episode_5_scripted-miner.json": (35.4, 5, 5, 4, 42, 100, "++++----+++-+-+------+-----+--+--+-+"),
}


@pytest.fixture(scope="session")
def script():
    """The original, imported by its path."""
    spec = importlib.util.spec_from_file_location("trace_eval", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", RECORDED)
def test_samples_score_per_hook_as_recorded_from_the_original(name):
    score, *counts, events, trajectory = RECORDED[name]
    (path,) = [path for path in list_files("samples:crafter") if path.endswith(f"/{name}")]
    result = evaluate_trace(path, counting="hook")
    assert result["total_score"] == pytest.approx(score, abs=1e-9)
    assert [result["counts"].get(key, 0) for key in WEIGHTS] == counts
    assert (result["num_events"], result["trajectory"], result["flags"]) == (events, trajectory, [])


def assert_as_original(script, path):
    """Compare exactly, to the last bit."""
    ours = evaluate_trace(path, counting="hook")
    assert {key: ours[key] for key in KEYS} == script.evaluate_trace(Path(path))


@needs_script
@needs_traces
def test_real_traces_score_per_hook_exactly_as_in_the_original(script):
    for path in sorted(TRACES.glob("*.json")):
        if path.stat().st_size:
            assert_as_original(script, path)


@pytest.mark.parametrize(
    ("names", "score", "symbol"),
    [
        (["easy_achievement", "hard_achievement"], 6.0, "+"),
        (["easy_achievement", "invalid_action"], 0.95, "-"),
        (["invalid_action", "easy_achievement"], 0.95, "+"),
        (["easy_achievement", *["invalid_action"] * 21, "easy_achievement"], 0.95, "+"),
        (["inventory_increase"], 0.0, ""),
        ([], 0.0, ""),
    ],
)
def test_per_hook_the_last_scored_hook_gives_the_symbol(names, score, symbol):
    event = environment(0, [hook(name, ["collect_wood", "place_table"]) for name in names])
    assert evaluate_event(event, counting="hook") == (pytest.approx(score), symbol)


def test_per_hook_an_event_whose_points_cancel_has_no_symbol():
    both = environment(0, [hook("easy_achievement", ["collect_wood"]), hook("invalid_action")])
    assert evaluate_event(both, {"invalid_action": -1.0}, "hook") == (0.0, "")
    assert evaluate_event(both, {"invalid_action": -1.0}) == (0.0, "0")


@pytest.mark.parametrize(
    ("event", "score"),
    [
        (environment(0, [hook("easy_achievements", ["collect_wood"])]), 1.0),
        (environment(0, [hook("new_achievement", ["collect_wood", "eat_cow", "eat_plant"])]), 4.5),
        ({"hooks_triggered": ["hard_achievement", "invalid_action"]}, 4.95),
        (environment(0, status={"collect_wood": True}, before={"collect_wood": False}), 1.0),
    ],
    ids=["plural", "without difficulty", "hooks_triggered", "from states"],
)
def test_hooks_the_original_does_not_know_count_nothing_per_hook(event, score, tmp_path):
    path = write(tmp_path, trace(event))
    result = evaluate_trace(path, counting="hook")
    assert (result["total_score"], result["counts"], result["trajectory"]) == (0.0, {}, "(no scored events)")
    assert evaluate_trace(path)["total_score"] == pytest.approx(score)
    assert load(tmp_path, counting="hook").episodes["score"].tolist() == [0.0]


KNOWN = st.sampled_from(list(WEIGHTS))
OTHER = st.sampled_from(["new_achievement", "easy_achievements", "Invalid-Action", "inventory_increase", "", "a"])
NAMES = st.lists(st.sampled_from([*ACHIEVEMENTS, "fly"]), max_size=3)
DATA = st.none() | st.fixed_dictionaries({}, optional={"achievements": st.none() | NAMES | st.just(5)})
ENTRIES = st.fixed_dictionaries(
    {}, optional={"hook_name": KNOWN | KNOWN | KNOWN | OTHER | st.none() | st.just(7), "data": DATA}
)
STATE = st.dictionaries(st.sampled_from(ACHIEVEMENTS), st.booleans(), max_size=3)
SHOWN = st.builds(lambda status: {"public_state": {"achievements_status": status}}, STATE)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "event_metadata": st.lists(ENTRIES, max_size=25) | st.lists(ENTRIES, max_size=3) | st.none(),
        "hooks_triggered": st.none() | st.lists(KNOWN | OTHER, max_size=2),
        "actions": st.none() | st.lists(st.integers(0, 16), max_size=3) | st.just("odd"),
        "reward": st.none() | st.floats(allow_nan=False),
        "metadata": st.none() | st.fixed_dictionaries({"turn": st.integers() | st.just(1.5) | st.none()}),
        "system_state_after": st.none() | SHOWN,
    },
)
OF_SCRIPT = st.fixed_dictionaries(
    {}, optional={"event_metadata": st.lists(st.builds(hook, KNOWN, NAMES), max_size=40), "reward": st.just(0.0)}
)


@needs_script
@given(st.lists(EVENTS, max_size=6) | st.lists(OF_SCRIPT, max_size=6))
def test_generated_traces_score_per_hook_exactly_as_in_the_original(script, events):
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, trace(*events))
        try:
            script.evaluate_trace(path)
        except Exception:  # such as event_metadata that is null
            assert isinstance(evaluate_trace(path, counting="hook")["total_score"], float)
        else:
            assert_as_original(script, path)
