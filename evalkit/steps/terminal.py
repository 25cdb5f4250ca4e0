"""Output of commands on histories: summaries, steps and checks, and the frames for their files."""

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd

from evalkit._text import counted_noun, format_interval, listed
from evalkit.display.follow import Snapshot
from evalkit.display.terminal import INTERVAL, Part, fit_table, unmeasured_lines
from evalkit.display.words import finding_text
from evalkit.io import plain
from evalkit.io.screen import so_far
from evalkit.io.text import shorten
from evalkit.steps import analysis
from evalkit.steps.format import CRITICAL, SILENT, VERDICTS
from evalkit.steps.judge import end_of_route, find_loops
from evalkit.steps.literals import to_jsonable
from evalkit.steps.logs import StepsLogs

_SPARE = ("records", "cut", "loops", "silent", "failed")  # columns that can be dropped, the first one first


def describe(logs: StepsLogs, views: Mapping[str, Any]) -> list[Part]:
    """Format the summary of several histories, or the steps of one; `views` may ask for all steps or for checks."""
    checks, everything = views.get("checks"), views.get("all")
    rows = to_jsonable(analysis.overview(logs.runs, logs.steps))
    numbers = list(map(_found_cells, to_jsonable(analysis.found(logs.results))))
    found = Part("numbers that steps found", rows=numbers, always=True, most=6, last=1)
    parts = _overview(logs, rows)
    if len(logs.runs) == 1:
        parts = parts[:1]  # the answer
    if len(rows) > 1 and not (checks or everything):
        return [*parts, found]
    parts = [part._replace(frame=None) for part in parts]  # files get the steps instead
    table, cells = (logs.checks, _check_cells) if checks else (logs.steps, _step_cells)
    counted = {row["history"]: row for row in rows}
    for history in (one for one in logs.histories if one.label in counted):
        own = table[table["history"].eq(history.label)]
        steps = list(map(cells, to_jsonable(own)))
        row = counted[history.label]
        ended = ", ".join(f"{row[verdict]} {verdict}" for verdict in VERDICTS if row[verdict])
        lines = [plain(history.label), f"{counted_noun(row['records'], 'record')}: {ended or 'none'}"]
        if n := row["n"]:
            confirmed, reported = _rates(row)
            k = row["success"]
            lines.append(f"success: {reported} ({k + row[SILENT]} of {n}) reported, {confirmed} ({k} of {n}) confirmed")
        if row["cut"]:
            lines.append(f"cut: {row['cut']} of {row['records']} stored results; the rest of them is unknown")
        for loop in find_loops(history):
            function = plain(loop.function_name, 60)
            lines.append(f"loop: {loop.length} failures in a row of {function}, from record {loop.position + 1}")
        end, reached = end_of_route(history)
        if end:
            rest = ", the rest would not have run" if reached < row["records"] else ""
            lines.append(f"router: {end} after record {reached}{rest}")
        parts.append(Part("history", lines, always=True))
        most, spare = None if checks else 8, ("cut", "result", "cell type", "step")
        parts.append(Part("steps", rows=steps, always=True, most=most, spare=spare, frame=own))
    return parts if checks else [*parts, found]


def _step_cells(row: dict[str, Any]) -> dict[str, str]:
    """Format a row of the frame `steps`; return its cells by header."""
    attempt = f" (attempt {row['attempt']})" if row["attempt"] > 1 else ""
    note = row["silent_failure_reason"] or row["error"] or row["skip_reason"] or row["summary"] or ""
    return {
        "#": str(row["position"] + 1),
        "step": f"{row['step_index'] + 1}{attempt}",
        "function": plain(row["function_name"] or "–", 32),
        "cell type": plain(row["cell_type"] or "–", 24),
        "verdict": row["verdict"],
        "result": row["result_type"],
        "cut": "cut" if row["truncated"] else "",
        "note": plain(note, 60),
    }


def _check_cells(row: dict[str, Any]) -> dict[str, str]:
    """Format a row of the frame `checks`; return its cells by header."""
    return {
        "#": str(row["position"] + 1),
        "step": str(row["step_index"] + 1),
        "function": plain(row["function_name"] or "–", 32),
        "check": plain(row["name"], 28),
        "score": "–" if row["score"] is None else f"{row['score']:.2f}",
        "label": plain(row["label"], 24),
        "severity": plain(row["severity"], 10),
        "explanation": plain(row["explanation"], 60),
    }


def _found_cells(row: dict[str, Any]) -> dict[str, str]:
    """Format a row of `analysis.found`; return its cells by header."""
    return {
        "found": row["quantity"],
        "cell type": shorten(plain(row["cell_type"] or "–"), 40),
        "by": plain(row["method"] or row["category"] or "–", 40),
        "number": "?" if row["value"] is None else f"{row['value']:g}",
        "histories": str(row["histories"]),
        "names": plain(", ".join(row["terms"] or []) or "–", 60),
    }


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format one row per history, the lowest confirmed success first; return it, and whether all have ended."""
    logs = cast(StepsLogs, snapshot.logs)
    idle = 60.0 if snapshot.idle is None else snapshot.idle  # seconds without a change after which a history has ended
    running = {history.label for history in logs.histories if snapshot.unchanged_for(history.source) < idle}
    rows = to_jsonable(analysis.overview(logs.runs, logs.steps))
    cells = [_cells(row) | {"state": "running" if row["history"] in running else "finished"} for row in rows]
    table = fit_table(cells, spare=_SPARE, width=snapshot.width)
    rate = analysis.confirmed_success(logs.steps)
    confirmed = f", confirmed {format_interval(*rate[:3])}" if rate.n else ""
    total = f"total: {so_far(len(logs.runs), snapshot.expected, 'history')}, {len(running)} running{confirmed}"
    ended = not running and not snapshot.being_written
    return f"{table}\n\n{total}", snapshot.expected is not None and len(logs.runs) >= snapshot.expected and ended


def _overview(logs: StepsLogs, rows: list[dict[str, Any]]) -> list[Part]:
    """Format the answer, one row per history, the worst first, and a row for all together."""
    frame = analysis.total(logs.runs, logs.steps)
    total, frame = to_jsonable(frame), pd.concat([analysis.overview(logs.runs, logs.steps), frame])
    [together] = total or rows
    copies = logs.runs[logs.runs["copy_of"].notna()]
    named = [f"{plain(copy.history)} = {plain(copy.copy_of)}" for copy in copies.itertuples()]
    explained = [
        "confirmed: without silent failures; n: judged steps, without skipped and unknown ones.",
        "The interval of one history treats its steps as independent. All together: the mean of their shares.",
    ]
    if together["warning"]:
        explained.append(f"Together: {together['warning']}.")
    answers = [finding_text(analysis.findings(logs)[0])]
    if named:
        answers.append(f"Histories with equal executions count once: {listed(named, 3)}.")
    return [
        Part("the answer", answers, always=True),
        Part("histories", rows=list(map(_cells, [*rows, *total])), always=True, spare=_SPARE, frame=frame),
        Part("how to read it", explained),
        Part("histories that were not measured", unmeasured_lines(logs.runs, [], logs.kind, "score")),
    ]


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """Format a row of the overview; return its cells by header."""
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
    """Format the confirmed and the reported success in a row of the overview."""
    ends = ("estimate", "low", "high")
    return [format_interval(*(row[f"{which}_{end}"] for end in ends)) for which in ("confirmed", "reported")]
