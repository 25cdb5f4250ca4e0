"""Made-up results that once led to false headlines, one case each; what a reader is told about them now."""

import math

import numpy as np
import pandas as pd
import pytest

from evalkit.display import pair_text
from evalkit.stats import (
    bootstrap_interval,
    compare_all,
    like_with_like,
    mean_interval,
    mean_sequence,
    pair_structure,
    paired_difference,
    paired_test,
    pass_at_k,
    plan,
    rank_models,
    rate_interval,
    reliability,
    trend_by,
    trend_test,
)


def runs(rates, tasks=12, repetitions=1, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        (model, f"t{task}", run, float(rng.random() < rate))
        for model, rate in rates.items()
        for task in range(tasks)
        for run in range(repetitions)
    ]
    return pd.DataFrame(rows, columns=["model", "task", "run", "value"])


def test_the_model_that_ran_more_of_the_easy_type_is_not_first():
    parts = {
        ("alpha", "easy"): (80, 64),
        ("alpha", "hard"): (20, 5),
        ("beta", "easy"): (20, 18),
        ("beta", "hard"): (80, 34),
    }
    rows = [(m, f"{m}{k}{i}", k, float(i < wins)) for (m, k), (n, wins) in parts.items() for i in range(n)]
    table = pd.DataFrame(rows, columns=["model", "task", "type", "value"])
    found = like_with_like(table, "model", "task", "value", "type")
    first = found.table.set_index("model")["headline"].idxmax()
    assert found.table.set_index("model")["estimate"].idxmax() == "alpha"
    assert (found.headline, first) == ("standardised", "beta")
    assert "alpha before beta" in str(found.reason)


def test_a_cycle_of_pairs_on_disjoint_tasks_is_named():
    games = (("rock", "scissors"), ("scissors", "paper"), ("paper", "rock"))
    rows = [(name, f"{game}{i}", float(name == game[0])) for game in games for i in range(10) for name in game]
    pairs = compare_all(pd.DataFrame(rows, columns=["model", "task", "value"]), "model", "task", "value")
    assert pairs["decided"].all()
    assert "cycle" in str(pair_structure(pairs).warning)


def test_the_winner_of_100_equal_models_ties_with_all_of_them():
    table = runs({f"model-{i:03d}": 0.5 for i in range(100)})
    found = rank_models(table, "model", "task", "value")
    first = found.iloc[0]
    assert first["estimate"] >= 0.8
    assert found["ties_with_first"].all()
    assert (found["rank_high"] == 100).all()
    assert first["corrected"] == pytest.approx(0.5, abs=0.1)
    assert first["corrected_low"] < 0.5


def test_retrying_until_success_is_flagged_and_pass_at_2_is_not_below_pass_at_1():
    rng, rows = np.random.default_rng(1), []
    for task in range(60):
        rate = rng.beta(1, 1)
        for run in range(4):
            rows.append(("m", task, run, float(rng.random() < rate)))
            if rows[-1][-1]:
                break
    table = pd.DataFrame(rows, columns=["model", "task", "run", "value"])
    found = reliability(table, "model", "task", "value", ks=[1, 2], order="run").set_index("measure")
    assert found.loc["pass@2", "estimate"] >= found.loc["pass@1", "estimate"]
    assert found["n_clusters"].nunique() == 1
    assert found["warning"].map(str).str.contains("depends on their outcome").all()


def test_a_task_run_20_times_weighs_as_much_as_one_run_once():
    values, tasks = [1] * 20 + [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0], ["a"] * 20 + list("bcdefghijkl")
    found, by_runs = rate_interval(values, tasks), rate_interval(values, tasks, weights="runs")
    assert found.estimate == pytest.approx(4 / 12)
    assert by_runs.estimate == pytest.approx(23 / 31)
    assert by_runs.warning
    assert found.low < 0.25 < found.high


def test_few_seeds_have_the_interval_of_student_and_one_seed_has_none():
    scores = [14.2, 15.9, 13.1]
    found, resampled = mean_interval(scores), bootstrap_interval(scores, np.mean)
    assert found.high - found.low > 2 * (resampled.high - resampled.low)
    assert (found.method, found.n) == ("t", 3)
    assert resampled.warning
    one = mean_interval(scores[:1])
    assert math.isnan(one.low)
    assert str(one.warning) == "a single value has no interval"


def test_success_does_not_fall_with_every_step_where_one_step_rises():
    assert trend_test([30, 4, 18], [30] * 3, [0, 1, 2]).direction == "falls, not steadily"


def test_reports_on_20_equal_models_seldom_find_a_trend():
    rng, reports = np.random.default_rng(2), []
    for _ in range(40):
        rows = [
            (f"m{m}", 3 * m + level, level, v) for m in range(20) for level in range(3) for v in rng.integers(0, 2, 8)
        ]
        table = pd.DataFrame(rows, columns=["model", "task", "level", "value"])
        found = trend_by(table, "model", "level", "value")
        reports.append((found["direction"] != "no").any())
    assert np.mean(reports) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40)


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_all_failed_and_all_passed_have_bounds(outcome):
    found = mean_interval([outcome] * 5, bounds=(0, 1))
    attempts = mean_interval(pass_at_k([4] * 5, [4 * outcome] * 5, 2), bounds=(0, 1))
    assert found[:3] == attempts[:3]
    assert found.high - found.low == pytest.approx(0.4345, abs=1e-4)  # Wilson, 0 or 5 of 5


def test_a_plan_does_not_depend_on_the_gap_seen_nor_on_whether_a_pair_is_decided():
    table = runs({"a": 0.5, "b": 0.5, "c": 0.5}, tasks=40, repetitions=3)
    table.loc[table["model"] == "c", "value"] = 1 - table.loc[table["model"] == "b", "value"].to_numpy()
    found = plan(table, "model", "task", "value", 0.1)
    assert set(zip(found["model_a"], found["model_b"], strict=True)) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert (found["difference"] == 0.1).all()
    assert found.loc[found["target"] == "new tasks", ["tasks", "low", "high"]].notna().all(axis=None)


def test_five_tasks_that_decide_nothing_about_new_tasks_may_decide_about_themselves():
    table = runs({"a": 1, "b": 0}, tasks=5, repetitions=20)
    new = compare_all(table, "model", "task", "value").loc[0]
    same = compare_all(table, "model", "task", "value", target="these tasks").loc[0]
    assert (new["decided"], same["decided"]) == (False, True)
    assert "on these tasks" in pair_text(same)


def test_an_interval_never_excludes_0_where_the_test_does_not_reject_it():
    a, b = [1] * 5 + [0], [0] * 6
    assert paired_test(a, b).p_value == pytest.approx(2 / 32)
    found = paired_difference(a, b)
    assert found.low == 0
    assert found.estimate > 0.8


def test_a_hundred_models_are_compared():
    found = compare_all(runs({f"m{i:03d}": 0.5 for i in range(100)}, tasks=20), "model", "task", "value")
    assert len(found) == 4_950


def test_a_result_looked_at_all_the_time_is_called_late_rather_than_wrongly():
    rng, fixed, anytime = np.random.default_rng(3), [], []
    for _ in range(40):
        values = rng.integers(0, 2, 80)
        looks = [rate_interval(values[:n]) for n in range(10, 81, 5)]
        fixed.append(any(look.low > 0.5 or look.high < 0.5 for look in looks))
        sequence = mean_sequence(values)
        anytime.append(((sequence["low"] > 0.5) | (sequence["high"] < 0.5)).any())
    assert np.mean(anytime) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40)
    assert np.mean(fixed) > np.mean(anytime)
