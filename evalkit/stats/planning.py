"""Plan how many tasks, and how many runs of each, show a given difference, from how tasks and runs vary so far."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from evalkit._words import Notes, note
from evalkit.stats import formulas
from evalkit.stats.inputs import Cells, cells_of, check_confidence, typed

PLANNED = 0.6  # confidence of the interval whose upper end one variance of five exceeds
MOST = 10**7  # pairs
MOST_DEVIATIONS = 10**9  # of a difference
HALVINGS = 70
FAR = 500  # critical value of t beyond which its noncentral distribution is that of the deviation alone

_COLUMNS = "target difference repeats tasks low high detectable runs between within n_tasks warning"


def minimal_detectable_difference(
    n: Any, deviation: Any, *, power: float = 0.8, confidence: float = 0.95, comparisons: int = 1, binary: Any = False
) -> Any:
    """Return the true mean difference that n pairs show with the given power.

    Two-sided paired t test, by the noncentral t distribution (Cohen 1988, chapter 2; as `TTestPower` of statsmodels).
    `deviation` is the standard deviation of the differences, for 0/1 outcomes the root of (share of pairs that differ −
    difference²); the level is divided by `comparisons`, the strictest step of Holm's correction. `binary` stands for
    0/1 outcomes that McNemar's exact test decides: it needs about 2 / difference pairs more, unless all pairs that
    differ do so one way, and with this power enough of these to reach the level at all. All but the probabilities may
    be arrays. The result is in the unit of `deviation`, and NaN where nothing would show.
    """
    level = _level(power, confidence, comparisons)
    n, deviation, binary = np.broadcast_arrays(np.asarray(n, float), np.asarray(deviation, float), np.asarray(binary))
    if (deviation < 0).any():
        raise ValueError(f"a deviation is not negative: {deviation[deviation < 0][0]}")

    def shows(units: np.ndarray) -> np.ndarray:  # of the difference: deviations, or for 0/1 outcomes 1
        by_mcnemar = _mcnemar_shows(n, units, deviation, power, level)
        return np.where(binary, by_mcnemar, _t_shows(n, units, power, level))

    units = _least(shows, np.full(n.shape, 1e-9), np.where(binary, 1.0, MOST_DEVIATIONS))
    differences = np.where((n < 2) | np.isnan(deviation), math.nan, units * np.where(binary, 1.0, deviation))
    return differences if differences.ndim else float(differences)


def pairs_needed(
    difference: Any,
    deviation: Any,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
    binary: Any = False,
) -> Any:
    """Return the least number of pairs that show a true mean difference with the given power.

    The inverse of `minimal_detectable_difference`, with the same parameters. The result is a whole number, or an array
    of them; NaN where the difference is 0 or NaN, infinite above ten million.
    """
    level = _level(power, confidence, comparisons)
    difference, deviation, binary = np.broadcast_arrays(
        np.abs(np.asarray(difference, float)), np.asarray(deviation, float), np.asarray(binary)
    )

    def shows(n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            by_t = _t_shows(n, difference / deviation, power, level)
        return np.where(binary, _mcnemar_shows(n, difference, deviation, power, level), by_t)

    needed = _least(shows, np.full(difference.shape, 1.0), np.full(difference.shape, float(MOST)))
    needed = np.maximum(np.ceil(np.where(np.isnan(needed), math.inf, needed) - 1e-6), 2)
    needed = np.where(np.isnan(deviation) | np.isnan(difference) | (difference == 0), math.nan, needed)
    return needed if needed.ndim else float(needed)


def detectable_gap(n: int, *, power: float = 0.8, confidence: float = 0.95) -> float:
    """Return the difference of two rates around one half that n independent values on each side show.

    Normal approximation, two-sided (Fleiss, Levin and Paik 2003, chapter 4): (z of the level + z of the power) ·
    √(2 · ¼ / n), for the rate at which a difference is hardest to show. NaN for fewer than one value, and where not
    even a difference of 1 would show.
    """
    level = _level(power, confidence, 1)
    if n < 1:
        return math.nan
    gap = float(special.ndtri(1 - level / 2) + special.ndtri(power)) * math.sqrt(0.5 / n)
    return gap if gap <= 1 else math.nan


def _level(power: float, confidence: float, comparisons: int) -> float:
    if not (0 < power < 1 and 0 < confidence < 1):
        raise ValueError(f"power and confidence are between 0 and 1, not {power} and {confidence}")
    if comparisons < 1:
        raise ValueError(f"there is at least one comparison, not {comparisons}")
    return (1 - confidence) / comparisons


def _least(shows: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the least values between two at which something shows, by bisection; NaN where it does at none."""
    possible = shows(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = shows(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(possible, high, math.nan)


def _t_shows(n: np.ndarray, effect: np.ndarray, power: float, level: float) -> np.ndarray:
    """Return whether n pairs show a difference of so many deviations by t."""
    freedom = np.maximum(n, 2) - 1
    critical = special.stdtrit(freedom, 1 - level / 2)
    near, noncentrality = np.minimum(critical, FAR), effect * np.sqrt(n)
    # bounded, as far out the distribution takes for ever to compute
    missed = special.nctdtr(freedom, np.minimum(noncentrality, 2 * near + 10), near)
    far = critical * np.sqrt(special.chdtri(freedom, 1 - power) / freedom)
    return (n >= 2) & np.where(critical > FAR, noncentrality >= far, missed <= 1 - power)


def _mcnemar_shows(
    n: np.ndarray, difference: np.ndarray, deviation: np.ndarray, power: float, level: float
) -> np.ndarray:
    """Return whether n pairs of 0/1 outcomes show a difference by McNemar's exact test."""
    share = np.clip(deviation**2 + difference**2, np.minimum(difference, 1), 1)  # of pairs that differ
    enough = special.bdtr(fewest_pairs(level) - 1, n.astype(int), share) <= 1 - power + 1e-9
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = difference / np.sqrt(np.maximum(share - difference**2, 0))
        by_t = _t_shows(np.floor(n - 2 / difference), effect, power, level)
    return enough & (by_t | (share <= difference))  # where all pairs that differ do so one way, enough do


def fewest_pairs(level: float) -> int:
    """Return how many pairs must differ, all the same way, for an exact paired test to reach the level."""
    return 1 + math.ceil(-math.log2(level) - 1e-9)


def plan(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    difference: float,
    *,
    repeats: Sequence[int] = (1, 2, 3, 5, 10),
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int | None = None,
) -> pd.DataFrame:
    """Plan how many tasks, or runs of each, show a true difference of two models with a given power.

    The variance of a task's difference has two parts: between tasks (some suit one model more than the other), which
    more tasks alone make up for, and within tasks (runs of one model on one task differ), which repetitions make up for
    as well. Both are means over the pairs of models, from the runs of each pair on the tasks it shares; the differences
    so far play no role. Columns are those of `compare_all`; the `difference` is above 0, in the unit of the values,
    `repeats` are runs of each model on each task to plan for, `comparisons` the pairs that will be compared, by which
    the level is divided (by default those that share tasks now).

    The table has one row per number of repeats (target "new tasks"): `tasks` needed where the variances are at their
    upper limit of 80 % (Browne 1995: so that most plans have the power asked for), with the range `low` to `high` from
    their uncertainty, and `detectable`, the difference that the tasks at hand show by the same formula; and one row
    (target "these tasks") with the `repeats` of the tasks at hand that show the difference on them. Also `runs` (of
    both models), `between` and `within` (standard deviations of a difference: of tasks, and of single runs), n_tasks
    (shared by the middle pair), warning. Where no task was run twice, the two parts can't be separated: there is only
    the range. No rows without two models.
    """
    check_confidence(confidence)
    if not difference > 0:
        raise ValueError(f"a difference to show is above 0, not {difference}")
    if not len(repeats) or any(r < 1 or int(r) != r for r in repeats):
        raise ValueError(f"repeats are whole numbers from 1, not {repeats}")
    cells = cells_of(frame, model, task, value)
    pairs = list(combinations(range(len(cells.models)), 2))
    if not pairs:
        return typed(pd.DataFrame(columns=_COLUMNS.split()), _COLUMNS)
    shared = [int(cells.has(a, b).sum()) for a, b in pairs]
    used = [pair for pair, count in zip(pairs, shared, strict=True) if count > 1]
    parts: list[Any] = [_variances(cells, a, b, np.array(repeats), confidence) for a, b in used or pairs[:1]]
    between, within, variances = (np.mean([part[i] for part in parts], axis=0) for i in range(3))
    n_tasks = int(np.median([count for count in shared if count > 1] or shared))
    tested = max(sum(count > 0 for count in shared) if comparisons is None else comparisons, 1)
    binary = bool(np.isin(cells.means[cells.sizes > 0], (0.0, 1.0)).all()) & (np.array(repeats) == 1)
    options: dict[str, Any] = {"power": power, "confidence": confidence, "comparisons": tested, "binary": binary}
    needed = np.maximum(
        pairs_needed(difference, np.sqrt(variances), **options), fewest_pairs((1 - confidence) / tested)
    )
    quantiles = special.ndtri(1 - (1 - confidence) / tested / 2) + special.ndtri(power)
    again = math.nan
    if n_tasks and not math.isnan(within):
        again = max(math.ceil(within * (quantiles / difference) ** 2 / n_tasks), 2)
    columns = {  # for each number of repeats, then for the tasks at hand
        "target": ["new tasks"] * len(repeats) + ["these tasks"],
        "repeats": [*repeats, again],
        "tasks": [*needed[0], n_tasks],
        "low": [*needed[1], math.nan],
        "high": [*needed[2], math.nan],
        "detectable": [*minimal_detectable_difference(n_tasks, np.sqrt(variances[0]), **options), math.nan],
    }
    warning = next((part[3] for part in parts if part[3]), Notes())
    table = pd.DataFrame(columns).assign(difference=difference, between=math.sqrt(between), within=math.sqrt(within))
    table = table.assign(n_tasks=n_tasks, runs=2 * table["repeats"] * table["tasks"])
    table["warning"] = pd.Series([warning] * len(table), dtype="object")
    return typed(table, _COLUMNS)


def _variances(cells: Cells, a: int, b: int, repeats: np.ndarray, confidence: float) -> tuple[Any, Any, Any, Notes]:
    """Return the variances of two models' difference on a task: between tasks, within tasks, and with some repeats.

    The last are of shape (3, repeats): the variance to plan with, the least and the largest.
    """
    shared, nothing = cells.has(a, b), np.full(len(repeats), math.nan)
    count, first, second = int(shared.sum()), cells.of(a, shared), cells.of(b, shared)
    if count < 2:
        return math.nan, math.nan, [nothing] * 3, note("few_shared")
    squares = (first.means - second.means - (first.means - second.means).mean()) ** 2 * count / (count - 1)
    if not all((side.sizes > 1).any() for side in (first, second)):
        planned, low, high = _limits(squares, confidence, squares.mean())
        variances = [np.where(repeats == 1, planned, math.nan), low / repeats, np.full(len(repeats), high)]
        return math.nan, math.nan, variances, note("unknown_repeats")
    within = [np.where(s.sizes > 1, s.variances, np.nanmean(s.variances)) for s in (first, second)]
    noise, single = sum(v / s.sizes for v, s in zip(within, (first, second), strict=True)), within[0] + within[1]
    between = max(float((squares - noise).mean()), 0.0)
    _, _, most = _limits(squares - noise + single, confidence, between + single.mean())
    limits = [_limits(squares - noise + single / r, confidence, between + single.mean() / r) for r in repeats]
    planned, low, high = np.array(limits).T
    variances = [np.fmin(planned, most), low, np.minimum(high, most)]  # at most those of single runs
    return between, float(single.mean()), variances, Notes()


def _limits(contributions: np.ndarray, confidence: float, mean: float) -> tuple[float, float, float]:
    """Return the upper limit at 80 % of a mean of contributions to a variance, and its interval, by logarithms."""
    if mean <= 0:
        return 0.0, 0.0, math.nan
    error = math.sqrt(formulas.variance_of_mean(contributions)) / mean
    planned, factor = (
        math.exp(min(formulas.quantile(level, len(contributions) - 1) * error, 20.0)) for level in (PLANNED, confidence)
    )
    return mean * planned, mean / factor, mean * factor
