"""Rates of models adjusted for the tasks they ran, by a model with an effect for each task and each model."""

import math
from typing import Any

import numpy as np
import pandas as pd

from evalkit._notes import Notes, note
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence
from evalkit.stats.pairs.cells import Cells, cells_of
from evalkit.stats.pairs.structure import components

MOSTLY = 0.8  # of all tasks


def adjust_for_tasks(
    frame: pd.DataFrame, model: str, task: str, value: str, *, confidence: float = 0.95
) -> pd.DataFrame:
    """Estimate what each model would score on all tasks, from the tasks it ran and the other models' results on them.

    Least squares with one effect per task and one per model (fixed effects, on the scale of the values), fitted to the
    mean of each model on each task; the estimate is the model's effect plus the mean effect of all tasks. Where all
    models ran all tasks it is the mean over tasks; the difference of two models that ran only shared tasks is the
    paired one. It assumes that two models differ by as much on all tasks, which is wrong close to 0 and 1
    (docs/coverage.md). Its interval leaves out one task at a time (jackknife, t with tasks − 1 degrees of freedom), and
    for values from 0 to 1 it is Wilson's on the effective n of that variance.

    Parameters
    ----------
    frame, model, task, value, confidence
        As for `compare_all`.

    Returns
    -------
    DataFrame
        One row per model, in the order of their names: model, n_tasks, n_linked (its tasks that another model has
        too), estimate, low, high, method, target, warning. Without estimates where the models fall into groups that
        share no tasks: easy tasks can't be distinguished from good models.
    """
    check_confidence(confidence)
    return adjusted(cells_of(frame, model, task, value), confidence)


def adjusted(cells: Cells, confidence: float) -> pd.DataFrame:
    """Return the table of `adjust_for_tasks` for cells."""
    there = cells.sizes > 0
    linked = there & (there.sum(axis=1) > 1)[:, None]
    count, tasks = len(cells.models), len(cells.tasks)
    table = pd.DataFrame({"model": pd.Series(cells.models, dtype="str"), "n_tasks": there.sum(axis=0)})
    table = table.assign(n_linked=linked.sum(axis=0), estimate=math.nan, low=math.nan, high=math.nan)
    rows, columns = np.nonzero(there)
    sets = len(np.unique(components(rows, tasks + columns, tasks + count)[tasks:]))
    why: Any = note("apart", sets=sets) if sets > 1 else Notes() if tasks else note("no_values")
    table = table.assign(method="task effects, jackknife", target="new tasks", warning=why)
    if why:
        return table
    estimates, error, reason = _jackknife(np.nan_to_num(cells.means), there.astype(float))
    doubts: Any = [reason or (note("extrapolated") if share < MOSTLY else Notes()) for share in there.mean(axis=0)]
    doubts = [doubt + cells.lost_of(i) for i, doubt in enumerate(doubts)]
    table = table.assign(estimate=estimates, warning=doubts)
    if reason:
        return table
    quantile = formulas.student(confidence, tasks - 1)
    if cells.shares:
        variance = (error * quantile / formulas.normal(confidence)) ** 2
        counts = np.maximum(there.sum(axis=0), 1)
        low, high = formulas.effective_wilson(np.clip(estimates, 0, 1), variance, 1, counts, confidence)
        return table.assign(low=low, high=high)
    half = np.where(error > 1e-9 * np.abs(estimates), quantile * error, math.nan)
    return table.assign(low=estimates - half, high=estimates + half)


def _jackknife(values: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray, Notes]:
    """Return the estimates, their standard errors, and why there are none."""
    tasks, levels, shares = len(values), values.sum(axis=1) / there.sum(axis=1), there / there.sum(axis=1)[:, None]
    centred = (values - levels[:, None]) * there
    laplacian = np.diag(there.sum(axis=0)) - shares.T @ there
    total, level, share = centred.sum(axis=0), levels.sum(), shares.sum(axis=0)
    estimates = _estimates(laplacian, total, level, share, tasks)
    if tasks < 2:
        return estimates, np.full(len(estimates), math.nan), note("one_task")
    without = np.empty((tasks, len(estimates)))
    for i in range(tasks):
        smaller = laplacian - np.diag(there[i]) + np.outer(shares[i], there[i])
        if len(estimates) > 1 and not np.linalg.eigvalsh(smaller)[1] > 1e-9:  # models fall apart
            return estimates, np.full(len(estimates), math.nan), note("linked_by_one")
        without[i] = _estimates(smaller, total - centred[i], level - levels[i], share - shares[i], tasks - 1)
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return estimates, np.sqrt((tasks - 1) / tasks * spread), Notes()


def _estimates(laplacian: np.ndarray, total: np.ndarray, levels: float, shares: np.ndarray, tasks: int) -> np.ndarray:
    """Return each model's effect plus the mean effect of tasks; the effects of models add up to 0."""
    effects = np.linalg.solve(laplacian + 1 / len(total), total)
    return effects + (levels - shares @ effects) / tasks
