"""Reading the state that LangGraph's SQLite checkpointer keeps: plain data only, without LangGraph.

Values are decoded with msgspec, and nothing of what a file names is imported or called: of objects LangGraph would
rebuild, only the data they were made of are taken.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from evalkit.steps.jsonable import unique_key

SQLITE_MAGIC = b"SQLite format 3\0"
_NUMPY, _DELTA = 6, 7  # codes of LangGraph's extension types; the others are (module, name, data, ...)

_NEWEST = """
    SELECT thread_id, checkpoint_ns, type, checkpoint FROM checkpoints
    WHERE (thread_id, checkpoint_ns, checkpoint_id) IN
        (SELECT thread_id, checkpoint_ns, MAX(checkpoint_id) FROM checkpoints GROUP BY thread_id, checkpoint_ns)
    ORDER BY checkpoint_id
"""


class CheckpointError(ValueError):
    """A SQLite file that holds no checkpoints, or one that can't be read."""


def read_checkpoints(path: str) -> Iterator[tuple[str, dict[str, Any] | CheckpointError]]:
    """Read the newest checkpoint of every thread, the thread written last at the end.

    Parameters
    ----------
    path : str
        A database of LangGraph's SQLite checkpointer. It is opened for reading only; nothing is written beside it.

    Yields
    ------
    thread : str
        ``thread_id``, with the namespace of a subgraph behind a slash.
    values : dict, or the CheckpointError met
        ``channel_values`` as plain data.

    Raises
    ------
    CheckpointError
        Where the file is no such database.
    """
    # without a write-ahead log beside it nobody is writing: SQLite then need not make files of its own
    mode = "ro" if Path(f"{path}-wal").exists() else "ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode={mode}", uri=True)) as connection:
            rows = connection.execute(_NEWEST).fetchall()
    except sqlite3.Error as error:
        raise CheckpointError(f"no LangGraph checkpoints: {error}") from error
    taken: dict[str, None] = {}
    for thread, namespace, kind, blob in rows:
        name = unique_key(taken, f"{thread}/{namespace}" if namespace else str(thread))
        taken[name] = None
        try:
            checkpoint = _decode(kind, blob)
        except CheckpointError as error:
            yield name, error
            continue
        values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
        yield name, values if isinstance(values, dict) else {}


def _decode(kind: str, blob: bytes) -> Any:
    try:
        if kind == "msgpack":
            return msgspec.msgpack.decode(blob, ext_hook=_data_of)
        if kind == "json":
            return json.loads(blob)
    except (ValueError, RecursionError, TypeError) as error:
        raise CheckpointError(f"a checkpoint can't be decoded: {error}") from error
    raise CheckpointError(f"a checkpoint of type {kind!r} is not read")  # pickles run code


def _data_of(code: int, data: memoryview) -> Any:
    """Take the data an object was made of."""
    inner = msgspec.msgpack.decode(data, ext_hook=_data_of)
    if code == _DELTA:
        return inner
    if code == _NUMPY:
        import numpy as np

        dtype, shape, order, buffer = inner
        return np.frombuffer(buffer, dtype=np.dtype(dtype)).reshape(shape, order=order).tolist()
    return inner[2] if isinstance(inner, (list, tuple)) and len(inner) > 2 else inner
