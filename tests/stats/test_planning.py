import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestPower

from evalkit.stats import cells_of, detectable_gap, plan
from evalkit.stats.pair_tests import compare_units
from evalkit.stats.planning import detectable_difference, fewest_pairs, pairs_needed


def needed(difference, deviation, level=0.05, binary=False):
    return float(pairs_needed(difference, np.array(deviation), level, np.array(binary)))


def shown(n, deviation, level=0.05, binary=False):
    return float(detectable_difference(n, np.array(deviation), level, np.array(binary)))


def p_value(wins, losses):
    return compare_units(np.repeat([1.0, 0.0], [wins, losses]), np.repeat([0.0, 1.0], [wins, losses])).p_value


def frame(tasks, runs, gap=0.1, seed=0, models=2):
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(tasks, 1))
    means = ease + 0.5 * rng.normal(size=(tasks, models)) + gap * np.arange(models)
    values = means[..., None] + rng.normal(size=(tasks, models, runs))
    index = np.indices(values.shape).reshape(3, -1)
    names = [f"m{i}" for i in index[1]]
    return pd.DataFrame({"model": names, "task": index[0], "value": values.ravel()})


def planned(table, difference=0.5, **options):
    return plan(cells_of(table, "model", "task", "value"), difference, **options)


def test_the_parts_of_the_variance_are_separated():
    found = planned(frame(3_000, 3))
    assert found["between"].iloc[0] == pytest.approx(0.5 * math.sqrt(2), rel=0.1)
    assert found["within"].iloc[0] == pytest.approx(math.sqrt(2), rel=0.05)
    for row in found[found["target"] == "new tasks"].to_dict("records"):
        deviation = math.sqrt(0.5 + 2 / row["repeats"])
        assert row["tasks"] == pytest.approx(needed(0.5, deviation), rel=0.1)
        assert row["tasks_low"] <= row["tasks"] <= row["tasks_high"]
        assert row["runs"] == 2 * row["repeats"] * row["tasks"]


def test_as_many_tasks_as_planned_show_the_difference_with_the_power_asked_for():
    tasks = int(planned(frame(500, 2, gap=0.0), 0.6, repeats=[2])["tasks"].iloc[0])
    rng = np.random.default_rng(1)  # as in `frame`: two models that vary by .5 between tasks, and two runs of each by 1
    gaps = 0.6 + rng.normal(0, math.sqrt(2 * (0.25 + 0.5)), (300, tasks))
    decided = [compare_units(gap, np.zeros(tasks)).p_value <= 0.05 for gap in gaps]
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
    assert found.loc[1, "tasks_low"] < found.loc[0, "tasks"] < found.loc[1, "tasks_high"] * 1.5
    assert found["warning"].map(str).str.contains("no task with several runs").all()
    assert math.isnan(found.loc[2, "repeats"])


@pytest.mark.parametrize(("n", "comparisons"), [(5, 1), (200, 1), (10, 66), (40, 6)])
def test_the_difference_found_has_the_power_asked_for(n, comparisons):
    effect = shown(n, 0.4, 0.05 / comparisons) / 0.4
    critical = stats.t.isf(0.05 / comparisons / 2, n - 1)
    assert stats.nct.sf(critical, n - 1, effect * math.sqrt(n)) == pytest.approx(0.8, abs=1e-4)
    assert comparisons > 1 or effect == pytest.approx(TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8), 1e-3)


@given(st.floats(0.02, 1), st.floats(0.1, 0.9), st.integers(1, 66) | st.integers(1, 10**7), st.booleans())
def test_the_pairs_needed_are_the_fewest_that_show_the_difference(difference, deviation, comparisons, binary):
    options = {"level": 0.05 / comparisons, "binary": binary}
    fewest = needed(difference, deviation, **options)
    assert fewest == int(fewest) >= 2
    assert shown(int(fewest), deviation, **options) <= difference + 1e-6
    if not binary and fewest > 2:
        assert shown(int(fewest) - 1, deviation, **options) > difference


@pytest.mark.parametrize("level", [0.05, 0.05 / 6, 0.05 / 66, 2**-7])
def test_fewer_pairs_can_never_reach_the_level(level):
    fewest = fewest_pairs(level)
    assert p_value(fewest, 0) <= level + 1e-12
    assert p_value(fewest - 1, 0) > level


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (shown(1, 0.5), math.nan),
        (shown(0, 0.5), math.nan),
        (shown(20, math.nan), math.nan),
        (shown(5, 0.5, binary=True), math.nan),
        (shown(20, 0.0), 0.0),
        (needed(0.1, math.nan), math.nan),
        (needed(1e-9, 0.5), math.inf),
        (needed(1, 0.0), 2),
        (needed(1, 0.0, binary=True), 6),
    ],
)
def test_what_cannot_be_planned_is_nan(found, expected):
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("n", [8, 30, 200])
def test_a_detectable_gap_is_the_effect_that_a_normal_test_finds(n):
    effect = NormalIndPower().solve_power(None, nobs1=n, alpha=0.05, power=0.8)
    assert detectable_gap(n) == pytest.approx(effect * 0.5, rel=1e-3)


@pytest.mark.parametrize(("n", "discordant"), [(26, 0.0), (60, 0.2), (100, 0.05), (100, 0.4)])
def test_the_difference_that_0_1_outcomes_show_has_the_power_asked_for_exactly(n, discordant):
    gap = shown(n, math.sqrt(discordant), binary=True)
    differ = min(max(discordant + gap**2, gap), 1.0)
    power = 0.0
    for m in range(6, n + 1):  # fewer never reach the level
        wins = np.arange(m + 1)
        chance = stats.binom.pmf(wins, m, (1 + gap / differ) / 2)
        is_found = np.array([p_value(w, m - w) <= 0.05 for w in wins])
        power += stats.binom.pmf(m, n, differ) * chance[is_found].sum()
    assert power == pytest.approx(0.8, abs=0.05)
