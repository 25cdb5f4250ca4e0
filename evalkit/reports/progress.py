"""What a batch says while it runs: one line per finished report, and a bar below them in a terminal."""

import shutil
from collections.abc import Callable, Iterable
from typing import TextIO

from evalkit.io.text import plain
from evalkit.reports.records import Record

SIZE_BUDGET = 1_500_000  # bytes; a larger page is named

_WIDTH = 24


class Progress:
    """The lines and the bar of a batch.

    Parameters
    ----------
    total : int
        How many reports there are.
    say : function
        Called with each line.
    terminal : text file, optional
        Where the bar is drawn; none is drawn where it is no terminal.
    """

    def __init__(self, total: int, say: Callable[[str], None], terminal: TextIO | None = None) -> None:
        self.total, self.say, self.done = total, say, 0
        self.terminal = terminal if terminal is not None and terminal.isatty() else None

    def unchanged(self, record: Record) -> None:
        """Say that a report is up to date."""
        self._line("unchanged", record["key"], _headline(record), "")

    def finished(self, record: Record) -> None:
        """Say what became of a report."""
        seconds = f"{record['seconds']:.1f} s"
        if record["status"] == "failed":
            first = (record["error"].splitlines() or [""])[0]
            self._line("FAILED", record["key"], plain(first, 200), seconds)
            return
        size = record["page_bytes"]
        large = f", more than {SIZE_BUDGET / 1e6:.1f}" if size > SIZE_BUDGET else ""
        self._line("made", record["key"], _headline(record), f"{seconds}, {size / 1e6:.2f} MB{large}, {record['why']}")

    def bar(self, running: Iterable[str]) -> None:
        """Draw the bar, with the reports that are being made beside it."""
        if self.terminal:
            full = _WIDTH * self.done // max(self.total, 1)
            text = f"{'█' * full}{'░' * (_WIDTH - full)} {self.done}/{self.total}  {plain(', '.join(running))}"
            width = shutil.get_terminal_size().columns - 1
            self.terminal.write(f"\r\x1b[K{text[:width]}")
            self.terminal.flush()

    def clear(self) -> None:
        """Take the bar away."""
        if self.terminal:
            self.terminal.write("\r\x1b[K")
            self.terminal.flush()

    def _line(self, status: str, key: str, text: str, note: str) -> None:
        self.done += 1
        self.clear()
        parts = [f"[{self.done}/{self.total}] {status:9} {plain(key)}", plain(text), f"({note})" if note else ""]
        self.say("  ".join(part for part in parts if part))


def _headline(record: Record) -> str:
    headline = record["headline"] or {}
    return f"{headline.get('text', '')} {headline.get('label', '')}".strip()
