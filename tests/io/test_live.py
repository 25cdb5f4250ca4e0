"""Views that follow each other: in place in a terminal, anew where they changed elsewhere; tables kept to a width."""

import io
import os

import pytest

from evalkit.io.live import View, fit_table, show_live, so_far


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(views, out, monkeypatch, *, until_done=False, lines=24):
    """Show views one after the other, then Ctrl-C: the widths that were asked for and the seconds that were slept."""
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, lines)))
    coming, widths, slept = iter(views), [], []

    def look(width):
        widths.append(width)
        try:
            return next(coming)
        except StopIteration:
            raise KeyboardInterrupt from None

    show_live(look, out, interval=2, until_done=until_done, clock=lambda: 0, sleep=slept.append)
    return widths, slept


def test_elsewhere_a_view_is_printed_only_when_its_text_changed(monkeypatch):
    out = io.StringIO()
    views = [View("one", "1 new"), View("one", "0 new"), View("two", "1 new"), View("two", "0 new")]
    widths, slept = shown(views, out, monkeypatch)
    heads, texts = out.getvalue().split("\n\n")[:-1:2], out.getvalue().split("\n\n")[1::2]
    assert texts == ["one", "two"]
    assert [head.partition(",")[2] for head in heads] == [" 1 new", " 1 new"]
    assert "\x1b" not in out.getvalue()
    assert (set(widths), slept) == ({None}, [2, 2, 2, 2])


def test_a_terminal_is_redrawn_in_place_and_keeps_the_last_view(monkeypatch):
    out = Terminal()
    widths, _ = shown([View("one"), View("two")], out, monkeypatch)
    text = out.getvalue()
    assert set(widths) == {80}
    assert text.startswith("reading …\r\x1b[K" + "\n" * 24)  # what stood there before is scrolled up, not overwritten
    assert text.count("\x1b[H") == 3
    assert "\x1b[2J" not in text  # which flickers
    last = text.rpartition("\x1b[H")[2]
    assert last.startswith("updated ")
    assert "two\x1b[K\n\x1b[J" in last
    for hidden, again in (("\x1b[?25l", "\x1b[?25h"), ("\x1b[?7l", "\x1b[?7h")):
        assert text.rfind(hidden) < text.rfind(again)


def test_ctrl_c_before_the_first_view_ends_the_line(monkeypatch):
    for out, text in ((Terminal(), "reading …\n"), (io.StringIO(), "")):
        shown([], out, monkeypatch)
        assert out.getvalue() == text


def test_a_long_view_is_cut_at_the_screen_s_end_and_left_whole_at_last(monkeypatch):
    out = Terminal()
    shown([View("\n".join(f"line {i}" for i in range(30)))], out, monkeypatch, lines=10)
    frame, last = out.getvalue().split("\x1b[H")[1:]
    assert len(frame.splitlines()) == 10
    assert "… 23 more lines" in frame
    assert "line 6" in frame
    assert "line 7" not in frame
    assert all(f"line {i}" in last for i in range(30))


@pytest.mark.parametrize(("until_done", "looks"), [(True, 2), (False, 4)])
def test_the_end_may_be_when_all_is_done(monkeypatch, until_done, looks):
    views = [View("one"), View("two", done=True), View("three", done=True)]
    widths, _ = shown(views, io.StringIO(), monkeypatch, until_done=until_done)
    assert len(widths) == looks


def test_other_errors_are_not_kept_quiet(monkeypatch):
    def views():
        yield View("one")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        shown(views(), io.StringIO(), monkeypatch)


ROWS = [
    {"model": "a-model-with-a-very-long-name-0001", "success rate": "50.0 %", "wins": "1", "no score": "0"},
    {"model": "a-model-with-a-very-long-name-0002", "success rate": "0.0 %", "wins": "0", "no score": "0"},
]


@pytest.mark.parametrize(
    ("width", "headers", "names"),
    [
        (None, ["model success rate wins no score"], "a-model-with-a-very-long-name-0001"),
        (64, ["model success rate wins no score"], "a-model-with-a-very-long-name-0001"),
        (60, ["success", "model rate wins"], "a-model-with-a-very-long-name-0001"),
        (50, ["success", "model rate wins"], "a-model-with-a-very-long-name-0001"),
        (45, ["success", "model rate"], "a-model-with-a-very-long-name-0001"),
        (30, ["success", "model rate"], "a-model-wi…-name-0001"),
        (5, ["success", "model rate"], "a-mode…-0001"),
    ],
)
def test_a_table_gives_up_what_is_missed_least(width, headers, names):
    lines = fit_table(ROWS, spare=("wins", "no score"), width=width).splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("---"))
    assert [" ".join(line.split()) for line in lines[:rule]] == headers
    assert lines[rule + 1].split()[0] == names
    if width and width >= 20:
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("done", "expected", "text"),
    [(3, 50, "3 of 50"), (3, 50.0, "3 of 50"), (3, None, "3 of ?"), (0, float("nan"), "0 of ?")],
)
def test_what_is_not_known_is_a_question_mark(done, expected, text):
    assert so_far(done, expected) == text


def test_a_dumb_terminal_gets_plain_text(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    widths, _ = shown([View("one", "1 new"), View("two", "1 new")], out, monkeypatch)
    assert out.getvalue().count("updated ") == 2
    assert "\x1b" not in out.getvalue()
    assert set(widths) == {None}
