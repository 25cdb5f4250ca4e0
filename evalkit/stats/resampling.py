"""Intervals for any statistic, of values or of clusters of values: the bootstrap and the jackknife."""

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, join, labels, left_out, numbers
from evalkit.stats.intervals import NEW_VALUES, NO_VALUES, ONE_CLUSTER, ONE_VALUE, Estimate

BOOTSTRAP_FEW, JACKKNIFE_FEW = 20, 50
FEW_WARNING = "{} of fewer than {} independent values: may be too narrow"
DEGENERATE = "the statistic is the same, or can't be computed, in resamples: no interval"


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
        Between 0 and 1, both excluded.

    Returns
    -------
    Estimate
        Without bounds for a single observation or cluster, and where the resamples don't differ.

    Raises
    ------
    ValueError
        For an impossible confidence, or a number of labels that differs from that of observations.
    """
    sample = _Sample.of(values, clusters, confidence)
    estimate = sample.describe(statistic, "bootstrap BCa")
    if math.isnan(estimate.estimate) or len(sample.members) < 2:
        return estimate
    rng = np.random.default_rng(0) if rng is None else rng
    low, high = _bca(sample.of_resample(statistic), len(sample.members), n_resamples, confidence, rng)
    return _finished(estimate, low, high, FEW_WARNING.format("bootstrap", BOOTSTRAP_FEW), BOOTSTRAP_FEW)


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

    Raises
    ------
    ValueError
        For an impossible confidence, or a number of labels that differs from that of observations.
    """
    sample = _Sample.of(values, clusters, confidence)
    estimate, count = sample.describe(statistic, "jackknife t"), len(sample.members)
    if math.isnan(estimate.estimate) or count < 2:
        return estimate
    compute = sample.of_resample(statistic)
    everyone = np.arange(count)
    without = np.array([compute(np.delete(everyone, i)) for i in everyone])
    pseudo = count * estimate.estimate - (count - 1) * without
    half = formulas.student(confidence, count - 1) * math.sqrt(formulas.variance_of_mean(pseudo))
    low, high = pseudo.mean() - half, pseudo.mean() + half
    return _finished(estimate, low, high, FEW_WARNING.format("jackknife", JACKKNIFE_FEW), JACKKNIFE_FEW)


class _Sample(NamedTuple):
    values: np.ndarray
    members: list[np.ndarray]
    clustered: bool
    lost: str

    @classmethod
    def of(cls, values: Iterable[Any], clusters: Iterable[Any] | None, confidence: float) -> "_Sample":
        check_confidence(confidence)
        values = numbers(values)
        finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        codes = np.arange(len(values)) if clusters is None else labels(clusters, len(values))
        codes = np.unique(codes[finite], return_inverse=True)[1]
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        lost = left_out(int((~finite).sum()), "value")
        return cls(values[finite], members if finite.any() else [], clusters is not None, lost)

    def describe(self, statistic: Callable[[np.ndarray], float], method: str) -> Estimate:
        """Return the estimate without bounds, and the reason why it has none yet."""
        n, count = len(self.values), len(self.members)
        estimate = float(statistic(self.values)) if n else math.nan
        reason = NO_VALUES if n == 0 else ONE_VALUE if n == 1 else ONE_CLUSTER if count == 1 else ""
        method = f"cluster {method}" if self.clustered else method
        target = "new tasks" if self.clustered else NEW_VALUES
        return Estimate(estimate, math.nan, math.nan, n, count, method, target, join(reason, self.lost))

    def of_resample(self, statistic: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float]:
        """Return the statistic as a function of the numbers of the clusters chosen."""

        def compute(chosen: np.ndarray) -> float:
            single = len(self.members) == len(self.values)
            rows = chosen if single else np.concatenate([self.members[i] for i in chosen])
            return float(statistic(self.values[rows]))

        return compute


def _finished(estimate: Estimate, low: float, high: float, doubt: str, fewest: int) -> Estimate:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return estimate._replace(warning=join(DEGENERATE, estimate.warning))
    warning = join(doubt if estimate.n_clusters < fewest else "", estimate.warning)
    return estimate._replace(low=float(low), high=float(high), warning=warning)


def _bca(
    statistic: Callable[[np.ndarray], float], count: int, n_resamples: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float]:
    from scipy import stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        result = stats.bootstrap(
            (np.arange(count),),
            statistic,
            n_resamples=n_resamples,
            vectorized=False,
            confidence_level=confidence,
            rng=rng,
        )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
