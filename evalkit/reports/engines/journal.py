"""Papermill engines for a batch: each writes finished cells to a journal, so that a killed report keeps them."""

import json
import os
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from papermill.engines import Engine, NBClientEngine, NotebookExecutionManager, papermill_engines

from evalkit.reports.job import BEGUN

NORMAL = "evalkit-kernel"
INJECTED = "injected-parameters"  # tag of the cell in which papermill puts parameters


class JournalManager(NotebookExecutionManager):
    """A manager that writes each finished cell to a journal, not the notebook before and after every cell."""

    def __init__(self, nb: NotebookNode, journal: str) -> None:
        super().__init__(nb, progress_bar=False, autosave_cell_every=0)
        self.journal, self.begun = journal, Path(journal).with_name(BEGUN)

    def save(self, **kwargs: Any) -> None:
        """Do nothing: the batch writes the notebook once, at the end."""

    def notebook_start(self, **kwargs: Any) -> None:
        """Write the notebook with its parameters, before execution."""
        super().notebook_start(**kwargs)
        for cell in self.nb.cells:
            if INJECTED in cell.metadata.get("tags", []):
                cell.id = INJECTED  # papermill draws a new one every time
        self._note({"notebook": self.nb})

    def cell_start(self, cell: NotebookNode, cell_index: int | None = None, **kwargs: Any) -> None:
        """Write that a cell has begun."""
        super().cell_start(cell, cell_index, **kwargs)
        self._note({"begun": cell_index})
        if cell_index == 0:
            self.begun.touch()

    def cell_complete(self, cell: NotebookNode, cell_index: int | None = None, **kwargs: Any) -> None:
        """Write a finished cell with its outputs."""
        super().cell_complete(cell, cell_index, **kwargs)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
            self._note({"index": cell_index, "cell": cell})

    def notebook_complete(self, **kwargs: Any) -> None:
        """Write the notebook's metadata."""
        super().notebook_complete(**kwargs)
        self._note({"metadata": self.nb.metadata})

    def _note(self, entry: dict) -> None:
        line = json.dumps(entry) + "\n"
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write(line)


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join consecutive texts of the same stream: a kernel sends them in pieces that depend on timing."""
    out: list[NotebookNode] = []
    for output in outputs:
        if out and output.output_type == out[-1].output_type == "stream" and output.name == out[-1].name:
            out[-1].text += output.text
        else:
            out.append(output)
    return out


def read_journal(journal: str | os.PathLike) -> tuple[NotebookNode | None, int | None]:
    """Restore a notebook, with the outputs of every finished cell, and the cell that was begun last, from a journal.

    Both are None if execution had not begun.
    """
    nb: Any = None
    last: int | None = None
    try:
        with open(journal, encoding="utf-8") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return None, None
    for line in lines:
        try:
            entry = nbformat.from_dict(json.loads(line))
        except ValueError:  # the last line of a report that was killed while writing
            break
        if "notebook" in entry:
            nb = entry.notebook
        elif "begun" in entry:
            last = entry.begun
        elif "metadata" in entry:
            nb.metadata = entry.metadata
        else:
            nb.cells[entry["index"]] = entry.cell
    return nb, last


class JournalEngine(Engine):
    """An engine that writes a journal; papermill passes on its path as `journal`."""

    @classmethod
    def execute_notebook(cls, nb: NotebookNode, kernel_name: str, journal: str, **kwargs: Any) -> NotebookNode:
        """Execute a notebook as `Engine` does, with a journal instead of saves."""
        manager = JournalManager(nb, journal)
        for name in ("output_path", "progress_bar", "autosave_cell_every"):
            kwargs.pop(name, None)
        manager.notebook_start()
        try:
            cls.execute_managed_notebook(manager, kernel_name, **kwargs)
        finally:
            manager.notebook_complete()
        return manager.nb


class KernelEngine(JournalEngine, NBClientEngine):
    """An engine that executes a notebook in its own Jupyter kernel, as papermill does."""


papermill_engines.register(NORMAL, KernelEngine)
