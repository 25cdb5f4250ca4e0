"""Parse a file into records: JSON, JSONL and checkpoints of LangGraph; never raises for a file's contents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalkit.io import BrokenFileError, Status, decode_json, without_mark
from evalkit.kinds import Parsed
from evalkit.steps.format import HISTORY_KEY, PLAN_KEY
from evalkit.steps.history.checkpoints import MAGIC, read_checkpoints
from evalkit.steps.history.records import is_record
from evalkit.steps.history.values import to_jsonable

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
            return _from_checkpoints(path, data)
        return _from_lines(data) if Path(path).suffix.lower() in LINES else _from_json(data)
    except OSError as error:
        return Parsed("failed", f"{type(error).__name__}: {error.strerror or error}")
    except BrokenFileError as error:
        return Parsed("failed", str(error)) if Path(path).suffix.lower() in SUFFIXES else _OTHER


def _from_json(data: bytes) -> Parsed:
    try:
        value, recovered = decode_json(data, _DECODER)
    except BrokenFileError:
        if data.lstrip()[:1] == b"{" and b"\n" in data.strip():  # records line by line under another suffix
            parsed = _from_lines(data)
            if parsed.rows:
                return parsed
        raise
    return _from_value(value, recovered)


def _from_lines(data: bytes) -> Parsed:
    data, mark = without_mark(data)
    values, broken, recovered = [], list[str](), set(mark)
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
    return _from_value(values, sorted(recovered), *[f"{line}{more}" for line in broken[:1]])


def _from_value(value: Any, recovered: Sequence[str], *reasons: str) -> Parsed:
    state = _state_in(value)
    entries = state[HISTORY_KEY] if state else [value] if is_record(value) else value
    records = [entry for entry in entries if is_record(entry)] if isinstance(entries, list) else []
    if not isinstance(entries, list) or (entries and not records):
        return _OTHER
    notes = [f"recovered: {', '.join(recovered)}"] * bool(recovered) + list(reasons)
    if len(records) < len(entries):
        notes.append(f"{len(entries) - len(records)} of {len(entries)} entries are no records of steps")
    notes += ["no steps"] * (not entries)
    return Parsed("used", "; ".join(notes), _rows([("", records, state.get(PLAN_KEY) if state else None)]))


def is_history(value: Any) -> bool:
    """Return whether decoded JSON is a history, or the record of a step as on a line of one."""
    entries = value if isinstance(value, list) else [value]
    return _state_in(value) is not None or any(map(is_record, entries))


def _state_in(value: Any) -> Mapping | None:
    """Find the state that holds a history, or one level below, as in a dumped snapshot."""
    if not isinstance(value, Mapping):
        return None
    states = (value, *(value.get(key) for key in ("values", "channel_values", "state")))
    return next((s for s in states if isinstance(s, Mapping) and isinstance(s.get(HISTORY_KEY), list)), None)


def _rows(histories: list[tuple[str, list, Any]]) -> dict[str, list[tuple]]:
    """Return the rows of histories, each given by thread, records and plan."""
    return {
        "histories": [(thread, None if plan is None else _as_json(plan)) for thread, _, plan in histories],
        "steps": [(thread, _as_json(record)) for thread, records, _ in histories for record in records],
    }


def _as_json(value: Any) -> str:
    return msgspec.json.encode(to_jsonable(value)).decode()


def _from_checkpoints(path: str, data: bytes) -> Parsed:
    histories, without, reasons = [], 0, list[str]()
    for thread, values in read_checkpoints(path, data):
        if isinstance(values, BrokenFileError):
            reasons.append(f"thread {thread}: {values}")
        elif isinstance(values.get(HISTORY_KEY), list):
            histories.append((thread, values[HISTORY_KEY], values.get(PLAN_KEY)))
        else:
            without += 1
    status: Status = "used" if histories else "failed" if reasons else "skipped"
    reasons += [f"{without} threads without {HISTORY_KEY}"] * bool(without)
    return Parsed(status, "; ".join(reasons) or ("" if histories else "no checkpoints"), _rows(histories))
