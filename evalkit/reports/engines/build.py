"""Make one report: execute the notebook, extract its data, render the page, and write the files."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import nbformat
from nbformat import NotebookNode

from evalkit._version import __version__
from evalkit.io.paths import redacted
from evalkit.io.read import read_file
from evalkit.io.text import plain
from evalkit.reports.engines.execution import execute
from evalkit.reports.engines.journal import read_journal
from evalkit.reports.engines.outputs import (
    extract_evidence,
    extract_figures,
    extract_findings,
    extract_tables,
    redact_errors,
)
from evalkit.reports.evidence import keep_evidence
from evalkit.reports.html.page import render, title_of
from evalkit.reports.job import Failure, Job
from evalkit.reports.records import Record, files_beside, read_record, record_path, write_file


def build(job: Job) -> None:
    """Make a report: its page, executed notebook, tables and, last, its record."""
    started = time.monotonic()
    nb, failure = execute(job)
    finish(job, nb, failure, time.monotonic() - started)


def build_failed(job: Job, error: str, seconds: float) -> None:
    """Write the partial report of a process that was ended: its finished cells, and the error."""
    nb, last = read_journal(job.journal)
    nb = nb or nbformat.reads(read_file(job.report.notebook.path).decode(), as_version=4)
    finish(job, nb, Failure(error, last), seconds)


def finish(job: Job, nb: NotebookNode, failure: Failure | None, seconds: float) -> None:
    """Write a report's files, the record last."""
    report, made = job.report, datetime.now(UTC)
    failure = failure and failure._replace(error=redacted(plain(failure.error, keep_lines=True)))
    redact_errors(nb)
    headline, tables = extract_tables(nb, report.name)
    figures, evidence = extract_figures(nb, report.name), extract_evidence(nb)
    nb.metadata.pop("papermill", None)
    page, executed = f"{report.key}.html", f"{report.key}.ipynb"
    before = read_record(job.output, report.key)
    beside = {table["file"]: table["csv"] for table in tables} | figures
    text = render(
        nb,
        key=report.key,
        facts=_facts(job, made, seconds),
        files=[f"{report.name}.ipynb", *(table["file"] for table in tables)],
        failure=failure,
        code=job.code,
        path=str(report.notebook.path.parent),
    )
    record = job.record(
        title=title_of(nb) or report.notebook.name,
        status="failed" if failure else "made",
        error=failure.error if failure else "",
        cell=failure.cell if failure else None,
        made=made.isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        headline=headline,
        findings=extract_findings(nb),
        tables=[{key: table[key] for key in ("name", "file", "rows")} for table in tables],
        figures=list(figures),
        page=page,
        page_bytes=len(text.encode(errors="replace")),
        executed=executed,
        previous=_previous(before),
    )
    folder = f"{report.notebook.name}/"
    files = {folder + file: content for file, content in beside.items()}
    keep_evidence(job.output, job.work, report.key, evidence)
    _write(job, {**files, executed: nbformat.writes(nb), page: text}, record)
    for file in files_beside(before) - beside.keys():
        (job.output / folder / file).unlink(missing_ok=True)


def _write(job: Job, files: Mapping[str, str | bytes], record: Record) -> None:
    for file, content in files.items():
        write_file(job.output / file, content, job.work)
    write_file(record_path(job.output, job.report.key), json.dumps(record, indent=1, default=str), job.work)


def _facts(job: Job, made: datetime, seconds: float) -> list[tuple[str, str]]:
    report = job.report
    given = ", ".join(f"{name} = {json.dumps(value, default=str)}" for name, value in report.all_parameters.items())
    return [
        ("Report", report.key),
        ("Notebook", str(report.notebook.path)),
        ("Parameters", plain(given) or "none"),
        ("Made", f"{made:%Y-%m-%d %H:%M} UTC, in {seconds:.1f} s, with evalkit {__version__}"),
    ]


def _previous(before: Record | None) -> dict[str, Any] | None:
    if before is None:
        return None
    if before["status"] == "failed":
        return before["previous"]
    return {"headline": before["headline"], "made": before["made"]}
