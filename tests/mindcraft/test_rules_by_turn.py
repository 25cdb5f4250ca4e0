"""The quick search of joined texts finds what the rules say turn by turn, whatever the logs hold."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.mindcraft.format import COMMAND, EVENT, FINAL, FINAL_STARTS, holds_any, may_hold_event
from evalkit.mindcraft.parse import agent_outcome, read_log
from tests.mindcraft.builders import turn

REAL = Path(__file__).parents[3] / "shared/data/mindcraft/unscored_logs"


def read_turn_by_turn(value):
    """What the rules say, without any short cut: finals, events, commands, whether a wording is only quoted."""
    turns = value["turns"] if isinstance(value, dict) else value
    texts = [(t.get("role"), t["content"]) for t in turns if isinstance(t, dict) and isinstance(t.get("content"), str)]
    system = [text for role, text in texts if role == "system"]
    finals = [text.strip() for text in system if FINAL.fullmatch(text.strip())]
    events = Counter(match.lastgroup for text in system for match in EVENT.finditer(text))
    return {
        "finals": finals,
        "events": dict(events),
        "command_count": sum(len(COMMAND.findall(text)) for role, text in texts if role == "assistant"),
        "quoted_only": not finals and any(FINAL.search(text) for role, text in texts if role != "system"),
        "message_count": len(texts),
        "skipped_turns": len(turns) - len(texts),
    }


def check(data):
    outcome = agent_outcome("a_0.json", read_log(data))
    expected = read_turn_by_turn(json.loads(data))
    finals = expected.pop("finals")
    quoted = expected.pop("quoted_only")
    assert {name: outcome[name] for name in expected} == expected
    assert ("quoted_only" in outcome["flags"]) is quoted
    assert outcome["final_system_message"] in (finals or [None])


pieces = st.sampled_from([
    "Task ended with score : 1", "Task timeout reached", "Task successful ended with code : 2", "Agent ended goal",
    "Task ", "Agent ended ", "No other agents found", "Not all required players/bots are present in the world.",
    "Agent process restarted.", "Bot disconnected!", "Bot kicked!", "Code execution timed out after 1",
    "You died at position", "Command !fly does not exist.", "!inventory", "a!b", "!!x", "T", "N", "A", "Y", "x", "/",
    "!", "\n", " ", "\u00a0", "\x85", "\u2028", "😀", "é", "\\", '"',
])  # fmt: skip
contents = st.lists(pieces, max_size=6).map("".join) | st.none() | st.integers() | st.just(["Task successful"])
roles = st.sampled_from(["system", "system", "assistant", "user", None, "System", 3])
turns = st.lists(st.builds(turn, roles, contents) | st.just("no turn") | st.just({"role": "system"}), max_size=8)


@given(turns, st.booleans(), st.booleans())
def test_any_log_is_read_as_the_rules_say(turns, ascii_only, wrapped):
    check(json.dumps({"memory": "", "turns": turns} if wrapped else [{}, *turns], ensure_ascii=ascii_only).encode())


@pytest.mark.parametrize(
    "text",
    [r"\u0054ask ended with score : 1", r"Task\u0020timeout reached", r"You d\u0069ed at position", r"\u0021inventory",
     r"Not all required players\/bots are present in the world.", r"x\nAgent process restarted.", r"\n!inventory"],
)  # fmt: skip
@pytest.mark.parametrize("role", ["system", "assistant", "user"])
def test_what_is_escaped_counts_like_what_is_not(text, role):
    check(f'{{"turns": [{{"role": "{role}", "content": "{text}"}}, {{"role": "user", "content": "x"}}]}}'.encode())


def test_a_wording_or_an_event_does_not_reach_from_one_turn_into_the_next():
    check(json.dumps([turn("user", "Task ended with score : "), turn("user", "1")]).encode())
    check(json.dumps([turn("system", "Command !"), turn("system", "fly does not exist.")]).encode())
    check(json.dumps([turn("assistant", "Wow!"), turn("assistant", "inventory")]).encode())


def test_of_a_key_that_stands_twice_the_last_one_counts():
    check(b'[{"role": "user", "content": "x", "role": "system", "content": "Task successful"}]')


@pytest.mark.skipif(not REAL.is_dir(), reason="the real data are not here")
def test_real_logs_are_read_as_the_rules_say():
    files = list(REAL.rglob("*.json"))
    assert files
    for file in files:
        check(file.read_bytes())


@pytest.mark.parametrize(
    "text", ["", "T", "Task", "xTask ", "TaTask ", "TTask 1", "Task  ", "o other", "NNo other agents found"]
)
def test_parts_are_found_where_they_stand(text):
    assert holds_any(text, FINAL_STARTS) is any(start in text for start in FINAL_STARTS)


@given(st.lists(pieces, max_size=8).map("".join))
def test_no_text_with_an_event_or_a_final_wording_is_ruled_out(text):
    assert may_hold_event(text) or not EVENT.search(text)
    assert holds_any(text, FINAL_STARTS) or not FINAL.search(text)
