"""Compare the results of models with their cost: the Pareto front of success and cost."""

import math
from typing import Any

import numpy as np
import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import check_columns
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import mean_interval, positive_mean_interval, ratio_interval, typed

RESAMPLED = 20  # number of batches of 100 resamples of tasks, from which `front_share` is computed

_COLUMNS = (
    "model_name n n_tasks estimate low high cost_estimate cost_low cost_high per_success_estimate per_success_low "
    "per_success_high on_front dominated_by front_share method warning"
)


def cost_front(cells: Cells, cost: str, *, rng: np.random.Generator | None = None) -> pd.DataFrame:
    """Return the success and cost of each model, and find the models on the Pareto front.

    A model is on the front if no other model is at least as good at the same or a lower cost, and strictly better in
    one of them. Runs of a task are averaged first. If all models ran some tasks, only these count; otherwise each
    model's own tasks count, and `warning` notes it.

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    cost : str
        Column of the runs with the cost, such as tokens or seconds.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    DataFrame
        One row per model, the cheapest first: model_name, n (runs), n_tasks, estimate, low, high (mean value),
        cost_estimate with bounds (mean cost), per_success_estimate with bounds (mean cost over the success rate, for
        shares), on_front, dominated_by (the cheapest better model), front_share (probability of being on the front, by
        the Bayesian bootstrap of Rubin 1981), method (of the mean value), warning.

    Examples
    --------
    >>> timed = stats.cells_of(frame.assign(seconds=[3, 3, 3, 1, 1, 1]), "model", "task", "success")
    >>> stats.cost_front(timed, "seconds")["on_front"].tolist()
    [True, True]
    """
    check_columns(cells.runs, cost)
    values, sizes = cells.over_conditions.means_of(cells.columns.value, cost)
    costs, _ = cells.over_conditions.means_of(cost, cost)
    common = np.isfinite(values).all(axis=1)
    left_out = Notes()
    if not common.any():
        left_out = note("tasks_differ")
    elif not common.all():
        left_out = note("on_common", what="", count=common.sum())
    if common.any():
        values, costs = values[common], costs[common]
        sizes = sizes[common]
    rows = []
    for i, name in enumerate(cells.models):
        own, paid = (column[np.isfinite(column)] for column in (values[:, i], costs[:, i]))
        is_share = bool(((own >= 0) & (own <= 1)).all())
        success = mean_interval(own, bounds=(0.0, 1.0) if is_share else None)
        price = ratio_interval(paid, own, np.arange(len(own))) if is_share else ratio_interval([], [], [])
        mean_cost = positive_mean_interval(paid)
        n = int(sizes[:, i].sum())
        row: dict[str, Any] = {"model_name": name, "n": n, "n_tasks": len(own), "method": success.method}
        for prefix, part in (("", success), ("cost_", mean_cost), ("per_success_", price)):
            row |= {f"{prefix}estimate": part.estimate, f"{prefix}low": part.low, f"{prefix}high": part.high}
        doubts = left_out
        for subject, doubt in (("cost", mean_cost.warning), ("success", success.warning)):
            if doubt:
                doubts = note("of_part", part=subject, notes=doubt) + doubts
        rows.append(row | {"warning": doubts})
    table = pd.DataFrame(rows, columns=_COLUMNS.split())
    table = table.sort_values(["cost_estimate", "estimate"], ascending=[True, False], kind="stable", ignore_index=True)
    beaten_by = []
    for value, paid in zip(table["estimate"], table["cost_estimate"], strict=True):
        is_as_good = (table["estimate"] >= value) & (table["cost_estimate"] <= paid)
        better = table[is_as_good & ((table["estimate"] > value) | (table["cost_estimate"] < paid))]
        beaten_by.append(str(better["model_name"].iloc[0]) if len(better) else "")
    table["dominated_by"] = beaten_by
    table["on_front"] = table[["estimate", "cost_estimate"]].notna().all(axis=1) & (table["dominated_by"] == "")
    if common.sum() > 1:
        rng = np.random.default_rng(0 if rng is None else rng)
        counts = np.zeros(len(cells.models))
        for _ in range(RESAMPLED):
            weights = rng.dirichlet(np.ones(len(values)), 100)
            counts += is_on_front(weights @ values, weights @ costs).sum(axis=0)
        shares = dict(zip(cells.models, counts / (RESAMPLED * 100), strict=True))
        table["front_share"] = table["model_name"].map(shares)
    else:
        table["warning"] = [doubt + note("few_common", what="share of resamples") for doubt in table["warning"]]
    return typed(table, _COLUMNS)


def is_on_front(success: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return which models (last axis) are not dominated, in O(n log n) instead of comparing every pair."""
    order = np.lexsort((-success, cost), axis=-1)
    success, cost = np.take_along_axis(success, order, -1), np.take_along_axis(cost, order, -1)
    best = np.maximum.accumulate(success, axis=-1)
    is_higher = np.diff(best, axis=-1, prepend=-math.inf) > 0  # higher than all models that cost no more
    last = np.maximum.accumulate(np.where(is_higher, np.arange(best.shape[-1]), 0), axis=-1)
    is_equal = (success == best) & (cost == np.take_along_axis(cost, last, -1))
    on_front = np.empty_like(is_equal)
    np.put_along_axis(on_front, order, is_equal, -1)
    return on_front
