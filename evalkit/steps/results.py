"""Read what the result of a step says, by its function: from structures and from text, complete or cut.

A count that was cut away or never stored is None. Each function that is known has one reader, which says what was
found, what is wrong with the structure, and how it is evaluated and summarised.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

from evalkit.steps.format import Options, StepRecord, cell_type_of, count, number, truncated
from evalkit.steps.normalise import is_cut, read_literal, unique_keys

METHODS = ("go", "kegg", "reactome", "gsea")
DISCOVERED, LEAF_NODE, NO_NEW_TYPES, UNKNOWN = "discovered", "leaf_node", "no_new_cell_types", "unknown"
LEGACY, STRUCTURED, UNEXPECTED = "legacy_text_parsing", "high_structured_access", "unexpected_structure"
NOTHING: tuple[Any, ...] = (None, "", [], {}, "Success")  # the last is what shape A made of false values
MOST_SHOWN, MOST_SEARCHED = 200, 2000  # characters of a message

_ASKED_BY = ("analyses", "analysis", "methods", "method", "analysis_types", "analysis_type", "enrichment_types")
_ERROR_TEXT = re.compile(r"^[^\w{\[(<]*(?:error|exception|traceback|failed)\b", re.IGNORECASE)
# the beginning of an error dict whose text can't be read to its end
_ERROR_DICT = re.compile(r"^\s*\{\s*(['\"])error\1\s*:\s*+(?!None|null|''|\"\")")
_HTML = re.compile(r"<\s*(?:!doctype|!--|[a-z][a-z0-9]*[\s/>])", re.IGNORECASE)
_NO_PLOT = re.compile(
    r"(?is)\b(?:not available|not found|unavailable|error|exception|failed|could not|cannot|can't|unable)\b"
    r"|\bno\b.*\bfound\b"
)
_CELL_TYPES = re.compile(r"group_to_cell_type['\"]?\s*[=:]\s*(?=\{)")
_NO_CELL_TYPES = re.compile(r"no new cell types", re.IGNORECASE)
_FAILED_CELLS = re.compile(r"^\s*process cells failed", re.IGNORECASE)
_DISCOVERED = re.compile(r"(?i)discovered new cell type(s?)\s*:[ \t]*((?:(?!discovered new cell types?\s*:).)*)")

Severity = Literal["info", "warning", "error", "critical"]


class Check(TypedDict):
    """One judgement of one step; `score` from 0 to 1, None where it can't be computed."""

    name: str
    score: float | None
    label: str
    explanation: str
    severity: Severity


def check(name: str, score: float | None, label: str, explanation: str = "", severity: Severity = "info") -> Check:
    """Return a check, as evaluators list them under ``checks``."""
    score = None if score is None else float(score)
    return Check(name=name, score=score, label=label, explanation=explanation, severity=severity)


@dataclass
class Reading:
    """What the result of a step says; each reader fills in what it knows."""

    found: dict[str, Any] = field(default_factory=dict)  # its contents, as key findings give them, in full
    status: str | None = None  # of an analysis that returned nothing else
    failure: str | None = None  # why the step failed, although it may report success
    nothing_new: bool = False  # the analysis was done, and there was nothing to find
    issues: list[str] = field(default_factory=list)  # of the structure
    summary: str = ""  # what was done, in a line
    evaluation: dict[str, Any] | None = None  # what judging the step adds; None for a function that is not known
    checks: list[Check] = field(default_factory=list)


class Analysis(NamedTuple):
    """A function of the agent: the key of its findings, the types that it returns, and the reader of its results."""

    key: str
    types: tuple[type, ...]
    read: Callable[[StepRecord, Any, Reading, Options], None]


def read_result(record: StepRecord, options: Options) -> Reading:
    """Read the result of a step by its function."""
    function, result, value, reading = record["step"]["function_name"], record["result"], content(record), Reading()
    analysis = ANALYSES.get(function or "")
    if analysis:
        analysis.read(record, value, reading, options)
    elif options.is_plot(function):
        _read_plot(record, value, reading, options)

    inner = value.get("search_results") if isinstance(value, Mapping) else None
    error = _error_in(value) or _error_in(inner)
    if not error and isinstance(result, str) and (_ERROR_TEXT.match(result) or _ERROR_DICT.match(result)):
        error = result
    if error:
        reading.failure = f"the result is an error: {error[:MOST_SHOWN]}"
    elif analysis and result in NOTHING:
        reading.failure = "the step left no result"
    elif reading.failure is None and reading.status and options.is_failed_status(reading.status):
        message = value.get("message")
        shown = f"{reading.status} ({message})" if isinstance(message, str) and message else reading.status
        reading.failure = f"the result is only a status: {shown[:MOST_SHOWN]}"

    quoted = (reading.failure or record["error"]) and not reading.status  # the text of a failure
    if result is None:
        reading.summary = "Success"
    elif quoted or not reading.summary:
        reading.summary = str(result)[: options.summary_limit]
    return reading


def content(record: StepRecord) -> Any:
    """Return the result as a structure if it is one or its text can be parsed as one, else as it is."""
    result = record["result"]
    value = read_literal(result).value if isinstance(result, str) else None
    return result if value is None else value


def _read_enrichment(record: StepRecord, value: Any, reading: Reading, options: Options) -> None:
    """Read terms, p-values and counts per method; a ``top_terms`` at the top level is not a method.

    The methods rest on different p-values: their total is for orientation only.
    """
    parameters = record["step"].get("parameters", {})
    asked = [parameters[key] for key in _ASKED_BY if key in parameters]
    words = [word for given in asked for word in (given if isinstance(given, list) else [given])]
    names = [piece.strip().lower() for word in words if isinstance(word, str) for piece in word.split(",")]
    requested = [method for method in dict.fromkeys(names) if method in METHODS]

    methods, issues, successful, top = reading.found, reading.issues, list[str](), dict[str, list[str]]()
    entries = {str(key).lower(): entry for key, entry in value.items()} if isinstance(value, Mapping) else {}
    issues += [f"{name}: requested, not in the result" for name in requested if name not in entries]
    issues += [f"{name}: not a structure" for name in METHODS if not isinstance(entries.get(name, {}), Mapping)]
    for name, entry in entries.items():
        if not isinstance(entry, Mapping) or (name not in METHODS and "total_significant" not in entry):
            continue
        listed, p_values = _list(entry.get("top_terms")), _list(entry.get("top_pvalues"))
        n, total = len(listed), count(entry.get("total_significant"))
        is_complete = isinstance(entry.get("top_terms"), list) and not is_cut(listed)
        terms = [str(term) for term in listed]
        methods[name] = {"top_terms": terms, "p_values": [number(p) for p in p_values], "total_significant": total}
        if total != 0 and (n or not (total is None or is_complete)):  # listed, or counted where the list is missing
            successful.append(name.upper())
        if terms:
            top[name] = terms[:3]

        for p, read in zip(p_values, methods[name]["p_values"], strict=True):
            if p not in (None, "N/A") and (read is None or not 0 <= read <= 1):
                issues.append(f"{name}: {str(p)[:40]!r} is no p-value")
        if p_values and len(p_values) != n:
            issues.append(f"{name}: {n} terms, {len(p_values)} p-values")
        if total is None:
            issues.append(f"{name}: the number of significant terms is missing")
        elif total < n:
            issues.append(f"{name}: {total} significant terms, but {n} are listed")
        elif total and not n and is_complete:
            issues.append(f"{name}: {total} significant terms, but none is listed")

    is_partial = is_cut(value) if entries or isinstance(value, Mapping) else truncated(record)
    expected = requested or [name for name in entries if name in METHODS]
    absent = [name for name in expected if name not in methods]
    totals = {name: method["total_significant"] for name, method in methods.items()}
    is_known = totals and not is_partial and not absent and None not in totals.values()
    total = sum(totals.values()) if is_known else None

    status, concerns, highlights = _status_of(value), list[str](), list[str]()
    if not methods and is_partial:
        concerns = ["The result was cut before any method could be read"]
    elif not methods:
        concerns = ["No method has a result" + (f" (status: {status})" if status else "")]
    elif total == 0:
        concerns = ["No significant pathways found in any method"]
        concerns += ["Consider adjusting parameters or trying different approaches"]
    elif total is not None and total > options.rich_pathways:
        highlights = [f"Rich pathway enrichment found ({total} total)"]
        highlights += [f"Successful methods: {', '.join(successful)}"] if successful else []
    shown = ("unknown", "the number of significant pathways is not known") if total is None else (str(total), "")
    score = None if total is None else total > 0
    reading.checks.append(check("pathways_found", score, *shown, "info" if total else "warning"))
    if requested:
        reading.checks.append(_share("requested_methods", requested, absent, is_partial))
    evaluation = {
        "pathway_counts": totals | dict.fromkeys(absent),
        "total_significant_pathways": total,
        "successful_methods": successful,
        "method_count": len(successful),
        "data_quality": _quality(record),
        "top_pathways": top,
        "status": status,
        "concerns": concerns,
        "highlights": highlights,
    }
    reading.evaluation = {"enrichment_evaluation": evaluation}
    if methods:
        counted = (f"{name.upper()}: {'unknown number of' if n is None else n} terms" for name, n in totals.items())
        reading.summary = f"Enrichment: {', '.join(counted)}"
    elif status:
        reading.status, reading.summary = status, f"Enrichment: No results ({status[: options.summary_limit]})"


def _read_expression(record: StepRecord, value: Any, reading: Reading, options: Options) -> None:
    """Read significant genes per condition, from the dict or the bare list; two of one category are kept apart."""
    listed, entries, n = _categories(value, "dea_results")
    found, issues, unique = reading.found, reading.issues, unique_keys()
    for entry in entries:
        given = entry.get("significant_genes")
        genes = [str(gene) for gene in _list(given)]
        is_whole = isinstance(given, list) and not is_cut(given)
        condition = unique(str(entry.get("category", "unknown")))
        found[condition] = {"significant_genes": len(genes) if is_whole else count(given), "top_genes": genes}
    for i, entry in enumerate(_list(listed), 1):
        if not isinstance(entry, Mapping) or "category" not in entry:
            issues.append(f"condition {i}: no category")
        elif not isinstance(entry.get("significant_genes"), list):
            issues.append(f"{str(entry['category'])[:40]}: no list of genes")
    if not isinstance(listed, list):
        issues.append("no list of conditions")

    counts = {condition: genes["significant_genes"] for condition, genes in found.items()}
    empty = [condition for condition, number in counts.items() if number == 0]
    made = check("conditions_with_genes", None, "no conditions", "no condition was compared", "warning")
    if n is None:
        why = "the list of conditions is not known"
        made = check("conditions_with_genes", None, "unknown", why, "warning")
    reading.checks.append(_share("conditions_with_genes", list(counts), empty) if n else made)
    evaluation = {
        "genes_per_condition": counts,
        "condition_count": n,
        "empty_conditions": empty,
        "data_quality": _quality(record),
    }
    reading.evaluation = {"dea_evaluation": evaluation}
    reading.status = None if found else _status_of(value)
    if reading.status:
        reading.summary = f"DEA: No results ({reading.status[: options.summary_limit]})"
    elif n == 0:
        reading.summary = "DEA: No conditions compared"
    elif n or isinstance(value, Mapping):
        reading.summary = "DEA: Analysis completed"


def _read_annotation(record: StepRecord, value: Any, reading: Reading, options: Options) -> None:
    """Read the discovered cell types, in order of appearance, and how the discovery ended."""
    result, groups, is_partial, given_status = record["result"], None, False, _status_of(value)
    mapping = value.get("group_to_cell_type") if isinstance(value, Mapping) else None
    if isinstance(result, str) and (match := _CELL_TYPES.search(result)):
        value = result
        mapping, is_partial = read_literal(result, match.end())
        if not isinstance(mapping, dict):  # it began, but none of its pairs can be read
            mapping, is_partial = {}, True
        groups = {str(k): str(v) for k, v in mapping.items() if isinstance(v, (str, int))}
    elif isinstance(mapping, Mapping):
        groups, is_partial = {str(k): str(v) for k, v in mapping.items()}, is_cut(mapping)

    message = value.get("message") if isinstance(value, Mapping) else result
    text = message if isinstance(message, str) else ""
    types, status = list(dict.fromkeys((groups or {}).values())), DISCOVERED
    if not types and (_FAILED_CELLS.match(text) or _ERROR_TEXT.match(text) or _error_in(value)):
        status, groups, is_partial = "failed", {}, False
        reading.failure = f"cells were not processed: {str(result)[:MOST_SHOWN]}"
    elif not types:
        is_empty, is_partial, cut = groups == {} and not is_partial, False, truncated(record)
        for mark in _DISCOVERED.finditer(text):  # "Discovered new cell type: X", or "types: X, Y"
            named = mark[2].strip().strip("[]").split(",") if mark[1] else [mark[2]]
            if cut and mark.end() == len(text):
                named.pop()  # the name at the cut
            types += filter(None, (name.strip(" \t\r.;'\"") for name in named))
            is_partial = cut
        types = list(dict.fromkeys(types))
        if not types:
            is_partial = cut and not is_empty
            status = _status_of(value) or ("empty_mapping" if is_empty else UNKNOWN)
            status = "no_result" if value in NOTHING else status
            status = NO_NEW_TYPES if _NO_CELL_TYPES.search(text) else status
        if status == "empty_mapping":
            reading.failure = "no group of cells was named: the mapping to cell types is empty"
        groups = {}

    is_unknown = is_partial or status == UNKNOWN
    evaluation: dict[str, Any] = {
        "discovery_status": status,
        "discovered_cell_types": types,
        "cell_type_count": None if is_unknown else len(types),
        "group_count": None if is_unknown or (types and not groups) else len(groups or {}),
        "partial": is_partial,
        "cell_type": cell_type_of(record),
    }
    # a leaf has nothing below it to discover
    score = None if status in (UNKNOWN, LEAF_NODE) else status == DISCOVERED
    severity: Severity = "info" if status in (DISCOVERED, LEAF_NODE) else "warning"
    reading.checks.append(check("discovery", score, status, ", ".join(types), severity))
    given = record["step"].get("expected_children")
    if expected := [str(name) for name in given] if isinstance(given, list) else []:
        have, want = set(map(_plain_name, types)), set(map(_plain_name, expected))
        missing = [name for name in expected if _plain_name(name) not in have]
        evaluation["expected_children"] = expected
        evaluation["missing_children"] = None if is_unknown else missing
        evaluation["unexpected_children"] = [name for name in types if _plain_name(name) not in want]
        reading.checks.append(_share("expected_cell_types", expected, missing, is_unknown))

    reading.evaluation = {"process_cells_evaluation": evaluation}
    reading.found |= {"status": status, "discovered_cell_types": types, "group_to_cell_type": groups}
    reading.found["partial"] = is_partial
    reading.status, reading.nothing_new = None if types else given_status, status == NO_NEW_TYPES
    if types:
        rest = ", the rest was cut" if is_partial else ""
        reading.summary = f"Process cells: Discovery completed: {_as_many(types, options.summary_limit)}{rest}"
    elif status == NO_NEW_TYPES:
        reading.summary = "Process cells: No new cell types discovered"
    elif status != UNKNOWN:
        reading.summary = f"Process cells: No cell types discovered ({status[: options.summary_limit]})"


def _read_counts(record: StepRecord, value: Any, reading: Reading, options: Options) -> None:
    """Read the number of cells per category; two entries of one category are kept apart."""
    listed, entries, n = _categories(value, "count_results")
    unique, cells = unique_keys(), reading.found
    for entry in entries:
        cells[unique(str(entry.get("category", "unknown")))] = count(entry.get("cell_count"))
    if not isinstance(listed, list):
        reading.issues.append("no list of counts")
    for i, entry in enumerate(_list(listed), 1):
        if not isinstance(entry, Mapping) or count(entry.get("cell_count")) is None:
            reading.issues.append(f"category {i}: no number of cells")
    evaluation = {
        "cells_per_category": cells,
        "category_count": n,
        "total_cells": sum(cells.values()) if n and None not in cells.values() else None,
        "empty_categories": [category for category, number in cells.items() if number == 0],
        "data_quality": _quality(record),
    }
    reading.evaluation = {"cell_counts_evaluation": evaluation}
    reading.status = None if cells else _status_of(value)


def _read_search(record: StepRecord, value: Any, reading: Reading, options: Options) -> None:
    """Read the matches of a semantic search; the number is unknown for a cut list or a failed search."""
    found, total, message = list[str](), None, value if isinstance(value, str) else None
    if isinstance(value, Mapping):
        inner = within if isinstance(within := value.get("search_results"), Mapping) else value
        listed, error = inner.get("results"), _error_in(value) or _error_in(inner)
        for item in _list(listed):
            keys = ("term", "name", "pathway", "title") if isinstance(item, Mapping) else ()
            found.append(next((item[key] for key in keys if isinstance(item.get(key), str)), str(item)))
        total = None if error else count(inner.get("total_matches", value.get("total_matches")))
        if total is None and not error and isinstance(listed, list) and not is_cut(listed) and not is_cut(inner):
            total = len(listed)
        text = inner.get("message") or value.get("message") or error
        message = str(text) if text else None
    label = "unknown" if total is None else "matches" if total else "no matches"
    score = None if total is None else total > 0
    reading.checks.append(check("search_matches", score, label, message or "", "info" if total else "warning"))
    evaluation = {"total_matches": total, "top_results": found[:3], "message": message}
    reading.evaluation = {"search_evaluation": evaluation}
    reading.found |= {"total_matches": total, "results": found, "message": message}
    reading.status = None if found else _status_of(value)
    if total is None:
        reading.issues += [] if message else ["no number of matches"]
    else:
        rest = f" ({message[: options.summary_limit]})" if message else ""
        rest = f": {_as_many(found, options.summary_limit)}" if found else rest
        reading.summary = f"Search: {total} match{'es' * (total != 1)}{rest}"


ANALYSES = {
    "perform_enrichment_analyses": Analysis("enrichment", (dict,), _read_enrichment),
    "dea_split_by_condition": Analysis("dea", (dict, list), _read_expression),
    "process_cells": Analysis("process_cells", (str, dict), _read_annotation),
    "compare_cell_counts": Analysis("compare_cell_counts", (dict, list), _read_counts),
    "search_enrichment_semantic": Analysis("search", (dict, list, str), _read_search),
}


def _read_plot(record: StepRecord, value: Any, reading: Reading, options: Options) -> None:
    """Read what a display function returned: HTML, several plots, a file, an image, or a text in its place."""
    result, found = record["result"], _plots_in(value, truncated(record))
    kind, plots, length = found["type"], found["plots"], found["html_length"]
    is_generated = None if kind == "unknown" else kind in ("html", "multiple_plots") and plots != 0
    other = {"file_ref": "stored_in_file", "image": "image", "text": "message_instead", "unknown": "unknown"}
    status = other.get(kind) or ("generated" if is_generated else "no_plot")
    is_made = kind in ("file_ref", "image") or is_generated
    evaluation = {"type": kind, "html_generated": is_generated, "html_length": length, "plots": plots, "status": status}
    reading.evaluation = {"visualization_evaluation": evaluation | ({"path": found["path"]} if found["path"] else {})}
    reading.found = found
    reading.checks.append(check("plot", is_made, status, "", "info" if is_made else "warning"))

    reading.failure = _why_no_plot(result, found)
    if reading.failure is None and kind == "multiple_plots" and plots:
        pages = [plot.get("html", plot) if isinstance(plot, Mapping) else plot for plot in value["plots"]]
        if all(page is None or isinstance(page, str) for page in pages):  # no plot is kept in another form
            reasons = [_why_no_plot(page, _plots_in(page, cut=False)) for page in pages]
            reading.failure = reasons[0] if all(reasons) else None
    if kind not in ("none", "text") and plots != 0:
        number = "" if plots is None else f": {plots} plot{'s' * (plots != 1)}"
        size = f", {length} characters" if length else ""
        form = f" ({'html' if kind == 'multiple_plots' else kind}{size})"
        if kind == "file_ref":
            form = " in a file" + (f" ({found['path'][: options.summary_limit]})" if found["path"] else "")
        reading.summary = f"Visualization{number}{form}"


def _plots_in(value: Any, cut: bool) -> dict[str, Any]:
    """Read kind and number of plots; the length of HTML that was cut or is in a file is None."""
    if isinstance(value, Mapping):
        plots = value.get("plots")
        if _is_file(value):
            return _found_plot("file_ref", 1, None, str(value.get("path") or "") or None)
        if isinstance(plots, list):
            pages = [plot.get("html") if isinstance(plot, Mapping) else plot for plot in plots]
            in_files = any(_is_file(plot) and not isinstance(plot.get("html"), str) for plot in plots)
            length = sum(len(page) for page in pages if isinstance(page, str))
            n = None if is_cut(plots) else len(plots)
            return _found_plot("multiple_plots", n, None if n is None or in_files else length)
        if is_cut(value) and "html" not in value:
            return _found_plot("unknown", None, None)
        value = value.get("html")
    if not isinstance(value, str) or not value.strip():
        return _found_plot("none", 0, 0)
    if _HTML.search(value) and not _ERROR_TEXT.match(value):
        return _found_plot("html", 1, None if cut else len(value))
    is_image = value.startswith(("data:image/", "iVBORw0KGgo"))
    return _found_plot("image", 1, 0) if is_image else _found_plot("text", 0, 0)


def _found_plot(kind: str, plots: int | None, html_length: int | None, path: str | None = None) -> dict[str, Any]:
    return {"type": kind, "plots": plots, "html_length": html_length, "path": path}


def _why_no_plot(result: Any, found: Mapping[str, Any]) -> str | None:
    """Return why a result holds no plot, or None."""
    text = str(result)[:MOST_SEARCHED]
    if (found["plots"] == 0 and found["type"] != "text") or text in NOTHING:
        return "no plot was made"
    if found["type"] == "text" and _NO_PLOT.search(text):
        return f"a message stands in place of the plot: {text[:MOST_SHOWN]}"
    return None


def _is_file(value: Any) -> bool:
    """Return whether a plot was stored in a file of its own."""
    return isinstance(value, Mapping) and (value.get("type") == "file_ref" or isinstance(value.get("path"), str))


def _status_of(value: Any) -> str | None:
    status = value.get("status") if isinstance(value, Mapping) else None
    return status if isinstance(status, str) and status else None


def _error_in(value: Any) -> str | None:
    error = value.get("error") if isinstance(value, Mapping) else None
    return str(error) if error else None


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _categories(value: Any, key: str) -> tuple[Any, list[Mapping], int | None]:
    """Return what stands under `key`, or the bare list; its entries; their number (None: no list, cut, an error)."""
    listed = value.get(key) if isinstance(value, Mapping) else value
    entries = list[Mapping]()
    for entry in _list(listed):
        if isinstance(entry, Mapping) and not (is_cut(entry) and "category" not in entry):
            entries.append(entry)
    is_known = isinstance(listed, list) and not is_cut(listed) and not _error_in(value)
    return listed, entries, len(entries) if is_known else None


def _quality(record: StepRecord) -> str:
    return LEGACY if record["result_type"] == "text" or truncated(record) else STRUCTURED


def _share(name: str, wanted: list[str], missing: list[str], is_partial: bool = False) -> Check:
    """Return a check of how many are present; those missing from a cut list may be in the part cut off."""
    without = f"without: {', '.join(missing)}" if missing else ""
    if is_partial and missing:
        return check(name, None, "unknown", f"the result was not read whole; {without}", "warning")
    k, n = len(wanted) - len(missing), len(wanted)
    return check(name, k / n, f"{k} of {n}", without, "warning" if missing else "info")


def _as_many(names: Sequence[str], limit: int) -> str:
    """List as many names as fit in `limit` characters (at least one), and how many more there are."""
    shown = names[0][:limit]
    for i, name in enumerate(names[1:], 1):
        if len(shown) + len(name) + 2 > limit:
            return f"{shown} and {len(names) - i} more"
        shown += f", {name}"
    return shown


def _plain_name(name: str) -> str:
    """Normalise a name for comparison: `T cells`, `t cell` and `T Cell` are the same."""
    words = name.lower().replace("_", " ").replace("-", " ").split()
    return " ".join(word.removesuffix("s") if len(word) > 3 else word for word in words)
