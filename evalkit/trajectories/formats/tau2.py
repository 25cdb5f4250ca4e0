"""tau2-bench, as defined by its data models: simulations of an agent and a user, in one file or in a file for each."""

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import msgspec

from evalkit.io import BrokenFileError, decode_json
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages, content_text
from evalkit.trajectories.json_lines import decode_checked
from evalkit.trajectories.json_values import count_of, number_of, objects, part_of, text_of
from evalkit.trajectories.records import Fact, Plan, Rows, Runs, run_row, score_rows, stated_by, used

FORMAT = "tau2-bench"
_KEYS = {"task_id", "termination_reason"}  # keys of every simulation


class _Results(msgspec.Struct):
    """A results file with encoded simulations."""

    info: dict[str, Any]
    simulations: list[msgspec.Raw]


class _Simulation(msgspec.Struct):
    id: Any = None


_RESULTS = msgspec.json.Decoder(_Results)


def recognises(value: Any) -> str:
    """Return the title of a results file or a single simulation; empty for anything else."""
    if part_of(value, "info", "agent_info") is not None and part_of(value, "info", "num_trials") is not None:
        return "tau2-bench results"
    return "tau2-bench simulation" if isinstance(value, dict) and value.keys() >= _KEYS else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the runs and the plan in a results file, or the run of a single simulation."""
    simulations: list[dict[str, Any]] = [value]
    shared: dict[str, Any] = {}
    plans, facts = list[Plan](), list[Fact]()
    scores: list[tuple] = []
    if not value.keys() >= _KEYS:
        simulations, info = objects(value, "simulations"), value["info"]
        limits = {key: info[key] for key in ("max_steps", "max_errors") if info.get(key) is not None}
        shared = {
            "model_name": part_of(info, "agent_info", "llm"),
            "agent": part_of(info, "agent_info", "implementation"),
            "agent_version": info.get("git_commit"),
            "dataset": part_of(info, "environment_info", "domain_name"),
            "limits": ", ".join(f"{key} {value}" for key, value in limits.items()),
            "temperature": number_of(part_of(info, "agent_info", "llm_args", "temperature")),
        }
        facts = [Fact(FORMAT, value=text_of(shared))]
        trials = count_of(info.get("num_trials"))
        tasks = {text_of(task.get("id")) for task in objects(value, "tasks")}
        tasks |= {text_of(one.get("task_id")) for one in (*simulations, *objects(value, "simulation_index"))}
        model, dataset = (text_of(shared[name]) or None for name in ("model_name", "dataset"))
        plans = [Plan(model, dataset, task, planned=trials) for task in sorted(tasks) if trials]
    for one in simulations:
        if isinstance(given := one.get("reward_info"), dict):  # the reward first, since the first score counts
            rewards = {"reward": given.get("reward"), **(given.get("reward_breakdown") or {})}
            scores += score_rows(text_of(one.get("id")), rewards)
    reason = "" if simulations else "simulations are in separate files"
    return used([_run(shared, one) for one in simulations], scores, plans, facts, reason)


def join(runs: Runs, facts: Rows, published: Rows) -> None:
    """Fill in what a results file states about the simulations in the folder next to it."""
    for results, _, shared in stated_by(facts, FORMAT):
        folder = os.path.join(os.path.dirname(results), "simulations", "")
        for run in runs:
            if run.source.startswith(folder):
                for column, value in shared.items():
                    setattr(run, column, value or getattr(run, column))


def by_part(values: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the simulations of results, or a simulation, by their ids, for `messages`."""
    lists = ([value] if value.keys() >= _KEYS else objects(value, "simulations") for value in values)
    return {text_of(one.get("id")): one for one in chain.from_iterable(lists)}


def encoded_parts(data: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the simulations of a results file like `by_part`, but encoded, to save memory; None for other files."""
    if b'"simulations"' not in data:  # rules out most files of other formats without decoding them
        return None
    try:
        results = decode_json(data, _RESULTS)[0]
    except BrokenFileError:
        return None
    if not recognises({"info": results.info}):
        return None
    parts = {}
    for one in results.simulations:
        with suppress(msgspec.ValidationError):  # not an object
            parts[text_of(msgspec.json.decode(one, type=_Simulation).id)] = one
    return parts


def messages(parts: Mapping[str, dict[str, Any] | msgspec.Raw], part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a simulation."""
    simulation = parts.get(part, {})
    if isinstance(simulation, msgspec.Raw):
        simulation = decode_checked(simulation)
    return chat_messages(_chat(simulation))


def _chat(simulation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a simulation. In spoken ones, a message ends when its speaker is silent for a tick."""
    messages, speaking = objects(simulation, "messages"), dict[str, dict[str, Any]]()
    chat = list[dict[str, Any]]()
    for message in messages:
        chat += objects(message, "tool_messages") or [message]  # a message may contain the results of several tools
    if chat:
        return chat
    for tick in objects(simulation, "ticks"):
        for side, role in (("user", "user"), ("agent", "assistant")):
            chunk = tick.get(f"{side}_chunk")
            text = content_text(part_of(chunk, "content"))
            if text and role in speaking:
                speaking[role]["content"] += text
            elif text:
                speaking[role] = {"role": role, "content": text, "timestamp": tick.get("timestamp")}
                chat.append(speaking[role])
            else:
                speaking.pop(role, None)
            if calls := objects(tick, f"{side}_tool_calls") or objects(chunk, "tool_calls"):
                chat.append({"role": role, "tool_calls": calls})
            chat += [{**result, "role": "tool"} for result in objects(tick, f"{side}_tool_results")]
    return chat


def _run(shared: Mapping[str, Any], simulation: dict[str, Any]) -> tuple:
    reason = simulation.get("termination_reason")
    checks = ("db_check", "action_checks", "nl_assertions", "communicate_checks")
    extra = {name: part_of(simulation, "reward_info", name) for name in checks}
    extra["user_cost"] = number_of(simulation.get("user_cost"))
    return run_row(
        **shared,
        part=simulation.get("id"),
        log_id=simulation.get("id"),
        format=FORMAT,
        task_id=simulation.get("task_id"),
        repetition=simulation.get("trial"),
        seed=simulation.get("seed"),
        exit_reason=reason,
        status="skipped" if simulation.get("skipped") else reason or "unknown",  # skipped after an exception
        started=simulation.get("start_time"),
        ended=simulation.get("end_time"),
        duration=simulation.get("duration"),
        turns=sum(message.get("role") == "assistant" for message in _chat(simulation)) or None,
        tokens_in=part_of(simulation, "agent_usage", "prompt_tokens"),
        tokens_out=part_of(simulation, "agent_usage", "completion_tokens"),
        cost=number_of(simulation.get("agent_cost")),  # without the model that simulates the user
        extra={name: item for name, item in extra.items() if item} or None,
    )
