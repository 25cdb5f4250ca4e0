"""What a leaderboard and its headline say, and what they must not say."""

import math

import numpy as np
import pandas as pd
import pytest

from evalkit import compare
from evalkit._words import note
from evalkit.compare.terminal import describe_comparison
from evalkit.display.words import headline_text
from evalkit.io import SourceError
from evalkit.kinds import outcomes
from tests.compare.runs import runs_of

EASY, HARD = "easy", "hard"


def played(rates, tasks=40, repetitions=1, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (m, f"t{t}", bool(rng.random() < p)) for m, p in rates.items() for t in range(tasks) for _ in range(repetitions)
    ]


def mixes():
    """Beta is better on each type of task, and alpha ran more of the easy one; no task is shared."""
    parts = {("alpha", EASY): (80, 64), ("alpha", HARD): (20, 5), ("beta", EASY): (20, 18), ("beta", HARD): (80, 34)}
    return [(m, f"{m} {k} {i}", i < wins, k) for (m, k), (n, wins) in parts.items() for i in range(n)]


def only_easy():
    """Gamma ran the easy tasks only, and ties on them with the other, which fails on the hard ones."""
    rows = [("delta", f"e{i}", i < 22, EASY) for i in range(24)] + [("delta", f"h{i}", i < 4, HARD) for i in range(24)]
    return rows + [("gamma", f"e{i}", i < 22, EASY) for i in range(24)]


GAMES = (("rock", "scissors"), ("scissors", "paper"), ("paper", "rock"))
CYCLE = [(name, f"{game}{i}", name == game[0]) for game in GAMES for i in range(10) for name in game]
APART = [("a", f"a{i}", True) for i in range(20)] + [("b", f"b{i}", i < 3) for i in range(20)]
CHAIN = [(m, f"easy{i}", i < wins) for m, wins in (("a", 20), ("b", 8)) for i in range(20)]
CHAIN += [(m, f"hard{i}", i < wins) for m, wins in (("b", 1), ("c", 0)) for i in range(20)]
CLEAR = played({"first": 0.95, "second": 0.3, "third": 0.25})


@pytest.mark.parametrize(
    ("reached", "label"),
    [
        (mixes(), "beta leads; not separable from alpha"),
        (only_easy(), "gamma leads; not separable from delta"),
        (CYCLE, "no best model: paper > rock > scissors > paper, each better than the next"),
        (APART, "best: a (success rate, different tasks, taken to be drawn alike)"),
        (CHAIN, "a leads; ahead of b; not separable from c"),
        (played({f"model-{i:03d}": 0.5 for i in range(100)}, tasks=12),
         "model-047 leads; not separable from 99 models"),
        (CLEAR, "best: first (success rate)"),
        ([(m, f"t{t}", score) for m, score in (("a", 0.1), ("b", 0.9)) for t in range(5)],
         "b leads; not separable from a"),
        (played({"first": 0.7, "second": 0.5, "third": 0.1}), "first leads; ahead of third; not separable from second"),
        ([("a", "t", True), ("b", "t", None)], "success rate of a"),
        ([("a", "t", None)], "no best model: no run was measured"),
        ([(None, "t", True)], "success rate; no run with one names its model"),
    ],
)  # fmt: skip
def test_the_headline_names_a_best_model_only_where_the_data_show_one(reached, label):
    assert headline_text(compare.headline(compare.leaderboard(runs_of(reached)))) == label


def test_the_estimate_of_a_best_model_is_corrected_for_having_been_picked():
    board = compare.leaderboard(runs_of(CLEAR))
    found, raw = compare.headline(board), board.table.iloc[0]
    assert found["estimate"] < raw["estimate"]
    assert found["high"] - found["low"] > raw["high"] - raw["low"]
    assert (found["n"], found["n_clusters"]) == (40, 40)


@pytest.mark.parametrize(
    ("reached", "value", "expected"),
    [
        ([("a", "t", True), ("a", "u", None)], "", [1.0, 0.0]),
        ([("a", "t", None), ("a", "u", None)], "is_successful", [None, None]),
        ([("a", "t", 0.25), ("a", "u", None)], "", [0.25, None]),
        ([("a", "t", True), ("a", "u", None)], "score", [1.0, None]),
    ],
)
def test_a_run_without_an_outcome_fails_only_beside_runs_with_one(reached, value, expected):
    found = outcomes(runs_of(reached), value).table["value"]
    assert [None if math.isnan(number) else number for number in found] == expected


def test_runs_whose_flag_says_so_count_in_no_rate():
    runs = runs_of([("a", "t", True), ("a", "u", False)])
    runs["run_flags"] = pd.Series([["stale_copy"], ["other"]], index=runs.index)
    found = outcomes(runs)
    assert (len(found.table), found.left_out) == (1, 1)
    assert compare.leaderboard(runs).notes == note("copied", pairs=[("a", "unknown", 1)])


def test_a_model_of_copies_only_stands_in_the_table_with_its_reason():
    runs = runs_of([("a", "t", True), ("b", "t", True), ("b", "u", True)])
    runs["run_flags"] = pd.Series([[], ["stale_copy"], ["stale_copy"]], index=runs.index)
    runs["copied_model"] = pd.Series([None, "a", "a"], index=runs.index)
    board = compare.leaderboard(runs)
    rated, copies = board.table.to_dict("records")
    assert (rated["model_name"], copies["model_name"], copies["n"]) == ("a", "b", 0)
    assert math.isnan(copies["estimate"])
    assert copies["warning"] == note("only_copies", count=2, models=["a"])
    assert board.notes == note("copied", pairs=[("b", "a", 2)])
    shown = describe_comparison(runs)
    assert "\nb: all 2 runs hold copies of logs of a.\n" in shown
    assert "Logs are copied into 2 runs of b from runs of a: these copies count in no rate." in shown


def test_runs_without_a_task_are_tasks_of_their_own():
    assert outcomes(runs_of([("a", None, True), ("a", None, False)])).table["task"].nunique() == 2


def test_only_runs_of_one_kind_are_compared():
    both = pd.concat([runs_of([("a", "t", True)]), runs_of([("a", "t", True)], kind="crafter")])
    with pytest.raises(SourceError, match="several kinds"):
        compare.leaderboard(both)
    with pytest.raises(SourceError, match="no runs"):
        compare.leaderboard(both.iloc[:0])
