"""Alt texts say what the pictures show: values with intervals and n, and why one is missing."""

import math

import numpy as np
import pandas as pd
import pytest

from evalkit._words import note
from evalkit.display.words import (
    describe_curves,
    describe_estimates,
    describe_shares,
    describe_strips,
    describe_timeline,
    describe_value,
    name_of,
)
from tests.display.gallery import KINDS

NOTES = note("none", "no scores") + note("x", "x")


@pytest.mark.parametrize(
    ("row", "options", "text"),
    [
        ({"estimate": 0.63, "low": 0.52, "high": 0.73, "n": 40}, {}, "63 % [52, 73] (n = 40)"),
        ({"estimate": 0.025, "low": 0.011, "high": 0.06, "n": 1234}, {}, "2.5 % [1.1, 6.0] (n = 1,234)"),
        ({"estimate": 0.5, "low": math.nan, "high": math.nan, "n": 1}, {}, "50 % (n = 1)"),
        ({"estimate": 0.5}, {}, "50 %"),
        ({"estimate": math.nan, "n": 3}, {}, "no estimate (n = 3)"),
        ({"estimate": pd.NA, "n": 3, "reason": "too few <b>\x1b"}, {}, "too few <b>\ufffd (n = 3)"),
        (
            {"estimate": math.nan, "n": 0, "n_not_measured": 3, "warning": NOTES},
            {},
            "no scores (n = 3)",
        ),
        ({"estimate": 0.5, "n": 2, "n_not_measured": 3, "warning": note("none", "few tasks")}, {}, "50 % (n = 2)"),
        ({"estimate": 1.25, "low": 0.8, "high": 1.7, "n": 4}, {"percent": False}, "1.25 [0.80, 1.70] (n = 4)"),
        ({"x": 1.25, "n": 4}, {"percent": False, "digits": 0, "value": "x"}, "1 (n = 4)"),
    ],
)
def test_a_value_is_said_with_interval_and_n(row, options, text):
    assert describe_value(row, **options) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (None, "unknown"), (np.nan, "unknown"), (pd.NA, "unknown"), (2.0, "2"), (2.5, "2.5"), ("a\nb", "a b")],
)
def test_groups_are_named_in_one_plain_line(value, text):
    assert name_of(value) == text


def estimates(count: int) -> pd.DataFrame:
    rates = np.linspace(0, 1, count)
    return pd.DataFrame({"item": [f"i{i}" for i in range(count)], "estimate": rates, "n": 5})


def test_estimates_are_listed_and_groups_without_runs_left_out():
    t = estimates(3).assign(side=["a", None, "a"], n=[5, 2, 0])
    assert describe_estimates(t, "item", "side") == "i0, a: 0 % (n = 5); i1, unknown: 50 % (n = 2)."
    assert describe_estimates(t.iloc[:0], "item") == "Nothing to show."


def test_of_many_groups_only_the_extremes_are_named():
    text = describe_estimates(estimates(360).assign(model="m"), "item", "model")
    assert text == (
        "360 groups, 360 of them with an estimate. Lowest: i0, m: 0 % (n = 5); highest: i359, m: 100 % (n = 5)."
    )
    unknown = estimates(60).assign(estimate=np.nan)
    assert describe_estimates(unknown, "item") == "60 groups, 0 of them with an estimate."


def test_shares_are_counted_by_part():
    t = pd.DataFrame({"model": ["a", "b"], "ok": [3, 0], "bad": [1, 0]})
    assert describe_shares(t, "model", ["ok", "bad"]) == "a: 3 ok, 1 bad of 4."
    looks = {"ok": KINDS["+"], "bad": KINDS["-"]}
    assert describe_shares(t, "model", looks) == "a: 3 gains points, 1 loses points of 4."
    assert describe_shares(t.iloc[1:], "model", ["ok"]) == "Nothing to show."


def test_single_values_are_said_by_mean_and_range():
    values = pd.DataFrame({"model": ["a", "a", "b", "b"], "score": [1.0, 2.0, 4.0, np.nan]})
    means = pd.DataFrame({"model": ["a"], "estimate": [1.5], "low": [0.5], "high": [2.5], "n": [2]})
    assert describe_strips(values, "model", "score", means) == (
        "a: mean 1.50 [0.50, 2.50] (n = 2), values from 1.00 to 2.00; b: mean 4.00 (n = 1), values from 4.00 to 4.00."
    )


@pytest.mark.parametrize(("places", "said"), [(2, 2), (6, 6), (7, 2), (40, 2)])
def test_curves_are_said_by_their_places_or_their_ends(places, said):
    t = pd.DataFrame({"model": "a", "turn": range(places), "estimate": np.linspace(0, 1, places), "n": 3})
    text = describe_curves(t, "turn", "model")
    assert text.startswith("a: 0 % (n = 3) at turn 0, ")
    assert text.endswith(f"100 % (n = 3) at turn {places - 1}.")
    assert text.count("turn") == said


def test_events_are_counted_by_kind():
    t = pd.DataFrame({"run": ["a", "a", "b"], "kind": ["+", "+", "-"]})
    assert describe_timeline(t, "run", "kind", KINDS) == "a: 2 gains points; b: 1 loses points."
    many = pd.DataFrame({"run": range(60), "kind": "+"})
    assert describe_timeline(many, "run", "kind", KINDS) == "all: 60 gains points."
    assert describe_timeline(t.iloc[:0], "run", "kind", KINDS) == "Nothing to show."
