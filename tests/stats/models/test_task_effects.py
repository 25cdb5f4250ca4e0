import math

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols

from evalkit.stats import rate_interval
from evalkit.stats._inputs import cells_of
from evalkit.stats.models import task_effects


def frame(values):
    """Runs from an array (tasks, models), NaN for none."""
    tasks, models = np.nonzero(~np.isnan(values))
    names = [f"m{i}" for i in models]
    return pd.DataFrame({"model": names, "task": [f"t{i}" for i in tasks], "value": values[tasks, models]})


def adjusted(table, confidence=0.95):
    return task_effects.adjusted(cells_of(table, "model", "task", "value"), confidence).set_index("model")


def sample(tasks=12, models=3, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(tasks, 1)) + np.arange(models) + rng.normal(size=(tasks, models))
    holes = rng.random((tasks, models)) < missing
    holes[:, 0] = False
    return np.where(holes, np.nan, values)


def test_effects_are_those_of_least_squares_with_task_dummies():
    table = frame(sample())
    fit = ols("value ~ 0 + C(model) + C(task, Sum)", table).fit()
    effects = fit.params.filter(like="C(model)").to_numpy()
    assert adjusted(table)["estimate"].to_numpy() == pytest.approx(effects)


def test_models_that_ran_all_tasks_have_their_own_means():
    values = sample(missing=0)
    assert adjusted(frame(values))["estimate"].to_numpy() == pytest.approx(values.mean(axis=0))


def test_the_difference_of_two_models_is_that_on_the_tasks_they_share():
    values = sample(models=2, missing=0.4)
    shared = ~np.isnan(values).any(axis=1)
    found = adjusted(frame(values))["estimate"]
    assert found["m1"] - found["m0"] == pytest.approx((values[shared, 1] - values[shared, 0]).mean())


def test_the_interval_leaves_out_one_task_at_a_time():
    table = frame(sample(missing=0.2))
    tasks = table["task"].unique()
    without = [adjusted(table[table["task"] != task])["estimate"].to_numpy() for task in tasks]
    spread = ((without - np.mean(without, axis=0)) ** 2).sum(axis=0)
    error = np.sqrt((len(tasks) - 1) / len(tasks) * spread)
    found = adjusted(table)
    assert (found["high"] - found["low"]).to_numpy() / 2 == pytest.approx(2.200985 * error)  # t, 11 degrees


def test_rates_end_at_0_and_1_and_keep_bounds_where_all_succeed():
    values = np.ones((8, 2))
    values[4:, 1] = np.nan
    found = adjusted(frame(values))
    assert found["estimate"].tolist() == pytest.approx([1, 1], abs=0.01)
    assert (found["high"] > 0.99).all()
    assert found.loc["m0", "low"] == pytest.approx(rate_interval([1] * 8).low)
    assert found.loc["m1", "low"] == pytest.approx(rate_interval([1] * 4).low, abs=0.01)


def test_an_easy_mix_is_seen_through():
    easy, hard = np.ones((26, 3)), np.zeros((14, 3))
    easy[24:] = 0
    hard[:, 2] = np.nan
    found = adjusted(frame(np.vstack([easy, hard])))
    assert found["estimate"].tolist() == pytest.approx([0.6] * 3, abs=0.01)


def test_rates_adjusted_through_a_chain_stay_rates():
    """B failed on most of the tasks that A did well on, and did well on those that C failed on."""
    a, b, c = ([1.0] * 10 + [np.nan] * 10, [0.2] * 10 + [0.9] * 10, [np.nan] * 10 + [0.1] * 10)
    found = adjusted(frame(np.array([a, b, c]).T))
    assert found[["estimate", "low", "high"]].stack().between(0, 1).all()
    assert found["estimate"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[1, np.nan], [0, np.nan], [np.nan, 1]], "sets that share no tasks"),
        ([[1, np.nan], [0, 1], [np.nan, 1]], "a task alone links models"),
        ([[1, 0]], "a single task"),
    ],
)
def test_what_cannot_be_adjusted_or_bounded_is_missing(values, reason):
    found = adjusted(frame(np.array(values, dtype=float)))
    assert found["low"].isna().all()
    assert found["estimate"].isna().all() == (reason == "sets that share no tasks")


def test_no_rows_give_no_rows():
    assert adjusted(frame(sample())[:0]).empty
    lost = adjusted(frame(sample()).assign(value=math.nan))
    assert lost["estimate"].isna().all()
