"""Plan how many tasks, and runs per task, detect a given difference, from the variances between and within tasks."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from evalkit._notes import Notes, note
from evalkit.stats import intervals
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import CONFIDENCE, LEVEL, skewness, typed
from evalkit.stats.pair_tests import ENOUGH_SCORES, FEW_SHARES, SKEWED

POWER = 0.8
PLANNED = 0.6  # confidence level of an interval whose upper end is an upper limit at 80 %
MOST = 10**7  # maximum number of pairs to plan
MOST_DEVIATIONS = 10**9  # maximum detectable difference, in standard deviations
HALVINGS = 70  # steps of the bisection
FAR = 500  # above this critical value, the noncentral t distribution depends only on the estimated deviation

_COLUMNS = "target difference repeats tasks tasks_low tasks_high detectable runs between within n_tasks warning"


def plan(cells: Cells, difference: float, *, repeats: Sequence[int] = (1, 2, 3, 5, 10)) -> pd.DataFrame:
    """Plan how many tasks, or runs per task, detect a true difference with 80 % power (docs/statistics.md).

    The variance of the difference on a task has two parts: between tasks, and within tasks. Repetitions reduce the
    second. Both are means over the pairs of models. The level is divided by the number of pairs with shared tasks.

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    difference : float
        The true difference, above 0, in the unit of the values.
    repeats : sequence of int
        Runs of each model on each task.

    Returns
    -------
    DataFrame
        One row per number of repeats (target "new tasks"): tasks needed (planned with the 80 % upper limit of the
        variances, Browne 1995), tasks_low to tasks_high (their uncertainty), detectable (difference that the present
        tasks detect); and one row (target "these tasks") with the repeats needed on the present tasks. Also runs (of
        both models), between, within (standard deviations), n_tasks, warning. There are no rows for fewer than two
        models. If pairs are decided over families, seeds or conditions, values are NaN, with the reason in warning.

    Raises
    ------
    ValueError
        For a difference that is not positive.

    Examples
    --------
    >>> stats.plan(cells, 0.3)["repeats"].tolist()[:2]
    [1.0, 2.0]
    """
    if not difference > 0:
        raise ValueError(f"difference must be positive (got {difference})")
    if not len(repeats) or any(r < 1 or int(r) != r for r in repeats):
        raise ValueError(f"repeats are whole numbers from 1, not {repeats}")
    reason = Notes()
    if cells.are_families:
        reason = note("no_plan", over="families of tasks")
    elif cells.seeds is not None and any(one.variance > 0 for one in cells.seeds):
        reason = note("no_plan", over="seeds, checkpoints or sessions")
    elif len(cells.over_conditions.tasks) < len(cells.tasks):
        reason = note("no_plan", over="several conditions")
    cells = cells.over_conditions
    pairs = list(combinations(range(len(cells.models)), 2))
    if not pairs:
        return typed(pd.DataFrame(columns=_COLUMNS.split()), _COLUMNS)
    shared = [int(cells.has(a, b).sum()) for a, b in pairs]
    used = [pair for pair, count in zip(pairs, shared, strict=True) if count > 1]
    parts: list[Any] = [_variances(cells, a, b, np.array(repeats)) for a, b in used or pairs[:1]]
    between, within, variances = (np.mean([part[i] for part in parts], axis=0) for i in range(3))
    n_tasks = int(np.median([count for count in shared if count > 1] or shared))
    level = LEVEL / max(sum(count > 0 for count in shared), 1)
    binary = bool(np.isin(cells.means[cells.sizes > 0], (0.0, 1.0)).all()) & (np.array(repeats) == 1)
    needed = np.maximum(pairs_needed(difference, np.sqrt(variances), level, binary), fewest_pairs(level))
    # with fewer tasks, the test is stricter than its level, because skewness and rare failures may be hidden
    skews = [float(skewness((cells.means[:, a] - cells.means[:, b])[cells.has(a, b)])) for a, b in used]
    skewed = 2 * SKEWED * float(np.median(skews or [0.0])) ** 2
    fewest = max(ENOUGH_SCORES, skewed)
    if cells.shares:
        fewest = max(2 * FEW_SHARES, skewed, math.log(2 / level) / math.log1p(min(difference, 1.0)))
    needed = np.where(binary, needed, np.maximum(needed, math.ceil(fewest)))
    again = math.nan
    if n_tasks and not math.isnan(within):
        quantiles = special.ndtri(1 - level / 2) + special.ndtri(POWER)
        again = max(math.ceil(within * (quantiles / difference) ** 2 / n_tasks), 2)
    columns = {  # one row per number of repeats, then one for the present tasks
        "target": ["new tasks"] * len(repeats) + ["these tasks"],
        "repeats": [*repeats, again],
        "tasks": [*needed[0], n_tasks],
        "tasks_low": [*needed[1], math.nan],
        "tasks_high": [*needed[2], math.nan],
        "detectable": [*detectable_difference(n_tasks, np.sqrt(variances[0]), level, binary), math.nan],
    }
    warning = next((part[3] for part in parts if part[3]), Notes())
    table = pd.DataFrame(columns).assign(difference=difference, between=math.sqrt(between), within=math.sqrt(within))
    table = table.assign(n_tasks=n_tasks, runs=2 * table["repeats"] * table["tasks"])
    table["warning"] = pd.Series([reason + warning] * len(table), dtype="object")
    if reason:
        table[["tasks", "tasks_low", "tasks_high", "detectable", "runs"]] = math.nan
    return typed(table, _COLUMNS)


def _variances(cells: Cells, a: int, b: int, repeats: np.ndarray) -> tuple[Any, Any, Any, Notes]:
    """Return the variances of two models' difference on a task: between tasks, within tasks, and by number of repeats.

    The last has the shape (3, repeats): the variance to plan with, and its lower and upper limits.
    """
    shared, nothing = cells.has(a, b), np.full(len(repeats), math.nan)
    first, second = cells.of(a, shared), cells.of(b, shared)
    count = len(first.means)
    if count < 2:
        return math.nan, math.nan, [nothing] * 3, note("few_shared")
    squares = (first.means - second.means - (first.means - second.means).mean()) ** 2 * count / (count - 1)
    if not all((side.sizes > 1).any() for side in (first, second)):
        planned, low, high = _limits(squares, squares.mean())
        variances = [np.where(repeats == 1, planned, math.nan), low / repeats, np.full(len(repeats), high)]
        return math.nan, math.nan, variances, note("unknown_repeats")
    within = [np.where(s.sizes > 1, s.variances, np.nanmean(s.variances)) for s in (first, second)]
    noise, single = sum(v / s.sizes for v, s in zip(within, (first, second), strict=True)), within[0] + within[1]
    between = max(float((squares - noise).mean()), 0.0)
    _, _, most = _limits(squares - noise + single, between + single.mean())
    limits = [_limits(squares - noise + single / r, between + single.mean() / r) for r in repeats]
    planned, low, high = np.array(limits).T
    variances = [np.fmin(planned, most), low, np.minimum(high, most)]  # never above the variance of single runs
    return between, float(single.mean()), variances, Notes()


def _limits(contributions: np.ndarray, mean: float) -> tuple[float, float, float]:
    """Return the 80 % upper limit of a variance and its interval, on the log scale, from contributions to it."""
    if mean <= 0:
        return 0.0, 0.0, math.nan
    error = math.sqrt(intervals.variance_of_mean(contributions)) / mean
    planned, factor = (
        math.exp(min(intervals.quantile(level, len(contributions) - 1) * error, 20.0))
        for level in (PLANNED, CONFIDENCE)
    )
    return mean * planned, mean / factor, mean * factor


def detectable_difference(n: int, deviation: np.ndarray, level: float, binary: np.ndarray) -> np.ndarray:
    """Return the true mean differences that n pairs detect with 80 % power; NaN if n pairs can't detect any.

    They come from the noncentral t distribution (Cohen 1988, chapter 2); for `binary` outcomes, from the formula of
    Connor (1987) for McNemar's unconditional test. `deviation` is the standard deviation of the differences.
    """
    pairs = np.full(deviation.shape, float(n))

    def shows(units: np.ndarray) -> np.ndarray:  # differences in standard deviations; raw for 0/1 outcomes
        by_mcnemar = _mcnemar_shows(pairs, units, deviation, level)
        return np.where(binary, by_mcnemar, _t_shows(pairs, units, level))

    units = _least(shows, np.full(deviation.shape, 1e-9), np.where(binary, 1.0, MOST_DEVIATIONS))
    return np.where((n < 2) | np.isnan(deviation), math.nan, units * np.where(binary, 1.0, deviation))


def pairs_needed(difference: float, deviation: np.ndarray, level: float, binary: np.ndarray) -> np.ndarray:
    """Return the smallest numbers of pairs that detect a mean difference; the inverse of `detectable_difference`."""
    differences = np.full(deviation.shape, difference)

    def shows(n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            by_t = _t_shows(n, differences / deviation, level)
        return np.where(binary, _mcnemar_shows(n, differences, deviation, level), by_t)

    needed = _least(shows, np.ones(deviation.shape), np.full(deviation.shape, float(MOST)))
    needed = np.maximum(np.ceil(np.where(np.isnan(needed), math.inf, needed) - 1e-6), 2)
    return np.where(np.isnan(deviation), math.nan, needed)


def detectable_gap(n: int) -> float:
    """Return the difference of two rates near one half that is detectable with 80 % power.

    Normal approximation, two-sided (Fleiss, Levin and Paik 2003, chapter 4).

    Parameters
    ----------
    n : int
        Number of independent values on each side.

    Returns
    -------
    float
        The difference, from 0 to 1; NaN if even a difference of 1 is not detectable.

    Examples
    --------
    >>> round(stats.detectable_gap(100), 2)
    0.2
    """
    if n < 1:
        return math.nan
    gap = float(intervals.quantile() + special.ndtri(POWER)) * math.sqrt(0.5 / n)
    return gap if gap <= 1 else math.nan


def _least(shows: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the smallest values between `low` and `high` that are detected, by bisection; NaN if none is."""
    possible = shows(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = shows(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(possible, high, math.nan)


def _t_shows(n: np.ndarray, effect: np.ndarray, level: float) -> np.ndarray:
    """Return whether n pairs detect an effect, in standard deviations, by t."""
    freedom = np.maximum(n, 2) - 1
    critical = special.stdtrit(freedom, 1 - level / 2)
    near, noncentrality = np.minimum(critical, FAR), effect * np.sqrt(n)
    # bounded, because the distribution takes very long to compute far out
    missed = special.nctdtr(freedom, np.minimum(noncentrality, 2 * near + 10), near)
    far = critical * np.sqrt(special.chdtri(freedom, 1 - POWER) / freedom)
    return (n >= 2) & np.where(critical > FAR, noncentrality >= far, missed <= 1 - POWER)


def _mcnemar_shows(n: np.ndarray, difference: np.ndarray, deviation: np.ndarray, level: float) -> np.ndarray:
    """Return whether n pairs of 0/1 outcomes detect a difference by McNemar's unconditional test (Connor 1987)."""
    share = np.clip(deviation**2 + difference**2, np.minimum(difference, 1), 1)  # share of pairs that differ
    spread = np.sqrt(np.maximum(share - difference**2, 0))
    enough = np.sqrt(n) * difference >= special.ndtri(1 - level / 2) * np.sqrt(share) + special.ndtri(POWER) * spread
    return enough & (n >= fewest_pairs(level))


def fewest_pairs(level: float) -> int:
    """Return the number of pairs that must differ, all in the same direction, for an exact test to reach the level."""
    return 1 + math.ceil(-math.log2(level) - 1e-9)
