"""What the steps of histories hold, as frames: enrichments, cell types, coverage, loops, plan, routing."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd

from evalkit.io import Column, frame
from evalkit.io.frames import whole
from evalkit.steps.cell_types import UNKNOWN, read_annotation
from evalkit.steps.comparison import COMPARISON_COLUMNS, compare_histories
from evalkit.steps.format import DEFAULTS, PSEUDO_STEPS, Options, StepRecord
from evalkit.steps.functions import compare_names
from evalkit.steps.parse import History
from evalkit.steps.records import cell_type_of, cell_types_of, function_of
from evalkit.steps.results import read_enrichment
from evalkit.steps.trajectory import NOT_RUN, followed_plan, loops_in
from evalkit.steps.verdicts import CRITICAL, VERDICTS, verdict
from evalkit.steps.workflow import routes

STATUSES = (*VERDICTS, NOT_RUN)  # from best to worst

IDS = (
    Column("history", "str", "label of the history"),
    Column("position", "int", "place of the record in its history, from 0"),
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
    Column("history", "str", "label of the history"),
    Column("cell_type", "str", "cell type"),
    Column("analysis", "str", "function"),
    Column("status", "str", ", ".join(STATUSES)),
    Column("steps", "int", "steps of this analysis on this cell type, attempts counted"),
)
_LOOP_COLUMNS = (
    Column("history", "str", "label of the history"),
    Column("position", "int", "place of the first failure, from 0"),
    Column("length", "int", "failures in a row"),
    Column("function_name", "str", "function called"),
    Column("parameters", "object", "its parameters"),
    Column("error", "str", "the last error"),
)
_ROUTING_COLUMNS = (
    Column("history", "str", "label of the history"),
    Column("position", "int", "place of the record, from 0"),
    Column("step_index", "int?", "index of the step, from 0"),
    Column("function_name", "str", "function of the step"),
    Column("success", "bool?", "as recorded"),
    Column("critical_failure", "bool", "nothing that follows can work"),
    Column("attempts_at_step", "int", "times the step was tried without moving on"),
    Column("from_executor", "str", "where the executor's router leads"),
    Column("from_step_evaluator", "str", "where the evaluator's router leads"),
    Column("reached", "bool", "False where the router would have ended the run before"),
)
_ADHERENCE_COLUMNS = (
    Column("history", "str", "label of the history"),
    Column("position", "int", "place in the plan, from 0"),
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
                "missing": [] if partial or status == UNKNOWN else missing,
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
    rows = [{"history": h.label, **loop._asdict()} for h in histories for loop in loops_in(h.records, options)]
    return frame(rows, _LOOP_COLUMNS)


def routing(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Tell what the router would have done at each record; columns as `simulate_routing`, after `history`."""
    rows = []
    for history in histories:
        critical = [verdict(record, options) == CRITICAL for record in history.records]
        rows += [{"history": history.label, **row} for row in routes(history.records, critical, history.plan, options)]
    return frame(rows, _ROUTING_COLUMNS)


def adherence(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Tell what became of each planned step, for histories whose plan was kept (dumped states and checkpoints)."""
    rows = [
        {"history": history.label, "function_name": step.call.function_name, **step._asdict()}
        for history in histories
        for step in followed_plan(history.records, history.plan, options)
    ]
    return frame(rows, _ADHERENCE_COLUMNS)


def steps_of(steps: pd.DataFrame, histories: Sequence[History]) -> pd.DataFrame:
    """Give the rows of a frame that belong to the histories named."""
    wanted = {(whole(history.source), whole(history.thread)) for history in histories}
    pairs = zip(steps["source"].map(whole), steps["thread"].map(whole), strict=True)
    keep = [pair in wanted for pair in pairs]
    return steps[pd.Series(keep, index=steps.index, dtype=bool)]


def changes(steps: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Put the steps of two histories side by side, as `compare_histories`; nothing where there is no second one."""
    return compare_histories(steps, others) if len(others) else frame([], COMPARISON_COLUMNS)


def numbered(table: pd.DataFrame, position: str = "record") -> pd.DataFrame:
    """Count records and steps from 1, as pages and terminals do: `record` and `step` in place of positions from 0.

    Parameters
    ----------
    table : DataFrame
        With the columns `position` or `step_index`, or both.
    position : str
        What the positions are called.
    """
    names = {name: shown for name, shown in (("position", position), ("step_index", "step")) if name in table}
    return table.assign(**{name: table[name] + 1 for name in names}).rename(columns=names)


def short_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of steps that a page has room for; `remark` says what went wrong, or what was done."""
    wrong = steps["silent_failure_reason"].fillna(steps["error"]).fillna(steps["skip_reason"])
    remark = wrong.fillna(steps["summary"]).str.slice(0, 300)
    first = ["position", "step_index", "attempt", "function_name", "verdict"]
    last = ["result_type", "truncated", "cell_type"]
    return numbered(steps[first].assign(remark=remark).join(steps[last]))


def open_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Give the checks that did not pass or could not be made."""
    kept = checks[checks["severity"].isin(("warning", "error", "critical")).to_numpy()]
    return numbered(kept[["position", "function_name", "name", "severity", "label", "score", "explanation"]])


def each_record(histories: Sequence[History]) -> Iterator[tuple[History, int, StepRecord]]:
    """Go through the records of histories, each with its history and place."""
    return ((history, i, record) for history in histories for i, record in enumerate(history.records))


def _with_p(term: str | None, p: float | None) -> str:
    return f"{term or '?'} (p = {p:.2g})" if p is not None else str(term)


def ids_of(history: History, position: int, record: StepRecord) -> dict[str, Any]:
    """Make the columns of `IDS` for a record."""
    ids = {"history": history.label, "position": position, "function_name": function_of(record)}
    return ids | {"cell_type": cell_type_of(record)}
