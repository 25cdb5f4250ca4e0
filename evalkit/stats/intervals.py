"""Intervals for one proportion or one mean, plain or robust to clusters such as the runs of a task.

What the data can't tell is NaN, and `Estimate.warning` says why. Missing values are left out and counted there.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from evalkit.stats import _formulas as formulas
from evalkit.stats import _warnings as warnings
from evalkit.stats._inputs import Clusters, by_cluster, check_choice, check_confidence, clean, join

ProportionMethod = Literal["wilson", "exact"]
Target = Literal["new tasks", "these tasks"]
Weights = Literal["tasks", "runs"]

NEW_VALUES = "new values"  # the target where values are independent
NO_VALUES = "no values"
ONE_VALUE = "a single value has no interval"
ONE_CLUSTER = "a single cluster has no interval"
ALL_EQUAL = "all values are equal: their spread can't be estimated"
CLUSTERS_EQUAL = "all clusters have the same mean: their spread can't be estimated"
CAUTIOUS = "all values are equal: a cautious interval"
NEVER_REPEATED = "no task was run more than once: nothing tells how its runs vary"
ONE_REPEATED = "one task only was run more than once: it can't tell how runs of the others vary"


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
    target : str
        What it speaks of: "new tasks" like these, "these tasks" run again, or "new values" like these where the
        values are independent.
    warning : str
        What is wrong or doubtful about the interval; empty where nothing is.
    """

    estimate: float
    low: float
    high: float
    n: int
    n_clusters: int
    method: str
    target: str = NEW_VALUES
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
    check_choice("method", method, get_args(ProportionMethod))
    n, successes = int(n), int(successes)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, method, warning=NO_VALUES)
    if method == "exact":
        low, high = formulas.clopper_pearson(successes, n, confidence)
        warning = ""
    else:
        low, high = formulas.wilson(successes / n, n, confidence)
        warning = warnings.of_wilson(successes, n)
    return Estimate(successes / n, float(low), float(high), n, n, method, warning=warning)


def rate_interval(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    confidence: float = 0.95,
    *,
    target: Target = "new tasks",
    weights: Weights = "tasks",
) -> Estimate:
    """Estimate a proportion from 0/1 values, where clusters such as tasks may hold several of them.

    Without clusters this is Wilson's interval. With clusters it is Wilson's interval on the effective n, the number of
    independent trials with the same variance (docs/statistics.md). With one value per cluster both are the same.

    Parameters
    ----------
    values : array-like of 0/1, bool or missing
        Missing values are left out.
    clusters : array-like, optional
        One label per value; values without a label are taken as one cluster.
    confidence : float
        Between 0 and 1, both excluded.
    target : {"new tasks", "these tasks"}
        Whether the interval holds the rate on new clusters like these, or on these very clusters if each were run
        anew. The second needs clusters with several values, and is narrower.
    weights : {"tasks", "runs"}
        Whether each cluster has the same weight (the mean of the rates of clusters), or each value has.

    Returns
    -------
    Estimate
        Without bounds for new tasks from a single cluster, and for these tasks where none has several values.

    Raises
    ------
    ValueError
        For values other than 0 and 1, for as many labels as values missing, or for a target or weights that can't be.
    """
    values, codes, lost = _checked(values, clusters, confidence, target, weights)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use mean_interval for others")
    if clusters is None or (target == "new tasks" and 1 < len(values) == codes.max(initial=-1) + 1):
        plain = proportion_interval(int(values.sum()), len(values), confidence=confidence)
        plain = plain._replace(warning=join(plain.warning, lost))
        return plain if clusters is None else plain._replace(target=target)
    return _bounded(values, codes, lost, "cluster wilson", confidence, target, weights)


def mean_interval(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    confidence: float = 0.95,
    *,
    bounds: tuple[float, float] | None = None,
    target: Target = "new tasks",
    weights: Weights = "tasks",
) -> Estimate:
    """Estimate a mean, where clusters such as tasks may hold several values.

    Values without bounds: Student's t over values, or over the means of clusters, from 5 on with Hall's correction for
    skewness. Values with bounds: Wilson's interval on the effective n, as for rates, which has bounds also where all
    values are equal (docs/statistics.md).

    Parameters
    ----------
    values : array-like of float
        Missing and infinite values are left out.
    clusters : array-like, optional
        One label per value; values without a label are taken as one cluster.
    confidence : float
        Between 0 and 1, both excluded.
    bounds : (float, float), optional
        Least and largest value there can be, such as (0, 1) for scores that are shares.
    target, weights
        As for `rate_interval`. Without bounds, weights can only be "tasks".

    Returns
    -------
    Estimate
        Without interval for a single value or cluster; without bounds also where nothing varies.

    Raises
    ------
    ValueError
        For as many labels as values missing, values beyond the bounds, or a target or weights that can't be.
    """
    values, codes, lost = _checked(values, clusters, confidence, target, weights)
    if bounds is None:
        if weights == "runs":
            raise ValueError("runs can weigh only in a mean with bounds; without, each task has the same weight")
        return _unbounded(values, codes, lost, clusters is not None, confidence, target)
    least, most = bounds
    if not least < most:
        raise ValueError(f"bounds are the least and the largest value, not {bounds}")
    if ((values < least) | (values > most)).any():
        raise ValueError(f"values beyond the bounds {bounds}")
    method = "wilson, effective n" if clusters is None else "cluster wilson"
    found = _bounded((values - least) / (most - least), codes, lost, method, confidence, target, weights)
    if clusters is None:
        found = found._replace(target=NEW_VALUES)
    low, high = (least + (most - least) * bound for bound in (found.low, found.high))
    return found._replace(estimate=least + (most - least) * found.estimate, low=low, high=high)


def _checked(values: Any, clusters: Any, confidence: float, target: str, weights: str) -> tuple:
    check_confidence(confidence)
    check_choice("target", target, get_args(Target))
    check_choice("weights", weights, get_args(Weights))
    if target == "these tasks" and clusters is None:
        raise ValueError("an estimate for these tasks needs to know them: give clusters")
    if target == "these tasks" and weights == "runs":
        raise ValueError("for these tasks each task has the same weight")
    return clean(values, clusters)


def _bounded(
    values: np.ndarray, codes: np.ndarray, lost: str, method: str, confidence: float, target: str, weights: str
) -> Estimate:
    """Estimate the mean of values from 0 to 1."""
    count = int(codes.max(initial=-1)) + 1
    if not count:
        return _without_bounds(math.nan, 0, 0, method, target, join(NO_VALUES, lost))
    groups = by_cluster(values, codes)
    estimate = float(values.mean() if weights == "runs" else groups.means.mean())
    if target == "these tasks":
        return _bounded_within(groups, estimate, lost, confidence)
    method += ", runs weigh" if weights == "runs" else ""
    if count < 2:
        reason = _lonely(len(values), count if method.startswith("cluster") else 0)
        return _without_bounds(estimate, len(values), 1, method, target, join(reason, lost))
    binary = bool(np.isin(values, (0.0, 1.0)).all())
    formula = formulas.bounded_runs if weights == "runs" else formulas.bounded
    low, high = formula(groups.means, groups.sizes, confidence, binary)
    effective = formulas.run_weighted(groups.means, groups.sizes)[2] if weights == "runs" else count
    warning = (warnings.of_rate if binary else warnings.of_scores)(groups.means, effective)
    if np.ptp(values) < 1e-12 and not binary:
        warning = CAUTIOUS
    return Estimate(estimate, float(low), float(high), len(values), count, method, target, join(warning, lost))


def _bounded_within(groups: Clusters, estimate: float, lost: str, confidence: float) -> Estimate:
    method, n, count = "wilson within tasks", int(groups.sizes.sum()), len(groups.sizes)
    if reason := _unrepeated(groups.sizes):
        return _without_bounds(estimate, n, count, method, "these tasks", join(reason, lost))
    low, high = formulas.bounded_within(groups.means, groups.variances, groups.sizes, confidence)
    warning = join(warnings.within_tasks(groups.sizes), lost)
    return Estimate(estimate, float(low), float(high), n, count, method, "these tasks", warning)


def _unbounded(
    values: np.ndarray, codes: np.ndarray, lost: str, clustered: bool, confidence: float, target: str
) -> Estimate:
    n, count = len(values), int(codes.max(initial=-1)) + 1
    within = target == "these tasks"
    method = "t within tasks" if within else "cluster t" if clustered else "t"
    target = target if clustered else NEW_VALUES
    if n == 0:
        return _without_bounds(math.nan, 0, 0, method, target, join(NO_VALUES, lost))
    groups = by_cluster(values, codes)
    mean = float(groups.means.mean())
    if reason := _unrepeated(groups.sizes) if within else _lonely(n, count):
        return _without_bounds(mean, n, count, method, target, join(reason, lost))
    if within:
        variance, freedom = formulas.within_tasks(groups.variances, groups.sizes, 0.0)
        half = formulas.student(confidence, freedom) * math.sqrt(variance)
        low, high, warning = mean - half, mean + half, warnings.within_tasks(groups.sizes)
    else:
        low, high = formulas.corrected_t(groups.means, confidence)
        method += ", Hall's correction" if count >= formulas.HALL_FROM else ""
        warning = warnings.of_mean(groups.means)
    noise = 1e-9 * np.abs(values).max()
    if high - low <= noise:
        reason = CLUSTERS_EQUAL if np.ptp(values) > noise and not within else ALL_EQUAL
        return _without_bounds(mean, n, count, method, target, join(reason, lost))
    return Estimate(mean, float(low), float(high), n, count, method, target, join(warning, lost))


def _lonely(n: int, count: int) -> str:
    return "" if count > 1 else ONE_VALUE if n == 1 else ONE_CLUSTER


def _unrepeated(sizes: np.ndarray) -> str:
    repeated = int((sizes > 1).sum())
    if repeated == 0:
        return NEVER_REPEATED
    return ONE_REPEATED if repeated == 1 < len(sizes) else ""


def _without_bounds(estimate: float, n: int, n_clusters: int, method: str, target: str, reason: str) -> Estimate:
    return Estimate(estimate, math.nan, math.nan, n, n_clusters, method, target, reason)
