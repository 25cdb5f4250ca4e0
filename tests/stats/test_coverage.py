"""The claims of docs/coverage.md on a few cells, with tolerances of three binomial standard errors."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks import coverage
from benchmarks.simulate import CORRELATIONS, RATES, VALUES, cluster_coverage, exact_coverage, score_coverage, sizes_of
from evalkit.stats import estimate_by, intervals


def tolerance(share, samples):
    return 3 * math.sqrt(share * (1 - share) / samples)


@pytest.mark.parametrize("n", [20, 30, 50, 100, 200])
def test_wilson_covers_93_to_97_percent_of_rates(n):
    held, _ = exact_coverage(n, RATES)
    assert 0.93 <= held.mean() <= 0.97
    assert exact_coverage(n, np.arange(1, 1000) / 1000)[1].max() < 0.085


def test_no_single_rate_is_missed_unwarned_in_more_than_6_5_percent():
    cells = [cell for cell in coverage.single_rates(20, np.random.default_rng(0)) if "1 run" in cell[0]]
    assert len(cells) == 55
    assert max(share for _, share in cells) <= 0.065


@pytest.mark.parametrize("pattern", ["8", "20, 1, ..., 1", "1, 2, 4, ..., 32"])
@pytest.mark.parametrize("count", [5, 12, 30])
def test_rates_of_clusters_of_any_sizes_cover_what_they_promise(count, pattern):
    rng, samples = np.random.default_rng(1), 200
    sizes = sizes_of(pattern, count)
    found = np.array([[cluster_coverage(sizes, c, p, samples, rng) for p in RATES] for c in CORRELATIONS])
    by_correlation, slack = found[:, :, 0].mean(axis=1), tolerance(0.05, samples * len(RATES))
    least = 0.935 if count >= 12 else 0.93
    assert by_correlation.min() >= least - slack
    assert by_correlation.mean() <= 0.965 + slack + 0.01 * (count < 12)
    assert found[:, :, 2].mean(axis=1).min() < 0.9  # plain Wilson takes all runs as independent


@pytest.mark.parametrize("claim", ["interval of a rate, 20 runs", "interval for these tasks"])
def test_rates_near_0_and_tasks_with_few_runs_are_held(claim):
    cells = list(coverage.CLAIMS[claim][1](400, np.random.default_rng(2)))
    assert max(share for _, share in cells) <= 0.065 + tolerance(0.05, 400)


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
    low, high = intervals.corrected_t(draw(np.random.default_rng(4), (4_000, 20)))
    assert 0.935 - tolerance(0.05, 4_000) <= ((low <= mean) & (mean <= high)).mean() <= 0.965


@pytest.mark.parametrize("claim", ["decided pair", "best", "trend"])
def test_the_table_of_claims_has_the_worst_and_the_median_cell_of_each(claim):
    row = coverage.rows_of(claim, 4, 0)
    assert row["cells"] >= 18
    assert float(row["median"]) <= float(row["worst"])


def test_no_claim_of_a_small_loss_errs_in_more_than_6_percent_of_0_1_outcomes():
    cells = [cell for cell in coverage.not_worse(1, np.random.default_rng(0)) if "differ" in cell[0]]
    assert len(cells) > 100
    assert max(share for _, share in cells) <= 0.06


def test_rates_of_a_few_checkpoints_cover_what_they_promise_and_say_how_many_there_are():
    rng, samples = np.random.default_rng(3), 60
    runs = [coverage.with_seeds(rng, 3, 40, 0.5) for _ in range(samples)]
    found = pd.concat([estimate_by(one, "model", "value", "task", seeds="seed") for one in runs])
    without = pd.concat([estimate_by(one, "model", "value", "task") for one in runs])
    missed, missed_without = (1 - (one["low"].le(0.5) & one["high"].ge(0.5)).mean() for one in (found, without))
    assert missed <= 0.065 + tolerance(0.065, 2 * samples)
    assert missed_without > 0.12
    assert {note.values["seeds"][0] for one in found["warning"] for note in one.only("few_seeds").notes} == {3}


@pytest.mark.parametrize(
    ("seeds", "tasks"),
    [(["s1"] * 4, list("aabb")), (["s1", "s2", "s3", "s4"], list("abcd")), ([None] * 4, list("aabb"))],
    ids=["one seed", "each task a seed", "no seed"],
)
def test_seeds_that_tasks_do_not_share_change_no_interval(seeds, tasks):
    frame = pd.DataFrame({"model": "m", "value": [1, 0, 0, 1], "task": tasks, "seed": seeds})
    pd.testing.assert_frame_equal(
        estimate_by(frame, "model", "value", "task", seeds="seed"), estimate_by(frame, "model", "value", "task")
    )
