"""Bootstrap intervals for any statistic, of values or of clusters of values."""

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from evalkit.stats._inputs import check_confidence, join, labels, left_out, numbers
from evalkit.stats.intervals import NO_VALUES, ONE_CLUSTER, ONE_VALUE, Estimate

FEW = 20
FEW_SAID = f"bootstrap of fewer than {FEW} independent values: may be too narrow"
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

    Resampled are the values, or with `clusters` whole clusters; computed by `scipy.stats.bootstrap`.

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
        For an impossible confidence, or where there are not as many labels as observations.
    """
    check_confidence(confidence)
    values = numbers(values)
    kept = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    codes = np.arange(len(values)) if clusters is None else labels(clusters, len(values))
    values, (_, codes) = values[kept], np.unique(codes[kept], return_inverse=True)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    lost = left_out(int((~kept).sum()), "value")
    method = "bootstrap BCa" if clusters is None else "cluster bootstrap BCa"
    n = len(values)
    estimate = float(statistic(values)) if n else math.nan
    count = len(members) if n else 0
    if count < 2:
        reason = NO_VALUES if n == 0 else ONE_VALUE if n == 1 else ONE_CLUSTER
        return Estimate(estimate, math.nan, math.nan, n, count, method, join(reason, lost))

    def of_resample(chosen: np.ndarray) -> float:
        rows = chosen if count == n else np.concatenate([members[i] for i in chosen])
        return float(statistic(values[rows]))

    low, high = _bca(of_resample, count, n_resamples, confidence, rng or np.random.default_rng(0))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return Estimate(estimate, math.nan, math.nan, n, count, method, join(DEGENERATE, lost))
    return Estimate(estimate, low, high, n, count, method, join(FEW_SAID if count < FEW else "", lost))


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
