"""From the logs of a run to its outcome: one score, one status, flags."""

import os
from collections.abc import Iterable
from typing import Any, Literal, NotRequired, TypedDict

from evalkit.io import SourceError, absolute, list_source, parse_files, resolve
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.facts import Facts, metrics_of, task_facts
from evalkit.mindcraft.finals import as_fraction, status_of
from evalkit.mindcraft.folders import Trial, group_by_task, split_trials
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.originals import NO_FILES, folder_text
from evalkit.mindcraft.parse import AgentOutcome, parse_file

Scale = Literal["auto", "percent", "fraction"]
NO_TRIAL = [Trial(0, [], "none")]  # a task folder without any log is a run all the same
SCALES = ("auto", "percent", "fraction")


class TaskOutcome(TypedDict):
    """What one run came to; see `extract_task_outcome`."""

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
    legacy: str
    flat_layout: bool
    model_source: NotRequired[str]
    experiment: NotRequired[str]
    experiment_folder: NotRequired[str]
    experiment_total: NotRequired[int | None]
    suite: NotRequired[str | None]
    duration: NotRequired[float | None]


def extract_task_outcome(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> TaskOutcome:
    """Read the logs of one task folder as one outcome.

    Parameters
    ----------
    folder_path : str or path
        The folder of a task run; its name is the task id, unless the definition has one (``task_id``).
    task_definition : dict or None
        None or empty: what can be is read from the id, and `has_definition` is False.
    scale : {"auto", "percent", "fraction"}
        What construction scores are logged in; ``auto``: percent as soon as one of this folder exceeds 1.

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
            A folder alone does not tell; see `aggregate_results`.

        With several repetitions in the folder this is best-of-n, flagged ``repetitions_merged``; see
        `extract_task_outcomes`.

    Raises
    ------
    SourceError
        Where the folder is not there.
    """
    outcomes = extract_task_outcomes(folder_path, task_definition, scale)
    if len(outcomes) == 1:
        return outcomes[0]
    first = outcomes[0]
    merged = Trial(0, [log for outcome in outcomes for log in outcome["agent_outcomes"]], first["repetition_rule"])
    scale = first["score_scale"]  # type: ignore[assignment]  # as decided for the whole folder
    best = run_outcome(first["task_id"], merged, task_definition or None, first["facts"], scale, first["source"])
    best["legacy"] = first["legacy"]
    best["flags"] = [*dict.fromkeys(f for o in outcomes for f in o["flags"]), "repetitions_merged"]
    return best


def extract_task_outcomes(
    folder_path: str | os.PathLike, task_definition: dict[str, Any] | None, scale: Scale = "auto"
) -> list[TaskOutcome]:
    """Read the logs of one task folder as one outcome per repetition; see `extract_task_outcome`."""
    check_scale(scale)
    folder = resolve(folder_path)
    listing = list_source(folder, "*.json", recursive=False)
    if not listing.folders:
        raise SourceError(f"{folder}: no folder")
    definition = task_definition or None
    files = list(parse_files(listing.files, parse_file))
    logs = [file.outcome for file in files if file.outcome is not None]
    task_id = (definition or {}).get("task_id")
    task_id = task_id if isinstance(task_id, str) and task_id else os.path.basename(absolute(folder))
    facts = task_facts(task_id, definition)
    known = TaskDefinitions({task_id: definition or {}})
    runs = [run for run in group_by_task(logs, known) if run.task_id == task_id or not run.flat]
    trials = [trial for run in runs for trial in split_trials(run.logs, facts["agent_count"], run.prefix)]
    trials = trials or NO_TRIAL
    building = facts["task_type"] == "construction"
    scale = common_scale((log["raw_score"] for log in logs if building), scale)
    outcomes = [run_outcome(task_id, trial, definition, facts, scale, folder) for trial in trials]
    legacy = folder_text(tuple(file.legacy for file in files if file.source.endswith(".json")))
    for outcome in outcomes:
        outcome["legacy"] = legacy
    return outcomes


def check_scale(scale: str) -> None:
    """Refuse a scale that is none."""
    if scale not in SCALES:
        raise ValueError(f"scale {scale!r}: one of {', '.join(SCALES)}")


def common_scale(scores: Iterable[float | None], scale: Scale) -> Scale:
    """Decide the scale of all construction scores that are read together: percent as soon as one exceeds 1."""
    if scale == "auto" and any(score is not None and score > 1 for score in scores):
        return "percent"
    return scale


def run_outcome(
    task_id: str, trial: Trial, definition: dict[str, Any] | None, facts: Facts, scale: Scale, source: str
) -> TaskOutcome:
    """Put the logs of one run together; `scale` as `common_scale` decided."""
    logs = trial.logs
    raw = max([log["raw_score"] for log in logs if log["raw_score"] is not None], default=None)
    used, score, flags = normalise(raw, facts["task_type"], scale)
    timed_out = any(log["timed_out"] for log in logs)
    status = status_of(raw, score, timed_out)
    if status == CompletionStatus.NO_SCORE_LOGGED and logs and not any(log["agent_log_processed"] for log in logs):
        status = CompletionStatus.LOG_FILE_ERROR
    return {
        "task_id": task_id,
        "model_name": None,
        "agent_count": facts["agent_count"] or len({log["agent_name"] for log in logs}),
        "task_type": facts["task_type"],
        "overall_raw_score": raw,
        "overall_score": score,
        "overall_is_successful": score == 1,
        "overall_is_completed": score is not None and score > 0,
        "overall_completion_status": status,
        "score_scale": used,
        "total_agent_logs_found": len(logs),
        "agent_outcomes": logs,
        "task_definition_metrics": metrics_of(definition or {}),
        "repetition": trial.repetition,
        "repetition_rule": trial.rule,
        "has_definition": definition is not None,
        "definition_file": (definition or {}).get("definition_file"),
        "facts": facts,
        "flags": flags + _run_flags(logs, facts),
        "source": source,
        "legacy": NO_FILES,
        "flat_layout": False,
    }


def normalise(raw: float | None, task_type: str, scale: Scale) -> tuple[str, float | None, list[str]]:
    """Bring a raw score to 0..1.

    Returns
    -------
    scale : str
        The one used.
    score : float or None
        None where there is none, or where it is out of range (flag ``score_out_of_range``).
    flags : list of str
    """
    flags = []
    if task_type == "construction":
        used = "fraction" if scale == "auto" else scale
        flags += ["scale_assumed"] * (scale == "auto" and bool(raw))
        score = None if raw is None else raw / 100 if used == "percent" else raw
    elif task_type == "unknown":
        used, score = "unknown", as_fraction(raw)
    else:
        used, score = "binary", raw
    if raw is not None and (score is None or not 0 <= score <= 1):
        return used, None, [*flags, "score_out_of_range"]
    return used, score, flags


def _run_flags(logs: list[AgentOutcome], facts: Facts) -> list[str]:
    own = dict.fromkeys([flag for log in logs for flag in log["flags"] if flag != "score_out_of_range"])
    scores = {log["raw_score"] for log in logs} - {None}
    if len(scores) > 1 or (any(scores) and any(log["timed_out"] for log in logs)):
        own["conflicting"] = None
    if "quoted_only" in own and any(log["final_system_message"] for log in logs):
        del own["quoted_only"]
    found, agent_count = len({log["agent_name"] for log in logs}), facts["agent_count"]
    flags = list(own)
    if facts["facts_source"] == "id" and facts["task_type"] != "unknown":
        flags.append("facts_from_id")
    if not all(log["agent_log_processed"] for log in logs):
        flags.append("unreadable_logs")
    if agent_count is not None and found != agent_count:
        flags.append("missing_agent_logs" if found < agent_count else "extra_agent_logs")
    return flags
