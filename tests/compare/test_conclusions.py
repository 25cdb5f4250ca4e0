"""What a report says first of a ranking: no more than the data show."""

import numpy as np
import pytest

from evalkit import compare
from evalkit.compare.terminal import describe_comparison
from evalkit.display import text_of
from evalkit.display.words import undecided_text
from tests.compare.runs import runs_of


def reached(model, values, tasks=None):
    return [(model, task, value) for task, value in zip(tasks or map(str, range(len(values))), values, strict=False)]


def said(runs, value=""):
    return compare.findings(compare.leaderboard(runs_of(runs), value))


def test_of_one_model_its_rate_is_said_and_that_nothing_is_compared():
    first, second = said(reached("alder", [True] * 6 + [False] * 4))
    assert text_of(first) == "Success rate of alder: 60 % [31, 83] (10 runs of 10 tasks)."
    assert first.section == "Which model is best?"
    assert text_of(second) == "There is one model only, so nothing is compared."


def test_a_decided_best_model_is_named_with_its_corrected_estimate_against_the_next():
    runs = reached("alder", [True] * 30) + reached("birch", [False] * 28 + [True] * 2)
    first, second, *_ = said(runs)
    assert text_of(first).startswith("alder is shown to be the best of 2 models: success rate ")
    assert text_of(first).endswith("(30 runs of 30 tasks). The estimate is corrected for picking the best.")
    assert text_of(second).startswith("alder is better than birch on new tasks like these: 100 % against 6.7 %")


def test_of_many_pairs_the_open_one_of_the_first_model_that_is_nearest_to_a_decision_is_told():
    runs = reached("alder", [True] * 24 + [False] * 6) + reached("birch", [True] * 19 + [False] * 11)
    runs += reached("cedar", [False] * 29 + [True])
    second = text_of(said(runs)[1])
    assert second.startswith("2 of 3 pairs are decided. Not decided between alder and birch")


def test_findings_lead_to_the_extremes_of_the_first_model_and_to_pairs_that_were_decided_oppositely():
    runs = reached("alder", [True, False, True]) + reached("birch", [True, True, False])
    first, second, *_ = said(runs)
    table = runs_of(runs).set_index("run_id")
    assert [table.loc[one.run_id, "score"] for one in first.examples] == [1.0, 0.0]
    for one in second.examples:
        a, b = table.loc[one.run_id], table.loc[one.other]
        assert (a["task_id"], a["score"] + b["score"]) == (b["task_id"], 1.0)
    assert len(second.examples) == 2
    assert [len(one.examples) for one in said([("alder", "a", None)])] == [0, 0]


def test_tasks_that_other_models_find_easier_are_not_taken_to_be_drawn_alike():
    easy, hard = [f"e{i}" for i in range(12)], [f"h{i}" for i in range(12)]
    runs = reached("alder", [True] * 12, easy) + reached("birch", [False] * 12, hard)
    runs += reached("cedar", [True] * 11 + [False] + [False] * 11 + [True], easy + hard)
    pairs = compare.pairs(runs_of(runs)).set_index(["model_a", "model_b"])
    assert pairs.loc[("alder", "birch"), "estimate"] != pairs.loc[("alder", "birch"), "estimate"]
    assert not pairs.loc[("alder", "birch"), "decided"]


def test_pairs_that_cannot_be_compared_are_told_in_one_sentence():
    runs = [row for i in range(9) for row in reached(f"m{i}", [True], [f"t{i}"])]
    pairs = compare.pairs(runs_of(runs))
    assert compare.pairs_text(pairs).startswith("Not compared: 36 pairs of 9 models share no tasks")


@pytest.mark.parametrize("points", [[1.5, 2.5, 3.0], [40.0, 39.0, -2.0]])
def test_scores_are_said_in_their_unit_and_not_as_shares(points):
    runs = runs_of(reached("miner", points), "crafter")
    first = compare.findings(compare.leaderboard(runs, "score"))[0]
    first = text_of(first)
    assert first.startswith("Mean score of miner: ")
    assert " points [" in first
    assert "] (3 runs of 3 tasks)." in first
    assert "%" not in first


def test_where_pairs_of_the_best_stay_open_a_clause_says_that_best_is_a_test_of_its_own():
    rng = np.random.default_rng(1)
    rates = {f"m{i}": 0.3 for i in range(7)} | {"z": 0.6}
    runs = runs_of([(m, str(t), bool(rng.random() < rate)) for m, rate in rates.items() for t in range(60)])
    board = compare.leaderboard(runs)
    count = int((~board.pairs.loc[board.pairs["model_b"] == "z", "decided"]).sum())
    answer = compare.headline(board)
    assert (answer["code"], answer["model"], answer["undecided"], count > 0) == ("best", "z", count, True)
    clause = undecided_text(answer).strip()
    assert clause in text_of(compare.findings(board)[0])
    assert clause in describe_comparison(runs)
    assert undecided_text(answer | {"undecided": 0}) == ""
