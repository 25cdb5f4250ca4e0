"""Frames from rows: typed columns that are written down once, as data."""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class Column(NamedTuple):
    """A column of a frame.

    `dtype` is one of ``str`` (missing: NaN), ``int`` (never missing), ``int?`` (nullable), ``float`` (missing: NaN),
    ``bool`` (missing: False), ``bool?`` (nullable) and ``object`` (lists, dicts).
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""


_PANDAS = {"str": "str", "int": "int64", "int?": "Int64", "float": "float64", "bool": "bool", "bool?": "boolean"}
_HALF = re.compile(r"\\u(dc[89a-f][0-9a-f])")  # what Python makes of a byte that is not UTF-8
_ARROW = {"str": "large_string", "float": "double"}  # what Arrow builds from a list several times as quickly


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column]) -> "pd.DataFrame":
    r"""Build a frame column by column, with the same dtypes also when there are no rows.

    Parameters
    ----------
    rows : iterable of mappings
        Keys that are no column are left out; a missing key is a missing value.
    columns : sequence of Column

    Returns
    -------
    pandas.DataFrame
        With the columns in the order given. Half characters (lone surrogates, as in file names that are not UTF-8),
        which no text column can hold, are written out as ``\udcff``.
    """
    rows = list(rows)
    return frame_of({column.name: map(methodcaller("get", column.name), rows) for column in columns}, columns)


def frame_of(values: Mapping[str, Iterable], columns: Sequence[Column]) -> "pd.DataFrame":
    """Build a frame from its columns' values, where there are so many rows that a dictionary for each would cost.

    Parameters
    ----------
    values : mapping of column name to iterable
        All of one length, one for each column; the values as in the rows of `frame`. They are taken one column after
        the other, so that iterators need the memory of one column only.
    columns : sequence of Column

    Returns
    -------
    pandas.DataFrame
        As `frame` returns it.
    """
    import pandas as pd

    return pd.DataFrame(
        {column.name: _series(list(values[column.name]), column.dtype) for column in columns}, copy=False
    )


def joined(frames: "list[pd.DataFrame]") -> "pd.DataFrame":
    """Put frames of the same columns below each other, emptying them column by column: nothing is held twice."""
    import pandas as pd

    if len(frames) == 1:
        return frames[0]
    columns = {name: pd.concat([part.pop(name) for part in frames], ignore_index=True) for name in list(frames[0])}
    return pd.DataFrame(columns, copy=False)


def _series(values: list, dtype: str) -> "pd.Series":
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    if dtype == "object":
        out = pd.Series([None] * len(values), dtype="object")
        out[:] = values
        return out
    if dtype == "bool":
        return pd.Series(np.fromiter(map(bool, values), bool, len(values)))
    if dtype == "int":
        return pd.Series(np.array(values, "int64"))
    try:
        if dtype == "int?":
            numbers = pa.array(values, "int64", from_pandas=True)
            filled, missing = numbers.fill_null(0), numbers.is_null()
            whole_numbers = pd.arrays.IntegerArray(*(a.to_numpy(zero_copy_only=False) for a in (filled, missing)))
            return pd.Series(whole_numbers)
        if dtype in _ARROW:
            return pd.Series(pa.array(values, _ARROW[dtype], from_pandas=True).to_pandas(), dtype=_PANDAS[dtype])
    except (pa.ArrowException, UnicodeEncodeError):
        values = [whole(v) if isinstance(v, str) else v for v in values]
    return pd.Series(values, dtype=_PANDAS[dtype])


def whole(text: str) -> str:
    """Write out half characters, as in file names that are not UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def as_named(text: str) -> str:
    """Give back the name of a file that `whole` has written out."""
    return _HALF.sub(lambda match: chr(int(match[1], 16)), text) if "\\ud" in text else text
