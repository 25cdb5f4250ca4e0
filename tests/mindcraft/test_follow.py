"""Runs while an experiment writes: what is running, what is finished, and how much of what is expected."""

import os
import re

import pytest

from evalkit.display.follow import Following
from evalkit.mindcraft import KIND
from tests.mindcraft.builders import SCORE, log, task, write_all

START = 1_700_000_000.0


def following(root, *tasks, **options):
    """Follow a folder of runs, always at the same time."""
    definitions = {"tasks": {name: task() for name in tasks}}
    return Following(KIND, root, definitions, clock=lambda: START, **options)


def write_aged(root, files, age=0.0):
    """Write files that were last changed so many seconds ago."""
    write_all(root, files)
    for name in files:
        os.utime(root / name, (START - age,) * 2)


def first_row(view):
    """The first row of the table, by header."""
    heads, _, cells = (re.split(r"\s{2,}", line.strip()) for line in view.text.splitlines()[:3])
    return dict(zip(heads, cells, strict=True))


COLUMNS = ("tasks", "success rate [95 %]", "success", "zero", "running")


def test_following_an_experiment_shows_runs_from_its_first_file_to_its_last(tmp_path):
    root = tmp_path / "runs"
    look = following(root, "cook", "bake").look
    assert "waiting for" in look().text
    root.mkdir()
    assert look().text.startswith("no Mindcraft agent log yet")
    cook, bake = "x/m/cook/andy_0.json", "x/m/bake/andy_0.json"
    for files, shown, done in (
        ({cook: b'{"turns": ['}, ["0 of 2", "–", "0", "0", "1"], False),
        ({cook: 1, bake: None}, ["1 of 2", "100 %", "1", "0", "1"], False),
        ({cook: 1, bake: 0}, ["2 of 2", "50 %", "1", "1", "0"], True),
    ):
        write_aged(root, files)
        view = look()
        row = first_row(view)
        assert [row[column].partition(" [")[0] for column in COLUMNS] == shown
        assert f"total: {shown[0]} tasks done, {shown[-1]} run" in view.text
        assert (view.done, "failed" in view.text.replace("0 failed", "")) == (done, False)


@pytest.mark.parametrize(
    ("finals", "age", "idle", "running"),
    [
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
    logs = {"x/m/cook_task/andy_0.json": log(*finals), "x/m/cook_task/jill_1.json": log(who="jill")}
    write_aged(tmp_path, logs, age)
    (tmp_path / "x/m/multiagent_cooking_1_bread").mkdir()  # a run that has only begun, just now
    assert first_row(following(tmp_path, idle=idle).look())["running"] == str(running + (idle != 0))


@pytest.mark.parametrize(
    ("results", "definitions", "expected", "shown"),
    [
        ({"total": 7}, True, 9, "1 of 9"),
        ({"total": 7}, True, None, "1 of 7"),
        ({}, True, None, "1 of 2"),
        ({}, False, 9, "1 of 9"),
        ({}, False, None, "1 of ?"),
    ],
)
def test_what_is_expected_is_stated_or_in_the_results_or_defined(tmp_path, results, definitions, expected, shown):
    write_aged(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "exp_1/results.txt": repr({"model": "m", **results})})
    view = following(tmp_path, *["cook", "bake"] * definitions, expected=expected).look()
    assert (first_row(view)["tasks"], view.done) == (shown, False)
    assert f"total: {shown} tasks done" in view.text
