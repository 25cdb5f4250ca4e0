import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.stats import combined, corrected_difference, corrected_rate, half_width_after, labels_for, rate_interval
from evalkit.stats.intervals import wilson

BITS = st.lists(st.integers(0, 1), min_size=1, max_size=40)
SCORES = st.lists(st.floats(-1e6, 1e6) | st.just(math.nan), min_size=40, max_size=80)


@given(BITS, SCORES)
def test_a_corrected_rate_lies_in_its_interval_within_what_labels_leave_open(labels, scores):
    judged, rest = scores[: len(labels)], scores[len(labels) :]
    found = corrected_rate(labels, judged, rest)
    units = len(scores)
    assert sum(labels) / units - 1e-9 <= found.low <= found.estimate <= found.high
    assert found.high <= 1 - (len(labels) - sum(labels)) / units + 1e-9


@given(BITS, SCORES, st.floats(0.1, 1e3), st.floats(-100, 100))
def test_the_scale_of_scores_changes_nothing(labels, scores, factor, shift):
    scores = np.round(scores)
    other = scores * factor + shift
    n = len(labels)
    first, second = corrected_rate(labels, scores[:n], scores[n:]), corrected_rate(labels, other[:n], other[n:])
    assert first[:3] == pytest.approx(second[:3], abs=1e-6)


def test_a_judge_that_knows_nothing_gives_the_rate_of_the_labels():
    labels = [1] * 15 + [0] * 35
    found = corrected_rate(labels, [1] * 50, [1] * 10_000)
    assert found[:3] == pytest.approx(rate_interval(labels)[:3], abs=3e-3)
    assert "constant_judge" in found.warning


def test_a_perfect_judge_narrows_the_interval():
    labels = np.arange(100) % 2
    found = corrected_rate(labels, labels, np.arange(900) % 3 == 0)
    low, high = wilson(found.estimate, 100)
    assert found.estimate == pytest.approx((50 + 300) / 1000, abs=0.01)
    assert found.high - found.low < 0.4 * (high - low)


@pytest.mark.parametrize(
    ("labels", "judged", "rest", "estimate", "n", "code"),
    [
        ([], [], [1, 0], math.nan, 0, "no_labels"),
        ([None], [1], [1, 0], math.nan, 0, "no_labels"),
        ([1, 0, 0, 0], [1, 0, 1, 1], [], 0.25, 4, "all_labelled"),
        ([1, 0], [1, 0], [1, 0], 0.5, 2, "few"),
        ([1, 0] * 20, [None] * 40, [None] * 40, 0.5, 40, "no_verdict"),
    ],
)
def test_what_labels_leave_open_is_said(labels, judged, rest, estimate, n, code):
    found = corrected_rate(labels, judged, rest)
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert found.n == n
    assert code in found.warning


@pytest.mark.parametrize(
    ("labels", "judged", "clusters"), [([2], [1], None), ([1, 0], [1], None), ([1], [1], ["only one"])]
)
def test_arguments_that_do_not_fit_are_refused(labels, judged, clusters):
    with pytest.raises(ValueError, match="labels"):
        corrected_rate(labels, judged, [1, 0], clusters)


@pytest.mark.parametrize(
    ("rate", "sensitivity", "specificity", "n"),
    [(0.02, 0.5, 1.0, 100), (0.5, 1.0, 0.0, 50), (0.3, 0.9, 0.9, 100), (0.95, 0.3, 1.0, 50), (0.1, 0.0, 0.9, 50)],
)
def test_the_interval_covers_the_rate_over_all_units(rate, sensitivity, specificity, n):
    rng = np.random.default_rng(0)
    labels = np.arange(1000) < 1000 * rate
    verdicts = rng.random(1000) < np.where(labels, sensitivity, 1 - specificity)
    covered = 0
    for _ in range(300):
        order = rng.permutation(1000)
        drawn, rest = order[:n], order[n:]
        found = corrected_rate(labels[drawn], verdicts[drawn], verdicts[rest])
        covered += found.low <= rate <= found.high
    assert covered >= 0.91 * 300


@pytest.mark.parametrize(("count", "size", "drawn"), [(150, 20, 15), (60, 12, 6), (200, 5, 20)])
def test_a_single_cluster_with_failures_among_few_that_were_drawn_may_be_the_only_one(count, size, drawn):
    clusters = np.repeat(np.arange(count), size)
    labels = (clusters == 0).astype(float)
    labelled = clusters < drawn
    judged = np.zeros(len(labels))
    found = corrected_rate(labels[labelled], judged[labelled], judged[~labelled], clusters)
    assert found.low <= 1 / count < found.estimate


@pytest.mark.parametrize("whole", [True, False])
def test_whole_clusters_of_labels_widen_the_interval_and_labels_spread_over_clusters_do_not(whole):
    clusters = np.repeat(np.arange(50), 10)
    labels = (clusters % 3 == 0).astype(float)  # units of a cluster are alike
    labelled = clusters < 20 if whole else np.arange(500) % 5 < 2
    verdicts = np.random.default_rng(0).integers(0, 2, 500)
    arguments = labels[labelled], verdicts[labelled], verdicts[~labelled]
    plain = corrected_rate(*arguments)
    found = corrected_rate(*arguments, np.concatenate([clusters[labelled], clusters[~labelled]]))
    ratio = (found.high - found.low) / (plain.high - plain.low)
    assert ratio > 2 if whole else ratio == pytest.approx(1)


def test_models_are_corrected_each_by_its_own_labels():
    lenient = corrected_rate([1] * 30 + [0] * 20, [1] * 10 + [0] * 40, [1, 0, 0, 0, 0] * 40)
    exact = corrected_rate([1] * 10 + [0] * 40, [1] * 10 + [0] * 40, [1, 0, 0, 0, 0] * 40)
    found = corrected_difference(lenient, exact)  # though the judge says the same of both
    assert found.low > 0.2
    assert found.estimate == pytest.approx(lenient.estimate - exact.estimate)
    assert found.n == 100
    opposite = corrected_difference(exact, lenient)
    assert opposite[:3] == pytest.approx((-found.estimate, -found.high, -found.low))
    with pytest.raises(ValueError, match="2 estimates, but 1 weights"):
        combined([lenient, exact], [1])
    known = corrected_rate([1, 0], [1, 0], [])
    assert "all_labelled" in corrected_difference(known, known).warning
    assert "all_labelled" not in corrected_difference(known, exact).warning


def test_the_planned_number_of_labels_reaches_the_width():
    arguments = [1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10, [1, 0, 0, 0] * 400
    now = corrected_rate(*arguments)
    assert half_width_after(0, *arguments) == pytest.approx((now.high - now.low) / 2)
    needed = labels_for(0.05, *arguments)
    assert half_width_after(int(needed), *arguments) <= 0.05 < half_width_after(int(needed) - 1, *arguments)
    assert math.isnan(labels_for(0.05, [], [], [1, 0]))
