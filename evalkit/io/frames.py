"""Build tables from typed columns, declared once as data: Arrow tables for records, frames for users."""

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io.text import MOST_LINE, cut_line

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Column(NamedTuple):
    """A column of a table.

    `dtype` is one of ``str`` (missing: NaN), ``name`` (a ``str`` that identifies something, such as a model or a task;
    see `cut_name`), ``line`` (a ``str`` that says something in a line: cut in its middle to 500 characters), ``int``
    (never missing), ``int?`` (nullable), ``float`` (missing: NaN), ``bool`` (missing: False), ``bool?`` (nullable),
    ``list`` (of texts), ``counts`` (texts to whole numbers), ``time`` (UTC; missing: NaT), and, in frames only,
    ``object``.
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""


MOST_NAME = 200  # characters of a name
_BEGINNING = MOST_NAME - 13  # characters kept of a name that is cut
_PANDAS = {
    "str": "str",
    "name": "str",
    "line": "str",
    "int": "int64",
    "int?": "Int64",
    "float": "float64",
    "bool": "bool",
    "bool?": "boolean",
    "time": "datetime64[ms, UTC]",
}
_ESCAPED = re.compile(
    r"\\u(d[89a-f][0-9a-f]{2}|005c)"
)  # a lone surrogate, or the backslash of what looks like an escape
_LOOKS_ESCAPED = re.compile(r"\\(?=ud|u005c)")
_TEXTS = dict.fromkeys(("str", "name", "line"), "large_string")
_QUICK = {**_TEXTS, "float": "double"}  # types that Arrow builds from a list several times as fast


def arrow_schema(columns: Sequence[Column]) -> "pa.Schema":
    """Return the Arrow schema of columns."""
    import pyarrow as pa

    types = {
        **dict.fromkeys(_TEXTS, pa.large_string()),
        "int": pa.int64(),
        "int?": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "bool?": pa.bool_(),
        "list": pa.list_(pa.large_string()),
        "counts": pa.map_(pa.large_string(), pa.int64()),
        "time": pa.timestamp("ms", "UTC"),
    }
    return pa.schema([(column.name, types[column.dtype]) for column in columns])


def arrow_table(rows: Sequence[tuple], schema: "pa.Schema") -> "pa.Table":
    r"""Build an Arrow table from rows whose values are in the order of a schema.

    Lone surrogates, as in file names that are not UTF-8, are escaped as ``\udcff``.
    """
    import pyarrow as pa

    if not rows:
        return schema.empty_table()
    columns = [_array(list(values), field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: list, kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_escaped(value) for value in values], kind)


def _escaped(value: Any) -> Any:
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        return {_escaped(key): item for key, item in value.items()}
    return _written_out(value) if isinstance(value, str) else value


def _written_out(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def cut_name(name: str) -> str:
    """Cut a name of more than 200 characters to 200, of which the last twelve are a digest of the whole name."""
    if len(name) <= MOST_NAME:
        return name
    import hashlib  # it would slow the start of commands

    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return f"{name[:_BEGINNING]}…{digest}"


def is_cut_name(name: object) -> bool:
    """Return whether a name was cut."""
    return isinstance(name, str) and len(name) == MOST_NAME and name[_BEGINNING] == "…"


_CUT: dict[str, tuple[int, Callable[[str], str]]] = {"name": (MOST_NAME, cut_name), "line": (MOST_LINE, cut_line)}


def cut_row(row: tuple, columns: Sequence[Column]) -> tuple:
    """Cut the names and lines of a row, whose values are in the order of the columns."""
    pairs = zip(row, columns, strict=True)
    return tuple(_CUT[c.dtype][1](v) if c.dtype in _CUT and isinstance(v, str) else v for v, c in pairs)


def _cut(values: Any, most: int, cut: Callable[[str], str]) -> Any:
    """Cut the texts of a column; one without a long text is returned as it is."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        is_long = (pc.max(pc.binary_length(values)).as_py() or 0) > most
    else:
        values = values if isinstance(values, pd.Series) else list(values)
        is_long = any(isinstance(value, str) and len(value) > most for value in values)
    texts = values.to_pylist() if hasattr(values, "to_pylist") else values
    return [cut(text) if isinstance(text, str) else text for text in texts] if is_long else values


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column]) -> "pd.DataFrame":
    r"""Build a frame column by column, with the same dtypes even without rows.

    Parameters
    ----------
    rows : iterable of mappings
        Keys without a column are left out; a missing key is a missing value.
    columns : sequence of Column

    Returns
    -------
    pandas.DataFrame
        With the columns in the order given. Lone surrogates, which no text column can hold, are escaped as
        ``\udcff``.
    """
    rows = list(rows)
    return frame_of({column.name: map(methodcaller("get", column.name), rows) for column in columns}, columns)


def frame_of(values: Mapping[str, Iterable], columns: Sequence[Column]) -> "pd.DataFrame":
    """Build a frame from its columns' values, which is faster than a dictionary for each of many rows.

    Parameters
    ----------
    values : mapping of column name to iterable, array or Arrow array
        All of one length, one for each column; the values as in the rows of `frame`. Iterables are consumed one column
        after the other, so that they need the memory of one column only.
    columns : sequence of Column

    Returns
    -------
    pandas.DataFrame
        As `frame` returns it.
    """
    import pandas as pd

    return pd.DataFrame({column.name: _series(values[column.name], column.dtype) for column in columns}, copy=False)


def _series(values: Any, dtype: str) -> "pd.Series":
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    if dtype in _CUT:
        values = _cut(values, *_CUT[dtype])
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(values, dtype)
    if isinstance(values, np.ndarray) and dtype in _PANDAS:
        return pd.Series(values, dtype=_PANDAS[dtype], copy=False)
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True).astype(_PANDAS.get(dtype, "object"))  # type: ignore[call-overload]  # the stubs accept literals only
    values = list(values)
    if dtype in ("object", "list", "counts"):
        return _objects(values)
    if dtype == "bool":
        return pd.Series(np.fromiter(map(bool, values), bool, len(values)))
    if dtype == "int":
        return pd.Series(np.array(values, "int64"))
    try:
        if dtype == "int?":
            return _integers(pa.array(values, "int64", from_pandas=True))
        if dtype in _QUICK:
            return pd.Series(pa.array(values, _QUICK[dtype], from_pandas=True).to_pandas(), dtype=_PANDAS[dtype])
    except (pa.ArrowException, UnicodeEncodeError):
        values = [_written_out(v) if isinstance(v, str) else v for v in values]
    return pd.Series(values, dtype=_PANDAS[dtype])


def _from_arrow(values: Any, dtype: str) -> "pd.Series":
    import pandas as pd

    if dtype in ("object", "list"):
        return _objects(values.to_pylist())
    if dtype == "counts":
        return _objects([None if item is None else dict(item) for item in values.to_pylist()])
    if dtype == "bool":
        values = values.fill_null(False)
    if dtype == "int?":
        return _integers(values)
    if dtype == "bool?":
        return pd.Series(values.to_pandas(integer_object_nulls=True), dtype=_PANDAS[dtype])
    return pd.Series(values.to_pandas(), dtype=_PANDAS[dtype])


def _integers(values: Any) -> "pd.Series":
    """Convert an Arrow array to nullable whole numbers, several times as fast as pandas does."""
    import pandas as pd

    filled, missing = _numpy(values.fill_null(0)), _numpy(values.is_null())
    return pd.Series(pd.arrays.IntegerArray(filled, missing))


def _numpy(values: Any) -> Any:
    import numpy as np

    array = values.to_numpy() if hasattr(values, "chunks") else values.to_numpy(zero_copy_only=False)
    return np.array(array)  # a writable copy


def _objects(values: list) -> "pd.Series":
    import pandas as pd

    out = pd.Series([None] * len(values), dtype="object")
    out[:] = values
    return out


def escape_surrogates(name: str) -> str:
    r"""Escape the bytes of a file's name that are not UTF-8, as in ``\udcff``.

    The backslash of a name that already contains such an escape becomes ``\u005c``, so that names stay distinct.
    """
    if name.isascii() and "\\u" not in name:
        return name
    return _written_out(_LOOKS_ESCAPED.sub(r"\\u005c", name))


def unescaped(texts: "pa.ChunkedArray") -> list[str]:
    """Unescape a column of file names; see `unescape_surrogates`."""
    import pyarrow.compute as pc

    names = texts.to_pylist()
    return list(map(unescape_surrogates, names)) if pc.any(pc.match_substring(texts, "\\u")).as_py() else names


def unescape_surrogates(text: str) -> str:
    """Return the name of a file that `escape_surrogates` has escaped."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pause the garbage collector: with many live rows it takes a quarter of the time and frees nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
