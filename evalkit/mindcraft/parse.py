"""Parse one file, an agent's log or another file of an experiment, into records; bad input never raises."""

import math
import os
import zlib
from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, NamedTuple, TypedDict, cast

from evalkit.io import BrokenFileError, WrongShapeError, decode_json, decode_start, read_file, refuse_credentials
from evalkit.kinds import HEAD, Parsed
from evalkit.mindcraft.format import (
    ANYTHING,
    COMMAND,
    EVENT,
    EVENT_PARTS,
    EVENTS,
    FINAL,
    FINAL_STARTS,
    LATEST_START,
    LOG,
    LOG_KEYS,
    NEARLY_FINAL,
    NO_RESULTS,
    NOT_LOGS_BY_NAME,
    NUMBER,
    OTHER,
    RESULTS,
    AgentLog,
    CompletionStatus,
    Turn,
    error_text,
    holds_any,
    is_agent_log,
    model_of,
    other_kind,
    parse_results,
    positive_number,
    results_of,
    split_stem,
    stem_of,
)
from evalkit.mindcraft.table import FLAG_LABELS, RECORDS

ENDS = 2048  # bytes
_NO_EVENTS = dict.fromkeys(EVENTS, 0)
_row = itemgetter(*(column.name for column in RECORDS["logs"]))


class AgentOutcome(TypedDict):
    """The outcome of one agent's log.

    Logs keep only the last messages, so all counts are lower bounds.
    """

    raw_score: float | None  # as logged; 1.0 for the old success wordings, which name none
    completion_status: str  # a `CompletionStatus`; without a task type, a score above 1 is a percentage
    final_system_message: str | None  # the one that decided the status
    agent_log_processed: bool  # the file could be read
    parsing_errors: list[str]  # what was wrong with it: ``ErrorName: cause``
    timed_out: bool  # a time-out was logged
    agent_name: str  # from the file's name
    repetition: int  # its last number (a folder may show otherwise)
    message_count: int  # turns with text
    command_count: int  # commands (``!name``) in the agent's own turns
    events: dict[str, int]  # lines that report trouble
    flags: list[str]  # any of `table.LOG_FLAGS`, but for copies
    task_start: float | None  # epoch milliseconds
    digest: str  # equal for copies
    source: str


def analyze_agent_log(file_path: str | os.PathLike) -> AgentOutcome:
    """Read one agent's log; what can't be read is an outcome, too.

    Only turns of the role ``system`` decide, and only if the whole message is one of the known final wordings. The
    first message with a score gives `raw_score`; a time-out message anywhere overrides the status.
    """
    source = os.fspath(file_path)
    refuse_credentials(source)
    try:
        return agent_outcome(source, read_log(read_file(source)))
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        return agent_outcome(source, broken_log(error_text(error)))


def agent_outcome(source: str, record: Mapping[str, Any]) -> AgentOutcome:
    """Return a record of a log as a dictionary for users, with what the file's name says."""
    name, repetition = split_stem(stem_of(source))
    shared = {key: record[key] for key in AgentOutcome.__annotations__ if key in record}
    own = {
        "completion_status": CompletionStatus(record["completion_status"]),
        "agent_name": name,
        "repetition": repetition or 0,
        "events": {event: record[event] for event in EVENTS if record[event]},
        "source": source,
    }
    return cast(AgentOutcome, shared | own)


def parse(path: str, data: bytes | OSError) -> Parsed:
    """Detect what a file is by its name and shape, and parse it; rows as in `table.RECORDS`."""
    name = os.path.basename(path)
    try:
        if isinstance(data, OSError):
            raise BrokenFileError(error_text(data))
        if name == RESULTS:
            return Parsed("used", "names the model", {"other_files": [(*parse_results(data), None, "")]})
        if name in NOT_LOGS_BY_NAME:
            value, _ = decode_json(data, ANYTHING)
            return _parse_other(value, other_kind(value) or "another kind of file, by its name")
        value, repaired = _decode_log(data)
        if not isinstance(value, AgentLog) and not is_agent_log(value):
            return _parse_other(value, other_kind(value))
        record = _read_turns(value, repaired, data)
    except BrokenFileError as error:
        if name == RESULTS or name in NOT_LOGS_BY_NAME:
            return Parsed("failed", str(error), {})
        start = None if isinstance(data, OSError) else decode_start(data[:HEAD])
        if isinstance(start, dict) and start and not start.keys() & LOG_KEYS:
            other = (*NO_RESULTS, None, OTHER)
            return Parsed("failed", f"{error} (by its beginning, no agent log)", {"other_files": [other]})
        return Parsed("failed", str(error), {"logs": [_row(broken_log(str(error)))]})
    notes = ", ".join(FLAG_LABELS[flag] for flag in record["flags"] if flag.startswith("recovered"))
    return Parsed("used", notes, {"logs": [_row(record)]})


def read_log(data: bytes) -> dict[str, Any]:
    """Read a file as an agent's log, whatever its name: a record, with the columns of `table.RECORDS`."""
    try:
        return _read_turns(*_decode_log(data), data)
    except BrokenFileError as error:
        return broken_log(str(error))


def broken_log(error: str) -> dict[str, Any]:
    """Return the record of a log that could not be read."""
    record = _read_turns(AgentLog([]), [], b"")
    status = CompletionStatus.LOG_FILE_ERROR
    return {**record, "completion_status": status, "agent_log_processed": False, "parsing_errors": [error]}


def _parse_other(value: Any, what: str | None) -> Parsed:
    """Return what a decoded file other than a log says: about the model, or what it is instead."""
    other = "" if what else OTHER
    results = results_of(value) if what == "results" else NO_RESULTS
    model = model_of(value) if what == "agent profile" else None
    row = (*results, model, other)
    return Parsed("skipped", f"not an agent log: {what or other}", {"other_files": [row]} if any(row) else {})


def _decode_log(data: bytes) -> tuple[Any, list[str]]:
    """Decode a log, or any other JSON value, and name what had to be repaired."""
    try:
        value, repaired = decode_json(data, LOG)
    except WrongShapeError:
        return decode_json(data, ANYTHING)
    is_list = isinstance(value, list)
    if is_list or (value.turns and not any(turn.role for turn in value.turns)):  # other objects with lists match, too
        anything, _ = decode_json(data, ANYTHING)
        if not is_agent_log(anything):
            return anything, repaired
    return (AgentLog(turns=value) if is_list else value), repaired


def _salvage(value: Any) -> AgentLog:
    """Return the usable turns of a log in which not every turn has the right shape."""
    fields = value if isinstance(value, dict) else {"turns": value}
    turns = fields.get("turns")
    if not isinstance(turns, list) or (turns is value and not any(isinstance(turn, dict) for turn in turns)):
        raise WrongShapeError("TypeError: no list of turns in it")
    good = [Turn(turn.get("role"), turn.get("content")) if isinstance(turn, dict) else Turn() for turn in turns]
    return AgentLog(turns=good, taskStart=fields.get("taskStart"))


def _read_turns(value: Any, repaired: list[str], data: bytes) -> dict[str, Any]:
    """Read the turns of a decoded log; WrongShapeError if it has none."""
    log = value if isinstance(value, AgentLog) else _salvage(value)
    system, agent, others = list[str](), list[str](), list[str]()  # the texts of the game, of the agent and of others
    for turn in log.turns:
        if isinstance(content := turn.content, str):
            role = turn.role
            (system if role == "system" else agent if role == "assistant" else others).append(content)
    messages = len(system) + len(agent) + len(others)
    joined = "\n".join(system)  # no event spans lines, and no final wording holds a line break
    may_hold_event = holds_any(joined, EVENT_PARTS) or ("!" in joined and ("Bot " in joined or "Command !" in joined))
    events = Counter(match.lastgroup or "" for match in EVENT.finditer(joined)) if may_hold_event else {}

    finals, rest, near, quoted = list[Final](), list[str](), False, False
    if holds_any(joined, FINAL_STARTS):
        for text in system:
            if final := read_final(text):
                finals.append(final)
            else:
                rest.append(text)
        near = any(map(NEARLY_FINAL.search, rest)) if holds_any("\n".join(rest), FINAL_STARTS) else False
    if not finals:
        spoken = "\n".join([*agent, *others])
        quoted = holds_any(spoken, FINAL_STARTS) and FINAL.search(spoken) is not None

    # the first message with a score gives it; a time-out decides the status before a score before any other message
    timeouts = [final for final in finals if final.timed_out]
    scored = [final for final in finals if final.score is not None or final.flag]
    score = scored[0].score if scored else None
    deciding = next(iter(timeouts or scored or finals), None)
    differing = len({final.score for final in scored}) > 1
    start = positive_number(log.taskStart, LATEST_START)
    marks = {
        "conflicting": differing or (timeouts and any(final.score for final in scored)),
        "near_final": near,
        "quoted_only": quoted,
        "restarted": "restarts" in events,
        "turns_skipped": messages < len(log.turns),
    }
    flags = [scored[0].flag] if scored and scored[0].flag else []
    flags += [flag for flag, holds in marks.items() if holds] + [f"recovered_{what}" for what in repaired]
    if timeouts:
        status = CompletionStatus.TIMED_OUT
    elif score is None:
        status = CompletionStatus.NO_SCORE_LOGGED
    elif score in (1, 100):  # of unknown scale: above 1 it is a percentage
        status = CompletionStatus.SUCCESS
    else:
        status = CompletionStatus.FAILED_PARTIAL_SCORE if score > 0 else CompletionStatus.FAILED_SCORE_ZERO

    digest = ""  # equal for copies: length and checksum; with a start in milliseconds, that of both ends suffices
    if agent or others:
        checksum = zlib.crc32(data) if start is None else zlib.crc32(data[-ENDS:], zlib.crc32(data[:ENDS]))
        digest = f"{len(data):x}-{checksum:08x}" + ("" if start is None else f"-{start:.0f}")
    return {
        "raw_score": score,
        "completion_status": status,
        "timed_out": bool(timeouts),
        "final_system_message": deciding.text if deciding else None,
        "agent_log_processed": True,
        "parsing_errors": [],
        "task_start": start,
        "message_count": messages,
        "command_count": len(COMMAND.findall("\n".join([text for text in agent if "!" in text]))),
        **_NO_EVENTS,
        **events,
        "flags": flags,
        "digest": digest,
    }


class Final(NamedTuple):
    """One final message found in a system turn."""

    text: str
    timed_out: bool
    score: float | None
    flag: str = ""  # score_implied or score_not_a_number


def read_final(content: str) -> Final | None:
    """Read a system message as a final one, if its whole text is."""
    text = content.strip()
    match = FINAL.fullmatch(text) if text.startswith(FINAL_STARTS) else None
    if match is None:
        return None
    if match["score"] is None:
        succeeded = match.lastgroup == "succeeded"
        return Final(text, match.lastgroup == "timed_out", *((1.0, "score_implied") if succeeded else (None, "")))
    score = float(match["score"]) if NUMBER.fullmatch(match["score"]) else math.nan
    return Final(text, False, score) if math.isfinite(score) else Final(text, False, None, "score_not_a_number")
