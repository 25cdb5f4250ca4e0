"""SWE-agent 1, mini-swe-agent 1 and 2: trajectories, predictions (with models), SWE-bench reports (with outcomes)."""

import posixpath
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_values import count_of, number_of, objects, part_of, text_of, total
from evalkit.trajectories.records import Fact, Figure, run_row, used

# statuses, each with a list of tasks in a report, such as `resolved_ids`; if several lists name a task, the last counts
_VERDICTS = ("incomplete", "unresolved", "empty_patch", "error", "resolved")


def recognises(value: Any) -> str:
    """Return the title of a trajectory, a predictions file or a report; empty for anything else."""
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, list):
        items = value
    first = next(iter(items), None)
    if any("model_patch" in one and "resolved" not in one for one in (value, first) if isinstance(one, dict)):
        return "SWE-bench predictions"
    if not isinstance(value, dict):  # mini-swe-agent 1 writes a bare list of messages
        roles = [part_of(item, "role") for item in islice(items, 2)]
        return "mini-swe-agent trajectory" if roles == ["system", "user"] else ""
    keys, info = value.keys(), value.get("info")
    is_mini = "messages" in keys and isinstance(info, dict) and info.keys() & {"model_stats", "mini_version"}
    if is_mini or text_of(value.get("trajectory_format")).startswith("mini-swe-agent"):
        return "mini-swe-agent trajectory"
    has_steps = any({"action", "observation"} <= step.keys() for step in objects(value, "trajectory"))
    has_history = any({"role", "agent"} <= item.keys() for item in objects(value, "history"))
    if has_steps or has_history or {"trajectory", "history", "info"} <= keys:  # last: runs without a step
        return "SWE-agent trajectory"
    is_summary = "results" in keys  # a summary of Terminal-Bench
    if "resolved_ids" in keys and keys & {"unresolved_ids", "completed_ids", "submitted_ids"} and not is_summary:
        return "SWE-bench report"
    is_report = isinstance(first, dict) and "resolved" in first and first.keys() & {"patch_exists", "tests_status"}
    return "SWE-bench report" if is_report else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trajectory, or the facts about runs in another file."""
    title, name = recognises(value), posixpath.basename(path.replace("\\", "/"))
    if title == "SWE-bench predictions":
        tasks = value if isinstance(value, dict) else {text_of(one.get("instance_id")): one for one in value}
        models = {task: text_of(part_of(item, "model_name_or_path")) for task, item in tasks.items()}
        return used(facts=[Fact("model", task, value=model) for task, model in models.items() if model])
    if title == "SWE-bench report":
        model = name.rpartition(".")[0].rpartition(".")[0]  # <model>.<run>.json
        if "resolved_ids" in value:  # the report covers all runs of a model
            verdicts = {text_of(task): verdict for verdict in _VERDICTS for task in value.get(f"{verdict}_ids") or ()}
        else:
            verdicts = {task: "resolved" if part_of(item, "resolved") else "unresolved" for task, item in value.items()}
        resolved, submitted = (number_of(value.get(f"{name}_instances")) for name in ("resolved", "submitted"))
        rate = resolved / submitted if resolved is not None and submitted else None
        published = list[Figure]()
        if rate is not None:
            published.append(Figure(model.replace("__", "/"), metric="resolved", value=rate, n=submitted))
        return used(facts=[Fact("outcome", task, model, one) for task, one in verdicts.items()], published=published)
    spoken, value = messages(value), value if isinstance(value, dict) else {}
    info, is_mini = value.get("info"), title.startswith("mini")
    stats, agent = part_of(info, "model_stats"), part_of(info, "config", "agent")
    cost, reason = number_of(part_of(stats, "instance_cost")), text_of(part_of(info, "exit_status"))
    times = [message.when for message in spoken if message.when] or [""]
    limits = {name: part_of(agent, name) for name in ("step_limit", "cost_limit", "wall_time_limit_seconds")}
    replayed = value.get("replay_config")  # configuration of SWE-agent, often JSON in a string
    with suppress(TypeError, msgspec.DecodeError):
        replayed = msgspec.json.decode(replayed)
    is_stated = isinstance(info, dict) and "submission" in info
    run = run_row(
        format="mini-swe-agent" if is_mini else "SWE-agent",
        task_id=value.get("instance_id") or name.removesuffix(".json").removesuffix(".traj"),
        model_name=part_of(info, "config", "model", "model_name") or part_of(replayed, "agent", "model", "name"),
        agent="mini-swe-agent" if is_mini else "SWE-agent",
        agent_version=part_of(info, "mini_version") or part_of(info, "swe_agent_version"),
        exit_reason=reason,
        status=reason.replace(" ", "_"),
        started=times[0],
        ended=times[-1],
        turns=count_of(part_of(stats, "api_calls")) or sum(message.role == "assistant" for message in spoken),
        tokens_in=part_of(stats, "tokens_sent"),
        tokens_out=part_of(stats, "tokens_received"),
        cost=total(message.cost for message in spoken) if cost is None else cost,
        limits=", ".join(f"{name} {limit}" for name, limit in limits.items() if limit),
        answer_length=len(text_of(info["submission"]).strip()) if is_stated else None,
    )
    return used([run])


def messages(value: Any, part: str = "", open_named: OpenNamed | None = None) -> list[Message]:
    """List the messages of a trajectory."""
    if isinstance(value, list) or "messages" in value:
        return chat_messages(value if isinstance(value, list) else value["messages"])
    history = [item for item in objects(value, "history") if item.get("role") and not item.get("is_demo")]
    if not (steps := objects(value, "trajectory")):
        return chat_messages(history)
    # messages before the first step, then all steps
    first = next((at for at, item in enumerate(history) if item["role"] == "assistant"), len(history))
    chat = history[:first]
    for step in steps:
        chat.append({"role": "assistant", "content": step.get("thought") or step.get("response")})
        if action := step.get("action"):
            chat[-1]["tool_calls"] = [{"name": "shell", "arguments": action}]
            chat.append({"role": "tool", "content": step.get("observation")})
    return chat_messages(chat)
