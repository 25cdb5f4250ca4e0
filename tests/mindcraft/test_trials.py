"""Which logs belong to one run: repetitions and agents, in every layout."""

import pytest

from evalkit.mindcraft import load, runs_df
from evalkit.mindcraft.layout import is_experiment_name, split_repetitions
from tests.mindcraft.builders import SCORE, log, task, write_all

REPETITION, NUMBER, NAME, SINGLE = (
    "last_number_is_repetition",
    "number_is_agent",
    "name_is_agent",
    "single",
)


@pytest.mark.parametrize(
    ("files", "agent_count", "rule", "expected"),
    [
        ("Andy_0_1", 1, SINGLE, {1: ["Andy_0"]}),
        ("Andy_0_1 Jill_1_1", 2, REPETITION, {1: ["Andy_0", "Jill_1"]}),
        ("Andy_0_0 Andy_0_1 Jill_1_0 Jill_1_1", 2, REPETITION, {0: ["Andy_0", "Jill_1"], 1: ["Andy_0", "Jill_1"]}),
        ("Andy_0_0 Andy_0_1 Jill_1_0 Jill_1_1", None, REPETITION, {0: ["Andy_0", "Jill_1"], 1: ["Andy_0", "Jill_1"]}),
        ("Andy_0_0 Andy_0_1 Jill_1_1", 2, REPETITION, {0: ["Andy_0"], 1: ["Andy_0", "Jill_1"]}),
        ("Andy_0_0 Jill_1_1", 2, REPETITION, {0: ["Andy_0"], 1: ["Jill_1"]}),
        ("Andy_0_0 Andy_0_1", 2, REPETITION, {0: ["Andy_0"], 1: ["Andy_0"]}),
        ("Andy_0_0 Andy_0_1", None, REPETITION, {0: ["Andy_0"], 1: ["Andy_0"]}),
        ("agent_0 agent_1", 2, NUMBER, {0: ["agent_0", "agent_1"]}),
        ("agent_0 agent_1 agent_2", 3, NUMBER, {0: ["agent_0", "agent_1", "agent_2"]}),
        ("agent_0 agent_1", None, NUMBER, {0: ["agent_0", "agent_1"]}),
        ("agent_0 agent_2", 3, NUMBER, {0: ["agent_0", "agent_2"]}),
        ("agent_1", 2, NUMBER, {0: ["agent_1"]}),
        ("agent_0 agent_1", 1, NUMBER, {0: ["agent_0", "agent_1"]}),
        ("agent_0 agent_1 agent_2", 2, NUMBER, {0: ["agent_0", "agent_1", "agent_2"]}),
        ("Agent_0 Agent_1 stray", 1, NUMBER, {0: ["Agent_0", "Agent_1", "stray"]}),
        ("andy_0 andy_1", 1, REPETITION, {0: ["andy"], 1: ["andy"]}),
        ("andy_0 andy_1 andy_2", 2, REPETITION, {0: ["andy"], 1: ["andy"], 2: ["andy"]}),
        ("andy_0 jill_1", 2, NAME, {0: ["andy_0", "jill_1"]}),
        ("andy_0 jill_1", 3, NAME, {0: ["andy_0", "jill_1"]}),
        ("andy_0 jill_0 andy_1 jill_1", 2, REPETITION, {0: ["andy", "jill"], 1: ["andy", "jill"]}),
        ("andy jill", 2, REPETITION, {0: ["andy", "jill"]}),
        ("andy", None, SINGLE, {0: ["andy"]}),
        ("", 2, None, {}),
    ],
)
def test_repetitions_are_told_from_agents(files, agent_count, rule, expected):
    repetitions = split_repetitions([f"/logs/{name}.json" for name in files.split()], agent_count)
    assert {repetition.number: list(repetition.agents) for repetition in repetitions} == expected
    assert {repetition.rule for repetition in repetitions} == ({rule} if rule else set())
    assert sorted(log for repetition in repetitions for log in repetition.logs) == list(range(len(files.split())))


@pytest.mark.parametrize("agent_count", [1, 2, 3, None])
@pytest.mark.parametrize(
    ("files", "minutes", "runs"),
    [
        ("andy_0 jill_1", (0, 0.2), 1),
        ("andy_0 jill_1", (0, 5), 1),  # a restart begins anew
        ("andy_0 jill_1", (0, 60), 2),
        ("andy_0 jill_1 bob_2", (0, 0.1, 0.2), 1),
        ("andy_0 andy_1", (0, 60), 2),
        ("Andy_0_0 Jill_0_1", (0, 0.2), 1),
        ("Andy_0_0 Jill_0_1", (0, 5), 2),  # each repetition lost the other's log
        ("Andy_0_0 Jill_0_0 Andy_0_1 Jill_0_1", (0, 0.1, 5, 5.1), 2),
    ],
)
def test_starts_tell_agents_from_repetitions_whatever_the_definition_says(tmp_path, files, minutes, agent_count, runs):
    starts = [1757845200000 + 60_000 * minute for minute in minutes]
    logs = [log(f"{SCORE}1", start=start, who=name) for start, name in zip(starts, files.split(), strict=True)]
    root = write_all(
        tmp_path, {f"x/m/cook_1/{name}.json": content for name, content in zip(files.split(), logs, strict=True)}
    )
    table = runs_df(root, {"cook_1": task(agent_count=agent_count)})
    assert len(table) == runs
    assert table["flag_extra_agent_logs"].any() == (len(logs) // runs > (agent_count or len(logs)))


def found(root, tasks=()) -> list[tuple]:
    runs = runs_df(root, tasks)
    return list(zip(runs["task_id"], runs["repetition"], runs["total_agent_logs_found"], strict=True))


NESTED = "experiments/cooking_03-20_10-00/cook_1/"
TASKS = {"cook_1": task(), "cook_1_more": task(), "solo": task(agent_count=1)}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([f"{NESTED}Andy_0_0.json", f"{NESTED}Jill_1_0.json"], [("cook_1", 0, 2)]),
        ([f"{NESTED}Andy_0_0.json", f"{NESTED}Andy_0_1.json"], [("cook_1", 0, 1), ("cook_1", 1, 1)]),
        (["small/llama/cook_1/agent_0.json", "small/llama/cook_1/agent_1.json"], [("cook_1", 0, 2)]),
        (["exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_jill_1_0.json"], [("cook_1", 0, 2)]),
        (["exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_more_andy_0_0.json"], [("cook_1", 0, 1), ("cook_1_more", 0, 1)]),
        (["exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_andy_0_1.json"], [("cook_1", 0, 1), ("cook_1", 1, 1)]),
        (["exp_1/solo_andy_0_3.json"], [("solo", 3, 1)]),
        (
            ["exp_1/cook_1_2_bread_andy_0_0.json", "exp_1/cook_1_andy_0_0.json", "exp_1/cook_1_3_andy_0_0.json"],
            [("cook_1", 0, 1), ("cook_1_2_bread", 0, 1), ("cook_1_3", 0, 1)],
        ),
        (["exp_1/cook_1/Andy_0_0.JSON", "exp_1/cook_1/Jill_1_0.Json"], [("cook_1", 0, 2)]),
        (["exp_1/unknown_task_Andy_0_1.json"], [("unknown_task", 1, 1)]),
        (["cooking/org/llama/suite/exp/cook_1/Andy_0_0.json"], [("cook_1", 0, 1)]),
        ([f"{NESTED}cook_1_Andy_0_0.json"], [("cook_1", 0, 1)]),
    ],
)
def test_every_layout_gives_the_same_runs(tmp_path, files, expected):
    assert found(write_all(tmp_path, dict.fromkeys(files, 1)), TASKS) == expected


def test_a_nested_folder_may_hold_any_file_names(tmp_path):
    assert found(write_all(tmp_path, {f"{NESTED}my_own_log_of_Andy_0_0.json": 1}), TASKS) == [("cook_1", 0, 1)]


def test_a_lost_log_leaves_the_run_and_is_flagged(tmp_path):
    files = {f"{NESTED}Andy_0_0.json": 1, f"{NESTED}Andy_0_1.json": 1, f"{NESTED}Jill_1_1.json": 1}
    runs = runs_df(write_all(tmp_path, files), TASKS)
    assert runs["flag_missing_agent_logs"].tolist() == [True, False]
    assert runs["overall_is_successful"].tolist() == [True, True]


@pytest.mark.parametrize("spoilt", [b"", b'{"turns": [', b'{"turns": 5, "memory": ""}'])
@pytest.mark.parametrize("agent_count", [1, 2, 3, None])
def test_files_named_agent_are_the_agents_of_one_run_also_where_one_is_broken(tmp_path, spoilt, agent_count):
    files = {"x/m/cook_1/agent_0.json": 1, "x/m/cook_1/agent_1.json": spoilt, "x/m/cook_1/agent_2.json": 0}
    (run,) = runs_df(write_all(tmp_path, files), {"cook_1": task(agent_count=agent_count)}).to_dict("records")
    assert (run["total_agent_logs_found"], run["overall_is_successful"]) == (3, True)
    assert run["flag_unreadable_logs"]
    assert run["flag_extra_agent_logs"] is (agent_count in (1, 2))


def test_one_scored_log_and_one_without_is_normal(tmp_path):
    runs = runs_df(write_all(tmp_path, {f"{NESTED}Andy_0_0.json": None, f"{NESTED}Jill_1_0.json": 1}), TASKS)
    assert runs["overall_completion_status"].tolist() == ["SUCCESS"]
    assert not runs.filter(like="flag_").any(axis=None)


def test_agents_carry_the_ids_of_their_run(tmp_path):
    files = {"exp_1/cook_1_andy_0_2.json": 1, "exp_1/cook_1_jill_1_2.json": 0}
    agents = load(write_all(tmp_path, files), TASKS).agents
    assert agents["agent_name"].tolist() == ["andy_0", "jill_1"]
    assert agents["task_id"].tolist() == ["cook_1"] * 2
    assert agents["repetition"].tolist() == [2, 2]
    assert agents["raw_score"].tolist() == [1, 0]


@pytest.mark.parametrize("name", ["exp_2025-02-10_16-43-47", "cooking_03-20_10-00", "logs", "Experiments", "tmp", ""])
def test_names_of_experiments_are_no_models(name):
    assert is_experiment_name(name)


@pytest.mark.parametrize("name", ["gpt-4o", "llama-3.1-8b", "expert-model", "claude-3-5-sonnet-2024-10-22"])
def test_names_of_models_are_no_experiments(name):
    assert not is_experiment_name(name)
