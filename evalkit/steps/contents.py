"""Frames of the contents of histories: enrichments, cell types, coverage, loops, plan, routing, changes."""

from collections import Counter
from collections.abc import Sequence
from itertools import product, zip_longest
from typing import Any

import pandas as pd

from evalkit.io import frame
from evalkit.stats import compare_all
from evalkit.steps.evaluation.evaluate import evaluate_history
from evalkit.steps.evaluation.evaluators import compare_names, expected_types
from evalkit.steps.evaluation.trajectory import NOT_RUN, STATUSES, find_loops, plan_adherence
from evalkit.steps.execution.workflow import simulate_routing
from evalkit.steps.format import NOT_JUDGED, PSEUDO_STEPS, Options, cell_types_of
from evalkit.steps.history.records import History, each_record
from evalkit.steps.history.results import UNKNOWN, read_annotation, read_enrichment
from evalkit.steps.history.values import to_jsonable
from evalkit.steps.table import ADHERENCE, ANNOTATIONS, COMPARISON, COVERAGE, ENRICHMENTS, LOOPS, ROUTING

MOST_PAIRS = 100_000  # of cell types and analyses of one history


def enrichments(histories: Sequence[History]) -> pd.DataFrame:
    """List the enrichment of each step by method (`ENRICHMENTS`); methods rest on different p-values."""
    rows = [
        {
            **ids,
            "method": name.upper(),
            "total_significant": method.total,
            "listed": len(method.terms),
            "top_terms": [
                f"{term or '?'} (p = {p:.2g})" if p is not None else str(term)
                for term, p in zip_longest(method.terms[:3], method.p_values[:3])
            ],
        }
        for ids, record in each_record(histories)
        if record["step"]["function_name"] == "perform_enrichment_analyses" and record["success"] is True
        for name, method in read_enrichment(record).methods.items()
    ]
    return frame(rows, ENRICHMENTS)


def annotations(histories: Sequence[History]) -> pd.DataFrame:
    """List the cell types that each annotation step discovered, and those expected (`ANNOTATIONS`)."""
    rows = []
    for ids, record in each_record(histories):
        if record["step"]["function_name"] != "process_cells" or record["success"] is not True:
            continue
        types, status, _, partial = read_annotation(record)
        expected = expected_types(record)
        missing, unexpected = compare_names(types, expected)
        row = {"status": status, "discovered": types, "expected": expected, "partial": partial}
        row["missing"] = [] if partial or status == UNKNOWN else missing
        rows.append(ids | row | {"unexpected": unexpected if expected else []})
    return frame(rows, ANNOTATIONS)


def coverage(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """Return for each cell type and analysis whether it was done: the best outcome of its steps counts.

    Cell types are those a step names and those an annotation discovered, so an analysis that was never requested shows
    as ``not run``; of more than `MOST_PAIRS` pairs only those that were run are listed. Plots and talk are not
    analyses. As in all functions here, options default to those of each history. Columns as in `COVERAGE`.
    """
    rows = []
    for history in histories:
        verdicts: dict[tuple[str, str], list[tuple[str, int | None]]] = {}
        types: dict[str, None] = {}
        evaluations, is_plot = evaluate_history(history, options), (options or history.options).is_plot
        for position, (record, evaluation) in enumerate(zip(history.records, evaluations, strict=True)):
            function = record["step"]["function_name"]
            if function == "process_cells" and record["success"] is True:
                types |= dict.fromkeys(read_annotation(record).types)
            if function is None or function in PSEUDO_STEPS or is_plot(function):
                continue
            for cell_type in cell_types_of(record):
                types[cell_type] = None
                verdicts.setdefault((cell_type, function), []).append((evaluation["verdict"], position))
        analyses = dict.fromkeys(function for _, function in verdicts)
        every = product(types, analyses) if len(types) * len(analyses) <= MOST_PAIRS else verdicts
        for cell_type, analysis in every:
            ended = verdicts.get((cell_type, analysis), [])
            best, first = min(ended or [(NOT_RUN, None)], key=lambda pair: STATUSES.index(pair[0]))
            row = {"history": history.label, "cell_type": cell_type, "analysis": analysis, "status": best}
            rows.append(row | {"steps": len(ended), "position": first})
    return frame(rows, COVERAGE)


def loops(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """List runs of failures of one call (`LOOPS`)."""
    rows = [{"history": h.label, **loop._asdict()} for h in histories for loop in find_loops(h, options)]
    return frame(rows, LOOPS)


def routing(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """Return what the router would have done at each record; columns as `simulate_routing`, after `history`."""
    rows = [{"history": h.label, **row} for h in histories for row in simulate_routing(h, options=options)]
    return frame(rows, ROUTING)


def adherence(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """Return the outcome of each planned step, for histories with a stored plan (dumped states and checkpoints)."""
    rows = [
        {"history": history.label, "function_name": step.call.function_name, **step._asdict()}
        for history in histories
        for step in plan_adherence(history, options=options)
    ]
    return frame(rows, ADHERENCE)


def _by_call(steps: pd.DataFrame) -> dict[tuple, dict[str, Any]]:
    """Index the last attempt of each run of a call by function, parameters and number of the run."""
    out: dict[tuple, dict[str, Any]] = {}
    runs: Counter[tuple] = Counter()
    for row in to_jsonable(steps):
        call = (row["function_name"], row["parameters"])
        runs[call] += row["attempt"] == 1
        out[(*call, runs[call])] = row
    return out


def _pair(key: tuple, a: dict | None, b: dict | None) -> dict[str, Any]:
    if a is None or b is None:
        change = "only in b" if a is None else "only in a"
    elif a["verdict"] == b["verdict"]:
        change = "same"
    else:
        change = "fixed" if b["verdict"] == "success" else "broken" if a["verdict"] == "success" else "changed"
    row = {"function_name": key[0], "cell_type": (a or b or {})["cell_type"], "run": key[2], "change": change}
    for side, step in (("a", a or {}), ("b", b or {})):
        row |= {f"{name}_{side}": step.get(name) for name in ("verdict", "truncated", "total_significant")}
        row[f"attempts_{side}"] = step.get("attempt")
    return row


def changes(steps: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Compare the steps of two histories, as `evalkit.steps.compare_histories`; an empty frame without a second one."""
    return compare_steps(steps, others) if len(others) else frame([], COMPARISON)


def compare_steps(*steps: pd.DataFrame) -> pd.DataFrame:
    """Compare two frames of steps, as `evalkit.steps.compare_histories`."""
    sides = list(map(_by_call, steps))
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return frame([_pair(key, *(side.get(key) for side in sides)) for key in keys], COMPARISON)


def paired_success(table: pd.DataFrame, a: str = "a", b: str = "b") -> pd.DataFrame:
    """Compare the confirmed success of two histories, `a` and `b` by name, on the steps that both ran.

    The table is that of `changes`. Returns one row as `evalkit.stats.compare_all`, or none if they share no step. The
    target is new steps like these.
    """
    judged = table[["verdict_a", "verdict_b"]].set_axis([a, b], axis="columns").dropna()
    success = (judged[~judged.isin(NOT_JUDGED).any(axis="columns")] == "success").astype("float64")
    rows = success.rename_axis("step").reset_index().melt("step", var_name="history", value_name="success")
    return compare_all(rows, "history", "step", "success")
