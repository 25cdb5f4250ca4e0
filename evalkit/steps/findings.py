"""What an execution found out, per analysis: what an agent may build its answer on."""

from collections.abc import Callable, Mapping
from typing import Any

from evalkit.steps.cell_types import read_annotation
from evalkit.steps.format import DEFAULTS, PSEUDO_STEPS, Options, StepRecord
from evalkit.steps.jsonable import to_jsonable, unique_key
from evalkit.steps.records import cell_type_of, function_of, normalise_history
from evalkit.steps.results import (
    read_counts,
    read_enrichment,
    read_expression,
    read_plots,
    read_search,
)
from evalkit.steps.verdicts import silent_failure

LISTED = 5  # terms, p-values, genes and results shown of each list


def extract_key_findings_from_execution(history: Any, options: Options = DEFAULTS) -> dict[str, Any]:
    """Collect what the steps of a history found, from structures and from legacy text.

    Parameters
    ----------
    history : list of records, or a state that holds one
        Any shape; see `normalise_record`.
    options : Options

    Returns
    -------
    dict
        JSON-able. ``successful_analyses`` maps ``enrichment_<cell type>``, ``dea_<cell type>``,
        ``process_cells_<cell type>``, ``compare_cell_counts_<cell type>``, ``search_<query>``,
        ``visualization_<function>_<cell type>`` and other functions by their name to what was found;
        ``failed_analyses`` holds failures and silent failures (``silent`` True) with their error,
        ``skipped_analyses`` the reasons. The second run of one analysis has a key that ends in `` #2``. What was cut
        away is None (counts) or missing (terms).
    """
    found: dict[str, dict[str, Any]] = {"successful_analyses": {}, "failed_analyses": {}, "skipped_analyses": {}}
    for record in normalise_history(history, options):
        function = function_of(record)
        if function is None or function in PSEUDO_STEPS:
            continue
        kind, finding = _finding(record, function, options)
        place = found[kind]
        place[unique_key(place, _key(record, function, options))] = finding
    return to_jsonable(found)


def _finding(record: StepRecord, function: str, options: Options) -> tuple[str, dict[str, Any]]:
    if record["result_type"] == "skipped":
        return "skipped_analyses", {"skip_reason": record["step"].get("skip_reason")}
    silent = silent_failure(record, options)
    if record["success"] is not True or silent:
        return "failed_analyses", {
            "error": silent or record["error"] or "unknown",
            "error_type": record["error_type"],
            "silent": silent is not None,
            "step_index": record["step_index"],
        }
    reader = _READERS.get(function, _plot if options.is_plot(function) else _other)
    return "successful_analyses", reader(record)


def _key(record: StepRecord, function: str, options: Options) -> str:
    cell_type = cell_type_of(record)
    if function == "search_enrichment_semantic":
        return f"search_{record['step']['parameters'].get('query') or 'unknown'}"
    if function in _NAMES:
        return f"{_NAMES[function]}_{cell_type or 'unknown'}"
    if options.is_plot(function):
        prefix = next(p for p in options.visualization_prefixes if function.startswith(p))
        shown = f"visualization_{function.removeprefix(prefix)}"
        return f"{shown}_{cell_type}" if cell_type else shown
    return function


def _enrichment(record: StepRecord) -> dict[str, Any]:
    methods, status, *_ = read_enrichment(record)
    if not methods:
        return {"status": status or "unknown"}
    return {
        name: {
            "top_terms": method.terms[:LISTED],
            "p_values": method.p_values[:LISTED],
            "total_significant": method.total,
        }
        for name, method in methods.items()
    }


def _expression(record: StepRecord) -> dict[str, Any]:
    genes, counts, _ = read_expression(record)
    return {
        condition: {"significant_genes": counts[condition], "top_genes": listed[:LISTED]}
        for condition, listed in genes.items()
    }


def _annotation(record: StepRecord) -> dict[str, Any]:
    status, groups, types, partial = read_annotation(record)
    return {"status": status, "discovered_cell_types": types, "group_to_cell_type": groups, "partial": partial}


def _counts(record: StepRecord) -> dict[str, Any]:
    return read_counts(record).cells


def _search(record: StepRecord) -> dict[str, Any]:
    total, results, message = read_search(record)
    return {"total_matches": total, "results": results[:LISTED], "message": message}


def _plot(record: StepRecord) -> dict[str, Any]:
    return {key: value for key, value in read_plots(record)._asdict().items() if value is not None}


def _other(record: StepRecord) -> dict[str, Any]:
    return {"summary": record["result_summary"] or str(record["result"])[: DEFAULTS.summary_limit]}


_NAMES = {
    "perform_enrichment_analyses": "enrichment",
    "dea_split_by_condition": "dea",
    "process_cells": "process_cells",
    "compare_cell_counts": "compare_cell_counts",
}
_READERS: Mapping[str, Callable[[StepRecord], dict[str, Any]]] = {
    "perform_enrichment_analyses": _enrichment,
    "dea_split_by_condition": _expression,
    "process_cells": _annotation,
    "compare_cell_counts": _counts,
    "search_enrichment_semantic": _search,
}
