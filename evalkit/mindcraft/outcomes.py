"""Outcomes of the runs of task folders as dictionaries, each a view of the row of its run, and frames of these."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

import pandas as pd

from evalkit.io import (
    SourceError,
    StorageOptions,
    absolute,
    frame,
    is_url,
    paused_gc,
    resolve,
    storage,
)
from evalkit.kinds import no_records, read_records, run_ids
from evalkit.mindcraft.assemble import assemble, combine, known_tasks, metrics_frame
from evalkit.mindcraft.format import OUTCOMES, SCALES, CompletionStatus, Missing, Scale, check_choice
from evalkit.mindcraft.kind import KIND
from evalkit.mindcraft.layout import UNNAMED, TaskFolder, group_by_task
from evalkit.mindcraft.parse import AgentOutcome, agent_outcome
from evalkit.mindcraft.table import COUNT_COLUMNS, FLAGS, RUNS
from evalkit.mindcraft.tasks import Facts, TaskDefinitions, Tasks, metric_columns, metrics_of


class TaskOutcome(TypedDict):
    """The outcome of one run."""

    task_id: str
    model_name: str | None  # always None: a folder alone does not name it; see `aggregate_results`
    agent_count: int
    task_type: str
    overall_raw_score: float | None  # the highest of the agents, as logged
    overall_score: float | None  # the same from 0 to 1; None where it is out of range
    overall_is_successful: bool  # score = 1, also where a time-out was logged
    overall_is_completed: bool  # score > 0
    overall_completion_status: str  # TIMED_OUT of any agent, else by the best score, NO_SCORE_LOGGED, LOG_FILE_ERROR
    score_scale: str  # percent or fraction for construction, binary for the rest, unknown without a type
    total_agent_logs_found: int
    agent_outcomes: list[AgentOutcome]
    task_definition_metrics: dict[str, Any]
    repetition: int
    repetition_rule: str
    has_definition: bool
    definition_file: str | None
    facts: Facts  # what the task asks for
    flags: list[str]
    source: str


def extract_task_outcome(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> TaskOutcome:
    """Read the logs of one task folder as one outcome; `aggregate_results` reads many folders much faster.

    With several repetitions in the folder this is best-of-n, flagged ``repetitions_merged``; see
    `extract_task_outcomes`.

    Parameters
    ----------
    folder_path : str or path
        The folder of a task run; its name is the task id, unless the definition has one (``task_id``).
    task_definition : dict or None
        If None or empty, facts are read from the id as far as possible, and `has_definition` is False.
    scale : {"auto", "percent", "fraction"}
        The unit of logged construction scores; ``auto``: percent as soon as one of this folder exceeds 1.

    Raises
    ------
    SourceError
        Where the folder is not there.
    """
    outcomes = extract_task_outcomes(folder_path, task_definition, scale)
    if len(outcomes) == 1:
        return outcomes[0]
    agents = [agent for outcome in outcomes for agent in outcome["agent_outcomes"]]
    statuses = [outcome["overall_completion_status"] for outcome in outcomes]
    best = max(outcomes, key=_goodness)
    timed_out = CompletionStatus.TIMED_OUT in statuses
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


def _goodness(outcome: TaskOutcome) -> tuple[bool, float, bool]:
    raw = outcome["overall_raw_score"]
    return raw is not None, raw or 0.0, outcome["overall_completion_status"] != CompletionStatus.LOG_FILE_ERROR


def extract_task_outcomes(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> list[TaskOutcome]:
    """Read the logs of one task folder as one outcome per repetition; see `extract_task_outcome`."""
    check_choice("scale", scale, SCALES)
    folder, definition = resolve(folder_path), task_definition or None
    records = read_records(KIND, folder, recursive=False, keep=False)
    if not records.listing.folders:
        raise SourceError(f"{folder}: no folder")
    path, logs = absolute(folder), records.tables["logs"]
    task_id = (definition or {}).get("task_id")
    task_id = task_id if isinstance(task_id, str) and task_id else os.path.basename(path)
    sources, definitions = logs["source"].to_pylist(), TaskDefinitions({task_id: definition} if definition else {})
    found = group_by_task(sources, definitions or TaskDefinitions({task_id: {}}))
    folders = [one._replace(folder=folder, task_id=task_id) for one in found if one.task_id == task_id or not one.flat]
    folders = folders or [TaskFolder(folder, path, task_id, False)]
    tasks = known_tasks(folders, [UNNAMED] * len(folders), sources, logs["task_start"].to_numpy(), definitions)
    runs, agents = combine(tasks, logs, scale)

    outcomes_of: dict[int, list[AgentOutcome]] = {run: [] for run in runs.index}
    rows = logs.to_pylist()
    for log in agents.to_dict("records"):
        outcome = agent_outcome(sources[log["place"]], rows[log["place"]])
        outcome["agent_name"], outcome["repetition"] = log["agent_name"], log["repetition"]
        outcome["flags"] += ["stale_copy"] * log["flag_stale_copy"]
        outcomes_of[log["run"]].append(outcome)
    outcomes = []
    for number, run in enumerate(runs.to_dict("records")):
        raw, score = run["overall_raw_score"], run["overall_score"]
        own = {
            **run,
            "task_id": task_id,
            "model_name": None,
            "overall_raw_score": None if math.isnan(raw) else raw,
            "overall_score": None if math.isnan(score) else score,
            "overall_completion_status": CompletionStatus(run["overall_completion_status"]),
            "agent_outcomes": outcomes_of[number],
            "task_definition_metrics": metrics_of(definition or {}),
            "definition_file": (definition or {}).get("definition_file"),
            "facts": tasks[run["task"]].task.facts,
            "flags": run["run_flags"],
            "source": folder,
        }
        outcomes.append(cast(TaskOutcome, {name: own[name] for name in TaskOutcome.__annotations__}))
    return outcomes


@paused_gc()
def aggregate_results_to_dataframe(task_outcomes: Iterable[TaskOutcome]) -> pd.DataFrame:
    """Build a frame of task outcomes: one row per run.

    Parameters
    ----------
    task_outcomes : iterable of TaskOutcome
        Or of dictionaries with only task_id, model_name, agent_count, task_type, overall_raw_score,
        overall_is_successful, overall_completion_status, total_agent_logs_found, agent_outcomes (their documented keys)
        and task_definition_metrics; the other columns then hold missing values, and overall_is_completed is whether
        the raw score is above 0.

    Returns
    -------
    DataFrame
        The columns of `table.RUNS`, then one column ``metric_NAME`` for every metric of the definitions: numbers,
        truth values, or text where they are neither (or of several kinds).
    """
    outcomes = list(task_outcomes)
    metrics = metrics_frame([metric_columns(outcome.get("task_definition_metrics") or {}) for outcome in outcomes])
    runs = frame(map(_row, outcomes), RUNS)
    return runs if metrics.columns.empty else runs.join(metrics)


def _row(outcome: TaskOutcome) -> dict[str, Any]:
    """Return the row of one outcome."""
    logs, facts, flags = outcome.get("agent_outcomes") or [], outcome.get("facts") or {}, outcome.get("flags") or []
    raw, source, repetition = outcome.get("overall_raw_score"), outcome.get("source"), outcome.get("repetition")
    completed = outcome.get("overall_is_completed", (raw or 0) > 0)
    keys = [absolute(source or ""), outcome["task_id"], repetition or 0]
    spoken = [log for log in logs if log.get("final_system_message")]
    first = [log for log in spoken if log["completion_status"] == outcome["overall_completion_status"]] or spoken
    starts = [start for log in logs if (start := log.get("task_start"))]
    counts = {column.name: _count(logs, column.name) for column in COUNT_COLUMNS}
    is_unmeasured = OUTCOMES[outcome["overall_completion_status"]] == "not measured"
    return {
        **facts,
        **outcome,
        **counts,
        **{f"flag_{name}": name in flags for name in FLAGS},
        "run_id": run_ids("mindcraft", *([key] for key in keys))[0],
        "kind": "mindcraft",
        "status": outcome["overall_completion_status"],
        "score": outcome.get("overall_score"),
        "is_successful": None if raw is None and is_unmeasured else outcome["overall_is_successful"],
        "success_rate": None if raw is None and is_unmeasured else float(outcome["overall_is_successful"]),
        "started": min(starts, default=None),
        "turns": counts["message_count"],
        "run_flags": flags,
        "overall_is_completed": completed,
        "final_system_message": first[0]["final_system_message"] if first else None,
        "parsing_errors": "; ".join(error for log in logs for error in log.get("parsing_errors") or ()),
    }


def _count(logs: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Sum a count over the logs of a run; None where no log has it."""
    counted = [log.get(name, log.get("events", {}).get(name, 0)) for log in logs if name in log or "events" in log]
    return None if logs and not counted else sum(counted)


def aggregate_results(
    local_folders: Iterable[str | os.PathLike],
    task_definitions: Tasks | None = None,
    *,
    layout: str | None = None,
    scale: Scale = "auto",
    missing: Missing = "keep",
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> pd.DataFrame:
    """Read task-run folders (one task each) as one frame with model names.

    Parameters
    ----------
    local_folders : iterable of paths or URLs
    task_definitions, layout, scale, missing, jobs, storage_options
        As for `load`; `task_definitions` are its `tasks`.

    Returns
    -------
    DataFrame
        One row per run; a repetition is a run of its own, and so is a folder without any log, since it was named.
        `load` counts an empty folder only if it is a task's: by its definition, or by its name beside other runs.

    Raises
    ------
    SourceError
        As `load`, and for a path that is no folder.
    """
    options = {"tasks": task_definitions or (), "layout": layout, "scale": scale, "missing": missing}
    with storage(storage_options):
        named = [resolve(folder) for folder in local_folders]
        folders = {folder if is_url(folder) else os.path.realpath(folder): folder for folder in named}
        for folder in folders.values():
            if not is_url(folder) and not os.path.isdir(folder):
                raise SourceError(f"{folder}: no folder")
        options = KIND.prepare(options)
        paths = list(folders.values())
        records = read_records(KIND, paths, recursive=False, jobs=jobs) if paths else no_records(KIND)
        return assemble(records, options, all_folders=True).frames["runs"]
