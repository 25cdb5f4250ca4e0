"""The formulas of the intervals, over whole arrays: the leading axes of an argument are samples, the last its values.

`benchmarks/coverage.py` runs these same functions on many samples at once.
"""

import numpy as np
from scipy import special


def normal(confidence: float) -> float:
    """Return the two-sided quantile of the normal distribution."""
    return float(special.ndtri((1 + confidence) / 2))


def student(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def wilson(rate: np.ndarray, n: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval (Wilson 1927)."""
    square = normal(confidence) ** 2 / np.asarray(n, dtype=float)
    centre = (rate + square / 2) / (1 + square)
    half = np.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    return np.where(rate == 0, 0.0, centre - half), np.where(rate == 1, 1.0, centre + half)


def clopper_pearson(successes: np.ndarray, n: int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact interval of Clopper and Pearson (1934), by quantiles of the beta distribution."""
    tail, successes = (1 - confidence) / 2, np.asarray(successes, dtype=float)
    low = special.betaincinv(np.maximum(successes, 1), n - successes + 1, tail)
    high = special.betaincinv(successes + 1, np.maximum(n - successes, 1), 1 - tail)
    return np.where(successes == 0, 0.0, low), np.where(successes == n, 1.0, high)


def cluster_variance(totals: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the variance of a mean from the total of each of C >= 2 clusters.

    That of a ratio (Cochran 1977, chapter 2; also the sandwich of a regression on a constant) times C / (C − 1).
    """
    n, count = sizes.sum(), sizes.shape[-1]
    residuals = totals - (totals.sum(-1) / n)[..., None] * sizes
    return count / (count - 1) * (residuals**2).sum(-1) / n**2


def cluster_wilson(successes: np.ndarray, sizes: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval on the effective n, from the successes of each of C >= 2 clusters.

    The effective n is n / design effect = rate (1 − rate) / variance, times (z / t)² for the C − 1 degrees of freedom
    of that variance (Korn and Graubard 1998). It is kept between its values for a correlation of 1 and of 0 within
    clusters: n² / sum of squared sizes (Kish 1965; C for equal sizes), and n. Where all outcomes are equal nothing is
    known of the correlation, and it is taken as 1.
    """
    n = sizes.sum()
    rate = successes.sum(-1) / n
    shrink = (normal(confidence) / student(confidence, sizes.shape[-1] - 1)) ** 2
    fewest = n**2 / (sizes**2).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.clip(rate * (1 - rate) / cluster_variance(successes, sizes) * shrink, fewest, n)
    return wilson(rate, np.where((rate == 0) | (rate == 1), fewest, effective), confidence)


def cluster_t(totals: np.ndarray, sizes: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a mean by t with C − 1 degrees of freedom, from the total of each of C >= 2 clusters."""
    mean = totals.sum(-1) / sizes.sum()
    half = student(confidence, sizes.shape[-1] - 1) * np.sqrt(cluster_variance(totals, sizes))
    return mean - half, mean + half


def bonett_price(differences: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the difference of two paired proportions (Bonett and Price 2012).

    The Wald interval after one pair won and one pair lost are added to the pairs (differences −1, 0 or 1).
    """
    mean, deviation = adjusted_moments(differences)
    half = normal(confidence) * deviation / np.sqrt(differences.shape[-1] + 2)
    return np.maximum(mean - half, -1.0), np.minimum(mean + half, 1.0)


def adjusted_moments(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of differences after −1 and 1 are added to them."""
    n = differences.shape[-1] + 2
    mean = differences.sum(-1) / n
    return mean, np.sqrt(((differences**2).sum(-1) + 2) / n - mean**2)
