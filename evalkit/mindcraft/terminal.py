"""Format the terminal output for task runs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pandas as pd

from evalkit._text import check_columns, counted_noun, fill_template, format_interval
from evalkit.display.follow import Snapshot
from evalkit.display.terminal import INTERVAL, Part, column_title, fit_table, group_names, rate_rows, unmeasured_lines
from evalkit.display.words import finding_text
from evalkit.io import SourceError, plain
from evalkit.io.screen import so_far
from evalkit.kinds import has_flag
from evalkit.kinds.runs import compared_in
from evalkit.kinds.success_rates import best_first
from evalkit.mindcraft import analysis, words
from evalkit.mindcraft.logs import MindcraftLogs
from evalkit.mindcraft.parse import UNKNOWN
from evalkit.mindcraft.table import STATUSES, SUCCEEDED_LATE

_ENDS = ["estimate", "low", "high"]
# columns that a narrow table leaves out, in this order
_SPARE = ("success", "zero", "partial", "no score", "timed out", "broken", "running")


def describe(logs: MindcraftLogs, views: Mapping[str, Any]) -> list[Part]:
    """Format the success rates and statuses of runs, by model or by the columns that `views` names."""
    by = list(dict.fromkeys(views.get("by") or ["model_name"]))
    runs = _with_groups(logs.runs, by)
    table = analysis.overview(runs, by)
    title = "models" if by == ["model_name"] else "groups"
    is_asked = "n_blocked_agents" in by
    blocked = _blocked_parts(runs, always=is_asked, everything=bool(views.get("all")))
    return [
        Part(title, rows=_rows(table, by), always=True, left=len(by), spare=_SPARE, frame=table),
        *(blocked if is_asked or by == ["model_name"] else []),
        Part("runs that rates exclude", _exclusions(runs), always=True),
        Part("notes", _notes(runs)),
        Part("rates of measured runs only", unmeasured_lines(runs, by, logs.kind)),
    ]


def _blocked_parts(runs: pd.DataFrame, *, always: bool, everything: bool) -> list[Part]:
    """Format the drop with blocked agents and rates by model; `everything`: also trends."""
    chosen = analysis.cooking(runs)
    levels = sorted(chosen["n_blocked_agents"].dropna().unique())
    if len(levels) < 2:
        return []
    cells = analysis.rates_by_blocked(chosen).set_index(["model_name", "n_blocked_agents"])
    drops = analysis.cooking_drop(chosen)
    rows = []
    for name, row in zip(group_names(drops["model_name"]), drops.to_dict("records"), strict=True):
        texts = {"cooking, by blocked agents [95 %]": name}
        for level in levels:
            key = (row["model_name"], level)
            texts[f"{level:g} blocked"] = format_interval(*cells.loc[key, _ENDS]) if key in cells.index else "–"
        rows.append({**texts, f"drop, points{INTERVAL}": format_interval(*map(row.get, _ENDS), unit="")})
    trends = analysis.trend_findings(chosen, analysis.cooking_trend(chosen)) if always or everything else []
    sentences = " ".join(plain(finding_text(finding)) for finding in analysis.drop_findings(chosen, drops))
    return [
        Part("the drop with blocked agents", [sentences], always=True),
        Part("models by blocked agents", rows=rows, always=always or not compared_in(runs)),
        Part("trends with blocked agents", [plain(finding_text(finding)) for finding in trends]),
    ]


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the progress of each model and the rates of its finished runs; rates exclude running runs."""
    by = list(dict.fromkeys(options.get("by") or ["model_name"]))
    runs = _with_groups(snapshot.logs.runs, by).assign(_running=_running(snapshot))
    n_definitions = len(cast(MindcraftLogs, snapshot.logs).definitions)
    tasks: dict[Any, dict[str, float]] = {}  # by model: number of tasks done (no run is running) and expected
    wanted: float
    for model, group in runs.groupby("model_name"):
        totals = group.groupby("experiment_folder")["experiment_total"].max()
        keys = ["task_id"]
        if snapshot.expected is not None:
            wanted = snapshot.expected
        elif totals.notna().all():
            wanted, keys = int(totals.sum()), ["experiment_folder", "task_id"]
        else:
            wanted = n_definitions or math.nan
            group = group[group["has_definition"]] if n_definitions else group
        tasks[model] = {"done": int((~group.groupby(keys)["_running"].any()).sum()), "expected": wanted}
    done = pd.DataFrame.from_dict(tasks, orient="index").astype({"done": "int64", "expected": "float64"})
    running = runs.groupby(by, dropna=False)["_running"].sum().rename("running").reset_index()
    finished = runs[~runs["_running"]]
    counts = dict.fromkeys(["n", *STATUSES], 0)
    if finished.empty:
        rates = running.assign(**counts, estimate=math.nan, low=math.nan, high=math.nan)
    else:
        rates = best_first(analysis.overview(finished, by).merge(running, on=by, how="outer").fillna(counts))
    rates = rates.astype(dict.fromkeys(counts, "int64"))
    rows = []
    for row, cells in zip(rates.to_dict("records"), _rows(rates, by), strict=True):
        head = {column_title(column): cells.pop(column_title(column)) for column in by}
        if by == ["model_name"]:
            head["tasks"] = so_far(*done.loc[row["model_name"], ["done", "expected"]])
        rows.append({**head, "running": str(row["running"]), **cells})
    table = fit_table(rows, left=len(by), spare=_SPARE, width=snapshot.width)
    n_done, expected = done["done"].sum(), done["expected"].sum(skipna=False)
    n_running = int(runs["_running"].sum())
    total = f"\ntotal: {so_far(n_done, expected, 'task')} done, {counted_noun(n_running, 'run')} running"
    complete = bool((done["done"] >= done["expected"]).all()) and not n_running
    return "\n".join([table, total, *_exclusions(runs), *_notes(runs)]), complete


def _running(snapshot: Snapshot) -> list[bool]:
    """Return which runs are still being written."""
    runs, agents = snapshot.logs.runs, snapshot.logs["agents"]
    ended = set(agents.loc[agents["final_system_message"].notna(), "run_id"])
    paths = agents.groupby("run_id")["source"].apply(list).to_dict()
    running = []
    for run_id, source, timeout in runs[["run_id", "source", "timeout"]].itertuples(index=False, name=None):
        idle = timeout if snapshot.idle is None else snapshot.idle
        own = paths.get(run_id, [source]) if run_id not in ended else ()
        running.append(any(path in snapshot.being_written or snapshot.unchanged_for(path) < idle for path in own))
    return running


def _rows(table: pd.DataFrame, by: Sequence[str]) -> list[dict[str, str]]:
    """Format groups as cells by header: names (cut to a width, but distinct), rates, and counts of any statuses."""
    if SUCCEEDED_LATE in table and not table[SUCCEEDED_LATE].any():
        table = table.drop(columns=SUCCEEDED_LATE)
    rows = rate_rows(table, by, "success rate")
    for cells, row in zip(rows, table.to_dict("records"), strict=True):
        cells |= {status.short: str(row[code]) for code, status in STATUSES.items() if code in row}
    return rows


def _with_groups(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return runs with columns to group by, in which lists become text. Raise SourceError for a missing column."""
    try:
        check_columns(runs, *by)
    except ValueError as error:
        raise SourceError(str(error)) from None
    lists = [column for column in by if runs[column].dtype == object]
    return runs.assign(**{column: runs[column].map(", ".join) for column in lists})


def _exclusions(runs: pd.DataFrame) -> list[str]:
    """Count the runs that rates exclude."""
    stale = int(has_flag(runs, "stale_copy").sum())
    return [f"copies of another run's log, excluded from all rates: {stale:,}"] if stale else []


def _notes(runs: pd.DataFrame) -> list[str]:
    """Describe the runs without a model's name, and the assumptions about agents and scores."""
    lines = []
    if unknown := int((runs["model_name"] == UNKNOWN).sum()):
        hint = "name it by --layout, such as '{model_name}/{task_id}', or by --model NAME"
        lines.append(f"runs without a model's name: {unknown:,}; {hint}")
    if merged := int(has_flag(analysis.counted(runs), "extra_agent_logs").sum()):
        lines.append(fill_template(words.MERGED, {"count": merged}))
    if has_flag(runs, "scale_assumed").any():
        lines.append(analysis.describe_scale(runs))
    return lines
