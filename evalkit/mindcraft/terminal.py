"""Terminal output for task runs."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._names import check_columns
from evalkit._words import counted_noun
from evalkit.io import SourceError, plain
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Snapshot
from evalkit.kinds.runs import NO_OUTCOME
from evalkit.kinds.terminal import (
    NAME_WIDTH,
    Part,
    fit_table,
    rate_rows,
    table_lines,
    title_of,
    unmeasured_lines,
)
from evalkit.mindcraft.analysis import cooking_item_table, cooking_table, describe_scale, is_stale, overview
from evalkit.mindcraft.format import STATUSES, SUCCEEDED_LATE, UNKNOWN

MOST_NAME = 120  # characters of a name while following; a narrow terminal shows fewer
_SPARE = ("success", "zero", "partial", "no score", "timed out", "broken", "running")  # the first goes first


def describe(logs: Logs, views: Mapping[str, Any]) -> list[Part]:
    """Format the success rates and statuses of groups of runs, and cooking by blocked agents if it is asked for.

    `views` are by (columns of the runs to group by; model_name by default), cooking. A missing column is a
    SourceError.
    """
    by = list(dict.fromkeys(views.get("by") or ["model_name"]))
    runs = _with_groups(logs.runs, by)
    table = overview(runs, by)
    of = "models" if by == ["model_name"] else "groups"
    cooking = cooking_text(logs.runs).split("\n") if views.get("cooking") else []
    return [
        Part(of, rows=_rows(table, by), always=True, left=len(by), spare=_SPARE),
        Part("cooking", cooking, always=True),
        Part("notes", _notes(runs)),
        Part("rates without the runs that were not measured", unmeasured_lines(runs, by, logs.kind)),
    ]


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the progress of each model, and the rates of its finished runs.

    A run is finished once one of its logs holds a final message, or once none has changed for as long as the task may
    take. Until then it is running, and counts in no rate.
    """
    by = list(dict.fromkeys(options.get("by") or ["model_name"]))
    runs = _with_groups(snapshot.logs.runs, by).assign(_running=_running(snapshot))
    done = _tasks_done(runs, snapshot.expected, len(snapshot.logs.definitions))
    table = fit_table(_progress_rows(runs, by, done), left=len(by), spare=_SPARE, width=snapshot.width)
    n_done, expected = done["done"].sum(), done["expected"].sum(skipna=False)
    n_running = int(runs["_running"].sum())
    total = f"\ntotal: {so_far(n_done, expected)} tasks done, {counted_noun(n_running, 'run')} running"
    complete = bool((done["done"] >= done["expected"]).all()) and not n_running
    return "\n".join([table, total, *_notes(runs)]), complete


def _running(snapshot: Snapshot) -> list[bool]:
    """Return which runs are still being written."""
    runs, agents = snapshot.logs.runs, snapshot.logs.agents
    ended = set(agents.loc[agents["final_system_message"].notna(), "run_id"])
    paths = agents.groupby("run_id")["source"].apply(list).to_dict()
    running = []
    for run_id, source, timeout in runs[["run_id", "source", "timeout"]].itertuples(index=False, name=None):
        idle = timeout if snapshot.idle is None else snapshot.idle
        own = paths.get(run_id, [source]) if run_id not in ended else ()
        running.append(any(path in snapshot.being_written or snapshot.unchanged_for(path) < idle for path in own))
    return running


def _tasks_done(runs: pd.DataFrame, expected: int | None, n_definitions: int) -> pd.DataFrame:
    """Count for each model the tasks that are done (some run finished, none running), and those expected."""
    rows: dict[Any, dict[str, float]] = {}
    wanted: float
    for model, group in runs.groupby("model_name"):
        totals = group.groupby("experiment_folder")["experiment_total"].max()
        if expected is not None:
            wanted, keys = expected, ["task_id"]
        elif totals.notna().all():
            wanted, keys = int(totals.sum()), ["experiment_folder", "task_id"]
        else:
            wanted, keys = n_definitions or math.nan, ["task_id"]
            group = group[group["has_definition"]] if n_definitions else group
        rows[model] = {"done": int((~group.groupby(keys)["_running"].any()).sum()), "expected": wanted}
    return pd.DataFrame.from_dict(rows, orient="index").astype({"done": "int64", "expected": "float64"})


def _progress_rows(runs: pd.DataFrame, by: list[str], done: pd.DataFrame) -> list[dict[str, str]]:
    """Return the rows of the table: rates of the finished runs, and how many are running."""
    running = runs.groupby(by, dropna=False)["_running"].sum().rename("running").reset_index()
    finished = runs[~runs["_running"]]
    counts = dict.fromkeys(["n", *STATUSES], 0)
    if finished.empty:
        table = running.assign(**counts, estimate=math.nan, low=math.nan, high=math.nan)
    else:
        table = overview(finished, by).merge(running, on=by, how="outer").fillna(counts)
        table = table.sort_values("estimate", ascending=False, kind="stable")
    table, by_model = table.astype(dict.fromkeys(counts, "int64")), by == ["model_name"]
    one_each = by_model and (table["n"].to_numpy() == done["done"].reindex(table["model_name"]).to_numpy()).all()
    rows = []
    for row, cells in zip(table.to_dict("records"), _rows(table, by, MOST_NAME), strict=True):
        head = {title_of(column): cells.pop(title_of(column)) for column in by}
        if by_model:
            head["tasks"] = so_far(*done.loc[row["model_name"], ["done", "expected"]])
            if one_each:  # one run per task: no need to show the number twice
                del cells["runs"]
        rows.append({**head, "running": str(row["running"]), **cells})
    return rows


def cooking_text(runs: pd.DataFrame) -> str:
    """Format cooking success by model and number of blocked agents, with overall rows, and the same for each item."""
    table = cooking_table(runs)
    if table.empty:
        return "No cooking run, Hell's Kitchen left out."
    by = ["model_name", "n_blocked_agents"]
    lines = ["Cooking by number of agents without access to the recipe, Hell's Kitchen left out:", ""]
    lines += table_lines(_rows(table, by), len(by))
    for item, rows in cooking_item_table(runs).sort_values(["item", *by]).groupby("item"):
        lines += ["", f"{plain(item)}:", "", *table_lines(_rows(rows, by), len(by))]
    return "\n".join(lines)


def _rows(table: pd.DataFrame, by: Sequence[str], width: int = NAME_WIDTH) -> list[dict[str, str]]:
    """Format groups as cells by header: their names, cut to a width and still distinct, rates, and any statuses."""
    if SUCCEEDED_LATE in table and not table[SUCCEEDED_LATE].any():
        table = table.drop(columns=SUCCEEDED_LATE)
    rows = rate_rows(table, by, "success rate", width=width)
    for cells, row in zip(rows, table.to_dict("records"), strict=True):
        cells |= {status.short: str(row[code]) for code, status in STATUSES.items() if code in row}
    return rows


def _with_groups(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return runs with columns that can be grouped by: lists become texts; SourceError for a missing column."""
    try:
        check_columns(runs, *by)
    except ValueError as error:
        raise SourceError(str(error)) from None
    return runs.assign(**{column: runs[column].map(_joined) for column in by if runs[column].dtype == object})


def _joined(value: object) -> object:
    """Join a list to a text; an item that would look like two is quoted."""
    if not isinstance(value, list):
        return value
    return ", ".join(json.dumps(item) if "," in str(item) or '"' in str(item) else str(item) for item in value)


def _notes(runs: pd.DataFrame) -> list[str]:
    """Describe which runs name no model, what is left out of the rates, and what was assumed for them."""
    stale, unknown, lines = int(is_stale(runs).sum()), int((runs["model_name"] == UNKNOWN).sum()), []
    if unknown:
        name = "names" if unknown == 1 else "name"
        hint = "--layout tells what the folders mean, e.g. '{model_name}/{task_id}', or --model NAME names it"
        lines.append(f"{counted_noun(unknown, 'run')} {name} no model; {hint}")
    if stale:
        holds, count = ("holds a copy", "counts") if stale == 1 else ("hold copies", "count")
        lines.append(f"{counted_noun(stale, 'run')} {holds} of another run's log, and {count} in no rate")
    lines += [str(NO_OUTCOME)] * bool(len(runs) and runs["is_successful"].isna().all())
    return lines + [describe_scale(runs)] * bool(runs["flag_scale_assumed"].any())
