"""Columns of tables of runs: units, times, counts and outcomes as people write them; what is in doubt is missing."""

import re

import pandas as pd
import pytest

from evalkit.io import SourceError
from evalkit.kinds.headers import choices_of, columns_of_runs, fields, meanings, told_apart, unread_cells

ROLES = {"outcome": "is_successful", "input_tokens": "tokens_in", "trial": "repetition"}


def read(column: str, *cells: object) -> list:
    """Read the cells of a column of a table of runs."""
    table = pd.DataFrame({"task": "t", "model": "m", "score": 1, column: pd.Series(cells, dtype="object")})
    runs, _ = columns_of_runs(table, meanings(table, {}))
    values = runs[ROLES.get(column, column)]
    return values.astype("object").where(values.notna(), None).tolist()


@pytest.mark.parametrize(
    ("column", "cells", "values"),
    [
        ("duration", ["12,5 s", "3,25 min", "1,5", "46s", "1,234", "12,500 s"], [12.5, 195, 1.5, 46, 1234, 12500]),
        ("duration", ["3 days, 0:00:07", "1 day, 1:00:00.5", "2 hrs", "90 secs"], [259207, 90000.5, 7200, 90]),
        ("duration", ["2 hrs, 3 mins", "12, 5 s", "1, 2:03:04", "1:03,5"], [7380, None, None, 63.5]),
        ("score", ["80%", "90", "85 %", "pass", "3/4", "0"], [0.8, None, 0.85, 1, 0.75, 0]),
        ("score", ["50%/2", "3/", "1/0"], [None, None, None]),
        ("score", ["80", "90"], [80, 90]),
        ("score", ["0,850", "1,500.5"], [None, 1500.5]),
        ("outcome", ["ok", "Timeout", "TIMED-OUT", "out of budget", "no"], [None, 0, 0, 0, 0]),
        ("outcome", ["rate limit exceeded", "verifier timeout", 1, "LimitsExceeded"], [None, None, 1, 0]),
        ("input_tokens", ["2.500", "7.0", 5.7, "1,234", -3], [None, 7, None, 1234, None]),
        ("trial", ["1", "1.5"], [1, None]),
        ("score", ["P", "f", None, " p"], [1, 0, None, 1]),
        ("score", ["Y", "n", ""], [1, 0, None]),
        ("score", ["t", "0.5", "1"], [None, 0.5, 1]),
        ("score", ["F", "yes", "D"], [None, 1, None]),
        ("score", ["N", "yes", "no"], [0, 1, 0]),
        ("score", ["pass", "Time limit exceeded", "max_steps"], [1, 0, 0]),
        ("score", [1, 0.5, "max_steps"], [1, 0.5, None]),  # a degree, which the limit does not tell
    ],
)
def test_numbers_are_read_with_their_units_or_not_at_all(column, cells, values):
    assert read(column, *cells) == [pytest.approx(value) if value is not None else None for value in values]


@pytest.mark.parametrize(
    ("cells", "times"),
    [
        ([1767225600, "1767225600123", "2026-01-02"], ["2026-01-01", "2026-01-01 00:00:00.123", "2026-01-02"]),
        (["01/02/2026", "13/02/2026 10:00"], ["2026-02-01", "2026-02-13 10:00"]),
        (["01/02/2026", "01/13/2026"], ["2026-01-02", "2026-01-13"]),
        (["01.02.2026", "2026-03-04T05:06:07+02:00"], ["2026-02-01", "2026-03-04 03:06:07"]),
        (["20260102", 20260102, 5, True, "soon"], ["2026-01-02", None, None, None, None]),
        (["9999999999999999999", "1767225600"], [None, "2026-01-01"]),
    ],
)
def test_times_are_read_in_one_form_for_a_column_and_numbers_as_seconds_since_1970(cells, times):
    wanted = [None if time is None else pd.Timestamp(time, tz="UTC") for time in times]
    assert read("started", *cells) == wanted


def test_of_two_optional_columns_that_fit_neither_is_used_and_both_are_named():
    table = pd.DataFrame({"task": ["a"], "model": ["m"], "score": [1], "latency": [2], "time": [3]})
    meaning = meanings(table, {})
    assert "duration" not in meaning
    said = str(choices_of(table, meaning, "runs.csv"))
    assert "not used, since several could be duration: latency and time (--column duration=latency takes one)" in said
    assert meanings(table, {"duration": "time"})["duration"] == "time"


def test_names_of_an_exported_table_are_read_without_the_apostrophe_that_spreadsheets_need():
    table = pd.DataFrame({"model_name": ["'=oak", "'elm", "'-5"], "task": "t", "counts_as": "success", "score": 1.0})
    runs, _ = columns_of_runs(table, meanings(table, {}))
    assert runs["model_name"].tolist() == ["=oak", "'elm", "'-5"]  # -5 is a number, which needs none
    plain = table.drop(columns="counts_as")
    assert columns_of_runs(plain, meanings(plain, {}))[0]["model_name"].tolist() == ["'=oak", "'elm", "'-5"]


def test_units_and_orders_of_dates_are_those_of_each_file():
    scores, days = ["90%", "80%", "0.5", "0.4"], ["01/02/2026", "13/02/2026", "01/02/2026", "02/13/2026"]
    table = pd.DataFrame({"task": "t", "model": "m", "score": scores, "started": days})
    runs, unread = columns_of_runs(table, meanings(table, {}), ["a", "a", "b", "b"])
    assert runs["score"].tolist() == [0.9, 0.8, 0.5, 0.4]
    assert runs["started"].dt.strftime("%d.%m.").tolist() == ["01.02.", "13.02.", "02.01.", "13.02."]
    assert unread.empty or unread.isna().all(axis=None)
    table = pd.DataFrame({"task": "t", "model": "m", "passed": ["T", "F", "y", "n"]})
    assert columns_of_runs(table, meanings(table, {}), ["a", "a", "b", "b"])[0]["is_successful"].tolist() == [
        1,
        0,
        1,
        0,
    ]


def test_an_optional_column_in_doubt_is_not_replaced_by_the_next_name():
    table = pd.DataFrame({"task": ["a"], "score": [1], "target": ["x"], "Target ": ["y"], "expected": ["z"]})
    assert "target" not in meanings(table, {})
    assert "several could be target: target and Target" in str(choices_of(table, meanings(table, {}), "runs.csv"))


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("resolved", [1, 0, 5, 0, 3], "column resolved: 5 is no outcome; --column score=resolved makes it a score"),
        ("correct", ["0", "1", "12 ", "yes"], "12  is no outcome"),
        ("verdict", ["good", "poor", "fail"], "no 0, 1 or truth value in most of its cells, such as 'good'"),
        ("grade", ["F", "C", "B", "B"], "no number or truth value in most of its cells, such as 'F'"),
        ("grade", ["F", "F", "F", "D"], "no number or truth value in most of its cells, such as 'F'"),
        ("verdict", ["T", "n", "n", "f"], "no 0, 1 or truth value in most of its cells, such as 'T'"),
        ("points", ["7", "n.d.", "n.d.", "n.d.", ""], "no number or truth value in most of its cells, such as 'n.d.'"),
        ("verdict", ["pass"] * 9 + ["pass*", "flaky"], "in 2 cells, no outcome: 'pass*' and 'flaky'; write success"),
        ("score", [1] * 9 + ["crash", "crash"], "in 2 cells, no outcome: 'crash'; write success, failure or nothing"),
        ("points", ["70%", "65%", "0.5"], "column points: write % in all cells or none; '0.5' has none"),
        ("solved", [1, -1, 0, "error", 1, None], ""),
        ("points", ["7", "8", "n.d.", ""], ""),
    ],
)
def test_a_column_of_which_most_cells_are_no_scores_or_outcomes_is_refused(column, cells, message):
    table = pd.DataFrame({"task": "t", "model": "m", column: pd.Series(cells, dtype="object")})
    meaning = meanings(table, {})
    runs, unread = columns_of_runs(table, meaning)
    if message:
        with pytest.raises(SourceError, match=re.escape(message)):
            unread_cells(runs, unread, meaning)
    else:
        assert "can't be read" in str(unread_cells(runs, unread, meaning))


@pytest.mark.parametrize(
    ("column", "cells", "ids"),
    [
        ("question_id", ["3", 3.0, "4.0", None], ["3", "3", "4", None]),
        ("checkpoint", [100.0, 200.0, 300.0], ["100", "200", "300"]),
        ("task", ["1.0", "1.1", "2.0"], ["1.0", "1.1", "2.0"]),  # versions, or sections
        ("task", ["1.0", "b"], ["1.0", "b"]),
        ("target", ["1.0", "2"], ["1.0", "2"]),
    ],
)
def test_ids_that_are_whole_numbers_are_the_same_however_they_are_written(column, cells, ids):
    table = pd.DataFrame({"id": "t", "model": "m", "score": 1, column: pd.Series(cells, dtype="object")})
    meaning = meanings(table, {})
    role = next(role for role, name in meaning.items() if name == column)
    values = columns_of_runs(table, meaning)[0][role]
    assert values.astype("object").where(values.notna(), None).tolist() == ids


@pytest.mark.parametrize(
    ("header", "cells", "scores"),
    [
        ("Accuracy (%)", ["85", "7.5", "100"], [0.85, 0.075, 1.0]),
        ("score %", ["85%", "7.5%", "0"], [0.85, 0.075, 0.0]),
        ("score [%]", [0.85, 0.5, 1], [0.85, 0.5, 1.0]),  # shares, in spite of the header
        ("score", ["85", "7.5", "100"], [85, 7.5, 100]),
    ],
)
def test_a_header_may_state_that_scores_are_percentages(header, cells, scores):
    table = pd.DataFrame({"task": "t", "model": "m", header: pd.Series(cells, dtype="object")})
    assert columns_of_runs(table, meanings(table, {}))[0]["score"].tolist() == pytest.approx(scores)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": 1}, "no column for the task_id; there are x; choose one: --column task_id=NAME; nor for the score: "),
        (
            {"task": "t", "x": 1},
            "the score; there are task, x; choose one: --column score=NAME; nor for the model_name",
        ),
        ({"task": "t", "model": "m", "status": "Passed"}, "status has one outcome, perhaps because runs finished"),
        ({"task": "t", "model": "m", "exit_reason": ["no", None]}, "(--column success=exit_reason uses it)"),
        ({"task": "t", "gpt": [1, 0], "claude": [None, True]}, "a column for each model or task needs one row per run"),
    ],
)
def test_all_columns_that_are_missing_are_named_at_once_and_a_status_that_never_varies_is_no_outcome(columns, message):
    with pytest.raises(SourceError, match=re.escape(message)):
        meanings(pd.DataFrame(columns, index=[0, 1]), {})


@pytest.mark.parametrize(
    "columns",
    [
        {"task": "t", "model": "m", "f1": [1, 0], "bleu": [0.5, 1]},
        {"id": [1, 2], "duration": [3, 4], "status": "ended"},
    ],
)
def test_a_table_with_one_row_per_run_gets_no_advice_about_its_shape(columns):
    with pytest.raises(SourceError, match="no column for the score") as caught:
        meanings(pd.DataFrame(columns), {})
    assert "one row per run" not in str(caught.value)


def test_a_status_that_varies_is_an_outcome_as_is_one_that_the_user_names():
    table = pd.DataFrame({"task": "t", "model": "m", "status": ["passed", "failed"]})
    assert meanings(table, {})["is_successful"] == "status"
    assert meanings(table[:1], {"success": "status"})["is_successful"] == "status"


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (
            ["cfg/problem_id", "args.llm", "out.solved", "out.reward"],
            ["cfg/problem_id", "args.llm", "out.solved", "out.reward"],
        ),
        (["Scenario", "agent", "out.points"], ["Scenario", "agent", None, "out.points"]),
        (["task", "judge.model", "model", "judge.score", "score"], ["task", "model", None, "score"]),
        (["id", "test case", "llm", "reward"], ["id", "llm", None, "reward"]),
        (["model.id", "model.name", "task.name", "task.id", "passed"], ["task.name", "model.id", "passed", None]),
        (["a.model", "b.model", "task", "score"], ["task", None, None, "score"]),
        (["task", "model", "correct", "m.accuracy", "m.exact_match"], ["task", "model", "correct", None]),
        (["task", "model", "points", "eval/resolved"], ["task", "model", "eval/resolved", "points"]),
        (["model", "task", "m.accuracy", "m.exact_match"], "no column for the score"),
        (["model", "riddle.id", "riddle.text", "score"], "no column for the task_id"),
    ],
)
def test_the_last_part_of_a_name_counts_if_no_name_matches(columns, found):
    table = pd.DataFrame(columns=columns, index=[0])
    if isinstance(found, str):
        with pytest.raises(SourceError, match=found):
            meanings(table, {})
    else:
        assert list(map(meanings(table, {}).get, ("task_id", "model_name", "is_successful", "score"))) == found


@pytest.mark.parametrize(
    ("column", "cells", "role"),
    [
        ("metrics.points", [3, None, 0.5], "score"),
        ("run/grade", ["n/a", "80%", ""], "score"),
        ("answer.correct", ["B", "C", "B"], None),  # the right option
        ("answer.correct", [2, 1, 3], None),
        ("item.value", ["x", 1, 2], None),
    ],
)
def test_a_field_next_to_an_outcome_is_a_score_or_outcome_if_its_cells_are(column, cells, role):
    own = "score" if role is None and "correct" in column else "passed"
    meaning = meanings(pd.DataFrame({"task": "t", "model": "m", own: 1, column: cells}), {})
    assert next((one for one, name in meaning.items() if name == column), None) == role


@pytest.mark.parametrize(
    ("columns", "given", "key", "message"),
    [
        (["score", "f1", "bleu"], {}, None, "; numbers not used: f1 and bleu (--column score=f1 makes one the score)"),
        (["score", "f1", "bleu"], {"score": "bleu"}, "bleu", "; numbers not used: score and f1 ("),
        (["reward"], {}, "reward", ""),
        (["judge.score", "other.score"], {"score": "other.score"}, "other.score", "not used: judge.score (--column"),
        (["Score (%)"], {}, None, ""),
        (["passed", "my rating"], {}, None, "not used: my rating (--column score='my rating' makes one the score)"),
        (["exact_match", "row_id", "seed no"], {}, "exact_match", ""),
    ],
)
def test_the_column_of_scores_is_named_and_so_are_the_numbers_that_are_not_used(columns, given, key, message):
    table = pd.DataFrame({"task": ["a", "b"], "model": "m", "note": ["x", "y"], **{name: [0, 1] for name in columns}})
    meaning = meanings(table, given)
    runs, _ = columns_of_runs(table, meaning)
    assert (runs["score_key"].iloc[0] if "score_key" in runs else None) == key
    said = str(choices_of(table, meaning, "a.csv"))
    assert message in said
    assert ("not used" in said) == bool(message)


def test_fields_of_objects_are_columns():
    row = {"model": {"name": "oak", "args": {"temp": 0}}, "tags": ["x"], "more": {}, "score": 1}
    assert dict(fields(row)) == {"model.name": "oak", "model.args.temp": 0, "tags": ["x"], "more": {}, "score": 1}
    deep = row
    for _ in range(9):
        deep = {"a": deep}
    assert next(fields(deep))[0] == "a.a.a.a.a.a"


ITEMS = [(model, suite, item) for model in ("oak", "elm") for suite in "xy" for item in ("1", "2", "3")]


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        (
            "problem",
            [item for *_, item in ITEMS],
            "task=problem --column dataset=task makes",
        ),
        ("question", [f"{suite}{item}" for _, suite, item in ITEMS], "task=question --column"),
        (
            "prompt used",
            [f"v{item}" for *_, item in ITEMS],
            "--column dataset='prompt used' if tasks differ, model='prompt used' or agent='prompt used' if these do",
        ),
        ("try", [item for *_, item in ITEMS], "else repetition=try"),
        ("$(rm x)", [item for *_, item in ITEMS], "else repetition='$(rm x)'"),
        ("id", list(range(12)), ""),  # of runs
        ("milliseconds", [93, 71, 88, 52, 67, 91, 64, 85, 77, 59, 82, 73], ""),
        ("trial", [item for *_, item in ITEMS], ""),  # a column in use
        ("prompt", ["p"] * 12, ""),
    ],
)
def test_a_column_that_tells_repeated_rows_apart_is_named_unless_it_belongs_to_runs(column, cells, message):
    table = (
        pd.DataFrame(ITEMS, columns=["model", "task", "item"]).drop(columns="item").assign(score=1, **{column: cells})
    )
    meaning = meanings(table, {})
    said = told_apart(columns_of_runs(table, meaning)[0], table, meaning, "a.csv")
    assert bool(said) == bool(message)
    assert message in str(said)
