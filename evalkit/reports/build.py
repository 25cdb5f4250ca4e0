"""Make one report: execute the notebook, take the data out of its outputs, render the page, and write the files."""

import base64
import contextlib
import json
import os
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from evalkit._version import __version__
from evalkit._words import counted_noun
from evalkit.display.show import FIGURE, FINDINGS, HEADLINE, TABLE
from evalkit.evidence import EVIDENCE, read_references
from evalkit.io.paths import SourceError, redacted
from evalkit.io.secrets import is_masking, masked
from evalkit.io.store import write_note
from evalkit.io.text import plain
from evalkit.reports.kernels import FOLDER, THIS, manager_of
from evalkit.reports.notebooks import title_of
from evalkit.reports.page import render
from evalkit.reports.report import Failure, Job, Record, files_beside, mapped, read_record, write_file, write_record

_is_text = re.compile(r"text/|application/(json|javascript|x-latex)").match  # of types of outputs
_INJECTED = "injected-parameters"  # tag of the cell in which papermill puts parameters


def build(job: Job) -> tuple[Record, list[Any]]:
    """Make a report: its page, executed notebook, tables and figures and, last, its record.

    Returns the record, and the evidence for pages of runs.
    """
    started = time.monotonic()
    nb, failure = _execute(job)
    seconds = time.monotonic() - started
    made = datetime.now(UTC)
    report = job.report
    shown = report.shown
    if failure:
        failure = failure._replace(error=shown(redacted(plain(failure.error, keep_lines=True))))
    for cell in nb.cells:
        if _INJECTED in cell.metadata.get("tags", []):
            cell.id = _INJECTED  # papermill draws a new one every time
    evidence = _take_evidence(nb)
    nb = mapped(nb, shown)
    if is_masking():
        _mask(nb)
    taken = _take_outputs(nb, report.name)
    runs, pairs, _ = read_references(evidence, f"../{report.key}.html")
    given = ", ".join(f"{name} = {json.dumps(value, default=str)}" for name, value in report.all_parameters.items())
    facts = [
        ["Report", report.key],
        ["Notebook", report.notebook.path.name],
        ["Parameters", plain(given) or "none"],
        ["Made", f"{made:%Y-%m-%d %H:%M} UTC, in {seconds:.1f} s, with evalkit {__version__}"],
    ]
    page = render(
        nb,
        key=report.key,
        facts=mapped(facts, shown),
        files=[f"{report.name}.ipynb", *taken.tables],
        run_pages={*runs, *(pair.page for pair in pairs)},
        failure=failure,
        code=job.code,
        path=str(report.notebook.path.parent),
    )
    before = read_record(job.output, report.key)
    previous = before["previous"] if before else None
    if before and before["status"] != "failed":
        previous = {"headline": before["headline"], "made": before["made"]}
    record = job.record(
        headline=taken.headline,
        findings=taken.findings,
        tables=list(taken.tables.values()),
        figures=list(taken.figures),
        **(failure._asdict() if failure else {}),
        title=title_of(nb.cells) or report.notebook.name,
        status="failed" if failure else "made",
        made=made.isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        page=f"{report.key}.html",
        page_bytes=len(page.encode(errors="replace")),
        executed=f"{report.key}.ipynb",
        previous=previous,
        links=bool(evidence),
    )
    write_note(job.output, f"evidence/{report.key}", evidence)
    files = taken.files | {f"{report.name}.ipynb": nbformat.writes(nb), f"{report.name}.html": page}
    for file, content in files.items():
        write_file(job.output / report.notebook.name / file, content)
    write_record(job.output, record)
    for file in files_beside(before) - files.keys():
        path = job.output / report.notebook.name / file
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder holds other files
            path.parent.rmdir()
    return record, evidence


def _execute(job: Job) -> tuple[NotebookNode, Failure | None]:
    """Execute a report's notebook; after a failure, it has the outputs up to the failed cell."""
    end = time.monotonic() + job.timeout
    spec = job.report.notebook.metadata.get("kernelspec", {})
    name = spec.get("name") or THIS
    language = spec.get("language") or "python"
    nb = load_notebook_node(str(job.report.notebook.path))
    if job.report.parameters:
        nb = parameterize_notebook(nb, job.report.parameters, kernel_name=name, language=language)
    for part in (nb, *nb.cells):
        part.metadata.pop("papermill", None)
    begun: list[int] = []
    try:
        with TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-") as folder:
            client = NotebookClient(
                nb,
                manager_of(name, folder),
                timeout_func=lambda cell: max(0.1, end - time.monotonic()),
                on_cell_execute=lambda cell, cell_index: begun.append(cell_index),
                shutdown_kernel="immediate",
                startup_timeout=600,  # of a busy machine, which by nbclient's own 60 s, and 4 s for outputs,
                iopub_timeout=60,  # loses a kernel, or what a cell has shown
                record_timing=False,
                coalesce_streams=True,
            )
            client.execute(cleanup_kc=True)
    except CellTimeoutError:
        return nb, Failure(f"TimeoutError: not finished after {job.timeout:g} s", begun[-1])
    except CellExecutionError as error:
        is_source = error.ename == SourceError.__name__  # its message is a sentence for users
        return nb, Failure(error.evalue if is_source else f"{error.ename}: {error.evalue}", begun[-1])
    except Exception as error:
        if isinstance(error, AssertionError):  # of nbclient, about a kernel that is gone: those of cells came above
            error = DeadKernelError("Kernel died")
        return nb, Failure(f"{type(error).__name__}: {error}", begun[-1] if begun else None)
    return nb, None


@dataclass
class Outputs:
    """What a notebook's outputs hold for its report: fields of the report's record, and files beside its page."""

    headline: dict[str, Any] | None = None
    findings: list[dict[str, str]] = field(default_factory=list)  # text, section
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)  # by file: name, file, rows
    figures: dict[str, None] = field(default_factory=dict)  # files
    files: dict[str, str | bytes] = field(default_factory=dict)  # their contents


def _take_evidence(nb: NotebookNode) -> list[Any]:
    """Take the data of pages of runs, which hold full paths, out of a notebook's outputs."""
    evidence = []
    for cell in _code_cells(nb):
        evidence += [output.data[EVIDENCE] for output in cell.outputs if EVIDENCE in output.get("data", {})]
        cell.outputs = [output for output in cell.outputs if EVIDENCE not in output.get("data", {})]
    return evidence


def _mask(nb: NotebookNode) -> None:
    """Mask credentials in what a notebook's own code has printed."""
    for output in _outputs(nb):
        for name in output.keys() & {"text", "evalue", "traceback"}:
            output[name] = mapped(output[name], masked)
        for mime in filter(_is_text, output.get("data", {})):
            output.data[mime] = mapped(output.data[mime], masked)


def _take_outputs(nb: NotebookNode, name: str) -> Outputs:
    """Take tables, figures, headline and findings for the report of this name out of a notebook's outputs."""
    taken = Outputs()
    for output in _outputs(nb):
        data = output.get("data", {})
        if output.output_type == "error":
            output.evalue = redacted(output.evalue)
            is_sentence = output.ename == SourceError.__name__  # which says all, without a traceback
            output.traceback = [output.evalue] if is_sentence else list(map(redacted, output.traceback))
        if HEADLINE in data:
            taken.headline = mapped(dict(data[HEADLINE]), plain)
        if FINDINGS in data and not taken.findings:
            taken.findings = mapped([dict(finding) for finding in data[FINDINGS]], plain)
        if TABLE in data:
            _take_table(data, name, taken)
        if "pdf" in data.get(FIGURE, {}):
            _take_figure(output, name, taken)
    return taken


def _take_table(data: NotebookNode, report: str, taken: Outputs) -> None:
    """Take a published table out of an output, of which a link to its file is left."""
    table = data.pop(TABLE)
    file = f"{report}/{table['name']}.csv"
    taken.tables[file] = {"name": table["name"], "file": file, "rows": table["rows"]}
    taken.files[file] = table["csv"]
    data["text/markdown"] = f"[{table['name']}.csv](<{file}>): {counted_noun(table['rows'], 'row')}"


def _take_figure(output: NotebookNode, report: str, taken: Outputs) -> None:
    """Take the files of a named figure out of an output, in whose metadata their names are left."""
    figure = output.data.pop(FIGURE)
    contents = {
        "svg": output.data.get("image/svg+xml", ""),
        "pdf": base64.b64decode(figure["pdf"]),
        "png": base64.b64decode(output.data.get("image/png", "")),
    }
    files = {f"{report}/{figure['name']}.{suffix}": content for suffix, content in contents.items() if content}
    taken.files |= files
    taken.figures |= dict.fromkeys(files)
    for about in output.metadata.values():
        if isinstance(about, dict):
            about["files"] = list(files)


def _code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def _outputs(nb: NotebookNode) -> list[NotebookNode]:
    return [output for cell in _code_cells(nb) for output in cell.outputs]
