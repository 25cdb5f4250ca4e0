"""What the command line prints of step histories."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from tabulate import tabulate

from evalkit.io import SourceError, StorageOptions, plain
from evalkit.io.output import check_output, write_frame
from evalkit.steps.evaluators import attempts, evaluate_record
from evalkit.steps.export import write_otlp
from evalkit.steps.format import DEFAULTS, Options
from evalkit.steps.histories import check_used, read_histories
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.parse import History
from evalkit.steps.report import print_step_evaluation
from evalkit.steps.table import StepHistories, load
from evalkit.steps.trajectory import loops_in
from evalkit.steps.verdicts import VERDICTS
from evalkit.steps.workflow import routes

if TYPE_CHECKING:
    import pandas as pd

SPANS = ".otlp.json"
MOST_NOTED = 10  # files of the ledger that are named
_STEP_HEADERS = ("#", "step", "function", "cell type", "verdict", "result", "cut", "note")
_CHECK_HEADERS = ("#", "step", "function", "check", "score", "label", "severity", "explanation")
_OVERVIEW_HEADERS = ("history", "records", "n", "reported", "confirmed", "silent", "failed", "loops", "cut")
Rows = list[dict[str, Any]]


def report_histories(
    sources: Sequence[str],
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    details: bool = False,
    checks: bool = False,
    step: int | None = None,
    output: str | None = None,
    options: Options = DEFAULTS,
) -> None:
    """Print the steps of one history, or the summary of several, and write them to a file where one is named.

    Parameters
    ----------
    sources : sequence of str
        Files and folders, also globs and URLs.
    jobs, storage_options
        As for `read_histories`.
    details : bool
        Print the steps of each history also where there are several, below the summary.
    checks : bool
        Print (and write) checks instead of steps; of several histories too.
    step : int, optional
        Print the report of this record of each history instead, counted from 1.
    output : str, optional
        A file in .csv, .json or .parquet; or .otlp.json for spans.

    Raises
    ------
    SourceError
        Where a source is not there, none holds a history, no history has record `step`, or the file can't be written.
    """
    if output and not output.lower().endswith(SPANS):
        check_output(output)
    if not any(sources):
        raise SourceError("no path was given (the path is empty)")
    if step is not None and not output:
        histories, ledger = read_histories(sources, options, jobs=jobs, storage_options=storage_options)
        check_used(sources, [entry._asdict() for entry in ledger.entries])
        _print_reports(histories, step, options)
        return
    logs = load(sources, options, jobs=jobs, storage_options=storage_options)
    if step is not None:
        _print_reports(logs.histories, step, options)
    else:
        click.echo(histories_text(logs, details=details, checks=checks, options=options))
    if output:
        _write(logs, output, checks, options)


def histories_text(
    logs: StepHistories, *, details: bool = False, checks: bool = False, options: Options = DEFAULTS
) -> str:
    """Write the summary of several histories, the steps or checks of one, and the ledger; see `report_histories`."""
    several = len(logs.histories) > 1
    parts = [overview_text(logs, options)] if several else []
    if details or checks or not several:
        rows = _by_history(logs, logs.steps)
        shown = _by_history(logs, logs.checks) if checks else rows
        parts += [
            _history_text(history, rows[i], _check_table(shown[i]) if checks else _step_table(rows[i]), logs, options)
            for i, history in enumerate(logs.histories)
        ]
    elif several:
        parts.append("The steps of each history: --details.")
    return "\n\n".join([*parts, _ledger_text(logs.ledger)])


def overview_text(logs: StepHistories, options: Options = DEFAULTS) -> str:
    """Write a row per history, the worst first, and one of all together."""
    from evalkit.steps import analysis

    rows = to_jsonable(analysis.overview(logs.steps, logs.histories, options))
    [together] = to_jsonable(analysis.total(logs.steps, logs.histories, options))
    align = ("left", *["right"] * (len(_OVERVIEW_HEADERS) - 1))
    cells = [_overview_cells(row) for row in (*rows, together)]
    table = tabulate(cells, _OVERVIEW_HEADERS, tablefmt="simple", disable_numparse=True, colalign=align).splitlines()
    lines = [
        f"{len(rows)} histories, {_counted(together['records'], 'record')}, the lowest confirmed success first",
        "",
        *table[:-1],
        table[1],
        table[-1],
        "",
        "confirmed: without silent failures. n: steps judged, all but skipped and unknown ones. Intervals: 95 %; that",
        f"of one history takes its steps as independent, that of all is robust to the {len(rows)} histories.",
    ]
    return "\n".join([*lines, *[f"Of all: {together['warning']}."] * bool(together["warning"])])


def _overview_cells(row: dict[str, Any]) -> list[str]:
    failed = row["failure"] + row["critical failure"]
    counts = (row["silent failure"], failed, row["loops"], row["cut"])
    rates = (_interval(row, f"{which}_") for which in ("reported", "confirmed"))
    return [plain(row["history"]), str(row["records"]), str(row["n"]), *rates, *map(str, counts)]


def _interval(row: dict[str, Any], prefix: str = "") -> str:
    estimate, low, high = (row[f"{prefix}{bound}"] for bound in ("estimate", "low", "high"))
    if estimate is None:
        return "–"
    return f"{estimate:.0%}" + (f" [{low:.0%}, {high:.0%}]" if low is not None and high is not None else "")


def _history_text(history: History, rows: Rows, table: str, logs: StepHistories, options: Options) -> str:
    return "\n".join([plain(history.label), "", table, "", *_summary(history, rows, logs, options)])


def _summary(history: History, rows: Rows, logs: StepHistories, options: Options) -> list[str]:
    from evalkit.steps import analysis, contents

    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
    lines = [_counted(len(rows), "record") + ": " + (", ".join(f"{n} {v}" for v, n in counts.items() if n) or "none")]
    rates = to_jsonable(analysis.success_rates(contents.steps_of(logs.steps, [history]), []))
    if rates:
        by = {r["success"]: f"{_interval(r)} ({round(r['estimate'] * r['n'])} of {r['n']})" for r in rates}
        lines.append(f"success: {by['reported']} reported, {by['confirmed']} confirmed")
    if cut := sum(row["truncated"] for row in rows):
        lines.append(f"cut: {cut} of {len(rows)} stored results, what was cut away is unknown")
    for loop in loops_in(history.records, options):
        function = plain(loop.function_name, 60)
        lines.append(f"loop: {loop.length} failures in a row of {function}, from record {loop.position + 1}")
    critical = [row["critical_failure"] for row in rows]
    reached = [row for row in routes(history.records, critical, history.plan, options) if row["reached"]]
    if reached:
        end = reached[-1]["from_step_evaluator"] or reached[-1]["from_executor"]
        rest = ", the rest would not have run" if len(reached) < len(rows) else ""
        lines.append(f"router: {end} after record {reached[-1]['position'] + 1}{rest}")
    return lines


def _by_history(logs: StepHistories, table: "pd.DataFrame") -> list[Rows]:
    """Group the rows of a frame by history, in the order of the histories."""
    rows: dict[str, Rows] = {history.label: [] for history in logs.histories}
    for row in to_jsonable(table):
        rows[row["history"]].append(row)
    return list(rows.values())


def _step_table(rows: Rows) -> str:
    return tabulate(map(_step_cells, rows), _STEP_HEADERS, tablefmt="simple", disable_numparse=True)


def _check_table(rows: Rows) -> str:
    return tabulate(map(_check_cells, rows), _CHECK_HEADERS, tablefmt="simple", disable_numparse=True)


def _step_cells(row: dict[str, Any]) -> list[str]:
    note = row["silent_failure_reason"] or row["error"] or row["skip_reason"] or row["summary"]
    step = f"{row['step_index'] + 1}" + (f" (attempt {row['attempt']})" if row["attempt"] > 1 else "")
    return [
        str(row["position"] + 1),
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
        str(row["position"] + 1),
        str(row["step_index"] + 1),
        plain(row["function_name"] or "–", 32),
        plain(row["name"], 28),
        score,
        plain(row["label"], 24),
        plain(row["severity"], 10),
        plain(row["explanation"], 60),
    ]


def _print_reports(histories: list[History], step: int, options: Options) -> None:
    found = [history for history in histories if step <= len(history.records)]
    if not found:
        longest = max(len(history.records) for history in histories)
        raise SourceError(f"there is no record {step}: the longest history has {longest}")
    for history in found:
        record, attempt = history.records[step - 1], attempts(history.records)[step - 1]
        tried = f", attempt {attempt}" if attempt > 1 else ""
        click.echo(f"{plain(history.label)}: record {step} of {len(history.records)}{tried}")
        print_step_evaluation(evaluate_record(record, attempt, options))


def _write(logs: StepHistories, output: str, checks: bool, options: Options) -> None:
    if not output.lower().endswith(SPANS):
        write_frame(logs.checks if checks else logs.steps, output)
        return
    judged = [
        [{**row, "checks": [check for check in found if check["position"] == row["position"]]} for row in rows]
        for rows, found in zip(_by_history(logs, logs.steps), _by_history(logs, logs.checks), strict=True)
    ]
    write_otlp(logs.histories, output, options, judged)


def _ledger_text(ledger: "pd.DataFrame") -> str:
    counts = ledger["status"].value_counts()
    seen = ", ".join(f"{counts.get(status, 0)} {status}" for status in ("used", "skipped", "failed"))
    noted = ledger[ledger["reason"] != ""]
    lines = [f"{_counted(len(ledger), 'file')}: {seen}"]
    lines += [f"  {e.status}: {plain(e.source)}: {plain(e.reason, 200)}" for e in noted.head(MOST_NOTED).itertuples()]
    return "\n".join([*lines, *[f"  … and {len(noted) - MOST_NOTED} more"] * (len(noted) > MOST_NOTED)])


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
