"""Findings of all kinds: how runs ended, what is doubtful in the data, retries, missing and surplus runs, variants."""

import numpy as np
import pandas as pd
import pytest

from evalkit import compare
from evalkit.compare.terminal import describe_baseline, describe_comparison
from evalkit.display.words import text_of
from evalkit.kinds import data_finding, outcomes
from evalkit.kinds.findings import alike, doubts, retries, variants
from tests.compare.runs import runs_of


@pytest.mark.parametrize(
    ("flags", "statuses", "counted"),
    [
        ({"a": [False, False]}, ["used", "used"], ({}, 0, [], (2, 0, 0))),
        ({"a_b": [True, False]}, ["used", "failed"], ({"a_b": 1}, 1, [], (2, 0, 1))),
        ({"a": [True, True], "b": [True, False], "c": [False, True], "d": [True, False]},
         ["skipped", "skipped", "failed"], ({"b": 1, "c": 1, "d": 1}, 2, ["a"], (3, 2, 1))),
    ],
)  # fmt: skip
def test_what_is_doubtful_is_counted(flags, statuses, counted):
    runs = pd.DataFrame({f"flag_{name}": values for name, values in flags.items()})
    found = data_finding(runs, dict.fromkeys(flags, ""), pd.DataFrame({"status": statuses}), "run").values
    assert (found["flags"], found["flagged"], found["everywhere"], tuple(found["files"].values())) == counted


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["GPT-4o", "gpt-4o", "o3"], [["GPT-4o", "gpt-4o"]]),
        (["openai/gpt-4o", "gpt-4o"], [["gpt-4o", "openai/gpt-4o"]]),
        (["llama3:8b", "llama3:70b", "gpt-4", "gpt-4o"], []),
    ],
)
def test_names_that_may_mean_one_model_are_told(names, groups):
    assert [note.values["names"] for note in alike(names).notes] == groups


def texts(rows, **more) -> list[str]:
    return list(map(text_of, doubts(outcomes(runs_of(rows)), **more)))


RETRIED = [("a", f"t{task}", value) for task in range(10) for value in (False, True)]
EVERY = [("b", f"t{task}", value) for task in range(10) for value in (task % 2 == 0, task % 3 == 0)]


def test_failed_runs_that_were_repeated_until_one_succeeded_are_a_finding():
    (text,) = texts(RETRIED + EVERY)
    assert text.startswith("Last runs succeed more often")
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
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "rst"], ["b 1 missing"]),
        ([(m, t, True) for m in "ab" for t in "rstu" for _ in range(2)][:-1], ["b 1 missing"]),
        ([(m, t, True) for m in "ab" for t in "rstu"] + [("a", "r", False)] * 2, ["a 2 surplus"]),
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "vwxy"], []),  # task sets of their own
        ([("a", t, True) for t in "rst"] + [("b", t, True) for t in "stu"], ["a 1 missing", "b 1 missing"]),
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
    assert "a 1 missing; b 1 missing" in text
    assert texts(rows, planned=["r", "s", "t", "u"], models=["b"])[0].count(" 1 missing") == 1


def worlds_of(seed: int, models: str = "abc", worlds: int = 3) -> list[tuple]:
    """Scores that a world alone decides, under 60 ids that tell nothing."""
    rng = np.random.default_rng(seed)
    scores = {model: rng.normal(40 - 10 * place, 5, worlds) for place, model in enumerate(models)}
    world = rng.integers(worlds, size=60)
    return [(model, f"id {task:x}", scores[model][world[task]]) for model in models for task in range(60)]


ONE_TASK = [(m, f"task_v{i}", i % 10 < rate) for m, rate in (("a", 8), ("b", 2)) for i in range(1, 201)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ONE_TASK, "the ids of the 200 tasks name variants of 1"),
        ([(m, t.replace("_v", "-variant-"), v) for m, t, v in ONE_TASK], "the ids of the 200 tasks name variants of 1"),
        (worlds_of(1), "the 60 tasks on which outcomes differ have only 3 patterns of outcomes"),
        ([(m, f"HumanEval/{t[6:]}", v) for m, t, v in ONE_TASK], ""),  # a running number alone tells nothing
        ([(m, f"{t}_{t[6:]}", v) for m, t, v in ONE_TASK], ""),
        (ONE_TASK[:5], ""),
        (worlds_of(1, worlds=60), ""),
    ],
)
def test_variants_of_few_tasks_are_noted_with_what_to_type(rows, said):
    text = str(variants(outcomes(runs_of(rows))))
    assert text.startswith(said)
    assert bool(text) == bool(said) == ("--cluster COLUMN" in text)


def test_a_claim_that_rests_on_variants_carries_the_warning():
    runs = runs_of(ONE_TASK)
    ranking, warning, *_ = map(text_of, compare.findings(compare.leaderboard(runs)))
    assert ranking.startswith(
        "a is shown to be the best of 2 models, if its tasks are no variants of few, with a success rate of "
    )
    assert warning.startswith("The ids of the 200 tasks name variants of 1: ")
    assert describe_comparison(runs).split("\n")[:2] == [ranking, warning]
    assert describe_baseline(runs, "a")[0].endswith(warning)
    clustered = compare.leaderboard(runs.assign(cluster="task"))
    assert "variants" not in clustered.notes


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("spread", [0, 1, 3])
def test_independent_tasks_are_not_taken_for_variants(spread, steady):
    rng = np.random.default_rng(7)
    for models in ("ab", "abc", "abcdef"):
        odds = rng.normal(0, 1.5, (len(models), 1)) + rng.normal(0, spread, 60)
        values = rng.random((3, *odds.shape)) < 1 / (1 + np.exp(-odds))
        values = values[[0, 0, 0]] if steady else values
        rows = [(m, f"t{t}", bool(run[i, t])) for run in values for i, m in enumerate(models) for t in range(60)]
        assert not variants(outcomes(runs_of(rows)))
