"""What else one log tells: its agent, its counts, its events."""

import json

import pytest

from evalkit.mindcraft import analyze_agent_log
from evalkit.mindcraft.format import EVENTS, name_and_number
from evalkit.mindcraft.parse import AgentOutcome
from tests.mindcraft.builders import SCORE, log, turn, write

REQUIRED = {
    "raw_score", "completion_status", "final_system_message", "agent_log_processed", "parsing_errors", "timed_out",
    "agent_name", "repetition", "message_count", "command_count", "flags",
}  # fmt: skip


@pytest.mark.parametrize("content", [log(f"{SCORE}1"), b"", b"[]"], ids=["log", "broken", "empty list"])
def test_an_outcome_is_a_plain_dictionary_with_the_documented_keys(tmp_path, content):
    outcome = analyze_agent_log(write(tmp_path / "Andy_0_1.json", content))
    assert type(outcome) is dict
    assert set(AgentOutcome.__annotations__) == set(outcome) >= REQUIRED
    assert json.loads(json.dumps(outcome, allow_nan=False)) == outcome
    assert (outcome["agent_name"], outcome["repetition"]) == ("Andy_0", 1)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("Andy_0_1.json", ("Andy_0", 1)),
        ("agent_0.json", ("agent", 0)),
        ("andy.json", ("andy", None)),
        ("_3.json", ("_3", None)),
        ("Andy_٣.json", ("Andy_٣", None)),
        ("Andy_12345678901234567890.json", ("Andy_12345678901234567890", None)),
    ],
)
def test_names_and_numbers_of_files(file, expected):
    assert name_and_number(f"/logs/{file}") == expected


def test_own_commands_are_counted_and_quoted_ones_are_not(tmp_path):
    turns = [
        turn("assistant", '!goToPlayer("Jill_1", 3)'),
        turn("assistant", "Wow! Great!! a!b and !! and 5!x"),
        turn("assistant", 'First !inventory, then !craftRecipe("bread", 1)'),
        turn("user", "Jill_1: !inventory"),
        turn("system", "Command !inventory was run. !stats"),
    ]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", turns))
    assert (outcome["command_count"], outcome["message_count"]) == (3, 5)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("Agent process restarted.", "restarts"),
        ("Bot disconnected! Killing agent process.", "disconnects"),
        ("Bot kicked! No reason given.", "disconnects"),
        ("Not all required players/bots are present in the world. Exiting.", "missing_players"),
        ("Code execution timed out after 10 minutes. Attempting force stop.", "code_timeouts"),
        ("You died at position x: 1.0, y: 2.0, z: 3.0", "deaths"),
        ("Command !fly does not exist.", "unknown_commands"),
    ],
)
def test_lines_of_trouble_are_counted_in_system_turns_only(tmp_path, line, event):
    turns = [turn("system", line), turn("system", f"Code output:\n{line}\n{line}"), turn("user", line)]
    turns += [turn("system", f"He said: {line}"), turn("assistant", line)]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", turns))
    assert outcome["events"] == {event: 3}
    assert event in EVENTS
    assert ("restarted" in outcome["flags"]) is (event == "restarts")


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (1757845200000, 1757845200000.0),
        ("1757845200000", 1757845200000.0),
        (None, None),
        (0, None),
        (-5, None),
        (True, None),
        ("soon", None),
        ("Infinity", None),
        ([1], None),
        (10**400, None),
    ],
)
def test_the_start_is_a_time_or_nothing(tmp_path, start, expected):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {**log(), "taskStart": start}))
    assert outcome["task_start"] == expected
    assert outcome["agent_log_processed"]
