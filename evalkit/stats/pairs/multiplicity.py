"""Correct p values for the number of tests in a family."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import special

from evalkit.stats._inputs import numbers

N_DRAWS = 10_000
CHUNK = 250  # draws at a time, which keeps 5,000 tests within 10 MB


def holm(p_values: Iterable[Any]) -> np.ndarray:
    """Adjust p values for their number (Holm 1979), by statsmodels; NaN stays NaN and is not counted.

    Parameters
    ----------
    p_values : array-like of float

    Returns
    -------
    numpy.ndarray
        In the order given, each at least as large as before and at most 1.
    """
    p_values = numbers(p_values)
    known = np.flatnonzero(~np.isnan(p_values))
    if ((p_values[known] < 0) | (p_values[known] > 1)).any():
        raise ValueError("p values are between 0 and 1")
    adjusted = np.full(len(p_values), math.nan)
    if len(known):
        from statsmodels.stats.multitest import multipletests

        adjusted[known] = multipletests(p_values[known], method="holm")[1]
    return adjusted


def max_t(
    differences: np.ndarray,
    rng: np.random.Generator | None = None,
    n_draws: int = N_DRAWS,
    *,
    p_values: Iterable[Any] | None = None,
) -> np.ndarray:
    """Adjust the tests of many mean differences for their number, by the distribution of their largest statistic.

    Step-down max-T (Westfall and Young 1993, algorithm 2.8; Romano and Wolf 2005): what is drawn for a task goes to all
    differences on it, so that tests that share data count for less than as many independent ones. Without p values the
    tests are sign flips, as for 0/1 outcomes: the signs of a task are flipped, and |sum| / root of the sum of squares
    is the statistic; all flips are enumerated where there are no more than `n_draws`. The p values of studentised tests
    are taken to quantiles of the normal distribution, and these compared with normal values that correlate as the
    differences do.

    Parameters
    ----------
    differences : array of float, shape (tasks, tests)
        0 (without p values) or NaN where a test does not use a task.
    rng : numpy.random.Generator, optional
        By default one with seed 0.
    n_draws : int
    p_values : array-like of float, optional
        One per test, two-sided; NaN where there is no test.

    Returns
    -------
    numpy.ndarray
        One adjusted p value per test; 1 without a test, or where no task differs.
    """
    rng = np.random.default_rng(0 if rng is None else rng)
    used = ~np.isnan(differences)
    values = np.where(used, differences, 0.0)
    if p_values is not None:
        values = np.where(used, values - values.sum(axis=0) / np.maximum(used.sum(axis=0), 1), 0.0)
    values = values[(values != 0).any(axis=1)]
    norms = np.sqrt((values**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.abs(values.sum(axis=0)) / norms if p_values is None else -special.ndtri(numbers(p_values) / 2)
    tested = np.flatnonzero(~np.isnan(seen))
    order = tested[np.argsort(seen[tested], kind="stable")]
    scaled = (values[:, order] / np.where(norms > 0, norms, 1)[order]).astype(np.float32)
    exact = p_values is None and 2.0 ** (len(values) - 1) <= n_draws
    exceeding, draws = np.zeros(len(order)), 0
    for weights in _weights(len(values), p_values is None, rng, n_draws):
        maxima = np.maximum.accumulate(np.abs(weights @ scaled), axis=1)
        exceeding += (maxima >= (seen[order] - 1e-4)[None, :]).sum(axis=0)
        draws += len(weights)
    adjusted = np.ones(len(seen))
    if len(order):
        shares = exceeding / draws if exact else (exceeding + 1) / (draws + 1)
        adjusted[order] = np.maximum.accumulate(shares[::-1])[::-1]
    return adjusted


def _weights(count: int, signs: bool, rng: np.random.Generator, n_draws: int) -> Iterator[np.ndarray]:
    """Yield rows of normal values, or of signs: all but mirror images, where they are no more than asked for."""
    if signs and 2.0 ** (count - 1) <= n_draws:
        bits = np.arange(int(2.0 ** (count - 1)))[:, None] >> np.arange(count) & 1
        every = (1 - 2 * bits).astype(np.float32)
        yield from (every[i : i + CHUNK] for i in range(0, len(every), CHUNK))
        return
    for start in range(0, n_draws, CHUNK):
        size = (min(CHUNK, n_draws - start), count)
        yield (
            2 * rng.integers(0, 2, size, dtype=np.int8).astype(np.float32) - 1
            if signs
            else rng.standard_normal(size, dtype=np.float32)
        )
