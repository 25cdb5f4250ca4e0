"""Format the terminal output of ``evalkit failures``."""

import math

from evalkit._text import format_interval
from evalkit.display.terminal import INTERVAL, Part, chosen_lines, on_screen
from evalkit.display.words import finding_text
from evalkit.failures.answers import describe_rule, findings_of
from evalkit.failures.contrasts import contrast, divergences
from evalkit.failures.failure_modes import error_groups, event_counts, failed_runs, mode_shares, modes_of
from evalkit.io import plain
from evalkit.kinds import Logs
from evalkit.kinds.runs import compared_in

MOST_TEXT = 70  # maximum number of characters of an error


def describe_failures(logs: Logs, *, everything: bool = False) -> str:
    """Format why runs fail: findings, modes per model, the contrast with successful runs, errors and events.

    The output fits on one screen, unless `everything` is set.
    """
    compared = contrast(logs)
    failed = failed_runs(logs)
    table, groups = modes_of(logs, failed.table), error_groups(logs)
    warned, chosen = chosen_lines(logs, everything=everything)
    answer = [plain(finding_text(one)) for one in findings_of(logs, failed, table, groups, compared)]
    shares = [
        {
            "model": plain(row["model_name"]),
            "mode": plain(row["mode"]),
            "runs": f"{row['runs']} of {row['n']}",
            "main reason": str(row["leading"]),
            f"share{INTERVAL}": format_interval(row["estimate"], row["low"], row["high"]),
        }
        for row in mode_shares(table).to_dict("records")
    ]
    contrasts = []
    for row in compared.to_dict("records"):
        points = [row[name] * 100 for name in ("estimate", "low", "high")]
        contrasts.append(
            {
                "event": plain(row["event"].replace("_", " ")),
                "tasks": str(row["n_tasks"]),
                "failed": format_interval(row["failed_share"], None, None),
                "successful": format_interval(row["successful_share"], None, None),
                f"difference, points{INTERVAL}": format_interval(*points, percent=False, digits=0),
                "p, corrected": "–" if math.isnan(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}",
                "": "differs" if row["decided"] else "not decided",
            }
        )
    errors = [
        {
            "error": plain(row["error"], MOST_TEXT),
            "cause": plain(row["cause"]),
            "calls": str(row["calls"]),
            "runs": str(row["runs"]),
            "for example": f"{row['run_id']}, turn {row['turn']}",
        }
        for row in groups.to_dict("records")
    ]
    counts = [
        {
            "event": plain(row["event"].replace("_", " ")),
            "runs": f"{row['runs']} of {row['n']}",
            "events": str(row["events"]),
            "for example": f"{row['run_id']}, turn {row['turn']}",
        }
        for row in event_counts(logs).query("events > 0").to_dict("records")
    ]
    diverging = divergences(logs).to_dict("records") if everything else []
    pairs = [
        {
            "task": plain(row["task"]),
            "equal calls": str(row["same_calls"]),
            "failed": plain(row["next_a"] or "ended", MOST_TEXT),
            "successful": plain(row["next_b"] or "ended", MOST_TEXT),
            "runs": f"{row['run_id_a']}, {row['run_id_b']}",
        }
        for row in diverging
    ]
    parts = [
        Part("the answer", [*warned, *answer, *filter(None, [describe_rule(logs, failed)]), *chosen], always=True),
        Part("modes by model", rows=shares, most=8, last=0, left=2),
        Part("events in failed and successful runs of a task", rows=contrasts, most=5, last=0),
        Part("errors", rows=errors, most=5, last=0, left=2, spare=("for example",)),
        Part("events", rows=counts, most=8, last=0),
        Part("where a failed and a successful run diverge", rows=pairs, left=1),
    ]
    return on_screen(parts, everything=everything, compared_by=compared_in(logs.runs))
