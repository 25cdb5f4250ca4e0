"""Notebook output for histories: sentences and tables from frames, stored plots, reports of steps."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from evalkit._words import counted_noun
from evalkit.display import show_details, show_sandboxed, show_table, show_text
from evalkit.display.words import pair_text
from evalkit.io import frame
from evalkit.kinds import Example, Finding
from evalkit.kinds.findings import MOST_EXAMPLES, files_of
from evalkit.steps import analysis
from evalkit.steps.format import CRITICAL, NOT_JUDGED, SILENT, Options, truncated
from evalkit.steps.judge import History, as_history, each_record, format_step_evaluation
from evalkit.steps.normalise import unique_labels
from evalkit.steps.storage import extract_key_findings_from_execution
from evalkit.steps.table import PLOTS

SAMPLES = (
    "These samples were made for demonstration: a scripted plan, run on the 700 public blood cells that scanpy "
    "bundles. Tests, counts and errors are real; gene sets are stand-ins for GO, KEGG and Reactome, as their names say."
)
SHAPES = {
    "A": "nested, without types (as agents kept them in memory before)",
    "B": "with types and whole results",
    "C": "flat, with results cut at 500 characters (as agents wrote them to disk before)",
}
_MAX_HTML = 2_000_000  # characters; a larger page is named, not shown


def describe_source(histories: Sequence[History], name: str = "") -> str:
    """Describe what was read, and note that samples are made up."""
    shapes = Counter(record["shape"] for history in histories for record in history.records)
    counts = ", ".join(f"{n} {SHAPES[shape]}" for shape, n in sorted(shapes.items())) or "none"
    text = f"{counted_noun(len(histories), 'history')} with {shapes.total()} records of steps: {counts}."
    return f"{text} {SAMPLES}" if str(name).startswith("samples:") else text


def answer_table(steps: pd.DataFrame, histories: Sequence[History]) -> pd.DataFrame:
    """Return the confirmed and the reported success of each history, the lowest first, and what failed in it."""
    table = analysis.overview(steps, histories)
    confirmed = {f"confirmed_{end}": end for end in ("estimate", "low", "high")}
    kept = ["history", *confirmed, "reported_estimate", "reported_low", "reported_high", "n", SILENT, "loops", "cut"]
    return table[kept].rename(columns=confirmed)


def describe_headline(histories: Sequence[History]) -> str:
    """Describe the denominator of the share of confirmed success."""
    text = "steps that succeeded, without silent failures"
    return text if len(histories) == 1 else f"a history's {text}: the mean of {len(histories)} histories"


def describe_focus(histories: Sequence[History], one: Sequence[History], chosen: str = "") -> str:
    """Describe which history is shown in detail, and how it was chosen (`analysis.focus`)."""
    if not one:
        return "There is no history to look at."
    if len(histories) == 1:
        return f"This is {one[0].label}, the only history."
    which = f"Of {len(histories)} histories this is {one[0].label}"
    if chosen:
        return f"{which}, which the parameter focus names."
    return f"{which}, the one with the lowest confirmed success. The parameter focus names another by its label."


def describe_routing(table: pd.DataFrame) -> str:
    """Describe how the router would have ended the run; `table` as `analysis.routing` returns it, of one history."""
    if table.empty:
        return "No records to route."
    reached = table[table["reached"]]
    last = reached.iloc[-1]
    end = last["from_step_evaluator"] if last["from_executor"] == "step_evaluate" else last["from_executor"]
    why = {
        "abort": "critical failure" if last["critical_failure"] else "the step was tried too often",
        "complete": "the last step was reached",
        "continue": "the history ends before the plan does",
    }[end]
    left = len(table) - len(reached)
    rest = f" {left} records after it would not have been run." if left else ""
    return f"After record {last['position'] + 1} ({last['function_name']}) the router says {end}: {why}.{rest}"


def describe_changes(table: pd.DataFrame, a: Sequence[History], b: Sequence[History]) -> str:
    """Describe how two histories differ, given the `table` of `analysis.changes`; empty without anything to compare."""
    if not a or not b:
        return ""
    counts = table["change"].value_counts()
    kinds = ("same", "fixed", "broken", "changed", "only in a", "only in b")
    numbers = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in kinds)
    names = [a[0].label, b[0].label]
    if names[0] == names[1]:  # from two loads, each with its own labels
        names = list(unique_labels((history.source, history.thread) for history in (a[0], b[0])).values())
    paired = [pair_text(row, "step") for row in analysis.paired_success(table, *names).to_dict("records")]
    return " ".join([f"a: {names[0]}; b: {names[1]}. {len(table)} steps: {numbers}.", *paired])


def numbered(table: pd.DataFrame, position: str = "record") -> pd.DataFrame:
    """Number records and steps from 1 for display: `record` and `step` replace positions from 0."""
    names = {name: shown for name, shown in (("position", position), ("step_index", "step")) if name in table}
    return table.assign(**{name: table[name] + 1 for name in names}).rename(columns=names)


def short_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of steps that fit on a page; `remark` says what went wrong, or what was done."""
    remarks = steps[["silent_failure_reason", "error", "skip_reason", "summary"]]
    first = ["position", "step_index", "attempt", "function_name", "verdict"]
    last = ["result_type", "truncated", "cell_type", "history"]
    return numbered(
        steps[first].assign(remark=remarks.bfill(axis="columns").iloc[:, 0].str.slice(0, 300)).join(steps[last])
    )


def findings(
    steps: pd.DataFrame, histories: Sequence[History], ledger: pd.DataFrame, runs: pd.DataFrame | None = None
) -> list[Finding]:
    """Describe how many steps succeeded, how many only reported it, what failed, and what the records lost.

    With `runs`, one row per history, findings name examples: the first step of each function.
    """

    def examples(some: pd.DataFrame) -> tuple[Example, ...]:
        if runs is None:
            return ()
        first = with_runs(analysis.with_labels(some).drop_duplicates("function_name").head(MOST_EXAMPLES), runs)
        rows = zip(*(first[name] for name in ("position", "function_name", "run_id", "turn")), strict=True)
        return tuple(Example(f"record {place + 1}, {function}", run, turn=turn) for place, function, run, turn in rows)

    verdicts, rates = steps["verdict"], analysis.success_rates(steps, []).set_index("success")
    results = [Finding("no_steps", "Success", {"n_histories": len(histories)})]
    if analysis.CONFIRMED in rates.index:
        silent = int(verdicts.eq(SILENT).sum())
        wrong = verdicts.eq(SILENT) if silent else ~verdicts.isin(("success", *NOT_JUDGED))
        values: dict[str, Any] = {
            "n": int(rates["n"][analysis.CONFIRMED]),
            "n_histories": len(histories),
            "silent": silent,
        }
        values |= {which: rates.loc[which].to_dict() for which in (analysis.CONFIRMED, analysis.REPORTED)}
        results = [Finding("steps", "Success", values, examples(steps[wrong]))]
    if len(histories) > 1 and len(rates):
        lowest = analysis.overview(steps, histories).iloc[0]
        row = {bound: lowest[f"confirmed_{bound}"] for bound in ("estimate", "low", "high")}
        row |= {"n": lowest["n"], "history": lowest["history"]}
        run_ids: Iterable[str] = [] if runs is None else runs.loc[runs["history"].eq(row["history"]), "run_id"]
        named = tuple(Example(row["history"], run_id) for run_id in run_ids)
        results.append(Finding("lowest", "Success", {"row": row}, named))
    if len(kinds := analysis.failure_kinds(steps)):
        first = list(kinds.head(2)[["kind", "steps"]].itertuples(index=False, name=None))
        values = {"n": int(kinds["steps"].sum()), "ways": len(kinds), "first": first}
        failed = steps[verdicts.isin(("failure", CRITICAL)).to_numpy()]
        results.append(Finding("failures", "Failures", values, examples(failed)))
    successful = analysis.reporting_success(steps)
    if len(cut := successful[successful["truncated"]]):
        results.append(Finding("cut", "What was cut", {"cut": len(cut), "n": len(successful)}, examples(cut)))
    return [*results[:4], Finding("files", "Data quality", {"files": files_of(ledger)})]


def with_runs(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the run of each row's history and, for a row about a record, the turn of its result.

    The table has history and perhaps position (from 0) or record (from 1); `runs` has one row per history. If each row
    is about a record, the result has no `history`.
    """
    of_history = runs.set_index("history")
    out = table.assign(run_id=table["history"].map(of_history["run_id"]))
    if not {"record", "position"} & set(table):
        return out
    record = table["record"] if "record" in table else table["position"] + 1
    has_thread = table["history"].map(of_history["thread"].fillna("") != "").astype(int)
    return out.assign(turn=2 * record + has_thread, run_id=out["run_id"].where(record.notna())).drop(columns="history")


def open_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Return the checks that did not pass or could not be done."""
    selected = checks[checks["severity"].isin(("warning", "error", "critical")).to_numpy()]
    return numbered(selected[["position", "function_name", "name", "severity", "label", "score", "explanation"]])


def show_plots(histories: Sequence[History], limit: int = 6) -> None:
    """Show the stored plots of histories: a table of all, and the first few in sandboxed frames.

    Only HTML that was not cut is shown, only in frames that run no script and load nothing, and at most `limit` plots.
    """
    plots = [one for one in each_record(histories) if one[1]["result_type"] == "visualization"]
    rows = [ids | reading.found for ids, record, reading in plots if record["success"] is True]
    if not rows:
        return
    show_table(numbered(frame(rows, PLOTS)).drop(columns="history"), "Stored plots")
    pages = list[tuple[str, str]]()
    for ids, record, reading in plots:
        if truncated(record) or reading.found.get("type") not in ("html", "multiple_plots"):
            continue
        for plot in reading.whole.get("plots") or [reading.value]:
            title, page = (plot.get("title"), plot.get("html")) if isinstance(plot, dict) else (None, plot)
            if isinstance(page, str) and len(page) <= _MAX_HTML:
                pages.append(
                    (page, f"{title or ids['function_name']}, record {ids['position'] + 1} of {ids['history']}")
                )
    for page, title in pages[:limit]:
        show_sandboxed(page, title)
    if len(pages) > limit:
        show_text(f"Only the first {limit} plots are shown.")


def show_step_reports(histories: Sequence[History], options: Options | None = None) -> None:
    """Show the report of every step of histories, folded."""
    for history in histories:
        n, reports = len(history.records), []
        for place, evaluation in enumerate(as_history(history, options).evaluations, 1):
            title = f"{place} of {n}: {evaluation['function_name']} – {evaluation['verdict']}"
            reports.append((title, format_step_evaluation(evaluation)))
        show_details(f"{history.label}: the report of every step", reports)


def show_findings(histories: Sequence[History], options: Options | None = None) -> None:
    """Show the key findings of histories, folded by kind."""
    for history in histories:
        texts = [
            (f"{kind.replace('_', ' ')}, {len(findings)}", json.dumps(findings, indent=2, ensure_ascii=False))
            for kind, findings in extract_key_findings_from_execution(history, options).items()
        ]
        show_details(f"{history.label}: key findings", texts)
