"""``evalkit compare``: what it prints, and the exit codes that a build can rely on."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit.cli import main
from evalkit.cli import runs as cli_runs
from evalkit.compare import leaderboard, plan, terminal
from evalkit.compare.check_registry import Audited, NotComputed
from evalkit.compare.terminal import describe_baseline, describe_comparison
from evalkit.display.terminal import Part, fit_table, on_screen
from evalkit.display.words import why_undecided
from evalkit.stats.pair_tests import compare_units
from tests.compare.runs import played, runs_of
from tests.mindcraft.builders import write_all
from tests.trajectories import folders as make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three models on 30 tasks: old and same succeed on 20 of them, worse on 5."""
    files = {
        f"runs/x/{model}/t{n}/Andy_0_0.json": float(n < wins)
        for model, wins in {"old": 20, "same": 20, "worse": 5}.items()
        for n in range(30)
    }
    return write_all(tmp_path_factory.mktemp("compare"), files) / "runs"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 0, ["old and same share the first rank, each with a success rate", "1 – 2", "better", "not decided"]),
        (["--baseline", "old"], 1, ["regression", "not decided", "difference, points [95 %]"]),
        (["--baseline", "worse"], 0, ["better", "a loss of less than 5 percentage points is no regression"]),
        (["--baseline", "old", "--margin", "0.9"], 0, ["a loss of less than 90 percentage points"]),
        (["--baseline", "old", "--margin", "3"], 2, ["a margin of 3 is too large for shares"]),
        (["--margin", "10"], 2, ["write 5 percentage points as 0.05"]),
        (["--baseline", "nobody"], 2, ["no runs of the baseline 'nobody'"]),
        (["--strict"], 2, ["--strict does nothing without --baseline"]),
        (["--scale", "percent"], 0, ["share the first rank"]),
        (["--outcomes", "o.csv"], 2, ["mindcraft logs have no option 'outcomes'; there are 'tasks'"]),
        (["--all"], 0, ["old is better than"]),
        (["--value", "score"], 0, ["mean score"]),
        (["--value", "score", "--baseline", "old"], 1, ["a loss of less than 5 percentage points is no regression"]),
        (["--kind", "crafter"], 2, ["no Crafter session trace could be read"]),
    ],
)  # fmt: skip
def test_compare_says_which_model_is_better_or_worse(folder, arguments, code, said):
    result = CliRunner().invoke(main, ["compare", str(folder), *arguments])
    assert result.exit_code == code, result.output
    for words in said:
        assert words in result.output


@pytest.mark.parametrize(
    ("files", "said", "unsaid"),
    [
        (
            {"runs/x/fine/t/Andy_0_0.json": 1.0, "runs/x/broken/t/Andy_0_0.json": None},
            ["No run of broken was measured."],
            ["count as failures"],
        ),
        ({f"runs/x/M/t{n}/Andy_0_0.json": None for n in range(3)}, ["success rate", "No run of M"], ["mean score"]),
        (
            {f"runs/x/M{n}/t{n}/Andy_0_0.json": 1.0 for n in range(9)},
            [
                "No best model: 9 models share no tasks",
                "9 sets of models share no tasks and can't be compared: M0; M1; and 7 more.",
            ],
            [],
        ),
        (
            {f"runs/x/M{n}/t{max(n, 1)}/Andy_0_0.json": float(n == 3) for n in range(4)},
            ["No best model: M0, M1, M2 and M3 are in 3 sets that share no tasks", "3 sets of models share no tasks"],
            ["M3 share no tasks"],
        ),
    ],
)
def test_models_that_can_not_be_rated_or_compared_are_named_once_and_shortly(tmp_path, files, said, unsaid):
    text = CliRunner().invoke(main, ["compare", str(write_all(tmp_path, files) / "runs")]).output
    assert [words for words in said if words not in text] + [words for words in unsaid if words in text] == []


@pytest.mark.parametrize("more", [[], ["--baseline", "a"]])
def test_files_that_could_not_be_read_are_counted_and_named(tmp_path, more):
    rows = [f"{model},t{n},{n % 2}" for model in "ab" for n in range(4)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,score", *rows]))
    said = "8 runs; 3 files: 1 used, 1 skipped, 1 failed"
    assert "files" not in CliRunner().invoke(main, ["compare", str(tmp_path), *more]).stdout
    (tmp_path / "torn.csv").write_text('model,task,score\na,t9,"1\n')
    (tmp_path / "notes.txt").write_text("-")
    assert said in CliRunner().invoke(main, ["compare", str(tmp_path), *more]).stdout.split("\n")
    everything = CliRunner().invoke(main, ["compare", str(tmp_path), "--all", *more]).stdout
    assert f"{said}\n  failed: torn.csv: " in everything


@pytest.mark.parametrize("margin", [None, 2])
def test_scores_with_a_unit_are_compared_in_it_and_never_in_percent(margin):
    options = ["--margin", str(margin)] if margin else []
    result = CliRunner().invoke(main, ["compare", "samples:crafter", "--baseline", "random", *options])
    loss = "a loss of less than 2 points is no regression." if margin else "any loss that is shown is a regression"
    assert f"By mean score in points on the tasks both ran; {loss}" in result.output
    assert "difference, points [95 %]" in result.output
    assert "%" not in result.output.replace("[95 %]", "")
    assert result.exit_code == 0


@pytest.mark.parametrize(("models", "pairs"), [(7, 6), (12, 0)])
def test_of_many_models_the_first_and_last_stand_there_and_of_their_pairs_those_of_the_first(models, pairs):
    runs = runs_of(played({f"m{i}": 0.05 + 0.08 * (5 * i % 12) for i in range(models)}))
    text, all_text = (describe_comparison(runs, everything=everything) for everything in (False, True))
    shown, whole = (
        [
            [line.split()[:2] for line in part.split("\n")[2:]]
            for part in said.split("\n\n")
            if part.startswith("model ")
        ]
        for said in (text.rpartition("\n--all")[0], all_text)
    )
    names = [model for model, _ in whole[0]]
    assert [model for model, _ in shown[0]] == (names if models < 10 else [*names[:7], "…", *names[-2:]])
    assert whole[1] == [[a, b] for place, a in enumerate(names) for b in names[place + 1 :]]
    assert shown[1:] == ([[*whole[1][: pairs - 1], ["…", "…"]]] if pairs else [])
    assert not re.search(r"\bworse$|   -\d", text, re.MULTILINE)  # from the side of the better one


def test_what_would_decide_is_planned_for_the_observed_difference_and_for_a_named_one():
    models = {"a": [1, 1, 0], "b": [1, 0, 1], "c": [0, 0, 0]}
    tasks = range(30)
    cells = [(m, f"t{t}", bool(own[t % 3]) or (m == "a" and t in (2, 5))) for m, own in models.items() for t in tasks]
    runs = runs_of(cells)
    text = describe_comparison(runs, detect=10)
    pattern = r"^To detect (?:the observed )?([\d.]+) points.*? plan ([\d,]+) tasks run once"
    observed, named = re.findall(pattern, text, re.MULTILINE)
    board = leaderboard(runs)
    assert int(named[1].replace(",", "")) == plan(runs, 0.1)["tasks"].iloc[0]
    gap = board.pairs.set_index(["model_a", "model_b"]).loc[("a", "b"), "estimate"]
    assert (observed[0], named[0]) == (f"{100 * abs(gap):.1f}", "10")
    assert "To detect" not in describe_comparison(runs_of(played({"a": 0.95, "b": 0.1})))
    assert "There is only one model" in describe_comparison(runs_of([("a", "t", True)]), detect=10)


@pytest.mark.parametrize(("tasks", "is_said"), [(9, True), (60, False)])
def test_a_large_p_value_of_a_large_difference_of_shares_is_explained(tasks, is_said):
    noise = np.sin(np.arange(tasks)) / 5
    found = compare_units(0.75 + noise, 0.25 - noise[::-1])
    assert ("unseen" in found.warning) == is_said
    row = {"p_value": 0.04, "p_adjusted": 0.4, "claim_at": 0.05, "warning": found.warning}
    assert why_undecided(row).startswith("p = 0.04 before the correction")
    assert why_undecided(row).endswith("; so few tasks may have missed a rare loss") == is_said


def test_what_logs_lack_is_listed():
    logs = evalkit.load("samples:crafter")
    with pytest.raises(NotComputed, match=r"^the logs state no heat in, heat out or price$"):
        Audited(logs, logs.runs).needs("heat_in", "heat_out", "price", "uncounted")


def test_nothing_is_planned_where_another_test_decides_and_the_reason_is_said():
    cells = [
        (model, f"t{task}", (task * 7 + skill) % 5 > skill)
        for model, skill in (("a", 1), ("b", 2))
        for task in range(24)
    ]
    runs = runs_of(cells)
    assert "To detect 10 points" in describe_comparison(runs, detect=10)
    text = describe_comparison(runs.assign(cluster=[f"f{task % 6}" for _ in "ab" for task in range(24)]), detect=10)
    assert "To show" not in text
    assert text.count("Pairs are decided over families of tasks: no number of tasks is planned.") == 1


def test_a_pair_that_is_not_decided_at_a_small_p_value_says_why():
    values = {"a": [16, 11, 15, 12, 14, 13, 17, 13, 12], "b": [13, 10, 10, 13, 9, 11, 14, 13, 11]}
    cells = [(model, f"t{task}", value) for model, own in values.items() for task, value in enumerate(own)]
    runs = runs_of(cells, "crafter")
    row = leaderboard(runs).pairs.iloc[0]
    assert row["claim_at"] < row["p_adjusted"] <= 0.05
    why = "too few tasks to estimate the skewness of scores: a difference is claimed only if p ≤ 0.015"
    assert why in row["sentence"]
    assert f"not decided ({why})" in describe_comparison(runs)
    assert f"not decided ({why})" in describe_baseline(runs, "b")[0]


def test_tasks_that_only_one_model_ran_are_counted_beside_the_shared_ones():
    cells = [("a", f"t{task}", task % 8 > 0) for task in range(40)]
    cells += [("b", f"t{task}", task % 3 == 0) for task in range(36, 76)]
    text = describe_comparison(runs_of(cells))
    answer, _, note = text.splitlines()[0].partition(". ")
    assert len(answer.split()) <= 45
    assert note.startswith("The first model shares 4 tasks with each other model; tasks that only one of the two")
    assert re.search(r"^a +b +4 +72 ", text, re.MULTILINE)
    assert re.search(r"^a +4 +72 ", describe_baseline(runs_of(cells), "b")[0], re.MULTILINE)


def test_a_baseline_says_which_runs_are_absent_and_what_would_follow_from_their_failure():
    base = [("base", f"t{task}", task % 10 < 6) for task in range(40) for _ in range(2)]
    only_successes = [("new", f"t{task}", True) for task in range(40)]
    again = [("new", f"t{task}", True) for task in range(40) if task % 5 == 0]
    text, _ = describe_baseline(runs_of(base + only_successes + again), "base")
    assert "new: fewer runs than other models on these tasks: new (48 of 80); if the absent runs had failed" in text
    assert "the verdict would be: " in text
    assert "absent" not in describe_baseline(runs_of(base + only_successes * 2), "base")[0]


@pytest.mark.parametrize(("more", "column"), [([], "rank"), (["--baseline", "old"], "verdict")])
def test_the_printed_table_is_written_to_a_file(folder, tmp_path, more, column):
    path = tmp_path / "out.csv"
    CliRunner().invoke(main, ["compare", str(folder), *more, "--output", str(path)])
    assert column in pd.read_csv(path)


def test_a_list_of_runs_is_written_to_a_file(folder, tmp_path):
    listed = tmp_path / "runs.xlsx"
    CliRunner().invoke(main, ["show", str(folder), "--list", "failed", "--output", str(listed)])
    assert len(pd.read_excel(listed)) == 45


@pytest.mark.parametrize(
    ("command", "source", "options", "measure"),
    [
        ("compare", "quiz", [], "success rate (grader)"),
        ("compare", "quiz", ["--baseline", "elm"], "success rate (grader)"),
        ("compare", "quiz", ["--score", "speed"], "mean score (speed)"),
        ("compare", "pages.csv", ["--column", "score=pages", "--value", "score"], "mean score (pages)"),
        ("trajectories", "quiz", ["--score", "speed"], "mean score (speed)"),
        ("crafter", "samples:crafter", [], "mean score in points"),
        ("mindcraft", "samples:mindcraft/runs", ["--where", "task_type=techtree"], "success rate"),
    ],
)
def test_files_name_what_they_estimate(tmp_path, monkeypatch, command, source, options, measure):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages.csv").write_text("model,task,pages,ok\nyew,a,31,1\nyew,b,44,0\nelm,a,18,1\nelm,b,52,1\n")
    for model in ("yew", "elm"):
        scores = {"grader": {"value": "C"}, "speed": {"value": 0.25}}
        log = make.inspect_log(*(make.sample(f"s{i}", scores=scores) for i in range(4)), model=model, task_id=model)
        make.write(tmp_path / "quiz" / f"{model}.json", log)
    CliRunner().invoke(main, [command, source, *options, "--output", "out.csv"], catch_exceptions=False)
    assert set(pd.read_csv("out.csv")["measure"]) == {measure}


def test_a_file_has_the_adjusted_rates_that_the_table_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    easy, hard = [f"easy{n}" for n in range(6)], [f"hard{n}" for n in range(6)]
    lost = {"elm": [easy[0], *hard[:4]], "yew": easy[:1] + easy[2:3], "fir": [*easy[:3], *hard]}
    ran = {"elm": easy + hard, "yew": easy, "fir": easy + hard}
    rows = [(model, task, int(task not in lost[model])) for model in ran for task in ran[model]]
    pd.DataFrame(rows, columns=["model", "task", "solved"]).to_csv("runs.csv", index=False)
    text = CliRunner().invoke(main, ["trajectories", "runs.csv", "--output", "out.csv"]).output
    assert "adjusted for tasks" in text
    table = pd.read_csv("out.csv")
    assert sorted(table["model_name"]) == ["elm", "fir", "yew"]
    for row in table.to_dict("records"):
        (line,) = re.findall(rf"^{row['model_name']} .*", text, re.MULTILINE)
        assert line.endswith(f" {100 * row['adjusted_estimate']:.0f} %")
        assert row["adjusted_low"] < row["adjusted_estimate"] < row["adjusted_high"]


def test_a_table_hides_no_two_rows_for_one_line():
    for rows, shown in ((10, 10), (11, 11), (12, 9)):
        text = on_screen([Part("rows", rows=[{"m": f"m{i}"} for i in range(rows)])], everything=False)
        assert len(re.findall(r"^m\d", text, re.MULTILINE)) == shown


def test_whole_numbers_have_separators_but_names_and_decimals_do_not():
    row = {"model": "12345", "runs": "12345", "seconds": "12345.6", "tasks": "999", "code": "01234"}
    assert fit_table([row], width=None).splitlines()[-1].split() == ["12345", "12,345", "12345.6", "999", "01234"]
    assert row["runs"] == "12345"


@pytest.mark.parametrize(
    ("name", "cells"), [("oak", 3), ("ラーマ七十億", 12), ("모델a", 5), ("Käfer", 5), ("e\u0301te", 3)]
)
def test_the_rule_below_a_header_is_as_wide_as_the_longest_cell(name, cells):
    for width in (None, 14):
        _, rule, *_ = fit_table([{"m": name, "n": "7"}], width=width).splitlines()
        assert rule.split()[0] == "-" * cells


def test_a_plan_names_models_that_differ_in_their_middle_apart():
    cells = [(f"lab/model-{m}-instruct", f"t{task}", task % (m + 2) == 0) for m in range(2) for task in range(12)]
    (text,) = [line for line in describe_comparison(runs_of(cells)).splitlines() if line.startswith("To detect")]
    assert "del-0-instruct and " in text
    assert "del-1-instruct, plan" in text


@pytest.mark.parametrize("options", [[], ["--baseline", "alder/alder-large"]])
def test_the_table_that_is_written_is_the_one_that_was_printed(tmp_path, monkeypatch, options):
    made = []

    def counted(name, function):
        return lambda *args, **more: made.append(name) or function(*args, **more)

    for name in ("leaderboard", "against"):
        for module in (cli_runs, terminal):
            monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    source, path = "samples:trajectories/harbor", tmp_path / "table.csv"
    CliRunner().invoke(main, ["compare", source, "--output", str(path), *options], catch_exceptions=False)
    assert path.exists()
    assert made == ["against" if options else "leaderboard"]
