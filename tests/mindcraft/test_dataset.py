"""A dataset of task runs gives what their folder gives, with any option and whatever was done to the folder."""

import os
from pathlib import Path

import pandas as pd

from evalkit import mindcraft
from tests.mindcraft.builders import SCORE, log, task, write

OLD = 1_600_000_000
OPTIONS = {"tasks": {"cook_1": task(agent_count=3)}, "scale": "percent", "layout": "{model_name}/{task_id}"}


def put(path: Path, content, age: float = 0) -> None:
    """Write a file that looks as if it had been left alone for a while; a number is a log with this score."""
    content = log(f"{SCORE}{content}", who=f"{path} {age}") if isinstance(content, int) else content
    os.utime(write(path, content), (OLD + age,) * 2)


def experiment(folder: Path, model: str, runs: int) -> None:
    """Write an experiment of some runs of two agents, with a broken log and the file that names its model."""
    for run in range(runs):
        for agent in range(2):
            put(folder / f"cook_{run}" / f"Agent_{agent}_0.json", run % 2)
    put(folder / "cook_0" / "Broken_0_0.json", '{"turns": [')
    put(folder / "results.txt", repr({"model": model, "exp_name": folder.name, "total": 9}))


SWAP = (("exp_a/results.txt", "kept"), ("exp_b/results.txt", "exp_a/results.txt"), ("kept", "exp_b/results.txt"))
# what tells a run from others, or names its model, changes in turn; other changes: tests/kinds/test_store.py
EDITS = {
    "nothing": lambda f: None,
    "a broken log is mended": lambda f: put(f / "exp_b/cook_0/Broken_0_0.json", 1, age=9),
    "a log is copied": lambda f: put(
        f / "exp_b/cook_1/Agent_9_0.json", (f / "exp_a/cook_1/Agent_0_0.json").read_text()
    ),
    "a run is begun": lambda f: (f / "exp_a" / "cook_8").mkdir(),
    "a model is renamed": lambda f: put(f / "exp_a/results.txt", "{'model': 'other', 'total': 2}", age=9),
    "two models swap names": lambda f: [(f / name).rename(f / to) for name, to in SWAP],
    "a model is named above": lambda f: put(f.parent / "results.txt", "{'model': 'above', 'total': 2}"),
    "a model loses its name": lambda f: (f / "exp_a" / "results.txt").unlink(),
}


def test_after_any_edit_it_gives_what_the_folder_gives_with_any_option(tmp_path):
    folder, made = tmp_path / "runs", tmp_path / "made"
    experiment(folder / "exp_a", "org/model-7b", 3)
    experiment(folder / "exp_b", "ft:gpt:x", 2)
    put(folder / "notes.txt", "hello")
    for name, edit in EDITS.items():
        edit(folder)
        mindcraft.collect(folder, made)
        for options in ({"original_mtimes": True}, OPTIONS):
            for expected, got in zip(mindcraft.load(folder, **options), mindcraft.load(made, **options), strict=True):
                pd.testing.assert_frame_equal(expected, got, obj=name)
