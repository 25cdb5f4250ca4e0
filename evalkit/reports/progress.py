"""Print the progress of a batch: one line per finished report, and a bar below them in a terminal."""

from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from evalkit.io.text import plain
from evalkit.reports.report import Record

SIZE_BUDGET = 1_500_000  # bytes; larger pages are pointed out


class Progress:
    """The lines of a batch of `total` reports; if `terminal` is one, they are written above a bar."""

    def __init__(self, total: int, say: Callable[[str], None], terminal: TextIO | None = None) -> None:
        self.total, self.say, self.done = total, say, 0
        self._bar = None
        if terminal is not None and terminal.isatty() and total:
            text = TextColumn(
                "{task.fields[running]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
            )
            self._bar = bar = Bar(
                BarColumn(bar_width=24), MofNCompleteColumn(), text,
                console=Console(file=terminal, highlight=False), transient=True,
                auto_refresh=False,  # without a thread, as processes are forked while it is shown
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            bar.start()
            self._task = bar.add_task("", total=total, running="")
            self.say = lambda line: bar.console.out(line, highlight=False)

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
        if self._bar:
            self._bar.update(self._task, completed=self.done, running=plain(", ".join(keys)), refresh=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()

    def _line(self, status: str, key: str, text: str, note: str) -> None:
        self.done += 1
        columns = [f"[{self.done}/{self.total}] {status:9} {plain(key)}", plain(text), f"({note})" if note else ""]
        self.say("  ".join(column for column in columns if column))


def _headline(record: Record) -> str:
    headline = record["headline"] or {}
    return f"{headline.get('text', '')} {headline.get('label', '')}".strip()
