"""ATIF: the steps of an agent, with what it read, called and was told.

Facts from the trajectory models of harbor 0.25, for ATIF 1.0 to 1.8.
"""

import posixpath
from collections.abc import Callable
from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.format import (
    Call,
    Message,
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

_TOKENS = {"tokens_in": "prompt_tokens", "tokens_cache": "cached_tokens", "tokens_out": "completion_tokens"}
_ROLES = {"agent": "assistant", "user": "user", "system": "system"}
MOST_NESTED = 8  # subagents of subagents that are shown


def recognises(value: Any) -> str:
    """Return ``ATIF trajectory`` for a decoded trajectory; empty for anything else."""
    return "ATIF trajectory" if text_of(part_of(value, "schema_version")).startswith("ATIF-") else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trajectory; nothing in it says the task or a score, so its name stands for the task."""
    steps = own_steps(value)
    metrics, final = [part_of(step, "metrics") for step in steps], part_of(value, "final_metrics")
    usage = {}
    for column, key in _TOKENS.items():
        stated = count_of(part_of(final, f"total_{key}"))
        usage[column] = stated if stated is not None else count_of(total(count_of(part_of(m, key)) for m in metrics))
    cost = number_of(part_of(final, "total_cost_usd"))
    times = [step["timestamp"] for step in steps if isinstance(step.get("timestamp"), str)]
    models = [model for step in steps if (model := step.get("model_name"))]
    folder, name = posixpath.split(path.replace("\\", "/"))
    task = name.removesuffix(".json").removesuffix(".trajectory")
    run = run_row(
        format="atif",
        task_id=posixpath.basename(folder.removesuffix("/agent")) if task == "trajectory" else task,
        model_name=part_of(value, "agent", "model_name") or (models[0] if models else None),
        agent=part_of(value, "agent", "name"),
        agent_version=text_of(part_of(value, "agent", "version")) or None,
        started=time_of(times[0]) if times else None,
        duration=seconds_between(times[0], times[-1]) if times else None,
        turns=sum(step.get("source") == "agent" for step in steps),
        cost=cost if cost is not None else total(number_of(part_of(m, "cost_usd")) for m in metrics),
        continues=text_of(value.get("continued_trajectory_ref")) or None,
        **usage,
    )
    return used([run])


def own_steps(value: Any) -> list[dict[str, Any]]:
    """Return the steps of a trajectory without those it copied from the one it goes on from."""
    steps = part_of(value, "steps")
    steps = steps if isinstance(steps, list) else []
    return [step for step in steps if isinstance(step, dict) and not step.get("is_copied_context")]


def messages(value: Any, read: Callable[[str], Any], depth: int = 0) -> list[Message]:
    """List the messages of a trajectory, those of subagents in their place, and those of the files it goes on in."""
    agent = text_of(part_of(value, "agent", "name"))
    nested = {
        text_of(sub.get("trajectory_id") or sub.get("session_id")): sub
        for sub in part_of(value, "subagent_trajectories") or ()
        if isinstance(sub, dict)
    }
    out: list[Message] = []
    for step in own_steps(value):
        results = part_of(step, "observation", "results")
        results = [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []
        by_call = {result.get("source_call_id"): result for result in results}
        calls = []
        for call in step.get("tool_calls") or ():
            result = by_call.pop(part_of(call, "tool_call_id"), None)
            text = None if result is None else content_text(result.get("content"))
            name, arguments = text_of(part_of(call, "function_name")), text_of(part_of(call, "arguments"))
            calls.append(Call(name, arguments, text_of(part_of(call, "tool_call_id")), text))
        out.append(
            Message(
                _ROLES.get(text_of(step.get("source")), "user"),
                content_text(step.get("message")),
                agent if step.get("source") == "agent" else "",
                text_of(step.get("reasoning_content")),
                tuple(calls),
                text_of(step.get("timestamp")),
                count_of(part_of(step, "metrics", "prompt_tokens")),
                count_of(part_of(step, "metrics", "completion_tokens")),
                number_of(part_of(step, "metrics", "cost_usd")),
            )
        )
        out += [Message("tool", text) for rest in by_call.values() if (text := content_text(rest.get("content")))]
        for reference in (ref for result in results for ref in result.get("subagent_trajectory_ref") or ()):
            key = part_of(reference, "trajectory_id") or part_of(reference, "session_id")
            path = part_of(reference, "trajectory_path")
            sub = nested.get(text_of(key)) or (read(path) if isinstance(path, str) else None)
            if sub is not None and depth < MOST_NESTED:
                out += messages(sub, read, depth + 1)
    following = part_of(value, "continued_trajectory_ref")
    if isinstance(following, str) and depth < MOST_NESTED and (rest := read(following)) is not None:
        out += messages(rest, read, depth + 1)
    return out
