"""A report, and the job of making it, which the batch passes to a process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from evalkit.io.paths import SourceError, is_secret_name, refuse_credentials
from evalkit.io.records import collected_from
from evalkit.io.sources import is_sample, shown_paths
from evalkit.reports.parameters import Notebook, texts_of
from evalkit.reports.records import Record

SECRET_HINT = (
    "a value of this name would stand on the page, in its file's name, the index and the manifest; set an environment "
    "variable, and read that in the notebook"
)


def refuse_secrets(parameters: Mapping[str, Any]) -> None:
    """Raise SourceError for secrets, by their names or in a URL: pages, file names and records would show them."""
    for text in texts_of(dict(parameters)):
        refuse_credentials(text)
    for name, value in parameters.items():
        if is_secret_name(name) and value and value is not True:
            raise SourceError(f"{name}: {SECRET_HINT}")
        if isinstance(value, dict):
            refuse_secrets(value)


@dataclass(frozen=True)
class Report:
    """One report: a notebook with parameters; SourceError for credentials in one of them."""

    notebook: Notebook
    name: str
    parameters: dict[str, Any]  # given ones; the others have the notebook's defaults
    params_file: str = ""
    is_named: bool = False  # the user chose the name

    def __post_init__(self) -> None:
        refuse_secrets(self.all_parameters)

    @property
    def key(self) -> str:
        """Name of the report within the output folder: ``notebook/report``."""
        return f"{self.notebook.name}/{self.name}"

    @property
    def all_parameters(self) -> dict[str, Any]:
        """The parameters with the notebook's defaults."""
        return {name: p.default for name, p in self.notebook.parameters.items()} | self.parameters

    @property
    def shown(self) -> Callable[[str], str]:
        """A function that shortens paths in a text for those who are handed the page."""
        given = texts_of(self.all_parameters)
        return shown_paths([*given, *(place for text in given for place in collected_from(text))])

    @property
    def source(self) -> str:
        """The source of the report: the value of its first parameter whose default is a sample."""
        named = (name for name, parameter in self.notebook.parameters.items() if is_sample(parameter.default))
        value = self.all_parameters.get(next(named, ""), "")
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class Failure(NamedTuple):
    """Why a report failed, and in which cell (None if in no cell)."""

    error: str
    cell: int | None


# Files in the folder of a job, through which its process and the batch communicate
JOURNAL = "journal"  # the finished cells
BEGUN = "begun"  # is there once the first cell has begun
OVERDUE = "overdue"  # is there once the report has exceeded its time limit, with the error
PRINTED = "printed-1", "printed-2"  # standard output and error of the process


class Job(NamedTuple):
    """A report to be made, and how."""

    report: Report
    output: Path
    work: Path  # its own folder, on the same disk as `output`
    why: str
    stamp: dict[str, Any]
    code: bool = True
    forked: bool = True
    evidence: str = "linked"  # which runs get pages

    def record(self, **fields: Any) -> Record:
        """Return the report's record with these fields; without a page by default."""
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
            kernel="quick" if self.forked else "normal",
            headline=None,
            findings=[],
            source=report.source,
            tables=[],
            figures=[],
            page="",
            page_bytes=0,
            executed="",
            stamp=self.stamp,
            previous=None,
        )
        return cast(Record, blank | fields)
