"""What is doubtful about which runs there are: retries, missing and surplus runs."""

import numpy as np
import pandas as pd
import pytest

from evalkit.display.words import text_of
from evalkit.kinds import outcomes
from evalkit.kinds.doubts import doubts, presence, retries
from tests.compare.runs import runs_of


def texts(rows, **more) -> list[str]:
    return list(map(text_of, doubts(outcomes(runs_of(rows)), **more)))


RETRIED = [("a", f"t{task}", value) for task in range(10) for value in (False, True)]
EVERY = [("b", f"t{task}", value) for task in range(10) for value in (task % 2 == 0, task % 3 == 0)]


def test_failed_runs_that_were_repeated_until_one_succeeded_are_a_finding():
    (text,) = texts(RETRIED + EVERY)
    assert text.startswith("The last run of a task succeeds more often than its others")
    assert "a (p = " in text
    assert "b (p" not in text


@pytest.mark.parametrize("rows", [EVERY, [(m, t, not v) for m, t, v in RETRIED], RETRIED[:6], [("a", "t", True)]])
def test_other_repetitions_are_none(rows):
    assert not texts(rows)


def test_attempts_in_several_experiments_are_in_the_order_in_which_they_began():
    runs = runs_of(RETRIED)
    begun = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(len(runs)), "s")
    one_each = runs.assign(repetition=pd.array([0] * len(runs), "Int64"), started=begun)
    assert retries(outcomes(one_each))["retried"].tolist() == [True]
    later = one_each.assign(started=begun[::-1])
    assert retries(outcomes(later))["retried"].tolist() == [False]


def test_few_false_alarms_where_no_run_was_repeated_for_its_outcome():
    rng, found = np.random.default_rng(1), 0
    for _ in range(200):
        rates = enumerate(rng.random(12))
        rows = [("a", f"t{task}", bool(rng.random() < rate)) for task, rate in rates for _ in range(3)]
        found += bool(texts(rows))
    assert found <= 8  # 2 expected, of a test at 1 %


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "rst"], ["b: 1 run missing on 1 task"]),
        ([(m, t, True) for m in "ab" for t in "rstu" for _ in range(2)][:-1], ["b: 1 run missing on 1 task"]),
        ([(m, t, True) for m in "ab" for t in "rstu"] + [("a", "r", False)] * 2, ["a: 2 surplus runs on 1 task"]),
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "vwxy"], []),  # task sets of their own
        ([("a", t, True) for t in "rst"] + [("b", t, True) for t in "stu"], ["a: 1 run missing", "b: 1 run missing"]),
        ([("a", t, True) for t in "rst"], []),
    ],
)
def test_runs_that_others_have_are_missing_and_more_than_they_have_are_too_many(rows, said):
    found = texts(rows)
    assert len(found) == bool(said)
    assert all(words in found[0] for words in said)


def test_tasks_that_definitions_name_are_planned():
    rows = [(model, task, True) for model in "ab" for task in "rst"]
    assert texts(rows, planned="rst") == []
    (text,) = texts(rows, planned=["r", "s", "t", "u"])
    assert "a: 1 run missing on 1 task; b: 1 run missing on 1 task" in text
    assert texts(rows, planned=["r", "s", "t", "u"], models=["b"])[0].count("missing on") == 1


def test_runs_at_two_budgets_are_no_surplus():
    table = outcomes(runs_of([("a", t, True) for t in "rst" for _ in range(2)])).table
    table["condition"] = ["max_turns=4", "max_turns=20"] * 3
    cells = presence(table)
    assert cells["n"].eq(cells["planned"]).all()
