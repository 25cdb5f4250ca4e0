"""What commands show of histories: summaries, steps and checks; and the files they write."""

from collections.abc import Callable, Mapping
from typing import Any

from tabulate import tabulate

from evalkit._words import counted_noun, format_interval
from evalkit.io import SourceError, plain, summarise, write_frame
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Snapshot
from evalkit.kinds.terminal import fit_table, unmeasured_lines
from evalkit.steps import analysis
from evalkit.steps.format import CRITICAL, SILENT, VERDICTS
from evalkit.steps.judge import History, find_loops, format_step_evaluation
from evalkit.steps.normalise import to_jsonable
from evalkit.steps.workflow import simulate_routing

MOST_NOTED = 10  # files of the ledger that are named
IDLE = 60.0  # seconds after which a history that has not changed counts as finished
_OVERVIEW = ("history", "records", "n", "reported", "confirmed", "silent", "failed", "loops", "cut")
_NOTES = ("silent_failure_reason", "error", "skip_reason", "summary")
_SIMPLE: dict[str, Any] = {"tablefmt": "simple", "disable_numparse": True}
_CELLS: dict[str, Callable[[dict[str, Any]], str]] = {
    "#": lambda row: str(row["position"] + 1),
    "step": lambda row: str(row["step_index"] + 1),
    "function": lambda row: plain(row["function_name"] or "–", 32),
}
_STEP_CELLS = _CELLS | {
    "step": lambda row: f"{row['step_index'] + 1}" + (f" (attempt {row['attempt']})" if row["attempt"] > 1 else ""),
    "cell type": lambda row: plain(row["cell_type"] or "–", 24),
    "verdict": lambda row: row["verdict"],
    "result": lambda row: row["result_type"],
    "cut": lambda row: "cut" if row["truncated"] else "",
    "note": lambda row: plain(next(filter(None, map(row.get, _NOTES)), ""), 60),
}
_CHECK_CELLS = _CELLS | {
    "check": lambda row: plain(row["name"], 28),
    "score": lambda row: "–" if row["score"] is None else f"{row['score']:.2f}",
    "label": lambda row: plain(row["label"], 24),
    "severity": lambda row: plain(row["severity"], 10),
    "explanation": lambda row: plain(row["explanation"], 60),
}
_EXPLAINED = (
    "confirmed: without silent failures. n: steps judged, all but skipped and unknown ones. Intervals: 95 %; that\n"
    "of one history takes its steps as independent. Of all: the mean of the shares of the {}, which weigh\n"
    "equally."
)


def describe(logs: Logs, views: Mapping[str, Any]) -> str:
    """Format the summary of several histories, the steps or checks of one, or the report of a step, and the ledger.

    Of `views`: details (also the steps of each of several histories), checks (instead of steps), step (instead, the
    report of this record of each history, counted from 1). Raises SourceError if no history has record `step`.
    """
    if views.get("step"):
        return _reports(logs.histories, views["step"])
    several, checks = len(logs.histories) > 1, views.get("checks")
    rows = to_jsonable(analysis.overview(logs.steps, logs.histories, logs.histories[0].options))
    sections = [_overview(logs, rows)] if several else []
    if views.get("details") or checks or not several:
        shown = dict(iter((logs.checks if checks else logs.steps).groupby("history")))
        cells = _CHECK_CELLS if checks else _STEP_CELLS
        counted = {row["history"]: row for row in rows}
        for history in logs.histories:
            listed = to_jsonable(shown[history.label]) if history.records else []
            table = tabulate([[cell(row) for cell in cells.values()] for row in listed], [*cells], **_SIMPLE)
            lines = _summary(history, counted[history.label])
            sections.append("\n".join([plain(history.label), "", table, "", *lines]))
    elif several:
        sections.append("The steps of each history: --details.")
    noted = logs.ledger[logs.ledger["reason"] != ""]
    files = [summarise(logs.ledger["status"])]
    files += [f"  {e.status}: {plain(e.source)}: {plain(e.reason, 200)}" for e in noted.head(MOST_NOTED).itertuples()]
    more = f"  … {len(noted) - MOST_NOTED} more; evalkit.load(…).ledger lists them all"
    files += [more] * (len(noted) > MOST_NOTED)
    return "\n\n".join([*sections, "\n".join(files)])


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format one row per history, the lowest confirmed success first; one that changed recently is running."""
    logs = snapshot.logs
    idle = IDLE if snapshot.idle is None else snapshot.idle
    running = {history.label for history in logs.histories if snapshot.unchanged_for(history.source) < idle}
    cells = []
    for row in to_jsonable(analysis.overview(logs.steps, logs.histories)):
        state = "running" if row["history"] in running else "finished"
        cells.append(dict(zip(_OVERVIEW, _overview_cells(row), strict=True)) | {"state": state})
    table = fit_table(cells, spare=("cut", "loops", "silent", "failed"), width=snapshot.width)
    rate = analysis.confirmed_success(logs.steps)
    confirmed = f", confirmed {format_interval(*rate[:3])}" if rate.n else ""
    total = f"total: {so_far(len(cells), snapshot.expected)} histories, {len(running)} running{confirmed}"
    ended = not running and not snapshot.being_written
    return f"{table}\n\n{total}", snapshot.expected is not None and len(cells) >= snapshot.expected and ended


def write(logs: Logs, views: Mapping[str, Any], path: str) -> None:
    """Write steps or checks as a table."""
    write_frame(logs.checks if views.get("checks") else logs.steps, path)


def _overview(logs: Logs, rows: list[dict[str, Any]]) -> str:
    """Format the rows of histories, the worst first, and one of all together."""
    [together] = to_jsonable(analysis.total(logs.steps, logs.histories, logs.histories[0].options))
    align = ("left", *["right"] * (len(_OVERVIEW) - 1))
    cells = [_overview_cells(row) for row in (*rows, together)]
    table = tabulate(cells, _OVERVIEW, **_SIMPLE, colalign=align).splitlines()
    weighing = f"{len(rows)} histories" if "cluster" not in logs.runs else "clusters of histories"
    lines = [
        f"{len(rows)} histories, {counted_noun(together['records'], 'record')}, the lowest confirmed success first"
    ]
    lines += ["", *table[:-1], table[1], table[-1], "", _EXPLAINED.format(weighing)]
    lines += [f"Of all: {together['warning']}."] * bool(together["warning"])
    lines += unmeasured_lines(logs.runs, [], logs.kind, "score")
    lines += [f"  not measured: {plain(row['history'])}: {row['warning']}" for row in rows if not row["n"]]
    return "\n".join(lines)


def _overview_cells(row: dict[str, Any]) -> list[str]:
    counts = (row[SILENT], row["failure"] + row[CRITICAL], row["loops"], row["cut"])
    return [plain(row["history"]), str(row["records"]), str(row["n"]), *_rates(row), *map(str, counts)]


def _rates(row: dict[str, Any]) -> list[str]:
    """Format the reported and the confirmed success of a history."""
    rates = [[row[f"{which}_{bound}"] for bound in ("estimate", "low", "high")] for which in ("reported", "confirmed")]
    return [format_interval(*rate) for rate in rates]


def _summary(history: History, row: dict[str, Any]) -> list[str]:
    """Describe a history below its steps: how they ended, by its row of the overview, its loops and its end."""
    ended = ", ".join(f"{row[verdict]} {verdict}" for verdict in VERDICTS if row[verdict])
    lines = [f"{counted_noun(row['records'], 'record')}: {ended or 'none'}"]
    if n := row["n"]:
        (reported, confirmed), succeeded = _rates(row), row["success"]
        lines.append(
            f"success: {reported} ({succeeded + row[SILENT]} of {n}) reported, "
            f"{confirmed} ({succeeded} of {n}) confirmed"
        )
    if row["cut"]:
        lines.append(f"cut: {row['cut']} of {row['records']} stored results, what was cut away is unknown")
    for loop in find_loops(history):
        function = plain(loop.function_name, 60)
        lines.append(f"loop: {loop.length} failures in a row of {function}, from record {loop.position + 1}")
    if reached := [row for row in simulate_routing(history) if row["reached"]]:
        end = reached[-1]["from_step_evaluator"] or reached[-1]["from_executor"]
        rest = ", the rest would not have run" if len(reached) < row["records"] else ""
        lines.append(f"router: {end} after record {reached[-1]['position'] + 1}{rest}")
    return lines


def _reports(histories: list[History], step: int) -> str:
    """Format the report of one record of each history that has it."""
    lines = []
    for history in (history for history in histories if step <= len(history.records)):
        evaluation = history.evaluations[step - 1]
        again = f", attempt {evaluation['attempt']}" if evaluation["attempt"] > 1 else ""
        lines.append(f"{plain(history.label)}: record {step} of {len(history.records)}{again}")
        lines.append(format_step_evaluation(evaluation))
    if not lines:
        longest = max(len(history.records) for history in histories)
        raise SourceError(f"there is no record {step}: the longest history has {longest}")
    return "\n".join(lines)
