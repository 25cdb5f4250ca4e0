"""One task folder, one outcome: precedence, normalisation, repetitions, the documented keys."""

import pandas as pd
import pytest

from evalkit.io import SourceError
from evalkit.mindcraft import (
    aggregate_results,
    aggregate_results_to_dataframe,
    extract_task_outcome,
    extract_task_outcomes,
)
from tests.mindcraft.builders import log, task, write_all

TIMEOUT, BROKEN = log("Task timeout reached"), b"{"


def outcome_of(folder, logs, definition, *scale):
    """The outcome of a task folder with one log for each agent: a score, None without any, or a content."""
    folder.mkdir()
    return extract_task_outcome(
        write_all(folder, {f"A_{i}_0.json": own for i, own in enumerate(logs)}), definition, *scale
    )


@pytest.mark.parametrize(
    ("logs", "raw", "status", "conflicting"),
    [
        ((log("Agent ended goal"), 1), 1, "SUCCESS", False),
        ((0, 1), 1, "SUCCESS", True),
        ((0.5, 0), 0.5, "FAILED_PARTIAL_SCORE", True),
        ((1, TIMEOUT), 1, "TIMED_OUT", True),
        ((0, TIMEOUT), 0, "TIMED_OUT", False),
        ((TIMEOUT, BROKEN), None, "TIMED_OUT", False),
        ((BROKEN, 1), 1, "SUCCESS", False),
        ((BROKEN, BROKEN), None, "LOG_FILE_ERROR", False),
        ((), None, "NO_SCORE_LOGGED", False),
    ],
)
def test_the_best_agent_gives_the_score_and_a_time_out_the_status(tmp_path, logs, raw, status, conflicting):
    outcome = outcome_of(tmp_path / "my_task", logs, task())
    assert outcome == {
        **outcome, "overall_raw_score": raw, "overall_completion_status": status, "overall_is_completed": bool(raw),
        "overall_is_successful": raw == 1, "total_agent_logs_found": len(logs),
    }  # fmt: skip
    assert len(outcome["agent_outcomes"]) == len(logs)
    assert ("unreadable_logs" in outcome["flags"], "conflicting" in outcome["flags"]) == (BROKEN in logs, conflicting)


@pytest.mark.parametrize(
    ("task_type", "logs", "scale", "score", "used", "flags"),
    [
        ("cooking", (0.5,), "auto", 0.5, "binary", []),
        ("construction", (100,), "auto", 1, "percent", []),
        ("construction", (1,), "percent", 0.01, "percent", []),
        ("construction", (1,), "fraction", 1, "fraction", []),
        ("construction", (40,), "fraction", None, "fraction", ["score_out_of_range"]),
    ],
)
def test_scores_are_brought_to_0_to_1_by_type(tmp_path, task_type, logs, scale, score, used, flags):
    outcome = outcome_of(tmp_path / "my_task", logs, task(task_type, len(logs)), scale)
    assert outcome["overall_score"] == pytest.approx(score)
    assert (outcome["score_scale"], outcome["flags"]) == (used, flags)
    assert outcome["overall_is_successful"] is (score == 1)


def test_several_repetitions_are_best_of_n_and_say_so_and_leave_nothing_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    path = write_all(tmp_path / "my_task", {"Andy_0_0.json": 0, "Andy_0_1.json": 1, "Andy_0_2.json": None})
    outcome = extract_task_outcome(path, task(agent_count=1))
    assert (outcome["overall_is_successful"], outcome["total_agent_logs_found"]) == (True, 3)
    assert outcome["flags"] == ["repetitions_merged"]
    assert aggregate_results_to_dataframe([outcome])["flag_repetitions_merged"].tolist() == [True]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("definition", "task_id", "agent_count"),
    [
        (task(agent_count=3), "multiagent_cooking_1_bread", 3),
        (task(agent_count=None), "multiagent_cooking_1_bread", 2),
        (task(task_id="other"), "other", 2),
        ({}, "multiagent_cooking_1_bread", 2),
    ],
)
def test_id_and_agents_come_from_the_definition_else_from_the_folder(tmp_path, definition, task_id, agent_count):
    path = write_all(tmp_path / "multiagent_cooking_1_bread", {"Andy_0_0.json": 1, "Jill_1_0.json": None})
    outcome = extract_task_outcome(path, definition)
    assert outcome == {
        **outcome, "task_id": task_id, "agent_count": agent_count, "task_type": "cooking", "model_name": None,
        "has_definition": bool(definition), "source": str(path),
    }  # fmt: skip


@pytest.mark.parametrize(("definition", "logs"), [(None, 2), (task() | {"task_id": "another"}, 0)])
def test_a_folder_of_flat_logs_is_the_task_that_is_asked_for(tmp_path, definition, logs):
    names = ("multiagent_cooking_1_Andy_0_0.json", "multiagent_cooking_1_Jill_1_0.json")
    path = write_all(tmp_path / "exp_2025-02-10_16-43-47", dict.fromkeys(names, 1))
    outcome = extract_task_outcome(path, definition)
    assert (outcome["total_agent_logs_found"], outcome["overall_is_successful"]) == (logs, bool(logs))
    for no_folder in ("gone", names[0]):
        with pytest.raises(SourceError, match=no_folder):
            extract_task_outcome(path / no_folder, definition)


@pytest.mark.parametrize("name", ["hut", "debug_3"])
@pytest.mark.parametrize(
    ("files", "scores"),
    [
        (["seed_1/A_0_0.json", "seed_2/A_0_0.json"], [0, 1]),
        (["2/logs/A_0_0.json", "2/logs/B_1_0.json", "1/A_0_0.json"], [1, 2]),
        (["A_0_0.json", "run-2/A_0_0.json"], [0, 1]),
        (["seed_1/A_0_0.json", "seed_2/last_profile.json"], [None, 0]),  # it broke before a log was written
        (["A_0_0.json", "screenshots/view_0.json"], [0]),
        (["other_task/A_0_0.json"], [None]),
    ],
)
def test_folders_of_repetitions_in_a_tasks_folder_are_its_runs(tmp_path, name, files, scores):
    folder = write_all(tmp_path / name, {file: score for score, file in enumerate(files)})
    runs = aggregate_results([folder])
    outcomes = extract_task_outcomes(folder, None)
    for found in (runs["overall_raw_score"].tolist(), [outcome["overall_raw_score"] for outcome in outcomes]):
        assert sorted((None if pd.isna(score) else score for score in found), key=str) == sorted(scores, key=str)
    assert {*runs["task_id"], *(outcome["task_id"] for outcome in outcomes)} == {name}
