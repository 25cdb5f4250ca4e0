"""One task folder, one outcome: precedence, normalisation, repetitions, the documented keys."""

import pytest

from evalkit.io import SourceError
from evalkit.mindcraft import extract_task_outcome
from tests.mindcraft.builders import SCORE, log, task, write, write_all

LOGS = {
    "1": f"{SCORE}1", "0": f"{SCORE}0", "0.5": f"{SCORE}0.5", "40": f"{SCORE}40", "100": f"{SCORE}100",
    "timeout": "Task timeout reached", "goal": "Agent ended goal", "NaN": f"{SCORE}NaN",
}  # fmt: skip


def folder(tmp_path, endings: str):
    """A task folder with one agent per word: a score, `none`, `broken` or another ending."""
    for i, word in enumerate(endings.split()):
        content = b"{" if word == "broken" else log(*([LOGS[word]] if word in LOGS else []), who=str(i))
        write(tmp_path / "my_task" / f"Agent_{i}_0.json", content)
    (tmp_path / "my_task").mkdir(exist_ok=True)
    return tmp_path / "my_task"


@pytest.mark.parametrize(
    ("endings", "raw", "status", "successful"),
    [
        ("none 1", 1, "SUCCESS", True),
        ("0 1", 1, "SUCCESS", True),
        ("0.5 0", 0.5, "FAILED_PARTIAL_SCORE", False),
        ("1 timeout", 1, "TIMED_OUT", True),
        ("timeout none", None, "TIMED_OUT", False),
        ("timeout broken", None, "TIMED_OUT", False),
        ("broken 1", 1, "SUCCESS", True),
        ("broken broken", None, "LOG_FILE_ERROR", False),
        ("", None, "NO_SCORE_LOGGED", False),
    ],
)
def test_the_best_agent_gives_the_score_and_a_time_out_the_status(tmp_path, endings, raw, status, successful):
    outcome = extract_task_outcome(folder(tmp_path, endings), task())
    assert outcome == {
        **outcome, "overall_raw_score": raw, "overall_completion_status": status, "overall_is_completed": bool(raw),
        "overall_is_successful": successful, "total_agent_logs_found": len(endings.split()),
    }  # fmt: skip
    assert len(outcome["agent_outcomes"]) == len(endings.split())
    assert ("unreadable_logs" in outcome["flags"]) is ("broken" in endings)


@pytest.mark.parametrize(
    ("task_type", "endings", "scale", "score", "used", "flags"),
    [
        ("cooking", "0.5", "auto", 0.5, "binary", set()),
        ("cooking", "100", "auto", None, "binary", {"score_out_of_range"}),
        ("construction", "100", "auto", 1, "percent", set()),
        ("construction", "1 40", "auto", 0.4, "percent", set()),
        ("construction", "0.5", "auto", 0.5, "fraction", {"scale_assumed"}),
        ("construction", "0", "auto", 0, "fraction", set()),
        ("construction", "1", "percent", 0.01, "percent", set()),
        ("construction", "1", "fraction", 1, "fraction", set()),
        ("construction", "40", "fraction", None, "fraction", {"score_out_of_range"}),
    ],
)
def test_scores_are_brought_to_0_to_1_by_type(tmp_path, task_type, endings, scale, score, used, flags):
    definition = task(task_type, len(endings.split()))
    outcome = extract_task_outcome(folder(tmp_path, endings), definition, scale)
    assert outcome["overall_score"] == pytest.approx(score)
    assert outcome["score_scale"] == used
    assert set(outcome["flags"]) - {"conflicting"} == flags
    assert outcome["overall_is_successful"] is (score == 1)


def test_several_repetitions_are_best_of_n_and_say_so_and_leave_nothing_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    path = write_all(tmp_path / "my_task", {"Andy_0_0.json": 0, "Andy_0_1.json": 1, "Andy_0_2.json": None})
    outcome = extract_task_outcome(path, task(agent_count=1))
    assert (outcome["overall_is_successful"], outcome["total_agent_logs_found"]) == (True, 3)
    assert outcome["flags"] == ["repetitions_merged"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("definition", "task_id", "agent_count"),
    [
        (task(agent_count=3), "multiagent_cooking_1_bread", 3),
        (task(agent_count=None), "multiagent_cooking_1_bread", 2),
        (task(task_id="other"), "other", 2),
        (None, "multiagent_cooking_1_bread", 2),
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


@pytest.mark.parametrize("name", ["gone", "file"])
def test_what_is_no_folder_is_named(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=name):
        extract_task_outcome(tmp_path / name, task())
