"""Findings of all kinds: how runs ended, what is doubtful in the data, absent runs, variants."""

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
def test_names_that_may_mean_one_model_are_listed(names, groups):
    runs = pd.DataFrame({"model_name": names})
    joined = pd.DataFrame({"model_name": [f"aider · {name}" for name in names], "logged_model": names})
    for frame in (runs, joined, pd.concat([joined, joined.assign(model_name="codex · x/o3")])):
        assert [note.values["names"] for note in similar_names(frame).notes] == groups


FEWER, PLANNED = "fewer runs than other models on these tasks: ", "planned tasks not run: "
TWO_MODELS = [(model, task, True) for model in "ab" for task in "rst"]


@pytest.mark.parametrize(
    ("rows", "planned", "said"),
    [
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "rst"], "", ""),  # no plan names task u
        ([(m, t, True) for m in "ab" for t in "rstu" for _ in range(2)][:-1], "", FEWER + "b (7 of 8)"),
        ([*TWO_MODELS, ("a", "r", False), ("a", "r", False)], "", FEWER + "b (3 of 5)"),
        ([("a", t, True) for t in "rstu"] + [("b", t, True) for t in "vwxy"], "", ""),  # task sets of their own
        (TWO_MODELS[:3], "", ""),
        (TWO_MODELS, "rst", ""),
        (TWO_MODELS, "rstu", PLANNED + "a (1 of 4) and b (1 of 4)"),
        (TWO_MODELS[:-1], "rst", PLANNED + "b (1 of 3)"),
        (TWO_MODELS[:3], "rstu", PLANNED + "a (1 of 4)"),  # also of a model alone
        (TWO_MODELS * 2 + [("c", t, True) for t in "rs"], "rst", f"{PLANNED}c (1 of 3); {FEWER}c (2 of 4)"),
        (TWO_MODELS + TWO_MODELS[:3], "rst", FEWER + "b (3 of 6)"),  # a plan states no repetitions
        ([*TWO_MODELS, ("c", "r", None)], "rst", ""),  # a model without a measured run is not compared
    ],
)
def test_one_rule_counts_absent_runs_everywhere_and_speaks_of_a_plan_only_where_there_is_one(rows, planned, said):
    runs = runs_of(rows)
    board = compare.leaderboard(runs, planned=planned)
    of_model = list(map(finding_text, doubts(outcomes(runs), planned)))
    page = " ".join(map(finding_text, compare.findings(board)))
    texts = [" ".join(of_model), page]
    if said:
        texts.append(describe_comparison(runs, planned=planned))
    for text in texts:
        assert [text.lower().count(words) for words in (FEWER, PLANNED)] == [FEWER in said, PLANNED in said]
        assert said in text.replace("Fewer", "fewer").replace("Planned", "planned")
    one = doubts(outcomes(runs), planned, ["b"])
    assert bool(one) == ("b (" in said)


ONE_TASK = [(m, f"task_v{i}", i % 10 < rate) for m, rate in (("a", 8), ("b", 2)) for i in range(1, 61)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ONE_TASK, "the 60 tasks look like variants of 1 template"),
        (
            [(m, t.replace("_v", "-variant-"), v) for m, t, v in ONE_TASK],
            "the 60 tasks look like variants of 1 template",
        ),
        ([(m, f"grasp (seed {t[6:]})", v) for m, t, v in ONE_TASK], "the 60 tasks look like variants of 1 template"),
        ([(m, f"grasp[v{t[6:]}]", v) for m, t, v in ONE_TASK], "the 60 tasks look like variants of 1 template"),
        ([(m, f"org/repo#{t[6:]}", v) for m, t, v in ONE_TASK], ""),  # numbers of issues
        ([(m, f"HumanEval/{t[6:]}", v) for m, t, v in ONE_TASK], ""),  # a running number alone tells nothing
        ([(m, f"{t}_{t[6:]}", v) for m, t, v in ONE_TASK], ""),
        (ONE_TASK[:5], ""),
        ([(m, f"seed-{t[6:]}", v) for m, t, v in ONE_TASK], ""),  # a template has a name
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
        "unless its tasks are variants of a few, with a success rate of "
    )
    assert warning.startswith("The 60 tasks look like variants of 1 template; ")
    assert describe_comparison(runs).split("\n")[:2] == [ranking, warning]
    assert warning in describe_baseline(runs, "a")[0].split("\n")
    assert not variants(outcomes(runs.assign(cluster="task")))
