"""Success against cost: which models no other beats in both."""

import math
from typing import Any

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit._words import Notes, note
from evalkit.stats.inputs import check_confidence, numbers, typed
from evalkit.stats.intervals import mean_interval

N_RESAMPLES = 2_000

_MEANS = "model n_tasks success success_low success_high cost cost_low cost_high"


def cost_front(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    cost: str,
    *,
    confidence: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Return success and cost of each model, and which models are on the Pareto front.

    A model is on the front if no other has at least its success at no more than its cost, and one of the two strictly
    better. Runs of a task are averaged first. Models are compared on the tasks that all have runs of; where there are
    none, on their own, and `warning` says so. Arguments are those of `compare_all`, higher values are better; `cost` is
    the column of the cost, such as tokens or time.

    There is one row per model, the cheapest first: model, n_tasks, success and cost (means over tasks) with _low and
    _high, on_front, dominated_by (the cheapest model that is better in one and no worse in the other), front_share (of
    resamples of tasks, by the Bayesian bootstrap of Rubin 1981, in which it is on the front), warning.
    """
    check_confidence(confidence)
    check_columns(frame, model, task, value, cost)
    numeric = pd.DataFrame({"value": numbers(frame[value]), "cost": numbers(frame[cost])}, index=frame.index)
    usable = np.isfinite(numeric.to_numpy()).all(axis=1) & frame[[model, task]].notna().all(axis=1)
    keys = [frame.loc[usable, task], frame.loc[usable, model]]
    cells: Any = numeric[usable].groupby(keys, observed=True).mean().unstack()
    models = sorted(frame[model].dropna().unique(), key=str)
    empty = pd.DataFrame(columns=models, dtype="float64")
    values, costs = (cells[name].reindex(columns=models) if len(cells) else empty for name in numeric)
    common = values.notna().all(axis=1).to_numpy()
    where = note("on_common", what="", count=common.sum()) if common.any() else note("tasks_differ")
    where = Notes() if common.all() else where
    used = common if common.any() else slice(None)
    values, costs = values[used].to_numpy(float), costs[used].to_numpy(float)
    rows = []
    for i, name in enumerate(models):
        own, paid = (column[np.isfinite(column)] for column in (values[:, i], costs[:, i]))
        is_share = bool(((own >= 0) & (own <= 1)).all())
        parts = {
            "success": mean_interval(own, confidence=confidence, bounds=(0.0, 1.0) if is_share else None),
            "cost": mean_interval(paid, confidence=confidence),
        }
        doubts = (note("of_part", part=part, notes=one.warning) for part, one in parts.items() if one.warning)
        rows.append((name, len(own), *parts["success"][:3], *parts["cost"][:3], sum(doubts, Notes()) + where))
    table = pd.DataFrame(rows, columns=[*_MEANS.split(), "warning"])
    dominating = _dominating(table["success"].to_numpy(float), table["cost"].to_numpy(float))
    known = table[["success", "cost"]].notna().all(axis=1)
    table["on_front"] = known & ~np.asarray(dominating.any(axis=1))
    paid = np.where(dominating, table["cost"], math.inf)  # by the models that dominate each
    table["dominated_by"] = [str(models[row.argmin()]) if row.min() < math.inf else "" for row in paid]
    table["front_share"] = math.nan
    if common.sum() > 1:
        rng, counts = np.random.default_rng(0 if rng is None else rng), np.zeros(len(models))
        chunks = range(0, n_resamples, 100)
        for _ in chunks:
            weights = rng.dirichlet(np.ones(len(values)), 100)
            counts += (~_dominating(weights @ values, weights @ costs).any(axis=-1)).sum(axis=0)
        table["front_share"] = counts / (len(chunks) * 100)
    else:
        table["warning"] = [doubt + note("few_common", what="share of resamples") for doubt in table["warning"]]
    table = table.sort_values(["cost", "success"], ascending=[True, False], kind="stable", ignore_index=True)
    return typed(table, f"{_MEANS} on_front dominated_by front_share warning")


def _dominating(success: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return which models (last axis) dominate each model (second-last axis); NaN dominates nothing."""
    at_least = (success[..., None, :] >= success[..., :, None]) & (cost[..., None, :] <= cost[..., :, None])
    better = (success[..., None, :] > success[..., :, None]) | (cost[..., None, :] < cost[..., :, None])
    return at_least & better
