"""Which logs belong to one run, in every layout, and which model ran."""

import re

import pytest

from evalkit.mindcraft import load, runs_df
from evalkit.mindcraft.analysis import data_findings
from evalkit.mindcraft.layout import split_repetitions
from evalkit.mindcraft.terminal import describe
from tests.mindcraft.builders import task, write_all

REPETITION, NUMBER, NAME, SINGLE = "last_number_is_repetition", "number_is_agent", "name_is_agent", "single"


@pytest.mark.parametrize(
    ("files", "agent_count", "rule", "expected"),
    [
        ("Andy_0_1", 1, SINGLE, {1: ["Andy_0"]}),
        ("Andy_0_0 Andy_0_1 Jill_1_0 Jill_1_1", None, REPETITION, {0: ["Andy_0", "Jill_1"], 1: ["Andy_0", "Jill_1"]}),
        ("Andy_0_0 Andy_0_1 Jill_1_1", 2, REPETITION, {0: ["Andy_0"], 1: ["Andy_0", "Jill_1"]}),
        ("Andy_0_0 Jill_1_1", 2, REPETITION, {0: ["Andy_0"], 1: ["Jill_1"]}),
        ("Andy_0_0 Andy_0_1", None, REPETITION, {0: ["Andy_0"], 1: ["Andy_0"]}),
        ("andy_0 andy_1", 2, NUMBER, {0: ["andy_0", "andy_1"]}),
        ("agent_1", 2, NUMBER, {0: ["agent_1"]}),
        ("Agent_0 Agent_1 stray", 1, NUMBER, {0: ["Agent_0", "Agent_1", "stray"]}),
        ("andy_0 andy_1 andy_2", 2, REPETITION, {0: ["andy"], 1: ["andy"], 2: ["andy"]}),
        ("andy_0 jill_1", 2, NAME, {0: ["andy_0", "jill_1"]}),
        ("andy_0 jill_0 andy_1 jill_1", 2, REPETITION, {0: ["andy", "jill"], 1: ["andy", "jill"]}),
        ("andy jill", 2, REPETITION, {0: ["andy", "jill"]}),
        ("andy", None, SINGLE, {0: ["andy"]}),
        ("", 2, "none", {0: []}),
    ],
)
def test_repetitions_are_distinguished_from_agents(files, agent_count, rule, expected):
    repetitions = split_repetitions(tuple(f"{name}.json" for name in files.split()), agent_count)
    assert {repetition.number: list(repetition.agents) for repetition in repetitions} == expected
    assert {repetition.rule for repetition in repetitions} == {rule}
    assert sorted(log for repetition in repetitions for log in repetition.logs) == list(range(len(files.split())))


@pytest.mark.parametrize(
    ("names", "agent_count", "is_told"),
    [
        ("a8f3e2 0d4fa2", 2, True),
        ("2025-03-01_10-00 2025-03-02_10-00", None, True),
        ("log_1757845200000 log_1757845300000", None, True),
        ("andy jill bob", 2, True),
        ("andy jill bob", None, False),
        ("Andy_0_0 Jill_1_0", None, False),
        ("gpt4_0 gpt4_1", None, False),
        ("gpt-4o claude-3-5", 2, False),
    ],
)
def test_terminal_and_pages_tell_of_logs_that_may_be_of_several_runs(tmp_path, names, agent_count, is_told):
    files = {f"x/m/cook/{name}.json": score for score, name in enumerate(names.split())}
    logs = load(write_all(tmp_path, files), {"cook": task(agent_count=agent_count)})
    assert (len(logs.runs), "1 run with more logs than agents" in str(describe(logs, {}))) == (1, is_told)
    assert ("merged" in [found.code for found in data_findings(logs.runs, logs.ledger)]) is is_told


NESTED = "experiments/cooking_03-20_10-00/cook_1/"
TASKS = {"cook_1": task(), "cook_1_more": task(), "solo": task(agent_count=1)}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([f"{NESTED}Andy_0_0.json", f"{NESTED}Andy_0_1.json"], [("cook_1", 0, 1), ("cook_1", 1, 1)]),
        (["small/llama/cook_1/agent_0.json", "small/llama/cook_1/agent_1.json"], [("cook_1", 0, 2)]),
        (["exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_jill_1_0.json"], [("cook_1", 0, 2)]),
        (["exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_more_andy_0_0.json"], [("cook_1", 0, 1), ("cook_1_more", 0, 1)]),
        (["exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_andy_0_1.json"], [("cook_1", 0, 1), ("cook_1", 1, 1)]),
        (
            ["exp_1/cook_1_2_bread_andy_0_0.json", "exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_3_andy_0_0.json"],
            [("cook_1", 0, 1), ("cook_1_2_bread", 0, 1), ("cook_1_3", 0, 1)],
        ),
        (["exp_1/cook_1/Andy_0_0.JSON", "exp_1/cook_1/Jill_1_0.Json"], [("cook_1", 0, 2)]),
        (["exp_1/unknown_task_Andy_0_1.json"], [("unknown_task", 1, 1)]),
        (["llama/cooking_1_A_0_0.json", "llama/cooking_2_A_0_0.json"], [("cooking_1", 0, 1), ("cooking_2", 0, 1)]),
        (["llama/unknown_1_Andy_0_0.json", "llama/unknown_2_Jill_1_0.json"], [("llama", 0, 2)]),
        (["cooking/org/llama/suite/exp/cook_1/Andy_0_0.json"], [("cook_1", 0, 1)]),
        ([f"{NESTED}cook_1_Andy_0_0.json"], [("cook_1", 0, 1)]),
        ([f"llama/cook_1/rep{i}/Andy_0_0.json" for i in "12"], [("cook_1", 0, 1)] * 2),  # a repetition of the task
        (["llama/cooking_7/2026-01-31/Andy_0_0.json"], [("cooking_7", 0, 1)]),
        (["exp/cooking/trial-1/Andy_0_0.json"], [("trial-1", 0, 1)]),  # a type is no task
        ([f"llama/my_cooking_tasks/{i}/Andy_0_0.json" for i in "12"], [("1", 0, 1), ("2", 0, 1)]),
        ([f"llama/cook_1/{i}/Andy_0_0.json" for i in "12"], [("cook_1", 0, 1)] * 2),
        # without server numbers
        ([f"o1/debug_{i}_{a}_0.json" for i in "12" for a in ("Al", "Bo")], [("debug_1", 0, 2), ("debug_2", 0, 2)]),
        ([f"o1/debug_1_{i}_{r}.json" for i in ("ab", "cd", "ef") for r in "01"],
         [(f"debug_1_{i}", r, 1) for i in ("ab", "cd", "ef") for r in (0, 1)]),
        ([f"o1/materials_2_rooms_1_variant_{i}.json" for i in "34"],
         [(f"materials_2_rooms_1_variant_{i}", 0, 1) for i in "34"]),
        ([f"o1/materials_2_rooms_1_variant_3_{r}.json" for r in "01"],
         [("materials_2_rooms_1_variant_3", r, 1) for r in (0, 1)]),
        ([f"o1/multiagent_crafting_{i}.json" for i in ("bed", "cup", "pot")],
         [(f"multiagent_crafting_{i}", 0, 1) for i in ("bed", "cup", "pot")]),
        (["o1/cook_1.json", "o1/solo_0.json", "o1/solo_1.json"], [("cook_1", 0, 1), ("solo", 0, 1), ("solo", 1, 1)]),
        (["o1/t/cooking_agent_0.json", "o1/t/cooking_agent_1.json"], [("t", 0, 2)]),  # a type alone is no task
    ],
)  # fmt: skip
def test_every_layout_gives_the_same_runs(tmp_path, files, expected):
    runs = runs_df(write_all(tmp_path, dict.fromkeys(files, 1)), TASKS)
    assert list(zip(runs["task_id"], runs["repetition"], runs["total_agent_logs_found"], strict=True)) == expected


RESULTS = "{'total': 3, 'successful': 1, 'exp_name': 'x', 'model': 'from-results', 'success_rate': nan}"
UNNAMED = {"total": 1, "successful": 1, "exp_name": "x"}
LOG = "exp_1/cook/Andy_0_0.json"
S3 = "cooking/from/s3/suite/exp/"


SOURCES = [
    ({LOG: 1}, ("unknown", "unknown")),
    ({LOG: 1, "exp_1/cook/results.txt": RESULTS}, ("from-results", "results")),
    ({LOG: 1, "exp_1/results.json": {"total": 1, "model": "a", "exp_name": "x"}}, ("a", "results")),
    ({LOG: 1, "results.txt": RESULTS}, ("unknown", "unknown")),
    ({LOG: 1, "exp_1/last_profile.json": {"name": "Andy", "model": "p"}}, ("p", "profile")),
    ({LOG: 1, "exp_1/Andy_0.json": {"name": "Andy", "model": {"api": "x", "model": "p"}}}, ("p", "profile")),
    ({LOG: 1, "exp_1/a.json": {"model": "b"}, "exp_1/c.json": {"model": "a"}}, ("a + b", "profile")),
    ({LOG: 1, "exp_1/profile.json": {"model": {"api": "x"}}}, ("unknown", "unknown")),
    ({f"{S3}cook/Andy_0_0.json": 1, f"{S3}results.txt": RESULTS}, ("from-results", "results")),
    ({"small/llama/cook/agent_0.json": 1, "small/llama/profile.json": {"model": "p"}}, ("p", "profile")),
    ({"small/llama/cooking_1_Andy_0_0.json": 1}, ("unknown", "unknown")),  # a run's folder, for all one knows
    ({"exp_1/cook_Andy_0_0.json": 1, "exp_1/results.txt": RESULTS}, ("from-results", "results")),
    ({LOG: 1, "exp_1/results.txt": RESULTS, "exp_1/cook/z.json": {"model": "p"}}, ("from-results", "results")),
    ({LOG: 1, "exp_1/results.txt": RESULTS, "exp_1/results.json": UNNAMED}, ("from-results", "results")),
]
S3_LIKE = [  # a path may be, unless a profile or the task tells otherwise
    ("crafting/study", {"E/gpt-4o/multiagent_cooking_1/agent_0.json": 1}, ("gpt-4o", "parent_folder")),
    ("crafting/team/evals", {LOG: 1, "exp_1/profile.json": {"model": "p"}}, ("p", "profile")),
    ("cooking/from", {"s3/suite/exp_1/multiagent_cooking_1/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
    ("cooking/from/s3/suite", {"named/multiagent_cooking_1/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
    ("cooking/from/s3/suite/named", {"multiagent_cooking_1/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
    ("cooking", {"from/s3/suite/exp/cook/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
    ("cooking", {"experiments/gpt-4o/exp_1/multiagent_cooking_1/Andy_0_0.json": 1}, ("unknown", "unknown")),
]


def names(root, **options) -> list[tuple[str, str]]:
    runs = runs_df(root, **options)
    return list(zip(runs["model_name"], runs["model_source"], strict=True))


@pytest.mark.parametrize(("where", "files", "expected"), [*(("experiments", *source) for source in SOURCES), *S3_LIKE])
def test_the_best_source_names_the_model(tmp_path, where, files, expected):
    assert names(write_all(tmp_path / where, files)) == [expected]


@pytest.mark.parametrize(
    ("source", "path", "model"),
    [
        ("experiments", "experiments/gpt-4o/cooking/exp_1/t", "gpt-4o"),
        ("experiments/gpt-4o/cooking", "experiments/gpt-4o/cooking/t", "gpt-4o"),  # above the source, by its layout
        ("experiments/gpt-4o/cooking/t", "experiments/gpt-4o/cooking/t", "gpt-4o"),
        ("experiments", "experiments/cooking/gpt-4o/t", "gpt-4o"),
        ("experiments", "experiments/cooking/t", "unknown"),
        ("gpt-4o", "gpt-4o/t", "gpt-4o"),
        ("work/t", "work/t", "unknown"),  # one task's folder; above it may lie anything
        ("work/t/Andy_0_0.json", "work/t", "unknown"),
        ("experiments", "experiments/gpt-4o/exp_1/t", "unknown"),
        ("study", "study/o1/run-3/t", "o1"),
        ("study", "study/o1/attempt2/2026-01-31_09-30/t", "o1"),
        ("study", "study/20260131/o1/t", "o1"),
        ("study/o1", "study/o1/trial_0/t", "o1"),
        ("study", "study/multiagent_o1/t", "multiagent_o1"),
        ("study", "study/multiagent_cooking_runs/t", "multiagent_cooking_runs"),
        ("study", "study/cooking_o1/t", "cooking_o1"),
        ("study/o1/trial_0", "study/o1/trial_0/t", "unknown"),  # above it may lie anything
        ("study", "study/o1/01-31/crafting/t", "o1"),
        ("runs", "runs/7/t", "unknown"),
    ],
)
def test_a_folder_names_a_model_in_the_source_or_above_a_task_type(tmp_path, monkeypatch, source, path, model):
    root = write_all(tmp_path / "someone", {f"{path}/Andy_0_0.json": 1})
    assert [name for name, _ in names(root / source)] == [model]
    monkeypatch.chdir((root / source).parent)
    assert [name for name, _ in names((root / source).name)] == [model]
    if model == "unknown":
        assert names(root / source, model="m") == [("m", "stated")]


@pytest.mark.parametrize(
    "task_ids", [["multiagent_techtree_2_shears", "materials_3_rooms_2_variant_1"], ["hut", "cup"]]
)
@pytest.mark.parametrize(
    "path",
    [
        "{model}/{task}/{rep}/Andy_0_0.json",
        "{model}/{task}/try_{rep}/output/Andy_0_0.json",
        "{model}/{task}/exp_{rep}/Andy_0_0.json",
        "{task}/{model}/Andy_0_{rep}.json",
        "{task}/{rep}/{model}/Andy_0_0.json",
        "exp_1/{task}/{model}/seed_{rep}/Andy_0_0.json",
        "{model}/{task}/night_{rep}/Andy_0_0.json",  # several models have the task, so the folder below it is none
        "{model}/2025-11-0{rep}/{task}/Andy_0_0.json",
        "my_cooking_tasks/{model}/{task}/Andy_0_{rep}.json",
        "{model}/{task}_Andy_{rep}.json",
    ],
)
def test_a_task_is_never_a_model(tmp_path, path, task_ids):
    models = ["o1", "claude_3_5"]
    files = {
        path.format(model=model, task=task_id, rep=rep): 1 for model in models for task_id in task_ids for rep in "12"
    }
    definitions = {} if "materials" in task_ids[1] else {task_id: task(agent_count=1) for task_id in task_ids}
    runs = load(write_all(tmp_path / "study", files), definitions).runs
    assert runs.groupby("model_name")["task_id"].value_counts().to_dict() == {
        (model, task_id): 2 for model in models for task_id in task_ids
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("__import__('os').system('touch {marker}')", "ValueError"),
        ("{{'model': open('{marker}', 'w').name}}", "ValueError"),
        ("", "SyntaxError"),
        ("[1]", "TypeError: no dictionary"),
        ("(" * 5000, "SyntaxError|MemoryError|RecursionError"),
        ("\0", "ValueError|SyntaxError"),
        ("#" * 200_000, "ValueError: 200000 bytes"),
    ],
)
def test_hostile_results_are_never_run_and_the_ledger_names_them(tmp_path, text, error):
    marker = tmp_path / "marker"
    logs = load(write_all(tmp_path / "logs", {LOG: 1, "exp_1/results.txt": text.format(marker=marker)}))
    assert not marker.exists()
    assert logs.runs["model_name"].tolist() == ["unknown"]
    (failed,) = logs.ledger[logs.ledger["status"] == "failed"].to_dict("records")
    assert failed["source"].endswith("results.txt")
    assert re.match(error, failed["reason"])


@pytest.mark.parametrize(
    ("layout", "path", "expected"),
    [
        ("{model_name}/{task_id}", "org/llama/cook", {"model_name": "org/llama", "task_id": "cook"}),
        ("{task_id}/{model_name}", "cook/exp_1", {"model_name": "exp_1", "task_id": "cook"}),
        ("{experiment}/{model_name}/t_{task_id}", "e/m/t_i", {"experiment": "e", "model_name": "m", "task_id": "i"}),
        ("{task_type}/{model_name}/{suite}/{experiment}/{task_id}", "crafting/org/m/s/e/it",
         {"task_type": "techtree", "model_name": "org/m", "suite": "s", "experiment": "e", "task_id": "it"}),
    ],
)  # fmt: skip
def test_a_stated_layout_is_followed(tmp_path, layout, path, expected):
    root = write_all(tmp_path, {f"{path}/Andy_0_0.json": 1, f"{path}/results.txt": RESULTS})
    (run,) = runs_df(root, layout=layout).to_dict("records")
    expected |= {"model_source": "layout", "flag_layout_mismatch": False}
    assert {name: run[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("paths", "is_said"), [(["m/cook"], True), (["exp_1/cook"], False), (["m/cook", "exp_1/cook"], False)]
)
def test_commands_say_that_folders_name_all_models(tmp_path, paths, is_said):
    logs = load(write_all(tmp_path, {f"{path}/Andy_0_0.json": 1 for path in paths}))
    assert ("--layout" in str(logs.chosen.only("parent_folder"))) is is_said


@pytest.mark.parametrize(
    ("folders", "models"),
    [
        (["o1/base/{}", "phi/base/{}", "phi/tuned/{}"], ["base", "tuned"]),
        (["construction_o1/materials_{}_rooms_1", "o1_techtree/multiagent_techtree_{}"], ["o1"]),
        (["cooking-o1/cooking_{}", "cooking-phi/cooking_{}"], ["cooking-o1", "cooking-phi"]),  # one type
        (["debug_o1/debug_{}", "debug-o1/debug_{}"], ["debug-o1", "debug_o1"]),
        (["cooking_o1/debug_{}", "techtree_o1/techtree_{}"], ["cooking_o1", "techtree_o1"]),
        (
            [f"{t}_o1/{task}_{{}}" for t in ("cooking", "crafting") for task in ("cooking", "techtree")],
            ["cooking_o1", "crafting_o1"],
        ),  # models that were trained on types of tasks
    ],
)
def test_folders_of_one_model_are_named_alike_and_said_to_be_pooled(tmp_path, folders, models):
    logs = load(write_all(tmp_path / "study", {f"{f.format(i)}/Andy_0_0.json": 1 for f in folders for i in "12"}))
    assert sorted(logs.runs["model_name"].unique()) == models
    assert "folders of the same name are one model" in str(logs.chosen)
