"""Messages of trajectories of any format, and functions that read them from the formats of chat APIs."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import msgspec

from evalkit.trajectories.json_values import count_of, error_text, number_of, objects, part_of, text_of, time_of

_ROLES = ("system", "user", "assistant", "tool")
_OF_OTHER_APIS = frozenset(("type", "parts", "object"))  # keys of messages of other APIs
_DETAILS = _OF_OTHER_APIS | {"function_call", "extra", "reasoning_content", "thought", "timestamp", "usage", "cost"}
_NAMED = {  # roles in other frameworks
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "tool": "tool",
    "ipython": "tool",  # Llama
}
# parts of messages, recognised by their key or the end of their type, such as server_tool_use
_CALLS = ("tool_use", "tool-call", "function_call", "functionCall", "toolUse")
_RESULTS = ("tool_result", "tool-result", "function_response", "functionResponse", "toolResult")
_OF_RESULT = {
    "tool_call_id": ("tool_use_id", "toolCallId", "toolUseId", "id"),
    "content": ("content", "result", "output", "response"),
    "error": ("is_error", "isError"),
}
# a function that decodes a file that a trajectory names, or with `is_text` returns its text; the file must be in the
# trajectory's folder, with `is_text` also in a subfolder; returns None if there is no such file
OpenNamed = Callable[..., Any]


class ToolCall(msgspec.Struct):
    """A call of a tool."""

    name: str
    arguments: str  # as text, usually JSON
    call_id: str = ""
    result: str | None = None  # None if unknown
    is_error: bool = False  # whether the result is an error


class Message(msgspec.Struct):
    """A message of a trajectory."""

    role: str  # such as system, user, assistant, error, or tool if the call is unknown
    text: str
    actor: str = ""  # name of the sender, if known
    reasoning: str = ""
    calls: Sequence[ToolCall] = ()
    when: str = ""  # time, in ISO format; "" if unknown
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None


def content_text(content: Any) -> str:
    """Return the text of a message's content or its parts. Other parts are named, such as ``[image: dog.png]``."""
    if isinstance(content, str):
        return content
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
    source = part_of(part, "source", "path") or part_of(part, "image_url", "url") or part.get(kind, part.get("url"))
    name = source if isinstance(source, str) and not source.startswith("data:") else ""
    return f"[{kind}: {name}]" if name else f"[{kind}]"


def chat_messages(messages: Any) -> list[Message]:
    """Read messages in the format of a chat API. The reply of a tool becomes the result of its call."""
    out: list[Message] = []
    called: dict[str, ToolCall] = {}  # by call id
    unanswered: list[ToolCall] = []  # calls without an id in the last message that has such calls
    for given in objects(messages):
        is_plain = given.get("role") in _ROLES and isinstance(given.get("content"), str) and _DETAILS.isdisjoint(given)
        is_only_text = is_plain and given["role"] != "tool" and "tool_calls" not in given and "name" not in given
        if is_only_text:
            out.append(Message(given["role"], given["content"]))
            continue
        parts = [given] if is_plain else _apart(_as_chat(given))
        for message in parts:
            extra = message.get("extra")
            if not isinstance(extra, dict):
                extra = {}
            actor = text_of(message.get("name"))
            role = text_of(message.get("role")) or (actor if actor in _ROLES else "user")
            text = content_text(message.get("content"))
            returned = extra.get("returncode")
            if role == "tool" or returned is not None:  # mini-swe-agent returns results as user messages
                # SWE-agent writes a list of ids
                ids = message.get("tool_call_ids") or [message.get("tool_call_id") or message.get("id")]
                call_id = text_of(ids[0])
                if call := called.get(call_id) if call_id else _next_call(unanswered, actor):
                    error = message.get("error") or message.get("tool_error")
                    call.result = text or ("" if isinstance(error, bool) else error_text(error))
                    call.is_error = bool(error) or message.get("status") == "error" or returned not in (None, 0)
                    continue
            calls: Sequence[ToolCall] = ()
            if tool_calls := message.get("tool_calls"):
                calls = [_chat_call(call) for call in objects(tool_calls)]
            if extra and not calls:
                calls = [ToolCall("shell", text_of(action.get("command"))) for action in objects(extra, "actions")]
            if calls:
                called |= {call.call_id: call for call in calls if call.call_id}
                unanswered = [call for call in calls if not call.call_id] or unanswered
            spoken = Message(role, text, actor, calls=calls)
            if not is_plain:
                _add_details(spoken, message, extra)
            out.append(spoken)
    return out


def _next_call(unanswered: list[ToolCall], name: str) -> ToolCall | None:
    """Remove and return the call that a result without an id answers: the first one of its name, if it has a name.

    Only one call can be meant if there is only one; its name may differ, such as by a prefix.
    """
    for place, call in enumerate(unanswered):
        if name in ("", call.name):
            return unanswered.pop(place)
    return unanswered.pop() if len(unanswered) == 1 else None


def _add_details(spoken: Message, message: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    """Set the reasoning, time, tokens and cost of a message."""
    spoken.reasoning = _reasoning(message)
    when = message.get("timestamp") or extra.get("timestamp") or ""
    if not isinstance(when, str):
        time = time_of(when)
        when = time.isoformat() if time else ""
    spoken.when = when
    if usage := message.get("usage") or part_of(extra, "response", "usage"):
        spoken.tokens_in = count_of(part_of(usage, "prompt_tokens"))
        spoken.tokens_out = count_of(part_of(usage, "completion_tokens"))
    spoken.cost = number_of(message.get("cost", extra.get("cost")))


def _apart(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Split a message with tool calls and results as parts (Anthropic), or with a ``function_call`` (OpenAI)."""
    if isinstance(message.get("function_call"), dict) and not message.get("tool_calls"):
        return [message | {"tool_calls": [message["function_call"]]}]
    content = message.get("content")
    parts = objects(content) if isinstance(content, list) else []
    if not parts:
        return [message]
    if not any(_within(part, (*_CALLS, *_RESULTS)) for part in parts):
        return [message]
    apart = []
    whole = message  # usage and cost go to the first message only
    for has_results, some in groupby(parts, lambda part: bool(_within(part, _RESULTS))):
        own = list(some)
        if has_results:
            for result in chain.from_iterable(_within(part, _RESULTS) for part in own):
                answer = {name: _first(result, *keys) for name, keys in _OF_RESULT.items()}
                answer["name"] = result.get("name")
                apart.append(answer | {"role": "tool", "status": result.get("status")})
            continue
        calls = [call for part in own for call in _within(part, _CALLS)]
        rest = [part for part in own if not _within(part, _CALLS)]
        apart.append(whole | {"content": rest, "tool_calls": calls})
        whole = {"role": message.get("role")}
    return apart


def _within(part: dict[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the part itself if its type ends with one of the names, or else the objects under these keys."""
    is_named = text_of(part.get("type")).endswith(names)
    return [part] if is_named else objects([part.get(name) for name in names])


def _first(value: Mapping[str, Any], *keys: str) -> Any:
    """Return the first value that is not None under the given keys."""
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None


def _as_chat(message: dict[str, Any]) -> dict[str, Any]:
    """Convert a message of another API (OpenAI Responses, Gemini, LangChain) to the format of a chat API."""
    if message.get("role") in _ROLES and _OF_OTHER_APIS.isdisjoint(message):  # already in the format
        return message
    kind = text_of(message.get("type"))
    if kind.endswith("_call_output"):
        return {"role": "tool", "tool_call_id": message.get("call_id"), "content": message.get("output")}
    if kind.endswith("_call"):
        return {"role": "assistant", "tool_calls": [{"name": kind} | message]}
    if kind == "reasoning":
        return {"role": "assistant", "reasoning_content": message.get("summary")}
    if message.get("object") != "response":
        if kind in _NAMED and isinstance(message.get("data"), dict):
            message = message | message["data"]
        role = _NAMED.get(text_of(message.get("role")) or kind)
        if role:
            message = message | {"role": role}
        return message | {"content": message["parts"]} if "parts" in message else message
    items = objects(message, "output")
    content = [part for item in items if item.get("type") == "message" for part in objects(item, "content")]
    calls = [item for item in items if item.get("type") == "function_call"]
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    usage = {name: part_of(message, "usage", key) for name, key in names.items()}
    made = {"role": "assistant", "content": content, "tool_calls": calls, "usage": usage}
    return made | {"extra": message.get("extra")}


def _chat_call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    name = _first(named, "name", "function_name", "toolName") or (function if isinstance(function, str) else "")
    call_id = _first(call, "tool_call_id", "call_id", "id", "toolCallId", "toolUseId")
    return ToolCall(text_of(name), text_of(_first(named, "arguments", "args", "input", "action")), text_of(call_id))


def _reasoning(message: Mapping[str, Any]) -> str:
    thought = content_text(message.get("reasoning_content") or message.get("thought"))
    content = message.get("content")
    texts = [thought] if thought and thought != content_text(content) else []
    if not isinstance(content, list):
        return "".join(texts)
    thinking = [part for part in objects(message, "content") if part.get("type") in ("reasoning", "thinking")]
    texts += [text_of(part.get("reasoning") or part.get("thinking") or part.get("summary")) for part in thinking]
    return "\n".join(filter(None, texts))
