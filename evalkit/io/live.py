"""A table that is shown again and again: redrawn in place in a terminal, printed anew where it changed elsewhere."""

import os
import select
import shutil
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO

from tabulate import tabulate

from evalkit.io.names import labels

# every frame hides the cursor and shows it again, so that nothing needs to be put right however the command ends;
# between them, what is too wide is cut at the edge of the screen
_BEGIN, _END = "\x1b[?25l\x1b[?7l\x1b[H", "\x1b[?7h\x1b[?25h"
_NEXT, _CLEAR = "\x1b[K\n", "\x1b[J"
_SHORTEST = 12  # characters left of a name


class View(NamedTuple):
    """What is shown: the text, a few words on how it came about, and whether there is nothing more to wait for."""

    text: str
    status: str = ""
    done: bool = False


class Screen:
    """Where views are shown; nothing but plain text is written to what is no terminal, or a dumb one.

    Parameters
    ----------
    out : text file
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self._shown: str | None = None
        self._head = ""

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where it is none."""
        return shutil.get_terminal_size().columns if self._terminal else None

    def wait(self) -> None:
        """Say on a terminal that the first view takes its time."""
        if self._terminal:
            self._out.write("reading …")
            self._out.flush()

    def show(self, text: str, head: str) -> None:
        """Show a text below a line that says when it was made; the same text is not printed twice."""
        before, self._shown, self._head = self._shown, text, head  # first, since Ctrl-C may come at any moment
        if self._terminal:
            self._draw(first=before is None)
        elif text != before:
            self._out.write(f"{head}\n\n{text}\n\n")
            self._out.flush()
        elif _reader_has_left(self._out):  # nothing is written now that would tell
            raise BrokenPipeError

    def close(self) -> None:
        """Leave the last text on the terminal as a whole, also where it is longer than the screen."""
        if self._terminal and self._shown is None:
            self._out.write("\n")
        elif self._terminal:
            lines = [self._head, "", *self._shown.split("\n"), ""]
            self._out.write(f"{_END}\x1b[H{_NEXT.join(lines)}{_CLEAR}")
        self._out.flush()

    def _draw(self, *, first: bool) -> None:
        height = shutil.get_terminal_size().lines
        lines = [f"{self._head}; Ctrl-C ends", "", *(self._shown or "").split("\n")]
        if len(lines) > height:
            lines = [*lines[: height - 1], f"… {len(lines) - height + 1} more lines"]
        scroll = ("\r\x1b[K" + "\n" * height) * first  # what stood there before can be scrolled back to
        self._out.write(f"{scroll}{_BEGIN}{_NEXT.join(lines)}{_CLEAR}{_END}")
        self._out.flush()


def _reader_has_left(out: TextIO) -> bool:
    if not hasattr(select, "poll"):
        return False
    try:
        descriptor = out.fileno()
    except (OSError, ValueError):  # no real file
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def show_live(
    look: Callable[[int | None], View],
    out: TextIO,
    *,
    interval: float = 5.0,
    until_done: bool = False,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show what a function returns, again and again, until Ctrl-C.

    Parameters
    ----------
    look : function
        Called with the width to keep to, in characters (None: any); returns a View.
    out : text file
    interval : float
        Seconds between two looks.
    until_done : bool
        End as well once a view is done.
    clock, sleep : functions
        As those of `time`.
    """
    screen = Screen(out)
    try:
        screen.wait()
        while True:
            view = look(screen.width)
            screen.show(view.text, f"updated {time.strftime('%H:%M:%S', time.localtime(clock()))}, {view.status}")
            if until_done and view.done:
                break
            sleep(interval)
    except KeyboardInterrupt:
        pass
    finally:
        screen.close()


def fit_table(rows: Sequence[dict[str, str]], *, left: int = 1, spare: Sequence[str] = (), width: int | None) -> str:
    """Write a table that keeps to a width, as far as it can.

    Where it is too wide, headers get a second line, columns of `spare` that hold nothing but zeros are left out, then
    the first of `spare` at all, then names are cut.

    Parameters
    ----------
    rows : sequence of dict
        The same keys, the headers, in every row.
    left : int
        How many columns hold names, and stand to the left.
    spare : sequence of str
        Headers of counts, the one that is missed least first.
    width : int or None
        In characters; None: any.
    """
    table = [dict(row) for row in rows]
    text = _write(table, left, broken=False)
    if width is None or _width(text) <= width:
        return text
    for name in [name for name in spare if all(row[name] == "0" for row in table)]:
        table = [{key: cell for key, cell in row.items() if key != name} for row in table]
    text = _write(table, left, broken=True)
    if _width(text) > width and spare:
        table = [{key: cell for key, cell in row.items() if key != spare[0]} for row in table]
        text = _write(table, left, broken=True)
    for name in list(table[0])[:left]:
        if (over := _width(text) - width) > 0:
            keep = max(max(len(row[name]) for row in table) - over, _SHORTEST, len(name))
            short = labels((row[name] for row in table), keep)
            table = [{**row, name: short[row[name]]} for row in table]
            text = _write(table, left, broken=True)
    return text


def so_far(done: float, expected: float | None) -> str:
    """Write ``12 of 50``; an expected number that is not known (None or NaN) is a question mark."""
    return f"{int(done)} of {'?' if expected is None or expected != expected else int(expected)}"


def _write(table: list[dict[str, str]], left: int, *, broken: bool) -> str:
    """Write rows below their headers; as plain rows, since tabulate makes columns wider than their headers."""
    names = list(table[0])
    heads = [name.rpartition(" ")[::2] if broken else ("", name) for name in names]
    above, below = ([head[i] for head in heads] for i in (0, 1))
    rows = [above] * any(above) + [below]
    cells = [list(row.values()) for row in table]
    rules = ["-" * max(map(len, column)) for column in zip(*rows, *cells, strict=True)]
    align = ["left"] * left + ["right"] * (len(names) - left)
    return tabulate([*rows, rules, *cells], tablefmt="plain", colalign=align, disable_numparse=True)


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))
