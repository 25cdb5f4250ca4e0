import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols

from evalkit.stats import adjusted_rates, rate_interval
from evalkit.stats.adjusted import adjust, standardise
from evalkit.stats.cells import cells_of


def runs(model, kind, tasks, successes):
    return [(model, f"{kind}{t}", kind, float(i < successes)) for i, t in enumerate(tasks)]


def like(*parts, stratum="type", **options):
    return adjusted_rates(cells_of(frame(*parts), "model", "task", "value", stratum=stratum), **options)


SIMPSON = (
    runs("alpha", "easy", range(80), 64),
    runs("alpha", "hard", range(20), 6),
    runs("beta", "easy", range(20), 18),
    runs("beta", "hard", range(80), 36),
)
APART = (*SIMPSON[:2], runs("beta", "easy", range(100, 120), 18), runs("beta", "hard", range(100, 180), 36))


@pytest.mark.parametrize(
    ("parts", "stratum", "headline", "reason"),
    [
        (
            SIMPSON,
            "type",
            "adjusted for tasks",
            "alpha ranks above beta by raw rates, but not by rates adjusted",
        ),
        (APART, "type", "standardised", "alpha ranks above beta by raw rates, but not by rates standardised"),
        (APART, "", "none", "rates are not adjusted for tasks, because some models share no tasks"),
        ((*SIMPSON[:1], runs("beta", "easy", range(80), 40)), "type", "raw", "All models ran the same tasks"),
        (
            (*SIMPSON[:1], runs("beta", "easy", range(60), 40)),
            "type",
            "adjusted for tasks",
            "order is the same as by raw rates",
        ),
        (SIMPSON[:1], "type", "raw", "There is one model"),
    ],
)
def test_the_headline_follows_the_rule(parts, stratum, headline, reason):
    found = like(*parts, stratum=stratum)
    assert found.basis == headline
    assert reason[1:] in str(found.reason)
    assert found.table["adjusted_estimate"].equals(found.table["estimate"]) == (headline == "raw")
    assert found.table["adjusted_estimate"].isna().all() == (headline == "none")


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part], columns=["model", "task", "type", "value"])


def standardised(table, kind="proportion"):
    cells = cells_of(table, "model", "task", "value", "", "type")
    estimates = standardise(cells, cells.strata, kind)
    return pd.Series(estimates[0], ["estimate", "low", "high"])


def test_the_interval_is_put_together_from_those_of_the_strata():
    table = frame(runs("a", "easy", range(20), 16), runs("a", "hard", range(30), 6))
    easy, hard = (rate_interval(part["value"], part["task"]) for _, part in table.groupby("type"))
    found = standardised(table)
    below = math.hypot(0.4 * (0.8 - easy.low), 0.6 * (0.2 - hard.low))
    above = math.hypot(0.4 * (easy.high - 0.8), 0.6 * (hard.high - 0.2))
    assert found["estimate"] == pytest.approx(0.44)
    assert (found["low"], found["high"]) == pytest.approx((0.44 - below, 0.44 + above))


def test_means_have_the_interval_of_welch():
    rng = np.random.default_rng(0)
    table = frame(runs("a", "easy", range(12), 0), runs("a", "hard", range(12), 0)).assign(value=rng.normal(10, 3, 24))
    found, parts = standardised(table, kind="mean"), [part["value"] for _, part in table.groupby("type")]
    assert found["estimate"] == pytest.approx(sum(part.mean() for part in parts) / 2)
    # half the difference of the one to the negative of the other
    theirs = stats.ttest_ind(parts[0], -parts[1], equal_var=False).confidence_interval()
    assert (found["low"], found["high"]) == pytest.approx((theirs.low / 2, theirs.high / 2))


def by_task(values):
    """Runs from an array (tasks, models), NaN for none."""
    tasks, models = np.nonzero(~np.isnan(values))
    names = [f"m{i}" for i in models]
    return pd.DataFrame({"model": names, "task": [f"t{i}" for i in tasks], "value": values[tasks, models]})


def adjusted(table):
    cells = cells_of(table, "model", "task", "value")
    estimates = np.column_stack(adjust(cells))
    return pd.DataFrame(estimates, columns=["estimate", "low", "high"], index=cells.models)


def sample(tasks=12, models=3, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(tasks, 1)) + np.arange(models) + rng.normal(size=(tasks, models))
    holes = rng.random((tasks, models)) < missing
    holes[:, 0] = False
    return np.where(holes, np.nan, values)


def test_effects_are_those_of_least_squares_with_task_dummies():
    table = by_task(sample())
    fit = ols("value ~ 0 + C(model) + C(task, Sum)", table).fit()
    effects = fit.params.filter(like="C(model)").to_numpy()
    assert adjusted(table)["estimate"].to_numpy() == pytest.approx(effects)


def test_the_interval_leaves_out_one_task_at_a_time():
    table = by_task(sample(missing=0.2))
    tasks = table["task"].unique()
    without = [adjusted(table[table["task"] != task])["estimate"].to_numpy() for task in tasks]
    spread = ((without - np.mean(without, axis=0)) ** 2).sum(axis=0)
    error = np.sqrt((len(tasks) - 1) / len(tasks) * spread)
    found = adjusted(table)
    assert (found["high"] - found["low"]).to_numpy() / 2 == pytest.approx(2.200985 * error)  # t, 11 degrees


def test_rates_end_at_0_and_1_and_keep_bounds_where_all_succeed():
    values = np.ones((8, 2))
    values[4:, 1] = np.nan
    found = adjusted(by_task(values))
    assert found["estimate"].tolist() == pytest.approx([1, 1], abs=0.01)
    assert (found["high"] > 0.99).all()
    assert found.loc["m0", "low"] == pytest.approx(rate_interval([1] * 8).low)
    assert found.loc["m1", "low"] == pytest.approx(rate_interval([1] * 4).low, abs=0.01)


def test_rates_adjusted_through_a_chain_stay_rates():
    """B failed on most of the tasks that A did well on, and did well on those that C failed on."""
    a, b, c = ([1.0] * 10 + [np.nan] * 10, [0.2] * 10 + [0.9] * 10, [np.nan] * 10 + [0.1] * 10)
    found = adjusted(by_task(np.array([a, b, c]).T))
    assert found[["estimate", "low", "high"]].stack().between(0, 1).all()
    assert found["estimate"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[1, np.nan], [0, np.nan], [np.nan, 1]], "sets that share no tasks"),
        ([[1, np.nan], [0, 1], [np.nan, 1]], "a task alone links models"),
    ],
)
def test_what_cannot_be_adjusted_or_bounded_is_missing(values, reason):
    found = adjusted(by_task(np.array(values, dtype=float)))
    assert found["low"].isna().all()
    assert found["estimate"].isna().all() == (reason == "sets that share no tasks")


@pytest.mark.parametrize(
    ("conditions_of", "again", "expected"),
    [
        ("task", [], {"a": 9 / 12, "b": 7 / 12}),  # both ran all tasks
        ("run", [], {"a": 5 / 8, "b": 6 / 8}),  # without the condition that c lacks
        ("task", [("a", "t0", "kitchen 1", 1.0)], {"a": 5 / 8, "b": 6 / 8}),  # a task under two conditions
    ],
)
def test_conditions_that_tasks_state_exclude_no_tasks(conditions_of, again, expected):
    kitchens = {f"t{i}": f"kitchen {i // 4}" for i in range(12)}
    solved = {"a": (3, 4, 2), "b": (4, 1, 2), "c": (2, None, 1)}
    rows = [
        (model, f"t{4 * kitchen + i}", kitchens[f"t{4 * kitchen + i}"], float(i < counts[kitchen]))
        for model, counts in solved.items()
        for kitchen in range(3)
        if counts[kitchen] is not None
        for i in range(4)
    ]
    runs = pd.DataFrame([*rows, *again], columns=["model", "task", "kitchen", "solved"])
    cells = cells_of(runs, "model", "task", "solved", "kitchen")
    adjusted = adjusted_rates(cells, conditions_of=conditions_of).table.set_index("model_name")["adjusted_estimate"]
    assert adjusted[list(expected)].to_dict() == pytest.approx(expected)
