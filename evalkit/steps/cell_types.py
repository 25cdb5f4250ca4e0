"""What an annotation step found: the cell types, and how their discovery ended."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from evalkit.steps.format import StepRecord
from evalkit.steps.literal import is_cut, read_cell_types
from evalkit.steps.results import ERROR_TEXT, content, error_in, status_of, truncated

DISCOVERED, LEAF_NODE, NO_NEW_TYPES = "discovered", "leaf_node", "no_new_cell_types"
FAILED, NO_RESULT, EMPTY_MAPPING, UNKNOWN = "failed", "no_result", "empty_mapping", "unknown"
_NO_CELL_TYPES = re.compile(r"no new cell types", re.IGNORECASE)
_FAILED = re.compile(r"^\s*process cells failed", re.IGNORECASE)
_DISCOVERED = re.compile(r"discovered new cell type(s?)\s*:[ \t]*", re.IGNORECASE)


class CellTypes(NamedTuple):
    """Annotation: `status`, group to cell type, the types in order of appearance, `partial` where the text was cut.

    `status` is ``discovered``, ``no_new_cell_types``, ``empty_mapping`` (no group of cells was named), ``failed``,
    ``no_result``, ``unknown``, or what the result itself gives as its status, such as ``leaf_node``.
    """

    status: str
    groups: dict[str, str]
    types: list[str]
    partial: bool


def read_annotation(record: StepRecord) -> CellTypes:
    """Read the discovered cell types and how the discovery ended."""
    value = record["result"]
    mapping, partial = read_cell_types(value) if isinstance(value, str) else (None, False)
    if mapping is None:
        value = content(record)
        if isinstance(value, Mapping) and isinstance(value.get("group_to_cell_type"), Mapping):
            inner = value["group_to_cell_type"]
            mapping, partial = {str(k): str(v) for k, v in inner.items()}, is_cut(inner)
    if mapping:
        return CellTypes(DISCOVERED, mapping, list(dict.fromkeys(mapping.values())), partial)
    message = value.get("message") if isinstance(value, Mapping) else record["result"]
    text = message if isinstance(message, str) else ""
    if _FAILED.match(text) or ERROR_TEXT.match(text) or error_in(value):
        return CellTypes(FAILED, {}, [], False)
    types, cut = _named_types(text, truncated(record))
    if types:
        return CellTypes(DISCOVERED, {}, types, cut)
    empty = mapping is not None and not partial
    return CellTypes(_status_without_types(value, text, empty), {}, [], not empty and truncated(record))


def _status_without_types(value: Any, text: str, empty: bool) -> str:
    if _NO_CELL_TYPES.search(text):
        return NO_NEW_TYPES
    if value in (None, "", [], {}, "Success"):  # "Success" is what shape A made of a result that counts as false
        return NO_RESULT
    return status_of(value) or (EMPTY_MAPPING if empty else UNKNOWN)


def _named_types(text: str, cut: bool) -> tuple[list[str], bool]:
    """Read "Discovered new cell type: X" (or "types: X, Y"), up to the end of the line or the next of these.

    Returns
    -------
    names : list of str
        Without the one at the cut, of which only the beginning may be there.
    partial : bool
        Whether there may be more behind the cut.
    """
    marks = list(_DISCOVERED.finditer(text))
    names: list[str] = []
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=False):
        line = text[mark.end() : end].partition("\n")[0]
        listed = line.strip().strip("[]").split(",") if mark.group(1) else [line]
        if cut and mark.end() + len(line) == len(text):
            listed.pop()
        names += [name for name in (one.strip(" \t\r.;'\"") for one in listed) if name]
    return list(dict.fromkeys(names)), cut and bool(marks)
