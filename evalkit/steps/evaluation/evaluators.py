"""Evaluators by function name: those of the agent's functions, and a registry for users' own."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from evalkit.steps.evaluation.verdicts import LEGACY, STRUCTURED
from evalkit.steps.format import Options, StepRecord, cell_type_of, truncated
from evalkit.steps.history import results

Severity = Literal["info", "warning", "error", "critical"]
Evaluator = Callable[[StepRecord, Options], Mapping[str, Any]]

EVALUATORS: dict[str, Evaluator] = {}


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


def evaluates(function_name: str) -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator for a function, or for all functions with a common prefix.

    The evaluator gets the record and the options of every successful step and returns the keys it adds to the
    evaluation; its ``checks`` are appended to the checks. The latest registration counts.

    Parameters
    ----------
    function_name : str
        A function's name; one that ends in ``_`` or ``*`` stands for every name with this prefix.

    Examples
    --------
    >>> @evaluates("score_genes")
    ... def gene_scores(record, options):
    ...     return {"gene_score_evaluation": {"scored": len(record["result"])}}
    """

    def register(evaluator: Evaluator) -> Evaluator:
        EVALUATORS[function_name] = evaluator
        return evaluator

    return register


def evaluator_for(function_name: str | None) -> Evaluator | None:
    """Find the evaluator of a function: its own, else that of the longest prefix."""
    if not function_name:
        return None
    if function_name in EVALUATORS:
        return EVALUATORS[function_name]
    prefixes = [key for key in EVALUATORS if key.endswith(("_", "*")) and function_name.startswith(key.rstrip("*"))]
    return EVALUATORS[max(prefixes, key=len)] if prefixes else None


@evaluates("perform_enrichment_analyses")
def enrichment(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge an enrichment: pathways per method, top terms; the total over methods is for orientation only."""
    result = results.read_enrichment(record)
    methods, total, concerns, highlights = result.methods, result.total, list[str](), list[str]()
    successful = [name.upper() for name, method in methods.items() if method.significant]
    if not methods and result.partial:
        concerns = ["The result was cut before any method could be read"]
    elif not methods:
        concerns = ["No method has a result" + (f" (status: {result.status})" if result.status else "")]
    elif total == 0:
        concerns = ["No significant pathways found in any method"]
        concerns += ["Consider adjusting parameters or trying different approaches"]
    elif total is not None and total > options.rich_pathways:
        highlights = [f"Rich pathway enrichment found ({total} total)"]
        highlights += [f"Successful methods: {', '.join(successful)}"] if successful else []
    shown = ("unknown", "the number of significant pathways is not known") if total is None else (str(total), "")
    score = None if total is None else total > 0
    checks = [check("pathways_found", score, *shown, "info" if total else "warning")]
    if requested := results.requested_methods(record):
        checks.append(_share("requested_methods", requested, result.absent, result.partial))
    evaluation = {
        "pathway_counts": {name: method.total for name, method in methods.items()} | dict.fromkeys(result.absent),
        "total_significant_pathways": total,
        "successful_methods": successful,
        "method_count": len(successful),
        "data_quality": _quality(record),
        "top_pathways": {name: method.terms[:3] for name, method in methods.items() if method.terms},
        "status": result.status,
        "concerns": concerns,
        "highlights": highlights,
    }
    return {"enrichment_evaluation": evaluation, "checks": checks}


@evaluates("dea_split_by_condition")
def expression(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a differential expression: significant genes per condition, conditions without any."""
    _, counts, conditions = results.read_expression(record)
    empty = [condition for condition, n in counts.items() if n == 0]
    label, why = "unknown", "the list of conditions is not known"
    if conditions == 0:
        label, why = "no conditions", "no condition was compared"
    no_share = check("conditions_with_genes", None, label, why, "warning")
    evaluation = {
        "genes_per_condition": counts,
        "condition_count": conditions,
        "empty_conditions": empty,
        "data_quality": _quality(record),
    }
    made = _share("conditions_with_genes", list(counts), empty) if conditions else no_share
    return {"dea_evaluation": evaluation, "checks": [made]}


@evaluates("process_cells")
def annotation(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge an annotation: how the discovery ended, which cell types, and which of the expected ones are missing."""
    types, status, groups, partial = results.read_annotation(record)
    unknown = partial or status == results.UNKNOWN
    evaluation = {
        "discovery_status": status,
        "discovered_cell_types": types,
        "cell_type_count": None if unknown else len(types),
        "group_count": None if unknown or (types and not groups) else len(groups),
        "partial": partial,
        "cell_type": cell_type_of(record),
    }
    # a leaf has nothing below it to discover
    score = None if status in (results.UNKNOWN, results.LEAF_NODE) else status == results.DISCOVERED
    severity: Severity = "info" if status in (results.DISCOVERED, results.LEAF_NODE) else "warning"
    checks = [check("discovery", score, status, ", ".join(types), severity)]
    if expected := expected_types(record):
        missing, unexpected = compare_names(types, expected)
        evaluation["expected_children"] = expected
        evaluation |= {"missing_children": None if unknown else missing, "unexpected_children": unexpected}
        checks.append(_share("expected_cell_types", expected, missing, unknown))
    return {"process_cells_evaluation": evaluation, "checks": checks}


@evaluates("compare_cell_counts")
def counts(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a comparison of cell counts: cells per category, and their sum if all are known."""
    cells, categories = results.read_counts(record)
    known = bool(categories) and None not in cells.values()
    evaluation: dict[str, Any] = {
        "cells_per_category": cells,
        "category_count": categories,
        "total_cells": sum(cells.values()) if known else None,
        "empty_categories": [name for name, n in cells.items() if n == 0],
        "data_quality": _quality(record),
    }
    return {"cell_counts_evaluation": evaluation}


@evaluates("search_enrichment_semantic")
def search(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a search in stored enrichment results: how many matches, the first of them."""
    found, total, message = results.read_search(record)
    label = "unknown" if total is None else "matches" if total else "no matches"
    score = None if total is None else total > 0
    evaluation = {"total_matches": total, "top_results": found[:3], "message": message}
    checks = [check("search_matches", score, label, message or "", "info" if total else "warning")]
    return {"search_evaluation": evaluation, "checks": checks}


@evaluates("display_")
def plot(record: StepRecord, options: Options) -> dict[str, Any]:
    """Judge a plot by its result: HTML, several plots, a file, an image, or a text in its place."""
    kind, plots, length, path = results.read_plots(record)
    generated = None if kind == "unknown" else kind in ("html", "multiple_plots") and plots != 0
    other = {"file_ref": "stored_in_file", "image": "image", "text": "message_instead", "unknown": "unknown"}
    status = other.get(kind) or ("generated" if generated else "no_plot")
    evaluation = {"type": kind, "html_generated": generated, "html_length": length, "plots": plots, "status": status}
    evaluation |= {"path": path} if path else {}
    made = kind in ("file_ref", "image") or generated
    checks = [check("plot", made, status, "", "info" if made else "warning")]
    return {"visualization_evaluation": evaluation, "checks": checks}


def expected_types(record: StepRecord) -> list[str]:
    """Return the cell types that a step was expected to discover."""
    expected = record["step"].get("expected_children")
    return [str(name) for name in expected] if isinstance(expected, list) else []


def compare_names(given: list[str], expected: list[str]) -> tuple[list[str], list[str]]:
    """Return the missing names, and the unexpected ones; case and plural don't matter."""
    have, want = {_plain_name(name) for name in given}, {_plain_name(name) for name in expected}
    missing = [name for name in expected if _plain_name(name) not in have]
    return missing, [name for name in given if _plain_name(name) not in want]


def _share(name: str, wanted: list[str], missing: list[str], partial: bool = False) -> Check:
    """Return a check of how many are present; those missing from a cut list may be in the part cut off."""
    without = f"without: {', '.join(missing)}" if missing else ""
    if partial and missing:
        return check(name, None, "unknown", f"the result was not read whole; {without}", "warning")
    k, n = len(wanted) - len(missing), len(wanted)
    return check(name, k / n, f"{k} of {n}", without, "warning" if missing else "info")


def _quality(record: StepRecord) -> str:
    return LEGACY if record["result_type"] == "text" or truncated(record) else STRUCTURED


def _plain_name(name: str) -> str:
    """Normalise a name for comparison: `T cells`, `t cell` and `T Cell` are the same."""
    words = name.lower().replace("_", " ").replace("-", " ").split()
    return " ".join(word.removesuffix("s") if len(word) > 3 else word for word in words)
