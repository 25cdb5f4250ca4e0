"""Success at each level of an ordered factor, and from each level to the next."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, labels, left_out, numbers
from evalkit.stats.pairs.comparison import compare_units

FEW = "a level with a single cluster has no interval"


class Rows(NamedTuple):
    """Counts, one row per level or per level and cluster, without missing ones and those without trials."""

    successes: np.ndarray
    n: np.ndarray
    scores: np.ndarray
    codes: np.ndarray | None

    @property
    def rates(self) -> np.ndarray:
        """The share of successes of each row."""
        return self.successes / self.n


class Step(NamedTuple):
    """The difference of success from one level to the next; NaN bounds where there is no interval."""

    level: float
    next_level: float
    rate: float
    next_rate: float
    estimate: float
    low: float
    high: float
    n_clusters: int
    next_n_clusters: int
    method: str
    warning: str = ""


def trend_steps(
    successes: Iterable[Any],
    n: Iterable[Any],
    scores: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Estimate the difference of success rates from each level to the next.

    Clusters have the same weight. Where at least half of the clusters of two levels have both, these are compared by
    their differences (`paired_difference`); else the levels are taken as independent, and the interval is put together
    from theirs (square-and-add, Newcombe 1998, of Wilson's on the effective n). Intervals are of single steps: where
    all of them lie below 0, one may say without a correction that all steps fall (Berger 1982).

    Parameters
    ----------
    successes, n, scores, clusters, confidence
        As for `trend_test`.

    Returns
    -------
    DataFrame
        One row per step: level, next_level, rate, next_rate, estimate (next_rate − rate), low, high, n_clusters and
        next_n_clusters (trials where there are no clusters), method, warning.

    Raises
    ------
    ValueError
        As for `trend_test`.
    """
    check_confidence(confidence)
    rows, _ = counted(successes, n, scores, clusters)
    return pd.DataFrame(steps_of(rows, confidence), columns=list(Step._fields))


def counted(successes: Any, n: Any, scores: Any, clusters: Any) -> tuple[Rows, str]:
    """Return clean rows, one per level or per level and cluster, and a sentence about those left out."""
    successes, n, scores = numbers(successes), numbers(n), numbers(scores)
    if not len(successes) == len(n) == len(scores):
        raise ValueError(f"{len(successes)} successes, {len(n)} n and {len(scores)} scores: need as many of each")
    codes = np.zeros(len(n), dtype=int) if clusters is None else labels(clusters, len(n))
    known = np.isfinite(successes) & np.isfinite(n) & np.isfinite(scores)
    x, of = successes[known], n[known]
    if ((x < 0) | (x > of) | (x % 1 > 0) | (of % 1 > 0)).any():
        raise ValueError("successes and n are whole numbers with 0 <= successes <= n")
    used = known & (n > 0)
    cells, place = np.unique(np.column_stack([codes, scores])[used], axis=0, return_inverse=True)
    sums = [np.bincount(place.ravel(), column[used], minlength=len(cells)) for column in (successes, n)]
    row_codes = None if clusters is None else cells[:, 0].astype(int)
    return Rows(sums[0], sums[1], cells[:, 1], row_codes), left_out(int((~known).sum()), "row")


def steps_of(rows: Rows, confidence: float) -> list[Step]:
    """Return the steps between the levels of clean rows."""
    levels = np.unique(rows.scores)
    return [_step(rows, low, high, confidence) for low, high in pairwise(levels)]


def _step(rows: Rows, level: float, following: float, confidence: float) -> Step:
    first, second = rows.scores == level, rows.scores == following
    if rows.codes is None:
        rates, counts = (rows.rates[first][0], rows.rates[second][0]), (int(rows.n[first][0]), int(rows.n[second][0]))
        bounds = [formulas.wilson(rate, n, confidence) for rate, n in zip(rates, counts, strict=True)]
        return Step(level, following, *rates, *_square_and_add(rates, bounds), *counts, "square-and-add")
    rates = rows.rates[first].mean(), rows.rates[second].mean()
    counts = int(first.sum()), int(second.sum())
    both, one, other = np.intersect1d(rows.codes[first], rows.codes[second], return_indices=True)
    if len(both) > 1 and len(both) >= max(counts) / 2:
        compared = compare_units(rows.rates[second][other] - rows.rates[first][one], True, False, confidence)
        rates = rows.rates[first][one].mean(), rows.rates[second][other].mean()
        step = rates[1] - rates[0], compared.low, compared.high
        return Step(level, following, *rates, *step, len(both), len(both), "paired t", compared.warning)
    if min(counts) < 2:
        return Step(level, following, *rates, rates[1] - rates[0], math.nan, math.nan, *counts, "square-and-add", FEW)
    bounds = [formulas.bounded(rows.rates[side], rows.n[side], confidence, True) for side in (first, second)]
    return Step(level, following, *rates, *_square_and_add(rates, bounds), *counts, "square-and-add")


def _square_and_add(rates: tuple, bounds: list) -> tuple[float, float, float]:
    """Return the difference second − first and its interval from those of both (Newcombe 1998, method 10)."""
    (low_1, high_1), (low_2, high_2) = bounds
    difference = rates[1] - rates[0]
    below = math.hypot(rates[1] - low_2, high_1 - rates[0])
    above = math.hypot(high_2 - rates[1], rates[0] - low_1)
    return difference, difference - below, difference + above
