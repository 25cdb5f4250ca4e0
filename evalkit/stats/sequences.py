"""Confidence sequences: estimates that miss at any look in at most 5 % of experiments, however often one looks."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from evalkit.stats._inputs import check_bounds, check_confidence, labels, numbers

GRID = 1_000  # candidates for the mean
MOST_STAKED = 0.5  # of the capital, on one value


def mean_sequence(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Follow the mean of bounded values with a confidence sequence, valid at all looks together.

    The hedged capital process of Waudby-Smith and Ramdas (2024): for each candidate for the mean, one gambler bets that
    values lie above it and another that they lie below; a candidate is dropped for good once the mean of both capitals,
    which hardly ever grows in a fair game, reaches 1 / (1 − confidence).

    Parameters
    ----------
    values : array-like of float
        In the order they came in, which must not depend on them: if quick runs tend to fail, those that end first are
        not a fair sample. Missing values are left out.
    clusters : array-like, optional
        One label per value, such as the task; only the first value of each is used, since further ones are no new
        evidence of the mean over tasks.
    bounds : (float, float)
        The least and the largest possible value.
    confidence : float

    Returns
    -------
    DataFrame
        One row per value used: look (its place among all values, from 1), n, estimate (mean so far), low, high. NaN
        once no candidate is left, which is one of the misses.

    Raises
    ------
    ValueError
        For values beyond the bounds, or impossible bounds or confidence.
    """
    check_confidence(confidence)
    values = numbers(values)
    places = np.flatnonzero(np.isfinite(values))
    if clusters is not None:
        codes = labels(clusters, len(values))[places]
        places = places[np.sort(np.unique(codes, return_index=True)[1])]
    used = values[places]
    check_bounds(used, bounds)
    least, width, n = bounds[0], bounds[1] - bounds[0], np.arange(1, len(used) + 1)
    low, high = (least + width * bound for bound in betting_bounds((used - least) / width, confidence))
    return pd.DataFrame({"look": places + 1, "n": n, "estimate": np.cumsum(used) / n, "low": low, "high": high})


def difference_sequence(
    a: Iterable[Any],
    b: Iterable[Any],
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Follow the mean difference of pairs, such as two models on the tasks they share; see `mean_sequence`.

    Parameters
    ----------
    a, b : array-like of float, of one length
        Pairs, in the order their second half came in; pairs with a missing value are left out.
    bounds, confidence
        As for `mean_sequence`; the bounds are those of a and b.

    Returns
    -------
    DataFrame
        The columns of `mean_sequence`, of a − b, and `decided`: whether the interval has left 0, at this look or
        before. From then on a difference may be declared, however often one looks.

    Raises
    ------
    ValueError
        For lengths that differ, and as `mean_sequence`.
    """
    a, b = numbers(a), numbers(b)
    if len(a) != len(b):
        raise ValueError(f"pairs need one length, not {len(a)} and {len(b)}")
    both = np.concatenate([a, b])
    check_bounds(both[np.isfinite(both)], bounds)
    width = bounds[1] - bounds[0]
    table = mean_sequence(a - b, bounds=(-width, width), confidence=confidence)
    return table.assign(decided=(table["low"] > 0) | (table["high"] < 0))


def betting_bounds(values: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the mean after each value; arrays of shape (..., n), values from 0 to 1."""
    n = values.shape[-1]
    stakes = _stakes(values, confidence)
    candidates = (np.arange(GRID) + 0.5) / GRID
    limit = math.log(1 / (1 - confidence))
    lows, highs = np.zeros(values.shape), np.ones(values.shape)
    shape = (*values.shape[:-1], GRID)
    above, below, alive = np.zeros(shape), np.zeros(shape), np.ones(shape, dtype=bool)
    for i in range(n):
        value, stake = values[..., i, None], stakes[..., i, None]
        above += np.log1p(np.minimum(stake, MOST_STAKED / candidates) * (value - candidates))
        below += np.log1p(-np.minimum(stake, MOST_STAKED / (1 - candidates)) * (value - candidates))
        alive &= np.logaddexp(above, below) - math.log(2) < limit
        first, last = alive.argmax(axis=-1), GRID - 1 - alive[..., ::-1].argmax(axis=-1)
        some = alive.any(axis=-1)
        # the bounds are the nearest candidates that were dropped: the mean may lie between two
        lows[..., i] = np.where(some, np.maximum(first - 0.5, 0) / GRID, math.nan)
        highs[..., i] = np.where(some, np.minimum(last + 1.5, GRID) / GRID, math.nan)
    return lows, highs


def _stakes(values: np.ndarray, confidence: float) -> np.ndarray:
    """Return the stake on each value, from the values before it (the predictable plug-in)."""
    t = np.arange(1, values.shape[-1] + 1)
    means = (0.5 + np.cumsum(values, axis=-1)) / (t + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2, axis=-1)) / (t + 1)
    before = np.concatenate([np.full((*values.shape[:-1], 1), 0.25), variances[..., :-1]], axis=-1)
    return np.sqrt(2 * math.log(2 / (1 - confidence)) / (before * t * np.log(t + 1)))
