"""What a command shows while it works: views in place in a terminal, anew where they changed elsewhere; a bar."""

import io
import sys

import pytest

from evalkit.io.screen import View, progress_bar, show_live
from tests.terminal import screen


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(views, out, monkeypatch, *, until_done=False, lines=24, term="xterm"):
    """Show views one after the other, then Ctrl-C: widths asked for, seconds slept, and what stood on the screen."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setenv("TERM", term)
    coming, widths, slept, stood = iter(views), [], [], []

    def look(width):
        widths.append(width)
        stood.append(screen(out.getvalue()))
        try:
            return next(coming)
        except StopIteration:
            raise KeyboardInterrupt from None

    show_live(look, out, interval=2, until_done=until_done, sleep=slept.append)
    return widths, slept, stood


@pytest.mark.parametrize(("out", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_elsewhere_a_view_is_printed_only_when_its_text_changed(monkeypatch, out, term):
    views = [View("one", "1 new"), View("one", "0 new"), View("two", "1 new", done=True), View("two", "0 new")]
    widths, slept, _ = shown(views, out, monkeypatch, term=term)
    head, one, other_head, two, end = out.getvalue().split("\n\n")
    assert (one, two, end, head[-7:], other_head[-7:]) == ("one", "two", "", ", 1 new", ", 1 new")
    assert "\x1b" not in out.getvalue()
    assert (set(widths), slept) == ({None}, [2, 2, 2, 2])
    assert len(shown(views, out, monkeypatch, until_done=True, term=term)[0]) == 3


def test_a_terminal_is_redrawn_in_place_and_keeps_the_last_view(monkeypatch):
    out = Terminal()
    views = [View("one\nmore", "1 new"), View("[red]two :tada: 2", "2 new"), View("three", "0 new")]
    widths, _, stood = shown(views, out, monkeypatch)
    assert set(widths) == {80}
    assert stood[0] == ["reading …"]
    assert [lines[2:] for lines in stood[1:]] == [["one", "more"], ["[red]two :tada: 2"], ["three"]]
    assert stood[1][0].endswith(", 1 new; Ctrl-C ends")
    assert screen(out.getvalue())[2:] == ["three"]
    assert "Ctrl-C" not in screen(out.getvalue())[0]
    assert "\x1b[2J" not in out.getvalue()  # which flickers
    assert out.getvalue().rfind("\x1b[?25l") < out.getvalue().rfind("\x1b[?25h")  # the cursor is back


def test_a_long_view_is_cut_at_the_screen_s_end_and_left_whole_at_last(monkeypatch):
    out = Terminal()
    lines = [f"line {i} {'x' * 100}" for i in range(30)]
    _, _, stood = shown([View("\n".join(lines))], out, monkeypatch, lines=10)
    assert len(stood[1]) == 10
    assert max(map(len, stood[1])) <= 80
    assert screen(out.getvalue())[2:] == lines


@pytest.mark.parametrize(("stderr", "expected"), [(Terminal(), "files"), (io.StringIO(), "")])
def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch, stderr, expected):
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress_bar() as progress:
        progress(1, 3)
    written = stderr.getvalue()
    assert (expected in written) if expected else written == ""
