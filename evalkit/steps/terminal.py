"""What commands show of histories: summaries, steps and checks; and the files they write."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._words import counted_noun, format_interval, join_first
from evalkit.io import plain, write_frame
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Snapshot
from evalkit.kinds.runs import UNKNOWN
from evalkit.kinds.terminal import INTERVAL, Part, fit_table, unmeasured_lines
from evalkit.steps import analysis
from evalkit.steps.judge import History, end_of_route, find_loops
from evalkit.steps.record import CRITICAL, SILENT, VERDICTS
from evalkit.steps.values import to_jsonable

MOST_STEPS, MOST_COPIES, FOUND_WIDTH = 12, 3, 100  # on one screen, the last in characters
IDLE = 60.0  # seconds after which a history that has not changed counts as finished
_SPARE = ("records", "cut", "loops", "silent", "failed")  # the first goes first
_SPARE_OF_STEPS = ("cut", "result", "cell type", "step")
_SPARE_OF_FOUND = ("histories", "cell type")
_NOTES = ("silent_failure_reason", "error", "skip_reason", "summary")
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
_FOUND_CELLS: dict[str, Callable[[dict[str, Any]], str]] = {
    "found": lambda row: row["quantity"],
    "cell type": lambda row: plain(row["cell_type"] or "–", 24),
    "by": lambda row: plain(row["method"] or row["category"] or "–", 40),
    "number": lambda row: _range(row),
    "histories": lambda row: str(row["histories"]),
    "first names": lambda row: plain(", ".join(row["terms"]) or "–", 60),
}
_EXPLAINED = (
    "confirmed: without silent failures; n: steps judged, all but skipped and unknown ones.",
    "The interval of one history takes its steps as independent; all together: the mean of their shares.",
)


def describe(logs: Logs, views: Mapping[str, Any]) -> list[Part]:
    """Format the summary of several histories, the steps of one, and what they found; `views` ask for more.

    Copies have no part of their own: they are named below the answer.
    """
    everything, checks, results = (views.get(name) for name in ("all", "checks", "results"))
    rows = to_jsonable(analysis.overview(logs.runs, logs.steps))
    found = to_jsonable(analysis.found(logs.results))
    cells = [{name: cell(row) for name, cell in _FOUND_CELLS.items()} for row in found]
    every_number = Part("what steps found", rows=cells, always=True, most=None, spare=_SPARE_OF_FOUND)
    if results and not everything:
        return [every_number]
    parts = _overview(logs, rows) if len(logs.runs) > 1 else []
    if len(rows) == 1:
        parts = parts[:1]
    if len(rows) == 1 or checks or everything:
        parts += _histories(logs, rows, with_checks=bool(checks))
    if everything:
        parts.append(every_number)
    elif not checks:
        parts.append(Part("what steps found", _found_lines(found), always=True))
    return parts


def _found_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Format what steps found as a line per quantity, cut to a width, without the names behind the numbers."""
    numbers = defaultdict[str, list[str]](list)
    for row in found:
        of = filter(None, (row["category"] or row["cell_type"], row["method"]))
        numbers[row["quantity"]].append(" ".join([*of, _range(row)]))
    lines = [plain(f"found {quantity}: {'; '.join(each)}", FOUND_WIDTH) for quantity, each in numbers.items()]
    return [*lines, "--results prints every number, and the terms and genes behind it"] if lines else []


def _histories(logs: Logs, rows: list[dict[str, Any]], *, with_checks: bool) -> list[Part]:
    """Format a summary of each history, by its row of the overview, and its steps or their checks."""
    shown = dict(iter((logs.checks if with_checks else logs.steps).groupby("history")))
    cells = _CHECK_CELLS if with_checks else _STEP_CELLS
    counted, parts = {row["history"]: row for row in rows}, list[Part]()
    for history in logs.histories:
        if history.label in counted:
            lines = [plain(history.label), *_summary(history, counted[history.label])]
            listed = to_jsonable(shown[history.label]) if history.records else []
            steps = [{name: cell(row) for name, cell in cells.items()} for row in listed]
            most = None if with_checks else MOST_STEPS
            parts.append(Part("history", lines, always=True))
            parts.append(Part("steps", rows=steps, always=True, most=most, spare=_SPARE_OF_STEPS))
    return parts


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format one row per history, the lowest confirmed success first; one that changed recently is running."""
    logs = snapshot.logs
    idle = IDLE if snapshot.idle is None else snapshot.idle
    running = {history.label for history in logs.histories if snapshot.unchanged_for(history.source) < idle}
    rows = to_jsonable(analysis.overview(logs.runs, logs.steps))
    cells = [_cells(row) | {"state": "running" if row["history"] in running else "finished"} for row in rows]
    table = fit_table(cells, spare=_SPARE, width=snapshot.width)
    rate = analysis.confirmed_success(logs.steps)
    confirmed = f", confirmed {format_interval(*rate[:3])}" if rate.n else ""
    n = len(logs.runs)
    total = f"total: {so_far(n, snapshot.expected)} histories, {len(running)} running{confirmed}"
    ended = not running and not snapshot.being_written
    text = "\n".join([f"{table}\n\n{total}", *copy_lines(logs.runs)])
    return text, snapshot.expected is not None and n >= snapshot.expected and ended


def write(logs: Logs, views: Mapping[str, Any], path: str) -> None:
    """Write steps, checks or results as a table."""
    write_frame(logs.checks if views.get("checks") else logs.results if views.get("results") else logs.steps, path)


def _overview(logs: Logs, rows: list[dict[str, Any]]) -> list[Part]:
    """Format the rows of histories, the worst first, and one of all together; which are copies, and what is counted."""
    pooled = to_jsonable(analysis.total(logs.runs, logs.steps))
    [together] = pooled or rows
    explained = [*_EXPLAINED, *[f"Together: {together['warning']}."] * bool(together["warning"])]
    confirmed, reported = _rates(together)
    unnamed = bool((logs.runs["model_name"] == UNKNOWN).all())
    rest = f"{reported} as they reported it: the difference" if together[SILENT] else "as they reported it: none"
    answer = f"{confirmed} of the steps of {counted_noun(len(rows), 'history')} succeeded, {rest} failed silently."
    answer += " No log names a model; --model NAME gives one." * unnamed
    return [
        Part("the answer", [answer, *copy_lines(logs.runs)], always=True),
        Part("histories", rows=list(map(_cells, [*rows, *pooled])), always=True, spare=_SPARE),
        Part("how to read it", explained),
        Part("histories that were not measured", unmeasured_lines(logs.runs, [], logs.kind, "score")),
    ]


def copy_lines(runs: pd.DataFrame) -> list[str]:
    """Say in a line which histories are copies, and of which; no line without any."""
    copies = runs[runs["copy_of"].notna()]
    named = [f"{plain(row.history)} (as in {plain(row.copy_of)})" for row in copies.itertuples()]
    if not named:
        return []
    what = "holds" if len(named) == 1 else "hold"
    listed = join_first(named, MOST_COPIES, ", and {} more")
    return [f"{counted_noun(len(named), 'history')} {what} the same executions as another and count once: {listed}."]


def _range(row: Mapping[str, Any]) -> str:
    """Format a number of `analysis.found`: the median over histories and, where these differ, the lowest and highest."""
    if row["value"] is None:
        return "unknown"
    middle = f"{row['value']:g}"
    return middle if row["lowest"] == row["highest"] else f"{middle} ({row['lowest']:g} to {row['highest']:g})"


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """Format a row of the overview by its headers."""
    confirmed, reported = _rates(row)
    return {
        "history": plain(row["history"]),
        "records": str(row["records"]),
        "n": str(row["n"]),
        f"confirmed success{INTERVAL}": confirmed,
        f"reported success{INTERVAL}": reported,
        "silent": str(row[SILENT]),
        "failed": str(row["failure"] + row[CRITICAL]),
        "loops": str(row["loops"]),
        "cut": str(row["cut"]),
    }


def _rates(row: dict[str, Any]) -> list[str]:
    """Format the confirmed and the reported success of a history."""
    ends = ("estimate", "low", "high")
    return [format_interval(*(row[f"{which}_{end}"] for end in ends)) for which in ("confirmed", "reported")]


def _summary(history: History, row: dict[str, Any]) -> list[str]:
    """Describe a history below its steps: how they ended, by its row of the overview, its loops and its end."""
    ended = ", ".join(f"{row[verdict]} {verdict}" for verdict in VERDICTS if row[verdict])
    lines = [f"{counted_noun(row['records'], 'record')}: {ended or 'none'}"]
    if n := row["n"]:
        (confirmed, reported), succeeded = _rates(row), row["success"]
        lines.append(
            f"success: {reported} ({succeeded + row[SILENT]} of {n}) reported, "
            f"{confirmed} ({succeeded} of {n}) confirmed"
        )
    if row["cut"]:
        lines.append(f"cut: {row['cut']} of {row['records']} stored results, what was cut away is unknown")
    for loop in find_loops(history):
        function = plain(loop.function_name, 60)
        lines.append(f"loop: {loop.length} failures in a row of {function}, from record {loop.position + 1}")
    end, reached = end_of_route(history)
    rest = ", the rest would not have run" if reached < row["records"] else ""
    return lines + [f"router: {end} after record {reached}{rest}"] * bool(end)
