"""Normalise histories: any value becomes JSON, a text the structure it shows, a record of any shape a `StepRecord`."""

import ast
import contextlib
import dataclasses
import json
import math
import numbers
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from enum import Enum
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit.io import escape_surrogates, short_paths
from evalkit.io.text import UniqueNames
from evalkit.steps.format import DEFAULTS, HISTORY_KEY, RESULT_TYPES, Options, StepRecord, count, name, truth

MAX_DEPTH = 100  # of structures; deeper ones are kept as text
MAX_LENGTH = 2_000_000  # characters; a longer text is not parsed as a structure
MAX_BRACKETS = 80  # brackets within brackets in such a text

_RECORD_KEYS = frozenset({"step", "function_name", "success", "result", "result_summary", "error"})
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_TOKEN = re.compile(  # `cut` is the remainder of a string that was cut
    r"""(?P<string>b?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"))|(?P<cut>b?['"].*)"""
    r"""|(?P<sign>[{}\[\](),:])|(?P<word>[^'"{}\[\](),:\s]+)""",
    re.DOTALL,
)
# what `ast.literal_eval` does not know
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "np.True_": True, "np.False_": False}
_WORDS |= dict.fromkeys(("null", "nan", "NaN", "NaT", "inf", "-inf", "Infinity", "-Infinity"))
_CALL = re.compile(r"(?:np|numpy)\.(?:float|int|uint|str|bool|array)\d*_?|array")
_BEGIN = re.compile(r"\s*(?=[\[{(])")


def to_jsonable(value: Any) -> Any:
    """Convert any value to one that ``json.dumps(..., allow_nan=False)`` accepts, and that shares nothing with it.

    NumPy scalars become int, float or bool, arrays and sets lists (sets sorted), DataFrames lists of records (an
    index with labels becomes a column), Series lists or, if their index has labels, objects; dates are ISO texts. NaN,
    NaT and infinities, which JSON lacks, become null. Any other value becomes its text. Keys become texts; of two equal
    ones the second ends in `` #2``.
    """
    return _convert(value, ())


def _convert(value: Any, above: tuple[int, ...]) -> Any:
    """Convert a value within those whose ids are `above`."""
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, (bool, np.bool_)):
        return value if value is None else bool(value)
    if isinstance(value, Enum):
        return _convert(value.value, above)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (numbers.Real, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if len(above) >= MAX_DEPTH or id(value) in above:  # a structure that contains itself ends here
        return _text(value)
    above = (*above, id(value))
    if isinstance(value, pd.DataFrame):
        has_labels = not _only_counts(value.index)
        names = [*([value.index.name or "index"] if has_labels else []), *value.columns]
        rows = value.itertuples(index=has_labels, name=None)
        return [_object(zip(names, row, strict=True), above) for row in rows]
    if isinstance(value, pd.Series) and not _only_counts(value.index):
        return _object(zip(value.index, value, strict=True), above)
    if isinstance(value, Mapping):
        return _object(value.items(), above)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object(((f.name, getattr(value, f.name)) for f in dataclasses.fields(value)), above)
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple keeps its names
        return _object(zip(value._fields, value, strict=True), above)
    if isinstance(value, Collection):  # lists, sets, arrays, ranges
        items = [_convert(item, above) for item in value]
        return sorted(items, key=_in_sets) if isinstance(value, (set, frozenset)) else items
    if pd.isna(value) is True:
        return None
    return value.isoformat() if isinstance(value, (date, time)) else _text(value)


def _in_sets(item: Any) -> tuple[str, Any]:
    """Return by what items of a set, which has no order, are sorted."""
    return (type(item).__name__, item) if isinstance(item, (str, int, float)) else ("~", str(item))


def _only_counts(index: pd.Index) -> bool:
    """Return whether an index only counts rows (even with gaps, after filtering)."""
    return index.name is None and index.nlevels == 1 and index.dtype.kind in "iu"


def _object(items: Iterable[tuple[Any, Any]], above: tuple[int, ...]) -> dict[str, Any]:
    unique = unique_keys()
    return {unique(_text(key)): _convert(item, above) for key, item in items}


def unique_keys() -> UniqueNames:
    """Return a function that gives a key at its first use, then ``key #2``, ``key #3``, and so on."""
    return UniqueNames("{} #{}")


def _text(value: Any) -> str:
    """Convert a value to text without lone surrogates, which no UTF-8 file can hold."""
    try:
        text = str(value)
    except Exception:  # a class with a faulty __str__
        text = f"<{type(value).__name__}>"
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_deep(value: Any) -> bool:
    """Return whether lists and dicts are nested deeper than what `to_jsonable` keeps as structures."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [one for one in level if isinstance(one, (dict, list))]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


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


_NOTHING: Any = object()  # in the place of a value that is not there


@dataclasses.dataclass
class _Bracket:
    """What has been read since an opening bracket."""

    opening: str
    called: bool = False  # np.float64(0.5) is 0.5
    items: list = dataclasses.field(default_factory=list)
    pairs: dict = dataclasses.field(default_factory=dict)
    key: Any = _NOTHING  # before a colon
    last: Any = _NOTHING  # read, and not yet followed by a comma, a colon or the closing bracket
    commas: int = 0
    dots: bool = False  # printed in the place of items that were left out

    def take(self, value: Any) -> None:
        """Take the value that was read last."""
        if self.last is not _NOTHING:
            raise ValueError("two values without a comma between them")
        self.last = value

    def settle(self) -> None:
        """Add the last value to the items, or with its key to the pairs."""
        if self.last is ...:
            self.dots = True
        elif self.key is not _NOTHING:
            self.pairs[tuple(self.key) if isinstance(self.key, list) else self.key] = self.last
        else:
            self.items.append(self.last)
        self.key = self.last = _NOTHING

    def value(self, cut: bool) -> Any:
        """Return the list (also for a tuple or a set), the dict, or the single value in parentheses."""
        if self.called and cut:
            return self.items[0] if self.items else _NOTHING
        if self.opening == "(" and len(self.items) == 1 and not (self.commas or self.dots or cut):
            return self.items[0]
        incomplete = cut or self.dots
        if self.opening == "{" and (self.pairs or not self.items):
            return CutDict(self.pairs) if incomplete else self.pairs
        return CutList(self.items) if incomplete else self.items


def read_literal(text: str, start: int = 0) -> Literal:
    """Parse the list, tuple or dict that begins at `start` (after white space): a Python repr or JSON, complete or cut.

    Of a cut one the complete elements are kept; lists and dicts that were still open at the cut become `CutList` and
    `CutDict`. The element at the cut is dropped: half a number is not a number. Text after the closing bracket is
    ignored. Without a bracket at `start`, or for other text, the value is None.
    """
    begin = _BEGIN.match(text, start)
    if begin is None or len(text) > MAX_LENGTH:
        return Literal(None, False)
    brackets, called = list[_Bracket](), False
    tokens: Iterable[Any] = pairwise(chain(_TOKEN.finditer(text, begin.end()), [None]))  # each with the one after it
    try:
        for match, following in tokens:
            kind, token = match.lastgroup, match[0]
            if token in _CLOSING:
                if len(brackets) == MAX_BRACKETS:
                    raise ValueError("too many brackets within brackets")
                brackets.append(_Bracket(token, called))
                called = False
                continue
            inner = brackets[-1]
            if kind == "cut" or (kind == "word" and following is None):
                inner.take(_NOTHING)  # dropped: half a number is not a number
                break
            if kind == "word" and following[0] == "(" and _CALL.fullmatch(token):
                called = True
            elif kind == "word":
                inner.take(_word(token))
            elif kind == "string":
                inner.take(_string(token))
            elif inner.last is _NOTHING and (token in ",:" or inner.key is not _NOTHING):
                raise ValueError(f"{token!r} is not expected here")
            elif token == ":":
                if inner.opening != "{" or inner.key is not _NOTHING:
                    raise ValueError("a colon outside of a dict")
                inner.key, inner.last = inner.last, _NOTHING
            elif token == ",":
                inner.settle()
                inner.commas += 1
            elif token != _CLOSING[inner.opening]:
                raise ValueError(f"{token!r} is not expected here")
            else:
                if inner.last is not _NOTHING:
                    inner.settle()
                brackets.pop()
                value = inner.value(cut=False)
                if not brackets:
                    return Literal(value, False)
                brackets[-1].take(value)
        value = _NOTHING
        for bracket in reversed(brackets):  # the text was cut: what is open holds what is complete in it
            if value is not _NOTHING:
                bracket.take(value)
            is_key = bracket.opening == "{" and bracket.key is _NOTHING  # whose value was cut off
            is_empty = is_cut(bracket.last) and not bracket.last and bracket.key is _NOTHING
            if bracket.last is not _NOTHING and not is_key and not is_empty:
                bracket.settle()
            value = bracket.value(cut=True)
        return Literal(value, True)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Literal(None, False)


def _string(token: str) -> str:
    if "\\" not in token and token[0] != "b":
        return token[1:-1]
    if token[0] == '"':  # JSON writes some characters as two escapes, which Python keeps separate
        with contextlib.suppress(ValueError):
            return json.loads(token)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes unknown to Python, as in '\d'
        return str(ast.literal_eval(token))


def _word(token: str) -> Any:
    if token in _WORDS:
        return _WORDS[token]
    value = int(token) if token.isdigit() else ast.literal_eval(token)
    return str(value) if isinstance(value, complex) else value


def is_record(value: Any) -> bool:
    """Return whether a value looks like the record of a step, in any shape."""
    return isinstance(value, Mapping) and len(_RECORD_KEYS & value.keys()) >= 2


def normalise_record(raw: Any, options: Options = DEFAULTS) -> StepRecord:
    """Normalise a record of any shape, whose values are JSON; never raises.

    What the record does not say stays None, and anything but a mapping becomes an empty record. `success` is True or
    False only if the record says so (also as text, ``"True"``). A stored text of exactly
    ``options.text_limit`` characters counts as cut, unless its metadata give its length.
    """
    raw = raw if isinstance(raw, Mapping) else {}
    given, kind, shape = raw.get("step"), raw.get("result_type"), raw.get("shape")
    step: Any = dict(given) if isinstance(given, Mapping) else {}
    function = given if isinstance(given, str) else step.get("function_name", raw.get("function_name"))
    step["function_name"] = name(function)
    parameters = step.get("parameters", raw.get("parameters"))
    step["parameters"] = dict(parameters) if isinstance(parameters, Mapping) else {}

    if shape not in ("A", "B", "C") or "step" not in raw:
        shape = "C" if "step" not in raw and "result" not in raw else "A" if kind is None else "B"
    flat = shape == "C" and "step" not in raw  # if present, the record was normalised before
    # on disk (shape C) the summary is the cut result itself
    result = raw.get("result_summary") if flat else raw.get("result")
    success = truth(raw.get("success"))
    if kind not in RESULT_TYPES:
        is_plot, is_structure = options.is_plot(step["function_name"]), isinstance(result, (Mapping, list))
        kind = "visualization" if is_plot else "structured" if is_structure else "text"
        kind = "skipped" if name(step.get("skip_reason")) else "text" if success is False else kind
    metadata = dict(raw["result_metadata"]) if isinstance(raw.get("result_metadata"), Mapping) else {}
    # in memory (A, B) plots and structures are stored as they are; on disk (C) everything is cut
    may_be_cut = (kind == "text" or shape == "C") and not {"truncated", "length"} & set(metadata)
    if may_be_cut and isinstance(result, str) and len(result) == options.text_limit:
        metadata["truncated"] = [None, options.text_limit]
    error = raw.get("error")
    return StepRecord(
        step_index=count(raw.get("step_index")),
        step=step,
        success=success,
        result=result,
        result_type=kind,
        result_summary="" if flat else str(raw.get("result_summary") or ""),
        result_metadata=metadata,
        error=None if error is None or error is False or error in ("", {}, []) else str(error),
        error_type=name(raw.get("error_type")),
        timestamp=name(raw.get("timestamp")),
        shape=shape,
    )


def normalise_history(records: Any, options: Options = DEFAULTS) -> list[StepRecord]:
    """Normalise a whole history, in memory or decoded from a file, and count the steps if the records do not.

    If no record of a run of records has an index (shape C), a record that repeats the function and parameters of
    a failed one is another attempt at the same step; every other record is the next step. Entries other than mappings
    become empty records. `records` is a list, or a mapping that holds one under ``execution_history``.
    """
    if isinstance(records, Mapping):
        records = records.get(HISTORY_KEY)
    if not isinstance(records, Sequence) or isinstance(records, (str, bytes)):
        return []
    return number_steps([normalise_record(to_jsonable(raw), options) for raw in records])


def number_steps(records: list[StepRecord]) -> list[StepRecord]:
    """Fill in the step indices that records lack; returns the same list."""
    for i, record in enumerate(records):
        if record["step_index"] is None:
            same_step = i > 0 and repeats_failure(records[i - 1], record)
            record["step_index"] = (records[i - 1]["step_index"] or 0) + (not same_step) if i else 0
    return records


def same_call(a: StepRecord, b: StepRecord) -> bool:
    """Return whether two records are the same function with the same parameters."""
    return (
        a["step"]["function_name"] == b["step"]["function_name"] and a["step"]["parameters"] == b["step"]["parameters"]
    )


def repeats_failure(before: StepRecord, record: StepRecord) -> bool:
    """Return whether a record is another attempt at the call that failed in the one before."""
    return before["success"] is False and same_call(before, record)


def unique_labels(histories: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return distinct labels of histories that are shown together, given by source and thread.

    A label is the shortest end of a path that no other file has, and the thread: ``h.json``, ``run_07/h.json``,
    ``c.sqlite · thread-1``. Bytes that are not UTF-8 are escaped.
    """
    pairs, unique = list(dict.fromkeys(histories)), unique_keys()
    paths = short_paths(source for source, _ in pairs)
    return {(a, b): unique(escape_surrogates(f"{paths[a]} · {b}" if b else paths[a])) for a, b in pairs}
