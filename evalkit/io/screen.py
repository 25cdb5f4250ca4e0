"""Live output of a command: a progress bar, or a text that is redrawn in place, or plain lines if it can't be."""

import os
import select
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text
from tqdm import tqdm


class View(NamedTuple):
    """A view: the text, a short status, and whether there is nothing more to wait for."""

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
    """Show the view that a function of the width returns, every `interval` seconds, until Ctrl-C.

    In a terminal the text is redrawn in place, as far as it fits on the screen, and left complete at the end. In a file
    or a dumb terminal, whose width is None, it is written whenever it has changed. With `until_done` it ends once a
    view is done.
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
    """Return a function that draws a head and a text in place; empty ones leave the last text complete."""
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
            console.print(Text(last[0]), soft_wrap=True)

    return show


def _append(out: TextIO) -> Callable[[str, str], None]:
    """Return a function that writes a head and a text if the text differs from the last one."""
    last = [""]

    def show(head: str, text: str) -> None:
        if head and text != last[0]:
            last[0] = text
            out.write(f"{head}\n\n{text}\n\n")
        elif _reader_has_left(out):  # nothing can be written that would report it
            raise BrokenPipeError
        out.flush()

    return show


def _reader_has_left(out: TextIO) -> bool:
    if not hasattr(select, "poll"):
        return False
    try:
        descriptor = out.fileno()
    except (OSError, ValueError):  # not a real file
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def so_far(done: float, expected: float | None) -> str:
    """Format progress as ``12 of 50``; an unknown expected number (None or NaN) is a question mark."""
    return f"{int(done)} of {'?' if expected is None or expected != expected else int(expected)}"


@contextmanager
def progress_bar(unit: str = "files") -> Iterator[Callable[[int, int], None]]:
    """Return a function of (done, total) that updates a bar on stderr; without a terminal it writes nothing."""
    with tqdm(unit=f" {unit}", disable=None, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
