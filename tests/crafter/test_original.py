"""`counting="hook"` beside the original trace_eval, where that is."""

import os
import runpy
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.crafter import ACHIEVEMENTS, WEIGHTS, evaluate_event, evaluate_trace, load
from evalkit.io import list_source
from tests.crafter.test_parse import EVENTS
from tests.crafter.traces import TRACES, environment, hook, trace, write

SCRIPT = Path(__file__).resolve().parents[3] / "shared" / "originals" / "crafter" / "trace_eval_OLD.py"
needs_script = pytest.mark.skipif(not SCRIPT.is_file(), reason="the original script is not here")

KEYS = ("total_score", "counts", "trajectory", "num_events", "trace_file")


@pytest.fixture(scope="session")
def script():
    """The original's function."""
    return runpy.run_path(str(SCRIPT))["evaluate_trace"]


def assert_as_original(script, path):
    """Compare exactly, to the last bit."""
    ours = evaluate_trace(path, counting="hook")
    assert {key: ours[key] for key in KEYS} == script(Path(path))


@needs_script
def test_real_traces_and_samples_score_per_hook_exactly_as_in_the_original(script):
    for path in [*list_source("samples:crafter").files, *map(str, sorted(TRACES.glob("*.json")))]:
        if os.path.getsize(path):
            assert_as_original(script, path)


@pytest.mark.parametrize(
    ("names", "invalid", "score", "symbol"),
    [
        (["easy_achievement", "hard_achievement"], -0.05, 6.0, "+"),
        (["easy_achievement", "invalid_action"], -0.05, 0.95, "-"),
        (["invalid_action", "easy_achievement"], -0.05, 0.95, "+"),
        (["easy_achievement", "invalid_action"], -1.0, 0.0, ""),
        (["inventory_increase"], -0.05, 0.0, ""),
    ],
)
def test_per_hook_the_last_scored_hook_gives_the_symbol_unless_points_cancel(names, invalid, score, symbol):
    event = environment(0, [hook(name, ["collect_wood", "place_table"]) for name in names])
    assert evaluate_event(event, {"invalid_action": invalid}, "hook") == (pytest.approx(score), symbol)


def test_hooks_the_original_does_not_know_count_nothing_per_hook(tmp_path):
    for i, event in enumerate([
        environment(0, [hook("easy_achievements", ["collect_wood"])]),
        environment(0, [hook("new_achievement", ["collect_wood", "eat_cow", "eat_plant"])]),
        {"hooks_triggered": ["hard_achievement", "invalid_action"]},
        environment(0, status={"collect_wood": True}, before={"collect_wood": False}),
    ]):  # fmt: skip
        result = evaluate_trace(write(tmp_path, trace(event), f"{i}.json"), counting="hook")
        assert (result["total_score"], result["counts"], result["trajectory"]) == (0.0, {}, "(no scored events)")
    assert load(tmp_path).episodes["score"].tolist() == pytest.approx([1.0, 4.5, 4.95, 1.0])
    assert load(tmp_path, counting="hook").episodes["score"].tolist() == [0.0] * 4


OTHER = st.sampled_from(["new_achievement", "easy_achievements", "Invalid-Action", "inventory_increase", "", "a"])
NAMES = st.lists(st.sampled_from([*ACHIEVEMENTS, "fly"]), max_size=3)
HOOKS = st.builds(hook, st.sampled_from(list(WEIGHTS)), NAMES)
OF_SCRIPT = st.fixed_dictionaries(
    {"event_metadata": st.lists(HOOKS, max_size=40) | st.lists(st.builds(hook, OTHER, NAMES) | HOOKS, max_size=3)}
)


@needs_script
@given(st.lists(EVENTS, max_size=6) | st.lists(OF_SCRIPT, max_size=6))
def test_generated_traces_score_per_hook_exactly_as_in_the_original(script, events):
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, trace(*events))
        try:
            script(path)
        except Exception:  # such as event_metadata that is null
            assert isinstance(evaluate_trace(path, counting="hook")["total_score"], float)
        else:
            assert_as_original(script, path)
