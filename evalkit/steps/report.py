"""The report of one step, as printed in a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from evalkit.io import plain

RULE = "=" * 60


def format_step_evaluation(evaluation: Mapping[str, Any]) -> str:
    """Write the report of a step; steps count from 1, texts from the record lose their control characters.

    Parameters
    ----------
    evaluation : mapping
        As `evaluate_step` returns it.

    Returns
    -------
    str
        Lines without a line break at the end.
    """
    lines = [
        RULE,
        f"📊 STEP EVALUATION REPORT - Step {_number(evaluation.get('step_index'))}",
        RULE,
        f"Function: {_shown(evaluation.get('function_name'), 'none')}",
        f"Success: {_success(evaluation.get('success'))}",
        f"Result Type: {_shown(evaluation.get('result_type'), 'unknown')}",
        f"Timestamp: {_shown(evaluation.get('timestamp'), 'unknown')}",
        "",
    ]
    if "skipped_evaluation" in evaluation:
        lines += ["⏭️ SKIPPED:", f"   Reason: {_shown(evaluation['skipped_evaluation'].get('skip_reason'), 'unknown')}"]
    elif evaluation.get("success") is True:
        lines += ["✅ SUCCESS ANALYSIS:", *_success_lines(evaluation)]
    else:
        failure = evaluation.get("failure_evaluation") or {}
        lines += [
            "❌ FAILURE ANALYSIS:",
            f"   Error Type: {_shown(failure.get('error_category'), 'unknown')}",
            f"   Critical: {'🚨 YES' if evaluation.get('critical_failure') else '⚠️ No'}",
        ]
    return "\n".join([*lines, RULE])


def print_step_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the report of a step; see `format_step_evaluation`."""
    print(format_step_evaluation(evaluation))


def _success_lines(evaluation: Mapping[str, Any]) -> Iterator[str]:
    if evaluation.get("silent_failure"):
        yield f"   🔇 Silent failure: {plain(evaluation.get('silent_failure_reason'), 200)}"
    enrichment = evaluation.get("enrichment_evaluation")
    if isinstance(enrichment, Mapping):
        yield "   🧬 ENRICHMENT RESULTS:"
        for method, n in (enrichment.get("pathway_counts") or {}).items():
            yield f"      {'✅' if n else '⭕' if n == 0 else '❔'} {_name(method)}: {_shown(n, 'unknown')} pathways"
        yield f"   📊 Total Significant: {_shown(enrichment.get('total_significant_pathways'), 'unknown')} pathways"
        yield f"   🎯 Data Quality: {_shown(enrichment.get('data_quality'), 'unknown')}"
        if top := enrichment.get("top_pathways"):
            yield "   🔝 Sample Pathways:"
            for method, terms in top.items():
                yield f"      {_name(method)}: {', '.join(plain(term) for term in terms[:2])}"
    cells = evaluation.get("process_cells_evaluation")
    if isinstance(cells, Mapping):
        types, n = cells.get("discovered_cell_types") or [], cells.get("cell_type_count")
        if n is None:  # the list was cut
            n = f"at least {len(types)}" if types else "unknown number of"
        yield "   🧬 PROCESS CELLS RESULTS:"
        yield f"      Discovered: {n} new cell types"
        for name in types[:3]:
            yield f"         - {plain(name)}"


def _number(index: Any) -> str:
    """Count from 1, as people do."""
    return str(index + 1) if isinstance(index, int) else "?"


def _success(value: Any) -> str:
    return "✅ (True)" if value is True else "❌ (False)" if value is False else "❔ (unknown)"


def _name(method: Any) -> str:
    return plain(str(method).upper())


def _shown(value: Any, missing: str) -> str:
    return missing if value is None or value == "" else plain(value)
