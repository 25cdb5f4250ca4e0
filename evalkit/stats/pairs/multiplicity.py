"""Correct p values for the number of tests in a family."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from evalkit.stats._inputs import numbers

N_FLIPS = 10_000
CHUNK = 250  # flips at a time, which keeps 5,000 tests within 10 MB


def holm(p_values: Iterable[Any]) -> np.ndarray:
    """Adjust p values for their number (Holm 1979); NaN stays NaN and is not counted.

    Parameters
    ----------
    p_values : array-like of float

    Returns
    -------
    numpy.ndarray
        In the order given, each at least as large as before and at most 1.

    Raises
    ------
    ValueError
        For values that are not probabilities.
    """
    p_values = numbers(p_values)
    known = np.flatnonzero(~np.isnan(p_values))
    if ((p_values[known] < 0) | (p_values[known] > 1)).any():
        raise ValueError("p values are between 0 and 1")
    order = known[np.argsort(p_values[known], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(len(p_values), math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def max_t(differences: np.ndarray, rng: np.random.Generator | None = None, n_flips: int = N_FLIPS) -> np.ndarray:
    """Adjust the sign-flip tests of many mean differences for their number, by the distribution of their maximum.

    Step-down max-T (Westfall and Young 1993, algorithm 2.8; Romano and Wolf 2005): the signs of all differences on a
    task are flipped together, so that tests that share data count for less than as many independent ones. Each test
    alone is `sign_flip_test`, and |sum| / root of the sum of squares its statistic. All flips are enumerated where
    there are no more than `n_flips` of them.

    Parameters
    ----------
    differences : array of float, shape (tasks, tests)
        0 or NaN where a test does not use a task.
    rng : numpy.random.Generator, optional
        By default one with seed 0.
    n_flips : int
        Random flips.

    Returns
    -------
    numpy.ndarray
        One adjusted p value per test; 1 where no task differs.
    """
    differences = np.nan_to_num(np.asarray(differences, dtype=float))
    differences = differences[(differences != 0).any(axis=1)]
    norms = np.sqrt((differences**2).sum(axis=0))
    tested = np.flatnonzero(norms > 0)
    adjusted = np.ones(differences.shape[1])
    if not len(tested):
        return adjusted
    scaled = differences[:, tested] / norms[tested]
    seen = np.abs(scaled.sum(axis=0))
    order = np.argsort(seen, kind="stable")
    scaled, seen = scaled[:, order].astype(np.float32), seen[order]
    exceeding, flips = np.zeros(len(order)), 0
    for signs in _flips(len(scaled), rng, n_flips):
        maxima = np.maximum.accumulate(np.abs(signs @ scaled), axis=1)
        exceeding += (maxima >= (seen - 1e-4)[None, :]).sum(axis=0)
        flips += len(signs)
    exact = 2 ** (len(scaled) - 1) <= n_flips
    p_values = exceeding / flips if exact else (exceeding + 1) / (flips + 1)
    adjusted[tested[order]] = np.maximum.accumulate(p_values[::-1])[::-1]
    return adjusted


def _flips(count: int, rng: np.random.Generator | None, n_flips: int) -> Iterator[np.ndarray]:
    """Yield rows of signs: all of them, except mirror images, where there are no more than asked for."""
    if 2 ** (count - 1) <= n_flips:
        bits = np.arange(2 ** (count - 1))[:, None] >> np.arange(count) & 1
        every = (1 - 2 * bits).astype(np.float32)
        yield from (every[i : i + CHUNK] for i in range(0, len(every), CHUNK))
        return
    rng = np.random.default_rng(0) if rng is None else rng
    for start in range(0, n_flips, CHUNK):
        size = (min(CHUNK, n_flips - start), count)
        yield (2 * rng.integers(0, 2, size, dtype=np.int8) - 1).astype(np.float32)
