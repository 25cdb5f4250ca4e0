import math

import numpy as np
import pandas as pd
import pytest

from evalkit.stats import compare_all, pairs_needed, plan


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


def test_the_difference_seen_plays_no_part():
    near, far = planned(frame(40, 3, gap=0.0)), planned(frame(40, 3, gap=3.0))
    pd.testing.assert_frame_equal(near, far)


def test_as_many_tasks_as_planned_show_the_difference_with_the_power_asked_for():
    tasks = int(planned(frame(500, 2, gap=0.0), 0.6, repeats=[2])["tasks"].iloc[0])
    decided = [
        compare_all(frame(tasks, 2, gap=0.6, seed=s), "model", "task", "value").loc[0, "decided"] for s in range(150)
    ]
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


def test_every_pair_or_a_typical_one_is_planned_for():
    table = frame(30, 2, models=4)
    each, typical = planned(table, repeats=[1, 2]), planned(table, repeats=[1, 2], each_pair=False)
    assert len(each) == 6 * 3
    assert each["model_a"].tolist()[:4] == ["m0", "m0", "m0", "m0"]
    assert len(typical) == 3
    rows = each["repeats"] == 1
    assert each[rows]["tasks"].min() <= typical["tasks"].iloc[0] <= each[rows]["tasks"].max()
    assert typical["model_a"].unique().tolist() == ["all pairs"]


def test_more_comparisons_need_more_tasks():
    table = frame(30, 2)
    assert (planned(table, comparisons=50)["tasks"][:5] > planned(table)["tasks"][:5]).all()


def test_pairs_without_shared_tasks_say_so():
    table = frame(20, 2)
    table.loc[table["model"] == "m1", "task"] += 100
    found = planned(table)
    assert found["tasks"][:5].isna().all()
    assert found["warning"].map(str).str.startswith("fewer than 2 shared tasks").all()


def test_nothing_to_plan_gives_no_rows_of_the_same_types():
    table = frame(5, 2)
    pd.testing.assert_series_equal(planned(table[:0]).dtypes, planned(table).dtypes)
    assert planned(table[:0], each_pair=False).empty


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difference": 0}, "above 0"),
        ({"repeats": [0]}, "from 1"),
        ({"repeats": []}, "from 1"),
        ({"power": 2}, "between"),
    ],
)
def test_misuse_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        planned(frame(5, 2), **options)


def test_a_pair_without_any_spread_leaves_the_typical_one_a_plan():
    table = frame(6, 2, models=3)
    table.loc[table["model"] != "m2", "value"] = 1.0
    found = planned(table, each_pair=False)
    assert found.loc[found["target"] == "new tasks", ["tasks", "detectable"]].notna().all(axis=None)


def test_what_the_tasks_at_hand_show_and_what_a_difference_takes_never_contradict_each_other():
    rows = [(m, t, float(t < wins)) for m, wins in (("a", 20), ("b", 8)) for t in range(100)]
    found = planned(pd.DataFrame(rows, columns=["model", "task", "value"]), 0.1, repeats=[1]).iloc[0]
    assert (found["tasks"] > 100) == (found["detectable"] > 0.1)
