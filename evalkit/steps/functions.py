"""The evaluators of the agent's own functions, one per kind of step."""

from typing import Any

from evalkit.steps.cell_types import DISCOVERED, LEAF_NODE, UNKNOWN, read_annotation
from evalkit.steps.format import Options, StepRecord
from evalkit.steps.records import cell_type_of
from evalkit.steps.registry import EVALUATORS, Check, check, evaluates
from evalkit.steps.results import (
    read_counts,
    read_enrichment,
    read_expression,
    read_plots,
    read_search,
    requested_methods,
    truncated,
)
from evalkit.steps.structure import LEGACY, STRUCTURED


@evaluates("perform_enrichment_analyses")
def enrichment(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge an enrichment: pathways per method, top terms; the total over methods is for orientation only."""
    methods, status, partial, absent = facts = read_enrichment(record)
    successful = [name.upper() for name, method in methods.items() if method.significant]
    concerns, highlights = [], []
    if not methods and partial:
        concerns.append("The result was cut before any method could be read")
    elif not methods:
        concerns.append(f"No method has a result (status: {status})" if status else "No method has a result")
    elif facts.total == 0:
        concerns.append("No significant pathways found in any method")
        concerns.append("Consider adjusting parameters or trying different approaches")
    elif facts.total is not None and facts.total > options.rich_pathways:
        highlights.append(f"Rich pathway enrichment found ({facts.total} total)")
        highlights += [f"Successful methods: {', '.join(successful)}"] if successful else []
    checks = [_pathways_found(facts.total)]
    if requested := requested_methods(record):
        checks.append(_share("requested_methods", requested, absent, partial))
    return {
        "enrichment_evaluation": {
            "pathway_counts": {name: method.total for name, method in methods.items()} | dict.fromkeys(absent),
            "total_significant_pathways": facts.total,
            "successful_methods": successful,
            "method_count": len(methods),
            "data_quality": _access(record),
            "top_pathways": {name: method.terms[:3] for name, method in methods.items() if method.terms},
            "status": status,
            "concerns": concerns,
            "highlights": highlights,
        },
        "checks": checks,
    }


@evaluates("dea_split_by_condition")
def expression(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a differential expression: significant genes per condition, conditions without any."""
    _, counts, conditions = read_expression(record)
    empty = [condition for condition, n in counts.items() if n == 0]
    with_genes = check("conditions_with_genes", None, "unknown", "the list of conditions is not known", "warning")
    if conditions == 0:
        with_genes = check("conditions_with_genes", None, "no conditions", "no condition was compared", "warning")
    elif conditions:
        with_genes = _share("conditions_with_genes", list(counts), empty)
    return {
        "dea_evaluation": {
            "genes_per_condition": counts,
            "condition_count": conditions,
            "empty_conditions": empty,
            "data_quality": _access(record),
        },
        "checks": [with_genes],
    }


@evaluates("process_cells")
def annotation(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge an annotation: how the discovery ended, which cell types, and which of the expected ones are missing."""
    status, groups, types, partial = read_annotation(record)
    unknown = partial or status == UNKNOWN
    evaluation = {
        "discovery_status": status,
        "discovered_cell_types": types,
        "cell_type_count": None if unknown else len(types),
        "group_count": None if unknown or (types and not groups) else len(groups),
        "partial": partial,
        "cell_type": cell_type_of(record),
    }
    # a leaf has nothing below it to be discovered
    score = None if status in (UNKNOWN, LEAF_NODE) else status == DISCOVERED
    severity = "info" if status in (DISCOVERED, LEAF_NODE) else "warning"
    checks = [check("discovery", score, status, ", ".join(types), severity)]
    expected = record["step"].get("expected_children")
    expected = [str(name) for name in expected] if isinstance(expected, list) else []
    if expected:
        missing, unexpected = compare_names(types, expected)
        evaluation |= {
            "expected_children": expected,
            "missing_children": None if unknown else missing,
            "unexpected_children": unexpected,
        }
        checks.append(_share("expected_cell_types", expected, missing, unknown))
    return {"process_cells_evaluation": evaluation, "checks": checks}


@evaluates("compare_cell_counts")
def counts(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a comparison of cell counts: cells per category, their sum where all are known."""
    cells, categories = read_counts(record)
    known = bool(categories) and None not in cells.values()
    return {
        "cell_counts_evaluation": {
            "cells_per_category": cells,
            "category_count": categories,
            "total_cells": sum(cells.values()) if known else None,
            "empty_categories": [name for name, n in cells.items() if n == 0],
            "data_quality": _access(record),
        }
    }


@evaluates("search_enrichment_semantic")
def search(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a search in stored enrichment results: how many matches, the first of them."""
    total, results, message = read_search(record)
    label = "unknown" if total is None else "matches" if total else "no matches"
    score = None if total is None else total > 0
    return {
        "search_evaluation": {"total_matches": total, "top_results": results[:3], "message": message},
        "checks": [check("search_matches", score, label, message or "", "info" if total else "warning")],
    }


@evaluates("display_")
def plot(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a plot by what was left: HTML, several plots, a file, an image, or a text in its place."""
    kind, plots, length, path = read_plots(record)
    generated = None if kind == "unknown" else kind in ("html", "multiple_plots") and plots != 0
    status = {
        "file_ref": "stored_in_file",
        "image": "image",
        "text": "message_instead",
        "none": "no_plot",
        "unknown": "unknown",
    }.get(kind)
    evaluation = {
        "type": kind,
        "html_generated": generated,
        "html_length": length,
        "plots": plots,
        "status": status or ("generated" if generated else "no_plot"),
    }
    if path:
        evaluation["path"] = path
    made = kind in ("file_ref", "image") or generated
    return {
        "visualization_evaluation": evaluation,
        "checks": [check("plot", made, evaluation["status"], "", "info" if made else "warning")],
    }


def compare_names(found: list[str], expected: list[str]) -> tuple[list[str], list[str]]:
    """Give the expected names that were not found, and the found ones not expected; case and plural don't count."""
    have, want = {_plain_name(name) for name in found}, {_plain_name(name) for name in expected}
    missing = [name for name in expected if _plain_name(name) not in have]
    return missing, [name for name in found if _plain_name(name) not in want]


def _pathways_found(total: int | None) -> Check:
    if total is None:
        return check("pathways_found", None, "unknown", "the number of significant pathways is not known", "warning")
    return check("pathways_found", total > 0, str(total), "", "info" if total else "warning")


def _share(name: str, wanted: list[str], missing: list[str], partial: bool = False) -> Check:
    """Make a check of how many are there; those missing from a cut list may stand in the part cut away."""
    without = f"without: {', '.join(missing)}" if missing else ""
    if partial and missing:
        return check(name, None, "unknown", f"the result was not read whole; {without}", "warning")
    k, n = len(wanted) - len(missing), len(wanted)
    return check(name, k / n, f"{k} of {n}", without, "warning" if missing else "info")


def _access(record: StepRecord) -> str:
    return LEGACY if record["result_type"] == "text" or truncated(record) else STRUCTURED


def _plain_name(name: str) -> str:
    """Make names comparable: `T cells`, `t cell` and `T Cell` are one."""
    words = name.lower().replace("_", " ").replace("-", " ").split()
    return " ".join(word.removesuffix("s") if len(word) > 3 else word for word in words)


# as registered above; with any other evaluator the store can't tell what judgements rest on
BUILT_IN = {name: found for name, found in EVALUATORS.items() if getattr(found, "__globals__", None) is globals()}
