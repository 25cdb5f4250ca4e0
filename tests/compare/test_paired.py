"""Pairs, a baseline, opposite outcomes and cost, on runs of any kind."""

import pytest

from evalkit import compare
from tests.compare.runs import played, runs_of


@pytest.mark.parametrize(("columns", "unit"), [({"cost": 1.0}, "cost"), ({"duration": 5.0}, "duration"), ({}, "")])
def test_cost_is_what_the_runs_carry(columns, unit):
    runs = runs_of(played({"a": 0.9, "b": 0.2}), **columns)
    if unit:
        runs[unit] = runs[unit].where(runs["model_name"] == "a", 9.0)
    table, found = compare.cost(runs)
    assert found == unit
    assert table["model_name"].tolist() == (["a", "b"] if unit else [])
    assert table.loc[table["on_front"], "model_name"].tolist() == (["a"] if unit else [])


def test_of_many_pairs_a_page_shows_those_that_say_most():
    runs = runs_of(played({f"m{i:02d}": 0.05 + 0.06 * i for i in range(15)}, tasks=30))
    pairs = compare.pairs(runs)
    assert (len(pairs), len(compare.pairs_to_show(pairs))) == (105, 45)
    assert compare.pairs_to_show(pairs)["p_adjusted"].is_monotonic_increasing
    assert compare.pairs_text(pairs).startswith(f"{int(pairs['decided'].sum())} of 105 pairs of 15 models are decided.")
    assert len(compare.figures.differences(pairs).get_yticklabels()) == 15


@pytest.mark.parametrize(
    ("reached", "found"),
    [
        ([("a", "t", True), ("b", "t", False)], [("t", "0", "1")]),
        ([("a", "t", True), ("b", "t", True)], []),
        ([("a", "t", True), ("b", "u", False)], []),  # no task in common
        ([("a", "t", True), ("a", "t", False), ("b", "t", False), ("b", "t", False)], [("t", "0", "2")]),
        ([("a", "t", True), ("b", "t", None), ("b", "u", True)], [("t", "0", "1")]),  # no outcome: a failure
        ([("a", "t", 0.9), ("b", "t", 0.1), ("a", "u", 0.5), ("b", "u", 0.4)], [("t", "0", "1")]),
        ([], []),
    ],
)
def test_pairs_are_runs_of_one_task_with_opposite_outcomes(reached, found):
    runs = runs_of(reached) if reached else runs_of([("a", "t", True)])
    table = compare.discordant(runs)
    assert list(zip(table["task"], table["run_id_a"], table["run_id_b"], strict=True)) == found


def test_models_may_be_named_and_keep_their_sides():
    runs = runs_of([("a", "t", True), ("b", "t", False), ("c", "t", False)])
    assert compare.discordant(runs)[["model_a", "model_b"]].values.tolist() == [["a", "b"], ["a", "c"]]
    assert compare.discordant(runs, "c")[["model_a", "model_b"]].values.tolist() == [["c", "a"]]
    assert compare.discordant(runs, "b", "a")[["model_a", "value_a"]].values.tolist() == [["b", 0.0]]
    assert compare.discordant(runs, "b", "c").empty
