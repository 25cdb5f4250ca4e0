"""Measure how often every printed claim of evalkit errs, over many kinds of data; write the tables of docs/coverage.md.

    python -m benchmarks.coverage                          # prints the tables; takes some 20 minutes of one core
    python -m benchmarks.coverage --output docs/coverage.md
    python -m benchmarks.coverage --samples 100 --only "decided pair"

A cell is one type of data with known true values. The error of claims about pairs of 0/1 outcomes with a margin is
computed by enumeration. All others are simulated.
"""

import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special, stats
from tabulate import tabulate

from benchmarks.simulate import (
    RATES,
    SCORES,
    VALUES,
    cluster_coverage,
    draw_clusters,
    draw_models,
    exact_coverage,
    holds,
    publish,
    score_coverage,
    sizes_of,
)
from evalkit._text import counted_noun
from evalkit.stats import cells as cells_module
from evalkit.stats import cells_of, estimate_by, intervals, plan, ranking, trend_test
from evalkit.stats.adjusted import adjust
from evalkit.stats.intervals import LEVEL
from evalkit.stats.pair_tests import compare_units, mcnemar, tango
from evalkit.stats.pairwise import max_t, pair_rows

MARK = "<!-- what follows is written by benchmarks/coverage.py -->"
POWER = (
    "How often a test detects a true difference, compared with the best other test that keeps its level "
    "(size at most 5.5 %):"
)
TASKS = (3, 4, 5, 8, 12, 20, 40, 100)

Rng = np.random.Generator
Cells = Iterator[tuple[str, float]]  # description of the data, and the share of samples in which the claim is wrong


def equal_pairs(tasks: int, samples: int, rng: Rng) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield a description and the values, of shape (samples, tasks), of two models with equal means."""
    shape = (samples, tasks)
    for rate, runs, others in ((0.03, 1, 10), (0.1, 1, 10), (0.3, 1, 10), (0.5, 2, 10), (0.1, 3, 3), (0.5, 3, 3)):
        values = rng.binomial(runs, rate, shape) / runs, rng.binomial(others, rate, shape) / others
        yield f"rate {rate}, {runs} against {others} runs", *values
    for runs, others in ((1, 1), (1, 10), (3, 10)):
        rates = rng.beta(0.5, 0.5, shape)
        values = rng.binomial(runs, rates) / runs, rng.binomial(others, rates) / others
        yield f"tasks easy or hard, {runs} against {others} runs", *values
    yield "a tenth are 1, against a steady .1", rng.binomial(1, 0.1, shape).astype(float), np.full(shape, 0.1)
    yield "beta with mean .1 against a steady .1", rng.beta(0.2, 1.8, shape), np.full(shape, 0.1)
    yield "beta with mean .3, two of them", rng.beta(0.6, 1.4, shape), rng.beta(0.6, 1.4, shape)
    yield "normal scores, spreads 1 and 4", rng.normal(10, 1, shape), rng.normal(10, 4, shape)
    yield "exponential scores, two of them", 5 + rng.exponential(size=shape), 5 + rng.exponential(size=shape)
    yield "exponential against steady scores", 5 + rng.exponential(size=shape), np.full(shape, 6.0)
    yield "log-normal against steady scores", np.exp(rng.normal(size=shape)), np.full(shape, np.exp(0.5))


def of_clusters(samples: int, rng: Rng) -> Cells:
    """An interval from at least 12 tasks misses the true value without a warning; averaged over rates .05 to .95."""
    for tasks in (12, 20, 50, 100):
        for pattern in ("1", "4", "20, 1, ..., 1"):
            for correlation in (0.1, 0.6):
                sizes = sizes_of(pattern, tasks)
                missed = [cluster_coverage(sizes, correlation, rate, samples, rng)[1] for rate in RATES]
                yield f"rate of {tasks} tasks, runs {pattern}, correlation {correlation}", float(np.mean(missed))
        for name in SCORES:
            missed = [score_coverage(name, mean, tasks, 1, samples, rng)[1] for mean in RATES]
            yield f"{name} scores of {tasks} tasks", float(np.mean(missed))
        for name, (draw, mean) in VALUES.items():
            values = draw(rng, (10 * samples, tasks))
            missed = ~holds(intervals.corrected_t(values), mean) & ~intervals.skewed(values)
            yield f"{name} values of {tasks} tasks", float(missed.mean())


def single_rates(samples: int, rng: Rng) -> Cells:
    """An interval of a single rate, .02 to .98, misses it without a warning; exact if each task has one run."""
    rates = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98])
    for tasks in (5, 10, 20, 50, 100):
        for rate, missed in zip(rates, exact_coverage(tasks, rates)[1], strict=True):
            yield f"rate {rate} on {tasks} tasks, 1 run", float(missed)
        for correlation in (0.1, 0.3, 0.6, 0.9):
            for rate in rates:
                missed = cluster_coverage(np.full(tasks, 3), correlation, rate, samples, rng)[1]
                yield f"rate {rate} on {tasks} tasks, 3 runs, correlation {correlation}", float(missed)


def repeated_rates(samples: int, rng: Rng) -> Cells:
    """An interval of a rate misses it without a warning; 20 runs per task."""
    for tasks in (12, 20, 40, 100, 200):
        for correlation in (0.1, 0.3, 0.6):
            for rate in (0.01, 0.03, 0.1, 0.5, 0.9, 0.97, 0.99):
                missed = cluster_coverage(np.full(tasks, 20), correlation, rate, samples, rng)[1]
                yield f"rate {rate} on {tasks} tasks, 20 runs, correlation {correlation}", float(missed)


def these_tasks(samples: int, rng: Rng) -> Cells:
    """An interval for these tasks, run again, misses their rate."""
    for tasks in (3, 12, 40):
        for pattern in ("2", "3", "5", "20", "2,10", "2,2,2,20"):
            sizes = sizes_of(pattern, tasks)
            for name, rates in _rates_of_tasks(tasks, rng):
                means = rng.binomial(sizes, rates, (samples, tasks)) / sizes
                variances = means * (1 - means) * sizes / (sizes - 1)
                missed = ~holds(intervals.bounded_within(means, variances, sizes), rates.mean())
                yield f"{name}, {tasks} tasks, runs {pattern}", float(missed.mean())


def _rates_of_tasks(tasks: int, rng: Rng) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the success rates of tasks: from beta distributions, or 0 or 1 except for a few tasks in between."""
    for spread in (0.1, 0.3, 1.0):
        yield f"beta({spread}, {spread})", rng.beta(spread, spread, tasks)
    places = np.arange(tasks)
    for mixed in (1, 3, tasks):
        for rate in (0.03, 0.25, 0.5, 0.75):
            yield f"{mixed} mixed at {rate}, others 0", np.where(places < mixed, rate, 0.0)
            if mixed < tasks:
                yield f"{mixed} mixed at {rate}, others 0 or 1", np.where(places < mixed, rate, places % 2)


def decided_pairs(samples: int, rng: Rng) -> Cells:
    """One of two models with equal means is called better."""
    for tasks in TASKS:
        for name, a, b in equal_pairs(tasks, samples, rng):
            found = [compare_units(*values) for values in zip(a, b, strict=True)]
            yield f"{name}, {tasks} tasks", float(np.mean([one.p_value <= one.claim_at for one in found]))


def families(samples: int, rng: Rng) -> Cells:
    """Any pair of equal models is decided, by max-T; in some cells a fifth of the runs is missing."""
    for models in (2, 3, 6, 12):
        first, second = np.array(list(combinations(range(models), 2))).T
        for tasks in (5, 12, 40):
            for name, missing in (("scores", 0.0), ("3 runs", 0.0), ("3 runs", 0.2), ("1 run", 0.0), ("1 run", 0.2)):
                wrong = 0
                for _ in range(samples):
                    ease = rng.beta(1, 1, (tasks, 1))
                    runs = int(name[0]) if name != "scores" else 0
                    if runs:
                        values = rng.binomial(runs, np.repeat(ease, models, axis=1)) / runs
                    else:
                        values = 10 * ease + rng.normal(0, np.linspace(1, 3, models), (tasks, models))
                    values[rng.random(values.shape) < missing] = np.nan
                    wrong += _any_decided(values, first, second, runs == 1, rng)
                yield f"{models} models, {name}, {tasks} tasks{', a fifth missing' if missing else ''}", wrong / samples


def _any_decided(values: np.ndarray, first: np.ndarray, second: np.ndarray, binary: bool, rng: Rng) -> bool:
    differences = values[:, first] - values[:, second]
    count = (~np.isnan(differences)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(differences, axis=0) / count
        t = mean * np.sqrt(count * (count - 1) / np.nansum((differences - mean) ** 2, axis=0))
        p_values = np.nan_to_num(2 * special.stdtr(count - 1, -np.abs(t)), nan=1.0)
    claim_at = np.zeros(len(p_values))
    used = count > 1 if binary else p_values <= LEVEL  # for other data, no p value is below the p value of the t test
    for pair in np.flatnonzero(used):
        both = values[~np.isnan(differences[:, pair])][:, [first[pair], second[pair]]]
        compared = compare_units(*both.T)
        p_values[pair], claim_at[pair] = compared.p_value, compared.claim_at
    if not (p_values <= claim_at).any():
        return False  # adjusted p values are never smaller
    adjusted = max_t(np.nan_to_num(differences), p_values, rng, 1_000)
    return bool((np.maximum(adjusted, p_values) <= claim_at).any())


def partly_shared(samples: int, rng: Rng) -> Cells:
    """One of two equal models that share some of their tasks is called better."""
    for first, second in ((4, 4), (8, 8), (20, 20), (40, 40), (8, 40)):
        least = min(first, second)
        for shared in sorted({0, 1, least // 4, least // 2, least - 1}):
            for rate, spread in ((0.02, 0.0), (0.1, 0.0), (0.5, 0.0), (0.5, 2.0), (0.9, 1.0), (0.98, 0.0)):
                decided = _overlapping(first, second, shared, (rate, rate), spread, samples, rng)
                yield f"{first} and {second} tasks, {shared} shared, rate {rate}, spread {spread}", decided


def _overlapping(
    first: int, second: int, shared: int, rates: tuple[float, float], spread: float, samples: int, rng: Rng
) -> float:
    """Return how often a pair is decided. `rates` are for average tasks; `spread` is of difficulty, in logits."""
    tasks = first + second - shared
    decided = done = 0
    has = np.zeros((tasks, 2), dtype=int)
    has[:first, 0], has[first - shared :, 1] = 1, 1
    while done < samples:
        pairs = min(samples - done, 50)  # simulated together, so that pairs inform each other about the ease of tasks
        ease = spread * rng.normal(size=(tasks, pairs)).repeat(2, axis=1)
        chances = special.expit(special.logit(np.tile(rates, pairs)) + ease)
        sizes = np.tile(has, pairs)
        values = np.where(sizes > 0, rng.binomial(1, chances), np.nan)
        nothing = np.full(values.shape, np.nan)
        names = [f"m{i}" for i in range(2 * pairs)]
        cells = cells_module.Cells(
            names,
            list(range(tasks)),
            values,
            sizes,
            nothing,
            np.zeros(2 * pairs, dtype=int),
            0,
            strata=np.zeros(tasks, dtype=int),
        )
        table, _ = pair_rows(cells, [(2 * i, 2 * i + 1) for i in range(pairs)], "new tasks")
        decided, done = decided + int((table["p_value"] <= LEVEL).sum()), done + pairs
    return decided / samples


def rare_breaks(samples: int, rng: Rng) -> Cells:
    """A model with small gains and rare large losses, with the same mean as the other, is called better."""
    for tasks in (12, 40, 100, 200):
        for rate, size in ((0.02, 0.6), (0.02, 1.0), (0.05, 0.6)):
            for noise in (0.0, 0.005, 0.05):
                gain = size * rate / (1 - rate)
                base = (
                    rng.uniform(0.6, 0.85, (samples, tasks)) if size < 1 else np.ones((samples, tasks)) - 2 * gain - 0.2
                )
                broken = rng.random((samples, tasks)) < rate
                change = np.where(broken, -size if size < 1 else -base, gain if size < 1 else base * rate / (1 - rate))
                a = np.clip(base + change + rng.normal(0, noise, base.shape), 0, 1)
                found = [compare_units(*values) for values in zip(a, base, strict=True)]
                share = float(np.mean([one.p_value <= one.claim_at for one in found]))
                yield f"{tasks} tasks, breaks of {size} on {rate}, noise {noise}", share


def is_decided(cells: cells_module.Cells) -> bool:
    """Return whether evalkit decides that one of two models is better."""
    found = pair_rows(cells, [(0, 1)], "new tasks")[0].iloc[0]
    return bool(found["p_value"] <= found["claim_at"])


def with_seeds(rng: Rng, seeds: int, tasks: int, spread: float) -> pd.DataFrame:
    """Draw runs of two equally good algorithms on the same tasks, each with a few trained checkpoints."""
    ease = rng.normal(size=(tasks, 1))
    task, model, seed = (side.ravel() for side in np.indices((tasks, 2, seeds)))
    chances = special.expit(ease[:, :, None] + spread * rng.normal(size=(1, 2, seeds)))
    runs = pd.DataFrame({"model": model, "task": task, "seed": seed})
    return runs.assign(value=rng.binomial(1, chances).ravel())


SEEDS = [(*sizes, spread) for sizes in ((2, 50), (3, 20), (3, 50), (5, 50)) for spread in (0.0, 0.3, 0.6, 1.0)]
OF_SEEDS = "{} checkpoints, {} tasks, spread {} on the logit scale"


def crossed_seeds(samples: int, rng: Rng) -> Cells:
    """One of two equally good algorithms, each with a few trained checkpoints, is called better."""
    for cell in SEEDS:
        drawn = (with_seeds(rng, *cell) for _ in range(samples))
        decided = sum(is_decided(cells_of(runs, "model", "task", "value", seed="seed")) for runs in drawn)
        yield OF_SEEDS.format(*cell), decided / samples


def rates_of_seeds(samples: int, rng: Rng) -> Cells:
    """The interval of the rate of an algorithm with a few trained checkpoints misses it, which is one half."""
    for cell in SEEDS:
        missed = 0
        for _ in range(samples):
            found = estimate_by(with_seeds(rng, *cell), "model", "value", "task", seeds="seed")
            missed += int((~found["low"].le(0.5) | ~found["high"].ge(0.5)).sum())
        yield OF_SEEDS.format(*cell), missed / (2 * samples)


def variants_of_tasks(samples: int, rng: Rng) -> Cells:
    """One of two equal models is called better, on tasks that are variants of a few families."""
    for count, size in ((6, 10), (12, 5), (20, 3), (20, 10)):
        for spread in (0.0, 1.0, 2.0):
            decided = 0
            for _ in range(samples):
                family = np.repeat(np.arange(count), size)
                tasks = len(family)
                chances = special.expit(spread * rng.normal(size=(count, 2)))[family]  # a model may be good at a family
                cells = cells_module.Cells(
                    ["a", "b"],
                    list(range(tasks)),
                    rng.binomial(1, chances).astype(float),
                    np.ones((tasks, 2), dtype=int),
                    np.full((tasks, 2), np.nan),
                    np.zeros(2, dtype=int),
                    0,
                    clusters=family,
                    are_families=True,
                )
                decided += is_decided(cells)
            yield f"{count} families of {size} tasks, spread {spread} on the logit scale", decided / samples


def rates_of_families(samples: int, rng: Rng) -> Cells:
    """An interval of a rate misses it without a warning, on tasks that are variants of a few families."""
    for sizes in ([5] * 12, [3] * 20, [10] * 20, [20, 10, *[2] * 20]):
        family = np.repeat(np.arange(len(sizes)), sizes)
        for rate in (0.1, 0.3, 0.5, 0.9):
            for correlation in (0.1, 0.6):
                shape = np.array([rate, 1 - rate]) * (1 / correlation - 1)
                missed = 0
                for _ in range(samples):
                    values = rng.binomial(1, rng.beta(*shape, len(sizes))[family])
                    found = intervals.mean_interval(values, np.arange(len(family)), bounds=(0.0, 1.0), families=family)
                    is_warned = bool(found.warning.without("families"))
                    missed += not is_warned and not found.low <= rate <= found.high
                name = f"{len(sizes)} families of {min(sizes)} to {max(sizes)} tasks"
                yield f"{name}, rate {rate}, correlation {correlation}", missed / samples


def costs_of_success(samples: int, rng: Rng) -> Cells:
    """An interval of the cost of a success misses it without a warning."""
    for tasks in (50, 100, 200):
        for rate in (0.1, 0.5, 0.9):
            for spread in (0.3, 1.0):
                missed = 0
                truth = np.exp(spread**2 / 2) * (1 + rate) / rate  # a success costs twice as much as a failure
                for _ in range(samples):
                    won = rng.random(tasks) < rate
                    costs = np.exp(spread * rng.normal(size=tasks)) * (1 + won)
                    found = intervals.ratio_interval(costs, won.astype(float), np.arange(tasks))
                    missed += not found.warning and not found.low <= truth <= found.high
                yield f"{tasks} tasks, rate {rate}, spread {spread} on the log scale", missed / samples


def unlike_tasks(samples: int, rng: Rng) -> Cells:
    """One of two equal models without shared tasks is called better; a third model shows that the tasks differ."""
    for tasks in (10, 20, 40):
        for gap in (0.0, 0.2, 0.35, 0.5):
            for shown_on in (max(tasks // 4, 2), tasks):
                sizes = np.zeros((2 * tasks, 3), dtype=int)
                sizes[:tasks, 0] = sizes[tasks:, 1] = 1
                sizes[:shown_on, 2] = sizes[tasks : tasks + shown_on, 2] = 1
                chances = np.repeat([0.5 + gap / 2, 0.5 - gap / 2], tasks)[:, None]
                nothing, strata = np.full(sizes.shape, np.nan), np.zeros(2 * tasks, dtype=int)
                decided = 0
                for _ in range(samples):
                    values = np.where(sizes > 0, rng.random(sizes.shape) < chances, np.nan)
                    cells = cells_module.Cells(
                        ["a", "b", "c"],
                        list(range(2 * tasks)),
                        values,
                        sizes,
                        nothing,
                        np.zeros(3, dtype=int),
                        0,
                        strata=strata,
                    )
                    decided += pair_rows(cells, [(0, 1)], "new tasks")[0]["p_value"].iloc[0] <= LEVEL
                yield f"{tasks} tasks each, harder by {gap} for one, a third ran {shown_on} of each", decided / samples


def at_once(samples: int, rng: Rng) -> Cells:
    """Any of all models' corrected intervals misses the true value; single runs."""
    for models, tasks, rate in ((12, 20, 0.95), (30, 12, 0.98), (12, 40, 0.5), (30, 100, 0.9), (5, 15, 0.8)):
        missed = 0
        ends = [ranking.at_once(np.arange(tasks) < k, True, 1 - LEVEL / models) for k in range(tasks + 1)]
        low, high = np.array(ends).T
        for _ in range(samples):
            k = rng.binomial(tasks, rate, models)
            missed += bool(((rate < low[k]) | (rate > high[k])).any())
        yield f"{models} models, {tasks} tasks, rate {rate}", missed / samples


def adjusted_rates(samples: int, rng: Rng) -> Cells:
    """The interval of an adjusted rate misses the rate on all tasks; one model ran the harder tasks."""
    for tasks, shared in ((40, 8), (40, 16), (20, 8)):
        for shift in (0.0, 1.5, 3.0):
            for rates in ((0.6, 0.6), (0.8, 0.4)):
                missed = _adjusted_missed(tasks, shared, shift, rates, samples, rng)
                yield f"{tasks} tasks each, {shared} shared, harder by {shift} for one, rates {rates}", missed


def _adjusted_missed(
    tasks: int, shared: int, shift: float, rates: tuple[float, float], samples: int, rng: Rng
) -> float:
    count, missed = 2 * tasks - shared, np.zeros(2)
    sizes = np.zeros((count, 2), dtype=int)
    sizes[:tasks, 0], sizes[tasks - shared :, 1] = 1, 1
    harder = np.where(np.arange(count) < tasks - shared, shift, 0.0)
    many = rng.normal(size=(500, count)) - harder
    truth = special.expit(special.logit(np.array(rates)) + many[..., None]).mean(axis=(0, 1))
    for _ in range(samples):
        chances = special.expit(special.logit(np.array(rates)) + (rng.normal(size=count) - harder)[:, None])
        values = np.where(sizes > 0, rng.binomial(1, chances), np.nan)
        nothing = np.full(values.shape, np.nan)
        lost = np.zeros(2, dtype=int)
        _, low, high = adjust(cells_module.Cells(["a", "b"], list(range(count)), values, sizes, nothing, lost, 0))
        missed += (truth < low) | (truth > high)  # NaN bounds count as covering the truth
    return float(missed.max() / samples)


def best(samples: int, rng: Rng) -> Cells:
    """The first model is called the best although others are as good: it wins each pair, uncorrected."""
    settings = {"2 equal": (0.5, 0.5), "4 equal": (0.5,) * 4, "12 equal": (0.3,) * 12}
    settings |= {"2 of 4 equal": (0.6, 0.6, 0.3, 0.1), "2 of 12 equal": (0.8, 0.8, *[0.2] * 10)}
    for name, rates in settings.items():
        for tasks in (5, 12, 40, 100):
            for runs in (1, 3):
                wrong = 0
                for values in draw_models(tasks, runs, rates, samples, rng).swapaxes(0, 1):
                    leading = int(values.mean(axis=1).argmax())
                    others = np.flatnonzero(np.arange(len(rates)) != leading)
                    wrong += all(_ahead(values[leading], values[other]) for other in rng.permutation(others))
                yield f"{name}, {tasks} tasks, {counted_noun(runs, 'run')}", wrong / samples


def _ahead(a: np.ndarray, b: np.ndarray) -> bool:
    found = compare_units(a, b)
    return bool(a.mean() > b.mean() and found.p_value <= found.claim_at)


def not_worse(samples: int, rng: Rng) -> Cells:
    """A model that is worse by the margin is called not worse; exact for 0/1 outcomes of single runs."""
    for tasks in (10, 12, 16, 20, 32, 36, 45, 60, 100, 200):
        won, lost = (side.ravel() for side in np.indices((tasks + 1, tasks + 1)))
        won, lost = won[won + lost <= tasks], lost[won + lost <= tasks]
        kinds = np.arange(tasks)
        differences = (kinds < won[:, None]).astype(float) - ((kinds >= won[:, None]) & (kinds < (won + lost)[:, None]))
        for margin in (0.02, 0.05, 0.1, 0.2):
            claimed = tango(differences, -margin) <= LEVEL
            for discordant in sorted({margin, 0.05, 0.1, 0.2, 0.3, 0.5} - {0.0}):
                if discordant >= margin:
                    shares = [(discordant - margin) / 2, (discordant + margin) / 2, 1 - discordant]
                    chances = stats.multinomial.pmf(np.column_stack([won, lost, tasks - won - lost]), tasks, shares)
                    name = f"{tasks} tasks, margin {margin}, {discordant} differ"
                    yield name, float(chances[claimed].sum())
    for tasks in (10, 20, 50, 100):
        for margin in (0.05, 0.1):
            for name, a, b in _worse_pairs(tasks, margin, samples, rng):
                found = [compare_units(*values, margin) for values in zip(a, b, strict=True)]
                share = float(np.mean([one.p_above <= LEVEL for one in found]))
                yield f"{name}, {tasks} tasks, margin {margin}", share


def _worse_pairs(tasks: int, margin: float, samples: int, rng: Rng) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    shape = (samples, tasks)
    for runs in (3, 10):
        ease = rng.beta(0.5, 0.5, shape)
        broken = rng.random(shape) < 2 * margin
        values = rng.binomial(runs, ease * ~broken) / runs, rng.binomial(runs, ease) / runs
        yield f"a few tasks broken, {runs} runs", *values
        values = rng.binomial(1, 0.9 - margin, shape) * 1.0, rng.binomial(runs, 0.9, shape) / runs
        yield f"1 against {runs} runs", *values
    yield "normal scores", rng.normal(5, 0.2, shape), rng.normal(5 + margin, 0.2, shape)


def equivalent(samples: int, rng: Rng) -> Cells:
    """Models that differ by the margin are called equivalent."""
    for tasks in (10, 20, 50, 100):
        for margin in (0.05, 0.1, 0.2):
            for name, a, b in _worse_pairs(tasks, margin, samples, rng):
                found = [compare_units(*values, margin) for values in zip(a, b, strict=True)]
                share = float(np.mean([max(one.p_above, one.p_below) <= LEVEL for one in found]))
                yield f"{name}, {tasks} tasks, margin {margin}", share


def trends(samples: int, rng: Rng) -> Cells:
    """Success is reported to fall or rise along levels although it does not."""
    for tasks in (6, 12, 30):
        for runs, correlation in ((1, 0.0), (4, 0.6)):
            scores, of = np.resize(np.arange(3), tasks), np.full(tasks, runs)
            drawn = draw_clusters(of, 0.5, correlation, (samples,), rng)
            yield f"{tasks} tasks, {runs} runs", _trends_found(drawn, of, scores, np.arange(tasks), rng)
        codes, scores = np.repeat(np.arange(tasks), 3), np.tile(np.arange(3), tasks)
        of = np.full(3 * tasks, 2)
        chances = special.expit(1.5 * rng.normal(size=(samples, tasks)))[:, codes]
        yield f"{tasks} tasks, 2 runs, at all levels", _trends_found(rng.binomial(2, chances), of, scores, codes, rng)
    for counts in ((20, 10, 4), (30, 20, 8), (4, 10, 20)):
        for shapes, runs in (((20, 2, 0.2), (10, 10, 10)), ((2, 2, 2), (10, 10, 1)), ((0.2, 2, 20), (10, 10, 10))):
            scores = np.repeat(np.arange(3), counts)
            spread, of = np.array(shapes)[scores], np.array(runs)[scores]
            drawn = rng.binomial(of, rng.beta(spread, spread, (samples, len(scores))))
            found = _trends_found(drawn, of, scores, np.arange(len(scores)), rng)
            yield f"levels of {counts} tasks, runs {runs}, beta {shapes}", found


def _trends_found(drawn: np.ndarray, of: np.ndarray, scores: np.ndarray, codes: np.ndarray, rng: Rng) -> float:
    found = [trend_test(one, of, scores, codes, n_permutations=399, rng=rng).direction for one in drawn]
    return float(np.mean([direction not in ("no", "") for direction in found]))


def plans(samples: int, rng: Rng) -> Cells:
    """A plan for 80 % power, made from few tasks, has a power below 70 %."""
    for tasks, runs in ((12, 3), (20, 3), (50, 3), (20, 1), (50, 1), (100, 1)):
        weak = 0
        for _ in range(samples):
            ease = rng.beta(0.8, 0.8, tasks)
            drawn = [rng.random((runs, tasks)) < np.clip(ease + 0.15 * rng.normal(size=tasks), 0, 1) for _ in "ab"]
            frame = pd.DataFrame(
                {"model": np.repeat(["a", "b"], runs * tasks), "task": np.tile(range(tasks), 2 * runs)}
            )
            frame["value"] = np.concatenate([side.ravel() for side in drawn]).astype(float)
            n = plan(cells_of(frame, "model", "task", "value"), 0.1, repeats=[runs])["tasks"].iloc[0]
            weak += _power(int(n), runs) < 0.7
        yield f"pilot of {tasks} tasks, {counted_noun(runs, 'run')}", weak / samples


def _power(n: int, runs: int) -> float:
    """Return the power of the paired t test for a difference of .1, with n tasks drawn as in `plans`."""
    rng = np.random.default_rng(1)
    ease = rng.beta(0.8, 0.8, 100_000)
    rates = [np.clip(ease + 0.15 * rng.normal(size=len(ease)), 0, 1) for _ in "ab"]
    spread = np.subtract(*(rng.binomial(runs, rate) / runs for rate in rates)).std()
    critical = special.stdtrit(n - 1, 1 - LEVEL / 2)
    return float(1 - special.nctdtr(n - 1, 0.1 * np.sqrt(n) / spread, critical))


def power_of_single_runs() -> Iterator[dict[str, str]]:
    """Yield rows with the power of tests of 0/1 outcomes of single runs, by enumeration."""
    for tasks, differ, difference in ((20, 0.25, 0.2), (50, 0.15, 0.12), (100, 0.2, 0.12), (40, 0.4, 0.25)):
        won, lost = (side.ravel() for side in np.indices((tasks + 1, tasks + 1)))
        won, lost = won[won + lost <= tasks], lost[won + lost <= tasks]
        kinds = np.column_stack([won, lost, tasks - won - lost])
        both = won + lost
        conditional = np.minimum(1, 2 * special.bdtr(np.minimum(won, lost), both, 0.5))
        mid_p = conditional - stats.binom.pmf(np.minimum(won, lost), both, 0.5)
        squares = both - (won - lost) ** 2 / tasks
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (won - lost) / np.sqrt(squares * tasks / (tasks - 1))
        p_values = {
            "evalkit": np.array(
                [mcnemar(int(wins), int(losses), tasks) for wins, losses in zip(won, lost, strict=True)]
            ),
            "exact conditional McNemar": np.where(won == lost, 1.0, conditional),
            "mid-p McNemar": np.where(won == lost, 1.0, mid_p),
            "paired t": np.nan_to_num(2 * special.stdtr(tasks - 1, -np.abs(t)), nan=1.0),
        }
        equal = [stats.multinomial.pmf(kinds, tasks, [x / 2, x / 2, 1 - x]) for x in np.linspace(0.01, 0.99, 99)]
        sides = [(differ + difference) / 2, (differ - difference) / 2, 1 - differ]
        chances = stats.multinomial.pmf(kinds, tasks, sides)
        found = {}
        for name, values in p_values.items():
            claimed = values <= LEVEL
            found[name] = float(chances[claimed].sum()), max(float(chance[claimed].sum()) for chance in equal)
        yield _power_row(f"{tasks} tasks run once, {differ:.0%} differ, difference {difference}", found)


def power_of_means(samples: int, rng: Rng) -> Iterator[dict[str, str]]:
    """Yield rows with the power of tests of shares and scores, by simulation."""
    for tasks in (12, 20, 40):
        for kind, shift in (("shares of 3 runs", 0.2), ("normal scores", 0.7)):
            found = {"evalkit": np.zeros(2), "paired t": np.zeros(2)}
            for at, gap in enumerate((shift, 0.0)):
                for _ in range(samples):
                    if kind == "normal scores":
                        a, b = rng.normal(gap, 1, tasks), rng.normal(0, 1, tasks)
                    else:
                        ease = rng.uniform(0.1, 0.7, tasks)
                        a, b = rng.binomial(3, ease + gap) / 3, rng.binomial(3, ease) / 3
                    one = compare_units(a, b)
                    found["evalkit"][at] += one.p_value <= one.claim_at
                    found["paired t"][at] += np.ptp(a - b) > 0 and stats.ttest_rel(a, b).pvalue <= LEVEL
            shown = {name: (float(power), float(size)) for name, (power, size) in _shares(found, samples).items()}
            yield _power_row(f"{tasks} tasks, {kind}, difference {shift}", shown)


def power_partly_shared(samples: int, rng: Rng) -> Iterator[dict[str, str]]:
    """Yield rows with the power for models with rates .8 and .4 on 40 tasks each, some of them shared; simulated."""
    for shared in (0, 4, 5, 8, 16, 32, 40):
        found = {"evalkit": np.zeros(2), "McNemar on the shared": np.zeros(2), "partially overlapping z": np.zeros(2)}
        for at, rates in enumerate(((0.8, 0.4), (0.6, 0.6))):
            found["evalkit"][at] = samples * _overlapping(40, 40, shared, rates, 0.0, samples, rng)
            a, b = (rng.random((samples, 40)) < rate for rate in rates)
            wins, losses = (a & ~b)[:, :shared].sum(axis=1), (b & ~a)[:, :shared].sum(axis=1)
            pairs = zip(wins, losses, strict=True)
            found["McNemar on the shared"][at] = sum(mcnemar(int(w), int(x), shared) <= LEVEL for w, x in pairs)
            # Derrick et al. (2017): pooled rate; no covariance, since the outcomes of a task are independent here
            pooled = (a.mean(axis=1) + b.mean(axis=1)) / 2
            z = (a.mean(axis=1) - b.mean(axis=1)) / np.sqrt(np.maximum(pooled * (1 - pooled), 1e-12) * 2 / 40)
            found["partially overlapping z"][at] = (2 * special.ndtr(-np.abs(z)) <= LEVEL).sum()
        shown = {name: (float(power), float(size)) for name, (power, size) in _shares(found, samples).items()}
        yield _power_row(f"rates .8 and .4, {shared} of 40 tasks shared", shown)


def _shares(found: dict[str, np.ndarray], samples: int) -> dict[str, np.ndarray]:
    return {name: counts / samples for name, counts in found.items()}


def _power_row(data: str, found: dict[str, tuple[float, float]]) -> dict[str, str]:
    """Format a row of the power table: evalkit's test, and the most powerful other test of size at most 5.5 %."""
    power, size = found.pop("evalkit")
    valid = {name: values for name, values in found.items() if values[1] <= 0.055}
    best = max(valid, key=lambda name: valid[name][0], default="")
    row = {
        "data": data,
        "evalkit, %": f"{100 * power:.1f}",
        "its size, %": f"{100 * size:.1f}",
        "best other valid test": best,
    }
    if best:
        row |= {
            "power of the other, %": f"{100 * valid[best][0]:.1f}",
            "size of the other, %": f"{100 * valid[best][1]:.1f}",
        }
    return row


# for each claim: the maximum error that evalkit promises, the study, and its samples as a multiple of --samples
CLAIMS: dict[str, tuple[float, Callable[[int, Rng], Cells], float]] = {
    "interval": (0.05, of_clusters, 4),
    "interval of a single rate": (0.05, single_rates, 20),
    "interval of a rate, 20 runs": (0.05, repeated_rates, 20),
    "interval for these tasks": (0.05, these_tasks, 20),
    "decided pair": (0.05, decided_pairs, 4),
    "all pairs of 2 to 12 models": (0.05, families, 1),
    "best": (0.05, best, 3),
    "decided pair, partly shared": (0.05, partly_shared, 1.5),
    "decided pair, rare breaks": (0.05, rare_breaks, 5),
    "decided pair, crossed seeds": (0.05, crossed_seeds, 0.8),
    "interval of a rate, crossed seeds": (0.05, rates_of_seeds, 2),
    "decided pair, families of tasks": (0.05, variants_of_tasks, 1),
    "decided pair, unlike tasks": (0.05, unlike_tasks, 1),
    "interval of a rate of families": (0.05, rates_of_families, 3),
    "cost per success": (0.05, costs_of_success, 5),
    "corrected intervals at once": (0.05, at_once, 20),
    "adjusted rate": (0.05, adjusted_rates, 0.2),
    "not worse": (0.05, not_worse, 4),
    "equivalent": (0.05, equivalent, 4),
    "trend": (0.05, trends, 1),
    "planned power": (0.2, plans, 0.3),
}


def rows_of(claim: str, samples: int, seed: int) -> dict[str, Any]:
    """Measure one claim, and return its row of the table."""
    promised, study, times = CLAIMS[claim]
    each = max(int(samples * times), 1)
    cells = list(study(each, np.random.default_rng(seed)))
    worst, share = max(cells, key=lambda cell: cell[1])
    figures = [100 * value for _, value in cells]
    return {
        "claim": claim,
        "wrong if": (study.__doc__ or "").strip().rstrip("."),
        "at most, %": f"{100 * promised:g}",
        "median": f"{np.median(figures):.1f}",
        "worst": f"{100 * share:.1f}",
        "± standard error": f"{100 * np.sqrt(max(share * (1 - share), promised * (1 - promised)) / each):.1f}",
        "worst cell": worst,
        "cells": len(cells),
        "samples": f"{each:,}",
    }


@click.command(help=__doc__.splitlines()[0])
@click.option("--samples", default=1_000, show_default=True, help="Samples per cell; fewer for slow claims.")
@click.option("--seed", default=24, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(CLAIMS)), help="A claim.  [default: all]")
@click.option("--jobs", default=-1, show_default=True, help="Claims measured at a time; -1: number of cores.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help=f"All text after {MARK} is replaced.")
def main(samples: int, seed: int, only: tuple[str, ...], jobs: int, output: Path | None) -> None:
    """Measure the claims, and print or write the tables."""
    start = time.monotonic()
    rows = Parallel(n_jobs=jobs)(delayed(rows_of)(claim, samples, seed) for claim in only or CLAIMS)
    table = tabulate(rows, "keys", "github", disable_numparse=True)
    rng = np.random.default_rng(seed)
    powers = [*power_of_single_runs(), *power_of_means(samples, rng), *power_partly_shared(samples, rng)]
    power = tabulate(powers, "keys", "github", disable_numparse=True)
    minutes = (time.monotonic() - start) / 60
    last = f"Samples are per cell; seed {seed}; {minutes:.0f} minutes.\n"
    publish("\n\n".join([MARK, table, POWER, power, last]), MARK, output)


if __name__ == "__main__":
    main()
