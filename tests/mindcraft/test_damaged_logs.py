"""Damaged logs: what is recovered, what only skips a turn, and what can't be read, with the reason."""

import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.mindcraft import analyze_agent_log
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.parse import AgentOutcome
from tests.mindcraft.builders import SCORE, log, turn, write

ONE = f'{{"role": "system", "content": "{SCORE}1"}}'.encode()
GOOD = b'{"memory": "", "turns": [' + ONE + b"]}"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "JSONDecodeError: the file is empty"),
        (b"\n", "JSONDecodeError: the file is empty"),
        (GOOD[:-1], "JSONDecodeError"),
        (GOOD[:40], "JSONDecodeError"),
        (GOOD + b"}", "JSONDecodeError"),
        (b"no JSON at all", "JSONDecodeError"),
        (GOOD.replace(b'"memory": ""', b'"memory": "\xff"'), "UnicodeDecodeError"),
        (GOOD.replace(b"score", b"sc\x80re"), "UnicodeDecodeError"),
        (GOOD.decode().encode("utf-16")[:-1], "UnicodeDecodeError"),
        (GOOD.decode().encode("utf-16-be"), "JSONDecodeError"),
        (b'{"turns": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "RecursionError"),
        (b'{"turns": 5, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "RecursionError"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "turns": []}', "RecursionError"),
        (b"{}", "TypeError: no list of turns"),
        (b'{"turns": null}', "TypeError: no list of turns"),
        (b'{"turns": {"0": 1}}', "TypeError: no list of turns"),
        (b'{"turns": "text"}', "TypeError: no list of turns"),
        (b"[1, 2]", "TypeError: no list of turns"),
        (b"5", "TypeError: no list of turns"),
        (b"null", "TypeError: no list of turns"),
        (b'"turns"', "TypeError: no list of turns"),
        (b"[1, ", "JSONDecodeError"),
        (b'{"turns": 5, "x": ', "JSONDecodeError"),
        (b'{"turns": 5, "x": "\xff"}', "UnicodeDecodeError"),
    ],
)
def test_what_can_not_be_read_says_why(tmp_path, data, error):
    outcome = analyze_agent_log(write(tmp_path / "Andy_0_2.json", data))
    assert outcome["completion_status"] == "LOG_FILE_ERROR"
    assert outcome["raw_score"] is None
    assert outcome["agent_log_processed"] is False
    assert len(outcome["parsing_errors"]) == 1
    assert outcome["parsing_errors"][0].startswith(error)
    assert (outcome["agent_name"], outcome["repetition"]) == ("Andy_0", 2)


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        (b"\xef\xbb\xbf" + GOOD, ["recovered_byte_order_mark"]),
        (GOOD.replace(b'"memory": ""', b'"memory": NaN'), ["recovered_nan_literal"]),
        (GOOD.replace(b'"memory": ""', b'"x": [-Infinity]'), ["recovered_nan_literal"]),
        (GOOD.replace(b'"memory": ""', b'"memory": "\\ud83d"'), ["recovered_lone_surrogate"]),
        (GOOD.replace(b"}]", b'}, {"role": "user", "content": "\\udc00"}]'), ["recovered_lone_surrogate"]),
        (GOOD.replace(b'"memory"', b'"\\ud83d\\ude00"'), []),
        (GOOD.replace(b'"memory": ""', '"memory": "😀 é"'.encode()), []),
        (GOOD.replace(b"}]", b'}, 7, null, [], "text"]'), ["turns_skipped"]),
        (GOOD.replace(b"[{", b'[{"role": "system"}, {'), ["turns_skipped"]),
        (GOOD.replace(b"[{", b'[{"role": "system", "content": null}, {'), ["turns_skipped"]),
        (GOOD.replace(b"[{", b'[{"role": "system", "content": ["Task"]}, {'), ["turns_skipped"]),
        (
            GOOD.replace(b"[{", b'[{"role": "system", "content": {"a": NaN}}, {'),
            ["turns_skipped", "recovered_nan_literal"],
        ),
        (GOOD.replace(b"[{", b'[{"role": {}, "content": "x"}, {'), []),
        (b"[3, " + ONE + b"]", ["turns_skipped"]),
    ],
)
def test_what_is_recovered_is_flagged_and_counts(tmp_path, data, flags):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", data))
    assert (outcome["completion_status"], outcome["raw_score"]) == ("SUCCESS", 1)
    assert outcome["flags"] == flags
    assert outcome["parsing_errors"] == []


def test_skipped_turns_are_counted(tmp_path):
    turns = [turn("system", None), turn("user", 5), {"role": "user"}, "text", None, turn("user", "hello")]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {"turns": turns}))
    assert (outcome["message_count"], outcome["skipped_turns"]) == (1, 5)


@pytest.mark.parametrize("data", [b"[]", b'{"turns": []}', b'{"turns": [], "memory": "x"}'])
def test_an_empty_list_of_turns_is_a_log_without_score(tmp_path, data):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", data))
    assert (outcome["completion_status"], outcome["agent_log_processed"]) == ("NO_SCORE_LOGGED", True)


@pytest.mark.parametrize(
    ("name", "error"),
    [("gone.json", "FileNotFoundError"), ("x.json", "IsADirectoryError"), ("a\0b.json", "ValueError")],
)
def test_a_path_that_holds_no_file(tmp_path, name, error):
    (tmp_path / "x.json").mkdir()
    outcome = analyze_agent_log(os.path.join(tmp_path, name))
    assert outcome["completion_status"] == "LOG_FILE_ERROR"
    assert outcome["parsing_errors"][0].startswith(f"{error}: ")
    assert str(tmp_path) not in outcome["parsing_errors"][0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write(tmp_path / "a_0.json", GOOD)
    path.chmod(0)
    assert analyze_agent_log(path)["parsing_errors"] == ["PermissionError: Permission denied"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=120) | st.integers(0, len(GOOD)).map(lambda n: GOOD[:n]))
@example(b"[1, ")
@example(b'{"turns": 5, "x": ')
@example(b'{"turns": [], "taskStart": ' + b"9" * 5000 + b"}")
def test_any_bytes_give_an_outcome(tmp_path, data):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", data))
    assert set(outcome) == set(AgentOutcome.__annotations__)
    assert outcome["completion_status"] in set(CompletionStatus)
    assert (outcome["completion_status"] == "LOG_FILE_ERROR") is (not outcome["agent_log_processed"])
    assert bool(outcome["parsing_errors"]) is (not outcome["agent_log_processed"])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
texts = st.sampled_from([f"{SCORE}1", f"{SCORE}NaN", "Task timeout reached", "Agent process restarted.", "!go"])
turns_of_any_kind = st.lists(
    anything
    | st.fixed_dictionaries(
        {}, optional={"role": st.sampled_from(["system", "user"]) | anything, "content": texts | anything}
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.fixed_dictionaries({"turns": turns_of_any_kind}, optional={"taskStart": anything, "memory": anything}))
def test_any_list_of_turns_is_read(tmp_path, value):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", value))
    assert outcome["agent_log_processed"]
    assert outcome["message_count"] + outcome["skipped_turns"] == len(value["turns"])


def test_good_logs_stay_below_a_kilobyte(tmp_path):
    assert len(write(tmp_path / "a_0.json", log(f"{SCORE}1")).read_bytes()) < 1000
