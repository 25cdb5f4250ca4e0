"""Samples with a known truth, for the studies of coverage and error rates."""

import numpy as np
from scipy import special, stats


def draw_clusters(sizes: np.ndarray, rate: float, correlation: float, shape: tuple, rng: np.random.Generator):
    """Return successes per cluster, shape (*shape, C): beta-binomial with the given correlation within clusters."""
    spread = (1 - correlation) / correlation if correlation else 0
    size = (*shape, len(sizes))
    rates = rng.beta(rate * spread, (1 - rate) * spread, size) if correlation else np.full(size, rate)
    return rng.binomial(sizes, rates)


def draw_pairs(n: int, runs: int, a: float, b: float, samples: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return mean outcomes of two models on n tasks whose difficulties correlate by .7."""
    base = rng.standard_normal((samples, n))
    out = []
    for rate in (a, b):
        level = special.ndtr(np.sqrt(0.7) * base + np.sqrt(0.3) * rng.standard_normal((samples, n)))
        out.append(rng.binomial(runs, stats.beta.ppf(level, rate * 7 / 3, (1 - rate) * 7 / 3)) / runs)
    return out


def percent(share: float) -> str:
    """Write a share as a percentage with one decimal."""
    return f"{100 * share:.1f}"
