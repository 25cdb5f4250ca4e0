import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalkit.stats import _formulas as formulas
from evalkit.stats import mean_interval, proportion_interval, rate_interval

COUNTS = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CLUSTERED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=60)


@pytest.mark.parametrize(("method", "theirs"), [("wilson", "wilson"), ("exact", "beta")])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 12), (3, 12), (12, 12), (87, 200), (1, 5000)])
def test_proportions_agree_with_statsmodels(method, theirs, confidence, successes, n):
    found = proportion_interval(successes, n, method, confidence)
    low, high = proportion_confint(successes, n, alpha=1 - confidence, method=theirs)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-10)
    assert found[:1] + found[3:6] == (successes / n, n, n, method)


@given(COUNTS, st.floats(0.01, 0.99), st.sampled_from(["wilson", "exact"]))
def test_a_proportion_lies_in_its_interval_within_0_and_1(counts, confidence, method):
    found = proportion_interval(*counts, method, confidence)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.high > found.low


@given(COUNTS, st.sampled_from(["wilson", "exact"]))
def test_failures_have_the_mirrored_interval(counts, method):
    successes, n = counts
    found, mirrored = proportion_interval(successes, n, method), proportion_interval(n - successes, n, method)
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 2), "3 successes of 2 can't be"),
        ((-1, 2), "can't be"),
        ((1.5, 2), "whole numbers"),
        ((math.nan, 2), "can't be"),
        ((1, 2, "wald"), "unknown method 'wald'"),
        ((1, 2, "wilson", 1.0), "between 0 and 1"),
        ((1, 2, "wilson", 95), "between 0 and 1"),
    ],
)
def test_impossible_counts_are_misuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        proportion_interval(*arguments)


NAN = math.nan


@pytest.mark.parametrize(
    ("interval", "values", "clusters", "estimate", "n", "n_clusters", "warning"),
    [
        (rate_interval, [], None, NAN, 0, 0, "no values"),
        (rate_interval, [], [], NAN, 0, 0, "no values"),
        (rate_interval, [None, NAN], None, NAN, 0, 0, "no values; 2 values left out as missing"),
        (rate_interval, [1], ["a"], 1, 1, 1, "a single cluster has no interval"),
        (rate_interval, [1, 0, 1], ["a", "a", "a"], 2 / 3, 3, 1, "a single cluster has no interval"),
        (rate_interval, [1, 0], [None, NAN], 0.5, 2, 1, "a single cluster has no interval"),
        (mean_interval, [], None, NAN, 0, 0, "no values"),
        (mean_interval, [NAN, math.inf], [1, 2], NAN, 0, 0, "no values; 2 values left out as missing"),
        (mean_interval, [2.5], None, 2.5, 1, 1, "a single value has no interval"),
        (mean_interval, [1, 2], ["a", "a"], 1.5, 2, 1, "a single cluster has no interval"),
        (mean_interval, [0.3, 0.1 + 0.2], None, 0.3, 2, 2, "all values are equal: their spread can't be estimated"),
        (mean_interval, [0.0] * 9, list("aabbccdde"), 0, 9, 5, "all values are equal: their spread can't be estimated"),
        (
            mean_interval,
            [1, 2, 1, 2],
            list("aabb"),
            1.5,
            4,
            2,
            "all clusters have the same mean: their spread can't be estimated",
        ),
    ],
)
def test_what_has_no_interval_is_nan_and_says_why(interval, values, clusters, estimate, n, n_clusters, warning):
    found = interval(values, clusters)
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.n, found.n_clusters, str(found.warning)) == (n, n_clusters, warning)


def test_no_trials_have_no_proportion():
    found = proportion_interval(0, 0)
    assert math.isnan(found.estimate)
    assert (found.n, str(found.warning)) == (0, "no values")


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ([1, 0] * 7, "fewer than 15 values"),
        ([1] * 2 + [0] * 18, "2 or fewer successes or failures"),
        ([0] * 1 + [1] * 19, "2 or fewer successes or failures"),
        ([0] * 20, ""),
        ([1, 0] * 10, ""),
    ],
)
def test_doubtful_rates_carry_a_warning(values, warning):
    found = rate_interval(values)
    assert str(found.warning).startswith(warning)
    assert bool(found.warning) == bool(warning)


@pytest.mark.parametrize(
    ("interval", "values", "clusters", "warning"),
    [
        (rate_interval, [1, 0, 1, 0, 0, 1, 0, 0], list("aabbccdd"), "fewer than 5 independent values"),
        (rate_interval, [1, 0] * 2 + [0] * 16, np.arange(20) // 2, "2 or fewer clusters with a success"),
        (rate_interval, [1, 0] * 10, np.arange(20) // 2, ""),
        (mean_interval, [1.0, 2, 3, 4], None, "fewer than 5 independent values"),
        (mean_interval, [0] * 19 + [1], None, "few values for how skewed they are"),
        (mean_interval, np.arange(20), None, ""),
    ],
)
def test_doubtful_clusters_and_means_carry_a_warning(interval, values, clusters, warning):
    found = interval(values, clusters)
    assert str(found.warning).startswith(warning)
    assert bool(found.warning) == bool(warning)
    assert math.isfinite(found.low)


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1, None],
        [True, False, True, None],
        (1.0, 0.0, 1.0, NAN),
        np.array([1, 0, 1, NAN]),
        pd.Series([True, False, True, None], dtype="boolean"),
        pd.Series([1, 0, 1, None], dtype="Int64", index=[7, 7, 8, 9]),
        pd.Series([True, False, True, None], dtype="object"),
    ],
)
def test_values_may_come_in_any_form_and_missing_ones_are_left_out(values):
    found = rate_interval(values)
    assert (found.estimate, found.n) == (pytest.approx(2 / 3), 3)
    assert str(found.warning).endswith("1 value left out as missing")
    assert rate_interval(iter(values))[:4] == found[:4]


def test_a_rate_of_other_values_is_misuse():
    with pytest.raises(ValueError, match="0/1 values"):
        rate_interval([0, 1, 0.5])


@pytest.mark.parametrize("interval", [rate_interval, mean_interval])
def test_clusters_need_a_label_for_each_value(interval):
    with pytest.raises(ValueError, match="3 values, but 2 cluster labels"):
        interval([0, 1, 1], ["a", "b"])


@given(st.lists(st.integers(0, 1), min_size=2, max_size=80))
def test_clusters_of_one_value_change_nothing_but_the_target(values):
    plain, clustered = rate_interval(values), rate_interval(values, range(len(values)))
    assert clustered == plain._replace(target="new tasks")
    assert plain.target == "new values"
    mean = mean_interval(values)
    assert mean_interval(values, range(len(values)))[:5] == pytest.approx(mean[:5], nan_ok=True)


@given(CLUSTERED)
def test_the_order_of_values_and_the_names_of_clusters_do_not_matter(rows):
    values, clusters = zip(*rows, strict=True)
    named = [f"task {9 - c}" for c in clusters]
    for interval in (rate_interval, mean_interval):
        assert interval(values[::-1], named[::-1])[:5] == pytest.approx(interval(values, clusters)[:5], nan_ok=True)


def test_copies_of_the_same_runs_do_not_narrow_a_clustered_rate():
    outcomes = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1]
    once, copied = rate_interval(outcomes), rate_interval(outcomes * 20, list(range(10)) * 20)
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high))
    assert rate_interval(outcomes * 20).high < once.high


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_few_values_have_the_interval_of_student(confidence):
    values = np.random.default_rng(1).exponential(size=4)
    found = mean_interval(values, confidence=confidence)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(confidence)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.method == "t"


def test_values_without_skewness_have_the_interval_of_student_too():
    values = np.array([-3.0, -1, -1, 0, 0, 1, 1, 3])
    found, theirs = mean_interval(values), stats.ttest_1samp(values, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-4)


def test_skewed_values_have_an_interval_that_reaches_farther_to_their_long_side():
    values = np.array([0.0, 0, 0, 1, 1, 2, 2, 3, 5, 12])
    found, mirrored = mean_interval(values), mean_interval(-values)
    half = stats.t.ppf(0.975, 9) * values.std(ddof=1) / math.sqrt(10)
    assert found.high - found.estimate > half > found.estimate - found.low
    assert found.high - found.estimate <= 2 * half
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
    assert found.method == "t, Hall's correction"


@given(st.floats(-3, 3), st.floats(-2, 2).filter(lambda a: abs(a) > 1e-3))
def test_halls_inverse_undoes_his_transformation(t, slant):
    found = float(formulas.hall(t, np.array(slant)))
    back = found + slant * found**2 / 3 + slant**2 * found**3 / 27 + slant / 6
    assert back == pytest.approx(t, abs=1e-6)


def test_a_clustered_mean_is_that_of_the_means_of_clusters():
    rng = np.random.default_rng(2)
    clusters = rng.integers(0, 12, 70)
    values = rng.normal(size=70) + rng.normal(size=12)[clusters]
    found = mean_interval(values, clusters)
    alone = mean_interval(pd.Series(values).groupby(clusters).mean())
    assert found[:3] == pytest.approx(alone[:3])
    assert (found.n, found.n_clusters, found.method) == (70, 12, "cluster t, Hall's correction")


def test_a_mean_over_runs_has_the_jackknife_variance_of_clusters():
    rng = np.random.default_rng(3)
    clusters = np.repeat(range(9), [1, 2, 3, 4, 5, 6, 7, 8, 9])
    values = rng.normal(size=45) + rng.normal(size=9)[clusters]
    without = np.array([values[clusters != c].mean() for c in range(9)])
    shares = np.bincount(clusters) / 45
    found = mean_interval(values, clusters, weights="runs")
    variance = ((without - values.mean()) ** 2).sum()
    half = stats.t.ppf(0.975, 1 / (shares**2).sum() - 1) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half))


def test_weights_make_no_difference_without_clusters():
    values = [1, 2, 3, 9, 5, 6]
    assert mean_interval(values, weights="runs") == mean_interval(values)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=30).filter(lambda v: np.ptp(v) > 1e-3),
    st.floats(0.01, 100),
    st.floats(-100, 100),
)
def test_a_mean_keeps_its_interval_under_a_change_of_unit(values, scale, shift):
    found = mean_interval(values)
    moved = mean_interval(np.array(values) * scale + shift)
    size = max(np.abs(values)) * scale + abs(shift)
    expected = [found.low * scale + shift, found.high * scale + shift]
    if not math.isnan(found.low) and not math.isnan(moved.low):
        assert [moved.low, moved.high] == pytest.approx(expected, abs=1e-7 * size)
