"""Traces while an experiment writes: each counts once its file is whole."""

import json
import os

import pytest

from evalkit.crafter import evaluate_all_traces
from evalkit.crafter.kind import KIND
from evalkit.kinds.follow import Following
from tests.crafter.traces import config, environment, hook, trace

START = 2_000_000_000.0


class Experiment:
    """A folder of traces that a test writes in steps, with a clock of its own."""

    def __init__(self, root, **options):
        self.root, self.now = root, START
        self.following = Following(KIND, root, {"by_difficulty": True}, clock=lambda: self.now, **options)

    def write(self, name, content):
        path = self.root / name
        path.write_text(content)
        os.utime(path, (self.now, self.now))

    def look(self, later=0.0):
        self.now += later
        return self.following.look()


def episode(model):
    event = environment(0, [hook("easy_achievement", ["collect_wood"])])
    return json.dumps(trace(event, metadata=[config(model_name=model, difficulty="easy")]))


@pytest.fixture
def experiment(tmp_path):
    return Experiment(tmp_path, expected=2)


def test_an_experiment_from_its_first_trace_to_its_last(experiment):
    assert experiment.look().text.startswith("no Crafter session trace yet")
    experiment.write("a.json", episode("alder")[:100])
    view = experiment.look(1)
    assert view.text.startswith("no Crafter session trace yet")
    assert view.status == "1 of 1 files new, 1 being written"
    experiment.write("a.json", episode("alder"))
    view = experiment.look(1)
    assert "   alder  1 of 2  1   1.00 " in view.text
    assert "total: 1 of 2 traces, mean score 1.00" in view.text
    assert "By difficulty" in view.text
    assert not view.done
    experiment.write("b.json", episode("alder"))
    experiment.write("c.json", "{")
    assert not experiment.look(1).done
    (experiment.root / "c.json").unlink()
    assert experiment.look(1).done
    experiment.write("c.json", episode("birch"))
    view = experiment.look(1)
    assert "total: 3 of 4 traces" in view.text
    assert not view.done


def test_a_trace_that_stays_broken_becomes_a_failed_one(experiment):
    experiment.write("a.json", '{"session_id": ')
    experiment.look()
    view = experiment.look(10)
    assert "being written" not in view.status
    assert "failed: a.json: JSONDecodeError" in view.text


def test_the_scores_are_those_of_the_command_that_looks_once():
    text = Following(KIND, "samples:crafter", {}).look().text
    scores = evaluate_all_traces("samples:crafter")
    assert f"total: {len(scores)} of ? traces" in text
    for model in {score["model_name"] for score in scores}:
        own = [score["total_score"] for score in scores if score["model_name"] == model]
        (line,) = [line for line in text.splitlines() if line.split()[:1] == [model]]
        assert line.split()[4:6] == [str(len(own)), f"{sum(own) / len(own):.2f}"]
