"""Kinds of logs are told by their first bytes, the most particular kind first."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import decode_start
from evalkit.kinds.detection import HEAD, FileType, kind_of_source, recognise

MESSAGE = {"role": "assistant", "content": "hello"}


@pytest.mark.parametrize(
    ("content", "look"),
    [
        ({"turns": [MESSAGE]}, FileType("mindcraft", "Mindcraft agent log")),
        (
            {"session_id": "a", "session_metadata": [], "event_history": [{"messages": [MESSAGE]}]},
            FileType("crafter", "Crafter session trace"),
        ),
        (
            {"execution_history": [{"step_index": 0, "messages": [MESSAGE]}]},
            FileType("steps", "execution history"),
        ),
        ({"anything": 1}, None),
    ],
)
def test_a_log_that_holds_messages_too_is_of_its_own_kind(content, look):
    assert recognise(json.dumps(content).encode()) == look


MESSAGES = [{"role": "system", "content": "Task ended with score : 1"}, MESSAGE]
TRACE = {"session_id": "a", "session_metadata": [], "event_history": []}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"memory": "", "turns": MESSAGES, "self_prompt": None}, "mindcraft"),
        (MESSAGES, "mindcraft"),
        ({"memory": "", "turns": []}, "mindcraft"),
        ({"name": "Andy", "turns": [{"role": "user", "content": "x" * 100_000}]}, "mindcraft"),
        ({"id": 1, "messages": MESSAGES}, ""),
        ([{"messages": MESSAGES}], ""),
        ({"rollout": {"turns": 12, "chat": MESSAGES}}, ""),
        ({"turns": 12, "messages": MESSAGES}, ""),
        ({"turns": [{"speaker": "Andy", "text": "hello"}]}, ""),
        ([{**MESSAGE, "tool_calls": [{"function": {"name": "f"}}]}], ""),
        (TRACE, "crafter"),
        ({"note": '"event_history" and "turns": [', "x": "x" * 100_000, **TRACE}, ""),
        ({"session_metadata": {}, "messages": MESSAGES}, ""),
        ([{"timestamp": 1, "function_name": "f", "success": True}], "steps"),
        ([{"tool": {"function_name": "f"}}], ""),
    ],
)
def test_a_kind_is_told_by_the_structure_that_it_needs(content, kind):
    look = recognise(json.dumps(content).encode()[:HEAD])
    assert (look.kind if look else "") == kind


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    st.integers(0),
)
def test_the_beginning_of_a_file_is_decoded_wherever_it_is_cut(value, at):
    data = json.dumps(value).encode()
    whole, start = decode_start(data), decode_start(data[: at % (len(data) + 1)])
    assert whole == (value if isinstance(value, (list, dict)) else None)
    assert start is None or type(start) is type(value)


def test_counts_of_a_part_of_the_files_are_not_told_as_those_of_all(tmp_path):
    log, history = '{"turns": [{"role": "user", "content": "x"}]}', '[{"step": "a", "result": 1, "success": true}]'
    for number in range(260):
        (tmp_path / f"{number:03}.json").write_text(log if number % 4 else history)
    with pytest.warns(UserWarning, match="200 of the files were looked at"):
        assert kind_of_source(tmp_path).name == "mindcraft"
