"""Histories as a dataset: the records are kept as they were read, and judged when the dataset is loaded."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evalkit.io import Column, FileMark, Ledger, Source, SourceError, StorageOptions, is_url, mark_of, storage
from evalkit.io.collect import FILE_COLUMNS, FOLDER_COLUMNS, Collected, Kind, Progress, collect_files
from evalkit.io.dataset import Dataset, in_order, open_to_read
from evalkit.io.ledger import COLUMNS as LEDGER_COLUMNS
from evalkit.io.parquet import is_json
from evalkit.steps.format import DEFAULTS, Options
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.parse import Found, History, labelled, parse_history

_TABLES = {
    "files": (*FILE_COLUMNS, *LEDGER_COLUMNS[1:]),
    "folders": FOLDER_COLUMNS,
    "histories": (
        Column("source", "str", "path of the history's file"),
        Column("thread", "str", "thread of a checkpoint; empty for other files"),
        Column("records", "object", "the steps, as `StepRecord`"),
        Column("plan", "object", "the plan, if it was kept"),
    ),
}


def collect(
    source: Source,
    output: str | os.PathLike,
    options: Options = DEFAULTS,
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Progress = None,
) -> Collected:
    """Collect histories into a dataset, which `load` takes in place of the files.

    Parameters
    ----------
    source, options, jobs, storage_options
        As for `load`; the dataset keeps to its options.
    output : str or path
        The dataset's folder, or a URL. One that is there is brought up to date: only new and changed files are read,
        and the rows of files that have vanished are dropped.
    progress : function of (files read, files to read), optional
        Called after each chunk of files.

    Returns
    -------
    Collected
        How many files were new, changed, vanished and unchanged.

    Raises
    ------
    SourceError
        Where the source is not there, `output` holds other things or lies in the source, it was collected with other
        options or more sources, or another process is at work on it.
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else [one for one in source if one]
    with storage(storage_options):
        return collect_files(sources, output, _Histories(options), jobs, progress)


def open_collected(path: Any) -> Dataset | None:
    """Open a dataset of histories; None where `path` is something else."""
    return open_to_read(path, _Histories.name, _TABLES)


def collected_histories(dataset: Dataset, options: Options) -> tuple[list[History], Ledger]:
    """Read what `read_histories` would give from a dataset.

    Raises
    ------
    SourceError
        Where it was collected with other options, or can't be read.
    """
    if dataset.about["options"] != to_jsonable(options):
        raise SourceError(f"{dataset.path}: was collected with other options; collect anew with these")
    histories = in_order(dataset.read("histories"))
    files = in_order(dataset.read("files"))
    ledger = Ledger()
    for row in files.itertuples():
        ledger.add(row.source, row.status, row.reason)
    rows = zip(*(histories[column.name] for column in _TABLES["histories"]), strict=True)
    return labelled(History(*row) for row in rows), ledger


class _Histories(Kind):
    name, tables, chunk = "steps", _TABLES, 200

    def __init__(self, options: Options) -> None:
        self.options = to_jsonable(options)
        self.parse = partial(parse_history, options=options)

    def mark(self, path: str) -> FileMark | None:
        """Count also what a database was told last, which may stand beside it."""
        mark, log = mark_of(path), None if is_url(path) else mark_of(f"{path}-wal")
        return mark._replace(tag=f"{mark.tag} {log.tag}") if mark and log else mark

    def rows(self, parsed: Sequence[Found], dataset: Dataset) -> Mapping[str, list[dict[str, Any]]]:
        return {
            "files": [{"status": found.status, "reason": found.reason} for found in parsed],
            "histories": [_row(history) for found in parsed for history in found.histories],
        }


def _row(history: History) -> dict[str, Any]:
    """Make a row; what JSON has no form for (of a checkpoint) is kept in the form that evalkit writes it in."""
    row = {column.name: getattr(history, column.name) for column in _TABLES["histories"]}
    return {name: value if is_json(value) else to_jsonable(value) for name, value in row.items()}
