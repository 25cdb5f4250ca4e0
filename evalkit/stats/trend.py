"""Test whether success rises or falls along an ordered factor, such as the number of blocked agents."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from evalkit._notes import Notes, left_out, note
from evalkit._text import check_columns
from evalkit.stats import intervals
from evalkit.stats.intervals import Values, check_groups, coded, numbers
from evalkit.stats.pair_tests import N_PERMUTATIONS, agreeing, compare_units, orders_within
from evalkit.stats.pairwise import holm

CHUNK = 1_000  # permutations per step
UNEVEN = 2  # no trend is claimed if one level's clusters have more than twice as many runs as another level's
_STEPS = 100  # maximum number of steps of the logistic fit, which usually needs fewer than 10
UNLIKE, AT_UNLIKE = 3, 0.5  # if variances of clusters differ by more than this factor, the level is halved


class Rows(NamedTuple):
    """Counts of successes and trials, one row per cluster and level in this order; `codes` number the clusters."""

    successes: np.ndarray
    n: np.ndarray
    scores: np.ndarray
    codes: np.ndarray

    @property
    def rates(self) -> np.ndarray:
        """The share of successes of each row."""
        return self.successes / self.n

    @property
    def are_spanning(self) -> bool:
        """Whether at least half of the clusters have several levels."""
        return len(self.n) > 0 and bool((np.bincount(self.codes) > 1).mean() >= 0.5)


class Trend(NamedTuple):
    """A trend of success over an ordered factor.

    If a level separates all successes from all failures, the odds ratio is 0 or infinite, without bounds. The bounds
    include 1 exactly if the test does not reject it.

    The direction is "falls" if the test finds a trend and the interval of every step from one level to the next is
    below 0; "falls overall" if no step rises but the interval of some step includes 0; "falls, not steadily" if a step
    rises; and likewise for "rises". It is "no" if no trend is found, or clusters are too uneven to claim one, and empty
    without a test.
    """

    estimate: float  # odds ratio per step of the score: below 1 if success falls; NaN if it can't be computed
    low: float
    high: float
    p_value: float  # two-sided; 1 means no trend at all
    n: int  # trials
    n_tasks: int
    method: str
    direction: str = ""
    warning: Notes = Notes()


def trend_test(
    successes: Values,
    n: Values,
    scores: Values,
    clusters: Iterable[Any],
    *,
    n_permutations: int = N_PERMUTATIONS,
    rng: np.random.Generator | None = None,
) -> Trend:
    """Test for a trend of success rates over an ordered factor (docs/statistics.md).

    The p value comes from a permutation test of Σ (score − mean) × rate, studentised (DiCiccio and Romano 2017). The
    test assigns whole clusters to new levels; if at least half of the clusters span several levels, it permutes the
    levels within each cluster. Clusters have equal weight. The odds ratio comes from a logistic fit.

    Parameters
    ----------
    successes : array_like, shape (n,)
        Successes per level and cluster.
    n : array_like, shape (n,)
        Runs per level and cluster.
    scores : array_like, shape (n,)
        Level of each row.
    clusters : array_like, shape (n,)
        Cluster of each row, such as the task.
    n_permutations : int
        Number of random permutations.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    Trend
        Odds ratio per level with its interval, p value and direction. NaN for a single level, for equal outcomes, or
        with no more clusters than levels.

    Examples
    --------
    >>> stats.trend_test([3, 1], [3, 3], [0, 1], ["a", "b"]).direction
    ''
    """
    rows, lost = _counted(successes, n, scores, clusters)
    total, count = int(rows.n.sum()), int(rows.codes.max(initial=-1)) + 1
    method = "permutation of levels within clusters" if rows.are_spanning else "permutation of clusters"
    # degrees of freedom of the variance between clusters, after the rates of the levels are estimated
    freedom = count - (len(np.unique(rows.scores)) if count == len(rows.codes) else 1)
    nothing = {
        "no_trials": not total,
        "one_level": total and not np.ptp(rows.scores),
        "outcomes_equal": rows.successes.sum() in (0, total),
        "few_clusters": freedom < 1,
    }
    if reason := next((code for code, is_so in nothing.items() if is_so), ""):
        return Trend(
            estimate=math.nan,
            low=math.nan,
            high=math.nan,
            p_value=math.nan,
            n=total,
            n_tasks=count,
            method=method,
            warning=note(reason) + lost,
        )
    p_value, least = _permutation(rows, n_permutations, np.random.default_rng(0 if rng is None else rng))
    odds, low, high, separated = _odds_ratio(rows, freedom)
    low, high = agreeing(low, high, odds, p_value, null=1.0)
    few = note("never_small", least=least) if least > intervals.LEVEL else Notes()
    doubt, claim_at = Notes(), intervals.LEVEL
    if not rows.are_spanning:  # the test permutes whole clusters, whose variance may differ by level
        levels = np.unique(rows.scores, return_inverse=True)[1]
        sizes = np.bincount(levels)
        runs = np.bincount(levels, rows.n) / sizes
        spreads = np.bincount(levels, (rows.rates - (np.bincount(levels, rows.rates) / sizes)[levels]) ** 2) / sizes
        if runs.max() > UNEVEN * runs.min():
            doubt, claim_at = note("uneven"), 0.0
        elif spreads.max() > UNLIKE * spreads.min():
            claim_at *= AT_UNLIKE
            doubt = note("unlike", claim_at=claim_at)
    direction = "no"
    if p_value <= claim_at:
        steps = _steps(rows)
        sign = -1 if odds < 1 else 1
        is_shown = ((steps["low"] if sign > 0 else -steps["high"]) > 0).all()
        is_overall = (sign * steps["estimate"] >= 0).all()
        direction = "falls" if sign < 0 else "rises"
        if not is_shown:
            direction += " overall" if is_overall else ", not steadily"
    return Trend(
        estimate=odds,
        low=low,
        high=high,
        p_value=p_value,
        n=total,
        n_tasks=count,
        method=method,
        direction=direction,
        warning=separated + few + doubt + lost,
    )


def trend_by(
    frame: pd.DataFrame, by: str, level: str, value: str, clusters: str, *, rng: np.random.Generator | None = None
) -> pd.DataFrame:
    """Test for a trend in each group of rows, corrected for the number of groups.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    by : str
        Column of the group, such as the model.
    level : str
        Column of the ordered factor (numbers).
    value : str
        Column of the 0/1 outcome.
    clusters : str
        Column of the cluster, such as the task.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    DataFrame
        `by`, the fields of `Trend`, and p_holm after p_value. The direction is "no" if Holm's correction leaves no
        trend.

    Raises
    ------
    ValueError
        For a missing column, or if `by` is also the name of another column of the result.

    Examples
    --------
    >>> "p_holm" in stats.trend_by(frame.assign(level=[0, 1, 2] * 2), "model", "level", "success", "task")
    True
    """
    check_columns(frame, by, level, value, clusters)
    check_groups([by], [*Trend._fields, "p_holm"])
    rng = np.random.default_rng(0 if rng is None else rng)
    rows = pd.DataFrame({"value": numbers(frame[value]), "level": numbers(frame[level])})
    rows = rows.replace([math.inf, -math.inf], math.nan).assign(cluster=frame[clusters].to_numpy())
    if not rows["value"].dropna().isin((0.0, 1.0)).all():
        raise ValueError("a trend of success needs 0/1 outcomes")
    trends = []
    for name, runs in rows.groupby(frame[by].reset_index(drop=True), observed=True):
        found = trend_test(runs["value"], np.ones(len(runs)), runs["level"], runs["cluster"], rng=rng)
        trends.append((name, *found))
    table = pd.DataFrame(trends, columns=[by, *Trend._fields])
    table.insert(list(table).index("p_value") + 1, "p_holm", holm(table["p_value"]))
    lost = (table["p_holm"] > intervals.LEVEL) & (table["direction"] != "")
    return table.assign(direction=table["direction"].mask(lost, "no"))


def _counted(successes: Any, n: Any, scores: Any, clusters: Any) -> tuple[Rows, Notes]:
    """Return clean rows, one per level and cluster, and a note on those left out."""
    successes = numbers(successes)
    n = numbers(n)
    scores = numbers(scores)
    codes, _ = coded(clusters, len(n))
    known = np.isfinite(successes) & np.isfinite(n) & np.isfinite(scores)
    if ((successes < 0) | (successes > n))[known].any():
        raise ValueError("successes and n are counts with 0 <= successes <= n")
    used = known & (n > 0)
    cells, place = np.unique(np.column_stack([codes, scores])[used], axis=0, return_inverse=True)
    sums = [np.bincount(place.ravel(), column[used], minlength=len(cells)) for column in (successes, n)]
    row_codes = np.unique(cells[:, 0], return_inverse=True)[1]
    return Rows(sums[0], sums[1], cells[:, 1], row_codes), left_out(int((~known).sum()), "row")


def _permutation(rows: Rows, n_permutations: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p value, and the smallest possible p value with these rates and levels."""
    groups = rows.codes
    scores, rates = rows.scores, rows.rates
    if not rows.are_spanning:
        cells = np.bincount(groups)
        scores, rates = (np.bincount(groups, column) / cells for column in (scores, rates))
        groups = np.zeros(len(cells), dtype=int)
    centred = scores - (np.bincount(groups, scores) / np.bincount(groups))[groups]
    rates = rates - (np.bincount(groups, rates) / np.bincount(groups))[groups]
    starts = np.flatnonzero(np.diff(groups, prepend=-1)) if groups.any() else np.arange(len(groups))

    def studentised(assigned: np.ndarray) -> np.ndarray:
        """Return Σ score × rate divided by its standard error, so that unequal variances of levels don't matter."""
        parts = np.add.reduceat(assigned * centred, starts, axis=-1)
        error = np.sqrt((parts**2).sum(axis=-1))
        return np.divide(parts.sum(axis=-1), error, out=np.zeros_like(error), where=error > 1e-12)

    seen = studentised(rates)
    orders = orders_within(groups, n_permutations, CHUNK, rng)
    drawn = np.concatenate([studentised(rates[order]) for order in orders])
    tolerance = 1e-9 * np.abs(drawn).max(initial=abs(seen))
    beyond = int((np.abs(drawn) >= abs(seen) - tolerance).sum())
    farthest = int((np.abs(drawn) >= np.abs(drawn).max(initial=0) - tolerance).sum())
    return (beyond + 1) / (n_permutations + 1), farthest / n_permutations


def _odds_ratio(rows: Rows, freedom: int) -> tuple[float, float, float, Notes]:
    """Return the odds ratio per step of the score, its bounds, and a note if it has no bounds."""
    passed, failed = rows.scores[rows.successes > 0], rows.scores[rows.successes < rows.n]
    if passed.min() >= failed.max() or passed.max() <= failed.min():
        return (math.inf if passed.max() > failed.min() else 0.0), math.nan, math.nan, note("separated")
    weights = 1 / np.bincount(rows.codes)[rows.codes]
    design = np.column_stack([np.ones(len(rows.n)), rows.scores - rows.scores.mean()])
    coefficients, fitted = _logistic(design, rows.rates, weights)
    # The sandwich variance, from the residuals of clusters around the rates of their levels. It is at least the
    # binomial variance of independent runs, so that a few clusters that happen to agree don't look certain.
    levels = np.unique(rows.scores, return_inverse=True)[1]
    rates = (np.bincount(levels, weights * rows.rates) / np.bincount(levels, weights))[levels]
    bread = np.linalg.inv((design * (weights * fitted * (1 - fitted))[:, None]).T @ design)
    influence = (design @ bread)[:, 1] * weights
    totals = np.bincount(rows.codes, influence * (rows.rates - rates))
    between = totals @ totals * len(totals) / freedom
    error = math.sqrt(max(between, (influence**2) @ (rates * (1 - rates) / rows.n)))
    slope, half = coefficients[1], intervals.quantile(intervals.CONFIDENCE, freedom) * error
    with np.errstate(over="ignore"):
        return float(np.exp(slope)), float(np.exp(slope - half)), float(np.exp(slope + half)), Notes()


def _logistic(design: np.ndarray, rates: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit a logistic regression by iteratively reweighted least squares; return its coefficients and fitted rates."""
    fitted = (rates + 0.5) / 2
    predictor = special.logit(fitted)
    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        variance = fitted * (1 - fitted)
        response = predictor + (rates - fitted) / variance
        weighted = design * (weights * variance)[:, None]
        before, coefficients = coefficients, np.linalg.solve(weighted.T @ design, weighted.T @ response)
        predictor = design @ coefficients
        fitted = special.expit(predictor)
        if np.allclose(coefficients, before, rtol=0, atol=1e-10):
            break
    return coefficients, fitted


def _steps(rows: Rows) -> pd.DataFrame:
    """Estimate the difference of success rates from each level to the next: estimate, low and high.

    The comparison is paired if at least half of the clusters have both levels; otherwise the levels count as
    independent (square-and-add, Newcombe 1998). The claim that all steps fall needs every interval below 0, so it needs
    no correction (Berger 1982).
    """
    steps = []
    for levels in pairwise(np.unique(rows.scores)):
        sides = [rows.scores == level for level in levels]
        rates = [rows.rates[side] for side in sides]
        both, one, other = np.intersect1d(*(rows.codes[side] for side in sides), return_indices=True)
        if len(both) > 1 and len(both) >= max(map(len, rates)) / 2:
            left, right = rates[0][one], rates[1][other]
            compared = compare_units(right, left)
            steps.append((right.mean() - left.mean(), compared.low, compared.high))
            continue
        below = above = math.nan
        first, second = (side.mean() for side in rates)
        if min(map(len, rates)) > 1:
            (low_1, high_1), (low_2, high_2) = (
                intervals.bounded(own, rows.n[side], True) for own, side in zip(rates, sides, strict=True)
            )
            below, above = math.hypot(second - low_2, high_1 - first), math.hypot(high_2 - second, first - low_1)
        steps.append((second - first, second - first - below, second - first + above))
    return pd.DataFrame(steps, columns=["estimate", "low", "high"])
