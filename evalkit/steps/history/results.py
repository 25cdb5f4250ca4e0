"""Read the contents of a stored result, per function: from structures and from legacy text, complete or cut.

A count that was cut off or never stored is None. All code that judges or summarises results reads them through here.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from evalkit.steps.format import StepRecord, count, number, truncated
from evalkit.steps.history.values import is_cut, read_literal, unique_keys

METHODS = ("go", "kegg", "reactome", "gsea")
DISCOVERED, LEAF_NODE, NO_NEW_TYPES = "discovered", "leaf_node", "no_new_cell_types"
FAILED, NO_RESULT, EMPTY_MAPPING, UNKNOWN = "failed", "no_result", "empty_mapping", "unknown"
NOTHING: tuple[Any, ...] = (None, "", [], {}, "Success")  # the last is what shape A made of false values
ERROR_TEXT = re.compile(r"^[^\w{\[(<]*(?:error|exception|traceback|failed)\b", re.IGNORECASE)

_ASKED_BY = ("analyses", "analysis", "methods", "method", "analysis_types", "analysis_type", "enrichment_types")
_HTML = re.compile(r"<\s*(?:!doctype|!--|[a-z][a-z0-9]*[\s/>])", re.IGNORECASE)
_CUT_PLOTS = re.compile(r"^\s*\{['\"]multiple_plots['\"]\s*:\s*true", re.IGNORECASE)
_CELL_TYPES = re.compile(r"group_to_cell_type['\"]?\s*[=:]\s*(?=\{)")
_NO_CELL_TYPES = re.compile(r"no new cell types", re.IGNORECASE)
_FAILED_CELLS = re.compile(r"^\s*process cells failed", re.IGNORECASE)
_DISCOVERED = re.compile(r"(?i)discovered new cell type(s?)\s*:[ \t]*((?:(?!discovered new cell types?\s*:).)*)")


class Method(NamedTuple):
    """One enrichment method."""

    terms: list[str]  # those listed
    p_values: list[float | None]
    total: int | None  # of significant terms; None: unknown
    complete: bool = True  # the list of terms is present and was not cut

    @property
    def significant(self) -> bool:
        """Whether there are significant terms: listed, or counted where the list is not complete."""
        return self.total != 0 and (bool(self.terms) or not (self.total is None or self.complete))


class Enrichment(NamedTuple):
    """Enrichment by method in lower case."""

    methods: dict[str, Method]
    status: str | None
    partial: bool  # the text was cut
    absent: list[str]  # requested (or named in the result, if no request is known), and missing

    @property
    def total(self) -> int | None:
        """Significant terms of all methods together, for orientation; None if one of them is unknown."""
        totals = [method.total for method in self.methods.values() if method.total is not None]
        unknown = self.partial or self.absent or len(totals) < len(self.methods)
        return None if unknown or not totals else sum(totals)


class Expression(NamedTuple):
    """Differential expression: significant genes per condition, their number (None: cut), and that of conditions."""

    genes: dict[str, list[str]]
    counts: dict[str, int | None]
    conditions: int | None


class CellTypes(NamedTuple):
    """Annotation: the types discovered, in order of appearance, and how the discovery ended."""

    types: list[str]
    status: str  # one of those above, or the status in the result, such as leaf_node
    groups: dict[str, str]  # of cells, to their types
    partial: bool  # the text was cut


class Counts(NamedTuple):
    """Cells per category (None: unknown), and the number of categories."""

    cells: dict[str, int | None]
    categories: int | None


class Search(NamedTuple):
    """Semantic search: its first results as text."""

    results: list[str]
    total: int | None  # of matches; None: unknown
    message: str | None


class Plots(NamedTuple):
    """Plots; numbers are None where they are unknown."""

    type: str  # html, multiple_plots, file_ref, image, text, none, or unknown where it was cut away
    plots: int | None = 1
    html_length: int | None = None
    path: str | None = None


def content(record: StepRecord) -> Any:
    """Return the result as a structure if it is one or its text can be parsed as one, else as it is."""
    result = record["result"]
    value = read_literal(result).value if isinstance(result, str) else None
    return result if value is None else value


def read_enrichment(record: StepRecord) -> Enrichment:
    """Read terms, p-values and counts per method; a ``top_terms`` at the top level is not a method."""
    value, requested, methods = content(record), requested_methods(record), {}
    if not isinstance(value, Mapping):
        return Enrichment({}, None, partial=truncated(record), absent=requested)
    for key, entry in ((str(key).lower(), entry) for key, entry in value.items()):
        if isinstance(entry, Mapping) and (key in METHODS or "total_significant" in entry):
            terms = entry.get("top_terms")
            methods[key] = Method(
                terms=[str(term) for term in _list(terms)],
                p_values=[number(p) for p in _list(entry.get("top_pvalues"))],
                total=count(entry.get("total_significant")),
                complete=isinstance(terms, list) and not is_cut(terms),
            )
    expected = requested or [name for name in map(str.lower, map(str, value)) if name in METHODS]
    return Enrichment(methods, status_of(value), is_cut(value), [name for name in expected if name not in methods])


def requested_methods(record: StepRecord) -> list[str]:
    """Return the enrichment methods that a step's parameters request, in lower case; empty if they name none."""
    parameters = record["step"].get("parameters", {})
    values = [parameters[key] for key in _ASKED_BY if key in parameters]
    words = [word for value in values for word in (value if isinstance(value, list) else [value])]
    names = [piece.strip().lower() for word in words if isinstance(word, str) for piece in word.split(",")]
    return [method for method in dict.fromkeys(names) if method in METHODS]


def read_expression(record: StepRecord) -> Expression:
    """Read significant genes per condition, from the dict or the bare list; two of one category are kept apart."""
    genes, counts = dict[str, list[str]](), dict[str, int | None]()
    unique, (entries, n) = unique_keys(), _entries(content(record), "dea_results")
    for entry in entries:
        key = unique(str(entry.get("category", "unknown")))
        listed = entry.get("significant_genes")
        genes[key] = [str(gene) for gene in _list(listed)]
        counts[key] = len(listed) if isinstance(listed, list) and not is_cut(listed) else count(listed)
    return Expression(genes, counts, n)


def read_counts(record: StepRecord) -> Counts:
    """Read the number of cells per category; two entries of one category are kept apart."""
    unique, (entries, n) = unique_keys(), _entries(content(record), "count_results")
    return Counts({unique(str(e.get("category", "unknown"))): count(e.get("cell_count")) for e in entries}, n)


def read_search(record: StepRecord) -> Search:
    """Read the matches of a semantic search; the number is unknown for a cut list or a failed search."""
    value = content(record)
    if not isinstance(value, Mapping):
        return Search([], None, value if isinstance(value, str) else None)
    inner = within if isinstance(within := value.get("search_results"), Mapping) else value
    listed = inner.get("results")
    error = error_in(value) or error_in(inner)
    total = None if error else count(inner.get("total_matches", value.get("total_matches")))
    if total is None and not error and isinstance(listed, list) and not is_cut(listed) and not is_cut(inner):
        total = len(listed)
    message = inner.get("message") or value.get("message") or error
    return Search([_label(item) for item in _list(listed)], total, str(message) if message else None)


def read_annotation(record: StepRecord) -> CellTypes:
    """Read the discovered cell types and how the discovery ended."""
    value = record["result"]
    groups, partial = read_cell_types(value) if isinstance(value, str) else (None, False)
    if groups is None:
        value = content(record)
        mapping = value.get("group_to_cell_type") if isinstance(value, Mapping) else None
        if isinstance(mapping, Mapping):
            groups, partial = {str(k): str(v) for k, v in mapping.items()}, is_cut(mapping)
    if groups:
        return CellTypes([*dict.fromkeys(groups.values())], DISCOVERED, groups, partial)
    message = value.get("message") if isinstance(value, Mapping) else record["result"]
    text = message if isinstance(message, str) else ""
    if _FAILED_CELLS.match(text) or ERROR_TEXT.match(text) or error_in(value):
        return CellTypes([], FAILED, {}, False)
    types, cut = _types_in_words(text, truncated(record))
    if types:
        return CellTypes(types, DISCOVERED, {}, cut)
    empty = groups is not None and not partial
    status = NO_RESULT if value in NOTHING else status_of(value) or (EMPTY_MAPPING if empty else UNKNOWN)
    status = NO_NEW_TYPES if _NO_CELL_TYPES.search(text) else status
    return CellTypes([], status, {}, not empty and truncated(record))


def read_cell_types(text: str) -> tuple[dict[str, str] | None, bool]:
    """Read ``group_to_cell_type = {...}`` from a text (None if missing), and whether it was cut."""
    match = _CELL_TYPES.search(text)
    if match is None:
        return None, False
    value, cut = read_literal(text, match.end())
    if not isinstance(value, dict):
        return {}, True  # the mapping began, but none of its pairs can be read
    return {str(k): str(v) for k, v in value.items() if isinstance(v, (str, int))}, cut


def _types_in_words(text: str, cut: bool) -> tuple[list[str], bool]:
    """Read "Discovered new cell type: X" (or "types: X, Y") without a name at the cut, and whether more may follow."""
    names, marks = list[str](), list(_DISCOVERED.finditer(text))
    for mark in marks:
        listed = mark[2].strip().strip("[]").split(",") if mark[1] else [mark[2]]
        if cut and mark.end() == len(text):
            listed.pop()
        names += filter(None, (name.strip(" \t\r.;'\"") for name in listed))
    return list(dict.fromkeys(names)), cut and bool(marks)


def read_plots(record: StepRecord) -> Plots:
    """Read the kind of plot that a display function returned; the length of HTML that was cut or in a file is None."""
    result, cut = record["result"], truncated(record)
    if isinstance(result, str) and _CUT_PLOTS.match(result) and cut:
        return Plots("multiple_plots", None)
    value = content(record)
    if isinstance(value, Mapping):
        if _is_file(value):
            return Plots("file_ref", path=str(value.get("path") or "") or None)
        plots = value.get("plots")
        if isinstance(plots, list):
            pages = [p.get("html") if isinstance(p, Mapping) else p for p in plots]
            in_files = any(_is_file(plot) and not isinstance(plot.get("html"), str) for plot in plots)
            length = sum(len(page) for page in pages if isinstance(page, str))
            n = None if is_cut(plots) else len(plots)
            return Plots("multiple_plots", n, None if n is None or in_files else length)
        if is_cut(value) and "html" not in value:
            return Plots("unknown", None)
        value = value["html"] if isinstance(value.get("html"), str) else value
    if isinstance(value, str) and value.strip():
        if _HTML.search(value) and not ERROR_TEXT.match(value):
            return Plots("html", 1, None if cut else len(value))
        return Plots("image", 1, 0) if value.startswith(("data:image/", "iVBORw0KGgo")) else Plots("text", 0, 0)
    return Plots("none", 0, 0)


def _is_file(value: Any) -> bool:
    """Return whether a plot was stored in a file of its own."""
    return isinstance(value, Mapping) and (value.get("type") == "file_ref" or isinstance(value.get("path"), str))


# the analyses, which always return something; keys they return beside a status come first
READERS: Mapping[str, Callable[[StepRecord], tuple]] = {
    "perform_enrichment_analyses": read_enrichment,
    "dea_split_by_condition": read_expression,
    "process_cells": read_annotation,
    "compare_cell_counts": read_counts,
    "search_enrichment_semantic": read_search,
}


def only_status(record: StepRecord) -> str | None:
    """Read the status of an analysis that returned nothing else."""
    read = READERS.get(record["step"]["function_name"] or "")
    status = status_of(content(record)) if read else None
    return status if read and status and not read(record)[0] else None


def status_of(value: Any) -> str | None:
    """Read the ``status`` of a result that is only a status."""
    status = value.get("status") if isinstance(value, Mapping) else None
    return status if isinstance(status, str) and status else None


def error_in(value: Any) -> str | None:
    """Read the ``error`` of a result, if it has one."""
    error = value.get("error") if isinstance(value, Mapping) else None
    return str(error) if error else None


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _entries(value: Any, key: str) -> tuple[list[Mapping], int | None]:
    """Return the entries under `key`, or in the bare list, and their number (None: no list, a cut one, error)."""
    listed = value.get(key) if isinstance(value, Mapping) else value
    mappings = (entry for entry in _list(listed) if isinstance(entry, Mapping))
    entries = [entry for entry in mappings if not (is_cut(entry) and "category" not in entry)]
    known = isinstance(listed, list) and not is_cut(listed) and not error_in(value)
    return entries, len(entries) if known else None


def _label(item: Any) -> str:
    keys = ("term", "name", "pathway", "title") if isinstance(item, Mapping) else ()
    return next((item[key] for key in keys if isinstance(item.get(key), str)), str(item))
