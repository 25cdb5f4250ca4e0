"""Rates of models that ran different tasks, made comparable: tasks in common, rates for one mix, and which to use."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit._notes import Notes, left_out, note
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import Cells, Clusters, by_cluster, cells_of, check_choice, check_confidence, coded, numbers
from evalkit.stats.intervals import Kind, estimate_by
from evalkit.stats.models.task_effects import adjusted

RAW, ADJUSTED, STANDARDISED, NONE = "raw", "adjusted for tasks", "standardised", "none"
ESTIMATES = ["n", "n_clusters", "estimate", "low", "high", "method", "target", "warning"]


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

    Rows with a missing value are left out and counted. `mix` maps strata to weights, by default the number of different
    clusters of each. Without estimate where a group has no values of a stratum with weight: its mix can't be reached,
    and `warning` names the stratum. The columns are those of `estimate_by`.
    """
    check_confidence(confidence)
    check_choice("kind", kind, get_args(Kind))
    check_columns(frame, by, stratum, value, clusters)
    outcomes, keys = numbers(frame[value]), frame[[by, stratum, clusters]]
    usable = np.isfinite(outcomes) & keys.notna().all(axis=1).to_numpy()
    rows = keys[usable].set_axis(["by", "stratum", "cluster"], axis=1).assign(value=outcomes[usable])
    if kind == "proportion" and not rows["value"].isin((0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use kind='score' or kind='mean' for others")
    if kind == "score" and not rows["value"].between(0, 1).all():
        raise ValueError("scores lie from 0 to 1; use kind='mean' for others")
    counted = rows.groupby("stratum", observed=True)["cluster"].nunique()
    weights = (counted if mix is None else pd.Series(mix)).astype("float64")
    if len(weights) and ((weights < 0).any() or not weights.sum() > 0):
        raise ValueError("weights are at least 0, and not all 0")
    weights = weights[weights > 0] / weights.sum()
    groups = dict(iter(rows.groupby("by", observed=True)))
    lost = frame[by].where(~usable).value_counts()
    names = sorted(frame[by].dropna().unique(), key=str)
    estimates = []
    for name in names:
        *estimate, warning = _standardised(groups.get(name, rows[:0]), weights, kind, confidence)
        estimates.append((*estimate, warning + left_out(int(lost.get(name, 0)), "row")))
    table = pd.DataFrame(estimates, columns=ESTIMATES)
    table.insert(0, by, pd.Series(names, dtype=frame[by].dtype))
    return table


def _standardised(rows: pd.DataFrame, weights: pd.Series, kind: str, confidence: float) -> tuple:
    """Return the fields of `ESTIMATES` for one group."""
    groups: dict[Any, Clusters] = {
        name: by_cluster(runs["value"].to_numpy(float), pd.factorize(runs["cluster"])[0])
        for name, runs in rows.groupby("stratum", observed=True)
    }
    counts = len(rows), sum(len(group.means) for group in groups.values())
    described = f"standardised, {'Welch t' if kind == 'mean' else 'MOVER'}", "new tasks"
    missing = [name for name in weights.index if name not in groups]
    if rows.empty or missing:
        which = note("strata_missing", strata=list(map(str, missing)), share=weights[missing].sum())
        return *counts, math.nan, math.nan, math.nan, *described, note("no_values") if rows.empty else which
    used = [(weight, groups[name]) for name, weight in weights.items()]
    estimate = sum(weight * group.means.mean() for weight, group in used)
    if kind == "mean":
        low, high, warning = _welch(used, estimate, confidence)
    else:
        below, above = np.sqrt(sum(weight**2 * _distances(group, kind, confidence) ** 2 for weight, group in used))
        fewest = min(len(group.means) for _, group in used)
        low, high = estimate - below, estimate + above
        warning = note("few_of_stratum", count=fewest) if fewest < 3 else Notes()
    return *counts, float(estimate), float(low), float(high), *described, warning


def _distances(group: Clusters, kind: str, confidence: float) -> np.ndarray:
    """Return how far the bounds of a stratum lie below and above its mean."""
    mean = group.means.mean()
    if len(group.means) == 1:
        low, high = formulas.wilson(mean, 1, confidence)
    else:
        low, high = formulas.bounded(group.means, group.sizes, confidence, kind == "proportion")
    return np.array([mean - low, high - mean])


def _welch(used: list, estimate: float, confidence: float) -> tuple[Any, Any, Notes]:
    if min(len(group.means) for _, group in used) < 2:
        return math.nan, math.nan, note("one_of_stratum")
    terms = [(weight**2 * formulas.variance_of_mean(group.means), len(group.means) - 1) for weight, group in used]
    variance = sum(term for term, _ in terms)
    if variance <= 0:
        return math.nan, math.nan, note("strata_equal")
    freedom = variance**2 / sum(term**2 / free for term, free in terms)
    return *formulas.by_t(estimate, variance, freedom, confidence), Notes()


class LikeWithLike(NamedTuple):
    """Rates of models with and without adjustment for the tasks they ran.

    Attributes
    ----------
    table : DataFrame
        One row per model; see `like_with_like`.
    headline : str
        Which estimates may stand in a headline: "raw", "adjusted for tasks", "standardised" or "none".
    reason : Notes
        Why.
    """

    table: pd.DataFrame
    headline: str
    reason: Notes


def like_with_like(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    stratum: str | None = None,
    *,
    condition: str = "",
    kind: Kind = "proportion",
    confidence: float = 0.95,
) -> LikeWithLike:
    """Return each model's raw rate beside its coverage of the tasks and its rate adjusted for them.

    The rule for the headline: where all models ran the same tasks, the raw rates. Else those adjusted for tasks
    (see `docs/statistics.md`) where shared tasks link all models, else those standardised to the pooled mix of strata
    where all models have all strata, else none. The reason names models that the raw rates and those
    of the headline order differently.

    Parameters
    ----------
    frame, model, task, value, condition, confidence
        As for `compare_all`; tasks under different conditions are different ones, from the same cluster.
    stratum : str, optional
        Column of the type of task.
    kind : {"proportion", "score", "mean"}
        As for `estimate_by`.

    Returns
    -------
    LikeWithLike
        The table has model, n (runs), n_tasks, coverage; estimate, low, high, method (raw);
        adjusted, adjusted_low, adjusted_high; standardised, standardised_low, standardised_high; headline,
        headline_low, headline_high (those of the rule; NaN for "none"); warning.
    """
    check_choice("kind", kind, get_args(Kind))
    cells = cells_of(frame, model, task, value, condition)
    known = frame[frame[model].notna() & frame[task].notna()].astype({model: "str"})
    raw = estimate_by(known, model, value, task, kind, confidence).rename(columns={model: "model"})
    by_task_type = pd.DataFrame(columns=["model", "estimate", "low", "high"], dtype="float64").astype({"model": "str"})
    if stratum is not None:
        by_task_type = standardise(known, model, stratum, value, task, kind=kind, confidence=confidence)
        by_task_type = by_task_type.rename(columns={model: "model"})
    coverage = (cells.sizes > 0).mean(axis=0) if cells.tasks else math.nan
    table = pd.DataFrame({"model": pd.Series(cells.models, dtype="str"), "coverage": coverage})
    raw = raw.rename(columns={"n_clusters": "n_tasks"}).drop(columns="target")
    table = table.merge(raw, on="model", how="left").astype({"n_tasks": "Int64"}).fillna({"n_tasks": 0})
    strata = None if stratum is None else strata_of(cells, known.groupby(task)[stratum].first())
    adjustments = {"adjusted": adjusted(cells, confidence, strata), STANDARDISED: by_task_type}
    for name, other in adjustments.items():
        columns = {"estimate": name, "low": f"{name}_low", "high": f"{name}_high"}
        table = table.merge(other[["model", *columns]].rename(columns=columns), on="model", how="left")
    headline, reason = _headline(table)
    column = {RAW: "estimate", ADJUSTED: "adjusted"}.get(headline, headline)
    shown = [column, "low", "high"] if headline == RAW else [column, f"{column}_low", f"{column}_high"]
    for name, source in zip(("headline", "headline_low", "headline_high"), shown, strict=True):
        table[name] = math.nan if headline == NONE else table[source]
    return LikeWithLike(table, headline, reason)


def strata_of(cells: Cells, kinds: pd.Series) -> np.ndarray:
    """Return a code for each row of cells: of the kind of its task, in `kinds` by task, and its condition."""
    named = [(name, "") if cells.clusters is None else name for name in cells.tasks]
    return coded(pd.Series([f"{kinds.get(name, '')}\0{condition}" for name, condition in named], dtype="object"))[0]


def _headline(table: pd.DataFrame) -> tuple[str, Notes]:
    if len(table) < 2 or (table["coverage"] == 1).all():
        return RAW, note("same_tasks" if len(table) > 1 else "one_model")
    columns = {ADJUSTED: "adjusted", STANDARDISED: STANDARDISED}
    name = next((name for name, column in columns.items() if table[column].notna().all()), NONE)
    if name == NONE:
        return NONE, note("incomparable")
    order = table.sort_values(["estimate", columns[name]], ascending=False, kind="stable")
    swapped = np.flatnonzero((np.diff(order["estimate"]) < -1e-9) & (np.diff(order[columns[name]]) > -1e-9))
    if not len(swapped):
        return name, note("same_order", basis=name)
    one, other = order["model"].iloc[swapped[0]], order["model"].iloc[swapped[0] + 1]
    return name, note("other_order", basis=name, one=one, other=other)
