"""Findings of all kinds: how runs ended, what is doubtful in the data, missing and surplus runs, variants."""

from itertools import compress

import pandas as pd
import pytest

from evalkit import compare
from evalkit.compare.terminal import describe_baseline, describe_comparison
from evalkit.display.words import finding_text
from evalkit.kinds import data_finding, outcomes
from evalkit.kinds.findings import doubts, similar_names, variants
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
    raised = [list(compress(flags, of_run)) for of_run in zip(*flags.values(), strict=True)]
    runs = pd.DataFrame({"run_flags": raised})
    found = data_finding(runs, pd.DataFrame({"status": statuses}), "run").values
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
    assert [note.values["names"] for note in similar_names(names).notes] == groups


FEWER = "Fewer runs than other models on these tasks: "
TWO_MODELS = [(model, task, True) for model in "ab" for task in "rst"]


@pytest.mark.parametrize(
    ("rows", "more", "said"),
    [
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "rst"], {}, FEWER + "b 1."),
        ([(m, t, True) for m in "ab" for t in "rstu" for _ in range(2)][:-1], {}, FEWER + "b 1."),
        ([*TWO_MODELS, ("a", "r", False), ("a", "r", False)], {}, "More runs than other models on these tasks: a 2."),
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "vwxy"], {}, ""),  # task sets of their own
        ([("a", t, True) for t in "rst"] + [("b", t, True) for t in "stu"], {}, FEWER + "a 1, b 1."),
        (TWO_MODELS[:3], {}, ""),
        (TWO_MODELS, {"planned": "rst"}, ""),
        (TWO_MODELS, {"planned": "rstu"}, "missing: a 1, b 1."),  # tasks that definitions name are planned
        (TWO_MODELS, {"planned": "rstu", "models": ["b"]}, "missing: b 1."),
    ],
)
def test_only_planned_runs_are_missing_others_are_fewer_or_more_than_those_of_other_models(rows, more, said):
    found = list(map(finding_text, doubts(outcomes(runs_of(rows)), **more)))
    assert len(found) == bool(said)
    assert all(said in text for text in found)


ONE_TASK = [(m, f"task_v{i}", i % 10 < rate) for m, rate in (("a", 8), ("b", 2)) for i in range(1, 61)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ONE_TASK, "the ids of the 60 tasks name variants of 1"),
        ([(m, t.replace("_v", "-variant-"), v) for m, t, v in ONE_TASK], "the ids of the 60 tasks name variants of 1"),
        ([(m, f"HumanEval/{t[6:]}", v) for m, t, v in ONE_TASK], ""),  # a running number alone tells nothing
        ([(m, f"{t}_{t[6:]}", v) for m, t, v in ONE_TASK], ""),
        (ONE_TASK[:5], ""),
    ],
)
def test_variants_of_few_tasks_are_noted_with_what_to_type(rows, said):
    text = str(variants(outcomes(runs_of(rows))))
    assert text.startswith(said)
    assert bool(text) == bool(said) == ("--cluster COLUMN" in text)


def test_a_claim_that_rests_on_variants_carries_the_warning():
    runs = runs_of(ONE_TASK)
    ranking, warning, *_ = map(finding_text, compare.findings(compare.leaderboard(runs)))
    assert ranking.startswith(
        "a is shown to be the best of 2 models on new tasks like these, "
        "if its tasks are no variants of few, with a success rate of "
    )
    assert warning.startswith("The ids of the 60 tasks name variants of 1: ")
    assert describe_comparison(runs).split("\n")[:2] == [ranking, warning]
    assert warning in describe_baseline(runs, "a")[0].split("\n")
    assert not variants(outcomes(runs.assign(cluster="task")))
