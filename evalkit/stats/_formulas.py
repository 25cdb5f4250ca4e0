"""The formulas of the intervals, over whole arrays: the leading axes of an argument are samples, the last its values.

`benchmarks/coverage.py` runs these same functions on many samples at once.
"""

import math

import numpy as np
from scipy import special

Numbers = np.ndarray | float

KNOWN_SHARE = 2 / 3  # of the binomial variance, taken as known whatever the clusters show (docs/coverage.md)
PSEUDO_SPREAD = 0.25  # squared deviations of a pseudo-observation within tasks, in units of the range squared
PSEUDO_PAIR = 0.5  # the same for tests: those of two runs of a task that end differently
HALL_FROM = 5  # values from which skewness can be estimated
HALL_MOST = 2.0  # the corrected half-width, at most this many times that of t


def normal(confidence: float) -> float:
    """Return the two-sided quantile of the normal distribution."""
    return float(special.ndtri((1 + confidence) / 2))


def student(confidence: float, freedom: float) -> float:
    """Return the two-sided quantile of Student's t; with infinite freedom, of the normal distribution."""
    return normal(confidence) if np.isinf(freedom) else float(special.stdtrit(freedom, (1 + confidence) / 2))


def wilson(rate: Numbers, n: Numbers, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval (Wilson 1927)."""
    square = normal(confidence) ** 2 / np.asarray(n, dtype=float)
    centre = (rate + square / 2) / (1 + square)
    half = np.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    return np.where(rate == 0, 0.0, centre - half), np.where(rate == 1, 1.0, centre + half)


def skewness(values: np.ndarray) -> np.ndarray:
    """Return the skewness of the values; 0 where they are all equal."""
    centred = values - values.mean(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (centred**3).mean(-1) / (centred**2).mean(-1) ** 1.5
    return np.where(np.isfinite(ratio), ratio, 0.0)


def variance_of_mean(means: np.ndarray) -> np.ndarray:
    """Return the variance of the mean of C >= 2 independent values, such as the means of clusters of any sizes.

    It is also unbiased where their variances differ, as they do for clusters of different sizes.
    """
    return means.var(-1, ddof=1) / means.shape[-1]


def within_tasks(variances: np.ndarray, sizes: np.ndarray, pseudo: float) -> tuple[np.ndarray, int]:
    """Return the variance of the mean of task means over repetitions of the same tasks, and its degrees of freedom.

    Tasks with a single run, whose variance is NaN, get the mean variance of the others; the freedom is then the number
    of the others − 1, else runs − tasks. `pseudo` are the squared deviations of one pseudo-observation; 0 adds none.
    """
    repeated, freedom = sizes > 1, int((sizes - 1).sum())
    typical = variances[..., repeated].mean(-1, keepdims=True)
    filled = np.where(repeated, variances, typical)
    count = len(sizes)
    added = freedom * (filled / sizes).sum(-1) + pseudo * (1 / sizes).sum()
    variance = added / (freedom + (pseudo > 0)) / count**2
    return variance, freedom if repeated.all() else int(repeated.sum()) - 1


def inflated(
    variance: np.ndarray, known: Numbers, skew: Numbers, freedom: float, count: float, confidence: float
) -> np.ndarray:
    """Return the variance to be used with normal quantiles.

    What exceeds the known part is multiplied by (t / z)² for its degrees of freedom (Korn and Graubard 1998), and by
    1 + 2 skewness² / count for its correlation with the mean (docs/coverage.md).
    """
    factor = (student(confidence, freedom) / normal(confidence)) ** 2 * (1 + 2 * skew**2 / count)
    return known + np.maximum(variance - known, 0) * factor


def effective_wilson(
    rate: np.ndarray, variance: np.ndarray, fewest: float, when_equal: float, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval on the effective n = rate (1 − rate) / variance, which is at least `fewest`.

    Where all values are 0 or all 1, or there is no variance, the effective n is `when_equal`.
    """
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.maximum(spread / variance, fewest)
    equal = (spread < 1e-12) | (variance < 1e-15)
    return wilson(rate, np.where(equal, when_equal, effective), confidence)


def by_t(mean: Numbers, variance: Numbers, freedom: float, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a mean with this variance by Student's t."""
    half = student(confidence, freedom) * np.sqrt(variance)
    return mean - half, mean + half


def agreeing(
    low: float, high: float, estimate: float, p_value: float, level: float, null: float = 0.0
) -> tuple[float, float]:
    """Return the interval so that it holds the null value exactly where the test does not reject it."""
    if p_value > level:
        return min(low, null), max(high, null)
    if low <= null <= high:
        return (math.nextafter(null, math.inf), high) if estimate > null else (low, math.nextafter(null, -math.inf))
    return low, high


def moments(means: np.ndarray, sizes: np.ndarray, weights: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the mean of C >= 2 clusters, or over their runs, its variance, and the effective number of clusters.

    Over runs, the variance is that of the jackknife of clusters (Bell and McCaffrey 2002 call it CR3), and the number
    that of Kish (1965).
    """
    if weights == "tasks":
        return means.mean(-1), variance_of_mean(means), len(sizes)
    shares = sizes / sizes.sum()
    mean = means @ shares
    variance = ((shares * (means - mean[..., None]) / (1 - shares)) ** 2).sum(-1)
    return mean, variance, float(1 / (shares**2).sum())


def bounded(
    means: np.ndarray, sizes: np.ndarray, confidence: float, binary: bool, weights: str = "tasks"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the mean of values from 0 to 1 in C >= 2 clusters.

    Wilson on the effective n, which is at least the (effective) number of clusters. For 0/1 values two thirds of the
    variance of as many independent trials are taken as known. Where nothing varies, the effective n is C, as if the
    runs of a cluster always agreed.
    """
    rate, variance, count = moments(means, sizes, weights)
    known = KNOWN_SHARE * rate * (1 - rate) * binary
    known = known / sizes.sum() if weights == "runs" else known * (1 / sizes).sum() / count**2
    skew = 0.0 if binary else skewness(means)
    variance = inflated(variance, known, skew, max(count - 1, 1), count, confidence)
    return effective_wilson(rate, variance, count, count, confidence)


def bounded_within(
    means: np.ndarray, variances: np.ndarray, sizes: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the mean of task means of values from 0 to 1 for repetitions of these tasks."""
    count, (variance, freedom) = len(sizes), within_tasks(variances, sizes, PSEUDO_SPREAD)
    variance = inflated(variance, 0.0, 0.0, freedom, count, confidence)
    return effective_wilson(means.mean(-1), variance, count, count**2 / (1 / sizes).sum(), confidence)


def corrected_t(means: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a mean by t with C − 1 degrees of freedom, and from 5 values on Hall's correction.

    Hall (1992) transforms t by a cubic that removes its skewness; each half-width is kept to at most twice that of t.
    """
    count, mean, variance = means.shape[-1], means.mean(-1), variance_of_mean(means)
    if count < HALL_FROM:
        return by_t(mean, variance, count - 1, confidence)
    error, quantile, slant = np.sqrt(variance), student(confidence, count - 1), skewness(means) / np.sqrt(count)
    below, above = -hall(-quantile, slant), hall(quantile, slant)
    most = HALL_MOST * quantile
    return mean - np.clip(above, 0, most) * error, mean + np.clip(below, 0, most) * error


def hall(t: float, slant: Numbers) -> np.ndarray:
    """Return what Hall's transformation maps to t: T + a T² / 3 + a² T³ / 27 + a / 6 = t, with a the slant."""
    safe = np.where(np.abs(slant) < 1e-6, 1e-6, slant)
    return 3 / safe * (np.cbrt(1 + safe * (t - safe / 6)) - 1)


def agresti_min_moments(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of differences −1, 0 or 1 of pairs, and its standard error (Agresti and Min 2005).

    Half a pair is added to each of the four kinds of pairs first.
    """
    n = differences.shape[-1] + 2
    mean = differences.sum(-1) / n
    return mean, np.sqrt((((differences**2).sum(-1) + 1) / n - mean**2) / n)


def tango(differences: np.ndarray, null: float) -> np.ndarray:
    """Return the one-sided p value of a mean difference of pairs above `null`, which is below 0.

    The score test of Tango (1998) for differences −1, 0 and 1, by t with n − 1 degrees of freedom in place of the
    normal distribution. A difference of a share between counts as that much of a whole one, which is cautious.
    """
    n, wins, losses = differences.shape[-1], differences.clip(0).sum(-1), -differences.clip(None, 0).sum(-1)
    linear = (2 * n - wins + losses) * null - wins - losses
    root = np.sqrt(np.maximum(linear**2 + 8 * n * losses * null * (1 - null), 0))
    lost = (root - linear) / (4 * n)  # the share of losses under the null
    z = (wins - losses - n * null) / np.sqrt(n * (2 * lost + null * (1 - null)))
    return special.stdtr(n - 1, -z)
