"""Runs while an experiment writes: what is running, what is finished, and how much of what is expected."""

import os
import re

import pytest

from evalkit.io import SourceError
from evalkit.kinds import update
from evalkit.kinds.follow import Following
from evalkit.mindcraft import KIND, load
from tests.mindcraft.builders import SCORE, log, task, write

START = 1_700_000_000.0


class Experiment:
    """A folder of runs that a test writes in steps, with a clock of its own."""

    def __init__(self, root, *tasks, **options):
        self.root, self.now = root, START
        definitions = [str(write(root.parent / "tasks.json", {name: task() for name in tasks}))] if tasks else []
        following = {name: options.pop(name) for name in ("expected", "idle") if name in options}
        options = {"tasks": definitions, **options}
        self.following = Following(KIND, root, options, clock=lambda: self.now, **following)

    def write(self, name, content, age=0.0):
        if content is None or isinstance(content, (int, float)):
            content = log(*([] if content is None else [f"{SCORE}{content}"]), who=name)
        path = write(self.root / name, content)
        os.utime(path, (self.now - age, self.now - age))

    def look(self, later=0.0):
        self.now += later
        return self.following.look()


@pytest.fixture
def experiment(tmp_path):
    return Experiment(tmp_path / "runs", "cook", "bake")


def table(text):
    """The rows of the table, by the first column and header."""
    lines = text.splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("---"))
    cells = [re.split(r"\s{2,}", line.strip()) for line in (lines[rule - 1], *lines[rule + 1 : lines.index("", rule)])]
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[1:]}


def test_no_model_is_ahead_by_runs_that_overtook_an_older_one(tmp_path):
    """One model fails slowly, so what has ended first are its successes, and the failures of the other."""
    experiment, claim = Experiment(tmp_path / "runs"), "a is ahead of b"
    old = [("a", 0, b'{"turns": ['), ("b", 0, None)]  # the log of the oldest run is being written
    rows = [*old, *((model, n, int(model == "a")) for n in range(1, 30) for model in "ab")]
    for place, (model, n, score) in enumerate(rows):
        content = log(*[f"{SCORE}{score}"] * (score is not None), start=place + 1e12, who=f"{model}{n}")
        experiment.write(f"x/{model}/multiagent_cooking_{n}/andy_0.json", score if score and n == 0 else content)
    assert claim not in experiment.look().text
    experiment.write("x/a/multiagent_cooking_0/andy_0.json", log(start=1e12, who="a0"))
    assert claim not in experiment.look(20).text
    for place, model in enumerate("ab"):
        ended = log(f"{SCORE}0", start=1e12 + place, who=f"{model}0")
        experiment.write(f"x/{model}/multiagent_cooking_0/andy_0.json", ended)
    assert claim in experiment.look(20).text.replace("\n", " ")


def test_an_experiment_from_its_first_file_to_its_last(experiment):
    assert "waiting for" in experiment.look().text
    experiment.root.mkdir()
    assert experiment.look(5).text.startswith("no Mindcraft agent log yet")
    experiment.write("x/m/cook/andy_0.json", b'{"turns": [')
    view = experiment.look(5)
    assert view.status == "1 of 1 files new, 1 being written"
    assert "failed" not in view.text.replace("0 failed", "")
    row = table(view.text)["m"]
    assert (row["tasks"], row["success rate"], row["running"]) == ("0 of 2", "–", "1")
    experiment.write("x/m/cook/andy_0.json", None)
    assert table(experiment.look(5).text)["m"]["running"] == "1"
    experiment.write("x/m/cook/andy_0.json", 1)
    experiment.write("x/m/bake/andy_0.json", None)
    view = experiment.look(5)
    row = table(view.text)["m"]
    assert (row["tasks"], row["success rate"], row["success"], row["running"]) == ("1 of 2", "100 %", "1", "1")
    assert "total: 1 of 2 tasks done, 1 run running" in view.text
    assert not view.done
    experiment.write("x/m/bake/andy_0.json", 0)
    view = experiment.look(5)
    row = table(view.text)["m"]
    assert (row["tasks"], row["success rate"], row["zero"], row["running"]) == ("2 of 2", "50 %", "1", "0")
    assert view.done


@pytest.mark.parametrize(
    ("finals", "age", "idle", "running"),
    [
        ([f"{SCORE}0"], 0, None, False),
        (["Task timeout reached"], 0, None, False),
        (["Agent ended conversation"], 0, None, False),
        ([f"{SCORE}NaN"], 0, None, False),
        ([], 299, None, True),
        ([], 300, None, False),
        ([], 59, 60, True),
        ([], 60, 60, False),
        ([], 0, 0, False),
    ],
)
def test_a_run_is_finished_by_a_final_message_or_by_being_left_alone(tmp_path, finals, age, idle, running):
    experiment = Experiment(tmp_path / "runs", idle=idle)
    experiment.write("x/m/cook_task/andy_0.json", log(*finals), age)
    experiment.write("x/m/cook_task/jill_1.json", log(who="jill"), age)
    assert table(experiment.look().text)["m"]["running"] == str(int(running))


def test_a_run_whose_log_is_being_written_is_running_however_short_idle_is(tmp_path):
    experiment = Experiment(tmp_path / "runs", idle=0)
    experiment.write("x/m/cook_task/andy_0.json", b'{"turns": [')
    assert table(experiment.look().text)["m"]["running"] == "1"
    assert table(experiment.look(10).text)["m"]["broken"] == "1"


def test_nothing_is_done_while_a_run_goes_on_or_a_source_is_waited_for(tmp_path):
    experiment = Experiment(tmp_path / "runs", expected=1)
    sources = [experiment.root, tmp_path / "more"]
    experiment.following = Following(KIND, sources, {}, expected=1, clock=lambda: experiment.now)
    experiment.write("m/cook/andy_0.json", 1)
    assert not experiment.look().done
    (tmp_path / "more").mkdir()
    assert experiment.look(1).done
    experiment.write("m/bake/andy_0.json", None)
    assert not experiment.look(1).done


def test_a_task_s_own_timeout_says_how_long_a_run_may_be_quiet(tmp_path):
    tasks = str(write(tmp_path / "tasks.json", {"cook": task(timeout=60)}))
    experiment = Experiment(tmp_path / "runs")
    experiment.following = Following(KIND, experiment.root, {"tasks": [tasks]}, clock=lambda: experiment.now)
    experiment.write("m/cook/andy_0.json", None)
    assert table(experiment.look().text)["m"]["running"] == "1"
    assert table(experiment.look(59).text)["m"]["running"] == "1"
    row = table(experiment.look(1).text)["m"]
    assert (row["running"], row["no score"]) == ("0", "1")


def test_a_folder_without_a_log_runs_until_it_was_left_alone(experiment):
    experiment.write("x/m/cook/andy_0.json", 1, age=1000)
    folder = experiment.root / "x/m/bake"
    folder.mkdir()
    os.utime(folder, (START, START))
    assert table(experiment.look().text)["m"]["running"] == "1"
    row = table(experiment.look(300).text)["m"]
    assert (row["tasks"], row["running"], row["no score"]) == ("2 of 2", "0", "1")


def test_a_file_that_stays_broken_becomes_a_failed_one(experiment):
    experiment.write("x/m/cook/andy_0.json", b'{"turns": [')
    assert "1 running" not in experiment.look().text
    view = experiment.look(20)
    assert "being written" not in view.status
    assert "failed: x/m/cook/andy_0.json: JSONDecodeError" in view.text
    assert table(view.text)["m"]["running"] == "1"  # the log may still be written anew
    assert table(experiment.look(300).text)["m"]["broken"] == "1"


@pytest.mark.parametrize(
    ("results", "definitions", "expected", "shown"),
    [
        ({"total": 7}, True, 9, "1 of 9"),
        ({"total": 7}, True, None, "1 of 7"),
        (None, True, None, "1 of 2"),
        (None, False, 9, "1 of 9"),
        (None, False, None, "1 of ?"),
    ],
)
def test_what_is_expected_is_stated_or_stands_in_the_results_or_is_the_number_of_definitions(
    tmp_path, results, definitions, expected, shown
):
    experiment = Experiment(tmp_path / "runs", *["cook", "bake"] * definitions, expected=expected)
    experiment.write("exp_1/cook/Andy_0_0.json", 1)
    if results:
        experiment.write("exp_1/results.txt", repr({"model": "m", **results}))
    view = experiment.look()
    (row,) = table(view.text).values()
    assert row["tasks"] == shown
    assert f"total: {shown} tasks done" in view.text
    assert not view.done


def test_repetitions_of_a_task_count_once_among_the_tasks(experiment):
    for repetition in range(3):
        experiment.write(f"m/cook/Andy_0_{repetition}.json", log(f"{SCORE}1", who=str(repetition)))
    row = table(experiment.look().text)["m"]
    assert (row["tasks"], row["n"]) == ("1 of 2", "3")
    experiment.write("m/cook/Andy_0_3.json", None)
    row = table(experiment.look().text)["m"]
    assert (row["tasks"], row["n"], row["running"]) == ("0 of 2", "3", "1")


def test_runs_may_be_grouped_by_other_columns(tmp_path):
    experiment = Experiment(tmp_path / "runs", "cook", "bake", by=["task_id", "model_name"])
    experiment.write("m/cook/Andy_0_0.json", 1)
    experiment.write("m/bake/Andy_0_0.json", None)
    rows = table(experiment.look().text)
    assert {name: (row["n"], row["running"]) for name, row in rows.items()} == {"cook": ("1", "0"), "bake": ("0", "1")}


@pytest.mark.parametrize("options", [{"by": ["model"]}, {"layout": "{nothing}"}])
def test_what_can_never_work_is_refused(tmp_path, options):
    write(tmp_path / "runs/m/cook/Andy_0_0.json", log(f"{SCORE}1"))
    with pytest.raises(SourceError):
        Experiment(tmp_path / "runs", **options).look()


def test_only_changed_files_are_parsed_and_the_end_is_what_load_says(experiment, monkeypatch):
    parsed = []
    real = update.parse_chunks
    monkeypatch.setattr(update, "parse_chunks", lambda paths, *rest: parsed.append(len(paths)) or real(paths, *rest))
    logs = {f"m{i % 2}/{name}/Andy_0_0.json": i % 3 / 2 for i, name in enumerate(("cook", "bake", "boil", "fry"))}
    for name, score in logs.items():
        experiment.write(name, score)
        view = experiment.look(1)
    experiment.look(1)
    assert [n for n in parsed if n] == [1, 1, 1, 1]
    # the rates are those of the command that looks once
    runs = load(experiment.root, tasks=str(experiment.root.parent / "tasks.json")).runs
    rates = runs.groupby("model_name")["overall_is_successful"].mean()
    assert {name: row["success rate"] for name, row in table(view.text).items()} == {
        name: f"{rate * 100:.0f} %" for name, rate in rates.items()
    }


def test_a_copy_is_flagged_only_as_long_as_both_are_there(experiment):
    same = log(f"{SCORE}1", start=1757845200000)
    experiment.write("m/cook/Andy_0_0.json", same)
    experiment.write("m/bake/Andy_0_0.json", same)
    experiment.look()
    assert experiment.following.logs.runs["flag_stale_copy"].tolist() == [False, True]
    row = table(experiment.look().text)["m"]
    assert (row["success rate"], row["success"], row["tasks"]) == ("100 %", "1", "2 of 2")
    (experiment.root / "m/bake/Andy_0_0.json").unlink()
    (experiment.root / "m/bake").rmdir()
    experiment.look(1)
    assert not experiment.following.logs.runs["flag_stale_copy"].any()


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "a\u202eb", "\x9b2J", "a\rb"])
def test_nothing_from_logs_or_paths_steers_the_terminal(tmp_path, hostile):
    experiment = Experiment(tmp_path / "runs")
    experiment.following = Following(KIND, [experiment.root, tmp_path / hostile], {}, clock=lambda: experiment.now)
    experiment.write("exp_1/results.txt", repr({"model": hostile, "total": 1}))
    experiment.write(f"exp_1/cook/{hostile}_0.json", b"{", age=60)
    text = experiment.look().text
    assert "failed: " in text
    assert "waiting for " in text
    assert not set(hostile) & {"\x1b", "\u202e", "\x9b", "\r"} & set(text)


def test_twelve_models_with_long_names_fit_a_narrow_terminal(tmp_path):
    experiment = Experiment(tmp_path / "runs", *(f"task_{i}" for i in range(3)))
    for model in range(12):
        for i, score in enumerate((1, 0, None)):
            experiment.write(f"x/some-laboratory-model-{model:02}-instruct/task_{i}/andy_0.json", score)
    text = experiment.following.look(80).text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 22
    names = [line.split()[0] for line in text.splitlines() if "instruct" in line]
    assert len(set(names)) == 12
