"""Is a stored structure what its function returns? Type, requested methods, lengths, p-values, counts."""

from collections.abc import Mapping
from typing import Any

from evalkit.steps.cell_types import LEAF_NODE, NO_NEW_TYPES, read_annotation
from evalkit.steps.format import METHODS, StepRecord
from evalkit.steps.records import function_of, number, whole
from evalkit.steps.results import Method, read_enrichment, read_search, requested_methods, truncated
from evalkit.steps.verdicts import only_status

UNEXPECTED = "unexpected_structure"
LEGACY = "legacy_text_parsing"
STRUCTURED = "high_structured_access"


def judge_structure(record: StepRecord, without_data: bool = False) -> dict[str, Any]:
    """Judge a structured result, or the text that old storage made of one.

    Parameters
    ----------
    record : StepRecord
    without_data : bool
        Whether `failure_in_result` has found that the result is an error, nothing, or a status of a failure.

    Returns
    -------
    dict
        `data_quality` (``high_structured_access``, ``legacy_text_parsing`` for texts and for what was cut, or
        ``unexpected_structure`` for another type than the function returns), `data_completeness` and
        `parsing_issues`, a list of texts. The completeness is the first of these that holds: ``limited``, the stored
        result is cut; ``none``, the step returned no data but an error, a status or nothing; ``partial``, there are
        issues; ``complete``.
    """
    function, result = function_of(record), record["result"]
    if truncated(record):
        return _judged(LEGACY, "limited", ["truncation_likely"])
    types, find = _STRUCTURES.get(function, (_ANY, _no_issues))
    status = only_status(record)
    if record["result_type"] == "text":
        quality, issues = LEGACY, []
    elif isinstance(result, types):
        issues = find(record) if status is None or status == LEAF_NODE else [f"only a status was returned: {status}"]
        quality = STRUCTURED
    else:
        found = "nothing" if result is None else type(result).__name__
        quality, issues = UNEXPECTED, [f"the result is {found}, which {function} does not return"]
    if without_data or status or result is None or quality == UNEXPECTED or _no_new_types(record):
        return _judged(quality, "none", issues)
    return _judged(quality, "partial" if issues else "complete", issues)


def _judged(quality: str, completeness: str, issues: list[str]) -> dict[str, Any]:
    return {"data_quality": quality, "data_completeness": completeness, "parsing_issues": issues}


def _no_new_types(record: StepRecord) -> bool:
    return function_of(record) == "process_cells" and read_annotation(record).status == NO_NEW_TYPES


def _enrichment_issues(record: StepRecord) -> list[str]:
    result = {str(key).lower(): entry for key, entry in record["result"].items()}
    methods = read_enrichment(record).methods
    issues = [f"{name}: requested, not in the result" for name in requested_methods(record) if name not in result]
    issues += [f"{name}: not a structure" for name in METHODS if name in result and name not in methods]
    for name, method in methods.items():
        issues += [f"{name}: {issue}" for issue in _method_issues(method, result[name].get("top_pvalues"))]
    return issues


def _method_issues(method: Method, p_values: Any) -> list[str]:
    n, total = len(method.terms), method.total
    p_values = p_values if isinstance(p_values, list) else []
    issues = [f"{str(p)[:40]!r} is no p-value" for p in p_values if not _is_p_value(p)]
    if p_values and len(p_values) != n:
        issues.append(f"{n} terms, {len(p_values)} p-values")
    if total is None:
        issues.append("the number of significant terms is missing")
    elif total < n:
        issues.append(f"{total} significant terms, but {n} are listed")
    elif total and not n and method.whole:
        issues.append(f"{total} significant terms, but none is listed")
    return issues


def _is_p_value(value: Any) -> bool:
    if value is None or value == "N/A":
        return True
    read = number(value)
    return read is not None and 0 <= read <= 1


def _expression_issues(record: StepRecord) -> list[str]:
    result = record["result"]
    entries = result.get("dea_results") if isinstance(result, Mapping) else result
    if not isinstance(entries, list):
        return ["no list of conditions"]
    issues = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or "category" not in entry:
            issues.append(f"condition {i + 1}: no category")
        elif not isinstance(entry.get("significant_genes"), list):
            issues.append(f"{str(entry['category'])[:40]}: no list of genes")
    return issues


def _count_issues(record: StepRecord) -> list[str]:
    result = record["result"]
    entries = result.get("count_results") if isinstance(result, Mapping) else result
    if not isinstance(entries, list):
        return ["no list of counts"]
    return [
        f"category {i + 1}: no number of cells"
        for i, entry in enumerate(entries)
        if not isinstance(entry, Mapping) or whole(entry.get("cell_count")) is None
    ]


def _search_issues(record: StepRecord) -> list[str]:
    found = read_search(record)
    return ["no number of matches"] if found.total is None and not found.message else []


def _no_issues(_record: StepRecord) -> list[str]:
    return []


_ANY = (dict, list, str, int, float)
_STRUCTURES = {
    "perform_enrichment_analyses": ((dict,), _enrichment_issues),
    "dea_split_by_condition": ((dict, list), _expression_issues),
    "process_cells": ((str, dict), _no_issues),
    "compare_cell_counts": ((dict, list), _count_issues),
    "search_enrichment_semantic": ((dict, list, str), _search_issues),
}
