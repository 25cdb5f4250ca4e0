"""From files to histories: JSON, JSONL and SQLite checkpoints; never raises for what a file holds."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evalkit.io import (
    BrokenFileError,
    decode_json,
    is_url,
    read_file,
)
from evalkit.io.ledger import Status
from evalkit.steps.checkpoint import SQLITE_MAGIC, CheckpointError, read_checkpoints
from evalkit.steps.format import DEFAULTS, HISTORY_KEY, PLAN_KEY, Options, StepRecord
from evalkit.steps.labels import unique_labels
from evalkit.steps.records import is_record, normalise_history

LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES, ".sqlite", ".sqlite3", ".db")
_DECODER = msgspec.json.Decoder()
_NONE = "not an execution history"


class History(NamedTuple):
    """One history, known by its source and thread.

    Attributes
    ----------
    source : str
        Path of the file.
    thread : str
        Thread of a checkpoint; empty for other files.
    records : list of StepRecord
        Normalised (`normalise_history`).
    plan : object
        The plan, where it was kept.
    name : str
        What tells it apart from those it was read with; set by `labelled`.
    """

    source: str
    thread: str
    records: list[StepRecord]
    plan: Any = None
    name: str = ""

    @property
    def label(self) -> str:
        """The name, or that of the file with the thread, for a history that was read alone."""
        return self.name or unique_labels([(self.source, self.thread)])[self.source, self.thread]


def labelled(histories: Iterable[History]) -> list[History]:
    """Name histories that are shown together, so that each has a label of its own."""
    histories = list(histories)
    names = unique_labels((history.source, history.thread) for history in histories)
    return [history._replace(name=names[history.source, history.thread]) for history in histories]


class Found(NamedTuple):
    """What one file held: its histories, and the status and reason its entry in the ledger gets."""

    histories: list[History]
    status: Status
    reason: str


def read_history_file(path: str, options: Options = DEFAULTS) -> Found:
    """Read the histories of one file; see `parse_history`."""
    try:
        return parse_history(path, read_file(path), options)
    except OSError as error:
        return parse_history(path, error, options)


def parse_history(path: str, data: bytes | OSError, options: Options = DEFAULTS) -> Found:
    """Find the histories in the bytes of a file; the kind is told by the first of them and the suffix."""
    try:
        if isinstance(data, OSError):
            raise data
        if data.startswith(SQLITE_MAGIC):
            return _from_database(path, data, options)
        if Path(path).suffix.lower() in LINES:
            return _from_lines(path, data, options)
        return _from_json(path, data, options)
    except OSError as error:
        return Found([], "failed", f"{type(error).__name__}: {error.strerror or error}")
    except (BrokenFileError, CheckpointError) as error:
        other = Path(path).suffix.lower() not in SUFFIXES
        return Found([], "skipped", _NONE) if other else Found([], "failed", str(error))


def _from_database(path: str, data: bytes, options: Options) -> Found:
    if not is_url(path):
        return _from_checkpoints(path, path, options)
    with tempfile.TemporaryDirectory() as folder:  # SQLite opens local files only
        copy = os.path.join(folder, "checkpoints.sqlite")
        Path(copy).write_bytes(data)
        return _from_checkpoints(path, copy, options)


def _from_json(path: str, data: bytes, options: Options) -> Found:
    try:
        value, recovered = decode_json(data, _DECODER)
    except BrokenFileError:
        if data.lstrip()[:1] == b"{" and b"\n" in data.strip():  # records line by line under another suffix
            found = _from_lines(path, data, options)
            if found.histories:
                return found
        raise
    return _from_value(path, value, options, [f"recovered: {', '.join(recovered)}"] if recovered else [])


def _from_lines(path: str, data: bytes, options: Options) -> Found:
    values, broken, notes = [], [], set()
    for i, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value, recovered = decode_json(line, _DECODER)
            values.append(value)
            notes.update(recovered)
        except BrokenFileError as error:
            broken.append(f"line {i}: {error}")
    reasons = [f"recovered: {', '.join(sorted(notes))}"] if notes else []
    if broken:
        more = f" and {len(broken) - 1} more broken lines" if len(broken) > 1 else ""
        reasons.append(f"{broken[0]}{more}")
    if not values:
        raise BrokenFileError(broken[0] if broken else "JSONDecodeError: the file is empty")
    return _from_value(path, values, options, reasons)


def _from_value(path: str, value: Any, options: Options, reasons: list[str]) -> Found:
    state = _state_in(value)
    plan = state.get(PLAN_KEY) if state else None
    entries = state[HISTORY_KEY] if state else [value] if is_record(value) else value
    if not isinstance(entries, list):
        return Found([], "skipped", _NONE)
    records = [entry for entry in entries if is_record(entry)]
    if entries and not records:
        return Found([], "skipped", _NONE)
    if len(records) < len(entries):
        reasons = [*reasons, f"{len(entries) - len(records)} of {len(entries)} entries are no records of steps"]
    if not entries:
        reasons = [*reasons, "no steps"]
    history = History(path, "", normalise_history(records, options), plan)
    return Found([history], "used", "; ".join(reasons))


def _state_in(value: Any) -> Mapping | None:
    """Find the state that holds a history, also one level below, as in a dumped snapshot."""
    if not isinstance(value, Mapping):
        return None
    inner = [value[key] for key in ("values", "channel_values", "state") if isinstance(value.get(key), Mapping)]
    return next((state for state in (value, *inner) if isinstance(state.get(HISTORY_KEY), list)), None)


def _from_checkpoints(path: str, database: str, options: Options) -> Found:
    histories, without, broken = [], 0, []
    for thread, values in read_checkpoints(database):
        if isinstance(values, CheckpointError):
            broken.append(f"thread {thread}: {values}")
        elif isinstance(values.get(HISTORY_KEY), list):
            records = normalise_history(values[HISTORY_KEY], options)
            histories.append(History(path, thread, records, values.get(PLAN_KEY)))
        else:
            without += 1
    reasons = broken + ([f"{without} threads without {HISTORY_KEY}"] if without else [])
    status = "used" if histories else "failed" if broken else "skipped"
    return Found(histories, status, "; ".join(reasons) or ("" if histories else "no checkpoints"))
