"""Tasks that models decided oppositely."""

import pytest

from evalkit.compare import discordant
from tests.compare.runs import runs_of


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
    table = discordant(runs)
    assert list(zip(table["task"], table["run_id_a"], table["run_id_b"], strict=True)) == found


def test_models_may_be_named_and_keep_their_sides():
    runs = runs_of([("a", "t", True), ("b", "t", False), ("c", "t", False)])
    assert discordant(runs)[["model_a", "model_b"]].values.tolist() == [["a", "b"], ["a", "c"]]
    assert discordant(runs, "c")[["model_a", "model_b"]].values.tolist() == [["c", "a"]]
    assert discordant(runs, "b", "a")[["model_a", "value_a"]].values.tolist() == [["b", 0.0]]
    assert discordant(runs, "b", "c").empty
