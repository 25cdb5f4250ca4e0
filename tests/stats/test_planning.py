import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestPower

from evalkit.stats import detectable_gap, minimal_detectable_difference, paired_test, pairs_needed, plan
from evalkit.stats.planning import fewest_pairs


def frame(tasks, runs, gap=0.1, seed=0, models=2):
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(tasks, 1))
    means = ease + 0.5 * rng.normal(size=(tasks, models)) + gap * np.arange(models)
    values = means[..., None] + rng.normal(size=(tasks, models, runs))
    index = np.indices(values.shape).reshape(3, -1)
    names = [f"m{i}" for i in index[1]]
    return pd.DataFrame({"model": names, "task": index[0], "value": values.ravel()})


def planned(table, difference=0.5, **options):
    return plan(table, "model", "task", "value", difference, **options)


def test_the_parts_of_the_variance_are_told_apart():
    found = planned(frame(3_000, 3))
    assert found["between"].iloc[0] == pytest.approx(0.5 * math.sqrt(2), rel=0.1)
    assert found["within"].iloc[0] == pytest.approx(math.sqrt(2), rel=0.05)
    for row in found[found["target"] == "new tasks"].to_dict("records"):
        deviation = math.sqrt(0.5 + 2 / row["repeats"])
        assert row["tasks"] == pytest.approx(pairs_needed(0.5, deviation), rel=0.1)
        assert row["low"] <= row["tasks"] <= row["high"]
        assert row["runs"] == 2 * row["repeats"] * row["tasks"]


def test_as_many_tasks_as_planned_show_the_difference_with_the_power_asked_for():
    tasks = int(planned(frame(500, 2, gap=0.0), 0.6, repeats=[2])["tasks"].iloc[0])
    rng = np.random.default_rng(1)  # as in `frame`: two models that vary by .5 between tasks, and two runs of each by 1
    gaps = 0.6 + rng.normal(0, math.sqrt(2 * (0.25 + 0.5)), (300, tasks))
    decided = [paired_test(gap, np.zeros(tasks)).p_value <= 0.05 for gap in gaps]
    assert np.mean(decided) == pytest.approx(0.8, abs=0.1)


def test_repeats_of_the_tasks_at_hand_show_a_difference_on_them():
    found = planned(frame(400, 4), 0.1).iloc[-1]
    assert found["target"] == "these tasks"
    assert found["tasks"] == found["n_tasks"] == 400
    # two runs' variance of 2 over 400 tasks and r repeats: (1.96 + 0.84)² · 2 / (400 r) = 0.1²
    assert found["repeats"] == pytest.approx(math.ceil(2.8016**2 * 2 / 400 / 0.01), abs=1)


def test_without_repetitions_there_is_a_range_only():
    found = planned(frame(60, 1), repeats=[1, 4])
    assert found["tasks"].isna().tolist() == [False, True, False]
    assert found.loc[1, "low"] < found.loc[0, "tasks"] < found.loc[1, "high"] * 1.5
    assert found["warning"].map(str).str.contains("no task with several runs").all()
    assert math.isnan(found.loc[2, "repeats"])


@pytest.mark.parametrize(
    ("n", "comparisons", "power"), [(5, 1, 0.5), (20, 1, 0.95), (200, 1, 0.8), (10, 66, 0.8), (40, 6, 0.8)]
)
def test_the_difference_found_has_the_power_asked_for(n, comparisons, power):
    effect = minimal_detectable_difference(n, 0.4, power=power, comparisons=comparisons) / 0.4
    critical = stats.t.isf(0.05 / comparisons / 2, n - 1)
    assert stats.nct.sf(critical, n - 1, effect * math.sqrt(n)) == pytest.approx(power, abs=1e-4)
    assert comparisons > 1 or effect == pytest.approx(TTestPower().solve_power(nobs=n, alpha=0.05, power=power), 1e-3)


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


@pytest.mark.parametrize("n", [8, 30, 200])
def test_a_detectable_gap_is_the_effect_that_a_normal_test_finds(n):
    effect = NormalIndPower().solve_power(None, nobs1=n, alpha=0.05, power=0.8)
    assert detectable_gap(n) == pytest.approx(effect * 0.5, rel=1e-3)


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
