"""Traces as a dataset: the rows that every trace gives are kept, as scored by the rules it was collected with."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evalkit.crafter.parse import SERIAL_BELOW
from evalkit.crafter.scoring import WEIGHTS, Counting, check_rules
from evalkit.crafter.table import TABLES, TraceRows, rows_of_file
from evalkit.io import Source, SourceError, StorageOptions, storage
from evalkit.io.collect import FILE_COLUMNS, FOLDER_COLUMNS, Collected, Kind, Progress, collect_files
from evalkit.io.dataset import Dataset, in_order, open_to_read
from evalkit.io.frames import as_named
from evalkit.io.ledger import COLUMNS as LEDGER_COLUMNS
from evalkit.io.sources import fits

if TYPE_CHECKING:
    import pandas as pd

EVERY = "*.json"  # the pattern that stands for no choice
_TABLES = {"files": (*FILE_COLUMNS, *LEDGER_COLUMNS[1:]), "folders": FOLDER_COLUMNS, **TABLES}


def collect(
    source: Source,
    output: str | os.PathLike,
    pattern: str = EVERY,
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Progress = None,
) -> Collected:
    """Collect session traces into a dataset, which `load` takes in place of the folder.

    Parameters
    ----------
    source, pattern, weights, counting, jobs, storage_options
        As for `load`; the dataset keeps to its pattern, weights and counting.
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
    rules = {"weights": dict(check_rules(weights, counting)), "counting": counting}
    with storage(storage_options):
        return collect_files(source, output, _CrafterTraces(pattern, rules), jobs, progress)


def open_collected(path: Any) -> Dataset | None:
    """Open a dataset of traces; None where `path` is something else."""
    return open_to_read(path, _CrafterTraces.name, _TABLES)


def collected_frames(
    dataset: Dataset, pattern: str, rules: Mapping[str, Any], recursive: bool = True
) -> "dict[str, pd.DataFrame]":
    """Read the frames of `load` from a dataset.

    Raises
    ------
    SourceError
        Where it was collected with other rules, is not to be read with the folders below, or can't be read.
    """
    if not recursive:
        raise SourceError(f"{dataset.path}: a dataset holds the folders below too; name the folder itself")
    kept = dataset.about["options"]
    if any(kept[name] != rule for name, rule in rules.items()):
        raise SourceError(f"{dataset.path}: was collected with {kept}; collect anew with other rules")
    frames = {name: dataset.read(name) for name in TABLES}
    frames["ledger"] = dataset.read("files", [column.name for column in LEDGER_COLUMNS])
    if pattern != EVERY:
        sources = frames["ledger"]["source"]
        named = sources[[fits(as_named(path), pattern) for path in sources]]
        frames = {name: frame[frame["source"].isin(named)] for name, frame in frames.items()}
    return {name: in_order(frame) for name, frame in frames.items()}


class _CrafterTraces(Kind):
    name, tables, chunk, serial_below = "crafter", _TABLES, 500, SERIAL_BELOW

    def __init__(self, pattern: str, rules: Mapping[str, Any]) -> None:
        self.pattern = pattern
        self.options = {"pattern": pattern, **rules}
        self.parse = partial(rows_of_file, **rules)

    def rows(self, parsed: Sequence[TraceRows], dataset: Dataset) -> Mapping[str, list[dict[str, Any]]]:
        return {
            "files": [one.entry._asdict() for one in parsed],
            "episodes": [one.episode for one in parsed if one.episode is not None],
            "events": [row for one in parsed for row in one.events],
            "achievements": [row for one in parsed for row in one.achievements],
        }
