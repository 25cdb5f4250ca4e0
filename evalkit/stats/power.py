"""How many units a comparison needs, and what it can show with those it has."""

import math

from scipy import special

MOST = 10**7


def minimal_detectable_difference(
    n: int,
    deviation: float,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
    binary: bool = False,
) -> float:
    """Return the true mean difference that n pairs show with the given power.

    Two-sided paired t test, by the noncentral t distribution (Cohen 1988, chapter 2; as `TTestPower` of statsmodels).

    Parameters
    ----------
    n : int
        Pairs, such as tasks that two models share.
    deviation : float
        Standard deviation of the differences. For 0/1 outcomes: the root of (share of pairs that differ − difference²).
    power : float
        Probability of finding the difference, 0.8 by custom.
    confidence : float
        1 − level of the test.
    comparisons : int
        The level is divided by it: the strictest step of Holm's correction.
    binary : bool
        0/1 outcomes that `mcnemar_exact` decides: it needs about 2 / difference pairs more than a t test
        (docs/coverage.md), and enough pairs that differ to reach the level at all.

    Returns
    -------
    float
        In the unit of `deviation`. NaN for n < 2 or a deviation that is NaN, and for 0/1 outcomes where not even a
        difference of 1 would show.

    Raises
    ------
    ValueError
        For a power or confidence not between 0 and 1, a negative deviation, or comparisons below 1.
    """
    level = _level(power, confidence, comparisons)
    if deviation < 0:
        raise ValueError(f"a deviation is not negative: {deviation}")
    if n < 2 or math.isnan(deviation):
        return math.nan
    if not binary:
        return _by_t(n, deviation, power, level)

    def shows(difference: float) -> bool:
        left = n - 2 / difference
        enough = n * min(1.0, deviation**2 + difference**2) >= fewest_pairs(level)
        return enough and left >= 2 and _by_t(left, deviation, power, level) <= difference

    low, high = 0.0, 1.0
    if not shows(high):
        return math.nan
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def pairs_needed(
    difference: float,
    deviation: float,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
    binary: bool = False,
) -> float:
    """Return the least number of pairs that show a true mean difference with the given power.

    The inverse of `minimal_detectable_difference`, with the same parameters.

    Returns
    -------
    float
        A whole number; NaN where the difference is 0 or NaN, infinite above ten million.
    """
    level = _level(power, confidence, comparisons)
    difference = abs(difference)
    if math.isnan(difference) or math.isnan(deviation) or difference == 0:
        return math.nan
    high = 2
    while _by_t(high, deviation, power, level) > difference:
        high *= 2
        if high > MOST:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _by_t(middle, deviation, power, level) <= difference else (middle, high)
    if binary:
        share = min(1.0, deviation**2 + difference**2)
        high = max(math.ceil(high + 2 / difference), math.ceil(fewest_pairs(level) / share))
    return float(high)


def detectable_gap(n: int, *, power: float = 0.8, confidence: float = 0.95) -> float:
    """Return the difference of two rates around one half that n independent values on each side show.

    Normal approximation, two-sided (Fleiss, Levin and Paik 2003, chapter 4): (z of the level + z of the power) ·
    √(2 · ¼ / n), for the rate that is hardest to tell.

    Parameters
    ----------
    n : int
        Values on each side.
    power, confidence : float
        Between 0 and 1, both excluded.

    Returns
    -------
    float
        NaN where not even a difference of 1 would show, or n < 1.

    Raises
    ------
    ValueError
        For a power or confidence not between 0 and 1.
    """
    level = _level(power, confidence, 1)
    if n < 1:
        return math.nan
    gap = float(special.ndtri(1 - level / 2) + special.ndtri(power)) * math.sqrt(0.5 / n)
    return gap if gap <= 1 else math.nan


def fewest_pairs(level: float) -> int:
    """Return how many pairs must differ, all the same way, for an exact paired test to reach the level."""
    return 1 + math.ceil(-math.log2(level) - 1e-9)


def _level(power: float, confidence: float, comparisons: int) -> float:
    if not (0 < power < 1 and 0 < confidence < 1):
        raise ValueError(f"power and confidence are between 0 and 1, not {power} and {confidence}")
    if comparisons < 1:
        raise ValueError(f"there is at least one comparison, not {comparisons}")
    return (1 - confidence) / comparisons


def _by_t(n: float, deviation: float, power: float, level: float) -> float:
    critical = special.stdtrit(n - 1, 1 - level / 2)
    return float(special.nctdtrinc(n - 1, 1 - power, critical)) * deviation / math.sqrt(n)
