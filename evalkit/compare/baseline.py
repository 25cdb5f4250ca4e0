"""Compare models with a baseline: better, not worse or a regression, and the tasks that each model broke or fixed."""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import scipy  # `scipy.stats` is imported on first use, because this takes half a second

from evalkit._notes import note
from evalkit.compare.comparison import Comparison, check_margin, comparison
from evalkit.io import SourceError
from evalkit.kinds.findings import absent_counts, absent_runs
from evalkit.kinds.runs import Value
from evalkit.stats import compare_to_baseline
from evalkit.stats.intervals import LEVEL, Target
from evalkit.stats.pairwise import holm

LEAST = 0.05  # acceptable loss, for shares, by default
_CHANGED = "model_name task change n_baseline n mean_baseline mean p_value p_adjusted decided run_ids_baseline run_ids"


def baseline_named(data: Comparison, name: str) -> str:
    """Return the model with this name, or the only one with this logged model; else raise SourceError."""
    models = data.all_cells.models
    if not name or name in models:
        return name
    table = data.outcomes.table
    own: list[str] = []
    if "logged_model" in table:
        own = sorted(set(table.loc[table["logged_model"] == name, "model_name"]))
    if len(own) == 1:
        return own[0]
    there = ", ".join(map(repr, own or models))
    if own:
        raise SourceError(f"{note('compared_by', columns=data.outcomes.compared_by)}, {name!r} is one of {there}")
    raise SourceError(f"no runs of the baseline {name!r}; there are runs of {there}")


def against(
    runs: pd.DataFrame | Comparison,
    baseline: str,
    value: Value = "",
    *,
    margin: float | None = None,
    target: Target = "new tasks",
    planned: Iterable[str] = (),
) -> pd.DataFrame:
    """Compare every model with a baseline: better, not worse, a regression, or not decided.

    `warning` counts absent runs, and gives the verdict that would result if they had failed, if it differs.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    baseline : str
        The model to compare with; for an empty string the table has no rows.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    margin : float, optional
        Largest acceptable loss, in the unit of the values; by default 0.05 for shares.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    planned : iterable of str
        Ids of the tasks that each model was planned to run.

    Returns
    -------
    DataFrame
        One row per model, as from `evalkit.stats.compare_to_baseline`.

    Raises
    ------
    SourceError
        If the baseline has no runs.
    ValueError
        For a margin of 0 or less.

    Examples
    --------
    >>> compare.against(runs, "alder-large")["verdict"].tolist()
    ['not decided', 'not decided', 'regression']
    """
    data = comparison(runs, value)
    cells = data.all_cells
    baseline = baseline_named(data, baseline)
    check_margin(data.outcomes, margin)
    least = margin
    if least is None:
        least = LEAST if data.outcomes.is_share else sys.float_info.min
    if not baseline:
        return compare_to_baseline(cells.take(models=[0]), cells.models[0], target=target, margin=least)
    table = data.outcomes.marked(compare_to_baseline(cells, baseline, target=target, margin=least))
    absent = absent_runs(data.outcomes.table, planned)
    lacking = absent_counts(absent)
    if not lacking:
        return table
    if_failed = table["verdict"]
    if data.outcomes.is_share:
        filled = compare_to_baseline(data.with_failures(absent).all_cells, baseline, target=target, margin=least)
        if_failed = table["model_name"].map(filled.set_index("model_name")["verdict"])
    warnings = []
    for row, verdict in zip(table.to_dict("records"), if_failed, strict=True):
        other = "" if verdict == row["verdict"] else verdict
        compared = (row["model_name"], baseline)
        counts: dict[str, Any] = {}
        for what, of_models in lacking.items():
            counts[what] = [count for count in of_models if count[0] in compared]
        if any(counts.values()):
            row["warning"] += note("absent", **counts, verdict=other)
        warnings.append(row["warning"])
    return table.assign(warning=pd.Series(warnings, table.index, dtype="object"))


def changed_tasks(runs: pd.DataFrame | Comparison, baseline: str, value: Value = "") -> pd.DataFrame:
    """List the tasks on which each model differs from the baseline, the largest changes first.

    A task is broken if the model's rate is below the baseline's, and fixed if it is above. For scores, the changes are
    lower and higher. Single tasks often change by chance. A change is `decided` if Fisher's exact test of the task's
    runs has p ≤ 0.05 after Holm's correction, which requires several runs. Scores are not tested.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    baseline : str
        The model to compare with; for an empty string the table has no rows.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.

    Returns
    -------
    DataFrame
        model_name, task, change, n_baseline and n (runs), mean_baseline, mean, p_value, p_adjusted, decided,
        run_ids_baseline and run_ids (lists). Tasks without a change, or that only one model ran, are excluded.

    Examples
    --------
    >>> compare.changed_tasks(runs, "alder-large")["change"].unique().tolist()
    ['broken', 'fixed']
    """
    compared = comparison(runs, value)
    data, baseline = compared.outcomes, baseline_named(compared, baseline)
    rows = compared.named_runs.dropna(subset="value").sort_values("value", kind="stable")
    cells = rows.groupby(["model_name", "task", "condition"], observed=True).agg(
        n=("value", "size"), mean=("value", "mean"), total=("value", "sum"), run_ids=("run_id", list)
    )
    cells = cells.reset_index()
    base = cells[cells["model_name"] == baseline].drop(columns="model_name")
    both = cells[cells["model_name"] != baseline].merge(base, on=["task", "condition"], suffixes=("", "_baseline"))
    both = both[both["mean"] != both["mean_baseline"]].reset_index(drop=True)
    above, below = ("fixed", "broken") if data.kind == "proportion" else ("higher", "lower")
    both["change"] = np.where(both["mean"] > both["mean_baseline"], above, below)
    for side, change in (("run_ids", above), ("run_ids_baseline", below)):
        is_reversed = both["change"] == change
        both[side] = [ids[::-1] if turn else ids for ids, turn in zip(both[side], is_reversed, strict=True)]
    both["p_value"] = both["p_adjusted"] = float("nan")
    if data.kind == "proportion":
        for at, row in both.iterrows():
            passed = [row["total"], row["total_baseline"]]
            failed = [row["n"] - row["total"], row["n_baseline"] - row["total_baseline"]]
            both.loc[at, "p_value"] = scipy.stats.fisher_exact([passed, failed]).pvalue
        for _, own in both.groupby("model_name"):
            both.loc[own.index, "p_adjusted"] = holm(own["p_value"])
    both["decided"] = both["p_adjusted"] <= LEVEL
    both["size"] = (both["mean"] - both["mean_baseline"]).abs()
    order = ["model_name", "change", "size", "task"]
    both = both.sort_values(order, ascending=[True, True, False, True], kind="stable", ignore_index=True)
    return both[_CHANGED.split()]
