import os
import time

import pandas as pd
import pytest

from evalkit import mindcraft
from evalkit.kinds import update
from tests.mindcraft.builders import SCORE, log, task, write, write_all


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """A folder of runs and a file of definitions that have been left alone for a while, and a store of their own."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "store"))
    root = write_all(tmp_path / "model-a", {"cooking_1/Andy_0_0.json": 1, "cooking_2/Andy_0_0.json": 0})
    write(tmp_path / "tasks.json", {"cooking_1": task(agent_count=1)})
    settle(tmp_path)
    return root, tmp_path / "tasks.json"


def settle(folder):
    """Date all files and folders back: what is still being written is not kept."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 60,) * 2)


def frames(loaded):
    return {"runs": loaded.runs, "agents": loaded.agents, "ledger": loaded.ledger}


def test_what_comes_from_the_store_equals_what_was_read(experiment, monkeypatch):
    read = mindcraft.load(*experiment)
    monkeypatch.setattr(update, "parse_chunks", None)  # a second reading would fail
    stored = mindcraft.load(*experiment)
    for name, table in frames(read).items():
        pd.testing.assert_frame_equal(table, frames(stored)[name])


CHANGES = {
    "a log": ("model-a/cooking_1/Andy_0_0.json", log(f"{SCORE}0")),
    "a new log": ("model-a/cooking_1/Andy_0_1.json", log(f"{SCORE}1")),
    "a definition": ("tasks.json", {"cooking_1": task(agent_count=2)}),
    "the results file above": ("model-a/results.json", {"model": "other", "total": 1, "successful": 1}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(experiment, change):
    root, tasks = experiment
    before = mindcraft.load(root / "cooking_1", tasks)
    name, content = CHANGES[change]
    write(root.parent / name, content)
    settle(root.parent)
    assert not before.runs.equals(mindcraft.load(root / "cooking_1", tasks).runs)


def test_definitions_in_memory_are_not_taken_from_the_store(experiment):
    root, _ = experiment
    counts = [mindcraft.runs_df(root, {"cooking_1": task(agent_count=n)})["agent_count"].max() for n in (1, 3)]
    assert counts == [1, 3]
