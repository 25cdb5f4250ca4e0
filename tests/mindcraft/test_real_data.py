"""Real task files and real logs, where they lie beside the checkout."""

import os
from pathlib import Path

import pytest

from evalkit.mindcraft import load_task_definitions, runs_df
from evalkit.mindcraft.tasks import task_facts

DATA = Path(__file__).parents[3] / "shared/data/mindcraft"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not here")
RUNS, TASKS = DATA / "unscored_logs/experiments", DATA / "tasks"
SHEARS = "multiagent_techtree_1_shears"


@pytest.fixture(scope="module")
def definitions():
    return load_task_definitions(TASKS)


def test_real_logs_give_two_runs_of_one_task_with_and_without_definitions():
    for tasks in (TASKS, ()):
        runs = runs_df(RUNS, tasks)
        found = runs[["task_id", "repetition", "total_agent_logs_found", "overall_completion_status"]]
        assert found.to_numpy().tolist() == [[SHEARS, repetition, 2, "NO_SCORE_LOGGED"] for repetition in (0, 1)]
        assert runs["has_definition"].all() == bool(tasks)
        assert runs["command_count"].min() > 0
        assert not runs.filter(like="flag_").any(axis=None) or not tasks


def test_all_real_task_files_load_together_and_name_ambiguous_ids(definitions):
    files = list(TASKS.rglob("*.json"))
    assert [(entry.status, entry.reason) for entry in definitions.ledger.entries] == [("used", "task definitions")] * 7
    assert (len(files), len(definitions), len(definitions.ambiguous)) == (7, 172, 6)
    for task_id, differing in definitions.ambiguous.items():
        assert task_id.startswith("multiagent_cooking_2_1_")
        assert sorted(map(os.path.basename, differing)) == ["2_agent_block_recipe.json", "3_agent.json"]


def test_real_definitions_say_what_their_ids_say(definitions):
    """Ids are the fallback; where they tell anything, it is what the definition says, but for known slips."""
    compared = ("task_type", "agent_count", "n_blocked_agents", "hells_kitchen", "target_items", "depth")
    differing = set()
    for task_id in definitions:
        for definition in definitions.variants[task_id]:
            real, guess = task_facts(task_id, definition), task_facts(task_id, None)
            known = [name for name in compared if guess[name] not in (None, [], "unknown")]
            differing |= {(task_id, name) for name in known if guess[name] != real[name]}
    assert ("multiagent_crafting_lime_wool_partial_plan__depth_2", "depth") in differing
    differing.discard(("multiagent_crafting_lime_wool_partial_plan__depth_2", "depth"))
    # ids without a suffix for blocked agents, which one of two files defines with some
    assert {name for _, name in differing} == {"n_blocked_agents"}
    assert {task_id for task_id, _ in differing} == set(definitions.ambiguous)
