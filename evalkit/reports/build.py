"""Make one report: execute the notebook, extract the data from its outputs, render the page, and write the files."""

import base64
import contextlib
import json
import os
import re
import time
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from evalkit._text import counted_noun
from evalkit._version import __version__
from evalkit.display.show import CHOSEN, FIGURE, FINDINGS, HEADLINE, TABLE
from evalkit.evidence import EVIDENCE, read_references
from evalkit.io.paths import SourceError, redacted
from evalkit.io.secrets import is_masking, masked
from evalkit.io.store import write_note
from evalkit.io.text import map_texts, plain
from evalkit.reports.kernels import FOLDER_PREFIX, PYTHON, manager_of
from evalkit.reports.notebooks import title_of
from evalkit.reports.page import render
from evalkit.reports.report import Failure, Job, Record, files_beside, read_record, write_file, write_record

_is_text = re.compile(r"text/|application/(json|javascript|x-latex)").match  # matches the MIME types of text
_INJECTED = "injected-parameters"  # tag of the cell in which papermill puts parameters


def build(job: Job) -> tuple[Record, list[Any]]:
    """Make a report's page, executed notebook, tables and figures. Return its record and the data for pages of runs."""
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
            cell.id = _INJECTED  # papermill generates a new id each time
    evidence = []  # data for pages of runs, removed from outputs, since they contain full paths
    for cell in (cell for cell in nb.cells if "outputs" in cell):
        evidence += [output.data[EVIDENCE] for output in cell.outputs if EVIDENCE in output.get("data", {})]
        cell.outputs = [output for output in cell.outputs if EVIDENCE not in output.get("data", {})]
    nb = map_texts(nb, shown)
    if is_masking():
        _mask(nb)
    fields, files = _take_outputs(nb, report.name)
    pages_of_runs, _ = read_references(evidence, f"../{report.key}.html")
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
        facts=map_texts(facts, shown),
        files=[f"{report.name}.ipynb", *(table["file"] for table in fields["tables"])],
        run_pages=pages_of_runs.keys(),
        failure=failure,
        code=job.code,
        path=str(report.notebook.path.parent),
    )
    before = read_record(job.output, report.key)
    previous = before["previous"] if before else None
    if before and before["status"] != "failed":
        previous = {"headline": before["headline"], "made": before["made"]}
    record = job.record(
        **fields,
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
    files |= {f"{report.name}.ipynb": nbformat.writes(nb), f"{report.name}.html": page}
    for file, content in files.items():
        write_file(job.output / report.notebook.name / file, content)
    write_record(job.output, record)
    for file in files_beside(before) - files.keys():
        path = job.output / report.notebook.name / file
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder may contain other files
            path.parent.rmdir()
    return record, evidence


def _execute(job: Job) -> tuple[NotebookNode, Failure | None]:
    """Execute a report's notebook. After a failure, it has the outputs up to the failed cell."""
    end = time.monotonic() + job.timeout
    spec = job.report.notebook.metadata.get("kernelspec", {})
    name = spec.get("name") or PYTHON
    language = spec.get("language") or "python"
    nb = load_notebook_node(str(job.report.notebook.path))
    if job.report.parameters:
        nb = parameterize_notebook(nb, job.report.parameters, kernel_name=name, language=language)
    for part in (nb, *nb.cells):
        part.metadata.pop("papermill", None)
    begun: list[int] = []
    try:
        with TemporaryDirectory(prefix=f"{FOLDER_PREFIX}{os.getpid()}-") as folder:
            client = NotebookClient(
                nb,
                manager_of(name, folder),
                timeout_func=lambda cell: max(0.1, end - time.monotonic()),
                on_cell_execute=lambda cell, cell_index: begun.append(cell_index),
                shutdown_kernel="immediate",
                startup_timeout=600,  # by default 60 s, too short to start a kernel on a busy machine
                iopub_timeout=60,  # by default 4 s, too short to receive all outputs there
                record_timing=False,
                coalesce_streams=True,
            )
            client.execute(cleanup_kc=True)
    except CellTimeoutError:
        return nb, Failure(f"TimeoutError: not finished after {job.timeout:g} s", begun[-1])
    except CellExecutionError as error:
        is_source = error.ename == SourceError.__name__  # its message is written for users
        return nb, Failure(error.evalue if is_source else f"{error.ename}: {error.evalue}", begun[-1])
    except Exception as error:
        if isinstance(error, AssertionError):  # nbclient's, for a dead kernel; errors of cells are handled above
            error = DeadKernelError("Kernel died")
        return nb, Failure(f"{type(error).__name__}: {error}", begun[-1] if begun else None)
    return nb, None


def _mask(nb: NotebookNode) -> None:
    """Mask credentials in everything that a notebook has printed or shown as text."""
    for output in _outputs(nb):
        for name in output.keys() & {"text", "evalue", "traceback"}:
            output[name] = map_texts(output[name], masked)
        for mime in filter(_is_text, output.get("data", {})):
            output.data[mime] = map_texts(output.data[mime], masked)


def _take_outputs(nb: NotebookNode, report: str) -> tuple[dict[str, Any], dict[str, str | bytes]]:
    """Extract the fields of the report's record from a notebook's outputs, and the files of its tables and figures."""
    fields: dict[str, Any] = {"headline": None, "findings": [], "chosen": []}
    tables: dict[str, dict[str, Any]] = {}
    figures: dict[str, str | bytes] = {}
    files: dict[str, str | bytes] = {}
    for output in _outputs(nb):
        data = output.get("data", {})
        if output.output_type == "error":
            output.evalue = redacted(output.evalue)
            is_sentence = output.ename == SourceError.__name__  # needs no traceback
            output.traceback = [output.evalue] if is_sentence else list(map(redacted, output.traceback))
        if HEADLINE in data:
            fields["headline"] = map_texts(dict(data[HEADLINE]), plain)
        if FINDINGS in data and not fields["findings"]:
            fields["findings"] = map_texts([dict(finding) for finding in data[FINDINGS]], plain)
        if CHOSEN in data:
            fields["chosen"] += map_texts(list(data[CHOSEN]), plain)
        if TABLE in data:
            table = data.pop(TABLE)
            file = f"{report}/{table['name']}.csv"
            tables[file] = {"name": table["name"], "file": file, "rows": table["rows"]}
            files[file] = table["csv"]
            data["text/markdown"] = f"[{table['name']}.csv](<{file}>): {counted_noun(table['rows'], 'row')}"
        if "pdf" in data.get(FIGURE, {}):
            figure = data.pop(FIGURE)
            png = base64.b64decode(data.get("image/png", ""))
            contents = {"svg": data.get("image/svg+xml", ""), "pdf": base64.b64decode(figure["pdf"]), "png": png}
            own = {f"{report}/{figure['name']}.{suffix}": content for suffix, content in contents.items() if content}
            figures |= own
            for about in output.metadata.values():
                if isinstance(about, dict):
                    about["files"] = list(own)
    return {**fields, "tables": list(tables.values()), "figures": list(figures)}, files | figures


def _outputs(nb: NotebookNode) -> list[NotebookNode]:
    return [output for cell in nb.cells for output in cell.get("outputs", ())]
