"""Rates of models adjusted for the tasks they ran, by a model with an effect for each task and each model."""

import math

import numpy as np
import pandas as pd

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, join
from evalkit.stats.pairs.cells import Cells, cells_of
from evalkit.stats.pairs.structure import components

ONE_TASK = "a single task has no interval"
MOSTLY = 0.8  # of all tasks
EXTRAPOLATED = "many tasks not run: taken to differ there from other models as much as on the tasks it ran"
LINKED_BY_ONE = "a task alone links models: no interval"

_COLUMNS = ["model", "n_tasks", "n_linked", "estimate", "low", "high", "method", "target", "warning"]


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
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns of the model, of the task and of the outcome. Rows with a missing one are left out.
    confidence : float

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
    count = len(cells.models)
    table = pd.DataFrame(math.nan, index=range(count), columns=_COLUMNS)
    table = table.assign(model=pd.Series(cells.models, dtype="str"), n_tasks=there.sum(axis=0))
    table = table.assign(n_linked=linked.sum(axis=0), method="task effects, jackknife", target="new tasks", warning="")
    rows, columns = np.nonzero(there)
    groups = components(rows, len(cells.tasks) + columns, len(cells.tasks) + count)[len(cells.tasks) :]
    if count and len(np.unique(groups)) > 1:
        reason = f"{len(np.unique(groups))} sets of models share no tasks: no task tells them apart"
        return table.assign(warning=reason)
    if not len(cells.tasks):
        return table.assign(warning="no values")
    estimates, error, reason = _jackknife(np.nan_to_num(cells.means), there.astype(float))
    extrapolated = there.mean(axis=0) < MOSTLY
    lost = [
        join(reason, EXTRAPOLATED if extrapolated[i] and not reason else "", cells.lost_of(i)) for i in range(count)
    ]
    table = table.assign(estimate=estimates, warning=lost)
    if not reason:
        low, high = _interval(estimates, error, cells, confidence)
        table = table.assign(low=low, high=high)
    return table


def _interval(estimates: np.ndarray, error: np.ndarray, cells: Cells, confidence: float) -> tuple:
    tasks, counts = len(cells.tasks), np.maximum((cells.sizes > 0).sum(axis=0), 1)
    quantile = formulas.student(confidence, tasks - 1)
    if cells.shares:
        variance = (error * quantile / formulas.normal(confidence)) ** 2
        rates = np.clip(estimates, 0, 1)
        return formulas.effective_wilson(rates, variance, 1, counts, confidence)
    width = np.where(error > 1e-9 * np.abs(estimates), quantile * error, math.nan)
    return estimates - width, estimates + width


def _jackknife(values: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the estimates, their standard errors, and why there are none."""
    runs, tasks = there.sum(axis=1), len(values)
    centred = (values - (values.sum(axis=1) / runs)[:, None]) * there
    laplacian = np.diag(there.sum(axis=0)) - (there / runs[:, None]).T @ there
    total = centred.sum(axis=0)
    levels = values.sum(axis=1) / runs
    shares = there / runs[:, None]
    estimates = _estimates(laplacian, total, levels.sum(), shares.sum(axis=0), tasks)
    if tasks < 2:
        return estimates, np.full(len(estimates), math.nan), ONE_TASK
    without = np.empty((tasks, len(estimates)))
    for i in range(tasks):
        smaller = laplacian - np.diag(there[i]) + np.outer(shares[i], there[i])
        if len(estimates) > 1 and not _connected(smaller):
            return estimates, np.full(len(estimates), math.nan), LINKED_BY_ONE
        rest = shares.sum(axis=0) - shares[i]
        without[i] = _estimates(smaller, total - centred[i], levels.sum() - levels[i], rest, tasks - 1)
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return estimates, np.sqrt((tasks - 1) / tasks * spread), ""


def _connected(laplacian: np.ndarray) -> bool:
    return np.linalg.eigvalsh(laplacian)[1] > 1e-9


def _estimates(laplacian: np.ndarray, total: np.ndarray, levels: float, shares: np.ndarray, tasks: int) -> np.ndarray:
    """Return each model's effect plus the mean effect of tasks; the effects of models add up to 0."""
    count = len(total)
    effects = np.linalg.solve(laplacian + 1 / count, total)
    return effects + (levels - shares @ effects) / tasks
