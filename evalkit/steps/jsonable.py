"""Any Python value as JSON: numbers stay numbers, frames become records, nothing raises."""

import dataclasses
import math
import numbers
from collections import deque
from collections.abc import Iterable, Mapping, MappingView
from datetime import date, datetime, time
from enum import Enum
from typing import Any

MAX_DEPTH = 100  # deeper structures are kept as text


def to_jsonable(value: Any) -> Any:
    """Turn any value into what ``json.dumps(..., allow_nan=False)`` accepts.

    NumPy scalars become int, float or bool, arrays and sets lists (sets sorted), DataFrames lists of records (an
    index that carries names becomes a column), Series lists or, where their index carries names, objects; dates are
    ISO texts. NaN, NaT and infinities, which JSON does not know, become null. What is none of these becomes its
    text. Keys become texts; where two fall together the second ends in `` #2``. Nothing here imports pandas.

    Parameters
    ----------
    value : object

    Returns
    -------
    dict, list, str, int, float, bool or None
        A new structure that shares no list or dict with `value`.
    """
    return _convert(value, 0, ())


def _convert(value: Any, depth: int, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Enum):
        return _convert(value.value, depth, above)
    if isinstance(value, numbers.Number) and not isinstance(value, complex):
        return _number(value)
    if depth >= MAX_DEPTH or id(value) in above:  # a structure that holds itself ends here
        return _text(_safe_str(value))
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return _object(value.items(), depth, above)
    if isinstance(value, (list, tuple, deque, range, MappingView)):
        fields = getattr(value, "_fields", None)  # a named tuple keeps its names
        if isinstance(fields, tuple) and len(fields) == len(value):
            return _object(zip(fields, value, strict=True), depth, above)
        return [_convert(item, depth + 1, above) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_convert(item, depth + 1, above) for item in value), key=_order)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat() if value == value else None  # NaT differs from itself
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object(((f.name, getattr(value, f.name)) for f in dataclasses.fields(value)), depth, above)
    return _foreign(value, depth, above)


def _foreign(value: Any, depth: int, above: tuple[int, ...]) -> Any:
    """Convert what numpy and pandas own, told by the name of their modules."""
    module = type(value).__module__.partition(".")[0]
    name = type(value).__name__
    try:
        if module == "numpy" and hasattr(value, "tolist"):
            if value.dtype.kind in "mM":  # tolist() would give nanoseconds
                return _dates(value.astype(str).tolist())
            return _convert(value.tolist(), depth, above)
        if module == "pandas":
            if name == "DataFrame":
                return _records(value, depth, above)
            if name == "Series" and not _is_counter(value.index):
                return _object(zip(value.index, value, strict=True), depth, above)
            if name in ("NAType", "NaTType"):
                return None
            if hasattr(value, "tolist"):  # Series, Index, Categorical, arrays
                return [_convert(item, depth + 1, above) for item in value.tolist()]
    except (TypeError, ValueError, AttributeError, RecursionError):
        pass  # a value that can't be taken apart is kept as its text
    return _text(_safe_str(value))


def _dates(texts: str | list) -> str | list | None:
    if isinstance(texts, list):
        return [_dates(text) for text in texts]
    return None if texts == "NaT" else texts


def _records(frame: Any, depth: int, above: tuple[int, ...]) -> list[dict[str, Any]]:
    names = list(frame.columns)
    columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    if not _is_counter(frame.index):
        names.insert(0, frame.index.name or "index")
        columns.insert(0, frame.index.tolist())
    rows = zip(*columns, strict=True) if columns else ([] for _ in range(len(frame)))
    return [_object(zip(names, row, strict=True), depth + 1, above) for row in rows]


def _is_counter(index: Any) -> bool:
    """Say whether an index only counts rows (also with gaps, after filtering)."""
    return index.name is None and index.nlevels == 1 and getattr(index.dtype, "kind", "O") in "iu"


def _object(items: Iterable[tuple[Any, Any]], depth: int, above: tuple[int, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in items:
        out[unique_key(out, _text(key if isinstance(key, str) else _safe_str(key)))] = _convert(item, depth + 1, above)
    return out


def unique_key(taken: Mapping[str, Any], key: str) -> str:
    """Give a key that is not taken yet: `key`, else ``key #2``, ``key #3``, and so on."""
    n, candidate = 1, key
    while candidate in taken:
        n += 1
        candidate = f"{key} #{n}"
    return candidate


def _number(value: Any) -> int | float | str | None:
    try:
        if isinstance(value, int):
            return int(value)
        if isinstance(value, numbers.Integral):
            return int(value)
        as_float = float(value)
    except (TypeError, ValueError, OverflowError):
        return _text(_safe_str(value))
    return as_float if math.isfinite(as_float) else None


def _text(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 file can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _safe_str(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # a faulty __str__ of somebody's class
        return f"<{type(value).__name__}>"


def _order(item: Any) -> tuple[str, Any]:
    return (type(item).__name__, item) if isinstance(item, (str, int, float, bool)) else ("~", str(item))
