"""What notebooks show of histories: sentences and tables made of frames, stored plots, reports of steps."""

import json
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from evalkit.display import show_details, show_sandboxed, show_table, show_text
from evalkit.io import frame
from evalkit.steps.analysis import each_record
from evalkit.steps.contents import paired_success
from evalkit.steps.evaluation.evaluate import evaluate_history, format_step_evaluation
from evalkit.steps.execution.findings import extract_key_findings_from_execution
from evalkit.steps.format import Options, truncated
from evalkit.steps.history.records import History, unique_labels
from evalkit.steps.history.results import content, read_plots
from evalkit.steps.table import PLOTS

SAMPLES = (
    "These samples were made for demonstration: a scripted plan, run on the 700 public blood cells that scanpy "
    "bundles. Tests, counts and errors are real; gene sets are stand-ins for GO, KEGG and Reactome, as their names say."
)
_MAX_HTML = 2_000_000  # characters; a larger page is named, not shown


def describe_source(histories: Sequence[History], name: str = "") -> str:
    """Say what was read, and of the samples that they are made."""
    shapes = Counter(record["shape"] for history in histories for record in history.records)
    parts = ", ".join(f"{n} in shape {shape}" for shape, n in sorted(shapes.items())) or "none"
    noun = "history" if len(histories) == 1 else "histories"
    text = f"{len(histories)} {noun} with {shapes.total()} records of steps: {parts}."
    return f"{text} {SAMPLES}" if str(name).startswith("samples:") else text


def describe_headline(histories: Sequence[History]) -> str:
    """Say what the share of confirmed success is a share of."""
    text = "steps that succeeded, without silent failures"
    return text if len(histories) == 1 else f"{text}, in {len(histories)} histories"


def describe_focus(histories: Sequence[History], one: Sequence[History], chosen: str = "") -> str:
    """Say which history the sections about one look at, and how it was chosen (`analysis.focus`)."""
    if not one:
        return "There is no history to look at."
    if len(histories) == 1:
        return f"This is {one[0].label}, the only history."
    why = "which the parameter focus names" if chosen else "the one with the lowest confirmed success"
    hint = "" if chosen else " The parameter focus names another by its label."
    return f"Of {len(histories)} histories this is {one[0].label}, {why}.{hint}"


def describe_routing(table: pd.DataFrame) -> str:
    """Say how the router would have ended the run; `table` as `contents.routing` gives it, of one history."""
    if table.empty:
        return "No records to route."
    last = table[table["reached"]].iloc[-1]
    end = last["from_step_evaluator"] if last["from_executor"] == "step_evaluate" else last["from_executor"]
    why = {
        "abort": "critical failure" if last["critical_failure"] else "the step was tried too often",
        "complete": "the last step was reached",
        "continue": "the history ends before the plan does",
    }[end]
    left = len(table) - int(table["reached"].sum())
    rest = f" {left} records after it would not have been run." if left else ""
    return f"After record {last['position'] + 1} ({last['function_name']}) the router says {end}: {why}.{rest}"


def describe_changes(table: pd.DataFrame, a: Sequence[History], b: Sequence[History]) -> str:
    """Say how two histories differ; `table` as `contents.changes` gives it. Empty where there is nothing to compare."""
    if not a or not b:
        return ""
    counts = table["change"].value_counts()
    kinds = ("same", "fixed", "broken", "changed", "only in a", "only in b")
    numbers = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in kinds)
    names = [a[0].label, b[0].label]
    if names[0] == names[1]:  # of two loads, each of which has labels of its own
        keys = [(a[0].source, a[0].thread), (b[0].source, b[0].thread)]
        names = [unique_labels(keys)[key] for key in keys]
    paired = paired_success(table, *names)["sentence"].str.replace("task", "step")
    return " ".join([f"a: {names[0]}; b: {names[1]}. {len(table)} steps: {numbers}.", *paired])


def numbered(table: pd.DataFrame, position: str = "record") -> pd.DataFrame:
    """Count records and steps from 1, as pages and terminals do: `record` and `step` in place of positions from 0."""
    names = {name: shown for name, shown in (("position", position), ("step_index", "step")) if name in table}
    return table.assign(**{name: table[name] + 1 for name in names}).rename(columns=names)


def short_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of steps that a page has room for; `remark` says what went wrong, or what was done."""
    wrong = steps["silent_failure_reason"].fillna(steps["error"]).fillna(steps["skip_reason"])
    remark = wrong.fillna(steps["summary"]).str.slice(0, 300)
    first = ["position", "step_index", "attempt", "function_name", "verdict"]
    last = ["result_type", "truncated", "cell_type", "history"]
    return numbered(steps[first].assign(remark=remark).join(steps[last]))


def with_runs(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the run of each row's history and, of a row about a record, the turn in which its result stands.

    Parameters
    ----------
    table : DataFrame
        With history and, counted from 1, record.
    runs : DataFrame
        One row per history.

    Returns
    -------
    DataFrame
        With run_id and turn; `history` goes where each row is about a record of it.
    """
    of_history = runs.set_index("history")
    out = table.assign(run_id=table["history"].map(of_history["run_id"]))
    if "record" not in table:
        return out
    has_thread = table["history"].map(of_history["thread"].fillna("") != "").astype(int)
    return out.assign(turn=2 * table["record"] + has_thread).drop(columns="history")


def open_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Give the checks that did not pass or could not be made."""
    kept = checks[checks["severity"].isin(("warning", "error", "critical")).to_numpy()]
    return numbered(kept[["position", "function_name", "name", "severity", "label", "score", "explanation"]])


def show_plots(histories: Sequence[History], limit: int = 6) -> None:
    """Show the stored plots of histories: a table of all, and the first in sandboxed frames.

    Only HTML that was not cut is shown, and only inside frames that run no script and load nothing, `limit` at most.
    """
    plots = [(ids, record) for ids, record in each_record(histories) if record["result_type"] == "visualization"]
    rows = [ids | read_plots(record)._asdict() for ids, record in plots if record["success"] is True]
    if not rows:
        return
    show_table(numbered(frame(rows, PLOTS)).drop(columns="history"), "Stored plots")
    shown = 0
    for ids, record in plots:
        if truncated(record) or read_plots(record).type not in ("html", "multiple_plots"):
            continue
        for title, page in _pages(content(record)):
            if shown == limit:
                show_text(f"Only the first {limit} plots are shown.")
                return
            if len(page) <= _MAX_HTML:
                show_sandboxed(
                    page, f"{title or ids['function_name']}, record {ids['position'] + 1} of {ids['history']}"
                )
                shown += 1


def _pages(value: object) -> list[tuple[str, str]]:
    """Give title and HTML of each plot in a result."""
    if isinstance(value, dict):
        plots = value.get("plots")
        entries = plots if isinstance(plots, list) else [value]
        pairs = [(entry.get("title"), entry.get("html")) for entry in entries if isinstance(entry, dict)]
        return [(str(title or ""), page) for title, page in pairs if isinstance(page, str)]
    return [("", value)] if isinstance(value, str) else []


def show_step_reports(histories: Sequence[History], options: Options | None = None) -> None:
    """Show the report of every step of histories, folded."""
    for history in histories:
        reports = []
        for position, evaluation in enumerate(evaluate_history(history, options), 1):
            place = f"{position} of {len(history.records)}"
            title = f"{place}: {evaluation['function_name']} – {evaluation['verdict']}"
            reports.append((title, format_step_evaluation(evaluation)))
        show_details(f"{history.label}: the report of every step", reports)


def show_findings(histories: Sequence[History], options: Options | None = None) -> None:
    """Show the key findings of histories, folded by kind."""
    for history in histories:
        found = extract_key_findings_from_execution(history, options).items()
        texts = [
            (f"{kind.replace('_', ' ')}, {len(findings)}", json.dumps(findings, indent=2, ensure_ascii=False))
            for kind, findings in found
        ]
        show_details(f"{history.label}: key findings", texts)
