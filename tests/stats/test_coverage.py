"""The studies of docs/coverage.md on a few cells, with tolerances of three binomial standard errors."""

import math

import numpy as np
import pytest

from benchmarks import coverage, error_rates, interval_studies, selection_studies, studies
from benchmarks.simulate import CORRELATIONS, RATES, VALUES, sizes_of
from evalkit.stats import _formulas as formulas
from evalkit.stats import _warnings as warnings
from evalkit.stats import mean_interval, rate_interval


def tolerance(share, samples):
    return 3 * math.sqrt(share * (1 - share) / samples)


@pytest.mark.parametrize("n", [20, 30, 50, 100, 200])
def test_wilson_covers_93_to_97_percent_of_rates(n):
    held, _ = interval_studies.exact_coverage(n, "wilson", RATES)
    _, silent = interval_studies.exact_coverage(n, "wilson", interval_studies.FINE)
    assert 0.93 <= held.mean() <= 0.97
    assert silent.max() < 0.09


@pytest.mark.parametrize("n", [1, 5, 10, 20, 50, 100, 200])
def test_clopper_pearson_never_covers_less_than_it_promises(n):
    held, _ = interval_studies.exact_coverage(n, "exact", interval_studies.FINE)
    assert held.min() >= 0.95


@pytest.mark.parametrize("pattern", ["1", "2", "8", "20, 1, ..., 1", "1, 2, 4, ..., 32"])
@pytest.mark.parametrize("count", [5, 12, 30])
def test_rates_of_clusters_of_any_sizes_cover_what_they_promise(count, pattern):
    rng, samples = np.random.default_rng(1), 200
    used = CORRELATIONS if pattern != "1" else CORRELATIONS[:1]
    sizes = sizes_of(pattern, count)
    found = np.array([[interval_studies.cluster_coverage(sizes, c, p, samples, rng) for p in RATES] for c in used])
    by_correlation, slack = found[:, :, 0].mean(axis=1), tolerance(0.05, samples * len(RATES))
    least = 0.935 if count >= 12 else 0.93
    assert by_correlation.min() >= least - slack
    assert by_correlation.mean() <= 0.965 + slack + 0.01 * (count < 12)
    if pattern != "1":
        assert found[:, :, 3].mean(axis=1).min() < 0.9  # plain Wilson takes all runs as independent


def test_rates_of_the_same_tasks_cover_the_rate_of_these_tasks():
    for row in interval_studies.same_tasks(300, np.random.default_rng(2), (12, 30), ("2", "4", "8")):
        assert float(row["mean over rates"]) / 100 + tolerance(0.05, 300 * 19 * 5) >= 0.935
        assert float(row["mean over rates"]) <= 97


@pytest.mark.parametrize("name", ["skewed", "narrow", "zeros and uniform", "zeros and high"])
@pytest.mark.parametrize("runs", [1, 4])
def test_means_of_skewed_and_zero_heavy_scores_cover_what_they_promise(name, runs):
    rng, samples = np.random.default_rng(3), 300
    found = np.array([interval_studies.score_coverage(name, mean, 12, runs, samples, rng) for mean in RATES])
    slack = tolerance(0.05, samples * len(RATES))
    assert 0.935 - slack <= found[:, 0].mean() <= 0.965 + slack
    assert found[:, 0].mean() > found[:, 2].mean()  # t falls short


@pytest.mark.parametrize("name", ["normal", "exponential", "counts, half of them 0", "log-normal, skewness 1.75"])
def test_means_without_bounds_cover_what_they_promise(name):
    draw, mean = VALUES[name]
    values = draw(np.random.default_rng(4), (4_000, 20))
    low, high = formulas.corrected_t(values, 0.95)
    assert 0.935 - tolerance(0.05, 4_000) <= ((low <= mean) & (mean <= high)).mean() <= 0.965


def test_crafter_seeds_cover_93_to_97_percent():
    for row in interval_studies.crafter_seeds(100, np.random.default_rng(5)):
        for seeds in (3, 5, 10, 20):
            low, high = (float(part) / 100 for part in row[f"{seeds} seeds"].split(" to "))
            slack = tolerance(0.05, 20_000 // seeds)
            assert 0.93 - slack <= low <= high <= 0.97 + slack


def test_pass_at_k_covers_what_it_promises():
    for row in interval_studies.pass_k(100, np.random.default_rng(6), (12,)):
        assert 93 <= float(row["pass@k"]) <= 97
        assert 93 <= float(row["pass^k"]) <= 97


def test_paired_differences_cover_what_they_promise_and_err_no_more_often():
    for row in error_rates.differences(400, np.random.default_rng(7), (12, 30)):
        assert 93 <= float(row["mean coverage"]) <= 98.6  # wider where few tasks may hide what is rare
        assert float(row["errors of 5 % allowed"].split(",")[0]) <= 5


@pytest.mark.parametrize("name", ["6 equal, .1", "3 equal, 3 not"])
def test_families_of_pairs_err_in_5_percent_and_find_more_than_by_holm(name):
    wrong, found = error_rates.family_errors(error_rates.FAMILIES[name], 12, 3, 150, np.random.default_rng(8))
    assert wrong[0] <= 0.05 + tolerance(0.05, 150)
    assert not found[0] < found[1]


def test_trends_err_in_5_percent_on_lattices_and_say_falls_seldom_where_one_step_is_flat():
    rng = np.random.default_rng(9)
    for sizes, spanning in (((1,), False), ((4,), False), ((2,), True)):
        wrong = error_rates.trend_errors(9, sizes, 0.3, (0.5,) * 3, 150, rng, spanning)
        assert wrong[:, 0].mean() <= 0.05 + tolerance(0.05, 150)
        flat = error_rates.trend_errors(12, sizes, 0.3, (0.8, 0.8, 0.2), 60, rng, spanning)
        assert flat[:, 2].mean() <= 0.1


def test_the_best_of_20_equal_models_is_covered_by_its_corrected_interval_only():
    rows = selection_studies.ranking(800, np.random.default_rng(10), ((20, 30, 0.0),))
    assert float(rows[0]["corrected"]) >= 95
    assert float(rows[0]["interval of the first"]) < 92
    assert float(rows[0]["all ranks held"]) >= 90
    assert abs(float(rows[0]["corrected "])) < abs(float(rows[0]["bias"])) / 4


def test_confidence_sequences_hold_at_any_look_where_fixed_intervals_do_not():
    for row in selection_studies.sequences(500, np.random.default_rng(11), 150):
        assert float(row["missed at any look"]) / 100 <= 0.05 + tolerance(0.05, 100)
        assert float(row["fixed n: at any look from 10"]) > 12


def test_standardised_rates_cover_what_they_promise():
    for row in selection_studies.mixes(200, np.random.default_rng(12), ()):
        assert 93 <= float(row["coverage"]) <= 97


def test_planned_tasks_have_about_the_power_asked_for():
    planned = [
        float(row["power"]) for row in error_rates.powers(0, np.random.default_rng(0)) if row["comparisons"] == 1
    ]
    assert min(planned) >= 79
    assert np.median(planned) <= 82


def test_the_study_runs_the_formulas_of_the_public_functions():
    rng = np.random.default_rng(13)
    sizes = np.array([1, 2, 3, 6, 4])
    successes = rng.binomial(sizes, 0.6, (30, 5))
    codes, means = np.repeat(np.arange(5), sizes), successes / sizes
    new, runs = formulas.bounded(means, sizes, 0.95, True), formulas.bounded(means, sizes, 0.95, True, "runs")
    for i, row in enumerate(successes):
        values = np.concatenate([[1] * s + [0] * (n - s) for s, n in zip(row, sizes, strict=True)])
        found, by_runs = rate_interval(values, codes), rate_interval(values, codes, weights="runs")
        assert (found.low, found.high) == pytest.approx((new[0][i], new[1][i]))
        assert (by_runs.low, by_runs.high) == pytest.approx((runs[0][i], runs[1][i]))
        assert bool(found.warning) == bool(warnings.unmixed(means[i]))
    scores = rng.exponential(size=(30, 7))
    low, high = formulas.corrected_t(scores, 0.95)
    for i, row in enumerate(scores):
        found = mean_interval(row)
        assert (found.low, found.high) == pytest.approx((low[i], high[i]))
        assert bool(found.warning) == bool(warnings.skewed(row))


def test_the_summary_is_of_the_rows_that_a_promise_speaks_of():
    rows = [{"clusters": n, "lowest to highest, by correlation": f"{n}.0 to {n + 1}.5"} for n in (5, 12, 50)]
    found = studies.summary({"clusters": rows})
    assert found[0]["study"] == "Rates of clusters, for new tasks"
    assert (found[0]["lowest"], found[0]["highest"]) == ("12.0", "51.5")


@pytest.mark.parametrize("claim", ["interval", "decided pair", "best"])
def test_the_table_of_claims_has_the_worst_and_the_median_cell_of_each(claim):
    row = coverage.rows_of(claim, 12, 0)
    assert row["cells"] >= 20
    assert float(row["median"]) <= float(row["worst"])


def test_no_claim_of_a_small_loss_errs_in_more_than_6_percent_of_0_1_outcomes():
    cells = [cell for cell in coverage.not_worse(1, np.random.default_rng(0)) if "differ" in cell[0]]
    assert len(cells) > 100
    assert max(share for _, share in cells) <= 0.06
