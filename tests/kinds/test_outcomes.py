"""What became of each run, by success and status, and what its rate counts."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from evalkit.kinds import LogKind, Parsed, RateRules, outcome_of, outcomes, run_columns
from evalkit.mindcraft.kind import KIND as MINDCRAFT
from tests.compare.runs import runs_of

WORDS = {"timeout": "failure", "solved": "success", "crashed": "not measured", "busy": "running"}
KIND = LogKind(
    name="made",
    title="made-up log",
    records={},
    tables={"runs": run_columns()},
    parse=lambda path, data: Parsed("used"),
    recognises=lambda head: "",
    rates=RateRules(outcome_of=WORDS),
)


def frame(*rows: tuple, **more: list) -> pd.DataFrame:
    """Make runs of (model, task, success, status)."""
    runs = runs_of([row[:3] for row in rows])
    return runs.assign(status=pd.array([row[3] for row in rows], "str"), **more)


@pytest.mark.parametrize(
    ("success", "status", "outcome"),
    [
        (True, None, "success"),
        (False, None, "failure"),
        (None, None, "not measured"),
        (None, "a status of no table", "not measured"),
        (None, "timeout", "failure"),
        (None, "solved", "success"),
        (None, "crashed", "not measured"),
        (None, "busy", "running"),
        (True, "timeout", "success"),  # the score alone says what is a success
        (False, "crashed", "failure"),
    ],
)
def test_success_says_what_became_of_a_run_else_its_status(success, status, outcome):
    runs = frame(("a", "t", success, status))
    assert list(outcome_of(runs, KIND)) == [outcome]
    assert list(outcome_of(runs, replace(KIND, rates=RateRules()))) == [
        {True: "success", False: "failure", None: "not measured"}[success]
    ]


@pytest.mark.parametrize(
    ("denominator", "values"),
    [("measured", [1, 0, 0, math.nan, math.nan, math.nan]), ("all", [1, 0, 0, 0, math.nan, math.nan])],
)
def test_the_leading_rate_counts_the_measured_runs_or_all(denominator, values):
    ends = [(True, None), (False, None), (None, "timeout"), (None, "crashed"), (None, "busy")]
    runs = frame(*[("a", "t", *end) for end in ends], ("never measured", "t", None, "crashed"))
    scored = outcomes(runs, kind=replace(KIND, rates=RateRules(outcome_of=WORDS, denominator=denominator)))
    pd.testing.assert_series_equal(scored.table["value"], pd.Series(values, dtype=float), check_names=False)


def test_a_model_whose_runs_all_timed_out_has_failed():
    runs = frame(*[("slow", str(task), None, "TIMED_OUT") for task in range(30)])
    scored = outcomes(runs, kind=MINDCRAFT)
    assert scored.name == "success rate"
    assert scored.table["value"].eq(0).all()


def test_scores_are_measured_where_there_is_one():
    runs = runs_of([("a", "t", 0.5), ("a", "u", None)])
    assert list(outcomes(runs, "score", KIND).table["outcome"]) == ["scored", "not measured"]


def test_conditions_name_the_columns_that_a_run_has():
    turns = pd.array([4, 4, 20, None], "Int64")
    runs = frame(*[("a", "t", True, None)] * 4, max_turns=turns, version=["x", None, "x", None])
    rules = RateRules(conditions=("max_turns", "version", "not there"))
    conditions = outcomes(runs, kind=replace(KIND, rates=rules)).table["condition"]
    assert list(conditions) == ["max_turns=4, version=x", "max_turns=4", "max_turns=20, version=x", ""]
    assert set(outcomes(runs, kind=KIND).table["condition"]) == {""}


def test_a_cluster_stands_for_the_task():
    runs = frame(*[("a", task, True, None) for task in "tuv"], world=["w", "w", None])
    assert list(outcomes(runs, kind=KIND, cluster="world").table["task"]) == ["w", "w", "v"]
    with pytest.raises(ValueError, match="world"):
        outcomes(runs, kind=KIND, cluster="wold")
