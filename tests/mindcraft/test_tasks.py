"""Task definitions: files, folders and globs, ids that mean different things, and what each task asks for."""

import json
import re
import shutil

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.display.follow import Following
from evalkit.io import SourceError
from evalkit.io.frames import frame
from evalkit.mindcraft import collect, load, load_task_definitions, runs_df
from evalkit.mindcraft.kind import KIND
from evalkit.mindcraft.parse import TASK_KEYS
from evalkit.mindcraft.table import RUNS
from evalkit.mindcraft.tasks import metrics_of, task_facts
from tests.mindcraft.builders import ANYTHING, task, write, write_all

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
    ("place", "options", "defined"),
    [
        ("exp", {}, True),
        ("exp", {"tasks": "elsewhere.json"}, False),
        ("exp/runs", {}, False),  # the folder is beside the source
        ("exp.zip", {}, True),
        ("dataset", {}, True),
        ("misnamed", {}, False),  # its folder tasks has no definitions
    ],
)
def test_definitions_are_taken_from_the_folder_tasks_of_the_source_unless_others_are_named(
    tmp_path, monkeypatch, place, options, defined
):
    monkeypatch.chdir(tmp_path)
    log = {"turns": [{"role": "system", "content": "Task ended with score : 1"}]}
    files = {
        "exp/runs/m/cook/Andy_0.json": log,
        "exp/tasks/cooking.json": {"cook": TWO},
        "misnamed/tasks/m/cook/Andy_0.json": log,
        "elsewhere.json": {"other": THREE},
    }
    write_all(tmp_path, files)
    shutil.make_archive("exp", "zip", "exp")
    collect("exp", "dataset")
    assert load(place, **options).runs["has_definition"].tolist() == [defined]


def test_following_takes_the_definitions_in_the_source_too(tmp_path):
    log = {"turns": [{"role": "system", "content": "Task ended with score : 1"}]}
    write_all(tmp_path, {"runs/m/cook/Andy_0.json": log, "tasks/cooking.json": {"cook": TWO}})
    following = Following(KIND, str(tmp_path), {})
    following.look()
    assert following.logs.runs["has_definition"].tolist() == [True]


TOGETHER = "cooking_tasks/test cooking_tasks/train/3_agent.json"


@pytest.mark.parametrize("paths", [".", "cooking_tasks", "**/*.json", "cooking_tasks/*", TOGETHER])
def test_files_folders_and_globs_are_taken(tasks, paths):
    definitions = load_task_definitions(*(tasks / path for path in paths.split()))
    assert set(definitions) == {"cook", "same", "own"}
    assert list(definitions.ambiguous) == ["cook"]
    assert [path[-12:] for path in definitions.ambiguous["cook"]] == ["2_agent.json", "3_agent.json"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a.txt": "x"}, "no task definition in its 0 JSON files"),
        ({"a.json": {}, "b.json": b"{"}, "no task definition in its 2 JSON files, as {}/a.json: no task"),
    ],
)
def test_a_folder_without_any_definition_is_an_error_that_names_it(tmp_path, files, reason):
    folder = write_all(tmp_path / "tasks", files)
    with pytest.raises(SourceError, match=re.escape(f"{folder}: {reason.format(folder)}")):
        load_task_definitions(write(tmp_path / "good.json", {"a": TWO}), folder)


@pytest.mark.parametrize(
    ("task_id", "task_path", "logs", "agents", "ambiguous"),
    [
        ("cook", "tasks/cooking_tasks/train/3_agent.json", 2, 3, False),
        ("cook", "/elsewhere/tasks/cooking_tasks/test/2_agent.json", 3, 2, False),
        ("cook", "tasks\\cooking_tasks\\train\\3_agent.json", 2, 3, False),
        ("cook", "tasks/other.json", 3, 3, True),
        ("cook", None, 1, 2, True),
        ("own", "3_agent.json", 2, 3, False),
        ("own", "tasks/other.json", 3, 3, True),  # where it may be defined otherwise
    ],
)
def test_differing_definitions_are_chosen_by_the_file_else_by_the_logs_and_flagged(
    tmp_path, tasks, task_id, task_path, logs, agents, ambiguous
):
    files = {f"runs/exp_1/{task_id}/{name}_0.json": 1 for name in ("Andy_0", "Jill_1", "Bob_2")[:logs]}
    files["runs/exp_1/results.txt"] = repr({"model": "m"} | ({"task_path": task_path} if task_path else {}))
    (run,) = runs_df(write_all(tmp_path, files) / "runs", tasks).to_dict("records")
    assert (run["agent_count"], run["flag_ambiguous_definition"]) == (agents, ambiguous)
    assert f"{agents}_agent.json" in run["definition_file"]
    assert (run["has_definition"], run["flag_missing_agent_logs"]) == (True, logs < agents)


definition = st.dictionaries(st.sampled_from(sorted(TASK_KEYS)) | st.text(max_size=3), ANYTHING, max_size=5)


@pytest.mark.parametrize(
    ("content", "status", "reason", "ids"),
    [
        ({"a": TWO}, "used", "task definitions", {"a"}),
        ({"a": TWO, "b": 5, "c": {"x": 1}}, "used", "no definitions: b, c", {"a"}),
        ({**TWO, "task_id": "named"}, "used", "task definitions", {"named"}),
        ({}, "skipped", "another shape", set()),
        ({"name": "Andy", "model": "m"}, "skipped", "agent profile", set()),
        ({"turns": [], "memory": ""}, "skipped", "another shape", set()),
        ({"taskId": "x", "score": 1}, "skipped", "Hell's Kitchen progress", set()),
        (b'{"a": {"goal"', "failed", "JSONDecodeError", set()),
        (None, "failed", "FileNotFoundError", set()),
    ],
)  # fmt: skip
def test_every_file_of_a_folder_is_in_the_ledger_with_what_it_holds(tmp_path, content, status, reason, ids):
    write(tmp_path / "other.json", {"good": TWO})
    path = tmp_path / "one.json"
    write(path, content) if content is not None else path.symlink_to("gone.json")
    definitions = load_task_definitions(tmp_path)
    assert set(definitions) == ids | {"good"}
    (entry,) = (entry for entry in definitions.ledger.entries if entry.source == str(path))
    assert entry.status == status
    assert reason in entry.reason


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANYTHING | st.dictionaries(st.sampled_from(["cook", "same", "goal"]), definition | ANYTHING))
@example({"cook": {"goal": "x", "timeout": 10**400, "agent_count": 10**30, "difficulty_metrics": {"n": 10**400}}})
def test_any_file_of_definitions_is_loaded(tmp_path, content):
    write(tmp_path / "tasks/any.json", json.dumps(content).encode())
    write(tmp_path / "tasks/good.json", {"good": TWO})
    logs = load(write_all(tmp_path / "runs", {"exp_1/cook/Andy_0_0.json": 1}), tmp_path / "tasks")
    assert logs.runs["task_id"].tolist() == ["cook"]
    assert logs.ledger["source"].str.endswith("any.json").sum() == 1


COOK = "multiagent_cooking_2_1_bread_1_cake"
PLAN = "!getCraftingPlan"


@pytest.mark.parametrize(
    ("task_id", "definition", "expected"),
    [
        # the type: `type`, else `task_type`, else the id
        ("x", task("crafting"), {"task_type": "techtree"}),
        ("x", {"task_type": "construction"}, {"task_type": "construction"}),
        ("materials_3_rooms_2_window_0_carpet_0_variant_1", None,
         {"task_type": "construction", "materials": 3, "rooms": 2}),
        (f"materials_{'9' * 30}_rooms_1", None, {"materials": None, "rooms": 1}),
        # agents, timeout, difficulty
        (COOK, task(agent_count="4", timeout=500, difficulty="hard"),
         {"agent_count": 4, "timeout": 500.0, "difficulty": "hard"}),
        (COOK, task(agent_count=None, difficulty_metrics={"difficulty_category": "easy"}),
         {"agent_count": None, "timeout": 300.0, "difficulty": "easy"}),
        (COOK, task(agent_count=0, timeout=10**400), {"agent_count": None, "timeout": 300.0}),
        (f"{COOK}_num_agents_5", None, {"agent_count": 5}),
        # cooking: blocked agents from the definition, never from the id beside it
        (COOK, task(blocked_access_to_recipe=[0, "0", 1]), {"n_blocked_agents": 2}),
        (f"{COOK}_blocked_access_0_1", task(agent_count=1), {"n_blocked_agents": 0, "agent_count": 1}),
        (f"{COOK}_blocked_access_0_1", None, {"n_blocked_agents": 2}),
        # by the id alone: no suffix says that nobody is blocked, where the id is one of cooking at all
        (COOK, None, {"task_type": "cooking", "n_blocked_agents": 0, "requires_crafting_table": None}),
        ("bread_cake_hells_kitchen", None, {"n_blocked_agents": 0, "hells_kitchen": True}),
        ("my_cooking_test", None, {"task_type": "cooking", "n_blocked_agents": None}),
        (f"{COOK}_blocked_access_all", None, {"n_blocked_agents": None}),
        *((f"multiagent_cooking_1_egg{end}", None, {"n_blocked_agents": None, "target_items": ["egg"]})
          for end in ("_blocked_2", "_2_blocked_agents", "_n_blocked_1")),
        # targets
        (COOK, task(target={"cake": 1, "bread": 1}), {"target_items": ["bread", "cake"], "hells_kitchen": False}),
        (COOK, task(target=["cake", "bread"]), {"target_items": ["bread", "cake"], "hells_kitchen": True}),
        ("multiagent_cooking_2_1_baked_potato_1_golden_apple_blocked_access_1", None,
         {"target_items": ["baked_potato", "golden_apple"], "n_blocked_agents": 1}),
        # crafting: the plan, by how many agents have it blocked
        ("x_depth_2", task("techtree", depth=1, missing_items=["stick"], requires_ctable=True),
         {"plan_availability": "full", "depth": 1, "missing_items": ["stick"], "requires_crafting_table": True}),
        ("x_with_plan", task("techtree", blocked_actions={"0": [PLAN], "1": []}, requires_crafting_table=False),
         {"plan_availability": "partial", "requires_crafting_table": False}),
        ("x", task("techtree", target="bed", blocked_actions={"0": [PLAN]}),
         {"plan_availability": "partial", "target_items": ["bed"]}),
        ("x", task("techtree", blocked_actions={"0": [PLAN], "1": [PLAN]}), {"plan_availability": "none"}),
        ("no_plan", task("techtree", 3, blocked_actions={"0": [PLAN], "1": [PLAN]}), {"plan_availability": "partial"}),
        ("multiagent_crafting_x_partial_plan_requires_ctable__depth_2", None,
         {"plan_availability": "partial", "depth": 2, "requires_crafting_table": True}),
        ("multiagent_crafting_x", None, {"plan_availability": None, "depth": None}),
    ],
)  # fmt: skip
def test_task_facts_come_from_the_definition_and_else_from_the_id(task_id, definition, expected):
    facts = task_facts(task_id, definition)
    assert {name: facts[name] for name in expected} == expected


@given(
    st.text(max_size=30) | st.sampled_from([COOK, "multiagent_crafting_x", "materials_1_rooms_1"]),
    st.none()
    | st.dictionaries(st.sampled_from(sorted(TASK_KEYS)), ANYTHING | st.sampled_from(["cooking", "techtree", 10**400])),
)
def test_any_definition_gives_facts_that_fit_a_frame(task_id, definition):
    facts = task_facts(task_id, definition)
    assert set(facts) == set(task_facts("", None))
    columns = [column for column in RUNS if column.name in facts and column.name != "agent_count"]
    assert len(frame([facts], columns)) == 1


def test_metrics_may_stand_beside_those_of_the_difficulty():
    definition = task(total_recipe_steps=7, unique_target_items=2, difficulty_metrics={"total_recipe_steps": 5, "n": 1})
    assert metrics_of(definition) == {"total_recipe_steps": 5, "unique_target_items": 2, "n": 1}
    assert metrics_of(task(total_recipe_steps=7)) == {"total_recipe_steps": 7}
