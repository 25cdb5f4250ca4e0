"""Intervals of what runs take: never below 0, and of a success."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.stats import mean_interval, positive_mean_interval, ratio_interval

COSTS = st.lists(st.floats(0.001, 1e4), min_size=2, max_size=30)


@given(COSTS)
def test_no_cost_is_below_0(costs):
    found = positive_mean_interval(costs, range(len(costs)))
    assert math.isnan(found.low) or 0 < found.low <= found.estimate * (1 + 1e-9) <= found.high * (1 + 1e-9)


def test_a_few_costs_of_which_one_is_large_have_an_interval_above_0():
    costs = [0.1, 0.1, 0.2, 9.0]
    assert mean_interval(costs).low < 0 < positive_mean_interval(costs).low


def test_the_cost_of_a_success_is_the_mean_cost_over_the_success_rate_of_tasks_that_weigh_equally():
    cost, passed, task = [1, 1, 1, 5, 3, 2], [1, 1, 0, 1, 0, 1], list("aaabcc")
    found = ratio_interval(cost, passed, task)
    assert found.estimate == pytest.approx(np.mean([1, 5, 2.5]) / np.mean([2 / 3, 1, 0.5]))
    assert 0 < found.low < found.estimate < found.high
    assert (found.n, found.n_tasks) == (6, 3)


@pytest.mark.parametrize(
    ("passed", "bounded"), [([0, 0, 0, 0], None), ([1, 0, 0, 0], False), ([1, 1, 0, 0], True), ([None] * 4, None)]
)
def test_without_a_success_there_is_no_ratio_and_with_one_no_bounds(passed, bounded):
    found = ratio_interval([1, 2, 3, 4], passed, range(4))
    assert math.isnan(found.estimate) == (bounded is None)
    assert math.isnan(found.low) == (not bounded)
    assert bounded or found.warning


def test_a_ratio_interval_without_a_warning_covers_the_true_ratio():
    rng, missed = np.random.default_rng(1), []
    for _ in range(400):
        ease = rng.beta(1.2, 0.8, 60)
        found = ratio_interval(np.exp(0.5 * rng.normal(size=60)) * (1.5 - ease), rng.random(60) < ease, range(60))
        truth = math.exp(0.125) * (1.5 - 0.6) / 0.6
        missed.append(not found.low <= truth <= found.high and not found.warning)
    assert np.mean(missed) <= 0.065 + 3 * 0.011
