"""Success, completion and scores of groups of runs; every rate with n and an interval.

Runs that repeat a task are not independent: intervals are robust to clusters of one task.
"""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from evalkit.mindcraft.format import CompletionStatus
from evalkit.stats import estimate_by

Missing = Literal["failure", "exclude"]


def has_score(runs: pd.DataFrame) -> pd.Series:
    """Tell for each run whether a score was logged."""
    return runs["overall_raw_score"].notna()


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
        What a run without a score counts as.

    Returns
    -------
    DataFrame
        The columns of `by`, then n, n_clusters (tasks), estimate, low, high, method, warning, and
        n_without_score: runs of the group without a score, whether counted or left out.
    """
    return _with_missing(runs, by, "overall_is_successful", "proportion", missing)


def completion_by(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate the completion rate (score > 0); columns as `success_by`."""
    return _with_missing(runs, by, "overall_is_completed", "proportion", missing)


def score_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the mean score, from 0 to 1, of the runs that have one; columns as `success_by`.

    Scores are shares, so bounds beyond 0 and 1 are cut.
    """
    out = _with_missing(runs, by, "overall_score", "mean", "exclude")
    return out.assign(low=out["low"].clip(lower=0), high=out["high"].clip(upper=1))


def _with_missing(
    runs: pd.DataFrame, by: str | Sequence[str], value: str, kind: Literal["proportion", "mean"], missing: Missing
) -> pd.DataFrame:
    if missing not in ("failure", "exclude"):
        raise ValueError(f"missing {missing!r}: failure or exclude")
    by = _columns(by)
    counted = has_score(runs) if missing == "exclude" else pd.Series(True, index=runs.index)
    table = runs[by].assign(_value=runs[value].astype("float64").where(counted), _task=tasks_of(runs))
    out = estimate_by(table, by, "_value", clusters="_task", kind=kind)
    lost = estimate_by(table.assign(_value=(~has_score(runs)).astype(float)), by, "_value")
    return out.assign(n_without_score=(lost["estimate"] * lost["n"]).round().astype("int64"))


def tasks_of(runs: pd.DataFrame) -> pd.Series:
    """Give what tells the task of each run: its id, with the definition's file where runs of an id have several.

    A file that was only guessed (the flag ``ambiguous_definition``) tells nothing.
    """
    if "definition_file" not in runs:
        return runs["task_id"]
    files = runs["definition_file"].mask(runs["flag_ambiguous_definition"])
    several = files.groupby(runs["task_id"]).transform("nunique") > 1
    return runs["task_id"].mask(several & files.notna(), runs["task_id"] + " of " + files)


def _columns(by: str | Sequence[str]) -> list[str]:
    return [by] if isinstance(by, str) else list(dict.fromkeys(by))


def both_ways(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Give success rates with runs without a score as failures (estimate) and left out (scored_…), side by side.

    Groups of one column stand with the best first, others in the order of their keys.
    """
    out = success_by(runs, by).drop(columns=["method"])
    scored = success_by(runs, by, missing="exclude")
    columns = {f"scored_{name}": scored[name] for name in ("n", "estimate", "low", "high")}
    out = out.assign(**columns)
    single = isinstance(by, str) or len(by) == 1
    return out.sort_values("estimate", ascending=False, kind="stable", ignore_index=True) if single else out


def status_counts(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Count the runs of each group by completion status: one column per status, also where it is 0."""
    by = _columns(by)
    is_status = {str(s): runs["overall_completion_status"] == str(s) for s in CompletionStatus}
    table = pd.DataFrame(is_status, index=runs.index).astype("int64")
    if not by:
        return table.sum().to_frame().T
    return pd.concat([runs[by], table], axis=1).groupby(by, dropna=False, observed=True).sum().reset_index()


def overview(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Give success rates and counts of statuses of each group, the best first."""
    by = _columns(by)
    success, statuses = success_by(runs, by), status_counts(runs, by)
    table = success.merge(statuses, on=by) if by else pd.concat([success, statuses], axis=1)
    return table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True)
