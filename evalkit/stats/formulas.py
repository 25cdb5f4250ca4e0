"""The formulas of the intervals, over whole arrays: the leading axes of an argument are samples, the last its values.

`benchmarks/coverage.py` runs these same functions on many samples at once.
"""

import numpy as np
from scipy import special

Numbers = np.ndarray | float

CONFIDENCE = 0.95  # of all intervals; figures, tables and sentences say so
LEVEL = 1 - CONFIDENCE  # of all tests
KNOWN_SHARE = 2 / 3  # of the binomial variance, taken as known whatever the clusters show (docs/coverage.md)
PSEUDO_SPREAD = 0.25  # squared deviations of a pseudo-observation within tasks, in units of the range squared
HALL_FROM = 5  # values from which skewness can be estimated
HALL_MOST = 2.0  # the corrected half-width, at most this many times that of t
RARE_CLUSTERS = 2  # that hold a success, or a failure: too few for the interval of a rate
COCHRAN = 25  # times the squared skewness: as many values does an interval of their mean take


def quantile(confidence: float = CONFIDENCE, freedom: float = np.inf) -> float:
    """Return the two-sided quantile of Student's t; with infinite freedom, of the normal distribution."""
    side = (1 + confidence) / 2
    return float(special.ndtri(side) if np.isinf(freedom) else special.stdtrit(freedom, side))


def wilson(rate: Numbers, n: Numbers, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval (Wilson 1927); n may be an effective number, and whole arrays are fine."""
    square = quantile(confidence) ** 2 / np.asarray(n, dtype=float)
    centre = (rate + square / 2) / (1 + square)
    half = np.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    return np.where(rate == 0, 0.0, centre - half), np.where(rate == 1, 1.0, centre + half)


def by_t(
    mean: Numbers, variance: Numbers, freedom: float, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a mean with this variance by Student's t."""
    half = quantile(confidence, freedom) * np.sqrt(variance)
    return mean - half, mean + half


def variance_of_mean(means: np.ndarray) -> np.ndarray:
    """Return the variance of the mean of C >= 2 independent values, such as the means of clusters of any sizes.

    It is also unbiased where their variances differ, as they do for clusters of different sizes.
    """
    return means.var(-1, ddof=1) / means.shape[-1]


def skewness(values: np.ndarray) -> np.ndarray:
    """Return the skewness of the values; 0 where they are all equal."""
    centred = values - values.mean(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (centred**3).mean(-1) / (centred**2).mean(-1) ** 1.5
    return np.where(np.isfinite(ratio), ratio, 0.0)


def hall(t: float, slant: Numbers) -> np.ndarray:
    """Return what Hall's transformation maps to t: T + a T² / 3 + a² T³ / 27 + a / 6 = t, with a the slant."""
    safe = np.where(np.abs(slant) < 1e-6, 1e-6, slant)
    return 3 / safe * (np.cbrt(1 + safe * (t - safe / 6)) - 1)


def corrected_t(means: np.ndarray, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a mean by t with C − 1 degrees of freedom, and from 5 values on Hall's correction.

    Hall (1992) transforms t by a cubic that removes its skewness; each half-width is kept to at most twice that of t.
    """
    count, mean, variance = means.shape[-1], means.mean(-1), variance_of_mean(means)
    if count < HALL_FROM:
        return by_t(mean, variance, count - 1, confidence)
    error, t, slant = np.sqrt(variance), quantile(confidence, count - 1), skewness(means) / np.sqrt(count)
    below, above = -hall(-t, slant), hall(t, slant)
    return mean - np.clip(above, 0, HALL_MOST * t) * error, mean + np.clip(below, 0, HALL_MOST * t) * error


def effective_wilson(
    rate: np.ndarray, variance: np.ndarray, fewest: float, when_equal: Numbers, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval on the effective n = rate (1 − rate) / variance, which is at least `fewest`.

    Where all values are 0 or all 1, or there is no variance, the effective n is `when_equal`.
    """
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.maximum(spread / variance, fewest)
    equal = (spread < 1e-12) | (variance < 1e-15)
    return wilson(rate, np.where(equal, when_equal, effective), confidence)


def bounded(
    means: np.ndarray, sizes: np.ndarray, binary: bool, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the mean of values from 0 to 1 in C >= 2 clusters.

    Wilson on the effective n, which is at least C. Of 0/1 values two thirds of the variance of as many independent
    trials are taken as known. What exceeds them is multiplied by (t / z)² for its degrees of freedom (Korn and Graubard
    1998), and for other values by 1 + 2 skewness² / C, since it goes with the mean (docs/coverage.md). Where nothing
    varies, the effective n is C, as if the runs of a cluster always agreed.
    """
    rate, variance, count = means.mean(-1), variance_of_mean(means), len(sizes)
    known = KNOWN_SHARE * rate * (1 - rate) * (1 / sizes).sum() / count**2 * binary
    skew = 0.0 if binary else skewness(means)
    factor = (quantile(confidence, count - 1) / quantile(confidence)) ** 2 * (1 + 2 * skew**2 / count)
    variance = known + np.maximum(variance - known, 0) * factor
    return effective_wilson(rate, variance, count, count, confidence)


def within_tasks(variances: np.ndarray, sizes: np.ndarray, pseudo: float) -> tuple[np.ndarray, int]:
    """Return the variance of the mean of task means over repetitions of the same tasks, and its degrees of freedom.

    Tasks with a single run, whose variance is NaN, get the mean variance of the others; the freedom is then the number
    of the others − 1, else runs − tasks. `pseudo` are the squared deviations of one pseudo-observation; 0 adds none.
    """
    repeated, freedom = sizes > 1, int((sizes - 1).sum())
    typical = variances[..., repeated].mean(-1, keepdims=True)
    filled = np.where(repeated, variances, typical)
    added = freedom * (filled / sizes).sum(-1) + pseudo * (1 / sizes).sum()
    variance = added / (freedom + (pseudo > 0)) / len(sizes) ** 2
    return variance, freedom if repeated.all() else int(repeated.sum()) - 1


def bounded_within(
    means: np.ndarray, variances: np.ndarray, sizes: np.ndarray, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the mean of task means of values from 0 to 1 for repetitions of these tasks."""
    count, (variance, freedom) = len(sizes), within_tasks(variances, sizes, PSEUDO_SPREAD)
    variance = variance * (quantile(confidence, freedom) / quantile(confidence)) ** 2
    return effective_wilson(means.mean(-1), variance, count, count**2 / (1 / sizes).sum(), confidence)


def unmixed(means: np.ndarray) -> np.ndarray:
    """Return whether 1 or 2 of the clusters (last axis) hold a success, or a failure: too few for a rate."""
    holding = np.minimum((means > 0).sum(-1), (means < 1).sum(-1))
    return (holding > 0) & (holding <= RARE_CLUSTERS)


def skewed(means: np.ndarray) -> np.ndarray:
    """Return whether there are too few values or clusters (last axis) for how skewed they are.

    Cochran's rule (1977, section 2.15): at least 25 times the squared skewness.
    """
    return skewness(means) ** 2 * COCHRAN > means.shape[-1]
