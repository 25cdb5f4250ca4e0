"""Judge how a step ended, including silent failures, and whether its stored result is what its function returns."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evalkit.steps.format import CRITICAL, DEFAULTS, PSEUDO_STEPS, SILENT, Options, StepRecord, count, number, truncated
from evalkit.steps.history import results

LEGACY, STRUCTURED, UNEXPECTED = "legacy_text_parsing", "high_structured_access", "unexpected_structure"
_SHOWN, _READ = 200, 2000  # characters of a message that are shown, and that are searched
_NO_PLOT = re.compile(
    r"(?is)\b(?:not available|not found|unavailable|error|exception|failed|could not|cannot|can't|unable)\b"
    r"|\bno\b.*\bfound\b"
)
# the beginning of an error dict whose text can't be read to its end
_ERROR_DICT = re.compile(r"^\s*\{\s*(['\"])error\1\s*:\s*+(?!None|null|''|\"\")")


def outcome(record: StepRecord, options: Options = DEFAULTS) -> tuple[str, str | None]:
    """Return how a step ended: one of `VERDICTS`, and the reason of a silent failure.

    It is ``unknown`` if the record does not say whether the step succeeded.
    """
    if record["result_type"] == "skipped":
        return "skipped", None
    if record["success"] is True:
        reason = silent_failure(record, options)
        return (SILENT if reason else "success"), reason
    if options.is_critical(record["error_type"], record["error"]):
        return CRITICAL, None
    return ("unknown" if record["success"] is None else "failure"), None


def silent_failure(record: StepRecord, options: Options = DEFAULTS) -> str | None:
    """Return why a step that reports success has failed, or None.

    The reasons are: an error is recorded beside the success; the result is an error dict or a text that begins with
    "Error"; an analysis or a plot left nothing, or nothing but a status that says it could not be made
    (``options.failed_statuses``, such as ``no_cells_found``); cells were not processed ("Process cells failed"), or no
    group of them was named; the text in a plot's place speaks of an error. What the assistant says (pseudo-steps) and
    skipped steps never count.
    """
    function = record["step"]["function_name"]
    if record["success"] is not True or record["result_type"] == "skipped" or function in PSEUDO_STEPS or not function:
        return None
    if record["error"]:
        return f"an error is recorded: {record['error'][:_SHOWN]}"
    return failure_in_result(record, options)


def failure_in_result(record: StepRecord, options: Options = DEFAULTS) -> str | None:
    """Return why the result of a step that reports success is a failure, or None; see `silent_failure`."""
    function, result, value = record["step"]["function_name"], record["result"], results.content(record)
    inner = value.get("search_results") if isinstance(value, Mapping) else None
    error = results.error_in(value) or results.error_in(inner)
    if not error and isinstance(result, str) and (results.ERROR_TEXT.match(result) or _ERROR_DICT.match(result)):
        error = result
    if error:
        return f"the result is an error: {error[:_SHOWN]}"
    if function in results.READERS and result in results.NOTHING:
        return "the step left no result"
    cells = results.read_annotation(record).status if function == "process_cells" else ""
    if cells == results.FAILED:
        return f"cells were not processed: {str(result)[:_SHOWN]}"
    if cells == results.EMPTY_MAPPING:
        return "no group of cells was named: the mapping to cell types is empty"
    if (status := results.only_status(record)) and options.is_failed_status(status):
        message = value.get("message")
        shown = f"{status} ({message})" if isinstance(message, str) and message else status
        return f"the result is only a status: {shown[:_SHOWN]}"
    return _no_plot(record) if options.is_plot(function) else None


def _no_plot(record: StepRecord) -> str | None:
    plots, text = results.read_plots(record), str(record["result"])[:_READ]
    if (plots.plots == 0 and plots.type != "text") or text in results.NOTHING:
        return "no plot was made"
    if plots.type == "text" and _NO_PLOT.search(text):
        return f"a message stands in place of the plot: {text[:_SHOWN]}"
    listed = results.content(record)["plots"] if plots.type == "multiple_plots" and plots.plots else []
    pages = [plot.get("html", plot) if isinstance(plot, Mapping) else plot for plot in listed]
    if pages and all(page is None or isinstance(page, str) for page in pages):  # no plot is kept in another form
        reasons = [_no_plot({**record, "result": page, "result_metadata": {}}) for page in pages]
        return reasons[0] if all(reasons) else None
    return None


def judge_structure(record: StepRecord, without_data: bool = False) -> dict[str, Any]:
    """Judge a structured result, or the text that old storage made of one; `without_data` means it reports a failure.

    `data_quality` is ``high_structured_access``, ``legacy_text_parsing`` for texts and for what was cut, or
    ``unexpected_structure`` for another type than the function returns. `data_completeness` is the first of these that
    holds: ``limited``, the stored result is cut; ``none``, the step returned no data but an error, a status or nothing;
    ``partial``, there are `parsing_issues`; ``complete``.
    """
    function, result = record["step"]["function_name"], record["result"]
    if truncated(record):
        return {"data_quality": LEGACY, "data_completeness": "limited", "parsing_issues": ["truncation_likely"]}
    types, find_issues = _STRUCTURES.get(function, ((dict, list, str, int, float), None))
    status, issues = results.only_status(record), list[str]()
    if record["result_type"] == "text":
        quality = LEGACY
    elif isinstance(result, types):
        quality = STRUCTURED
        if status is not None and status != results.LEAF_NODE:
            issues = [f"only a status was returned: {status}"]
        elif find_issues:
            issues = find_issues(record)
    else:
        quality, given = UNEXPECTED, "nothing" if result is None else type(result).__name__
        issues = [f"the result is {given}, which {function} does not return"]
    nothing_new = function == "process_cells" and results.read_annotation(record).status == results.NO_NEW_TYPES
    without_data = without_data or bool(status) or result is None or quality == UNEXPECTED or nothing_new
    completeness = "none" if without_data else "partial" if issues else "complete"
    return {"data_quality": quality, "data_completeness": completeness, "parsing_issues": issues}


def _enrichment_issues(record: StepRecord) -> list[str]:
    result = {str(key).lower(): entry for key, entry in record["result"].items()}
    methods, requested = results.read_enrichment(record).methods, results.requested_methods(record)
    issues = [f"{name}: requested, not in the result" for name in requested if name not in result]
    issues += [f"{name}: not a structure" for name in results.METHODS if name in result and name not in methods]
    for name, method in methods.items():
        issues += [f"{name}: {issue}" for issue in _method_issues(method, result[name].get("top_pvalues"))]
    return issues


def _method_issues(method: results.Method, p_values: Any) -> Iterator[str]:
    n, total = len(method.terms), method.total
    p_values = p_values if isinstance(p_values, list) else []
    for p in p_values:
        if p not in (None, "N/A") and ((value := number(p)) is None or not 0 <= value <= 1):
            yield f"{str(p)[:40]!r} is no p-value"
    if p_values and len(p_values) != n:
        yield f"{n} terms, {len(p_values)} p-values"
    if total is None:
        yield "the number of significant terms is missing"
    elif total < n:
        yield f"{total} significant terms, but {n} are listed"
    elif total and not n and method.complete:
        yield f"{total} significant terms, but none is listed"


def _expression_issues(record: StepRecord) -> list[str]:
    entries, issues = _entries(record, "dea_results"), []
    for i, entry in enumerate(entries or (), 1):
        if not isinstance(entry, Mapping) or "category" not in entry:
            issues.append(f"condition {i}: no category")
        elif not isinstance(entry.get("significant_genes"), list):
            issues.append(f"{str(entry['category'])[:40]}: no list of genes")
    return ["no list of conditions"] if entries is None else issues


def _count_issues(record: StepRecord) -> list[str]:
    if (entries := _entries(record, "count_results")) is None:
        return ["no list of counts"]
    known = (isinstance(entry, Mapping) and count(entry.get("cell_count")) is not None for entry in entries)
    return [f"category {i}: no number of cells" for i, is_known in enumerate(known, 1) if not is_known]


def _entries(record: StepRecord, key: str) -> list | None:
    entries = record["result"].get(key) if isinstance(record["result"], Mapping) else record["result"]
    return entries if isinstance(entries, list) else None


def _search_issues(record: StepRecord) -> list[str]:
    _, total, message = results.read_search(record)
    return ["no number of matches"] if total is None and not message else []


_STRUCTURES: Mapping[str | None, tuple[tuple[type, ...], Callable[[StepRecord], list[str]] | None]] = {
    "perform_enrichment_analyses": ((dict,), _enrichment_issues),
    "dea_split_by_condition": ((dict, list), _expression_issues),
    "process_cells": ((str, dict), None),
    "compare_cell_counts": ((dict, list), _count_issues),
    "search_enrichment_semantic": ((dict, list, str), _search_issues),
}
