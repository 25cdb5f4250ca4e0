"""Rates of models that ran different tasks, made comparable: tasks in common, rates for one mix, and which to use."""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._words import Notes, note
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import Cells, Clusters, by_cluster, cells_of, coded, numbers
from evalkit.stats.intervals import Kind, estimate_by
from evalkit.stats.models.task_effects import adjusted

RAW, ADJUSTED, STANDARDISED, NONE = "raw", "adjusted for tasks", "standardised", "none"


def standardise(
    frame: pd.DataFrame, model: str, stratum: str, value: str, task: str, kind: Kind, confidence: float
) -> pd.DataFrame:
    """Estimate the rate or mean of each model for one mix of strata, such as types of tasks (direct standardisation).

    The estimate is Σ weight × mean of the stratum, weights the numbers of different tasks; each task of a stratum has
    the same weight. The interval of a bounded value is put together from those of the strata (MOVER, Zou and Donner
    2008), that of others is Welch's t. A model without values of a stratum has no estimate: it can't reach the mix.
    """
    outcomes, keys = numbers(frame[value]), frame[[model, stratum, task]]
    usable = np.isfinite(outcomes) & keys.notna().all(axis=1).to_numpy()
    rows = keys[usable].set_axis(["model", "stratum", "task"], axis=1).assign(value=outcomes[usable])
    counted = rows.groupby("stratum", observed=True)["task"].nunique()
    estimates = []
    for name, own in rows.groupby("model", observed=True):
        strata = [runs for _, runs in own.groupby("stratum", observed=True)]
        if len(strata) < len(counted):
            continue
        groups = [by_cluster(runs["value"].to_numpy(float), pd.factorize(runs["task"])[0]) for runs in strata]
        used = list(zip(counted / counted.sum(), groups, strict=True))
        estimate = sum(weight * group.means.mean() for weight, group in used)
        if kind == "mean":
            low, high = _welch(used, estimate, confidence)
        else:
            below, above = np.sqrt(sum(weight**2 * _distances(group, kind, confidence) ** 2 for weight, group in used))
            low, high = estimate - below, estimate + above
        estimates.append((name, float(estimate), float(low), float(high)))
    types = {"model": "str", "estimate": "float64", "low": "float64", "high": "float64"}
    return pd.DataFrame(estimates, columns=list(types)).astype(types)


def _distances(group: Clusters, kind: str, confidence: float) -> np.ndarray:
    """Return how far the bounds of a stratum lie below and above its mean."""
    mean = group.means.mean()
    if len(group.means) == 1:
        low, high = formulas.wilson(mean, 1, confidence)
    else:
        low, high = formulas.bounded(group.means, group.sizes, confidence, kind == "proportion")
    return np.array([mean - low, high - mean])


def _welch(used: list, estimate: float, confidence: float) -> tuple[Any, Any]:
    if min(len(group.means) for _, group in used) < 2:
        return math.nan, math.nan
    terms = [(weight**2 * formulas.variance_of_mean(group.means), len(group.means) - 1) for weight, group in used]
    variance = sum(term for term, _ in terms)
    if variance <= 0:
        return math.nan, math.nan
    freedom = variance**2 / sum(term**2 / free for term, free in terms)
    return formulas.by_t(estimate, variance, freedom, confidence)


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
    cells = cells_of(frame, model, task, value, condition)
    known = frame[frame[model].notna() & frame[task].notna()].astype({model: "str"})
    raw = estimate_by(known, model, value, task, kind, confidence).rename(columns={model: "model"})
    by_task_type = pd.DataFrame(columns=["model", "estimate", "low", "high"], dtype="float64").astype({"model": "str"})
    if stratum is not None:
        by_task_type = standardise(known, model, stratum, value, task, kind, confidence)
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
