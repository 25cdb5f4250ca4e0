"""Estimate success, completion and scores of groups of runs; every rate has n and an interval.

Runs that repeat a task are not independent: tasks have equal weight, and intervals are for new tasks like these. Runs
flagged ``stale_copy`` hold another run's log and are counted nowhere here.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd

from evalkit._names import check_columns
from evalkit._notes import Notes, note
from evalkit.mindcraft.format import CompletionStatus
from evalkit.stats import estimate_by

Missing = Literal["failure", "exclude"]
NO_SCORE = note("no_score", "no run logged a score")
NO_RUN = note("no_run", "no run but stale copies")
_NOTHING = {"n": 0, "n_clusters": 0, "method": "", "target": ""}  # of a group without rows


def has_score(runs: pd.DataFrame) -> pd.Series:
    """Return for each run whether a score was logged, from 0 to 100."""
    return runs["overall_raw_score"].between(0, 100)


def is_stale(runs: pd.DataFrame) -> pd.Series:
    """Return for each run whether it holds a copy of another run's log."""
    return runs["flag_stale_copy"].fillna(False).astype(bool)


def counted(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs that count in rates: all but stale copies."""
    return runs[~is_stale(runs)]


def success_by(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate the success rate (score = 1) of groups of runs.

    Parameters
    ----------
    runs : DataFrame
        As `runs_df` returns it.
    by : str or list of str
        Columns of the groups; an empty list for all runs together.
    missing : {"failure", "exclude"}
        How a run without a score counts.

    Returns
    -------
    DataFrame
        The columns of `by`, then n, n_clusters (tasks), estimate (the mean of the rates of tasks), low, high, method,
        target, warning, n_without_score (runs of the group without a score, whether counted or left out), and
        success_rate, which is the estimate again under a common name. A group in which no run logged a score has no
        rate (NaN, and the reason in `warning`). Stale copies are left out; `warning` says how many.
    """
    out = _estimates(runs, by, "overall_is_successful", "proportion", missing)
    return out.assign(success_rate=out["estimate"])


def completion_by(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate the completion rate (score > 0); columns as `success_by`, but for success_rate."""
    return _estimates(runs, by, "overall_is_completed", "proportion", missing)


def score_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the mean score, from 0 to 1, of the runs that have one; columns as `completion_by`."""
    return _estimates(runs, by, "overall_score", "score", "exclude")


def _estimates(
    runs: pd.DataFrame, by: str | Sequence[str], value: str, kind: Literal["proportion", "score"], missing: Missing
) -> pd.DataFrame:
    if missing not in ("failure", "exclude"):
        raise ValueError(f"missing {missing!r}: failure or exclude")
    by = _columns(runs, by)
    stale, scored = is_stale(runs), has_score(runs)
    counts = pd.DataFrame({"stale": stale, "scored": scored & ~stale, "n_without_score": ~scored & ~stale})
    groups, number = _group(runs, by, counts.astype("int64"))
    table = pd.DataFrame({"group": number, "value": runs[value].astype("float64"), "task": tasks_of(runs)})
    included = ~stale & scored if missing == "exclude" else ~stale
    out = estimate_by(table[included], "group", "value", clusters="task", kind=kind).set_index("group")
    out = out.reindex(range(len(groups))).fillna(_NOTHING)
    out = out.astype({name: "int64" if value == 0 else "str" for name, value in _NOTHING.items()})
    unscored = groups["scored"] == 0
    out.loc[unscored, ["estimate", "low", "high"]] = math.nan
    reasons = zip(out["warning"], unscored, groups["n_without_score"] == 0, groups["stale"], strict=True)
    out["warning"] = [_reason(*reason) for reason in reasons]
    return pd.concat([groups[by], out, groups["n_without_score"]], axis=1)


def _group(runs: pd.DataFrame, by: list[str], counts: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Return one row per group, with its keys and the sums of `counts`, and for each run the row of its group."""
    if not by:
        number = pd.Series(0, runs.index, dtype="int64")
        return counts.groupby(number).sum(), number
    grouped = pd.concat([runs[by], counts], axis=1).groupby(by, dropna=False, observed=True)
    return grouped[list(counts)].sum().reset_index(), grouped.ngroup()


def _reason(warning: Notes, unscored: bool, no_run: bool, stale: int) -> Notes:
    """Note what is doubtful about an estimate, or why there is none, and how many stale copies were left out."""
    if unscored:
        warning = NO_RUN if no_run else NO_SCORE
    copies = f"stale cop{'y' if stale == 1 else 'ies'}"
    return warning + (note("stale", "{count} {copies} left out", count=stale, copies=copies) if stale else Notes())


def tasks_of(runs: pd.DataFrame) -> pd.Series:
    """Return the identity of each run's task: its id, with the definition's file where runs of an id have several.

    A file that was only guessed (the flag ``ambiguous_definition``) is not used.
    """
    if "definition_file" not in runs:
        return runs["task_id"]
    files = runs["definition_file"].mask(runs["flag_ambiguous_definition"])
    several = files.groupby(runs["task_id"]).transform("nunique") > 1
    return runs["task_id"].mask(several & files.notna(), runs["task_id"] + " of " + files)


def _columns(runs: pd.DataFrame, by: str | Sequence[str]) -> list[str]:
    names = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    check_columns(runs, *names)
    return names


def both_ways(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return success rates with runs without a score as failures (estimate) and left out (scored_…), side by side.

    Groups of a single column are sorted with the best first, others by their keys.
    """
    out = success_by(runs, by).drop(columns=["method", "success_rate"])
    scored = success_by(runs, by, missing="exclude")
    out = out.join(scored[["n", "estimate", "low", "high"]].add_prefix("scored_"))
    return _best_first(out) if isinstance(by, str) or len(by) == 1 else out


def _best_first(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True)


def status_counts(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Count the runs of each group by completion status: one column per status, even if it is 0.

    Stale copies are left out; a group of stale copies only has zeros.
    """
    by = _columns(runs, by)
    fresh = ~is_stale(runs)
    is_status = {str(s): (runs["overall_completion_status"] == str(s)) & fresh for s in CompletionStatus}
    return _group(runs, by, pd.DataFrame(is_status, index=runs.index).astype("int64"))[0]


def overview(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return success rates and counts of statuses of each group, the best first."""
    by = _columns(runs, by)
    statuses = status_counts(runs, by).drop(columns=by)
    return _best_first(success_by(runs, by).join(statuses))  # both have one row per group, in the same order


def headline(runs: pd.DataFrame, what: str) -> dict[str, Any]:
    """Return a row of `success_by` for a headline, with `label`: what the figure is, or the reason for none."""
    table = success_by(runs, [])
    if table.empty:
        return {"label": f"{what}: no runs of this kind"}
    row: dict[Any, Any] = table.iloc[0].to_dict()
    unknown = row["estimate"] != row["estimate"]
    return {**row, "label": f"{what}: {row['warning']}" if unknown else what}
