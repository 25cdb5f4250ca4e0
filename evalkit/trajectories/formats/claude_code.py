"""Claude Code 1 and 2: sessions and subagents, a line for each block of an answer."""

import io
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, ToolCall, content_text
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, ToolUse, leading_model, records_of
from evalkit.trajectories.json_values import count_of, objects, part_of, text_of

FORMAT = "Claude Code"
_SPOKEN = ("user", "assistant")
_METADATA = frozenset({  # records without a message
    "system", "summary", "mode", "file-history-snapshot", "file-history-delta", "queue-operation", "last-prompt",
    "ai-title", "custom-title", "attachment", "permission-mode", "pr-link", "progress", "agent-name", "agent-color",
    "agent-setting", "tag", "task-summary", "worktree-state", "content-replacement", "saved_hook_context", "result",
    "started", "bridge-session",
})  # fmt: skip
_BLOCKS = frozenset({
    "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "server_tool_use",
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use",
    "mcp_tool_result", "fallback",
})  # fmt: skip
_INJECTED = re.compile(r"\s*(<(command-|local-command|system-reminder|bash-|task-notification)|Caveat: )")
_AGENT_ID = re.compile(r"[\w-]+")


def recognises(records: Any) -> str:
    """Return ``Claude Code session`` for the first records of one, or for one of them; empty for anything else."""
    for record in records if isinstance(records, list) else [records]:
        ids = (part_of(record, "sessionId"), part_of(record, "leafUuid"))
        if isinstance(part_of(record, "type"), str) and any(isinstance(one, str) for one in ids):
            return f"{FORMAT} session"
    return ""


def summary(path: str, file: BinaryIO) -> Session:
    """Read what a file says of its session, one line at a time.

    A message has a line for each of its blocks, all with its id and usage: the line with most tokens written counts.
    """
    session = Session(FORMAT)
    calls: dict[str, ModelCall] = {}
    own = set[str]()  # ids of the calls that no subagent made
    tools: dict[str, ToolUse] = {}  # by their own ids
    is_main = False
    for record in records_of(file, session):
        kind, message = text_of(record.get("type")), record.get("message")
        if kind not in _SPOKEN:
            if kind not in _METADATA:
                session.unknown[kind or "without a type"] = session.unknown.get(kind or "without a type", 0) + 1
            continue
        if not isinstance(message, dict):
            session.broken += 1
            continue
        session.messages += 1
        session.session_id = text_of(record.get("sessionId")) or session.session_id
        session.version = text_of(record.get("version")) or session.version
        if (when := record.get("timestamp")) and isinstance(when, str):
            session.started = min(session.started or when, when)
        is_main = is_main or not record.get("isSidechain")
        if kind == "user":
            for result in _blocks(message, session):
                if result.get("type") == "tool_result" and (tool := tools.get(text_of(result.get("tool_use_id")))):
                    tool.is_error = bool(result.get("is_error"))
            continue
        model = text_of(message.get("model"))
        is_synthetic = model == "<synthetic>"  # written by Claude Code, mostly about an error
        session.error = content_text(message.get("content")) if is_synthetic else None
        if is_synthetic:
            continue
        call_id = text_of(message.get("id")) or text_of(record.get("uuid"))
        call_id = call_id or f"{session.session_id} {session.messages}"  # of a gateway that gives none
        call = _usage(call_id, model or None, message.get("usage"))
        known = calls.get(call_id)
        if known is None or (call.tokens_out or 0) >= (known.tokens_out or 0):
            calls[call_id] = call
        if not record.get("isSidechain"):
            own.add(call_id)
        for block in _blocks(message, session):
            if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                used = ToolUse(call_id, text_of(block.get("name")))
                tools.setdefault(text_of(block.get("id")) or f"block {len(tools)}", used)
    folder, name = os.path.split(path)
    if not session.session_id:
        above, _, below = folder.partition("/subagents")
        session.session_id = os.path.basename(above) if below or folder != above else name.removesuffix(".jsonl")
    if session.messages and not is_main:
        session.part_of = session.session_id
    session.calls, session.tools = list(calls.values()), list(tools.values())
    session.model = leading_model([call for call in session.calls if call.call_id in own] or session.calls)
    return session


def _blocks(message: dict[str, Any], session: Session) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a message, and count blocks of unknown type."""
    for block in objects(message, "content"):
        kind = text_of(block.get("type"))
        if kind not in _BLOCKS:
            session.unknown[f"block {kind}"] = session.unknown.get(f"block {kind}", 0) + 1
        yield block


def _usage(call_id: str, model: str | None, usage: Any) -> ModelCall:
    """Return the tokens of a call; 0 read and 0 written were not counted."""
    written, cached = count_of(part_of(usage, "output_tokens")), count_of(part_of(usage, "cache_read_input_tokens"))
    fresh = [count_of(part_of(usage, key)) for key in ("input_tokens", "cache_creation_input_tokens")]
    known = [count for count in (*fresh, cached) if count is not None]
    read = sum(known) if known else None
    return ModelCall(call_id, model, read, cached, written) if read or written else ModelCall(call_id, model)


def parse(path: str, data: bytes) -> Parsed:
    """Return the run of a session, or of a subagent, which `evalkit.trajectories.sessions` joins to its session."""
    return sessions.parsed(path, data, summary)


def messages(data: bytes, part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a session; a subagent follows the call that started it."""
    out: list[Message] = []
    spoken: dict[str, Message] = {}  # answers by their id
    called: dict[str, tuple[ToolCall, Message]] = {}  # by the call's id
    below: dict[int, list[Message]] = {}  # of subagents, by the identity of the message that started them
    prompted = set[str]()  # records that a prompt follows
    seen = set[str]()
    for record in records_of(io.BytesIO(data), Session(FORMAT)):
        kind, message, uuid = record.get("type"), record.get("message"), text_of(record.get("uuid"))
        when, actor = text_of(record.get("timestamp")), text_of(record.get("agentId"))
        actor = f"subagent {actor}".strip() if record.get("isSidechain") else ""
        if uuid and uuid in seen:
            continue
        seen.add(uuid)
        if kind == "system" and (text := content_text(record.get("content"))):
            out.append(Message("system", text, actor, when=when))
        if kind not in _SPOKEN or not isinstance(message, dict):
            continue
        content = message.get("content")
        blocks = objects(message, "content") or [{"type": "text", "text": content_text(content)}]
        texts = [one for one in blocks if one.get("type") not in ("tool_use", "tool_result", "thinking")]
        if kind == "assistant":
            is_synthetic = message.get("model") == "<synthetic>"
            key = text_of(message.get("id")) or uuid
            answer = spoken.get(key)
            if answer is None or not key:
                answer = Message("system" if is_synthetic else "assistant", "", actor, calls=[], when=when)
                spoken[key] = answer
                out.append(answer)
            usage = _usage(key, None, message.get("usage"))
            if (usage.tokens_out or 0) >= (answer.tokens_out or 0):
                answer.tokens_in, answer.tokens_out = usage.tokens_in, usage.tokens_out
            thoughts = [text_of(one.get("thinking")) for one in blocks if one.get("type") == "thinking"]
            answer.text = "\n".join(filter(None, [answer.text, content_text(texts)]))
            answer.reasoning = "\n".join(filter(None, [answer.reasoning, *thoughts]))
            for one in blocks:
                call_id = text_of(one.get("id"))
                if one.get("type") == "tool_use" and call_id not in called:
                    call = ToolCall(text_of(one.get("name")), text_of(one.get("input")), call_id)
                    answer.calls = [*answer.calls, call]
                    called[call_id] = call, answer
            continue
        agent = text_of(part_of(record.get("toolUseResult"), "agentId"))
        for one in blocks:
            found = called.get(text_of(one.get("tool_use_id")))
            if one.get("type") != "tool_result" or found is None:
                continue
            found[0].result, found[0].is_error = content_text(one.get("content")), bool(one.get("is_error"))
            if _AGENT_ID.fullmatch(agent) and (of_agent := open_named(f"agent-{agent}.jsonl")) is not None:
                below.setdefault(id(found[1]), []).extend(messages(of_agent, part, open_named))
        if not (text := content_text(texts)):
            continue
        is_injected = record.get("isMeta") or record.get("isCompactSummary") or _INJECTED.match(text)
        out.append(Message("system" if is_injected else "user", text, actor, when=when))
        if not is_injected and (parent := text_of(record.get("parentUuid"))):
            if parent in prompted:
                note = "the user went back to an earlier message, from which the session goes on"
                out.insert(-1, Message("system", note, actor, when=when))
            prompted.add(parent)
    return [one for message in out for one in (message, *below.get(id(message), ()))]
