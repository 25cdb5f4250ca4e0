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
from evalkit.io.columns import cut_name
from evalkit.io.limits import LimitError, check_size, limits
from evalkit.steps.history.values import unique_keys

MAGIC = b"SQLite format 3\0"
_NUMPY, _DELTA = 6, 7  # codes of LangGraph's extension types; the others are (module, name, data, ...)
_DTYPE = re.compile(r"[<>|=]?[?bBhHiIlLqQefdgFDSUmM][0-9]{0,4}(?:\[[a-zA-Z0-9]{1,6}\])?")
_TABLE = "checkpoints"
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_MOST_LEVELS = 1_000  # of nested values
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
# msgpack by the first byte of a value: the bytes that follow it, and the values
_FIXED = dict.fromkeys((*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xE0, 0x100)), (0, 0))  # small numbers, nil, booleans
_FIXED |= {0xCA + i: (n, 0) for i, n in enumerate((4, 8, 1, 2, 4, 8, 1, 2, 4, 8))}  # numbers
_FIXED |= {0xD4 + i: (1 + 2**i, 0) for i in range(5)}  # extensions, after their code
_FIXED |= {0xA0 + n: (n, 0) for n in range(32)}  # short texts
_FIXED |= {0x80 + n: (0, 2 * n) for n in range(16)} | {0x90 + n: (0, n) for n in range(16)}  # short maps and lists
# or the bytes of its size, those of its code, and the values per entry
_SIZED = {first + i: (2**i, more, 0) for first, more in ((0xC4, 0), (0xC7, 1), (0xD9, 0)) for i in range(3)}
_SIZED |= {0xDC: (2, 0, 1), 0xDD: (4, 0, 1), 0xDE: (2, 0, 2), 0xDF: (4, 0, 2)}  # lists and maps


def companions(path: str) -> list[str]:
    """Return the path of the write-ahead log that may be beside a database."""
    return [] if is_url(path) else [f"{path}-wal"]


def read_checkpoints(path: str, data: bytes) -> Iterator[tuple[str, dict[str, Any] | BrokenFileError]]:
    """Yield the newest checkpoint of every thread, the thread written last at the end.

    Yields its name, with the namespace of a subgraph after a slash, and the ``channel_values`` as plain data, or the
    error. Raises BrokenFileError if it is not a database with a table of checkpoints, or exceeds limits.
    """
    most, unique, taken = limits(), unique_keys(), 0
    try:
        with closing(_connect(path, data)) as connection:
            _distrust(connection)
            threads = connection.execute(_NEWEST).fetchmany(most.rows + 1)
            if len(threads) > most.rows:
                raise BrokenFileError(f"LimitError: more threads than the limit of {most.rows} (rows)")
            for row, thread, namespace, _ in threads:
                kind, blob = connection.execute(_ONE, (row,)).fetchone() or (None, None)  # if it is damaged
                taken += len(blob) if isinstance(blob, (str, bytes)) else 0
                check_size(taken)  # many values may share the same bytes
                yield unique(cut_name(f"{thread}/{namespace}" if namespace else str(thread))), _channels(kind, blob)
    except sqlite3.Error as error:
        late = f"reading took longer than the limit of {limits().seconds} (seconds)"
        cause = late if "interrupted" in str(error) else error
        raise BrokenFileError(f"no LangGraph checkpoints: {cause}") from error
    except UnicodeDecodeError as error:  # of names in its schema
        raise BrokenFileError(f"no LangGraph checkpoints: not UTF-8: {error.reason}") from error


def _channels(kind: Any, blob: Any) -> dict[str, Any] | BrokenFileError:
    try:
        if kind not in ("msgpack", "json"):
            return BrokenFileError(f"a checkpoint of type {kind!r:.40} is not read")  # pickles run code
        checkpoint = _from_msgpack(blob) if kind == "msgpack" else json.loads(blob)
    except LimitError as error:
        return BrokenFileError(f"LimitError: {error.strerror}")
    except (ValueError, RecursionError, TypeError) as error:
        return BrokenFileError(f"a checkpoint can't be decoded: {error}")
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
    return connection


def _distrust(connection: sqlite3.Connection) -> None:
    """Disable all features of a connection that reading stored values does not need; reject other schemas."""
    most, end = limits(), time.monotonic() + limits().seconds
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
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


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Authorize statements to read the table and to call MAX, nothing else."""
    known = {sqlite3.SQLITE_READ: first == _TABLE, sqlite3.SQLITE_FUNCTION: second == "max"}.get(action, True)
    return sqlite3.SQLITE_OK if action in _ALLOWED and known else sqlite3.SQLITE_DENY


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


def check_msgpack(data: bytes | memoryview) -> None:
    """Validate a msgpack value without building it.

    A decoder allocates as many entries as a list declares: twelve bytes may ask for gigabytes. Here every list and map
    must have at least one byte for each of its entries, and all of them together must stay within `Limits.values`. The
    contents of extensions are not checked. Raises ValueError if it declares more than there is, LimitError if it holds
    more values, or deeper ones, than the limits allow.
    """
    data, most = bytes(data), limits()
    at, end, values, left, open_ = 0, len(data), 0, 1, list[int]()  # `left`: values to come in the innermost list
    while True:
        while not left:
            if not open_:
                return
            left = open_.pop()
        left, values = left - 1, values + 1
        if at >= end:
            raise ValueError("it ends within a value")
        at, entries = _step(data, at)
        if entries > end - at:
            raise ValueError(f"a list announces {entries} entries, and {max(end - at, 0)} bytes are left")
        if entries:
            open_.append(left)
            left = entries
            if len(open_) > _MOST_LEVELS:
                raise LimitError(errno.EOVERFLOW, f"nested deeper than {_MOST_LEVELS} levels")
        if values > most.values:
            raise LimitError(errno.EFBIG, f"more values than the limit of {most.values} (values)")


def _step(data: bytes, at: int) -> tuple[int, int]:
    """Skip one value; of a list or map only its header, with the number of values that follow."""
    code, at = data[at], at + 1
    if code in _FIXED:
        skipped, entries = _FIXED[code]
        return at + skipped, entries
    if code not in _SIZED:
        raise ValueError(f"no value begins with {code:#x}")
    width, more, per_entry = _SIZED[code]
    size = int.from_bytes(data[at : at + width])
    return at + width + (0 if per_entry else more + size), per_entry * size
