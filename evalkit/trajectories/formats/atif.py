"""ATIF 1.0 to 1.8, as defined by Harbor 0.25: the steps of an agent, with messages and tool calls."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_values import number_of, objects, part_of, text_of, total
from evalkit.trajectories.records import Fact, run_row, used

_USAGE = {  # keys in the metrics of a step; totals of a trajectory have the prefix `total_`
    "tokens_in": "prompt_tokens",
    "tokens_cache": "cached_tokens",
    "tokens_out": "completion_tokens",
    "cost": "cost_usd",
}
_VERSION = re.compile(r"ATIF-v1\.[0-8]")
MOST_NESTED = 8  # maximum depth of subagents and continuations to show


def recognises(value: Any) -> str:
    """Return ``ATIF trajectory`` for a decoded trajectory or a list of trajectories; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    return "ATIF trajectory" if text_of(part_of(first, "schema_version")).startswith("ATIF-") else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the runs of one or several trajectories, and as facts the files that they name as subagents."""
    several = [(one, str(at)) for at, one in enumerate(value)] if isinstance(value, list) else [(value, "")]
    named = [{text_of(ref.get("trajectory_path")) for step in _steps(one) for ref in _refs(step)} for one, _ in several]
    facts = [Fact("subagent", value=file) for files in named for file in sorted(files) if file]
    versions = Counter(text_of(one["schema_version"]) for one, _ in several)
    doubts = [f"schema_version {name} is unknown ({n})" for name, n in versions.items() if not _VERSION.fullmatch(name)]
    return used([_run(path, one, part) for one, part in several], facts=facts, reason=", ".join(doubts))


def _run(path: str, value: Any, part: str) -> tuple:
    """Return the run of one trajectory, which has no score. Its file or folder names the task."""
    steps, own_id = _steps(value), _id(value)
    usage = {}
    for column, key in _USAGE.items():
        stated = number_of(part_of(value, "final_metrics", f"total_{key}"))
        usage[column] = stated if stated is not None else total(part_of(step, "metrics", key) for step in steps)
    times = [step["timestamp"] for step in steps if step.get("timestamp")] or [None]
    models = [step["model_name"] for step in steps if step.get("model_name")] or [None]
    folder, name = posixpath.split(path.replace("\\", "/"))
    task = name.removesuffix(".json").removesuffix(".trajectory")
    if task == "trajectory":
        task = posixpath.basename(folder.removesuffix("/agent"))
    return run_row(
        format="atif",
        part=part,
        log_id=own_id,
        task_id=own_id if part else task,
        model_name=part_of(value, "agent", "model_name") or models[0],
        agent=part_of(value, "agent", "name"),
        agent_version=part_of(value, "agent", "version"),
        temperature=part_of(value, "agent", "extra", "temperature"),  # written by Terminus
        started=times[0],
        ended=times[-1],
        turns=sum(step.get("source") == "agent" for step in steps),
        continues=value.get("continued_trajectory_ref"),
        extra=value.get("notes") and {"notes": value["notes"]},
        **usage,
    )


def _id(value: dict[str, Any]) -> str:
    return text_of(value.get("trajectory_id") or value.get("session_id"))


def _steps(value: Any) -> list[dict[str, Any]]:
    """Return the steps of a trajectory, except steps copied from the trajectory that it continues."""
    return [step for step in objects(value, "steps") if not step.get("is_copied_context")]


def _refs(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the references in a step to trajectories of subagents."""
    for result in objects(step.get("observation"), "results"):
        yield from objects(result, "subagent_trajectory_ref")


def messages(value: Any, part: str, open_named: OpenNamed, depth: int = 0) -> list[Message]:
    """List the messages of a trajectory and of its continuations. Subagents follow the step that started them."""
    value = value[int(part)] if isinstance(value, list) else value
    agent, nested = part_of(value, "agent", "name"), {_id(sub): sub for sub in objects(value, "subagent_trajectories")}
    out: list[Message] = []
    for step in _steps(value):
        is_agent, metrics = step.get("source") == "agent", step.get("metrics")
        message = {
            "role": "assistant" if is_agent else step.get("source"),
            "name": agent if is_agent else "",
            "content": step.get("message"),
            "reasoning_content": step.get("reasoning_content"),
            "tool_calls": step.get("tool_calls"),
            "timestamp": step.get("timestamp"),
            "usage": metrics,
            "cost": part_of(metrics, "cost_usd"),
        }
        answers = [
            {"role": "tool", "tool_call_id": result.get("source_call_id"), "content": result.get("content")}
            for result in objects(step.get("observation"), "results")
        ]
        out += [one for one in chat_messages([message, *answers]) if one.text or one.role != "tool"]
        for ref in _refs(step):
            path = ref.get("trajectory_path")
            sub = nested.pop(_id(ref), None) or (open_named(path) if isinstance(path, str) else None)
            if sub is not None and depth < MOST_NESTED:
                out += messages(sub, part, open_named, depth + 1)
    following = value.get("continued_trajectory_ref")
    if isinstance(following, str) and depth < MOST_NESTED and (later := open_named(following)) is not None:
        out += messages(later, part, open_named, depth + 1)
    return out
