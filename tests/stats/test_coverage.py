import numpy as np
import pytest

from benchmarks.coverage import CORRELATIONS, FINE, RATES, cluster_coverage, differences, exact_coverage
from benchmarks.error_rates import powers
from evalkit.stats import _doubts as doubts
from evalkit.stats import _formulas as formulas
from evalkit.stats import mean_interval, paired_difference, rate_interval


@pytest.mark.parametrize("n", [20, 30, 50, 100, 200])
def test_wilson_covers_93_to_97_percent_of_rates(n):
    held, _ = exact_coverage(n, "wilson", RATES)
    _, silent = exact_coverage(n, "wilson", FINE)
    assert 0.93 <= held.mean() <= 0.97
    assert silent.max() < 0.09


@pytest.mark.parametrize("n", [1, 5, 10, 20, 50, 100, 200])
def test_clopper_pearson_never_covers_less_than_it_promises(n):
    held, _ = exact_coverage(n, "exact", FINE)
    assert held.min() >= 0.95


@pytest.mark.parametrize(("count", "size"), [(5, 10), (10, 2), (10, 4), (20, 4), (50, 4)])
def test_clustered_rates_cover_93_to_97_percent_of_rates_and_correlations(count, size):
    rng = np.random.default_rng(1)
    found = np.array([[cluster_coverage(np.full(count, size), c, p, 400, rng) for p in RATES] for c in CORRELATIONS])
    held, silent, plain = found[:, :, 0], found[:, :, 1], found[:, :, 2]
    assert 0.93 <= held.mean() <= 0.975  # half a point for 38,000 samples
    assert held.mean(axis=1).min() >= 0.925
    assert silent.max() < 0.12
    assert plain.mean(axis=1).min() < held.mean(axis=1).min()


@pytest.mark.parametrize("n", [20, 50])
def test_means_of_scores_cover_what_they_promise_where_they_do_not_warn(n):
    rng = np.random.default_rng(2)
    scores, ones = (rng.random((4_000, n)) < 0.5) * rng.random((4_000, n)), np.ones(n, dtype=int)
    low, high = formulas.cluster_t(scores, ones, 0.95)
    missed = (low > 0.25) | (high < 0.25)
    assert missed.mean() < 0.08
    assert (missed & ~doubts.skewed(scores, ones)).mean() < 0.05


def test_paired_tests_err_no_more_often_than_they_say():
    for row in differences(120, np.random.default_rng(3), sizes=(10, 20)):
        assert float(row["errors of 5 % allowed"].split(",")[0]) <= 5
        assert float(row["mean coverage"]) >= 93


def test_planned_tasks_have_about_the_power_asked_for():
    planned = [float(row["power"]) for row in powers(0, np.random.default_rng(0)) if row["comparisons"] == 1]
    assert min(planned) >= 79
    assert np.median(planned) <= 82


def test_the_study_runs_the_formulas_of_the_public_functions():
    rng = np.random.default_rng(4)
    sizes = np.array([1, 2, 3, 6, 4])
    successes = rng.binomial(sizes, 0.6, (30, 5))
    codes = np.repeat(np.arange(5), sizes)
    low, high = formulas.cluster_wilson(successes, sizes, 0.95)
    for i, row in enumerate(successes):
        values = np.concatenate([[1] * s + [0] * (n - s) for s, n in zip(row, sizes, strict=True)])
        found = rate_interval(values, codes)
        assert (found.low, found.high) == pytest.approx((low[i], high[i]))
        assert bool(found.warning) == bool(doubts.unmixed(row, sizes))
    gaps = rng.integers(-1, 2, (30, 8))
    low, high = formulas.bonett_price(gaps, 0.95)
    for i, row in enumerate(gaps):
        found = paired_difference(row > 0, row < 0)
        assert (found.low, found.high) == pytest.approx((low[i], high[i]))
    scores = rng.exponential(size=(30, 7))
    low, high = formulas.cluster_t(scores, np.ones(7, dtype=int), 0.95)
    for i, row in enumerate(scores):
        found = mean_interval(row)
        assert (found.low, found.high) == pytest.approx((low[i], high[i]))
        assert bool(found.warning) == bool(doubts.skewed(row, np.ones(7, dtype=int)))
