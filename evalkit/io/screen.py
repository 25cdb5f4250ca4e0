"""Live output of a command: a progress bar, a text that is redrawn in place, or plain lines where neither works."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.text import Text

from evalkit._text import plural


class View(NamedTuple):
    """A view: its text, a short status, and whether there is nothing left to wait for."""

    text: str
    status: str = ""
    done: bool = False


def show_live(
    look: Callable[[int | None], View],
    out: TextIO,
    *,
    interval: float = 5.0,
    until_done: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show the view that `look(width)` returns, every `interval` seconds until Ctrl-C, or with `until_done` until done.

    In a terminal, the text is redrawn in place, and the last text is printed in full at the end. In a file or a dumb
    terminal, the width is None, and the text is written whenever it has changed.
    """
    console, shown = Console(file=out), ""
    live = None
    if out.isatty() and os.environ.get("TERM") != "dumb":
        waiting = Text("reading …")
        live = Live(waiting, console=console, auto_refresh=False, vertical_overflow="ellipsis", transient=True)
    try:
        with live or nullcontext():
            while True:
                view = look(shutil.get_terminal_size().columns if live else None)
                head = f"updated {time.strftime('%H:%M:%S', time.localtime())}, {view.status}"
                if live:
                    shown = f"{head}\n\n{view.text}"
                    text = f"{head}; Ctrl-C ends\n\n{view.text}"
                    live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
                elif view.text != shown:
                    shown = view.text
                    out.write(f"{head}\n\n{shown}\n\n")
                out.flush()
                if until_done and view.done:
                    break
                sleep(interval)
    except KeyboardInterrupt:
        pass
    finally:
        if live and shown:
            console.print(Text(shown), soft_wrap=True)


def screen_width() -> int | None:
    """Return the width of the terminal in characters; None if the output is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def so_far(done: float, expected: float | None, noun: str = "") -> str:
    """Format progress as ``12 of 50 runs``. An unknown total (None or NaN) is shown as a question mark."""
    total = "?" if expected is None or expected != expected else int(expected)
    word = noun if not noun or expected == 1 else plural(noun)
    return f"{int(done)} of {total} {word}".rstrip()


@contextmanager
def progress_bar(unit: str = "files") -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, total) that updates a bar on stderr. Without a terminal, it writes nothing."""
    is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    columns = BarColumn(), MofNCompleteColumn(), unit, TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not is_shown) as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield progress
