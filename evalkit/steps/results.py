"""Read the result of a step, complete or cut, with one reader per function; unknown counts are None."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypedDict

from evalkit.io.text import UniqueNames
from evalkit.steps.format import Options, StepRecord
from evalkit.steps.literals import CUT, CutDict, as_count, as_number, as_text, read_literal

METHODS = ("go", "kegg", "reactome", "gsea")
DISCOVERED = "discovered"  # this and the next three: outcomes of the discovery of cell types
LEAF_NODE = "leaf_node"
NO_NEW_TYPES = "no_new_cell_types"
UNKNOWN = "unknown"
UNEXPECTED = "unexpected_structure"
NOTHING: tuple[Any, ...] = (None, "", [], {}, "Success")  # shape A stores false values as "Success"
MOST_SHOWN, MOST_SEARCHED = 200, 2000  # maximum number of characters of a message
MOST_NAMED = 10  # maximum number of genes or matches per result; an enrichment lists as many terms
_NO_PLOT_MADE = "no plot was made"

_ASKED_BY = ("analyses", "analysis", "methods", "method", "analysis_types", "analysis_type", "enrichment_types")
_ERROR_TEXT = re.compile(r"^[^\w{\[(<]*(?:process cells failed|error|exception|traceback|failed)\b", re.IGNORECASE)
# the beginning of an error dict whose text can't be parsed completely
_ERROR_DICT = re.compile(r"^\s*\{\s*(['\"])error\1\s*:\s*+(?!None|null|''|\"\")")
_HTML = re.compile(r"<\s*(?:!doctype|!--|[a-z][a-z0-9]*[\s/>])", re.IGNORECASE)
_NO_PLOT = re.compile(
    r"(?is)\b(?:not available|not found|unavailable|error|exception|failed|could not|cannot|can't|unable)\b"
    r"|\bno\b.*\bfound\b"
)
_CELL_TYPES = re.compile(r"group_to_cell_type['\"]?\s*[=:]\s*(?=\{)")
_DISCOVERED = re.compile(r"(?i)discovered new cell type(s?)\s*:[ \t]*((?:(?!discovered new cell types?\s*:).)*)")

Severity = Literal["info", "warning", "error", "critical"]


class Check(TypedDict):
    """One judgement of one step; `score` is from 0 to 1, or None if it can't be computed."""

    name: str
    score: float | None
    label: str
    explanation: str
    severity: Severity


def check(name: str, score: float | None, label: str, explanation: str = "", severity: Severity = "info") -> Check:
    """Return a check for the list ``checks`` that an evaluator returns.

    Parameters
    ----------
    name : str
        Name of the check.
    score : float or None
        Score from 0 to 1.
    label : str
        The judgement in a word.
    explanation : str
        Reason for the judgement.
    severity : {"info", "warning", "error", "critical"}
        Severity of the judgement.

    Returns
    -------
    Check
        The check.

    Examples
    --------
    >>> steps.check("has terms", 1.0, "ok")["severity"]
    'info'
    """
    score = None if score is None else float(score)
    return Check(name=name, score=score, label=label, explanation=explanation, severity=severity)


class Quantity(NamedTuple):
    """One number or name that a step found: a row of the frame `results`."""

    quantity: str
    method: str | None = None
    category: str | None = None
    term: str | None = None
    value: float | None = None


@dataclass
class Reading:
    """The contents of a result, which the reader of the step's function fills in."""

    value: Any  # the result, parsed if it is the text of a structure
    whole: Mapping[str, Any]  # `value` if it is a mapping, else empty
    is_cut: bool  # the stored result is only the beginning of the original
    quality: str  # how the result was stored: as a structure or as text
    error: str | None = None  # error returned instead of a result
    status: str | None = None  # status of an analysis that returned nothing else
    found: dict[str, Any] = field(default_factory=dict)  # full contents, for key findings
    quantities: list[Quantity] = field(default_factory=list)  # the same as rows
    failure: str | None = None  # why the step failed, although it may report success
    nothing_new: bool = False  # the analysis worked, and there was nothing to find
    issues: list[str] = field(default_factory=list)  # problems of the structure
    summary: str = ""  # one line
    evaluation: dict[str, Any] | None = None  # keys for the step's evaluation; None if the function is unknown
    checks: list[Check] = field(default_factory=list)


class Analysis(NamedTuple):
    """A function of the agent: the key of its findings, the types that it returns, and the reader of its results."""

    key: str
    types: tuple[type, ...]
    read: Callable[[StepRecord, Reading, Options], None]


def read_result(record: StepRecord, options: Options) -> Reading:
    """Read the result of a step with the reader of its function."""
    function, result = record["step"]["function_name"], record["result"]
    literal = read_literal(result) if isinstance(result, str) else None
    value = result if literal is None else literal
    is_cut = bool(record["result_metadata"].get("truncated"))
    quality = "legacy_text_parsing" if record["result_type"] == "text" or is_cut else "high_structured_access"
    reading = Reading(value, value if isinstance(value, Mapping) else {}, is_cut, quality)
    inner = reading.whole.get("search_results")
    error = reading.whole.get("error") or (inner.get("error") if isinstance(inner, Mapping) else None)
    reading.error = str(error) if error else None

    analysis = ANALYSES.get(function or "")
    if analysis:
        status = reading.whole.get("status")
        reading.status = status if isinstance(status, str) and status else None
        analysis.read(record, reading, options)
    elif options.is_plot(function):
        _read_plot(record, reading, options)

    if not reading.error and isinstance(result, str) and (_ERROR_TEXT.match(result) or _ERROR_DICT.match(result)):
        reading.error = result
    if reading.error:
        reading.failure = f"the result is an error: {reading.error[:MOST_SHOWN]}"
    elif analysis and result in NOTHING:
        reading.failure = "the step left no result"
    elif reading.failure is None and reading.status:
        name = re.sub(r"\W+", "_", reading.status[:100].strip().lower())
        message = reading.whole.get("message")
        shown = f"{reading.status} ({message})" if isinstance(message, str) and message else reading.status
        if re.fullmatch("|".join(options.failed_statuses), name):
            reading.failure = f"the result is only a status: {shown[:MOST_SHOWN]}"

    quoted = (reading.failure or record["error"]) and not reading.status  # show the text of a failure
    if result is None:
        reading.summary = "Success"
    elif quoted or not reading.summary:
        reading.summary = str(result)[: options.summary_limit]
    return reading


def _read_enrichment(record: StepRecord, reading: Reading, options: Options) -> None:
    """Read terms, p-values and counts per method; methods use different p-values, so their total is only a guide."""
    parameters = record["step"]["parameters"]
    issues, status = reading.issues, reading.status
    asked = str([parameters[key] for key in _ASKED_BY if key in parameters]).lower()
    requested = [word for word in dict.fromkeys(re.findall(r"\w+", asked)) if word in METHODS]
    entries = {str(key).lower(): entry for key, entry in reading.whole.items()}
    issues += [f"{name}: requested, not in the result" for name in requested if name not in entries]
    issues += [f"{name}: not a structure" for name in METHODS if not isinstance(entries.get(name, {}), Mapping)]

    totals: dict[str, int | None] = {}
    successful: list[str] = []
    top: dict[str, list[str]] = {}
    for name, entry in entries.items():
        if not isinstance(entry, Mapping) or (name not in METHODS and "total_significant" not in entry):
            continue
        listed, p_values = entry.get("top_terms"), _list(entry.get("top_pvalues"))
        terms, read = list(map(str, _list(listed))), list(map(as_number, p_values))
        n, method = len(terms), name.upper()
        totals[name] = total = as_count(entry.get("total_significant"))
        is_complete = isinstance(listed, list) and not isinstance(listed, CUT)
        reading.found[name] = {"top_terms": terms, "p_values": read, "total_significant": total}
        reading.quantities.append(Quantity("significant terms", method, value=total))
        for term, p in zip_longest(terms, read[:n]):
            reading.quantities.append(Quantity("p-value", method, term=term, value=p))
        has_found = n > 0 if total is None else total > 0 and (n > 0 or not is_complete)
        if has_found:
            successful.append(method)
        if terms:
            top[method] = terms[:3]
        for given, p in zip(p_values, read, strict=True):
            if given not in (None, "N/A") and (p is None or not 0 <= p <= 1):
                issues.append(f"{name}: {str(given)[:40]!r} is no p-value")
        wrong = {
            f"{n} terms, {len(p_values)} p-values": p_values and len(p_values) != n,
            "the number of significant terms is missing": total is None,
            f"{total} significant terms, but {n} are listed": total is not None and total < n,
            f"{total} significant terms, but none is listed": total and not n and is_complete,
        }
        issues += [f"{name}: {issue}" for issue, applies in wrong.items() if applies]

    is_partial = isinstance(reading.value, CUT) if isinstance(reading.value, Mapping) else reading.is_cut
    absent = [name for name in requested or METHODS if name not in totals and (requested or name in entries)]
    is_known = totals and not is_partial and not absent and None not in totals.values()
    total = sum(filter(None, totals.values())) if is_known else None
    reading.status = None if totals else reading.status
    concerns, highlights = list[str](), list[str]()
    if total == 0:
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
        "data_quality": reading.quality,
        "top_pathways": top,
        "status": status,
        "concerns": concerns,
        "highlights": highlights,
    }
    reading.evaluation = {"enrichment_evaluation": evaluation}
    if totals:
        counted = [f"{name.upper()}: {'unknown number of' if n is None else n} terms" for name, n in totals.items()]
        reading.summary = f"Enrichment: {', '.join(counted)}"
    elif status:
        reading.summary = f"Enrichment: No results ({status[: options.summary_limit]})"


def _read_expression(record: StepRecord, reading: Reading, options: Options) -> None:
    """Read significant genes per condition."""
    conditions, n = _by_category(reading, "dea_results", "condition")
    counts, empty = dict[str, int | None](), list[str]()
    for condition, entry in conditions.items():
        genes: Any = entry.get("significant_genes")
        is_whole = isinstance(genes, list) and not isinstance(genes, CUT)
        counts[condition] = len(genes) if is_whole else as_count(genes)
        if counts[condition] == 0:
            empty.append(condition)
        named = list(map(str, _list(genes)))
        reading.found[condition] = {"significant_genes": counts[condition], "top_genes": named}
        reading.quantities.append(Quantity("significant genes", category=condition, value=counts[condition]))
        reading.quantities += [Quantity("gene", category=condition, term=gene) for gene in named[:MOST_NAMED]]
        if "category" in entry and not isinstance(genes, list):
            reading.issues.append(f"{condition[:40]}: no list of genes")
    evaluation = {"genes_per_condition": counts, "condition_count": n, "empty_conditions": empty}
    reading.evaluation = {"dea_evaluation": evaluation | {"data_quality": reading.quality}}

    none = check("conditions_with_genes", None, "unknown" if n is None else "no conditions", "", "warning")
    reading.checks.append(_share("conditions_with_genes", list(counts), empty) if n else none)
    if reading.status:
        reading.summary = f"DEA: No results ({reading.status[: options.summary_limit]})"
    elif n == 0:
        reading.summary = "DEA: No conditions compared"
    elif n or isinstance(reading.value, Mapping):
        reading.summary = "DEA: Analysis completed"


def _read_counts(record: StepRecord, reading: Reading, options: Options) -> None:
    """Read the number of cells per category."""
    categories, n = _by_category(reading, "count_results", "count")
    cells, empty = reading.found, list[str]()
    for category, entry in categories.items():
        cells[category] = as_count(entry.get("cell_count"))
        reading.quantities.append(Quantity("cells", category=category, value=cells[category]))
        if cells[category] == 0:
            empty.append(category)
        if "category" in entry and cells[category] is None:
            reading.issues.append(f"{category[:40]}: no number of cells")
    evaluation = {
        "cells_per_category": cells,
        "category_count": n,
        "total_cells": sum(cells.values()) if n and None not in cells.values() else None,
        "empty_categories": empty,
        "data_quality": reading.quality,
    }
    reading.evaluation = {"cell_counts_evaluation": evaluation}


def _by_category(reading: Reading, key: str, noun: str) -> tuple[dict[str, Mapping], int | None]:
    """Return the entries by category, from the list under `key` or a bare list, and their number; None if unknown."""
    listed = reading.whole.get(key) if reading.whole else reading.value
    entries, unique = dict[str, Mapping](), UniqueNames("{} #{}")
    if not isinstance(listed, list):
        reading.issues.append(f"no list of {noun}s")
    for i, entry in enumerate(_list(listed), 1):
        if not isinstance(entry, Mapping) or "category" not in entry:
            reading.issues.append(f"{noun} {i}: no category")
        if isinstance(entry, Mapping) and not (isinstance(entry, CUT) and "category" not in entry):
            entries[unique(str(entry.get("category", "unknown")))] = entry
    reading.status = None if entries else reading.status
    is_known = isinstance(listed, list) and not isinstance(listed, CUT) and not reading.error
    return entries, len(entries) if is_known else None


def _read_annotation(record: StepRecord, reading: Reading, options: Options) -> None:
    """Read the discovered cell types, in order of appearance, and the outcome of the discovery."""
    result, cut = record["result"], reading.is_cut
    text = as_text(reading.whole.get("message") if reading.whole else result) or ""
    groups = reading.whole.get("group_to_cell_type")
    if isinstance(result, str) and (match := _CELL_TYPES.search(result)):
        groups = read_literal(result, match.end())
        if groups is None:  # a mapping begins, but none of its pairs can be parsed
            groups = CutDict()
    is_partial = isinstance(groups, CutDict)
    is_empty = groups == {} and not is_partial
    named = groups.items() if isinstance(groups, Mapping) else ()
    groups = {str(group): str(cell_type) for group, cell_type in named if isinstance(cell_type, (str, int))}
    types, status = list(dict.fromkeys(groups.values())), DISCOVERED
    if not types and (_ERROR_TEXT.match(text) or reading.error):
        status, is_partial = "failed", False
    elif not types:
        is_partial = cut and not is_empty
        for mark in _DISCOVERED.finditer(text):  # "Discovered new cell type: X", or "types: X, Y"
            names = mark[2].strip().strip("[]").split(",") if mark[1] else [mark[2]]
            if cut and mark.end() == len(text):
                names.pop()  # this name may be incomplete
            types += filter(None, [one.strip(" \t\r.;'\"") for one in names])
        types = list(dict.fromkeys(types))
        if "no new cell types" in text.lower() and not types:
            status = NO_NEW_TYPES
        elif result in NOTHING:
            status = "no_result"
        elif not types:
            status = reading.status or ("empty_mapping" if is_empty else UNKNOWN)
        if status == "empty_mapping":
            reading.failure = "no group of cells has a name: the mapping to cell types is empty"

    is_unknown = is_partial or status == UNKNOWN
    evaluation: dict[str, Any] = {
        "discovery_status": status,
        "discovered_cell_types": types,
        "cell_type_count": None if is_unknown else len(types),
        "group_count": None if is_unknown or (types and not groups) else len(groups),
        "partial": is_partial,
    }
    clusters = Counter(groups.values())
    reading.quantities.append(Quantity("cell types", value=evaluation["cell_type_count"]))
    reading.quantities += [Quantity("clusters", term=name, value=clusters.get(name)) for name in types]
    # a leaf of the tree of cell types has no subtypes to discover
    score = None if status in (UNKNOWN, LEAF_NODE) else status == DISCOVERED
    severity: Severity = "info" if status in (DISCOVERED, LEAF_NODE) else "warning"
    reading.checks.append(check("discovery", score, status, ", ".join(types), severity))
    if expected := list(map(str, _list(record["step"].get("expected_children")))):
        # `T cells`, `t cell` and `T_Cell` are the same name
        alike = {name: re.sub(r"[\s_-]+", " ", name.lower()).strip().removesuffix("s") for name in [*types, *expected]}
        have, want = set(map(alike.get, types)), set(map(alike.get, expected))
        missing = [name for name in expected if alike[name] not in have]
        evaluation |= {"expected_children": expected, "missing_children": None if is_unknown else missing}
        evaluation["unexpected_children"] = [name for name in types if alike[name] not in want]
        reading.checks.append(_share("expected_cell_types", expected, missing, is_unknown))

    reading.evaluation = {"process_cells_evaluation": evaluation}
    reading.found = {"status": status, "discovered_cell_types": types, "group_to_cell_type": groups}
    reading.found["partial"] = is_partial
    reading.status, reading.nothing_new = None if types else reading.status, status == NO_NEW_TYPES
    if types:
        rest = ", the rest was cut" if is_partial else ""
        reading.summary = f"Process cells: Discovery completed: {', '.join(types)[: options.summary_limit]}{rest}"
    elif status == NO_NEW_TYPES:
        reading.summary = "Process cells: No new cell types discovered"
    elif status != UNKNOWN:
        reading.summary = f"Process cells: No cell types discovered ({status[: options.summary_limit]})"


def _read_search(record: StepRecord, reading: Reading, options: Options) -> None:
    """Read the matches of a semantic search; their number is unknown if the list was cut or the search failed."""
    whole, total = reading.whole, None
    found: list[str] = []
    inner = within if isinstance(within := whole.get("search_results"), Mapping) else whole
    listed = inner.get("results")
    for item in _list(listed):
        names = map(item.get, ("term", "name", "pathway", "title")) if isinstance(item, Mapping) else ()
        found.append(str(next(filter(None, names), item)))
    if not reading.error:
        total = as_count(inner.get("total_matches", whole.get("total_matches")))
        if total is None and isinstance(listed, list) and not isinstance(listed, CUT) and not isinstance(inner, CUT):
            total = len(listed)
    query = as_text(record["step"]["parameters"].get("query"))
    reading.quantities.append(Quantity("matches", category=query, value=total))
    reading.quantities += [Quantity("match", category=query, term=name) for name in found[:MOST_NAMED]]
    given = inner.get("message") or whole.get("message") or reading.error
    given = reading.value if isinstance(reading.value, str) else given
    message = str(given) if given else None

    label, score = "unknown", None
    if total is not None:
        label = "matches" if total else "no matches"
        score = total > 0
    reading.checks.append(check("search_matches", score, label, message or "", "info" if total else "warning"))
    reading.evaluation = {"search_evaluation": {"total_matches": total, "top_results": found[:3], "message": message}}
    reading.found |= {"total_matches": total, "results": found, "message": message}
    reading.status = None if found else reading.status
    if total is None:
        reading.issues += [] if message else ["no number of matches"]
    else:
        rest = f" ({message[: options.summary_limit]})" if message else ""
        rest = f": {', '.join(found)[: options.summary_limit]}" if found else rest
        reading.summary = f"Search: {total} {'match' if total == 1 else 'matches'}{rest}"


ANALYSES = {
    "perform_enrichment_analyses": Analysis("enrichment", (dict,), _read_enrichment),
    "dea_split_by_condition": Analysis("dea", (dict, list), _read_expression),
    "process_cells": Analysis("process_cells", (str, dict), _read_annotation),
    "compare_cell_counts": Analysis("compare_cell_counts", (dict, list), _read_counts),
    "search_enrichment_semantic": Analysis("search", (dict, list, str), _read_search),
}

_PLOTS: dict[str, tuple[int | None, str]] = {  # number of plots and status, by stored form
    "html": (1, "generated"),
    "file_ref": (1, "stored_in_file"),
    "text": (0, "message_instead"),
    "none": (0, "no_plot"),
    "unknown": (None, "unknown"),
}


def _read_plot(record: StepRecord, reading: Reading, options: Options) -> None:
    """Read the result of a display function: HTML, several plots, a file, or a message instead of a plot."""
    plots = reading.whole.get("plots")
    kind, length, reading.failure = _read_page(reading.value)
    n, status = _PLOTS[kind]
    if isinstance(plots, list) and kind != "file_ref":
        pages = [_read_page(plot) for plot in plots]
        kind, n = "multiple_plots", None if isinstance(plots, CUT) else len(plots)
        status = "no_plot" if n == 0 else "generated"
        lengths, reasons = [page[1] for page in pages], [page[2] for page in pages]
        length = None if n is None or None in lengths else sum(filter(None, lengths))
        reading.failure = None
        if n == 0:
            reading.failure = _NO_PLOT_MADE
        elif n and all(reasons):
            reading.failure = reasons[0]
    elif kind == "html" and reading.is_cut:
        length = None
    is_made = None if kind == "unknown" else status in ("generated", "stored_in_file")
    path = str(reading.whole.get("path") or "") if kind == "file_ref" else ""
    where = {"path": path} if path else {}

    generated = None if kind == "unknown" else status == "generated"
    evaluation = {"type": kind, "html_generated": generated, "html_length": length, "plots": n, "status": status}
    reading.evaluation = {"visualization_evaluation": evaluation | where}
    reading.found = {"type": kind, "plots": n, "html_length": length} | where
    reading.checks.append(check("plot", is_made, status, "", "info" if is_made else "warning"))
    if is_made is not False and n != 0:
        number = "" if n is None else f": {n} {'plot' if n == 1 else 'plots'}"
        form = " (html)"
        if kind == "file_ref":
            form = f" in a file ({path[: options.summary_limit]})" if path else " in a file"
        elif length:
            form = f" (html, {length} characters)"
        elif kind == "unknown":
            form = " (unknown)"
        reading.summary = f"Visualization{number}{form}"


def _read_page(plot: Any) -> tuple[str, int | None, str | None]:
    """Return the stored form of one plot (see `_PLOTS`), the length of its HTML, and the reason if it is not a plot."""
    page = plot.get("html") if isinstance(plot, Mapping) else plot
    if isinstance(plot, Mapping) and not isinstance(page, str):
        if plot.get("type") == "file_ref" or isinstance(plot.get("path"), str):
            return "file_ref", None, None
        if isinstance(plot, CUT):
            return "unknown", None, None
    if not isinstance(page, str) or not page.strip() or page in NOTHING:
        return "none", 0, _NO_PLOT_MADE
    if _HTML.search(page) and not _ERROR_TEXT.match(page):
        return "html", len(page), None
    is_reason = _NO_PLOT.search(page[:MOST_SEARCHED])
    return "text", 0, f"a message in place of the plot: {page[:MOST_SHOWN]}" if is_reason else None


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _share(name: str, wanted: list[str], missing: list[str], is_partial: bool = False) -> Check:
    """Return a check of the share that is present; it is unknown if missing items may be in the part cut off."""
    without = f"without: {', '.join(missing)}" if missing else ""
    if is_partial and missing:
        return check(name, None, "unknown", f"the result was not read whole; {without}", "warning")
    k, n = len(wanted) - len(missing), len(wanted)
    return check(name, k / n, f"{k} of {n}", without, "warning" if missing else "info")
