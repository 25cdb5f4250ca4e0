"""Episodes turn by turn: the transcript with what the player saw."""

import base64

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.crafter import load
from evalkit.crafter.format import TIER_OF
from evalkit.kinds import Image, RunFiles, kind_named, transcript_of
from tests.crafter.traces import config, environment, hook, language_model, runtime, trace, write

WOOD = hook("easy_achievement", ["collect_wood"])
BLOCKED = hook("invalid_action", action="move_up", reason="got [0, 0]")
STATE = {"inventory": {"energy": 8, "health": 9, "food": 7, "drink": 6, "wood": 2, "stone": 0}}
PIXELS = bytes(range(12))
SEEN = {"observation_image_base64": base64.b64encode(PIXELS).decode(), "observation_image_shape": [1, 4, 3]}


def shown(path, *arguments):
    result = CliRunner().invoke(main, ["show", str(path), *arguments])
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture
def path(tmp_path):
    first = runtime(0, [BLOCKED], actions=[3, 5, "jump"])
    first["metadata"]["action_reasoning"] = "to the \x1b[31mtree\nand back"
    full = hook("invalid_action", action="sleep", reason="Energy is full", suspect=False)
    events = [
        language_model(0, prompt_tokens=788, completion_tokens=57),
        first,
        environment(0, [WOOD], system_state_after={"public_state": STATE}),
        {"llm_call_records": [], "metadata": {"completion_tokens": 12}},  # names no turn: it chose the next actions
        runtime(1, [full], [0, 6]),
        environment(1),
        {"llm_call_records": []},  # names no turn, and nothing comes after it
    ]
    error = {"metadata_type": "error", "data": {"error_message": "out of tokens"}, "timestamp": ""}
    metadata = [config(model_name="alder", difficulty="easy", task_instance_id="t1"), error]
    return write(tmp_path, trace(*events, metadata=metadata), "a.json")


STEPS = [
    ([0, 0, 1, 1], [1, 1, 2, 2]),
    ([7, 7, 30, 90], [1, 1, 2, 3]),  # only some steps are recorded
    ([None, 0, None, 2], [1, 1, 2, 2]),
    ([None, 4, 4, None, None], [1, 1, 1, 1, 1]),
    ([1, 0, 1, 0], [1, 2, 3, 4]),  # the environment was reset
    ([None, None, None], [1, 2, 3]),
    ([3], [1]),
]


@pytest.mark.parametrize(("steps", "turns"), STEPS)
def test_events_and_unlocks_have_the_number_of_the_turn_that_shows_them(tmp_path, steps, turns):
    names = list(TIER_OF)[: len(steps)]
    events = []
    for step, name in zip(steps, names, strict=True):
        metadata = {} if step is None else {"turn": step}
        events.append({"reward": 0.0, "metadata": metadata, "event_metadata": [hook("new_achievement", [name])]})
    write(tmp_path, trace(*events), "a.json")
    write(tmp_path, trace(*reversed(events), session_id="other"), "b.json")
    logs = load(tmp_path)
    first = logs.episodes["run_id"].iloc[0]
    of_first = logs.events[logs.events["run_id"] == first]
    assert of_first["turn"].tolist() == turns
    assert [None if pd.isna(step) else step for step in of_first["step"]] == steps
    shown = logs.turns.set_index(["run_id", "turn"])["text"]
    for frame in (logs.events.explode("achievements"), logs.achievements[logs.achievements["unlocked"].fillna(False)]):
        assert len(frame) == 2 * len(steps)
        name = "achievement" if "achievement" in frame else "achievements"
        for run_id, turn, unlocked in zip(frame["run_id"], frame["turn"], frame[name], strict=True):
            assert f"{unlocked} (" in shown.loc[run_id, turn]


EXPECTED = "scorer points for achievements, target not recorded"


def test_a_trace_is_shown_turn_by_turn(path):
    assert shown(path) == [
        "a.json",
        "model alder, task t1, status error, score 0.9, started 2025-01-01 00:00:00 UTC, "
        f"flags error entry, suspect invalid actions, {EXPECTED}, repetition not recorded, difficulty easy, "
        "1 of 22 achievements",
        "",
        "1 » player, step 0: move_up, do, jump",
        "    to the \ufffd[31mtree",
        "    and back",
        "    invalid move_up: got [0, 0] (judged over the whole turn)",
        "    unlocked collect_wood (easy)",
        "    health 9, food 7, drink 6, energy 8, wood 2; 788 + 57 tokens   ◀ unlocked, suspect",
        "2 » player, step 1: noop, sleep",
        "    invalid sleep: Energy is full",
        "    0 + 12 tokens   ◀ invalid",
        "3 · session: error: out of tokens   ◀ error",
    ]


def test_a_trace_without_turns_or_events_is_shown_too(tmp_path):
    begun = "started 2025-01-01 00:00:00 UTC"
    without_turns = [{"actions": [6]}, {"reward": 1.0, "hooks_triggered": ["hard_achievement"]}]
    for events, lines in (
        ([], [f"model alder, status aborted, {begun}, flags aborted, {EXPECTED}, score not recorded, "
              "repetition not recorded, difficulty hard, aborted: no events", ""]),
        (without_turns, [f"model alder, score 5, {begun}, flags unnamed achievements, {EXPECTED}, "
                         "repetition not recorded, difficulty hard", "",
                         "1 » player: sleep", "2 » player: no action"]),
    ):  # fmt: skip
        path = write(tmp_path, trace(*events, metadata=[config(model_name="alder", difficulty="hard")]))
        assert shown(path)[1:] == lines


@pytest.mark.parametrize(
    ("observation", "images"),
    [
        (SEEN, (Image(4, 1, PIXELS),)),
        ({**SEEN, "observation_image_shape": [4, 4, 3]}, ()),
        ({**SEEN, "observation_image_shape": [10**9, 10**9, 3]}, ()),
        ({**SEEN, "observation_image_shape": [1.0, 4, 3]}, ()),
        ({**SEEN, "observation_image_base64": "no base64!"}, ()),
        ({"observation_image_shape": [1, 4, 3]}, ()),
    ],
)
def test_a_turn_shows_the_picture_of_its_last_event_where_its_size_is_that_of_its_shape(tmp_path, observation, images):
    event = environment(0, system_state_after={"public_state": observation})
    path = write(tmp_path, trace(runtime(0), event, runtime(1), environment(1), "no event"))
    turns = transcript_of(kind_named("crafter"), RunFiles([str(path)])).turns
    assert [turn.images for turn in turns] == [images, ()]
