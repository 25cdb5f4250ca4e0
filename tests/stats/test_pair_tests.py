import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable, mcnemar

from evalkit.stats.intervals import by_cluster
from evalkit.stats.pair_tests import compare_groups, compare_runs, compare_units
from evalkit.stats.pair_tests import mcnemar as exact

NUMBERS = st.lists(st.integers(-30, 30).map(float), min_size=2, max_size=30)
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=40)


def compared(a, b, margin=math.nan):
    return compare_units(np.array(a, dtype=float), np.array(b, dtype=float), margin)


@given(PAIRS)
def test_mcnemar_is_seldom_above_the_conditional_test_of_statsmodels(pairs):
    a, b = zip(*pairs, strict=True)
    found = compared(a, b)
    only_a, only_b = pairs.count((1, 0)), pairs.count((0, 1))
    if only_a == only_b:
        assert found.p_value == 1
    else:  # that test is exact as well, for what it is given
        theirs = mcnemar([[0, only_a], [only_b, 0]], exact=True).pvalue
        assert found.p_value <= max(1.6 * theirs, theirs + 0.02)


@pytest.mark.parametrize(("n", "differ", "gap", "power"), [(20, 0.25, 0.2, 0.344), (50, 0.15, 0.12, 0.648)])
def test_mcnemar_holds_its_level_with_more_power_than_the_conditional_test(n, differ, gap, power):
    won, lost = np.array([(w, x) for w in range(n + 1) for x in range(n + 1 - w)]).T
    rejected = np.array([exact(w, x, n) <= 0.05 for w, x in zip(won, lost, strict=True)])

    def chance(differ, gap):
        shares = [(differ + gap) / 2, (differ - gap) / 2, 1 - differ]
        return stats.multinomial.pmf(np.column_stack([won, lost, n - won - lost]), n, shares)[rejected].sum()

    assert max(chance(share, 0) for share in np.linspace(0.01, 1, 60)) <= 0.05
    assert chance(differ, gap) == pytest.approx(power, abs=0.001)


def test_mcnemar_of_very_many_pairs_goes_on_from_that_of_fewer():
    assert exact(30, 12, 501) == exact(30, 12, 5_000) == pytest.approx(exact(30, 12, 499), rel=0.02)


def test_values_without_skewness_are_compared_as_by_the_paired_t_test_of_scipy():
    half = np.random.default_rng(4).normal(0, 1, 12)
    differences = np.r_[half, -half] + 0.3
    found, theirs = compared(differences, np.zeros(24)), stats.ttest_1samp(differences, 0)
    assert (found.p_value, found.low, found.high) == pytest.approx((theirs.pvalue, *theirs.confidence_interval()))
    assert found.method == "paired t"


@given(NUMBERS)
def test_the_p_value_is_never_below_that_of_t(differences):
    found = compared(differences, np.zeros(len(differences)))
    theirs = stats.ttest_1samp(differences, 0).pvalue if np.ptp(differences) > 1e-6 else math.nan
    assert not found.p_value < theirs - 1e-9


@given(NUMBERS, st.floats(0.1, 100))
def test_which_side_comes_first_and_the_unit_change_nothing(differences, unit):
    if np.ptp(differences) > 1e-6:
        d = np.array(differences) * 5 + 3  # not shares
        one, other = compared(d, np.zeros(len(d))), compared(np.zeros(len(d)), d)
        scaled = compared(d * unit + 7, np.full(len(d), 7.0))
        assert one.p_value == pytest.approx(other.p_value)
        assert np.ptp(d * unit) < 2 or scaled.p_value == pytest.approx(one.p_value, rel=1e-3, abs=1e-9)


def test_the_p_value_of_equal_differences_of_shares_depends_on_their_number():
    assert compared([0.5] * 8, [0] * 8).p_value == pytest.approx(2 * 1.5**-8)
    noise = np.random.default_rng(0).normal(0, 1e-4, 12)
    assert compared([0.5] * 12 + noise, [0.488] * 12).p_value == 1  # a rare break would not have been seen
    assert math.isnan(compared([7.0] * 8, [5.0] * 8).p_value)


# models of equal means: rare successes in single runs against ten, steady against skewed scores, few tasks of each
EQUAL = {
    "rare, 1 run against 10, 40 tasks": (40, lambda r, s: (r.binomial(1, 0.03, s), r.binomial(10, 0.03, s) / 10)),
    "rare, 1 run against 10, 12 tasks": (12, lambda r, s: (r.binomial(1, 0.1, s), r.binomial(10, 0.1, s) / 10)),
    "steady against log-normal": (12, lambda r, s: (np.exp(r.normal(size=s)), np.full(s, np.exp(0.5)))),
    "a tenth against steady": (8, lambda r, s: (r.binomial(1, 0.1, s), np.full(s, 0.1))),
    "normal scores, 5 tasks": (5, lambda r, s: (r.normal(3, 1, s), r.normal(3, 4, s))),
    "three runs of each": (20, lambda r, s: (r.binomial(3, 0.3, s) / 3, r.binomial(3, 0.3, s) / 3)),
}


@pytest.mark.parametrize("case", EQUAL)
def test_models_with_equal_means_are_seldom_separated(case):
    tasks, draw = EQUAL[case]
    pairs = zip(*draw(np.random.default_rng(8), (600, tasks)), strict=True)
    found = [compared(a, b) for a, b in pairs]
    assert np.mean([one.p_value <= one.claim_at for one in found]) < 0.095  # 6.5 % and 3 standard errors


@pytest.mark.parametrize(("n", "margin", "discordant"), [(36, 0.05, 0.05), (20, 0.1, 0.3), (12, 0.2, 0.2)])
def test_a_loss_of_the_margin_is_seldom_said_to_be_less_by_exact_enumeration(n, margin, discordant):
    error = 0.0
    for won, lost in ((w, x) for w in range(n + 1) for x in range(n + 1 - w)):
        outcomes = np.r_[np.ones(won), -np.ones(lost), np.zeros(n - won - lost)]
        found = compared(outcomes.clip(0), -outcomes.clip(None, 0), margin)
        if found.p_above <= 0.05:
            shares = [(discordant - margin) / 2, (discordant + margin) / 2, 1 - discordant]
            error += stats.multinomial.pmf([won, lost, n - won - lost], n, shares)
    assert error <= 0.06


def test_binary_pairs_have_the_interval_of_agresti_and_min():
    # 20 pairs: 6 only a, 2 only b; half a pair more of each of the four kinds, then Wald
    a, b = [1] * 6 + [0] * 2 + [1] * 5 + [0] * 7, [0] * 6 + [1] * 2 + [1] * 5 + [0] * 7
    p, q, n = 6.5 / 22, 2.5 / 22, 22
    half = stats.norm.ppf(0.975) * math.sqrt((p + q - (p - q) ** 2) / n)
    found = compared(a, b)
    assert (found.low, found.high) == pytest.approx((p - q - half, p - q + half))
    assert found.method == "Agresti-Min; McNemar exact unconditional"


@pytest.mark.parametrize("kinds", [(-1, 0, 1), (-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1)])
@given(data=st.data())
def test_the_interval_excludes_0_exactly_where_the_test_rejects_it(kinds, data):
    differences = data.draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=40))
    a, b = np.maximum(differences, 0), np.maximum(np.negative(differences), 0)
    found = compared(a, b)
    assert (found.low > 0 or found.high < 0) == (found.p_value <= 0.05)


def test_runs_of_the_same_tasks_are_compared_by_the_spread_within_tasks():
    a = by_cluster(np.array([1.0, 3, 5, 6, 7, 9]), np.array([0, 0, 1, 1, 2, 2]))
    b = by_cluster(np.array([0.0, 2, 4, 4, 7, 7]), np.array([0, 0, 1, 1, 2, 2]))
    found = compare_runs(a, b, False)
    # variances of single runs: 2, .5, 2 and 2, 0, 0; of the mean of three means of two: sum / 18
    first, second = 4.5 / 18, 2 / 18
    freedom = (first + second) ** 2 / (first**2 / 3 + second**2 / 3)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(first + second)
    difference = (2 + 5.5 + 8) / 3 - (1 + 4 + 7) / 3
    assert (found.low, found.high) == pytest.approx((difference - half, difference + half))
    assert found.p_value == pytest.approx(2 * stats.t.sf(difference / math.sqrt(first + second), freedom))


@pytest.mark.parametrize(
    ("a", "b", "n", "low", "warning"),
    [
        ([3, 4], [1, 2], 1, math.nan, "all values are equal: their spread can't be estimated"),
        ([0], [0], 6, -0.2450, ""),  # 1.96 √(1 / 8 / 8)
        ([0], [0], 4, -0.3267, "fewer than 5 independent values: a rough interval"),
        # .25 − q − .25 q, where q = 1 − .025^(1/4) is the largest share of unseen losses
        ([0.5], [0.25], 4, -0.5029, "all differences are equal: a cautious interval"),
    ],
)
def test_equal_differences_never_have_an_interval_without_width(a, b, n, low, warning):
    found = compared(a * n, b * n)
    assert found.low == pytest.approx(low, abs=1e-4, nan_ok=True)
    assert str(found.warning) == warning
    assert math.isnan(found.low) or found.high > found.low


def grouped(tasks):
    """Compare two groups of runs, given for each task as two texts of 0 and 1."""
    sides = []
    for texts in zip(*tasks, strict=True):
        codes = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        sides.append(by_cluster(np.array(list("".join(texts)), dtype=float), codes))
    return compare_groups(*sides)


@pytest.mark.parametrize(
    "tasks",
    [
        [("110", "000"), ("1", "001")],
        [("1", "0000"), ("11", "100"), ("0", "0")],
        [("00", "1110"), ("10", "100")],
        [("1", "0"), ("1", "0"), ("1", "0"), ("0", "1")],
    ],
)
def test_groups_of_runs_are_compared_by_every_way_to_assign_them_within_tasks(tasks):
    ways = []
    expected = 0.0
    for first, second in tasks:
        ways.append([sum(map(int, chosen)) for chosen in combinations(first + second, len(first))])
        expected += np.mean(ways[-1])
    seen = "".join(first for first, _ in tasks).count("1")
    distances = np.array([abs(sum(sums) - expected) for sums in product(*ways)])
    assert grouped(tasks).p_value == pytest.approx((distances >= abs(seen - expected) - 1e-9).mean())


def test_many_runs_are_compared_as_by_the_mantel_haenszel_test_of_statsmodels():
    rng = np.random.default_rng(3)
    sizes = rng.integers(20, 60, (2, 30))
    hits = rng.binomial(sizes, [[0.35], [0.29]])
    tables = [np.column_stack([k, n - k]) for k, n in zip(hits.T, sizes.T, strict=True)]
    tasks = [["1" * hits + "0" * others for hits, others in table] for table in tables]
    theirs = StratifiedTable(tables)
    assert grouped(tasks).p_value == pytest.approx(theirs.test_null_odds().pvalue, rel=0.1)


RUNS = st.text("01", min_size=1, max_size=6)


@given(st.lists(st.tuples(RUNS, RUNS), min_size=2, max_size=8))
def test_the_interval_of_groups_of_runs_agrees_with_their_test(tasks):
    found, swapped = grouped(tasks), grouped([task[::-1] for task in tasks])
    assert (found.low <= 0 <= found.high) == (found.p_value > 0.05)
    mirrored = (swapped.p_value, -swapped.high, -swapped.low)
    assert (found.p_value, found.low, found.high) == pytest.approx(mirrored, abs=1e-5)  # `hall` bounds small slants
