"""Bounded values of clusters: equal weights, both targets, and bounds where nothing varies."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalkit._words import Notes
from evalkit.stats import mean_interval, proportion_interval, rate_interval

CLUSTERED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=60)


@given(CLUSTERED, st.sampled_from(["tasks", "runs"]))
def test_a_clustered_rate_lies_in_its_interval_within_0_and_1(rows, weights):
    values, clusters = zip(*rows, strict=True)
    found = rate_interval(values, clusters, weights=weights)
    if found.n_clusters < 2:
        assert math.isnan(found.low)
        return
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.high - found.low > 0.02
    if found.estimate in (0, 1) and weights == "tasks":
        count = found.n_clusters
        assert found[1:3] == pytest.approx(proportion_interval(int(found.estimate) * count, count)[1:3])


@given(CLUSTERED)
def test_tasks_weigh_equally_unless_runs_are_asked_for(rows):
    values, clusters = zip(*rows, strict=True)
    means = pd.Series(values).groupby(pd.Series(clusters)).mean()
    for interval in (rate_interval, mean_interval):
        assert interval(values, clusters).estimate == pytest.approx(means.mean())
        by_runs = interval(values, clusters, weights="runs")
        assert by_runs.estimate == pytest.approx(np.mean(values))
        assert by_runs.n_clusters < 2 or len(values) == len(means) or by_runs.method.endswith("runs weigh")


@given(CLUSTERED)
def test_failures_of_clusters_have_the_mirrored_interval(rows):
    values, clusters = (np.array(column) for column in zip(*rows, strict=True))
    for options in ({}, {"weights": "runs"}, {"target": "these tasks"}):
        found, mirrored = rate_interval(values, clusters, **options), rate_interval(1 - values, clusters, **options)
        assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9, nan_ok=True)


def test_the_effective_n_is_that_of_the_variance_between_clusters():
    # 12 clusters of 4: two thirds of p (1 − p) / 48 are known, the rest of the variance is taken times (t / z)²
    passed = np.array([0, 4, 1, 3, 2, 2, 4, 0, 1, 3, 4, 4])
    values, clusters = np.repeat(passed, 4) > np.tile(range(4), 12), np.repeat(range(12), 4)
    p, variance = passed.mean() / 4, (passed / 4).var(ddof=1) / 12
    known = 2 / 3 * p * (1 - p) / 48
    used = known + (variance - known) * (stats.t.ppf(0.975, 11) / stats.norm.ppf(0.975)) ** 2
    low, high = proportion_confint(p * p * (1 - p) / used, p * (1 - p) / used, method="wilson")
    found = rate_interval(values, clusters)
    assert (found.estimate, found.low, found.high) == pytest.approx((p, low, high))
    assert (found.method, found.target, found.n, found.n_clusters) == ("cluster wilson", "new tasks", 48, 12)


@pytest.mark.parametrize(
    ("values", "clusters", "low", "high"),
    [
        ([0] * 6, list("aabbcc"), 0, 0.5615),  # 0 of 3
        ([1] * 6, list("aabbcc"), 0.4385, 1),
        ([0.5] * 6, list("aabbcc"), 0.1253, 0.8747),  # as if 1.5 of 3
        ([0.0, 0, 0], None, 0, 0.5615),
    ],
)
def test_bounded_values_that_are_all_equal_have_bounds(values, clusters, low, high):
    found = mean_interval(values, clusters, bounds=(0, 1))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert found.warning


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6)), min_size=1, max_size=40))
def test_the_mean_of_bounded_values_lies_in_its_interval_within_the_bounds(rows):
    values, clusters = zip(*rows, strict=True)
    for options in ({}, {"weights": "runs"}, {"target": "these tasks"}):
        found = mean_interval(values, clusters, bounds=(0, 1), **options)
        if math.isnan(found.low):
            assert found.warning
            continue
        assert 0 <= found.low <= found.estimate + 1e-9
        assert found.estimate - 1e-9 <= found.high <= 1
        assert found.high > found.low


def test_bounds_of_another_scale_move_the_interval_along():
    values, clusters = np.random.default_rng(4).random(30), np.arange(30) // 3
    found = mean_interval(values, clusters, bounds=(0, 1))
    moved = mean_interval(100 * values - 50, clusters, bounds=(-50, 50))
    assert (moved.low, moved.high) == pytest.approx((100 * found.low - 50, 100 * found.high - 50))
    rates = np.random.default_rng(5).integers(0, 2, 30)
    assert mean_interval(rates, clusters, bounds=(0, 1))[:5] == rate_interval(rates, clusters)[:5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": (0, 1)}, "beyond the bounds"),
        ({"bounds": (1, 0)}, "least and the largest"),
        ({"target": "all tasks"}, "unknown target 'all tasks'"),
        ({"weights": "seeds"}, "unknown weights 'seeds'"),
        ({"target": "these tasks"}, "give clusters"),
        ({"target": "these tasks", "weights": "runs", "clusters": [1, 2]}, "same weight"),
    ],
)
def test_what_cannot_be_asked_is_misuse(options, message):
    with pytest.raises(ValueError, match=message):
        mean_interval([0.5, 1.5], **options)


def test_these_tasks_have_the_spread_within_tasks_only():
    values, tasks = [1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1], list("aaaabbbbcccc")
    new, same = rate_interval(values, tasks), rate_interval(values, tasks, target="these tasks")
    assert new.estimate == same.estimate
    assert same.high - same.low < new.high - new.low
    assert (same.method, same.target) == ("wilson within tasks", "these tasks")
    # squared deviations: 0.75 within c, and a quarter of a pseudo-observation; 9 degrees of freedom
    variance = (9 * (0.75 / 3) / 4 + 0.25 * 3 / 4) / 10 / 9
    effective = same.estimate * (1 - same.estimate) / variance / (stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975)) ** 2
    low, high = proportion_confint(same.estimate * effective, effective, method="wilson")
    assert (same.low, same.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("values", "tasks", "bounded", "warning"),
    [
        ([1, 0, 1], list("abc"), True, "no task was run more than once"),
        ([1, 0, 1, 1], list("aabc"), True, "one task only was run more than once"),
        ([1.0, 5, 2], list("abc"), False, "no task was run more than once"),
        ([3.0, 3, 4, 4], list("aabb"), False, "all values are equal"),
        ([], [], True, "no values"),
    ],
)
def test_these_tasks_need_repetitions_that_differ(values, tasks, bounded, warning):
    found = mean_interval(values, tasks, bounds=(0, 1) if bounded else None, target="these tasks")
    assert math.isnan(found.low)
    assert str(found.warning).startswith(warning)


def test_tasks_with_a_single_run_are_warned_of():
    values, tasks = [1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1], list("aabbccddeef")
    assert "single run" in str(rate_interval(values, tasks, target="these tasks").warning)
    assert rate_interval(values[:10], tasks[:10], target="these tasks").warning == Notes()
    one = rate_interval([1, 1, 0, 1], list("aaaa"), target="these tasks")
    assert one.low < 0.75 < one.high


def test_runs_that_weigh_in_a_few_large_clusters_are_warned_of():
    values, tasks = [1, 0] * 10 + [1, 0, 0, 1, 1, 0, 1], ["a"] * 20 + list("bcdefgh")
    assert "few large clusters" in str(rate_interval(values, tasks, weights="runs").warning)
    assert rate_interval(values, tasks).warning == Notes()
    assert "few large clusters" in str(mean_interval(np.array(values) * 9.0, tasks, weights="runs").warning)
