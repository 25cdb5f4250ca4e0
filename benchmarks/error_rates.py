"""Error rates and power of the tests of evalkit.stats: studies of benchmarks/coverage.py."""

from itertools import combinations

import numpy as np
from scipy import special, stats

from benchmarks.simulate import draw_clusters, draw_models, draw_pairs, draw_tasks, percent, spread_of, within_variances
from evalkit.stats import holm, max_t, pairs_needed, trend_test
from evalkit.stats._inputs import Clusters
from evalkit.stats.pairs.comparison import compare_runs, compare_units

LEVEL = 0.05
CONFIDENCE = 1 - LEVEL
ODDS_RATIO = 0.25  # of the rates .8, .5, .2
N_FLIPS = 2_000
N_PERMUTATIONS = 999

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
        for i, adjusted in enumerate((by_max_t, holm(p_values))):
            claimed = adjusted <= claim_at
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


def margins(samples: int, rng: np.random.Generator) -> list[dict]:
    """Equivalence and non-inferiority for a margin of .1: error at a true difference of .1, power at 0.

    One pair; two one-sided tests for equivalence, one for non-inferiority, at 5 %.
    """
    rows = []
    for n in (30, 100, 300):
        for runs in (1, 3):
            row = {"tasks": n, "runs of each": runs}
            for name, gap in (("error", 0.1), ("power", 0.0)):
                shares = []
                for rate in (0.3, 0.5, 0.8):
                    left, right = draw_pairs(n, runs, rate, rate + gap, max(samples // 2, 50), rng)
                    results = [compare_units(x, y, CONFIDENCE, 0.1) for x, y in zip(left, right, strict=True)]
                    tails = np.array([(one.p_above, one.p_below) for one in results])
                    shares.append(((tails <= LEVEL).all(axis=1).mean(), (tails[:, 0] <= LEVEL).mean()))
                equivalent, not_worse = np.array(shares).T
                row[f"equivalent: {name}"] = spread_of(equivalent)
                row[f"not worse: {name}"] = spread_of(not_worse)
            rows.append(row)
    return rows


def trend_errors(
    count: int, sizes: tuple, correlation: float, rates: tuple, samples: int, rng, spanning: bool = False
) -> np.ndarray:
    """Return, for each sample, whether a trend is found, and whether the odds ratio is held (NaN: no bounds)."""
    outcomes = []
    for _ in range(samples):
        if spanning:  # each cluster at all levels, equally easy at each
            codes, scores = np.repeat(np.arange(count), len(rates)), np.tile(np.arange(len(rates)), count)
            ease = rng.normal(0, 3 * correlation, count)[codes]
            chances = special.expit(special.logit(np.array(rates)[scores]) + ease)
            of = np.full(len(codes), sizes[0])
            successes = rng.binomial(of, chances)
        else:
            codes, scores = np.arange(count), np.resize(np.arange(len(rates)), count)
            of = rng.permutation(np.resize(sizes, count))
            drawn = [draw_clusters(of[[i]], rates[s], correlation, (), rng)[0] for i, s in enumerate(scores)]
            successes = np.array(drawn)
        result = trend_test(successes, of, scores, codes, n_permutations=N_PERMUTATIONS, rng=rng)
        truth = 1.0 if len(set(rates)) == 1 else ODDS_RATIO
        held = result.low <= truth <= result.high if np.isfinite(result.low) else np.nan
        outcomes.append((result.p_value <= LEVEL, held, result.direction == "falls"))
    return np.array(outcomes, dtype=float)


def trends(samples: int, rng: np.random.Generator, counts: tuple = (6, 9, 12, 15, 30, 60)) -> list[dict]:
    """Three levels: errors where there is no trend (rates .5 and .15), power for rates .8, .5 and .2.

    Each cluster has one level, or ("all levels") runs at each. "falls": how often it is said that success falls with
    every step where it falls with the second only (rates .8, .8 and .2). The odds ratio is covered where it has bounds.
    No answer counts as not found.
    """
    rows = []
    for count in counts:
        designs = (((1,), 0, False), ((4,), 0, False), ((4,), 0.6, False), ((1, 4, 20), 0.3, False), ((2,), 0.5, True))
        for sizes, correlation, spanning in designs:
            row = {
                "clusters": count,
                "values in each": ", ".join(map(str, sizes)) + (" at all levels" if spanning else ""),
                "correlation": "shared ease" if spanning else correlation,
            }
            number = max(samples, 20)
            for name, rates in (("errors .5", (0.5,) * 3), ("errors .15", (0.15,) * 3), ("power", (0.8, 0.5, 0.2))):
                errors = trend_errors(count, sizes, correlation, rates, number, rng, spanning)
                row[name] = percent(errors[:, 0].mean())
            covered = errors[np.isfinite(errors[:, 1]), 1]
            row["odds ratio covered"] = percent(covered.mean()) if len(covered) and not spanning else ""
            flat = trend_errors(count, sizes, correlation, (0.8, 0.8, 0.2), max(samples // 4, 20), rng, spanning)
            row["falls, wrongly"] = percent(flat[:, 2].mean())
            rows.append(row)
    return rows


def trial_trends(samples: int, rng: np.random.Generator) -> list[dict]:
    """Independent trials at three or five levels, without clusters: errors where there is no trend."""
    rows = []
    for n in (2, 4, 8, 20):
        for levels in (3, 5):
            row = {"trials at each level": n, "levels": levels}
            for rate in (0.5, 0.15):
                wrong = []
                for _ in range(max(samples, 20)):
                    successes = rng.binomial(n, rate, levels)
                    options = {"n_permutations": N_PERMUTATIONS, "rng": rng}
                    wrong.append(trend_test(successes, [n] * levels, range(levels), **options).p_value <= LEVEL)
                row[f"errors {rate}"] = percent(np.mean(wrong))
            rows.append(row)
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
