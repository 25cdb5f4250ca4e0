"""Read one agent's log as a dictionary; bad input never raises."""

import math
import os
import zlib
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict

from evalkit.io import BrokenFileError, WrongShapeError, decode_json, read_file, refuse_credentials
from evalkit.mindcraft.format import (
    ANYTHING,
    COMMAND,
    EVENT,
    FINAL,
    FINAL_STARTS,
    LATEST_START,
    LOG,
    NEARLY_FINAL,
    NEVER_FIRST,
    NUMBER,
    WORDINGS,
    AgentLog,
    CompletionStatus,
    Turn,
    describe,
    holds_any,
    is_agent_log,
    may_hold_event,
    name_and_number,
    positive_number,
)

NO_TURNS = "TypeError: no list of turns in it"
ENDS = 2048  # bytes
_SALVAGED = "salvaged"  # not every turn had the right shape


class Final(NamedTuple):
    """One final message found in a system turn."""

    text: str
    timed_out: bool
    score: float | None
    flag: str = ""  # score_implied or score_not_a_number


class AgentOutcome(TypedDict):
    """The outcome of one agent's log; see `analyze_agent_log`."""

    raw_score: float | None
    completion_status: str
    final_system_message: str | None
    near_final_message: str | None
    agent_log_processed: bool
    parsing_errors: list[str]
    timed_out: bool
    agent_name: str
    repetition: int
    message_count: int
    command_count: int
    skipped_turns: int
    events: dict[str, int]
    flags: list[str]
    task_start: float | None
    digest: str
    source: str


def analyze_agent_log(file_path: str | os.PathLike) -> AgentOutcome:
    """Read one agent's log.

    Only turns of the role ``system`` decide, and only if the whole message is one of the known final wordings. The
    first message with a score gives `raw_score`; a time-out message anywhere overrides the status.

    Parameters
    ----------
    file_path : str or path

    Returns
    -------
    AgentOutcome
        raw_score : float or None
            As logged; 1.0 with the flag ``score_implied`` for the old success wordings; None where there is no score.
        completion_status : str
            A `CompletionStatus`. A single log does not name its task type: a score above 1 is read as a percentage.
        final_system_message : str or None
            The message that decided the status.
        near_final_message : str or None
            The first system message that holds a final wording among other text; it decides nothing.
        agent_log_processed, parsing_errors, timed_out
            Whether the file could be read, what was wrong (``ErrorName: cause``), whether a time-out was logged.
        agent_name, repetition
            From the file's name, whose last number is taken as the repetition (a folder may show otherwise).
        message_count, command_count, events
            Turns with text, commands (``!name``) in the agent's own turns, lines that report trouble. Logs keep only
            the last messages, so all are lower bounds.
        flags : list of str
            score_implied, score_not_a_number, score_out_of_range, conflicting, near_final, quoted_only, restarted,
            turns_skipped, recovered_… (what the JSON decoder had to repair).
    """
    source = os.fspath(file_path)
    refuse_credentials(source)
    try:
        data: bytes | OSError = read_file(source)
    except OSError as error:
        data = error
    except ValueError as error:  # a path with a NUL byte
        return failed_log(source, describe(error))
    return read_log(source, data)


def read_log(source: str, data: bytes | OSError) -> AgentOutcome:
    """Read a file as an agent's log, whatever its name."""
    if isinstance(data, OSError):
        return failed_log(source, describe(data))
    try:
        return read_turns(source, *decode_log(data), data)
    except BrokenFileError as error:
        return failed_log(source, str(error))


def decode_log(data: bytes) -> tuple[Any, list[str]]:
    """Decode a log, or any other JSON value."""
    try:
        value, recovered = decode_json(data, LOG)
    except WrongShapeError:
        return decode_json(data, ANYTHING)
    is_list = isinstance(value, list)
    if is_list or (value.turns and not any(turn.role for turn in value.turns)):  # other objects with lists match, too
        anything, _ = decode_json(data, ANYTHING)
        if not is_agent_log(anything):
            return anything, recovered
    return (AgentLog(turns=value) if is_list else value), recovered


def failed_log(source: str, error: str) -> AgentOutcome:
    """Return the outcome of a log that could not be read."""
    outcome = read_turns(source, AgentLog([]), [], b"")
    outcome["completion_status"] = CompletionStatus.LOG_FILE_ERROR
    outcome["agent_log_processed"], outcome["parsing_errors"] = False, [error]
    return outcome


def _salvage(value: Any) -> AgentLog:
    """Return the usable turns of a log in which not every turn has the right shape."""
    fields = value if isinstance(value, dict) else {"turns": value}
    turns = fields.get("turns")
    if not isinstance(turns, list) or (turns is value and not any(isinstance(turn, dict) for turn in turns)):
        raise WrongShapeError(NO_TURNS)
    good = [Turn(turn.get("role"), turn.get("content")) if isinstance(turn, dict) else Turn() for turn in turns]
    return AgentLog(turns=good, taskStart=fields.get("taskStart"))


def read_turns(source: str, value: Any, repaired: list[str], data: bytes) -> AgentOutcome:
    """Read the turns of a decoded log; WrongShapeError if it has none."""
    log, repaired = (value, repaired) if isinstance(value, AgentLog) else (_salvage(value), [*repaired, _SALVAGED])
    system, agent_texts, others = _by_role(log.turns)
    finals = [final for text in system if text[:1] not in NEVER_FIRST and (final := read_final(text))]
    joined = "\n".join(system)
    near = _nearly_final(system, joined)
    events = _count_events(joined)
    quoted = not finals and _quotes_final("\n".join([*agent_texts, *others]))
    messages = len(system) + len(agent_texts) + len(others)
    name, repetition = name_and_number(source)
    skipped = len(log.turns) - messages
    start = positive_number(log.taskStart)
    is_wrong = start is not None and start > LATEST_START
    score, timed_out, deciding, flags = _judge(finals)
    marks = {"near_final": near, "quoted_only": quoted, "restarted": "restarts" in events, "turns_skipped": skipped}
    start, marks["start_out_of_range"] = (None, True) if is_wrong else (start, False)
    flags += [flag for flag, holds in marks.items() if holds]
    flags += [f"recovered_{what}" for what in repaired if what != _SALVAGED]
    return {
        "raw_score": score,
        "completion_status": _status_of(score, timed_out),
        "final_system_message": deciding,
        "near_final_message": near,
        "agent_log_processed": True,
        "parsing_errors": [],
        "timed_out": timed_out,
        "agent_name": name,
        "repetition": repetition or 0,
        "message_count": messages,
        "command_count": len(COMMAND.findall("\n".join([text for text in agent_texts if "!" in text]))),
        "skipped_turns": skipped,
        "events": events,
        "flags": flags,
        "task_start": start,
        "digest": _fingerprint(data, start) if agent_texts or others else "",
        "source": source,
    }


def _by_role(turns: list[Turn]) -> tuple[list[str], list[str], list[str]]:
    """Split the texts of turns by speaker: the game, the agent, and others."""
    system: list[str] = []
    agent: list[str] = []
    others: list[str] = []
    for turn in turns:
        content = turn.content
        if isinstance(content, str):
            role = turn.role
            (system if role == "system" else agent if role == "assistant" else others).append(content)
    return system, agent, others


def _fingerprint(data: bytes, start: float | None) -> str:
    """Identify copies of a log by length and checksum; with a start in milliseconds, that of both ends suffices."""
    if start is None:
        return f"{len(data):x}-{zlib.crc32(data):08x}"
    return f"{len(data):x}-{zlib.crc32(data[-ENDS:], zlib.crc32(data[:ENDS])):08x}-{start:.0f}"


def _count_events(text: str) -> dict[str, int]:
    """Count the lines that report trouble; turns may be joined by line breaks, since no pattern spans lines."""
    if not may_hold_event(text):
        return {}
    return dict(Counter(match.lastgroup or "" for match in EVENT.finditer(text)))


def read_final(content: str) -> Final | None:
    """Parse a system message as a final one; None unless its whole text is one of the wordings."""
    text = content.strip()
    return _final_of(text) if text.startswith(FINAL_STARTS) else None


@lru_cache(maxsize=64)  # all logs end with the same few messages
def _final_of(text: str) -> Final | None:
    match = FINAL.fullmatch(text)
    if match is None:
        return None
    wording = next(w for i, w in enumerate(WORDINGS) if match[f"w{i}"] is not None)
    if match["score"] is None:
        implied = wording.implied_score
        return Final(text, wording.timed_out, implied, "score_implied" if implied is not None else "")
    score = float(match["score"]) if NUMBER.fullmatch(match["score"]) else math.nan
    return Final(text, False, score) if math.isfinite(score) else Final(text, False, None, "score_not_a_number")


def _quotes_final(text: str) -> bool:
    """Return whether a text holds a final wording; no wording holds a line break, so turns may be joined by them."""
    return holds_any(text, FINAL_STARTS) and FINAL.search(text) is not None


def _nearly_final(texts: list[str], joined: str) -> str | None:
    """Return the first system message that holds a final wording among other text; None if there is none.

    `joined` holds the texts, joined by line breaks: it rules out most logs quickly.
    """
    if not holds_any(joined, FINAL_STARTS):
        return None
    rest = [text for text in texts if text[:1] in NEVER_FIRST or read_final(text) is None]
    return next(filter(NEARLY_FINAL.search, rest), None) if holds_any("\n".join(rest), FINAL_STARTS) else None


def _judge(finals: list[Final]) -> tuple[float | None, bool, str | None, list[str]]:
    """Return the score, whether the log timed out, the message that decided the status, and the flags.

    The first message with a score gives it; the status is decided by a time-out before a score before any other.
    """
    if not finals:
        return None, False, None, []
    timeouts = [final for final in finals if final.timed_out]
    scored = [final for final in finals if final.score is not None or final.flag]
    score, timed_out = scored[0].score if scored else None, bool(timeouts)
    conflicting = len({final.score for final in scored}) > 1 or (timed_out and any(f.score for f in scored))
    flags = [final.flag for final in scored[:1] if final.flag]
    flags += ["score_out_of_range"] * (score is not None and not 0 <= score <= 100)
    return score, timed_out, (timeouts or scored or finals)[0].text, flags + ["conflicting"] * conflicting


def _status_of(score: float | None, timed_out: bool) -> CompletionStatus:
    """Return the status of a score of unknown scale: above 1 it is a percentage."""
    if timed_out:
        return CompletionStatus.TIMED_OUT
    if score is None:
        return CompletionStatus.NO_SCORE_LOGGED
    if score in (1, 100):
        return CompletionStatus.SUCCESS
    return CompletionStatus.FAILED_PARTIAL_SCORE if score > 0 else CompletionStatus.FAILED_SCORE_ZERO
