"""What a leaderboard, its headline and its findings say, and what they must not say."""

import math
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from evalkit import compare, failures
from evalkit._notes import note
from evalkit._text import format_interval, sentence
from evalkit.compare.ranking import ranked
from evalkit.compare.terminal import answer, describe_baseline, describe_comparison
from evalkit.display import finding_text
from evalkit.display.words import headline_text, undecided_text
from evalkit.io import SourceError
from evalkit.kinds import outcomes, pipeline
from evalkit.labels import compare_judges
from evalkit.trajectories.analysis import tool_use
from tests.compare.runs import played, reached, runs_of

EASY, HARD = "easy", "hard"


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
CELLS = {
    "mixes": mixes(), "only easy": only_easy(), "cycle": CYCLE, "apart": APART, "chain": CHAIN, "clear": CLEAR,
    "one run": [("a", "t", True)], "no name": [(None, "t", False)],
}  # fmt: skip
OF_TRAJECTORIES = {"task_type": None, "format": "atif", "agent": "a", "agent_version": "1"}


@cache
def board_of(name):
    """Return the leaderboard of some of `CELLS`."""
    return compare.leaderboard(runs_of(CELLS[name]))


@pytest.mark.parametrize(
    ("cells", "label"),
    [
        ("mixes", "beta is first; not decided against alpha"),
        ("only easy", "gamma is first; not decided against delta"),
        ("cycle", "no best model: paper, rock and scissors form a cycle in which each is better than the next"),
        ("apart", "best: a (success rate, different tasks, assumed to be random samples of the same tasks)"),
        ("chain", "a leads; ahead of b; not decided against c"),
        (played({f"model-{i:03d}": 0.5 for i in range(15)}, tasks=12),
         "model-004 is first; not decided against 14 models"),
        ("clear", "best: first (success rate)"),
        ([(m, f"t{t}", score) for m, score in (("a", 0.1), ("b", 0.9)) for t in range(5)],
         "b is first; not decided against a"),
        (played({"first": 0.7, "second": 0.5, "third": 0.1}),
         "first leads; ahead of third; not decided against second"),
        ([("a", "t", True), ("b", "t", None)], "success rate of a"),
        ([(m, f"t{t}", True) for m, tasks in (("a", 5), ("b", 4)) for t in range(tasks)],
         "no model leads: a and b share the first rank"),
        ([("a", "t", None)], "no best model: no run was measured"),
        ("no name", "success rate; no run with one names its model"),
    ],
)  # fmt: skip
def test_the_headline_names_a_best_model_only_where_the_data_show_one(cells, label):
    board = board_of(cells) if cells in [*CELLS] else compare.leaderboard(runs_of(cells))
    assert headline_text(compare.headline(board)) == label


def test_the_sentence_names_an_adjustment_only_where_it_changes_which_model_is_first():
    assert "standardised it ranks above alpha, whose raw success rate is higher" in answer(runs_of(mixes()))[0]
    for name in ("clear", "chain", "only easy"):
        assert not re.search("adjusted|standardised|corrected", finding_text(ranked(board_of(name))))


@pytest.mark.parametrize("name", [name for name in CELLS if name != "cycle"])  # of which none is first
def test_the_sentence_states_the_estimate_and_interval_of_the_table(name):
    board = board_of(name)
    row = board.table.iloc[0]
    found = compare.headline(board)
    for end in ("estimate", "low", "high"):
        assert found[end] == pytest.approx(row[end], nan_ok=True)
    assert format_interval(*row[["estimate", "low", "high"]]) in finding_text(ranked(board))


def budgets(models):
    """Make runs of models in budgets of turns; a longer one is worth more points."""
    rng = np.random.default_rng(1)
    cells = [(model, turns, world) for model, own in models.items() for turns in own for world in range(6)]
    runs = [(model, f"w{world}", turns / 40 + rng.normal(len(model), 0.3)) for model, turns, world in cells]
    return runs_of(runs, "crafter", max_turns=[turns for _, turns, _ in cells])


@pytest.mark.parametrize(
    ("models", "text"),
    [
        ({"aaa": (10, 20, 50), "b": (50,)}, "aaa is shown to be the best of 2 models on new tasks like these, "
         "under equal conditions."),
        ({"aaa": (10, 20), "b": (20, 50), "c": (20,)},
         "aaa is shown to be the best of 3 models on new tasks like these, under equal conditions."),
        ({"a": (10, 20), "b": (20, 50), "c": (10, 50)},
         "No best model: under equal conditions none of a, b and c is shown to be better."),
        ({"a": (10, 20)}, "a is the only model that was measured."),
    ],
)  # fmt: skip
def test_no_mean_spans_several_budgets_and_none_is_imputed_to_a_budget_that_a_model_did_not_run(models, text):
    runs = budgets(models)
    board = compare.leaderboard(runs)
    assert "estimate" not in compare.headline(board)
    assert finding_text(ranked(board)) == text
    adjusted_rates = board.table.set_index("model_name")["adjusted_estimate"].dropna()
    for name, adjusted in adjusted_rates.items():
        means = runs[runs["model_name"] == name].groupby("max_turns")["score"].mean()
        assert means.min() - 1e-9 <= adjusted <= means.max() + 1e-9


@cache
def of_named_models(rate):
    """Return the cells, the leaderboard, and whether a build passes, of two models that have names."""
    cells = played({"first": 0.8, "second": rate}, tasks=40)
    return cells, compare.leaderboard(runs_of(cells)), describe_baseline(runs_of(cells), "first")[1]


@pytest.mark.parametrize(
    ("rate", "unnamed", "note"),
    [
        (0.5, reached(None, [True] * 57, [f"t{n}" for n in range(19)] * 3),
         "57 of 137 runs name no model and have no rank, with a success rate of 100 %"),
        (0.1, reached(None, [True] * 57, [f"t{n}" for n in range(19)] * 3),
         "57 of 137 runs name no model and have no rank, with a success rate of 100 %"),
        (0.1, reached(None, [False], ["elsewhere"]),
         "1 of 81 runs names no model and has no rank, with a success rate of 0 %"),
        (0.5, reached(None, [None, None], ["t0", "t1"]), "2 of 82 runs name no model and have no rank; if one model"),
    ],
)  # fmt: skip
def test_runs_without_a_model_s_name_have_a_note_and_change_no_rank_pair_or_claim(rate, unnamed, note):
    cells, alone, is_passed = of_named_models(rate)
    board = compare.leaderboard(runs_of(cells + unnamed))
    assert not compare.headline(alone)["unnamed_runs"]
    names = alone.table["model_name"].tolist()
    assert board.table["model_name"].tolist() == [*names, "unknown"]
    assert board.table["rank_low"].isna().tolist() == [False, False, True]
    pd.testing.assert_frame_equal(board.table.head(2), alone.table, check_dtype=False)
    pd.testing.assert_frame_equal(board.pairs, alone.pairs)
    assert compare.headline(board) == compare.headline(alone) | {"unnamed_runs": True}
    assert board.notes.without("unnamed_runs", "none_measured") == alone.notes
    assert str(board.notes.only("unnamed_runs")).startswith(note)
    verdicts, passes = describe_baseline(runs_of(cells + unnamed), "first")
    assert note in verdicts
    assert passes == is_passed


def test_models_under_different_conditions_have_no_highest_mean():
    runs = runs_of([("a", "world", 4.5), ("b", "world", 5.5)], kind="crafter", max_turns=[10, 20])
    found = compare.findings(compare.leaderboard(runs))
    assert [finding_text(one) for one in found][:2] == [
        "Conditions differ (max turns: 10 and 20): runs are compared only under equal conditions.",
        "No best model: a and b share no tasks under equal conditions.",
    ]


@pytest.mark.parametrize(
    ("gap", "is_planned"),
    [(0.0004, False), (0.2, True)],  # of scores from 0 to 1
)
def test_no_number_of_tasks_is_planned_for_a_difference_that_is_shown_as_0(gap, is_planned):
    rng = np.random.default_rng(3)
    values = rng.uniform(0.3, 0.5, 12)
    noise = rng.permutation([0.25, -0.25] * 6)
    rows = reached("even", values) + reached("odd", values + noise + gap)
    board = compare.leaderboard(pipeline.runs_of(pd.DataFrame(rows, columns=["model", "task", "score"])))
    plans = [finding_text(one) for one in compare.findings(board) if one.code == "plan"]
    start = (
        "To detect the observed 20 points"
        if is_planned
        else "The observed difference between odd and even is too small"
    )
    assert [plan[: len(start)] for plan in plans] == [start]


@pytest.mark.parametrize(
    ("models", "is_corrected"), [(["only"], False), (["one", "two"], True), ([None, "only"], False)]
)
def test_an_estimate_is_corrected_for_selection_only_where_there_are_models_to_select_from(models, is_corrected):
    rows = [cell for model in models for cell in reached(model, [True, False, True])]
    assert ("corrected_estimate" in compare.rank_table(compare.leaderboard(runs_of(rows)))) == is_corrected


@pytest.mark.parametrize("number", ["5", "", [5], None])
def test_a_number_that_is_none_is_refused_in_one_sentence(number):
    board = compare.leaderboard(runs_of(reached("a", [True, False]) + reached("b", [False, False])))
    with pytest.raises(ValueError, match=f"^detect must be a number, not {re.escape(repr(number))}$"):
        compare.findings(board, detect=number)
    if number is not None:  # no margin
        with pytest.raises(ValueError, match=r"^margin must be a number, not "):
            compare.pairs(board, margin=number)
    with pytest.raises(ValueError, match=r"^the number of pairs must be a whole number, not "):
        failures.divergences(None, most=number)
    with pytest.raises(ValueError, match=r"^the number of runs to read must be a whole number, not "):
        tool_use(None, None, most=number)
    with pytest.raises(ValueError, match=r"^seed must be a whole number, not "):
        compare_judges(None, None, None, seed=number)


def test_no_two_models_have_one_name_in_sentences():
    """Names that differ only in their middle, by a letter, and by nothing that a short cut would keep."""
    names = [f"hub.example/laboratory/checkpoint-{letter}-instruct-2026-long" for letter in "abc"]
    ran = [run for name, wins in zip(names, (9, 5, 4), strict=True) for run in reached(name, [True] * wins + [False])]
    board = compare.leaderboard(runs_of(ran))
    text = " ".join(map(finding_text, compare.findings(board)))
    assert [name for name in names if name not in text] == []
    assert "…" not in text


def test_findings_say_where_models_ran_different_tasks_and_where_not_all_pairs_were_made():
    text = finding_text(compare.findings(board_of("apart"))[0])
    assert text.startswith("a is shown to be the best of 2 models on new tasks like these, with a success rate of ")
    assert "(20 runs of 20 tasks); models ran different" in text
    many = compare.leaderboard(runs_of(played({f"m{i:03d}": 0.5 for i in range(101)}, tasks=2)))
    assert any("0 of 435 pairs of the first 30 models decided" in finding_text(one) for one in compare.findings(many))


def test_a_leaderboard_says_its_answer_in_a_prompt():
    answer, table = repr(board_of("clear")).split("\n\n")
    assert answer.startswith("first is shown to be the best of 3 models on new tasks like these")
    assert table.split("\n")[1].split()[:3] == ["0", "first", "1"]


def test_the_table_also_has_the_estimate_of_a_best_model_corrected_for_having_been_picked():
    row = board_of("clear").table.iloc[0]
    assert row["corrected_estimate"] < row["estimate"]
    assert row["corrected_high"] - row["corrected_low"] > row["high"] - row["low"]


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
    assert board.outcomes.left_out == 2
    assert not compare.leaderboard(runs.drop(columns="copied_model")).notes
    shown = describe_comparison(runs)
    assert "b: all 2 runs repeat logs of a." in shown.split("\n")
    assert "Copies are excluded from all rates: 2 runs of b copied from a." in shown


def retried(model: str, most: int, seed: int = 5, tasks: int = 70) -> list[tuple]:
    """Make runs of tasks that are run again until one succeeds, at most so often."""
    rng = np.random.default_rng(seed)
    rows = []
    for task, chance in enumerate(rng.beta(1, 1, tasks)):
        for _ in range(most):
            rows.append((model, f"t{task}", bool(rng.random() < chance)))
            if rows[-1][2]:
                break
    return rows


POINTS = [40 + 3 * n % 17 for n in range(20)]
SHARES = [0.6 + n % 7 / 20 for n in range(20)]


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        (retried("keen", 4) + retried("calm", 1), "retried_models"),
        (played({"keen": 0.9, "calm": 0.3}, tasks=30, repetitions=3), ""),
        (played({"keen": 0.9}, tasks=30, repetitions=2) + played({"calm": 0.3}, tasks=30), ""),
        (sorted(played({"keen": 0.9, "calm": 0.3}, tasks=50, repetitions=4)[:-1]), ""),  # by outcome
        (reached("keen", POINTS) + reached("calm", SHARES), "units_differ"),
        (reached("keen", [*POINTS[:18], 0, 1]) + reached("calm", [*SHARES[:19], 1]), "units_differ"),
        (reached("keen", POINTS) + reached("calm", [share * 20 for share in SHARES]), ""),
        (reached("keen", POINTS) + reached("calm", [0.0] * 20), ""),  # nothing was scored
        (reached("keen", POINTS) + reached("calm", [0.0, 1.0] * 10), ""),  # points
        (reached("keen", [0.0, 100.0, 100.0, 50.0] * 5) + reached("calm", [0.0, 0.0, 0.0, 1.0] * 5), "units_differ"),
        (reached("keen", POINTS) + reached("calm", [*SHARES[:19], 2.0]), ""),
    ],
)
def test_no_model_is_best_where_runs_were_repeated_until_they_succeeded_or_scores_have_other_units(rows, code):
    runs = pipeline.runs_of(pd.DataFrame(rows, columns=["model", "task", "score"]))
    board = compare.leaderboard(runs)
    assert board.table["rank_high"].tolist() == [1, 2]
    doubts = board.notes.only("retried_models", "units_differ").notes
    if not code:
        assert not doubts
        assert finding_text(ranked(board)).startswith("keen is shown to be the best")
        return
    first, second, *_ = answer(runs)[0].split("\n")
    assert [one.code for one in doubts] == [code]
    assert compare.headline(board)["code"] == "doubtful"
    assert first.startswith("No model is shown to be best: the runs are not comparable")
    assert second == sentence(doubts[0])
    assert second in describe_baseline(runs, "calm")[0]


@pytest.mark.parametrize(
    ("name", "is_lower"),
    [("WER (%)", True), ("val/perplexity", True), ("Brier", True), ("mean absolute error", True), ("closeness", False)],
)
def test_no_model_is_best_by_a_score_of_which_lower_values_are_usually_better(name, is_lower):
    table = pd.DataFrame(reached("keen", POINTS) + reached("calm", [0.5] * 20), columns=["model", "task", "score"])
    runs = pipeline.runs_of(table.assign(metric=name))
    text = answer(runs)[0]
    assert text.startswith("No model is shown to be best: lower scores may be better;") == is_lower
    assert (f"\nLower is usually better for {name}, but" in text) == is_lower


@pytest.mark.parametrize(
    ("column", "groups", "warning"),
    [
        ("source", {"low.csv": SHARES, "high.csv": POINTS}, "Scores of low.csv are from 0 to 1, scores of high.csv"),
        ("source", {"low.csv": [0, 1] * 9, "high.csv": [0, 0, 100] * 6}, "Scores of low.csv are from 0 to 1"),
        ("task_type", {"quiz": SHARES, "game": [0, 250, 0, 0, 90, 14]}, "Scores of quiz are from 0 to 1"),
        ("source", {"low.csv": [0] * 9, "high.csv": POINTS}, ""),  # nothing was scored
        ("source", {"low.csv": [1] * 4, "high.csv": POINTS}, ""),  # as few values as a log of single runs has
        ("task_type", {"quiz": [*SHARES, 2.5], "game": POINTS}, ""),
    ],
)
def test_scores_of_files_or_types_of_tasks_in_other_units_support_no_claim(column, groups, warning):
    rows = [(n, name, score) for name, own in groups.items() for n, score in enumerate(own)]
    table = pd.DataFrame(rows, columns=["n", "group", "score"])
    table["model"] = "m" + (table["n"] % 2).astype("str")
    table["task"] = table["group"] + (table["n"] // 2).astype("str")
    runs = pipeline.runs_of(table.drop(columns="group")).assign(**{column: table["group"].tolist()})
    board = compare.leaderboard(runs)
    assert ("units_differ" in board.notes) == bool(warning)
    assert (compare.headline(board)["code"] == "doubtful") == bool(warning)
    assert warning in answer(runs)[0]


def test_only_runs_of_one_kind_are_compared():
    both = pd.concat([runs_of([("a", "t", True)]), runs_of([("a", "t", True)], kind="crafter")])
    with pytest.raises(SourceError, match="several kinds"):
        compare.leaderboard(both)
    with pytest.raises(SourceError, match="no runs"):
        compare.leaderboard(both.iloc[:0])


def said(runs, value=""):
    return compare.findings(compare.leaderboard(runs_of(runs), value))


def test_findings_lead_to_a_run_of_the_first_model_and_to_pairs_that_were_decided_oppositely():
    runs = reached("alder", [True, False, True]) + reached("birch", [True, True, False])
    first, second, *_ = said(runs)
    table = runs_of(runs).set_index("run_id")
    assert [table.loc[one.run_id, "model_name"] for one in first.examples] == ["alder"]
    for one in second.examples:
        a, b = table.loc[one.run_id], table.loc[one.other]
        assert (a["task_id"], a["score"] + b["score"]) == (b["task_id"], 1.0)
    assert len(second.examples) == 2
    assert [len(one.examples) for one in said([("alder", "a", None)])] == [0]


def test_tasks_that_other_models_find_easier_are_not_taken_to_be_drawn_alike():
    easy, hard = [f"e{i}" for i in range(12)], [f"h{i}" for i in range(12)]
    runs = reached("alder", [True] * 12, easy) + reached("birch", [False] * 12, hard)
    runs += reached("cedar", [True] * 11 + [False] + [False] * 11 + [True], easy + hard)
    pairs = compare.pairs(runs_of(runs)).set_index(["model_a", "model_b"])
    pair = pairs.loc[("alder", "birch")]
    assert not pair["decided"]
    assert pair["p_value"] > 0.2


@pytest.mark.parametrize("points", [[1.5, 2.5, 3.0], [40.0, 39.0, -2.0]])
def test_scores_are_said_in_their_unit_and_not_as_shares(points):
    runs = runs_of(reached("miner", points), "crafter")
    first = finding_text(compare.findings(compare.leaderboard(runs, "score"))[0])
    assert first.startswith("miner is the only model that was measured, with a mean score of ")
    assert " points [" in first
    assert "] (3 runs of 3 tasks)." in first
    assert "%" not in first


def test_where_pairs_of_the_best_stay_open_a_clause_says_that_best_is_a_test_of_its_own():
    runs = runs_of(played({**dict.fromkeys("abcdefg", 0.3), "z": 0.6}, tasks=60, seed=1))
    board = compare.leaderboard(runs)
    count = int((~board.pairs.loc[board.pairs["model_b"] == "z", "decided"]).sum())
    answer = compare.headline(board)
    assert (answer["code"], answer["model"], answer["undecided"], count > 0) == ("best", "z", count, True)
    clause = undecided_text(count)
    assert clause in map(finding_text, compare.findings(board))
    assert clause in describe_comparison(runs)


ALL_TASKS = [f"t{i}" for i in range(40)]
SOME = [("a", f"t{i}", i < 28) for i in range(30)] + [("b", f"t{i}", i % 2 == 0) for i in range(40)]
AGAIN = [(m, f"t{i}", i < 9) for m in "ab" for i in range(30) for _ in range(2 if m == "b" and i < 10 else 1)]


@pytest.mark.parametrize(
    ("rows", "planned", "expected"),
    [
        (SOME, ALL_TASKS, "planned tasks not run: a (10 of 40); if the absent runs had failed, no model would"),
        (SOME, (), ""),  # a task that a did not run at all, and that no plan names
        (
            AGAIN,
            (),
            "fewer runs than other models on these tasks: a (30 of 40); if the absent runs had failed, b would",
        ),
        ([*AGAIN, ("a", "other", True)], (), "a (31 of 41)"),
        (CLEAR, (), ""),
    ],
)
def test_runs_that_one_model_lacks_are_said_with_what_would_follow_had_they_failed(rows, planned, expected):
    board = compare.leaderboard(runs_of(rows), planned=planned)
    assert expected in str(board.notes.only("absent"))
    assert ("absent" in board.notes) == bool(expected)


def test_absent_runs_are_of_the_conditions_that_a_model_ran():
    runs = budgets({"aaa": (10, 20), "b": (20, 50)})
    assert "absent" not in compare.leaderboard(runs).notes
    runs = budgets({"aaa": (10, 20), "b": (10, 50)}).iloc[1:]  # without the first world of aaa in 10 turns
    assert "absent" not in compare.leaderboard(runs).notes
    assert "planned tasks not run: aaa (1 of 2)" in str(compare.leaderboard(runs, planned=["w0"]).notes)


def test_the_terminal_says_absent_runs_once_and_changes_no_name():
    shown = describe_comparison(runs_of(AGAIN))
    assert shown.count("absent runs had failed") == 1
    assert "tasks: a (30 of 40)" in shown


def test_rates_adjusted_for_tasks_name_their_assumption():
    assert "no model is better suited to some tasks" in describe_comparison(runs_of(only_easy()))
    assert "no model is better" not in describe_comparison(runs_of(CLEAR))


def test_the_seed_of_a_chat_model_makes_no_tasks_alike():
    """Seeds 0, 1, 2 of each task: of a table they may be those of checkpoints, of a log of tau2 they draw words."""
    rows = [(m, f"t{t}", t < wins - 4 * s) for m, wins in (("a", 18), ("b", 6)) for t in range(20) for s in range(3)]
    table = runs_of(rows, "trajectories", seed=[str(i % 3) for i in range(len(rows))])
    for of_format, is_crossed in (("table", True), ("tau2", False)):
        data = outcomes(table.assign(format=of_format, task_type="d"))
        pair = compare.pairs(compare.Comparison.of(data)).iloc[0]
        assert ("few_seeds" in pair["warning"]) == is_crossed


def test_a_leaderboard_of_scores_answers_no_question_about_success():
    board = compare.leaderboard(runs_of(reached("a", [0.2, 0.9]) + reached("b", [0.5, 0.7])))
    with pytest.raises(ValueError, match="one of mean score: pass the runs to compare is_successful"):
        compare.reliability(board)


def test_one_model_has_no_text_about_pairs():
    assert compare.pairs_text(compare.leaderboard(runs_of(reached("a", [True, False]))).pairs) == ""


def test_models_with_scores_only_are_named_beside_models_with_outcomes():
    runs = runs_of([("a", "t", True), ("b", "t", None), ("c", "t", None)])
    notes = compare.leaderboard(runs.assign(score=[1.0, 0.4, None])).notes
    assert str(notes.only("only_scores")).startswith("the runs of b have scores, which are neither")
    assert str(notes.only("none_measured")) == "no run of c was measured"


def test_labels_of_rows_that_occur_twice_change_no_leaderboard():
    runs = runs_of(CLEAR, kind="trajectories", **OF_TRAJECTORIES)
    runs = runs.assign(temperature=(runs["model_name"] == "third").astype("float64"))
    board = compare.leaderboard(runs)
    doubled = compare.leaderboard(runs.set_axis(np.arange(len(runs)) // 2))
    pd.testing.assert_frame_equal(doubled.table, board.table)
    assert "settings_differ" in board.notes
    assert str(doubled.notes) == str(board.notes)


@pytest.mark.parametrize("margin", [0, 0.0, -0.02])
def test_a_baseline_is_compared_with_no_other_margin_than_the_one_given(margin):
    with pytest.raises(ValueError, match=r"margin must be positive \(got"):
        compare.against(runs_of(CLEAR), "first", margin=margin)


OTHER_NAMES = pd.DataFrame(
    [(name, f"task {i}", i % period > 0) for name, period in (("oak", 2), ("elm", 5)) for i in range(20)],
    columns=["llm", "problem_id", "passed"],
)


@pytest.fixture(scope="module")
def board_of_other_names():
    return compare.leaderboard(OTHER_NAMES)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (compare.pairs, ()),
        (compare.against, ("oak",)),
        (compare.changed_tasks, ("oak",)),
        (compare.reliability, ()),
        (compare.task_items, ()),
        (compare.plan, (0.2,)),
        (compare.discordant, ()),
    ],
)
def test_a_table_with_other_names_of_columns_is_compared_as_its_leaderboard_is(board_of_other_names, function, options):
    expected = function(board_of_other_names, *options)
    pd.testing.assert_frame_equal(function(OTHER_NAMES, *options), expected)
    assert len(expected)


def test_runs_with_a_column_of_categories_have_the_same_leaderboard():
    runs = runs_of(CLEAR).assign(definition_file=["a.json", "a.json", "b.json"] * 40)
    board = compare.leaderboard(runs)
    for column in ("task_id", "definition_file", "model_name", "task_type"):
        same = compare.leaderboard(runs.astype({column: "category"}))
        pd.testing.assert_frame_equal(same.table, board.table)
