"""Gemini CLI and Qwen Code, which is derived from it: sessions of 2026, a message in each line.

Gemini CLI repeats a message when its calls have results, and lists earlier messages when a session is resumed: the last
line with an id counts. Qwen Code writes the results of calls apart.
"""

import io
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, content_text
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, ToolUse, leading_model, records_of
from evalkit.trajectories.json_values import count_of, objects, part_of, text_of

FORMAT = "Gemini CLI"
_QWEN = "Qwen Code"
_ROLES = {
    "user": "user", "gemini": "assistant", "assistant": "assistant", "tool_result": "tool", "system": "system",
    "info": "system", "warning": "system", "error": "system",
}  # fmt: skip
_UPDATES = ("$set", "$rewindTo")  # of the session
_INJECTED = re.compile(r"\s*<(session_context|task-notification|system-reminder)")


def recognises(records: Any) -> str:
    """Return the title of a session by its first records, or by one of them; empty for anything else."""
    for record in records if isinstance(records, list) else [records]:
        if isinstance(part_of(record, "projectHash"), str) and isinstance(part_of(record, "sessionId"), str):
            return f"{FORMAT} session"
        if isinstance(part_of(record, "sessionId"), str) and objects(part_of(record, "message"), "parts"):
            return f"{_QWEN} session"
    return ""


def _messages(file: BinaryIO, session: Session) -> Iterator[dict[str, Any]]:
    """Yield the messages of a file; facts about the session are set in it."""
    for record in records_of(file, session):
        session.session_id = session.session_id or text_of(record.get("sessionId"))
        listed = objects(part_of(record, "$set"), "messages") or objects(record, "messages")
        for message in listed or [record]:
            kind = text_of(message.get("type"))
            if kind in _ROLES:
                yield message
            elif kind or not (any(name in message for name in _UPDATES) or "projectHash" in message):
                session.add_unknown(kind or "without a type")


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message, in the form of the Gemini API."""
    return objects(part_of(message, "message"), "parts") or objects(message, "content")


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of tools in a message: Gemini CLI lists them with their results."""
    called = [one.get("functionCall") for one in _parts(message)]
    return objects(message, "toolCalls") or [one for one in called if isinstance(one, dict)]


def _results(message: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the ids of calls with their results, and whether they failed."""
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
    """Return the tokens of an answer: thoughts are written, too; what is not written was read."""
    usage = message.get("usageMetadata")
    names = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "totalTokenCount")
    if usage is None:
        usage, names = message.get("tokens"), ("input", "cached", "output", "total")
    read, cached, written, total = (count_of(part_of(usage, name)) for name in names)
    if read is not None and total is not None and total >= read:
        written = total - read
    return ModelCall(call_id, model, read, cached, written) if read or written else ModelCall(call_id, model)


def summary(path: str, file: BinaryIO) -> Session:
    """Read the session of a file, one line at a time."""
    session = Session(FORMAT)
    calls: dict[str, ModelCall] = {}
    tools: dict[str, ToolUse] = {}  # by their own ids
    model: str | None = None
    is_main = False
    for message in _messages(file, session):
        role = _ROLES[text_of(message["type"])]
        session.messages += role != "system"
        session.version = text_of(message.get("version")) or session.version
        if when := text_of(message.get("timestamp")):
            session.started = min(session.started or when, when)
        is_main = is_main or not message.get("isSidechain")
        if objects(part_of(message, "message"), "parts"):
            session.agent = _QWEN
        if message["type"] == "error":
            session.error = content_text(message.get("content"))
        if role == "assistant":
            session.error = None
            call_id = text_of(message.get("id") or message.get("uuid"))
            model = text_of(message.get("model")) or model
            usage = _usage(call_id, model, message)
            if usage.tokens_in is not None or not calls or (call_id not in calls and not message.get("isSidechain")):
                calls[call_id] = usage
            elif call_id not in calls:  # in subagents of Qwen Code, calls of tools have a line of their own
                call_id = next(reversed(calls))
            for used in _calls(message):
                tools[text_of(used.get("id"))] = ToolUse(call_id, text_of(used.get("name")))
        for tool_id, _, is_error in _results(message):
            if tool_id in tools:
                tools[tool_id].is_error = is_error
    session.session_id = session.session_id or os.path.basename(path).removesuffix(".jsonl")
    if session.messages and not is_main:
        session.part_of = session.session_id
    session.calls, session.tools = list(calls.values()), list(tools.values())
    session.model = leading_model(session.calls)
    return session


def parse(path: str, data: bytes) -> Parsed:
    """Return the run of a session, or of a subagent, which `evalkit.trajectories.calls` joins to its session."""
    return sessions.parsed(path, data, summary)


def messages(data: bytes, part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a session; a subagent follows the call that started it."""
    by_id: dict[str, dict[str, Any]] = {}
    for message in _messages(io.BytesIO(data), Session(FORMAT)):
        by_id[text_of(message.get("id") or message.get("uuid")) or str(len(by_id))] = message
    chat: list[dict[str, Any]] = []
    agents: dict[str, list[str]] = {}
    for own_id, message in by_id.items():
        role = _ROLES[text_of(message["type"])]
        spoken = [one for one in _parts(message) if "text" in one]
        thoughts = [text_of(one.get("description")) for one in objects(message, "thoughts")]
        thoughts += [text_of(one["text"]) for one in spoken if one.get("thought")]
        text = "\n".join(text_of(one["text"]) for one in spoken if not one.get("thought"))
        if isinstance(message.get("content"), str):
            text = message["content"]
        if message.get("subtype") == "notification" or _INJECTED.match(text):
            role = "system"
        calls = [
            {"id": one.get("id"), "name": one.get("name"), "arguments": one.get("args")} for one in _calls(message)
        ]
        agents |= {text_of(one["id"]): [f"-{text_of(one['id'])}.jsonl"] for one in calls}
        usage = _usage(own_id, None, message)
        if role != "tool" and (text or calls or thoughts):
            chat.append(
                {
                    "role": role,
                    "name": "subagent" if message.get("isSidechain") else "",
                    "timestamp": text_of(message.get("timestamp")),
                    "content": text,
                    "reasoning_content": "\n".join(thoughts),
                    "tool_calls": calls,
                    "usage": {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out},
                }
            )
        for tool_id, answer, is_error in _results(message):
            given = part_of(answer, "output") or part_of(answer, "error") or answer
            chat.append({"role": "tool", "tool_call_id": tool_id, "content": given, "error": is_error})
    return sessions.with_subagents(chat, agents, lambda data: messages(data, part, open_named), open_named)
