"""Gemini CLI and its derivative Qwen Code: sessions of 2026, with a message in each line.

Gemini CLI writes a message again when its tool calls have results, and repeats earlier messages when a session is
resumed. The last line with an id counts. Qwen Code writes tool results in separate lines.
"""

import io
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

from evalkit.trajectories.chat import Message, OpenNamed, content_text
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, ToolUse, records_of
from evalkit.trajectories.json_values import count_of, objects, part_of, text_of

FORMAT = "Gemini CLI"
_QWEN = "Qwen Code"
_ROLES = {
    "user": "user", "gemini": "assistant", "assistant": "assistant", "tool_result": "tool", "system": "system",
    "info": "system", "warning": "system", "error": "system",
}  # fmt: skip
_INJECTED = re.compile(r"\s*<(session_context|task-notification|system-reminder)")


def recognises(record: Any) -> str:
    """Return the title of the session that a record belongs to; empty for anything else."""
    if not isinstance(part_of(record, "sessionId"), str):
        return ""
    if isinstance(record.get("projectHash"), str):
        return f"{FORMAT} session"
    return f"{_QWEN} session" if objects(record.get("message"), "parts") else ""


def _messages(file: BinaryIO, session: Session) -> Iterator[dict[str, Any]]:
    """Yield the messages in a file, and set the id of the session and its unknown records."""
    for record in records_of(file, session):
        session.session_id = session.session_id or text_of(record.get("sessionId"))
        listed = objects(record, "$set", "messages") or objects(record, "messages")
        for message in listed or [record]:
            kind = text_of(message.get("type"))
            if kind in _ROLES:
                yield message
            elif "$rewindTo" in message:
                yield {"type": "info", "content": sessions.WENT_BACK}
            elif kind or not message.keys() & {"$set", "projectHash"}:
                session.add_unknown(kind or "without a type")


def _id(message: dict[str, Any]) -> str:
    return text_of(message.get("id") or message.get("uuid"))


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message, as defined by the Gemini API."""
    return objects(message, "message", "parts") or objects(message, "content")


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tool calls in a message: in Gemini CLI ``toolCalls``, which include results, else its parts."""
    called = [one.get("functionCall") for one in _parts(message)]
    return objects(message, "toolCalls") or [one for one in called if isinstance(one, dict)]


def _results(message: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the id of each tool call with a result, the result, and whether the call failed."""
    for call in objects(message, "toolCalls"):
        answers = [part_of(one, "functionResponse", "response") for one in objects(call, "result")]
        if answers:
            yield text_of(call.get("id")), answers[0], call.get("status") == "error"
    if message.get("type") == "tool_result":
        for one in _parts(message):
            answer = part_of(one, "functionResponse", "response")
            is_error = bool(part_of(answer, "error")) or part_of(message, "toolCallResult", "status") == "error"
            yield text_of(part_of(one, "functionResponse", "id")), answer, is_error


def _usage(call_id: str, model: str | None, message: dict[str, Any]) -> ModelCall:
    """Return the tokens of a response. Tokens written are the total minus tokens read, and so include thoughts."""
    usage = message.get("usageMetadata")
    names = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "totalTokenCount")
    if usage is None:
        usage, names = message.get("tokens"), ("input", "cached", "output", "total")
    read, cached, written, total = (count_of(part_of(usage, name)) for name in names)
    if read is not None and total is not None and total >= read:
        written = total - read
    return ModelCall(call_id, model, read, cached, written) if read or written else ModelCall(call_id, model)


def summary(path: str, file: BinaryIO) -> Session:
    """Read a session file line by line."""
    session = Session(FORMAT)
    calls, tools = session.calls, session.tools
    model: str | None = None
    for message in _messages(file, session):
        role = _ROLES[message["type"]]
        session.messages += role != "system"
        session.add_message(message)
        if objects(message, "message", "parts"):
            session.agent = _QWEN
        if message["type"] == "error":
            session.error = content_text(message.get("content"))
        if role == "assistant":
            session.error = None
            call_id = _id(message) or f"{session.session_id} {session.messages}"
            model = text_of(message.get("model")) or model
            usage = _usage(call_id, model, message)
            if usage.tokens_in is not None or not calls or (call_id not in calls and not message.get("isSidechain")):
                calls[call_id] = usage
            elif call_id not in calls:  # subagents of Qwen Code log tool calls in separate lines
                call_id = next(reversed(calls))
            for used in _calls(message):
                tools[text_of(used.get("id"))] = ToolUse(call_id, text_of(used.get("name")))
        for tool_id, _, is_error in _results(message):
            if tool_id in tools:
                tools[tool_id].is_error = is_error
    session.complete(path, calls.values())
    return session


parse = partial(sessions.parsed, summary)


def messages(data: bytes, part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a session. The messages of a subagent follow the call that started it."""
    by_id: dict[str, dict[str, Any]] = {}
    for message in _messages(io.BytesIO(data), Session(FORMAT)):
        by_id[_id(message) or str(len(by_id))] = message
    chat: list[dict[str, Any]] = []
    agents: dict[str, list[str]] = {}
    for own_id, message in by_id.items():
        role = _ROLES[message["type"]]
        spoken = [one for one in _parts(message) if "text" in one]
        thoughts = [text_of(one.get("description")) for one in objects(message, "thoughts")]
        thoughts += [text_of(one["text"]) for one in spoken if one.get("thought")]
        text = "\n".join(text_of(one["text"]) for one in spoken if not one.get("thought"))
        if isinstance(message.get("content"), str):
            text = message["content"]
        if message.get("subtype") == "notification" or _INJECTED.match(text):
            role = "system"
        calls = _calls(message)
        for call_id in (text_of(one.get("id")) for one in calls):
            agents[call_id] = [f"-{call_id}.jsonl"]
        usage = _usage(own_id, None, message)
        said = {
            "role": role,
            "name": "subagent" if message.get("isSidechain") else "",
            "timestamp": text_of(message.get("timestamp")),
            "content": text,
            "reasoning_content": "\n".join(thoughts),
            "tool_calls": [
                {"id": one.get("id"), "name": one.get("name"), "arguments": one.get("args")} for one in calls
            ],
            "usage": {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out},
        }
        if role != "tool" and (text or calls or thoughts):
            chat.append(said)
        for tool_id, answer, is_error in _results(message):
            given = part_of(answer, "output") or part_of(answer, "error") or answer
            chat.append({"role": "tool", "tool_call_id": tool_id, "content": given, "error": is_error})
    return sessions.with_subagents(chat, agents, messages, open_named)
