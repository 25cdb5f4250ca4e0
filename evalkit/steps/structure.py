"""Is a stored structure what its function returns? Type, requested methods, lengths, p-values, counts."""

from collections.abc import Mapping
from typing import Any

from evalkit.steps.format import METHODS, StepRecord
from evalkit.steps.records import function_of, number, whole
from evalkit.steps.results import Method, read_enrichment, requested_methods, status_of

UNEXPECTED = "unexpected_structure"
STRUCTURED = "high_structured_access"


def judge_structure(record: StepRecord) -> dict[str, Any]:
    """Judge a structured result.

    Returns
    -------
    dict
        `data_quality` (``high_structured_access``, or ``unexpected_structure`` for another type than the function
        returns), `data_completeness` (``complete``, ``partial``, ``none``) and `parsing_issues`, a list of texts.
    """
    function, result = function_of(record), record["result"]
    types, find = _STRUCTURES.get(function, ((dict, list, str, int, float), _no_issues))
    if not isinstance(result, types):
        found = "nothing" if result is None else type(result).__name__
        return {
            "data_quality": UNEXPECTED,
            "data_completeness": "none",
            "parsing_issues": [f"the result is {found}, which {function} does not return"],
        }
    issues = find(record)
    return {
        "data_quality": STRUCTURED,
        "data_completeness": "partial" if issues else "complete",
        "parsing_issues": issues,
    }


def _enrichment_issues(record: StepRecord) -> list[str]:
    result = {str(key).lower(): entry for key, entry in record["result"].items()}
    methods = read_enrichment(record).methods
    if (status := status_of(result)) and not methods:
        return [f"only a status was returned: {status}"]
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


def _no_issues(_record: StepRecord) -> list[str]:
    return []


_STRUCTURES = {
    "perform_enrichment_analyses": ((dict,), _enrichment_issues),
    "dea_split_by_condition": ((dict, list), _expression_issues),
    "process_cells": ((str, dict), _no_issues),
    "compare_cell_counts": ((dict, list), _count_issues),
}
