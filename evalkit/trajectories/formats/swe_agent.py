"""SWE-agent and mini-swe-agent: trajectories, predictions that name their models, and SWE-bench's reports.

Facts from mini-swe-agent 1 and 2, SWE-agent 1 and the reports of SWE-bench. A trajectory holds no score: it stands in a
report, and without one a run has no outcome.
"""

import posixpath
from typing import Any

import msgspec

from evalkit.kinds import Parsed
from evalkit.trajectories.format import (
    Call,
    Message,
    chat_messages,
    content_text,
    count_of,
    number_of,
    part_of,
    run_row,
    text_of,
    time_of,
    total,
    used,
)

_VERDICTS = {  # lists of a report, and the status of the runs of these tasks; the first that names a task counts
    "resolved_ids": "resolved",
    "error_ids": "error",
    "empty_patch_ids": "empty_patch",
    "unresolved_ids": "unresolved",
    "incomplete_ids": "incomplete",
}


def recognises(value: Any) -> str:
    """Return what a decoded file is: a trajectory, predictions, or a report; empty for anything else."""
    if not isinstance(value, dict):
        return ""
    keys = value.keys()
    if text_of(value.get("trajectory_format")).startswith("mini-swe-agent"):
        return "mini-swe-agent trajectory"
    if "messages" in keys and isinstance(info := value.get("info"), dict) and info.keys() & {"model_stats", "mini_version"}:
        return "mini-swe-agent trajectory"
    if _items(value, "trajectory", {"action", "observation"}) or _items(value, "history", {"role", "agent"}):
        return "SWE-agent trajectory"
    if "resolved_ids" in keys and keys & {"unresolved_ids", "completed_ids", "submitted_ids"}:
        return "SWE-bench report"
    first = next(iter(value.values()), None)
    if isinstance(first, dict) and "model_patch" in first:
        return "SWE-bench predictions"
    is_report = isinstance(first, dict) and "resolved" in first and first.keys() & {"patch_exists", "tests_status"}
    return "SWE-bench report" if is_report else ""


def is_bare(path: str, value: Any) -> bool:
    """Return whether a decoded file is a trajectory of mini-swe-agent 1: a bare list of messages, known by its name."""
    return path.endswith(".traj.json") and isinstance(value, list) and all(part_of(item, "role") for item in value)


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trajectory, or what other files say of runs."""
    title = "mini-swe-agent trajectory" if is_bare(path, value) else recognises(value)
    name = posixpath.basename(path.replace("\\", "/"))
    if title == "SWE-bench predictions":
        models = {task: text_of(part_of(item, "model_name_or_path")) for task, item in value.items()}
        return used(facts=[("model", task, "", model) for task, model in models.items() if model])
    if title == "SWE-bench report":
        model = name.rpartition(".")[0].rpartition(".")[0]  # <model>.<run>.json
        return used(facts=[("outcome", task, model, verdict) for task, verdict in _verdicts(value).items()])
    info = value.get("info") if isinstance(value, dict) and isinstance(value.get("info"), dict) else {}
    stats, is_mini = info.get("model_stats"), title.startswith("mini")
    spoken = messages(value)
    cost = number_of(part_of(stats, "instance_cost"))
    reason = text_of(info.get("exit_status"))
    task = name.removesuffix(".json").removesuffix(".traj")
    run = run_row(
        format="mini-swe-agent" if is_mini else "SWE-agent",
        task_id=text_of(value.get("instance_id") if isinstance(value, dict) else "") or task,
        model_name=text_of(part_of(info, "config", "model", "model_name") or _replayed(value)) or None,
        agent="mini-swe-agent" if is_mini else "SWE-agent",
        agent_version=text_of(info.get("mini_version") or info.get("swe_agent_version")) or None,
        exit_reason=reason or None,
        status=reason.replace(" ", "_") or "completed",
        started=time_of(spoken[0].when) if spoken and spoken[0].when else None,
        turns=count_of(part_of(stats, "api_calls")) or sum(message.role == "assistant" for message in spoken),
        tokens_in=count_of(part_of(stats, "tokens_sent")),
        tokens_out=count_of(part_of(stats, "tokens_received")),
        cost=cost if cost is not None else total(message.cost for message in spoken),
        limits=_limits(info),
    )
    return used([run])


def messages(value: Any) -> list[Message]:
    """List the messages of a trajectory."""
    if isinstance(value, list):
        return chat_messages(value)
    if "messages" in value:
        return chat_messages(value["messages"])
    if steps := _items(value, "trajectory", {"action", "observation"}):
        opening = [Message(item["role"], content_text(item.get("content"))) for item in _opening(value)]
        return opening + [_of_step(step) for step in steps]
    return chat_messages(value.get("history"))


def _opening(value: Any) -> list[dict[str, Any]]:
    """Return what the agent was told before its first step."""
    history = [item for item in value.get("history") or () if part_of(item, "role") and not item.get("is_demo")]
    first = next((at for at, item in enumerate(history) if item["role"] == "assistant"), len(history))
    return history[:first]


def _of_step(step: dict[str, Any]) -> Message:
    thought, action = text_of(step.get("thought")), text_of(step.get("action"))
    call = Call("shell", action, "", text_of(step.get("observation")))
    return Message("assistant", thought or text_of(step.get("response")), calls=(call,) if action else ())


def _items(value: dict[str, Any], key: str, keys: set[str]) -> list[dict[str, Any]]:
    """Return a list of objects that all have certain keys; empty for anything else."""
    items = value.get(key)
    fits = isinstance(items, list) and all(isinstance(item, dict) and item.keys() >= keys for item in items)
    return items if fits and isinstance(items, list) else []


def _verdicts(report: dict[str, Any]) -> dict[str, str]:
    """Return the status of each task of a report, of all runs of a model or of one."""
    if "resolved_ids" not in report:
        return {task: "resolved" if part_of(item, "resolved") else "unresolved" for task, item in report.items()}
    verdicts: dict[str, str] = {}
    for key, verdict in _VERDICTS.items():
        for task in report.get(key) or ():
            verdicts.setdefault(text_of(task), verdict)
    return verdicts


def _replayed(value: Any) -> Any:
    """Return the model of SWE-agent's own configuration, which stands in its trajectory as text."""
    config = part_of(value, "replay_config")
    if isinstance(config, str):
        try:
            config = msgspec.json.decode(config)
        except msgspec.DecodeError:
            return None
    return part_of(config, "agent", "model", "name")


def _limits(info: dict[str, Any]) -> str | None:
    agent = part_of(info, "config", "agent")
    names = [name for name in ("step_limit", "cost_limit", "wall_time_limit_seconds") if part_of(agent, name)]
    return ", ".join(f"{name}={part_of(agent, name)}" for name in names) or None
