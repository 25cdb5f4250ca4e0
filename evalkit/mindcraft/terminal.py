"""What the command line prints of task runs."""

import difflib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate

from evalkit.io import SourceError, plain
from evalkit.io.text import short_paths
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.labels import key_of, names_of
from evalkit.mindcraft.logs import MindcraftLogs
from evalkit.mindcraft.legacy.scripts import COMMIT

if TYPE_CHECKING:
    import pandas as pd

MOST_FAILED = 10  # lines on files that could not be read
SCRIPTS = {
    "evaluation": "evaluation_script.py",
    "crafting": "analyze_crafting_tasks.py",
    "analyse_results": "analyse_results.py",
    "cooking": "analyze_cooking_tasks.py",
    "construction": "analyze_construction_tasks.py",
}
GIVEN = {  # what a script is given for its first table
    "evaluation": "given all task folders of these types",
    "crafting": "given all crafting folders",
    "analyse_results": "given all crafting folders",
    "cooking": "the sums of all folders with cooking tasks",
    "construction": "given the folders with construction tasks of each model, with all that lies in them",
}
SHORT = {
    CompletionStatus.SUCCESS: "success",
    CompletionStatus.FAILED_PARTIAL_SCORE: "partial",
    CompletionStatus.FAILED_SCORE_ZERO: "zero",
    CompletionStatus.TIMED_OUT: "timed out",
    CompletionStatus.NO_SCORE_LOGGED: "no score",
    CompletionStatus.LOG_FILE_ERROR: "broken",
}


def overview_text(logs: MindcraftLogs, by: Sequence[str] = ()) -> str:
    """Write the success rates and statuses of groups of runs as a table, and the ledger's summary below.

    Parameters
    ----------
    logs : MindcraftLogs
    by : sequence of str
        Columns of the runs to group by; model_name where none is given.

    Returns
    -------
    str

    Raises
    ------
    SourceError
        Where there is no such column.
    """
    from evalkit.mindcraft.analysis import overview

    by = list(dict.fromkeys(by)) or ["model_name"]
    runs = with_groups(logs.runs, by)
    table = overview(runs, by)
    names = group_names(table, by)
    rows = [overview_cells(row, names) for row in table.to_dict("records")]
    lines = _table(rows, len(by)) if rows else ["no runs"]
    return "\n".join([*lines, *summary_lines(runs, logs.ledger)])


def cooking_text(logs: MindcraftLogs) -> str:
    """Write cooking success by model and number of blocked agents, with overall rows, and the same for each item.

    Parameters
    ----------
    logs : MindcraftLogs
    """
    from evalkit.mindcraft.analysis import cooking_item_table, cooking_table

    table = cooking_table(logs.runs)
    if table.empty:
        return "No cooking run, Hell's Kitchen left out."
    by = ["model_name", "n_blocked_agents"]
    lines = ["Cooking by number of agents without access to the recipe, Hell's Kitchen left out:", ""]
    lines += _table(_rate_rows(table, by), len(by))
    for item, own in cooking_item_table(logs.runs).sort_values(["item", *by]).groupby("item"):
        lines += ["", f"{plain(item)}:", "", *_table(_rate_rows(own, by), len(by))]
    return "\n".join(lines)


def _rate_rows(table: "pd.DataFrame", by: Sequence[str]) -> list[dict[str, str]]:
    names = group_names(table, by)
    return [{**_keys(row, names), **_rate_cells(row)} for row in table.to_dict("records")]


def _table(rows: list[dict[str, str]], left: int) -> list[str]:
    """Write rows below their headers, the first columns to the left, the others to the right."""
    align = ["left"] * left + ["right"] * (len(rows[0]) - left)
    return tabulate(rows, "keys", tablefmt="simple", colalign=align, disable_numparse=True).split("\n")


def with_groups(runs: "pd.DataFrame", by: Sequence[str]) -> "pd.DataFrame":
    """Make the columns to group by fit for it: lists become texts.

    Raises
    ------
    SourceError
        Where there is no such column.
    """
    check_columns(runs, by)
    return runs.assign(**{c: runs[c].map(_joined) for c in by if runs[c].dtype == object})


def group_names(table: "pd.DataFrame", by: Sequence[str], width: int = 48) -> dict[str, dict]:
    """Name the groups of each column for a terminal: names are cut to a width, and never alike."""
    return {column: names_of(table[column], width, str) for column in by}


def overview_cells(row: dict, names: dict[str, dict]) -> dict[str, str]:
    """Write a row of `rates.overview` as cells under their headers; `names` as `group_names` gives them."""
    statuses = {short: str(row[str(status)]) for status, short in SHORT.items()}
    return {**_keys(row, names), **_rate_cells(row), **statuses}


def _keys(row: dict, names: dict[str, dict]) -> dict[str, str]:
    return {column: names[column][key_of(row[column])] for column in names}


def _rate_cells(row: dict) -> dict[str, str]:
    interval = "–" if row["low"] != row["low"] else f"{row['low'] * 100:.0f} – {row['high'] * 100:.0f} %"
    return {"n": str(row["n"]), "success rate": _percent(row["estimate"]), "95 % interval": interval}


def summary_lines(runs: "pd.DataFrame", ledger: "pd.DataFrame", most: int = MOST_FAILED) -> list[str]:
    """Say how many runs and files there are, which files failed (at most so many), and whether models have no name."""
    counts = ledger["status"].value_counts()
    seen = ", ".join(f"{counts.get(status, 0)} {status}" for status in ("used", "skipped", "failed"))
    lines = [f"\n{counted(len(runs), 'run')}; {counted(len(ledger), 'file')}: {seen}"]
    failed = ledger[ledger["status"] == "failed"]
    lines += [f"  failed: {plain(row.source)}: {plain(row.reason)}" for row in failed.head(most).itertuples()]
    if len(failed) > most:
        lines.append(f"  … {len(failed) - most} more; the ledger holds them all")
    unknown = int((runs["model_name"] == "unknown").sum())
    if unknown:
        name = "names" if unknown == 1 else "name"
        hint = "--layout tells what the folders mean, e.g. '{model_name}/{task_id}'"
        lines.append(f"{counted(unknown, 'run')} {name} no model; {hint}")
    return lines + _notes(runs)


def _notes(runs: "pd.DataFrame") -> list[str]:
    """Say what is left out of the rates, and what was assumed for them."""
    from evalkit.mindcraft.analysis import describe_scale
    from evalkit.mindcraft.analysis.rates import NO_SCORE, has_score, is_stale

    stale, lines = int(is_stale(runs).sum()), []
    if stale:
        holds = "holds a copy" if stale == 1 else "hold copies"
        lines.append(f"{counted(stale, 'run')} {holds} of another run's log, and count{'s' * (stale == 1)} in no rate")
    if len(runs) and not has_score(runs).any():
        lines.append(NO_SCORE)
    if runs["flag_scale_assumed"].any():
        lines.append(describe_scale(runs))
    return lines


def legacy_text(logs: MindcraftLogs, limit: int = 60) -> str:
    """Write what the original scripts say of the same folders, beside ours, and a line for each difference.

    Parameters
    ----------
    logs : MindcraftLogs
    limit : int
        At most so many folders, and differences of one cause and script; a line says how many more there are.
    """
    from evalkit.mindcraft.legacy import legacy_summary
    from evalkit.mindcraft.legacy.folders import ALL

    totals, differences = legacy_summary(logs.runs, logs.other_folders)
    lines = [f"What the original scripts (kolbytn/mindcraft, tasks/ at commit {COMMIT}) say, and ours:"]
    for script, own in totals.groupby("script", sort=False):
        pooled, each = own[own["folder"] == ""], own[(own["folder"] != "") & (own["group"] == ALL)]
        alike = pooled["group"].str.startswith("task ") & (pooled["their_rate"] - pooled["our_rate"]).abs().lt(0.005)
        pooled = pooled[~alike]
        first = ["model_name", "group"] if script == "construction" else ["group"]
        lines += ["", f"{SCRIPTS[script]}, {GIVEN[script]}:"]
        if len(pooled):
            lines += ["", *_table([_legacy_cells(row, first) for row in pooled.to_dict("records")], len(first))]
        lines += [f"… {counted(int(alike.sum()), 'task')} with the same score on both sides"] * bool(alike.any())
        if len(each):
            shown = each.head(limit).assign(folder=each["folder"].map(short_paths(each["folder"].unique())))
            rows = [_legacy_cells(row, ["folder"]) for row in shown.to_dict("records")]
            lines += ["", "  given each folder, with all that lies in it:", "", *_table(rows, 1)]
            lines += [f"… {len(each) - limit} more"] * (len(each) > limit)
    for (script, cause), found in differences.groupby(["script", "cause"], sort=False):
        lines.append(f"\n{script}: {cause}: {len(found)}")
        lines += [
            f"  {plain(d.source)}: {plain(d.theirs)}, ours {plain(d.ours)}" for d in found.head(limit).itertuples()
        ]
        if len(found) > limit:
            lines.append(f"  … {len(found) - limit} more")
    return "\n".join(lines)


def _legacy_cells(row: dict, first: Sequence[str]) -> dict[str, str]:
    cells = {name: plain(row[name]) for name in first}
    for who in ("their", "our"):
        n, successes, rate = (row[f"{who}_{name}"] for name in ("n", "successes", "rate"))
        score = "–" if rate != rate else f"{rate:.2f}"
        cells[f"{who} n"] = str(n)
        cells[f"{who} successes"] = f"{successes:.6g}" if row["unit"] == "rate" else ""
        cells[f"{who} rate"] = {"rate": _percent(rate), "score": score}.get(row["unit"], "")
    return {**cells, "": plain(row["note"])} if row["note"] else cells


def counted(n: int, what: str) -> str:
    """Write a number with what it counts: ``1 run``, ``2 runs``."""
    return f"{n} {what}" + "s" * (n != 1)


def _percent(rate: float) -> str:
    return "–" if rate != rate else f"{rate * 100:.1f} %"


def check_columns(table: "pd.DataFrame", columns: Sequence[str]) -> None:
    """Refuse columns a frame does not have, with the nearest name."""
    for name in columns:
        if name not in table.columns:
            near = difflib.get_close_matches(name, table.columns, 1, 0.4)
            raise SourceError(f"no column {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _joined(value: object) -> object:
    return ", ".join(map(_quoted, value)) if isinstance(value, list) else value


def _quoted(item: object) -> str:
    """Quote an item that would look like two."""
    return json.dumps(item) if isinstance(item, str) and ("," in item or '"' in item) else str(item)
