"""Harbor, by the models of its 0.25: the result of a trial, and that of its job with its lock, which state a plan."""

from collections import Counter
from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed
from evalkit.trajectories.json_values import count_of, objects, part_of, text_of, total
from evalkit.trajectories.records import AGENT_FAILED, run_row, score_rows, used

_USAGE = {
    "tokens_in": "n_input_tokens",
    "tokens_cache": "n_cache_tokens",
    "tokens_out": "n_output_tokens",
    "cost": "cost_usd",
}


def recognises(value: Any) -> str:
    """Return what a decoded file is: the result of a trial, or of a job, or its lock; else empty."""
    keys = value.keys() if isinstance(value, dict) else set()
    if {"task_name", "trial_name"} <= keys:
        return "Harbor trial result"
    if {"n_concurrent_trials", "trials"} <= keys:
        return "Harbor job lock"
    return "Harbor job result" if {"n_total_trials", "stats"} <= keys else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trial, or what a job planned."""
    if "trials" in value:  # only names are read of a lock, which may hold keys
        planned = Counter(
            (text_of(part_of(trial, "task", "name")), text_of(part_of(trial, "agent", "model_name")))
            for trial in objects(value, "trials")
        )
        return used(plans=[(model or None, None, task, n, None) for (task, model), n in planned.items()])
    if "trial_name" not in value:
        trials, retried = count_of(value.get("n_total_trials")), count_of(part_of(value, "stats", "n_retries"))
        return used(plans=[(None, None, "", trials, retried)] if trials or retried else [])
    parts = [value, *objects(value, "step_results")]
    # an error that is not the agent's comes first: the reward of such a trial is no measurement
    error = min(_errors(parts), key=lambda error: error.get("exception_type") in AGENT_FAILED, default={})
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
        status=error.get("exception_type") or ("completed" if value.get("finished_at") else "running"),
        started=value.get("started_at"),
        ended=value.get("finished_at"),
        error=error.get("exception_message"),
        extra={"steps": [step.get("step_name") for step in parts[1:]]} if parts[1:] else None,
        **{name: total(part_of(part, "agent_result", key) for part in parts) for name, key in _USAGE.items()},
    )
    own, last = (part_of(part, "verifier_result", "rewards") for part in (value, parts[-1]))
    return used([run], score_rows("", own or last))


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
