import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from evalkit.stats import holm, mcnemar_exact, paired_difference, sign_flip_test
from evalkit.stats._inputs import by_cluster
from evalkit.stats.pairs.comparison import compare_runs

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
        assert (found.p_value, str(found.warning)) == (1, "no pair differs")


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
    assert str(found.warning) == "2 pairs left out as missing"
    empty = test([], [])
    assert math.isnan(empty.p_value)
    assert (empty.n, str(empty.warning)) == (0, "no pairs")


@pytest.mark.parametrize("function", [mcnemar_exact, sign_flip_test, paired_difference])
def test_pairs_need_one_length(function):
    with pytest.raises(ValueError, match="not 2 and 3"):
        function([1, 0], [1, 0, 1])


def test_mcnemar_takes_binary_outcomes_only():
    with pytest.raises(ValueError, match="0/1 outcomes"):
        mcnemar_exact([0.5], [1])


def test_binary_pairs_have_the_interval_of_agresti_and_min():
    # 20 pairs: 6 only a, 2 only b; half a pair more of each of the four kinds, then Wald
    a, b = [1] * 6 + [0] * 2 + [1] * 5 + [0] * 7, [0] * 6 + [1] * 2 + [1] * 5 + [0] * 7
    p, q, n = 6.5 / 22, 2.5 / 22, 22
    half = stats.norm.ppf(0.975) * math.sqrt((p + q - (p - q) ** 2) / n)
    found = paired_difference(a, b)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.2, p - q - half, p - q + half))
    assert (found.n, found.method) == (20, "Agresti-Min")


def test_other_pairs_have_the_interval_of_the_paired_t_test():
    rng = np.random.default_rng(6)
    a, b = rng.normal(2, 1, 25), rng.normal(0, 1, 25)
    found = paired_difference(a, b, confidence=0.9)
    theirs = stats.ttest_rel(a, b).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    clusters = np.arange(25) // 5
    clustered = paired_difference(a, b, clusters)
    theirs = stats.ttest_1samp((a - b).reshape(5, 5).mean(axis=1), 0).confidence_interval()
    assert (clustered.low, clustered.high) == pytest.approx((min(theirs.low, 0), theirs.high))
    assert (clustered.method, clustered.target, clustered.n_clusters) == ("paired cluster t", "new tasks", 5)


@given(PAIRS, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_interval_of_binary_pairs_excludes_0_exactly_where_the_test_rejects_it(pairs, confidence):
    a, b = zip(*pairs, strict=True)
    found, p_value = paired_difference(a, b, confidence=confidence), mcnemar_exact(a, b).p_value
    if not math.isnan(found.low):
        assert (found.low > 0 or found.high < 0) == (p_value <= 1 - confidence)


@given(st.lists(st.sampled_from([-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1]), min_size=2, max_size=40))
def test_the_interval_of_other_pairs_excludes_0_exactly_where_the_test_rejects_it(differences):
    a, b = np.maximum(differences, 0), np.maximum(np.negative(differences), 0)
    found, p_value = paired_difference(a, b), sign_flip_test(a, b).p_value
    assert (found.low > 0 or found.high < 0) == (p_value <= 0.05)


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=11))
def test_exact_sign_flips_count_all_signs(differences):
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(differences))).reshape(len(differences), -1)
    share = np.mean(np.abs(np.array(differences) @ signs) >= abs(sum(differences)))
    assert sign_flip_test(np.array(differences) / 10, np.zeros(len(differences))).p_value == pytest.approx(share)


def test_runs_of_the_same_tasks_are_compared_by_the_spread_within_tasks():
    a = by_cluster(np.array([1.0, 3, 5, 6, 7, 9]), np.array([0, 0, 1, 1, 2, 2]))
    b = by_cluster(np.array([0.0, 2, 4, 4, 7, 7]), np.array([0, 0, 1, 1, 2, 2]))
    found = compare_runs(a, b, False, 0.95)
    # variances of single runs: 2, .5, 2 and 2, 0, 0; of the mean of three means of two: sum / 18
    first, second = 4.5 / 18, 2 / 18
    freedom = (first + second) ** 2 / (first**2 / 3 + second**2 / 3)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(first + second)
    difference = (2 + 5.5 + 8) / 3 - (1 + 4 + 7) / 3
    assert (found.low, found.high) == pytest.approx((difference - half, difference + half))
    assert found.p_value == pytest.approx(2 * stats.t.sf(difference / math.sqrt(first + second), freedom))


def test_runs_without_repetitions_tell_nothing_of_the_same_tasks():
    single = by_cluster(np.array([1.0, 0, 1]), np.arange(3))
    twice = by_cluster(np.array([1.0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    assert compare_runs(single, twice, True, 0.95) is None


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
        ([0] * 6, [0] * 6, None, -0.2450, ""),  # 1.96 √(1 / 8 / 8)
        ([0, 0, 0, 0], [0, 0, 0, 0], None, -0.3267, "fewer than 5 independent values: a rough interval"),
        ([0, 0, 0, 0], [0, 0, 0, 0], list("aabb"), -0.4900, "all differences are equal: a cautious interval"),
        ([0.5] * 4, [0.25] * 4, None, -0.1733, "all differences are equal: a cautious interval"),
    ],
)
def test_equal_differences_never_have_an_interval_without_width(a, b, clusters, low, warning):
    found = paired_difference(a, b, clusters)
    assert found.low == pytest.approx(low, abs=1e-4, nan_ok=True)
    assert str(found.warning) == warning
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
