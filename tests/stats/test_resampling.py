import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evalkit.stats import bootstrap_interval, jackknife_interval, mean_interval


def values(n=40):
    return np.random.default_rng(1).exponential(size=n)


def test_it_is_the_interval_of_scipy():
    found = bootstrap_interval(values(), np.median, rng=np.random.default_rng(5), n_resamples=500)
    theirs = stats.bootstrap((values(),), np.median, n_resamples=500, rng=np.random.default_rng(5), vectorized=False)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval))
    assert (found.estimate, found.n, found.n_clusters) == (np.median(values()), 40, 40)
    assert found.method == "bootstrap BCa"


def test_the_same_generator_gives_the_same_interval_and_another_one_does_not():
    assert bootstrap_interval(values(), np.mean) == bootstrap_interval(values(), np.mean)
    other = bootstrap_interval(values(), np.mean, rng=np.random.default_rng(7))
    assert other.low != bootstrap_interval(values(), np.mean).low


def test_clusters_are_resampled_whole():
    effects = np.repeat(np.random.default_rng(2).normal(size=30), 10)
    clusters = np.arange(300) // 10
    clustered = bootstrap_interval(effects, np.mean, clusters, n_resamples=999)
    plain = bootstrap_interval(effects, np.mean, n_resamples=999)
    expected = mean_interval(effects, clusters)
    assert clustered.high - clustered.low == pytest.approx(expected.high - expected.low, rel=0.15)
    assert plain.high - plain.low < 0.5 * (clustered.high - clustered.low)
    assert (clustered.n, clustered.n_clusters, clustered.method) == (300, 30, "cluster bootstrap BCa")


def test_rows_are_resampled_whole():
    unlocked = np.random.default_rng(3).random((25, 4)) < [0.9, 0.5, 0.3, 0.1]
    score = lambda rows: np.exp(np.log1p(100 * rows.mean(axis=0)).mean()) - 1  # noqa: E731
    found = bootstrap_interval(unlocked, score, n_resamples=300)
    assert found.estimate == pytest.approx(score(unlocked))
    assert found.low < found.estimate < found.high
    assert found.n == 25


@pytest.mark.parametrize(
    ("given", "clusters", "n", "n_clusters", "reason"),
    [
        ([], None, 0, 0, "no values"),
        ([3.0], None, 1, 1, "a single value"),
        ([3.0, 4.0], ["a", "a"], 2, 1, "a single cluster"),
        ([2.0, 2.0, 2.0], None, 3, 3, "the statistic is the same"),
        ([1.0, 2.0, 1.0, 2.0], list("aabb"), 4, 2, "the statistic is the same"),
        ([math.nan, 3.0], None, 1, 1, "a single value has no interval; 1 value left out as missing"),
    ],
)
def test_what_has_no_interval_is_nan_and_says_why(given, clusters, n, n_clusters, reason):
    found = bootstrap_interval(given, np.mean, clusters, n_resamples=50)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.n, found.n_clusters) == (n, n_clusters)
    assert str(found.warning).startswith(reason)


def test_a_statistic_that_fails_on_resamples_has_no_interval():
    found = bootstrap_interval([0, 0, 0, 1.0], lambda v: v.sum() / (v > 0).sum() if v.any() else math.nan)
    assert found.estimate == 1
    assert math.isnan(found.low)


def test_missing_values_and_rows_are_left_out():
    kept = bootstrap_interval([1, 2, 3, 5], np.mean, n_resamples=200)
    given = bootstrap_interval(pd.Series([1, None, 2, 3, 5], dtype="Int64"), np.mean, n_resamples=200)
    rows = bootstrap_interval([[1, 1], [2, None], [2, 2], [3, 3], [5, 5]], np.mean, n_resamples=200)
    assert given[:5] == rows[:5] == kept[:5]
    assert str(given.warning).endswith("1 value left out as missing")


@pytest.mark.parametrize(("n", "doubtful"), [(19, True), (20, False)])
def test_few_values_carry_a_warning(n, doubtful):
    assert ("may be too narrow" in str(bootstrap_interval(values(n), np.mean, n_resamples=200).warning)) == doubtful


def test_confidence_is_checked():
    with pytest.raises(ValueError, match="between 0 and 1"):
        bootstrap_interval([1, 2], np.mean, confidence=95)


def test_the_jackknife_of_a_mean_is_students_t():
    found = jackknife_interval(values(), np.mean)
    theirs = stats.ttest_1samp(values(), 0).confidence_interval()
    assert (found.estimate, found.low, found.high) == pytest.approx((values().mean(), theirs.low, theirs.high))
    assert (found.method, found.target) == ("jackknife t", "new values")


def test_the_jackknife_is_centred_on_the_statistic_without_its_bias():
    # the variance with divisor n has the bias −variance / n, which the jackknife takes away exactly
    found = jackknife_interval(values(), np.var)
    assert (found.low + found.high) / 2 == pytest.approx(values().var(ddof=1))
    assert found.estimate == pytest.approx(values().var())


def test_the_jackknife_leaves_out_clusters_whole():
    clusters = np.arange(40) // 4
    found = jackknife_interval(values(), np.mean, clusters)
    theirs = stats.ttest_1samp(values().reshape(10, 4).mean(axis=1), 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert (found.n, found.n_clusters, found.method, found.target) == (40, 10, "cluster jackknife t", "new tasks")
    assert "fewer than 50 independent values" in str(found.warning)


@pytest.mark.parametrize(
    ("given", "reason"),
    [([], "no values"), ([3.0], "a single value"), ([2.0, 2.0], "the statistic is the same"), ([0.0, 1], "can't be")],
)
def test_a_jackknife_without_an_interval_says_why(given, reason):
    statistic = np.mean if reason != "can't be" else lambda rows: 1 / rows.sum() if rows.sum() else math.nan
    found = jackknife_interval(given, statistic)
    assert math.isnan(found.low)
    assert reason in str(found.warning)
