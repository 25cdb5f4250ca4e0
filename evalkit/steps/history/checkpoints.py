"""Read checkpoints of LangGraph's SQLite checkpointer as plain data, without LangGraph and without trusting the file.

Nothing that a file names is imported or called; of objects that LangGraph would rebuild, only their data are read. The
database is opened as https://www.sqlite.org/security.html recommends for untrusted files: read-only, with its schema
not trusted, cells checked, limits on the cost of values and statements, a deadline, and an authorizer that allows
reading only the columns of the real table ``checkpoints``.
"""

import errno
import json
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import msgspec

from evalkit.io import BrokenFileError, is_url
from evalkit.io.limits import LimitError, check_size, limits
from evalkit.steps.history.msgpack import check_msgpack
from evalkit.steps.history.values import unique_keys

MAGIC = b"SQLite format 3\0"
_NUMPY, _DELTA = 6, 7  # codes of LangGraph's extension types; the others are (module, name, data, ...)
_DTYPE = re.compile(r"[<>|=]?[?bBhHiIlLqQefdgFDSUmM][0-9]{0,4}(?:\[[a-zA-Z0-9]{1,6}\])?")
_TABLE = "checkpoints"
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_STEPS = 10_000  # of SQLite's virtual machine, between two checks of the clock
_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,  # also of what the schema says
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 10,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
_SCHEMA = f"SELECT type, sql FROM sqlite_master WHERE name = '{_TABLE}'"
_COMPUTED = f"SELECT COUNT(*) FROM pragma_table_xinfo('{_TABLE}') WHERE hidden"
_NEWEST = f"""
    SELECT rowid, thread_id, checkpoint_ns, MAX(checkpoint_id) FROM {_TABLE}
    GROUP BY thread_id, checkpoint_ns ORDER BY MAX(checkpoint_id)
"""
_ONE = f"SELECT type, checkpoint FROM {_TABLE} WHERE rowid = ?"


def companions(path: str) -> list[str]:
    """Return the path of the write-ahead log that may be beside a database."""
    return [] if is_url(path) else [f"{path}-wal"]


def read_checkpoints(path: str, data: bytes) -> Iterator[tuple[str, dict[str, Any] | BrokenFileError]]:
    """Yield the newest checkpoint of every thread, the thread written last at the end.

    Yields its name, with the namespace of a subgraph after a slash, and the ``channel_values`` as plain data, or the
    error.

    Raises
    ------
    BrokenFileError
        If it is not a database with a table of checkpoints, or exceeds limits.
    """
    most, unique, taken = limits(), unique_keys(), 0
    try:
        with closing(_connect(path, data)) as connection:
            threads = connection.execute(_NEWEST).fetchmany(most.rows + 1)
            if len(threads) > most.rows:
                raise BrokenFileError(f"LimitError: more threads than the limit of {most.rows} (rows)")
            for row, thread, namespace, _ in threads:
                kind, blob = connection.execute(_ONE, (row,)).fetchone() or (None, None)  # if it is damaged
                taken += len(blob) if isinstance(blob, (str, bytes)) else 0
                check_size(taken)  # many values may share the same bytes
                yield unique(f"{thread}/{namespace}" if namespace else str(thread)), _channels(kind, blob)
    except sqlite3.Error as error:
        raise BrokenFileError(f"no LangGraph checkpoints: {_cause(error)}") from error
    except UnicodeDecodeError as error:  # of names in its schema
        raise BrokenFileError(f"no LangGraph checkpoints: not UTF-8: {error.reason}") from error


def _channels(kind: Any, blob: Any) -> dict[str, Any] | BrokenFileError:
    try:
        checkpoint = _decode(kind, blob)
    except BrokenFileError as error:
        return error
    values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
    return values if isinstance(values, dict) else {}


def _connect(path: str, data: bytes) -> sqlite3.Connection:
    """Open an untrusted database for reading; nothing is written beside it."""
    beside = [] if is_url(path) else [p for p in (*companions(path), f"{path}-shm") if os.path.lexists(p)]
    if any(map(os.path.exists, companions(path))):
        for companion in beside:
            status = os.stat(companion)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, f"not a regular file: {os.path.basename(companion)}")
            check_size(status.st_size)
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)
    else:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(data[:18] + b"\1\1" + data[20:])  # those two bytes ask for a write-ahead log
    try:
        _distrust(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _distrust(connection: sqlite3.Connection) -> None:
    """Disable all features of a connection that reading stored values does not need; reject other schemas."""
    most, end = limits(), time.monotonic() + limits().seconds
    connection.text_factory = _text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most.bytes, 2**31 - 1))
    for category, limit in _LIMITS.items():
        connection.setlimit(category, limit)
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
        connection.execute(f"PRAGMA {pragma}")
    kind, made_by = connection.execute(_SCHEMA).fetchone() or ("", "")
    if kind != "table" or not re.match(r"CREATE\s+TABLE\b", str(made_by), re.IGNORECASE):
        raise BrokenFileError(f"no LangGraph checkpoints: no such table: {_TABLE}")  # a view may run for ever
    if connection.execute(_COMPUTED).fetchone() != (0,):
        raise BrokenFileError("no LangGraph checkpoints: columns that are computed are not read")
    connection.set_authorizer(_authorize)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Authorize statements to read the table and to call MAX, nothing else."""
    known = {sqlite3.SQLITE_READ: first == _TABLE, sqlite3.SQLITE_FUNCTION: second == "max"}.get(action, True)
    return sqlite3.SQLITE_OK if action in _ALLOWED and known else sqlite3.SQLITE_DENY


def _cause(error: sqlite3.Error) -> str:
    if "interrupted" in str(error):
        return f"reading took longer than the limit of {limits().seconds} (seconds)"
    return str(error)


def _decode(kind: Any, blob: Any) -> Any:
    try:
        if kind == "msgpack":
            return _from_msgpack(blob)
        if kind == "json":
            return json.loads(blob)
    except LimitError as error:
        raise BrokenFileError(f"LimitError: {error.strerror}") from error
    except (ValueError, RecursionError, TypeError) as error:
        raise BrokenFileError(f"a checkpoint can't be decoded: {error}") from error
    raise BrokenFileError(f"a checkpoint of type {kind!r:.40} is not read")  # pickles run code


def _from_msgpack(data: Any) -> Any:
    check_msgpack(data)
    return msgspec.msgpack.decode(data, ext_hook=_data_of)


def _data_of(code: int, data: memoryview) -> Any:
    """Return the data that an object was made of."""
    inner = _from_msgpack(data)
    if code == _DELTA:
        return inner
    if code == _NUMPY:
        return _numbers_of(*inner)
    return inner[2] if isinstance(inner, (list, tuple)) and len(inner) > 2 else inner


def _numbers_of(dtype: Any, shape: Any, order: Any, buffer: Any) -> Any:
    """Convert an array's bytes to lists; ValueError unless it holds plain numbers, texts or times."""
    import numpy as np

    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype) or order not in ("C", "F", "A"):
        raise ValueError("an array of another type than numbers, texts and times")
    size = 1
    for length in shape:  # an array without values may have a shape of many lists
        size *= max(int(length), 1)
    if size > limits().values:
        raise LimitError(errno.EFBIG, f"an array of more than {limits().values} values (values)")
    return np.frombuffer(buffer, dtype=np.dtype(dtype)).reshape(shape, order=order).tolist()
