"""Return runs under MineCollab's names, as the frames and dictionaries of outcomes that its users know."""

import math
import os
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Any, TypedDict, Unpack, cast

import pandas as pd

from evalkit.io import Column, Source, SourceError, StorageOptions, absolute, frame, is_url, resolve, storage
from evalkit.kinds import has_flag, read_records, run_ids
from evalkit.mindcraft.assemble import assemble, metrics_frame
from evalkit.mindcraft.kind import KIND, RunsOptions, load
from evalkit.mindcraft.parse import AgentOutcome, agent_outcome
from evalkit.mindcraft.table import COUNT_COLUMNS, FLAGS, OUTCOMES, RUNS, CompletionStatus, Scale
from evalkit.mindcraft.tasks import Tasks, metrics_of, task_facts

_SCORES = (
    Column("overall_raw_score", "float", "highest score of the agents, as logged", "as logged"),
    Column("overall_score", "float", "the score from 0 to 1", "share"),
    Column("overall_is_successful", "bool", "score = 1"),
    Column("overall_is_completed", "bool", "score > 0"),
    Column("overall_completion_status", "str", "how the run ended"),
)
_NAMES = [column.name for column in RUNS]
_AT_SCORE, _AT_COUNTS = _NAMES.index("raw_score"), _NAMES.index(COUNT_COLUMNS[1].name)
COLUMNS = (
    *RUNS[:_AT_SCORE],
    *_SCORES,
    *RUNS[_AT_SCORE + 1 : _AT_COUNTS],
    *COUNT_COLUMNS,
    *(Column(f"flag_{name}", "bool", meaning) for name, meaning in FLAGS.items()),
)


def with_compat_names(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the columns `COLUMNS`, followed by columns that only some runs have, such as metrics."""
    raised = set(chain.from_iterable(runs["run_flags"]))
    made = {
        **runs,
        "overall_raw_score": runs["raw_score"],
        "overall_score": runs["score"],
        "overall_is_successful": runs["is_successful"].fillna(False).astype(bool),
        "overall_is_completed": runs["score"] > 0,
        "overall_completion_status": runs["status"],
        "message_count": runs["turns"],
        **{f"flag_{name}": has_flag(runs, name) if name in raised else False for name in FLAGS},
    }
    names = [*(column.name for column in COLUMNS), *(name for name in runs if name not in _NAMES)]
    return pd.DataFrame({name: made[name] for name in names}, runs.index)


def runs_df(path: Source, tasks: Tasks = (), **options: Unpack[RunsOptions]) -> pd.DataFrame:
    """Read a folder of task runs as a frame of runs with MineCollab's column names.

    Parameters
    ----------
    path : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    tasks : path, paths, mapping or TaskDefinitions
        Definitions of the tasks.
    **options : Any
        Options of `load`.

    Returns
    -------
    DataFrame
        One row per run, with the columns `COLUMNS`.

    Examples
    --------
    >>> len(mindcraft.runs_df("samples:mindcraft/runs"))
    133
    """
    return with_compat_names(load(path, tasks, **options).runs)


class TaskOutcome(TypedDict):
    """The outcome of one run."""

    task_id: str
    model_name: str | None  # always None: a task's folder does not name the model; see `aggregate_results`
    agent_count: int
    task_type: str
    overall_raw_score: float | None  # highest score of the agents, as logged
    overall_score: float | None  # score from 0 to 1; None if it is out of range
    overall_is_successful: bool  # score = 1, even if a time-out was logged
    overall_is_completed: bool  # score > 0
    overall_completion_status: str  # TIMED_OUT (any agent), else by best score, else NO_SCORE_LOGGED or LOG_FILE_ERROR
    score_scale: str  # percent or fraction for construction, binary for other types, unknown without a type
    total_agent_logs_found: int
    agent_outcomes: list[AgentOutcome]
    task_definition_metrics: dict[str, Any]
    repetition: int
    repetition_rule: str
    has_definition: bool
    definition_file: str | None
    facts: dict[str, Any]  # facts about the task; see `tasks.task_facts`
    flags: list[str]
    source: str


def extract_task_outcome(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> TaskOutcome:
    """Read the logs of one task folder as one outcome. For many folders, `aggregate_results` is much faster.

    The task id is the definition's ``task_id``, else the name of the folder. If the folder contains several
    repetitions, the outcome is their best-of-n, flagged ``repetitions_merged``; see `extract_task_outcomes`.

    Parameters
    ----------
    folder_path : path
        Folder of the run.
    task_definition : dict or None
        Definition of the task.
    scale : {"auto", "percent", "fraction"}
        Unit of logged construction scores.

    Returns
    -------
    dict
        Outcome of the run and of its agents.

    Raises
    ------
    SourceError
        If the folder does not exist.

    Examples
    --------
    >>> mindcraft.extract_task_outcome(folder, None)["overall_completion_status"]
    'NO_SCORE_LOGGED'
    """
    outcomes = extract_task_outcomes(folder_path, task_definition, scale)
    if len(outcomes) == 1:
        return outcomes[0]
    agents = [agent for outcome in outcomes for agent in outcome["agent_outcomes"]]
    read = [own for own in outcomes if own["overall_completion_status"] != CompletionStatus.LOG_FILE_ERROR]
    scored = [own for own in outcomes if own["overall_raw_score"] is not None]
    best = max(scored, key=itemgetter("overall_raw_score")) if scored else (read or outcomes)[0]
    timed_out = any(own["overall_completion_status"] == CompletionStatus.TIMED_OUT for own in outcomes)
    return {
        **best,
        "agent_count": best["facts"]["agent_count"] or len({agent["agent_name"] for agent in agents}),
        "overall_completion_status": CompletionStatus.TIMED_OUT if timed_out else best["overall_completion_status"],
        "total_agent_logs_found": len(agents),
        "agent_outcomes": agents,
        "repetition": outcomes[0]["repetition"],
        "repetition_rule": outcomes[0]["repetition_rule"],
        "flags": sorted({flag for outcome in outcomes for flag in outcome["flags"]} | {"repetitions_merged"}),
    }


def extract_task_outcomes(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> list[TaskOutcome]:
    """Read the logs of one task folder as one outcome per repetition.

    Parameters
    ----------
    folder_path : path
        Folder of the runs.
    task_definition : dict or None
        Definition of the task.
    scale : {"auto", "percent", "fraction"}
        Unit of logged construction scores.

    Returns
    -------
    list of dict
        Outcomes as from `extract_task_outcome`.

    Raises
    ------
    SourceError
        If the folder does not exist.

    Examples
    --------
    >>> len(mindcraft.extract_task_outcomes(folder, None))
    1
    """
    folder, definition = resolve(folder_path), task_definition or None
    records = read_records(KIND, folder, keep=False)
    if not records.listing.folders:
        raise SourceError(f"{folder}: no folder")
    stated = (definition or {}).get("task_id")
    task_id = stated if isinstance(stated, str) and stated else os.path.basename(absolute(folder))
    options = KIND.prepare({"tasks": {task_id: definition} if definition else {}, "scale": scale})
    frames = assemble(records, options, folders=[folder], task_id=task_id).frames
    stored = {row["source"]: row for row in records.tables["logs"].to_pylist()}
    agents: dict[str, list[AgentOutcome]] = {run_id: [] for run_id in frames["runs"]["run_id"]}
    for log in frames["agents"].to_dict("records"):
        outcome = agent_outcome(log["source"], stored[log["source"]])
        outcome["agent_name"], outcome["repetition"] = log["agent_name"], log["repetition"]
        outcome["completion_status"], outcome["flags"] = CompletionStatus(log["completion_status"]), log["flags"]
        agents[log["run_id"]].append(outcome)
    shared = {
        "task_id": task_id,
        "model_name": None,
        "task_definition_metrics": metrics_of(definition or {}),
        "definition_file": (definition or {}).get("definition_file"),
        "facts": task_facts(task_id, definition),
        "source": folder,
    }
    outcomes = []
    for run in with_compat_names(frames["runs"]).to_dict("records"):
        own: dict[Any, Any] = {**run, **shared, "agent_outcomes": agents[run["run_id"]], "flags": run["run_flags"]}
        for score in ("overall_raw_score", "overall_score"):
            own[score] = None if math.isnan(run[score]) else run[score]
        outcomes.append(cast(TaskOutcome, {name: own[name] for name in TaskOutcome.__annotations__}))
    return outcomes


def aggregate_results_to_dataframe(task_outcomes: Iterable[TaskOutcome]) -> pd.DataFrame:
    """Build a frame of task outcomes, one row per run.

    The dictionaries need only task_id, model_name, agent_count, task_type, overall_raw_score, overall_is_successful,
    overall_completion_status, total_agent_logs_found, agent_outcomes and task_definition_metrics. Values of other
    columns are missing if a dictionary does not contain them.

    Parameters
    ----------
    task_outcomes : iterable of dict
        Results of `extract_task_outcome`.

    Returns
    -------
    DataFrame
        One row per run, with the columns `COLUMNS` and ``metric_NAME``.

    Examples
    --------
    >>> len(mindcraft.aggregate_results_to_dataframe([]))
    0
    """
    rows, metrics = list[dict[str, Any]](), list[dict[str, Any]]()
    for outcome in task_outcomes:
        raw, flags = outcome.get("overall_raw_score"), outcome.get("flags") or []
        status = outcome["overall_completion_status"]
        is_unmeasured = raw is None and OUTCOMES[status] == "not measured"
        successful = None if is_unmeasured else outcome["overall_is_successful"]
        source, repetition = absolute(outcome.get("source") or ""), outcome.get("repetition") or 0
        metrics.append(outcome.get("task_definition_metrics") or {})
        row = {
            "overall_is_completed": (raw or 0) > 0,
            **(outcome.get("facts") or {}),
            **outcome,
            **{f"flag_{name}": name in flags for name in FLAGS},
            "run_id": run_ids("mindcraft", [source], [outcome["task_id"]], [repetition])[0],
            "kind": "mindcraft",
            "status": status,
            "score": outcome.get("overall_score"),
            "is_successful": successful,
            "success_rate": successful,
            "run_flags": flags,
        }
        rows.append(row)
    table = frame(rows, COLUMNS).astype({"kind": pd.CategoricalDtype([KIND.name])})
    return table.join(metrics_frame(metrics))


def aggregate_results(
    local_folders: Iterable[str | os.PathLike],
    task_definitions: Tasks | None = None,
    *,
    layout: str | None = None,
    scale: Scale = "auto",
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> pd.DataFrame:
    """Read task-run folders (one task each) as a frame with one row per run.

    Each repetition is a separate run. A folder without any log is a run, too.

    Parameters
    ----------
    local_folders : iterable of path
        Folders, one task each.
    task_definitions : path, paths, mapping or TaskDefinitions, optional
        Definitions of the tasks.
    layout : str, optional
        Meaning of the folder names, such as ``{model_name}/{task_id}``.
    scale : {"auto", "percent", "fraction"}
        Unit of logged construction scores.
    jobs : int, optional
        Number of processes that read files.
    storage_options : mapping, optional
        Options for fsspec.

    Returns
    -------
    DataFrame
        One row per run, with the columns `COLUMNS` and ``metric_NAME``.

    Raises
    ------
    SourceError
        If a path is not a folder.

    Examples
    --------
    >>> len(mindcraft.aggregate_results([]))
    0
    """
    with storage(storage_options):
        folders = [resolve(folder) for folder in local_folders]
        for folder in folders:
            if not is_url(folder) and not os.path.isdir(folder):
                raise SourceError(f"{folder}: no folder")
        options = KIND.prepare({"tasks": task_definitions or (), "layout": layout, "scale": scale})
        if not folders:
            return aggregate_results_to_dataframe([])
        records = read_records(KIND, folders, jobs=jobs)
        return with_compat_names(assemble(records, options, folders=folders).frames["runs"])
