import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.proportion import proportion_confint

from evalkit.stats import (
    estimate_by,
    intervals,
    jackknife_interval,
    mean_interval,
    positive_mean_interval,
    proportion_interval,
    rate_interval,
)

VALUES = np.random.default_rng(1).exponential(size=40)
COUNTS = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CLUSTERED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=60)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 12), (3, 12), (12, 12), (87, 200), (1, 5000)])
def test_proportions_agree_with_statsmodels(successes, n):
    found = proportion_interval(successes, n)
    assert (found.low, found.high) == pytest.approx(proportion_confint(successes, n, method="wilson"), abs=1e-10)
    assert found[:1] + found[3:6] == (successes / n, n, n, "wilson")


@given(COUNTS)
def test_a_proportion_lies_in_its_interval_within_0_and_1(counts):
    found = proportion_interval(*counts)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.high > found.low


NAN, NO_SPREAD = math.nan, "their spread can't be estimated"


@pytest.mark.parametrize(
    ("interval", "values", "clusters", "estimate", "n", "n_tasks", "warning"),
    [
        (rate_interval, [], None, NAN, 0, 0, "no values"),
        (rate_interval, [None, NAN], None, NAN, 0, 0, "no values; 2 values left out as missing"),
        (rate_interval, [1], ["a"], 1, 1, 1, "a single cluster has no interval"),
        (rate_interval, [1, 0, 1], ["a", "a", "a"], 2 / 3, 3, 1, "a single cluster has no interval"),
        (rate_interval, [1, 0], [None, NAN], 0.5, 2, 1, "a single cluster has no interval"),
        (mean_interval, [NAN, math.inf], [1, 2], NAN, 0, 0, "no values; 2 values left out as missing"),
        (mean_interval, [2.5], None, 2.5, 1, 1, "a single value has no interval"),
        (mean_interval, [0.3, 0.1 + 0.2], None, 0.3, 2, 2, f"all values are equal: {NO_SPREAD}"),
        (mean_interval, [0.0] * 9, list("aabbccdde"), 0, 9, 5, f"all values are equal: {NO_SPREAD}"),
        (mean_interval, [1, 2, 1, 2], list("aabb"), 1.5, 4, 2, f"all clusters have the same mean: {NO_SPREAD}"),
    ],
)
def test_what_has_no_interval_is_nan_and_says_why(interval, values, clusters, estimate, n, n_tasks, warning):
    found = interval(values, clusters)
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.n, found.n_tasks, str(found.warning)) == (n, n_tasks, warning)


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
    assert (found.estimate, found.n, found.target) == (pytest.approx(2 / 3), 3, "new values")
    assert str(found.warning).endswith("1 value left out as missing")
    assert rate_interval(iter(values))[:4] == found[:4]


@given(CLUSTERED)
def test_the_order_of_values_and_the_names_of_clusters_do_not_matter(rows):
    values, clusters = zip(*rows, strict=True)
    named = [f"task {9 - c}" for c in clusters]
    for interval in (rate_interval, mean_interval):
        assert interval(values[::-1], named[::-1])[:5] == pytest.approx(interval(values, clusters)[:5], nan_ok=True)


def test_skewed_values_have_an_interval_that_reaches_farther_to_their_long_side():
    values = np.array([0.0, 0, 1, 3, 12])  # the fewest that are corrected
    found, mirrored = mean_interval(values), mean_interval(-values)
    half = stats.t.ppf(0.975, 4) * values.std(ddof=1) / math.sqrt(5)
    assert found.high - found.estimate > half > found.estimate - found.low
    assert found.high - found.estimate <= 2 * half
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
    assert found.method == "t, Hall's correction"


@pytest.mark.parametrize(
    ("interval", "values", "clusters", "warning"),
    [
        (rate_interval, [1, 0] * 7, None, "fewer than 15 values"),
        (rate_interval, [1] * 3 + [0] * 17, None, "3 or fewer successes or failures"),
        (rate_interval, [0] * 20, None, ""),
        (rate_interval, [1] * 4 + [0] * 16, None, ""),
        (rate_interval, [1, 0, 1, 0, 0, 1, 0, 0], list("aabbccdd"), "fewer than 5 independent values"),
        (rate_interval, [1, 0] * 2 + [0] * 16, np.arange(20) // 2, "2 or fewer clusters with a success"),
        (rate_interval, [1, 0] * 10, np.arange(20) // 2, ""),
        (mean_interval, [1.0, 2, 3, 4], None, "fewer than 5 independent values"),
        (mean_interval, [0] * 19 + [1], None, "few values for such skewed data"),
        (mean_interval, np.arange(20), None, ""),
    ],
)
def test_doubtful_intervals_carry_a_warning(interval, values, clusters, warning):
    found = interval(values, clusters)
    assert str(found.warning).startswith(warning)
    assert bool(found.warning) == bool(warning)
    assert math.isfinite(found.low)


@pytest.mark.parametrize(
    ("found", "values"), [(mean_interval(VALUES[:4]), VALUES[:4]), (jackknife_interval(VALUES, np.mean), VALUES)]
)
def test_few_values_and_the_jackknife_of_a_mean_have_the_interval_of_student(found, values):
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    assert found[:3] == pytest.approx((values.mean(), theirs.low, theirs.high))


@given(CLUSTERED)
def test_tasks_weigh_equally(rows):
    values, clusters = zip(*rows, strict=True)
    means = pd.Series(values).groupby(pd.Series(clusters)).mean()
    assert rate_interval(values, clusters).estimate == pytest.approx(means.mean())
    assert mean_interval(values, clusters)[:3] == pytest.approx(mean_interval(means)[:3], nan_ok=True)


def test_the_effective_n_is_that_of_the_variance_between_clusters():
    # 12 clusters of 4: two thirds of p (1 − p) / 48 are known, the rest of the variance is taken times (t / z)²; what
    # exceeds independent trials is widened by 3 skewness² / 12
    passed = np.array([0, 4, 1, 3, 2, 2, 4, 0, 1, 3, 4, 4])
    values, clusters = np.repeat(passed, 4) > np.tile(range(4), 12), np.repeat(range(12), 4)
    p, variance = passed.mean() / 4, (passed / 4).var(ddof=1) / 12
    independent = p * (1 - p) / 48
    widened = 3 * stats.skew(passed / 4) ** 2 / 12 * (variance - independent)
    factor = (stats.t.ppf(0.975, 11) / stats.norm.ppf(0.975)) ** 2
    used = 2 / 3 * independent + (variance - 2 / 3 * independent + widened) * factor
    low, high = proportion_confint(p * p * (1 - p) / used, p * (1 - p) / used, method="wilson")
    found = rate_interval(values, clusters)
    assert (found.estimate, found.low, found.high) == pytest.approx((p, low, high))
    assert (found.method, found.target, found.n, found.n_tasks) == ("cluster wilson", "new tasks", 48, 12)


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
@example([(2.7295411391803817e-17, 0)] * 3)  # so near to 0 that rounding took the lower end below it
def test_the_mean_of_bounded_values_lies_in_its_interval_within_the_bounds(rows):
    values, clusters = zip(*rows, strict=True)
    for options in ({}, {"target": "these tasks"}):
        found = mean_interval(values, clusters, bounds=(0, 1), **options)
        if math.isnan(found.low):
            assert found.warning
            continue
        assert 0 <= found.low <= found.estimate + 1e-9
        assert found.estimate - 1e-9 <= found.high <= 1
        assert found.high > found.low


def test_these_tasks_have_the_spread_within_tasks_only():
    values, tasks = [1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1], list("aaaabbbbcccc")
    new, same = rate_interval(values, tasks), rate_interval(values, tasks, target="these tasks")
    assert new.estimate == same.estimate
    assert same.high - same.low < new.high - new.low
    assert (same.method, same.target) == ("wilson within tasks", "these tasks")
    # squared deviations: 0.75 within c; that no run of the three tasks fails has a chance of 5 % at most up to a sum
    # of their rates of 3 (1 − .05 ** (1 / 12)), whose variance is added
    z = stats.norm.ppf(0.975)
    variance = ((0.75 / 3) / 4 + (3 * (1 - 0.05 ** (1 / 12)) / z) ** 2) / 9
    effective = same.estimate * (1 - same.estimate) / variance
    low, high = proportion_confint(same.estimate * effective, effective, method="wilson")
    half = z * variance**0.5  # one task always passed, and one never: either may vary, too
    assert (same.low, same.high) == pytest.approx((min(low, same.estimate - half), max(high, same.estimate + half)))


def test_families_change_the_interval_and_not_the_estimate():
    # 1 success in 251 tasks, in 6 families of which one is large: the rate is 1 of 251, not 1 of 6
    passed = np.arange(251) == 250
    families = np.r_[np.repeat(range(5), 49), [5] * 6]
    found = rate_interval(passed, range(251), families=families)
    alone = rate_interval(passed, range(251))
    assert found.estimate == alone.estimate == pytest.approx(1 / 251)
    assert found.high > 1.4 * alone.high
    assert "families" in found.warning
    assert found[3:5] == (251, 251)


@pytest.mark.parametrize("counts", [[10] * 12, [2] * 60, [1] * 120])
def test_families_of_equal_size_have_the_interval_of_their_means(counts):
    rng = np.random.default_rng(3)
    codes = np.repeat(range(len(counts)), counts)
    values = (rng.random(120) + rng.random(len(counts))[codes]) / 2
    found = mean_interval(values, range(120), families=codes)
    means = np.bincount(codes, values) / counts
    expected = mean_interval(means, range(len(counts)))
    assert (found.estimate, found.low, found.high) == pytest.approx(expected[:3])


@pytest.mark.parametrize(("families", "reason"), [([0] * 20, "single family"), ([0] * 18 + [1, 2], "single family")])
def test_a_family_that_holds_most_tasks_shows_nothing_of_others(families, reason):
    found = rate_interval(np.arange(20) % 2, range(20), families=families)
    assert found.estimate == 0.5
    assert math.isnan(found.low)
    assert reason in str(found.warning)


@pytest.mark.parametrize("sizes", [[2] * 12, [2, 10] * 6, [20] * 5 + [2], [3, 4, 50], [1, 5, 5]])
def test_what_runs_that_agree_can_t_exclude_is_the_largest_sum_of_rates(sizes):
    # no rates with a larger sum leave a chance of 5 % that no run fails: the runs of tasks add up
    found = intervals.most_unseen(np.array(sizes))
    best = optimize.minimize(
        lambda rates: -rates.sum(),
        np.full(len(sizes), 0.1),
        bounds=[(0, 1 - 1e-9)] * len(sizes),
        constraints={"type": "ineq", "fun": lambda rates: math.log(20) + (np.array(sizes) * np.log1p(-rates)).sum()},
    )
    assert found == pytest.approx(-best.fun, rel=1e-3)


def test_one_run_less_of_a_task_hardly_changes_an_interval_for_these_tasks():
    passed = np.tile([1, 1, 1, 0, 0, 0], 10)
    tasks = np.repeat(range(20), 3)
    whole = rate_interval(passed, tasks, target="these tasks")
    for left_out in range(6):
        kept = np.arange(60) != left_out
        found = rate_interval(passed[kept], tasks[kept], target="these tasks")
        assert (found.low, found.high) == pytest.approx((whole.low, whole.high), abs=0.03)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (mean_interval([1, 0, 1], list("abc"), bounds=(0, 1), target="these tasks"), "no task was run more than once"),
        (rate_interval([1, 0, 1, 1], list("aabc"), target="these tasks"), "only one task was run more than once"),
        (mean_interval([3.0, 3, 4, 4], list("aabb"), target="these tasks"), "all values are equal"),
        (rate_interval([], [], target="these tasks"), "no values"),
        (jackknife_interval([], np.mean), "no values"),
        (jackknife_interval([3.0], np.mean), "a single value"),
        (jackknife_interval([2.0, 2.0], np.mean), "the statistic does not vary"),
        (jackknife_interval([0.0, 1], lambda rows: 1 / rows.sum() if rows.sum() else math.nan), "can't be"),
    ],
)
def test_what_the_data_do_not_show_has_no_bounds_but_a_reason(found, reason):
    assert math.isnan(found.low)
    assert reason in str(found.warning)


def test_the_jackknife_is_centred_on_the_statistic_without_its_bias():
    # the variance with divisor n has the bias −variance / n, which the jackknife takes away exactly
    found = jackknife_interval(VALUES, np.var)
    assert (found.low + found.high) / 2 == pytest.approx(VALUES.var(ddof=1))
    assert found.estimate == pytest.approx(VALUES.var())


RUNS = pd.DataFrame(
    {
        "model_name": ["b", "a", "b", None, "a", "b"],
        "blocked": pd.array([0, 1, 1, 0, 1, 0], dtype="Int64"),
        "task_id": ["x", "x", "y", "y", "y", "x"],
        "success": [True, False, False, True, True, True],
    }
)
RESULT = ["n", "n_tasks", "estimate", "low", "high", "method", "target", "warning"]


def test_each_group_has_the_interval_of_its_rows():
    found = estimate_by(RUNS, ["model_name", "blocked"], "success", "task_id")
    assert list(found) == ["model_name", "blocked", *RESULT]
    keys = [tuple(None if pd.isna(v) else v for v in row) for row in found[["model_name", "blocked"]].to_numpy()]
    assert keys == [("a", 1), ("b", 0), ("b", 1), (None, 0)]
    parts = RUNS.groupby(["model_name", "blocked"], dropna=False)
    for (_, part), row in zip(parts, found[RESULT].to_dict("records"), strict=True):
        expected = rate_interval(part["success"], part["task_id"])
        assert tuple(row[name] for name in expected._fields) == pytest.approx(tuple(expected), nan_ok=True)


@pytest.mark.parametrize("values", [[-2.0, 5, 9], [-0.1, 0.1, 0.2, 0.5, 0.7, 0.1], [-3, -4, -9]])
def test_negative_values_have_the_interval_of_any_values(values):
    assert positive_mean_interval(values) == mean_interval(values)
    assert positive_mean_interval(np.abs(values)).method.endswith("log scale")
