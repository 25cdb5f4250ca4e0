import base64
import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.crafter import WEIGHTS, evaluate_event, evaluate_trace, load
from evalkit.crafter.assemble import assemble
from evalkit.crafter.format import OtherShapeError, Trace, fit, read_trace, without_images
from evalkit.crafter.kind import KIND
from evalkit.crafter.parse import describe, judge_trace, parse_file, span_of
from evalkit.crafter.transcript import transcript
from evalkit.io import BrokenFileError
from evalkit.io.frames import arrow_schema, arrow_table
from evalkit.io.store import SOURCE
from evalkit.kinds import Records
from tests.crafter.traces import config, environment, hook, language_model, runtime, trace, write

EASY = hook("easy_achievement", ["collect_wood"])


def read(content):
    return read_trace(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"llm_call_records": []}, "language_model"),
        ({"call_records": [], "actions": [1]}, "language_model"),
        ({"actions": []}, "runtime"),
        ({"actions": 3}, "runtime"),
        ({"reward": None}, "environment"),
        ({"reward": "much"}, "environment"),
        ({}, "other"),
        (None, "other"),
    ],
)
def test_events_are_typed_by_their_keys(event, kind):
    decoded, _ = read(trace(event))
    assert [e.kind for e in decoded.event_history] == [kind]


@pytest.mark.parametrize(
    ("metadata", "turn"), [({"turn": 0, "step": 5}, 0), ({"step": 5}, 5), ({"turn": "7"}, 7), ({}, None), (None, None)]
)
def test_the_turn_is_the_turn_or_else_the_step(metadata, turn):
    decoded, _ = read(trace({"actions": [1], "metadata": metadata}))
    assert decoded.event_history[0].turn == turn


UUID = "97a85950-3090-43bd-b228-b1430e7717b3"


@pytest.mark.parametrize(
    ("content", "model"),
    [
        (trace(metadata=[config(model_name="a")]), "a"),
        (trace(metadata=[config(model="a")]), "a"),
        (trace(language_model(model_name="b"), metadata=[config(model_name="a")]), "a"),
        (trace(runtime(), language_model(model_name="b")), "b"),
        (trace({"llm_call_records": [], "model_name": "b"}), "b"),
        (trace({"llm_call_records": [{"model": "b"}]}), "b"),
        (trace({"call_records": [], "model_name": "b"}), "b"),
        (trace({"llm_call_records": [], "system_state_before": {"gen_ai.request.model": "b"}}), "b"),
        (trace(session_id=f"episode_0_gpt-4.1-nano_1753815116234099_{UUID}"), "gpt-4.1-nano"),
        (trace(session_id=f"session_episode_12_my_model_{UUID}"), "my_model"),
        (trace(session_id=f"crafter_episode_0_{UUID}"), "unknown"),
        (trace(session_id="whatever"), "unknown"),
        (trace(metadata=[config(model_name="")]) | {"session_id": "x"}, "unknown"),
    ],
)
def test_the_model_is_found_wherever_it_is(content, model):
    assert describe(read(content)[0]).model_name == model


@pytest.mark.parametrize(
    ("content", "difficulty"),
    [
        (trace(metadata=[config(difficulty="hard")]) | {"metadata": {"difficulty": "easy"}}, "hard"),
        (trace() | {"metadata": {"difficulty": "easy"}}, "easy"),
        (trace() | {"metadata": {"task_instance": {"metadata": {"difficulty": "medium"}}}}, "medium"),
        (trace({"actions": [], "metadata": {"difficulty": "easy"}}), "easy"),
        (trace(), "unknown"),
    ],
)
def test_the_difficulty_is_found_wherever_it_is(content, difficulty):
    assert describe(read(content)[0]).difficulty == difficulty


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (trace(metadata=[config(model_name="a")]), "session_metadata"),
        (trace(runtime(), language_model(model_name="b")), "event_history"),
        (trace(session_id=f"episode_0_gpt-4.1-nano_{UUID}"), "session_id"),
        (trace(session_id="whatever"), None),
    ],
)
def test_where_the_model_is_named_is_kept(content, source):
    assert describe(read(content)[0]).model_source == source


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
    content = trace(*events, metadata=metadata, created_at=created)
    assert span_of(read(content)[0]) == (started, duration)
    assert read(content)[1] == {}  # odd times are no reason to read the trace piece by piece


@pytest.mark.parametrize(
    ("content", "seed"),
    [
        (trace(metadata=[config(seed=7)]), "7"),
        (trace(metadata=[config(seed="a7")]), "a7"),
        (trace() | {"metadata": {"task_instance": {"metadata": {"seed": 0}}}}, "0"),
        (trace(metadata=[config(seed=[7])]), None),
        (trace(metadata=[config(seed=True)]), None),
        (trace(), None),
    ],
)
def test_the_seed_is_that_of_the_configuration_or_the_task(content, seed):
    assert describe(read(content)[0]).seed == seed


WORLD = base64.b64encode(bytes(range(64)) * 64).decode()
OTHER = base64.b64encode(bytes(range(1, 65)) * 64).decode()
KNOWN = {"seed": 7, "instance_num": 3, "experiment_id": "e", "task_instance_id": "an-id"}


def in_world(world, name="world_material_map_base64"):
    shown = {"observation": {"inventory": {}, name: world}}
    return runtime(0, system_state_before=shown, system_state_after={"observation": {name: OTHER}})


@pytest.mark.parametrize(
    ("told", "event", "task", "source"),
    [
        (KNOWN, in_world(WORLD), "world-", "map"),
        (KNOWN, in_world("... truncated ..."), "seed-7", "seed"),
        (KNOWN, in_world("AQEB" * 1000), "seed-7", "seed"),
        (KNOWN, in_world(5, "world_material_map_hash"), "seed-7", "seed"),
        (KNOWN | {"seed": None}, runtime(), "e/instance-3", "instance"),
        (KNOWN | {"seed": None, "instance_num": 0}, runtime(), "e/instance-0", "instance"),
        (KNOWN | {"seed": None, "experiment_id": None}, runtime(), "an-id", "id"),
        ({"task_instance_id": "an-id"}, in_world(5, "world_material_map_hash"), "map-5", "map_hash"),
        ({"instance_num": 3}, runtime(), None, None),
    ],
)
def test_a_task_is_a_world_as_far_as_the_trace_tells_it(tmp_path, told, event, task, source):
    content = trace(language_model(), event, metadata=[config(**told)])
    write(tmp_path, content)
    result, episodes = evaluate_trace(tmp_path / "session_a.json"), load(tmp_path).episodes
    found = result["task_id"]
    assert (found and found.startswith(task), result["task_source"]) == (task and True, source)
    for name in ("task_id", "task_source"):
        assert episodes[name].dropna().tolist() == [result[name]] * (result[name] is not None)
    assert episodes["task_instance_id"].dropna().tolist() == [told[name] for name in told if name == "task_instance_id"]


def test_episodes_of_one_world_are_one_task_whatever_they_build_in_it(tmp_path):
    for i, first in enumerate((WORLD, WORLD, OTHER)):
        told = config(task_instance_id=f"random-{i}", max_turns=[4, 20, 20][i])
        write(tmp_path, trace(language_model(), in_world(first), in_world(WORLD), metadata=[told]), f"{i}.json")
    episodes = load(tmp_path).episodes
    a, b, c = episodes["task_id"]
    assert a == b != c
    assert episodes["task_instance_id"].nunique() == 3
    assert episodes["max_turns"].tolist() == [4, 20, 20]


def test_numbers_beyond_all_reason_are_left_out_and_named(tmp_path):
    told = config(max_turns=2**64, task_instance_id="t")
    write(tmp_path, trace(environment(hooks=[EASY]), metadata=[told]))
    logs = load(tmp_path)
    assert logs.episodes[["max_turns", "score"]].isna().to_numpy().tolist() == [[True, False]]
    assert "$.session_metadata[0].data.max_turns" in logs.ledger["reason"].item()


def test_a_trace_says_how_it_ended():
    error = {"metadata_type": "error", "data": {}}
    results = {"metadata_type": "episode_results", "data": {"num_achievements": 0}}
    for content, status in (
        (trace(metadata=[results]), "aborted"),
        (trace(runtime(), metadata=[results, error]), "error"),
        (trace(runtime(), metadata=[results]), "finished"),
        (trace(runtime()), None),
    ):
        assert judge_trace(read(content)[0]).status == status


def observation(image):
    text = base64.b64encode(image).decode()
    return {"inventory": {}, "observation_image_base64": text, "shape": [1], "world_material_map_base64": text[:16]}


def with_images(**dump):
    state = {"observation": observation(bytes(range(256)) * 12)}
    events = [runtime(i, [EASY], system_state_before=state, system_state_after=state) for i in range(3)]
    return json.dumps(trace(*events), **dump).encode()


@pytest.mark.parametrize("dump", [{"indent": 2}, {}, {"separators": (",", ":")}])
def test_images_are_cut_and_nothing_else(dump):
    data = with_images(**dump)
    lean = json.loads(without_images(data))
    full = json.loads(data)
    assert len(without_images(data)) < len(data) / 4
    for event in full["event_history"]:
        for state in ("system_state_before", "system_state_after"):
            event[state]["observation"] |= {"observation_image_base64": "", "world_material_map_base64": ""}
    assert lean == full
    assert read_trace(data)[0].session_id == "crafter_episode_1_x"


KEY = "observation_image_base64"


@pytest.mark.parametrize(
    "value",
    [
        {KEY: 'a quote " and a backslash \\'},
        {KEY: "ends in a backslash \\\\"},
        {KEY: None},
        {KEY: ["x", {KEY: "y"}]},
        {"text": f'"{KEY}": "not an image, but a text that looks like one"'},
        {KEY: "", "next": {KEY: "AAAA"}},
        {f"x{KEY}": "é"},
    ],
)
def test_what_only_looks_like_an_image_keeps_its_structure(value):
    data = json.dumps({**value, "last": 1}, ensure_ascii=False).encode()
    lean = json.loads(without_images(data))
    assert list(lean) == [*value, "last"]
    assert lean["last"] == 1
    assert not isinstance(value.get("text"), str) or lean["text"] == value["text"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([KEY, "a", f'"{KEY}": "', "map_base64"]) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=20,
)


def emptied(value):
    if isinstance(value, dict):
        return {k: "" if isinstance(v, str) and k.endswith("_base64") else emptied(v) for k, v in value.items()}
    return [emptied(v) for v in value] if isinstance(value, list) else value


@given(json_values, st.sampled_from([None, 2]), st.booleans())
def test_cutting_images_changes_image_strings_only(value, indent, ascii_only):
    text = json.dumps({"observation_image_base64": "x", "value": value}, indent=indent, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass")
    assert emptied(json.loads(without_images(data))) == emptied(json.loads(data))


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "JSONDecodeError: the file is empty"),
        (b"\n ", "JSONDecodeError: the file is empty"),
        (with_images(indent=2)[:-40], "JSONDecodeError"),
        (with_images(indent=2)[:2000], "JSONDecodeError"),
        (b'{"session_id": "x", "event_history": [}', "JSONDecodeError"),
        (b'{"session_id": "\xff"}', "UnicodeDecodeError: not UTF-8 at byte 16"),
        (b'{"session_id": ' + b"[" * 100_000, "RecursionError"),
    ],
)
def test_a_broken_file_says_what_is_wrong(tmp_path, data, cause):
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    result = evaluate_trace(path)
    assert result["total_score"] is None
    assert result["error"].startswith(cause)
    assert result["trace_file"] == "broken.json"


def test_a_file_that_is_not_there_says_so(tmp_path):
    assert evaluate_trace(tmp_path / "no.json")["error"] == "FileNotFoundError: No such file or directory"
    assert evaluate_trace(tmp_path)["error"].startswith("IsADirectoryError")


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ([], "a JSON list"),
        (3, "a JSON int"),
        ({}, "neither session_id nor event_history is there"),
        ({"messages": []}, "neither session_id nor event_history is there"),
        ({"session_id": "a", "schema_version": "ATIF-v1.2", "steps": []}, "a session without events"),
        ({"event_history": 3}, "neither session_id nor event_history is there"),
        ([{"achievement_collect_coal": [1]}], "a file of benchmark scores (evalkit.crafter.benchmark reads it)"),
        ({"progression": 0.1, "episode_return": 1}, "a BALROG run file (evalkit.crafter.benchmark reads it)"),
    ],
)
def test_a_file_of_another_shape_is_named(content, shape):
    with pytest.raises(OtherShapeError, match="not a session trace: ") as error:
        read(content)
    assert str(error.value) == f"not a session trace: {shape}"


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"\xef\xbb\xbf" + json.dumps(trace(environment(hooks=[EASY]))).encode(), "byte_order_mark"),
        (json.dumps(trace(environment(hooks=[EASY], reward=float("nan")))).encode(), "nan_literal"),
        (json.dumps(trace(environment(hooks=[EASY], note="\ud83d"))).encode(), "lone_surrogate"),
        (json.dumps(trace(environment(hooks=[EASY]), runtime("three"), None)).encode(), "malformed_fields"),
    ],
)
def test_what_real_writers_emit_is_recovered_and_flagged(tmp_path, data, note):
    path = tmp_path / "odd.json"
    path.write_bytes(data)
    result = evaluate_trace(path)
    assert (result["total_score"], note in result["flags"]) == (1.0, True)
    assert note in load(tmp_path).ledger["reason"].item()


def test_odd_values_are_left_out_and_the_rest_counts(tmp_path):
    events = [
        {
            "event_metadata": [None, "x", {"hook_name": 3}, {"hook_name": "easy_achievement", "data": [1]}],
            "actions": {},
        },
        {"event_metadata": [{"hook_name": "hard_achievement", "data": {"achievements": [1, "defeat_zombie", None]}}]},
        {"event_metadata": {"hook_name": "easy_achievement"}, "metadata": {"turn": 10**30, "model_name": "m"}},
        "not an event",
        {"llm_call_records": 5, "metadata": {"prompt_tokens": "12"}},
    ]
    result = evaluate_trace(
        write(tmp_path, trace(*events, metadata=["x", {"metadata_type": 1, "data": {"difficulty": {}}}]))
    )
    assert result["counts"] == {"easy_achievement": 1, "hard_achievement": 1}
    assert (result["num_events"], result["model_name"], result["difficulty"]) == (5, "m", "unknown")


HOOKS = st.fixed_dictionaries(
    {},
    optional={
        "hook_name": st.sampled_from([*WEIGHTS, "new_achievement", "invalid_actions", "other"]) | json_values,
        "data": json_values
        | st.fixed_dictionaries(
            {},
            optional={
                "achievements": st.lists(st.sampled_from(["collect_wood", "eat_cow", "x"]), max_size=3) | json_values,
                "suspect": json_values,
                "reason": json_values,
            },
        ),
    },
)
OBSERVATIONS = st.fixed_dictionaries(
    {"achievements_status": st.dictionaries(st.sampled_from(["collect_wood", "x"]), json_values)}
)
STATES = json_values | st.fixed_dictionaries({}, optional={"public_state": OBSERVATIONS, "observation": OBSERVATIONS})
METADATA = json_values | st.dictionaries(
    st.sampled_from(["turn", "step", "model_name", "total_tokens", "invalid_action", "difficulty", "task_instance"]),
    json_values,
)
EVENTS = json_values | st.fixed_dictionaries(
    {},
    optional={
        "llm_call_records": json_values,
        "actions": st.lists(st.integers(0, 16), max_size=5) | json_values,
        "reward": json_values,
        "metadata": METADATA,
        "event_metadata": st.lists(HOOKS | json_values, max_size=3) | json_values,
        "hooks_triggered": st.lists(st.sampled_from([*WEIGHTS]) | json_values, max_size=2) | json_values,
        "system_state_before": STATES,
        "system_state_after": STATES,
    },
)
LIKE_TRACES = st.fixed_dictionaries(
    {"session_id": st.text(max_size=30) | json_values},
    optional={
        "event_history": st.lists(EVENTS, max_size=5) | json_values,
        "session_metadata": st.lists(
            st.fixed_dictionaries({"metadata_type": st.sampled_from(["episode_results", "error"]), "data": METADATA})
            | json_values,
            max_size=3,
        )
        | json_values,
        "metadata": METADATA,
    },
)


@given(LIKE_TRACES)
def test_anything_like_a_trace_goes_through_every_step(content):
    try:
        judged = judge_trace(read_trace(json.dumps(content).encode())[0])
    except OtherShapeError:
        return
    events = content["event_history"] if isinstance(content.get("event_history"), list) else []
    assert len(judged.verdicts) == len(events)
    data = json.dumps(content).encode()
    schemas = {name: arrow_schema((SOURCE, *columns)) for name, columns in KIND.records.items()}
    rows = parse_file("x", data).rows
    tables = {name: arrow_table([("x", *row) for row in rows[name]], schema) for name, schema in schemas.items()}
    made = assemble(Records(tables, None, None), {})
    frames, lazy = made.frames, {name: make() for name, make in made.lazy.items()}
    assert [len(frame) for frame in frames.values()] == [1, len(events), 22]
    assert len(lazy["actions"]) == frames["events"]["actions"].sum()
    if frames["events"]["turn"].notna().any():
        for name in ("actions", "invalid_actions", "easy_achievements", "total_tokens"):
            assert lazy["turns"][name].sum() == frames["events"][name].sum()
    assert transcript(["x"], lambda _: data).text().startswith("x\n")
    (episode,) = frames["episodes"].to_dict("records")
    points = sum(episode[f"{name}s"] * weight for name, weight in WEIGHTS.items()) if events else math.nan
    assert episode["score"] == pytest.approx(points, nan_ok=True)


@given(st.binary(max_size=300) | LIKE_TRACES.map(lambda content: json.dumps(content, indent=1).encode()[:-3]))
def test_any_bytes_are_read_or_refused_with_a_reason(data):
    refused = False
    try:
        decoded, _ = read_trace(data)
    except BrokenFileError as error:
        refused = str(error)
    assert judge_trace(decoded).verdicts is not None if refused is False else ": " in refused


@given(EVENTS)
def test_any_event_has_a_score_and_a_symbol(event):
    score, symbol = evaluate_event(event)
    assert symbol == "" if score == 0 and not symbol else symbol == ("+" if score > 0 else "-" if score < 0 else "0")


@given(
    st.lists(
        st.builds(lambda hooks, turn: environment(turn, hooks), st.lists(HOOKS, max_size=3), st.integers(0, 9)),
        max_size=4,
    )
)
def test_reading_piece_by_piece_gives_what_strict_reading_gives(events):
    content = trace(*events)
    try:
        strict = msgspec.json.decode(json.dumps(content), type=Trace)
    except msgspec.ValidationError:
        return
    assert judge_trace(fit(content, Trace)) == judge_trace(strict)
