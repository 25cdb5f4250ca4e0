"""What a step did, in one line: only what its result says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalkit.steps.cell_types import NO_NEW_TYPES, UNKNOWN, read_annotation
from evalkit.steps.format import DEFAULTS, Options, StepRecord
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.records import function_of, normalise_record
from evalkit.steps.results import content, read_enrichment, read_expression, read_plots, read_search
from evalkit.steps.verdicts import only_status, silent_failure


def create_result_summary(step: Mapping[str, Any] | str | None, result: Any, options: Options = DEFAULTS) -> str:
    """Summarise the result of a successful step, given as the step or the name of its function, in one line.

    ``Enrichment: GO: 12 terms, KEGG: 3 terms``, ``Process cells: Discovery completed: T cell, B cell``,
    ``Process cells: No cell types discovered (leaf_node)``, ``DEA: Analysis completed``, ``Search: 2 matches: a, b``,
    ``Visualization: 1 plot (html, 5120 characters)``; ``Success`` where there is no result; else, and for a result that
    speaks of a failure, its first ``options.summary_limit`` characters. Lists of names keep to that limit too.
    """
    record = normalise_record({"step": step, "success": True, "result": to_jsonable(result)}, options)
    return summarise(record, options)


def summarise(record: StepRecord, options: Options = DEFAULTS) -> str:
    """Summarise the result of a step that reports success; see `create_result_summary`."""
    if record["result"] is None:
        return "Success"
    function = function_of(record)
    write = _visualization if options.is_plot(function) else _SUMMARIES.get(function, _nothing_known)
    if only_status(record) is None and silent_failure(record, options) is not None:
        write = _nothing_known
    return write(record, options.summary_limit) or str(record["result"])[: options.summary_limit]


def listed(names: Sequence[str], limit: int) -> str:
    """Write names in a row, as many as `limit` characters hold (one at least), and how many more there are."""
    shown = names[0][:limit]
    for i, name in enumerate(names[1:], 1):
        if len(shown) + len(name) + 2 > limit:
            return f"{shown} and {len(names) - i} more"
        shown += f", {name}"
    return shown


def _nothing_known(_record: StepRecord, _limit: int) -> str | None:
    return None


def _enrichment(record: StepRecord, limit: int) -> str | None:
    methods, status, *_ = read_enrichment(record)
    if methods:
        counts = (f"{name.upper()}: {_known(method.total)} terms" for name, method in methods.items())
        return f"Enrichment: {', '.join(counts)}"
    return f"Enrichment: No results ({status[:limit]})" if status else None


def _annotation(record: StepRecord, limit: int) -> str | None:
    status, _, types, partial = read_annotation(record)
    if types:
        return f"Process cells: Discovery completed: {listed(types, limit)}{', the rest was cut' * partial}"
    if status == NO_NEW_TYPES:
        return "Process cells: No new cell types discovered"
    return None if status == UNKNOWN else f"Process cells: No cell types discovered ({status[:limit]})"


def _expression(record: StepRecord, limit: int) -> str | None:
    if status := only_status(record):
        return f"DEA: No results ({status[:limit]})"
    conditions, value = read_expression(record).conditions, content(record)
    if conditions == 0:
        return "DEA: No conditions compared"
    return "DEA: Analysis completed" if conditions or isinstance(value, Mapping) else None


def _search(record: StepRecord, limit: int) -> str | None:
    total, results, message = read_search(record)
    if total is None:
        return None
    found = f"Search: {total} match{'es' * (total != 1)}"
    if results:
        return f"{found}: {listed(results, limit)}"
    return f"{found} ({message[:limit]})" if message else found


def _visualization(record: StepRecord, limit: int) -> str | None:
    kind, plots, length, path = read_plots(record)
    if kind in ("none", "text") or plots == 0:
        return None
    count = "Visualization" if plots is None else f"Visualization: {plots} plot{'s' * (plots != 1)}"
    if kind == "file_ref":
        return f"{count} in a file" + (f" ({path[:limit]})" if path else "")
    return f"{count} ({'html' if kind == 'multiple_plots' else kind}{f', {length} characters' if length else ''})"


def _known(count: int | None) -> int | str:
    return "unknown number of" if count is None else count


_SUMMARIES: Mapping[str | None, Callable[[StepRecord, int], str | None]] = {
    "perform_enrichment_analyses": _enrichment,
    "process_cells": _annotation,
    "dea_split_by_condition": _expression,
    "search_enrichment_semantic": _search,
}
