"""Convert any value to one that JSON can hold."""

import math
import numbers
from collections.abc import Collection, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

MAX_DEPTH = 100  # of structures; deeper ones are kept as text


def to_jsonable(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Convert any value to one that ``json.dumps(..., allow_nan=False)`` accepts, and that shares nothing with it.

    NumPy scalars become int, float or bool, arrays, sets (sorted) and other collections lists, DataFrames lists of
    records (an index with labels becomes a column), Series lists or, if their index has labels, objects; dates are ISO
    texts. NaN, NaT and infinities, which JSON lacks, become null. Any other value, and what is nested deeper than
    `MAX_DEPTH`, becomes its text. `above` are the ids of the structures around the value.
    """
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, (bool, np.bool_)):
        return value if value is None else bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (numbers.Real, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if len(above) >= MAX_DEPTH or id(value) in above:  # a structure that contains itself ends here
        return _text(value)

    above = (*above, id(value))
    if isinstance(value, (pd.DataFrame, pd.Series)):
        index = value.index
        counts_rows = index.name is None and index.nlevels == 1 and index.dtype.kind in "iu"
        if isinstance(value, pd.DataFrame):
            value = (value if counts_rows else value.reset_index(allow_duplicates=True)).to_dict("records")
        elif not counts_rows:
            value = value.to_dict()
    if isinstance(value, Mapping):
        return {_text(key): to_jsonable(item, above) for key, item in value.items()}
    if isinstance(value, Collection):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [to_jsonable(item, above) for item in items]
    if pd.isna(value) is True:
        return None
    return value.isoformat() if isinstance(value, (date, time)) else _text(value)


def _text(value: Any) -> str:
    """Convert a value to text without lone surrogates, which no UTF-8 file can hold."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_deep(value: Any) -> bool:
    """Return whether lists and dicts are nested deeper than what `to_jsonable` keeps as structures."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = list[Any]()
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            return False
        level = inner
    return True
