"""A folder in, frames and a ledger out: nothing lost, nothing doubled, dtypes as declared."""

import math
import os
import re

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.mindcraft import (
    agents_df,
    aggregate_results,
    aggregate_results_to_dataframe,
    analyze_agent_log,
    extract_task_outcome,
    load,
    models,
    runs_df,
)
from evalkit.mindcraft.table import AGENTS, FLAGS, LOG_FLAGS, RUNS
from tests.mindcraft.builders import EXPERIMENT, SCORE, log, task, write, write_all

DTYPES = {"str": "str", "name": "str", "int": "int64", "int?": "Int64", "float": "float64", "bool": "bool",
          "bool?": "boolean", "list": "object", "time": "datetime64[ms, UTC]"}  # fmt: skip


def test_rows_say_what_each_log_says(tmp_path):
    files = {"exp_1/cook/Andy_0_0.json": log(f"{SCORE}0.5", start=5), "exp_1/cook/Jill_1_0.json": b""}
    logs = load(write_all(tmp_path, files))
    (run,) = logs.runs.to_dict("records")
    good, broken = logs.agents.to_dict("records")
    empty = "JSONDecodeError: the file is empty"
    assert (run["parsing_errors"], run["final_system_message"]) == (empty, f"{SCORE}0.5")
    assert (run["message_count"], run["command_count"]) == (3, 1)
    assert [good[name] for name in ("agent_name", "raw_score", "completion_status", "agent_log_processed")] == [
        "Andy_0", 0.5, "FAILED_PARTIAL_SCORE", True,
    ]  # fmt: skip
    assert (good["parsing_errors"], good["final_system_message"], good["task_start"]) == ("", f"{SCORE}0.5", 5)
    assert (good["message_count"], good["command_count"], good["skipped_turns"]) == (3, 1, 0)
    assert [broken[name] for name in ("agent_name", "completion_status", "agent_log_processed", "parsing_errors")] == [
        "Jill_1", "LOG_FILE_ERROR", False, empty,
    ]  # fmt: skip
    assert pd.isna(broken["raw_score"])
    assert broken["message_count"] == 0


def declared(columns) -> dict[str, str]:
    return {column.name: DTYPES.get(column.dtype, column.dtype) for column in columns}


@pytest.mark.parametrize("files", [{"exp_1/cook/Andy_0_0.json": 1}, EXPERIMENT], ids=["one run", "mixed"])
def test_frames_have_the_columns_and_dtypes_declared(tmp_path, files):
    logs = load(write_all(tmp_path, files))
    assert {name: str(dtype) for name, dtype in logs.runs.dtypes.items()} == declared(RUNS)
    assert {name: str(dtype) for name, dtype in logs.agents.dtypes.items()} == declared(AGENTS)
    assert list(logs.ledger) == ["source", "status", "reason"]


OTHERS = {
    "trace": {"event_history": [], "session_metadata": {}},
    "history": [{"step_index": 0, "function_name": "plot", "success": True}],
    "inspect": {"version": 2, "status": "success", "eval": {"run_id": "x"}},
    "broken trace": b'{"event_history": [',
    "settings": {"a": 1},
    "broken": b"{",
    "profile": {"model": "m"},
}


@pytest.mark.parametrize("read", [load, runs_df, agents_df, models])
@pytest.mark.parametrize(
    ("names", "looks"),
    [
        ([], "there is no file"),
        (["trace", "history"], "2 files; 1 looks like a Crafter session trace, 1 looks like an execution history"),
        (["inspect"], "1 file; 1 looks like an inspect_ai log"),
        (["broken trace", "settings"], "2 files; 1 looks like a Crafter session trace); `evalkit crafter` reads those"),
        (["settings", "broken", "profile"], "3 files, broken or of no kind that evalkit knows"),
    ],
)
def test_a_source_without_any_agent_log_is_an_error_that_says_what_it_holds(tmp_path, read, names, looks):
    root = write_all(tmp_path / "runs", {f"exp_1/cook/{name}.json": OTHERS[name] for name in names})
    root.mkdir(exist_ok=True)
    with pytest.raises(SourceError, match=f"^{re.escape(str(root))}: no Mindcraft agent log .*{re.escape(looks)}"):
        read(root)


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("trace", "skipped", "not an agent log: Crafter session trace"),
        ("history", "skipped", "not an agent log: execution history"),
        ("inspect", "skipped", "not an agent log: inspect_ai log"),
        (
            "broken trace",
            "failed",
            "JSONDecodeError: Input data was truncated (by its beginning: Crafter session trace)",
        ),
    ],
)
def test_logs_of_another_kind_beside_runs_are_no_runs(tmp_path, name, status, reason):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "exp_1/other/x.json": OTHERS[name]})
    write(root / "exp_1/cook/y.json", OTHERS[name])
    logs = load(root, {"cook": task(agent_count=1)})
    assert logs.runs[["task_id", "total_agent_logs_found"]].to_numpy().tolist() == [["cook", 1]]
    found = logs.ledger[~logs.ledger["source"].str.endswith("Andy_0_0.json")]
    assert found[["status", "reason"]].to_numpy().tolist() == [[status, reason]] * 2


def test_functions_for_single_logs_and_folders_answer_for_what_they_are_given(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": b"{", "exp_1/trace/x.json": OTHERS["trace"]})
    assert analyze_agent_log(root / "exp_1/trace/x.json")["completion_status"] == "LOG_FILE_ERROR"
    assert extract_task_outcome(root / "exp_1/cook", task())["overall_completion_status"] == "LOG_FILE_ERROR"
    assert extract_task_outcome(root / "exp_1/trace", task())["total_agent_logs_found"] == 0
    runs = aggregate_results([root / "exp_1/cook", root / "exp_1/trace"])
    assert runs["overall_completion_status"].tolist() == ["LOG_FILE_ERROR", "NO_SCORE_LOGGED"]


def test_columns_are_written_down_once_with_their_meaning():
    for columns in (RUNS, AGENTS):
        names = [column.name for column in columns]
        assert len(set(names)) == len(names)
        assert all(column.meaning for column in columns)
    assert {f"flag_{name}" for name in FLAGS} <= {column.name for column in RUNS}
    assert {n for n in declared(AGENTS) if n.startswith("flag_")} == {f"flag_{name}" for name in LOG_FLAGS}


def test_agents_hold_one_row_per_log_and_the_ids_of_all_frames(tmp_path):
    logs = load(write_all(tmp_path, EXPERIMENT))
    assert len(logs.agents) == logs.runs["total_agent_logs_found"].sum()
    keys = ["model_name", "task_id", "repetition", "experiment"]
    merged = logs.agents.merge(logs.runs, on=keys, how="left", validate="many_to_one")
    assert merged["overall_completion_status"].notna().all()
    assert set(map(tuple, logs.agents[keys].to_numpy())) == set(map(tuple, logs.runs[keys].to_numpy()))


@pytest.mark.parametrize(
    ("metrics", "dtype", "values"),
    [
        ([1, 2.5], "float64", [1.0, 2.5]),
        ([1, None], "float64", [1.0, math.nan]),
        ([None, None], "float64", [math.nan, math.nan]),
        ([True, None], "boolean", [True, None]),
        (["easy", "hard"], "str", ["easy", "hard"]),
        ([1, "hard"], "str", ["1", "hard"]),
        ([True, 2], "str", ["True", "2"]),
        ([[1, 2], []], "str", ["[1, 2]", "[]"]),
        ([10**400, 1], "str", None),
    ],
)
def test_metrics_of_definitions_become_columns_of_one_kind(tmp_path, metrics, dtype, values):
    tasks = {f"t{i}": task(difficulty_metrics={"m": value, "in": {"deep": i}}) for i, value in enumerate(metrics)}
    runs = runs_df(write_all(tmp_path, {f"exp_1/{name}/Andy_0_0.json": 1 for name in tasks}), tasks)
    assert str(runs["metric_m"].dtype) == dtype
    assert runs["metric_in_deep"].tolist() == [0.0, 1.0]
    if values:
        assert runs["metric_m"].isna().tolist() == [pd.isna(value) for value in values]
        assert runs["metric_m"].dropna().tolist() == [value for value in values if not pd.isna(value)]


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


def test_each_experiment_has_the_scale_of_all(tmp_path):
    root = write_all(tmp_path, construction({"exp_1/a": 1, "exp_1/b": 40, "exp_2/a": 1, "exp_2/b": 0.4, "exp_3/a": 0}))
    assert {scale for scale, _, _ in scored(root).values()} == {"percent"}


@pytest.mark.parametrize(("scale", "score"), [("percent", 0.01), ("fraction", 1.0)])
def test_a_stated_scale_is_taken_and_not_flagged(tmp_path, scale, score):
    root = write_all(tmp_path, construction({"exp_1/a": 1}))
    assert scored(root, scale=scale) == {"exp_1/a": (scale, score, False)}


def test_cooking_scores_do_not_decide_the_scale(tmp_path):
    root = write_all(tmp_path, {"exp_1/a/Andy_0_0.json": 1, "exp_1/c/Andy_0_0.json": 50})
    runs = runs_df(root, {"a": task("construction", 1), "c": task("cooking", 1)}).set_index("task_id")
    assert runs.loc["a", "score_scale"] == "fraction"
    assert runs.loc["c", "flag_score_out_of_range"]


def test_an_empty_task_folder_is_a_run_without_score(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1})
    for name in ("exp_1/known", "exp_1/multiagent_cooking_1_bread", "exp_1/pictures", "cooking"):
        (root / name).mkdir()
    write(root / "exp_1/known_too/last_profile.json", {"model": "m"})
    write(root / "exp_1/multiagent_cooking_1_cake/plot.svg", "<svg/>")
    write(root / "exp_1/multiagent_cooking_2/hells_kitchen_progress.json", {"taskId": "x"})
    logs = load(root, {"known": task(), "known_too": task(), "cook": task(agent_count=1)})
    runs = logs.runs.set_index("task_id")
    assert set(runs.index) == {
        "cook", "known", "known_too", "multiagent_cooking_1_bread", "multiagent_cooking_2",
    }  # fmt: skip
    for name in set(runs.index) - {"cook"}:
        assert runs.loc[name, "overall_completion_status"] == "NO_SCORE_LOGGED"
        assert runs.loc[name, "total_agent_logs_found"] == 0
    assert runs.loc["known", "flag_missing_agent_logs"]


def test_a_folder_named_like_a_log_is_a_folder(tmp_path):
    (tmp_path / "exp_1/cook/x.json").mkdir(parents=True)
    logs = load(write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1}))
    assert logs.runs["total_agent_logs_found"].tolist() == [1]


@pytest.mark.parametrize("where", [".", "exp_1", "exp_1/cook", "exp_1/cook/Andy_0_0.json"])
def test_any_level_may_be_loaded(tmp_path, where):
    runs = runs_df(write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1}) / where)
    assert runs[["task_id", "experiment", "overall_is_successful"]].to_numpy().tolist() == [["cook", "exp_1", True]]


def test_a_relative_path_gives_relative_sources(tmp_path, monkeypatch):
    write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1})
    monkeypatch.chdir(tmp_path)
    assert agents_df("exp_1")["source"].tolist() == ["exp_1/cook/Andy_0_0.json"]


def test_models_are_listed_sorted(tmp_path):
    assert models(str(write_all(tmp_path, {"x/b/t/agent_0.json": 1, "x/a/t/agent_0.json": 1}))) == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"scale": "x"}, ValueError),
        ({"missing": "x"}, ValueError),
        ({"layout": "{x}"}, SourceError),
        ({"tasks": "gone.json"}, SourceError),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, error):
    with pytest.raises(error, match=r"x|gone"):
        load(tmp_path, **options)


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone"):
        load(tmp_path / "gone")


def test_folders_are_aggregated_with_model_names(tmp_path):
    root = write_all(tmp_path, {**EXPERIMENT, "x/gpt/cook/agent_0.json": 0, "x/gpt/empty/.keep": ""})
    folders = [root / "exp_1/cook", root / "exp_1/other", root / "x/gpt/cook", root / "x/gpt/empty"]
    runs = aggregate_results(folders, {"cook": task(agent_count=1)})
    assert runs[["model_name", "task_id", "repetition"]].to_numpy().tolist() == [
        ["m", "cook", 0], ["m", "cook", 1], ["m", "other", 0], ["gpt", "cook", 0], ["gpt", "empty", 0],
    ]  # fmt: skip
    assert runs["has_definition"].tolist() == [True, True, False, True, False]


def test_a_folder_given_twice_counts_once(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1})
    runs = aggregate_results([root / "exp_1/cook", f"{root}/exp_1/../exp_1/cook/"])
    assert runs["total_agent_logs_found"].tolist() == [1]


def test_no_folders_give_an_empty_frame():
    assert {n: str(d) for n, d in aggregate_results([]).dtypes.items()} == declared(RUNS)


@pytest.mark.parametrize("name", ["gone", "file.json"])
def test_what_is_no_folder_can_not_be_aggregated(tmp_path, name):
    write(tmp_path / "file.json", log())
    with pytest.raises(SourceError, match=name):
        aggregate_results([tmp_path / name])


def test_outcomes_become_the_same_frame(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "exp_1/cook/Jill_1_0.json": None})
    definition = task(difficulty_metrics={"total_recipe_steps": 4})
    mine = aggregate_results_to_dataframe(iter([extract_task_outcome(root / "exp_1/cook", definition)]))
    theirs = aggregate_results([root / "exp_1/cook"], {"cook": definition})
    named = ["model_name", "model_source", "experiment", "experiment_folder", "definition_file"]
    assert mine.drop(columns=named).equals(theirs.drop(columns=named))
    assert mine["model_name"].isna().all()
    assert mine.dtypes.equals(theirs.dtypes)


def test_a_name_that_is_not_utf8_is_written_out(tmp_path):
    name = b"task\xff"
    os.makedirs(os.path.join(os.fsencode(tmp_path), b"exp_1", name))
    with open(os.path.join(os.fsencode(tmp_path), b"exp_1", name, b"Andy_0_0.json"), "wb") as file:
        file.write(b"[]")
    assert runs_df(tmp_path)["task_id"].tolist() == [r"task\udcff"]


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
