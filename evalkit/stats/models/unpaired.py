"""Compare two models that share too few tasks for a paired test, on the tasks that each ran."""

from typing import NamedTuple

import numpy as np
from scipy import special

from evalkit.stats import _formulas as formulas
from evalkit.stats.pairs.cells import Cells

FEWEST = 2  # tasks of each model in a stratum
ALPHA = 0.1  # of the test that the tasks of two models differ in kind


class Unpaired(NamedTuple):
    """A difference of two models on different tasks: means, difference with interval, p value, and tasks of each."""

    mean_a: float
    mean_b: float
    estimate: float
    low: float
    high: float
    p_value: float
    tasks_a: int
    tasks_b: int


def unpaired(
    cells: Cells, a: int, b: int, strata: np.ndarray, clusters: np.ndarray, confidence: float
) -> Unpaired | None:
    """Compare two models by Welch's t over clusters, stratum by stratum, as if their tasks were drawn alike.

    `strata` (such as types of tasks and budgets) and `clusters` are codes of the rows of `cells`. The difference is the
    mean of those in the strata that both have, weighted by their tasks; for shares a success and a failure are added to
    each model and stratum (Agresti and Caffo 2000). None where both have no stratum, or where what other models reached
    says that the tasks of the two differ in kind.
    """
    has = cells.sizes[:, [a, b]] > 0
    counts = np.array(
        [[len(np.unique(clusters[has[:, i] & (strata == s)])) for i in (0, 1)] for s in np.unique(strata)]
    )
    common = np.unique(strata)[(counts >= FEWEST).all(axis=1)]
    if not len(common) or _differ(cells, a, b, has):
        return None
    weights = np.array([1 / (1 / counts[counts.min(axis=1) >= FEWEST]).sum(axis=1)]).ravel()
    means, centres, variances, freedoms, tasks = [], [], [], [], []
    for side, column in enumerate((a, b)):
        parts, labels, mean, centre = [], [], 0.0, 0.0
        for weight, stratum in zip(weights / weights.sum(), common, strict=True):
            rows = has[:, side] & (strata == stratum)
            values, of = cells.means[rows, column], clusters[rows]
            mean += weight * values.mean()
            if cells.shares:  # each pseudo-task is a cluster of its own
                values, of = np.append(values, (0.0, 1.0)), np.append(of, (-1 - 2 * stratum, -2 - 2 * stratum))
            centre += weight * values.mean()
            parts.append(weight * (values - values.mean()) / len(values))
            labels.append(of)
        codes = np.unique(np.concatenate(labels), return_inverse=True)[1]
        sums = np.bincount(codes, weights=np.concatenate(parts))
        freedoms.append(len(sums) - len(common))
        variances.append(float((sums**2).sum() * len(sums) / (len(sums) - 1)))
        means.append(mean)
        centres.append(centre)
        tasks.append(len(np.unique(clusters[has[:, side] & np.isin(strata, common)])))
    variance = sum(variances)
    if variance <= 0:
        return None
    freedom = variance**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    estimate, gap = means[0] - means[1], centres[0] - centres[1]
    low, high = map(float, formulas.by_t(gap, variance, freedom, confidence))
    low, high = (max(low, -1.0), min(high, 1.0)) if cells.shares else (low, high)
    p_value = 2 * float(special.stdtr(freedom, -abs(gap) / np.sqrt(variance)))
    return Unpaired(means[0], means[1], estimate, low, high, p_value, tasks[0], tasks[1])


def _differ(cells: Cells, a: int, b: int, has: np.ndarray) -> bool:
    """Return whether other models did better on the tasks of the one than on those of the other (Welch's t)."""
    only, other = has[:, 0] & ~has[:, 1], has[:, 1] & ~has[:, 0]
    values = np.delete(cells.means, [a, b], axis=1)
    both = np.isfinite(values[only]).any(axis=0) & np.isfinite(values[other]).any(axis=0)
    if not both.any():
        return False
    values = values[:, both]
    values = values - (np.nanmean(values[only], axis=0) + np.nanmean(values[other], axis=0)) / 2
    sides = [values[rows][np.isfinite(values[rows]).any(axis=1)] for rows in (only, other)]
    ease = [np.nanmean(side, axis=1) for side in sides]
    if min(map(len, ease)) < FEWEST:
        return False
    variance = sum(formulas.variance_of_mean(side) for side in ease)
    gap = abs(ease[0].mean() - ease[1].mean())
    return bool(gap > 1e-9 and gap >= formulas.student(1 - ALPHA, min(map(len, ease)) - 1) * np.sqrt(variance))
