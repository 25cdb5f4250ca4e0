"""Make one report: execute the notebook, extract its data, render the page, and write the files."""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

import nbformat
import papermill
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from evalkit._version import __version__
from evalkit.io.paths import redacted
from evalkit.io.read import read_file
from evalkit.io.text import plain
from evalkit.reports.engines import outputs
from evalkit.reports.engines.journal import NORMAL, read_journal
from evalkit.reports.evidence import keep_evidence
from evalkit.reports.html.page import render
from evalkit.reports.job import JOURNAL, OVERDUE, Failure, Job
from evalkit.reports.parameters import title_of
from evalkit.reports.records import Record, files_beside, mapped, read_record, record_path, write_file


def build(job: Job) -> None:
    """Make a report: its page, executed notebook, tables and, last, its record."""
    started = time.monotonic()
    nb, failure = _execute(job)
    _finish(job, nb, failure, time.monotonic() - started)


def build_failed(job: Job, error: str, seconds: float) -> None:
    """Write the partial report of a process that was ended: its finished cells, and the error."""
    nb, last = read_journal(job.work / JOURNAL)
    nb = nb or nbformat.reads(read_file(job.report.notebook.path).decode(), as_version=4)
    _finish(job, nb, Failure(error, last), seconds)


def _execute(job: Job) -> tuple[NotebookNode, Failure | None]:
    """Execute a report's notebook with papermill; after a failure, it has the outputs up to the failed cell."""
    logging.getLogger("papermill").setLevel(logging.ERROR)
    engine, spec = NORMAL, job.report.notebook.metadata.get("kernelspec", {})
    if job.forked:
        from evalkit.reports.engines.forked import FORKED as engine
    try:
        nb = papermill.execute_notebook(
            str(job.report.notebook.path).replace("{", "{{").replace("}", "}}"),  # papermill formats paths
            None,
            job.report.parameters,
            engine_name=engine,
            journal=str(job.work / JOURNAL),
            kernel_name=spec.get("name") or "python3",
            language=spec.get("language") or "python",
            request_save_on_cell_execute=False,
            progress_bar=False,
            shutdown_kernel="immediate",
        )
    except Exception as error:
        nb, last = read_journal(job.work / JOURNAL)
        if nb is None or last is None:
            raise
        failure: Failure | None = Failure(f"{type(error).__name__}: {error}", last)
        if isinstance(error, PapermillExecutionError):
            failure = _first_error(nb)  # papermill also reports errors that a cell's tag allows
        if (job.work / OVERDUE).exists():
            failure = Failure((job.work / OVERDUE).read_text(), last)
        if failure:
            return nb, failure
    return nb, _missing_figure(nb)


def _first_error(nb: NotebookNode) -> Failure | None:
    for index, cell in enumerate(nb.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", []):
                return Failure(f"{output.ename}: {output.evalue}", index)
    return None


def _missing_figure(nb: NotebookNode) -> Failure | None:
    for index, cell in enumerate(nb.cells):
        if "figure" in cell.metadata.get("tags", []) and cell.cell_type == "code":
            kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
            if not any(kind.startswith("image/") or kind == outputs.FIGURE for kind in kinds):
                return Failure("a cell tagged figure shows no figure", index)
    return None


def _finish(job: Job, nb: NotebookNode, failure: Failure | None, seconds: float) -> None:
    """Write a report's files, the record last."""
    report, made, shown = job.report, datetime.now(UTC), job.report.shown
    failure = failure and failure._replace(error=shown(redacted(plain(failure.error, keep_lines=True))))
    evidence = outputs.extract_evidence(nb)
    nb.metadata.pop("papermill", None)
    nb = mapped(nb, shown)
    outputs.redact_errors(nb)
    headline, tables = outputs.extract_tables(nb, report.name)
    figures = outputs.extract_figures(nb, report.name)
    before = read_record(job.output, report.key)
    beside = {table["file"]: table["csv"] for table in tables} | figures
    text = render(
        nb,
        key=report.key,
        facts=mapped(_facts(job, made, seconds), shown),
        files=[f"{report.name}.ipynb", *(table["file"] for table in tables)],
        failure=failure,
        code=job.code,
        path=str(report.notebook.path.parent),
    )
    record = job.record(
        title=title_of(nb.cells) or report.notebook.name,
        status="failed" if failure else "made",
        **(failure._asdict() if failure else {}),
        made=made.isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        headline=headline,
        findings=outputs.extract_findings(nb),
        tables=[{key: table[key] for key in ("name", "file", "rows")} for table in tables],
        figures=list(figures),
        page=f"{report.key}.html",
        page_bytes=len(text.encode(errors="replace")),
        executed=f"{report.key}.ipynb",
        previous=_previous(before),
    )
    keep_evidence(job.output, job.work, report.key, evidence)
    files = beside | {f"{report.name}.ipynb": nbformat.writes(nb), f"{report.name}.html": text}
    for file, content in files.items():
        write_file(job.output / report.notebook.name / file, content, job.work)
    write_file(record_path(job.output, report.key), json.dumps(record, indent=1, default=str), job.work)
    (job.output / f"{report.key}.json").unlink(missing_ok=True)  # where earlier versions kept the record
    for file in files_beside(before) - files.keys():
        (job.output / report.notebook.name / file).unlink(missing_ok=True)


def _facts(job: Job, made: datetime, seconds: float) -> list[list[str]]:
    report = job.report
    given = ", ".join(f"{name} = {json.dumps(value, default=str)}" for name, value in report.all_parameters.items())
    return [
        ["Report", report.key],
        ["Notebook", report.notebook.path.name],
        ["Parameters", plain(given) or "none"],
        ["Made", f"{made:%Y-%m-%d %H:%M} UTC, in {seconds:.1f} s, with evalkit {__version__}"],
    ]


def _previous(before: Record | None) -> dict[str, Any] | None:
    if before is None or before["status"] == "failed":
        return before["previous"] if before else None
    return {"headline": before["headline"], "made": before["made"]}
