"""Execute one report's notebook with papermill."""

import logging

import papermill
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from evalkit.reports.engines.journal import NORMAL, read_journal
from evalkit.reports.engines.outputs import FIGURE
from evalkit.reports.job import Failure, Job


def execute(job: Job) -> tuple[NotebookNode, Failure | None]:
    """Execute a report's notebook with papermill."""
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
            journal=str(job.journal),
            kernel_name=spec.get("name") or "python3",
            language=spec.get("language") or "python",
            request_save_on_cell_execute=False,
            progress_bar=False,
            shutdown_kernel="immediate",
        )
    except Exception as error:
        nb, last = read_journal(job.journal)
        if nb is None or last is None:
            raise
        failure: Failure | None = Failure(f"{type(error).__name__}: {error}", last)
        if isinstance(error, PapermillExecutionError):
            failure = _first_error(nb)  # papermill also reports errors that a cell's tag allows
        if job.overdue.exists():
            failure = Failure(job.overdue.read_text(), last)
        if failure:
            return nb, failure
    return nb, _missing_figure(nb)


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
            if not any(kind.startswith("image/") or kind == FIGURE for kind in kinds):
                return Failure("a cell tagged figure shows no figure", index)
    return None
