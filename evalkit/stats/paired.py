"""Compare two conditions on the same units, such as two models on the tasks they share."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from evalkit._words import Notes, note
from evalkit.stats import intervals
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import FEW, FEW_CLUSTERS, LEVEL, Clusters, of_repetitions

# what an error of at most 6.5 % takes where 5 % are promised (docs/coverage.md)
FEW_SHARES, FEW_SCORES = 5, 12  # tasks, below which they can't show how skewed the differences are
SKEWED = 16  # times the squared skewness, at most the tasks: else the differences are too skewed for t
AT_FEW, AT_SKEWED = 0.3, 0.02  # the part of the level at which a difference of such scores is claimed
FEW_FOR_MARGIN = 10  # tasks, below which nothing is said to lie within a margin
RARE_SHARES = 2  # units of a model with a share above 0, or below 1
PSEUDO_PAIR = 0.5  # squared deviations of two runs of a task that end differently

MCNEMAR, PAIRED_T = "Agresti-Min; McNemar exact", "paired t"
WITHIN_TASKS, UNPAIRED = "t within tasks", "Welch t, unpaired"

FEW_SHARED = 5  # tasks, below which two models may be compared unpaired
FEWEST_OF_STRATUM = 2  # tasks of each model, for an unpaired comparison
APART_AT = 0.1  # of the test that the tasks of two models differ in kind


class Compared(NamedTuple):
    """An interval of a mean difference and the p value of the same test; `method` names both.

    A difference may be claimed up to the p value `claim_at`. `p_above` and `p_below` are one-sided, of a difference
    that lies above −margin and below the margin.
    """

    low: float
    high: float
    p_value: float
    method: str
    warning: Notes = Notes()
    claim_at: float = 0.0
    p_above: float = math.nan
    p_below: float = math.nan


def compare_units(a: np.ndarray, b: np.ndarray, margin: float = math.nan) -> Compared:
    """Compare the values of two models on at least two units, such as their means of tasks.

    0/1 outcomes by McNemar's exact test, with Agresti and Min's interval, extended to 0 where the test does not reject
    it; else by Student's t, whose p value is the larger of two: that of t itself, and that of t transformed to remove
    its skewness (Hall 1992). For shares (values from 0 to 1, whose difference ends at −1 and 1) of which few are above
    0 or below 1, or that are skewed or few, it is also at least that of t after half a pair is added to each kind of
    pairs (Agresti and Min 2005), since what is rare may not have been seen. The interval excludes 0 exactly where the
    p value is at most 0.05.
    """
    differences, both, count = a - b, np.concatenate([a, b]), len(a)
    mean, shares = float(differences.mean()), bool(((both >= 0) & (both <= 1)).all())
    padded = count + 2  # half a pair is added to each kind of pairs
    centre = float(differences.sum()) / padded
    cautious = math.sqrt(((float((differences**2).sum()) + 1) / padded - centre**2) / padded)
    quantile, error = intervals.quantile(freedom=count - 1), math.sqrt(intervals.variance_of_mean(differences))
    p_cautious = 2 * float(special.stdtr(count - 1, -abs(centre) / cautious)) if shares else 0.0
    wide = centre - quantile * cautious, centre + quantile * cautious
    if ((both == 0) | (both == 1)).all():
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        p_value = min(1.0, 2 * float(special.bdtr(min(wins, losses), wins + losses, 0.5)))
        half = intervals.quantile() * cautious
        doubt = FEW if count < FEW_CLUSTERS else Notes()
        compared = Compared(centre - half, centre + half, p_value, MCNEMAR, doubt, LEVEL)
    elif error <= 1e-9 * np.abs(differences).max() and not shares:
        compared = Compared(math.nan, math.nan, math.nan if mean else 1.0, PAIRED_T, note("all_equal"))
    elif error <= 1e-9 * np.abs(differences).max():
        # the largest chance that n differences of mean 0, from −1 to 1, all lie so far to one side
        p_value = max(p_cautious, min(1.0, 2 * (1 + abs(mean)) ** -count))
        compared = Compared(*wide, p_value, PAIRED_T, note("cautious", what="differences"), LEVEL)
    else:
        p_value = min(1.0, 2 * min(_tail(differences), _tail(-differences)))
        skew = float(intervals.skewness(differences))
        slant = skew / math.sqrt(count)
        low = mean - max(quantile, float(intervals.hall(quantile, slant))) * error
        high = mean + max(quantile, -float(intervals.hall(-quantile, slant))) * error
        rarest = np.min(np.sum([a > 0, a < 1, b > 0, b < 1], axis=1))  # units with a share above 0, or below 1
        few, skewed = count < (FEW_SHARES if shares else FEW_SCORES), SKEWED * skew**2 > count
        doubt, claim_at = Notes(), LEVEL
        if shares and (few or skewed or rarest <= RARE_SHARES):
            low, high, p_value = min(low, wide[0]), max(high, wide[1]), max(p_value, p_cautious)
        elif not shares and (few or skewed):
            claim_at = LEVEL * (AT_SKEWED if skewed else AT_FEW)
            doubt = note("skewed_pair" if skewed else "few_pairs", claim_at=claim_at)
        compared = Compared(low, high, p_value, PAIRED_T, doubt, claim_at)
    low, high = (max(compared.low, -1.0), min(compared.high, 1.0)) if shares else compared[:2]
    low, high = agreeing(low, high, mean, compared.p_value)
    compared = compared._replace(low=low, high=high)
    fewest = FEW_FOR_MARGIN if shares else FEW_SCORES
    if math.isnan(margin) or count < fewest or (not shares and "skewed_pair" in compared.warning):
        return compared
    tail = tango if shares else _tail
    return compared._replace(p_above=float(tail(differences, -margin)), p_below=float(tail(-differences, -margin)))


def _tail(differences: np.ndarray, null: float = 0.0) -> float:
    """Return the one-sided p value of a mean above `null`: the larger one of t and of Hall's transformation of t."""
    count, error = len(differences), math.sqrt(intervals.variance_of_mean(differences))
    if error == 0:
        return math.nan
    t, slant = (differences.mean() - null) / error, float(intervals.skewness(differences)) / math.sqrt(count)
    hall = t + slant * t**2 / 3 + slant**2 * t**3 / 27 + slant / 6
    return float(special.stdtr(count - 1, -min(t, hall)))


def tango(differences: np.ndarray, null: float) -> np.ndarray:
    """Return the one-sided p value of a mean difference of pairs (last axis) above `null`, which is below 0.

    The score test of Tango (1998) for differences −1, 0 and 1, by t with n − 1 degrees of freedom in place of the
    normal distribution. A difference of a share between counts as that much of a whole one, which is cautious.
    """
    n, wins, losses = differences.shape[-1], differences.clip(0).sum(-1), -differences.clip(None, 0).sum(-1)
    linear = (2 * n - wins + losses) * null - wins - losses
    root = np.sqrt(np.maximum(linear**2 + 8 * n * losses * null * (1 - null), 0))
    lost = (root - linear) / (4 * n)  # the share of losses under the null
    z = (wins - losses - n * null) / np.sqrt(n * (2 * lost + null * (1 - null)))
    return special.stdtr(n - 1, -z)


def agreeing(low: float, high: float, estimate: float, p_value: float, null: float = 0.0) -> tuple[float, float]:
    """Return the interval so that it holds the null value exactly where the test does not reject it."""
    if p_value > LEVEL:
        return min(low, null), max(high, null)
    if low <= null <= high:
        return (math.nextafter(null, math.inf), high) if estimate > null else (low, math.nextafter(null, -math.inf))
    return low, high


def compare_runs(a: Clusters, b: Clusters, shares: bool, margin: float = math.nan) -> Compared | None:
    """Compare two models for repetitions of the same tasks, by Welch's t stratified by task.

    The variance is that within tasks only; for shares two runs of a task that disagree are added to those of each
    model. None where one of the models has no task with several runs.
    """
    if not ((a.sizes > 1).any() and (b.sizes > 1).any()):
        return None
    pseudo = PSEUDO_PAIR if shares else 0.0
    (first, freedom_a), (second, freedom_b) = (intervals.within_tasks(x.variances, x.sizes, pseudo) for x in (a, b))
    freedom = min(freedom_a, freedom_b)
    if freedom < 1:
        return None
    if all((x.sizes > 1).all() for x in (a, b)):
        freedom = (first + second) ** 2 / (first**2 / freedom_a + second**2 / freedom_b) if first + second else freedom
    difference, error = float((a.means - b.means).mean()), math.sqrt(first + second)
    if error == 0:
        return Compared(math.nan, math.nan, math.nan, WITHIN_TASKS, note("all_equal"))
    low, high = (float(bound) for bound in intervals.by_t(difference, error**2, freedom))
    low, high = (max(low, -1.0), min(high, 1.0)) if shares else (low, high)
    beyond = special.stdtr(freedom, -(np.array([abs(difference), difference + margin, margin - difference]) / error))
    doubt = of_repetitions(a.sizes) + of_repetitions(b.sizes)
    return Compared(low, high, 2 * float(beyond[0]), WITHIN_TASKS, doubt, LEVEL, *map(float, beyond[1:]))


def unpaired(cells: Cells, a: int, b: int) -> tuple[float, float, float, Compared] | None:
    """Compare two models by Welch's t over tasks, stratum by stratum, as if their tasks were drawn alike.

    Strata are, for example, types of tasks and budgets. The difference is the mean of those
    in the strata that both have, weighted by their tasks; for shares a success and a failure are added to each model
    and stratum (Agresti and Caffo 2000). Returns the means, their difference and the comparison; None where both have
    no stratum, or fewer than 5 tasks, or where what other models reached says that the tasks of the two differ in kind.
    """
    clusters = np.arange(len(cells.tasks)) if cells.clusters is None else cells.clusters
    strata = np.zeros(len(clusters), int) if cells.strata is None else cells.strata
    has = cells.sizes[:, [a, b]] > 0
    counts = np.array(
        [[len(np.unique(clusters[has[:, i] & (strata == s)])) for i in (0, 1)] for s in np.unique(strata)]
    ).reshape(-1, 2)  # also without any task
    common = np.unique(strata)[(counts >= FEWEST_OF_STRATUM).all(axis=1)]
    if not len(common) or _differ(cells, a, b, has):
        return None
    weights = np.array([1 / (1 / counts[counts.min(axis=1) >= FEWEST_OF_STRATUM]).sum(axis=1)]).ravel()
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
    if variance <= 0 or min(tasks) < FEW_SHARED:
        return None
    freedom = variance**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    estimate, gap = means[0] - means[1], centres[0] - centres[1]
    low, high = map(float, intervals.by_t(gap, variance, freedom))
    low, high = (max(low, -1.0), min(high, 1.0)) if cells.shares else (low, high)
    p_value = 2 * float(special.stdtr(freedom, -abs(gap) / np.sqrt(variance)))
    alike = note("unpaired", a=tasks[0], b=tasks[1])
    return means[0], means[1], estimate, Compared(low, high, p_value, UNPAIRED, alike, LEVEL)


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
    if min(map(len, ease)) < FEWEST_OF_STRATUM:
        return False
    variance = sum(intervals.variance_of_mean(side) for side in ease)
    gap = abs(ease[0].mean() - ease[1].mean())
    return bool(gap > 1e-9 and gap >= intervals.quantile(1 - APART_AT, min(map(len, ease)) - 1) * np.sqrt(variance))
