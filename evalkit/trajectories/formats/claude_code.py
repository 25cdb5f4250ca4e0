"""Claude Code 1 and 2: sessions and subagents, with a line for each content block of a response.

The output of ``claude -p`` is also read as a session. It lacks some responses of subagents, and newer versions count
only the first output token of a response. Its result record counts all tokens of the session so far, and may be the
only record.
"""

import io
import re
from functools import partial
from typing import Any, BinaryIO

from evalkit.io import BrokenFileError
from evalkit.trajectories.chat import Message, OpenNamed, content_text
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, ToolUse, records_of
from evalkit.trajectories.json_values import count_of, number_of, objects, part_of, text_of

FORMAT = "Claude Code"
_SPOKEN = ("user", "assistant")
_METADATA = frozenset({  # types of records without a message
    "system", "summary", "mode", "file-history-snapshot", "file-history-delta", "queue-operation", "last-prompt",
    "ai-title", "custom-title", "attachment", "permission-mode", "pr-link", "progress", "agent-name", "agent-color",
    "agent-setting", "tag", "task-summary", "worktree-state", "content-replacement", "saved_hook_context", "result",
    "started", "stream_event", "rate_limit_event", "tool_progress", "bridge-session", "continued-in",
    "resume-head-vouch", "data-flow-records", "data-flow-incomplete", "derived-from", "api-request",
    "api-request-shape", "api-request-blob", "api-request-resumed", "fork-context-ref", "frame-link",
    "ended-by-model", "relocated", "artifact-comment-monitor", "artifact-autoreact-ledger",
    "history-suppression", "attribution-snapshot", "isolation-latch", "session-owner", "dev-mods", "memory-mode",
    "marble-origami-commit", "marble-origami-snapshot", "marble-origami-reset", "speculation-accept",
    "atis-latch", "tools-used", "cost-state", "observer-ref", "repl-mode", "hybrid-organization", "host-row",
})  # fmt: skip
_BLOCKS = frozenset({
    "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "server_tool_use",
    "mcp_tool_use", "fallback", "compaction", "container_upload", "search_result", "tool_reference",
})  # fmt: skip
_INTERRUPTED = "[Request interrupted by user"
_INJECTED = re.compile(
    rf"\s*(<(command-|local-command|system-reminder|bash-|task-notification)|Caveat: |{re.escape(_INTERRUPTED)})"
)
_AGENT_ID = re.compile(r"[\w-]+")
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def recognises(record: Any) -> str:
    """Return ``Claude Code session`` if the record belongs to a session, else an empty string."""
    named = _named(record)
    has_id = any(isinstance(part_of(named, key), str) for key in ("sessionId", "leafUuid"))
    return f"{FORMAT} session" if has_id and isinstance(named.get("type"), str) else ""


def _named(record: Any) -> Any:
    """Return a record of ``claude -p`` output with the key names of session files, and any other record unchanged."""
    if not isinstance(record, dict) or "sessionId" in record:
        return record
    if "parent_tool_use_id" not in record and "claude_code_version" not in record and record.get("type") != "result":
        return record
    names = {"sessionId": record.get("session_id"), "version": record.get("claude_code_version")}
    return {**record, **names, "isSidechain": bool(record.get("parent_tool_use_id"))}


def summary(path: str, file: BinaryIO) -> Session:
    """Read a session file line by line.

    A response has a line for each content block, each with its id and usage. The line with the most output tokens
    counts.
    """
    session = Session(FORMAT)
    calls, tools = session.calls, session.tools
    own = set[str]()  # ids of the calls made by the main agent
    unended = set[str]()  # ids of responses without a final line, which would count all output tokens
    for record in map(_named, records_of(file, session)):
        kind = text_of(record.get("type"))
        message = record.get("message")
        if kind not in _SPOKEN:
            _read_metadata(session, kind, record)
            continue
        if not isinstance(message, dict):
            session.broken += 1
            continue
        session.messages += 1
        own_id = text_of(record.get("sessionId")) or session.session_id
        session.joined += session.session_id not in ("", own_id)
        session.session_id = own_id
        session.add_message(record)
        session.exit_reason = None
        blocks = objects(message, "content")
        for block in blocks:
            of_type = text_of(block.get("type"))
            if of_type not in _BLOCKS and not of_type.endswith("_tool_result"):
                session.add_unknown(f"block {of_type}")
        if kind == "user":
            for block in blocks:
                if text_of(block.get("text")).startswith(_INTERRUPTED):
                    session.exit_reason = "interrupted"
                tool = tools.get(text_of(block.get("tool_use_id")))
                if tool and block.get("type") == "tool_result":
                    tool.is_error = bool(block.get("is_error"))
            continue
        model = text_of(message.get("model"))
        if model == "<synthetic>":  # a message from Claude Code itself, usually an error
            session.error = content_text(message.get("content"))
            continue
        session.error = None
        call_id = text_of(message.get("id")) or text_of(record.get("uuid"))
        call_id = call_id or f"{session.session_id} {session.messages}"  # some gateways assign no id
        call = _usage(call_id, model or None, message.get("usage"))
        if call_id not in calls and "stop_reason" in message:
            unended.add(call_id)
        if message.get("stop_reason") is not None:
            unended.discard(call_id)
        if (call.tokens_out or 0) >= (calls.get(call_id, call).tokens_out or 0):
            calls[call_id] = call
        if not record.get("isSidechain"):
            own.add(call_id)
        for block in blocks:
            if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                used = ToolUse(call_id, text_of(block.get("name")))
                tools.setdefault(text_of(block.get("id")) or f"block {len(tools)}", used)
    if 2 * len(unended) > len(calls) and not session.totals:
        session.partial = len(unended)
    session.complete(path, [calls[call_id] for call_id in calls if call_id in own] or calls.values() or session.totals)
    return session


def _read_metadata(session: Session, kind: str, record: dict[str, Any]) -> None:
    """Update a session from a record without a message."""
    if kind not in _METADATA:
        session.add_unknown(kind or "without a type")
    if part_of(record, "attachment", "type") == "max_turns_reached":
        session.exit_reason = "max_turns_reached"
    if kind == "cost-state":  # total cost of the session so far
        session.cost = None if record.get("hasUnknownModelCost") else number_of(record.get("totalCostUSD"))
    elif kind == "system" and record.get("subtype") == "init":
        if session.session_id not in ("", record.get("sessionId")):  # the totals of a result are of one session
            raise BrokenFileError("several sessions were printed into this file: write each into a file of its own")
        session.version = text_of(record.get("version")) or session.version
    elif kind == "result":
        if session.session_id not in ("", record.get("sessionId")):
            session.add_unknown("result of another session")
            return
        session.session_id = text_of(record.get("sessionId"))
        session.messages += 1  # a result contains the last response
        session.is_main = True
        session.turns = count_of(record.get("num_turns"))
        session.cost = number_of(record.get("total_cost_usd"))
        if isinstance(record.get("modelUsage"), dict):
            session.totals = [_total(model, usage) for model, usage in record["modelUsage"].items()]
        elif not session.calls:  # the first versions do not write modelUsage
            session.totals = [_usage("", None, record.get("usage"))]
        if record.get("subtype") != "success":
            session.exit_reason = text_of(record.get("subtype"))
        if record.get("is_error"):
            session.error = content_text(record.get("result") or record.get("errors")) or session.error


def _total(model: str, usage: Any) -> ModelCall:
    """Return the tokens of all calls of a model, from a result record."""
    names = {"input": "inputTokens", "cache_creation_input": "cacheCreationInputTokens"}
    names |= {"cache_read_input": "cacheReadInputTokens", "output": "outputTokens"}
    counts = {f"{name}_tokens": part_of(usage, key) for name, key in names.items()}
    return _usage("", model.removesuffix("[1m]"), counts)  # the suffix marks a long context


def _usage(call_id: str, model: str | None, usage: Any) -> ModelCall:
    """Return the tokens of a call. A count of 0 means that they were not counted."""
    counts = [count_of(part_of(usage, key)) for key in _READ]
    read = sum(filter(None, counts))
    written = count_of(part_of(usage, "output_tokens"))
    return ModelCall(call_id, model, read or None, counts[-1] if read else None, written or None)


parse = partial(sessions.parsed, summary)


def messages(data: bytes, part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a session. The messages of a subagent follow the call that started it."""
    chat: list[dict[str, Any]] = []
    answers: dict[str, dict[str, Any]] = {}  # responses by id
    agents: dict[str, list[str]] = {}  # subagent files by the id of the call that started them
    prompted = set[str]()  # ids of records that a prompt follows
    seen = set[str]()
    for record in map(_named, records_of(io.BytesIO(data), Session(FORMAT))):
        kind, uuid = record.get("type"), text_of(record.get("uuid"))
        if kind == "result" and not chat:  # `claude -p` may print only the result
            chat.append({"role": "assistant", "content": content_text(record.get("result"))})
        message = record if kind == "system" else record.get("message")
        if part_of(record, "attachment", "commandMode") == "prompt":  # sent while the agent worked
            kind, message = "user", {"content": part_of(record, "attachment", "prompt")}
        if uuid in seen or kind not in ("system", *_SPOKEN) or not isinstance(message, dict):
            continue
        if uuid:
            seen.add(uuid)
        actor = f"subagent {text_of(record.get('agentId'))}".strip() if record.get("isSidechain") else ""
        about = {"name": actor, "timestamp": text_of(record.get("timestamp"))}
        blocks = [{**one, "type": text_of(one.get("type"))} for one in objects(message, "content")]
        blocks = blocks or [{"type": "text", "text": content_text(message.get("content"))}]
        if kind == "assistant":
            key = text_of(message.get("id")) or uuid
            if not key or key not in answers:
                role = "system" if message.get("model") == "<synthetic>" else kind
                answers[key] = {**about, "role": role, "content": [], "usage": {}}
                chat.append(answers[key])
            answer = answers[key]
            answer["content"] += blocks
            usage = _usage(key, None, message.get("usage"))
            if (usage.tokens_out or 0) >= (answer["usage"].get("completion_tokens") or 0):
                answer["usage"] = {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out}
            continue
        results = [one for one in blocks if one.get("type") == "tool_result"]
        if results:
            chat.append({"content": results})
        agent = text_of(part_of(record.get("toolUseResult"), "agentId"))
        if _AGENT_ID.fullmatch(agent):
            agents |= {text_of(one.get("tool_use_id")): [f"agent-{agent}.jsonl"] for one in results}
        text = content_text([one for one in blocks if one.get("type") != "tool_result"])
        if not text:
            continue
        is_injected = (
            kind == "system" or record.get("isMeta") or record.get("isCompactSummary") or _INJECTED.match(text)
        )
        parent = text_of(record.get("parentUuid"))
        if not is_injected and parent:
            if parent in prompted:
                chat.append({**about, "role": "system", "content": sessions.WENT_BACK})
            prompted.add(parent)
        chat.append({**about, "role": "system" if is_injected else "user", "content": text})
    return sessions.with_subagents(chat, agents, messages, open_named)
