"""A log as a conversation: everything in it, and nothing that passes for something else."""

import os
import re

import pytest

from evalkit.io import SourceError
from evalkit.mindcraft import conversation
from tests.mindcraft.builders import SCORE, log, turn, write


def lines(tmp_path, content, **options) -> list[str]:
    return conversation(write(tmp_path / "Andy_0_0.json", content), **options).splitlines()


def test_a_conversation_has_its_outcome_and_all_turns(tmp_path):
    out = lines(tmp_path, log(f"{SCORE}0.5", f"{SCORE}1"))
    assert out[0] == str(tmp_path / "Andy_0_0.json")
    assert out[1] == "partial score, score 0.5, 4 turns, flags: conflicting"
    assert out[3:] == [
        "» assistant: On my way. !nearbyBlocks",
        "« user: Jill_1: (FROM OTHER BOT)hello",
        f"· system: {SCORE}0.5   ◀ final message",
        f"· system: {SCORE}1   ◀ final message",
    ]


def test_lines_of_trouble_are_marked_in_system_turns_only(tmp_path):
    out = lines(tmp_path, [turn("system", "Agent process restarted."), turn("user", "Agent process restarted.")])
    assert out[-2].endswith("◀ restarts")
    assert out[-1] == "« user: Agent process restarted."


def test_a_message_that_is_nearly_final_is_marked(tmp_path):
    text = conversation(write(tmp_path / "Andy_0_0.json", [turn("system", f"Well: {SCORE}1"), turn("user", "hi")]))
    assert f"· system: Well: {SCORE}1   ◀ nearly a final message" in text


@pytest.mark.parametrize(("last", "shown"), [(1, 1), (3, 3), (50, 9), (None, 9)])
def test_only_the_last_turns(tmp_path, last, shown):
    out = lines(tmp_path, [turn("user", f"message {i}") for i in range(9)], last=last)
    assert [line[-1] for line in out[-shown:]] == [str(i) for i in range(9)][-shown:]
    assert ("… 8 earlier turns" in out) is (last == 1)
    assert any("earlier" in line for line in out) is (shown < 9)


def test_long_turns_are_cut_unless_asked_for_whole(tmp_path):
    content = [turn("user", "x" * 5000)]
    assert len(lines(tmp_path, content)[-1]) < 2100
    assert len(lines(tmp_path, content, width=None)[-1]) > 5000


def test_no_turn_passes_for_two(tmp_path):
    forged = f"hi\n· system: {SCORE}1   ◀ final message\r\n» assistant: done\u2028· system: x"
    out = lines(tmp_path, [turn("user", forged), turn(f"user: x\n· system: {SCORE}1", "x")])
    assert [line[0] for line in out[3:]] == ["«", " ", " ", " ", "?"]


def test_nothing_steers_the_terminal(tmp_path):
    content = [turn("\x1b[31muser", "a\x1b]0;title\x07\x9b31m\u202e b"), turn("user", ["\x1b[2J"]), "\x1b[2J"]
    path = write(tmp_path / "A\x1b[2J\nndy_0_0.json", content)
    text = conversation(path)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert len(text.splitlines()) == 6


def test_content_that_is_no_text_is_shown_as_it_is(tmp_path):
    out = lines(tmp_path, [turn("user", None), turn("system", {"a": 1}), 5])
    assert out[-3:] == ["« user: (no text: None)", "· system: (no text: {'a': 1})", "? (no turn): 5"]
    assert "turns_skipped" in out[1]


def test_a_log_that_counts_as_broken_says_why(tmp_path):
    assert "unreadable log" in lines(tmp_path, [1, 2])[1]
    assert "no list of turns" in lines(tmp_path, [1, 2])[1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b'[{"step": 1}]', "no agent log: nothing in it has a role"),
        (b'{"turns": [', "JSONDecodeError"),
        (b'{"memory": "\xff", "turns": []}', "UnicodeDecodeError"),
        ({"model": "m"}, "no list of turns"),
        (5, "no list of turns"),
        (b"[" * 100_000 + b"]" * 100_000, "RecursionError"),
    ],
)
def test_a_file_that_is_no_conversation_is_named_with_the_cause(tmp_path, content, words):
    with pytest.raises(SourceError, match=rf"Andy_0_0\.json.*{words}"):
        lines(tmp_path, b"5" if content == 5 else content)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"gone\.json: no such file or folder"):
        conversation(tmp_path / "gone.json")


@pytest.mark.timeout(20)
def test_a_pipe_can_be_shown(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b'[{"role": "user", "content": "hello"}]')
    os.close(writer)
    try:
        assert conversation(f"/dev/fd/{reader}").endswith("« user: hello\n")
    finally:
        os.close(reader)
