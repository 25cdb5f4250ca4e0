"""What a trace says, wherever it says so, and files that are broken, odd or none at all."""

import base64
import json
import math

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.crafter import WEIGHTS, evaluate_trace, load
from evalkit.crafter.assemble import assemble
from evalkit.crafter.format import Trace, fit
from evalkit.crafter.kind import KIND
from evalkit.crafter.parse import EventRow, judge_trace, parse_file
from evalkit.crafter.table import RECORDS
from evalkit.crafter.transcript import transcript
from evalkit.io.sources import Listing
from evalkit.kinds import Records
from evalkit.kinds.reading import tables_of
from tests.crafter.traces import config, environment, hook, language_model, results, runtime, trace, write

EASY = hook("easy_achievement", ["collect_wood"])


def judged(content):
    return judge_trace(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("event", "kind", "step"),
    [
        ({"llm_call_records": []}, "language_model", None),
        ({"call_records": [], "actions": [1]}, "language_model", None),
        ({"actions": [], "metadata": {"turn": 0, "step": 5}}, "runtime", 0),
        ({"actions": 3, "metadata": {"step": 5}}, "runtime", 5),
        ({"reward": None, "metadata": {"turn": "7"}}, "environment", 7),
        ({"reward": "much", "metadata": None}, "environment", None),
        ({}, "other", None),
        (None, "other", None),
    ],
)
def test_an_event_is_typed_by_its_keys_and_its_step_is_the_turn_or_else_the_step(event, kind, step):
    (read,) = judged(trace(event)).events
    assert (read.kind, read.step) == (kind, step)


UUID = "97a85950-3090-43bd-b228-b1430e7717b3"
OF_ID, STAMPED = "session_id", f"episode_0_gpt-4.1_1753815116234099_{UUID}"
TASK = {"task_instance": {"metadata": {"difficulty": "medium", "seed": 0}}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (trace(metadata=[config(model_name="a")]), {"model_name": "a", "model_source": "session_metadata"}),
        (trace(language_model(model_name="b"), metadata=[config(model_name="a")]), {"model_name": "a"}),
        (trace(runtime(), language_model(model_name="b")), {"model_name": "b", "model_source": "event_history"}),
        (trace({"llm_call_records": [], "model_name": "b"}), {"model_name": "b"}),
        (trace({"llm_call_records": [{"model": "b"}]}), {"model_name": "b"}),
        (trace({"llm_call_records": [], "system_state_before": {"gen_ai.request.model": "b"}}), {"model_name": "b"}),
        (trace(session_id=STAMPED), {"model_name": "gpt-4.1", "model_source": OF_ID}),
        (trace(session_id=f"session_episode_12_my_model_{UUID}"), {"model_name": "my_model"}),
        (trace(session_id=f"crafter_episode_0_{UUID}"), {"model_name": "unknown"}),
        (trace(session_id="whatever"), {"model_name": "unknown", "model_source": None, "difficulty": "unknown"}),
        (trace(metadata=[config(model_name="")], session_id="x"), {"model_name": "unknown", "seed": None}),
        (trace(metadata=[config(difficulty="hard")]) | {"metadata": {"difficulty": "easy"}}, {"difficulty": "hard"}),
        (trace() | {"metadata": TASK}, {"difficulty": "medium", "seed": "0"}),
        (trace({"actions": [], "metadata": {"difficulty": "easy"}}), {"difficulty": "easy"}),
        (trace(metadata=[config(seed="a7")]), {"seed": "a7"}),
        (trace(metadata=[config(seed=True)]), {"seed": None}),
        (trace(metadata=[results()]), {"status": "aborted"}),
        (trace(runtime(), metadata=[results()]), {"status": "finished"}),
        (trace(runtime(), metadata=[{"metadata_type": "error", "data": {}}]), {"status": "error"}),
        (trace(runtime()), {"status": None}),
    ],
)
def test_what_a_session_says_is_found_wherever_it_is(content, expected):
    session = judged(content).session
    assert {name: session[name] for name in expected} == expected


NOON = 1735732800000  # 2025-01-01T12:00:00 in UTC, in milliseconds


def at(time):
    return {"time_record": {"event_time": time, "message_time": 0}}


def entry(time):
    return {"metadata_type": "episode_results", "data": {}, "timestamp": time}


@pytest.mark.parametrize(
    ("created", "metadata", "events", "started", "duration"),
    [
        ("2025-01-01T12:00:00", [], [at("2025-01-01T12:01:30.5")], NOON, 90.5),
        ("2025-01-01T12:00:00", [entry("2025-01-01T12:02:00")], [at("2025-01-01T12:01:30")], NOON, 120),
        ("2025-01-01T13:00:00+01:00", [], [at("2025-01-01T12:00:02Z")], NOON, 2),
        ("", [entry("2025-01-01T12:00:00")], [at("2025-01-01T12:00:01"), at("2025-01-01T12:00:03")], NOON, 3),
        (None, [], [at(NOON / 1000), at(NOON / 1000 + 0.25)], NOON, 0.25),
        ("2025-01-01T12:00:00", [], [], NOON, None),
        ("2025-01-01T12:00:00", [], [at("2025-01-01T11:00:00")], NOON, None),
        ("yesterday", [entry(None)], [at(10**30), {"time_record": "noon"}, {}], None, None),
    ],
)
def test_a_session_begins_when_it_was_created_and_ends_with_its_last_time(created, metadata, events, started, duration):
    read = judged(trace(*events, metadata=metadata, created_at=created))
    assert (read.session["started"], read.session["duration"]) == (started, duration)
    assert read.recovered == ""  # odd times are no reason to read the trace piece by piece


WORLD = base64.b64encode(bytes(range(64)) * 64).decode()
OTHER = base64.b64encode(bytes(range(1, 65)) * 64).decode()
KNOWN = {"seed": 7, "instance_num": 3, "experiment_id": "e", "task_instance_id": "an-id"}


def in_world(world, name="world_material_map_base64"):
    shown = {"observation": {"inventory": {}, name: world}}
    return runtime(0, system_state_before=shown, system_state_after={"observation": {name: OTHER}})


@pytest.mark.parametrize(
    ("settings", "event", "task", "source"),
    [
        (KNOWN, in_world(WORLD), "world-", "map"),
        (KNOWN, in_world("... truncated ..."), "seed-7", "seed"),
        (KNOWN, in_world("AQEB" * 1000), "seed-7", "seed"),
        (KNOWN, in_world(5, "world_material_map_hash"), "seed-7", "seed"),
        (KNOWN | {"seed": None, "instance_num": 0}, runtime(), "e/instance-0", "instance"),
        (KNOWN | {"seed": None, "experiment_id": None}, runtime(), "an-id", "id"),
        ({"task_instance_id": "an-id"}, in_world(5, "world_material_map_hash"), "map-5", "map_hash"),
        ({"instance_num": 3}, runtime(), None, None),
    ],
)
def test_a_task_is_a_world_as_far_as_the_trace_tells_it(settings, event, task, source):
    session = judged(trace(language_model(), event, metadata=[config(**settings)])).session
    assert session["task_source"] == source
    assert session["task_id"] is None if task is None else session["task_id"].startswith(task)


LINE = b'{"event_history": []}\n'


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (b"", "failed", "JSONDecodeError: the file is empty"),
        (json.dumps(trace(environment()), indent=2).encode()[:-40], "failed", "JSONDecodeError"),
        (b'{"messages": []}', "skipped", "not a session trace: it has no event_history"),
        (b'{"session_id": "a", "schema_version": "ATIF-v1.2", "steps": []}', "skipped", "not a session trace"),
        (b'{"event_history": 3}', "skipped", "not a session trace"),
        (LINE * 2, "failed", "JSONDecodeError: JSON is malformed: trailing characters (byte 23); 2 traces in one file"),
        (b"[%s, %s]" % (LINE, LINE), "skipped", "not a session trace: it has no event_history; 2 traces in one file"),
    ],
)
def test_a_broken_file_or_one_of_another_shape_says_what_is_wrong(tmp_path, data, status, reason):
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    parsed = parse_file("broken.json", data)
    assert parsed.status == status
    assert parsed.reason.startswith(reason)
    result = evaluate_trace(path)
    assert (result["total_score"], result["error"], result["trace_file"]) == (None, parsed.reason, "broken.json")


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (json.dumps(trace(environment(hooks=[EASY], reward=float("nan")))).encode(), "nan_literal"),
        (json.dumps(trace(environment(hooks=[EASY]), runtime("three"), None)).encode(), "malformed_fields"),
        (json.dumps(trace(environment(hooks=[EASY]), metadata=[config(max_turns=2**64)])).encode(), "data.max_turns"),
    ],
)
def test_what_real_writers_emit_is_recovered_and_flagged(tmp_path, data, note):
    (tmp_path / "odd.json").write_bytes(data)
    logs = load(tmp_path)
    assert note in logs.ledger["reason"].item()
    assert logs.episodes["score"].item() == 1.0
    assert logs.episodes["run_flags"].item()[-1] in logs.ledger["reason"].item()


def test_odd_values_are_left_out_and_the_rest_counts(tmp_path):
    odd_hooks = [None, "x", {"hook_name": 3}, {"hook_name": "easy_achievement", "data": [1]}]
    events = [
        {"event_metadata": odd_hooks, "actions": {}},
        {"event_metadata": [hook("hard_achievement", [1, "defeat_zombie", None])]},
        {"event_metadata": EASY, "metadata": {"turn": 10**30, "model_name": "m"}},
        "not an event",
        {"llm_call_records": 5, "metadata": {"prompt_tokens": "12"}},
    ]
    result = evaluate_trace(write(tmp_path, trace(*events, metadata=["x", config(difficulty={})])))
    assert result["counts"] == {"easy_achievement": 1, "hard_achievement": 1}
    assert (result["num_events"], result["model_name"], result["difficulty"]) == (5, "m", "unknown")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def some(**values):
    return st.fixed_dictionaries({}, optional=values)


def up_to(most, item):
    """Make lists of items, or anything."""
    return st.lists(item, max_size=most) | json_values


NAMES = st.sampled_from(["collect_wood", "eat_cow", "x"])
HOOK_DATA = some(achievements=up_to(3, NAMES), suspect=json_values, reason=json_values)
NAMES_OF_HOOKS = st.sampled_from([*WEIGHTS, "new_achievement", "invalid_actions", "other"])
HOOKS = some(hook_name=NAMES_OF_HOOKS | json_values, data=json_values | HOOK_DATA)
OBSERVATIONS = st.fixed_dictionaries({"achievements_status": st.dictionaries(NAMES, json_values)})
STATES = json_values | some(public_state=OBSERVATIONS, observation=OBSERVATIONS)
METADATA = json_values | st.dictionaries(
    st.sampled_from(["turn", "step", "model_name", "prompt_tokens", "invalid_action", "difficulty", "task_instance"]),
    json_values,
)
EVENTS = json_values | some(
    llm_call_records=json_values,
    actions=up_to(5, st.integers(0, 16)),
    reward=json_values,
    metadata=METADATA,
    event_metadata=up_to(3, HOOKS | json_values),
    hooks_triggered=up_to(2, st.sampled_from([*WEIGHTS]) | json_values),
    system_state_before=STATES,
    system_state_after=STATES,
)
ENTRIES = st.fixed_dictionaries({"metadata_type": st.sampled_from(["episode_results", "error"]), "data": METADATA})
LIKE_TRACES = st.fixed_dictionaries(
    {"session_id": st.text(max_size=30) | json_values},
    optional={
        "event_history": up_to(5, EVENTS),
        "session_metadata": up_to(3, ENTRIES | json_values),
        "metadata": METADATA,
    },
)


@settings(max_examples=25)
@given(LIKE_TRACES)
def test_anything_like_a_trace_goes_through_every_step(content):
    data = json.dumps(content).encode()
    parsed = parse_file("x", data)
    if parsed.status == "skipped":
        return
    assert parsed.status == "used"
    events = content["event_history"] if isinstance(content.get("event_history"), list) else []
    files, listing = pa.table({"source": ["x"], "size": [len(data)]}), Listing("", ["x"], {}, {})
    frames = assemble(Records(tables_of(KIND.records, {"x": parsed.rows}), files, listing), {}).frames
    assert [len(frame) for frame in frames.values()] == [1, len(events), 22]
    assert frames["events"]["invalid"].map(len).tolist() == frames["events"]["invalid_actions"].tolist()
    assert transcript(["x"], lambda _: data).text().startswith("x\n")
    (episode,) = frames["episodes"].to_dict("records")
    points = sum(episode[f"{name}s"] * weight for name, weight in WEIGHTS.items()) if events else math.nan
    assert episode["score"] == pytest.approx(points, nan_ok=True)


@given(st.binary(max_size=300) | LIKE_TRACES.map(lambda content: json.dumps(content, indent=1).encode()[:-3]))
def test_any_bytes_are_read_or_refused_with_a_reason(data):
    parsed = parse_file("x", data)
    assert parsed.status == "used" or ": " in parsed.reason


OF_HOOKS = st.builds(lambda hooks, turn: environment(turn, hooks), st.lists(HOOKS, max_size=3), st.integers(0, 9))


@given(st.lists(OF_HOOKS, max_size=4))
def test_reading_piece_by_piece_gives_what_strict_reading_gives(events):
    content = trace(*events)
    try:
        strict = msgspec.json.decode(json.dumps(content), type=Trace)
    except msgspec.ValidationError:
        return
    assert fit(content, Trace) == strict


def test_the_row_of_an_event_has_the_columns_of_its_table():
    assert EventRow._fields == tuple(column.name for column in RECORDS["events"])
