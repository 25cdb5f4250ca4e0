"""Codex of OpenAI: rollouts from early 2025 on, in whose lines messages, calls, and totals of tokens stand."""

import io
import os
import re
from collections import Counter, deque
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple

import msgspec

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Call, Message, OpenNamed, content_text
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, ToolUse, leading_model, records_of
from evalkit.trajectories.json_values import count_of, error_text, objects, part_of, seconds_between, text_of, time_of

FORMAT = "Codex"
_LINES = frozenset({
    "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
    "inter_agent_communication", "inter_agent_communication_metadata",
})  # fmt: skip
_NO_MESSAGES = frozenset({  # payloads that repeat others, or hold none
    "agent_reasoning_section_break", "agent_reasoning_raw_content", "task_started", "turn_started",
    "context_compacted", "compaction", "compaction_summary", "context_compaction", "ghost_snapshot", "other",
    "stream_error", "warning", "plan_update", "turn_diff", "background_event", "entered_review_mode",
    "exited_review_mode", "item_started", "item_completed", "thread_rolled_back", "thread_name_updated",
    "thread_settings_applied", "thread_goal_updated", "undo_started", "undo_completed", "view_image_tool_call",
    "session_configured", "deprecation_notice", "collab_tool_call", "sub_agent_activity", "model_reroute",
    "hook_started", "hook_completed", "raw_response_item", "shutdown_complete", "mcp_startup_update",
    "mcp_startup_complete",
})  # fmt: skip
_EVENT = re.compile(r"\w+_(begin|end|delta|request|response|updated)")  # of what an item holds, too
_USAGE = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
_EXIT_CODE = re.compile(r"(?:exited with code|[Ee]xit code:?) (-?\d+)")
_MOST_EXAMINED = 300  # characters of an output that may state an exit code
_THREAD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WAITING = 32  # messages whose double may still come
_SECONDS_APART = 2.0  # at most, of an item and an event that hold one message
_DOUBLED = ("user", "system", "assistant", "reasoning")  # items that an event may repeat
_BY_AGENT = ("assistant", "reasoning", "call")  # items that belong to an answer of the model


class Item(NamedTuple):
    """A line by what it says: of a session or its settings, a message, a call, its output, or tokens."""

    kind: str
    text: str
    payload: dict[str, Any]
    when: str


def recognises(records: Any) -> str:
    """Return ``Codex session`` for the first records of a rollout, or for one of them; empty for anything else."""
    for record in records if isinstance(records, list) else [records]:
        kind, payload = part_of(record, "type"), part_of(record, "payload")
        is_wrapped = isinstance(kind, str) and kind in _LINES and isinstance(payload, dict)
        is_state = part_of(record, "record_type") == "state"
        has_parts = objects(record, "content") and objects(record, "content")[0].get("type") in ("input_text",)
        if is_wrapped or is_state or (kind == "message" and has_parts):
            return f"{FORMAT} session"
    return ""


def _items(file: BinaryIO, session: Session) -> Iterator[Item]:
    """Yield what the lines of a file say; a message that stands in an item and in an event is yielded once."""
    waiting = deque[tuple[Item, str]](maxlen=_WAITING)  # messages that have no double yet, and where they stood
    for record in records_of(file, session):
        payload, outer, when = record.get("payload"), text_of(record.get("type")), text_of(record.get("timestamp"))
        if not isinstance(payload, dict):  # of early 2025
            is_first = not outer and "id" in record
            outer, payload = "session_meta" if is_first else "response_item" if outer else "", record
            if record.get("record_type") == "state":
                continue
        kind = text_of(payload.get("type"))
        if outer in ("session_meta", "turn_context"):
            yield Item(outer, "", payload, when)
        elif outer == "compacted":
            yield Item("system", "the context was compacted", payload, when)
        elif outer not in _LINES:
            session.unknown[outer or "without a type"] = session.unknown.get(outer or "without a type", 0) + 1
        elif outer in ("response_item", "event_msg"):
            for item in _said(kind, payload, when, outer, session):
                if item.text and item.kind in _DOUBLED:
                    double = next((one for one in waiting if one[1] != outer and _is_same(one[0], item)), None)
                    if double:
                        waiting.remove(double)
                        continue
                    waiting.append((item, outer))
                yield item


def _is_same(one: Item, other: Item) -> bool:
    """Return whether two items say the same at about the same time."""
    if (one.kind, one.text) != (other.kind, other.text):
        return False
    first, second = time_of(one.when), time_of(other.when)
    return first is None or second is None or abs((first - second).total_seconds()) <= _SECONDS_APART


def _said(kind: str, payload: dict[str, Any], when: str, outer: str, session: Session) -> Iterator[Item]:
    """Yield what a payload says; one of an unknown type is counted."""
    if kind in ("message", "user_message", "agent_message"):
        text = content_text(payload.get("content") or payload.get("message") or payload.get("text"))
        role = text_of(payload.get("role")) or ("user" if kind == "user_message" else "assistant")
        is_injected = role != "assistant" and (role != "user" or text.lstrip().startswith("<"))
        yield Item("system" if is_injected else role, text, payload, when)
    elif kind in ("reasoning", "agent_reasoning"):
        parts = objects(payload, "summary") or objects(payload, "content") or [payload]
        for part in parts:
            yield Item("reasoning", text_of(part.get("text")), payload, when)
    elif kind.endswith(("_call_output", "_search_output")):
        yield Item("output", _output(payload), payload, when)
    elif kind.endswith("_call") and outer == "response_item":
        action = payload.get("arguments") or payload.get("input") or payload.get("action")
        yield Item("call", text_of(action), payload, when)
    elif kind in ("token_count", "task_started", "turn_started"):
        yield Item("usage" if kind == "token_count" else "started", "", payload, when)
    elif kind in ("task_complete", "turn_complete", "turn_aborted"):
        reason = text_of(payload.get("reason"))
        yield Item("ended", f"{kind}: {reason}" if reason else kind, payload, when)
    elif kind == "error":
        yield Item("error", error_text(payload), payload, when)
    elif kind not in _NO_MESSAGES and not _EVENT.fullmatch(kind):
        name = f"{outer} {kind}".strip()
        session.unknown[name] = session.unknown.get(name, 0) + 1


def _output(payload: dict[str, Any]) -> str:
    """Return the text of a tool's answer, which early versions wrap in JSON together with its exit code."""
    output = payload.get("output")
    return content_text(part_of(output, "content") or output)


def _is_error(payload: dict[str, Any], text: str) -> bool:
    if part_of(payload, "output", "success") is False or payload.get("status") == "failed":
        return True
    if text.startswith("{"):
        try:
            code = part_of(msgspec.json.decode(text), "metadata", "exit_code")
        except (msgspec.DecodeError, RecursionError):
            code = None
        return bool(code)
    found = _EXIT_CODE.search(text[:_MOST_EXAMINED])
    return found is not None and found[1] != "0"


def _tool(payload: dict[str, Any]) -> str:
    return text_of(payload.get("name")) or text_of(payload.get("type")).removesuffix("_call")


class _Totals:
    """The running totals of a session, which tell what each call took."""

    def __init__(self) -> None:
        self.before: tuple[int, ...] = (0,) * len(_USAGE)

    def taken(self, info: Any) -> tuple[str, tuple[int, ...]] | None:
        """Return the totals as text, and what the call took; None for totals that are repeated or missing."""
        total, last = (_counts(part_of(info, f"{name}_token_usage")) for name in ("total", "last"))
        if total is None:
            return ("", last) if last else None
        if total == self.before:
            return None
        is_reset = any(now < then for now, then in zip(total, self.before, strict=True)) or total == last
        taken = last or total
        if not is_reset:
            taken = tuple(now - then for now, then in zip(total, self.before, strict=True))
        self.before = total
        return "/".join(map(str, total)), taken


def _counts(usage: Any) -> tuple[int, ...] | None:
    return tuple(count_of(usage.get(name)) or 0 for name in _USAGE) if isinstance(usage, dict) else None


def summary(path: str, file: BinaryIO) -> Session:
    """Read what a file says of its session, one line at a time.

    A call of a model is what the model says until a user or a tool answers. Its totals identify it, else its content:
    the calls that a file has in common with the session it was forked from are that session's.
    """
    session, totals = Session(FORMAT), _Totals()
    rows: list[ModelCall] = []
    tools: dict[str, tuple[ModelCall, ToolUse]] = {}  # by their own ids
    named = Counter[str]()  # calls by what identifies them
    content = blake2b(digest_size=9)
    contents: list[str] = []  # of each call
    is_open = False  # the last call goes on
    model, begun, replayed = None, "", False
    cut: int | None = None  # calls before the first task that began with the session
    has_tasks = False

    for kind, text, payload, when in _items(file, session):
        if kind == "session_meta":
            if not session.session_id:
                _identify(session, payload, when)
                begun = session.started or ""
            elif (other := text_of(payload.get("id"))) and other != session.session_id:
                replayed = True
                session.forked_from = session.forked_from or other
            continue
        if kind == "turn_context":
            model = text_of(payload.get("model")) or model
            continue
        if kind == "started":
            at = payload.get("started_at")
            has_tasks = has_tasks or at is not None
            is_own = at is not None and (seconds_between(begun[:19], at) is not None)
            cut = len(rows) if cut is None and is_own else cut
            continue
        if kind == "ended":
            session.exit_reason = text
            session.status = "turn_aborted" if text.startswith("turn_aborted") else "completed"
            continue
        if kind == "error":
            session.error = text
            continue
        if kind == "usage":
            if taken := totals.taken(payload.get("info")):
                if not rows or rows[-1].tokens_in is not None:
                    rows.append(ModelCall("", model))
                    contents.append("")
                row = rows[-1]
                row.call_id, row.model, (row.tokens_in, row.tokens_cache, row.tokens_out) = (
                    taken[0],
                    model,
                    taken[1][:3],
                )
                is_open = False
                content = blake2b(digest_size=9)
            continue
        session.messages += 1
        if kind in _BY_AGENT:
            if not is_open:
                rows.append(ModelCall("", model))
                contents.append("")
            is_open, session.error = True, None
            rows[-1].is_replayed = bool(when and begun and when < begun)
        elif is_open:
            is_open = False
            content = blake2b(digest_size=9)
        call_id = text_of(payload.get("call_id"))
        content.update(f"{kind}\0{text}\0{call_id}\0".encode(errors="replace"))
        if kind == "call":
            tools[call_id or f"call {len(tools)}"] = rows[-1], ToolUse("", _tool(payload))
        elif kind == "output" and call_id in tools:
            tools[call_id][1].is_error = _is_error(payload, text)
        if kind in _BY_AGENT:
            contents[-1] = content.hexdigest()
    if not session.session_id:
        ids = _THREAD.findall(os.path.basename(path))
        session.session_id = ids[-1] if ids else os.path.basename(path).removesuffix(".jsonl")
    for at, (row, own) in enumerate(zip(rows, contents, strict=True)):
        identity = row.call_id or own
        named[identity] += 1
        row.call_id = f"{identity} {named[identity]}"
        if replayed and cut is None and not has_tasks:
            row.is_replayed = None
        elif replayed:
            row.is_replayed = row.is_replayed or cut is None or at < cut
    session.calls = rows
    for row, tool in tools.values():
        tool.call_id = row.call_id
        session.tools.append(tool)
    session.model = leading_model([row for row in rows if not row.is_replayed])
    return session


def _identify(session: Session, payload: dict[str, Any], when: str) -> None:
    """Read the first line of a session."""
    session.session_id = text_of(payload.get("id"))
    session.started = text_of(payload.get("timestamp")) or when
    session.version = text_of(payload.get("cli_version")) or None
    session.part_of = text_of(part_of(payload, "source", "subagent", "thread_spawn", "parent_thread_id"))
    session.forked_from = text_of(payload.get("forked_from_id")) or session.part_of


def excerpt(path: str, file: BinaryIO) -> bytes:
    """Return what `parse` needs of a session."""
    return sessions.encoded(summary(path, file))


def parse(path: str, data: bytes) -> Parsed:
    """Return the run of a session, or of a subagent, which `evalkit.trajectories.calls` joins to its session."""
    is_excerpt = data.startswith(sessions.EXCERPT)
    return sessions.parsed(sessions.decoded(data) if is_excerpt else summary(path, io.BytesIO(data)))


def messages(data: bytes, part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a session; those of a subagent follow the call that started it, without what it replays."""
    out: list[Message] = []
    called: dict[str, Call] = {}
    session = Session(FORMAT)
    below: dict[int, list[Message]] = {}  # of subagents, by the place of the message that started them
    place: dict[str, int] = {}  # of the message with a call
    actor, model_spoke = "", False
    for kind, text, payload, when in _items(io.BytesIO(data), session):
        if kind == "session_meta" and not session.session_id:
            _identify(session, payload, when)
            actor = f"subagent {session.session_id}" if session.part_of else ""
        elif kind == "started" and session.part_of and not model_spoke:
            at = payload.get("started_at")
            if at is not None and seconds_between((session.started or "")[:19], at) is not None:
                out, below, model_spoke = [], {}, True  # what came before is of the parent
        elif kind == "call":
            call_id = text_of(payload.get("call_id"))
            call = called[call_id] = Call(_tool(payload), text, call_id)
            place[call_id] = len(out)
            out.append(Message("assistant", "", actor, calls=[call], when=when))
        elif kind == "output" and (found := called.get(text_of(payload.get("call_id")))):
            found.result, found.is_error = text, _is_error(payload, text)
            for thread in dict.fromkeys(_THREAD.findall(text)) if "agent" in found.name else ():
                if (of_agent := open_named(f"-{thread}.jsonl")) is not None:
                    below.setdefault(place[found.call_id], []).extend(messages(of_agent, part, open_named))
        elif kind == "reasoning" and text:
            out.append(Message("assistant", "", actor, reasoning=text, when=when))
        elif kind in ("user", "system", "assistant", "error", "ended") and text:
            role = "system" if kind in ("error", "ended") else kind
            if not (session.part_of and when and when < (session.started or "")):
                out.append(Message(role, text, actor, when=when))
    return [one for at, message in enumerate(out) for one in (message, *below.get(at, ()))]
