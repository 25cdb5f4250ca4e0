"""Which intervals may cover less often than they promise, by the size and shape of their data.

`docs/coverage.md` has the figures behind the bounds; the rules take whole arrays (leading axes are samples), since the
study there applies them to many samples at once.
"""

import numpy as np

FEW_VALUES = 15
RARE = 2  # successes, failures, or clusters that hold any
FEW_CLUSTERS = 5
COCHRAN = 25

FEW_VALUES_SAID = f"fewer than {FEW_VALUES} values: a rough interval"
RARE_SAID = f"{RARE} or fewer successes or failures: may be too narrow, the exact interval is safer"
FEW_CLUSTERS_SAID = f"fewer than {FEW_CLUSTERS} independent values: a rough interval"
UNMIXED_SAID = f"{RARE} or fewer clusters with a success, or with a failure: may be too narrow"
SKEWED_SAID = "few values for how skewed they are: may be too narrow"


def rare(successes: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Tell whether there are 1 or 2 successes, or failures."""
    fewer = np.minimum(successes, n - successes)
    return (fewer > 0) & (fewer <= RARE)


def unmixed(successes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Tell whether 1 or 2 of the clusters (last axis) hold a success, or a failure."""
    holding = np.minimum((successes > 0).sum(-1), (successes < sizes).sum(-1))
    return (holding > 0) & (holding <= RARE)


def skewed(totals: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Tell whether there are too few clusters (last axis) for how skewed they are.

    Cochran's rule (1977, section 2.15): at least 25 times the squared skewness.
    """
    residuals = totals - (totals.sum(-1) / sizes.sum())[..., None] * sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = (residuals**3).mean(-1) / (residuals**2).mean(-1) ** 1.5
    return COCHRAN * skewness**2 > sizes.shape[-1]


def of_wilson(successes: int, n: int) -> str:
    """Say what is doubtful about Wilson's interval."""
    return FEW_VALUES_SAID if n < FEW_VALUES else RARE_SAID if rare(successes, n) else ""


def of_cluster_wilson(successes: np.ndarray, sizes: np.ndarray) -> str:
    """Say what is doubtful about the rate of clusters."""
    return FEW_CLUSTERS_SAID if len(sizes) < FEW_CLUSTERS else UNMIXED_SAID if unmixed(successes, sizes) else ""


def of_t(totals: np.ndarray, sizes: np.ndarray) -> str:
    """Say what is doubtful about the mean of values or clusters."""
    return FEW_CLUSTERS_SAID if len(sizes) < FEW_CLUSTERS else SKEWED_SAID if skewed(totals, sizes) else ""
