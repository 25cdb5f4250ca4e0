"""Rates of models that ran different tasks, made comparable: tasks in common, and rates for one mix of strata."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import by_cluster, check_choice, check_confidence, join, left_out, numbers
from evalkit.stats.grouped import Kind
from evalkit.stats.pairs.cells import Cells, cells_of

ESTIMATES = ["n", "n_clusters", "estimate", "low", "high", "method", "target", "warning"]


def shared_tasks(frame: pd.DataFrame, model: str, task: str, value: str) -> pd.DataFrame:
    """Count, for each model, the tasks it has runs of, and those that all models have.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns of the model, of the task and of the outcome. Rows with a missing one are left out.

    Returns
    -------
    DataFrame
        One row per model, in the order of their names: model, n_tasks, coverage (share of the tasks that any model has
        runs of), n_common (tasks that all models have), common_estimate (mean of the task means on those; NaN without).
    """
    return coverage_of(cells_of(frame, model, task, value))


def coverage_of(cells: Cells) -> pd.DataFrame:
    """Return the table of `shared_tasks` for cells."""
    common, tasks = cells.has(), (cells.sizes > 0).sum(axis=0)
    on_common = cells.means[common].mean(axis=0) if common.any() else np.full(len(cells.models), math.nan)
    return pd.DataFrame(
        {
            "model": pd.Series(cells.models, dtype="str"),
            "n_tasks": tasks,
            "coverage": tasks / len(cells.tasks) if cells.tasks else math.nan,
            "n_common": int(common.sum()),
            "common_estimate": on_common,
        }
    )


def standardise(
    frame: pd.DataFrame,
    by: str,
    stratum: str,
    value: str,
    clusters: str,
    *,
    kind: Kind = "proportion",
    mix: Mapping[Any, float] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Estimate the rate or mean of each group for one mix of strata, such as types of tasks (direct standardisation).

    The estimate is Σ weight × mean of the stratum, in which each cluster has the same weight. The interval of a bounded
    value is put together from those of the strata (MOVER, Zou and Donner 2008), that of others is Welch's t.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    by, stratum, value, clusters : str
        Columns of the group (such as the model), of the stratum, of the outcome and of the cluster (such as the task).
        Rows with a missing one are left out and counted.
    kind : {"proportion", "score", "mean"}
        As for `estimate_by`.
    mix : mapping of stratum to weight, optional
        Weights that add up to more than 0; by default the number of different clusters of each stratum.
    confidence : float

    Returns
    -------
    DataFrame
        The columns of `estimate_by`. Without estimate where a group has no values of a stratum with weight: its mix
        can't be reached, and `warning` names the stratum.

    Raises
    ------
    ValueError
        For an unknown kind or column, or weights that are negative or all 0.
    """
    check_confidence(confidence)
    check_choice("kind", kind, ("proportion", "score", "mean"))
    check_columns(frame, by, stratum, value, clusters)
    outcomes = numbers(frame[value])
    usable = np.isfinite(outcomes) & frame[[by, stratum, clusters]].notna().all(axis=1).to_numpy()
    rows = frame[usable].assign(**{value: outcomes[usable]})
    _check_values(rows[value], kind)
    weights = _weights(rows, stratum, clusters, mix)
    groups = dict(iter(rows.groupby(by, observed=True)))
    lost = frame[by].where(~usable).value_counts()
    names = sorted(frame[by].dropna().unique(), key=str)
    cells = [_standardised(groups.get(name), stratum, value, clusters, weights, kind, confidence) for name in names]
    table = pd.DataFrame(cells, columns=ESTIMATES)
    table["warning"] = [
        join(w, left_out(int(lost.get(n, 0)), "row")) for n, w in zip(names, table["warning"], strict=True)
    ]
    table.insert(0, by, pd.Series(names, dtype=frame[by].dtype))
    return table


def _check_values(values: pd.Series, kind: str) -> None:
    if kind == "proportion" and not values.isin((0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use kind='score' or kind='mean' for others")
    if kind == "score" and not values.between(0, 1).all():
        raise ValueError("scores lie from 0 to 1; use kind='mean' for others")


def _weights(rows: pd.DataFrame, stratum: str, clusters: str, mix: Mapping[Any, float] | None) -> pd.Series:
    counted = rows.groupby(stratum, observed=True)[clusters].nunique()
    weights = pd.Series(mix, dtype="float64") if mix is not None else counted.astype("float64")
    if len(weights) and ((weights < 0).any() or not weights.sum() > 0):
        raise ValueError("weights are at least 0, and not all 0")
    return weights[weights > 0] / weights.sum()


def _standardised(
    rows: pd.DataFrame | None, stratum: str, value: str, clusters: str, weights: pd.Series, kind: str, confidence: float
) -> tuple:
    method, n = "standardised, MOVER" if kind != "mean" else "standardised, Welch t", 0 if rows is None else len(rows)
    strata: dict[Any, pd.DataFrame] = {} if rows is None else dict(iter(rows.groupby(stratum, observed=True)))
    groups = {
        name: by_cluster(runs[value].to_numpy(float), pd.factorize(runs[clusters])[0]) for name, runs in strata.items()
    }
    count = sum(len(group.means) for group in groups.values())
    nan = math.nan
    if not n:
        return n, count, nan, nan, nan, method, "new tasks", "no values"
    if missing := [name for name in weights.index if name not in groups]:
        reason = f"no values of {', '.join(map(str, missing))} ({100 * weights[missing].sum():.0f} % of the mix)"
        return n, count, nan, nan, nan, method, "new tasks", reason
    used = [(weight, groups[name]) for name, weight in weights.items()]
    estimate = sum(weight * group.means.mean() for weight, group in used)
    if kind == "mean":
        low, high, warning = _welch(used, estimate, confidence)
    else:
        below, above = np.sqrt(sum(weight**2 * _distances(group, kind, confidence) ** 2 for weight, group in used))
        low, high, warning = estimate - below, estimate + above, ""
        fewest = min(len(group.means) for _, group in used)
        warning = f"a stratum with {fewest} clusters: a rough interval" if fewest < 3 else ""
    return n, count, float(estimate), float(low), float(high), method, "new tasks", warning


def _distances(group: Any, kind: str, confidence: float) -> np.ndarray:
    """Return how far the bounds of a stratum lie below and above its mean."""
    mean = group.means.mean()
    if len(group.means) == 1:
        low, high = formulas.wilson(mean, 1, confidence)
    else:
        low, high = formulas.bounded(group.means, group.sizes, confidence, kind == "proportion")
    return np.array([mean - low, high - mean])


def _welch(used: list, estimate: float, confidence: float) -> tuple[float, float, str]:
    if min(len(group.means) for _, group in used) < 2:
        return math.nan, math.nan, "a stratum with a single cluster has no interval"
    terms = [(weight**2 * formulas.variance_of_mean(group.means), len(group.means) - 1) for weight, group in used]
    variance = sum(term for term, _ in terms)
    if variance <= 0:
        return math.nan, math.nan, "all clusters of each stratum have the same mean: their spread can't be estimated"
    freedom = variance**2 / sum(term**2 / free for term, free in terms)
    half = formulas.student(confidence, freedom) * math.sqrt(variance)
    return estimate - half, estimate + half, ""
