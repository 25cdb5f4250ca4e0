"""Make one report: execute the notebook, take the data out of its outputs, render the page, and write the files."""

import base64
import contextlib
import json
import os
import re
import time
from collections.abc import Callable
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
from evalkit.display.show import FIGURE, FINDINGS, HEADLINE, TABLE
from evalkit.evidence import EVIDENCE
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
    seconds, made = time.monotonic() - started, datetime.now(UTC)
    report, shown = job.report, job.report.shown
    failure = failure and failure._replace(error=shown(redacted(plain(failure.error, keep_lines=True))))
    nb, taken, files, evidence = _taken_out(nb, report.name, shown)
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
        files=[f"{report.name}.ipynb", *(table["file"] for table in taken["tables"])],
        failure=failure,
        code=job.code,
        path=str(report.notebook.path.parent),
    )
    before = read_record(job.output, report.key)
    previous = before and before["previous"]
    if before and before["status"] != "failed":
        previous = {"headline": before["headline"], "made": before["made"]}
    record = job.record(
        **taken,
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
        with contextlib.suppress(OSError):  # the folder holds other files
            path.parent.rmdir()
    return record, evidence


def _execute(job: Job) -> tuple[NotebookNode, Failure | None]:
    """Execute a report's notebook; after a failure, it has the outputs up to the failed cell."""
    spec, end = job.report.notebook.metadata.get("kernelspec", {}), time.monotonic() + job.timeout
    name, language = spec.get("name") or THIS, spec.get("language") or "python"
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


def _taken_out(
    nb: NotebookNode, name: str, shown: Callable[[str], str]
) -> tuple[NotebookNode, dict[str, Any], dict[str, str | bytes], list[Any]]:
    """Take out of an executed notebook what is for evalkit only, and full paths, secrets and times.

    Returns the notebook, fields of the report's record, the files to write beside the page, and the evidence.
    """
    evidence = []
    for cell in nb.cells:
        if _INJECTED in cell.metadata.get("tags", []):
            cell.id = _INJECTED  # papermill draws a new one every time
        outputs: list[NotebookNode] = []
        for output in cell.get("outputs", []):
            if EVIDENCE in output.get("data", {}):
                evidence.append(output.data[EVIDENCE])  # with full paths
            else:
                outputs.append(output)
        if cell.cell_type == "code":
            cell.outputs = outputs

    nb = mapped(nb, shown)
    for output in (output for cell in nb.cells for output in cell.get("outputs", [])) if is_masking() else ():
        for field in output.keys() & {"text", "evalue", "traceback"}:
            output[field] = mapped(output[field], masked)  # printed by a notebook's own code
        for form in filter(_is_text, output.get("data", {})):
            output.data[form] = mapped(output.data[form], masked)
    headline, findings, tables, figures = None, list[dict](), dict[str, dict](), list[str]()
    files: dict[str, str | bytes] = {}
    for output in (output for cell in nb.cells for output in cell.get("outputs", [])):
        data = output.get("data", {})
        if output.output_type == "error":
            says_all = output.ename == SourceError.__name__  # without a traceback
            output.evalue = redacted(output.evalue)
            output.traceback = [output.evalue] if says_all else list(map(redacted, output.traceback))
        if HEADLINE in data:
            headline = mapped(dict(data[HEADLINE]), plain)
        if FINDINGS in data and not findings:
            findings = [{"text": plain(f["text"]), "section": plain(f.get("section", ""))} for f in data[FINDINGS]]
        if TABLE in data:
            table = data.pop(TABLE)
            file = f"{name}/{table['name']}.csv"
            tables[file], files[file] = {"name": table["name"], "file": file, "rows": table["rows"]}, table["csv"]
            rows = f"{table['rows']:,} row{'' if table['rows'] == 1 else 's'}"
            data["text/markdown"] = f"[{table['name']}.csv](<{file}>): {rows}"
        if "pdf" in data.get(FIGURE, {}):
            figure = data.pop(FIGURE)
            contents = {
                "svg": data.get("image/svg+xml", ""),
                "pdf": base64.b64decode(figure["pdf"]),
                "png": base64.b64decode(data.get("image/png", "")),
            }
            saved = {f"{name}/{figure['name']}.{form}": content for form, content in contents.items() if content}
            files |= saved
            figures += [file for file in saved if file not in figures]
            for about in filter(lambda value: isinstance(value, dict), output.metadata.values()):
                about["files"] = list(saved)
    return (
        nb,
        {"headline": headline, "findings": findings, "tables": [*tables.values()], "figures": figures},
        files,
        evidence,
    )
