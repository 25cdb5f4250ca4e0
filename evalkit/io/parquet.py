"""Frames as Parquet: what Arrow has no type for (lists, mappings) is written as JSON, and comes back as it was."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_OBJECTS = b"evalkit.objects"  # names the columns that are written as JSON
_EMPTY = {list: "[]", dict: "{}", type(None): "null"}


def to_table(frame: "pd.DataFrame") -> "pa.Table":
    """Turn a frame with the plain index into an Arrow table.

    Raises
    ------
    ValueError, TypeError, RecursionError
        For what neither Arrow nor JSON can hold and give back as it was, such as a tuple in a cell.
    """
    import pyarrow as pa

    objects = [name for name in frame if frame[name].dtype == object]
    frame = frame.assign(**{name: [_json(value) for value in frame[name]] for name in objects})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table.replace_schema_metadata({**table.schema.metadata, _OBJECTS: json.dumps(objects)})


def _same(a: Any, b: Any) -> bool:
    """Tell whether two values are the same, and of the same types all the way down; NaN is itself here."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(_same, a.values(), b.values()))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b or (a != a and b != b)


def is_json(value: Any) -> bool:
    """Tell whether JSON can hold a value and give it back as it was."""
    try:
        _json(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _json(value: Any) -> str:
    """Write a cell as JSON; TypeError where another one would be read."""
    if not value and type(value) in _EMPTY:  # most cells
        return _EMPTY[type(value)]
    text = json.dumps(value)
    if not _same(value, json.loads(text)):
        raise TypeError("JSON has no form for it")
    return text


def to_frame(table: "pa.Table") -> "pd.DataFrame":
    """Turn a table of `to_table`, or some of its columns, back into a frame; tuples in cells have become lists."""
    import pandas as pd

    frame = table.to_pandas(use_threads=False)
    for name in json.loads(table.schema.metadata[_OBJECTS]):
        if name in frame:
            values = pd.Series([None] * len(frame), dtype="object")
            values[:] = [json.loads(text) for text in frame[name].tolist()]
            frame[name] = values
    return frame


def write_table(table: "pa.Table") -> bytes:
    """Write a table as a Parquet file with checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def read_table(data: bytes, columns: list[str] | None = None) -> "pa.Table":
    """Read a Parquet file, or some of its columns, in this thread.

    Raises
    ------
    ValueError, OSError
        Where it is none, or not what was written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_table(pa.BufferReader(data), columns=columns, use_threads=False, page_checksum_verification=True)
