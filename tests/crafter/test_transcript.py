"""Episodes turn by turn: the transcript with what the player saw, and the frames of turns and actions."""

import base64
import json

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.crafter import load
from evalkit.crafter.table import ACTION_ROWS, TURNS
from evalkit.kinds import Image, RunFiles, kind_named, transcript_of
from tests.crafter.traces import TRACES, config, environment, hook, language_model, needs_traces, runtime, trace, write

WOOD = hook("easy_achievement", ["collect_wood"])
BLOCKED = hook("invalid_action", action="move_up", reason="got [0, 0]")
STATE = {"inventory": {"energy": 8, "health": 9, "food": 7, "drink": 6, "wood": 2, "stone": 0}}
PIXELS = bytes(range(12))
SEEN = {"observation_image_base64": base64.b64encode(PIXELS).decode(), "observation_image_shape": [1, 4, 3]}


def plain(values):
    return [None if pd.isna(value) else value for value in values]


def shown(path, *arguments):
    result = CliRunner().invoke(main, ["show", str(path), *arguments])
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def read(path):
    return transcript_of(kind_named("crafter"), RunFiles([str(path)]))


@pytest.fixture
def path(tmp_path):
    first = runtime(0, [BLOCKED], actions=[3, 5, "jump"])
    first["metadata"]["action_reasoning"] = "to the \x1b[31mtree\nand back"
    full = hook("invalid_action", action="sleep", reason="Energy is full", action_index=1, suspect=False)
    events = [
        language_model(0, prompt_tokens=788, completion_tokens=57, total_tokens=845),
        first,
        environment(0, [WOOD], system_state_after={"public_state": STATE}),
        {"llm_call_records": [], "metadata": {"total_tokens": 12}},  # names no turn: it chose the next actions
        runtime(1, [full], [0, 6]),
        environment(1),
        {"llm_call_records": []},  # names no turn, and nothing comes after it
    ]
    error = {"metadata_type": "error", "data": {"error_message": "out of tokens"}, "timestamp": ""}
    metadata = [config(model_name="alder", difficulty="easy", task_instance_id="t1"), error]
    return write(tmp_path, trace(*events, metadata=metadata), "a.json")


def test_a_trace_is_shown_turn_by_turn(path):
    assert shown(path) == [
        "a.json",
        "alder, difficulty easy, task t1, score 0.90, 1 of 22 achievements, error entry, suspect invalid actions",
        "",
        "» turn 0: move_up, do, jump",
        "    to the \ufffd[31mtree",
        "    and back",
        "    invalid move_up: got [0, 0] (judged over the whole turn)",
        "    unlocked collect_wood (easy)",
        "    health 9, food 7, drink 6, energy 8, wood 2; 788 + 57 tokens   ◀ unlocked, suspect",
        "» turn 1: noop, sleep",
        "    invalid sleep: Energy is full",
        "    12 tokens   ◀ invalid",
        "· session: error: out of tokens   ◀ error",
    ]


def test_a_trace_without_turns_or_events_is_shown_too(tmp_path):
    without_turns = [{"actions": [6]}, {"reward": 1.0, "hooks_triggered": ["hard_achievement"]}]
    for events, lines in (
        ([], ["alder, difficulty hard, aborted: no events", ""]),
        (without_turns, ["alder, difficulty hard, score 5.00, unnamed achievements", "",
                         "» event 0: sleep", "» event 1: no action"]),
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
    assert [turn.images for turn in read(path).turns] == [images, ()]


def test_a_row_per_turn_sums_up_its_events(path):
    turns = load(path.parent).turns
    assert list(turns) == [column.name for column in TURNS]
    expected = {
        "model_name": ["alder", "alder"], "turn": [0, 1], "events": [3, 4], "actions": [3, 2],
        "action_names": ["move_up do jump", "noop sleep"], "score": [0.95, -0.05], "easy_achievements": [1, 0],
        "invalid_actions": [1, 1], "suspect_invalid_actions": [1, 0], "achievements": ["collect_wood", None],
        "reason": ["got [0, 0]", "Energy is full"], "total_tokens": [845, 12], "source": [str(path)] * 2,
    }  # fmt: skip
    assert {name: plain(turns[name]) for name in expected} == expected


def test_a_row_per_action_has_its_place_within_the_turn_and_its_verdict(path):
    actions = load(path.parent).actions
    assert list(actions) == [column.name for column in ACTION_ROWS]
    rows = actions[["turn", "event", "action", "name", "verdict", "reason"]]
    assert list(map(plain, rows.itertuples(index=False))) == [
        [0, 1, 0, "move_up", "suspect", "got [0, 0]"],
        [0, 1, 1, "do", None, None],
        [0, 1, 2, "jump", None, None],
        [1, 4, 0, "noop", None, None],
        [1, 4, 1, "sleep", "invalid", "Energy is full"],
    ]


@needs_traces
def test_real_traces_give_the_turns_and_actions_that_a_plain_reading_gives():
    traces = load(TRACES)
    expected, named = [], 0
    for path in traces.episodes["source"]:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["event_history"]
        for event in events:
            if "actions" in event:
                inner = event["metadata"]
                turn = inner.get("turn", inner.get("step"))
                names = inner.get("action_names") or [inner["action_name"]]
                expected += [(path, turn, place, name) for place, name in enumerate(names)]
                named += len([entry for entry in event["event_metadata"] if entry["hook_name"] == "invalid_action"])
    rows = traces.actions[["source", "turn", "action", "name"]]
    assert list(rows.itertuples(index=False, name=None)) == expected
    assert traces.actions["verdict"].notna().sum() == traces.turns["invalid_actions"].sum() == named
    assert traces.turns["actions"].sum() == len(expected)
    assert traces.turns["total_tokens"].sum() == traces.episodes["total_tokens"].sum()
