"""One report, from notebook to files: execute, take out what it hands over, render, put in place."""

import base64
import json
import logging
import re
import time
from datetime import UTC, datetime
from typing import Any

import nbformat
import papermill
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from evalkit._version import __version__
from evalkit.io.text import plain
from evalkit.reports import kernels
from evalkit.reports.html import Failure, render, title_of
from evalkit.reports.job import Job
from evalkit.reports.records import Record, files_beside, read_record, record_path, write_aside

HEADLINE = "application/vnd.evalkit.headline+json"  # as evalkit.display.HEADLINE, which would import pandas
TABLE = "application/vnd.evalkit.table+json"
FIGURE = "application/vnd.evalkit.figure+json"


def make(job: Job) -> None:
    """Make a report: its page, executed notebook, tables and, last, its record."""
    started = time.monotonic()
    nb, failure = execute(job)
    finish(job, nb, failure, time.monotonic() - started)


def make_failed(job: Job, error: str, seconds: float) -> None:
    """Put in place what is left of a report whose process was ended: the cells it finished, and the error."""
    nb, last = kernels.read_journal(job.journal)
    nb = nb or nbformat.read(job.report.notebook.path, as_version=4)
    finish(job, nb, Failure(error, last), seconds)


def execute(job: Job) -> tuple[NotebookNode, Failure | None]:
    """Execute a report's notebook with papermill.

    Returns
    -------
    nb : NotebookNode
        With the outputs; after a failure, as far as it came.
    failure : Failure or None
    """
    logging.getLogger("papermill").setLevel(logging.ERROR)
    engine, spec = kernels.NORMAL, job.report.notebook.metadata.get("kernelspec", {})
    if job.quick:
        from evalkit.reports.quick import QUICK as engine
    try:
        nb = papermill.execute_notebook(
            str(job.report.notebook.path).replace("{", "{{").replace("}", "}}"),  # papermill formats paths
            None,
            job.report.parameters,
            engine_name=engine,
            journal=str(job.journal),
            kernel_name=spec.get("name") or "python3",
            language=spec.get("language") or "python",
            request_save_on_cell_execute=False,
            progress_bar=False,
            shutdown_kernel="immediate",
        )
    except Exception as error:
        nb, last = kernels.read_journal(job.journal)
        if last is None:
            raise
        failure = Failure(f"{type(error).__name__}: {error}", last)
        if isinstance(error, PapermillExecutionError):
            failure = _first_error(nb)  # papermill also takes errors for failures that a cell's tag allows
        if job.overdue.exists():
            failure = Failure(job.overdue.read_text(), last)
        if failure:
            return nb, failure
    return nb, _missing_figure(nb)


def finish(job: Job, nb: NotebookNode, failure: Failure | None, seconds: float) -> None:
    """Write a report's files, the record last."""
    report, output = job.report, job.output
    failure = failure and failure._replace(error=plain(failure.error, keep_lines=True))
    headline, tables = harvest(nb, report.name)
    figures = harvest_figures(nb, report.name)
    nb.metadata.pop("papermill", None)
    page, executed = output / f"{report.key}.html", output / f"{report.key}.ipynb"
    made = datetime.now(UTC)
    before = read_record(output, report.key)
    text = render(
        nb,
        key=report.key,
        facts=_facts(job, made, seconds),
        files=[executed.name, *(table["file"] for table in tables)],
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
        tables=[{key: table[key] for key in ("name", "file", "rows")} for table in tables],
        figures=list(figures),
        page=page.relative_to(output).as_posix(),
        page_bytes=len(text.encode(errors="replace")),
        executed=executed.relative_to(output).as_posix(),
        previous=_previous(before),
    )
    files = {table["file"]: table["csv"] for table in tables} | figures
    for file, content in files.items():
        write_aside(page.with_name(file), content, job.work)
    write_aside(executed, nbformat.writes(nb), job.work)
    write_aside(page, text, job.work)
    write_aside(record_path(output, report.key), json.dumps(record, indent=1, default=str), job.work)
    for file in files_beside(before) - files.keys():
        page.with_name(file).unlink(missing_ok=True)


def harvest(nb: NotebookNode, name: str) -> tuple[dict | None, list[dict]]:
    """Take headline and published tables out of a notebook's outputs; a link to the table's file takes its place."""
    headline, tables = None, {}
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            headline = _headline(data.get(HEADLINE)) or headline
            if _is_table(data.get(TABLE)):
                table = dict(data.pop(TABLE))
                file = f"{name}.{table['name']}.csv"
                tables[file] = {**table, "file": file}
                rows = f"{table['rows']:,} row{'' if table['rows'] == 1 else 's'}"
                data["text/markdown"] = f"[{table['name']}.csv](<{file}>): {rows}"
    return headline, list(tables.values())


def harvest_figures(nb: NotebookNode, name: str) -> dict[str, str | bytes]:
    """Take named figures out of a notebook's outputs: files with their contents, as SVG, PDF and PNG."""
    files: dict[str, str | bytes] = {}
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if not _is_figure(data.get(FIGURE)):
                continue
            figure = data.pop(FIGURE)
            forms = {
                "svg": data.get("image/svg+xml"),
                "pdf": _decoded(figure["pdf"]),
                "png": _decoded(data.get("image/png")),
            }
            own = {f"{name}.{figure['name']}.{form}": content for form, content in forms.items() if content}
            files |= own
            for about in filter(lambda value: isinstance(value, dict), output.metadata.values()):
                about["files"] = list(own)
    return files


def _is_figure(given: Any) -> bool:
    """Tell a figure that has a name; its name becomes part of files' names."""
    if not isinstance(given, dict) or not _is_name(given.get("name")):
        return False
    return isinstance(given.get("pdf"), str)


def _decoded(given: Any) -> bytes:
    try:
        return base64.b64decode(given) if isinstance(given, str) else b""
    except ValueError:
        return b""


def _headline(given: Any) -> dict | None:
    """Take of a headline what the index can show; None where it is none."""
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        return None
    numbers = {key: given.get(key) for key in ("estimate", "low", "high", "n")}
    return {
        "label": plain(given.get("label", "")),
        "text": plain(given["text"]),
        **{key: value if isinstance(value, (int, float)) else None for key, value in numbers.items()},
        "percent": bool(given.get("percent")),
    }


def _is_table(given: Any) -> bool:
    """Tell a published table; its name becomes part of a file's."""
    if not isinstance(given, dict) or not _is_name(given.get("name")):
        return False
    return isinstance(given.get("csv"), str) and isinstance(given.get("rows"), int)


def _is_name(given: Any) -> bool:
    return isinstance(given, str) and bool(re.fullmatch(r"[A-Za-z0-9_-]{1,80}", given))


def _first_error(nb: NotebookNode) -> Failure | None:
    for index, cell in enumerate(nb.cells):
        if "raises-exception" not in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    return Failure(f"{output.ename}: {output.evalue}", index)
    return None


def _missing_figure(nb: NotebookNode) -> Failure | None:
    for index, cell in enumerate(nb.cells):
        if "figure" in cell.metadata.get("tags", []) and cell.cell_type == "code":
            kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
            if not any(kind.startswith("image/") for kind in kinds):
                return Failure("a cell tagged figure shows no figure", index)
    return None


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
