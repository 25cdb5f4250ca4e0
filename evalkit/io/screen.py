"""What a command shows while it works: a bar, or a text that is redrawn in place; plain lines where that can't be."""

import os
import select
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class View(NamedTuple):
    """What is shown: the text, a few words on how it came about, and whether there is nothing more to wait for."""

    text: str
    status: str = ""
    done: bool = False


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

    In a terminal the text is redrawn in place, as far as it fits on the screen, and left as a whole at the end. In a
    file or a dumb terminal it is written whenever it has changed.

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
    terminal = out.isatty() and os.environ.get("TERM") != "dumb"
    show = _redraw(out) if terminal else _append(out)
    width = None
    try:
        while True:
            if terminal:
                width = shutil.get_terminal_size().columns
            view = look(width)
            show(f"updated {time.strftime('%H:%M:%S', time.localtime(clock()))}, {view.status}", view.text)
            if until_done and view.done:
                break
            sleep(interval)
    except KeyboardInterrupt:
        pass
    finally:
        show("", "")


def _redraw(out: TextIO) -> Callable[[str, str], None]:
    """Give a function that draws a head and a text in place; empty ones leave the last text there as a whole."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=out, highlight=False, markup=False, emoji=False)
    live = Live(Text("reading …"), console=console, auto_refresh=False, vertical_overflow="ellipsis", transient=True)
    live.start(refresh=True)
    last = [""]

    def show(head: str, text: str) -> None:
        if head:
            last[0] = f"{head}\n\n{text}"
            live.update(Text(f"{head}; Ctrl-C ends\n\n{text}", no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            live.stop()
            _write_plain(console, last[0])

    return show


def _write_plain(console: "Console", text: str) -> None:
    from rich.text import Text

    console.print(Text(text), soft_wrap=True)


def _append(out: TextIO) -> Callable[[str, str], None]:
    """Give a function that writes a head and a text where the text is another one than before."""
    last = [""]

    def show(head: str, text: str) -> None:
        if head and text != last[0]:
            last[0] = text
            out.write(f"{head}\n\n{text}\n\n")
        elif _reader_has_left(out):  # nothing is written now that would tell
            raise BrokenPipeError
        out.flush()

    return show


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


def so_far(done: float, expected: float | None) -> str:
    """Write ``12 of 50``; an expected number that is not known (None or NaN) is a question mark."""
    return f"{int(done)} of {'?' if expected is None or expected != expected else int(expected)}"


@contextmanager
def progress_bar(unit: str = "files") -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, total) that moves a bar on stderr; where that is no terminal nothing is written."""
    from tqdm import tqdm

    with tqdm(unit=f" {unit}", disable=None, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
