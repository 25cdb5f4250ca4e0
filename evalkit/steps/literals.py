"""Convert any value to JSON types, and parse text as a number, a truth value, or a complete or cut literal."""

import ast
import contextlib
import json
import math
import numbers
import re
import warnings
from collections.abc import Collection, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MAX_DEPTH = 100  # maximum nesting of structures; deeper ones become text
MAX_LENGTH = 200_000  # maximum number of characters of a text that is parsed as a structure
MAX_BRACKETS = 80  # maximum nesting of brackets in such a text

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_BEGIN = re.compile(r"\s*(?=[\[{(])")
_TOKEN = re.compile(  # `call` matches the beginning of np.float64(0.5), `cut` a string without its closing quote
    r"""(?P<string>b?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"))|(?P<cut>b?['"].*)"""
    r"""|(?P<call>(?:(?:np|numpy)\.(?:float|int|uint|str|bool|array)\d*_?|array)\()"""
    r"""|(?P<sign>[{}\[\](),:])|(?P<word>[^'"{}\[\](),:\s]+)""",
    re.DOTALL,
)
# words of Python and JSON that are not numbers
_WORDS: dict[str, Any] = dict.fromkeys(("None", "null", "nan", "NaN", "NaT", "inf", "-inf", "Infinity", "-Infinity"))
_WORDS |= {"True": True, "true": True, "np.True_": True, "False": False, "false": False, "np.False_": False}


def to_jsonable(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Convert any value to one that ``json.dumps(..., allow_nan=False)`` accepts.

    NumPy scalars become int, float or bool; arrays, sets (sorted) and other collections become lists; DataFrames become
    lists of records; Series become lists or, with labels, objects; dates become ISO texts. NaN, NaT and infinities
    become null. Other values, and values nested deeper than `MAX_DEPTH`, become their text.

    Parameters
    ----------
    value : Any
        The value.
    above : tuple of int
        Ids of the containers around the value; for recursive calls only.

    Returns
    -------
    Any
        The converted value, which shares no mutable object with `value`.

    Examples
    --------
    >>> steps.to_jsonable({"p": float("nan"), "genes": {"B", "A"}})
    {'p': None, 'genes': ['A', 'B']}
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
    if len(above) >= MAX_DEPTH or id(value) in above:  # too deep, or a structure that contains itself
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
    """Convert a value to text without lone surrogates, which UTF-8 cannot encode."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_deep(value: Any) -> bool:
    """Return whether lists and dicts are nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = list[Any]()
        for one in level:
            if isinstance(one, (dict, list)):
                inner += one.values() if isinstance(one, dict) else one
        level = inner
    return bool(level)


def as_bool(value: Any) -> bool | None:
    """Convert a bool, 0 or 1, or a text such as "true" or "yes" to a bool; None for anything else."""
    return _TRUTHS.get(str(value).strip().lower())


def as_count(value: Any) -> int | None:
    """Convert a whole number of at least 0, or its text, to int; None for anything else."""
    read = as_number(value)
    return int(read) if read is not None and read.is_integer() and 0 <= read < 2**53 else None


def as_number(value: Any) -> float | None:
    """Convert a finite number, or its text (as from ``json.dumps(default=str)``), to float; None for anything else."""
    if isinstance(value, (numbers.Real, str)) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            return read if math.isfinite(read := float(value)) else None
    return None


def as_text(value: Any) -> str | None:
    """Return a text that is not blank, or the text of a number; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and value.strip() else None


class CutList(list):
    """The first items of a list whose text was cut."""


class CutDict(dict):
    """The first pairs of a dict whose text was cut."""


CUT: tuple[type, ...] = (CutList, CutDict)  # types of lists and dicts that contain only the beginning of the original


class _Bracket(NamedTuple):
    """A bracket that is not closed yet, and its contents so far."""

    opening: str
    keys: list  # keys of a dict
    items: list  # items of a list; values of a dict, and the latest key until its colon


def read_literal(text: str, start: int = 0) -> Any:
    """Parse the list, tuple or dict that begins at `start` (after white space): a Python repr or JSON, complete or cut.

    If the text was cut, the complete elements are kept, and lists and dicts that are not closed become `CutList` and
    `CutDict`. Text after the closing bracket is ignored. The value is None if the text is not a literal.
    """
    begin, end = _BEGIN.match(text, start), len(text.rstrip())
    if begin is None or len(text) > MAX_LENGTH:
        return None
    brackets: list[_Bracket] = []
    wants_value = True
    value: Any = None
    try:
        for match in _TOKEN.finditer(text, begin.end()):
            kind, token = match.lastgroup, match[0]
            if kind == "cut" or (kind == "word" and match.end() == end):
                break
            is_opening, is_closing = kind == "call" or token in _CLOSING, token in _CLOSING.values()
            if wants_value != (is_opening or kind != "sign") and not is_closing:
                return None
            if is_opening:
                brackets.append(_Bracket(token, [], []))
                if len(brackets) > MAX_BRACKETS:
                    return None
                continue

            opening, keys, items = brackets[-1]
            if kind == "string":
                has_escapes = "\\" in token or token[0] == "b"
                items.append(_without_escapes(token) if has_escapes else token[1:-1])
            elif token == "...":  # marks items that were left out
                brackets[-1] = _Bracket(opening, keys, CutList(items))
            elif kind == "word":
                if token in _WORDS:
                    items.append(_WORDS[token])
                elif token.lstrip("+-").isdigit():
                    items.append(int(token))
                else:
                    items.append(float(token))
            elif token == ":":
                if opening != "{" or len(items) != len(keys) + 1:
                    return None
                key = items.pop()
                keys.append(tuple(key) if isinstance(key, list) else key)
            elif is_closing:
                is_call = opening not in _CLOSING  # np.float64(0.5) becomes 0.5
                if token != _CLOSING[opening[-1]] or (is_call and len(items) != 1):
                    return None
                if is_call or (opening == "(" and len(items) == 1 and not wants_value):
                    value = items[0]
                elif opening == "{":
                    value = dict(zip(keys, items, strict=True)) if keys or not items else sorted(items, key=str)
                else:
                    value = items
                brackets.pop()
                if not brackets:
                    return value
                brackets[-1].items.append(value)
            wants_value = token in (",", ":")

        value = None
        for opening, keys, items in reversed(brackets):  # close the innermost bracket first
            if value is not None and (value or opening not in ("[", "(")):
                items.append(value)
            if opening == "{":
                value = CutDict(zip(keys, items, strict=False))
            elif opening in _CLOSING:
                value = CutList(items)
            else:
                value = items[0] if items else None
    except (ValueError, SyntaxError, TypeError):  # not a literal, or a key that is a dict or list
        return None
    return value


def _without_escapes(token: str) -> str:
    """Decode a string literal of Python or JSON; bytes become their repr."""
    if token[0] == '"':  # JSON writes some characters as two escapes, which Python would not combine
        with contextlib.suppress(ValueError):
            return json.loads(token)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes that Python does not know, such as '\d'
        return str(ast.literal_eval(token))
