"""Parse a file into records: JSON, JSONL and checkpoints of LangGraph; never raises for a file's contents."""

from collections.abc import Mapping
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
    suffix = Path(path).suffix.lower()
    try:
        if isinstance(data, OSError):
            raise data
        if data.startswith(MAGIC):
            return _parse_checkpoints(path, data)
        value, notes = _decode_lines(data) if suffix in LINES else _decode(data)
    except OSError as error:
        return Parsed("failed", f"{type(error).__name__}: {error.strerror or error}")
    except BrokenFileError as error:
        return Parsed("failed", str(error)) if suffix in SUFFIXES else _OTHER
    value = to_jsonable(value) if is_deep(value) else value  # too deep to be handled safely
    state = _state_in(value)
    entries = state[HISTORY_KEY] if state else [value] if is_record(value) else value
    records = list(filter(is_record, entries)) if isinstance(entries, list) else []
    if not isinstance(entries, list) or (entries and not records):
        return _OTHER
    if len(records) < len(entries):
        notes.append(f"{len(entries) - len(records)} of {len(entries)} entries are no records of steps")
    notes += ["no steps"] * (not entries)
    return Parsed("used", "; ".join(notes), _rows([("", records, state.get(PLAN_KEY) if state else None)]))


def _decode(data: bytes) -> tuple[Any, list[str]]:
    """Decode a JSON file, which may hold records line by line; returns also what was recovered, and broken lines."""
    try:
        value, recovered = decode_json(data, _DECODER)
    except BrokenFileError:
        if data.lstrip()[:1] == b"{" and b"\n" in data.strip():
            values, notes = _decode_lines(data)
            if any(map(is_record, values)):
                return values, notes
        raise
    return value, [f"recovered: {', '.join(recovered)}"] * bool(recovered)


def _decode_lines(data: bytes) -> tuple[list, list[str]]:
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
    notes = [f"recovered: {', '.join(sorted(recovered))}"] * bool(recovered)
    more = f" and {len(broken) - 1} more broken lines" if len(broken) > 1 else ""
    return values, [*notes, *(f"{line}{more}" for line in broken[:1])]


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
    return Parsed(status, "; ".join(reasons or ["no checkpoints"] * (not histories)), _rows(histories))


def _rows(histories: list[tuple[str, list, Any]]) -> dict[str, list[tuple]]:
    """Return the rows of histories, each given by thread, records and plan; these are kept as JSON text."""
    rows: dict[str, list[tuple]] = {"histories": [], "steps": []}
    for thread, records, plan in histories:
        rows["histories"].append((thread, None if plan is None else msgspec.json.encode(plan).decode()))
        rows["steps"] += [(thread, msgspec.json.encode(record).decode()) for record in records]
    return rows


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
