"""Estimate pass@k and pass^k of single tasks from several attempts."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special

from evalkit.stats._inputs import numbers


def pass_at_k(n: Iterable[Any] | int, c: Iterable[Any] | int, k: int) -> np.ndarray | float:
    """Estimate the probability that at least one of k attempts succeeds, without bias (Chen et al. 2021, equation 1).

    1 − C(n − c, k) / C(n, k): the share of the subsets of k attempts that hold a success. For the mean over tasks with
    its interval, pass the result to `mean_interval`.

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
        For k < 1, or impossible counts.
    """
    return _of_attempts(n, c, k, lambda attempts, passed: 1 - _share_of_subsets(attempts - passed, attempts, k))


def pass_hat_k(n: Iterable[Any] | int, c: Iterable[Any] | int, k: int) -> np.ndarray | float:
    """Estimate the probability that all of k attempts succeed, pass^k, without bias (Yao et al. 2024).

    C(c, k) / C(n, k): the share of the subsets of k attempts that hold successes only. Parameters, result and errors
    are those of `pass_at_k`.
    """
    return _of_attempts(n, c, k, lambda attempts, passed: _share_of_subsets(passed, attempts, k))


def _of_attempts(n: Any, c: Any, k: int, formula: Any) -> np.ndarray | float:
    scalar = np.ndim(n) == 0 and np.ndim(c) == 0
    attempts, passed = np.broadcast_arrays(numbers(np.atleast_1d(n)), numbers(np.atleast_1d(c)))
    if k < 1 or int(k) != k:
        raise ValueError(f"k is a whole number from 1, not {k}")
    if ((passed < 0) | (passed > attempts) | (attempts % 1 > 0) | (passed % 1 > 0)).any():
        raise ValueError("attempts n and successes c are whole numbers with 0 <= c <= n")
    known = np.isfinite(attempts) & np.isfinite(passed) & (attempts >= k)
    result = np.full(attempts.shape, np.nan)
    result[known] = formula(attempts[known], passed[known])
    return float(result[0]) if scalar else result


def _share_of_subsets(members: np.ndarray, attempts: np.ndarray, k: int) -> np.ndarray:
    """Return C(members, k) / C(attempts, k), in logarithms of gamma functions."""
    share = np.exp(_log_choose(members, k) - _log_choose(attempts, k))
    return np.where(members < k, 0.0, share)


def _log_choose(n: np.ndarray, k: int) -> np.ndarray:
    n = np.maximum(n, k)
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
