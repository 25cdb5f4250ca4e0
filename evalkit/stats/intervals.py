"""Intervals for one proportion, mean or smooth statistic, plain or robust to clusters such as runs of a task; by group.

A number that the data can't support is NaN, and `Estimate.warning` gives the reason. Missing values are excluded, and
the warning counts them. The formulas at the end of the module are vectorised, so that `benchmarks/coverage.py` can run
them on many samples at once: the last axis of an argument contains values, the leading axes are samples.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, SupportsFloat, get_args

import numpy as np
import pandas as pd
from pandas.api.typing import NAType
from scipy import special

from evalkit._notes import Notes, left_out, note
from evalkit._text import check_columns
from evalkit.stats.seeds import SeedSpread, seed_spreads

Target = Literal["new tasks", "these tasks"]
Kind = Literal["proportion", "score", "mean"]
Numbers = np.ndarray | float
Values = Iterable[SupportsFloat | NAType | None]  # numbers, of which some may be missing

CONFIDENCE = 0.95  # confidence level of all intervals; figures, tables and sentences state it
LEVEL = 1 - CONFIDENCE  # significance level of all tests
KNOWN_SHARE = 2 / 3  # share of the binomial variance that is assumed even if clusters vary less (docs/coverage.md)
SKEW_OF_RATES, SKEW_OF_SCORES = 3, 2  # the variance between clusters grows by this × skewness² / clusters
HALL_FROM = 5  # minimum number of values to estimate their skewness from
HALL_MOST = 2.0  # maximum of the corrected half-width, in half-widths of t
RARE_CLUSTERS = 2  # a rate gets a warning if at most this many clusters have a success, or a failure
LARGEST = 1e60  # largest usable value: powers of larger ones overflow
COCHRAN = 25  # the interval of a mean needs this × skewness² values (Cochran 1977)

NEW_VALUES = "new values"  # the target if values are independent

# below these numbers, an interval may cover less than 95 %, and gets a warning (docs/coverage.md has the figures)
FEW_VALUES = 15  # values of a proportion
RARE = 3  # successes, or failures, of a proportion
FEW_CLUSTERS = 5  # clusters of rates and means
FEW_SCORES = 12  # clusters of scores from 0 to 1
FEW_LEFT_OUT = 50  # values or clusters of the jackknife
FEW_FAMILIES = 12  # families of equal size
LEAST_FAMILIES = 2  # with fewer families there is no interval
FEW = note("few", fewest=FEW_CLUSTERS, what="independent values")

_TYPES = {
    "int64": "k n n_tasks n_unshared rank_high rank_low tested",
    "bool": "behind_first binary decided equivalent on_front ties_with_first",
    "str": "correction dominated_by measure method model_a model_b model_name target verdict",
    "object": "warning",
}
_TYPE_OF: dict[str, Any] = {name: kind for kind, names in _TYPES.items() for name in names.split()}


class Estimate(NamedTuple):
    """An estimate with its interval, in the unit of the values (a share for proportions); NaN where there is none."""

    estimate: float
    low: float
    high: float
    n: int  # values used
    n_tasks: int  # number of independent units: clusters, or `n` if the values are independent
    method: str
    target: str = NEW_VALUES  # what it applies to: "new tasks", "these tasks" (run again), "new values", "these units"
    warning: Notes = Notes()  # doubts about the interval, falsy if there are none; ``str(warning)`` is the text


def proportion_interval(successes: int, n: int) -> Estimate:
    """Estimate a proportion from counts of independent trials, by Wilson's score interval (1927).

    Parameters
    ----------
    successes : int
        Number of successes.
    n : int
        Number of trials.

    Returns
    -------
    Estimate
        estimate, low, high (shares), n; NaN for no trials.

    Raises
    ------
    ValueError
        For impossible counts.

    Examples
    --------
    >>> round(stats.proportion_interval(7, 10).low, 3)
    0.397
    """
    if not (float(n).is_integer() and float(successes).is_integer() and 0 <= successes <= n):
        raise ValueError(f"{successes} successes of {n} can't be: need whole numbers, 0 <= successes <= n")
    n, successes = int(n), int(successes)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, "wilson", warning=note("no_values"))
    warning = Notes()
    if n < FEW_VALUES:
        warning = note("few", fewest=FEW_VALUES, what="values")
    elif 0 < min(successes, n - successes) <= RARE:
        warning = note("rare", most=RARE)
    low, high = map(float, wilson(successes / n, n))
    return Estimate(successes / n, low, high, n, n, "wilson", warning=warning)


def rate_interval(
    values: Values,
    clusters: Iterable[Any] | None = None,
    *,
    target: Target = "new tasks",
    families: Iterable[Any] | None = None,
) -> Estimate:
    """Estimate a proportion from 0/1 values, which may repeat within clusters such as tasks.

    The interval is Wilson's. With clusters, it uses the effective n: the number of independent trials with the same
    variance (docs/statistics.md). The target "these tasks" needs clusters with several values, and gives a narrower
    interval. With families, the estimate is still the mean over clusters, but the interval is for new families.

    Parameters
    ----------
    values : array_like, shape (n,)
        0, 1 or missing.
    clusters : array_like, shape (n,), optional
        Label of each value; values without a label are one cluster.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    families : array_like, shape (n,), optional
        Family of each value, if clusters are variants of a few.

    Returns
    -------
    Estimate
        estimate, low, high (shares), n. No bounds for new tasks from a single cluster, or for these tasks without a
        repeated cluster.

    Raises
    ------
    ValueError
        For values other than 0 and 1, or in two dimensions.

    Examples
    --------
    >>> stats.rate_interval([1, 1, 0, 1], ["a", "a", "b", "b"]).estimate
    0.75
    """
    return _estimated("proportion", values, clusters, families, target)


def mean_interval(
    values: Values,
    clusters: Iterable[Any] | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    target: Target = "new tasks",
    families: Iterable[Any] | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Estimate a mean of values, which may repeat within clusters such as tasks.

    Without bounds, the interval is Student's t over values or cluster means, with Hall's correction for skewness if
    there are at least 5. With bounds, it is Wilson's on the effective n, as for rates, even if all values are equal.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers; missing ones are excluded.
    clusters : array_like, shape (n,), optional
        Label of each value.
    bounds : tuple of float, optional
        Smallest and largest possible value.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    families : array_like, shape (n,), optional
        Family of each value's cluster.
    confidence : float
        Confidence level, from 0 to 1.

    Returns
    -------
    Estimate
        estimate, low, high, n. No bounds for a single value or cluster, or if all values are equal and have no
        `bounds`.

    Raises
    ------
    ValueError
        For values beyond the bounds or in two dimensions, and for impossible bounds or an impossible confidence.

    Examples
    --------
    >>> round(stats.mean_interval([1.0, 2.0, 3.0, 4.0]).low, 2)
    0.45
    """
    kind = "mean" if bounds is None else "score"
    least, most = (0.0, 1.0) if bounds is None else bounds
    if not (least < most and math.isfinite(most - least)):
        raise ValueError(f"bounds must be two finite numbers, the smaller one first (got {least} and {most})")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1 (got {confidence})")
    return _estimated(kind, values, clusters, families, target, (least, most), confidence)


def _estimated(
    kind: str,
    values: Any,
    clusters: Any,
    families: Any,
    target: Target,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Estimate from values and the labels of their clusters and families."""
    values = numbers(values)
    if values.ndim > 1:
        raise ValueError(f"values must have one dimension (got {values.ndim})")
    of_families = None if families is None else coded(families, len(values))[0][np.isfinite(values)]
    known, codes, lost = clean(values, clusters)
    return _interval(kind, known, codes, lost, clusters is not None, of_families, target, bounds, confidence)


def _interval(
    kind: str,
    known: np.ndarray,
    codes: np.ndarray,
    lost: Notes,
    is_clustered: bool,
    families: np.ndarray | None,
    target: str,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Estimate from the results of `clean`: values and the codes of their clusters; `families` are codes, too."""
    check_choice("target", target, get_args(Target))
    is_rate, is_bounded = kind == "proportion", kind != "mean"
    within = target == "these tasks"
    if families is not None:
        families = families[np.unique(codes, return_index=True)[1]]  # the family of each cluster
        if within or not is_clustered or len(np.unique(families)) == len(families):
            families = None
    if within and not is_clustered:
        raise ValueError("an estimate for these tasks needs clusters")
    least, most = bounds
    width = most - least
    known = (known - least) / width
    if kind == "score" and ((known < 0) | (known > 1)).any():
        raise ValueError(f"values beyond the bounds {least:g} and {most:g}")
    n, count = len(known), int(codes.max(initial=-1)) + 1
    if is_rate and not np.isin(known, (0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use mean_interval for others")
    if is_rate and families is None and (not is_clustered or (not within and n > 1 and n == count)):
        plain = proportion_interval(int(known.sum()), n)
        return plain._replace(warning=plain.warning + lost, target=target if is_clustered else NEW_VALUES)
    family = "wilson" if is_bounded else "t"
    hall = ", Hall's correction" if not is_bounded and count >= HALL_FROM else ""
    if within:
        method = f"{family} within tasks"
    elif is_clustered:
        method = f"cluster {family}{hall}"
    else:
        method = "wilson, effective n" if is_bounded else f"t{hall}"
    result = Estimate(math.nan, math.nan, math.nan, n, count, method, target if is_clustered else NEW_VALUES)
    if n == 0:
        return result._replace(warning=note("no_values") + lost)
    sizes, means, variances = by_cluster(known, codes)
    mean = means.mean()
    result = result._replace(estimate=float(least + width * mean))
    reason, repeated = Notes(), int((sizes > 1).sum())
    if within and not repeated:
        reason = note("never_repeated", why=": the variation between runs is unknown")
    elif within and repeated == 1 and count > 1:
        reason = note("one_repeated")
    elif not within and count == 1:
        reason = note("one_cluster" if is_clustered else "one_value")
    units = Units(means, sizes, means, count)
    if families is not None:
        units = by_family(means, sizes, families)
        lost = note("families", count=len(units.values)) + lost
        if units.independent < LEAST_FAMILIES:
            reason = note("one_family")
    if reason:
        return result._replace(warning=reason + lost)
    binary = bool(np.isin(known, (0.0, 1.0)).all())
    if within:
        warning = of_repetitions(sizes)
        if is_bounded:
            low, high = bounded_within(means, variances, sizes, confidence)
        else:
            low, high = by_t(mean, *within_tasks(variances, sizes, 0.0), confidence)
    else:
        warning, independent = Notes(), units.independent
        if is_bounded and not binary and independent < FEW_SCORES:
            warning = note("few_scores", fewest=FEW_SCORES)
        elif independent < FEW_CLUSTERS:
            warning = FEW
        elif families is not None and independent < FEW_FAMILIES:
            warning = note("few", fewest=FEW_FAMILIES, what="families of equal size")
        elif is_bounded and binary and unmixed(units.means):
            warning = note("unmixed", most=RARE_CLUSTERS)
        elif (families is not None or not is_bounded or not binary) and skewed(units.values):
            warning = note("skewed")
        if is_bounded:
            low, high = bounded(units.values, units.sizes, binary, confidence, independent)
        else:
            low, high = corrected_t(units.values, confidence)
    noise = 1e-9 * np.abs(known).max()
    if not is_bounded and high - low <= noise:
        reason = note("clusters_equal" if np.ptp(known) > noise and not within else "all_equal")
        return result._replace(warning=reason + lost)
    if is_bounded and not binary and not within and np.ptp(units.values) <= noise:
        warning = note("cautious", what="values")
    return result._replace(low=float(least + width * low), high=float(least + width * high), warning=warning + lost)


def of_repetitions(sizes: np.ndarray) -> Notes:
    """Return the warnings about an estimate for repetitions of the same tasks."""
    repeated = int((sizes > 1).sum())
    if repeated == len(sizes):
        return Notes()
    few = note("few", fewest=FEW_CLUSTERS, what="tasks were run more than once")
    return few if repeated < FEW_CLUSTERS else note("singles")


def jackknife_interval(
    values: Values | Iterable[Iterable[SupportsFloat]],
    statistic: Callable[[np.ndarray], float],
    clusters: Iterable[Any] | None = None,
) -> Estimate:
    """Estimate a smooth statistic by leaving out one value or cluster at a time (Tukey 1958).

    The interval is Student's t of the pseudo-values, extended to include the estimate. Transform the statistic, such as
    by a logarithm, so that it is nearly linear in means.

    Parameters
    ----------
    values : array_like, shape (n,) or (n, k)
        Numbers, or rows of numbers; rows with a missing number are excluded.
    statistic : function
        Computes a number from an array like `values`.
    clusters : array_like, shape (n,), optional
        Label of each value.

    Returns
    -------
    Estimate
        estimate, low, high, n. No bounds for a single cluster, or if leaving out changes nothing.

    Examples
    --------
    >>> round(stats.jackknife_interval([1, 2, 3, 4], np.mean).estimate, 2)
    2.5
    """
    values, codes, lost = clean(values, clusters)
    n, count = len(values), int(codes.max(initial=-1)) + 1
    estimate = float(statistic(values)) if n else math.nan
    method, target = ("jackknife t", NEW_VALUES) if clusters is None else ("cluster jackknife t", "new tasks")
    result = Estimate(estimate, math.nan, math.nan, n, count, method, target, lost)
    if count < 2:
        if n == 0:
            reason = "no_values"
        elif n == 1:
            reason = "one_value"
        else:
            reason = "one_cluster"
        return result._replace(warning=note(reason) + lost)
    if math.isnan(estimate):
        return result
    without = np.array([float(statistic(values[codes != i])) for i in range(count)])
    pseudo = count * estimate - (count - 1) * without
    low, high = map(float, by_t(pseudo.mean(), variance_of_mean(pseudo), count - 1))
    noise = 1e-9 * float(np.abs(pseudo).max())
    if not (math.isfinite(low) and math.isfinite(high) and high - low > noise):
        return result._replace(warning=note("degenerate") + lost)
    low, high = min(low, estimate), max(high, estimate)
    few = note("few_for", what="jackknife", fewest=FEW_LEFT_OUT) if count < FEW_LEFT_OUT else Notes()
    return result._replace(low=low, high=high, warning=few + lost)


class Units(NamedTuple):
    """The independent units of an estimate: clusters, or families of clusters."""

    values: np.ndarray  # one per unit: their mean is the estimate, and their variance gives its standard error
    sizes: np.ndarray  # number of independent trials per unit
    means: np.ndarray
    independent: float  # number of equally large units that would carry the same information


def by_family(means: np.ndarray, sizes: np.ndarray, codes: np.ndarray) -> Units:
    """Return families of clusters as independent units, given the means, sizes and family codes of the clusters.

    The mean of their values has the cluster-robust variance of the mean over clusters. Deviations of families with many
    clusters are enlarged as in the jackknife (CR3 of Bell and McCaffrey 2002).
    """
    codes = np.unique(codes, return_inverse=True)[1]
    counts = np.bincount(codes)
    share = len(counts) / len(means)
    deviations = np.bincount(codes, weights=means - means.mean())
    if len(counts) > 1:
        enlarged = deviations * (1 - 1 / len(counts)) / (1 - counts / len(means))
        deviations = enlarged - enlarged.mean()
    trials = 1 / (share * (1 / sizes).mean())
    independent = float(counts.sum() ** 2 / (counts**2).sum())
    of_family = np.bincount(codes, weights=means) / counts
    return Units(means.mean() + share * deviations, np.full(len(counts), trials), of_family, independent)


def positive_mean_interval(
    values: Values, clusters: Iterable[Any] | None = None, *, families: Iterable[Any] | None = None
) -> Estimate:
    """Estimate the mean of values that are never negative, such as costs, on the log scale.

    The bounds are mean × exp(± half-width of t / mean), by the delta method. If a value is negative, they are the
    bounds of `mean_interval`.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers of at least 0.
    clusters : array_like, shape (n,), optional
        Label of each value.
    families : array_like, shape (n,), optional
        Family of each value's cluster.

    Returns
    -------
    Estimate
        estimate, low, high, n.

    Examples
    --------
    >>> stats.positive_mean_interval([1.0, 2.0, 3.0]).low > 0
    True
    """
    values = numbers(values)
    found = mean_interval(values, clusters, families=families)
    if (values < 0).any() or not (found.estimate > 0 and found.low < found.high):
        return found
    below, above = found.estimate - found.low, found.high - found.estimate
    low = found.estimate * math.exp(-below / found.estimate)
    high = found.estimate * math.exp(above / found.estimate)
    return found._replace(low=low, high=high, method=f"{found.method}, log scale")


def ratio_interval(
    above: Values, below: Values, clusters: Iterable[Any], families: Iterable[Any] | None = None
) -> Estimate:
    """Estimate the ratio of two means over clusters of equal weight, such as the cost per success.

    The interval is the jackknife's on the log scale, over clusters or families, with Hall's correction.

    Parameters
    ----------
    above : array_like, shape (n,)
        Numbers of the numerator.
    below : array_like, shape (n,)
        Numbers of the denominator.
    clusters : array_like, shape (n,)
        Label of each value.
    families : array_like, shape (n,), optional
        Family of each value's cluster.

    Returns
    -------
    Estimate
        estimate, low, high, n. NaN if a mean is 0; no bounds if one cluster or family has all successes.

    Examples
    --------
    >>> stats.ratio_interval([2.0, 4.0], [1, 1], ["a", "b"]).estimate
    3.0
    """
    values = np.column_stack([numbers(above), numbers(below)])
    is_known = np.isfinite(values).all(axis=1)
    codes = np.unique(coded(clusters, len(values))[0][is_known], return_inverse=True)[1]
    means = np.column_stack([by_cluster(column, codes).means for column in values[is_known].T])
    units = means
    if families is not None:
        of_families = coded(families, len(values))[0][is_known][np.unique(codes, return_index=True)[1]]
        totals = np.column_stack([np.bincount(of_families, weights=column) for column in means.T])
        units = totals[np.unique(of_families)]
    sums, count = units.sum(axis=0), len(units)
    n, method = int(is_known.sum()), "jackknife t, log scale"
    nothing = Estimate(math.nan, math.nan, math.nan, n, len(means), method, "new tasks")
    if not (sums > 0).all():
        return nothing._replace(warning=note("no_ratio" if is_known.any() else "no_values"))
    found = nothing._replace(estimate=float(sums[0] / sums[1]))
    without = sums - units
    if count < 2 or not (without > 1e-12 * sums).all():
        return found._replace(warning=note("one_cluster") if count < 2 else note("degenerate"))
    estimate = math.log(found.estimate)
    pseudo = count * estimate - (count - 1) * np.log(without[:, 0] / without[:, 1])
    low, high = (math.exp(end) for end in corrected_t(pseudo))
    doubt = Notes()
    if not low < high:
        return found._replace(warning=note("degenerate"))
    if count < FEW_LEFT_OUT:
        doubt = note("few_for", what="jackknife", fewest=FEW_LEFT_OUT)
    elif skewed(pseudo):
        doubt = note("skewed")
    return found._replace(low=low, high=high, warning=doubt)


_COLUMNS = "n n_tasks estimate low high method target warning"


def estimate_by(
    frame: pd.DataFrame,
    by: str | Sequence[str],
    value: str,
    clusters: str | None = None,
    kind: Kind = "proportion",
    *,
    target: Target = "new tasks",
    families: str | None = None,
    seeds: str | None = None,
) -> pd.DataFrame:
    """Estimate a proportion or a mean for each group of rows.

    Parameters
    ----------
    frame : DataFrame
        One row per value.
    by : str or sequence of str
        Columns of the groups; rows with a missing key form a group. An empty list gives one row for all values.
    value : str
        Column of 0/1 values or numbers.
    clusters : str, optional
        Column of the cluster, such as the task.
    kind : {"proportion", "score", "mean"}
        `rate_interval`, `mean_interval` of values from 0 to 1, or of any values.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    families : str, optional
        Column with the family of a cluster, if clusters are variants of a few.
    seeds : str, optional
        Column of a second grouping that crosses clusters, such as the trained checkpoint. Intervals include the
        variation between its groups (two-way clustering, Cameron, Gelbach and Miller 2011).

    Returns
    -------
    DataFrame
        `by`, n (values), n_tasks (clusters), estimate, low, high, method, target, warning; sorted by the keys.

    Raises
    ------
    ValueError
        For a missing column or an unknown kind.

    Examples
    --------
    >>> stats.estimate_by(frame, "model", "success")["estimate"].round(2).tolist()
    [0.67, 0.33]
    """
    by = [by] if isinstance(by, str) else list(by)
    check_choice("kind", kind, get_args(Kind))
    check_columns(frame, *by, value, clusters, families, seeds)
    check_groups(by, _COLUMNS.split())
    if by:
        groups = frame.groupby(by, sort=True, dropna=False, observed=True)
        keys, number = groups.size().reset_index()[by], groups.ngroup().to_numpy()
    else:
        keys, number = pd.DataFrame(), np.zeros(len(frame), dtype=int)
    values, labels = numbers(frame[value]), None if clusters is None else pd.factorize(frame[clusters])[0]
    family_codes = None if families is None else pd.factorize(frame[families])[0]
    order = np.argsort(number, kind="stable")
    ends = np.flatnonzero(np.diff(number[order], append=-1)) + 1
    seen: dict[tuple, Estimate] = {}  # thousands of groups with a run or two have the same values: estimate them once
    estimates = []
    for start, end in pairwise([0, *ends.tolist()]):
        members = order[start:end]
        known = members[np.isfinite(values[members])]
        codes = np.arange(len(known)) if labels is None else np.unique(labels[known], return_inverse=True)[1]
        kin = None if family_codes is None else family_codes[known]
        key = end - start, values[known].tobytes(), codes.tobytes(), None if kin is None else kin.tobytes()
        if key not in seen:
            lost = left_out(end - start - len(known), "value")
            seen[key] = _interval(kind, values[known], codes, lost, labels is not None, kin, target)
        estimates.append(seen[key])
    if seeds is not None and labels is not None and target == "new tasks" and frame[seeds].notna().any():
        known = pd.DataFrame({"row": labels, "model": number, "value": values, "seed": frame[seeds].to_numpy()})
        spreads = seed_spreads(known[np.isfinite(values)], len(estimates))
        estimates = [_with_seeds(*pair, kind != "mean") for pair in zip(estimates, spreads, strict=True)]
    table = pd.DataFrame(estimates, columns=list(Estimate._fields))
    return pd.concat([keys, typed(table, _COLUMNS)], axis=1)


def _with_seeds(found: Estimate, spread: SeedSpread, is_bounded: bool) -> Estimate:
    """Widen an interval by the variation between seeds, at least to the interval of t over the means of seeds."""
    if not (spread.total > 0 and found.low < found.high):
        return found
    t = quantile(freedom=spread.freedom)
    between, least = t * math.sqrt(spread.variance), t * math.sqrt(spread.total)
    low = found.estimate - max(math.hypot(found.estimate - found.low, between), least)
    high = found.estimate + max(math.hypot(found.high - found.estimate, between), least)
    if is_bounded:
        low, high = max(low, 0.0), min(high, 1.0)
    return found._replace(low=low, high=high, warning=found.warning + note("few_seeds", seeds=[spread.freedom + 1]))


def quantile(confidence: float = CONFIDENCE, freedom: float = np.inf) -> float:
    """Return the two-sided quantile of Student's t; with infinite freedom, of the normal distribution."""
    side = (1 + confidence) / 2
    return float(special.ndtri(side) if np.isinf(freedom) else special.stdtrit(freedom, side))


def wilson(rate: Numbers, n: Numbers, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval (Wilson 1927); n may be an effective n, and both arguments may be arrays."""
    square = quantile(confidence) ** 2 / np.asarray(n, dtype=float)
    centre = (rate + square / 2) / (1 + square)
    half = np.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)  # rounding may exceed 0 or 1
    return np.where(rate == 0, 0.0, low), np.where(rate == 1, 1.0, high)


def clopper_pearson(rate: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson (1934), which is never too narrow; n may be an effective n."""
    tail = (1 - confidence) / 2
    low = special.betaincinv(n * rate, n - n * rate + 1, tail) if rate > 0 else 0.0
    high = special.betaincinv(n * rate + 1, n - n * rate, 1 - tail) if rate < 1 else 1.0
    return float(low), float(high)


def by_t(
    mean: Numbers, variance: Numbers, freedom: float, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a mean with this variance by Student's t."""
    half = quantile(confidence, freedom) * np.sqrt(variance)
    return mean - half, mean + half


def variance_of_mean(means: np.ndarray) -> np.ndarray:
    """Return the variance of the mean of C >= 2 independent values, such as the means of clusters of any sizes.

    It stays unbiased if the values have different variances, as the means of clusters of different sizes do.
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
    """Return the interval of a mean by t; from 5 values on, with the correction of Hall (1992) for skewness."""
    count = means.shape[-1]
    mean, variance = means.mean(-1), variance_of_mean(means)
    if count < HALL_FROM:
        return by_t(mean, variance, count - 1, confidence)
    error, slant = np.sqrt(variance), skewness(means) / np.sqrt(count)
    t = quantile(confidence, count - 1)
    below, above = -hall(-t, slant), hall(t, slant)
    return mean - np.clip(above, 0, HALL_MOST * t) * error, mean + np.clip(below, 0, HALL_MOST * t) * error


def effective_wilson(
    rate: np.ndarray, variance: np.ndarray, fewest: Numbers, when_equal: Numbers, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval on the effective n = rate (1 − rate) / variance, which is at least `fewest`.

    If all values are 0, all are 1, or the variance is 0, the effective n is `when_equal`.
    """
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.maximum(spread / variance, fewest)
    equal = (spread < 1e-12) | (variance < 1e-15)
    return wilson(rate, np.where(equal, when_equal, effective), confidence)


def bounded(
    means: np.ndarray, sizes: np.ndarray, binary: bool, confidence: float = CONFIDENCE, units: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the mean of values from 0 to 1 in C >= 2 clusters.

    It is Wilson's on the effective n, which is at least C. For 0/1 values, two thirds of the binomial variance count as
    known. The rest is multiplied by (t / z)² (Korn and Graubard 1998), and widened if means are skewed
    (docs/coverage.md). `units` is the number of equally weighted clusters with the same information, by default C.
    """
    rate, variance = means.mean(-1), variance_of_mean(means)
    count = len(sizes)
    independent = rate * (1 - rate) * (1 / sizes).sum() / count**2 if binary else 0.0
    known = KNOWN_SHARE * independent
    estimated = np.maximum(variance - known, 0)
    between = np.maximum(variance - independent, 0)
    widening = (SKEW_OF_RATES if binary else SKEW_OF_SCORES) * skewness(means) ** 2 / count
    units = count if units is None else units
    factor = (quantile(confidence, max(units - 1, 1)) / quantile(confidence)) ** 2
    variance = known + (estimated + widening * between) * factor
    return effective_wilson(rate, variance, units, units, confidence)


def within_tasks(variances: np.ndarray, sizes: np.ndarray, pseudo: float) -> tuple[np.ndarray, float]:
    """Return the variance of the mean of task means over repetitions of the same tasks, and its degrees of freedom.

    The degrees of freedom are Satterthwaite's (1946) for equal variances of all tasks. Tasks with a single run get the
    mean variance of the others. `pseudo` is the squared deviation of one pseudo-observation; 0 adds none.
    """
    repeated = sizes > 1
    weights = 1 / sizes[repeated]
    freedom = float(weights.sum() ** 2 / (weights**2 / (sizes[repeated] - 1)).sum())
    if not repeated.all():
        freedom = min(freedom, float(repeated.sum()) - 1)
    added = freedom * variances_within(variances, sizes) + pseudo * (1 / sizes).sum()
    return added / (freedom + (pseudo > 0)) / len(sizes) ** 2, freedom


def variances_within(variances: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the sum over tasks of the variance of each task's mean over its repetitions."""
    repeated = sizes > 1
    typical = variances[..., repeated].mean(-1, keepdims=True)
    return (np.where(repeated, variances, typical) / sizes).sum(-1)


def most_unseen(sizes: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """Return the largest possible sum of failure rates over tasks if no run of any task failed.

    With larger rates, fewer than 5 % (1 − confidence) of samples would have no failure. For r runs of each of many
    tasks it is about 3 / r, as in the rule of three.
    """
    ordered = np.sort(sizes).astype(float)
    totals = ordered.cumsum()
    scale = np.exp((math.log(1 - confidence) - (ordered * np.log(ordered)).cumsum()) / totals)
    sums = np.arange(1, len(ordered) + 1) - scale * totals
    return float(sums[scale * ordered <= 1].max())


def bounded_within(
    means: np.ndarray, variances: np.ndarray, sizes: np.ndarray, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the mean of task means of values from 0 to 1 for repetitions of these tasks.

    It is Wilson's on the effective n, from the variance within tasks and `most_unseen`. If a task's mean is 1, the
    lower bound is at most that of the normal distribution; if one is 0, the upper bound is at least that.
    """
    count, z = len(sizes), quantile(confidence)
    rate = means.mean(-1)
    unseen = most_unseen(sizes, confidence)
    variance = (variances_within(variances, sizes) + (unseen / z) ** 2) / count**2
    when_equal = min(count**2 / (1 / sizes).sum(), z**2 * (count / unseen - 1))
    low, high = effective_wilson(rate, variance, count, when_equal, confidence)
    half = z * np.sqrt(variance)
    is_mixed = (rate > 0) & (rate < 1)
    low = np.where(is_mixed & (means == 1).any(-1), np.clip(rate - half, 0, low), low)
    high = np.where(is_mixed & (means == 0).any(-1), np.clip(rate + half, high, 1), high)
    return low, high


def unmixed(means: np.ndarray) -> np.ndarray:
    """Return whether only 1 or 2 clusters (last axis) have a success, or a failure: too few for a rate."""
    holding = np.minimum((means > 0).sum(-1), (means < 1).sum(-1))
    return (holding > 0) & (holding <= RARE_CLUSTERS)


def skewed(means: np.ndarray) -> np.ndarray:
    """Return whether values (last axis) are too few for how skewed they are (Cochran 1977, section 2.15)."""
    return skewness(means) ** 2 * COCHRAN > means.shape[-1]


class Clusters(NamedTuple):
    """The statistics of each cluster: its size, mean, and variance (NaN for a single value)."""

    sizes: np.ndarray
    means: np.ndarray
    variances: np.ndarray


def numbers(values: Iterable[Any]) -> np.ndarray:
    """Return values as floats, two-dimensional for rows of numbers; missing values and values beyond ±1e60 are NaN."""
    given: Any = values  # pandas and NumPy accept more than their type stubs name
    if np.ndim(given) == 2:
        given = pd.DataFrame(given)
    elif not isinstance(given, pd.Series):
        given = pd.Series(given if np.ndim(given) else list(given))
    floats = given.to_numpy(dtype="float64", na_value=np.nan)
    return np.where(np.abs(floats) <= LARGEST, floats, np.nan)


def coded(labels: Iterable[Any], n: int | None = None) -> tuple[np.ndarray, list]:
    """Encode labels as 0, 1, ... in the order of their texts; also return these labels. Missing ones share a code."""
    series = labels if isinstance(labels, pd.Series) else pd.Series(list(labels), dtype="object")
    if n is not None and len(series) != n:
        raise ValueError(f"{n} values, but {len(series)} cluster labels")
    codes, labels_seen = pd.factorize(series, use_na_sentinel=False)
    order = np.argsort(np.array(list(map(str, labels_seen)), dtype="object"), kind="stable")
    return np.argsort(order)[codes], list(labels_seen.take(order))


def clean(values: Iterable[Any], clusters: Iterable[Any] | None) -> tuple[np.ndarray, np.ndarray, Notes]:
    """Return the finite values (or rows), the codes of their clusters, and a note on the values left out.

    Without clusters, each value gets a code of its own.
    """
    values = numbers(values)
    finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    codes = np.arange(len(values)) if clusters is None else coded(clusters, len(values))[0]
    codes = np.unique(codes[finite], return_inverse=True)[1]
    return values[finite], codes, left_out(len(values) - int(finite.sum()), "value")


def by_cluster(values: np.ndarray, codes: np.ndarray) -> Clusters:
    """Return the size, mean and variance of the values in each of the clusters 0, 1, ..."""
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=values) / sizes
    squares = np.bincount(codes, weights=(values - means[codes]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Clusters(sizes, means, np.where(sizes > 1, squares / (sizes - 1), np.nan))


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError for a value that is not one of the choices."""
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}: {' or '.join(map(repr, choices))}")


def check_groups(by: Sequence[str], columns: Sequence[str]) -> None:
    """Raise ValueError if a result with these columns would have a group column's name twice."""
    doubled = [repr(name) for name in dict.fromkeys(by) if name in columns or by.count(name) > 1]
    if doubled:
        raise ValueError(f"can't group by {', '.join(doubled)}: the result would have two columns of that name")


def typed(table: pd.DataFrame, columns: str = "") -> pd.DataFrame:
    """Select columns, by default all, and convert each to the type of its name; columns without one become floats."""
    selected = dict[str, pd.Series]()
    for name in columns.split() or map(str, table):
        dtype = _TYPE_OF.get(name, "float64")
        column = table[name]  # converting all columns at once takes pandas three times as long
        selected[name] = column if column.dtype == dtype else column.astype(dtype)
    return pd.DataFrame(selected, table.index)
