"""Confidence sequences: estimates that miss at any look in at most 5 % of experiments, however often one looks."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from evalkit.stats.inputs import check_bounds, check_confidence, numbers

GRID = 1_000
CANDIDATES = (np.arange(GRID) + 0.5) / GRID  # for the mean
MOST_STAKED = 0.5  # of the capital, on one value


def mean_sequence(
    values: Iterable[Any], *, bounds: tuple[float, float] = (0.0, 1.0), confidence: float = 0.95
) -> pd.DataFrame:
    """Follow the mean of bounded values with a confidence sequence, valid at all looks together.

    The hedged capital process of Waudby-Smith and Ramdas (2024): for each candidate for the mean, one gambler bets that
    values lie above it and another that they lie below; a candidate is dropped for good once the mean of both capitals,
    which hardly ever grows in a fair game, reaches 1 / (1 − confidence).

    There is one value of each task, in the order they came in, which must not depend on them: if quick runs tend to
    fail, those that end first are not a fair sample. The differences of two models on tasks have bounds of (−1, 1). The
    table has one row per value: n, estimate (mean so far), low, high; NaN once no candidate is left, which is one of
    the misses.
    """
    check_confidence(confidence)
    values = numbers(values)
    used = values[np.isfinite(values)]
    check_bounds(used, bounds)
    least, width, n, bets = bounds[0], bounds[1] - bounds[0], np.arange(1, len(used) + 1), Bets(confidence)
    found = np.array([bets.add(value) for value in (used - least) / width]).reshape(-1, 2)
    low, high = least + width * found.T
    return pd.DataFrame({"n": n, "estimate": np.cumsum(used) / n, "low": low, "high": high})


class Bets:
    """Bets on means of values from 0 to 1, one value after the other; `shape` is that of the sequences."""

    def __init__(self, confidence: float, shape: tuple[int, ...] = ()) -> None:
        self._limit, self._stake = math.log(1 / (1 - confidence)), math.sqrt(2 * math.log(2 / (1 - confidence)))
        self._n, self._sum, self._squares = 0, np.zeros(shape), np.zeros(shape)
        self._above, self._below, self._alive = np.zeros((*shape, GRID)), np.zeros((*shape, GRID)), np.ones(GRID, bool)

    def add(self, value: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of the mean after one more value."""
        self._n += 1
        before = (0.25 + self._squares) / self._n  # the stake follows from the values before (predictable plug-in)
        stake = (self._stake / np.sqrt(before * self._n * math.log(self._n + 1)))[..., None]
        self._sum += value
        self._squares += (value - (0.5 + self._sum) / (self._n + 1)) ** 2
        gain = np.asarray(value)[..., None] - CANDIDATES
        self._above += np.log1p(np.minimum(stake, MOST_STAKED / CANDIDATES) * gain)
        self._below += np.log1p(-np.minimum(stake, MOST_STAKED / (1 - CANDIDATES)) * gain)
        self._alive = self._alive & (np.logaddexp(self._above, self._below) - math.log(2) < self._limit)
        first, last = self._alive.argmax(axis=-1), GRID - 1 - self._alive[..., ::-1].argmax(axis=-1)
        some = self._alive.any(axis=-1)
        # the bounds are the nearest candidates that were dropped: the mean may lie between two
        low, high = np.maximum(first - 0.5, 0) / GRID, np.minimum(last + 1.5, GRID) / GRID
        return np.where(some, low, math.nan), np.where(some, high, math.nan)
