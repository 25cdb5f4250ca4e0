"""Harbor, as defined by version 0.26: the result of a trial, and the result and lock of its job, with the plan."""

import os
from collections import ChainMap, Counter
from collections.abc import Mapping
from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed
from evalkit.trajectories.json_values import count_of, number_of, objects, part_of, text_of, total
from evalkit.trajectories.records import AGENT_FAILED, Figure, Plan, Rows, Runs, run_row, score_rows, used

_USAGE = {
    "tokens_in": "n_input_tokens",
    "tokens_cache": "n_cache_tokens",
    "tokens_out": "n_output_tokens",
    "cost": "cost_usd",
}
_OF_MANY_RUNS = ("table", "inspect_ai", "tau2-bench", "lm-eval", "OpenHands")  # formats with many runs in a file
_TOTALS = ("turns", "tokens_in", "tokens_cache", "tokens_out", "cost")  # columns with totals over a trajectory
_MULTIPLIERS = ("timeout_multiplier", "agent_timeout_multiplier")
_MOST_FILES = 100  # files in a chain of continued trajectories


def recognises(value: Any) -> str:
    """Return the title of the result of a trial or a job, or of a job's lock; empty for anything else."""
    keys = value.keys() if isinstance(value, dict) else set()
    if {"task_name", "trial_name"} <= keys:
        return "Harbor trial result"
    if {"n_concurrent_trials", "trials"} <= keys:
        return "Harbor job lock"
    return "Harbor job result" if {"n_total_trials", "stats"} <= keys else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trial, or the plan of a job."""
    if "trials" in value:  # read only names from a lock, which may contain credentials
        planned = Counter(
            (text_of(part_of(trial, "task", "name")), text_of(part_of(trial, "agent", "model_name")))
            for trial in objects(value, "trials")
        )
        return used(plans=[Plan(model or None, None, task, planned=n) for (task, model), n in planned.items()])
    if "trial_name" not in value:
        trials, retried = count_of(value.get("n_total_trials")), count_of(part_of(value, "stats", "n_retries"))
        published: list[Figure] = []
        for name, one in (part_of(value, "stats", "evals") or {}).items():  # the name is AGENT__MODEL__DATASET
            agent, *model = name.split("__")[:-1]
            rates = {f"pass@{k}": rate for k, rate in (part_of(one, "pass_at_k") or {}).items()}
            for metric, rate in ChainMap(rates, *objects(one, "metrics")).items():
                n = count_of(part_of(one, "n_trials"))
                figure = Figure("__".join(model) or None, agent, metric=metric, value=number_of(rate), n=n)
                published.append(figure)
        plans = [Plan(planned=trials, retried=retried)] if trials or retried else []
        return used(plans=plans, published=published)
    parts = [value, *objects(value, "step_results")]
    error = min(_errors(parts), key=_is_measured, default={})
    status = error.get("exception_type") or ("completed" if value.get("finished_at") else "running")
    if error and _is_measured(error) != (status in AGENT_FAILED):  # the policy in the file differs from AGENT_FAILED
        status = "completed" if _is_measured(error) else "reward_not_valid"
    multipliers = {name: part_of(value, "config", name) for name in _MULTIPLIERS}
    agent, model = part_of(value, "agent_info"), part_of(value, "agent_info", "model_info")
    names = [text_of(part_of(model, key)) for key in ("provider", "name")]
    run = run_row(
        format="harbor",
        log_id=value.get("id"),
        experiment=part_of(value, "config", "job_id"),
        task_id=value.get("task_name"),
        dataset=value.get("source"),
        task_checksum=value.get("task_checksum"),
        model_name="/".join(filter(None, names)) or part_of(value, "config", "agent", "model_name"),
        agent=part_of(agent, "name") or part_of(value, "config", "agent", "name"),
        agent_version=part_of(agent, "version"),
        temperature=part_of(value, "config", "agent", "kwargs", "temperature"),
        exit_reason=error.get("exception_type"),
        status=status,
        started=value.get("started_at"),
        ended=value.get("finished_at"),
        error=error.get("exception_message"),
        limits=", ".join(f"{name} {n:g}" for name, n in multipliers.items() if isinstance(n, float) and n != 1),
        extra={"steps": [step.get("step_name") for step in parts[1:]]} if parts[1:] else None,
        **{name: total(part_of(part, "agent_result", key) for part in parts) for name, key in _USAGE.items()},
    )
    own, last = (part_of(part, "verifier_result", "rewards") for part in (value, parts[-1]))
    version = value.get("schema_version", 1)
    return used(
        [run],
        score_rows("", own or last),
        reason="" if version == 1 else f"schema_version {text_of(version)} is unknown",
    )


def _is_measured(error: Mapping[str, Any]) -> bool:
    """Return whether the reward of a trial with an error is valid: as stated since 0.26, else if the agent failed."""
    stated = part_of(error, "policy", "has_valid_reward")
    return stated if isinstance(stated, bool) else error.get("exception_type") in AGENT_FAILED


def messages(value: Any, part: str, open_named: OpenNamed) -> list[Message]:
    """List the errors and rewards that the result of a trial adds to its trajectory."""
    parts, spoken = [value, *objects(value, "step_results")], list[Message]()
    for error in _errors(parts):
        spoken.append(Message("error", f"{error.get('exception_type')}: {text_of(error.get('exception_message'))}"))
    for one in parts:
        for key, reward in (part_of(one, "verifier_result", "rewards") or {}).items():
            spoken.append(Message("system", f"{key} = {text_of(reward)}", "verifier"))
    return spoken


def _errors(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [error for part in parts if isinstance(error := part.get("exception_info"), dict)]


def join(runs: Runs, facts: Rows, published: Rows) -> None:
    """Merge trajectories into their trials, and continuations into the first trajectory. Each run then counts once."""
    if not any(run.format in ("atif", "harbor") for run in runs):
        return
    run_of = {run.source: run for run in runs if run.format not in _OF_MANY_RUNS}
    joined = set[str]()
    for fact in facts:
        if fact["fact"] == "subagent" and fact["source"] not in joined:
            joined |= _named_files(fact["source"], fact["value"]) - {fact["source"]}
    before: dict[str, str] = {}  # by trajectory file: the file that it continues
    for source, run in run_of.items():
        if run.continues:
            before |= dict.fromkeys(_named_files(source, run.continues), source)
    for source in sorted(before.keys() & run_of.keys()):
        first = source
        for _ in range(_MOST_FILES):
            first = before.get(first, first)
        if first in before:
            continue  # the files continue each other in a circle
        joined.add(source)
        for column in _TOTALS:
            own, later = getattr(run_of[first], column), getattr(run_of[source], column)
            if own is not None and later is not None:
                states_all = later > own and column != "turns"  # a later file states totals of all files or of itself
                setattr(run_of[first], column, later if states_all else own + later)
    trials = {os.path.dirname(source): run for source, run in run_of.items() if run.format == "harbor"}
    others = {(run.format != "atif", run.source) for run in runs if run.format != "harbor"}
    for is_other, source in sorted(others):
        trial = nearest_above(source, trials)
        if source in joined or trial is None:
            continue
        joined.add(source)
        if source in run_of and not (is_other and trial.trajectories):
            trial.trajectories.append(source)
            for column in ("model_name", *_TOTALS):
                if getattr(trial, column) is None:
                    setattr(trial, column, getattr(run_of[source], column))
    for run in runs:
        run.is_left_out = run.is_left_out or run.source in joined


def _named_files(source: str, name: str) -> set[str]:
    """Return the possible paths of a file that a trajectory names: in its folder, with or without the run's prefix."""
    folder, own = os.path.split(source)
    return {os.path.join(folder, before + os.path.basename(name)) for before in ("", own.partition("trajectory.")[0])}


def nearest_above(path: str, by_folder: Mapping[str, Any]) -> Any:
    """Return the item of the nearest folder above a file, or None."""
    folder = os.path.dirname(path)
    while folder not in by_folder and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return by_folder.get(folder)
