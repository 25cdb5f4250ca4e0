"""Names have no length in logs: they are cut once, when read, so that tables, pages and messages stay small."""

import json
import os

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import crafter
from evalkit.cli import main
from evalkit.io.frames import MOST_NAME, cut_name, is_cut_name
from evalkit.io.text import MOST_LINE
from tests.crafter.traces import config, environment, hook, trace
from tests.mindcraft.builders import SCORE, log, write_all

LONG = "x" * 100_000
EVENT = environment(0, [hook("easy_achievement", ["collect_wood"])])


def _trace(path, name, difficulty="easy", task=""):
    about = config(model_name=f"model {name}", task_instance_id=task or f"task {name}", difficulty=difficulty)
    path.write_text(json.dumps(trace(EVENT, metadata=[about], session_id=f"session {name}")))


def test_different_long_names_stay_different_and_are_cut_only_once():
    cut = [cut_name(LONG + end) for end in "ab"]
    assert len(set(cut)) == 2
    assert {len(name) for name in cut} == {MOST_NAME}
    assert [cut_name(name) for name in cut] == cut
    assert all(map(is_cut_name, cut))
    assert len(cut_name("\ud800" * 1000)) == MOST_NAME


def test_traces_with_long_names_are_flagged_and_stay_apart(tmp_path):
    for name in "ab":
        _trace(tmp_path / f"{name}.json", LONG + name, difficulty=LONG)
    _trace(tmp_path / "c.json", "c")
    episodes = crafter.load(tmp_path).episodes
    names = ["session_id", "model_name", "task_id", "difficulty"]
    assert episodes[names].map(len).max(axis=None) == MOST_NAME
    assert episodes["model_name"].nunique() == episodes["task_id"].nunique() == 3
    assert ["long_name" in flags for flags in episodes["run_flags"]] == [True, True, False]
    assert episodes["flag_long_name"].tolist() == [True, True, False]


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "samples:crafter", "--baseline", LONG),
        ("crafter", "samples:crafter", "--models", LONG),
        ("show", "samples:mindcraft/runs", "--run", LONG),
        ("report", "step_evaluation", "-p", LONG, "1"),
    ],
)
def test_a_message_repeats_no_more_than_a_line_of_what_was_given(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert len(result.output) <= 2 * MOST_LINE


def test_a_definition_file_of_too_many_metrics_fails_in_the_ledger(tmp_path):
    metrics = {f"m{number}": number for number in range(200_000)}
    definitions = {"cook": {"type": "cooking", "goal": "g", "difficulty_metrics": metrics}}
    write_all(tmp_path, {"logs/m/cook/Andy_0.json": log(f"{SCORE}1"), "many.json": definitions})
    write_all(tmp_path, {"few.json": {"cook": {"type": "cooking", "goal": "g"}}})
    logs = evalkit.load(str(tmp_path / "logs"), tasks=[str(tmp_path / "*.json")])
    assert logs.runs.shape[1] < 200
    (entry,) = logs.ledger[logs.ledger["status"] == "failed"].itertuples()
    assert os.path.basename(entry.source) == "many.json"
    assert entry.reason == "LimitError: 200000 metrics are more than the limit of 1000"
