"""A report to be made, and how: what the batch hands to the process of one report."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.reports.plan import Report
from evalkit.reports.records import Record


class Job(NamedTuple):
    """A report to be made, and how."""

    report: Report
    output: Path
    work: Path  # a folder of its own, on the same disk as `output`
    why: str
    stamp: dict[str, Any]
    code: bool = True
    quick: bool = True

    @property
    def journal(self) -> Path:
        """Where finished cells are noted."""
        return self.work / "journal"

    @property
    def begun(self) -> Path:
        """A file that is there once the first cell was begun."""
        return self.work / "begun"

    @property
    def overdue(self) -> Path:
        """A file that is there once the report has taken too long; it holds the error."""
        return self.work / "overdue"

    def printed(self, descriptor: int) -> Path:
        """Return the file that takes the place of the process's standard output (1) or error (2)."""
        return self.work / f"printed-{descriptor}"

    def record(self, **fields: Any) -> Record:
        """Return the report's record, with what is given put in; without a page unless it is."""
        report = self.report
        blank = Record(
            key=report.key,
            notebook=report.notebook.name,
            name=report.name,
            title=report.notebook.title,
            params_file=report.params_file,
            parameters=report.parameters,
            status="failed",
            why=self.why,
            error="",
            cell=None,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=0.0,
            kernel="quick" if self.quick else "normal",
            headline=None,
            tables=[],
            figures=[],
            page="",
            page_bytes=0,
            executed="",
            stamp=self.stamp,
            previous=None,
        )
        return blank | fields
