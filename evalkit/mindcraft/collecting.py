"""Task runs as a dataset: what every log and results file says is kept; runs are put together when it is loaded.

So the task definitions, the scale and everything else of `load` can be chosen anew without reading a log again.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io import Column, Listing, Source, StorageOptions, storage
from evalkit.io.collect import FILE_COLUMNS, FOLDER_COLUMNS, Collected, Kind, Progress, collect_files
from evalkit.io.dataset import Dataset, in_order, marks_of, open_to_read
from evalkit.io.frames import as_named
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.folders import group_by_task
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.naming import Naming, compile_layout
from evalkit.mindcraft.parse import AgentOutcome, ParsedFile, parse_file
from evalkit.mindcraft.results import Results
from evalkit.mindcraft.scan import BESIDE, beside, may_tell, name_from, unread
from evalkit.mindcraft.table import AGENT_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

_AS_IN_AGENTS = {  # what the log itself says, or its name; the rest is found out when runs are put together
    "source", "model_name", "raw_score", "completion_status", "final_system_message", "near_final_message",
    "agent_log_processed", "timed_out", "agent_name", "repetition", "message_count", "command_count", "skipped_turns",
    "task_start",
}  # fmt: skip
LOG_COLUMNS = (
    *(column for column in AGENT_COLUMNS if column.name in _AS_IN_AGENTS),
    Column("digest", "str", "equal for copies"),
    Column("parsing_errors", "object", "what was wrong with the file"),
    Column("events", "object", "lines that tell of trouble, by kind"),
    Column("flags", "object", "what is to be known of the log"),
)
TABLES = {
    "files": (
        *FILE_COLUMNS,
        Column("beside", "bool", "lies above the source, and only names models"),
        Column("kind", "str", "log, or what else it is"),
        Column("error", "str", "why a file that is no log could not be read"),
        Column("model", "str", "that an agent profile names"),
        Column("results", "str", "what a results file says: model, task file, number of tasks, as JSON"),
        Column("legacy", "str", "what the original scripts find in it, as JSON; empty: nothing"),
    ),
    "folders": FOLDER_COLUMNS,
    "logs": LOG_COLUMNS,
}


class Contents(NamedTuple):
    """What a dataset gives in place of the files: their listing, what they say, and what those above them say."""

    parsed: Iterable[ParsedFile]
    near: list[ParsedFile]
    listing: Listing


def collect(
    source: Source,
    output: str | os.PathLike,
    *,
    layout: str | None = None,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Progress = None,
) -> Collected:
    """Collect task runs into a dataset, which `load` takes in place of the folder.

    Parameters
    ----------
    source, layout, jobs, storage_options
        As for `load`.
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
    if layout:
        compile_layout(layout)
    with storage(storage_options):
        return collect_files(source, output, _MindcraftLogs(layout), jobs, progress)


def open_collected(path: Any) -> Dataset | None:
    """Open a dataset of task runs; None where `path` is something else."""
    return open_to_read(path, _MindcraftLogs.name, TABLES)


def contents(dataset: Dataset, *, with_marks: bool = False) -> Contents:
    """Read what a dataset holds, as parsing the files would give it; the listing has marks where they are asked for."""
    files = in_order(dataset.read("files"))
    near = list(_files(files[files["beside"]]))
    files = files[~files["beside"]]
    paths = list(map(as_named, _plain(files["source"])))
    marks = dict(zip(paths, marks_of(files).values(), strict=True)) if with_marks else {}
    folders = list(map(as_named, dataset.read("folders")["source"].tolist()))
    listing = Listing(dataset.about["root"], paths, folders, marks)
    outcomes = {log["source"]: log for piece in dataset.pieces("logs") for log in _outcomes(piece)}
    parsed = (file._replace(outcome=outcomes.pop(file.source, None)) for file in _files(files))
    return Contents(parsed, near, listing)


class _MindcraftLogs(Kind):
    name, tables, parse = "mindcraft", TABLES, staticmethod(parse_file)

    def __init__(self, layout: str | None) -> None:
        self.options = {"layout": layout}
        self._above: frozenset[str] = frozenset()
        self._naming: Naming | None = None

    def beside(self, files: list[str]) -> list[str]:
        found = beside(files)
        self._above = frozenset(found)
        return found

    def first(self, path: str) -> bool:
        return os.path.basename(path) in BESIDE

    def wants(self, path: str) -> bool:
        return may_tell(path)

    def unread(self, path: str) -> ParsedFile:
        return unread(path)

    def rows(self, parsed: Sequence[ParsedFile], dataset: Dataset) -> Mapping[str, list[dict[str, Any]]]:
        for file in parsed:
            name_from(file, self._named(dataset))
        files = [
            file._asdict()
            | {"results": file.results and json.dumps(file.results), "beside": file.source in self._above}
            for file in parsed
        ]
        logs = [file.outcome for file in parsed if file.outcome is not None]
        models = self._models(dataset, [log["source"] for log in logs])
        return {
            "files": files,
            "logs": [{**log, "model_name": model} for log, model in zip(logs, models, strict=True)],
        }

    def finish(self, dataset: Dataset) -> None:
        """Move logs whose model is another one by now, since a file that names it has come, gone or changed."""
        said = dataset.about["root"] + _telling(dataset)[["source", "model", "results"]].to_json(orient="values")
        named_by = hashlib.blake2b(said.encode(errors="surrogatepass"), digest_size=8).hexdigest()
        if dataset.about.get("named_by") != named_by:
            dataset.rename("logs", lambda sources: self._models(dataset, list(map(as_named, sources))))
            dataset.about["named_by"] = named_by

    def _models(self, dataset: Dataset, sources: Iterable[str]) -> list[str]:
        runs = group_by_task(({"source": source} for source in sources), TaskDefinitions())  # type: ignore[misc]
        models = {log["source"]: self._named(dataset).name(run).model_name for run in runs for log in run.logs}
        return [models[source] for source in sources]

    def _named(self, dataset: Dataset) -> Naming:
        if self._naming is None:
            self._naming = Naming(dataset.about["root"], self.options["layout"])
            for file in _files(_telling(dataset)):
                name_from(file, self._naming)
        return self._naming


def _telling(dataset: Dataset) -> "pd.DataFrame":
    """Give the files that say anything of models: few among many."""
    files = dataset.read("files")
    return in_order(files[files["model"].notna() | files["results"].notna()])


def _files(files: "pd.DataFrame") -> Iterator[ParsedFile]:
    """Take what a dataset holds of each file, but for the outcomes of logs."""
    columns = [_plain(files[name]) for name in ("source", "kind", "error", "model", "results", "legacy")]
    del files  # which would be held until the last file is taken
    for source, kind, error, model, results, legacy in zip(*columns, strict=True):
        told = results and Results(*json.loads(results))
        yield ParsedFile(as_named(source), kind, None, told, model, error, legacy)


def _outcomes(logs: "pd.DataFrame") -> Iterator[AgentOutcome]:
    columns = {name: _plain(logs[name]) for name in logs}
    columns["source"] = list(map(as_named, columns["source"]))
    columns["completion_status"] = list(map(CompletionStatus, columns["completion_status"]))
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))  # type: ignore[misc]


def _plain(column: "pd.Series") -> list:
    """Give a column's values with None for what is missing, and one object for all texts that are equal."""
    values = [None if value != value else value for value in column.tolist()]
    return [value and sys.intern(value) for value in values] if column.dtype == "str" else values
