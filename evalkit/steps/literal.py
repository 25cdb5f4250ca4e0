"""Reading Python reprs and JSON out of text, also where the text was cut in the middle; nothing is ever evaluated."""

import ast
import json
import re
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

MAX_LENGTH = 2_000_000  # characters; a longer text is not taken apart
_SHORT = 10_000  # characters; what was read of such a text is kept for the next reader
MAX_DEPTH = 80  # brackets within brackets

_CLOSING = {"{": "}", "[": "]", "(": ")"}
# a whole string, else the rest of a string that was cut, a bracket, a comma, white space, or anything up to these
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|['"].*|[{}\[\]()]|,|\s+|[^'"{}\[\](),\s]+""", re.DOTALL)
_REWRITES = (  # what `str()` writes outside of strings and `ast.literal_eval` does not know
    (re.compile(r"\b(?:np|numpy)\.(?:float|int|uint|str|bool|array)\d*_?$|\barray$"), ""),  # np.float64(0.5) is (0.5)
    (re.compile(r"-?\b(?:nan|NaN|inf|Infinity|NaT|null)\b"), "None"),
    (re.compile(r"\btrue\b"), "True"),
    (re.compile(r"\bfalse\b"), "False"),
)
_WORD = re.compile("[A-Za-z]{3}")  # all that is rewritten has such a word
_BEGIN = re.compile(r"\s*(?=[\[{(])")
_CELL_TYPES = re.compile(r"group_to_cell_type['\"]?\s*[=:]\s*(?=\{)")
_JSON = json.JSONDecoder(parse_constant=lambda _: None)


class CutList(list):
    """A list whose text was cut: these are its first items, how many there were is unknown."""


class CutDict(dict):
    """A dict whose text was cut: these are its first pairs, how many there were is unknown."""


class Literal(NamedTuple):
    """What a text holds: the value (None where nothing could be read), and whether the text was cut inside it."""

    value: Any
    cut: bool


NOTHING = Literal(None, False)


def is_cut(value: Any) -> bool:
    """Say whether a list or dict is only the beginning of what it was."""
    return isinstance(value, (CutList, CutDict))


def read_literal(text: str, start: int = 0) -> Literal:
    """Read the list, tuple or dict that begins at `start`, complete or cut.

    Of a cut one the complete elements are kept; lists and dicts that were still open at the cut come back as
    `CutList` and `CutDict`. The element at the cut is dropped: half a number is not a number.

    Parameters
    ----------
    text : str
        A Python repr or JSON. What follows the closing bracket is left alone.
    start : int
        Where the opening bracket is expected; white space before it is skipped.

    Returns
    -------
    Literal
        ``Literal(None, False)`` where no bracket stands there or the text is neither. Not to be changed: the same
        value may be given again.
    """
    begin = _BEGIN.match(text, start)
    if begin is None or len(text) > MAX_LENGTH:
        return NOTHING
    return (_read_short if len(text) <= _SHORT else _read)(text, begin.end())


def _read(text: str, start: int) -> Literal:
    tokens, ends = _scan(text, start)
    if ends and not ends[-1][1]:
        value = _as_json(text, start)
        if value is not None:
            return Literal(value, False)
    for n, stack, empty in reversed(ends):  # the longest beginning that can be read
        value = _evaluate("".join(tokens[:n]) + _close(stack, empty))
        if value is not None:
            return Literal(_mark(value), bool(stack))
    return NOTHING


_read_short = lru_cache(1024)(_read)  # one result is read by several checks


def read_cell_types(text: str) -> Literal:
    """Read ``group_to_cell_type = {...}`` out of a text; of a cut one the complete pairs.

    Returns
    -------
    Literal
        `value` maps groups to cell types, both as text; None where the text holds no such mapping.
    """
    match = _CELL_TYPES.search(text)
    if match is None:
        return NOTHING
    value, cut = read_literal(text, match.end())
    if not isinstance(value, dict):
        return Literal({}, True)  # the mapping began, but no pair of it can be read
    return Literal({str(k): str(v) for k, v in value.items() if isinstance(v, (str, int))}, cut)


def _scan(text: str, start: int) -> tuple[list[str], list[tuple[int, str, bool]]]:
    """Cut the bracketed value at `start` into tokens.

    Returns
    -------
    tokens : list of str
    ends : list of (int, str, bool)
        Up to three places where the value may end: the number of tokens before it, the brackets open there (none for
        a complete value), and whether it is right behind an opening one. Empty where the brackets don't match.
    """
    tokens: list[str] = []
    stack = ""
    ends: list[tuple[int, str, bool]] = []
    for match in _TOKEN.finditer(text, start):
        token = match.group()
        if token == ",":
            ends.append((len(tokens), stack, False))
        called = token == "(" and bool(tokens) and tokens[-1] == ""
        tokens.append(_rewrite(token))
        if token in _CLOSING:
            stack += token
            if len(stack) > MAX_DEPTH:
                return [], []
            if not called:
                ends.append((len(tokens), stack, True))
        elif token in ("}", "]", ")"):
            if _CLOSING[stack[-1]] != token:
                return [], []
            stack = stack[:-1]
            ends.append((len(tokens), stack, False))
            if not stack:
                return tokens, ends[-1:]
        elif token[0] in "'\"" and len(token) > 1 and token[-1] == token[0]:
            ends.append((len(tokens), stack, False))  # after a key this can't be read, and the end before counts
        if len(ends) > 3:
            del ends[:-3]
    return tokens, ends


def _rewrite(token: str) -> str:
    if token[0] == "'":
        return token
    if token[0] == '"':  # JSON writes some characters as two escapes, which Python keeps apart
        value = _as_json(token, 0) if "\\" in token else None
        return token if value is None else repr(value)
    if _WORD.search(token):
        for pattern, replacement in _REWRITES:
            token = pattern.sub(replacement, token)
    return token


def _close(stack: str, empty: bool) -> str:
    """Write what closes the open brackets, with ``...`` in each as mark of the cut."""
    marks = []
    for bracket in reversed(stack):
        marks.append(("" if empty else ",") + ("...:..." if bracket == "{" else "...,") + _CLOSING[bracket])
        empty = False
    return "".join(marks)


def _as_json(text: str, start: int) -> Any:
    try:
        return _JSON.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _evaluate(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes Python does not know, as in '\d'
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _mark(value: Any) -> Any:
    """Turn containers that hold the mark of the cut into `CutList` and `CutDict`, tuples and sets into lists."""
    if isinstance(value, dict):
        kind = CutDict if ... in value else dict
        return kind((k, _mark(v)) for k, v in value.items() if k is not ...)
    if isinstance(value, (list, tuple, set)):
        items = [_mark(item) for item in value if item is not ...]
        if items and is_cut(items[-1]) and not items[-1]:  # the cut came right behind its bracket: nothing is known
            items.pop()
        return CutList(items) if any(item is ... for item in value) else items
    return str(value) if isinstance(value, (complex, bytes)) else value
