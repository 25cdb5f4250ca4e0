"""Study in detail the coverage of the intervals and error rates of the tests of evalkit.stats, at typical sample sizes.

    python -m benchmarks.studies --output FILE           # about an hour
    python -m benchmarks.studies --quick                 # minutes, to the terminal
    python -m benchmarks.studies --only clusters --only pairs

Coverage of counts of independent trials is exact: summed over all outcomes. The rest is simulated with a fixed seed.
What pages claim is measured by `benchmarks.coverage`.
"""

import inspect
import sys
import time
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import pandas as pd
from scipy import special, stats
from tabulate import tabulate

from benchmarks.simulate import (
    CONFIDENCE,
    CORRELATIONS,
    PLAYERS,
    RATES,
    SCORES,
    VALUES,
    cluster_coverage,
    crafter_score,
    draw_clusters,
    draw_models,
    draw_pairs,
    draw_tasks,
    exact_coverage,
    holds,
    percent,
    publish,
    score_coverage,
    shift_rates,
    sizes_of,
    spread_of,
    within_variances,
)
from evalkit.stats import formulas, jackknife_interval, pairs_needed, pass_at_k, pass_hat_k, rank_models
from evalkit.stats.comparable import adjusted
from evalkit.stats.inputs import Cells, Clusters
from evalkit.stats.intervals import FEW_CLUSTERS, FEW_SCORES, Bets, of_repetitions
from evalkit.stats.paired import compare_runs, compare_units
from evalkit.stats.pairs import holm, max_t

MARK = "<!-- what follows is written by benchmarks/studies.py -->"
QUICK, FULL = 100, 2_000
LEVEL = 1 - CONFIDENCE
FINE = np.linspace(0.001, 0.999, 999)
VALUES_OF = (5, 8, 12, 20, 30, 50, 100, 200)
CLUSTERS = (3, 5, 8, 12, 20, 50, 100)
SIZES = ("1", "2", "4", "8", "20, 1, ..., 1", "1, 2, 4, ..., 32")


N_FLIPS = 2_000

# true rates of the models of a family
FAMILIES = {
    "3 equal, .5": (0.5,) * 3,
    "6 equal, .5": (0.5,) * 6,
    "6 equal, .1": (0.1,) * 6,
    "10 equal, .3": (0.3,) * 10,
    "20 equal, .5": (0.5,) * 20,
    "3 equal, 3 not": (0.5, 0.5, 0.5, 0.9, 0.9, 0.2),
    "6 from .9 to .2": (0.9, 0.8, 0.7, 0.5, 0.4, 0.2),
    "20 from .1 to .9": tuple(np.linspace(0.1, 0.9, 20)),
}


SAME_TASK_DESIGNS = ((3, 0.5, 0.3, True), (3, 0.2, 0.6, False), (10, 0.5, 0.5, True), (10, 0.9, 0.5, False))


FIELDS = ((20, 12, 0.0), (20, 30, 0.0), (20, 30, 0.1), (20, 100, 0.1), (5, 30, 0.15), (3, 100, 0.1))


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


def clustered(samples: int, rng: np.random.Generator, counts: tuple = CLUSTERS, sizes: tuple = SIZES) -> list[dict]:
    """Wilson on the effective n, each cluster of the same weight, for new clusters.

    Beta-binomial samples with correlations of 0, .1, .3, .6 and .9 within clusters. Beside it
    plain Wilson, which takes all runs as independent.
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
                    "plain Wilson": spread_of(means[:, 2]),
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
                    "warned": "yes" if of_repetitions(of) else "no",
                }
            )
    return rows


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
    silent = ~formulas.skewed(values) & (count >= FEW_CLUSTERS)
    mid, half = values.mean(1), formulas.quantile(CONFIDENCE, count - 1) * np.sqrt(formulas.variance_of_mean(values))
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
                    "warned": "yes" if count < FEW_SCORES else "no",
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
    """Crafter's formula on pooled episodes, clustered by task: the jackknife of its logarithm.

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
                held.append(holds((np.expm1(log.low), np.expm1(log.high)), truth))
            rows.append(
                {
                    "player": player,
                    "tasks": tasks,
                    "episodes of each": episodes,
                    "jackknife": percent(np.mean(held)),
                    "warned": "yes" if tasks < 50 else "no",
                }
            )
    return rows


def differences(samples: int, rng: np.random.Generator, tasks: tuple = (5, 8, 12, 20, 30, 50, 100, 200)) -> list[dict]:
    """Two models on tasks of shared difficulty: the interval, and how often the test errs where both are equal.

    The interval excludes 0 exactly where the test rejects it. One run of each: Agresti-Min and McNemar exact; three: t.
    Rates .05, .2, .5, .8 and .95.
    """
    rows = []
    pairs = [(a, b) for a in (0.05, 0.2, 0.5, 0.8, 0.95) for b in (0.05, 0.2, 0.5, 0.8, 0.95) if a >= b]
    for n in tasks:
        for runs in (1, 3):
            held, errors = [], []
            for a, b in pairs:
                left, right = draw_pairs(n, runs, a, b, max(samples // 4, 50), rng)
                results = [compare_units(x, y, CONFIDENCE) for x, y in zip(left, right, strict=True)]
                held.append(np.mean([one.low <= a - b + 1e-12 and a - b - 1e-12 <= one.high for one in results]))
                if a == b:
                    errors.append(np.mean([one.p_value <= one.claim_at for one in results]))
            worst = pairs[int(np.argmin(held))]
            rows.append(
                {
                    "tasks": n,
                    "runs of each": runs,
                    "mean coverage": percent(np.mean(held)),
                    "worst": f"{percent(min(held))} at rates {worst[0]}, {worst[1]}",
                    "errors of 5 % allowed": f"{percent(np.mean(errors))}, at most {percent(max(errors))}",
                }
            )
    return rows


def family_errors(
    rates: tuple, tasks: int, runs: int, samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for max-T and Holm, how often an equal pair is decided, and the share of unequal pairs decided."""
    pairs = list(combinations(range(len(rates)), 2))
    first, second = np.array(pairs).T
    null = np.array([rates[a] == rates[b] for a, b in pairs])
    outcomes = draw_models(tasks, runs, rates, samples, rng)
    wrong, decided = np.zeros(2), np.zeros(2)
    for sample in range(samples):
        gaps = (outcomes[first, sample] - outcomes[second, sample]).T
        results = [compare_units(outcomes[a, sample], outcomes[b, sample], CONFIDENCE) for a, b in pairs]
        p_values, claim_at = np.array([(one.p_value, one.claim_at) for one in results]).T
        by_max_t = np.maximum(max_t(gaps, rng, N_FLIPS, p_values=None if runs == 1 else p_values), p_values)
        for i, corrected in enumerate((by_max_t, holm(p_values))):
            claimed = corrected <= claim_at
            wrong[i] += claimed[null].any()
            decided[i] += claimed[~null].mean() if (~null).any() else np.nan
    return wrong / samples, decided / samples


def families(samples: int, rng: np.random.Generator, names: tuple = tuple(FAMILIES)) -> list[dict]:
    """All pairs of several models, by max-T and by Holm's correction of the same tests.

    "error": how often any pair of equal models is decided, where 5 % are allowed; "power": the share of pairs of
    unequal models that are decided.
    """
    rows = []
    for name in names:
        rates = FAMILIES[name]
        for tasks in (12, 30, 100):
            for runs in (1, 3):
                count = 2 * samples if len(rates) < 20 else samples
                wrong, decided = family_errors(rates, tasks, runs, max(count, 20), rng)
                some, several = len(set(rates)) < len(rates), len(set(rates)) > 1
                rows.append(
                    {
                        "models": name,
                        "tasks": tasks,
                        "runs": runs,
                        "error, max-T": percent(wrong[0]) if some else "",
                        "error, Holm": percent(wrong[1]) if some else "",
                        "power, max-T": percent(decided[0]) if several else "",
                        "power, Holm": percent(decided[1]) if several else "",
                    }
                )
    return rows


def same_task_pairs(samples: int, rng: np.random.Generator) -> list[dict]:
    """Models for repetitions of the same tasks, `target="these tasks"`: coverage, and error with Holm's correction.

    The models have the same mean rate over the tasks; its tasks have equal rates for all ("equal"), or the same rates
    in another order. Rates of tasks vary by a beta distribution of the given mean and correlation.
    """
    rows = []
    for tasks in (5, 12, 30):
        for runs in (2, 4, 8):
            for models, rate, correlation, equal in SAME_TASK_DESIGNS:
                held, wrong, count = [], 0, max(samples // 4, 20)
                sizes = np.full(tasks, runs)
                for _ in range(count):
                    _, chances = draw_tasks(sizes, rate, correlation, (), rng)
                    every = [chances if equal else rng.permutation(chances) for _ in range(models)]
                    drawn = [rng.binomial(sizes, model) for model in every]
                    sides = [Clusters(sizes, x / sizes, within_variances(x, sizes)) for x in drawn]
                    results = [compare_runs(a, b, True, CONFIDENCE) for a, b in combinations(sides, 2)]
                    held += [one.low <= 0 <= one.high for one in results]
                    wrong += (holm([one.p_value for one in results]) <= LEVEL).any()
                rows.append(
                    {
                        "tasks": tasks,
                        "runs of each": runs,
                        "models": models,
                        "rate, correlation": f"{rate}, {correlation}{', equal' if equal else ''}",
                        "coverage": percent(np.mean(held)),
                        "error of 5 % allowed": percent(wrong / count),
                    }
                )
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
                    "tasks by t": f"{by_t:.0f}",
                    "their power": percent(mcnemar_power(int(by_t), only_a, only_b, LEVEL / comparisons)),
                    "tasks, binary=True": f"{binary:.0f}",
                    "power": percent(mcnemar_power(int(binary), only_a, only_b, LEVEL / comparisons)),
                }
            )
    return rows


def mcnemar_power(n: int, only_a: float, only_b: float, level: float) -> float:
    """Return the power of McNemar's exact test on n tasks."""
    total, share = 0.0, only_a + only_b
    for differing in range(n + 1):
        wins = np.arange(differing + 1)
        p_value = np.minimum(1, 2 * special.bdtr(np.minimum(wins, differing - wins), differing, 0.5))
        decided = stats.binom.pmf(wins, differing, only_a / share)[p_value <= level].sum()
        total += stats.binom.pmf(differing, n, share) * decided
    return total


def _frame(outcomes: np.ndarray):
    """Return a frame of runs from outcomes of shape (models, tasks)."""
    models, tasks = outcomes.shape
    names = [f"model {i:03d}" for i in range(models)]
    return pd.DataFrame(
        {"model": np.repeat(names, tasks), "task": np.tile(np.arange(tasks), models), "value": outcomes.ravel()}
    )


def ranking(samples: int, rng: np.random.Generator, fields: tuple = FIELDS) -> list[dict]:
    """The first of several models by estimate, and the ranks of all; one run of each of the tasks.

    True rates vary around .5 by the spread given. Of the first: coverage of its own interval, of the corrected one, and
    the bias of both estimates in points. Of the ranks: how often all intervals hold the true ranks; how often the
    models that tie with the first hold the best; how many they are; the probability of being best that the first is
    given, and how often it is the best.
    """
    rows = []
    for models, tasks, spread in fields:
        results = []
        for _ in range(max(samples // 10, 20)):
            rates = np.clip(0.5 + spread * rng.standard_normal(models), 0.03, 0.97)
            outcomes = draw_models(tasks, 1, tuple(rates), 1, rng)[:, 0]
            table = rank_models(_frame(outcomes), "model", "task", "value", rng=rng)
            truth = rates[table["model"].str[-3:].astype(int)]
            ranks = stats.rankdata(-truth, "min"), stats.rankdata(-truth, "max")
            first = table.iloc[0]
            best = (truth == truth.max()) / (truth == truth.max()).sum()
            results.append(
                (
                    first["low"] <= truth[0] <= first["high"],
                    first["corrected_low"] <= truth[0] <= first["corrected_high"],
                    first["estimate"] - truth[0],
                    first["corrected"] - truth[0],
                    ((table["rank_low"] <= ranks[1]) & (table["rank_high"] >= ranks[0])).all(),
                    (best > 0)[table["ties_with_first"]].any(),
                    table["ties_with_first"].sum(),
                    first["rank_high"] == 1,
                    first["rank_high"] == 1 and best[0] < 1,
                )
            )
        plain, corrected, bias, left, ranks_held, tied_hold, tied, named, wrong = np.mean(results, axis=0)
        rows.append(
            {
                "models": models,
                "tasks": tasks,
                "spread": spread,
                "interval of the first": percent(plain),
                "corrected": percent(corrected),
                "bias": f"{100 * bias:+.1f}",
                "corrected ": f"{100 * left:+.1f}",
                "all ranks held": percent(ranks_held),
                "tied hold the best": percent(tied_hold),
                "tied": f"{tied:.1f}",
                "named best": percent(named),
                "wrongly": percent(wrong),
            }
        )
    return rows


def mixes(samples: int, rng: np.random.Generator, adjusting: tuple = (12, 30, 100)) -> list[dict]:
    """Rates standardised by type of task (MOVER), and adjusted for the tasks that a model ran.

    Standardised: three types with rates .3, .5 and .7 moved by −.3 to .3, weights .5, .3 and .2. Adjusted: the first of
    four models has 30 to 90 % of the tasks, the more the easier they are, and the others nearly all; the truth is its
    rate on all such tasks. Beside it the raw rate.
    """
    rows = []
    for counts in ((4, 4, 4), (2, 5, 10), (10, 10, 10), (3, 12, 30), (40, 40, 40)):
        weights, held = np.array([0.5, 0.3, 0.2]), []
        for shift in np.linspace(-0.3, 0.3, 7):
            rates = np.array([0.3, 0.5, 0.7]) + shift
            strata = [rng.binomial(1, p, (5 * samples, n)).astype(float) for p, n in zip(rates, counts, strict=True)]
            parts = [formulas.bounded(x, np.ones(x.shape[1], dtype=int), CONFIDENCE, True) for x in strata]
            middle = [x.mean(1) for x in strata]
            below = np.sqrt(sum((w * (m - low)) ** 2 for w, m, (low, _) in zip(weights, middle, parts, strict=True)))
            above = np.sqrt(sum((w * (high - m)) ** 2 for w, m, (_, high) in zip(weights, middle, parts, strict=True)))
            estimate = sum(w * m for w, m in zip(weights, middle, strict=True))
            held.append(holds((estimate - below, estimate + above), weights @ rates).mean())
        sizes = ", ".join(map(str, counts))
        rows.append({"estimate": "standardised", "tasks": sizes, "coverage": percent(np.mean(held)), "raw": ""})
    for tasks in adjusting:
        for rates in ((0.3, 0.5, 0.7), (0.1, 0.9)):
            covered = [_adjusted_once(tasks, rate, rng) for rate in rates for _ in range(max(samples // 10, 10))]
            held, raw = np.mean(covered, axis=0)
            name = f"adjusted, rates {', '.join(map(str, rates))}"
            rows.append({"estimate": name, "tasks": tasks, "coverage": percent(held), "raw": percent(raw)})
    return rows


def _adjusted_once(tasks: int, rate: float, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether the adjusted and the raw interval hold the rate of a model that ran easier tasks more often."""
    ease = rng.standard_normal(tasks)
    outcomes = draw_models(tasks, 1, (rate, 0.4, 0.5, 0.6), 1, rng, ease)[:, 0].T
    chances = np.column_stack([0.3 + 0.6 * stats.norm.cdf(ease), *[np.full(tasks, 0.95)] * 3])
    there = rng.random((tasks, 4)) < chances
    there[:2], there[:, 1] = True, True
    means = np.where(there, outcomes, np.nan)
    cells = Cells(list("abcd"), list(range(tasks)), means, there.astype(int), np.full((tasks, 4), np.nan), [0] * 4, 0)
    first = adjusted(cells, CONFIDENCE).iloc[0]
    observed = means[there[:, 0], 0]
    low, high = formulas.wilson(observed.mean(), len(observed), CONFIDENCE)
    return bool(first["low"] <= rate <= first["high"]), bool(low <= rate <= high)


def sequences(samples: int, rng: np.random.Generator, n: int = 300) -> list[dict]:
    """Looked at after each of n values: how often the interval misses the truth at any look; and its width.

    Beside it Wilson's, or t, for a fixed n. The difference is that of two models of the same rate, .2 of the pairs
    differ.
    """
    draws = {
        "rate .5": (lambda shape: (rng.random(shape) < 0.5).astype(float), 0.5),
        "rate .1": (lambda shape: (rng.random(shape) < 0.1).astype(float), 0.1),
        "scores, half zeros": (lambda shape: SCORES["zeros and uniform"](rng, 0.25, shape), 0.25),
        "difference": (lambda shape: (rng.choice([-1, 0, 1], shape, p=[0.1, 0.8, 0.1]) + 1) / 2, 0.5),
    }
    rows, n_so_far = [], np.arange(1, n + 1)
    for name, (draw, truth) in draws.items():
        values = draw((max(samples // 5, 50), n))
        bets = Bets(CONFIDENCE, values.shape[:1])
        low, high = np.array([bets.add(column) for column in values.T]).transpose(1, 2, 0)
        mean = np.cumsum(values, axis=1) / n_so_far
        if name.startswith("rate"):
            fixed = formulas.wilson(mean, n_so_far, CONFIDENCE)
        else:
            spread = np.sqrt(np.maximum(np.cumsum(values**2, axis=1) / n_so_far - mean**2, 0))
            half = stats.t.ppf(0.975, np.maximum(n_so_far - 1, 1)) * spread / np.sqrt(np.maximum(n_so_far - 1, 1))
            fixed = mean - half, mean + half
        width, fixed_width = np.nanmean(high - low, axis=0), (fixed[1] - fixed[0]).mean(axis=0)
        missed, missed_fixed = (~holds((low, high), truth))[:, 9:], (~holds(fixed, truth))[:, 9:]
        rows.append(
            {
                "values": name,
                "missed at any look": percent(missed.any(axis=1).mean()),
                "fixed n: at any look from 10": percent(missed_fixed.any(axis=1).mean()),
                "at the last": percent(missed_fixed[:, -1].mean()),
                "width after 50": f"{width[49]:.2f}, fixed {fixed_width[49]:.2f}",
                f"after {n}": f"{width[-1]:.2f}, fixed {fixed_width[-1]:.2f}",
            }
        )
    return rows


STUDIES = {
    "trials": proportions,
    "clusters": clustered,
    "same tasks": same_tasks,
    "scores": scores,
    "means": means,
    "pass@k": pass_k,
    "crafter": crafter_seeds,
    "crafter pooled": crafter_pooled,
    "mixes": mixes,
    "differences": differences,
    "pairs": families,
    "same task pairs": same_task_pairs,
    "ranks": ranking,
    "sequences": sequences,
    "power": powers,
}


@click.command(help=__doc__.splitlines()[0])
@click.option("--quick", is_flag=True, help=f"{QUICK} samples in place of {FULL:,}.")
@click.option("--seed", default=0, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(STUDIES)), help="A study; by default all.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"A file, in which all text after {MARK} is replaced.",
)
def main(quick: bool, seed: int, only: tuple[str, ...], output: Path | None) -> None:
    """Run the studies, and write their tables."""
    samples, start, sections = QUICK if quick else FULL, time.process_time(), []
    for name in only or STUDIES:
        begun, study = time.process_time(), STUDIES[name]
        table = tabulate(study(samples, np.random.default_rng(seed)), "keys", "github", disable_numparse=True)
        sections.append(f"## {name.capitalize()}\n\n{inspect.getdoc(study)}\n\n{table}")
        click.echo(f"{name}: {time.process_time() - begun:.0f} s", err=True)
    minutes = (time.process_time() - start) / 60
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "statsmodels"))
    last = (
        f"Up to {samples:,} samples in each cell, fewer where a study says so or a sample takes long; seed {seed}; "
        f"{minutes:.0f} minutes of processor time; Python {sys.version.split()[0]}, {versions}.\n"
    )
    publish("\n\n".join([MARK, *sections, last]), MARK, output)


if __name__ == "__main__":
    main()
