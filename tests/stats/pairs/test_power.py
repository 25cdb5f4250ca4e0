import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestPower

from evalkit.stats import detectable_gap, minimal_detectable_difference, paired_test, pairs_needed
from evalkit.stats.pairs.power import fewest_pairs


@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_it_agrees_with_statsmodels(n, power):
    theirs = TTestPower().solve_power(nobs=n, alpha=0.05, power=power)
    assert minimal_detectable_difference(n, 0.4, power=power) == pytest.approx(0.4 * theirs, rel=1e-3)


@pytest.mark.parametrize(("n", "comparisons"), [(3, 1), (10, 66), (40, 6), (200, 66)])
def test_the_difference_found_has_the_power_asked_for(n, comparisons):
    difference = minimal_detectable_difference(n, 1.0, comparisons=comparisons)
    critical = stats.t.isf(0.05 / comparisons / 2, n - 1)
    assert stats.nct.sf(critical, n - 1, difference * math.sqrt(n)) == pytest.approx(0.8, abs=1e-4)


@given(st.floats(0.02, 1), st.floats(0.1, 0.9), st.integers(1, 66), st.booleans())
def test_the_pairs_needed_are_the_fewest_that_show_the_difference(difference, deviation, comparisons, binary):
    options = {"comparisons": comparisons, "binary": binary}
    needed = pairs_needed(difference, deviation, **options)
    assert needed == int(needed) >= 2
    assert pairs_needed(-difference, deviation, **options) == needed
    shown = minimal_detectable_difference(int(needed), deviation, **options)
    assert shown <= difference + 1e-6
    if not binary and needed > 2:
        assert minimal_detectable_difference(int(needed) - 1, deviation, **options) > difference


@given(st.integers(2, 500), st.floats(0.05, 1), st.booleans())
def test_more_pairs_show_smaller_differences_and_more_comparisons_larger_ones(n, deviation, binary):
    shown = minimal_detectable_difference(n, deviation, binary=binary)
    more = minimal_detectable_difference(2 * n, deviation, binary=binary)
    stricter = minimal_detectable_difference(n, deviation, comparisons=10, binary=binary)
    assert math.isnan(shown) or more < shown
    assert math.isnan(shown) or math.isnan(stricter) or stricter > shown


def test_binary_outcomes_have_the_power_asked_for():
    only_a, only_b = 0.4, 0.1
    n = int(pairs_needed(0.3, math.sqrt(0.5 - 0.09), binary=True))
    rng, decided = np.random.default_rng(0), 0
    for _ in range(2_000):
        kinds = rng.choice(3, n, p=[only_a, only_b, 1 - only_a - only_b])
        decided += paired_test(kinds == 0, kinds == 1).p_value <= 0.05
    assert decided / 2_000 == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("level", [0.05, 0.05 / 6, 0.05 / 66, 0.5, 2**-7])
def test_fewer_pairs_can_never_reach_the_level(level):
    fewest = fewest_pairs(level)
    assert paired_test([1] * fewest, [0] * fewest).p_value <= level + 1e-12
    assert paired_test([1] * (fewest - 1), [0] * (fewest - 1)).p_value > level


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (minimal_detectable_difference(1, 0.5), math.nan),
        (minimal_detectable_difference(0, 0.5), math.nan),
        (minimal_detectable_difference(20, math.nan), math.nan),
        (minimal_detectable_difference(5, 0.5, binary=True), math.nan),
        (minimal_detectable_difference(20, 0.0), 0.0),
        (pairs_needed(0, 0.5), math.nan),
        (pairs_needed(math.nan, 0.5), math.nan),
        (pairs_needed(0.1, math.nan), math.nan),
        (pairs_needed(1e-9, 0.5), math.inf),
        (pairs_needed(1, 0.0), 2),
        (pairs_needed(1, 0.0, binary=True), 6),
    ],
)
def test_what_cannot_be_planned_is_nan(found, expected):
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("function", [minimal_detectable_difference, pairs_needed])
@pytest.mark.parametrize("options", [{"power": 80}, {"confidence": 0}, {"comparisons": 0}])
def test_impossible_settings_are_misuse(function, options):
    with pytest.raises(ValueError, match=r"between 0 and 1|at least one comparison"):
        function(10, 0.5, **options)


def test_a_negative_deviation_is_misuse():
    with pytest.raises(ValueError, match="not negative"):
        minimal_detectable_difference(10, -1)


@pytest.mark.parametrize("n", [8, 30, 200])
def test_a_detectable_gap_is_the_effect_that_a_normal_test_finds(n):
    effect = NormalIndPower().solve_power(None, nobs1=n, alpha=0.05, power=0.8)
    assert detectable_gap(n) == pytest.approx(effect * 0.5, rel=1e-3)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_few_values_detect_no_gap(n):
    assert math.isnan(detectable_gap(n))


@pytest.mark.parametrize("comparisons", [1, 66, 12_000, 10**7])
@pytest.mark.parametrize("binary", [False, True])
def test_a_plan_for_any_number_of_comparisons_ends(comparisons, binary):
    shown = minimal_detectable_difference(np.array([2, 4, 12, 1_000]), 0.3, comparisons=comparisons, binary=binary)
    assert np.isnan(shown[0]) == (binary or np.isnan(shown[0]))
    assert (np.diff(shown[~np.isnan(shown)]) < 0).all()


@pytest.mark.parametrize(("n", "discordant"), [(26, 0.0), (60, 0.2), (100, 0.05), (100, 0.4)])
def test_the_difference_that_0_1_outcomes_show_has_the_power_asked_for_exactly(n, discordant):
    shown = minimal_detectable_difference(n, math.sqrt(discordant), binary=True)
    differ = min(max(discordant + shown**2, shown), 1.0)
    counts = np.arange(n + 1)
    power = 0.0
    for m in counts:
        wins = np.arange(m + 1)
        p_values = np.array([paired_test([1] * w + [0] * (m - w), [0] * w + [1] * (m - w)).p_value for w in wins])
        chance = stats.binom.pmf(wins, m, (1 + shown / differ) / 2)
        power += stats.binom.pmf(m, n, differ) * chance[p_values <= 0.05].sum() if m > 5 else 0.0
    assert power == pytest.approx(0.8, abs=0.05)
