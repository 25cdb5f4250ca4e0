"""Intervals for one proportion or one mean, plain or robust to clusters.

What the data can't tell is NaN, and `Estimate.warning` says why. Missing values are left out, and said to be.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from evalkit.stats import _doubts as doubts
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, clean, join

ProportionMethod = Literal["wilson", "exact"]

NO_VALUES = "no values"
ONE_VALUE = "a single value has no interval"
ONE_CLUSTER = "a single cluster has no interval"
ALL_EQUAL = "all values are equal: their spread can't be estimated"
CLUSTERS_EQUAL = "all clusters have the same mean: their spread can't be estimated"


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
    check_confidence(confidence)
    if not (float(n).is_integer() and float(successes).is_integer() and 0 <= successes <= n):
        raise ValueError(f"{successes} successes of {n} can't be: need whole numbers, 0 <= successes <= n")
    if method not in ("wilson", "exact"):
        raise ValueError(f"unknown method {method!r}: 'wilson' or 'exact'")
    n, successes = int(n), int(successes)
    if n == 0:
        return _without_bounds(math.nan, 0, 0, method, NO_VALUES)
    if method == "exact":
        low, high = formulas.clopper_pearson(successes, n, confidence)
        warning = ""
    else:
        low, high = formulas.wilson(successes / n, n, confidence)
        warning = doubts.of_wilson(successes, n)
    return Estimate(successes / n, float(low), float(high), n, n, method, warning)


def rate_interval(values: Iterable[Any], clusters: Iterable[Any] | None = None, confidence: float = 0.95) -> Estimate:
    """Estimate a proportion from 0/1 values, robust to clusters such as repetitions of a task.

    Without clusters this is Wilson's interval. With C clusters it is Wilson's interval on the effective n, which is
    n / design effect, corrected for the C − 1 degrees of freedom, and lies between the number of clusters and n
    (docs/statistics.md). With one value per cluster both are the same.

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
        Without bounds for a single cluster.

    Raises
    ------
    ValueError
        For values other than 0 and 1, or where there are not as many labels as values.
    """
    check_confidence(confidence)
    values, codes, lost = clean(values, clusters)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use mean_interval for others")
    n, sizes, successes = len(values), np.bincount(codes), np.bincount(codes, weights=values)
    if clusters is not None and len(sizes) < 2:
        rate, reason = (float(values.mean()), ONE_CLUSTER) if n else (math.nan, NO_VALUES)
        return _without_bounds(rate, n, len(sizes), "cluster wilson", join(reason, lost))
    if len(sizes) == n:
        plain = proportion_interval(int(values.sum()), n, confidence=confidence)
        return plain._replace(warning=join(plain.warning, lost))
    low, high = formulas.cluster_wilson(successes, sizes, confidence)
    warning = join(doubts.of_cluster_wilson(successes, sizes), lost)
    return Estimate(float(values.mean()), float(low), float(high), n, len(sizes), "cluster wilson", warning)


def mean_interval(values: Iterable[Any], clusters: Iterable[Any] | None = None, confidence: float = 0.95) -> Estimate:
    """Estimate a mean with Student's t, robust to clusters such as repetitions of a task.

    With C clusters the variance is that between clusters, and t has C − 1 degrees of freedom (docs/statistics.md).
    With one value per cluster both are the same.

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
        Without bounds for a single value or cluster, and where all values or all means of clusters are equal.

    Raises
    ------
    ValueError
        Where there are not as many labels as values.
    """
    check_confidence(confidence)
    values, codes, lost = clean(values, clusters)
    n, sizes = len(values), np.bincount(codes)
    method = "t" if clusters is None else "cluster t"
    if n == 0:
        return _without_bounds(math.nan, 0, 0, method, join(NO_VALUES, lost))
    mean = float(values.mean())
    if len(sizes) < 2:
        return _without_bounds(mean, n, len(sizes), method, join(ONE_VALUE if n == 1 else ONE_CLUSTER, lost))
    totals = np.bincount(codes, weights=values)
    low, high = formulas.cluster_t(totals, sizes, confidence)
    noise = 1e-9 * np.abs(values).max()
    if high - low <= noise:
        reason = ALL_EQUAL if np.ptp(values) <= noise else CLUSTERS_EQUAL
        return _without_bounds(mean, n, len(sizes), method, join(reason, lost))
    warning = join(doubts.of_t(totals, sizes), lost)
    return Estimate(mean, float(low), float(high), n, len(sizes), method, warning)


def _without_bounds(estimate: float, n: int, n_clusters: int, method: str, reason: str) -> Estimate:
    return Estimate(estimate, math.nan, math.nan, n, n_clusters, method, reason)
