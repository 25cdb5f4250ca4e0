"""Warn of intervals that may cover less often than their confidence, given the size and shape of their data.

`docs/coverage.md` has the figures behind the bounds; the rules take whole arrays (leading axes are samples), since the
study there applies them to many samples at once.
"""

import numpy as np

from evalkit._words import Notes, note
from evalkit.stats._formulas import skewness

FEW_VALUES = 15
RARE = 2  # successes, failures, or clusters that hold any
FEW_CLUSTERS = 5
FEW_SCORES = 12
COCHRAN = 25
DOMINATED = 2 / 3  # effective clusters, as a share of all, below which a few large ones dominate
FEW = note("few", fewest=FEW_CLUSTERS, what="independent values")


def unmixed(means: np.ndarray) -> np.ndarray:
    """Return whether 1 or 2 of the clusters (last axis) hold a success, or a failure."""
    holding = np.minimum((means > 0).sum(-1), (means < 1).sum(-1))
    return (holding > 0) & (holding <= RARE)


def skewed(means: np.ndarray) -> np.ndarray:
    """Return whether there are too few values or clusters (last axis) for how skewed they are.

    Cochran's rule (1977, section 2.15): at least 25 times the squared skewness.
    """
    return skewness(means) ** 2 * COCHRAN > means.shape[-1]


def of_wilson(successes: int, n: int) -> Notes:
    """Return the warnings about Wilson's interval."""
    if n < FEW_VALUES:
        return note("few", fewest=FEW_VALUES, what="values")
    return note("rare", most=RARE) if 0 < min(successes, n - successes) <= RARE else Notes()


def of_clusters(means: np.ndarray, effective: float = np.inf, *, rate: bool = False, bounded: bool = False) -> Notes:
    """Return the warnings about a mean of clusters, given their effective number where runs are weighted equally.

    `rate` is that of 0/1 values by Wilson, `bounded` the mean of other values from 0 to 1 by Wilson; else it is by t.
    """
    if bounded and not rate and len(means) < FEW_SCORES:
        return note("few_scores", fewest=FEW_SCORES)
    if len(means) < FEW_CLUSTERS:
        return FEW
    if effective < DOMINATED * len(means):
        return note("dominated")
    if rate:
        return note("unmixed", most=RARE) if unmixed(means) else Notes()
    return note("skewed") if skewed(means) else Notes()


def within_tasks(sizes: np.ndarray) -> Notes:
    """Return the warnings about an estimate for repetitions of the same tasks."""
    repeated = int((sizes > 1).sum())
    if repeated == len(sizes):
        return Notes()
    few = note("few", fewest=FEW_CLUSTERS, what="tasks were run more than once")
    return few if repeated < FEW_CLUSTERS else note("singles")
