"""Broken and fixed tasks, what tasks tell, and success at equal budgets."""

import numpy as np
import pytest

from evalkit import compare
from evalkit.compare.terminal import describe_baseline, describe_comparison
from tests.compare.runs import runs_of


def versions():
    """Of ten tasks with 8 runs each, the new version always fails task 0, always solves task 1, and loses one of 2."""
    rows = []
    for task in range(10):
        for run in range(8):
            rows.append(("old", f"t{task}", task != 1))
            rows.append(("new", f"t{task}", task != 0 and not (task == 2 and run == 3)))
    return runs_of(rows)


def test_broken_and_fixed_tasks_are_listed_with_their_runs_and_single_failures_are_not_shown_to_be_more():
    runs = versions()
    found = compare.changed_tasks(runs, "old").set_index("task")
    assert found["change"].to_dict() == {"t0": "broken", "t2": "broken", "t1": "fixed"}
    assert found["decided"].to_dict() == {"t0": True, "t2": False, "t1": True}
    by_id = runs.set_index("run_id")
    first = by_id.loc[found.loc["t2", "run_ids"][0]]
    assert (first["model_name"], first["task_id"], first["is_successful"]) == ("new", "t2", False)
    assert by_id.loc[found.loc["t2", "run_ids_baseline"][0], "model_name"] == "old"
    assert compare.changed_tasks(runs, "").empty


def test_a_regression_that_new_tasks_leave_open_may_be_shown_on_these():
    rows = [("old", f"t{task}", True) for task in range(10) for _ in range(8)]
    rows += [("new", f"t{task}", task > 1 or run < 2) for task in range(10) for run in range(8)]
    runs = runs_of(rows)
    new, passed = describe_baseline(runs, "old")
    these, fails = describe_baseline(runs, "old", target="these tasks")
    assert ("not decided" in new, passed) == (True, True)
    assert ("1 regression" in these, fails) == (True, False)
    assert "broken" in these


def test_tasks_that_all_solve_none_solves_or_that_contradict_the_order_are_distinguished():
    rates = {"a": 0.9, "b": 0.6, "c": 0.2}
    rows = [(m, f"t{t}", t < 10 * rate) for m, rate in rates.items() for t in range(10)]
    rows += [(m, "odd", m == "c") for m in rates]
    found = compare.task_items(runs_of(rows)).set_index("task")
    assert found.index[0] == "odd"
    assert found.loc[["odd", "t0", "t9", "t5"], "verdict"].tolist() == [
        "contradicts the order", "all solve", "none solves", "discriminates"
    ]  # fmt: skip
    assert found.loc["t5", "discrimination"] > 0.5
    assert np.isnan(found.loc["t0", "discrimination"])
    assert "1 contradicting the order of models" in describe_comparison(runs_of(rows), everything=True)


def test_fewer_tasks_give_the_same_ranks_where_models_are_far_apart():
    rng = np.random.default_rng(0)
    far, near = ({"a": high, "b": 0.5} for high in (0.98, 0.52))
    made = [runs_of([(m, f"t{t}", bool(rng.random() < r)) for m, r in rates.items() for t in range(60)])
            for rates in (far, near)]  # fmt: skip
    shares = [compare.fewer_tasks(runs).set_index("n_tasks")["same_first"] for runs in made]
    assert shares[0].loc[30] > 0.95
    assert shares[0].loc[12] > shares[1].loc[12]
    assert compare.fewer_tasks(runs_of([("a", "t", True)])).empty


def test_a_run_that_took_more_than_the_budget_has_failed():
    runs = runs_of([("a", f"t{t}", True) for t in range(10)] + [("b", f"t{t}", True) for t in range(10)])
    runs = runs.assign(cost=[1.0] * 10 + [10.0] * 10)
    table, unit = compare.at_budget(runs)
    rates = table.pivot(index="budget", columns="model_name", values="estimate")
    assert unit == "cost"
    assert rates.loc[1.0].tolist() == [1, 0]
    assert rates.loc[10.0].tolist() == [1, 1]
    assert (table["low"] < table["high"]).all()
    assert compare.at_budget(runs.assign(cost=None))[1] == ""


def test_budgets_of_very_many_models_are_those_of_the_best():
    runs = runs_of([(f"m{number}", "t", number > 4) for number in range(205)]).assign(cost=1.0)
    table = compare.at_budget(runs)[0]
    assert table["model_name"].nunique() == 200
    assert table["estimate"].tolist() == [1] * len(table)


@pytest.mark.parametrize("rows", [[], [("a", "t", None)]])
def test_runs_without_an_outcome_have_no_changed_tasks_items_or_budgets(rows):
    runs = runs_of(rows or [("a", "t", None)])
    assert compare.changed_tasks(runs, "a").empty
    assert compare.task_items(runs).empty
    assert compare.at_budget(runs)[0].empty
