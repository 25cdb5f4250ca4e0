"""Intervals for one proportion or one mean, plain or robust to clusters.

What the data can't tell is NaN, and `Estimate.warning` says why. Missing values are left out, and said to be.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

ProportionMethod = Literal["wilson", "exact"]

NO_VALUES = "no values"
ONE_VALUE = "a single value has no interval"
ONE_CLUSTER = "a single cluster has no interval"
ALL_EQUAL = "all values are equal: their spread can't be estimated"


class Estimate(NamedTuple):
    """An estimate with its interval.

    Attributes
    ----------
    estimate, low, high : float
        In the unit of the values (a share for proportions); NaN where it can't be computed.
    n : int
        Values used.
    n_clusters : int
        Independent units: clusters, or `n` where the values are taken as independent.
    method : str
        How the interval was computed.
    warning : str
        What is wrong or doubtful about the interval; empty where nothing is.
    """

    estimate: float
    low: float
    high: float
    n: int
    n_clusters: int
    method: str
    warning: str = ""


def proportion_interval(
    successes: int, n: int, method: ProportionMethod = "wilson", confidence: float = 0.95
) -> Estimate:
    """Estimate a proportion from counts of independent trials.

    Parameters
    ----------
    successes, n : int
        With ``0 <= successes <= n``; n = 0 gives NaN.
    method : {"wilson", "exact"}
        Wilson's score interval (1927), or Clopper and Pearson's (1934), whose coverage is never below `confidence`.
    confidence : float
        Between 0 and 1, both excluded.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        For counts that can't be, an unknown method or an impossible confidence.

    See Also
    --------
    rate_interval : the same from 0/1 values, with clusters where they repeat.
    """
    _check_confidence(confidence)
    if not (float(n).is_integer() and float(successes).is_integer() and 0 <= successes <= n):
        raise ValueError(f"{successes} successes of {n} can't be: need whole numbers, 0 <= successes <= n")
    if method not in ("wilson", "exact"):
        raise ValueError(f"unknown method {method!r}: 'wilson' or 'exact'")
    n, successes = int(n), int(successes)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, method, NO_VALUES)
    if method == "exact":
        low, high = _clopper_pearson(successes, n, confidence)
    else:
        low, high = _wilson(successes / n, n, float(special.ndtri((1 + confidence) / 2)))
    return Estimate(successes / n, low, high, n, n, method)


def rate_interval(values: Iterable[Any], clusters: Iterable[Any] | None = None, confidence: float = 0.95) -> Estimate:
    """Estimate a proportion from 0/1 values, robust to clusters such as repetitions of a task.

    Without clusters this is Wilson's interval. With C clusters it is Wilson's interval on the effective n, which is
    n / design effect, with the quantile of t with C − 1 degrees of freedom. Where all outcomes are equal the effective
    n is C.

    Parameters
    ----------
    values : array-like of 0/1, bool or missing
        Missing values are left out.
    clusters : array-like, optional
        One label per value; values without a label are taken as one cluster.
    confidence : float
        Between 0 and 1, both excluded.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        For values other than 0 and 1, or as many labels as values are not there.
    """
    _check_confidence(confidence)
    values, codes, left_out = _clean(values, clusters)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use mean_interval for others")
    if codes is None:
        plain = proportion_interval(int(values.sum()), len(values), confidence=confidence)
        return plain._replace(warning=_join(plain.warning, left_out))
    return _clustered_rate(values, codes, confidence, left_out)


def mean_interval(values: Iterable[Any], clusters: Iterable[Any] | None = None, confidence: float = 0.95) -> Estimate:
    """Estimate a mean with Student's t, robust to clusters such as repetitions of a task.

    With C clusters the variance is that of a ratio mean (Cochran 1977, chapter 9A; the sandwich of a regression on a
    constant), times C / (C − 1), and t has C − 1 degrees of freedom.

    Parameters
    ----------
    values : array-like of float
        Missing and infinite values are left out.
    clusters : array-like, optional
        One label per value; values without a label are taken as one cluster.
    confidence : float
        Between 0 and 1, both excluded.

    Returns
    -------
    Estimate
        Without bounds for a single value or cluster, and where all values are equal.
    """
    _check_confidence(confidence)
    values, codes, left_out = _clean(values, clusters)
    n = len(values)
    method = "t" if codes is None else "cluster t"
    codes = np.arange(n) if codes is None else codes
    count = int(codes.max()) + 1 if n else 0
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, method, _join(NO_VALUES, left_out))
    mean = float(values.mean())
    reason = (ONE_VALUE if n == 1 else ONE_CLUSTER) if count < 2 else ALL_EQUAL if np.ptp(values) == 0 else ""
    if reason:
        return Estimate(mean, math.nan, math.nan, n, count, method, _join(reason, left_out))
    half = float(special.stdtrit(count - 1, (1 + confidence) / 2)) * math.sqrt(_variance_of_mean(values, codes))
    return Estimate(mean, mean - half, mean + half, n, count, method, left_out)


def _clustered_rate(values: np.ndarray, codes: np.ndarray, confidence: float, left_out: str) -> Estimate:
    n, method = len(values), "cluster wilson"
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, method, _join(NO_VALUES, left_out))
    rate, count = float(values.mean()), int(codes.max()) + 1
    if count < 2:
        return Estimate(rate, math.nan, math.nan, n, count, method, _join(ONE_CLUSTER, left_out))
    variance = _variance_of_mean(values, codes)
    if rate in (0.0, 1.0):
        effective = float(count)
    else:
        effective = min(n, rate * (1 - rate) / variance) if variance > 0 else float(n)
    low, high = _wilson(rate, effective, float(special.stdtrit(count - 1, (1 + confidence) / 2)))
    return Estimate(rate, low, high, n, count, method, left_out)


def _variance_of_mean(values: np.ndarray, codes: np.ndarray) -> float:
    totals = np.bincount(codes, weights=values - values.mean())
    count = len(totals)
    return float(count / (count - 1) * (totals @ totals) / len(values) ** 2)


def _wilson(rate: float, n: float, quantile: float) -> tuple[float, float]:
    square = quantile**2 / n
    centre = (rate + square / 2) / (1 + square)
    half = math.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    return (0.0 if rate == 0 else max(0.0, centre - half)), (1.0 if rate == 1 else min(1.0, centre + half))


def _clopper_pearson(successes: int, n: int, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(special.betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def _clean(values: Iterable[Any], clusters: Iterable[Any] | None) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Return finite values, codes of their clusters (0, 1, ...; None without clusters) and what was left out."""
    numbers = _floats(values)
    kept = np.isfinite(numbers)
    lost = int(len(numbers) - kept.sum())
    left_out = f"{lost} missing value{'s' if lost > 1 else ''} left out" if lost else ""
    if clusters is None:
        return numbers[kept], None, left_out
    labels = pd.Series(list(clusters), dtype="object")
    if len(labels) != len(numbers):
        raise ValueError(f"{len(numbers)} values, but {len(labels)} cluster labels")
    codes = pd.factorize(labels[kept], use_na_sentinel=False)[0]
    if len(codes) and codes.max() + 1 == len(codes):
        return numbers[kept], None, left_out  # no label repeats: the values are as independent as without labels
    return numbers[kept], codes, left_out


def _floats(values: Iterable[Any]) -> np.ndarray:
    series = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values) if np.ndim(values) else values)
    return series.to_numpy(dtype="float64", na_value=np.nan)


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is between 0 and 1, not {confidence}")
