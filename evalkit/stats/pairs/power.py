"""Compute how many pairs a comparison needs, and what it can show with those it has; vectorised."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

MOST = 10**7
HALVINGS = 50  # of an interval, to about 1e-12 of it
FAR = 500  # critical value of t beyond which its noncentral distribution is that of the deviation alone


def minimal_detectable_difference(
    n: Any,
    deviation: Any,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
    binary: Any = False,
) -> Any:
    """Return the true mean difference that n pairs show with the given power.

    Two-sided paired t test, by the noncentral t distribution (Cohen 1988, chapter 2; as `TTestPower` of statsmodels).

    Parameters
    ----------
    n : int or array of int
        Pairs, such as tasks that two models share.
    deviation : float or array of float
        Standard deviation of the differences. For 0/1 outcomes the root of (share of pairs that differ − difference²),
        and at least that of a difference to which all of these pairs contribute.
    power, confidence : float
        Probability of finding the difference, 0.8 by custom, and 1 − level of the test.
    comparisons : int
        The level is divided by it: the strictest step of Holm's correction.
    binary : bool or array of bool
        0/1 outcomes that McNemar's exact test decides: it needs about 2 / difference pairs more than a t test, unless
        all pairs that differ do so one way, and with this power enough of these to reach the level at all.

    Returns
    -------
    float or array of float
        In the unit of `deviation`. NaN for n < 2 or a deviation that is NaN, and for 0/1 outcomes where not even a
        difference of 1 would show.
    """
    level = _level(power, confidence, comparisons)
    n, deviation, binary = np.broadcast_arrays(np.asarray(n, float), np.asarray(deviation, float), np.asarray(binary))
    if (deviation < 0).any():
        raise ValueError(f"a deviation is not negative: {deviation[deviation < 0][0]}")
    differences = np.where(binary, _binary_difference(n, deviation, power, level), _effect(n, power, level) * deviation)
    differences = np.where(n < 2, math.nan, differences)
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

    The inverse of `minimal_detectable_difference`, with the same parameters.

    Returns
    -------
    float or array of float
        A whole number; NaN where the difference is 0 or NaN, infinite above ten million.
    """
    level = _level(power, confidence, comparisons)
    difference, deviation, binary = np.broadcast_arrays(
        np.abs(np.asarray(difference, float)), np.asarray(deviation, float), np.asarray(binary)
    )
    spread, share = _binary_spread(difference, deviation)
    needed = _least_n(difference, np.where(binary, spread, deviation), power, level)
    fewest = fewest_pairs(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        differ = np.where(share < 1, special.bdtrin(fewest - 1, 1 - power, np.minimum(share, 0.999999)), fewest)
        coarser = np.where(share > difference, np.ceil(needed + 2 / difference), 2)
        exact = np.maximum(coarser, np.ceil(differ - 1e-6))
    needed = np.where(binary, exact, needed)
    needed = np.where(needed > MOST, math.inf, needed)
    needed = np.where(np.isnan(deviation) | np.isnan(difference) | (difference == 0), math.nan, needed)
    return needed if needed.ndim else float(needed)


def detectable_gap(n: int, *, power: float = 0.8, confidence: float = 0.95) -> float:
    """Return the difference of two rates around one half that n independent values on each side show.

    Normal approximation, two-sided (Fleiss, Levin and Paik 2003, chapter 4): (z of the level + z of the power) ·
    √(2 · ¼ / n), for the rate at which a difference is hardest to show.

    Parameters
    ----------
    n : int
        Values on each side. NaN for fewer than 1, and where not even a difference of 1 would show.
    power, confidence
        As for `pairs_needed`.
    """
    level = _level(power, confidence, 1)
    if n < 1:
        return math.nan
    gap = float(special.ndtri(1 - level / 2) + special.ndtri(power)) * math.sqrt(0.5 / n)
    return gap if gap <= 1 else math.nan


def fewest_pairs(level: float) -> int:
    """Return how many pairs must differ, all the same way, for an exact paired test to reach the level."""
    return 1 + math.ceil(-math.log2(level) - 1e-9)


def _binary_spread(difference: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the deviation of differences −1, 0 and 1, and the share of pairs that differ, both possible."""
    share = np.clip(deviation**2 + difference**2, np.minimum(difference, 1), 1)
    return np.sqrt(np.maximum(share - difference**2, 0)), share


def _level(power: float, confidence: float, comparisons: int) -> float:
    if not (0 < power < 1 and 0 < confidence < 1):
        raise ValueError(f"power and confidence are between 0 and 1, not {power} and {confidence}")
    if comparisons < 1:
        raise ValueError(f"there is at least one comparison, not {comparisons}")
    return (1 - confidence) / comparisons


@lru_cache(maxsize=32)
def _table(power: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return log n from 2 to beyond ten million, and the log of the difference that n pairs show, in deviations."""
    n = np.concatenate([np.arange(2, 40, 0.125), np.geomspace(40, 4 * MOST, 800)])
    critical = special.stdtrit(n - 1, 1 - level / 2)
    far = critical * np.sqrt(special.chdtri(n - 1, 1 - power) / (n - 1))  # noncentralities
    near = np.minimum(critical, FAR)
    low, high = np.zeros(len(n)), 2 * near + 10.0
    for _ in range(HALVINGS):  # bounded, unlike nctdtrinc of scipy, which never ends at few degrees of freedom
        middle = (low + high) / 2
        shown = special.nctdtr(n - 1, middle, near) <= 1 - power
        low, high = np.where(shown, low, middle), np.where(shown, middle, high)
    return np.log(n), np.log(np.where(critical > FAR, far, high) / np.sqrt(n))


def _effect(n: np.ndarray, power: float, level: float) -> np.ndarray:
    """Return the difference that n pairs show, in units of the deviation; NaN below 2 pairs."""
    log_n, log_effect = _table(power, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(np.interp(np.log(n), log_n, log_effect, left=math.nan))


def _least_n(difference: np.ndarray, deviation: np.ndarray, power: float, level: float) -> np.ndarray:
    """Return the least whole n of at least 2 whose difference is at most the one given."""
    log_n, log_effect = _table(power, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.log(difference / deviation)
    n = np.exp(np.interp(-wanted, -log_effect, log_n))
    n = np.where(wanted < log_effect[-1], math.inf, np.maximum(np.ceil(n - 1e-9), 2))
    one_less = (n > 2) & (_effect(n - 1, power, level) * deviation <= difference)
    one_more = _effect(n, power, level) * deviation > difference
    return n - one_less + one_more


def _binary_difference(n: np.ndarray, deviation: np.ndarray, power: float, level: float) -> np.ndarray:
    """Return the least difference, by bisection, that a t test of 2 / difference fewer pairs shows."""

    def shows(difference: np.ndarray) -> np.ndarray:
        left, (spread, share) = n - 2 / difference, _binary_spread(difference, deviation)
        enough = special.bdtr(fewest_pairs(level) - 1, n.astype(int), share) <= 1 - power + 1e-9
        by_t = (left >= 2) & (_effect(np.maximum(left, 2), power, level) * spread <= difference)
        return enough & (by_t | (share <= difference))  # where all pairs that differ do so one way, enough do

    low, high = np.full(n.shape, 1e-9), np.ones(n.shape)
    possible = shows(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough_power = shows(middle)
        low, high = np.where(enough_power, low, middle), np.where(enough_power, middle, high)
    return np.where(possible, high, math.nan)
