"""A folder in, frames and a ledger out: nothing lost, nothing doubled, dtypes as declared."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.mindcraft import (
    aggregate_results,
    aggregate_results_to_dataframe,
    extract_task_outcome,
    load,
    runs_df,
)
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, RUNS
from tests.mindcraft.builders import EXPERIMENT, SCORE, log, task, write, write_all

DTYPES = {"str": "str", "name": "str", "int": "int64", "int?": "Int64", "float": "float64", "bool": "bool",
          "bool?": "boolean", "list": "object", "time": "datetime64[ms, UTC]"}  # fmt: skip


def declared(columns) -> dict[str, str]:
    return {column.name: DTYPES.get(column.dtype, column.dtype) for column in columns}


@pytest.mark.parametrize("files", [{"exp_1/cook/Andy_0_0.json": 1}, EXPERIMENT], ids=["one run", "mixed"])
def test_frames_have_the_columns_and_dtypes_declared(tmp_path, files):
    logs = load(write_all(tmp_path, files))
    assert {name: str(dtype) for name, dtype in logs.runs.dtypes.items()} == declared(RUNS)
    assert {name: str(dtype) for name, dtype in logs.agents.dtypes.items()} == declared(AGENTS)
    assert list(logs.ledger) == ["source", "status", "reason"]


def construction(scores: dict[str, float]) -> dict:
    return {f"{name}/Andy_0_0.json": score for name, score in scores.items()}


def scored(root, **options) -> dict[str, tuple]:
    tasks = {name: task("construction", 1) for name in ("a", "b")}
    runs = runs_df(root, tasks, **options)
    keys = runs["experiment"] + "/" + runs["task_id"]
    rows = zip(runs["score_scale"], runs["overall_score"], runs["flag_scale_assumed"], strict=True)
    return dict(zip(keys, rows, strict=True))


@pytest.mark.parametrize(
    ("scores", "read"),
    [
        ([1, 40], [("percent", 0.01, False), ("percent", 0.4, False)]),
        ([1, 0.4], [("fraction", 1.0, True), ("fraction", 0.4, True)]),
        ([1, 0], [("fraction", 1.0, True), ("fraction", 0.0, False)]),
    ],
)
def test_the_scale_of_construction_is_decided_over_all_that_is_loaded(tmp_path, scores, read):
    root = write_all(tmp_path, construction(dict(zip(["exp_1/weak/a", "exp_2/strong/b"], scores, strict=True))))
    assert list(scored(root).values()) == read
    folders = sorted(root.glob("*/*/*"))
    runs = aggregate_results(folders, {name: task("construction", 1) for name in ("a", "b")})
    assert runs["overall_score"].tolist() == [score for _, score, _ in read]


def test_an_empty_task_folder_is_a_run_without_score(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1})
    for name in ("exp_1/known", "exp_1/multiagent_cooking_1_bread", "exp_1/pictures", "cooking"):
        (root / name).mkdir()
    write(root / "exp_1/known_too/last_profile.json", {"model": "m"})
    write(root / "exp_1/multiagent_cooking_1_cake/plot.svg", "<svg/>")
    write(root / "exp_1/multiagent_cooking_2/hells_kitchen_progress.json", {"taskId": "x"})
    logs = load(root, {"known": task(), "known_too": task(), "cook": task(agent_count=1)})
    runs = logs.runs.set_index("task_id")
    empty = ["known", "known_too", "multiagent_cooking_1_bread", "multiagent_cooking_2"]
    assert sorted(runs.index) == ["cook", *empty]
    assert set(runs.loc[empty, "overall_completion_status"]) == {"NO_SCORE_LOGGED"}
    assert set(runs.loc[empty, "total_agent_logs_found"]) == {0}
    assert runs.loc["known", "flag_missing_agent_logs"]


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"scale": "x"}, ValueError, "x"),
        ({"tasks": "gone.json"}, SourceError, "gone"),
        *(({"layout": layout}, SourceError, "model_name") for layout in
          ("{x}", "{model}/{task_id}", "{task_id}/{task_id}", "models/tasks", "{}", "/")),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(tmp_path, options, error, named):
    with pytest.raises(error, match=named):
        load(tmp_path, **options)


def test_folders_are_aggregated_with_model_names(tmp_path):
    root = write_all(tmp_path, {**EXPERIMENT, "x/gpt/cook/agent_0.json": 0, "x/gpt/empty/.keep": ""})
    folders = [root / "exp_1/cook", root / "exp_1/other", root / "x/gpt/cook", root / "x/gpt/empty"]
    runs = aggregate_results(folders, {"cook": task(agent_count=1)})
    assert runs[["model_name", "task_id", "repetition"]].to_numpy().tolist() == [
        ["m", "cook", 0], ["m", "cook", 1], ["m", "other", 0], ["gpt", "cook", 0], ["gpt", "empty", 0],
    ]  # fmt: skip
    assert runs["has_definition"].tolist() == [True, True, False, True, False]


def test_outcomes_become_the_same_frame(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "exp_1/cook/Jill_1_0.json": None})
    definition = task(difficulty_metrics={"total_recipe_steps": 4})
    mine = aggregate_results_to_dataframe(iter([extract_task_outcome(root / "exp_1/cook", definition)]))
    theirs = aggregate_results([root / "exp_1/cook"], {"cook": definition})
    named = ["model_name", "model_source", "experiment", "experiment_folder", "definition_file"]
    of_logs = ["started", "turns", "parsing_errors", "final_system_message", *(column.name for column in COUNT_COLUMNS)]
    assert mine.drop(columns=named + of_logs).equals(theirs.drop(columns=named + of_logs))
    assert mine["model_name"].isna().all()
    assert mine.dtypes.equals(theirs.dtypes)


names = st.sampled_from(
    ["Andy_0_0.json", "agent_1.json", "a.json", "results.txt", "results.json", "profile.json", "x.md"]
)
folders = st.sampled_from(["exp_1", "exp_1/cook", "cooking/a/b/c/d", "m/cook", "."])
values = st.sampled_from(
    [{}, [], {"turns": []}, {"model": ["x"]}, {"a": task()}, {"total": 1, "model": 3, "exp_name": {}}]
)
contents = st.binary(max_size=40) | values | st.just(log(f"{SCORE}1")) | st.text(max_size=20)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.tuples(folders, names).map("/".join), contents, max_size=6))
def test_any_content_of_a_folder_is_loaded(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("any")
    write(root / "good.json", {"good": task()})
    write(root / "exp_0/good/Andy_0_0.json", log(f"{SCORE}1"))
    for name, content in files.items():
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        write(root / name, data)
    logs = load(root, root)
    assert sorted(os.path.relpath(source, root) for source in logs.ledger["source"]) == sorted(
        os.path.normpath(name) for name in (*files, "good.json", "exp_0/good/Andy_0_0.json")
    )
    assert len(logs.agents) == logs.runs["total_agent_logs_found"].sum()


def entries(logs, root) -> dict[str, tuple[str, str]]:
    rows = zip(logs.ledger["source"], logs.ledger["status"], logs.ledger["reason"], strict=True)
    return {os.path.relpath(source, root): (status, reason) for source, status, reason in rows}


def test_every_file_is_in_the_ledger_once_with_its_reason(tmp_path):
    root = write_all(tmp_path, EXPERIMENT)
    os.symlink(root / "gone.json", root / "exp_1/other/Jill_1_0.json")
    logs = load(root)
    found = entries(logs, root)
    assert len(logs.ledger) == len(found)
    assert set(found) == {*EXPERIMENT, "exp_1/other/Jill_1_0.json"} - {"exp_1/.hidden/Andy_0_0.json"}
    assert logs.ledger["source"].is_monotonic_increasing
    used, failed = ([name.removeprefix("exp_1/") for name in sorted(found) if found[name][0] == status]
                    for status in ("used", "failed"))  # fmt: skip
    assert used == ["cook/Andy_0_0.json", "cook/Andy_0_1.json", "results.txt"]
    assert failed == ["cook/Jill_1_0.json", "other/Andy_0_0.json", "other/Jill_1_0.json"]
    assert found["exp_1/cook/Andy_0_1.json"][1] == "byte order mark removed"
    for name in ("tasks", "one_task"):
        assert found[f"exp_1/{name}.json"][1] == "not an agent log: task definitions"
    assert found["exp_1/last_profile.json"][1] == "not an agent log: agent profile"
    assert "Hell's Kitchen" in found["exp_1/cook/hells_kitchen_progress.json"][1]
    assert all(reason for name, (state, reason) in found.items() if state != "used")


RUN, TRACE = {"m/cook_1/Andy_0_0.json": 1}, {"session_id": "a", "event_history": []}
CHAT = {"messages": [{"role": "system", "content": f"{SCORE}1"}]}


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({**RUN, "m/fry/Andy_0_0.json": b"{"}, 2),  # beside other runs
        ({**RUN, "m/cook_1/Andy_0_1.json": b"{"}, 2),
        ({**RUN, "n/fry/Andy_0_0.json": b"{"}, 2),
        ({**RUN, "traces/1.json": b""}, 1),  # no run lies so high
        ({**RUN, "t/traces/1.json": b"", "t/traces/2.json": TRACE}, 1),
        ({**RUN, "t/traces/1.json": b"", "t/traces/2.json": CHAT}, 1),
        ({**RUN, "t/a/1.json": b"", "t/b/1.json": TRACE, "t/c/1.json": TRACE}, 1),
        ({**RUN, "t/multiagent_cooking_1/Andy_0_0.json": b""}, 2),
        ({**RUN, "m/cook_1/x.json": TRACE, "m/cook_1/Jill_0_0.json": b""}, 1),
        ({"a.json": TRACE, "b.json": TRACE, "c.json": b"", "m/cook/Andy_0_0.json": 1}, 1),
    ],
)
def test_a_broken_file_belongs_to_the_kind_of_its_siblings(tmp_path, files, runs):
    logs = load(write_all(tmp_path, files))
    assert len(logs.runs) == runs
    assert set(logs.runs["model_name"]) <= {"m", "n", "t"}
    assert len(logs.ledger) == len(files)
    assert set(logs.runs.loc[logs.runs["flag_unreadable_logs"], "task_id"]) <= {"fry", "cook_1", "multiagent_cooking_1"}
