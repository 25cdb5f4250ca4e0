"""Parse one file, an agent's log or another file of an experiment, into records; bad input never raises."""

import os
from operator import itemgetter
from typing import Any

from evalkit.io import BrokenFileError, decode_json, plain
from evalkit.kinds import HEAD, Parsed, recognise
from evalkit.mindcraft.agent_log import AgentOutcome, decode_log, failed_log, read_turns
from evalkit.mindcraft.format import (
    ANYTHING,
    EVENTS,
    LOG_TITLE,
    NO_RESULTS,
    NOT_LOGS_BY_NAME,
    OTHER,
    RESULTS,
    AgentLog,
    describe,
    is_agent_log,
    model_of,
    other_kind,
    parse_results,
    results_of,
)
from evalkit.mindcraft.table import RECORDS

NEAR_FINAL_WIDTH = 200  # characters of a message in the ledger
_BY_NAME = "another kind of file, by its name"
_NO_EVENTS = dict.fromkeys(EVENTS, 0)
_row = itemgetter(*(column.name for column in RECORDS["logs"]))


def parse(path: str, data: bytes | OSError) -> Parsed:
    """Detect what a file is by its name and shape, and parse it; rows as in `table.RECORDS`."""
    outcome = _read(path, data)
    if isinstance(outcome, Parsed):
        return outcome
    row = _row({**outcome, **_NO_EVENTS, **outcome["events"]})
    if not outcome["agent_log_processed"]:
        return Parsed("failed", "; ".join(outcome["parsing_errors"]), {"logs": [row]})
    notes = [flag for flag in outcome["flags"] if flag.startswith(("recovered", "start_"))]
    if near := outcome["near_final_message"]:
        notes.append(f"near_final: {plain(near, NEAR_FINAL_WIDTH)}")
    return Parsed("used", ", ".join(notes), {"logs": [row]})


def outcome_of(path: str, data: bytes | OSError) -> AgentOutcome | None:
    """Read a file as an agent's log if its name and shape show one; None for any other file."""
    read = _read(path, data)
    return None if isinstance(read, Parsed) else read


def _read(path: str, data: bytes | OSError) -> Parsed | AgentOutcome:
    name = os.path.basename(path)
    if name == RESULTS or name in NOT_LOGS_BY_NAME:
        return _parse_named(name, data)
    if isinstance(data, OSError):
        return failed_log(path, describe(data))
    try:
        value, mended = decode_log(data)
        if not isinstance(value, AgentLog) and not is_agent_log(value):
            return _parsed_other(other_kind(value), value, data)
        return read_turns(path, value, mended, data)
    except BrokenFileError as error:
        look = recognise(data[:HEAD])
        if look and look.title != LOG_TITLE:
            other = (*NO_RESULTS, None, look.title)
            return Parsed("failed", f"{error} (by its beginning: {look.title})", {"other_files": [other]})
        return failed_log(path, str(error))


def _parse_named(name: str, data: bytes | OSError) -> Parsed:
    """Parse a file whose name shows that it is not a log."""
    try:
        if isinstance(data, OSError):
            raise BrokenFileError(describe(data))
        if name == RESULTS:
            return Parsed("used", "names the model", {"other_files": [(*parse_results(data), None, "")]})
        value, _ = decode_json(data, ANYTHING)
        return _parsed_other(other_kind(value) or _BY_NAME, value)
    except BrokenFileError as error:
        return Parsed("failed", str(error), {})


def _parsed_other(what: str | None, value: Any, data: bytes = b"") -> Parsed:
    """Return what a decoded file other than a log says: about the model, or what it is instead."""
    look = None if what else recognise(data[:HEAD])
    other = "" if what else look.title if look else OTHER
    results = results_of(value) if what == "results" else NO_RESULTS
    model = model_of(value) if what == "agent profile" else None
    row = (*results, model, other)
    return Parsed("skipped", f"not an agent log: {what or other}", {"other_files": [row]} if any(row) else {})
