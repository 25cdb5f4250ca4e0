"""How often do the intervals of evalkit.stats hold the truth, and how often do its tests err, at the sizes users have?

    python -m benchmarks.coverage --output docs/coverage.md    # a few minutes
    python -m benchmarks.coverage --quick                      # seconds, to the terminal

Coverage of counts of independent trials is exact: summed over all outcomes. The rest is simulated with a fixed seed.
"""

import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
from scipy import special, stats
from tabulate import tabulate

from evalkit.stats import _doubts as doubts
from evalkit.stats import _formulas as formulas
from evalkit.stats import (
    bootstrap_interval,
    mcnemar_exact,
    pairs_needed,
    proportion_interval,
    sign_flip_test,
    trend_test,
)

MARK = "<!-- what follows is written by benchmarks/coverage.py -->"
CONFIDENCE = 0.95
RATES = np.arange(1, 20) / 20
FINE = np.linspace(0.001, 0.999, 999)
SIZES = (5, 10, 15, 20, 30, 50, 100, 200)
CLUSTERS = (2, 3, 5, 8, 10, 20, 30, 50)
CORRELATIONS = (0, 0.1, 0.3, 0.6, 0.9)
SCORES = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "half zeros": (lambda rng, shape: (rng.random(shape) < 0.5) * rng.random(shape), 0.25),
    "four fifths zeros": (lambda rng, shape: (rng.random(shape) < 0.2) * rng.random(shape), 0.1),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
}


def exact_coverage(n: int, method: str, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each rate, the probability of holding it, and of missing it without a warning."""
    rows = [proportion_interval(k, n, method, CONFIDENCE) for k in range(n + 1)]
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)
    held = np.array([[row.low] for row in rows]) <= rates
    held &= rates <= np.array([[row.high] for row in rows])
    silent = np.array([[not row.warning] for row in rows])
    return (chance * held).sum(0), (chance * (~held & silent)).sum(0)


def draw_clusters(sizes: np.ndarray, rate: float, correlation: float, shape: tuple, rng: np.random.Generator):
    """Return successes per cluster, shape (*shape, C): beta-binomial with the given correlation within clusters."""
    spread = (1 - correlation) / correlation if correlation else 0
    size = (*shape, len(sizes))
    rates = rng.beta(rate * spread, (1 - rate) * spread, size) if correlation else np.full(size, rate)
    return rng.binomial(sizes, rates)


def cluster_coverage(sizes: np.ndarray, correlation: float, rate: float, samples: int, rng) -> tuple[float, ...]:
    """Return coverage of the clustered rate, its misses without a warning, and coverage of the plain interval."""
    successes = draw_clusters(sizes, rate, correlation, (samples,), rng)
    held = _holds(formulas.cluster_wilson(successes, sizes, CONFIDENCE), rate)
    silent = ~doubts.unmixed(successes, sizes) & (len(sizes) >= doubts.FEW_CLUSTERS)
    plain = _holds(formulas.wilson(successes.sum(1) / sizes.sum(), sizes.sum(), CONFIDENCE), rate)
    return held.mean(), (~held & silent).mean(), plain.mean()


def proportions(samples: int, rng: np.random.Generator) -> list[dict]:
    """Wilson and Clopper-Pearson; exact, summed over all outcomes."""
    rows = []
    for n in SIZES:
        for method in ("wilson", "exact"):
            held, _ = exact_coverage(n, method, RATES)
            fine, silent = exact_coverage(n, method, FINE)
            inner = (FINE >= 0.05) & (FINE <= 0.95)
            worst = FINE[inner][fine[inner].argmin()]
            rows.append(
                {
                    "n": n,
                    "method": method,
                    "mean over rates": _percent(held.mean()),
                    "worst, rate .05 to .95": f"{_percent(fine[inner].min())} at {worst:.3f}",
                    "worst at any rate": f"{_percent(fine.min())} at {FINE[fine.argmin()]:.3f}",
                    "worst miss unwarned": _percent(silent.max()),
                }
            )
    return rows


def clustered(samples: int, rng: np.random.Generator) -> list[dict]:
    """Wilson on the effective n; beta-binomial samples with correlations of 0, .1, .3, .6 and .9 within clusters."""
    rows = []
    for count in CLUSTERS:
        for size in (1, 2, 4, 10, "1, 2, 3, 6"):
            sizes = np.resize([1, 2, 3, 6], count) if isinstance(size, str) else np.full(count, size)
            if not 5 <= sizes.sum() <= 200:
                continue
            used = CORRELATIONS if size != 1 else (0,)
            found = np.array([[cluster_coverage(sizes, c, p, samples, rng) for p in RATES] for c in used])
            means, plain = found[:, :, 0].mean(1), found[:, :, 2].mean(1)
            c, p = np.unravel_index(found[:, :, 0].argmin(), found.shape[:2])
            rows.append(
                {
                    "clusters": count,
                    "values in each": size,
                    "n": sizes.sum(),
                    "mean over rates": _percent(means.mean()),
                    "lowest to highest, by correlation": f"{_percent(means.min())} to {_percent(means.max())}",
                    "worst": f"{_percent(found[c, p, 0])} at rate {RATES[p]:.2f}, correlation {used[c]}",
                    "worst miss unwarned": _percent(found[:, :, 1].max()),
                    "plain Wilson": f"{_percent(plain.min())} to {_percent(plain.max())}",
                }
            )
    return rows


def means(samples: int, rng: np.random.Generator) -> list[dict]:
    """Student's t over values, and over clusters of four with half of the variance between clusters."""
    rows = []
    for n in SIZES:
        for name, (draw, mean) in SCORES.items():
            values, ones = draw(rng, (samples, n)), np.ones(n, dtype=int)
            between, within = draw(rng, (samples, n, 1)), draw(rng, (samples, n, 4))
            row = {"n or clusters": n, "scores": name}
            for kind, totals, sizes in (("t", values, ones), ("cluster t", (between + within).sum(2) / 2, 4 * ones)):
                low, high = formulas.cluster_t(totals, sizes, CONFIDENCE)
                exists = high > low  # where all values are equal there is no interval
                held = _holds((low, high), mean)
                silent = ~doubts.skewed(totals, sizes) & (n >= doubts.FEW_CLUSTERS)
                row[kind] = _percent(held[exists].mean())
                row[f"{kind}: miss unwarned"] = _percent((~held & exists & silent).mean())
            rows.append(row)
    return rows


def differences(samples: int, rng: np.random.Generator, sizes: tuple[int, ...] = SIZES) -> list[dict]:
    """Two models on tasks that share their difficulty: the interval, and how often the test errs where both are equal."""
    rows = []
    pairs = [(a, b) for a in (0.05, 0.2, 0.5, 0.8, 0.95) for b in (0.05, 0.2, 0.5, 0.8, 0.95) if a >= b]
    for n in sizes:
        for runs in (1, 3):
            held, errors = [], []
            for a, b in pairs:
                outcomes = _paired(n, runs, a, b, samples, rng)
                held.append(_holds(_paired_interval(outcomes[0] - outcomes[1], runs), a - b).mean())
                if a == b:
                    test = mcnemar_exact if runs == 1 else sign_flip_test
                    few = range(min(samples, 400))
                    errors.append(np.mean([test(outcomes[0][i], outcomes[1][i]).p_value <= 0.05 for i in few]))
            worst = pairs[int(np.argmin(held))]
            rows.append(
                {
                    "tasks": n,
                    "runs of each": runs,
                    "interval": "Bonett-Price" if runs == 1 else "paired t",
                    "mean coverage": _percent(np.mean(held)),
                    "worst": f"{_percent(min(held))} at rates {worst[0]}, {worst[1]}",
                    "test": "McNemar exact" if runs == 1 else "sign flips",
                    "errors of 5 % allowed": f"{_percent(np.mean(errors))}, at most {_percent(max(errors))}",
                }
            )
    return rows


def trends(samples: int, rng: np.random.Generator) -> list[dict]:
    """Three levels, clusters of one level each: errors without a trend, and power for rates .8, .5 and .2."""
    rows = []
    for count in (6, 9, 15, 30, 60):
        for size, correlation in ((1, 0), (4, 0), (4, 0.3), (4, 0.7)):
            found = {}
            for name, rates in {"errors, rate .5": (0.5,) * 3, "errors, rate .15": (0.15,) * 3}.items():
                found[name] = _trend_rejections(count, size, correlation, rates, samples // 4, rng)
            found["power"] = _trend_rejections(count, size, correlation, (0.8, 0.5, 0.2), samples // 4, rng)
            rows.append({"clusters": count, "values in each": size, "correlation": correlation, **found})
    return rows


def bootstraps(samples: int, rng: np.random.Generator) -> list[dict]:
    """BCa, 1000 resamples; exponential values."""
    rows = []
    for n in (10, 20, 50, 100):
        for name, statistic, truth in (("mean", np.mean, 1.0), ("median", np.median, np.log(2))):
            held = []
            for _ in range(samples // 10):
                found = bootstrap_interval(rng.exponential(size=n), statistic, rng=rng, n_resamples=1_000)
                held.append(found.low <= truth <= found.high)
            rows.append({"n": n, "statistic": name, "coverage": _percent(np.mean(held))})
    return rows


def powers(samples: int, rng: np.random.Generator) -> list[dict]:
    """McNemar's exact test on as many tasks as `pairs_needed` says for 80 % power; exact, summed over all outcomes."""
    rows = []
    for comparisons in (1, 6, 66):
        for only_a, only_b in ((0.9, 0), (0.6, 0.05), (0.4, 0.1), (0.3, 0.1), (0.2, 0.05), (0.15, 0), (0.3, 0.2)):
            gap = only_a - only_b
            spread = np.sqrt(only_a + only_b - gap**2)
            by_t, binary = (pairs_needed(gap, spread, comparisons=comparisons, binary=b) for b in (False, True))
            rows.append(
                {
                    "comparisons": comparisons,
                    "only A, only B solves": f"{only_a}, {only_b}",
                    "tasks by t": by_t,
                    "their power": _percent(_mcnemar_power(int(by_t), only_a, only_b, 0.05 / comparisons)),
                    "tasks, binary=True": binary,
                    "power": _percent(_mcnemar_power(int(binary), only_a, only_b, 0.05 / comparisons)),
                }
            )
    return rows


STUDIES: tuple[tuple[str, Callable], ...] = (
    ("Rates of independent trials", proportions),
    ("Rates of clusters", clustered),
    ("Means", means),
    ("Paired differences", differences),
    ("Trends", trends),
    ("Bootstrap", bootstraps),
    ("Power", powers),
)


def _holds(interval: tuple[np.ndarray, np.ndarray], truth: float) -> np.ndarray:
    return (interval[0] <= truth + 1e-12) & (truth - 1e-12 <= interval[1])


def _paired(n: int, runs: int, a: float, b: float, samples: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return mean outcomes of two models on n tasks whose difficulties correlate by .7."""
    base = rng.standard_normal((samples, n))
    out = []
    for rate in (a, b):
        level = special.ndtr(np.sqrt(0.7) * base + np.sqrt(0.3) * rng.standard_normal((samples, n)))
        out.append(rng.binomial(runs, stats.beta.ppf(level, rate * 7 / 3, (1 - rate) * 7 / 3)) / runs)
    return out


def _paired_interval(gaps: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Do what `paired_difference` does, for all samples at once."""
    cautious = formulas.bonett_price(gaps, CONFIDENCE)
    if runs == 1:
        return cautious
    by_t = formulas.cluster_t(gaps, np.ones(gaps.shape[1], dtype=int), CONFIDENCE)
    equal = np.ptp(gaps, axis=1) == 0
    return tuple(np.where(equal, c, t) for c, t in zip(cautious, by_t, strict=True))


def _trend_rejections(count: int, size: int, correlation: float, rates: tuple, samples: int, rng) -> str:
    scores, p_values = np.resize([0, 1, 2], count), []
    for _ in range(samples):
        successes = [draw_clusters(np.array([size]), rates[s], correlation, (), rng)[0] for s in scores]
        p_values.append(trend_test(successes, np.full(count, size), scores, np.arange(count)).p_value)
    return _percent(np.mean(np.array(p_values) <= 0.05))


def _mcnemar_power(n: int, only_a: float, only_b: float, level: float) -> float:
    total, share = 0.0, only_a + only_b
    for differing in range(n + 1):
        wins = np.arange(differing + 1)
        p_value = np.minimum(1, 2 * special.bdtr(np.minimum(wins, differing - wins), differing, 0.5))
        decided = stats.binom.pmf(wins, differing, only_a / share)[p_value <= level].sum()
        total += stats.binom.pmf(differing, n, share) * decided
    return total


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


@click.command(help=__doc__.splitlines()[0])
@click.option("--quick", is_flag=True, help="A tenth of the samples.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help=f"A file: all after {MARK} is replaced."
)
def main(quick: bool, seed: int, output: Path | None) -> None:
    """Run all studies and write their tables."""
    samples, start, parts = 200 if quick else 2_000, time.perf_counter(), [MARK]
    for title, study in STUDIES:
        click.echo(f"{title} ...", err=True)
        table = tabulate(study(samples, np.random.default_rng(seed)), "keys", "github", disable_numparse=True)
        parts.append(f"## {title}\n\n{study.__doc__}\n\n{table}")
    minutes = (time.perf_counter() - start) / 60
    parts.append(
        f"{samples} samples per rate and correlation (a fifth for the paired tests, a quarter for trends, a tenth for the "
        f"bootstrap); seed {seed}; {minutes:.1f} minutes on one "
        f"core; Python {sys.version.split()[0]}, numpy {version('numpy')}, scipy {version('scipy')}.\n"
    )
    text = "\n\n".join(parts)
    if output is None:
        click.echo(text)
    else:
        before = output.read_text(encoding="utf-8").split(MARK)[0] if output.exists() else ""
        output.write_text(before + text, encoding="utf-8")


if __name__ == "__main__":
    main()
