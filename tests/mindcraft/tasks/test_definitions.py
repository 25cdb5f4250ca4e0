"""Task definitions: files, folders and globs; ids that mean different things; runs without one."""

import json
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.mindcraft import TaskDefinitions, aggregate_results, load, load_task_definitions, runs_df
from evalkit.mindcraft.format import TASK_KEYS
from tests.mindcraft.builders import SCORE, log, task, write, write_all

TWO, THREE = task(agent_count=2), task(agent_count=3)


@pytest.fixture
def tasks(tmp_path):
    """Two files that define `cook` differently and `same` alike, in the real kind of folders."""
    files = {
        "tasks/cooking_tasks/test/2_agent.json": {"cook": TWO, "same": TWO},
        "tasks/cooking_tasks/train/3_agent.json": {"cook": THREE, "same": TWO, "own": THREE},
        "tasks/notes.txt": "no definitions",
    }
    return write_all(tmp_path, files) / "tasks"


@pytest.mark.parametrize(
    "paths",
    [
        ["."],
        ["cooking_tasks"],
        ["**/*.json"],
        ["cooking_tasks/*"],
        ["cooking_tasks/test", "cooking_tasks/train/3_agent.json"],
    ],
)
def test_files_folders_and_globs_are_taken(tasks, paths):
    definitions = load_task_definitions(*(tasks / path for path in paths))
    assert set(definitions) == {"cook", "same", "own"}
    assert list(definitions.ambiguous) == ["cook"]
    assert [path[-12:] for path in definitions.ambiguous["cook"]] == ["2_agent.json", "3_agent.json"]


def test_a_mapping_gives_the_first_definition_with_its_id_and_file(tasks):
    definition = load_task_definitions(tasks)["cook"]
    assert definition["agent_count"] == 2
    assert definition["task_id"] == "cook"
    assert definition["definition_file"].endswith("2_agent.json")
    assert len(load_task_definitions(tasks)) == 3


def test_the_same_content_in_two_files_is_one_definition_of_both(tasks):
    definitions = load_task_definitions(tasks)
    (same,) = definitions.candidates("same")
    assert "2_agent.json" in same["definition_file"]
    assert "3_agent.json" in same["definition_file"]


def test_a_file_given_twice_counts_once(tasks):
    definitions = load_task_definitions(tasks, tasks, tasks / "cooking_tasks/test/2_agent.json")
    assert len(definitions.ledger.entries) == 2
    assert definitions["own"]["definition_file"].count(".json") == 1


@pytest.mark.parametrize("path", ["gone", "gone/*.json", "**/*.yaml"])
def test_a_path_without_files_is_named(tasks, path):
    with pytest.raises(SourceError, match=path.split("/")[0].replace("*", r"\*")):
        load_task_definitions(tasks / path)


@pytest.mark.parametrize(
    ("content", "status", "reason", "ids"),
    [
        ({"a": TWO}, "used", "task definitions", {"a"}),
        ({"a": TWO, "b": 5, "c": {"x": 1}}, "used", "no definitions: b, c", {"a"}),
        ({"a": {"agent_count": 2}}, "used", "task definitions", {"a"}),
        (TWO, "used", "task definitions", {"one"}),
        ({**TWO, "task_id": "named"}, "used", "task definitions", {"named"}),
        (b"\xef\xbb\xbf" + json.dumps({"a": TWO}).encode(), "used", "task definitions", {"a"}),
        ({}, "skipped", "another shape", set()),
        ([TWO], "skipped", "another shape", set()),
        ({"dependencies": {"x": "1"}}, "skipped", "another shape", set()),
        ({"name": "Andy", "model": "m"}, "skipped", "agent profile", set()),
        ({"turns": [], "memory": ""}, "skipped", "another shape", set()),
        (b'{"a": {"goal"', "failed", "JSONDecodeError", set()),
        (b"", "failed", "JSONDecodeError: the file is empty", set()),
        (b'{"a": "\xff"}', "failed", "UnicodeDecodeError", set()),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "failed", "LimitError: nested deeper than", set()),
    ],
)  # fmt: skip
def test_every_file_of_a_folder_is_in_the_ledger_with_what_it_holds(tmp_path, content, status, reason, ids):
    write(tmp_path / "other.json", {"good": TWO})
    path = write(tmp_path / "one.json", content)
    definitions = load_task_definitions(tmp_path)
    assert set(definitions) == ids | {"good"}
    entry = next(entry for entry in definitions.ledger.entries if entry.source == str(path))
    assert entry.status == status
    assert reason in entry.reason


@pytest.mark.parametrize("way", [load_task_definitions, lambda path: load(path.parent / "runs", path)])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "holds no task definitions (another shape)"),
        ({"name": "Andy", "model": "m"}, "holds no task definitions (agent profile)"),
        (b"", "no task definition can be read in it: JSONDecodeError: the file is empty"),
        (b"{", "no task definition can be read in it: JSONDecodeError: "),
    ],
)
def test_a_named_file_without_definitions_is_an_error_that_names_it(tmp_path, way, content, reason):
    write(tmp_path / "runs/exp_1/cook/Andy_0_0.json", log(f"{SCORE}1"))
    path = write(tmp_path / "tasks.json", content)
    with pytest.raises(SourceError, match=f"^{re.escape(f'{path}: {reason}')}"):
        way(path)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a.txt": "x"}, "no task definition in it: there is no JSON file"),
        (
            {"a.json": b"{"},
            "no task definition in its file, such as {}/a.json: no task definition can be read in it: J",
        ),
        ({"a.json": {}, "b.json": b"{"}, "no task definition in its 2 files, such as {}/a.json: holds no task"),
    ],
)
def test_a_folder_without_any_definition_is_an_error_that_names_it(tmp_path, files, reason):
    folder = write_all(tmp_path / "tasks", files)
    with pytest.raises(SourceError, match=re.escape(f"{folder}: {reason.format(folder)}")):
        load_task_definitions(write(tmp_path / "good.json", {"a": TWO}), folder)


RESULTS = "{{'model': 'm', 'task_path': {path!r}}}"


@pytest.mark.parametrize(
    ("task_path", "logs", "agents", "ambiguous"),
    [
        ("tasks/cooking_tasks/train/3_agent.json", 2, 3, False),
        ("/elsewhere/tasks/cooking_tasks/test/2_agent.json", 3, 2, False),
        ("tasks\\cooking_tasks\\train\\3_agent.json", 2, 3, False),
        ("3_agent.json", 2, 3, False),
        ("tasks/other.json", 3, 3, True),
        (None, 2, 2, True),
        (None, 3, 3, True),
        (None, 1, 2, True),
        (None, 0, 2, True),
    ],
)
def test_differing_definitions_are_told_by_the_file_else_by_the_logs_and_flagged(
    tmp_path, tasks, task_path, logs, agents, ambiguous
):
    files: dict = {"runs/exp_1/same/Andy_0_0.json": 1}
    files |= {f"runs/exp_1/cook/{name}_{i}_0.json": 1 for i, name in enumerate(["Andy", "Jill", "Bob"][:logs])}
    (tmp_path / "runs/exp_1/cook").mkdir(parents=True)
    if task_path:
        files["runs/exp_1/results.txt"] = RESULTS.format(path=task_path)
    run, _ = runs_df(write_all(tmp_path, files) / "runs", tasks).to_dict("records")
    assert run["agent_count"] == agents
    assert run["flag_ambiguous_definition"] is ambiguous
    assert run["has_definition"]
    assert f"{agents}_agent.json" in run["definition_file"]
    assert run["flag_missing_agent_logs"] is (logs < agents)


@pytest.mark.parametrize(("task_path", "flagged"), [("tasks/a.json", True), ("elsewhere/b.json", False), (None, False)])
def test_a_definition_from_another_file_than_the_results_name_is_flagged(tmp_path, task_path, flagged):
    root = write_all(tmp_path, {"tasks/b.json": {"cook": TWO}, "runs/exp_1/cook/Andy_0_0.json": 1})
    if task_path:
        write(root / "runs/exp_1/results.txt", RESULTS.format(path=task_path))
    assert runs_df(root / "runs", root / "tasks")["flag_ambiguous_definition"].tolist() == [flagged]


def test_two_files_of_one_name_are_told_by_their_folders(tmp_path):
    files = {
        "tasks/train/a.json": {"cook": TWO},
        "tasks/test/a.json": {"cook": THREE},
        "runs/exp_1/cook/Andy_0_0.json": 1,
    }
    root = write_all(tmp_path, {**files, "runs/exp_1/results.txt": RESULTS.format(path="tasks/test/a.json")})
    assert runs_df(root / "runs", root / "tasks")["agent_count"].tolist() == [3]
    write(root / "runs/exp_1/results.txt", RESULTS.format(path="a.json"))
    assert runs_df(root / "runs", root / "tasks")["flag_ambiguous_definition"].tolist() == [True]


def test_an_id_with_one_definition_is_never_ambiguous(tmp_path, tasks):
    root = write_all(tmp_path, {"runs/exp_1/same/Andy_0_0.json": 1})
    assert runs_df(root / "runs", tasks)["flag_ambiguous_definition"].tolist() == [False]


@pytest.mark.parametrize("way", ["load", "aggregate"])
def test_a_run_without_a_definition_is_kept_skipped_or_refused(tmp_path, tasks, way):
    root = write_all(tmp_path, {"runs/exp_1/own/Andy_0_0.json": 1, "runs/exp_1/new/Andy_0_0.json": 1})
    folders = [root / "runs/exp_1/own", root / "runs/exp_1/new"]

    def read(**options):
        return (
            runs_df(root / "runs", tasks, **options) if way == "load" else aggregate_results(folders, tasks, **options)
        )

    assert sorted(zip(read()["task_id"], read()["has_definition"], strict=True)) == [("new", False), ("own", True)]
    assert read(missing="skip")["task_id"].tolist() == ["own"]
    with pytest.raises(SourceError, match="no definition of task 'new'"):
        read(missing="raise")
    with pytest.raises(ValueError, match="missing 'drop'"):
        read(missing="drop")


def test_a_skipped_run_stays_in_the_ledger(tmp_path, tasks):
    root = write_all(tmp_path, {"runs/exp_1/new/Andy_0_0.json": 1})
    logs = load(root / "runs", tasks, missing="skip")
    row = logs.ledger[logs.ledger["source"].str.endswith("Andy_0_0.json")]
    assert row[["status", "reason"]].to_numpy().tolist() == [["skipped", "no definition of task new"]]


@pytest.mark.parametrize("kind", [str, list, tuple, dict, TaskDefinitions])
def test_definitions_may_be_given_in_any_form(tmp_path, kind):
    path = str(write(tmp_path / "tasks.json", {"cook": TWO}))
    given = {
        str: path,
        list: [path],
        tuple: (path, path),
        dict: {"cook": TWO},
        TaskDefinitions: TaskDefinitions({"cook": TWO}),
    }
    root = write_all(tmp_path, {"runs/exp_1/cook/Andy_0_0.json": 1})
    assert runs_df(root / "runs", given[kind])["has_definition"].tolist() == [True]


@pytest.mark.parametrize("tasks", ["", [], [""]])
def test_no_definitions_are_all_right(tmp_path, tasks):
    root = write_all(tmp_path, {"runs/exp_1/cook/Andy_0_0.json": 1})
    assert runs_df(root / "runs", tasks)["has_definition"].tolist() == [False]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
definition = st.dictionaries(st.sampled_from(sorted(TASK_KEYS)) | st.text(max_size=3), anything, max_size=5)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(anything | st.dictionaries(st.sampled_from(["cook", "same", "goal"]), definition | anything))
@example({"cook": {"goal": "x", "timeout": 10**400, "agent_count": 10**30, "difficulty_metrics": {"n": 10**400}}})
def test_any_file_of_definitions_is_loaded(tmp_path, content):
    write(tmp_path / "tasks/any.json", json.dumps(content).encode())
    write(tmp_path / "tasks/good.json", {"good": TWO})
    logs = load(write_all(tmp_path / "runs", {"exp_1/cook/Andy_0_0.json": 1}), tmp_path / "tasks")
    assert logs.runs["task_id"].tolist() == ["cook"]
    assert logs.ledger["source"].str.endswith("any.json").sum() == 1
