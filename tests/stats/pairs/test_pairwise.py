import math

import numpy as np
import pandas as pd
import pytest

from evalkit.display import pair_text
from evalkit.stats import compare_all, holm, paired_difference, paired_test


def runs(rates, tasks=40, repetitions=1, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        {"model": name, "task": f"t{task}", "value": float(rng.random() < rate)}
        for name, rate in rates.items()
        for task in range(tasks)
        for _ in range(repetitions)
    ]
    return pd.DataFrame(rows, columns=["model", "task", "value"]).astype({"value": "float64"})


def compare(frame, **options):
    return compare_all(frame, "model", "task", "value", **options)


def test_each_pair_is_compared_on_its_shared_tasks():
    frame = runs({"c": 0.3, "a": 0.9, "b": 0.5})
    frame = frame[(frame["model"] != "b") | (frame["task"] < "t3")].sample(frac=1, random_state=1)
    found = compare(frame)
    assert list(zip(found["model_a"], found["model_b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    wide = frame.pivot(index="task", columns="model", values="value")
    for row in found.to_dict("records"):
        both = wide[[row["model_a"], row["model_b"]]].dropna()
        a, b = (both[name] for name in both)
        difference, tested = paired_difference(a, b), paired_test(a, b)
        assert (row["n_tasks"], row["n_runs"]) == (len(both), 2 * len(both))
        assert (row["mean_a"], row["mean_b"]) == pytest.approx((a.mean(), b.mean()))
        assert (row["estimate"], row["low"], row["high"]) == pytest.approx(difference[:3])
        assert row["p_value"] == pytest.approx(tested.p_value)
        assert (row["method"], row["target"]) == ("Agresti-Min; McNemar exact", "new tasks")
    assert found["p_holm"].tolist() == pytest.approx(holm(found["p_value"]).tolist())
    assert (found["p_adjusted"] >= found["p_value"]).all()
    assert found["decided"].tolist() == (found["p_adjusted"] <= 0.05).tolist()
    by_holm = compare(frame, correction="holm")
    assert by_holm["p_adjusted"].tolist() == found["p_holm"].tolist()


def test_repetitions_are_averaged_so_that_each_task_counts_once():
    frame = runs({"a": 0.8, "b": 0.4}, tasks=15, repetitions=3)
    extra = pd.concat([frame, *[frame[(frame["model"] == "a") & (frame["task"] == "t0")]] * 5])
    found = compare(frame)
    means = frame.groupby(["task", "model"])["value"].mean().unstack()
    assert found.loc[0, "estimate"] == pytest.approx((means["a"] - means["b"]).mean())
    assert found.loc[0, "p_value"] == pytest.approx(paired_test(means["a"], means["b"]).p_value)
    assert found.loc[0, ["n_tasks", "n_runs"]].tolist() == [15, 90]
    assert compare(extra).loc[0, "estimate"] == pytest.approx(found.loc[0, "estimate"])


def test_a_decided_pair_reads_so_and_names_the_better_model_first():
    found = compare(runs({"a": 0.1, "b": 0.9})).loc[0]
    assert found["decided"]
    assert pair_text(found).startswith("b is better than a on new tasks like these: ")
    assert "on 40 tasks shared" in pair_text(found)
    assert "correction" not in pair_text(found)
    family = compare(runs({"a": 0.1, "b": 0.9, "c": 0.5}))
    assert "after max-T correction for 3 pairs" in pair_text(family.loc[0])


def test_few_tasks_cannot_decide_whatever_the_outcome():
    found = compare(runs({"a": 1, "b": 0}, tasks=5)).loc[0]
    assert found["p_value"] == pytest.approx(2 / 32)
    assert not found["decided"]
    assert (found["low"], found["high"]) == (0, 1)


def test_models_that_never_differ_are_not_decided_and_keep_an_interval():
    found = compare(runs({"a": 0, "b": 0}, tasks=12)).loc[0]
    assert (found["estimate"], found["p_value"]) == (0, 1)
    assert found["low"] < 0 < found["high"]


def test_pairs_without_shared_tasks_are_rows_that_say_so_and_do_not_count_for_holm():
    frame = pd.concat([runs({"a": 0.9, "b": 0.2}), pd.DataFrame({"model": ["z"], "task": ["other"], "value": [1.0]})])
    found = compare(frame)
    alone = compare(runs({"a": 0.9, "b": 0.2}))
    assert found["n_tasks"].tolist() == [40, 0, 0]
    assert found.loc[0, "p_holm"] == alone.loc[0, "p_holm"]
    assert found.loc[1:, ["estimate", "low", "high", "p_value", "p_holm"]].isna().all(axis=None)
    assert found.loc[1:, "warning"].map(str).tolist() == ["no shared tasks"] * 2
    assert pair_text(found.loc[1]) == "Not decided: a and z share no tasks."


def test_runs_left_out_are_counted_in_the_warning():
    frame = runs({"a": 0.9, "b": 0.2})
    frame.loc[0, "value"] = math.nan
    frame.loc[1, "task"] = None
    frame.loc[45, "model"] = None
    found = compare(frame).loc[0]
    assert found["n_tasks"] == 37
    assert "2 runs left out as missing" in str(found["warning"])
    assert "1 run without a model left out" in str(found["warning"])


def test_a_model_without_any_value_is_kept():
    frame = runs({"a": 0.9, "b": 0.2})
    frame.loc[frame["model"] == "b", "value"] = math.nan
    found = compare(frame).loc[0]
    assert (found["n_tasks"], found["model_b"]) == (0, "b")
    assert str(found["warning"]) == "no shared tasks; 40 runs left out as missing"


@pytest.mark.parametrize("kept", [0, 40])
def test_nothing_to_compare_gives_no_rows_of_the_same_types(kept):
    found = compare(runs({"a": 0.5})[:kept])
    assert len(found) == 0
    pd.testing.assert_series_equal(found.dtypes, compare(runs({"a": 0.5, "b": 0.1})).dtypes)


def test_scores_are_compared_without_percentages():
    frame = runs({"a": 0.9, "b": 0.5})
    frame["value"] = frame["value"] * 10 + np.random.default_rng(3).random(len(frame))
    found = compare(frame).loc[0]
    assert found["method"] == "paired t"
    assert "%" not in pair_text({**found, "unit": "points"})


def test_misuse_is_named():
    with pytest.raises(ValueError, match="no column 'agent'"):
        compare_all(runs({"a": 1}), "agent", "task", "value")
    with pytest.raises(ValueError, match="between 0 and 1"):
        compare(runs({"a": 1}), confidence=95)
    for option, message in (("target", "unknown target"), ("correction", "unknown correction")):
        with pytest.raises(ValueError, match=message):
            compare(runs({"a": 1}), **{option: "none"})
    with pytest.raises(ValueError, match="a margin is above 0"):
        compare(runs({"a": 1}), margin=-0.1)


def test_runs_of_the_same_tasks_decide_for_these_tasks_what_new_tasks_leave_open():
    table = runs({"a": 1, "b": 0}, tasks=5, repetitions=20)
    new, same = compare(table).loc[0], compare(table, target="these tasks").loc[0]
    assert not new["decided"]
    assert same["decided"]
    assert (same["method"], same["target"]) == ("t within tasks", "these tasks")
    assert pair_text(same).startswith("a is better than b on these tasks, run again: ")
    assert same["low"] > 0.9


def test_single_runs_say_of_these_tasks_what_they_say_of_new_ones_and_warn():
    table = runs({"a": 0.9, "b": 0.4})
    new, same = compare(table).loc[0], compare(table, target="these tasks").loc[0]
    assert (same["low"], same["high"], same["p_value"]) == (new["low"], new["high"], new["p_value"])
    assert "cautious" in str(same["warning"])


def test_models_within_a_margin_are_equivalent_and_others_are_not():
    table = runs({"a": 0.5, "b": 0.5}, tasks=300)
    table.loc[table["model"] == "b", "value"] = table.loc[table["model"] == "a", "value"].to_numpy()
    table = pd.concat([table, runs({"c": 0.1}, tasks=300)])
    found = compare(table, margin=0.05)
    assert found["equivalent"].tolist() == [True, False, False]
    assert found["decided"].tolist() == [False, True, True]
    assert pair_text(found.loc[0]).startswith("a and b are equivalent on new tasks like these, within ± 5.0 points: ")
    assert not compare(table)["equivalent"].any()
    assert not compare(table.groupby("model").head(20), margin=0.05)["equivalent"].any()


def test_a_decided_difference_may_be_within_the_margin_and_says_so():
    table = runs({"a": 1, "b": 1}, tasks=400)
    table.loc[table.index[-12:], "value"] = 0.0
    found = compare(table, margin=0.1).loc[0]
    assert found["decided"] & found["equivalent"]
    assert "The difference is small: a and b are equivalent" in pair_text(found)


def test_many_models_are_compared_in_one_go():
    table = runs({f"m{i:02d}": 0.5 for i in range(40)}, tasks=100)
    found = compare(table)
    assert len(found) == 780
    assert found["p_adjusted"].min() > 0.01


def test_a_pair_on_few_scores_is_decided_at_a_stricter_level_and_says_so():
    scores = {"a": [3.1, 4.2, 5.3, 2.9, 4.8, 3.7], "b": [2.0, 3.9, 3.1, 2.8, 3.6, 2.9]}
    rows = [(name, t, value) for name, values in scores.items() for t, value in enumerate(values)]
    found = compare(pd.DataFrame(rows, columns=["model", "task", "value"])).loc[0]
    assert 0.015 < found["p_value"] < 0.05
    assert found["low"] > 0
    assert not found["decided"]
    assert "few_pairs" in found["warning"]
