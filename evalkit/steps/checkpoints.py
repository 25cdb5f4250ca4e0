"""Read checkpoints of LangGraph's SQLite checkpointer as plain data, without LangGraph and without trusting the file.

Nothing that a file names is imported or called; of objects that LangGraph would rebuild, only their data are read. The
database is opened read-only, its schema is not trusted (https://www.sqlite.org/security.html), and only a real table of
stored values is asked: a view could run for ever.
"""

import json
import math
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from evalkit.io import BrokenFileError
from evalkit.io.frames import cut_name
from evalkit.io.limits import check_regular, check_size, limits
from evalkit.steps.format import companions
from evalkit.steps.normalise import unique_keys

MAGIC = b"SQLite format 3\0"
_NUMPY, _DELTA = 6, 7  # codes of LangGraph's extension types; the others are (module, name, data, ...)
_DTYPE = re.compile(r"[<>|=]?[?bBhHiIlLqQefdgFDSUmM][0-9]{0,4}(?:\[[a-zA-Z0-9]{1,6}\])?")
_TABLE = "checkpoints"
_SCHEMA = f"SELECT sql FROM sqlite_master WHERE name = '{_TABLE}' AND type = 'table'"
_COMPUTED = f"SELECT COUNT(*) FROM pragma_table_xinfo('{_TABLE}') WHERE hidden"
_NEWEST = f"""
    SELECT rowid, thread_id, checkpoint_ns, MAX(checkpoint_id) FROM {_TABLE}
    GROUP BY thread_id, checkpoint_ns ORDER BY MAX(checkpoint_id)
"""
_ONE = f"SELECT type, checkpoint FROM {_TABLE} WHERE rowid = ?"


def read_checkpoints(path: str, data: bytes) -> Iterator[tuple[str, dict[str, Any] | BrokenFileError]]:
    """Yield the newest checkpoint of every thread, the thread written last at the end.

    Yields its name, with the namespace of a subgraph after a slash, and the ``channel_values`` as plain data, or the
    error. Raises BrokenFileError if it is not a database with a table of checkpoints, or exceeds limits.
    """
    most, unique, taken = limits(), unique_keys(), 0
    end = time.monotonic() + most.seconds
    try:
        with closing(_connect(path, data)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most.bytes, 2**31 - 1))
            connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            [made_by] = connection.execute(_SCHEMA).fetchone() or [""]
            if not re.match(r"CREATE\s+TABLE\b", str(made_by), re.IGNORECASE):
                raise BrokenFileError(f"no LangGraph checkpoints: no such table: {_TABLE}")
            if connection.execute(_COMPUTED).fetchone() != (0,):
                raise BrokenFileError("no LangGraph checkpoints: columns that are computed are not read")
            for row, thread, namespace, _ in connection.execute(_NEWEST).fetchall():
                kind, blob = connection.execute(_ONE, (row,)).fetchone() or (None, None)  # if it is damaged
                taken += len(blob) if isinstance(blob, (str, bytes)) else 0
                check_size(taken)  # many values may share the same bytes
                yield unique(cut_name(f"{thread}/{namespace}" if namespace else str(thread))), _channels(kind, blob)
    except sqlite3.Error as error:
        late = f"reading took longer than the limit of {most.seconds} (seconds)"
        raise BrokenFileError(f"no LangGraph checkpoints: {late if 'interrupted' in str(error) else error}") from error
    except UnicodeDecodeError as error:  # of names in its schema
        raise BrokenFileError(f"no LangGraph checkpoints: not UTF-8: {error.reason}") from error


def _connect(path: str, data: bytes) -> sqlite3.Connection:
    """Open a database read-only: the file, if a write-ahead log is beside it, else its bytes; nothing is written."""
    if not any(map(os.path.exists, companions(path))):
        connection = sqlite3.connect(":memory:")
        connection.deserialize(data[:18] + b"\1\1" + data[20:])  # those two bytes ask for a write-ahead log
        return connection
    for beside in filter(os.path.lexists, (f"{path}-wal", f"{path}-shm")):
        status = os.stat(beside)
        check_regular(status)
        check_size(status.st_size)
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)


def _channels(kind: Any, blob: Any) -> dict[str, Any] | BrokenFileError:
    try:
        if kind not in ("msgpack", "json"):
            return BrokenFileError(f"a checkpoint of type {kind!r:.40} is not read")  # pickles run code
        checkpoint = msgspec.msgpack.decode(blob, ext_hook=_data_of) if kind == "msgpack" else json.loads(blob)
    except (ValueError, RecursionError, TypeError) as error:
        return BrokenFileError(f"a checkpoint can't be decoded: {error}")
    values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
    return values if isinstance(values, dict) else {}


def _data_of(code: int, data: memoryview) -> Any:
    """Return the data that an object was made of."""
    inner = msgspec.msgpack.decode(data, ext_hook=_data_of)
    if code == _DELTA:
        return inner
    if code == _NUMPY:
        dtype, shape, order, buffer = inner
        if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype) or order not in ("C", "F", "A"):
            raise ValueError("an array of another type than numbers, texts and times")
        if math.prod(max(length, 1) for length in shape) > len(buffer) + 1000:  # very many lists without a value
            raise ValueError("an array of more values than bytes")
        return np.frombuffer(buffer, dtype=np.dtype(dtype)).reshape(shape, order=order).tolist()
    return inner[2] if isinstance(inner, (list, tuple)) and len(inner) > 2 else inner
