"""What the command line prints of task runs."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate

from evalkit.io import SourceError, plain
from evalkit.mindcraft.format import OTHER_LIST, CompletionStatus
from evalkit.mindcraft.logs import MindcraftLogs
from evalkit.mindcraft.parse import NO_TURNS

if TYPE_CHECKING:
    import pandas as pd

MOST_FAILED = 10  # lines on files that could not be read
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
        Where there is no run, no file is an agent log, no definition was found where some were named, or there is no
        such column.
    """
    from evalkit.mindcraft.analysis import overview

    _check_kind(logs)
    if logs.runs.empty:
        counts = logs.ledger["status"].value_counts()
        seen = ", ".join(f"{counts.get(status, 0)} {status}" for status in ("used", "skipped", "failed"))
        raise SourceError(f"{logs.source}: no task run in it ({counted(len(logs.ledger), 'file')}: {seen})")
    _check_definitions(logs)
    by = list(dict.fromkeys(by)) or ["model_name"]
    runs = with_groups(logs.runs, by)
    rows = [overview_cells(row, by) for row in overview(runs, by).to_dict("records")]
    align = ["left"] * len(by) + ["right"] * (len(rows[0]) - len(by))
    lines = [tabulate(rows, "keys", tablefmt="simple", colalign=align, disable_numparse=True)]
    return "\n".join([*lines, *summary_lines(runs, logs.ledger)])


def _check_kind(logs: MindcraftLogs) -> None:
    """Refuse files that are all of another kind; an empty or broken log is still one."""
    agents, lists = logs.agents, int(logs.ledger["reason"].str.contains(OTHER_LIST, regex=False).sum())
    shapeless = agents["parsing_errors"].str.contains(NO_TURNS, regex=False)
    no_turns = shapeless | (agents["skipped_turns"].gt(0) & agents["message_count"].eq(0))
    if len(agents) + lists and no_turns.all():
        files = f"{counted(len(agents) + lists, 'JSON file')} without turns"
        others = "`evalkit crafter` reads traces, `evalkit steps` execution histories"
        raise SourceError(f"{logs.source}: no agent log in it ({files}); {others}")


def _check_definitions(logs: MindcraftLogs) -> None:
    """Refuse files of definitions that hold none at all, since every run would pass for one without."""
    seen = logs.definitions.ledger.entries
    if seen and not logs.definitions:
        raise SourceError(f"--tasks: no task definition in {counted(len(seen), 'file')}, such as {seen[0].source}")


def with_groups(runs: "pd.DataFrame", by: Sequence[str]) -> "pd.DataFrame":
    """Make the columns to group by fit for it: lists become texts.

    Raises
    ------
    SourceError
        Where there is no such column.
    """
    check_columns(runs, by)
    return runs.assign(**{c: runs[c].map(_joined) for c in by if runs[c].dtype == object})


def overview_cells(row: dict, by: Sequence[str], width: int = 48) -> dict[str, str]:
    """Write a row of `rates.overview` as cells under their headers; names are cut to a width."""
    keys = {column: _key(row[column], width) for column in by}
    statuses = {short: str(row[str(status)]) for status, short in SHORT.items()}
    interval = "–" if row["low"] != row["low"] else f"{row['low'] * 100:.0f} – {row['high'] * 100:.0f} %"
    rate = _percent(row["estimate"])
    return {**keys, "n": str(row["n"]), "success rate": rate, "95 % interval": interval, **statuses}


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
    return lines


def legacy_text(logs: MindcraftLogs, limit: int = 60) -> str:
    """Write what the original scripts would have said, beside ours, and a line for each difference.

    Parameters
    ----------
    logs : MindcraftLogs
    limit : int
        At most so many differences of one cause and script; a line says how many more there are.
    """
    from evalkit.mindcraft.legacy import legacy_summary

    totals, differences = legacy_summary(logs.runs)
    rates = totals.assign(their_rate=totals["their_rate"].map(_percent), our_rate=totals["our_rate"].map(_percent))
    align = ["left", "left", "right", "right", "right", "right"]
    lines = ["What the original scripts would have said, and ours:", ""]
    lines.append(
        tabulate(rates.to_numpy().tolist(), list(rates), tablefmt="simple", colalign=align, disable_numparse=True)
    )
    for (script, cause), found in differences.groupby(["script", "cause"], sort=False):
        lines.append(f"\n{script}: {cause}: {len(found)}")
        lines += [f"  {plain(d.source)}: {d.theirs}, ours {d.ours}" for d in found.head(limit).itertuples()]
        if len(found) > limit:
            lines.append(f"  … {len(found) - limit} more")
    return "\n".join(lines)


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
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _key(value: object, width: int) -> str:
    import pandas as pd

    return "unknown" if pd.isna(value) else plain(value, width)
