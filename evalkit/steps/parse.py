"""Parse a file into records: JSON, JSONL and LangGraph checkpoints; never raises because of a file's contents.

Checkpoints are decoded as plain data: nothing that they name is imported or called. The database is opened read-only,
its schema is not trusted (https://www.sqlite.org/security.html), and only a real table is queried, since a view could
run forever.
"""

import io
import json
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import msgspec

from evalkit.io import BrokenFileError, Status, decode_json, is_url, reason_of, without_mark
from evalkit.io.frames import cut_name
from evalkit.io.paths import (
    CHARACTER,
    check_document,
    check_regular,
    check_size,
    check_text,
    count_values,
    most_bytes,
)
from evalkit.io.text import UniqueNames
from evalkit.kinds import Parsed
from evalkit.steps.format import HISTORY_KEY, PLAN_KEY, is_record
from evalkit.steps.literals import is_deep, to_jsonable

LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES, ".sqlite", ".sqlite3", ".db")
_OTHER = Parsed("skipped", "not an execution history")

_LISTS = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])  # bytes that begin a list or a mapping in msgpack
_NUMPY, _DELTA = 6, 7  # LangGraph's extension codes; others have (module, name, data, ...)
SECONDS = 60  # time limit for reading a database
_SCHEMA = "SELECT sql FROM sqlite_master WHERE name = 'checkpoints' AND type = 'table'"
_COMPUTED = "SELECT COUNT(*) FROM pragma_table_xinfo('checkpoints') WHERE hidden"
_ID_BYTES = """
    SELECT TOTAL(length(CAST(thread_id AS BLOB))) + TOTAL(length(CAST(checkpoint_ns AS BLOB)))
    + TOTAL(length(CAST(checkpoint_id AS BLOB))) FROM checkpoints
"""
_NEWEST = """
    SELECT rowid, thread_id, checkpoint_ns, MAX(checkpoint_id) FROM checkpoints
    GROUP BY thread_id, checkpoint_ns ORDER BY MAX(checkpoint_id)
"""


def parse_file(path: str, data: bytes) -> Parsed:
    """Parse the histories in the bytes of a file and, for a database, in its write-ahead log."""
    suffix = Path(path).suffix.lower()
    values: list[Any] = []
    broken: list[str] = []
    try:
        if data.startswith(b"SQLite format 3\0"):
            return _parse_checkpoints(path, data)
        content, mark = without_mark(data)
        if suffix in LINES:
            check_text(len(content), count_values(content) + content.count(b"\n"))
    except (OSError, BrokenFileError) as error:
        is_other = isinstance(error, BrokenFileError) and suffix not in SUFFIXES
        return _OTHER if is_other else Parsed("failed", reason_of(error))
    recovered = dict.fromkeys(mark)
    if suffix in LINES and b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for i, text in enumerate(io.BytesIO(content) if suffix in LINES else [content], start=1):
        try:
            if text.strip():
                value, found = decode_json(text)
                values.append(value)
                recovered |= dict.fromkeys(found)
        except BrokenFileError as error:
            broken.append(f"line {i}: {error}" if suffix in LINES else str(error))
    if not values:
        reason = broken[0] if broken else "JSONDecodeError: the file is empty"
        return Parsed("failed", reason) if suffix in SUFFIXES else _OTHER
    notes = [f"recovered: {', '.join(recovered)}"] if recovered else []
    notes += broken[:1]
    if len(broken) > 1:
        notes.append(f"{len(broken)} broken lines")

    value = values if suffix in LINES else values[0]
    value = to_jsonable(value) if is_deep(value) else value  # too deep to handle safely
    state = state_in(value)
    if state:
        entries = state[HISTORY_KEY]
    elif is_record(value):
        entries = [value]
    else:
        entries = value
    if not isinstance(entries, list):
        return _OTHER
    records = [entry for entry in entries if is_record(entry, in_history=state is not None)]
    if entries and not records:
        return _OTHER
    if len(records) < len(entries):
        notes.append(f"{len(entries) - len(records)} of {len(entries)} entries are not records of steps")
    if not entries:
        notes.append("no steps")
    rows: dict[str, list[tuple]] = {"histories": [], "steps": []}
    _add_history(rows, "", records, state.get(PLAN_KEY) if state else None)
    return Parsed("used", "; ".join(notes), rows)


def _parse_checkpoints(path: str, data: bytes) -> Parsed:
    rows: dict[str, list[tuple]] = {"histories": [], "steps": []}
    reasons: list[str] = []
    without = 0
    for thread, values in read_checkpoints(path, data):
        if isinstance(values, BrokenFileError):
            reasons.append(f"thread {thread}: {values}")
        elif isinstance(values.get(HISTORY_KEY), list):
            _add_history(rows, thread, to_jsonable(values[HISTORY_KEY]), to_jsonable(values.get(PLAN_KEY)))
        else:
            without += 1
    status: Status = "skipped"
    if rows["histories"]:
        status = "used"
    elif reasons:
        status = "failed"
    if without:
        reasons.append(f"{without} threads without {HISTORY_KEY}")
    if not (reasons or rows["histories"]):
        reasons.append("no checkpoints")
    return Parsed(status, "; ".join(reasons), rows)


def _add_history(rows: dict[str, list[tuple]], thread: str, records: list, plan: Any) -> None:
    """Add the rows of a history, with its plan and records as JSON text, which takes less memory than objects."""
    rows["histories"].append((thread, None if plan is None else msgspec.json.encode(plan).decode()))
    rows["steps"] += [(thread, msgspec.json.encode(record).decode()) for record in records]


def state_in(value: Any) -> Mapping | None:
    """Return the state that contains a history: the value itself, or one level below as in a dumped snapshot."""
    if not isinstance(value, Mapping):
        return None
    for state in (value, *map(value.get, ("values", "channel_values", "state"))):
        if isinstance(state, Mapping) and isinstance(state.get(HISTORY_KEY), list):
            return state
    return None


def companions(path: str) -> list[str]:
    """Return the path of the write-ahead log that a database of checkpoints may have."""
    return [] if is_url(path) else [f"{path}-wal"]


def read_checkpoints(path: str, data: bytes) -> Iterator[tuple[str, dict[str, Any] | BrokenFileError]]:
    """Yield the newest checkpoint of every thread, the last written at the end. Raise BrokenFileError without a table.

    Each item is the name of the thread, with a subgraph's namespace after a slash, and the ``channel_values`` as plain
    data, or the error if they can't be decoded.
    """
    unique = UniqueNames("{} #{}")
    end = time.monotonic() + SECONDS
    try:
        with TemporaryDirectory(prefix="evalkit-") as folder, closing(_connect(path, data, folder)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most_bytes(), 2**31 - 1))
            connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            [made_by] = connection.execute(_SCHEMA).fetchone() or [""]
            if not re.match(r"CREATE\s+TABLE\b", str(made_by), re.IGNORECASE):
                raise BrokenFileError("no LangGraph checkpoints: no such table: checkpoints")
            if connection.execute(_COMPUTED).fetchone() != (0,):
                raise BrokenFileError("no LangGraph checkpoints: computed columns are not read")
            [size] = connection.execute(_ID_BYTES).fetchone()
            taken = CHARACTER * int(size)
            check_size(taken)  # in a crafted file, many values may share the same bytes
            for row, thread, namespace, _ in connection.execute(_NEWEST).fetchall():
                stored = connection.execute("SELECT type, checkpoint FROM checkpoints WHERE rowid = ?", (row,))
                kind, blob = stored.fetchone() or (None, None)  # in a damaged table
                taken += len(blob) if isinstance(blob, (str, bytes)) else 0
                check_size(taken)
                yield unique(cut_name(f"{thread}/{namespace}" if namespace else str(thread))), _channels(kind, blob)
    except sqlite3.Error as error:
        late = f"reading took longer than the limit of {SECONDS} seconds"
        raise BrokenFileError(f"no LangGraph checkpoints: {late if 'interrupted' in str(error) else error}") from error
    except UnicodeDecodeError as error:  # in names of its schema
        raise BrokenFileError(f"no LangGraph checkpoints: not UTF-8: {error.reason}") from error


def _connect(path: str, data: bytes, folder: str) -> sqlite3.Connection:
    """Open a database without writing: the file, read-only, if it has a write-ahead log; else its bytes in memory.

    SQLite would create a missing index of the log next to the file, so it then opens a copy in a temporary `folder`.
    """
    if not any(map(os.path.exists, companions(path))):
        connection = sqlite3.connect(":memory:")
        connection.deserialize(data[:18] + b"\1\1" + data[20:])  # turn off the write-ahead log
        return connection
    for companion in filter(os.path.lexists, (f"{path}-wal", f"{path}-shm")):
        status = os.stat(companion)
        check_regular(status)
        check_size(status.st_size)
    if not os.path.exists(f"{path}-shm"):
        shutil.copyfile(f"{path}-wal", f"{folder}/copy-wal")
        path = f"{folder}/copy"
        Path(path).write_bytes(data)
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)


def _count_packed(data: bytes) -> tuple[int, int]:
    """Return upper bounds for the characters and values of a MessagePack document, each byte of which may be a value.

    A list or a mapping takes as much memory as five more values.
    """
    lists = len(data) - len(data.translate(None, _LISTS))
    return 0, len(data) + 5 * lists


def _channels(kind: Any, blob: Any) -> dict[str, Any] | BrokenFileError:
    try:
        if kind == "msgpack":
            check_document(blob, _count_packed)
            checkpoint = msgspec.msgpack.decode(blob, ext_hook=_data_of)
        elif kind == "json":
            text = blob.encode() if isinstance(blob, str) else blob
            check_document(text)
            checkpoint = json.loads(text)
        else:
            return BrokenFileError(f"a checkpoint of type {kind!r:.40} is not read")  # loading a pickle runs code
    except (ValueError, RecursionError, TypeError) as error:
        return BrokenFileError(f"a checkpoint can't be decoded: {error}")
    values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
    return values if isinstance(values, dict) else {}


def _data_of(code: int, data: memoryview) -> Any:
    """Return the plain data of an object that LangGraph would rebuild; arrays are not decoded."""
    if code == _NUMPY:
        return "an array"
    inner = msgspec.msgpack.decode(data, ext_hook=_data_of)
    return inner[2] if code != _DELTA and isinstance(inner, (list, tuple)) and len(inner) > 2 else inner
