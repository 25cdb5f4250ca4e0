"""Print the progress of a batch: one line per finished report, and a bar below them in a terminal."""

from collections.abc import Callable, Iterable
from typing import TextIO

from tqdm import tqdm

from evalkit.io.text import plain
from evalkit.reports.report import Record

SIZE_BUDGET = 1_500_000  # bytes; larger pages are pointed out


class Progress:
    """The lines of a batch of `total` reports; if `terminal` is one, they are written above a bar."""

    def __init__(self, total: int, say: Callable[[str], None], terminal: TextIO | None = None) -> None:
        self.total, self.done = total, 0
        tqdm.monitor_interval = 0  # no thread, as processes are forked while it is shown
        form = "{bar:24} {n_fmt}/{total_fmt}{postfix}"
        disable = None if terminal else True  # None: unless it is a terminal
        self.bar = tqdm(total=total, file=terminal, disable=disable, leave=False, dynamic_ncols=True, bar_format=form)
        self.say = say if self.bar.disable else lambda line: self.bar.write(line, file=terminal)

    def unchanged(self, record: Record) -> None:
        """Print that a report is up to date."""
        self._line("unchanged", record["key"], _headline(record), "")

    def finished(self, record: Record) -> None:
        """Print the result of a report."""
        seconds = f"{record['seconds']:.1f} s"
        if record["status"] == "failed":
            first = (record["error"].splitlines() or [""])[0]
            self._line("FAILED", record["key"], plain(first, 200), seconds)
            return
        size = record["page_bytes"]
        large = f", more than {SIZE_BUDGET / 1e6:.1f}" if size > SIZE_BUDGET else ""
        self._line("made", record["key"], _headline(record), f"{seconds}, {size / 1e6:.2f} MB{large}, {record['why']}")

    def running(self, keys: Iterable[str]) -> None:
        """Draw the bar, with the reports in progress beside it."""
        self.bar.set_postfix_str(plain(", ".join(keys), 60))

    def _line(self, status: str, key: str, text: str, note: str) -> None:
        self.done += 1
        self.bar.update()
        columns = [f"[{self.done}/{self.total}] {status:9} {plain(key)}", plain(text), f"({note})" if note else ""]
        self.say("  ".join(column for column in columns if column))


def _headline(record: Record) -> str:
    headline = record["headline"] or {}
    return f"{headline.get('text', '')} {headline.get('label', '')}".strip()
