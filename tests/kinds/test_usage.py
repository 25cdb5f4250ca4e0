import math

import pytest

import evalkit
from evalkit import compare
from evalkit.io import frame
from evalkit.kinds import RUN_COLUMNS, kind_named
from evalkit.kinds.runs import is_excluded


def runs(*rows):
    made = [
        {"run_id": f"m-{i}", "kind": "mindcraft", "model_name": "a", "status": "SUCCESS", "run_flags": [], **row}
        for i, row in enumerate(rows)
    ]
    return frame(made, RUN_COLUMNS)


def test_what_runs_take_is_estimated_over_tasks_and_by_success():
    table = compare.usage(
        runs(
            {"task_id": "t", "tokens_in": 10, "is_successful": True, "duration": 1.0},
            {"task_id": "t", "tokens_in": 30, "is_successful": False},
            {"task_id": "u", "tokens_in": 50, "is_successful": True},
            {"task_id": "u", "is_successful": True},
            {"task_id": "v", "model_name": "b", "tokens_in": 7, "is_successful": False},
        )
    ).set_index(["model_name", "quantity"])
    assert table.index.tolist() == [("a", "duration (seconds)"), ("a", "tokens in"), ("b", "tokens in")]
    tokens = table.loc[("a", "tokens in")]
    assert tokens[["n", "n_clusters", "estimate", "median", "total"]].tolist() == [
        3,
        2,
        35.0,
        30.0,
        90.0,
    ]  # (20 + 50) / 2
    assert tokens[["of_successes", "of_failures", "per_success"]].tolist() == [30.0, 30.0, 45.0]
    assert math.isnan(table.loc[("b", "tokens in"), "per_success"])  # no success, so no price of one
    assert table.loc[("b", "tokens in"), "n"] == 1


def test_logs_that_tell_nothing_take_nothing():
    assert compare.usage(runs({"task_id": "t", "is_successful": True})).empty
    assert compare.usage(runs({"task_id": "t", "is_successful": True}), []).empty


@pytest.mark.parametrize("name", ["mindcraft", "crafter", "steps"])
def test_every_kind_says_what_its_runs_take(name):
    found = evalkit.load(f"samples:{name}").runs
    found = found[~is_excluded(found, kind_named(name))]
    table = compare.usage(found, [])
    told = [
        column for column in ("duration", "turns", "tokens_in", "tokens_out", "cost") if found[column].notna().any()
    ]
    assert len(table) == len(told) > 0
    assert table["n"].tolist() == [found[column].notna().sum() for column in told]
