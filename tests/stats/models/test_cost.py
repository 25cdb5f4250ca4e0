import numpy as np
import pandas as pd
import pytest

from evalkit.stats import cost_front


def frame(models, tasks=20):
    """Models with the same success and cost on all tasks, but for the first successes."""
    rows = [(m, t, float(t < wins), cost) for m, (wins, cost) in models.items() for t in range(tasks)]
    return pd.DataFrame(rows, columns=["model", "task", "value", "cost"])


def front(table, **options):
    return cost_front(table, "model", "task", "value", "cost", **options).set_index("model")


def test_the_front_are_the_models_that_no_other_beats_in_both():
    found = front(frame({"cheap": (4, 1), "dear": (18, 9), "worse": (4, 2), "bad": (3, 9), "mid": (10, 3)}))
    assert found.index.tolist() == ["cheap", "worse", "mid", "dear", "bad"]
    assert found["on_front"].to_dict() == {"cheap": True, "worse": False, "mid": True, "dear": True, "bad": False}
    assert found["dominated_by"].to_dict() == {"cheap": "", "worse": "cheap", "mid": "", "dear": "", "bad": "cheap"}


def test_equal_models_are_both_on_the_front():
    assert front(frame({"a": (5, 2), "b": (5, 2)}))["on_front"].tolist() == [True, True]


def test_the_share_of_resamples_says_how_sure_the_front_is():
    rng = np.random.default_rng(0)
    table = frame({"a": (10, 1), "b": (11, 1), "far": (20, 5)})
    found = front(table.assign(cost=table["cost"] * rng.uniform(0.5, 1.5, len(table))))
    assert found.loc["far", "front_share"] == 1
    assert 0.3 < found.loc["a", "front_share"] < 1


def test_models_are_compared_on_the_tasks_all_have():
    table = frame({"a": (10, 1), "b": (10, 2)})
    partly = table[(table["model"] == "a") | (table["task"] >= 10)]
    found = front(partly)
    assert found["success"].tolist() == [0, 0]
    assert found["warning"].map(str).str.contains("on the 10 tasks that all models have").all()
    apart = front(table[(table["model"] == "a") == (table["task"] < 10)])
    assert apart["warning"].map(str).str.contains("on tasks that differ by model").all()
    assert apart["front_share"].isna().all()


def test_a_model_without_costs_is_not_on_the_front():
    table = frame({"a": (10, 1), "b": (10, 2)})
    table.loc[table["model"] == "b", "cost"] = np.nan
    found = front(table)
    assert found["on_front"].to_dict() == {"a": True, "b": False}
    assert "no values" in str(found.loc["b", "warning"])
    pd.testing.assert_series_equal(front(table[:0]).dtypes, found.dtypes)


def test_an_unknown_column_is_misuse():
    with pytest.raises(ValueError, match="no column 'tokens'"):
        cost_front(frame({"a": (1, 1)}), "model", "task", "value", "tokens")
