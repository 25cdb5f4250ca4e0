"""Outcomes of the runs of one task folder as dictionaries, and the frame of any such outcomes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from evalkit.io import SourceError, absolute, frame, list_source, parse_files, paused_gc, resolve
from evalkit.kinds import run_ids
from evalkit.mindcraft.agent_log import AgentOutcome
from evalkit.mindcraft.format import OUTCOMES, SCALES, CompletionStatus, Scale, check_choice
from evalkit.mindcraft.parse import outcome_of
from evalkit.mindcraft.runs.arrays import COUNTS, STATUSES, LogArrays
from evalkit.mindcraft.runs.combine import Run, TaskRuns, combine, runs_of
from evalkit.mindcraft.runs.frames import metrics_frame
from evalkit.mindcraft.runs.layout import TaskFolder, group_by_task
from evalkit.mindcraft.table import FLAGS, RUNS
from evalkit.mindcraft.tasks.definitions import TaskDefinitions
from evalkit.mindcraft.tasks.facts import Facts, metrics_of, task_facts

if TYPE_CHECKING:
    import pandas as pd


class TaskOutcome(TypedDict):
    """The outcome of one run; see `extract_task_outcome`."""

    task_id: str
    model_name: str | None
    agent_count: int
    task_type: str
    overall_raw_score: float | None
    overall_score: float | None
    overall_is_successful: bool
    overall_is_completed: bool
    overall_completion_status: str
    score_scale: str
    total_agent_logs_found: int
    agent_outcomes: list[AgentOutcome]
    task_definition_metrics: dict[str, Any]
    repetition: int
    repetition_rule: str
    has_definition: bool
    definition_file: str | None
    facts: Facts
    flags: list[str]
    source: str


def extract_task_outcome(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> TaskOutcome:
    """Read the logs of one task folder as one outcome.

    Parameters
    ----------
    folder_path : str or path
        The folder of a task run; its name is the task id, unless the definition has one (``task_id``).
    task_definition : dict or None
        If None or empty, facts are read from the id as far as possible, and `has_definition` is False.
    scale : {"auto", "percent", "fraction"}
        The unit of logged construction scores; ``auto``: percent as soon as one of this folder exceeds 1.

    Returns
    -------
    TaskOutcome
        overall_raw_score : float or None
            The highest score of the agents, as logged.
        overall_score : float or None
            The same from 0 to 1; None where it is out of range.
        overall_is_successful, overall_is_completed : bool
            Score = 1, score > 0; from the score alone, also where a time-out was logged.
        overall_completion_status : str
            TIMED_OUT (any agent) before the best score before NO_SCORE_LOGGED before LOG_FILE_ERROR (all unreadable).
        score_scale : str
            ``percent`` or ``fraction`` for construction, ``binary`` for the rest, ``unknown`` without a type.
        model_name : None
            A folder alone does not name it; see `aggregate_results`.

        With several repetitions in the folder this is best-of-n, flagged ``repetitions_merged``; see
        `extract_task_outcomes`.

    Raises
    ------
    SourceError
        Where the folder is not there.
    """
    tasks, logs = _read(folder_path, task_definition, scale)
    arrays = _arrays_of(logs)
    runs = runs_of(tasks, arrays.sources, arrays.start)
    outcomes = _outcomes(tasks, runs, logs, scale)
    if len(outcomes) == 1:
        return outcomes[0]
    agents = [agent for run in runs for agent in run.repetition.agents]
    places = [place for run in runs for place in run.logs]
    merged = runs[0].repetition._replace(agents=tuple(agents), n_agents=len(set(agents)))
    (best,) = _outcomes(tasks, [Run(0, merged, places)], logs, scale)
    best["agent_outcomes"] = [log for outcome in outcomes for log in outcome["agent_outcomes"]]
    best["flags"] = sorted({flag for outcome in outcomes for flag in outcome["flags"]} | {"repetitions_merged"})
    return best


def extract_task_outcomes(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> list[TaskOutcome]:
    """Read the logs of one task folder as one outcome per repetition; see `extract_task_outcome`."""
    tasks, logs = _read(folder_path, task_definition, scale)
    arrays = _arrays_of(logs)
    return _outcomes(tasks, runs_of(tasks, arrays.sources, arrays.start), logs, scale)


def _read(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale
) -> tuple[list[TaskRuns], list[AgentOutcome]]:
    """Read the logs of one task folder."""
    check_choice("scale", scale, SCALES)
    folder = resolve(folder_path)
    listing = list_source(folder, "*.json", recursive=False)
    if not listing.folders:
        raise SourceError(f"{folder}: no folder")
    definition = task_definition or None
    logs = [outcome for outcome in parse_files(listing.files, outcome_of) if outcome is not None]
    path = absolute(folder)
    task_id = (definition or {}).get("task_id")
    task_id = task_id if isinstance(task_id, str) and task_id else os.path.basename(path)
    known = TaskDefinitions({task_id: definition or {}})
    task_folders = group_by_task([log["source"] for log in logs], known)
    folders = [f._replace(folder=folder, task_id=task_id) for f in task_folders if f.task_id == task_id or not f.flat]
    facts = task_facts(task_id, definition)
    return [TaskRuns(f, definition, facts) for f in folders or [TaskFolder(folder, path, task_id, False, ())]], logs


def _arrays_of(logs: Sequence[AgentOutcome]) -> LogArrays:
    """Return the arrays of a few logs, twice as fast as through a table of their records."""

    def array(name: str, dtype: type) -> np.ndarray:
        return np.array([log.get(name, log["events"].get(name, 0)) for log in logs], dtype)

    digests: dict[str, int] = {"": -1}
    carried = {flag for log in logs for flag in log["flags"]}
    return LogArrays(
        [log["source"] for log in logs],
        array("raw_score", float),
        np.array([STATUSES.index(CompletionStatus(log["completion_status"])) for log in logs], int),
        np.array([log["final_system_message"] is not None for log in logs], bool),
        array("agent_log_processed", bool),
        array("timed_out", bool),
        array("task_start", float),
        np.array([digests.setdefault(log["digest"], len(digests)) for log in logs], int),
        {flag: np.array([flag in log["flags"] for log in logs], bool) for flag in carried},
        {name: array(name, int) for name in COUNTS},
        np.full(len(logs), np.nan),
    )


def _outcomes(
    tasks: Sequence[TaskRuns], runs: Sequence[Run], logs: Sequence[AgentOutcome], scale: Scale
) -> list[TaskOutcome]:
    """Combine the logs of runs; each outcome has its agents."""
    combined = combine(tasks, runs, _arrays_of(logs), scale)
    raws, scores = ([None if v != v else v for v in values.tolist()] for values in (combined.raw_score, combined.score))
    stale = iter(combined.stale.tolist())
    outcomes: list[TaskOutcome] = []
    for i, (run, raw, score) in enumerate(zip(runs, raws, scores, strict=True)):
        task, agents = tasks[run.task], []
        for place, agent in zip(run.logs, run.repetition.agents, strict=True):
            flags = [*logs[place]["flags"], *["stale_copy"] * next(stale)]
            agents.append({**logs[place], "agent_name": agent, "repetition": run.repetition.number, "flags": flags})
        definition = task.definition or {}
        outcomes.append(
            {
                "task_id": task.folder.task_id,
                "model_name": None,
                "agent_count": task.facts["agent_count"] or run.repetition.n_agents,
                "task_type": task.facts["task_type"],
                "overall_raw_score": raw,
                "overall_score": score,
                "overall_is_successful": score == 1,
                "overall_is_completed": score is not None and score > 0,
                "overall_completion_status": STATUSES[combined.status[i]],
                "score_scale": str(combined.scale[i]),
                "total_agent_logs_found": len(agents),
                "agent_outcomes": cast(list[AgentOutcome], agents),
                "task_definition_metrics": metrics_of(definition),
                "repetition": run.repetition.number,
                "repetition_rule": run.repetition.rule,
                "has_definition": task.definition is not None,
                "definition_file": definition.get("definition_file"),
                "facts": task.facts,
                "flags": [name for name, carried in combined.flags.items() if carried[i]],
                "source": task.folder.folder,
            }
        )
    return outcomes


@paused_gc()
def aggregate_results_to_dataframe(task_outcomes: Iterable[TaskOutcome]) -> "pd.DataFrame":
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
    metrics = metrics_frame([outcome.get("task_definition_metrics") or {} for outcome in outcomes])
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
    counts = {name: _count(logs, name) for name in COUNTS}
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
