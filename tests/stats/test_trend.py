import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from statsmodels.discrete.discrete_model import Logit
from statsmodels.stats.contingency_tables import Table

from evalkit.stats import trend_test

LEVELS = st.lists(
    st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=5
)


@given(LEVELS)
def test_independent_trials_agree_with_the_linear_association_of_statsmodels(levels):
    successes, n = (np.array(column) for column in zip(*levels, strict=True))
    found = trend_test(successes, n, range(len(n)))
    if successes.sum() in (0, n.sum()):
        assert math.isnan(found.p_value)
        assert found.warning == "all outcomes are equal"
        return
    theirs = Table(np.column_stack([n - successes, successes]), shift_zeros=False).test_ordinal_association(
        row_scores=np.arange(len(n)), col_scores=np.array([0, 1])
    )
    z = theirs.zscore * math.sqrt(n.sum() / (n.sum() - 1))  # theirs has the variance of permutations
    assert found.p_value == pytest.approx(2 * special.ndtr(-abs(z)), rel=1e-6, abs=1e-12)
    assert (found.n, found.n_clusters) == (n.sum(), n.sum())


def test_the_odds_ratio_is_that_of_a_logistic_fit():
    successes, n, scores = [10, 6, 2], [12, 12, 12], [0, 1, 2]
    found = trend_test(successes, n, scores)
    outcome = np.concatenate([[1] * s + [0] * (m - s) for s, m in zip(successes, n, strict=True)])
    level = np.repeat(scores, n)
    fit = Logit(outcome, np.column_stack([np.ones(36), level])).fit(disp=0)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (np.exp(fit.params[1]), *np.exp(fit.conf_int()[1])), rel=1e-5
    )
    assert found.estimate < 1
    assert found.warning == ""


def test_a_common_shift_or_scale_of_the_scores_changes_no_p_value():
    found = trend_test([9, 5, 2], [12, 12, 12], [0, 1, 2])
    moved = trend_test([9, 5, 2], [12, 12, 12], [10, 30, 50])
    assert moved.p_value == pytest.approx(found.p_value)
    assert moved.estimate == pytest.approx(found.estimate ** (1 / 20))


@given(LEVELS)
def test_clusters_of_one_trial_each_change_nothing(levels):
    successes = np.concatenate([[1] * s + [0] * (n - s) for s, n in levels])
    scores = np.repeat(np.arange(len(levels)), [n for _, n in levels])
    plain = trend_test(*zip(*levels, strict=True), range(len(levels)))
    clustered = trend_test(successes, np.ones(len(scores)), scores, range(len(scores)))
    if len(scores) > len(levels):
        assert clustered.p_value == pytest.approx(plain.p_value, nan_ok=True)
        assert clustered.low == pytest.approx(plain.low, rel=1e-4, nan_ok=True)


def test_copies_of_the_same_runs_show_no_stronger_trend():
    once = trend_test([1, 1, 1, 0, 1, 0, 0, 0], [1] * 8, [0, 0, 0, 0, 1, 1, 1, 1], range(8))
    copied = trend_test([9, 9, 9, 0, 9, 0, 0, 0], [9] * 8, [0, 0, 0, 0, 1, 1, 1, 1], range(8))
    assert copied.p_value == pytest.approx(once.p_value)
    assert copied.high / copied.low == pytest.approx(once.high / once.low)
    assert copied.method == "Cochran-Armitage, design effect 9.00"
    assert trend_test([27, 9], [36, 36], [0, 1]).p_value < 0.001


def test_the_same_tasks_at_all_levels_are_clusters_too():
    found = trend_test([3, 2, 1, 4, 2, 0, 2, 1, 1], [4] * 9, [0, 1, 2] * 3, list("aaabbbccc"))
    assert found.n_clusters == 3
    assert 0 < found.p_value < 0.05


@pytest.mark.parametrize(
    ("successes", "n", "scores", "clusters", "warning"),
    [
        ([], [], [], None, "no trials"),
        ([0, 0], [0, 0], [0, 1], None, "no trials"),
        ([1], [2], [0], None, "a single level has no trend"),
        ([1, 2], [2, 3], [1, 1], None, "a single level has no trend"),
        ([2, 2], [2, 2], [0, 1], None, "all outcomes are equal"),
        ([0, 0], [2, 2], [0, 1], ["a", "b"], "all outcomes are equal"),
        ([3, 2, 0], [4, 4, 4], [0, 1, 2], list("abc"), "too few clusters: need more than one per level"),
        ([1, None], [2, 2], [0, 1], None, "a single level has no trend; 1 row left out as missing"),
    ],
)
def test_what_has_no_trend_is_nan_and_says_why(successes, n, scores, clusters, warning):
    found = trend_test(successes, n, scores, clusters)
    assert all(math.isnan(value) for value in found[:4])
    assert found.warning == warning


@pytest.mark.parametrize(("successes", "ratio"), [([8, 0], 0), ([0, 8], math.inf), ([8, 3, 0], 0), ([8, 3, 1], None)])
def test_levels_that_separate_the_outcomes_have_an_odds_ratio_without_bounds(successes, ratio):
    found = trend_test(successes, [8] * len(successes), range(len(successes)))
    assert 0 < found.p_value < 0.01
    if ratio is None:
        assert found.low < found.estimate < found.high < 1
    else:
        assert found.estimate == ratio
        assert math.isnan(found.low)
        assert found.warning.startswith("the levels separate")


def test_few_outcomes_make_the_p_value_doubtful():
    assert "approximate" in trend_test([2, 1, 1], [10, 10, 10], [0, 1, 2]).warning


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3], [2], [0]), "0 <= successes <= n"),
        (([0.5], [2], [0]), "whole numbers"),
        (([1], [2, 2], [0]), "need as many"),
        (([1, 1], [2, 2], [0, 1], ["a"]), "2 values, but 1 cluster labels"),
        (([1], [2], [0], None, 2), "between 0 and 1"),
    ],
)
def test_counts_that_cannot_be_are_misuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        trend_test(*arguments)
