"""Summarise what a step did, and collect the key findings of an execution, which an agent may build its answer on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalkit.steps.evaluation.verdicts import silent_failure
from evalkit.steps.format import DEFAULTS, PSEUDO_STEPS, Options, StepRecord, cell_type_of
from evalkit.steps.history import results
from evalkit.steps.history.records import as_history, normalise_record
from evalkit.steps.history.values import to_jsonable, unique_keys

LISTED = 5  # terms, p-values, genes and results shown of each list


def create_result_summary(step: Mapping[str, Any] | str | None, result: Any, options: Options = DEFAULTS) -> str:
    """Summarise the result of a successful step, given as the step or the name of its function, in one line.

    ``Enrichment: GO: 12 terms, KEGG: 3 terms``, ``Process cells: Discovery completed: T cell, B cell``,
    ``Process cells: No cell types discovered (leaf_node)``, ``DEA: Analysis completed``, ``Search: 2 matches: a, b``,
    ``Visualization: 1 plot (html, 5120 characters)``; ``Success`` where there is no result; else, and for a result that
    speaks of a failure, its first ``options.summary_limit`` characters. Lists of names keep to that limit too.
    """
    record = normalise_record({"step": step, "success": True, "result": to_jsonable(result)}, options)
    return summarise(record, silent_failure(record, options), options)


def summarise(record: StepRecord, silent: str | None, options: Options = DEFAULTS) -> str:
    """Summarise a step that reports success; `silent` is the reason if it failed silently."""
    if record["result"] is None:
        return "Success"
    limit, function = options.summary_limit, record["step"]["function_name"]
    write = _summarise_plot if options.is_plot(function) else _SUMMARIES.get(function)
    if silent is not None and results.only_status(record) is None:
        write = None  # the text of a failure is quoted
    return (write(record, limit) if write else None) or str(record["result"])[:limit]


def _summarise_enrichment(record: StepRecord, limit: int) -> str | None:
    methods, status, *_ = results.read_enrichment(record)
    totals = {name.upper(): "unknown number of" if m.total is None else m.total for name, m in methods.items()}
    if totals:
        return f"Enrichment: {', '.join(f'{name}: {n} terms' for name, n in totals.items())}"
    return f"Enrichment: No results ({status[:limit]})" if status else None


def _summarise_annotation(record: StepRecord, limit: int) -> str | None:
    types, status, _, partial = results.read_annotation(record)
    if types:
        return f"Process cells: Discovery completed: {_listed(types, limit)}{', the rest was cut' * partial}"
    if status == results.NO_NEW_TYPES:
        return "Process cells: No new cell types discovered"
    return None if status == results.UNKNOWN else f"Process cells: No cell types discovered ({status[:limit]})"


def _summarise_expression(record: StepRecord, limit: int) -> str | None:
    if status := results.only_status(record):
        return f"DEA: No results ({status[:limit]})"
    conditions = results.read_expression(record).conditions
    if conditions == 0:
        return "DEA: No conditions compared"
    return "DEA: Analysis completed" if conditions or isinstance(results.content(record), Mapping) else None


def _summarise_search(record: StepRecord, limit: int) -> str | None:
    found, total, message = results.read_search(record)
    more = f": {_listed(found, limit)}" if found else f" ({message[:limit]})" if message else ""
    return None if total is None else f"Search: {total} match{'es' * (total != 1)}{more}"


def _summarise_plot(record: StepRecord, limit: int) -> str | None:
    kind, plots, length, path = results.read_plots(record)
    if kind in ("none", "text") or plots == 0:
        return None
    number = "Visualization" if plots is None else f"Visualization: {plots} plot{'s' * (plots != 1)}"
    if kind == "file_ref":
        return f"{number} in a file" + (f" ({path[:limit]})" if path else "")
    return f"{number} ({'html' if kind == 'multiple_plots' else kind}{f', {length} characters' if length else ''})"


def _listed(names: Sequence[str], limit: int) -> str:
    """List as many names as fit in `limit` characters (at least one), and how many more there are."""
    shown = names[0][:limit]
    for i, name in enumerate(names[1:], 1):
        if len(shown) + len(name) + 2 > limit:
            return f"{shown} and {len(names) - i} more"
        shown += f", {name}"
    return shown


def extract_key_findings_from_execution(history: Any, options: Options | None = None) -> dict[str, Any]:
    """Collect the findings of a history's steps, from structures and from legacy text.

    Parameters
    ----------
    history : History, list of records of any shape, or a state that holds one
    options : Options, optional
        By default those of the history.

    Returns
    -------
    dict
        JSON-able. ``successful_analyses`` maps ``enrichment_<cell type>``, ``dea_<cell type>``,
        ``process_cells_<cell type>``, ``compare_cell_counts_<cell type>``, ``search_<query>``,
        ``visualization_<function>_<cell type>`` and other functions by their name to what was found;
        ``failed_analyses`` holds failures and silent failures (``silent`` True) with their error,
        ``skipped_analyses`` the reasons. The second run of one analysis has a key that ends in `` #2``. Counts that
        were cut off are None, terms are missing.
    """
    history = as_history(history, options)
    findings: dict[str, dict[str, Any]] = {"successful_analyses": {}, "failed_analyses": {}, "skipped_analyses": {}}
    unique = {kind: unique_keys() for kind in findings}
    for record in history.records:
        function = record["step"]["function_name"]
        if function is None or function in PSEUDO_STEPS:
            continue
        kind, finding = _finding(record, function, history.options)
        findings[kind][unique[kind](_key(record, function, history.options))] = finding
    return to_jsonable(findings)


def _finding(record: StepRecord, function: str, options: Options) -> tuple[str, dict[str, Any]]:
    if record["result_type"] == "skipped":
        return "skipped_analyses", {"skip_reason": record["step"].get("skip_reason")}
    silent = silent_failure(record, options)
    if record["success"] is not True or silent:
        error = {"error": silent or record["error"] or "unknown", "error_type": record["error_type"]}
        return "failed_analyses", error | {"silent": silent is not None, "step_index": record["step_index"]}
    if function in _FINDINGS:
        return "successful_analyses", _FINDINGS[function][1](record)
    if options.is_plot(function):
        return "successful_analyses", {k: v for k, v in results.read_plots(record)._asdict().items() if v is not None}
    summary = record["result_summary"] or str(record["result"])[: DEFAULTS.summary_limit]
    return "successful_analyses", {"summary": summary}


def _key(record: StepRecord, function: str, options: Options) -> str:
    cell_type = cell_type_of(record)
    if function == "search_enrichment_semantic":
        return f"search_{record['step']['parameters'].get('query') or 'unknown'}"
    if function in _FINDINGS:
        return f"{_FINDINGS[function][0]}_{cell_type or 'unknown'}"
    if options.is_plot(function):
        prefix = next(p for p in options.visualization_prefixes if function.startswith(p))
        return f"visualization_{function.removeprefix(prefix)}{f'_{cell_type}' if cell_type else ''}"
    return function


def _find_enrichment(record: StepRecord) -> dict[str, Any]:
    methods, status, *_ = results.read_enrichment(record)
    return {
        name: {"top_terms": m.terms[:LISTED], "p_values": m.p_values[:LISTED], "total_significant": m.total}
        for name, m in methods.items()
    } or {"status": status or "unknown"}


def _find_expression(record: StepRecord) -> dict[str, Any]:
    genes, counts, _ = results.read_expression(record)
    return {name: {"significant_genes": counts[name], "top_genes": top[:LISTED]} for name, top in genes.items()}


def _find_cell_types(record: StepRecord) -> dict[str, Any]:
    types, status, groups, partial = results.read_annotation(record)
    return {"status": status, "discovered_cell_types": types, "group_to_cell_type": groups, "partial": partial}


def _find_matches(record: StepRecord) -> dict[str, Any]:
    found, total, message = results.read_search(record)
    return {"total_matches": total, "results": found[:LISTED], "message": message}


_SUMMARIES: Mapping[str | None, Callable[[StepRecord, int], str | None]] = {
    "perform_enrichment_analyses": _summarise_enrichment,
    "process_cells": _summarise_annotation,
    "dea_split_by_condition": _summarise_expression,
    "search_enrichment_semantic": _summarise_search,
}
_FINDINGS: Mapping[str, tuple[str, Callable[[StepRecord], dict[str, Any]]]] = {  # by the prefix of their key
    "perform_enrichment_analyses": ("enrichment", _find_enrichment),
    "dea_split_by_condition": ("dea", _find_expression),
    "process_cells": ("process_cells", _find_cell_types),
    "compare_cell_counts": ("compare_cell_counts", lambda record: results.read_counts(record).cells),
    "search_enrichment_semantic": ("search", _find_matches),
}
