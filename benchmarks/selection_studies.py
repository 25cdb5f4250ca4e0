"""Studies of selection by result, different tasks per model, and repeated looks: part of benchmarks/coverage.py."""

import numpy as np
from scipy import stats

from benchmarks.simulate import SCORES, draw_models, holds, percent
from evalkit.stats import _formulas as formulas
from evalkit.stats import plan, rank_models
from evalkit.stats._inputs import Cells
from evalkit.stats.models.task_effects import adjusted
from evalkit.stats.sequences import betting_bounds

CONFIDENCE = 0.95


def _frame(outcomes: np.ndarray):
    """Return a frame of runs from outcomes of shape (models, tasks)."""
    import pandas as pd

    models, tasks = outcomes.shape
    names = [f"model {i:03d}" for i in range(models)]
    return pd.DataFrame(
        {"model": np.repeat(names, tasks), "task": np.tile(np.arange(tasks), models), "value": outcomes.ravel()}
    )


FIELDS = ((20, 12, 0.0), (20, 30, 0.0), (20, 30, 0.1), (20, 100, 0.1), (5, 30, 0.15), (3, 100, 0.1))


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
        low, high = betting_bounds(values, CONFIDENCE)
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


def plans(samples: int, rng: np.random.Generator) -> list[dict]:
    """Tasks needed for a difference of .1 with 80 % power, by `plan` from few tasks: how often its range holds them.

    Tasks have a beta distribution of rates; the second model differs by 0, .1 or .3, and by .15 at random from task to
    task. The truth is the plan from 20,000 tasks.
    """
    repeats = (1, 2, 5, 10)
    truth = plan(_plan_frame(20_000, 4, 0.1, rng), "model", "task", "value", 0.1, repeats=repeats)["tasks"][:4]
    rows = []
    for tasks, runs in ((12, 3), (30, 2), (30, 3), (100, 3)):
        tables = [
            plan(_plan_frame(tasks, runs, gap, rng), "model", "task", "value", 0.1, repeats=repeats)[:4]
            for gap in (0.0, 0.1, 0.3)
            for _ in range(max(samples // 30, 10))
        ]
        held = np.mean([(table["low"] <= truth) & (truth <= table["high"]) for table in tables], axis=0)
        middle = np.median([table["tasks"] for table in tables], axis=0)
        row = {"tasks": tasks, "runs of each": runs}
        for i, r in enumerate(repeats):
            row[f"{r} repeats: range holds {truth[i]:.0f}"] = f"{percent(held[i])}, median {middle[i]:.0f}"
        rows.append(row)
    return rows


def _plan_frame(tasks: int, runs: int, gap: float, rng: np.random.Generator):
    import pandas as pd

    first = rng.beta(0.8, 0.8, tasks)
    second = np.clip(first + gap + 0.15 * rng.standard_normal(tasks), 0, 1)
    values = [(rng.random((runs, tasks)) < rates).astype(float) for rates in (first, second)]
    number = np.tile(np.arange(tasks), 2 * runs)
    names = np.repeat(["a", "b"], runs * tasks)
    return pd.DataFrame({"model": names, "task": number, "value": np.concatenate([v.ravel() for v in values])})
