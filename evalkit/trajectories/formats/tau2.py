"""tau2-bench: simulations of an agent and a user, in one file, or in a folder with one file for each.

Facts from the data models of sierra-research/tau2-bench.
"""

from collections.abc import Iterable
from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.format import (
    Message,
    chat_messages,
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

_KEYS = {"task_id", "termination_reason", "reward_info"}


def recognises(value: Any) -> str:
    """Return what a decoded file is: results, or a single simulation; empty for anything else."""
    if part_of(value, "info", "agent_info") is not None and part_of(value, "info", "num_trials") is not None:
        return "tau2-bench results"
    return "tau2-bench simulation" if isinstance(value, dict) and value.keys() >= _KEYS else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the runs of results or of a simulation, and how many were planned."""
    if "info" not in value:
        return used([_run({}, value)], _scores(value))
    info, simulations = value["info"], _simulations(value)
    trials, tasks = count_of(info.get("num_trials")), value.get("tasks")
    facts = [("info", "", "", text_of(_shared(info)))]
    if trials and isinstance(tasks, list) and tasks:
        facts.append(("planned", "", "", str(trials * len(tasks))))
    runs = [_run(_shared(info), simulation) for simulation in simulations]
    return used(runs, [score for simulation in simulations for score in _scores(simulation)], facts)


def messages(value: Any, part: str) -> list[Message]:
    """List the messages of a simulation."""
    for simulation in _simulations(value) if "info" in value else [value]:
        if "info" not in value or text_of(simulation.get("id")) == part:
            if simulation.get("messages"):
                return chat_messages(simulation["messages"])
            return [message for tick in simulation.get("ticks") or () for message in _of_tick(tick)]
    return []


def _shared(info: dict[str, Any]) -> dict[str, Any]:
    """Return what all simulations of a file have in common, as columns of runs."""
    limits = {key: info[key] for key in ("max_steps", "max_errors") if info.get(key) is not None}
    return {
        "model_name": text_of(part_of(info, "agent_info", "llm")) or None,
        "agent": text_of(part_of(info, "agent_info", "implementation")) or None,
        "agent_version": text_of(info.get("git_commit")) or None,
        "dataset": text_of(part_of(info, "environment_info", "domain_name")) or None,
        "limits": ", ".join(f"{key}={value}" for key, value in limits.items()) or None,
        "temperature": number_of(part_of(info, "agent_info", "llm_args", "temperature")),
    }


def _simulations(value: Any) -> list[dict[str, Any]]:
    found = value.get("simulations")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _run(shared: dict[str, Any], simulation: dict[str, Any]) -> tuple:
    usage, duration = simulation.get("agent_usage"), number_of(simulation.get("duration"))
    written = simulation.get("messages") or ()
    reason = text_of(simulation.get("termination_reason"))
    costs = [number_of(simulation.get(key)) for key in ("agent_cost", "user_cost")]
    return run_row(
        **shared,
        part=text_of(simulation.get("id")),
        format="tau2-bench",
        task_id=text_of(simulation.get("task_id")),
        repetition=count_of(simulation.get("trial")),
        seed=text_of(simulation.get("seed")) or None,
        exit_reason=reason or None,
        status=reason or "unknown",
        started=time_of(simulation.get("start_time")),
        duration=duration
        if duration is not None
        else seconds_between(simulation.get("start_time"), simulation.get("end_time")),
        turns=sum(part_of(message, "role") == "assistant" for message in written) or None,
        tokens_in=count_of(part_of(usage, "prompt_tokens")),
        tokens_out=count_of(part_of(usage, "completion_tokens")),
        cost=total(costs),
    )


def _scores(simulation: dict[str, Any]) -> list[tuple]:
    """Return the reward, then what it is made of."""
    info, part = simulation.get("reward_info"), text_of(simulation.get("id"))
    if not isinstance(info, dict):
        return []
    rewards = {"reward": info.get("reward"), **(info.get("reward_breakdown") or {})}
    return [(part, key, number_of(reward), content_text(reward)) for key, reward in rewards.items()]


def _of_tick(tick: Any) -> Iterable[Message]:
    """Return what was said in a moment of a spoken simulation."""
    for key, role in (("user_chunk", "user"), ("agent_chunk", "assistant")):
        if isinstance(chunk := part_of(tick, key), dict):
            yield from chat_messages([{"role": role, **chunk}])
