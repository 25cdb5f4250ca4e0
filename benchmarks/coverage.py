"""How often do the intervals of evalkit.stats hold the truth, and how often do its tests err, at the sizes users have?

    python -m benchmarks.coverage --output docs/coverage.md    # a few minutes
    python -m benchmarks.coverage --quick                      # seconds, to the terminal

Coverage of counts of independent trials is exact: summed over all outcomes. The rest is simulated with a fixed seed.
"""

import inspect
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
from scipy import stats
from tabulate import tabulate

from benchmarks.error_rates import powers, trends
from benchmarks.simulate import draw_clusters, draw_pairs, percent
from evalkit.stats import _doubts as doubts
from evalkit.stats import _formulas as formulas
from evalkit.stats import (
    bootstrap_interval,
    mcnemar_exact,
    proportion_interval,
    sign_flip_test,
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
                    "mean over rates": percent(held.mean()),
                    "worst, rate .05 to .95": f"{percent(fine[inner].min())} at {worst:.3f}",
                    "worst at any rate": f"{percent(fine.min())} at {FINE[fine.argmin()]:.3f}",
                    "worst miss unwarned": percent(silent.max()),
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
                    "mean over rates": percent(means.mean()),
                    "lowest to highest, by correlation": f"{percent(means.min())} to {percent(means.max())}",
                    "worst": f"{percent(found[c, p, 0])} at rate {RATES[p]:.2f}, correlation {used[c]}",
                    "worst miss unwarned": percent(found[:, :, 1].max()),
                    "plain Wilson": f"{percent(plain.min())} to {percent(plain.max())}",
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
                row[kind] = percent(held[exists].mean())
                row[f"{kind}: miss unwarned"] = percent((~held & exists & silent).mean())
            rows.append(row)
    return rows


def differences(samples: int, rng: np.random.Generator, sizes: tuple[int, ...] = SIZES) -> list[dict]:
    """Two models on tasks of shared difficulty: the interval, and how often the test errs where both are equal."""
    rows = []
    pairs = [(a, b) for a in (0.05, 0.2, 0.5, 0.8, 0.95) for b in (0.05, 0.2, 0.5, 0.8, 0.95) if a >= b]
    for n in sizes:
        for runs in (1, 3):
            held, errors = [], []
            for a, b in pairs:
                outcomes = draw_pairs(n, runs, a, b, samples, rng)
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
                    "mean coverage": percent(np.mean(held)),
                    "worst": f"{percent(min(held))} at rates {worst[0]}, {worst[1]}",
                    "test": "McNemar exact" if runs == 1 else "sign flips",
                    "errors of 5 % allowed": f"{percent(np.mean(errors))}, at most {percent(max(errors))}",
                }
            )
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
            rows.append({"n": n, "statistic": name, "coverage": percent(np.mean(held))})
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


def _paired_interval(gaps: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Do what `paired_difference` does, for all samples at once."""
    cautious = formulas.bonett_price(gaps, CONFIDENCE)
    if runs == 1:
        return cautious
    by_t = formulas.cluster_t(gaps, np.ones(gaps.shape[1], dtype=int), CONFIDENCE)
    equal = np.ptp(gaps, axis=1) == 0
    return tuple(np.where(equal, c, t) for c, t in zip(cautious, by_t, strict=True))


@click.command(help=__doc__.splitlines()[0])
@click.option("--quick", is_flag=True, help="A tenth of the samples.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help=f"A file: all after {MARK} is replaced."
)
def main(quick: bool, seed: int, output: Path | None) -> None:
    """Run all studies and write their tables."""
    samples, start, parts = 200 if quick else 2_000, time.process_time(), [MARK]
    for title, study in STUDIES:
        click.echo(f"{title} ...", err=True)
        table = tabulate(study(samples, np.random.default_rng(seed)), "keys", "github", disable_numparse=True)
        parts.append(f"## {title}\n\n{inspect.getdoc(study)}\n\n{table}")
    minutes = (time.process_time() - start) / 60
    parts.append(
        f"{samples} samples per rate and correlation (a fifth for the paired tests, a quarter for trends, a tenth for "
        f"the bootstrap); seed {seed}; {minutes:.1f} minutes of processor time; "
        f"Python {sys.version.split()[0]}, numpy {version('numpy')}, scipy {version('scipy')}.\n"
    )
    text = "\n\n".join(parts)
    if output is None:
        click.echo(text)
    else:
        before = output.read_text(encoding="utf-8").split(MARK)[0] if output.exists() else ""
        output.write_text(before + text, encoding="utf-8")


if __name__ == "__main__":
    main()
