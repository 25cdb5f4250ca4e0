"""Compare two conditions on the same units, such as two models on the tasks they share."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from evalkit._notes import Notes, note
from evalkit.stats import intervals
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import FEW, FEW_CLUSTERS, LEVEL, Clusters, of_repetitions
from evalkit.stats.seeds import SeedSpread

# these constants keep the error of the tests at 6.5 % or less at a nominal 5 % (docs/coverage.md)
FEW_SHARES, FEW_SCORES = 5, 12  # with fewer tasks, the skewness of differences of shares, or scores, is unknown
ENOUGH_SCORES = 16  # with this many tasks, the skewness of differences of scores is known
SKEWED = 16  # t needs SKEWED × skewness² tasks
AT_FEW, AT_SKEWED = 0.3, 0.02  # factors of the level at which a difference of few, or skewed, scores is claimed
FEW_FOR_MARGIN = 10  # with fewer tasks, shares are never shown to be equivalent
RARE_SHARES, ENOUGH_SHARES = 2, 6  # successes (or failures) in at most 2 units are rare; in 6 units they are enough
PSEUDO_PAIR = 0.5  # sum of squared deviations of two runs of a task with different outcomes
MOST_PAIRS = 500  # McNemar's exact distribution for more pairs is equal to three digits
BEYOND_CHANCE = 3.84  # chi-square quantile: a larger ratio of squared difference to variance is seldom due to chance
FEW_SHOW_EASE = 6  # with √6 tasks, what other models' results say about the ease of tasks gets half weight
N_PERMUTATIONS = 9_999
MOST_CELLS = 2_000_000  # maximum number of cells that are permuted at once
SMALLEST = 1e-300  # smallest p value with a finite normal quantile

MCNEMAR, PAIRED_T = "Agresti-Min; McNemar exact unconditional", "paired t"
WITHIN_TASKS, UNPAIRED = "t within tasks", "Welch t, unpaired"
EXACT_WITHIN = "Mantel-Haenszel within tasks, exact"
PERMUTED_ACROSS = "least squares, permutation within groups of tasks"
PARTLY = "paired and unpaired, combined by weighted z"


class Compared(NamedTuple):
    """The interval of a mean difference and the p value of its test; `method` names both.

    A difference is claimed if its p value is at most `claim_at`. `p_above` and `p_below` are one-sided p values, for a
    difference above −margin and below the margin.
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
    """Compare the values of two models on at least two units, such as their means of tasks (docs/statistics.md).

    0/1 outcomes are compared by McNemar's exact unconditional test, with the interval of Agresti and Min. Other values
    get the larger p value of Student's t and of Hall's (1992) transformation of t. Shares (values from 0 to 1) also get
    up to half a pseudo-pair of each kind (Agresti and Min 2005), more if differences are few or skewed. Their p value
    is at least the chance of not observing the rare failures that would make the means equal. The interval excludes 0
    exactly if p <= 0.05.
    """
    differences, both = a - b, np.concatenate([a, b])
    count, skew = len(a), 0.0
    mean, shares = float(differences.mean()), bool(((both >= 0) & (both <= 1)).all())
    squares, error = float((differences**2).sum()), math.sqrt(intervals.variance_of_mean(differences))
    has_no_spread = error <= 1e-9 * np.abs(differences).max()
    if ((both == 0) | (both == 1)).all():
        p_value = mcnemar(int((differences > 0).sum()), int((differences < 0).sum()), count)
        centre, cautious = padded(mean, squares, count, 1.0)
        half = intervals.quantile() * cautious
        doubt = FEW if count < FEW_CLUSTERS else Notes()
        compared = Compared(centre - half, centre + half, p_value, MCNEMAR, doubt, LEVEL)
    elif has_no_spread and not shares:
        compared = Compared(math.nan, math.nan, math.nan if mean else 1.0, PAIRED_T, note("all_equal"))
    else:
        quantile = intervals.quantile(freedom=count - 1)
        low, high = math.inf, -math.inf
        p_value, claim_at = 0.0, LEVEL
        doubt = note("cautious", what="differences")
        if not has_no_spread:
            p_value = min(1.0, 2 * min(_tail(differences), _tail(-differences)))
            skew = float(intervals.skewness(differences))
            slant = skew / math.sqrt(count)
            low = mean - max(quantile, float(intervals.hall(quantile, slant))) * error
            high = mean + max(quantile, -float(intervals.hall(-quantile, slant))) * error
            doubt = Notes()
        if shares:
            # fraction of half a pseudo-pair to add, of each kind: 1 if tasks are few, skewed, or nearly all 0 or 1
            rarest = np.min(np.sum([a > 0, a < 1, b > 0, b < 1], axis=1))
            rare = (ENOUGH_SHARES - rarest) / (ENOUGH_SHARES - RARE_SHARES)
            added = min(max(rare, 2 * FEW_SHARES / count - 1, 2 * SKEWED * skew**2 / count - 1, 0.0), 1.0)
            added = 1.0 if has_no_spread else added
            centre, cautious = padded(mean, squares, count, added)
            unseen = 1 - (LEVEL / 2) ** (1 / count)  # the largest plausible share of differences of -1, or 1
            low = min(low, centre - quantile * cautious, mean - unseen * (1 + mean))
            high = max(high, centre + quantile * cautious, mean + unseen * (1 - mean))
            p_cautious = 2 * float(special.stdtr(count - 1, -abs(centre) / cautious))
            # the chance of no difference of -1 in `count` units, if their rate makes the mean 0
            p_unseen = min(1.0, 2 * (1 + abs(mean)) ** -count)
            if p_unseen > max(p_value, p_cautious, 1e-4) and not has_no_spread:  # below, it decides nothing
                doubt = note("unseen", least=p_unseen)
            p_value = max(p_value, p_cautious, p_unseen)
        else:  # the level falls gradually with fewer tasks and with more skewness
            few = min(max((ENOUGH_SCORES - count) / (ENOUGH_SCORES - FEW_SCORES), 0.0), 1.0)
            skewed = min(max(2 * SKEWED * skew**2 / count - 1, 0.0), 1.0)
            at_few, at_skewed = LEVEL * AT_FEW**few, LEVEL * AT_SKEWED**skewed
            claim_at = min(at_few, at_skewed)
            if claim_at < LEVEL:
                doubt = note("skewed_pair" if at_skewed < at_few else "few_pairs", claim_at=claim_at)
        compared = Compared(low, high, p_value, PAIRED_T, doubt, claim_at)
    compared = _within_bounds(compared, mean, shares)
    fewest = FEW_FOR_MARGIN if shares else FEW_SCORES
    if math.isnan(margin) or count < fewest or (not shares and SKEWED * skew**2 > count):
        return compared
    tail = tango if shares else _tail
    return compared._replace(p_above=float(tail(differences, -margin)), p_below=float(tail(-differences, -margin)))


def padded(mean: float, squares: float, count: int, added: float) -> tuple[float, float]:
    """Return the mean difference and its standard error, after adding `added` / 2 pseudo-pairs of each of four kinds.

    `squares` is the sum of the squared differences of `count` units.
    """
    total = count + 2 * added
    centre = mean * count / total
    return centre, math.sqrt(max((squares + added) / total - centre**2, 0.0) / total)


@lru_cache(maxsize=100_000)
def mcnemar(wins: int, losses: int, count: int) -> float:
    """Return the two-sided p value of McNemar's exact unconditional test (Suissa and Shuster 1991)."""
    if wins == losses:
        return 1.0
    count, z = min(count, MOST_PAIRS), abs(wins - losses) / math.sqrt(wins + losses)
    differing = np.arange(1, count + 1)
    fewest = np.ceil((differing + z * np.sqrt(differing)) / 2 - 1e-9)  # number of wins that reaches z
    beyond = 2 * special.bdtr(differing - fewest, differing, 0.5)
    beyond = np.where(fewest <= differing, np.minimum(beyond, 1.0), 0.0)
    return float(min(1.0, (_chances_to_differ(count) @ beyond).max()))


@lru_cache(maxsize=64)
def _chances_to_differ(count: int) -> np.ndarray:
    """Return the chance that 1, 2, ... of `count` pairs differ (columns), for a grid of differing shares (rows)."""
    shares = np.sin(np.linspace(0, math.pi / 2, max(64, int(6 * math.sqrt(count))))[1:, None]) ** 2
    k = np.arange(1, count + 1)
    ways = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
    return np.exp(ways + special.xlogy(k, shares) + special.xlog1py(count - k, -np.minimum(shares, 1.0)))


def _tail(differences: np.ndarray, null: float = 0.0) -> float:
    """Return the one-sided p value of a mean above `null`: the larger of those of t and Hall's transformation of t."""
    count, error = len(differences), math.sqrt(intervals.variance_of_mean(differences))
    if error == 0:
        return math.nan
    t, slant = (differences.mean() - null) / error, float(intervals.skewness(differences)) / math.sqrt(count)
    hall = t + slant * t**2 / 3 + slant**2 * t**3 / 27 + slant / 6
    return float(special.stdtr(count - 1, -min(t, hall)))


def tango(differences: np.ndarray, null: float) -> np.ndarray:
    """Return the one-sided p value of a mean difference of pairs (last axis) above `null`, which must be negative.

    This is the score test of Tango (1998) for differences −1, 0 and 1, by t; a fractional difference counts as that
    fraction of a pair.
    """
    n = differences.shape[-1]
    wins, losses = differences.clip(0).sum(-1), -differences.clip(None, 0).sum(-1)
    linear = (2 * n - wins + losses) * null - wins - losses
    root = np.sqrt(np.maximum(linear**2 + 8 * n * losses * null * (1 - null), 0))
    lost = (root - linear) / (4 * n)  # the share of losses under the null
    z = (wins - losses - n * null) / np.sqrt(n * (2 * lost + null * (1 - null)))
    return special.stdtr(n - 1, -z)


def agreeing(low: float, high: float, estimate: float, p_value: float, null: float = 0.0) -> tuple[float, float]:
    """Extend or cut the interval so that it includes the null value exactly if the test does not reject it."""
    if p_value > LEVEL:
        return min(low, null), max(high, null)
    if low <= null <= high:
        return (math.nextafter(null, math.inf), high) if estimate > null else (low, math.nextafter(null, -math.inf))
    return low, high


def _within_bounds(compared: Compared, estimate: float, shares: bool) -> Compared:
    """Cut the interval of a difference of shares at −1 and 1, and make it agree with the test."""
    low, high = (max(compared.low, -1.0), min(compared.high, 1.0)) if shares else compared[:2]
    low, high = agreeing(low, high, estimate, compared.p_value)
    return compared._replace(low=low, high=high)


def compare_runs(a: Clusters, b: Clusters, shares: bool, margin: float = math.nan) -> Compared | None:
    """Compare two models for repetitions of the same tasks, by Welch's t with the variance within tasks.

    For shares, each model gets two pseudo-runs of a task, one success and one failure. Return None if a model has no
    task with several runs.
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


def compare_groups(a: Clusters, b: Clusters) -> Compared:
    """Compare the 0/1 values of two groups of runs of the same tasks, such as failed and successful ones.

    The test is exact if all runs of a task are equally likely to be in the first group. Its statistic is the number of
    ones in the first group (Mantel and Haenszel 1959), whose distribution is the convolution of the tasks'
    hypergeometric distributions (Mehta, Patel and Gray 1985). The p value is 1 if the mean difference has the opposite
    sign. The interval is for these tasks: from `compare_runs`, or without repetitions from `compare_units`. It excludes
    0 exactly if p <= 0.05.
    """
    compared = compare_runs(a, b, shares=True) or compare_units(a.means, b.means)
    ones = np.rint(a.means * a.sizes)
    totals = ones + np.rint(b.means * b.sizes)
    fewest, most = np.maximum(totals - b.sizes, 0), np.minimum(totals, a.sizes)
    distribution = np.ones(1)
    for task in np.flatnonzero(most > fewest):
        k = np.arange(fewest[task], most[task] + 1)
        others = totals[task] - k
        # logarithms of the product of two binomial coefficients, up to a constant
        ways = -special.betaln(k + 1, a.sizes[task] - k + 1) - special.betaln(others + 1, b.sizes[task] - others + 1)
        chances = np.exp(ways - ways.max())
        distribution = np.convolve(distribution, chances / chances.sum())
    expected = float((totals * a.sizes / (a.sizes + b.sizes)).sum())
    surplus = float(ones.sum()) - expected
    distances = np.abs(fewest.sum() + np.arange(len(distribution)) - expected)
    difference = float((a.means - b.means).mean())
    p_value = 1.0
    if surplus * difference > 0:
        p_value = min(1.0, float(distribution[distances >= abs(surplus) - 1e-6].sum()))
    return _within_bounds(compared._replace(p_value=p_value, method=EXACT_WITHIN), difference, shares=True)


def orders_within(groups: np.ndarray, n: int, chunk: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield arrays of at most `chunk` random orders (rows), n in all; positions move within their group only."""
    for start in range(0, n, chunk):
        yield np.argsort(rng.random((min(chunk, n - start), len(groups))) + groups, axis=1)


class Across(NamedTuple):
    """Values compared between failed and successful runs of different models; arrays of shape (values,)."""

    estimate: np.ndarray  # difference of failed minus successful runs
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray


def compare_across(
    tasks: np.ndarray,
    models: np.ndarray,
    failed: np.ndarray,
    values: np.ndarray,
    rng: np.random.Generator | None = None,
) -> Across:
    """Compare 0/1 values (runs, values) of failed and successful runs of the same tasks, adjusted for models.

    Whether each model failed is permuted between tasks that the same models ran with the same number of failures. The
    p value is exact if the logit of a failure is the sum of an effect of the task and one of the model (Rasch 1960):
    given the number of failures, tasks are then exchangeable, however values depend on tasks and models. The difference
    is the least-squares one, within these groups of tasks and within models. All is NaN if the same models fail in all
    tasks of each group. `tasks` and `models` are codes.
    """
    rng = np.random.default_rng(0 if rng is None else rng)
    shape = tasks.max() + 1, models.max() + 1
    sizes, failures = np.zeros(shape), np.zeros(shape)
    totals = np.zeros((*shape, values.shape[1]))
    np.add.at(sizes, (tasks, models), 1)
    np.add.at(failures, (tasks, models), failed)
    np.add.at(totals, (tasks, models), values)
    shares = failures / np.maximum(sizes, 1)
    means = totals / np.maximum(sizes, 1)[..., None]
    alike = np.column_stack([sizes > 0, np.round(shares.sum(axis=1), 9)])
    groups = np.unique(alike, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    shares = shares[order]
    means = means[order].reshape(-1, values.shape[1])
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    expected = np.add.reduceat(shares, starts) / np.bincount(groups)[:, None]
    deviations = shares - expected[groups]
    scale = float((deviations**2).sum())
    if scale < 1e-9:
        nothing = np.full(values.shape[1], math.nan)
        return Across(nothing, nothing, nothing, nothing)
    estimate = deviations.ravel() @ means / scale
    chunk = max(1, MOST_CELLS // deviations.size)
    drawn = []
    for orders in orders_within(groups, N_PERMUTATIONS, chunk, rng):
        permuted = deviations[orders]
        drawn.append(permuted.reshape(len(orders), -1) @ means / scale)
    differences = np.concatenate(drawn)
    beyond = np.abs(differences) >= np.abs(estimate) - 1e-9
    p_value = (beyond.sum(axis=0) + 1) / (N_PERMUTATIONS + 1)
    half = intervals.quantile() * differences.std(axis=0)
    low = np.full(len(half), math.nan)
    high = low.copy()
    for i in np.flatnonzero(half > 1e-9):  # no bounds for values that no permutation changes
        bounds = max(estimate[i] - half[i], -1.0), min(estimate[i] + half[i], 1.0)
        low[i], high[i] = agreeing(*bounds, estimate[i], p_value[i])
    return Across(estimate, low, high, p_value)


class Unshared(NamedTuple):
    """Two models compared on the tasks that only one of them ran, as if both sets were samples of the same tasks."""

    mean_a: float
    mean_b: float
    gap: float  # between the means; for shares, with a pseudo-success and a pseudo-failure per model and stratum
    variance: float  # of the gap
    freedom: float
    tasks: tuple[int, int]  # number of tasks of each model
    parts: np.ndarray  # contribution of each row of the cells to the gap


def unshared(cells: Cells, a: int, b: int) -> Unshared | None:
    """Compare two models on the tasks that only one of them ran, stratum by stratum, such as types of tasks.

    Each stratum counts by the harmonic mean of the numbers of its tasks. For shares a success and a failure are added
    to each model and stratum (Agresti and Caffo 2000). The variance is Welch's plus that of `_of_ease`. Returns None
    unless a stratum has such tasks of both models (for scores, two of each model).
    """
    if cells.strata is None:
        return None
    clusters = np.arange(len(cells.tasks)) if cells.clusters is None else cells.clusters
    is_run = cells.sizes[:, [a, b]] > 0
    is_shared = np.isin(clusters, clusters[is_run.all(axis=1)])
    only = is_run & ~is_shared[:, None]
    counts = np.array([np.bincount(cells.strata[side], minlength=cells.strata.max(initial=0) + 1) for side in only.T])
    common = np.flatnonzero(counts.min(axis=0) >= (1 if cells.shares else 2))
    if not len(common):
        return None
    weights = 1 / (1 / counts[:, common]).sum(axis=0)
    means = np.zeros(2)  # one value per model, as in the next three arrays
    variances = np.zeros(2)
    freedoms = np.zeros(2)
    numbers = np.zeros(2)
    gap = 0.0
    parts = np.zeros(len(cells.tasks))
    for side, column, sign in ((0, a, 1), (1, b, -1)):
        terms, labels = list[np.ndarray](), list[np.ndarray]()
        mean = 0.0
        used = np.zeros(len(parts), bool)
        for weight, stratum in zip(weights / weights.sum(), common, strict=True):
            rows = only[:, side] & (cells.strata == stratum)
            values, groups = cells.means[rows, column], clusters[rows]
            mean += weight * values.mean()
            if cells.shares:  # each pseudo-task is a cluster of its own
                values, groups = np.append(values, (0.0, 1.0)), np.append(groups, (-1 - 2 * stratum, -2 - 2 * stratum))
            gap += sign * weight * values.mean()
            terms.append(weight * (values - values.mean()) / len(values))
            labels.append(groups)
            parts[rows] = sign * terms[-1][: rows.sum()]
            used |= rows
        codes = np.unique(np.concatenate(labels), return_inverse=True)[1]
        sums = np.bincount(codes, weights=np.concatenate(terms))
        if len(sums) < 2:  # the spread of a single family is unknown
            return None
        freedoms[side] = len(sums) - len(common)
        variances[side] = (sums**2).sum() * len(sums) / (len(sums) - 1)
        means[side] = mean
        numbers[side] = len(np.unique(clusters[used]))
    variance = float(variances.sum())
    if variance <= 0:
        return None
    freedom = float(variance**2 / (variances**2 / np.maximum(freedoms, 1)).sum())
    variance += _of_ease(cells, a, b, only, common, weights / weights.sum())
    tasks = int(numbers[0]), int(numbers[1])
    return Unshared(float(means[0]), float(means[1]), gap, variance, freedom, tasks, parts)


def _of_ease(cells: Cells, a: int, b: int, only: np.ndarray, strata: np.ndarray, weights: np.ndarray) -> float:
    """Return the variance due to the difference in ease between the unshared tasks of two models.

    It is the squared difference between the results of other models on both sets, plus its variance, which counts less
    if they ran few of these tasks. For shares, the difference is tanh(shift / 4), the largest difference of two rates
    whose logits differ by the shift.
    """
    assert cells.strata is not None
    others = np.delete(cells.means, [a, b], axis=1)
    if np.isnan(others[only.any(axis=1)]).all():
        return 0.0
    total, variance = 0.0, 0.0
    for stratum, weight in zip(strata, weights, strict=True):
        sides = [others[only[:, side] & (cells.strata == stratum)] for side in (0, 1)]
        counts = np.array([np.isfinite(side).sum(axis=0) for side in sides])
        known = counts.min(axis=0) > 0
        if not known.any():
            continue
        counts, sides = counts[:, known], [side[:, known] for side in sides]
        sums = np.array([np.nansum(side, axis=0) for side in sides])
        if cells.shares:
            rates = (sums + 1) / (counts + 2)
            precisions = 1 / (1 / ((counts + 2) * rates * (1 - rates))).sum(axis=0)
            shift = float(precisions @ np.subtract(*special.logit(rates)) / precisions.sum())
            gap = math.tanh(shift / 4)
            error = ((1 - gap**2) / 4) ** 2 / float(precisions.sum())
        else:
            gap = float(np.subtract(*(sums / counts)).mean())
            eases = [np.nanmean(side[np.isfinite(side).any(axis=1)], axis=1) for side in sides]
            error = sum(float(intervals.variance_of_mean(ease)) for ease in eases if len(ease) > 1)
        most = float((2 / (1 / counts).sum(axis=0)).max())  # harmonic mean of the numbers of tasks on both sides
        total += weight * gap
        variance += weight**2 * error * most**2 / (most**2 + FEW_SHOW_EASE)
    return total**2 + variance


def combine(
    paired: Compared | None, differences: np.ndarray, variance: float, apart: Unshared, shares: bool, margin: float
) -> tuple[Compared, float]:
    """Combine a comparison on shared tasks with one on the others; also return the weight of the shared tasks.

    Weights are the inverse variances. The variance on unshared tasks grows by the disagreement of the two differences
    that exceeds chance. Tests are combined by their normal quantiles (Lipták 1958), intervals by Zou and Donner (2008).
    Without shared tasks, the result is Welch's t. `variance` is the variance of the mean of the `differences` on shared
    tasks.
    """
    unlike, difference = apart.variance, apart.mean_a - apart.mean_b
    if paired is not None:
        mean = float(differences.mean())
        unlike += max((apart.gap - mean) ** 2 - BEYOND_CHANCE * (apart.variance + variance), 0.0)
    error = math.sqrt(unlike)
    p_unpaired = 2 * float(special.stdtr(apart.freedom, -abs(apart.gap) / error))
    half = intervals.quantile(freedom=apart.freedom) * error
    alone = Compared(apart.gap - half, apart.gap + half, p_unpaired, UNPAIRED, Notes(), LEVEL)
    if not math.isnan(margin):
        above, below = (special.stdtr(apart.freedom, -(margin + side * apart.gap) / error) for side in (1, -1))
        alone = alone._replace(p_above=float(above), p_below=float(below))
    if paired is None:
        return _within_bounds(alone, difference, shares), 0.0
    weight = unlike / (unlike + variance)
    z_paired = _signed(paired.p_value, mean)
    if paired.method in (MCNEMAR, "") and mean:
        statistic = float(differences.sum()) / math.sqrt(float((differences**2).sum()))
        z_paired = weight * z_paired + (1 - weight) * statistic
    z = math.sqrt(weight) * z_paired + math.sqrt(1 - weight) * _signed(p_unpaired, apart.gap)
    estimate = weight * mean + (1 - weight) * difference
    p_value = 2 * float(special.ndtr(-abs(z))) if z * estimate > 0 else 1.0
    centre = weight * mean + (1 - weight) * apart.gap
    low = centre - math.hypot(weight * (paired.low - mean), (1 - weight) * (alone.low - apart.gap))
    high = centre + math.hypot(weight * (paired.high - mean), (1 - weight) * (alone.high - apart.gap))
    above, below = (
        float(special.ndtr(_quantile(one, weight) + _quantile(other, 1 - weight)))
        for one, other in ((paired.p_above, alone.p_above), (paired.p_below, alone.p_below))
    )
    claim_at = min(paired.claim_at, LEVEL)
    both = Compared(low, high, p_value, PARTLY, paired.warning, claim_at, above, below)
    return _within_bounds(both, estimate, shares), weight


def allow_for_seeds(
    compared: Compared, estimate: float, variance: float, seeds: list[SeedSpread], shares: bool
) -> Compared:
    """Widen a comparison by the variance between seeds of both models, by t (degrees of freedom by Satterthwaite)."""
    extra = sum(one.variance for one in seeds)
    if not extra > 0 or math.isnan(compared.p_value):
        return compared
    factor = math.sqrt(1 + extra / variance)
    freedom = (variance + extra) ** 2 / sum(one.variance**2 / one.freedom for one in seeds if one.variance > 0)
    z = -float(special.ndtri(max(compared.p_value, SMALLEST) / 2)) / factor
    p_value = max(compared.p_value, 2 * float(special.stdtr(freedom, -z)))
    wider = factor * float(intervals.quantile(freedom=freedom) / intervals.quantile())
    low, high = (estimate + wider * (bound - estimate) for bound in compared[:2])
    above, below = (
        float(special.stdtr(freedom, special.ndtri(min(max(p, SMALLEST), 1 - 1e-16)) / factor))
        for p in (compared.p_above, compared.p_below)
    )
    doubt = note("few_seeds", seeds=[one.freedom + 1 for one in seeds if one.variance > 0])
    compared = compared._replace(low=low, high=high, p_value=p_value, p_above=above, p_below=below)
    return _within_bounds(compared._replace(warning=compared.warning + doubt), estimate, shares)


def _signed(p_value: float, difference: float) -> float:
    """Return the normal quantile of a two-sided p value, with the sign of the difference."""
    return -float(np.sign(difference) * special.ndtri(max(p_value, SMALLEST) / 2))


def _quantile(p_value: float, weight: float) -> float:
    """Return the weighted normal quantile of a one-sided p value; NaN for NaN."""
    return math.sqrt(weight) * float(special.ndtri(min(max(p_value, SMALLEST), 1 - 1e-16)))
