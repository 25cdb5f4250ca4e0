"""What several attempts at one task achieve."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special

from evalkit.stats._inputs import numbers


def pass_at_k(n: Iterable[Any] | int, c: Iterable[Any] | int, k: int) -> np.ndarray | float:
    """Estimate the probability that at least one of k attempts succeeds, without bias (Chen et al. 2021, equation 1).

    1 − C(n − c, k) / C(n, k): the share of the subsets of k attempts that hold a success. For the mean over tasks with
    its interval, give the result to `mean_interval`.

    Parameters
    ----------
    n : int or array-like of int
        Attempts at each task.
    c : int or array-like of int
        Successful ones, 0 <= c <= n.
    k : int
        At least 1.

    Returns
    -------
    float or numpy.ndarray
        One value per task; NaN where a task has fewer than k attempts. A float for whole numbers.

    Raises
    ------
    ValueError
        For k < 1, or counts that can't be.
    """
    scalar = np.ndim(n) == 0 and np.ndim(c) == 0
    attempts, passed = np.broadcast_arrays(numbers(np.atleast_1d(n)), numbers(np.atleast_1d(c)))
    if k < 1 or int(k) != k:
        raise ValueError(f"k is a whole number from 1, not {k}")
    if ((passed < 0) | (passed > attempts) | (attempts % 1 > 0) | (passed % 1 > 0)).any():
        raise ValueError("attempts n and successes c are whole numbers with 0 <= c <= n")
    # 1 − product of (1 − k / i) for i = n − c + 1 ... n, in logarithms of gamma functions
    failures = attempts - passed
    with np.errstate(invalid="ignore"):
        none = np.exp(_log_choose(failures, k) - _log_choose(attempts, k))
    result = np.where(attempts < k, np.nan, np.where(failures < k, 1.0, 1 - none))
    result = np.where(np.isnan(attempts) | np.isnan(passed), np.nan, result)
    return float(result[0]) if scalar else result


def _log_choose(n: np.ndarray, k: int) -> np.ndarray:
    n = np.maximum(n, k)
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
