"""The short way: a folder of experiments in, frames of runs and agents out, every file in the ledger."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evalkit.io import (
    FileMark,
    Ledger,
    Listing,
    Source,
    SourceError,
    StorageOptions,
    cached_frames,
    is_url,
    list_source,
    mark_of,
    paused_gc,
    resolve,
    storage,
)
from evalkit.mindcraft.collecting import contents, open_collected
from evalkit.mindcraft.definitions import TaskDefinitions, load_task_definitions
from evalkit.mindcraft.facts import Facts, task_facts
from evalkit.mindcraft.folders import RunFolder, Trial, expected_agents, group_by_task, split_trials
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.naming import Named, Naming
from evalkit.mindcraft.outcome import NO_TRIAL, Scale, TaskOutcome, check_scale, folder_scale, run_outcome
from evalkit.mindcraft.parse import AgentOutcome, ParsedFile
from evalkit.mindcraft.scan import beside, empty_runs, name_from, parse_beside, parse_tree, sort_out
from evalkit.mindcraft.table import aggregate_results_to_dataframe, frames_of

if TYPE_CHECKING:
    import pandas as pd

Missing = Literal["keep", "skip", "raise"]
Tasks = str | os.PathLike | Iterable[str | os.PathLike] | Mapping[str, dict] | TaskDefinitions


class MindcraftLogs(NamedTuple):
    """What `load` returns: a row per run, a row per agent log, a row per file, the definitions, and what was loaded."""

    runs: "pd.DataFrame"
    agents: "pd.DataFrame"
    ledger: "pd.DataFrame"
    definitions: TaskDefinitions
    source: str


class _Planned(NamedTuple):
    """A run folder with all that is known of it before its scores are read."""

    run: RunFolder
    definition: dict[str, Any] | None
    facts: Facts
    named: Named
    total: int | None
    flags: tuple[str, ...]


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
        ``{model_name}/{task_id}``.
    scale : {"auto", "percent", "fraction"}
        What construction scores are logged in; ``auto`` decides per experiment.
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

    Raises
    ------
    SourceError
        Where a path is not there, or a definition is missing and `missing` is ``raise``.
    """
    _check_options(scale, missing)
    with storage(storage_options):
        definitions = _definitions(tasks)
        seen, marks, root, read = _opened(path, jobs)
        options = {"scale": scale, "missing": missing, "original_mtimes": original_mtimes}

        def build() -> dict[str, "pd.DataFrame"]:
            outcomes, ledger = assemble(*read(), layout, definitions, **options)
            runs, agents = frames_of(outcomes)
            return {"runs": runs, "agents": agents, "ledger": ledger.frame()}

        if isinstance(tasks, Mapping):  # definitions without files: nothing tells whether they have changed
            frames = build()
        else:
            asked = {"order": seen, "root": root, "layout": layout, **options}
            seen = [*seen, *(entry.source for entry in definitions.ledger.entries)]
            frames = cached_frames("mindcraft", seen, build, marks, **asked)
    named = path if isinstance(path, (str, os.PathLike)) else ", ".join(map(os.fspath, path))
    return MindcraftLogs(**frames, definitions=definitions, source=os.fspath(named))


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
        As `load`.
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
        outcomes, _ = assemble(parsed, near, listing, layout, definitions, **options, all_folders=True)
    return aggregate_results_to_dataframe(outcomes)


def _opened(path: Source, jobs: int | None) -> tuple[list[str], dict[str, FileMark | None], str, Callable]:
    """Give the files that a source's frames depend on, with marks, its root, and what reads `assemble`'s input."""
    dataset = open_collected(path)
    if dataset is not None:
        return [dataset.manifest], {}, dataset.path, lambda: contents(dataset)
    listing = list_source(path)
    seen = [*listing.files, *listing.folders, *beside(listing.files)]
    marks = dict.fromkeys(filter(is_url, listing.folders)) | listing.marks
    return seen, marks, listing.root, lambda: (parse_tree(listing.files, jobs), parse_beside(listing.files), listing)


@paused_gc()
def assemble(
    parsed: Iterable[ParsedFile],
    near: Iterable[ParsedFile],
    listing: Listing,
    layout: str | None,
    definitions: TaskDefinitions,
    *,
    scale: Scale,
    missing: Missing,
    original_mtimes: bool,
    all_folders: bool = False,
) -> tuple[Iterator[TaskOutcome], Ledger]:
    """Put parsed files together to outcomes and a ledger; each outcome is made, and its logs let go, when it is taken.

    Parameters
    ----------
    parsed, near : iterable of ParsedFile
        The listed files, and those above them that only name models (`scan.beside`).
    listing : Listing
    layout, scale, missing, original_mtimes
        As for `load`.
    definitions : TaskDefinitions
    all_folders : bool
        Every folder without logs is a run; see `scan.empty_runs`.
    """
    naming, ledger = Naming(listing.root, layout), Ledger()
    logs = list(sort_out(parsed, naming, ledger))
    for file in near:
        name_from(file, naming)
    runs = group_by_task(logs, definitions)
    runs += empty_runs(listing.files, listing.folders, runs, definitions, all_folders)
    planned: list[_Planned] = []
    facts: dict[tuple, Facts] = {}
    for run in runs:
        plan = _plan(run, definitions, naming, facts)
        if plan.definition is None and missing == "raise":
            raise SourceError(f"{run.folder}: no definition of task {run.task_id!r}")
        reason = f"no definition of task {run.task_id}"
        for log in run.logs:
            if plan.definition is None and missing == "skip":
                ledger.skipped(log["source"], reason)
            elif log["agent_log_processed"]:
                ledger.used(log["source"], ", ".join(flag for flag in log["flags"] if flag.startswith("recovered")))
            else:
                ledger.failed(log["source"], "; ".join(log["parsing_errors"]))
        if plan.definition is not None or missing == "keep":
            planned.append(plan)
    ledger.include(definitions.ledger)
    ledger.entries.sort()
    return _outcomes(_trials(planned, scale), listing.marks if original_mtimes else None), ledger


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


def _plan(run: RunFolder, definitions: TaskDefinitions, naming: Naming, known: dict[tuple, Facts]) -> _Planned:
    """Find out all but the scores of a run; `known` keeps the facts of tasks that many models ran."""
    named = naming.name(run)
    if "task_id" in named.fields:
        run = run._replace(task_id=named.fields["task_id"])
    results = naming.results_for(run)
    candidates, logs = definitions.candidates(run.task_id), None
    if len(candidates) > 1:
        trials = split_trials(run.logs, expected_agents(candidates), run.prefix)
        logs = max((len(trial.logs) for trial in trials), default=0)
    resolved = definitions.resolve(run.task_id, results.task_path if results else None, logs)
    key = (run.task_id, id(resolved.definition), named.fields.get("task_type", ""))
    if key not in known:
        known[key] = task_facts(run.task_id, resolved.definition, key[-1])
    flags = ("ambiguous_definition",) * resolved.ambiguous + ("layout_mismatch",) * (not naming.fits_layout(run))
    return _Planned(run, resolved.definition, known[key], named, results.total if results else None, flags)


def _trials(planned: list[_Planned], scale: Scale) -> list[tuple[_Planned, Trial, Scale]]:
    """Part runs by repetition, in the order of their folders, with the scale of their experiment; flag stale logs."""
    scores = defaultdict(list)
    for plan in planned:
        if plan.facts["task_type"] == "construction":
            scores[plan.named.experiment] += [log["raw_score"] for log in plan.run.logs]
    trials = []
    for plan in sorted(planned, key=lambda p: (p.run.folder, p.run.task_id)):
        used = folder_scale(plan.facts["task_type"], scores[plan.named.experiment], scale)
        own = split_trials(plan.run.logs, plan.facts["agent_count"], plan.run.prefix) or NO_TRIAL
        trials += [(plan, trial, used) for trial in own]
    _flag_stale([trial.logs for _, trial, _ in trials])
    return trials


def _flag_stale(runs: list[list[AgentOutcome]]) -> None:
    """Flag logs of which another run has the same: equal content, or an equal start."""
    first: dict[str | float, int] = {}
    repeated = set()
    for i, logs in enumerate(runs):
        for log in logs:
            repeated.update(mark for mark in _marks(log) if first.setdefault(mark, i) != i)
    for log in (log for logs in runs for log in logs):
        if not repeated.isdisjoint(_marks(log)):
            log["flags"].append("stale_copy")


def _marks(log: AgentOutcome) -> list[str | float]:
    return [mark for mark in (log["digest"], log["task_start"]) if mark]


def _outcomes(
    trials: list[tuple[_Planned, Trial, Scale]], marks: Mapping[str, FileMark] | None
) -> Iterator[TaskOutcome]:
    """Make the outcomes of runs, and take these off the list; with marks also their durations."""
    trials.reverse()
    while trials:
        plan, trial, scale = trials.pop()
        outcome = run_outcome(plan.run.task_id, trial, plan.definition, plan.facts, scale, plan.run.folder)
        outcome["flags"] += plan.flags
        outcome["model_name"] = plan.named.model_name
        outcome["model_source"] = plan.named.model_source
        outcome["experiment"] = plan.named.fields.get("experiment") or os.path.basename(plan.named.experiment)
        outcome["experiment_total"] = plan.total
        outcome["suite"] = plan.named.fields.get("suite")
        if marks is not None:
            _add_duration(outcome, marks)
        yield outcome


def _add_duration(outcome: TaskOutcome, marks: Mapping[str, FileMark]) -> None:
    starts = {log["source"]: log["task_start"] for log in outcome["agent_outcomes"] if log["task_start"]}
    found = {source: marks.get(source) or mark_of(source) for source in starts}
    spans = [mark.modified - starts[source] / 1000 for source, mark in found.items() if mark]
    outcome["duration"] = max(spans, default=None)
    late = bool(spans) and max(spans) >= outcome["facts"]["timeout"]
    if late and not outcome["overall_is_successful"] and outcome["overall_completion_status"] != "TIMED_OUT":
        outcome["overall_completion_status"] = CompletionStatus.TIMED_OUT
        outcome["flags"].append("inferred_timeout")
