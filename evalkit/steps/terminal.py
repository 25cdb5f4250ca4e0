"""What the command line prints of step histories."""

import os
from collections.abc import Sequence
from typing import Any

import click
from tabulate import tabulate

from evalkit.io import Ledger, SourceError, StorageOptions, plain
from evalkit.io.output import check_output, write_frame
from evalkit.steps.evaluators import evaluate_history
from evalkit.steps.export import write_otlp
from evalkit.steps.format import DEFAULTS, Options
from evalkit.steps.histories import read_histories
from evalkit.steps.parse import History
from evalkit.steps.report import print_step_evaluation
from evalkit.steps.table import evaluated_rows
from evalkit.steps.trajectory import find_loops
from evalkit.steps.verdicts import VERDICTS
from evalkit.steps.workflow import simulate_routing

SPANS = ".otlp.json"
_STEP_HEADERS = ("#", "step", "function", "cell type", "verdict", "result", "cut", "note")
_CHECK_HEADERS = ("#", "step", "function", "check", "score", "label", "severity", "explanation")


def report_histories(
    sources: Sequence[str],
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    checks: bool = False,
    step: int | None = None,
    output: str | None = None,
    options: Options = DEFAULTS,
) -> None:
    """Print the steps of histories, and write them to a file where one is named.

    Parameters
    ----------
    sources : sequence of str
        Files and folders, also globs and URLs.
    jobs, storage_options
        As for `read_histories`.
    checks : bool
        Print (and write) checks instead of steps.
    step : int, optional
        Print the report of this record of each history instead.
    output : str, optional
        A file in .csv, .json or .parquet; or .otlp.json for spans.

    Raises
    ------
    SourceError
        Where a source is not there, none holds a history, no history has record `step`, or the file can't be written.
    """
    if output and not output.lower().endswith(SPANS):
        check_output(output)
    histories, ledger = read_histories(sources, options, jobs=jobs, storage_options=storage_options)
    if not histories:
        raise SourceError(_nothing(sources, ledger))
    if step is None:
        click.echo("\n\n".join(history_text(history, checks=checks, options=options) for history in histories))
        click.echo(f"\n{_ledger_text(ledger)}")
    else:
        _print_reports(histories, step, options)
    if output:
        _write(histories, output, checks, options)


def history_text(history: History, *, checks: bool = False, options: Options = DEFAULTS) -> str:
    """Write a history as a table of its steps or checks, with its verdicts, loops and the router's decision."""
    step_rows, check_rows = evaluated_rows(history, options)
    rows = [_check_cells(row) for row in check_rows] if checks else [_step_cells(row) for row in step_rows]
    headers = _CHECK_HEADERS if checks else _STEP_HEADERS
    lines = [plain(history.label), "", tabulate(rows, headers, tablefmt="simple", disable_numparse=True), ""]
    return "\n".join([*lines, *_summary(history, step_rows, options)])


def _summary(history: History, rows: list[dict[str, Any]], options: Options) -> list[str]:
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
    lines = [f"{len(rows)} records: " + (", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n) or "none")]
    judged = len(rows) - counts["skipped"] - counts["unknown"]
    if judged:
        reported = counts["success"] + counts["silent failure"]
        lines.append(f"success: {_rate(reported, judged)} reported, {_rate(counts['success'], judged)} confirmed")
    if cut := sum(row["truncated"] for row in rows):
        lines.append(f"cut: {cut} of {len(rows)} stored results, what was cut away is unknown")
    for loop in find_loops(history.records, options):
        function = plain(loop.function_name, 60)
        lines.append(f"loop: {loop.length} failures in a row of {function}, from record {loop.position}")
    reached = [row for row in simulate_routing(history.records, history.plan, options) if row["reached"]]
    if reached:
        end = reached[-1]["from_step_evaluator"] or reached[-1]["from_executor"]
        rest = ", the rest would not have run" if len(reached) < len(rows) else ""
        lines.append(f"router: {end} after record {reached[-1]['position']}{rest}")
    return lines


def _rate(k: int, n: int) -> str:
    from evalkit.stats import proportion_interval

    found = proportion_interval(k, n)
    return f"{found.estimate:.0%} [{found.low:.0%}, {found.high:.0%}] ({k} of {n})"


def _step_cells(row: dict[str, Any]) -> list[str]:
    summary = "" if row["result_type"] == "visualization" else row["result_summary"]
    note = row["silent_failure_reason"] or row["error"] or row["skip_reason"] or summary
    step = f"{row['step_index']}" + (f" (attempt {row['attempt']})" if row["attempt"] > 1 else "")
    return [
        str(row["position"]),
        step,
        plain(row["function_name"] or "–", 32),
        plain(row["cell_type"] or "–", 24),
        row["verdict"],
        row["result_type"],
        "cut" if row["truncated"] else "",
        plain(note or "", 60),
    ]


def _check_cells(row: dict[str, Any]) -> list[str]:
    score = "–" if row["score"] is None else f"{row['score']:.2f}"
    return [
        str(row["position"]),
        str(row["step_index"]),
        plain(row["function_name"] or "–", 32),
        plain(row["name"], 28),
        score,
        plain(row["label"], 24),
        plain(row["severity"], 10),
        plain(row["explanation"], 60),
    ]


def _print_reports(histories: list[History], step: int, options: Options) -> None:
    found = [history for history in histories if step < len(history.records)]
    if not found:
        longest = max(len(history.records) for history in histories)
        raise SourceError(f"there is no record {step}: the longest history has {longest}, counted from 0")
    for history in found:
        click.echo(plain(history.label))
        print_step_evaluation(evaluate_history(history.records, options)[step])


def _write(histories: list[History], output: str, checks: bool, options: Options) -> None:
    if output.lower().endswith(SPANS):
        write_otlp(histories, output, options)
        return
    from evalkit.io import frame
    from evalkit.steps.table import CHECK_COLUMNS, STEP_COLUMNS

    rows = [row for history in histories for row in evaluated_rows(history, options)[checks]]
    write_frame(frame(rows, CHECK_COLUMNS if checks else STEP_COLUMNS), output)


def _nothing(sources: Sequence[str], ledger: Ledger) -> str:
    if len(ledger.entries) == 1:
        entry = ledger.entries[0]
        return f"{entry.source}: {entry.reason}"
    named = ", ".join(os.fspath(source) for source in sources if source)
    if not named:
        return "no path was given (the path is empty)"
    return f"{named}: no execution history in it ({ledger.summary()})"


def _ledger_text(ledger: Ledger) -> str:
    noted = [entry for entry in ledger.entries if entry.reason]
    return "\n".join([ledger.summary(), *(f"  {e.status}: {plain(e.source)}: {plain(e.reason, 200)}" for e in noted)])
