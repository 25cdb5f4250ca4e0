"""Parse a file into records: JSON, JSONL and checkpoints of LangGraph; never raises for a file's contents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalkit.io import BrokenFileError, Status, decode_json, without_mark
from evalkit.kinds import Parsed
from evalkit.steps.checkpoints import MAGIC, read_checkpoints
from evalkit.steps.format import HISTORY_KEY, PLAN_KEY
from evalkit.steps.normalise import is_deep, is_record, to_jsonable

LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES, ".sqlite", ".sqlite3", ".db")
_DECODER = msgspec.json.Decoder()
_OTHER = Parsed("skipped", "not an execution history")


def parse_file(path: str, data: bytes | OSError) -> Parsed:
    """Parse the histories of a file; its first bytes and suffix show its format.

    Besides the bytes, only a database's write-ahead log is read, which holds what was written to it last.
    """
    try:
        if isinstance(data, OSError):
            raise data
        if data.startswith(MAGIC):
            return _parse_checkpoints(path, data)
        if Path(path).suffix.lower() in LINES:
            return _parse_lines(data)
        try:
            value, recovered = decode_json(data, _DECODER)
        except BrokenFileError:
            if data.lstrip()[:1] == b"{" and b"\n" in data.strip():  # records line by line under another suffix
                parsed = _parse_lines(data)
                if parsed.rows:
                    return parsed
            raise
        return _parse_value(value, recovered)
    except OSError as error:
        return Parsed("failed", f"{type(error).__name__}: {error.strerror or error}")
    except BrokenFileError as error:
        return Parsed("failed", str(error)) if Path(path).suffix.lower() in SUFFIXES else _OTHER


def _parse_lines(data: bytes) -> Parsed:
    data, mark = without_mark(data)
    values, broken, recovered = list[Any](), list[str](), set(mark)
    for i, line in enumerate(data.splitlines(), 1):
        try:
            if line.strip():
                value, notes = decode_json(line, _DECODER)
                values.append(value)
                recovered.update(notes)
        except BrokenFileError as error:
            broken.append(f"line {i}: {error}")
    if not values:
        raise BrokenFileError(broken[0] if broken else "JSONDecodeError: the file is empty")
    more = f" and {len(broken) - 1} more broken lines" if len(broken) > 1 else ""
    return _parse_value(values, sorted(recovered), *[f"{line}{more}" for line in broken[:1]])


def _parse_value(value: Any, recovered: Sequence[str], *reasons: str) -> Parsed:
    state = _state_in(value)
    entries = state[HISTORY_KEY] if state else [value] if is_record(value) else value
    records = list(filter(is_record, entries)) if isinstance(entries, list) else []
    if not isinstance(entries, list) or (entries and not records):
        return _OTHER
    notes = [f"recovered: {', '.join(recovered)}"] * bool(recovered) + list(reasons)
    if len(records) < len(entries):
        notes.append(f"{len(entries) - len(records)} of {len(entries)} entries are no records of steps")
    notes += ["no steps"] * (not entries)
    return _parsed("used", notes, [("", records, state.get(PLAN_KEY) if state else None)])


def _parse_checkpoints(path: str, data: bytes) -> Parsed:
    histories, without, reasons = list[tuple[str, list, Any]](), 0, list[str]()
    for thread, values in read_checkpoints(path, data):
        if isinstance(values, BrokenFileError):
            reasons.append(f"thread {thread}: {values}")
        elif isinstance(values.get(HISTORY_KEY), list):
            histories.append((thread, to_jsonable(values[HISTORY_KEY]), to_jsonable(values.get(PLAN_KEY))))
        else:
            without += 1
    status: Status = "used" if histories else "failed" if reasons else "skipped"
    reasons += [f"{without} threads without {HISTORY_KEY}"] * bool(without)
    return _parsed(status, reasons if reasons or histories else ["no checkpoints"], histories)


def _parsed(status: Status, notes: Sequence[str], histories: list[tuple[str, list, Any]]) -> Parsed:
    """Return the rows of histories, each given by thread, records and plan; they are kept as JSON text."""
    rows: dict[str, list[tuple]] = {"histories": [], "steps": []}
    for thread, records, plan in histories:
        rows["histories"].append((thread, None if plan is None else _json_text(plan)))
        rows["steps"] += [(thread, _json_text(record)) for record in records]
    return Parsed(status, "; ".join(notes), rows)


def _json_text(value: Any) -> str:
    """Encode a decoded value; a structure too deep to be handled safely is kept as text below a level."""
    return msgspec.json.encode(to_jsonable(value) if is_deep(value) else value).decode()


def is_history(value: Any) -> bool:
    """Return whether decoded JSON is a history, or the record of a step as on a line of one."""
    entries = value if isinstance(value, list) else [value]
    return _state_in(value) is not None or any(map(is_record, entries))


def _state_in(value: Any) -> Mapping | None:
    """Find the state that holds a history, or one level below, as in a dumped snapshot."""
    if not isinstance(value, Mapping):
        return None
    states = (value, *map(value.get, ("values", "channel_values", "state")))
    return next((s for s in states if isinstance(s, Mapping) and isinstance(s.get(HISTORY_KEY), list)), None)
