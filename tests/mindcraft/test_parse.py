"""One agent's log: every wording in every shape of log, damaged logs, counts and events; the quick search finds all."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.mindcraft import analyze_agent_log, parse
from evalkit.mindcraft.parse import COMMAND, EVENT, FINAL, AgentOutcome, agent_outcome, decode_log
from tests.mindcraft.builders import ANYTHING, SCORE, SHAPES, log, said, turn, write

# score and status: the wordings that mean them
WORDINGS = {
    (1.0, "SUCCESS"): [
        "Task completed", "Task completed, exiting", "Task successful", "Task successful ended with code : 2",
        "Task successful ended with code : undefined", f"{SCORE}1",
    ],
    (None, "TIMED_OUT"): [
        "Task unsuccessful: Timeout reached", "Task timeout reached", "Task timeout reached ended with code : 4",
    ],
    (None, "NO_SCORE_LOGGED"): [
        "Task unsuccessful: Agent ended goal", "Agent ended goal", "Agent ended conversation",
        "Agent ended goal ended with code : 3", "No other agents found ended with code : 3",
        *(f"{SCORE}{number}" for number in ("NaN", "undefined", "Infinity", "٣", "1_0", "0x1", "1.")),
    ],
    (0.0, "FAILED_SCORE_ZERO"): [f"{SCORE}0"],
    (100.0, "SUCCESS"): [f"{SCORE}100"],
    (0.5, "FAILED_PARTIAL_SCORE"): ["Task ended in score : 0.5"],
    **{(score, "FAILED_PARTIAL_SCORE"): [f"{SCORE}{score}"] for score in (0.85, 1e-7, 65.38461538461539)},
}  # fmt: skip
ENDINGS = [(ending, *meaning) for meaning, endings in WORDINGS.items() for ending in endings]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("ending", "score", "status"), ENDINGS, ids=[ending for ending, *_ in ENDINGS])
def test_every_final_wording_is_read_in_every_shape_of_log(tmp_path, shape, ending, score, status):
    outcome = analyze_agent_log(write(tmp_path / "Andy_0_0.json", SHAPES[shape](said(ending))))
    flags = ["score_implied"] * (score == 1 and SCORE not in ending)
    flags += ["score_not_a_number"] * (SCORE in ending and score is None)
    assert outcome == {
        **outcome, "raw_score": score, "completion_status": status, "final_system_message": ending, "flags": flags,
        "timed_out": status == "TIMED_OUT", "agent_log_processed": True, "parsing_errors": [],
    }  # fmt: skip


NEARLY = [
    "Task ended with score : 1 and more",
    "Task ended with score : ",
    "Well: Task ended with score : 1",
    "Task completed by Andy",
    "Task successful ended with code : two",
    "Code output:\nTask ended with score : 1",
]
NOT_AT_ALL = ["task ended with score : 1", "Agent ended"]  # fmt: skip


@pytest.mark.parametrize("content", NEARLY + NOT_AT_ALL)
def test_a_message_counts_only_as_a_whole_and_is_flagged_where_it_nearly_is_one(tmp_path, content):
    talk = [turn("system", "Good."), turn("system", content)]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {"turns": talk}))
    assert (outcome["completion_status"], outcome["raw_score"]) == ("NO_SCORE_LOGGED", None)
    assert outcome["final_system_message"] is None
    assert outcome["flags"] == ["near_final"] * (content in NEARLY)


@pytest.mark.parametrize(
    ("endings", "score", "status", "message", "conflicting"),
    [
        (["0", "0"], 0, "FAILED_SCORE_ZERO", "0", False),
        (["1", "0"], 1, "SUCCESS", "1", True),
        (["0", "1", "1"], 0, "FAILED_SCORE_ZERO", "0", True),
        (["NaN", "1"], None, "NO_SCORE_LOGGED", "NaN", True),
        (["1", "NaN"], 1, "SUCCESS", "1", True),
        (["NaN", "NaN"], None, "NO_SCORE_LOGGED", "NaN", False),
        (["Task successful", "0"], 1, "SUCCESS", "Task successful", True),
        (["Agent ended goal", "1"], 1, "SUCCESS", "1", False),
        (["Task timeout reached", "0"], 0, "TIMED_OUT", "Task timeout reached", False),
        (["Task timeout reached", "1"], 1, "TIMED_OUT", "Task timeout reached", True),
        (["1", "Task timeout reached"], 1, "TIMED_OUT", "Task timeout reached", True),
        (["Agent ended goal", "Agent ended conversation"], None, "NO_SCORE_LOGGED", "Agent ended goal", False),
    ],
)
def test_the_first_score_decides_and_a_time_out_overrides(tmp_path, endings, score, status, message, conflicting):
    *texts, decisive = (text if " " in text else f"{SCORE}{text}" for text in (*endings, message))
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", log(*texts)))
    assert (outcome["raw_score"], outcome["completion_status"]) == (score, status)
    assert outcome["final_system_message"] == decisive
    assert ("conflicting" in outcome["flags"]) is conflicting


ONE = f'{{"role": "system", "content": "{SCORE}1"}}'.encode()
GOOD = b'{"memory": "", "turns": [' + ONE + b"]}"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (GOOD[:-1], "JSONDecodeError"),
        (b"{}", "TypeError: no list of turns"),
        (b'{"turns": null}', "TypeError: no list of turns"),
        (b"5", "TypeError: no list of turns"),
    ],
)
def test_what_can_not_be_read_says_why(tmp_path, data, error):
    outcome = analyze_agent_log(write(tmp_path / "Andy_0_2.json", data))
    assert (outcome["agent_name"], outcome["repetition"]) == ("Andy_0", 2)
    assert (set(outcome), type(outcome)) == (set(AgentOutcome.__annotations__), dict)
    assert (outcome["completion_status"], outcome["raw_score"]) == ("LOG_FILE_ERROR", None)
    assert outcome["agent_log_processed"] is False
    (reason,) = outcome["parsing_errors"]
    assert reason.startswith(error)


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        (GOOD.replace(b"}]", b'}, {"role": "user", "content": "\\udc00"}]'), ["recovered_lone_surrogate"]),
        (GOOD.replace(b"}]", b'}, 7, null, [], "text"]'), ["turns_skipped"]),
        (GOOD.replace(b"[{", b'[{"role": "system", "content": [NaN]}, {'), ["turns_skipped", "recovered_nan_literal"]),
        (GOOD.replace(b"[{", b'[{"role": {}, "content": "x"}, {'), []),
        (b"[3, " + ONE + b"]", ["turns_skipped"]),
    ],
)
def test_what_is_recovered_is_flagged_and_counts(tmp_path, data, flags):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", data))
    assert (outcome["completion_status"], outcome["raw_score"]) == ("SUCCESS", 1)
    assert outcome["flags"] == flags


@pytest.mark.parametrize("key", [b"memory", b"self_prompt", b"key_of_a_later_version"])
def test_a_log_may_have_any_key_and_all_of_it_is_checked_for_utf_8(key):
    data = GOOD.replace(b'"memory": ""', b'"%s": {"x": ["\xc3\xa9"]}' % key)
    record = decode_log(data)
    assert (record["raw_score"], record["flags"]) == (1, [])
    assert decode_log(data.replace(b"\xa9", b""))["flags"] == ["recovered_latin_1"]
    (error,) = decode_log(data.replace(b"\xc3", b"\x80"))["parsing_errors"]
    assert error.startswith("UnicodeDecodeError")


def test_own_commands_are_counted_and_quoted_ones_are_not(tmp_path):
    own = ['!goToPlayer("Jill_1", 3)', "Wow! Great!! a!b and !! and 5!x", 'First !inventory, then !craftRecipe("b", 1)']
    others = [turn("user", "Jill_1: !inventory"), turn("system", "Command !inventory was run. !stats")]
    turns = [turn("assistant", text) for text in own] + others
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", turns))
    assert (outcome["command_count"], outcome["message_count"]) == (3, 5)


TROUBLE = {
    "Agent process restarted.": "restarts",
    "Bot disconnected! Killing agent process.": "disconnects",
    "Bot kicked! No reason given.": "disconnects",
    "Not all required players/bots are present in the world. Exiting.": "missing_players",
    "Code execution timed out after 10 minutes. Attempting force stop.": "code_timeouts",
    "You died at position x: 1.0, y: 2.0, z: 3.0": "deaths",
    "Command !fly does not exist.": "unknown_commands",
}


@pytest.mark.parametrize(("line", "event"), TROUBLE.items())
def test_lines_of_trouble_are_counted_in_system_turns_only(tmp_path, line, event):
    turns = [turn("system", line), turn("system", f"Code output:\n{line}\n{line}"), turn("user", line)]
    turns += [turn("system", f"He said: {line}"), turn("assistant", line)]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", turns))
    assert outcome["events"] == {event: 3}
    assert ("restarted" in outcome["flags"]) is (event == "restarts")


def test_a_turn_may_report_several_events_and_be_followed_by_a_final_message(tmp_path):
    *lines, fly = TROUBLE
    turns = [
        turn("system", "\n".join([*lines, *lines])),
        turn("system", f"{fly}\n{SCORE}1"),
        turn("system", f"{SCORE}0"),
    ]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", turns))
    assert outcome["events"] == {**dict.fromkeys(TROUBLE.values(), 2), "disconnects": 4, "unknown_commands": 1}
    assert (outcome["final_system_message"], outcome["flags"]) == (f"{SCORE}0", ["near_final", "restarted"])


@pytest.mark.parametrize("start", [1757845200000, "1757845200000", None, 0, -5, True, "Infinity", [1], 2**64, 10**400])
def test_the_start_is_a_time_or_nothing(tmp_path, start):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {**log(), "taskStart": start}))
    assert outcome["task_start"] == (1757845200000.0 if str(start) == "1757845200000" else None)
    assert outcome["agent_log_processed"]


def read_turn_by_turn(value):
    """What the rules say, without any short cut: finals, events, commands, whether a wording is only quoted."""
    turns = value["turns"] if isinstance(value, dict) else value
    texts = [(t.get("role"), t["content"]) for t in turns if isinstance(t, dict) and isinstance(t.get("content"), str)]
    system = [text for role, text in texts if role == "system"]
    finals = [text.strip() for text in system if FINAL.fullmatch(text.strip())]
    events = Counter(match.lastgroup for text in system for match in EVENT.finditer(text))
    commands = sum(len(COMMAND.findall(text)) for role, text in texts if role == "assistant")
    quoted = not finals and any(FINAL.search(text) for role, text in texts if role != "system")
    return turns, finals, quoted, {"events": dict(events), "command_count": commands, "message_count": len(texts)}


def check(data):
    outcome = agent_outcome("a_0.json", decode_log(data))
    turns, finals, quoted, counts = read_turn_by_turn(json.loads(data))
    assert outcome == {**outcome, **counts} == json.loads(json.dumps(outcome, allow_nan=False))
    assert set(outcome) == set(AgentOutcome.__annotations__)
    assert ("quoted_only" in outcome["flags"]) is quoted
    assert outcome["final_system_message"] in (finals or [None])
    assert outcome["agent_log_processed"]
    assert ("turns_skipped" in outcome["flags"]) is (outcome["message_count"] < len(turns))


pieces = st.sampled_from([
    "Task ended with score : 1", "Task timeout reached", "Task successful ended with code : 2", "Agent ended goal",
    "Task ", "Agent ended ", "No other agents found", "Not all required players/bots are present in the world.",
    "Agent process restarted.", "Bot disconnected!", "Bot kicked!", "Code execution timed out after 1",
    "You died at position", "Command !fly does not exist.", "!inventory", "a!b", "!!x", "T", "N", "A", "Y", "x", "/",
    "!", "\n", " ", "\u00a0", "\x85", "\u2028", "😀", "é", "\\", '"',
])  # fmt: skip
contents = st.lists(pieces, max_size=6).map("".join) | st.just(["Task successful"]) | ANYTHING
roles = st.sampled_from(["system", "system", "assistant", "user", None, "System", 3]) | ANYTHING
turns = st.lists(st.builds(turn, roles, contents) | st.just({"role": "system"}) | ANYTHING, max_size=8)
others = st.fixed_dictionaries({"memory": ANYTHING}, optional={"taskStart": ANYTHING})


@given(turns, st.booleans(), st.none() | others)
def test_any_log_is_read_as_the_rules_say(turns, ascii_only, around):
    value = [{}, *turns] if around is None else {**around, "turns": turns}
    check(json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace"))


def test_a_wording_or_an_event_does_not_reach_from_one_turn_into_the_next():
    check(json.dumps([turn("user", "Task ended with score : "), turn("user", "1")]).encode())
    check(json.dumps([turn("system", "Command !"), turn("system", "fly does not exist.")]).encode())
    check(json.dumps([turn("assistant", "Wow!"), turn("assistant", "inventory")]).encode())


@pytest.mark.parametrize(
    "text",
    [
        "Task ended with score : 1",
        "Task ended in score: 0.5",
        "Task completed",
        "Task successful",
        "Task ended with score",
    ],
)
def test_a_text_states_an_outcome_wherever_a_final_wording_occurs_in_it(text):
    assert parse.states_outcome(f"They said: {text}")
    assert not parse.states_outcome(text.replace("Task", "Tasks"))
