"""Kinds of logs are told by their first bytes, the most particular kind first."""

import json

import pytest

from evalkit.kinds.detection import Look, recognise

MESSAGE = {"role": "assistant", "content": "hello"}


@pytest.mark.parametrize(
    ("content", "look"),
    [
        ({"turns": [MESSAGE]}, Look("mindcraft", "Mindcraft agent log")),
        (
            {"session_id": "a", "session_metadata": [], "event_history": [{"messages": [MESSAGE]}]},
            Look("crafter", "Crafter session trace"),
        ),
        (
            {"execution_history": [{"step_index": 0, "messages": [MESSAGE]}]},
            Look("steps", "execution history"),
        ),
        ({"anything": 1}, None),
    ],
)
def test_a_log_that_holds_messages_too_is_of_its_own_kind(content, look):
    assert recognise(json.dumps(content).encode()) == look
