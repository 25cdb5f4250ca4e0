"""Intervals for any statistic, of values or of clusters of values: the bootstrap and the jackknife."""

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from evalkit._words import Notes, note
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, clean
from evalkit.stats.intervals import NEW_VALUES, Estimate, too_few

BOOTSTRAP_FEW, JACKKNIFE_FEW = 20, 50


def bootstrap_interval(
    values: Iterable[Any],
    statistic: Callable[[np.ndarray], float],
    clusters: Iterable[Any] | None = None,
    rng: np.random.Generator | None = None,
    *,
    n_resamples: int = 2_000,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate any statistic with a bias-corrected and accelerated bootstrap (BCa, Efron 1987).

    It resamples the values, or with `clusters` whole clusters, and is computed by `scipy.stats.bootstrap`.

    Parameters
    ----------
    values : array-like, shape (n,) or (n, k)
        One number or one row of k numbers for each observation; observations with a missing number are left out.
    statistic : callable
        Takes an array like `values` (with as many rows as a resample has) and returns a number. It is called
        `n_resamples` + n times: its cost is that of this function.
    clusters : array-like, optional
        One label per observation; those without a label are taken as one cluster.
    rng : numpy.random.Generator, optional
        By default one with seed 0, so that a report shows the same figures when it is made again.
    n_resamples : int
        2,000 suffice for an interval to two digits.
    confidence : float

    Returns
    -------
    Estimate
        Without bounds for a single observation or cluster, and where the resamples don't differ.
    """

    def bca(compute: Callable[[np.ndarray], float], count: int, _: float) -> tuple[float, float]:
        from scipy import stats

        options: dict[str, Any] = {"n_resamples": n_resamples, "confidence_level": confidence, "vectorized": False}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            chosen = np.random.default_rng(0 if rng is None else rng)
            return stats.bootstrap((np.arange(count),), compute, rng=chosen, **options).confidence_interval

    return _resampled(values, statistic, clusters, confidence, "bootstrap", "BCa", BOOTSTRAP_FEW, bca)


def jackknife_interval(
    values: Iterable[Any],
    statistic: Callable[[np.ndarray], float],
    clusters: Iterable[Any] | None = None,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate a smooth statistic by leaving out one value, or one cluster, at a time (Tukey 1958).

    The interval is Student's t of the pseudo-values, with C − 1 degrees of freedom: around the statistic corrected for
    its bias, so that it need not be centred on the estimate. If there is a scale, such as a logarithm, on which the
    statistic is about linear in means, pass it on that scale and transform the result.

    Parameters
    ----------
    values, statistic, clusters, confidence
        As for `bootstrap_interval`; the statistic is called C + 1 times.

    Returns
    -------
    Estimate
        Without bounds for a single observation or cluster, and where leaving out changes nothing.
    """

    def pseudo_values(compute: Callable[[np.ndarray], float], count: int, estimate: float) -> tuple[Any, Any]:
        everyone = np.arange(count)
        without = np.array([compute(np.delete(everyone, i)) for i in everyone])
        pseudo = count * estimate - (count - 1) * without
        return formulas.by_t(pseudo.mean(), formulas.variance_of_mean(pseudo), count - 1, confidence)

    return _resampled(values, statistic, clusters, confidence, "jackknife", "t", JACKKNIFE_FEW, pseudo_values)


def _resampled(
    values: Any,
    statistic: Callable[[np.ndarray], float],
    clusters: Any,
    confidence: float,
    what: str,
    bounded_by: str,
    fewest: int,
    bounds: Callable[[Callable[[np.ndarray], float], int, float], tuple[float, float]],
) -> Estimate:
    """Estimate a statistic; `bounds` takes it as a function of the clusters chosen, their number, and the estimate."""
    check_confidence(confidence)
    values, codes, lost = clean(values, clusters)
    n, count = len(values), int(codes.max(initial=-1)) + 1
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    estimate = float(statistic(values)) if n else math.nan
    method = f"{what} {bounded_by}"
    named, target = (method, NEW_VALUES) if clusters is None else (f"cluster {method}", "new tasks")
    described = Estimate(estimate, math.nan, math.nan, n, count, named, target, too_few(n, count) + lost)
    if math.isnan(estimate) or count < 2:
        return described

    def compute(chosen: np.ndarray) -> float:
        return float(statistic(values[chosen if n == count else np.concatenate([members[i] for i in chosen])]))

    low, high = map(float, bounds(compute, count, estimate))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return described._replace(warning=note("degenerate") + lost)
    few = note("few_for", what=what, fewest=fewest) if count < fewest else Notes()
    return described._replace(low=low, high=high, warning=few + lost)
