"""Success at each level of an ordered factor, and from each level to the next."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._notes import Notes, left_out, note
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, labels, numbers
from evalkit.stats.pairs.comparison import compare_units

_COLUMNS = ["level", "next_level", "rate", "next_rate", "estimate", "low", "high", "n_clusters", "next_n_clusters"]


class Rows(NamedTuple):
    """Counts with trials, one row per level, or per cluster and level in this order; `codes` 0, 1, … of clusters."""

    successes: np.ndarray
    n: np.ndarray
    scores: np.ndarray
    codes: np.ndarray | None

    @property
    def rates(self) -> np.ndarray:
        """The share of successes of each row."""
        return self.successes / self.n


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
        As for `trend_test`, also their errors.

    Returns
    -------
    DataFrame
        One row per step: level, next_level, rate, next_rate, estimate (next_rate − rate), low, high, n_clusters and
        next_n_clusters (trials where there are no clusters), method, warning.
    """
    check_confidence(confidence)
    return steps_of(counted(successes, n, scores, clusters)[0], confidence)


def counted(successes: Any, n: Any, scores: Any, clusters: Any) -> tuple[Rows, Notes]:
    """Return clean rows, one per level or per level and cluster, and a note on those left out."""
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
    row_codes = None if clusters is None else np.unique(cells[:, 0], return_inverse=True)[1]
    return Rows(sums[0], sums[1], cells[:, 1], row_codes), left_out(int((~known).sum()), "row")


def steps_of(rows: Rows, confidence: float) -> pd.DataFrame:
    """Return the table of `trend_steps` for clean rows."""
    steps = [_step(rows, *levels, confidence) for levels in pairwise(np.unique(rows.scores))]
    return pd.DataFrame(steps, columns=[*_COLUMNS, "method", "warning"])


def _step(rows: Rows, level: float, following: float, confidence: float) -> tuple:
    first, second = sides = rows.scores == level, rows.scores == following
    rates, warning = [rows.rates[side].mean() for side in sides], Notes()
    if rows.codes is None:
        counts = [int(rows.n[side][0]) for side in sides]
        bounds = [formulas.wilson(rate, n, confidence) for rate, n in zip(rates, counts, strict=True)]
    else:
        counts = [int(side.sum()) for side in sides]
        both, one, other = np.intersect1d(rows.codes[first], rows.codes[second], return_indices=True)
        if len(both) > 1 and len(both) >= max(counts) / 2:
            left, right = rows.rates[first][one], rows.rates[second][other]
            compared = compare_units(right, left, confidence)
            rates, counts = [left.mean(), right.mean()], [len(both)] * 2
            step = rates[1] - rates[0], compared.low, compared.high
            return level, following, *rates, *step, *counts, "paired t", compared.warning
        if min(counts) < 2:
            bounds, warning = [(np.array(math.nan), np.array(math.nan))] * 2, note("one_of_level")
        else:
            bounds = [formulas.bounded(rows.rates[side], rows.n[side], confidence, True) for side in sides]
    (low_1, high_1), (low_2, high_2) = bounds
    difference = rates[1] - rates[0]
    below, above = math.hypot(rates[1] - low_2, high_1 - rates[0]), math.hypot(high_2 - rates[1], rates[0] - low_1)
    step = difference, difference - below, difference + above
    return level, following, *rates, *step, *counts, "square-and-add", warning
