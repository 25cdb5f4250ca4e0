"""What all formats of trajectories share: outcomes as data, messages, and the values that stand in JSON."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from evalkit.io import Column
from evalkit.kinds import Parsed

TITLE = "agent trajectory"

_AGENT_FAILED = {  # the status of a run that its agent ended: a failure, unless there is a score
    "harbor": (
        "AgentTimeoutError ContextWindowExceededError OutputTokenExceededError ContextLengthExceededError"
        " OutputLengthExceededError AgentSafetyRefusalError ContentPolicyViolationError"
    ),
    "inspect_ai": "limit_context limit_message limit_token limit_time limit_working limit_cost limit_turn",
    "tau2-bench": "max_steps timeout too_many_errors agent_error context_window_exceeded",
    "SWE-bench": "empty_patch unresolved",
}
_ENDED = {  # the status of a run that came to its end: a score tells the outcome
    "": "completed",
    "inspect_ai": "limit_operator limit_custom",
    "tau2-bench": "user_stop agent_stop",
    "SWE-agent": (
        "Submitted submitted LimitsExceeded TimeExceeded RepeatedFormatError"
        " exit_cost exit_context exit_format exit_forfeit exit_command_timeout exit_total_execution_time"
        " submitted_(exit_cost) submitted_(exit_context) submitted_(exit_format) submitted_(exit_command_timeout)"
        " submitted_(exit_total_execution_time)"
    ),
}
AGENT_FAILED = frozenset(" ".join(_AGENT_FAILED.values()).split())
ENDED = frozenset(" ".join(_ENDED.values()).split())
# a run of any other status was ended by something else and not measured, even if a score stands beside

RUNS = (
    Column("part", "str", "which run of its file; empty if the file holds one"),
    Column("log_id", "str", "the run's own id, by its log"),
    Column("format", "str", "whose format the log has"),
    Column("experiment", "name", "what the run is a part of: a job, an evaluation"),
    Column("created", "str", "when that began"),
    Column("task_id", "name", "what was to be done"),
    Column("dataset", "name", "what the task belongs to"),
    Column("task_checksum", "str", "digest of the task's files, or its version"),
    Column("model_name", "name", "the model that ran, with its provider where that is told"),
    Column("agent", "name", "the program that ran the model"),
    Column("agent_version", "str", "its version"),
    Column("repetition", "int?", "number of the repetition, from 0"),
    Column("seed", "name", "seed of the run's randomness"),
    Column("exit_reason", "line", "why the run ended, in the words of its log"),
    Column("started", "time", "when the run began"),
    Column("duration", "float", "how long it took", "seconds"),
    Column("turns", "int?", "messages of the model", "count"),
    Column("tokens_in", "int?", "tokens that models read, those from a cache included", "tokens"),
    Column("tokens_cache", "int?", "of these, read from a cache", "tokens"),
    Column("tokens_out", "int?", "tokens that models wrote", "tokens"),
    Column("cost", "float", "what the run cost", "US dollars"),
    Column("limits", "line", "what the run was allowed to take"),
    Column("temperature", "float", "of the model's sampling, where it was set"),
    Column("retries", "int?", "how often the run was begun again after an error", "count"),
    Column("error", "line", "what was raised, in a line"),
    Column("continues", "str", "the file of the trajectory that goes on from this one"),
    Column("extra", "str", "what else the log says of the run, as JSON"),
    Column("status", "name", "completed, or what else ended the run"),
)
SCORES = (
    Column("part", "str", "which run of its file"),
    Column("key", "name", "what was scored: a reward, a scorer"),
    Column("value", "float", "the score; missing if it is no number"),
    Column("text", "line", "the score as it stands"),
)
PLANS = (
    Column("model_name", "name", "the model; missing for all models together"),
    Column("dataset", "name", "what the task belongs to"),
    Column("task_id", "name", "the task; empty for all tasks together"),
    Column("planned", "int?", "trials that were to be run", "count"),
    Column("retried", "int?", "trials that were run again after an error", "count"),
)
FACTS = (  # what files say of the runs of other files
    Column("fact", "str", "model, outcome: of a task's run; info: of all runs, as JSON"),
    Column("task_id", "name", "the task that it is said of; empty for all"),
    Column("model_name", "name", "the model that it is said of; empty for all"),
    Column("value", "str", "what is said"),
)
RECORDS = {"runs": RUNS, "scores": SCORES, "plans": PLANS, "facts": FACTS}

Beside = Callable[[str], Any]  # decodes a file that a trajectory names, in its own folder; None without one


class Call(NamedTuple):
    """A call of a tool: its arguments as text, its result, and whether that is an error."""

    name: str
    arguments: str
    call_id: str = ""
    result: str | None = None
    is_error: bool = False


class Message(NamedTuple):
    """A message of a trajectory: of the system, the user, the assistant, or a tool whose call is unknown."""

    role: str
    text: str
    actor: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    when: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None


def run_rows(columns: Mapping[str, Iterable[Any]], shared: Mapping[str, Any] = MappingProxyType({})) -> list[tuple]:
    """Return rows of `RUNS`: columns with a value for each run as it stands in the log, and values that all runs share.

    What is not given, or is of no use, is missing.
    """
    if unknown := (columns.keys() | shared.keys()) - _OF_COLUMN.keys():
        raise TypeError(f"no columns of runs: {sorted(unknown)}")
    values = [
        map(of_type, columns[name]) if name in columns else repeat(of_type(shared.get(name)))
        for name, of_type in _OF_COLUMN.items()
    ]
    return list(zip(*values, strict=False))


def run_row(*, ended: Any = None, **values: Any) -> tuple:
    """Return one row of `RUNS`, as `run_rows`; where no duration is told, it is the time until `ended`."""
    if number_of(values.get("duration")) is None:
        values["duration"] = seconds_between(values.get("started"), ended)
    return run_rows({name: [value] for name, value in values.items()})[0]


def used(
    runs: Sequence[tuple] = (),
    scores: Sequence[tuple] = (),
    plans: Sequence[tuple] = (),
    facts: Sequence[tuple] = (),
    reason: str = "",
) -> Parsed:
    """Return the contents of a log, or of a file that describes logs."""
    return Parsed("used", reason, {"runs": runs, "scores": scores, "plans": plans, "facts": facts})


def part_of(value: Any, *keys: str) -> Any:
    """Return what stands at a path of keys in JSON; None where the path ends early."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def objects(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects of the list that stands at a key; none if there is no list."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def text_of(value: Any) -> str:
    """Return text as it is, nothing for a missing value, and anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def number_of(value: Any) -> float | None:
    """Return a finite number, of a truth value too; None for anything else."""
    if isinstance(value, (bool, int, float)) and math.isfinite(number := float(value)):
        return number
    return None


def count_of(value: Any) -> int | None:
    """Return a whole number from 0; None for anything else."""
    if value is None:
        return None
    number = number_of(value)
    return int(number) if number is not None and 0 <= number < 2**53 else None


def total(values: Iterable[Any]) -> float | None:
    """Return the sum of the values that are numbers; None if none is."""
    known = [number for value in values if (number := number_of(value)) is not None]
    return sum(known) if known else None


def score_rows(part: str, scores: Any, grades: Mapping[str, float] = MappingProxyType({})) -> list[tuple]:
    """Return the rows of `SCORES` of a run's scores by key; a key with several values has a row for each."""
    rows = []
    for key, score in scores.items() if isinstance(scores, dict) else ():
        for name, value in score.items() if isinstance(score, dict) else [("", score)]:
            number = grades.get(value) if isinstance(value, str) else number_of(value)
            rows.append((part, f"{key}/{name}".removesuffix("/"), number, content_text(value)))
    return rows


def time_of(value: Any) -> datetime | None:
    """Return a time, of ISO text or of seconds since 1970; a time without a zone is UTC."""
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def seconds_between(start: Any, end: Any) -> float | None:
    """Return the seconds from one time to another; None if one is missing or the second is the earlier."""
    begun, ended = time_of(start), time_of(end)
    seconds = (ended - begun).total_seconds() if begun and ended else None
    return seconds if seconds is not None and seconds >= 0 else None


def _text_or_none(value: Any) -> str | None:
    return text_of(value) or None


_OF_TYPE: dict[str, Callable[[Any], Any]] = {  # how a value of a log becomes one of a column
    **dict.fromkeys(("str", "name", "line"), _text_or_none),
    "int?": count_of,
    "float": number_of,
    "time": time_of,
}
_OF_COLUMN = {
    **{column.name: _OF_TYPE[column.dtype] for column in RUNS},
    "part": text_of,
    "status": lambda value: text_of(value) or "completed",
}


def content_text(content: Any) -> str:
    """Return the text of a message's content: text, or parts; other parts are named, such as ``[image: dog.png]``."""
    if not isinstance(content, list):
        return text_of(content)
    return "\n".join(filter(None, map(_part_text, content)))


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return text_of(part)
    if isinstance(part.get("text"), str):
        return part["text"]
    kind = text_of(part.get("type")) or "part"
    if kind in ("reasoning", "thinking"):
        return ""
    source = part_of(part, "source", "path") or part_of(part, "image_url", "url") or part.get(kind)
    name = source if isinstance(source, str) and not source.startswith("data:") else ""
    return f"[{kind}: {name}]" if name else f"[{kind}]"


def chat_messages(messages: Any) -> list[Message]:
    """Read messages in the form of chat interfaces: calls of tools, and the tools' answers joined to them."""
    out: list[Message] = []
    place: dict[str, tuple[int, int]] = {}  # of a call, by its id: its message, and which of its calls
    for given in objects({"messages": messages}, "messages"):
        message, extra = _as_chat(given), given.get("extra")
        role, text = text_of(message.get("role")) or "user", content_text(message.get("content"))
        returned, error = part_of(extra, "returncode"), message.get("error") or message.get("tool_error")
        # mini-swe-agent answers commands that stand in a text as a user
        is_unnamed = returned is not None and role != "tool"
        ids = message.get("tool_call_ids") or [message.get("tool_call_id") or message.get("id")]  # the first: SWE-agent
        call_id = "" if is_unnamed else text_of(ids[0])
        if (role == "tool" or is_unnamed) and call_id in place:
            at, number = place[call_id]
            calls = list(out[at].calls)
            is_error = bool(error) or returned not in (None, 0)
            calls[number] = calls[number]._replace(result=text or error_text(error), is_error=is_error)
            out[at] = out[at]._replace(calls=tuple(calls))
            continue
        calls = [_chat_call(call) for call in objects(message, "tool_calls")]
        calls = calls or [Call("shell", text_of(action.get("command"))) for action in objects(extra, "actions")]
        place |= {call.call_id: (len(out), number) for number, call in enumerate(calls)}
        usage = message.get("usage") or part_of(extra, "response", "usage")
        when = message.get("timestamp") or part_of(extra, "timestamp")
        out.append(
            Message(
                role,
                text,
                text_of(message.get("name")),
                _reasoning(message),
                tuple(calls),
                when if isinstance(when, str) else time.isoformat() if (time := time_of(when)) else "",
                count_of(part_of(usage, "prompt_tokens")),
                count_of(part_of(usage, "completion_tokens")),
                number_of(message.get("cost") or part_of(extra, "cost")),
            )
        )
    return out


def _as_chat(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message or an answer of the newer interface of responses in the form of a chat's."""
    if message.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": message.get("call_id"), "content": message.get("output")}
    if message.get("object") != "response":
        return message
    items = objects(message, "output")
    said = [part for item in items if item.get("type") == "message" for part in objects(item, "content")]
    calls = [{**item, "id": item.get("call_id")} for item in items if item.get("type") == "function_call"]
    return {"role": "assistant", "content": said, "tool_calls": calls, "usage": message.get("usage")}


def _chat_call(call: Mapping[str, Any]) -> Call:
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    name = named.get("name") or (function if isinstance(function, str) else "")
    return Call(text_of(name), text_of(named.get("arguments")), text_of(call.get("id")))


def _reasoning(message: Mapping[str, Any]) -> str:
    parts = message.get("content")
    texts = [
        text_of(part.get("reasoning") or part.get("thinking") or part.get("summary"))
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and part.get("type") in ("reasoning", "thinking")
    ]
    thought = content_text(message.get("reasoning_content") or message.get("thought"))
    return "\n".join(filter(None, [thought if thought != content_text(parts) else "", *texts]))


def error_text(error: Any) -> str:
    """Return what an error says: its message, or all of it."""
    return text_of(part_of(error, "message") or error)
