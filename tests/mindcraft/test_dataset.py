"""A dataset of task runs gives what their folder gives, with any option and whatever was done to the folder."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit import mindcraft
from tests.mindcraft.builders import SCORE, log, task, write

OLD = 1_600_000_000


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


def make(root: Path) -> Path:
    experiment(root / "runs" / "exp_a", "org/model-7b", 3)
    experiment(root / "runs" / "exp_b", "ft:gpt:x", 2)
    put(root / "runs" / "notes.txt", "hello")
    (root / "runs" / "exp_b" / "cook_7").mkdir()
    return root / "runs"


def assert_same(folder: Path, made: Path, **options) -> None:
    """Compare the frames of the folder with those of the dataset."""
    for expected, got in zip(mindcraft.load(folder, **options), mindcraft.load(made, **options), strict=True):
        pd.testing.assert_frame_equal(expected, got)


def test_it_gives_what_the_folder_gives_with_any_option(tmp_path):
    runs = make(tmp_path)
    mindcraft.collect(runs, tmp_path / "made")
    assert_same(runs, tmp_path / "made", original_mtimes=True)
    with_tasks = {"tasks": {"cook_1": task(agent_count=3)}, "scale": "percent", "layout": "{model_name}/{task_id}"}
    assert_same(runs, tmp_path / "made", **with_tasks)


def swap_names(folder: Path) -> None:
    a, b = (folder / name / "results.txt" for name in ("exp_a", "exp_b"))
    for path, text in ((a, b.read_text()), (b, a.read_text())):
        put(path, text, age=9)


EDITS = {
    "changed": lambda f: put(f / "exp_a/cook_0/Agent_0_0.json", 1, age=9),
    "mended": lambda f: put(f / "exp_b/cook_0/Broken_0_0.json", 1, age=9),
    "new": lambda f: experiment(f / "exp_c", "third", 2),
    "copied": lambda f: put(f / "exp_b/cook_1/Agent_9_0.json", (f / "exp_a/cook_1/Agent_0_0.json").read_text()),
    "gone": lambda f: shutil.rmtree(f / "exp_a" / "cook_1", ignore_errors=True),
    "all of a model gone": lambda f: shutil.rmtree(f / "exp_b", ignore_errors=True),
    "model renamed": lambda f: put(f / "exp_a/results.txt", "{'model': 'other', 'total': 2}", age=9),
    "model unnamed": lambda f: (f / "exp_a" / "results.txt").unlink(missing_ok=True),
    "model named above": lambda f: put(f.parent / "results.txt", "{'model': 'above', 'total': 2}"),
    "names swapped": swap_names,
    "empty folder": lambda f: (f / "exp_a" / "cook_8").mkdir(exist_ok=True),
    "broken link": lambda f: (f / "exp_a/cook_0/Lost_0_0.json").symlink_to(f / "nowhere"),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)
@given(rounds=st.lists(st.lists(st.sampled_from(sorted(EDITS)), max_size=3), max_size=3))
def test_after_any_edits_it_follows(tmp_path_factory, rounds):
    root = tmp_path_factory.mktemp("edits")
    runs = make(root)
    for edits in [[], *rounds]:
        for edit in edits:
            with suppress(FileNotFoundError, FileExistsError):  # an earlier edit has removed or made what it needs
                EDITS[edit](runs)
        mindcraft.collect(runs, root / "made")
        assert_same(runs, root / "made")
