"""What each format says of runs, by the facts of the format."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import evalkit
from evalkit import compare, kinds, trajectories
from evalkit._text import format_interval
from evalkit.cli import main
from evalkit.compare.terminal import answer, describe_comparison
from evalkit.display.terminal import chosen_lines, summary
from evalkit.display.words import finding_text
from evalkit.failures.terminal import describe_failures
from evalkit.io import SourceError
from evalkit.kinds import has_flag, outcomes
from evalkit.trajectories import records
from evalkit.trajectories.parse import accepts, parse
from tests.trajectories import folders as make

SHARED = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not beside the project")


def runs_of(path: Path, **options: object) -> pd.DataFrame:
    return trajectories.load(path, **options).runs


def rows_of(table: pd.DataFrame, *columns: str) -> list[list[object]]:
    """Return cells by row; None for what is missing."""
    return table[list(columns)].astype("object").where(table[list(columns)].notna(), None).to_numpy().tolist()


@pytest.mark.parametrize(
    ("error", "is_valid", "outcome"),
    [("NonZeroAgentExitCodeError", True, True), ("SomethingNew", True, True), ("AgentTimeoutError", False, None)],
)
def test_a_harbor_trial_that_states_whether_its_reward_is_valid_is_believed(tmp_path, error, is_valid, outcome):
    one = make.trial(reward=1.0, error=error, schema_version=2)
    one["exception_info"]["policy"] = {"has_valid_reward": is_valid}
    one["config"]["agent_timeout_multiplier"] = 2.0
    logs = trajectories.load(make.harbor_job(tmp_path / "job", one))
    assert rows_of(logs.runs, "is_successful", "exit_reason", "limits") == [
        [outcome, error, "agent_timeout_multiplier 2"]
    ]
    assert "schema_version 2 is unknown" in logs.ledger["reason"].tolist()


@pytest.mark.parametrize(
    ("changes", "status", "score", "success"),
    [
        ({}, "completed", 1.0, True),
        ({"reward": 0.0}, "completed", 0.0, False),
        ({"error": "AgentTimeoutError", "reward": 1.0}, "AgentTimeoutError", 1.0, True),  # a reward is a measurement
        ({"error": "AgentTimeoutError", "reward": None}, "AgentTimeoutError", 0.0, False),
        ({"error": "SandboxBuildFailedError", "reward": 0.0}, "SandboxBuildFailedError", None, None),
        ({"error": "NonZeroAgentExitCodeError", "reward": 1.0}, "NonZeroAgentExitCodeError", None, None),
        ({"reward": None, "finished_at": None}, "running", None, None),
    ],
)
def test_the_cause_of_a_trials_end_decides_whether_its_reward_counts(tmp_path, changes, status, score, success):
    runs = runs_of(make.harbor_job(tmp_path, make.trial(**changes)))
    assert rows_of(runs, "status", "score", "is_successful") == [[status, score, success]]


def test_a_harbor_job_tells_model_agent_usage_repetitions_and_planned_trials(tmp_path):
    make.harbor_job(tmp_path, make.trial(), make.trial(reward=0.0), make.trial(task="other"), planned=5)
    logs = trajectories.load(tmp_path)
    assert logs.plans["planned"].tolist() == [5]
    assert sorted(rows_of(logs.runs, "task_id", "repetition")) == [["fix-bug", 0], ["fix-bug", 1], ["other", 0]]
    first = logs.runs[:1]
    assert rows_of(first, "model_name", "agent", "agent_version") == [["openai/gpt-4o", "terminus-2", "2.0.0"]]
    assert rows_of(first, "tokens_in", "tokens_cache", "tokens_out", "cost") == [[100, 40, 20, 0.5]]
    assert rows_of(first, "duration", "task_type", "task_checksum") == [[90.0, "terminal-bench", "c0ffee"]]


def test_steps_of_a_trial_are_added_up_and_their_last_reward_counts(tmp_path):
    late = {"exception_type": "AgentTimeoutError", "exception_message": "late"}
    steps = [
        {"step_name": "a", "agent_result": {"n_input_tokens": 1, "cost_usd": 0.25}, "exception_info": late},
        {"agent_result": {"n_input_tokens": 2, "cost_usd": 0.5}, "verifier_result": {"rewards": {"reward": 1}}},
    ]
    one = make.trial(reward=None, agent_result=None, step_results=steps)
    logs = trajectories.load(make.harbor_job(tmp_path, one))
    assert rows_of(logs.runs, "tokens_in", "cost", "score", "extra") == [[3, 0.75, 1.0, '{"steps":["a",null]}']]
    assert rows_of(logs.messages, "role", "text") == [["error", "AgentTimeoutError: late"], ["system", "reward = 1"]]


def test_a_trials_trajectory_is_no_run_of_its_own_and_fills_in_what_the_result_lacks(tmp_path):
    make.harbor_job(tmp_path, make.trial(agent_result=None))
    make.write(tmp_path / "fix-bug__0" / "agent" / "trajectory.json", make.atif("do it", "done", "again"))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "tokens_in", "cost", "turns") == [[20, 0.5, 2]]
    assert logs.messages["text"].tolist() == ["do it", "done", "again"]


def test_a_continued_trajectory_is_one_run_without_what_was_copied(tmp_path):
    make.write(tmp_path / "t" / "trajectory.json", make.atif("task", "one", reference="trajectory.cont-1.json"))
    make.write(tmp_path / "t" / "trajectory.cont-1.json", make.atif("task", "one", "two", copied=2, prompt=3))
    logs = trajectories.load(tmp_path)
    assert logs.runs[["task_id", "turns", "tokens_in", "cost"]].to_numpy().tolist() == [["t", 2, 13, 0.5]]
    assert logs.messages["text"].tolist() == ["task", "one", "two"]


def test_the_temperature_of_a_trial_is_that_of_its_agent(tmp_path):
    one, trajectory = make.trial(), make.atif("task", "one")
    one["config"]["agent"]["kwargs"] = trajectory["agent"]["extra"] = {"temperature": 0.2, "api_key": "sk-secret"}
    make.harbor_job(tmp_path / "job", one)
    make.write(tmp_path / "alone.json", trajectory)
    runs = runs_of(tmp_path)
    assert runs["temperature"].tolist() == [0.2, 0.2]
    assert "sk-secret" not in runs.to_csv()


@pytest.mark.parametrize("prefix", ["", "hello-world."])
def test_a_trajectory_of_a_subagent_in_a_file_is_no_run_of_its_own(tmp_path, prefix):
    reference = {"session_id": "sub", "trajectory_path": "trajectory.summarization-1-summary.json"}
    whole = make.atif("task", "one")
    whole["steps"][1]["observation"] = {"results": [{"subagent_trajectory_ref": [reference]}]}
    make.write(tmp_path / f"{prefix}trajectory.json", whole)
    make.write(tmp_path / f"{prefix}{reference['trajectory_path']}", make.atif("summarize", "summary"))
    assert trajectories.load(tmp_path).messages["text"].tolist() == ["task", "one", "summarize", "summary"]


@pytest.mark.parametrize(
    ("name", "own", "alone"),
    [
        ("mini-swe-agent.trajectory.json", make.mini(), 2),
        ("swe-agent.trajectory.json", {"trajectory": [{"action": "ls", "observation": "a"}], "info": {}}, 1),
        ("trae-trajectory.json", {"task": "t", "model": "m", "success": True, "agent_steps": []}, 0),
    ],
)
def test_what_an_agent_wrote_of_a_trial_in_its_own_format_is_no_other_run(tmp_path, name, own, alone):
    make.harbor_job(tmp_path, make.trial())
    make.write(tmp_path / "fix-bug__0" / "agent" / name, own)
    logs = trajectories.load(tmp_path)
    assert (logs.runs["format"].tolist(), logs.runs["turns"].fillna(0).tolist()) == (["harbor"], [alone])
    make.write(tmp_path / "fix-bug__0" / "agent" / "trajectory.json", make.atif("task", "one"))
    logs = trajectories.load(tmp_path)
    assert (logs.runs["format"].tolist(), logs.messages["text"].tolist()[:2]) == (["harbor"], ["task", "one"])


@pytest.mark.parametrize(
    ("reason", "reward", "score", "outcome"),
    [
        ("user_stop", 1.0, 1.0, True),
        ("agent_stop", 1 - 1e-9, 1.0, True),
        ("max_steps", 0.0, 0.0, False),
        ("infrastructure_error", 0.0, None, None),
        ("judge_stop", 0.0, 0.0, False),
        ("user_error", None, None, None),
    ],
)
def test_tau2_success_is_a_whole_reward_unless_something_else_ended_the_run(tmp_path, reason, reward, score, outcome):
    make.write(tmp_path / "results.json", make.tau2(make.simulation("0", 0, reward, reason)))
    runs = runs_of(tmp_path)
    assert rows_of(runs, "score", "is_successful") == [[score and pytest.approx(score), outcome]]
    assert rows_of(runs, "model_name", "agent", "cost", "temperature") == [["gpt-4o", "llm_agent", 0.25, 0.5]]
    assert json.loads(runs["extra"].item())["user_cost"] == 0.5  # of another model


def test_a_simulation_of_tau2_that_was_skipped_after_an_error_is_not_measured(tmp_path):
    skipped = {**make.simulation("0", 0, 0.0, "agent_error"), "skipped": True}
    runs = runs_of(make.write(tmp_path / "results.json", make.tau2(skipped)))
    assert rows_of(runs, "status", "exit_reason", "is_successful") == [["skipped", "agent_error", None]]


def test_tau2_simulations_in_a_folder_are_of_the_results_beside_it(tmp_path):
    results = make.tau2(make.simulation("0", 0, 1.0))
    make.write(
        tmp_path / "results.json", {**results, "tasks": [], "simulations": [], "simulation_index": [{"task_id": "0"}]}
    )
    make.write(tmp_path / "simulations" / "0-0.json", make.simulation("0", 0, 1.0))
    logs = trajectories.load(tmp_path)
    assert logs.runs[["model_name", "task_type", "score"]].to_numpy().tolist() == [["gpt-4o", "retail", 1.0]]
    assert logs.plans["planned"].tolist() == [2]
    assert logs.tool_calls[["name", "result"]].to_numpy().tolist() == [["find_order", "order 3"]]
    assert rows_of(logs.messages, "role", "cost") == [["user", None], ["assistant", None], ["assistant", 0.0]]


def test_answers_of_tau2_that_stand_in_one_message_belong_to_their_calls(tmp_path):
    one = make.simulation("0", 0, 1.0)
    one["messages"][1]["tool_calls"].append({"id": "call-2", "name": "find_user", "arguments": {}})
    answers = [one["messages"][2], {"role": "tool", "id": "call-2", "content": "no user", "error": True}]
    one["messages"][2] = {"role": "tool", "tool_messages": answers}
    calls = trajectories.load(make.write(tmp_path / "results.json", make.tau2(one))).tool_calls
    assert calls[["result", "is_error"]].to_numpy().tolist() == [["order 3", False], ["no user", True]]


def test_a_spoken_simulation_says_what_each_side_says_from_one_silence_to_the_next(tmp_path):
    def tick(user: str = "", agent: str = "", **more: object) -> dict:
        chunks = {"user_chunk": user and {"content": user}, "agent_chunk": agent and {"content": agent}}
        return {"tick_id": 0, "timestamp": "2026-11-01T10:00:00", **chunks, **more}

    calls = {"agent_tool_calls": [{"id": "1", "name": "find_order", "arguments": {}}]}
    answers = {"agent_tool_results": [{"id": "1", "content": "none", "error": True}]}
    ticks = [tick("Where ", "Hel"), tick("is it?", "lo."), tick(**calls), tick(**answers), tick("", "Gone.")]
    spoken = {**make.simulation("0", 0, 1.0), "messages": None, "ticks": ticks}
    logs = trajectories.load(make.write(tmp_path / "simulations" / "0.json", spoken))
    assert logs.messages["text"].tolist() == ["Where is it?", "Hello.", "", "Gone."]
    assert logs.tool_calls[["result", "is_error"]].to_numpy().tolist() == [["none", True]]
    assert logs.runs["turns"].tolist() == [3]


@pytest.mark.parametrize(
    ("changes", "score", "status"),
    [
        ({"value": "C"}, 1.0, "completed"),
        ({"value": "P"}, 0.5, "completed"),
        ({"value": "N"}, 0.0, "completed"),
        ({"value": True}, 1.0, "completed"),
        ({"value": 0.25}, 0.25, "completed"),
        ({"value": "a poem"}, None, "completed"),
        ({"value": {"a": 1, "b": 0}}, 1.0, "completed"),
        ({"limit": "message"}, 1.0, "limit_message"),
        ({"limit": {"type": "token", "limit": 5}}, 1.0, "limit_token"),
        ({"error": "RateLimitError"}, None, "error"),
        ({"error": {"message": "RateLimitError", "traceback": "…"}}, None, "error"),
    ],
)
@pytest.mark.parametrize("form", ["json", "eval", "old.eval"])
def test_values_errors_and_limits_of_inspect_samples(tmp_path, changes, score, status, form):
    log = make.inspect_log(make.sample("q", **changes))
    data = json.dumps(log).encode() if form == "json" else make.inspect_archive(log, is_old=form == "old.eval")
    (tmp_path / f"log.{form}").write_bytes(data)
    runs = runs_of(tmp_path)
    assert rows_of(runs, "status", "score", "limits") == [[status, score, "message_limit 8"]]
    assert rows_of(runs, "tokens_in", "tokens_cache", "tokens_out", "duration") == [[8, 3, 2, 2.5]]


def test_an_archive_still_written_tells_the_samples_that_are_done(tmp_path):
    log = make.inspect_log(make.sample("a"), make.sample("b", "I", completed=False), status="started")
    (tmp_path / "log.eval").write_bytes(make.inspect_archive(log, is_running=True))
    assert runs_of(tmp_path)["status"].tolist() == ["completed", "running"]


@pytest.mark.parametrize(("before", "known"), [("samples/c", 2), ("summaries.json", 4), ("header.json", 4)])
def test_of_an_archive_that_was_cut_off_the_samples_that_are_whole_are_read(tmp_path, before, known):
    data = make.inspect_archive(make.inspect_log(*(make.sample(name, "C") for name in "abcd")))
    (tmp_path / "log.eval").write_bytes(data[: data.index(before.encode())])
    logs = trajectories.load(tmp_path)
    assert logs.runs["score"].tolist() == [1.0] * known
    assert logs.ledger["reason"].tolist() == ["the archive has no end"]
    assert logs.messages["text"].tolist() == ["2 + 2?", "4"] * known  # the first is an attachment


def test_of_an_archive_with_a_broken_member_the_others_are_read_and_the_ledger_says_so(tmp_path):
    data = make.inspect_archive(make.inspect_log(make.sample("a"), make.sample("b", "I")))
    start = data.index(b"summaries.json") + 20
    (tmp_path / "log.eval").write_bytes(data[:start] + b"\0\0\0" + data[start + 3 :])
    logs = trajectories.load(tmp_path)
    assert logs.runs["score"].tolist() == [1.0, 0.0]
    assert logs.ledger["reason"].tolist() == ["summaries.json is broken"]


@pytest.mark.parametrize("place", ["reductions", "results"])
def test_a_log_without_samples_tells_the_scores_of_each(tmp_path, place):
    reductions = [{"scorer": "match", "samples": [{"sample_id": 1, "value": 1}, {"sample_id": 2, "value": 0}]}]
    log = {**make.inspect_log(), "reductions": reductions, "results": {"total_samples": 2}}
    if place == "results":  # in 2024
        log["results"]["sample_reductions"] = log.pop("reductions")
    logs = trajectories.load(make.write(tmp_path / "log.json", log))
    assert logs.runs[["task_id", "score"]].to_numpy().tolist() == [["1", 1.0], ["2", 0.0]]
    assert logs.ledger["reason"].tolist() == ["it contains no samples; scores are over all epochs"]


def test_a_log_whose_evaluation_broke_off_before_its_first_sample_has_no_runs_and_says_why(tmp_path):
    log = make.inspect_log(status="error", dataset={"samples": 2})
    log["error"] = {"message": "no such model", "traceback": "…"}
    logs = trajectories.load(make.write(tmp_path / "log.json", log))
    assert (len(logs.runs), len(logs.messages), logs.plans["planned"].tolist()) == (0, 0, [2])
    assert logs.ledger["reason"].tolist() == ["it contains no samples, no such model"]


def test_samples_of_early_2024_have_one_score_and_a_transcript(tmp_path):
    one = make.sample("a", scores=None, score={"value": "C"}, transcript={"events": [], "content": {"a": "2 + 3?"}})
    one["messages"].append({"role": "tool", "content": "", "tool_call_id": "t", "tool_error": "no such tool"})
    del one["attachments"]
    log = make.inspect_log(one, dataset={"samples": 100}, config={"limit": 1})
    log["results"] = {"scorer": {"name": "includes"}}
    logs = trajectories.load(make.write(tmp_path / "log.json", log))
    assert (logs.runs["score"].tolist(), logs.plans["planned"].tolist()) == ([1.0], [1])
    assert logs.scores["key"].tolist() == ["includes"]
    assert logs.messages["text"].tolist()[0] == "2 + 3?"


@pytest.mark.parametrize(("whole", "read"), [(None, 8), (7, 5), (10, 8)])
def test_tokens_of_a_cache_count_once_whether_they_stand_within_the_input_or_beside_it(tmp_path, whole, read):
    usage = {"input_tokens": 5, "output_tokens": 2, "input_tokens_cache_read": 3, "total_tokens": whole}
    log = make.inspect_log(make.sample("a", model_usage={"m": usage}))
    assert runs_of(make.write(tmp_path / "log.json", log))["tokens_in"].tolist() == [read]


def test_a_repeated_evaluation_replaces_the_earlier_one(tmp_path):
    for day, value in ((1, "I"), (2, "C")):
        log = make.inspect_log(make.sample("a", value), created=f"2026-11-0{day}T10:00:00+00:00")
        make.write(tmp_path / f"{day}.json", log)
    assert rows_of(runs_of(tmp_path), "score", "run_flags") == [[0.0, ["superseded"]], [1.0, []]]


def test_evaluations_without_ids_of_their_own_are_no_copies_of_each_other(tmp_path):
    for name in ("one", "two", "two"):
        log = make.inspect_log(make.sample("a", error_retries=[{"message": "once"}]), task_id=name)
        make.write(tmp_path / f"{len(list(tmp_path.iterdir()))}.json", log)
    assert rows_of(runs_of(tmp_path), "run_flags", "retries") == [[[], 1], [[], 1], [["duplicate"], 1]]


@pytest.mark.parametrize(
    ("said", "score", "status"),
    [
        ({"resolved_ids": ["astropy-1"]}, 1.0, "Submitted"),
        ({"unresolved_ids": ["astropy-1"]}, 0.0, "unresolved"),
        ({"empty_patch_ids": ["astropy-1"], "unresolved_ids": ["astropy-1"]}, 0.0, "empty_patch"),
        ({"error_ids": ["astropy-1"]}, None, "error"),
        ({"completed_ids": ["astropy-1"]}, None, "Submitted"),
        ({"astropy-1": {"resolved": False, "patch_exists": True}}, 0.0, "unresolved"),  # of one run
    ],
)
def test_a_report_of_swe_bench_tells_the_outcome_of_a_trajectory(tmp_path, said, score, status):
    make.write(tmp_path / "astropy-1" / "astropy-1.traj.json", make.mini())
    report = said if "astropy-1" in said else {"resolved_ids": [], "submitted_ids": [], **said}
    make.write(tmp_path / "gpt-4o.run1.json", report)
    runs = runs_of(tmp_path)
    assert rows_of(runs, "task_id", "status", "score") == [["astropy-1", status, score]]
    assert rows_of(runs, "cost", "turns", "agent_version", "limits") == [[0.5, 2, "2.4.6", "step_limit 50"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("preds.json", '{"a": {"model_name_or_path": "gpt-5", "model_patch": ""}}'),
        ("preds.json", '[{"instance_id": "a", "model_name_or_path": "gpt-5", "model_patch": ""}]'),
        ("all_preds.jsonl", '{"instance_id": "a", "model_name_or_path": "gpt-5", "model_patch": ""}\n'),
    ],
)
def test_predictions_name_the_model_of_a_trajectory_that_does_not(tmp_path, name, text):
    steps = [{"action": "ls", "observation": "x", "thought": "t"}, {"action": "", "observation": "y", "response": "r"}]
    history = [{"role": "system", "content": "s"}, {"role": "user", "content": "an example", "is_demo": True}]
    make.write(tmp_path / "a.traj", {"trajectory": steps, "history": history, "info": {}})
    make.write(tmp_path / name, text)
    logs = trajectories.load(tmp_path)
    assert logs.runs["model_name"].tolist() == ["gpt-5"]
    assert logs.messages["text"].tolist() == ["s", "t", "r"]
    assert rows_of(logs.tool_calls, "arguments", "result") == [["ls", "x"]]


def test_messages_belong_to_their_row_if_other_lines_are_broken(tmp_path):
    chat = '{"task_id": "%s", "success": true, "messages": [{"role": "assistant", "content": "%s"}], "seed": %s}'
    lines = [chat % ("a", "one", 1), "", '{"task_id": "x", "messages": [', chat % ("b", "two", "NaN"), "7", "  "]
    lines += [chat % ("c", r"\ud800 three", 3), chat % ("d", r"\x", 4), chat % ("e", "fünf", 5)]
    lines.insert(1, chat % ("f", "too deep", "[" * 3_000 + "]" * 3_000))
    logs = trajectories.load(make.write(tmp_path / "runs.jsonl", "\n".join(lines)))
    assert logs.runs["task_id"].tolist() == ["a", "b", "c", "e"]
    assert logs.messages["text"].tolist() == ["one", "two", "� three", "fünf"]
    assert logs.messages["run_id"].tolist() == logs.runs["run_id"].tolist()


def test_messages_of_simulations_survive_repairs_of_their_file(tmp_path):
    results = make.tau2(make.simulation("0", 0, 1.0), make.simulation("1", 0, 1.0))
    for place, simulation in enumerate(results["simulations"]):
        simulation["messages"] = [{"role": "assistant", "content": f"answer {place} \ud800", "cost": float("nan")}]
    results["simulations"].insert(0, 7)
    logs = trajectories.load(make.write(tmp_path / "results.json", json.dumps(results)))
    assert logs.messages["text"].tolist() == ["answer 0 �", "answer 1 �"]


def test_each_line_of_a_file_may_be_a_trajectory(tmp_path):
    lines = [json.dumps({**make.atif("task", text), "session_id": text}) for text in ("one", "two")]
    logs = trajectories.load(make.write(tmp_path / "exported.jsonl", "\n".join(lines)))
    assert logs.runs[["task_id", "turns"]].to_numpy().tolist() == [["one", 1], ["two", 1]]
    assert logs.messages["text"].tolist() == ["task", "one", "task", "two"]


def test_a_parquet_file_is_a_table_of_runs(tmp_path):
    pd.DataFrame({"model": ["a"], "task": ["t"], "score": [0.5]}).to_parquet(tmp_path / "runs.parquet")
    runs = runs_of(tmp_path / "runs.parquet")
    assert rows_of(runs, "score", "is_successful") == [[0.5, None]]  # half of a score is neither success nor failure


@pytest.mark.parametrize(
    ("header", "columns", "said"),
    [
        ("model,task,score,score", [], "several columns are named 'score'"),
        ("model,task,colour", [], "no column for the score; there are model, task, colour"),
        ("status,task,n", [], "no column for the score; there are status, task, n"),  # the status a is no outcome
        ("model,day,score", [], "no column for the task_id; there are model, day, score"),
        ("score,task,model", [], "column score: no number or truth value in most of its cells, such as 'a'"),
        (
            "model,task,score,reward",
            [],
            "columns score and reward could both be the score; choose one: --column score=",
        ),
        ("model,task,score", ["score=points"], "no column 'points'; there are model, task, score"),
        ("model,task,score", ["colour=score"], "'colour' is not a column of runs; there are task_id, model_name"),
        ("model,task,score", ["score"], "column 'score': write ROLE=NAME, such as score=reward"),
    ],
)
def test_columns_that_are_missing_ambiguous_or_unreadable_are_named(tmp_path, header, columns, said):
    path = make.write(tmp_path / "runs.csv", f"{header}\na,b,1,1\n")
    with pytest.raises(SourceError, match=said):
        runs_of(path, columns=columns)


def test_spaces_around_names_and_numbers_beyond_all_bounds_change_no_rate(tmp_path):
    make.write(tmp_path / "runs.csv", "model,task,score,epoch\n oak ,t,1,0\noak,t ,inf,1e30\n")
    columns = ["model_name", "task_id", "score", "is_successful", "repetition"]
    assert rows_of(runs_of(tmp_path), *columns) == [["oak", "t", 1.0, True, 0], ["oak", "t", None, None, 1]]


IDS = "2 rows with the id and values of another row: copies, which rates exclude"
SAME = "the same rows as a.csv: both count, because no column has ids of runs"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("model,task,score\noak,t,1\noak,u,0\n", [SAME]),
        ("task,score,note\nt,1,x\nu,0,x\n", []),  # its folder may be the model
        ("model,task,score\noak,t,1\n", []),  # one run of several that ended alike
        ("model,task,score,run_id\noak,t,1,a\noak,u,0,b\n", [IDS]),
        ("model,task,score,run_id\noak,t,1,a\noak,u,0,a\noak,v,1,b\n", [SAME]),  # few ids: of something else
    ],
)
def test_a_table_with_the_rows_of_another_counts_unless_ids_say_that_its_runs_are_the_same(tmp_path, table, said):
    for name in ("alpha/a.csv", "beta/b.csv"):
        make.write(tmp_path / name, table)
    logs = trajectories.load(tmp_path)
    second = logs.ledger["reason"].iloc[1]
    assert [text for text in (SAME, IDS) if text in second] == said
    assert [one.values["doubts"] for one in logs.chosen.only("table").notes] == said
    assert has_flag(logs.runs, "duplicate").any() == (IDS in said)


@pytest.mark.parametrize(
    ("extra", "is_successful"),
    [
        (("", ""), [None] * 4),  # files of one experiment, such as a file for each model
        ((",dataset=d", ",dataset=d"), [None] * 4),
        ((",dataset=d", ",dataset=e"), [True, False, None, None]),
        ((",cost=1", ""), [None] * 4),
    ],
)
def test_scores_between_0_and_1_leave_success_to_the_scores_of_other_datasets(tmp_path, extra, is_successful):
    for name, more, scores in (("a", extra[0], (1, 0)), ("b", extra[1], (1, 0.5))):
        column, _, cell = more.partition("=")
        rows = [f"{name},t{n},{score}{cell and ','}{cell}" for n, score in enumerate(scores)]
        make.write(tmp_path / f"{name}.csv", "\n".join([f"model,task,score{column}", *rows]))
    assert rows_of(runs_of(tmp_path), "is_successful") == [[one] for one in is_successful]


def test_a_score_is_chosen_by_its_key(tmp_path):
    one = make.trial()
    one["verifier_result"]["rewards"] = {"style": 0.0, "reward": 1.0}
    make.harbor_job(tmp_path, one)
    assert runs_of(tmp_path)["score"].tolist() == [1.0]
    assert runs_of(tmp_path, score="style")["score"].tolist() == [0.0]
    with pytest.raises(SourceError, match="no score is named 'speed'; there are reward, style"):
        runs_of(tmp_path, score="speed")


def test_a_file_of_outcomes_overrules_runs_and_flags_them(tmp_path):
    make.harbor_job(tmp_path / "job", make.trial(), make.trial(reward=0.0))
    ids = runs_of(tmp_path / "job")["run_id"].tolist()
    stated = make.write(tmp_path / "o.csv", f"run_id,outcome,reason\n{ids[0]},not measured,the task is broken\n")
    runs = runs_of(tmp_path / "job", outcomes=stated)
    assert rows_of(runs, "is_successful", "run_flags") == [[None, ["overruled"]], [False, []]]


@pytest.mark.parametrize(
    ("rows", "stated"),
    [
        ([{"Ticket": f"A-{n}", "task": "t", "score": n % 2} for n in range(4)], ["A-2", "A-3"]),
        ([{"ticket": n, "task": f"t{n % 2}", "score": 1, "epoch": n // 2} for n in range(4)], ["2", "3"]),
        ([{"trial uuid": f"u{n}", "task": "t", "score": 0} for n in (0, 1, 2, 3, 3)], ["u2", "u3"]),  # with a copy
    ],
)
def test_a_file_of_outcomes_may_name_runs_by_their_own_ids(tmp_path, rows, stated):
    path = make.write(tmp_path / "runs.jsonl", "\n".join(map(json.dumps, rows)))
    outcomes = make.write(tmp_path / "o.csv", f"run_id,outcome\n{stated[0]},success\n{stated[1]},not measured\n")
    runs = runs_of(path, outcomes=outcomes)
    is_overruled = has_flag(runs, "overruled")
    assert is_overruled.tolist() == [False, False, True, True, False][: len(rows)]
    assert rows_of(runs[is_overruled], "is_successful") == [[True], [None]]
    make.write(tmp_path / "o.csv", f"run_id,outcome\n{stated[0]},success\nA-9,success\n")
    with pytest.raises(SourceError, match="no run has the id 'A-9'"):
        runs_of(path, outcomes=outcomes)


@real
@pytest.mark.parametrize("name", ["atif", "mini-swe-agent", "swe-agent"])
def test_real_trajectories_are_all_used(name):
    logs = trajectories.load(SHARED / "trajectories" / name)
    assert set(logs.ledger["status"]) == {"used"}
    assert len(logs.messages)
    assert logs.tool_calls["result"].notna().all() or name == "atif"
    assert not (logs.messages["reasoning"].ne("") & logs.messages["reasoning"].eq(logs.messages["text"])).any()


@real
def test_real_logs_of_inspect_are_all_used_and_have_the_mean_that_one_states():
    logs = trajectories.load(SHARED / "inspect")
    assert set(logs.ledger["status"]) == {"used"}
    assert len(logs.runs) == logs.plans["planned"].sum() == 78
    assert logs.runs["score"].notna().all()
    (path,) = (SHARED / "inspect").glob("*.json")
    (stated,) = json.loads(path.read_bytes())["results"]["scores"]
    runs = logs.runs[logs.runs["source"] == str(path)]
    assert runs["score"].mean() == pytest.approx(stated["metrics"]["accuracy"]["value"])
    assert runs["task_id"].nunique() == stated["scored_samples"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SHAPES = (
    make.trial(),
    {"n_total_trials": 1, "stats": {}},
    make.atif("a", "b"),
    make.tau2(make.simulation("0", 0, 1.0)),
    make.inspect_log(make.sample("a")),
    make.mini(),
    {"trajectory": [{"action": "", "observation": ""}], "history": [], "info": {}},
    {"resolved_ids": [], "submitted_ids": []},
    {"a": {"model_name_or_path": "m", "model_patch": ""}},
    make.tb_trial(),
    make.tb_summary(make.tb_trial()),
    make.tb_metadata("a"),
    make.tb_lock("a"),
    make.tau_run(1, 0),
    {
        "evaluation_id": "e",
        "sample_id": "1",
        "evaluation": {"score": 1.0, "is_correct": True},
        "metadata": {"run_id": "t"},
    },
)


def assert_parsing_never_raises(shape: dict[str, Any], data: st.DataObject, *names: str) -> None:
    broken = {key: data.draw(JSON) if data.draw(st.booleans()) else value for key, value in shape.items()}
    for name, document in product(names, (broken, [broken])):
        assert parse(name, json.dumps(document).encode()).status in ("used", "skipped", "failed")


@given(st.sampled_from(SHAPES), st.data())
def test_parsing_never_raises_whatever_a_document_of_a_format_holds(shape, data):
    assert_parsing_never_raises(shape, data, "x.traj.json")


def test_an_archive_in_which_nothing_stands_yet_is_named_as_one():
    assert parse("a.eval", b"PK\x05\x06" + b"\0" * 18) == ("failed", "an archive without a log of inspect_ai in it", {})


@given(st.binary(max_size=200))
def test_parsing_never_raises_for_bytes(data):
    for name in ("a.eval", "a.csv", "a.jsonl", "a.parquet", "a.json", "rollout-2026-06-08T12-00-00-a.jsonl"):
        for start in (b"", b"PK\x03\x04_journal/", b"PAR1"):
            assert parse(name, start + data).status in ("used", "skipped", "failed")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("runs.csv", b"\xef\xbb\xbf", "a table without rows"),
        ("runs.json", b"[1, 2]", "not a known format of trajectories"),
        ("runs.json", b'{"results": [1]}', "not a known format of trajectories"),
    ],
)
def test_what_holds_no_runs_is_skipped_and_said(name, data, said):
    assert parse(name, data)[:2] == ("skipped", said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sessions/rollout-a.jsonl.zst", "a compressed rollout: decompress it with zstd -d"),
        ("runs.ods", "a spreadsheet: save it as CSV"),
        ("notes.zst", "not named like a log"),
        ("rollout-a.jsonl", ""),
    ],
)
def test_files_that_are_not_read_say_why(name, said):
    assert accepts(name) == said


def test_an_exported_table_beside_its_runs_adds_no_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path, "a.csv", "task,model,passed\nt,oak,1\nu,oak,0\n")
    rates = kinds.rates(trajectories.load(".").runs).drop(columns="warning")  # it counts the copies
    for command in ("trajectories . --list all", "show . --list all"):
        assert CliRunner().invoke(main, [*command.split(), "--output", "runs.csv"]).exit_code == 0
        pd.testing.assert_frame_equal(kinds.rates(trajectories.load(".").runs)[[*rates]], rates)


def test_what_is_wrong_with_a_broken_file_is_named_once():
    assert parse("a.json", b'{"steps": [')[:2] == ("failed", "JSONDecodeError: Input data was truncated")


def table(folder, name, text):
    make.write(folder / name, text)
    return trajectories.load(folder)


def test_a_missing_score_is_not_filled_from_an_outcome_nor_from_how_a_run_ended(tmp_path):
    rows = [f"t{i},oak,{0.7 if i < 3 else ''},{'timeout' if i == 5 else 'done'},{i != 0}" for i in range(6)]
    runs = table(tmp_path, "a.csv", "\n".join(["task,model,score,status,passed", *rows])).runs
    assert runs["score"].count() == 3
    assert runs["score"].dropna().tolist() == [0.7] * 3
    assert runs["is_successful"].tolist() == [False, True, True, True, True, True]
    assert not has_flag(runs, "no_outcome").any()
    by_score, by_outcome = (kinds.rates(runs, value=value).iloc[0] for value in ("score", "is_successful"))
    assert (by_score["n"], round(by_score["estimate"], 6)) == (3, 0.7)
    assert (by_outcome["n"], round(by_outcome["estimate"], 6)) == (6, round(5 / 6, 6))


@pytest.mark.parametrize("names", [("success", "metrics.score"), ("eval.passed", "eval.grade"), ("ok?", "mean/points")])
def test_a_score_in_an_object_is_not_replaced_by_the_outcome_and_titles_name_it(tmp_path, names):
    of_models = {"teal": [(1, 0.6), (1, "")], "wren": [(1, 0.65), (0, 0.65)]}
    rows = [f"t{n},{model},{own[n % 2][0]},{own[n % 2][1]}" for n in range(8) for model, own in of_models.items()]
    make.write(tmp_path / "a.csv", "\n".join([f"task,model,{','.join(names)}", *rows]))
    runs = trajectories.load(tmp_path, columns=f"success={names[0]}").runs
    by_score, by_outcome = (compare.leaderboard(runs, value) for value in ("score", ""))
    assert by_score.table.set_index("model_name")["n"].to_dict() == {"wren": 8, "teal": 4}
    assert by_score.table["estimate"].round(6).tolist() == [0.65, 0.6]
    assert set(by_score.table["measure"]) == {f"mean score ({names[1]})"}
    assert by_outcome.table["estimate"].tolist() == [1, 0.5]
    assert set(by_outcome.table["measure"]) == {"success rate"}


def test_scores_that_are_outcomes_are_called_success_rate(tmp_path):
    rows = [f"t{n},{model},{n % 2},{n % 3}" for n in range(6) for model in ("teal", "wren")]
    runs = table(tmp_path, "a.csv", "\n".join(["task,model,resolved,final", *rows])).runs
    assert kinds.outcomes(runs, "score").title == "success rate"
    assert kinds.outcomes(runs).title == "success rate"
    runs = trajectories.load(tmp_path, columns=["success=resolved", "score=final"]).runs
    assert kinds.outcomes(runs, "score").title == "mean score (final)"
    runs = table(tmp_path, "a.csv", "\n".join(["task,model,exact_match,f1", *rows])).runs
    assert kinds.outcomes(runs).title == "success rate (exact_match)"


@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_a_name_of_a_column_may_span_lines(tmp_path, line):
    header = f'Results of 5" screens{line}task,"Model{line}(full{line}name)","Pas{line}sed?",score'
    logs = table(tmp_path, "a.csv", header + line + "\n".join(f"t{n},m,1,{n}" for n in range(4)))
    assert logs.runs["score"].tolist() == [0, 1, 2, 3]
    assert "; not used: Model (full name) (1 value) and Pas sed? (1 value)" in " ".join(str(logs.chosen).split())


def test_columns_that_name_no_model_are_listed_first_with_the_option_to_type(tmp_path):
    rows = [f"t{i},m {j},{i % 2},n{i}{j}" for i in range(4) for j in range(3)]
    text = "\n".join(["question,LLM used,correct,note", *rows])
    said = str(table(tmp_path, "a.csv", text).chosen.only("no_model"))
    assert "LLM used (3 values) and note (12 values)" in said
    assert "--column model='LLM used'" in said
    logs = trajectories.load(tmp_path, columns="model=LLM used")  # a string is a list of one
    assert sorted(set(logs.runs["model_name"])) == ["m 0", "m 1", "m 2"]
    assert "no_model" not in logs.chosen
    assert "no_model" not in trajectories.load(tmp_path, model="oak").chosen
    assert "model_name = LLM used" in str(logs.chosen)


ROWS = [(f"t{n % 4}", f"m {n // 4}", f"solver {n // 8}", n % 2) for n in range(16)]  # task, model, agent, correct


@pytest.mark.parametrize(
    ("header", "columns", "said"),
    [
        ("task,Engine,agent,correct", [0, 1, 2, 3], "--column model=Engine"),
        ("task,Foundation,agent,correct", [0, 1, 2, 3], "so agent names the models; not used: Foundation (4 values)"),
        ("task,which llm?,system,correct", [0, 1, 2, 3], "so system names the models; not used: which llm? (4 values)"),
        ("task,Provider,agent,correct", [0, 2, 1, 3], ""),  # each agent has one provider
        ("task,agent,difficulty,correct", [0, 1, 2, 3], ""),
        ("task,harness,LM,correct", [0, 2, 1, 3], "harness names the models"),
        ("task,agent,Basis,correct", [0, 2, 1, 3], "--column model=Basis"),  # rows of one agent and task differ
        ("task,checkpoint,correct", [0, 1, 3], "--column model=checkpoint"),
        ("task,`whoami` model,correct", [0, 1, 3], "--column model='`whoami` model'"),
        ('task,"the ""LLM""\'s name",correct', [0, 1, 3], """--column model='the "LLM"'"'"'s name'"""),
    ],
)
def test_a_column_of_models_is_named_also_next_to_agents_and_quoted_for_a_shell(tmp_path, header, columns, said):
    rows = [",".join(str(row[at]) for at in columns) for row in ROWS]
    logs = table(tmp_path, "a.csv", "\n".join([header, *rows]))
    warned, _ = chosen_lines(logs)
    assert bool(warned) == bool(said)
    assert said in str(logs.chosen.only("no_model"))
    if "agent" in header:  # the user may choose the agents
        assert "no_model" not in trajectories.load(tmp_path, columns="model=agent").chosen


def test_findings_and_the_text_of_logs_begin_with_the_warning_that_no_column_is_the_model(tmp_path):
    logs = table(tmp_path, "a.csv", "\n".join(["task,Basis,correct", *(f"q{n},b{n % 3},1" for n in range(9))]))
    found = compare.findings(compare.leaderboard(logs.runs))
    cited = evalkit.Evidence(logs, logs.runs).cite(found)
    said = "No column of a.csv was recognised as the model"
    assert finding_text(cited[0]).startswith(said)
    assert [one.code for one in cited[1:]] == [one.code for one in found]
    assert repr(logs).startswith(said)
    named = trajectories.load(tmp_path, columns="model=Basis")
    assert len(evalkit.Evidence(named, named.runs).cite(found)) == len(found)


def test_the_first_sentence_on_many_models_has_the_rate_of_the_first_row(tmp_path):
    rows = [f"q{n},m{model:02},{int(n < model % 7)}" for model in range(43) for n in range(7)]
    runs = table(tmp_path, "a.csv", "\n".join(["task,model,correct", *rows])).runs
    best = kinds.rates(runs).nlargest(1, "estimate").iloc[0]
    rate = format_interval(best["estimate"], best["low"], best["high"])
    assert answer(runs).text.startswith(
        f"43 models, sorted by rate; the first has a success rate of {rate}; `evalkit c"
    )


def test_many_models_and_an_empty_column_of_models_are_named_even_with_one_name_for_all(tmp_path):
    rows = [f"t{n % 2},,llm {n // 2},{n % 3 % 2}" for n in range(140)]
    text = "\n".join(["task,model,LLM in use,correct", *rows])
    make.write(tmp_path / "a.csv", text)
    for options in ({}, {"model": "oak"}):
        ((warned,), _) = chosen_lines(trajectories.load(tmp_path, **options))
        assert "LLM in use (70 values)" in warned
        assert "--column model='LLM in use'" in warned


def test_scores_of_another_table_are_not_mixed_with_outcomes(tmp_path):
    scored = "\n".join(["task,model,score,passed", *(f"t{n},elm,0.{n + 2},{n % 2}" for n in range(6))])
    table(tmp_path, "scored.csv", scored)
    runs = table(tmp_path, "passed.csv", "\n".join(["task,model,passed", *(f"t{n},oak,1" for n in range(6))])).runs
    assert runs.groupby("model_name")["score"].count().to_dict() == {"elm": 6, "oak": 0}
    assert runs.groupby("model_name")["is_successful"].count().to_dict() == {"elm": 6, "oak": 6}
    (tmp_path / "scored.csv").unlink()
    assert runs_of(tmp_path)["score"].tolist() == [1] * 6
    make.write(tmp_path / "trial" / "result.json", make.trial(reward=0.4))
    assert sorted(runs_of(tmp_path)["score"].dropna()) == [0.4]


@pytest.mark.parametrize(
    ("words", "cells", "outcomes"),
    [
        (["yes=merged,closed", "no=open"], ["Merged", "open", "closed"], [True, False, True]),
        (["yes=gut", "missing=Timeout, kaputt"], ["gut", "timeout", "kaputt"], [True, None, None]),
        (["no=error"], ["pass", "ERROR", "unsolved"], [True, False, False]),
    ],
)
def test_the_user_states_what_words_of_outcomes_mean(tmp_path, words, cells, outcomes):
    text = "\n".join(["task,model,verdict", *(f"t{n},elm,{cell}" for n, cell in enumerate(cells * 2))])
    make.write(tmp_path / "a.csv", text)
    with pytest.raises(SourceError, match="--column yes=WORD,WORD --column no=WORD --column missing=WORD"):
        trajectories.load(tmp_path)
    runs = trajectories.load(tmp_path, columns=words).runs
    assert [None if pd.isna(one) else one for one in runs["is_successful"]] == outcomes * 2


@pytest.mark.parametrize("name", ["val_loss", "WER", "error-rate", "Perplexity", "brevity"])
def test_the_name_of_a_column_of_scores_tells_whether_lower_is_better(tmp_path, name):
    rows = [f"t{n},{model},{n / 20 + base}" for n in range(9) for model, base in {"elm": 0.1, "oak": 0.5}.items()]
    make.write(tmp_path / "a.csv", "\n".join([f"task,model,{name}", *rows]))
    runs = trajectories.load(tmp_path, columns=f"score={name}").runs
    assert outcomes(runs).title == f"mean score ({name})"
    assert ("lower scores may be better" in answer(runs)[0]) == (name != "brevity")


@pytest.mark.parametrize(("encoding", "is_told"), [("utf-8", False), ("utf-16", False), ("gb18030", True)])
def test_a_file_with_an_unknown_encoding_is_named(tmp_path, encoding, is_told):
    (tmp_path / "a.csv").write_text("model,task,score\n模型,x,1\n模型,y,0\n", encoding=encoding)
    assert ("not UTF-8: read as Windows-1252" in str(trajectories.load(tmp_path).chosen)) == is_told


@pytest.mark.parametrize(
    ("text", "rows", "said"),
    [
        ('t0,a,1,ok\nt1,a,1,"oops\nt2,a,0,x\nt3,a,0,x', None, "line 3: a quote is never closed"),
        ('t0,a,1,"ok', None, "line 2: a quote is never closed"),
        (f't0,a,1,"{"x" * 200_000}"\nt1,a,0,y', 2, ""),
        ('t0,a,1,"two\nlines"\nt1,a,0,"said ""so"""', 2, ""),
        ('t0,a,1,x\nt1,"a,0,x\nt2,a",0,x', 2, "line 3: a quoted cell spans 2 lines like rows; is a quote missing?"),
        ("\n".join(f't{n},"a,0,x\nt{n},b",0,x' for n in range(9)), 9, "6 other quoted cells like these"),
        ("t0,a,1,x\ntask,model,passed,text\nt1,a,0,x", 2, ""),
        ("t0,a,1,x,y\nt1,a,0,x", 2, "1 row with more cells than columns"),
        ('t0,a,1,ok\nt1,a,1,"left, then\nt2,a,0,"x"\nt3,a,0,"y"', None, "line 3: a quote is never closed, or followed"),
        ('"t0","a","1","ok\n"t1","a","0","x, y"', None, "line 2: a quote is never closed, or followed by text"),
        (r't0,a,1,"said \"so, yes\""', None, "line 2: a quote is never closed, or followed by text"),
        ('t0,a,1,"x" \n"t1" ,"a",0,5" deep\nt2,a,0,"x" y', 3, ""),  # all cells are where they should be
        ('t0,a,1,"left, then\nt1,a,0,went on, and on"\nt2,a,0,x', 2, "line 2: a quoted cell spans 2 lines like rows"),
        ('task,model,passed,"the\ntext"\nt1,a,0,x', 1, ""),
        ('t0,a,1,two\nlines"\nt1,a,0,x', 3, "1 row with fewer cells than columns"),
        ('t0,a,1,"x\n\nt1,a,0,y\n\nt2,a,0,z"\n\nt3,a,1,z', 2, "line 2: a quoted cell spans 5 lines like rows"),
        ('t0,a,1,"x\r\r\nt1,a,0,y"\r\r\nt2,a,0,z', 2, "line 2: a quoted cell spans"),
        ('t0,a,1,"x\n# part 2, of 3\nt1,a,0,y"\nt2,a,0,z', 2, "line 2: a quoted cell spans 3 lines like rows"),
        ('t0,a,1,"Dear all, see:\n\nsome text, a list\n\nand an end"\nt1,a,0,x', 2, ""),
    ],
)
def test_quotes_that_are_not_closed_and_long_cells_lose_no_row_silently(tmp_path, text, rows, said):
    header = "" if text.startswith("task,") else "task,model,passed,text\n"
    if rows is None:
        with pytest.raises(SourceError, match=said):
            table(tmp_path, "a.csv", header + text)
        return
    logs = table(tmp_path, "a.csv", header + text)
    assert len(logs.runs) == rows
    assert said in str(logs.chosen)
    assert bool(logs.chosen.only("table")) == bool(said)


@pytest.mark.parametrize(
    ("header", "row", "score"),
    [
        ("task;model;score", "t0;a;12,5 %", 0.125),
        ("task;model;score", "t0;a;12,5%", 0.125),
        ("task;model;score", "t0;a;12,5", 12.5),
        ("task\tmodel\tscore", "t0\ta\t12.5 %", 0.125),
    ],
)
def test_decimal_commas_are_read_also_in_percent(tmp_path, header, row, score):
    assert table(tmp_path, "a.csv", f"{header}\n{row}").runs["score"].tolist() == [score]


@pytest.mark.parametrize(
    ("task", "is_doubtful"), [("Overall", True), ("AVG", True), ("mean", True), ("meaning", False)]
)
def test_rows_that_look_like_summaries_of_others_are_named(tmp_path, task, is_doubtful):
    rows = [f"{name},a,{n % 2}" for n, name in enumerate(["x", "y", task])]
    logs = table(tmp_path, "a.csv", "\n".join(["task,model,score", *rows]))
    assert (f"rows of {task} count as tasks" in str(logs.chosen)) == is_doubtful


@pytest.mark.parametrize(
    ("rows", "kept", "said"),
    [
        (["oak,,0.5", "elm,x,1", "elm,,1"], ["elm", "oak", "oak"], "2 rows without a task left out"),
        (["elm,,1", "elm,,0"], ["elm", "elm", "oak", "oak"], "2 rows without a task: each counts as a task of its own"),
        (["Total,x,1", "Total,y,0"], ["Total", "Total", "oak", "oak"], "Total count as models; --where model_name!="),
    ],
)
def test_rows_without_a_task_are_left_out_if_their_model_has_tasks_and_else_named(tmp_path, rows, kept, said):
    logs = table(tmp_path, "a.csv", "\n".join(["model,task,score", "oak,x,1", "oak,y,0", *rows]))
    assert sorted(logs.runs["model_name"]) == kept
    assert said in str(logs.chosen)


def test_an_exported_run_without_a_task_is_a_run(tmp_path):
    rows = ["model_name,task,score,counts_as", "oak,x,1,success", "oak,,0,failure"]
    assert len(table(tmp_path, "a.csv", "\n".join(rows)).runs) == 2


@pytest.mark.parametrize(("row", "is_left_out"), [("Mean,,0.5", True), (",TOTAL,0.5", True), ("Meaning,,1", False)])
def test_summaries_without_a_task_or_a_model_are_no_runs(tmp_path, row, is_left_out):
    logs = table(tmp_path, "a.csv", f"model,task,score\noak,x,1\noak,y,0\n{row}")
    assert logs.runs["model_name"].tolist() == ["oak", "oak"] + ([] if is_left_out else ["Meaning"])
    assert logs.runs["is_successful"].notna().all()
    assert ("1 row without a task left out" in str(logs.chosen)) == is_left_out


RIDDLES = "model,riddle,points\noak,x,1\noak,y,0\n"


def test_a_table_that_is_not_used_is_an_error_if_it_is_named_and_else_a_note(tmp_path):
    used, unused, empty = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    table(tmp_path, "a.csv", "model,task,score\noak,x,1\noak,y,0\n")
    for path in (unused, empty):
        make.write(path, RIDDLES)
    said = "b.csv: not used: no table of runs: no column for the task_id; there are model, riddle"
    for folder in (tmp_path, f"{tmp_path}/", f"{tmp_path}/*.csv"):
        logs = trajectories.load(folder)
        assert said in str(logs.chosen.notes[0])
        assert len(logs.runs) == 2
    with pytest.raises(SourceError, match=r"b.csv: no table of runs: no column for the task_id"):
        trajectories.load([used, unused])
    empty.unlink()
    logs = trajectories.load([used, unused], columns="task=riddle")  # the column of one table
    assert sorted(logs.runs["task_id"]) == ["x", "x", "y", "y"]
    with pytest.raises(SourceError, match="no column 'puzzle'"):
        trajectories.load([used, unused], columns="task=puzzle")


def test_objects_in_cells_are_read_by_their_fields(tmp_path):
    rows = [
        {"model": {"name": "oak", "temp": n}, "task": {"id": f"t{n}", "suite": "s"}, "out": {"reward": n, "err": {}}}
        for n in (0, 1)
    ]
    runs = table(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))).runs
    assert rows_of(runs, "model_name", "task_id", "score") == [["oak", "t0", 0.0], ["oak", "t1", 1.0]]
    runs = trajectories.load(tmp_path, columns=["dataset=task.suite", "model=model.temp"]).runs
    assert rows_of(runs, "model_name", "task_type") == [["0", "s"], ["1", "s"]]


def test_values_that_say_neither_yes_nor_no_are_missing_and_named(tmp_path):
    values = ["1", "0", "2", "-1", "1_0", "yes", "n", "1.0", "100 %", "0.5", "n/a", ""]
    logs = table(tmp_path, "a.csv", "\n".join(["task,model,success", *(f"t{i},a,{v}" for i, v in enumerate(values))]))
    expected = [True, False, None, None, None, True, None, True, True, None, None, None]  # n is a letter among others
    assert [None if pd.isna(one) else one for one in logs.runs["is_successful"]] == expected
    assert "5 cells of success can't be read, such as '2'" in str(logs.chosen)


def test_durations_are_read_in_seconds_and_those_that_are_none_are_named(tmp_path):
    seconds: dict[str, float | None] = {"46s": 46, "1:03": 63, "1:02:03": 3723, "2m 5s": 125, "350ms": 0.35}
    seconds |= {"PT1M3S": 63, "12.5": 12.5, "0 days 00:01:03": 63, "soon": None, "-3s": None, "yes": None, "": None}
    rows = [f"t{i},a,1,{text}" for i, text in enumerate(seconds)]
    logs = table(tmp_path, "a.csv", "\n".join(["task,model,passed,duration", *rows]))
    durations = logs.runs["duration"].astype("object").where(logs.runs["duration"].notna(), None)
    assert dict(zip(seconds, durations, strict=True)) == seconds
    assert "3 cells of duration can't be read, such as 'soon'" in str(logs.chosen)


def test_where_no_run_was_measured_the_first_sentence_says_how_runs_ended(tmp_path):
    errors = [
        {"message": "ConnectionError('refused')", "traceback": ""},
        {"message": "refused", "traceback": "Traceback\n  line 1\nhttpx.ConnectionError: refused\n"},
    ]
    for model, error in zip("ab", errors, strict=True):
        samples = [make.sample(f"s{i}", error=error, scores=None) for i in range(6)]
        make.write(tmp_path / f"{model}.json", make.inspect_log(*samples, model=model, task_id=model))
    logs = evalkit.load(tmp_path)
    said = "12 of 12 runs ended with ConnectionError"
    assert summary(logs, {}, answer(logs.runs)).startswith(said)
    assert "SWE" not in summary(logs, {}, answer(logs.runs))
    assert describe_comparison(logs.runs).startswith(said)
    assert finding_text(compare.findings(compare.leaderboard(logs.runs))[0]).startswith(said)


def test_samples_without_a_score_in_a_cancelled_evaluation_are_cancelled(tmp_path):
    samples = [make.sample("s0"), *(make.sample(f"s{n}", scores={}) for n in range(1, 4))]
    make.write(tmp_path / "a.json", make.inspect_log(*samples, status="cancelled"))
    assert evalkit.load(tmp_path).runs["status"].tolist() == ["completed"] + ["cancelled"] * 3
    make.write(tmp_path / "a.json", make.inspect_log(*samples[1:], status="cancelled"))
    runs = evalkit.load(tmp_path).runs
    assert describe_comparison(runs).startswith("3 of 3 runs ended with cancellation: no run was measured.")


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("error", "openai.RateLimitError: slow down", "RateLimitError"),
        ("failed", "KeyError('x')", "KeyError"),
        ("error", "no space left", "status error"),
        ("cancelled", "ValueError: x", "status cancelled"),
        ("", "httpx.ReadTimeout: 30 s", "ReadTimeout"),  # only the error says that a run has no outcome
        ("completed", "disk is full", "disk is full"),
    ],
)
def test_the_class_of_an_exception_says_how_runs_ended_also_to_failures_and_audit(tmp_path, status, error, said):
    rows = [f't{n},oak,,{status},"{error}"' for n in range(4)]
    logs = table(tmp_path, "a.csv", "\n".join(["task,model,score,status,error", *rows]))
    first = f"4 of 4 runs ended with {said}: no run was measured."
    assert answer(logs.runs)[0].startswith(first)
    assert describe_failures(logs).startswith(first)
    assert finding_text(compare.audit(logs, checks=["names"]).findings[0]).startswith(first)


@pytest.mark.parametrize(("successes_of_elm", "is_adjusted"), [(9, True), (6, False)])
def test_adjusted_rates_are_a_column_if_the_sentence_mentions_them(tmp_path, successes_of_elm, is_adjusted):
    rows = [f"easy{n},elm,{int(n < successes_of_elm)}" for n in range(12)]
    rows += [f"{level}{n},oak,{int(n < most)}" for level, most in {"easy": 10, "hard": 5}.items() for n in range(12)]
    make.write(tmp_path / "a.csv", "\n".join(["task,model,success", *rows]))
    result = CliRunner().invoke(main, ["trajectories", str(tmp_path / "a.csv")])
    sentence, models, *_ = result.output.split("\n\n")
    assert ("adjusted for tasks it ranks above elm" in sentence) == is_adjusted
    header, _, *cells = [line.split() for line in models.splitlines()]
    assert (" ".join(header[-3:]) == "adjusted for tasks") == is_adjusted
    assert ([row[-2:] for row in cells] == [["56", "%"], ["62", "%"]]) == is_adjusted


@pytest.mark.parametrize("command", ["trajectories --list all", "show", "view -o x", "compare", "audit", "failures"])
def test_every_command_states_first_that_no_column_is_the_model(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    rows = [f"t{n % 5},e{n // 5},0" for n in range(15)]
    make.write(tmp_path / "my runs.csv", "\n".join(["task,Engine,score", *rows]))
    name, *options = command.split()
    result = CliRunner().invoke(main, [name, "my runs.csv", *options])
    assert result.output.startswith("No column of my runs.csv was recognised as the model")
    assert "Columns of my runs.csv: task_id = task" in result.output
    if "evalkit show" in result.output:
        assert "evalkit show 'my runs.csv' --run RUN" in result.output


def test_the_scorer_is_named_in_the_title_of_rates_and_the_others_beside_it(tmp_path):
    scores = {"includes": {"value": "C"}, "match": {"value": "I"}}
    samples = [make.sample(f"s{i}", scores=scores, target=["3", "three"]) for i in range(6)]
    for model in "ab":
        make.write(tmp_path / f"{model}.json", make.inspect_log(*samples, model=model, task_id=model))
    logs = evalkit.load(tmp_path, where="task_id!=s0")
    assert kinds.outcomes(logs.runs).title == "success rate (includes)"
    assert "success rate (includes) [95 %]" in summary(logs, {}, answer(logs.runs))
    said = ["score: includes; there is also match (--score NAME selects one)", "only runs with task_id!=s0"]
    assert [str(one) for one in logs.chosen.notes] == said
    assert all(text[1:] in kinds.describe_runs(logs.runs, "x", logs.chosen) for text in said)
    board = compare.leaderboard(logs.runs)
    assert set(compare.standings(board, logs.runs)["outcome"]) == {"success rate (includes)"}
    shown = evalkit.load(tmp_path / "a.json").show(logs.runs["run_id"].iloc[0])
    facts = {"model a", "task s1", "repetition 0", "score 1", "target 3 three", "scorer includes"}
    assert facts <= {" ".join(fact.split()) for fact in shown.facts}


@pytest.mark.parametrize(
    ("row", "columns"), [(records.Plan, "plans"), (records.Published, "published"), (records.Fact, "facts")]
)
def test_a_named_row_has_the_columns_of_its_table(row, columns):
    assert row._fields == tuple(column.name for column in records.RECORDS[columns])
