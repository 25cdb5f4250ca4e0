"""tau-bench 1: a list of runs in a file, whose name contains the strategy, the model and the temperature."""

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from evalkit._text import counted_noun
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages, content_text
from evalkit.trajectories.json_values import count_of, error_text, number_of, objects, part_of, text_of
from evalkit.trajectories.records import Plan, run_row, used

_NAME = re.compile(  # STRATEGY-MODEL-TEMPERATURE_range_START-END_user-…; a slash in the user's model creates folders
    r"(?:^|/)(tool-calling|few-shot|[^-/]+)-([^/]+)-(\d+(?:\.\d+)?)_range_-?\d+--?\d+_user-"
)
_POLICY = re.compile(r"\s*#\s*(\w+) agent policy", re.IGNORECASE)
_NAMED_DOMAIN = re.compile(r"(?:^|.*[-_. ])(airline|retail)(?![a-z])", re.IGNORECASE)
_RUN_KEYS = {"task_id", "reward", "info", "traj"}


def recognises(value: Any) -> str:
    """Return ``tau-bench results`` for a decoded list of runs; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else None
    return "tau-bench results" if isinstance(first, dict) and first.keys() >= _RUN_KEYS - {"task_id"} else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the runs in a file, and a plan that assumes every trial for every task, as tau-bench does for pass^k."""
    path = path.replace("\\", "/")
    runs = by_part(value)
    stem = posixpath.basename(path).rpartition(".")[0]
    named = next(filter(None, map(_policy, runs.values())), None) or _NAMED_DOMAIN.match(stem)
    domain = named[1].lower() if named else ""
    stated: dict[str, Any] = {"dataset": f"tau-bench {domain}" if domain else "tau-bench"}
    if match := _NAME.search(path):
        strategy, model, temperature = match.groups()
        stated |= {"agent": strategy, "model_name": model, "temperature": float(temperature)}
    elif domain and re.search(rf".[-_]{domain}$", stem, re.IGNORECASE):  # such as gpt-4o-airline.json
        stated["model_name"] = stem[: -len(domain) - 1]
    trials = {count_of(run.get("trial")) for run in runs.values()}
    tasks = dict.fromkeys(text_of(run["task_id"]) for run in runs.values())
    plans = [Plan(stated.get("model_name"), stated["dataset"], task, planned=len(trials)) for task in tasks]
    scores = [(part, "reward", number_of(run["reward"]), text_of(run["reward"])) for part, run in runs.items()]
    lost = len(value) - len(runs)
    reason = f"{lost} of {counted_noun(len(value), 'entry')} are no runs of tau-bench" if lost else ""
    return used([_run(part, run, stated) for part, run in runs.items()], scores, plans, reason=reason)


def by_part(value: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the runs in a file by part. Parts do not use positions, which change when the last run ends."""
    seen = Counter[str]()
    runs = {}
    for run in value:
        if isinstance(run, dict) and run.keys() >= _RUN_KEYS:
            part = f"{text_of(run['task_id'])}-{text_of(run.get('trial'))}"
            seen[part] += 1
            runs[part if seen[part] == 1 else f"{part}-{seen[part]}"] = run
    return runs


def _policy(run: dict[str, Any]) -> re.Match[str] | None:
    """Match the heading of the policy in the first message of a run, which names the domain."""
    first = next(iter(objects(run, "traj")), {})
    return _POLICY.match(content_text(first.get("content"))) if first.get("role") == "system" else None


def _run(part: str, run: dict[str, Any], stated: dict[str, Any]) -> tuple:
    """Return the row of a run. A run that raised an error is not measured, although its reward is 0."""
    info, traj = run["info"], objects(run, "traj")
    error = part_of(info, "error")
    # the digest identifies copies of a file; runs that raised an error get none, since different ones may be equal
    digest = hashlib.blake2b(text_of([part, stated, run["reward"], traj]).encode(), digest_size=8).hexdigest()
    user_cost = number_of(part_of(info, "user_cost"))  # cost of the model that simulates the user
    return run_row(
        **stated,
        part=part,
        log_id=digest if traj else None,
        format="tau-bench",
        task_id=text_of(run["task_id"]),
        repetition=run.get("trial"),
        exit_reason="error" if error is not None else None,
        status="error" if error is not None else None,
        turns=sum(message.get("role") == "assistant" for message in traj) if traj else None,
        error=error_text(error),
        extra={"user_cost": user_cost} if user_cost is not None else None,
    )


def messages(parts: Mapping[str, dict[str, Any]], part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a run, then any error that ended it."""
    run = parts.get(part, {})
    spoken = chat_messages(run.get("traj"))
    error = part_of(run.get("info"), "error")
    return spoken if error is None else [*spoken, Message("error", error_text(error))]
