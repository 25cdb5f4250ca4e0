"""Warn of intervals that may cover less often than their confidence, given the size and shape of their data.

`docs/coverage.md` has the figures behind the bounds; the rules take whole arrays (leading axes are samples), since the
study there applies them to many samples at once.
"""

import numpy as np

from evalkit.stats._formulas import skewness

FEW_VALUES = 15
RARE = 2  # successes, failures, or clusters that hold any
FEW_CLUSTERS = 5
FEW_SCORES = 12
COCHRAN = 25

FEW_VALUES_WARNING = f"fewer than {FEW_VALUES} values: a rough interval"
RARE_WARNING = f"{RARE} or fewer successes or failures: may be too narrow, the exact interval is safer"
FEW_CLUSTERS_WARNING = f"fewer than {FEW_CLUSTERS} independent values: a rough interval"
FEW_SCORES_WARNING = f"fewer than {FEW_SCORES} independent values: may be too narrow"
UNMIXED_WARNING = f"{RARE} or fewer clusters with a success, or with a failure: may be too narrow"
SKEWED_WARNING = "few values for how skewed they are: may be too narrow"
DOMINATED = 2 / 3  # effective clusters, as a share of all, below which a few large ones dominate
DOMINATED_WARNING = "runs weigh, and a few large clusters hold most of them: may be too narrow"
SINGLES_WARNING = "tasks with a single run: their spread is taken from the others"
FEW_REPEATED_WARNING = f"fewer than {FEW_CLUSTERS} tasks were run more than once: a rough interval"


def unmixed(means: np.ndarray) -> np.ndarray:
    """Return whether 1 or 2 of the clusters (last axis) hold a success, or a failure."""
    holding = np.minimum((means > 0).sum(-1), (means < 1).sum(-1))
    return (holding > 0) & (holding <= RARE)


def skewed(means: np.ndarray) -> np.ndarray:
    """Return whether there are too few values or clusters (last axis) for how skewed they are.

    Cochran's rule (1977, section 2.15): at least 25 times the squared skewness.
    """
    return skewness(means) ** 2 * COCHRAN > means.shape[-1]


def of_wilson(successes: int, n: int) -> str:
    """Return the warnings about Wilson's interval."""
    rare = 0 < min(successes, n - successes) <= RARE
    return FEW_VALUES_WARNING if n < FEW_VALUES else RARE_WARNING if rare else ""


def of_clusters(means: np.ndarray, effective: float = np.inf, *, rate: bool = False, bounded: bool = False) -> str:
    """Return the warnings about a mean of clusters, given their effective number where runs are weighted equally.

    `rate` is that of 0/1 values by Wilson, `bounded` the mean of other values from 0 to 1 by Wilson; else it is by t.
    """
    fewest, few = (FEW_SCORES, FEW_SCORES_WARNING) if bounded and not rate else (FEW_CLUSTERS, FEW_CLUSTERS_WARNING)
    if len(means) < fewest:
        return few
    if effective < DOMINATED * len(means):
        return DOMINATED_WARNING
    if rate:
        return UNMIXED_WARNING if unmixed(means) else ""
    return SKEWED_WARNING if skewed(means) else ""


def within_tasks(sizes: np.ndarray) -> str:
    """Return the warnings about an estimate for repetitions of the same tasks."""
    repeated = int((sizes > 1).sum())
    if repeated == len(sizes):
        return ""
    return FEW_REPEATED_WARNING if repeated < FEW_CLUSTERS else SINGLES_WARNING
