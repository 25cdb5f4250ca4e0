"""Rates of models adjusted for the tasks they ran, by a model with an effect for each task and each model."""

import math

import numpy as np
import pandas as pd
from scipy import special

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import Cells
from evalkit.stats.pairs.pairwise import components

_COLUMNS = ["estimate", "low", "high"]
MOST_GROUPS = 40  # of tasks, that are left out in turn
MOST_SOLVED = 300  # models, for least squares
EASE = np.linspace(-6, 6, 25)  # of tasks, on the logit scale
PRIOR = 3.0


def adjusted(cells: Cells, confidence: float, strata: np.ndarray | None = None) -> pd.DataFrame:
    """Estimate what each model would score on all tasks, from the tasks it ran and the other models' results on them.

    Values from 0 to 1: a logistic model, the effects of tasks (of each of `strata`) of any distribution (Laird 1978),
    standardised over the tasks, with Wilson's interval on the effective n. Others: least squares and t. Intervals leave
    out one task, or group of tasks, at a time. No estimates where models share no tasks, directly or through others.
    """
    there = cells.sizes > 0
    tasks, count = there.shape
    table = pd.DataFrame({"model": pd.Series(cells.models, dtype="str"), **dict.fromkeys(_COLUMNS, math.nan)})
    if not tasks or not _linked(there):
        return table
    # no interval from a single task, nor where models fall into groups without one of the tasks
    steady = there.all() or count > MOST_SOLVED or all(_linked(np.delete(there, i, axis=0)) for i in range(tasks))
    bounded = tasks > 1 and bool(steady)
    if cells.shares:
        groups = (np.arange(tasks) if cells.clusters is None else cells.clusters) % MOST_GROUPS
        kinds = np.zeros(tasks, int) if strata is None else strata
        estimates, error = _standardised(np.nan_to_num(cells.means), cells.sizes.astype(float), kinds, groups)
    elif count > MOST_SOLVED:
        return table
    else:
        groups = np.arange(tasks)
        estimates, error = _jackknife(np.nan_to_num(cells.means), there.astype(float), not bounded)
    table["estimate"] = estimates
    if not bounded:
        return table
    quantile = formulas.student(confidence, groups.max())
    if cells.shares:
        runs, rates = np.maximum(cells.sizes.sum(axis=0), 1), np.clip(estimates, 0, 1)
        variance = (error * quantile / formulas.normal(confidence)) ** 2
        variance = np.maximum(variance, rates * (1 - rates) / runs)  # what is expected of tasks not run has no noise
        low, high = formulas.effective_wilson(rates, variance, 1, np.maximum(there.sum(axis=0), 1), confidence)
        return table.assign(low=low, high=high)
    half = np.where(error > 1e-9 * np.abs(estimates), quantile * error, math.nan)
    return table.assign(low=estimates - half, high=estimates + half)


def _linked(there: np.ndarray) -> bool:
    """Return whether shared tasks link all models."""
    tasks, count = there.shape
    rows, columns = np.nonzero(there)
    return len(np.unique(components(rows, tasks + columns, tasks + count)[tasks:])) < 2


def _standardised(
    means: np.ndarray, sizes: np.ndarray, strata: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rates of models on all tasks, and their standard errors."""
    start = np.zeros(means.shape[1]), np.full((strata.max() + 1, len(EASE)), 1 / len(EASE))
    estimates, start = _logistic(means, sizes, strata, start, 200)
    if (sizes > 0).all():
        return estimates, np.sqrt(formulas.variance_of_mean(means.T)) if len(means) > 1 else estimates * math.nan
    count = groups.max() + 1
    left = [groups != g for g in range(count)]
    without = np.array([_logistic(means[of], sizes[of], strata[of], start, 20)[0] for of in left])
    return estimates, np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))


def _logistic(
    means: np.ndarray, sizes: np.ndarray, strata: np.ndarray, start: tuple[np.ndarray, np.ndarray], most: int
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Fit effects of models and the distribution of those of tasks by EM from `start`, and standardise over the tasks.

    Normal priors with a deviation of `PRIOR` on the logit scale keep effects finite where all runs end alike.
    """
    if (sizes > 0).all():
        return means.mean(axis=0), start
    (effects, shares), successes = start, means * sizes
    for _ in range(most):
        logits = effects + EASE[:, None]  # levels of ease × models
        likely = successes @ special.log_expit(logits).T + (sizes - successes) @ special.log_expit(-logits).T
        chances = special.softmax(likely + np.log(shares[strata]), axis=1)  # tasks × levels
        runs, rates = chances.T @ sizes, special.expit(logits)
        slope = (chances.T @ successes - runs * rates).sum(axis=0) - effects / PRIOR**2
        step = np.clip(slope / ((runs * rates * (1 - rates)).sum(axis=0) + PRIOR**-2), -1, 1)
        effects, counts = effects + step, np.zeros_like(shares)
        np.add.at(counts, strata, chances)
        counts += chances.mean(axis=0)  # a small stratum is drawn to the others
        shares = np.maximum(counts / counts.sum(axis=1, keepdims=True), 1e-9)
        if np.abs(step).max() < 1e-4:
            break
    expected = chances @ special.expit(effects + EASE[:, None])
    return np.where(sizes > 0, means, expected).mean(axis=0), (effects, shares)


def _jackknife(values: np.ndarray, there: np.ndarray, only_estimates: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates by least squares, and their standard errors."""
    tasks, levels, shares = len(values), values.sum(axis=1) / there.sum(axis=1), there / there.sum(axis=1)[:, None]
    centred = (values - levels[:, None]) * there
    laplacian = np.diag(there.sum(axis=0)) - shares.T @ there
    total, level, share = centred.sum(axis=0), levels.sum(), shares.sum(axis=0)
    estimates = _estimates(laplacian, total, level, share, tasks)
    if only_estimates:
        return estimates, np.full(len(estimates), math.nan)
    without = np.empty((tasks, len(estimates)))
    for i in range(tasks):
        smaller = laplacian - np.diag(there[i]) + np.outer(shares[i], there[i])
        without[i] = _estimates(smaller, total - centred[i], level - levels[i], share - shares[i], tasks - 1)
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return estimates, np.sqrt((tasks - 1) / tasks * spread)


def _estimates(laplacian: np.ndarray, total: np.ndarray, levels: float, shares: np.ndarray, tasks: int) -> np.ndarray:
    """Return each model's effect plus the mean effect of tasks; the effects of models add up to 0."""
    effects = np.linalg.solve(laplacian + 1 / len(total), total)
    return effects + (levels - shares @ effects) / tasks
