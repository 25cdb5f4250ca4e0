"""Estimate success, completion and scores of groups of runs; every rate has n and an interval.

Runs that repeat a task are not independent: tasks have equal weight, and intervals are for new tasks like these. Runs
flagged ``stale_copy`` hold another run's log and are counted nowhere here.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from evalkit.kinds import rates
from evalkit.kinds.estimates import Missing, sums_by
from evalkit.mindcraft.format import SUCCEEDED_LATE, CompletionStatus
from evalkit.mindcraft.kind import KIND

ENDINGS = ("SUCCESS", SUCCEEDED_LATE, *(str(status) for status in CompletionStatus if status != "SUCCESS"))


def with_endings(runs: pd.DataFrame) -> pd.DataFrame:
    """Add how runs ended: their status, or that a run timed out and succeeded, as its score of 1 says."""
    late = (runs["overall_completion_status"] == CompletionStatus.TIMED_OUT) & runs["overall_is_successful"]
    return runs.assign(ending=runs["overall_completion_status"].mask(late, SUCCEEDED_LATE))


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
    missing : {"failure", "exclude", "success"}
        How a run that was not measured counts: one whose logs can't be read, or that has no score and no time-out.

    Returns
    -------
    DataFrame
        As `evalkit.kinds.rates`, and success_rate, which is the estimate again under a common name. Stale copies are
        left out; `warning` says how many.
    """
    out = rates(runs, by, "is_successful", KIND, missing=missing)
    return out.assign(success_rate=out["estimate"])


def completion_by(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate the completion rate (score > 0); columns as `success_by`, but for success_rate."""
    completed = runs["overall_is_completed"].astype("boolean").where(runs["is_successful"].notna())
    return rates(runs.assign(is_successful=completed), by, "is_successful", KIND, missing=missing)


def score_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the mean score, from 0 to 1, of the runs that have one; columns as `completion_by`."""
    return rates(runs, by, "score", KIND)


def tasks_of(runs: pd.DataFrame) -> pd.Series:
    """Return the identity of each run's task: its id, with the definition's file where runs of an id have several.

    A file that was only guessed (the flag ``ambiguous_definition``) is not used.
    """
    if "definition_file" not in runs:
        return runs["task_id"]
    files = runs["definition_file"].mask(runs["flag_ambiguous_definition"])
    several = files.groupby(runs["task_id"]).transform("nunique") > 1
    return runs["task_id"].mask(several & files.notna(), runs["task_id"] + " of " + files)


def _best_first(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True)


def status_counts(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Count the runs of each group by how they ended: one column for each of `ENDINGS`, even if it is 0.

    Those that succeeded are in the first two. Stale copies are left out; a group of stale copies only has zeros.
    """
    fresh, endings = ~is_stale(runs), with_endings(runs)["ending"]
    return sums_by(runs, by, pd.DataFrame({name: endings.eq(name) & fresh for name in ENDINGS}, index=runs.index))[0]


def overview(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return success rates and counts of statuses of each group, the best first."""
    statuses = status_counts(runs, by).drop(columns=[by] if isinstance(by, str) else list(by))
    return _best_first(success_by(runs, by).join(statuses))  # both have one row per group, in the same order


def headline(runs: pd.DataFrame, what: str) -> dict[str, Any]:
    """Return a row of `success_by` for a headline, with a code and `what` the figure is."""
    table = success_by(runs, [])
    if table.empty:
        return {"code": "no_runs", "what": what}
    row: dict[Any, Any] = table.iloc[0].to_dict()
    return {**row, "code": "rate" if row["estimate"] == row["estimate"] else "no_rate", "what": what}
