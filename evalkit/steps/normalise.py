"""Normalise histories: any value becomes JSON, a text the structure it shows, a record of any shape a `StepRecord`."""

import ast
import contextlib
import json
import math
import numbers
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit.steps.format import DEFAULTS, HISTORY_KEY, RESULT_TYPES, Options, StepRecord, count, name, truth

MAX_DEPTH = 100  # of structures; deeper ones are kept as text
MAX_LENGTH = 200_000  # characters; a longer text is not parsed as a structure
MAX_BRACKETS = 80  # brackets within brackets in such a text
MOST_DROPPED = 20  # words and signs at the end of a cut text

_RECORD_KEYS = frozenset({"step", "function_name", "success", "result", "result_summary", "error"})
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_BEGIN = re.compile(r"\s*(?=[\[{(])")
_TOKEN = re.compile(  # `call` is the beginning of np.float64(0.5), `cut` the remainder of a string that was cut
    r"""(?P<string>b?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"))|(?P<cut>b?['"].*)"""
    r"""|(?P<call>(?:(?:np|numpy)\.(?:float|int|uint|str|bool|array)\d*_?|array)\()"""
    r"""|(?P<sign>[{}\[\](),:])|(?P<word>[^'"{}\[\](),:\s]+)""",
    re.DOTALL,
)
# what `ast.literal_eval` does not know
_WORDS = {"true": "True", "false": "False", "np.True_": "True", "np.False_": "False"}
_WORDS |= dict.fromkeys(("null", "nan", "NaN", "NaT", "inf", "-inf", "Infinity", "-Infinity"), "None")


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
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = list(chain.from_iterable(inner))
        if not level:
            return False
    return True


class CutList(list):
    """The first items of a list whose text was cut."""


class CutDict(dict):
    """The first pairs of a dict whose text was cut."""


CUT: tuple[type, ...] = (CutList, CutDict)  # of a list or dict: it is only the beginning of the original


class Literal(NamedTuple):
    """The literal in a text: the value (None if nothing could be parsed), and whether the text was cut inside it."""

    value: Any
    cut: bool


def read_literal(text: str, start: int = 0) -> Literal:
    """Parse the list, tuple or dict that begins at `start` (after white space): a Python repr or JSON, complete or cut.

    Of a cut one the complete elements are kept; lists and dicts that were still open at the cut become `CutList` and
    `CutDict`. The element at the cut is dropped: half a number is not a number. Text after the closing bracket is
    ignored. Without a bracket at `start`, or for other text, the value is None.
    """
    begin, end = _BEGIN.match(text, start), len(text.rstrip())
    if begin is None or len(text) > MAX_LENGTH:
        return Literal(None, False)
    tokens, closing, before = list[str](), list[str](), ""  # what is read, and the brackets that close what is open
    try:
        for match in _TOKEN.finditer(text, begin.end()):
            kind, token = match.lastgroup or "", match[0]
            if kind == "cut" or (kind == "word" and match.end() == end):
                break
            if len(closing) > MAX_BRACKETS or (kind == before == "string"):  # which Python would join
                return Literal(None, False)
            if kind == "word":
                tokens.append(_WORDS.get(token, token))
            elif kind == "string":
                tokens.append(repr(_string(token)) if "\\" in token or "\n" in token else token)
            elif kind == "call":
                closing.append("")  # np.float64(0.5) is 0.5
            elif token in _CLOSING:
                tokens.append(token)
                closing.append(_CLOSING[token])
            elif token in ",:" or closing.pop():  # of a call neither bracket is kept
                tokens.append(token)
            if not closing:
                return Literal(_plain(ast.literal_eval(" ".join(tokens)), 0), False)
            before = kind

        closing = list(filter(None, closing))
        if tokens[-1] == ":" and tokens[-2] not in _CLOSING.values():
            del tokens[-2:]  # a key whose value was cut off
        for _ in range(MOST_DROPPED):  # until what is left is complete
            is_single = closing[-1] == ")" and tokens[-1] not in "(,"
            whole = [*tokens, *[","] * is_single, *reversed(closing)]
            with contextlib.suppress(SyntaxError):
                return Literal(_plain(ast.literal_eval(" ".join(whole)), len(closing)), True)
            dropped = tokens.pop()
            if dropped in _CLOSING:
                closing.pop()
            elif dropped in _CLOSING.values():
                closing.append(dropped)
    except (ValueError, SyntaxError, TypeError, IndexError, MemoryError, RecursionError):
        pass
    return Literal(None, False)


def _string(token: str) -> str:
    """Return the text of a string of Python or JSON."""
    if "\\" not in token:
        return token.removeprefix("b")[1:-1]
    if token[0] == '"':  # JSON writes some characters as two escapes, which Python keeps separate
        with contextlib.suppress(ValueError):
            return json.loads(token)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes unknown to Python, as in '\d'
        return str(ast.literal_eval(token))


def _plain(value: Any, n_open: int) -> Any:
    """Convert tuples and sets to lists; the structure and the last ones within it, `n_open` in all, were cut."""
    if isinstance(value, set):
        return CutDict() if n_open > 0 else sorted(value, key=str)  # a dict that was cut after its first key, or a set
    if isinstance(value, dict):
        pairs = CutDict() if n_open > 0 else dict[Any, Any]()
        for i, (key, item) in enumerate(value.items(), 1):
            pairs[key] = _plain(item, n_open - 1 if i == len(value) else 0)
        return pairs
    if isinstance(value, (list, tuple)):
        items = CutList() if n_open > 0 or ... in value else list[Any]()  # dots stand for items that were left out
        for i, item in enumerate(value, 1):
            items += [] if item is ... else [_plain(item, n_open - 1 if i == len(value) else 0)]
        if n_open > 1 and items and isinstance(items[-1], CUT) and not items[-1]:
            items.pop()
        return items
    return str(value) if isinstance(value, (complex, bytes)) else value


def is_record(value: Any) -> bool:
    """Return whether a value looks like the record of a step, in any shape."""
    return isinstance(value, Mapping) and len(_RECORD_KEYS & value.keys()) >= 2


def normalise_record(raw: Any, options: Options = DEFAULTS) -> StepRecord:
    """Normalise a record of any shape, whose values are JSON; never raises.

    What the record does not say stays None, and anything but a mapping becomes an empty record. A stored text of
    exactly ``options.text_limit`` characters counts as cut, unless its metadata give its length.
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
