"""Papermill engines for a batch: each notes finished cells in a journal, so that a killed report keeps them."""

import json
import os
from typing import Any

import nbformat
from nbformat import NotebookNode
from papermill.engines import Engine, NBClientEngine, NotebookExecutionManager, papermill_engines

NORMAL = "evalkit-kernel"


class JournalManager(NotebookExecutionManager):
    """Writes each finished cell to a journal, instead of the whole notebook before and after every cell."""

    def __init__(self, nb: NotebookNode, journal: str) -> None:
        super().__init__(nb, progress_bar=False, autosave_cell_every=0)
        self.journal = journal

    def save(self, **kwargs: Any) -> None:
        """Leave the notebook unwritten; the batch writes it once, at the end."""

    def notebook_start(self, **kwargs: Any) -> None:
        """Note the notebook with its parameters, nothing executed yet."""
        super().notebook_start(**kwargs)
        self._note({"notebook": self.nb})

    def cell_start(self, cell: NotebookNode, cell_index: int | None = None, **kwargs: Any) -> None:
        """Note that a cell was begun."""
        super().cell_start(cell, cell_index, **kwargs)
        self._note({"begun": cell_index})

    def cell_complete(self, cell: NotebookNode, cell_index: int | None = None, **kwargs: Any) -> None:
        """Note a finished cell with its outputs."""
        super().cell_complete(cell, cell_index, **kwargs)
        if cell.cell_type == "code":
            self._note({"index": cell_index, "cell": cell})

    def _note(self, entry: dict) -> None:
        line = json.dumps(entry) + "\n"
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write(line)


def read_journal(journal: str | os.PathLike) -> tuple[NotebookNode | None, int | None]:
    """Put a notebook together from its journal.

    Returns
    -------
    nb : NotebookNode or None
        With the outputs of every finished cell; None where execution had not begun.
    last : int or None
        The cell that was begun last.
    """
    nb, last = None, None
    try:
        with open(journal, encoding="utf-8") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return None, None
    for line in lines:
        try:
            entry = nbformat.from_dict(json.loads(line))
        except ValueError:  # the last line of a report that was killed while it wrote
            break
        if "notebook" in entry:
            nb = entry.notebook
        elif "begun" in entry:
            last = entry.begun
        else:
            nb.cells[entry["index"]] = entry.cell
    return nb, last


class _JournalEngine(Engine):
    @classmethod
    def execute_notebook(cls, nb: NotebookNode, kernel_name: str, journal: str, **kwargs: Any) -> NotebookNode:
        manager = JournalManager(nb, journal)
        for name in ("output_path", "progress_bar", "autosave_cell_every"):
            kwargs.pop(name, None)
        manager.notebook_start()
        try:
            cls.execute_managed_notebook(manager, kernel_name, **kwargs)
        finally:
            manager.notebook_complete()
        return manager.nb


class KernelEngine(_JournalEngine, NBClientEngine):
    """Executes a notebook in a Jupyter kernel of its own, as papermill does."""


papermill_engines.register(NORMAL, KernelEngine)
