"""OpenAI Codex: rollout files since early 2025, which log running token totals, and ``codex exec --json`` output."""

import io
import os
import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import msgspec

from evalkit.trajectories.chat import Message, OpenNamed, content_text
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, ToolUse, records_of
from evalkit.trajectories.json_values import count_of, error_text, objects, part_of, seconds_between, text_of, time_of

FORMAT = "Codex"
_LINES = frozenset({
    "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
    "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record",
})  # fmt: skip
_NO_MESSAGES = frozenset({  # payload types that repeat other payloads or have no message
    "agent_reasoning_section_break", "agent_reasoning_raw_content", "context_compacted", "compaction",
    "compaction_summary", "context_compaction", "ghost_snapshot", "other", "stream_error", "warning", "plan_update",
    "turn_diff", "background_event", "entered_review_mode", "exited_review_mode", "item_started", "item_completed",
    "thread_rolled_back", "thread_settings_applied", "undo_started", "undo_completed", "view_image_tool_call",
    "session_configured", "deprecation_notice", "collab_tool_call", "sub_agent_activity", "model_reroute",
    "hook_started", "hook_completed", "raw_response_item", "shutdown_complete", "mcp_startup_update",
    "mcp_startup_complete", "todo_list",
})  # fmt: skip
_ARGUMENTS = ("command", "changes", "arguments", "prompt", "query")  # keys for tool arguments in `codex exec` output
_EVENT = re.compile(r"\w+_(begin|end|delta|request|response|updated)")  # events whose content is also in an item
_USAGE = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
_EXIT_CODE = re.compile(r"(?:exited with code |[Ee]xit code:? |\"exit_code\": ?)(-?\d+)")
_HEADER = re.compile(  # header of a tool output; its ids and times differ from call to call
    r"(?:Script completed\n)?(?:Chunk ID: \w+\n)?(?:Exit code: (?P<code>-?\d+)\n)?Wall time:? [\d.]+ seconds\n"
    r"(?:Process exited with code (?P<exit>-?\d+)\n)?(?:Original token count: \d+\n)?(?:Output:\n)?"
)
_REFUSED = re.compile(r"unsupported call|(?:apply_patch )?verification failed|\w+ failed\b|failed to|Script failed")
_TO_SECONDS = len("2026-06-08T12:00:00")
_MOST_EXAMINED = 300  # characters of an output to search for an exit code
_INJECTED = ("<", "# AGENTS.md instructions")  # prefixes of user messages that the user did not write
_FIRST_OWN = "subagent_history_start_ordinal"
_THREAD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WAITING = 32  # recent messages to search for a duplicate
_SECONDS_APART = 2.0  # longest time between an item and the event that duplicates it
_DOUBLED = ("user", "system", "assistant", "reasoning")  # item kinds that an event may duplicate
_BY_AGENT = ("assistant", "reasoning", "call")  # item kinds that belong to a response of the model


class Item(NamedTuple):
    """What a line means: session metadata or settings, a message, a tool call, its output, or a token count."""

    kind: str
    text: str
    payload: dict[str, Any]
    when: str


def recognises(record: Any) -> str:
    """Return ``Codex session`` if the record belongs to a Codex session, else an empty string."""
    kind = part_of(record, "type")
    is_document = isinstance(part_of(record, "session", "id"), str) and bool(objects(record, "items"))
    is_wrapped = isinstance(kind, str) and kind in _LINES and isinstance(record.get("payload"), dict)
    is_state = part_of(record, "record_type") == "state"
    is_bare = kind == "message" and any(part.get("type") == "input_text" for part in objects(record, "content"))
    is_printed = kind == "thread.started" and isinstance(record.get("thread_id"), str)
    return f"{FORMAT} session" if is_wrapped or is_state or is_bare or is_document or is_printed else ""


def _listed(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records in a line. Early 2025 versions write one document with the session and all its items."""
    session = line.get("session")
    return [session, *objects(line, "items")] if isinstance(session, dict) else [line]


def _items(file: BinaryIO, session: Session) -> Iterator[Item]:
    """Yield the items in a file. A message that is logged both as an item and as an event is yielded once."""
    first = 0  # ordinal of the first line that a subagent did not copy from its parent, stated in line 1 since 2026
    has_records = False  # whether the file has usage records: token_count repeats each, unless the session ends first
    waiting = deque[tuple[Item, str]](maxlen=_WAITING)  # messages without a duplicate so far, with their line types
    for record in chain.from_iterable(map(_listed, records_of(file, session))):
        payload = record.get("payload")
        outer = text_of(record.get("type"))
        when = text_of(record.get("timestamp"))
        ordinal = count_of(record.get("ordinal"))
        if ordinal is not None and ordinal < first:
            continue
        if outer.startswith(("thread.", "turn.", "item.")) or (outer == "error" and payload is None):
            yield from _printed(outer, record, session)
            continue
        if not isinstance(payload, dict):  # format of early 2025: the record is the payload
            if record.get("record_type") == "state":
                yield Item("settled", "", record, when)
                continue
            payload = record
            if outer:
                outer = "response_item"
            elif "id" in record:
                outer = "session_meta"
        first = first or count_of(payload.get(_FIRST_OWN)) or 0
        if outer in ("session_meta", "turn_context"):
            yield Item(outer, "", payload, when)
        elif outer == "compacted":
            yield Item("system", "the context was compacted", payload, when)
        elif outer == "token_usage_record":
            has_records = has_records or isinstance(payload.get("thread_token_usage"), dict)
            usage = {"total_token_usage": payload.get("thread_token_usage"), "last_token_usage": payload.get("usage")}
            yield Item("usage", "", {"info": usage}, when)
        elif outer not in _LINES:
            session.add_unknown(outer or "without a type")
        elif outer in ("response_item", "event_msg"):
            for item in _said(payload, when, outer, session):
                if item.kind == "usage" and has_records:
                    continue
                if item.text and item.kind in _DOUBLED:
                    double = next((one for one in waiting if one[1] != outer and _is_same(one[0], item)), None)
                    if double:
                        waiting.remove(double)
                        continue
                    waiting.append((item, outer))
                yield item


def _printed(kind: str, record: dict[str, Any], session: Session) -> Iterator[Item]:
    """Yield the items in a line of ``codex exec --json`` output, whose token counts are running totals."""
    item = record["item"] if isinstance(record.get("item"), dict) else {}
    arguments = [item[name] for name in _ARGUMENTS if name in item]
    if kind == "thread.started":
        yield Item("session_meta", "", {"id": record.get("thread_id")}, "")
    elif kind == "item.completed" and arguments:
        call = {"call_id": item.get("id"), "name": item.get("tool") or item.get("type"), "status": item.get("status")}
        yield Item("call", text_of(arguments[0]), call, "")
        output = part_of(item, "result", "content") or item.get("error") or item.get("aggregated_output")
        printed = error_text(output) if isinstance(output, dict) else content_text(output)
        code = item.get("exit_code")  # 0 or null if the command did not fail
        yield Item("output", f"Exit code {code}\n{printed}" if code else printed, call, "")
    elif kind == "item.completed":
        yield from _said(item, "", "item", session)
    elif kind not in ("item.started", "item.updated"):
        yield from _said({**record, "type": kind.replace(".", "_")}, "", "", session)


def _is_same(one: Item, other: Item) -> bool:
    """Return whether two items have the same kind and text, and were logged at about the same time."""
    if (one.kind, one.text) != (other.kind, other.text):
        return False
    first, second = time_of(one.when), time_of(other.when)
    return first is None or second is None or abs((first - second).total_seconds()) <= _SECONDS_APART


def _said(payload: dict[str, Any], when: str, outer: str, session: Session) -> Iterator[Item]:
    """Yield the items in a payload, and count unknown types in the session."""
    kind = text_of(payload.get("type"))
    if kind in ("message", "user_message", "agent_message"):
        text = content_text(payload.get("content") or payload.get("message") or payload.get("text"))
        role = text_of(payload.get("role")) or ("user" if kind == "user_message" else "assistant")
        is_injected = role != "assistant" and (role != "user" or text.lstrip().startswith(_INJECTED))
        is_injected = is_injected or payload.get("author") is not None  # another agent wrote it
        yield Item("system" if is_injected else role, text, payload, when)
    elif kind in ("reasoning", "agent_reasoning"):
        for part in objects(payload, "summary") or objects(payload, "content") or [payload]:
            yield Item("reasoning", text_of(part.get("text")), payload, when)
    elif kind.endswith(("_call_output", "_search_output")):
        output = payload.get("output")
        yield Item("output", content_text(part_of(output, "content") or output), payload, when)
    elif kind.endswith("_call") and outer == "response_item":
        action = payload.get("arguments") or payload.get("input") or payload.get("action")
        yield Item("call", text_of(action), payload, when)
    elif kind in ("token_count", "task_started", "turn_started"):
        yield Item("usage" if kind == "token_count" else "started", "", payload, when)
    elif kind in ("task_complete", "turn_complete", "turn_completed", "turn_failed", "turn_aborted"):
        if error := payload.get("error"):
            yield Item("error", error_text(error), payload, when)
        reason = text_of(payload.get("reason"))
        yield Item("ended", f"{kind}: {reason}" if reason else kind, payload, when)
    elif kind == "error":
        yield Item("error", error_text(payload), payload, when)
    elif part_of(payload, "item", "kind") == "started" and part_of(payload, "item", "agent_thread_id"):
        yield Item("agent", text_of(payload["item"]["agent_thread_id"]), payload["item"], when)
    elif kind not in _NO_MESSAGES and not _EVENT.fullmatch(kind):
        session.add_unknown(f"{outer} {kind}".strip())


def _outcome(payload: dict[str, Any], text: str) -> tuple[str, bool]:
    """Return the output of a command, preceded by any non-zero exit code, and whether the call failed."""
    has_failed = part_of(payload, "output", "success") is False or payload.get("status") == "failed"
    printed, code = text, ""
    if text.startswith("{"):
        with suppress(msgspec.DecodeError, RecursionError):
            value = msgspec.json.decode(text)
            code = text_of(part_of(value, "metadata", "exit_code"))
            printed = text_of(value.get("output")) if "output" in value else text
    elif header := _HEADER.match(text):
        code = header["code"] or header["exit"] or ""
        printed = text[header.end() :]
    if not code and not text.startswith("{"):
        found = _EXIT_CODE.search(text[:_MOST_EXAMINED])
        has_failed = has_failed or (found[1] != "0" if found else _REFUSED.match(text) is not None)
    is_error = code not in ("", "0")
    return f"Exit code {code}\n{printed}" if is_error else printed, has_failed or is_error


def _tool(payload: dict[str, Any]) -> str:
    return text_of(payload.get("name")) or text_of(payload.get("type")).removesuffix("_call")


class _Calls:
    """The model calls in a session: one call covers everything the model writes before a user or tool replies."""

    def __init__(self) -> None:
        self.made: list[ModelCall] = []
        self.tools: dict[str, tuple[ModelCall, ToolUse]] = {}  # by tool call id
        self._content = blake2b(digest_size=9)  # digest of all items since the previous call
        self._is_open = False  # whether the agent's next item belongs to the last call
        self._settled = 0  # number of calls that are complete
        self._unsettled_tools: list[str] = []
        self._totals = (0,) * len(_USAGE)  # tokens of the session so far

    def add(self, item: Item, model: str | None) -> None:
        """Add a message, a tool call or a tool output to the model call that it belongs to."""
        is_by_agent = item.kind in _BY_AGENT
        if self._is_open and not is_by_agent:
            self._content = blake2b(digest_size=9)
        if is_by_agent and not self._is_open:
            self.made.append(ModelCall("", model))
        if item.kind == "user":
            self._settled = len(self.made)
            self._unsettled_tools.clear()
        self._is_open = is_by_agent
        tool_id = text_of(item.payload.get("call_id"))
        self._content.update(f"{item.kind}\0{item.text}\0{tool_id}\0".encode(errors="replace"))
        if is_by_agent and self.made[-1].tokens_in is None:
            self.made[-1].call_id = self._content.hexdigest()
        if item.kind == "call":
            self._unsettled_tools.append(tool_id or f"call {len(self.tools)}")
            self.tools[self._unsettled_tools[-1]] = self.made[-1], ToolUse("", _tool(item.payload))
        elif item.kind == "output" and tool_id in self.tools:
            self.tools[tool_id][1].is_error = _outcome(item.payload, item.text)[1]

    def settle(self) -> None:
        """Merge all unsettled calls into one: tool outputs may have split a single response of the model."""
        del self.made[self._settled + 1 :]
        for tool_id in self._unsettled_tools:
            self.tools[tool_id] = self.made[-1], self.tools[tool_id][1]
        self._settled = len(self.made)
        self._unsettled_tools.clear()

    def count(self, info: Any, model: str | None, *, is_fork: bool) -> None:
        """Add the tokens of the last call: the increase of the running totals, unless these were reset."""
        total, last = (_counts(part_of(info, f"{name}_token_usage")) for name in ("total", "last"))
        if total is None or total == self._totals:  # missing or a repeat of the last count
            return
        before, self._totals = self._totals, total
        taken = tuple(now - then for now, then in zip(total, before, strict=True))
        # use the last call's own count if the totals were reset, or if a fork continues the totals of its parent
        if min(taken) < 0 or total == last or (is_fork and not any(before)):
            taken = last or total
        self.settle()
        if not self.made or self.made[-1].tokens_in is not None:
            self.made.append(ModelCall("", model))
            self._is_open = True  # some versions log the count before the response
        call = self.made[-1]
        call.model = model
        call.call_id = "/".join(map(str, total))
        call.tokens_in, call.tokens_cache, call.tokens_out, *_ = taken
        self._content = blake2b(digest_size=9)

    def identify(self) -> None:
        """Make call ids unique with occurrence numbers, and give each tool use the id of its model call."""
        times = Counter[str]()
        for call in self.made:
            times[call.call_id] += 1
            call.call_id = f"{call.call_id} {times[call.call_id]}"
        for call, tool in self.tools.values():
            tool.call_id = call.call_id


def _counts(usage: Any) -> tuple[int, ...] | None:
    return tuple(count_of(usage.get(name)) or 0 for name in _USAGE) if isinstance(usage, dict) else None


def summary(path: str, file: BinaryIO) -> Session:
    """Read a session file line by line.

    Mark the calls that the file replays from another session: all before the first task that began no earlier than
    this session. If no task has a start time, `is_replayed` is None (unknown) for all calls of such a file.
    """
    session, calls = Session(FORMAT, is_main=True), _Calls()
    model: str | None = None
    is_replay = has_times = False  # whether the file replays another session; whether tasks have start times
    first_own: int | None = None  # index of the first call that this session made
    for item in _items(file, session):
        kind, text, payload, when = item
        if kind == "session_meta" and not session.session_id:
            _identify(session, payload, when)
        elif kind == "session_meta":
            other = text_of(payload.get("id"))
            is_replay = is_replay or other not in ("", session.session_id)
            session.forked_from = session.forked_from or other
        elif kind == "turn_context":
            model = text_of(payload.get("model")) or model
        elif kind == "started":
            session.exit_reason = None
            session.status = "unended"  # until the task ends
            has_times = has_times or payload.get("started_at") is not None
            if first_own is None and _is_own_task(session, payload):
                first_own = len(calls.made)
        elif kind == "ended":
            session.exit_reason = text
            session.status = "turn_aborted" if text.startswith("turn_aborted") else "completed"
            if counts := _counts(payload.get("usage")):  # running totals in `codex exec` output
                read, cached, written, *_ = counts
                session.totals = [ModelCall("", None, read or None, cached if read else None, written or None)]
        elif kind == "error":
            session.error = text
        elif kind == "usage":
            calls.count(payload.get("info"), model, is_fork=bool(session.forked_from))
        elif kind == "settled":
            calls.settle()
        elif kind != "agent":
            session.messages += 1
            calls.add(item, model)
            if kind in _BY_AGENT:
                session.error = None
                calls.made[-1].is_replayed = _is_before(session, when)
    session.session_id = session.session_id or next(reversed(_THREAD.findall(os.path.basename(path))), "")
    calls.identify()
    for at, call in enumerate(calls.made if is_replay else ()):
        if first_own is None:
            call.is_replayed = True if has_times else None
        else:
            call.is_replayed = call.is_replayed or at < first_own
    session.calls = {call.call_id: call for call in calls.made}
    session.tools = {tool_id: tool for tool_id, (_, tool) in calls.tools.items()}
    session.complete(path, [call for call in calls.made if not call.is_replayed])
    return session


def _is_own_task(session: Session, payload: dict[str, Any]) -> bool:
    """Return whether a task began no earlier than the session, so that it is not replayed from another session."""
    started_at = payload.get("started_at")
    return started_at is not None and seconds_between((session.started or "")[:_TO_SECONDS], started_at) is not None


def _is_before(session: Session, when: str) -> bool:
    """Return whether a line was logged before the session began, which shows that it is from another session."""
    return bool(when and session.started and when < session.started)


def _identify(session: Session, payload: dict[str, Any], when: str) -> None:
    """Set the id, start, version and parent of a session from its first line."""
    session.session_id = text_of(payload.get("id"))
    session.started = text_of(payload.get("timestamp")) or when
    session.version = text_of(payload.get("cli_version")) or None
    session.part_of = text_of(part_of(payload, "source", "subagent", "thread_spawn", "parent_thread_id"))
    if not payload.get(_FIRST_OWN):
        session.forked_from = text_of(payload.get("forked_from_id")) or session.part_of


parse = partial(sessions.parsed, summary)


def messages(data: bytes, part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a session. Each subagent, without replayed messages, follows the call that started it."""
    chat: list[dict[str, Any]] = []
    agents: dict[str, list[str]] = {}  # subagent files by the id of the call that started them
    tools: dict[str, str] = {}  # tool names by call id
    session = Session(FORMAT)
    actor, is_replay = "", False
    for kind, text, payload, when in _items(io.BytesIO(data), session):
        call_id = text_of(payload.get("call_id"))
        about = {"name": actor, "timestamp": when}
        if kind == "session_meta" and not session.session_id:
            _identify(session, payload, when)
            is_replay = bool(session.part_of)
            actor = f"subagent {session.session_id}" if is_replay else ""
        elif is_replay and kind == "started" and _is_own_task(session, payload):
            chat.clear()  # the earlier messages belong to the parent
            is_replay = False
        elif is_replay and _is_before(session, when):
            continue
        elif kind == "call":
            tools[call_id] = _tool(payload)
            call = {"name": tools[call_id], "arguments": text, "id": call_id}
            chat.append({**about, "role": "assistant", "tool_calls": [call]})
        elif kind == "output":
            printed, has_failed = _outcome(payload, text)
            chat.append({"role": "tool", "tool_call_id": call_id, "content": printed, "error": has_failed})
            if "agent" in tools.get(call_id, ""):
                agents.setdefault(call_id, []).extend(f"-{thread}.jsonl" for thread in _THREAD.findall(text))
        elif kind == "agent":
            agents[text_of(payload.get("id"))] = [f"-{text}.jsonl"]
        elif kind == "reasoning" and text:
            chat.append({**about, "role": "assistant", "reasoning_content": text})
        elif kind in ("error", "ended", "system", "user", "assistant") and text:
            role = kind if kind in ("user", "assistant") else "system"
            chat.append({**about, "role": role, "content": text})
    return sessions.with_subagents(chat, agents, messages, open_named)
