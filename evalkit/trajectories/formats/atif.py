"""ATIF: the steps of an agent, with what it read, called and was told.

Facts from the trajectory models of harbor 0.25, for ATIF 1.0 to 1.8.
"""

import posixpath
from typing import Any

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Beside, Call, Message, content_text
from evalkit.trajectories.format import run_row, used
from evalkit.trajectories.values import count_of, number_of, objects, part_of, text_of, total

_USAGE = {  # of a step, and of all in `final_metrics`
    "tokens_in": ("prompt_tokens", "total_prompt_tokens"),
    "tokens_cache": ("cached_tokens", "total_cached_tokens"),
    "tokens_out": ("completion_tokens", "total_completion_tokens"),
    "cost": ("cost_usd", "total_cost_usd"),
}
_ROLES = {"agent": "assistant", "user": "user", "system": "system"}
MOST_NESTED = 8  # subagents of subagents that are shown


def recognises(value: Any) -> str:
    """Return ``ATIF trajectory`` for a decoded trajectory, or a list of some; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    return "ATIF trajectory" if text_of(part_of(first, "schema_version")).startswith("ATIF-") else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trajectory, or those of a list; nothing says a score or the task, for which a name stands."""
    several = [(one, str(at)) for at, one in enumerate(value)] if isinstance(value, list) else [(value, "")]
    parsed = [_parse(path, one, part) for one, part in several]
    return used([run for run, _ in parsed], facts=[fact for _, facts in parsed for fact in facts])


def _parse(path: str, value: Any, part: str) -> tuple[tuple, list[tuple]]:
    """Return the run of one trajectory, and the files that it names as those of its subagents."""
    steps, own_id = own_steps(value), value.get("trajectory_id") or value.get("session_id")
    usage = {}
    for column, (key, of_all) in _USAGE.items():
        stated = number_of(part_of(value, "final_metrics", of_all))
        usage[column] = stated if stated is not None else total(part_of(step, "metrics", key) for step in steps)
    times = [step["timestamp"] for step in steps if step.get("timestamp")]
    models = [step["model_name"] for step in steps if step.get("model_name")]
    folder, name = posixpath.split(path.replace("\\", "/"))
    task = name.removesuffix(".json").removesuffix(".trajectory")
    run = run_row(
        format="atif",
        part=part,
        log_id=own_id,
        task_id=own_id if part else posixpath.basename(folder.removesuffix("/agent")) if task == "trajectory" else task,
        model_name=part_of(value, "agent", "model_name") or next(iter(models), None),
        agent=part_of(value, "agent", "name"),
        agent_version=part_of(value, "agent", "version"),
        temperature=part_of(value, "agent", "extra", "temperature"),  # as Terminus tells it
        started=next(iter(times), None),
        ended=times[-1] if times else None,
        turns=sum(step.get("source") == "agent" for step in steps),
        continues=value.get("continued_trajectory_ref"),
        extra=value.get("notes") and {"notes": value["notes"]},
        **usage,
    )
    results = (result for step in steps for result in objects(step.get("observation"), "results"))
    paths = {
        text_of(ref.get("trajectory_path")) for result in results for ref in objects(result, "subagent_trajectory_ref")
    }
    return run, [("subagent", "", "", path) for path in sorted(paths) if path]


def own_steps(value: Any) -> list[dict[str, Any]]:
    """Return the steps of a trajectory without those it copied from the one it goes on from."""
    return [step for step in objects(value, "steps") if not step.get("is_copied_context")]


def messages(value: Any, part: str, beside: Beside, depth: int = 0) -> list[Message]:
    """List the messages of a trajectory, those of subagents in their place, and those of the files it goes on in."""
    if isinstance(value, list):
        value = value[int(part)]
    agent = text_of(part_of(value, "agent", "name"))
    nested = {
        text_of(sub.get("trajectory_id") or sub.get("session_id")): sub
        for sub in objects(value, "subagent_trajectories")
    }
    out: list[Message] = []
    for step in own_steps(value):
        results = objects(step.get("observation"), "results")
        by_call = {key: result for result in results if (key := text_of(result.get("source_call_id")))}
        calls = []
        for call in objects(step, "tool_calls"):
            call_id = text_of(call.get("tool_call_id"))
            result = by_call.pop(call_id, None)
            text = None if result is None else content_text(result.get("content"))
            calls.append(Call(text_of(call.get("function_name")), text_of(call.get("arguments")), call_id, text))
        metrics = step.get("metrics")
        out.append(
            Message(
                _ROLES.get(text_of(step.get("source")), "user"),
                content_text(step.get("message")),
                agent if step.get("source") == "agent" else "",
                text_of(step.get("reasoning_content")),
                tuple(calls),
                text_of(step.get("timestamp")),
                count_of(part_of(metrics, "prompt_tokens")),
                count_of(part_of(metrics, "completion_tokens")),
                number_of(part_of(metrics, "cost_usd")),
            )
        )
        rest = [result for result in results if text_of(result.get("source_call_id")) in ("", *by_call)]
        out += [Message("tool", text) for result in rest if (text := content_text(result.get("content")))]
        for reference in (ref for result in results for ref in objects(result, "subagent_trajectory_ref")):
            own, path = reference.get("trajectory_id") or reference.get("session_id"), reference.get("trajectory_path")
            sub = nested.get(text_of(own)) or (beside(path) if isinstance(path, str) else None)
            if sub is not None and depth < MOST_NESTED:
                out += messages(sub, part, beside, depth + 1)
    following = value.get("continued_trajectory_ref")
    if isinstance(following, str) and depth < MOST_NESTED and (later := beside(following)) is not None:
        out += messages(later, part, beside, depth + 1)
    return out
