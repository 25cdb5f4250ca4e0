"""Frames made ready to be drawn."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.display.plots.prepare import grid, keys, mirrored, place, stacked, swarm


def test_groups_keep_their_order_and_missing_is_one_of_them():
    values = pd.Series(["b", None, "unknown", "a", np.nan, "b"], dtype="object")
    assert keys(values) == ["b", None, "unknown", "a"]
    assert keys(values, ["a"]) == ["a", "b", None, "unknown"]
    assert keys(pd.Series([1.0, 2.5, np.nan])) == [1, 2.5, None]


def test_series_lie_side_by_side_within_their_row():
    t = pd.DataFrame({"item": ["x", "x", "y"], "model": ["a", "b", "b"], "estimate": 0.5, "n": 3})
    rows = place(t, "item", "model")
    assert rows.marks["y"].tolist() == pytest.approx([-0.2, 0.2, 1.2])
    assert (rows.names, rows.series) == (["x", "y"], ["a", "b"])
    assert rows.marks["tip"][2] == "y, b: 50 % (n = 3)"
    assert place(t, "item", "item").marks["y"].tolist() == [0, 0, 1]


def test_given_words_and_links_of_a_row_are_kept():
    t = pd.DataFrame({"item": ["x", "y"], "estimate": 0.5, "n": 3, "tip": ["mine", ""], "href": ["runs/x.html", None]})
    marks = place(t, "item").marks
    assert marks["tip"].tolist() == ["mine", "y: 50 % (n = 3)"]
    assert marks["href"].tolist() == ["runs/x.html", ""]


@given(st.lists(st.floats(-1e6, 1e6), max_size=60))
def test_points_close_to_each_other_are_spread_within_their_row(values):
    offsets = swarm(values)
    assert len(offsets) == len(values)
    assert np.all(np.abs(offsets) <= 0.5 + 1e-9)
    together = pd.DataFrame({"value": values, "offset": offsets})
    assert not together.duplicated().any()


def test_stacked_parts_follow_each_other_and_say_their_share():
    t = pd.DataFrame({"model": ["a", "none", "b"], "ok": [3, 0, 1], "bad": [1, 0, np.nan]})
    bars = stacked(t, "model", {"ok": "success", "bad": "failure"})
    assert bars[["row", "left", "width"]].to_numpy().tolist() == [[0, 0, 0.75], [0, 0.75, 0.25], [1, 0, 1]]
    assert bars["tip"].tolist() == ["a: 3 success of 4 (75 %)", "a: 1 failure of 4 (25 %)", "b: 1 success of 1 (100 %)"]


def test_rows_and_columns_of_the_same_names_have_the_same_order():
    pairs = pd.DataFrame({"a": ["x", "x", "y"], "b": ["y", "z", "z"], "estimate": [0.1, 0.2, 0.3]})
    rows, columns, cells, _ = grid(mirrored(pairs, "a", "b"), "a", "b")
    assert rows == columns == ["x", "y", "z"]
    assert len(cells) == 6


def test_a_mirrored_pair_has_its_bounds_swapped_and_the_best_model_stands_first():
    pairs = pd.DataFrame(
        [("worse", "better", 0.2, 0.6, -0.4, -0.5, -0.1)],
        columns=["model_a", "model_b", "mean_a", "mean_b", "estimate", "low", "high"],
    )
    both = mirrored(pairs)
    assert both["model_a"].tolist() == ["better", "worse"]
    assert both[["estimate", "low", "high"]].to_numpy().tolist() == [[0.4, 0.1, 0.5], [-0.4, -0.5, -0.1]]
    assert mirrored(pairs.iloc[:0]).empty


def test_of_a_tall_grid_the_rows_are_kept_whose_values_differ_most():
    spreads = {f"t{i:03}": (i * 37 % 100) / 100 for i in range(100)} | {None: 1.0, "nothing": None}
    rows = [(task, model, value, 1) for task, gap in spreads.items() for model, value in (("a", 0.0), ("b", gap))]
    made = grid(pd.DataFrame(rows, columns=["task", "model", "estimate", "n"]), "task", "model")
    widest = sorted((task for task in spreads if task != "nothing"), key=lambda task: -spreads[task])[:40]
    assert made.rows == [task for task in spreads if task in widest]
    assert set(made.cells) == {(task, model) for task in widest for model in "ab"}
    assert made.note == "40 of 102 rows: those whose values differ most"


@pytest.mark.parametrize("value", ["works", 0.5])
def test_of_a_tall_grid_of_equal_values_or_names_the_first_rows_are_kept(value):
    table = pd.DataFrame([(f"t{i:03}", "a", value) for i in range(50)], columns=["task", "model", "estimate"])
    made = grid(table, "task", "model")
    assert (made.rows, made.note) == ([f"t{i:03}" for i in range(40)], "40 of 50 rows: the first")
    assert len(grid(table, "task", "model", rows=["t000"]).rows) == 50
