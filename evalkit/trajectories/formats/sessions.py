"""Code shared by the session formats of coding agents: read records line by line, collect model and tool calls."""

import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

import msgspec

from evalkit._text import counted_noun
from evalkit.io import BrokenFileError, decode_json, decode_start
from evalkit.io.paths import CHARACTER, check_document, check_text, count_values, most_bytes, most_unchecked
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_lines import named_counts
from evalkit.trajectories.json_values import text_of
from evalkit.trajectories.records import Fact, counted, run_row, used

EXCERPT = b'{"excerpt_of_session":'  # first bytes of each excerpt
HEAD = 65_536  # bytes to examine when recognising a session
WENT_BACK = "the user went back to an earlier message, from which the session goes on"
_MOST_NAMED = 8  # unknown types to name in a message


class ModelCall(msgspec.Struct, array_like=True, gc=False):
    """A call of a model with its tokens, which are None if they were not logged."""

    call_id: str  # equal for copies of the call in other files
    model: str | None = None
    tokens_in: int | None = None  # including tokens from a cache
    tokens_cache: int | None = None
    tokens_out: int | None = None
    is_replayed: bool | None = False  # whether it was copied from another session; None if this file does not show it


class ToolUse(msgspec.Struct, array_like=True, gc=False):
    """A call of a tool in a response of a model."""

    call_id: str  # id of the model call
    name: str
    is_error: bool | None = None  # whether the tool failed; None if no result was logged


class Session(msgspec.Struct):
    """The facts about a run in one session file."""

    excerpt_of_session: str  # name of the format
    agent: str = ""  # name of the agent; "" if it is the name of the format
    session_id: str = ""
    part_of: str = ""  # id of the session that started this one as a subagent
    forked_from: str = ""  # id of the session whose history this one may begin with
    model: str | None = None  # the model that wrote the most tokens
    version: str | None = None
    started: str | None = None
    exit_reason: str | None = None
    status: str = "completed"
    error: str | None = None
    cost: float | None = None
    turns: int | None = None  # number of turns as logged, for a session without calls
    messages: int = 0  # number of messages that were understood
    is_main: bool = False  # whether any message is from the main agent, not a subagent
    calls: dict[str, ModelCall] = {}  # by call id
    totals: list[ModelCall] = []  # logged totals, without ids: all calls of each model, including calls not in the file
    tools: dict[str, ToolUse] = {}  # by tool call id
    partial: int = 0  # number of responses with only their first output tokens counted; 0 unless most are
    joined: int = 0  # number of times that messages of another session follow
    broken: int = 0  # number of lines without an object, or without a message where one is expected
    unknown: dict[str, int] = {}  # number of records by unknown type

    def add_unknown(self, kind: str) -> None:
        """Count a record of an unknown type."""
        self.unknown[kind] = self.unknown.get(kind, 0) + 1

    def add_message(self, record: dict[str, Any]) -> None:
        """Update version, start and `is_main` from the record of a message."""
        self.version = text_of(record.get("version")) or self.version
        when = record.get("timestamp")
        if when and isinstance(when, str):
            self.started = min(self.started or when, when)
        self.is_main = self.is_main or not record.get("isSidechain")

    def complete(self, path: str, own: Iterable[ModelCall]) -> None:
        """Set the id if the file has none, the parent of a subagent, and the model that wrote most in `own` calls."""
        self.session_id = self.session_id or os.path.basename(path).removesuffix(".jsonl")
        if self.messages and not self.is_main:
            self.part_of = self.session_id
        written = Counter[str]()
        for call in own:
            if call.model:
                written[call.model] += 1 + 1_000 * (call.tokens_out or 0)
        self.model = max(written, key=written.__getitem__, default=None)


SESSION = msgspec.json.Decoder(Session)


def first_records(data: bytes) -> list[Any]:
    """Return the objects in the first lines of a file, or the start of a first line longer than `HEAD` bytes."""
    head = data[:HEAD]
    records = list(records_of(io.BytesIO(head), Session(""))) or decode_start(head)
    return records if isinstance(records, list) else [records]


def records_of(file: BinaryIO, session: Session) -> Iterator[dict[str, Any]]:
    """Yield the object in each line of a file, and count lines without one in the session."""
    most = most_bytes() // CHARACTER
    usual_size = most_unchecked()
    for line in iter(partial(file.readline, most), b""):
        if len(line) == most and not line.endswith(b"\n"):  # the error names the limit that the line needs
            size, values = most, count_values(line)
            while part := file.readline(HEAD):
                size += len(part)
                values += count_values(part)
                if part.endswith(b"\n"):
                    break
            check_text(size, values)
        if line.isspace():
            continue
        check_document(line, usual_size=usual_size)
        record = None
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            with suppress(BrokenFileError):
                record = decode_json(line)[0]  # accepts JSON of non-conforming writers, such as NaN
        if isinstance(record, dict):
            yield record
        else:
            session.broken += 1


def parsed(summary: Callable[[str, BinaryIO], Session], path: str, data: bytes) -> Parsed:
    """Return the run of a session, or of a subagent, which `evalkit.trajectories.calls` joins to its session.

    `data` is a file, or an excerpt of one: the result of `summary` as JSON. The status is ``failed`` if no part of the
    file was understood.
    """
    session = SESSION.decode(data) if data.startswith(EXCERPT) else summary(path, io.BytesIO(data))
    named = Counter(dict(Counter(session.unknown).most_common(_MOST_NAMED)))
    if others := sum(session.unknown.values()) - named.total():
        named["others"] = others
    broken = f"{counted_noun(session.broken, 'broken line')} left out" if session.broken else ""
    is_unclear = any(call.is_replayed is None for call in session.calls.values())
    copied = "tokens are missing unless the logs include the session that it continues" if is_unclear else ""
    first = f"of {counted_noun(session.partial, 'answer')} only the first written tokens are counted"
    known = Counter[str | None]()
    for call in session.calls.values():
        known[call.model] += call.tokens_in or 0
    unprinted = sum(max((one.tokens_in or 0) - known[one.model], 0) for one in session.totals if known[one.model])
    read = f"{unprinted:,} of the tokens read are of calls that were not printed" if unprinted else ""
    joined = "its sessions, with different ids, count as one run" if session.joined else ""
    unknown = named_counts(named, "record")
    doubts = list(filter(None, [broken, joined, unknown, copied, first if session.partial else "", read]))
    if not (session.messages or session.calls or doubts):
        return Parsed("skipped", "a session without a message")
    if not session.calls and (session.unknown or not session.messages):
        what = "answer" if session.messages else "message"
        return Parsed("failed", "; ".join([f"no {what} was understood", *doubts]))
    run = run_row(
        format=session.excerpt_of_session,
        agent=session.agent or session.excerpt_of_session,
        agent_version=session.version,
        log_id=session.session_id,
        task_id=session.session_id,  # sessions do not share tasks
        model_name=session.model,
        started=session.started,
        status=session.status,
        exit_reason=session.exit_reason,
        error=session.error,
        turns=session.turns,
        **counted(cost=session.cost),
    )
    facts = [Fact("unknown", name, value=str(n)) for name, n in named.items()]
    if session.part_of:
        facts.append(Fact("part_of", value=session.part_of))
    if session.forked_from:
        facts.append(Fact("forked_from", value=session.forked_from))
    calls = [*map(msgspec.structs.astuple, [*session.calls.values(), *session.totals])]
    tools = [*map(msgspec.structs.astuple, session.tools.values())]
    return used([run], facts=facts, reason="; ".join(doubts), calls=calls, tools=tools)


def with_subagents(
    chat: list[dict[str, Any]],
    agents: Mapping[str, Iterable[str]],
    messages: Callable[[bytes, str, OpenNamed], list[Message]],
    open_named: OpenNamed,
) -> list[Message]:
    """Return the messages of a session. The messages of a subagent follow the call that started it.

    `agents` maps the ids of these calls to the names of the subagents' files.
    """
    out: list[Message] = []
    for message in chat_messages(chat):
        if message.role == "tool":  # a result with its call in another file
            continue
        out.append(message)
        for name in (name for call in message.calls for name in agents.get(call.call_id, ())):
            if (of_agent := open_named(name)) is not None:
                out += messages(of_agent, "", open_named)
    return out
