"""Coverage of the intervals of single estimates: studies of benchmarks/coverage.py."""

import numpy as np
from scipy import special, stats

from benchmarks.simulate import (
    CORRELATIONS,
    PLAYERS,
    RATES,
    SCORES,
    VALUES,
    crafter_score,
    draw_clusters,
    draw_tasks,
    holds,
    percent,
    shift_rates,
    sizes_of,
    spread_of,
    within_variances,
)
from evalkit.stats import _formulas as formulas
from evalkit.stats import _warnings as warnings
from evalkit.stats import jackknife_interval, pass_at_k, pass_hat_k, proportion_interval
from evalkit.stats.resampling import bootstrap_interval

CONFIDENCE = 0.95
FINE = np.linspace(0.001, 0.999, 999)
VALUES_OF = (5, 8, 12, 20, 30, 50, 100, 200)
CLUSTERS = (3, 5, 8, 12, 20, 50, 100)
SIZES = ("1", "2", "4", "8", "20, 1, ..., 1", "1, 2, 4, ..., 32")


def exact_coverage(n: int, method: str, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each rate, the probability of holding it, and of missing it without a warning."""
    rows = [proportion_interval(k, n, method, CONFIDENCE) for k in range(n + 1)]
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)
    held = np.array([[row.low] for row in rows]) <= rates
    held &= rates <= np.array([[row.high] for row in rows])
    silent = np.array([[not row.warning] for row in rows])
    return (chance * held).sum(0), (chance * (~held & silent)).sum(0)


def proportions(samples: int, rng: np.random.Generator, ns: tuple = VALUES_OF) -> list[dict]:
    """Wilson and Clopper-Pearson; exact, summed over all outcomes."""
    rows = []
    for n in ns:
        for method in ("wilson", "exact"):
            held, _ = exact_coverage(n, method, RATES)
            fine, silent = exact_coverage(n, method, FINE)
            inner = (FINE >= 0.05) & (FINE <= 0.95)
            low = fine[inner].argmin()
            rows.append(
                {
                    "n": n,
                    "method": method,
                    "mean over rates": percent(held.mean()),
                    "worst, rate .05 to .95": f"{percent(fine[inner].min())} at {FINE[inner][low]:.3f}",
                    "worst at any rate": f"{percent(fine.min())} at {FINE[fine.argmin()]:.3f}",
                    "worst miss unwarned": percent(silent.max()),
                }
            )
    return rows


def cluster_coverage(sizes: np.ndarray, correlation: float, rate: float, samples: int, rng) -> np.ndarray:
    """Return coverage of the rate of clusters, its unwarned misses, coverage where runs weigh, and of plain Wilson."""
    successes = draw_clusters(sizes, rate, correlation, (samples,), rng)
    means = successes / sizes
    held = holds(formulas.bounded(means, sizes, CONFIDENCE, True), rate)
    silent = ~warnings.unmixed(means) & (len(sizes) >= warnings.FEW_CLUSTERS)
    by_runs = holds(formulas.bounded(means, sizes, CONFIDENCE, True, "runs"), rate)
    plain = holds(formulas.wilson(successes.sum(1) / sizes.sum(), sizes.sum(), CONFIDENCE), rate)
    return np.array([held.mean(), (~held & silent).mean(), by_runs.mean(), plain.mean()])


def clustered(samples: int, rng: np.random.Generator, counts: tuple = CLUSTERS, sizes: tuple = SIZES) -> list[dict]:
    """Wilson on the effective n, each cluster of the same weight, for new clusters.

    Beta-binomial samples with correlations of 0, .1, .3, .6 and .9 within clusters. Beside it the same where runs weigh
    (`weights="runs"`), and plain Wilson, which takes all runs as independent.
    """
    rows = []
    for count in counts:
        for name in sizes:
            used = CORRELATIONS if name != "1" else (0,)
            of = sizes_of(name, count)
            coverages = np.array([[cluster_coverage(of, c, p, samples, rng) for p in RATES] for c in used])
            means = coverages.mean(axis=1)
            c, p = np.unravel_index(coverages[:, :, 0].argmin(), coverages.shape[:2])
            rows.append(
                {
                    "clusters": count,
                    "values in each": name,
                    "mean over rates": percent(means[:, 0].mean()),
                    "lowest to highest, by correlation": spread_of(means[:, 0]),
                    "worst": f"{percent(coverages[c, p, 0])} at rate {RATES[p]:.2f}, correlation {used[c]}",
                    "worst miss unwarned": percent(coverages[:, :, 1].max()),
                    "runs weigh": spread_of(means[:, 2]),
                    "plain Wilson": spread_of(means[:, 3]),
                }
            )
    return rows


def same_tasks(
    samples: int, rng: np.random.Generator, counts: tuple = CLUSTERS, sizes=(*SIZES[1:4], "1,2,4", SIZES[5])
):
    """Rates for repetitions of the same tasks, `target="these tasks"`: the truth is the mean rate of the tasks drawn.

    Tasks as above. Where some tasks have a single run the interval carries a warning.
    """
    rows = []
    for count in counts:
        for name in sizes:
            of, means = sizes_of(name, count), []
            for correlation in CORRELATIONS:
                held = []
                for rate in RATES:
                    successes, rates = draw_tasks(of, rate, correlation, (samples,), rng)
                    variances = within_variances(successes, of)
                    interval = formulas.bounded_within(successes / of, variances, of, CONFIDENCE)
                    held.append(holds(interval, rates.mean(1)).mean())
                means.append(np.mean(held))
            rows.append(
                {
                    "tasks": count,
                    "runs of each": name,
                    "mean over rates": percent(np.mean(means)),
                    "lowest to highest, by correlation": spread_of(np.array(means)),
                    "warned": "yes" if warnings.within_tasks(of) else "no",
                }
            )
    return rows


def score_coverage(name: str, mean: float, count: int, runs: int, samples: int, rng) -> np.ndarray:
    """Return coverage of the mean of bounded scores, its misses without a warning, and coverage of t."""
    tasks = np.clip(SCORES[name](rng, mean, (samples, count)), 1e-9, 1 - 1e-9)
    values = (
        tasks
        if runs == 1
        else rng.beta(3 * tasks[..., None], 3 - 3 * tasks[..., None], (samples, count, runs)).mean(-1)
    )
    held = holds(formulas.bounded(values, np.full(count, runs), CONFIDENCE, False), mean)
    silent = ~warnings.skewed(values) & (count >= warnings.FEW_SCORES)
    mid, half = values.mean(1), formulas.student(CONFIDENCE, count - 1) * np.sqrt(formulas.variance_of_mean(values))
    return np.array([held.mean(), (~held & silent).mean(), holds((mid - half, mid + half), mean).mean()])


def scores(samples: int, rng: np.random.Generator, counts: tuple = (5, 8, 12, 20, 50, 100)) -> list[dict]:
    """Means of scores from 0 to 1 by Wilson on the effective n, over means from .05 to .95; beside it Student's t.

    Skewed: beta with parameters that add up to 2; narrow: to 10. Zeros and uniform: zeros and values even over 0 to 1,
    mirrored above a mean of .5. Zeros and high: zeros and values around .8, mirrored above .8. Four runs vary around
    the score of their task.
    """
    rows = []
    for count in counts:
        for name in SCORES:
            for runs in (1, 4):
                coverages = np.array([score_coverage(name, mean, count, runs, samples, rng) for mean in RATES])
                rows.append(
                    {
                        "clusters": count,
                        "values in each": runs,
                        "scores": name,
                        "mean over means": percent(coverages[:, 0].mean()),
                        "worst": f"{percent(coverages[:, 0].min())} at {RATES[coverages[:, 0].argmin()]:.2f}",
                        "worst miss unwarned": percent(coverages[:, 1].max()),
                        "t": percent(coverages[:, 2].mean()),
                    }
                )
    return rows


def means(samples: int, rng: np.random.Generator, counts: tuple = VALUES_OF) -> list[dict]:
    """Means of values without bounds: t with Hall's correction, beside plain t.

    One value in each cluster; below, normal values in clusters of unequal sizes with a correlation of .3.
    """
    rows = []
    for count in counts:
        for name, (draw, mean) in VALUES.items():
            values = draw(rng, (5 * samples, count))
            row = {"n or clusters": count, "values": name}
            rows.append(row | _mean_coverage(values, mean, count))
        for name in SIZES[4:]:
            of = sizes_of(name, count)
            shape = (5 * samples, count)
            values = np.sqrt(0.3) * rng.normal(size=shape) + np.sqrt(0.7 / of) * rng.normal(size=shape)
            row = {"n or clusters": count, "values": f"normal, sizes {name}"}
            rows.append(row | _mean_coverage(values, 0.0, count))
    return rows


def _mean_coverage(values: np.ndarray, mean: float, count: int) -> dict:
    low, high = formulas.corrected_t(values, CONFIDENCE)
    exists = high > low  # where all values are equal there is no interval
    held = holds((low, high), mean)
    silent = ~warnings.skewed(values) & (count >= warnings.FEW_CLUSTERS)
    mid, half = values.mean(1), formulas.student(CONFIDENCE, count - 1) * np.sqrt(formulas.variance_of_mean(values))
    wider = (high - low)[exists] / (2 * half[exists])
    return {
        "coverage": percent(held[exists].mean()),
        "miss unwarned": percent((~held & exists & silent).mean()),
        "plain t": percent(holds((mid - half, mid + half), mean)[exists].mean()),
        "median width over t": f"{np.median(wider):.2f}",
    }


def pass_k(samples: int, rng: np.random.Generator, counts: tuple = (5, 12, 30, 100)) -> list[dict]:
    """pass@k and pass^k, the mean over tasks as a bounded score; beta-binomial tasks, rates .05 to .95."""
    rows = []
    for count in counts:
        for attempts, k in ((4, 2), (4, 4), (8, 2), (8, 4)):
            coverages = []
            for correlation in CORRELATIONS[1:]:
                spread = (1 - correlation) / correlation
                for rate in RATES:
                    a, b = rate * spread, (1 - rate) * spread
                    passed = draw_clusters(np.full(count, attempts), rate, correlation, (samples,), rng)
                    truth = 1 - np.exp(special.betaln(a, b + k) - special.betaln(a, b))
                    all_k = np.exp(special.betaln(a + k, b) - special.betaln(a, b))
                    held = []
                    for formula, true in ((pass_at_k, truth), (pass_hat_k, all_k)):
                        values = formula(np.full(passed.size, attempts), passed.ravel(), k).reshape(passed.shape)
                        interval = formulas.bounded(values, np.ones(count, dtype=int), CONFIDENCE, False)
                        held.append(holds(interval, true).mean())
                    coverages.append(held)
            by_correlation = np.reshape(coverages, (len(CORRELATIONS) - 1, len(RATES), 2)).mean(axis=1)
            rows.append(
                {
                    "tasks": count,
                    "attempts": attempts,
                    "k": k,
                    "pass@k": percent(by_correlation[:, 0].mean()),
                    "by correlation": spread_of(by_correlation[:, 0]),
                    "pass^k": percent(by_correlation[:, 1].mean()),
                    "by correlation ": spread_of(by_correlation[:, 1]),
                    "warned": "yes" if count < warnings.FEW_SCORES else "no",
                }
            )
    return rows


def crafter_seeds(samples: int, rng: np.random.Generator) -> list[dict]:
    """Crafter's official score, the mean over seeds, by t over seeds; seeds vary by .3 and .8 on the logistic scale.

    The truth is the mean score of ever more seeds of as many episodes. One seed tells nothing of its spread over seeds:
    there is no interval.
    """
    rows = []
    for player, rates in PLAYERS.items():
        for episodes in (10, 100):
            row = {"player": player, "episodes": episodes}
            pool = []
            for shift in (0.3, 0.8):
                moved = shift_rates(rates, shift * rng.normal(size=(200 * samples, 22)))
                pool.append(crafter_score(rng.binomial(episodes, moved) / episodes))
            for seeds in (2, 3, 5, 10, 20):
                held = []
                for drawn in pool:
                    groups = drawn[: len(drawn) // seeds * seeds].reshape(-1, seeds)
                    held.append(holds(formulas.corrected_t(groups, CONFIDENCE), drawn.mean()).mean())
                row[f"{seeds} seeds"] = spread_of(np.array(held))
            rows.append(row)
    return rows


def crafter_pooled(samples: int, rng: np.random.Generator) -> list[dict]:
    """Crafter's formula on pooled episodes, clustered by task: the jackknife of its logarithm, beside BCa.

    The truth is the score of the rates that ever more episodes would have.
    """
    rows = []
    for player, rates in PLAYERS.items():
        for tasks, episodes in ((5, 4), (12, 4), (30, 1), (30, 4), (60, 4)):
            shifts = [0.8 * rng.normal(size=(20_000, 1)), 0.5 * rng.normal(size=(20_000, 22))]
            truth = crafter_score(shift_rates(rates, sum(shifts)).mean(0))
            held = []
            for _ in range(max(samples // 10, 20)):
                shift = 0.8 * rng.normal(size=(tasks, 1)) + 0.5 * rng.normal(size=(tasks, 22))
                unlocked = rng.random((episodes, tasks, 22)) < shift_rates(rates, shift)
                values, codes = unlocked.reshape(-1, 22), np.tile(np.arange(tasks), episodes)
                log = jackknife_interval(values, lambda rows: np.log1p(100 * rows.mean(axis=0)).mean(), codes)
                bca = bootstrap_interval(values, lambda x: crafter_score(x.mean(axis=0)), codes, rng, n_resamples=300)
                held.append((holds((np.expm1(log.low), np.expm1(log.high)), truth), holds((bca.low, bca.high), truth)))
            shares = np.mean(held, axis=0)
            rows.append(
                {
                    "player": player,
                    "tasks": tasks,
                    "episodes of each": episodes,
                    "jackknife": percent(shares[0]),
                    "BCa": percent(shares[1]),
                    "warned": "yes" if tasks < 50 else "no",
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
                interval = bootstrap_interval(rng.exponential(size=n), statistic, rng=rng, n_resamples=1_000)
                held.append(interval.low <= truth <= interval.high)
            rows.append({"n": n, "statistic": name, "coverage": percent(np.mean(held))})
    return rows
