"""A folder in, frames and a ledger out: nothing lost, nothing doubled, dtypes as declared."""

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError, frame
from evalkit.kinds import find_runs, has_flag
from evalkit.mindcraft import aggregate_results, aggregate_results_to_dataframe, extract_task_outcome, load
from evalkit.mindcraft.analysis import describe_scale
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, RUNS
from tests.mindcraft.builders import EXPERIMENT, SCORE, log, task, write, write_all


@pytest.mark.parametrize(
    ("scores", "read", "words"),
    [
        ([1, 40], [("percent", 0.01, False), ("percent", 0.4, False)], ["read as percentages", "the highest is 40"]),
        ([1, 0.5], [("fraction", 1.0, True), ("fraction", 0.5, True)],
         ["read as fractions", "The mean is 75 %", "1 of 2 runs is complete", "would be 0.75 %"]),
        ([0, 0], [("fraction", 0.0, False)] * 2, ["read as fractions"]),
    ],
)  # fmt: skip
def test_the_scale_of_construction_is_decided_over_all_that_is_loaded_and_said(tmp_path, scores, read, words):
    names = ("exp_1/weak/a/Andy_0_0.json", "exp_2/strong/b/Andy_0_0.json")
    root = write_all(tmp_path, dict(zip(names, scores, strict=True)))
    tasks = {name: task("construction", 1) for name in ("a", "b")}
    for runs in (load(root, tasks).runs, aggregate_results(sorted(root.glob("*/*/*")), tasks)):
        assert list(zip(runs["score_scale"], runs["score"], has_flag(runs, "scale_assumed"), strict=True)) == read
        assert [part for part in words if part not in describe_scale(runs)] == []


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
    found = runs.loc[empty, ["status", "total_agent_logs_found"]].to_numpy().tolist()
    assert found == [["NO_SCORE_LOGGED", 0]] * 4
    assert runs.loc["known", ["run_flags", "flat_layout"]].tolist() == [["missing_agent_logs"], False]


LAYOUTS = ("{x}", "{model}/{task_id}", "{task_id}/{task_id}", "models/tasks", "{}", "/")
WRONG = [({"scale": "x"}, "x"), ({"tasks": "gone.json"}, "gone"), *(({"layout": a}, "model_name") for a in LAYOUTS)]


@pytest.mark.parametrize(("options", "named"), WRONG)
def test_wrong_options_are_refused(tmp_path, options, named):
    with pytest.raises((ValueError, SourceError), match=named):
        load(tmp_path, **options)


def test_folders_are_aggregated_with_model_names(tmp_path):
    root = write_all(tmp_path, {**EXPERIMENT, "x/gpt/cook/agent_0.json": 0, "x/gpt/empty/.keep": ""})
    folders = [root / "exp_1/cook", root / "exp_1/other", root / "x/gpt/cook", root / "x/gpt/empty"]
    runs = aggregate_results(folders, {"cook": task(agent_count=1)})
    assert runs[["experiment", "model_name", "task_id", "repetition"]].to_numpy().tolist() == [
        *(["exp_1", "m", *run] for run in (("cook", 0), ("cook", 1), ("other", 0))),
        *(["x", "gpt", *run] for run in (("cook", 0), ("empty", 0))),
    ]
    assert runs["has_definition"].tolist() == [True, True, False, True, False]


def test_outcomes_become_the_same_frame(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "exp_1/cook/Jill_1_0.json": None})
    definition = task(difficulty_metrics={"total_recipe_steps": 4})
    mine = aggregate_results_to_dataframe(iter([extract_task_outcome(root / "exp_1/cook", definition)]))
    theirs = aggregate_results([root / "exp_1/cook"], {"cook": definition})
    assert find_runs(mine["run_id"], theirs["run_id"]).equals(theirs["run_id"].astype("object"))
    named = ["run_id", "model_name", "model_source", "experiment", "experiment_folder", "definition_file"]
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
GOOD = {"good.json": {"good": task()}, "exp_0/good/Andy_0_0.json": log(f"{SCORE}1")}


@settings(max_examples=12)
@given(st.dictionaries(st.tuples(folders, names).map("/".join), contents, max_size=6))
@example({})
@example(EXPERIMENT)
def test_any_folder_is_loaded_and_its_frames_have_the_columns_and_dtypes_declared(tmp_path_factory, files):
    root = write_all(tmp_path_factory.mktemp("any"), files := {**GOOD, **files})
    logs = load(root, root)
    for table, columns in ((logs.runs, RUNS), (logs.agents, AGENTS)):
        own = table.filter(regex="^(?!metric_)")
        assert own.dtypes.astype("str").equals(frame((), columns).dtypes.astype("str"))
    seen = sorted(os.path.normpath(name) for name in files if "/." not in name)
    assert sorted(os.path.relpath(source, root) for source in logs.ledger["source"]) == seen
    assert len(logs.agents) == logs.runs["total_agent_logs_found"].sum()


def test_every_file_is_in_the_ledger_once_with_its_reason(tmp_path):
    root = write_all(tmp_path, EXPERIMENT)
    os.symlink(root / "gone.json", root / "exp_1/other/Jill_1_0.json")
    logs = load(root)
    rows = zip(logs.ledger["source"], logs.ledger["status"], logs.ledger["reason"], strict=True)
    found = {os.path.relpath(source, root): (status, reason) for source, status, reason in rows}
    assert len(logs.ledger) == len(found)
    assert set(found) == {*EXPERIMENT, "exp_1/other/Jill_1_0.json"} - {"exp_1/.hidden/Andy_0_0.json"}
    assert logs.ledger["source"].is_monotonic_increasing
    unread = ["cook/Jill_1_0.json", "other/Andy_0_0.json", "other/Jill_1_0.json"]
    assert sorted(name.removeprefix("exp_1/") for name, (state, _) in found.items() if state == "failed") == unread
    said = {
        "cook/Andy_0_0.json": ("used", ""), "cook/Andy_0_1.json": ("used", "byte order mark removed"),
        "results.txt": ("used", "names the model"),
        **dict.fromkeys(("tasks.json", "one_task.json"), ("skipped", "not an agent log: task definitions")),
        "last_profile.json": ("skipped", "not an agent log: agent profile"),
        "cook/hells_kitchen_progress.json": ("skipped", "not an agent log: Hell's Kitchen progress"),
        "cook/coder.traj.json": ("skipped", "not an agent log: another kind of file, from its name"),
    }  # fmt: skip
    assert {name: found[f"exp_1/{name}"] for name in said} == said
    assert all(reason for state, reason in found.values() if state != "used")


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
        ({**RUN, "m/rollouts/cut.json": b"", "m/rollouts/x.json": TRACE}, 1),
        ({**RUN, "m/cook_1/x.json": TRACE, "m/cook_1/Jill_0_0.json": b""}, 1),
        ({"a.json": TRACE, "b.json": TRACE, "c.json": b"", "m/cook/Andy_0_0.json": 1}, 1),
    ],
)
def test_a_broken_file_belongs_to_the_kind_of_its_siblings(tmp_path, files, runs):
    logs = load(write_all(tmp_path, files))
    assert len(logs.runs) == runs
    assert set(logs.runs["model_name"]) <= {"m", "n", "t"}
    assert len(logs.ledger) == len(files)
    unreadable = logs.runs.loc[has_flag(logs.runs, "unreadable_logs"), "task_id"]
    assert set(unreadable) <= {"fry", "cook_1", "multiagent_cooking_1"}


@pytest.mark.parametrize(
    "content", [b"null", b"{}", b'{"memory": "m", "self_prompt": null}', b'{"error": "429"}', b"[1]", b"no JSON"]
)
def test_a_file_without_turns_in_the_folder_of_a_run_is_an_unreadable_log_of_it(tmp_path, content):
    only, beside = "exp_1/fry/Andy_0_0.json", "exp_1/cook_1/Bob_2_0.json"
    folder = write_all(tmp_path, {"exp_1/cook_1/Andy_0_0.json": 1, only: content, beside: content})
    logs = load(folder)
    assert logs.runs.set_index("task_id")["status"].to_dict() == {"cook_1": "SUCCESS", "fry": "LOG_FILE_ERROR"}
    assert logs.runs["total_agent_logs_found"].tolist() == [2, 1]
    reasons = logs.ledger.set_index("source").loc[[str(tmp_path / only), str(tmp_path / beside)]]
    assert set(reasons["status"]) == {"failed"}
    assert logs.runs["parsing_errors"].ne("").all()
    folders = sorted((tmp_path / "exp_1").iterdir())
    assert aggregate_results(folders)["status"].tolist() == ["SUCCESS", "LOG_FILE_ERROR"]
    outcomes = [extract_task_outcome(one, None) for one in folders]
    assert [one["overall_completion_status"] for one in outcomes] == ["SUCCESS", "LOG_FILE_ERROR"]
    assert [one["total_agent_logs_found"] for one in outcomes] == [2, 1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("exp_1/cook_1/notes.json", b'{"a": 1}'),
        ("exp_1/cook_1/last_profile.json", b'{"name": "Andy"}'),
        ("exp_1/settings.json", b'{"host": "x"}'),
        ("exp_1/data/ckpt_1.json", b'{"loss": 1}'),
        ("config/empty.json", b"{}"),
    ],
)
def test_files_that_are_plainly_something_else_are_no_logs(tmp_path, name, content):
    logs = load(write_all(tmp_path, {"exp_1/cook_1/Andy_0_0.json": 1, name: content}))
    assert logs.runs["total_agent_logs_found"].tolist() == [1]
    assert logs.ledger["status"].tolist().count("skipped") == 1


def test_the_agents_of_a_construction_have_scores_and_statuses_on_the_scale_of_their_runs(tmp_path):
    files = {f"e/construction_{name}/Andy_0_0.json": score for name, score in {"a": 1, "b": 100, "c": 0}.items()}
    logs = load(write_all(tmp_path, files))
    assert logs.agents["raw_score"].tolist() == [1, 100, 0]
    assert logs.agents["score"].tolist() == [0.01, 1, 0]
    statuses = ["FAILED_PARTIAL_SCORE", "SUCCESS", "FAILED_SCORE_ZERO"]
    assert logs.agents["completion_status"].tolist() == logs.runs["status"].tolist() == statuses
    outcome = extract_task_outcome(tmp_path / "e/construction_a", None, scale="percent")
    assert outcome["agent_outcomes"][0]["completion_status"] == "FAILED_PARTIAL_SCORE"


@pytest.mark.parametrize(
    ("scores", "scale", "doubtful"),
    [
        ({"new/o1": (100, 0), "old/phi": (1, 0.25, 0)}, "auto", ["phi in old"]),
        ({"new/o1": (100, 0), "new/phi": (1, 1)}, "auto", ["phi in new"]),
        ({"new/o1": (60, 0.5, 1), "new/phi": (0, 0), "new/small": (0, 0.4)}, "auto", []),
        ({"old/o1": (1, 0.5), "old/phi": (1, 0.25)}, "auto", []),
        ({"new/o1": (100, 0), "old/phi": (1, 0.25, 0)}, "percent", []),
    ],
)
def test_scores_that_may_be_on_another_scale_than_the_rest_are_named(tmp_path, scores, scale, doubtful):
    files = {}
    for folder, own in scores.items():
        files |= {f"{folder}/materials_{n}_rooms_1/Andy_0_0.json": score for n, score in enumerate(own)}
    logs = load(write_all(tmp_path, files), scale=scale)
    assert [note.values["names"] for note in logs.chosen.only("mixed_scales").notes] == doubtful


@pytest.mark.parametrize(
    ("file", "content", "tasks", "is_named"),
    [
        ("defs/all.json", {"cook": task(), "other": task()}, {}, True),
        ("m/cook.json", task(), {}, True),  # one definition, named by its file
        ("defs/one.json", task(task_id="cook"), {}, True),
        ("defs/others.json", {"other": task()}, {}, False),
        ("defs/all.json", {"cook": task()}, {"cook": task()}, False),
        ("tasks/all.json", {"cook": task()}, {}, False),  # it is used
    ],
)
def test_unused_definitions_of_the_runs_tasks_are_named(tmp_path, file, content, tasks, is_named):
    logs = load(write_all(tmp_path, {"m/cook/Andy_0_0.json": 1, file: content}), tasks)
    notes = logs.chosen.only("unused_definitions").notes
    assert [note.values["files"] for note in notes] == ([file] if is_named else [])
