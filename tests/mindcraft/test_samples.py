"""The made samples hold what reports must cope with, and come out the same every time."""

import filecmp
import os

from evalkit.io import list_files, resolve
from evalkit.mindcraft import CompletionStatus, load
from tools.samples import mindcraft as samples


def test_every_status_every_way_to_name_a_model_and_spoilt_runs_are_among_them():
    runs = load("samples:mindcraft/runs", "samples:mindcraft/tasks").runs
    assert set(runs["overall_completion_status"]) == {str(status) for status in CompletionStatus}
    assert set(runs["model_source"]) == {"results", "s3_path", "profile", "parent_folder"}
    spoilt = ["conflicting", "stale_copy", "unreadable_logs", "ambiguous_definition", "missing_agent_logs"]
    assert runs[[f"flag_{name}" for name in (*spoilt, "quoted_only", "restarted")]].any().all()


def test_the_script_makes_the_same_files_again(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    samples.main()
    root = resolve("samples:mindcraft")
    names = [os.path.relpath(path, root) for path in list_files(root)]
    assert names == [os.path.relpath(path, tmp_path) for path in list_files(tmp_path)]
    _, differ, missing = filecmp.cmpfiles(root, tmp_path, names, shallow=False)
    assert (differ, missing) == ([], [])
