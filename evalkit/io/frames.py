"""Build tables from columns declared as data: Arrow tables for records, frames for users. Keep the ledger of files."""

import gc
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import methodcaller
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._text import counted_noun
from evalkit.io.text import MOST_LINE, cut_end, cut_line

MOST_NAME = 200  # maximum length of a name, in characters
Status = Literal["used", "skipped", "failed"]
Dtype = Literal[
    "str", "name", "line", "category", "int", "int?", "float", "bool", "bool?", "list", "counts", "time", "object"
]  # the type of a column; see `Column`
_PANDAS: dict[str, Any] = {
    **dict.fromkeys(("str", "name", "line"), pd.StringDtype(na_value=np.nan)),
    "category": pd.CategoricalDtype(),
    "int": np.dtype("int64"),
    "int?": pd.Int64Dtype(),
    "float": np.dtype("float64"),
    "bool": np.dtype("bool"),
    "bool?": pd.BooleanDtype(),
    "time": pd.DatetimeTZDtype("ms", "UTC"),
}
_ARROW = {
    **dict.fromkeys(("str", "name", "line", "category"), pa.large_string()),
    **dict.fromkeys(("int", "int?"), pa.int64()),
    "float": pa.float64(),
    **dict.fromkeys(("bool", "bool?"), pa.bool_()),
    "list": pa.list_(pa.large_string()),
    "counts": pa.map_(pa.large_string(), pa.int64()),
    "time": pa.timestamp("ms", "UTC"),
}
RECORD_DTYPES = tuple(name for name in _ARROW if name != "category")  # of columns of records
FRAME_DTYPES = get_args(Dtype)  # of columns of frames
# exceptions that Arrow and pandas raise for a value that does not fit its column
COLUMN_ERRORS = (AttributeError, NotImplementedError, OverflowError, TypeError, ValueError)
_LISTS = frozenset((list, type(None)))  # types of the cells of a column of lists
_COUNTS = frozenset((dict, type(None)))


class Column(NamedTuple):
    """A column of a table.

    `dtype` is one of ``str`` (missing: NaN), ``name`` (a ``str`` that identifies something, such as a model or a task;
    see `cut_name`), ``line`` (a ``str`` with one line of text, cut in its middle to 500 characters), ``int`` (never
    missing), ``int?`` (nullable), ``float`` (missing: NaN), ``bool`` (missing: False), ``bool?`` (nullable), ``list``
    (a list of texts), ``counts`` (a mapping of texts to integers), ``time`` (UTC; missing: NaT), and, in frames only,
    ``category`` (a text) and ``object``.
    """

    name: str
    dtype: Dtype
    meaning: str
    unit: str = ""


class Entry(NamedTuple):
    """The entry of one file in the ledger."""

    source: str
    status: Status
    reason: str = ""


def cut_name(name: str) -> str:
    """Cut a name to at most 200 characters, the last twelve of which are then a digest of the whole name.

    Credentials are always masked before the cut.
    """
    if len(name) <= MOST_NAME:
        return name
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return f"{cut_end(name, MOST_NAME - 1 - len(digest))}…{digest}"


_CUT: dict[str, tuple[int, Callable[[str], str]]] = {"name": (MOST_NAME, cut_name), "line": (MOST_LINE, cut_line)}


def arrow_table(values: Sequence[Sequence], columns: Sequence[Column]) -> pa.Table:
    r"""Build an Arrow table from the values of columns. Cut names and lines, and escape lone surrogates."""
    empty = _empty_table(tuple(columns))
    if not (values and values[0]):
        return empty
    arrays = [_array(own, column.dtype) for own, column in zip(values, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=empty.schema)


@cache
def _empty_table(columns: tuple[Column, ...]) -> pa.Table:
    return pa.schema([(column.name, _ARROW[column.dtype]) for column in columns]).empty_table()


def _array(values: Sequence, dtype: str, *, from_pandas: bool = False) -> pa.Array:
    try:
        array = pa.array(values, _ARROW[dtype], from_pandas=from_pandas)
    except UnicodeEncodeError:
        array = pa.array(list(map(_escaped, values)), _ARROW[dtype], from_pandas=from_pandas)
    return cut_texts(array, dtype)


def _escaped(value: Any) -> Any:
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        return {_escaped(key): item for key, item in value.items()}
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def cut_texts(values: Any, dtype: str) -> Any:
    """Cut the texts of a column of names or lines. Return an Arrow array unchanged if no text is too long."""
    if dtype not in _CUT:
        return values
    most, cut = _CUT[dtype]
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        return [cut(value) if isinstance(value, str) else value for value in values]
    if (pc.max(pc.binary_length(values)).as_py() or 0) <= most:
        return values
    return pa.array([None if text is None else cut(text) for text in values.to_pylist()], values.type)


def frame(rows: Iterable[Mapping[Any, Any]], columns: Sequence[Column]) -> pd.DataFrame:
    r"""Build a frame from rows. Missing keys become missing values; lone surrogates are escaped as ``\udcff``."""
    rows = list(rows)
    return frame_of({column.name: map(methodcaller("get", column.name), rows) for column in columns}, columns)


def frame_of(values: Mapping[str, Iterable] | pd.DataFrame | pa.Table, columns: Sequence[Column]) -> pd.DataFrame:
    """Build a frame from columns, which is faster than `frame`. A column is an iterable, a NumPy or an Arrow array."""
    return pd.DataFrame({column.name: column_of(values[column.name], column.dtype) for column in columns}, copy=False)


def column_of(values: Any, dtype: str) -> Any:
    """Return the values of a column (an iterable, a series, a NumPy or an Arrow array) as an array.

    For few rows, building a series would dominate the time.
    """
    is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
    if dtype not in _PANDAS:  # lists, counts, objects
        items = values.to_pylist() if is_arrow else list(values)
        if is_arrow and dtype == "counts":
            items = [None if item is None else dict(item) for item in items]
        if dtype == "list" and not _LISTS.issuperset(map(type, items)):
            items = list(map(_as_list, items))
        if dtype == "counts" and not _COUNTS.issuperset(map(type, items)):
            items = list(map(_as_counts, items))
        return pd.arrays.NumpyExtensionArray(np.fromiter(items, object, len(items)))
    pandas_dtype = _PANDAS[dtype]
    if dtype == "bool" and isinstance(values, pd.Series) and values.dtype != pandas_dtype:
        values = values.astype("boolean").fillna(False)
    if isinstance(values, np.ndarray | pd.Series) and (
        pandas_dtype != "str" or (values.dtype == pandas_dtype and dtype not in _CUT)
    ):
        values = getattr(values, "array", values)
        return values if values.dtype == pandas_dtype else pd.Series(values, dtype=pandas_dtype, copy=False).array
    if is_arrow:
        values = cut_texts(values, dtype)
    elif dtype == "bool":
        return np.array(list(map(bool, values)), "bool")
    else:
        if not isinstance(values, np.ndarray | pd.Series):
            values = list(values)
        try:
            values = _array(values, dtype, from_pandas=True)
        except (pa.ArrowException, OverflowError):  # values of several types
            return pd.Series(cut_texts(map(_escaped, values), dtype), dtype=pandas_dtype).array
    if dtype == "bool":
        values = values.fill_null(False)
    if hasattr(pandas_dtype, "__from_arrow__"):
        return pandas_dtype.__from_arrow__(values)
    numbers = values.to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype == pandas_dtype else pd.Series(numbers, dtype=pandas_dtype).array


def _as_list(cell: Any) -> list[Any] | None:
    """Return a cell of a frame as a list; pandas makes arrays of the lists of Arrow, and NaN of a missing list."""
    if cell is None or isinstance(cell, list):
        return cell
    if isinstance(cell, tuple | np.ndarray):
        return list(cell)
    if pd.isna(cell):
        return None
    raise TypeError(f"{cell!r} is not a list")


def _as_counts(cell: Any) -> dict[str, int] | None:
    """Return a cell of a frame as a dictionary; pandas makes lists of pairs of the mappings of Arrow."""
    if cell is None or isinstance(cell, dict):
        return cell
    if isinstance(cell, list | Mapping):
        return dict(cell)
    if pd.isna(cell):
        return None
    raise TypeError(f"{cell!r} is not a mapping")


SOURCE = Column("source", "str", "path of the file")
LEDGER = (
    SOURCE,
    Column("status", "str", "used, skipped (not a log of this kind) or failed (a log that can't be read)"),
    Column("reason", "line", "reason if skipped or failed; for a used file, what was recovered, or empty"),
)


def summarise(statuses: Iterable[str]) -> str:
    """Describe in one line how many files were used, skipped and failed."""
    counts = Counter(statuses)
    seen = ", ".join(f"{counts[status]:,} {status}" for status in ("used", "skipped", "failed"))
    return f"{counted_noun(counts.total(), 'file')}: {seen}"


class Ledger:
    """A list of entries, one per file, so that no file is lost silently."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries = list(entries)

    def add(self, source: str | os.PathLike, status: Status, reason: str = "") -> None:
        """Add a file with its status."""
        self.entries.append(Entry(os.fspath(source), status, reason))

    def frame(self) -> pd.DataFrame:
        """Return the ledger as a frame with the columns of `evalkit.io.frames.LEDGER`."""
        columns = list(zip(*self.entries, strict=True)) or [()] * len(LEDGER)
        return frame_of(dict(zip(Entry._fields, columns, strict=True)), LEDGER)


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pause the garbage collector. With many live rows, it takes a quarter of the time and frees nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
