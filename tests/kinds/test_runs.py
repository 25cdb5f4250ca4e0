"""Runs of any kind: what became of each, what its rate counts, what it took, and how runs are listed and shown."""

import math
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import kinds
from evalkit.cli import main
from evalkit.display.terminal import choose
from evalkit.io import Column, SourceError
from evalkit.kinds import Assembled, RateRules, load, outcome_of, outcomes
from evalkit.kinds.runs import exported
from tests import messy
from tests.compare.runs import runs_of
from tests.kinds.toy import TOY
from tests.mindcraft.builders import write_all

WORDS = {"timeout": "failure", "solved": "success", "crashed": "not measured", "busy": "running"}
KIND = replace(TOY, rates=RateRules(outcome_of=WORDS))


def frame(*rows: tuple, **more: list) -> pd.DataFrame:
    """Make runs of (model, task, success, status)."""
    runs = runs_of([row[:3] for row in rows])
    return runs.assign(status=pd.array([row[3] for row in rows], "str"), **more)


@pytest.mark.parametrize("kind", ["mindcraft", "crafter", "steps", "trajectories"])
def test_a_selection_without_runs_has_empty_tables_with_the_columns_of_others(kind):
    logs = load(str(messy.folder(kind) / "logs"), kind)
    runs = getattr(logs, logs.kind.runs)
    for table in (kinds.rates, kinds.rates_by_denominator, kinds.usage, kinds.flag_counts):
        assert table(runs[:0]).empty
        assert list(table(runs[:0])) == list(table(runs))
    assert [name for name in runs if name.startswith("flag_")] == []  # flags are in run_flags only


@pytest.mark.parametrize(
    ("status", "reason", "error", "said"),
    [
        ("error", None, "ValueError: x", "ValueError"),
        ("error", None, "no space left", "status is broken"),
        ("error", "turns", "ValueError: x", "turns"),
        ("failed", None, "a.b.ReadTimeout", "ReadTimeout"),
        ("failed", None, None, "status failed"),
        ("odd", None, "ValueError: x", "status error"),  # only the status itself counts, not its label
        ("error", "error", "ValueError: x", "ValueError"),
        ("odd", "failed", "ValueError: x", "failed"),
        (None, None, "no space left", "no space left"),
        (None, "", "KeyError: x", "KeyError"),
    ],
)
def test_an_error_says_how_a_run_ended_if_its_status_and_reason_do_not(status, reason, error, said):
    kind = replace(KIND, labels={"error": "is broken", "odd": "error"})
    runs = frame(("m", "t", None, status)).assign(error=pd.array([error], "str"), exit_reason=pd.array([reason], "str"))
    assert outcomes(runs, kind=kind).table["ended"].tolist() == [said]


@pytest.mark.parametrize("kind", messy.KINDS)
def test_no_two_columns_of_runs_are_equal_in_all_logs(kind):
    loaded = [load(source, kind).runs for source in (f"samples:{kind}", str(messy.folder(kind) / "logs"))]
    texts = pd.concat([runs.map(str, na_action="ignore").astype("object") for runs in loaded], ignore_index=True)
    varying = texts.loc[:, texts.nunique() > 2]  # few values are equal by chance
    equal = {pair for pair in combinations(varying, 2) if varying[pair[0]].equals(varying[pair[1]])}
    assert equal <= {("score", "score_without_suspects")}  # these logs have no doubtful verdicts


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
    by_success = {True: "success", False: "failure", None: "not measured"}[success]
    assert list(outcome_of(runs, replace(KIND, rates=RateRules()))) == [by_success]


@pytest.mark.parametrize(
    ("denominator", "values"),
    [("measured", [1, 0, 0, math.nan, math.nan, math.nan]), ("all", [1, 0, 0, 0, math.nan, math.nan])],
)
def test_the_leading_rate_counts_the_measured_runs_or_all(denominator, values):
    ends = [(True, None), (False, None), (None, "timeout"), (None, "crashed"), (None, "busy")]
    runs = frame(*[("a", "t", *end) for end in ends], ("never measured", "t", None, "crashed"))
    scored = outcomes(runs, kind=replace(KIND, rates=RateRules(outcome_of=WORDS, denominator=denominator)))
    pd.testing.assert_series_equal(scored.table["value"], pd.Series(values, dtype=float), check_names=False)
    by_score = outcomes(runs_of([("a", "t", 0.5), ("a", "u", None), ("a", "v", 1e300)]), "score", KIND)
    assert list(by_score.table["outcome"]) == ["scored", "not measured", "not measured"]


@pytest.mark.parametrize("column", ["kind", "run_flags", "status"])
@pytest.mark.parametrize("function", [outcomes, kinds.rates, kinds.usage])
def test_a_missing_column_is_named(function, column):
    runs = frame(("a", "t", True, "solved")).drop(columns=column)
    with pytest.raises(ValueError, match=f"no column '{column}'"):
        function(runs)


def test_conditions_name_the_columns_that_a_run_has():
    turns = pd.array([4, 4, 20, None], "Int64")
    runs = frame(*[("a", "t", True, None)] * 4, max_turns=turns, version=["x", None, "x", None])
    columns = [Column(name, "str", "") for name in ("max_turns", "version", "not_there")]
    rules = RateRules(conditions=("max_turns", "version", "not_there"))
    kind = replace(KIND, tables={"games": columns}, assemble=lambda records, options: Assembled({}), rates=rules)
    conditions = outcomes(runs, kind=kind).table["condition"]
    assert list(conditions) == ["max_turns=4, version=x", "max_turns=4", "max_turns=20, version=x", ""]
    assert set(outcomes(runs, kind=KIND).table["condition"]) == {""}


def test_exported_runs_keep_the_columns_of_their_kind_under_other_names():
    runs = frame(("a", "t", True, None), ("a", "u", None, None), task=["one", "two"], checkpoint=[7, 8])
    table = exported(runs, KIND)
    assert table[["task", "counts_as"]].to_numpy().tolist() == [["t", "success"], ["u", "not measured"]]
    assert table[["toy_task", "toy_checkpoint"]].to_numpy().tolist() == [["one", 7], ["two", 8]]
    assert table.columns.is_unique


def test_what_runs_take_is_estimated_over_tasks_and_by_success():
    runs = runs_of([("a", "t", True), ("a", "t", False), ("a", "u", True), ("a", "u", True), ("b", "v", False)])
    taken = {"tokens_in": [10, 30, 50, None, 7], "duration": [1.0, *[None] * 4]}
    table = kinds.usage(runs.assign(**taken)).set_index(["model_name", "quantity"])
    assert table.index.tolist() == [("a", "duration (seconds)"), ("a", "tokens in"), ("b", "tokens in")]
    tokens = table.loc[("a", "tokens in")]
    told_of = ["n", "n_tasks", "estimate", "median", "total", "per_success_estimate"]
    assert tokens[told_of].tolist() == pytest.approx([3, 2, 35.0, 30.0, 90.0, 35 / 0.75])  # 35 = (20 + 50) / 2
    assert math.isnan(table.loc[("b", "tokens in"), "per_success_estimate"])  # no success, so no price of one
    assert table.loc[("b", "tokens in"), "n"] == 1
    for by in ("model_name", []):
        assert kinds.usage(runs, by).empty


@pytest.mark.parametrize(("denominator", "price"), [("measured", 2), ("all", 4)])
def test_the_price_of_a_success_is_of_the_runs_that_the_rate_counts(denominator, price):
    runs = runs_of([("a", f"t{n % 5}", [True, False, None, None][n % 4]) for n in range(20)]).assign(cost=1.0)
    kind = replace(KIND, rates=RateRules(outcome_of=WORDS, denominator=denominator))
    (row,) = kinds.usage(runs, kind=kind)[["n", "estimate", "per_success_estimate"]].to_numpy().tolist()
    assert row == pytest.approx([20, 1, price])


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path):
    return write_all(tmp_path, {"e/a/Andy_0_0.json": 0, "e/b/Andy_0_0.json": 1, "e/c/Andy_0_0.json": None})


@pytest.mark.parametrize(
    ("reached", "failed"),
    [
        ([True, False, None], [1, 2]),  # a run without an outcome is no success
        ([1.0, 0.0, None], [2]),  # of scores nobody can say which are failures, but for those that are missing
        ([True], []),
    ],
)
def test_failed_runs_are_those_without_success(reached, failed):
    runs = runs_of([("m", str(number), value) for number, value in enumerate(reached)])
    assert choose(runs, "failed")["task_id"].tolist() == list(map(str, failed))
    assert len(choose(runs, "all")) == len(reached)
    assert choose(runs, "flagged").empty


def test_show_finds_a_run_among_kinds_whose_ids_begin_alike(folder, tmp_path, monkeypatch):
    write_all(tmp_path / "others", {"e/a/Andy_0_0.json": 0})
    folders = {"minutes": tmp_path / "others", "mindcraft": folder}
    monkeypatch.setattr("evalkit.cli.runs.kinds_of_source", lambda _: [SimpleNamespace(name=name) for name in folders])
    monkeypatch.setattr("evalkit.cli.runs.load", lambda _, name: load(folders[name]))
    run_id = load(folder).runs["run_id"].iloc[0]
    assert run("show", folder, "--run", run_id) == run("show", folder, "--run", run_id, "--kind", "mindcraft")


def test_runs_are_listed_with_ids_that_show_takes(folder):
    _, out = run("mindcraft", folder, "--list", "failed")
    assert f"2 runs of 3, failed; evalkit show {folder} --run RUN shows one" in out
    (line,) = [line for line in out.splitlines() if " a " in line]
    code, shown = run("show", folder, "--run", line.split()[0])
    assert code == 0
    assert "Task ended with score : 0" in shown
    assert run("show", folder, "--run", line.split()[0][:-2]) == (0, shown)
    code, alone = run("show", folder / "e/a")  # its facts hold no model: the folder above it tells that
    assert (code, alone.partition("\n\n")[2]) == (0, shown.partition("\n\n")[2])
    assert run("show", folder) == run("show", folder, "--list", "all")
    for run_id, words in (("m-", "3 runs begin with 'm-'"), ("m-0-", "no run 'm-0-'")):
        code, err = run("show", folder, "--run", run_id)
        assert (code, words in err) == (2, True)
    logs = load(folder)
    with pytest.raises(SourceError, match="which of 3 runs"):
        logs.show()
    logs.runs = logs.runs[:0]
    with pytest.raises(SourceError, match="no run was found; the ledger"):
        logs.show()
