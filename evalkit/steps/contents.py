"""What the steps of histories hold, as frames: enrichments, cell types, coverage, loops, plan, routing."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd

from evalkit.io import Column, frame
from evalkit.steps.cell_types import read_annotation
from evalkit.steps.format import DEFAULTS, PSEUDO_STEPS, Options, StepRecord
from evalkit.steps.functions import compare_names
from evalkit.steps.parse import History
from evalkit.steps.records import cell_type_of, cell_types_of, function_of
from evalkit.steps.results import read_enrichment
from evalkit.steps.trajectory import NOT_RUN, find_loops, plan_adherence
from evalkit.steps.verdicts import VERDICTS, verdict
from evalkit.steps.workflow import simulate_routing

STATUSES = (*VERDICTS, NOT_RUN)  # from best to worst

IDS = (
    Column("history", "str", "file, and thread of a checkpoint"),
    Column("position", "int", "place of the record in its history"),
    Column("function_name", "str", "function of the step"),
    Column("cell_type", "str", "cell type the step is about"),
)
_ENRICHMENT_COLUMNS = (
    *IDS,
    Column("method", "str", "enrichment method"),
    Column("total_significant", "int?", "significant terms; missing where the count was cut away"),
    Column("listed", "int", "terms listed"),
    Column("top_terms", "object", "first three of them, with p-values where known"),
)
_ANNOTATION_COLUMNS = (
    *IDS,
    Column("status", "str", "how the discovery ended"),
    Column("discovered", "object", "cell types found"),
    Column("expected", "object", "cell types the plan expected"),
    Column("missing", "object", "expected, not found; empty where the list was cut"),
    Column("unexpected", "object", "found, not expected"),
    Column("partial", "bool", "the list was cut"),
)
_COVERAGE_COLUMNS = (
    Column("history", "str", "file, and thread of a checkpoint"),
    Column("cell_type", "str", "cell type"),
    Column("analysis", "str", "function"),
    Column("status", "str", ", ".join(STATUSES)),
    Column("steps", "int", "steps of this analysis on this cell type, attempts counted"),
)
_LOOP_COLUMNS = (
    Column("history", "str", "file, and thread of a checkpoint"),
    Column("position", "int", "place of the first failure"),
    Column("length", "int", "failures in a row"),
    Column("function_name", "str", "function called"),
    Column("parameters", "object", "its parameters"),
    Column("error", "str", "the last error"),
)
_ROUTING_COLUMNS = (
    Column("history", "str", "file, and thread of a checkpoint"),
    Column("position", "int", "place of the record"),
    Column("step_index", "int?", "index of the step"),
    Column("function_name", "str", "function of the step"),
    Column("success", "bool?", "as recorded"),
    Column("critical_failure", "bool", "nothing that follows can work"),
    Column("attempts_at_step", "int", "times the step was tried without moving on"),
    Column("from_executor", "str", "where the executor's router leads"),
    Column("from_step_evaluator", "str", "where the evaluator's router leads"),
    Column("reached", "bool", "False where the router would have ended the run before"),
)
_ADHERENCE_COLUMNS = (
    Column("history", "str", "file, and thread of a checkpoint"),
    Column("position", "int", "place in the plan"),
    Column("function_name", "str", "function planned"),
    Column("status", "str", ", ".join(STATUSES)),
    Column("attempts", "int", "records of this step"),
    Column("in_order", "bool?", "it ran after the planned steps before it; missing where it did not run"),
)


def enrichments(histories: Sequence[History]) -> pd.DataFrame:
    """List the enrichment of each step by method; counts of different methods rest on different p-values.

    Returns
    -------
    DataFrame
        history, position, function_name, cell_type, method, total_significant (missing: unknown), listed, top_terms.
    """
    rows = [
        {
            **ids_of(history, position, record),
            "method": method.upper(),
            "total_significant": found.total,
            "listed": len(found.terms),
            "top_terms": [_with_p(*pair) for pair in zip_longest(found.terms[:3], found.p_values[:3])],
        }
        for history, position, record in each_record(histories)
        if function_of(record) == "perform_enrichment_analyses" and record["success"] is True
        for method, found in read_enrichment(record).methods.items()
    ]
    return frame(rows, _ENRICHMENT_COLUMNS)


def annotations(histories: Sequence[History]) -> pd.DataFrame:
    """List what every annotation step discovered, beside what was expected.

    Returns
    -------
    DataFrame
        history, position, function_name, cell_type, status, discovered, expected, missing, unexpected, partial.
    """
    rows = []
    for history, position, record in each_record(histories):
        if function_of(record) != "process_cells" or record["success"] is not True:
            continue
        status, _, types, partial = read_annotation(record)
        expected = record["step"].get("expected_children")
        expected = [str(one) for one in expected] if isinstance(expected, list) else []
        missing, unexpected = compare_names(types, expected)
        rows.append(
            {
                **ids_of(history, position, record),
                "status": status,
                "discovered": types,
                "expected": expected,
                "missing": [] if partial else missing,
                "unexpected": unexpected if expected else [],
                "partial": partial,
            }
        )
    return frame(rows, _ANNOTATION_COLUMNS)


def coverage(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Tell for each cell type and analysis whether it was done: the best outcome of its steps counts.

    Cell types are those a step names and those an annotation discovered; so an analysis nobody asked for shows as
    ``not run``. Plots and talk are no analyses.

    Returns
    -------
    DataFrame
        history, cell_type, analysis, status (one of `STATUSES`), steps.
    """
    rows = []
    for history in histories:
        met: dict[tuple[str, str], list[str]] = {}
        types: dict[str, None] = {}
        analyses: dict[str, None] = {}
        for record in history.records:
            function = function_of(record)
            if function == "process_cells" and record["success"] is True:
                types |= dict.fromkeys(read_annotation(record).types)
            if function is None or function in PSEUDO_STEPS or options.is_plot(function):
                continue
            for cell_type in cell_types_of(record):
                types[cell_type] = analyses[function] = None
                met.setdefault((cell_type, function), []).append(verdict(record, options))
        rows += [
            {
                "history": history.label,
                "cell_type": cell_type,
                "analysis": analysis,
                "status": min(met.get((cell_type, analysis), [NOT_RUN]), key=STATUSES.index),
                "steps": len(met.get((cell_type, analysis), [])),
            }
            for cell_type in types
            for analysis in analyses
        ]
    return frame(rows, _COVERAGE_COLUMNS)


def loops(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """List runs of failures of one call: history, position, length, function_name, parameters, error."""
    rows = [{"history": h.label, **loop._asdict()} for h in histories for loop in find_loops(h.records, options)]
    return frame(rows, _LOOP_COLUMNS)


def routing(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Tell what the router would have done at each record; columns as `simulate_routing`, after `history`."""
    rows = [
        {"history": history.label, **row}
        for history in histories
        for row in simulate_routing(history.records, history.plan, options)
    ]
    return frame(rows, _ROUTING_COLUMNS)


def adherence(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Tell what became of each planned step, for histories whose plan was kept (dumped states and checkpoints)."""
    rows = [
        {"history": history.label, "function_name": step.call.function_name, **step._asdict()}
        for history in histories
        for step in plan_adherence(history.records, history.plan, options)
    ]
    return frame(rows, _ADHERENCE_COLUMNS)


def focus(histories: Sequence[History]) -> list[History]:
    """Choose the history a page looks at in detail: the one with the most records; none of none."""
    return [max(histories, key=lambda history: len(history.records))] if histories else []


def steps_of(steps: pd.DataFrame, histories: Sequence[History]) -> pd.DataFrame:
    """Give the rows of a frame that belong to the histories named."""
    wanted = {(history.source, history.thread) for history in histories}
    keep = [pair in wanted for pair in zip(steps["source"], steps["thread"], strict=True)]
    return steps[pd.Series(keep, index=steps.index, dtype=bool)]


def short_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of a frame of steps that a page has room for, with what went wrong in one of them."""
    wrong = steps["silent_failure_reason"].fillna(steps["error"]).fillna(steps["skip_reason"]).str.slice(0, 300)
    first = ["position", "step_index", "attempt", "function_name", "verdict"]
    last = ["result_type", "truncated", "cell_type"]
    return steps[first].assign(remark=wrong).join(steps[last])


def open_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Give the checks that did not pass or could not be made."""
    kept = checks[checks["severity"].isin(("warning", "error", "critical")).to_numpy()]
    return kept[["position", "function_name", "name", "severity", "label", "score", "explanation"]]


def each_record(histories: Sequence[History]) -> Iterator[tuple[History, int, StepRecord]]:
    """Go through the records of histories, each with its history and place."""
    return ((history, i, record) for history in histories for i, record in enumerate(history.records))


def _with_p(term: str | None, p: float | None) -> str:
    return f"{term or '?'} (p = {p:.2g})" if p is not None else str(term)


def ids_of(history: History, position: int, record: StepRecord) -> dict[str, Any]:
    """Make the columns of `IDS` for a record."""
    ids = {"history": history.label, "position": position, "function_name": function_of(record)}
    return ids | {"cell_type": cell_type_of(record)}
