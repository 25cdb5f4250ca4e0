"""Terminal output for trajectories, made from the same estimates as the tables of the notebook."""

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd

from evalkit._text import counted_noun
from evalkit.display.follow import Snapshot
from evalkit.display.terminal import Part, column_title, fit_table, group_names, rate_rows, unmeasured_lines
from evalkit.io.screen import so_far
from evalkit.kinds import has_flag, outcome_of, outcomes, rates
from evalkit.kinds.success_rates import best_first
from evalkit.trajectories.analysis import compared_models, counted, endings, has_outcomes, took, trials
from evalkit.trajectories.logs import TrajectoriesLogs
from evalkit.trajectories.table import ENDINGS

_TAKEN = {
    "n": "runs",
    "turns": "turns",
    "tokens_in": "tokens read",
    "tokens_cache": "from a cache",
    "tokens_out": "written",
    "tool_calls": "tool calls",
    "tool_errors": "errors",
}
_SPARE = [status.text for status in ENDINGS.values()]  # columns that a narrow screen omits


def describe(logs: TrajectoriesLogs, views: Mapping[str, Any]) -> list[Part]:
    """Format rates or mean scores by model, how runs ended, and which planned trials are missing.

    If no log records an outcome, the table shows turns, tokens and tool calls instead.
    """
    if has_outcomes(logs.runs):
        frame = best_first(rates(logs.runs)).merge(endings(logs.runs), on="model_name", how="left")
        rows = _rows(logs.runs)
    else:
        frame = took(logs.runs, logs.usage, logs.tools)
        rows = _taken_rows(frame)
    return [
        Part("models", rows=rows, always=True, spare=_SPARE, frame=frame),
        Part("notes", _notes(logs), always=True),
        Part("rates of measured runs only", unmeasured_lines(logs.runs, ["model_name"], logs.kind)),
    ]


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the rates of the runs that have ended, progress against the plan, and the number of running runs.

    The second value is whether all planned or expected trials are done and no run is running.
    """
    logs = cast(TrajectoriesLogs, snapshot.logs)
    running = outcome_of(logs.runs, logs.kind).eq("running")
    table = trials(logs.runs, logs.plans)
    planned = table["planned"].sum() if table["planned"].notna().any() else None
    models = counted(logs.runs)["model_name"].nunique()
    expected = planned if snapshot.expected is None else snapshot.expected * models
    if snapshot.expected is None and planned is not None:
        table = table[table["planned"].notna()]  # only planned trials count towards the total
    done = int(table["present"].sum())
    total = f"\ntotal: {so_far(done, expected, 'trial')} done, {counted_noun(int(running.sum()), 'run')} running"
    ended = logs.runs[~running]
    rows = _rows(ended) if has_outcomes(ended) else _taken_rows(took(ended, logs.usage, logs.tools))
    text = fit_table(rows, spare=_SPARE, width=snapshot.width) if rows else "no run has ended"
    is_complete = expected is not None and done >= expected and not running.any()
    return "\n".join([text, total, *_notes(logs)]), bool(is_complete)


def _rows(runs: pd.DataFrame) -> list[dict[str, str]]:
    """Format the rate or mean score of each model, best first, and how its runs ended."""
    if runs.empty:
        return []
    data, table = outcomes(runs), best_first(rates(runs))
    ended = endings(runs).set_index("model_name").reindex(table["model_name"], fill_value=0)
    rows = rate_rows(table, ["model_name"], data.title, percent=data.is_share)
    for cells, counts in zip(rows, ended.to_dict("records"), strict=True):
        cells |= {ending.text: str(counts[name]) for name, ending in ENDINGS.items() if ended[name].any()}
    return rows


def _taken_rows(table: pd.DataFrame) -> list[dict[str, str]]:
    """Format the turns, tokens and tool calls of each model. Leave out columns that no log records."""
    column = compared_models(table)
    known = [name for name in _TAKEN if table[name].notna().any()]
    rows = []
    for model, row in zip(group_names(table[column]), table.to_dict("records"), strict=True):
        counts = {_TAKEN[name]: "–" if pd.isna(row[name]) else f"{int(row[name]):,}" for name in known}
        rows.append({column_title(column).replace("_", " "): model, **counts})
    return rows


def _notes(logs: TrajectoriesLogs) -> list[str]:
    """Describe missing trials, excluded runs, overruled outcomes and logs without outcomes."""
    table, runs = trials(logs.runs, logs.plans), logs.runs
    missing, planned = int(table["missing"].sum()), int(table["planned"].sum())
    repeated, overruled = int(table["repeated"].sum()), int(has_flag(runs, "overruled").sum())
    lines = []
    if missing:
        verb = "is" if missing == 1 else "are"
        lines.append(f"{missing:,} of {counted_noun(planned, 'planned trial')} {verb} missing")
    if repeated:
        lines.append(f"{counted_noun(repeated, 'run')} also in other logs, or repeated later: excluded")
    if overruled:
        lines.append(f"outcomes overruled: {overruled:,}")
    if not has_outcomes(runs):
        advice = "give outcomes with --outcomes FILE"
        if runs["format"].isin(["SWE-agent", "mini-swe-agent"]).any():
            advice = f"put SWE-bench's report next to the logs, or {advice}"
        lines.append(f"no log records an outcome: {advice}")
    return lines
