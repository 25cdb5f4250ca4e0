"""The studies of docs/coverage.md on a few cells, with tolerances of three binomial standard errors."""

import math

import numpy as np
import pytest

from benchmarks import coverage, studies
from benchmarks.simulate import CORRELATIONS, RATES, VALUES, cluster_coverage, exact_coverage, score_coverage, sizes_of
from evalkit.stats import formulas, mean_interval, rate_interval


def tolerance(share, samples):
    return 3 * math.sqrt(share * (1 - share) / samples)


@pytest.mark.parametrize("n", [20, 30, 50, 100, 200])
def test_wilson_covers_93_to_97_percent_of_rates(n):
    held, _ = exact_coverage(n, "wilson", RATES)
    assert 0.93 <= held.mean() <= 0.97
    assert exact_coverage(n, "wilson", studies.FINE)[1].max() < 0.085
    assert exact_coverage(n, "exact", studies.FINE)[0].min() >= 0.95  # Clopper and Pearson


def test_no_single_rate_is_missed_unwarned_in_more_than_6_5_percent():
    cells = [cell for cell in coverage.single_rates(20, np.random.default_rng(0)) if "1 run" in cell[0]]
    assert len(cells) == 55
    assert max(share for _, share in cells) <= 0.065


@pytest.mark.parametrize("pattern", ["1", "8", "20, 1, ..., 1", "1, 2, 4, ..., 32"])
@pytest.mark.parametrize("count", [5, 12, 30])
def test_rates_of_clusters_of_any_sizes_cover_what_they_promise(count, pattern):
    rng, samples = np.random.default_rng(1), 200
    used = CORRELATIONS if pattern != "1" else CORRELATIONS[:1]
    sizes = sizes_of(pattern, count)
    found = np.array([[cluster_coverage(sizes, c, p, samples, rng) for p in RATES] for c in used])
    by_correlation, slack = found[:, :, 0].mean(axis=1), tolerance(0.05, samples * len(RATES))
    least = 0.935 if count >= 12 else 0.93
    assert by_correlation.min() >= least - slack
    assert by_correlation.mean() <= 0.965 + slack + 0.01 * (count < 12)
    if pattern != "1":
        assert found[:, :, 2].mean(axis=1).min() < 0.9  # plain Wilson takes all runs as independent


@pytest.mark.parametrize("name", ["skewed", "narrow", "zeros and uniform", "zeros and high"])
@pytest.mark.parametrize("runs", [1, 4])
def test_means_of_skewed_and_zero_heavy_scores_cover_what_they_promise(name, runs):
    rng, samples = np.random.default_rng(3), 300
    found = np.array([score_coverage(name, mean, 12, runs, samples, rng) for mean in RATES])
    slack = tolerance(0.05, samples * len(RATES))
    assert 0.935 - slack <= found[:, 0].mean() <= 0.965 + slack
    assert found[:, 0].mean() > found[:, 2].mean()  # t falls short


@pytest.mark.parametrize("name", ["normal", "exponential", "counts, half of them 0", "log-normal, skewness 1.75"])
def test_means_without_bounds_cover_what_they_promise(name):
    draw, mean = VALUES[name]
    low, high = formulas.corrected_t(draw(np.random.default_rng(4), (4_000, 20)), 0.95)
    assert 0.935 - tolerance(0.05, 4_000) <= ((low <= mean) & (mean <= high)).mean() <= 0.965


@pytest.mark.parametrize(
    ("rows", "columns", "low", "high"),
    [
        (lambda rng: studies.same_tasks(200, rng, (12, 30), ("2", "8")), ["mean over rates"], 93.2, 97),
        (lambda rng: studies.pass_k(100, rng, (12,)), ["pass@k", "pass^k"], 93, 97),
        (lambda rng: studies.mixes(200, rng, ()), ["coverage"], 93, 97),
        (lambda rng: studies.differences(300, rng, (12, 30)), ["mean coverage"], 93, 98.6),
        (lambda rng: studies.sequences(500, rng, 150), ["missed at any look"], 0, 11.5),
        (lambda rng: studies.powers(0, rng)[:7], ["power"], 79, 88),
    ],
    ids=["same tasks", "pass@k", "mixes", "differences", "sequences", "power"],
)
def test_what_studies_find_is_what_is_promised(rows, columns, low, high):
    for row in rows(np.random.default_rng(6)):
        for column in columns:
            assert low <= float(row[column]) <= high


def test_families_of_pairs_err_in_5_percent_and_find_more_than_by_holm():
    wrong, found = studies.family_errors(studies.FAMILIES["3 equal, 3 not"], 12, 3, 60, np.random.default_rng(8))
    assert wrong[0] <= 0.05 + tolerance(0.05, 60)
    assert found[0] > found[1]


def test_the_first_of_20_equal_models_is_covered_by_its_corrected_interval_only():
    (row,) = studies.ranking(200, np.random.default_rng(10), ((20, 30, 0.0),))  # 20 samples
    assert float(row["corrected"]) == 100
    assert float(row["interval of the first"]) < 92
    assert float(row["all ranks held"]) >= 80
    assert abs(float(row["corrected "])) < abs(float(row["bias"])) / 3


def test_the_study_runs_the_formulas_of_the_public_functions():
    rng = np.random.default_rng(13)
    sizes = np.array([1, 2, 3, 6, 4])
    successes = rng.binomial(sizes, 0.6, (30, 5))
    codes, means = np.repeat(np.arange(5), sizes), successes / sizes
    low, high = formulas.bounded(means, sizes, 0.95, True)
    for i, row in enumerate(successes):
        values = np.concatenate([[1] * s + [0] * (n - s) for s, n in zip(row, sizes, strict=True)])
        found = rate_interval(values, codes)
        assert (found.low, found.high) == pytest.approx((low[i], high[i]))
        assert bool(found.warning) == bool(formulas.unmixed(means[i]))
    scores = rng.exponential(size=(30, 7))
    low, high = formulas.corrected_t(scores, 0.95)
    for i, row in enumerate(scores):
        found = mean_interval(row)
        assert (found.low, found.high) == pytest.approx((low[i], high[i]))
        assert bool(found.warning) == bool(formulas.skewed(row))


@pytest.mark.parametrize("claim", ["decided pair", "best", "trend"])
def test_the_table_of_claims_has_the_worst_and_the_median_cell_of_each(claim):
    row = coverage.rows_of(claim, 12, 0)
    assert row["cells"] >= 18
    assert float(row["median"]) <= float(row["worst"])


def test_no_claim_of_a_small_loss_errs_in_more_than_6_percent_of_0_1_outcomes():
    cells = [cell for cell in coverage.not_worse(1, np.random.default_rng(0)) if "differ" in cell[0]]
    assert len(cells) > 100
    assert max(share for _, share in cells) <= 0.06
