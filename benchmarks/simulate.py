"""Draw samples with known true values, and measure how often intervals cover them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import special, stats

from evalkit.stats import intervals, proportion_interval
from evalkit.stats.intervals import FEW_CLUSTERS, FEW_SCORES

RATES = np.arange(1, 20) / 20
CORRELATIONS = (0, 0.1, 0.3, 0.6, 0.9)

Draw = Callable[[np.random.Generator, float, tuple], np.ndarray]


def draw_clusters(sizes: np.ndarray, rate: float, correlation: float, shape: tuple, rng: np.random.Generator):
    """Draw successes per cluster, shape (*shape, C), from a beta-binomial with this correlation within clusters."""
    spread = (1 - correlation) / correlation if correlation else 0
    size = (*shape, len(sizes))
    rates = rng.beta(rate * spread, (1 - rate) * spread, size) if correlation else np.full(size, rate)
    return rng.binomial(sizes, rates)


def draw_models(n: int, runs: int, rates: tuple, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw mean outcomes, shape (models, samples, n), on n tasks whose difficulties correlate by .7 between models."""
    base, out = rng.standard_normal((samples, n)), []
    for rate in rates:
        level = special.ndtr(np.sqrt(0.7) * base + np.sqrt(0.3) * rng.standard_normal((samples, n)))
        out.append(rng.binomial(runs, stats.beta.ppf(level, rate * 7 / 3, (1 - rate) * 7 / 3)) / runs)
    return np.array(out)


def sizes_of(name: str, count: int) -> np.ndarray:
    """Return the sizes of `count` clusters for the name of a pattern."""
    if name == "20, 1, ..., 1":
        return np.array([20] + [1] * (count - 1))
    pattern = [2**i for i in range(6)] if name == "1, 2, 4, ..., 32" else [int(part) for part in name.split(",")]
    return np.resize(pattern, count)


def _beta(spread: float) -> Draw:
    return lambda rng, mean, shape: rng.beta(mean * spread, (1 - mean) * spread, shape)


def _zeros_and_uniform(rng: np.random.Generator, mean: float, shape: tuple) -> np.ndarray:
    if mean > 0.5:
        return 1 - _zeros_and_uniform(rng, 1 - mean, shape)
    return (rng.random(shape) < 2 * mean) * rng.random(shape)


def _zeros_and_high(rng: np.random.Generator, mean: float, shape: tuple) -> np.ndarray:
    if mean > 0.8:
        return 1 - _zeros_and_high(rng, 1 - mean, shape)
    return (rng.random(shape) < mean / 0.8) * rng.beta(8, 2, shape)


# generators of scores from 0 to 1 with a given mean
SCORES: dict[str, Draw] = {
    "skewed": _beta(2),
    "narrow": _beta(10),
    "zeros and uniform": _zeros_and_uniform,
    "zeros and high": _zeros_and_high,
}
# generators of unbounded values, with the true means
VALUES = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "counts, half of them 0": (lambda rng, shape: rng.poisson(rng.gamma(0.5, 4.0, shape)).astype(float), 2.0),
    "log-normal, skewness 1.75": (lambda rng, shape: np.exp(0.5 * rng.normal(size=shape)), np.exp(0.125)),
    "log-normal, skewness 6.2": (lambda rng, shape: np.exp(rng.normal(size=shape)), np.exp(0.5)),
}


def holds(interval: tuple[np.ndarray, np.ndarray], truth: np.ndarray | float) -> np.ndarray:
    """Return whether intervals cover the truth."""
    return (interval[0] <= truth + 1e-12) & (truth - 1e-12 <= interval[1])


def exact_coverage(n: int, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each rate, the probability that the interval covers it, and that it misses it without a warning."""
    rows = [proportion_interval(k, n) for k in range(n + 1)]
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)
    held = np.array([[row.low] for row in rows]) <= rates
    held &= rates <= np.array([[row.high] for row in rows])
    silent = np.array([[not row.warning] for row in rows])
    return (chance * held).sum(0), (chance * (~held & silent)).sum(0)


def cluster_coverage(sizes: np.ndarray, correlation: float, rate: float, samples: int, rng) -> np.ndarray:
    """Return the coverage of a rate of clusters, the share of misses without a warning, and the coverage of Wilson."""
    successes = draw_clusters(sizes, rate, correlation, (samples,), rng)
    means = successes / sizes
    held = holds(intervals.bounded(means, sizes, True), rate)
    silent = ~intervals.unmixed(means) & (len(sizes) >= FEW_CLUSTERS)
    plain = holds(intervals.wilson(successes.sum(1) / sizes.sum(), sizes.sum()), rate)
    return np.array([held.mean(), (~held & silent).mean(), plain.mean()])


def score_coverage(name: str, mean: float, count: int, runs: int, samples: int, rng) -> np.ndarray:
    """Return the coverage of a mean of bounded scores, the share of misses without a warning, and the coverage of t."""
    tasks = np.clip(SCORES[name](rng, mean, (samples, count)), 1e-9, 1 - 1e-9)
    values = (
        tasks
        if runs == 1
        else rng.beta(3 * tasks[..., None], 3 - 3 * tasks[..., None], (samples, count, runs)).mean(-1)
    )
    held = holds(intervals.bounded(values, np.full(count, runs), False), mean)
    silent = ~intervals.skewed(values) & (count >= FEW_SCORES)
    mid, half = values.mean(1), intervals.quantile(freedom=count - 1) * np.sqrt(intervals.variance_of_mean(values))
    return np.array([held.mean(), (~held & silent).mean(), holds((mid - half, mid + half), mean).mean()])


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal."""
    return f"{100 * share:.1f}"


def publish(text: str, mark: str, output: Path | None) -> None:
    """Print a text that begins with a mark, or write it to a file, replacing everything from the mark on."""
    if output is None:
        print(text)
        return
    before = output.read_text(encoding="utf-8").split(mark)[0] if output.exists() else ""
    output.write_text(before + text, encoding="utf-8")
