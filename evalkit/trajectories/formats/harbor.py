"""Harbor: the result of a trial, and that of its job, which says how many trials were planned.

Facts from the models of harbor 0.25.
"""

from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.format import (
    AGENT_FAILED,
    content_text,
    count_of,
    number_of,
    part_of,
    run_row,
    seconds_between,
    text_of,
    time_of,
    total,
    used,
)

_TOKENS = {"tokens_in": "n_input_tokens", "tokens_cache": "n_cache_tokens", "tokens_out": "n_output_tokens"}


def recognises(value: Any) -> str:
    """Return what a decoded file is: the result of a trial or of a job; empty for anything else."""
    keys = value.keys() if isinstance(value, dict) else set()
    if {"task_name", "trial_name"} <= keys:
        return "Harbor trial result"
    return "Harbor job result" if {"n_total_trials", "stats"} <= keys else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trial, or what a job planned."""
    if "trial_name" not in value:
        return used(facts=[("planned", "", "", str(count_of(value["n_total_trials"])))])
    steps = [step for step in value.get("step_results") or () if isinstance(step, dict)]
    results = [value.get("agent_result"), *(step.get("agent_result") for step in steps)]
    usage = {
        column: count_of(total(count_of(part_of(result, key)) for result in results))
        for column, key in _TOKENS.items()
    }
    errors = [error for error in (item.get("exception_info") for item in (value, *steps)) if isinstance(error, dict)]
    # what was not the agent's fault decides: the reward of such a trial is no measurement
    errors.sort(key=lambda error: error.get("exception_type") in AGENT_FAILED)
    error = errors[0] if errors else {}
    agent, model = part_of(value, "agent_info"), part_of(value, "agent_info", "model_info")
    names = [text_of(part_of(model, key)) for key in ("provider", "name")]
    run = run_row(
        format="harbor",
        experiment=text_of(part_of(value, "config", "job_id")) or None,
        task_id=text_of(value.get("task_name")),
        dataset=text_of(value.get("source")) or None,
        task_checksum=text_of(value.get("task_checksum")) or None,
        model_name="/".join(filter(None, names)) or part_of(value, "config", "agent", "model_name"),
        agent=part_of(agent, "name") or part_of(value, "config", "agent", "name"),
        agent_version=text_of(part_of(agent, "version")) or None,
        exit_reason=text_of(error.get("exception_type")) or None,
        status=text_of(error.get("exception_type")) or ("completed" if value.get("finished_at") else "running"),
        started=time_of(value.get("started_at")),
        duration=seconds_between(value.get("started_at"), value.get("finished_at")),
        cost=total(number_of(part_of(result, "cost_usd")) for result in results),
        error=text_of(error.get("exception_message")) or None,
        **usage,
    )
    rewards = part_of(value, "verifier_result", "rewards") or part_of((steps or [{}])[-1], "verifier_result", "rewards")
    rewards = rewards if isinstance(rewards, dict) else {}
    return used([run], [("", key, number_of(reward), content_text(reward)) for key, reward in rewards.items()])
