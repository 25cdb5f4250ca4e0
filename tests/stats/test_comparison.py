import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from evalkit.stats import holm, mcnemar_exact, mean_interval, paired_difference, sign_flip_test

NAN = math.nan
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)
P_VALUES = st.lists(st.one_of(st.floats(0, 1), st.just(NAN)), max_size=20)


def outcomes(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, n), rng.integers(0, 2, n)


@given(PAIRS)
def test_mcnemar_agrees_with_statsmodels(pairs):
    a, b = zip(*pairs, strict=True)
    found = mcnemar_exact(a, b)
    only_a, only_b = pairs.count((1, 0)), pairs.count((0, 1))
    assert (found.better, found.worse, found.n) == (only_a, only_b, len(pairs))
    if only_a + only_b:
        assert found.p_value == pytest.approx(mcnemar([[0, only_a], [only_b, 0]], exact=True).pvalue)
    else:
        assert (found.p_value, found.warning) == (1, "no pair differs")


@given(PAIRS)
def test_sign_flips_of_binary_outcomes_are_mcnemar(pairs):
    a, b = zip(*pairs, strict=True)
    exact, flipped = mcnemar_exact(a, b), sign_flip_test(a, b)
    if exact.better + exact.worse <= 20:
        assert flipped.p_value == pytest.approx(exact.p_value)
    assert flipped.p_value <= 1


def test_sign_flips_agree_with_the_permutation_test_of_scipy():
    rng = np.random.default_rng(4)
    a, b = rng.random(9), rng.random(9) + 0.2
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    assert sign_flip_test(a, b).p_value == pytest.approx(theirs.pvalue)


def test_the_normal_approximation_of_sign_flips_is_close_to_them():
    rng = np.random.default_rng(5)
    a, b = rng.normal(0.3, 1, 60), rng.normal(0, 1, 60)
    found = sign_flip_test(a, b)
    signs = rng.choice([-1, 1], (40_000, 60))
    share = np.mean(np.abs(signs @ (a - b)) >= abs((a - b).sum()))
    assert found.method == "sign flips, normal"
    assert found.p_value == pytest.approx(share, abs=0.01)


def test_all_tasks_won_are_as_unlikely_as_their_number_says():
    assert sign_flip_test([1 / 3] * 5, [0] * 5).p_value == pytest.approx(2 / 2**5)
    assert sign_flip_test([1 / 3] * 50, [0] * 50).p_value > 0


@pytest.mark.parametrize("test", [mcnemar_exact, sign_flip_test])
def test_pairs_with_a_missing_value_are_left_out(test):
    found = test([1, None, 1, 0], [0, 1, NAN, 0])
    assert (found.better, found.worse, found.n) == (1, 0, 2)
    assert found.warning == "2 pairs left out as missing"
    empty = test([], [])
    assert math.isnan(empty.p_value)
    assert (empty.n, empty.warning) == (0, "no pairs")


@pytest.mark.parametrize("function", [mcnemar_exact, sign_flip_test, paired_difference])
def test_pairs_need_one_length(function):
    with pytest.raises(ValueError, match="not 2 and 3"):
        function([1, 0], [1, 0, 1])


def test_mcnemar_takes_binary_outcomes_only():
    with pytest.raises(ValueError, match="0/1 outcomes"):
        mcnemar_exact([0.5], [1])


def test_binary_pairs_have_the_interval_of_bonett_and_price():
    # 20 pairs: 6 only a, 2 only b; Laplace's rule on the shares, then Wald (their equation for the adjusted interval)
    a, b = [1] * 6 + [0] * 2 + [1] * 5 + [0] * 7, [0] * 6 + [1] * 2 + [1] * 5 + [0] * 7
    p, q, n = 7 / 22, 3 / 22, 20
    half = stats.norm.ppf(0.975) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    found = paired_difference(a, b)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.2, p - q - half, p - q + half))
    assert (found.n, found.method) == (20, "Bonett-Price")


def test_other_pairs_have_the_interval_of_the_paired_t_test():
    rng = np.random.default_rng(6)
    a, b = rng.normal(2, 1, 25), rng.normal(0, 1, 25)
    found = paired_difference(a, b, confidence=0.9)
    theirs = stats.ttest_rel(a, b).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    clusters = np.arange(25) // 5
    clustered = paired_difference(a, b, clusters)
    assert clustered[:5] == mean_interval(a - b, clusters)[:5]
    assert clustered.method == "paired cluster t"


@given(PAIRS)
def test_swapping_the_sides_mirrors_the_difference(pairs):
    a, b = zip(*pairs, strict=True)
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), nan_ok=True)
    assert sign_flip_test(a, b).p_value == sign_flip_test(b, a).p_value
    if len(pairs) > 1:
        assert -1 <= there.low < there.high <= 1


@pytest.mark.parametrize(
    ("a", "b", "clusters", "low", "warning"),
    [
        ([], [], None, NAN, "no values"),
        ([1], [0], None, NAN, "a single value has no interval"),
        ([1, 0], [0, 0], ["t", "t"], NAN, "a single cluster has no interval"),
        ([3, 4], [1, 2], None, NAN, "all values are equal: their spread can't be estimated"),
        ([0, 0, 0, 0], [0, 0, 0, 0], None, -0.4619, ""),
        ([0, 0, 0, 0], [0, 0, 0, 0], list("aabb"), -0.6930, "all differences are equal: a cautious interval"),
        ([0.5] * 4, [0.25] * 4, None, -0.3048, "all differences are equal: a cautious interval"),
    ],
)
def test_equal_differences_never_have_an_interval_without_width(a, b, clusters, low, warning):
    found = paired_difference(a, b, clusters)
    assert found.low == pytest.approx(low, abs=1e-4, nan_ok=True)
    assert found.warning == warning
    assert math.isnan(found.low) or found.high > found.low


def test_differences_of_shares_end_at_one():
    found = paired_difference([1, 0.5, 1], [0, 0, 0.1])
    assert found.high == 1
    assert found.low < found.estimate


@settings(max_examples=20)  # theirs takes 0.1 s a call
@given(P_VALUES)
def test_holm_agrees_with_statsmodels_and_leaves_nan(p_values):
    found, kept = holm(p_values), ~np.isnan(np.array(p_values, dtype=float))
    assert np.isnan(found[~kept]).all()
    if kept.any():
        given_values = np.array(p_values)[kept]
        assert found[kept] == pytest.approx(multipletests(given_values, method="holm")[1])
        assert (found[kept] >= given_values).all()


@pytest.mark.parametrize("p_values", [[1.2], [-0.1, 0.5]])
def test_holm_takes_probabilities(p_values):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(p_values)
