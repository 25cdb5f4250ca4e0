import numpy as np
import pandas as pd

from evalkit.stats import compare_all, cost_front, rank_models


def frame(rates, tasks=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = [(name, task, float(rng.random() < rate)) for name, rate in rates.items() for task in range(tasks)]
    return pd.DataFrame(rows, columns=["model", "task", "value"])


def ranked(table, **options):
    return rank_models(table, "model", "task", "value", **options).set_index("model")


def test_ranks_begin_after_those_decided_better_and_end_before_those_decided_worse():
    table = frame({"a": 0.95, "b": 0.93, "c": 0.5, "d": 0.1}, seed=1)
    found, pairs = ranked(table), compare_all(table, "model", "task", "value")
    for name, row in found.iterrows():
        wins = pairs[(pairs["decided"]) & ((pairs["model_a"] == name) | (pairs["model_b"] == name))]
        better = ((wins["model_a"] == name) == (wins["estimate"] > 0)).sum()
        assert (row["rank_low"], row["rank_high"]) == (1 + len(wins) - better, 4 - better)
    assert found["ties_with_first"].to_dict() == {"a": True, "b": True, "c": False, "d": False}
    assert ranked(table, pairs=pairs).equals(found)


def test_equal_models_tie_and_no_name_comes_first():
    base = frame({"z": 0.5})
    table = pd.concat([base.assign(model=name) for name in "zmab"])
    found = ranked(table)
    assert found["rank_low"].tolist() == [1] * 4
    assert found["rank_high"].tolist() == [4] * 4
    assert found["ties_with_first"].all()


def test_the_first_is_best_by_its_own_tests_where_the_correction_for_all_pairs_decides_nothing():
    table = frame({f"m{i}": 0.3 for i in range(7)} | {"z": 0.6}, seed=1)
    found, pairs = ranked(table), compare_all(table, "model", "task", "value")
    own = pairs[pairs["model_b"] == "z"]
    assert not own["decided"].all()
    assert (own["p_value"] <= 0.05).all()
    assert found.loc["z", ["rank_low", "rank_high", "ties_with_first"]].tolist() == [1, 1, True]
    assert (found["rank_low"].drop("z") >= 2).all()
    assert not found["ties_with_first"].drop("z").any()
    assert found["behind_first"].sum() == own["decided"].sum()


def test_of_very_many_models_only_the_pairs_of_the_first_are_decided():
    rates = {f"m{i:03d}": 0.1 for i in range(150)} | {"z0": 0.95, "z1": 0.95}
    found = ranked(frame(rates, tasks=80))
    assert found["rank_low"].tolist() == [1, 1] + [2] * 150
    assert found["rank_high"].tolist() == [2] + [152] * 151
    equal = ranked(frame({f"m{i:03d}": 0.5 for i in range(101)}, tasks=30))
    assert (equal["rank_low"] == 1).all()
    assert (equal["rank_high"] == 101).all()


def costs_of(models, tasks=20):
    """Models with the same success and cost on all tasks, but for the first successes."""
    rows = [(m, t, float(t < wins), cost) for m, (wins, cost) in models.items() for t in range(tasks)]
    return pd.DataFrame(rows, columns=["model", "task", "value", "cost"])


def front(table, **options):
    return cost_front(table, "model", "task", "value", "cost", **options).set_index("model")


def test_the_front_are_the_models_that_no_other_beats_in_both():
    found = front(costs_of({"cheap": (4, 1), "dear": (18, 9), "worse": (4, 2), "bad": (3, 9), "mid": (10, 3)}))
    assert found.index.tolist() == ["cheap", "worse", "mid", "dear", "bad"]
    assert found["on_front"].to_dict() == {"cheap": True, "worse": False, "mid": True, "dear": True, "bad": False}
    assert found["dominated_by"].to_dict() == {"cheap": "", "worse": "cheap", "mid": "", "dear": "", "bad": "cheap"}


def test_the_share_of_resamples_says_how_sure_the_front_is():
    rng = np.random.default_rng(0)
    table = costs_of({"a": (10, 1), "b": (11, 1), "far": (20, 5)})
    found = front(table.assign(cost=table["cost"] * rng.uniform(0.5, 1.5, len(table))))
    assert found.loc["far", "front_share"] == 1
    assert 0.3 < found.loc["a", "front_share"] < 1


def test_models_are_compared_on_the_tasks_all_have():
    table = costs_of({"a": (10, 1), "b": (10, 2)})
    partly = table[(table["model"] == "a") | (table["task"] >= 10)]
    found = front(partly)
    assert found["success"].tolist() == [0, 0]
    assert found["warning"].map(str).str.contains("on the 10 tasks that all models have").all()
    apart = front(table[(table["model"] == "a") == (table["task"] < 10)])
    assert apart["warning"].map(str).str.contains("on tasks that differ by model").all()
    assert apart["front_share"].isna().all()
