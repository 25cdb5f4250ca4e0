"""Convert any Python value to JSON, and parse structures from text, which may be cut and is never evaluated."""

import ast
import contextlib
import dataclasses
import json
import math
import numbers
import re
import warnings
from collections import deque
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from datetime import date, datetime, time
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from evalkit.io.text import UniqueNames

MAX_DEPTH = 100  # of structures; deeper ones are kept as text
MAX_LENGTH = 2_000_000  # characters; a longer text is not parsed as a structure
MAX_BRACKETS = 80  # brackets within brackets in such a text
_CACHED = 10_000  # characters; the parsed value of such a text is cached for the next reader

_CLOSING = {"{": "}", "[": "]", "(": ")"}
_TOKEN = re.compile(  # `cut` is the remainder of a string that was cut
    r"""(?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")|(?P<cut>['"].*)|(?P<sign>[{}\[\](),:])|(?P<word>[^'"{}\[\](),:\s]+)""",
    re.DOTALL,
)
# what `ast.literal_eval` does not know
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "np.True_": True, "np.False_": False}
_WORDS |= dict.fromkeys(("null", "nan", "NaN", "NaT", "inf", "-inf", "Infinity", "-Infinity"))
_CALL = re.compile(r"(?:np|numpy)\.(?:float|int|uint|str|bool|array)\d*_?|array")
_BEGIN = re.compile(r"\s*(?=[\[{(])")


def to_jsonable(value: Any) -> Any:
    """Convert any value to one that ``json.dumps(..., allow_nan=False)`` accepts.

    NumPy scalars become int, float or bool, arrays and sets lists (sets sorted), DataFrames lists of records (an
    index with labels becomes a column), Series lists or, if their index has labels, objects; dates are ISO texts. NaN,
    NaT and infinities, which JSON lacks, become null. Any other value becomes its text. Keys become texts; of two equal
    ones the second ends in `` #2``. Nothing here imports pandas.

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
    kind = type(value)
    if value is None or kind is bool or kind is int or (kind is str and value.isascii()):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Enum):
        return _convert(value.value, depth, above)
    if isinstance(value, numbers.Number) and not isinstance(value, complex):
        return _number(value)
    if depth >= MAX_DEPTH or id(value) in above:  # a structure that contains itself ends here
        return _text(value)
    above = (*above, id(value))
    if kind is dict and all(type(key) is str and key.isascii() for key in value):
        return {key: _convert(item, depth + 1, above) for key, item in value.items()}
    if isinstance(value, Mapping):
        return _object(value.items(), depth, above)
    if isinstance(value, (list, tuple, deque, range, KeysView, ValuesView, ItemsView)):
        fields = getattr(value, "_fields", None)  # a named tuple keeps its names
        if isinstance(fields, tuple) and len(fields) == len(value):
            return _object(zip(fields, value, strict=True), depth, above)
        return [_convert(item, depth + 1, above) for item in value]
    if isinstance(value, (set, frozenset)):
        items = [_convert(item, depth + 1, above) for item in value]
        return sorted(items, key=lambda x: (type(x).__name__, x) if isinstance(x, (str, int, float)) else ("~", str(x)))
    if isinstance(value, (datetime, date, time)):
        return value.isoformat() if value == value else None  # NaT differs from itself
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object(((f.name, getattr(value, f.name)) for f in dataclasses.fields(value)), depth, above)
    return _convert_foreign(value, depth, above)


def _convert_foreign(value: Any, depth: int, above: tuple[int, ...]) -> Any:
    """Convert objects of numpy and pandas, recognised by the name of their modules."""
    module, name = type(value).__module__.partition(".")[0], type(value).__name__
    try:
        if module == "numpy" and hasattr(value, "tolist"):
            if value.dtype.kind in "mM":  # tolist() would give nanoseconds
                import numpy as np

                return np.where(np.isnat(value), np.array(None), value.astype(str)).tolist()
            return _convert(value.tolist(), depth, above)
        if module == "pandas":
            if name == "DataFrame":
                return _records(value, depth, above)
            if name == "Series" and not _only_counts(value.index):
                return _object(zip(value.index, value, strict=True), depth, above)
            if name in ("NAType", "NaTType"):
                return None
            if hasattr(value, "tolist"):  # Series, Index, Categorical, arrays
                return [_convert(item, depth + 1, above) for item in value.tolist()]
    except (TypeError, ValueError, AttributeError, RecursionError):
        pass  # a value that can't be converted is kept as its text
    return _text(value)


def _records(frame: Any, depth: int, above: tuple[int, ...]) -> list[dict[str, Any]]:
    names, columns = list(frame.columns), [frame.iloc[:, i].tolist() for i in range(frame.shape[1])]
    if not _only_counts(frame.index):
        names.insert(0, frame.index.name or "index")
        columns.insert(0, frame.index.tolist())
    rows = zip(*columns, strict=True) if columns else ([] for _ in range(len(frame)))
    return [_object(zip(names, row, strict=True), depth + 1, above) for row in rows]


def _only_counts(index: Any) -> bool:
    """Return whether an index only counts rows (even with gaps, after filtering)."""
    return index.name is None and index.nlevels == 1 and getattr(index.dtype, "kind", "O") in "iu"


def _object(items: Iterable[tuple[Any, Any]], depth: int, above: tuple[int, ...]) -> dict[str, Any]:
    unique = unique_keys()
    return {unique(_text(key)): _convert(item, depth + 1, above) for key, item in items}


def unique_keys() -> UniqueNames:
    """Return a function that gives a key at its first use, then ``key #2``, ``key #3``, and so on."""
    return UniqueNames("{} #{}")


def _number(value: Any) -> int | float | str | None:
    try:
        if isinstance(value, numbers.Integral):
            return int(value)
        as_float = float(value)
    except (TypeError, ValueError, OverflowError):
        return _text(value)
    return as_float if math.isfinite(as_float) else None


def _text(value: Any) -> str:
    """Convert a value to text without lone surrogates, which no UTF-8 file can hold."""
    try:
        text = str(value)
    except Exception:  # a class with a faulty __str__
        text = f"<{type(value).__name__}>"
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class CutList(list):
    """The first items of a list whose text was cut."""


class CutDict(dict):
    """The first pairs of a dict whose text was cut."""


class Literal(NamedTuple):
    """The literal in a text: the value (None if nothing could be parsed), and whether the text was cut inside it."""

    value: Any
    cut: bool


def is_cut(value: Any) -> bool:
    """Return whether a list or dict is only the beginning of the original."""
    return isinstance(value, (CutList, CutDict))


def read_literal(text: str, start: int = 0) -> Literal:
    """Parse the list, tuple or dict that begins at `start` (after white space): a Python repr or JSON, complete or cut.

    Of a cut one the complete elements are kept; lists and dicts that were still open at the cut become `CutList` and
    `CutDict`. The element at the cut is dropped: half a number is not a number. Text after the closing bracket is
    ignored. Without a bracket at `start`, or for other text, the value is None. Do not modify it: the same value may be
    returned again.
    """
    begin = _BEGIN.match(text, start)
    if begin is None or len(text) > MAX_LENGTH:
        return Literal(None, False)
    return (_read if len(text) <= _CACHED else _read.__wrapped__)(text, begin.end())


@lru_cache(1024)  # several checks read the same result
def _read(text: str, start: int) -> Literal:
    try:
        return Literal(*_Reader(text, start).container(1))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Literal(None, False)


class _Reader:
    """Parses values from a text; each comes with whether the text ended in it, and is ... if nothing is left of it."""

    _kind: str | None = None
    _token = ""

    def __init__(self, text: str, start: int) -> None:
        self._matches = _TOKEN.finditer(text, start)
        self._take()

    def _take(self) -> str:
        """Advance to the next token, which is empty at the end of the text, and return the one before."""
        token, match = self._token, next(self._matches, None)
        self._kind, self._token = (match.lastgroup, match[0]) if match else (None, "")
        return token

    def container(self, depth: int) -> tuple[Any, bool]:
        """Parse the list, tuple, set (both become lists) or dict whose opening bracket is next."""
        opening = self._take()
        items, pairs, dots, cut, commas = list[Any](), dict[Any, Any](), False, not self._token, 0
        while self._token != _CLOSING[opening] and not cut:
            item, cut = self._value(depth + 1)
            if opening == "{" and self._token in (":", ""):  # a key, at the cut without its value
                if self._take() and not cut:
                    value, cut = self._value(depth + 1)
                    pairs |= {} if value is ... else {tuple(item) if isinstance(item, list) else item: value}
            elif item is not ... and (item or not is_cut(item)):
                items.append(item)
            dots, cut = dots or item is ..., cut or not self._token
            if self._token == ",":
                self._take()
                commas, cut = commas + 1, not self._token
            elif not cut and self._token != _CLOSING[opening]:
                raise ValueError(f"{self._token!r} is not expected here")
        self._take()
        if opening == "(" and len(items) == 1 and not (commas or dots or cut):
            return items[0], False
        if opening == "{" and (pairs or not items):
            return (CutDict if cut or dots else dict)(pairs), cut
        return CutList(items) if cut or dots else items, cut

    def _value(self, depth: int) -> tuple[Any, bool]:
        kind, token = self._kind, self._token
        if token in _CLOSING and depth <= MAX_BRACKETS:
            return self.container(depth)
        if kind == "sign":
            raise ValueError(f"{token!r} is not expected here")
        self._take()
        if kind == "string":
            return _string(token), False
        if token == "b" and self._kind in ("string", "cut"):
            return (..., True) if self._kind == "cut" else (str(ast.literal_eval(f"b{self._take()}")), False)
        if kind == "word" and self._token == "(" and _CALL.fullmatch(token):  # np.float64(0.5) is 0.5
            value, cut = self.container(depth)
            return ((value[0] if value else ...) if cut else value), cut
        return (_word(token), False) if kind == "word" and self._token else (..., True)  # half a number is not a number


def _string(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    if token[0] == '"':  # JSON writes some characters as two escapes, which Python keeps separate
        with contextlib.suppress(ValueError):
            return json.loads(token)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes unknown to Python, as in '\d'
        return ast.literal_eval(token)


def _word(token: str) -> Any:
    if token in _WORDS:
        return _WORDS[token]
    value = int(token) if token.isdigit() else ast.literal_eval(token)
    return str(value) if isinstance(value, complex) else value
