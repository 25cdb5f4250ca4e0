"""A dataset of task runs gives what their folder gives, with any option and whatever was done to the folder."""

import os

import pandas as pd

from evalkit import mindcraft
from tests.mindcraft.builders import SCORE, log, task, write_all

OPTIONS = {"tasks": {"cook_1": task(agent_count=3)}, "scale": "percent", "layout": "{model_name}/{task_id}"}
A, B, GONE = "exp_a/results.txt", "exp_b/results.txt", object()
COPIED = log(f"{SCORE}1", who="copied")
RESULTS = {name: repr({"model": name, "exp_name": "x", "total": 9}) for name in ("org/model-7b", "ft:gpt:x", "other")}
FILES = {
    **{f"exp_{x}/cook_{run}/Agent_{agent}_0.json": run % 2 for x in "ab" for run in (0, 1) for agent in (0, 1)},
    **{f"exp_{x}/cook_0/Broken_0_0.json": '{"turns": [' for x in "ab"},
    **{"exp_a/cook_1/Agent_9_0.json": COPIED, A: RESULTS["org/model-7b"], B: RESULTS["ft:gpt:x"], "notes.txt": "hello"},
}
FROM_OTHER_FILES = {"flags", "parsing_errors"}  # a flag of copies; one text per log


def test_records_of_logs_agree_with_the_frame_of_agents_on_all_columns_that_both_have(tmp_path):
    scores = {"a/Andy_0_0.json": 1, "b/Andy_0_0.json": 85, "c/Andy_0_0.json": None, "d/Andy_0_0.json": "["}
    folder = write_all(tmp_path / "runs", {f"e/construction_{name}": score for name, score in scores.items()})
    mindcraft.collect(folder, tmp_path / "made")
    agents = mindcraft.load(tmp_path / "made").agents
    assert agents["completion_status"].nunique() == 3
    records = pd.read_parquet(tmp_path / "made/logs")
    shared = [name for name in records if name in agents and name not in FROM_OTHER_FILES]
    assert {"raw_score", "timed_out", "task_start"} <= set(shared)
    pd.testing.assert_frame_equal(records[shared], agents[shared], check_dtype=False)


# what tells a run from others, or names its model, changes in turn; other changes: tests/kinds/test_store.py
EDITS = {
    "all is written": FILES,
    "nothing": {},
    "a broken log is mended": {"exp_b/cook_0/Broken_0_0.json": 1},
    "a log is copied": {"exp_b/cook_1/Agent_9_0.json": COPIED},
    "a run is begun": {"exp_a/multiagent_cooking_8/.keep": ""},
    "a model is renamed": {A: RESULTS["other"]},
    "two models swap names": {A: RESULTS["ft:gpt:x"], B: RESULTS["other"]},
    "a model loses its name": {A: GONE},
}


def test_after_any_edit_it_gives_what_the_folder_gives_with_any_option(tmp_path):
    folder, made = tmp_path / "runs", tmp_path / "made"
    for age, (edit, files) in enumerate(EDITS.items()):
        write_all(folder, {name: content for name, content in files.items() if content is not GONE})
        for name, content in files.items():
            if content is GONE:
                (folder / name).unlink()
            else:
                os.utime(folder / name, (1_600_000_000 + age,) * 2)  # as if it had been left alone for a while
        mindcraft.collect(folder, made)
        for options in ({"original_mtimes": True}, OPTIONS):
            for expected, got in zip(mindcraft.load(folder, **options), mindcraft.load(made, **options), strict=True):
                pd.testing.assert_frame_equal(expected, got, obj=edit)
