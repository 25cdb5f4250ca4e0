"""The short way: a folder of experiments in, frames of runs and agents out, every file in the ledger."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io import (
    FileMark,
    Ledger,
    Source,
    SourceError,
    StorageOptions,
    cached_frames,
    frame,
    is_url,
    list_source,
    resolve,
    storage,
)
from evalkit.kinds import nothing_used
from evalkit.mindcraft.assemble import Missing, assemble
from evalkit.mindcraft.collecting import contents, open_collected
from evalkit.mindcraft.definitions import TaskDefinitions, load_task_definitions
from evalkit.mindcraft.outcome import Scale, check_scale
from evalkit.mindcraft.scan import beside, parse_beside, parse_tree
from evalkit.mindcraft.table import FOLDER_COLUMNS, aggregate_results_to_dataframe, frames_of

if TYPE_CHECKING:
    import pandas as pd

Tasks = str | os.PathLike | Iterable[str | os.PathLike] | Mapping[str, dict] | TaskDefinitions


class MindcraftLogs(NamedTuple):
    """What `load` returns.

    Attributes
    ----------
    runs, agents, ledger : DataFrame
        A row per run, per agent log, per file.
    definitions : TaskDefinitions
    source : str
        What was loaded.
    other_folders : DataFrame
        Folders beside those of runs that hold no run, which the original scripts count all the same; see
        `legacy_summary`.
    """

    runs: "pd.DataFrame"
    agents: "pd.DataFrame"
    ledger: "pd.DataFrame"
    definitions: TaskDefinitions
    source: str
    other_folders: "pd.DataFrame"


def load(
    path: Source,
    tasks: Tasks = (),
    *,
    layout: str | None = None,
    scale: Scale = "auto",
    missing: Missing = "keep",
    original_mtimes: bool = False,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> MindcraftLogs:
    """Read a folder of task runs.

    Parameters
    ----------
    path : str, path, or several of them
        A folder at any level (experiments, one experiment, one task), or one log; also a glob or a URL: see
        `evalkit.io.list_source`. A dataset of `collect` stands for the folder that it was collected from.
    tasks : path, paths, mapping of task id to definition, or TaskDefinitions
        Task definition files; none: what can be is read from the ids.
    layout : str, optional
        What the folders' names mean, where they are not found out: a pattern of the run folder's path, such as
        ``{model_name}/{task_id}``. A dataset knows the one that it was collected with.
    scale : {"auto", "percent", "fraction"}
        What construction scores are logged in; ``auto`` decides once for all that is loaded: percent as soon as one
        score exceeds 1, else fractions, which the flag ``scale_assumed`` and `analysis.describe_scale` say.
    missing : {"keep", "skip", "raise"}
        What becomes of runs without a definition.
    original_mtimes : bool
        The files' times are those of the experiment (not of a copy): gives durations, and time-outs inferred from
        them.
    jobs : int, optional
        Processes to read with; see `evalkit.io.parse_files`.
    storage_options : mapping, optional
        For the file systems behind URLs, as fsspec takes them.

    Returns
    -------
    MindcraftLogs
        runs : one row per run, a repetition being a run of its own; `table.RUN_COLUMNS`
        agents : one row per agent log; `table.AGENT_COLUMNS`
        ledger : every file seen, the definitions' too
        definitions : TaskDefinitions, with the ids that are ambiguous
        other_folders : folders beside those of runs, without any run

    Raises
    ------
    SourceError
        Where a path is not there, no file of it can be used as an agent log, a file or folder of `tasks` holds no
        definition, or a definition is missing and `missing` is ``raise``.
    """
    _check_options(scale, missing)
    named = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ", ".join(map(os.fspath, path))
    with storage(storage_options):
        definitions = _definitions(tasks)
        seen, marks, root, layout, read = _opened(path, jobs, layout, original_mtimes)
        options = {"scale": scale, "missing": missing, "original_mtimes": original_mtimes}

        def build() -> dict[str, "pd.DataFrame"]:
            parsed, near, listing = read()
            found = assemble(parsed, near, listing, layout, definitions, **options)
            if not found.readable:
                raise _nothing_used(named, listing.files, found.ledger)
            runs, agents = frames_of(found.outcomes)
            folders = frame(found.other_folders, FOLDER_COLUMNS)
            return {"runs": runs, "agents": agents, "ledger": found.ledger.frame(), "other_folders": folders}

        if isinstance(tasks, Mapping):  # definitions without files: nothing tells whether they have changed
            frames = build()
        else:
            asked = {"order": seen, "root": root, "layout": layout, **options}
            seen = [*seen, *(entry.source for entry in definitions.ledger.entries)]
            frames = cached_frames("mindcraft", seen, build, marks, **asked)
    return MindcraftLogs(**frames, definitions=definitions, source=named)


def runs_df(path: Source, tasks: Tasks = (), **options: Any) -> "pd.DataFrame":
    """Read a folder of task runs as a frame of runs; see `load`."""
    return load(path, tasks, **options).runs


def agents_df(path: Source, tasks: Tasks = (), **options: Any) -> "pd.DataFrame":
    """Read a folder of task runs as a frame of agent logs; see `load`."""
    return load(path, tasks, **options).agents


def models(runs: Source, tasks: Tasks = (), **options: Any) -> list[str]:
    """List the models of a folder of task runs, sorted."""
    return sorted(load(runs, tasks, **options).runs["model_name"].unique())


def aggregate_results(
    local_folders: Iterable[str | os.PathLike],
    task_definitions: Tasks | None = None,
    *,
    layout: str | None = None,
    scale: Scale = "auto",
    missing: Missing = "keep",
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> "pd.DataFrame":
    """Read task-run folders (one task each) as one frame with model names.

    Parameters
    ----------
    local_folders : iterable of paths or URLs
    task_definitions : as `tasks` of `load`
    layout, scale, missing, jobs, storage_options
        As for `load`.

    Returns
    -------
    DataFrame
        One row per run; repetitions in a folder are runs of their own.

    Raises
    ------
    SourceError
        As `load`, but for folders without any log: each is a run.
    """
    _check_options(scale, missing)
    with storage(storage_options):
        named = [resolve(folder) for folder in local_folders]
        folders = {folder if is_url(folder) else os.path.realpath(folder): folder for folder in named}
        for folder in folders.values():
            if not is_url(folder) and not os.path.isdir(folder):
                raise SourceError(f"{folder}: no folder")
        listing = list_source(folders.values(), recursive=False)
        options = {"scale": scale, "missing": missing, "original_mtimes": False}
        definitions = _definitions(task_definitions or ())
        parsed, near = parse_tree(listing.files, jobs), parse_beside(listing.files)
        found = assemble(parsed, near, listing, layout, definitions, **options, all_folders=True)
    return aggregate_results_to_dataframe(found.outcomes)


def _opened(
    path: Source, jobs: int | None, layout: str | None, with_marks: bool
) -> tuple[list[str], dict[str, FileMark | None], str, str | None, Callable]:
    """Give the files that a source's frames depend on, with marks, its root and layout, and what reads its files."""
    dataset = open_collected(path)
    if dataset is not None:
        layout = layout or dataset.about["options"]["layout"]
        return [dataset.manifest], {}, dataset.path, layout, lambda: contents(dataset, with_marks=with_marks)
    listing = list_source(path)
    seen = [*listing.files, *listing.folders, *beside(listing.files)]
    marks = dict.fromkeys(filter(is_url, listing.folders)) | listing.marks

    def read() -> tuple:
        return parse_tree(listing.files, jobs), parse_beside(listing.files), listing

    return seen, marks, listing.root, layout, read


def _nothing_used(named: str, files: list[str], ledger: Ledger) -> SourceError:
    """Make the error of a source without any agent log that can be read; it names the first file that failed."""
    error = nothing_used(named, files, "Mindcraft agent log")
    failed = next((entry for entry in ledger.entries if entry.status == "failed"), None)
    return SourceError(f"{error}; the first that failed is {failed.source}: {failed.reason}") if failed else error


def _check_options(scale: str, missing: str) -> None:
    check_scale(scale)
    if missing not in ("keep", "skip", "raise"):
        raise ValueError(f"missing {missing!r}: one of keep, skip, raise")


def _definitions(tasks: Tasks) -> TaskDefinitions:
    if isinstance(tasks, TaskDefinitions):
        return tasks
    if isinstance(tasks, Mapping):
        return TaskDefinitions(tasks)
    paths = [tasks] if isinstance(tasks, (str, os.PathLike)) else list(tasks)
    return load_task_definitions(*(path for path in paths if os.fspath(path)))
