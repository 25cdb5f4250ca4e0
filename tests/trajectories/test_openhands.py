"""OpenHands: outputs of 0.x and 1.x with their reports and attempts, and the results of the index."""

from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit import trajectories
from evalkit.kinds import has_flag
from tests.trajectories.folders import lines, write
from tests.trajectories.test_formats import SHARED, assert_parsing_never_raises, real, rows_of, runs_of

METADATA = {
    "llm": {"model": "proxy/oak", "api_key": "sk-secret", "temperature": 0.5},
    "dataset": "org/Bench",
    "max_iterations": 100,
    "openhands_sdk_version": "1.8.3",
    "agent_type": "default",
}
METRICS = {
    "accumulated_cost": 0.25,
    "accumulated_token_usage": {"prompt_tokens": 100, "completion_tokens": 20, "cache_read_tokens": 40},
}


def action(number: int, response: str = "", **changes: Any) -> dict[str, Any]:
    """Return an event of 1.x: the call of a tool."""
    return {
        "kind": "ActionEvent",
        "timestamp": f"2026-01-20T10:00:0{number}",
        "source": "agent",
        "thought": [{"type": "text", "text": f"thought {number}"}],
        "action": {"kind": "BashAction", "command": "ls"},
        "tool_name": "bash",
        "tool_call_id": f"call-{number}",
        "tool_call": {"name": "bash", "arguments": '{"command": "ls"}'},
        "llm_response_id": response or f"response-{number}",
        **changes,
    }


def answer(number: int, **observation: Any) -> dict[str, Any]:
    """Return an event of 1.x: what the tool of a call answered."""
    return {
        "kind": "ObservationEvent",
        "timestamp": f"2026-01-20T10:00:0{number}",
        "source": "environment",
        "tool_call_id": f"call-{number}",
        "observation": {"kind": "BashObservation", **observation},
    }


SAID = {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": [{"text": "fix it"}]}}


def line(instance: str = "a", patch: Any = "diff", **changes: Any) -> dict[str, Any]:
    """Return a line of an output."""
    return {
        "instance_id": instance,
        "attempt": 1,
        "test_result": {} if patch is None else {"git_patch": patch},
        "instruction": "fix it",
        "metadata": METADATA,
        "history": [SAID, action(1), answer(1, output="setup.py")],
        "metrics": METRICS,
        "error": None,
        "instance": {"instance_id": instance},
        **changes,
    }


def report(**verdicts: str) -> dict[str, Any]:
    """Return a report as of SWE-bench: the verdict of each instance."""
    names = ("resolved", "unresolved", "empty_patch", "error", "incomplete")
    return {f"{name}_ids": [key for key, verdict in verdicts.items() if verdict == name] for name in names} | {
        "completed_ids": list(verdicts),
        "submitted_ids": list(verdicts),
    }


STUCK = "AgentStuckInLoopError: Agent got stuck in a loop"
MOST = "RuntimeError: Agent reached maximum iteration. Current iteration: 100, max iteration: 100"
BROKEN = "Instance failed after 3 retries. Last error: Agent reached maximum iterations limit"


@pytest.mark.parametrize(
    ("changes", "verdict", "status", "outcome"),
    [
        ({}, "resolved", "completed", True),
        ({}, "unresolved", "unresolved", False),
        ({}, "", "completed", None),  # no report
        ({}, "error", "error", None),
        ({"error": STUCK}, "resolved", "stuck_in_loop", True),  # the patch is graded all the same
        ({"error": STUCK}, "", "stuck_in_loop", None),
        ({"error": MOST}, "unresolved", "unresolved", False),
        ({"error": MOST}, "", "max_iterations", None),
        ({"error": BROKEN}, "unresolved", "error", None),
        ({"error": "Timeout after 3600 s"}, "error", "error", None),
        ({"error": "litellm.APIError: 503"}, "", "error", None),
        ({"patch": "\n"}, "empty_patch", "empty_patch", False),
        ({"patch": ""}, "", "empty_patch", False),
        ({"patch": "", "error": BROKEN}, "empty_patch", "error", None),
        ({"test_result": {"git_patch": "d", "report": {"resolved": True}}}, "", "completed", True),
        ({"patch": None, "test_result": {"score": True}}, "", "completed", True),
        ({"patch": None, "test_result": {"resolved": False}}, "", "completed", False),
        ({"patch": None, "test_result": {"eval_result": {"passed": 1.0}}}, "", "completed", True),
        ({"patch": None, "test_result": {"final_score": {"total": 4, "result": 4}}}, "", "completed", True),
        ({"patch": None, "test_result": {"final_score": {"total": 0, "result": 0}}}, "", "completed", None),
    ],
)
def test_the_report_beside_an_output_and_the_error_decide_the_outcome(tmp_path, changes, verdict, status, outcome):
    lines(tmp_path / "one" / "output.jsonl", line(**changes))
    write(tmp_path / "one" / "output.report.json", report(**({"a": verdict} if verdict else {})))
    write(tmp_path / "other" / "output.report.json", report(a="resolved"))  # of another output
    assert rows_of(runs_of(tmp_path), "status", "is_successful") == [[status, outcome]]


def test_a_line_tells_model_agent_usage_turns_and_limits_without_keys(tmp_path):
    lines(tmp_path / "output.jsonl", line())
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "model_name", "agent", "agent_version", "task_type", "limits", "temperature") == [
        ["proxy/oak", "OpenHands", "1.8.3", "org/Bench", "max_iterations 100", 0.5]
    ]
    assert rows_of(logs.runs, "tokens_in", "tokens_cache", "tokens_out", "cost", "turns") == [[100, 40, 20, 0.25, 1]]
    assert "sk-secret" not in logs.runs.to_csv()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"acp_agent_name": "Claude Code", "acp_agent_version": "2.1"}, ["Claude Code", "2.1"]),
        ({"agent_type": "acp-codex"}, ["acp-codex", None]),
        ({"agent_type": None, "agent_class": "CodeActAgent"}, ["CodeActAgent", "1.8.3"]),
    ],
)
def test_agents_that_run_under_openhands_are_named(tmp_path, metadata, expected):
    lines(tmp_path / "output.jsonl", line(metadata={**METADATA, **metadata}))
    assert rows_of(runs_of(tmp_path), "agent", "agent_version") == [expected]


@pytest.mark.parametrize(("metadata", "model"), [(METADATA, "proxy/oak"), (None, "birch")])
def test_lines_without_metadata_have_those_of_the_folder_else_the_model_it_is_called_by(tmp_path, metadata, model):
    folder = tmp_path / "birch_maxiter_30_N_v1"
    lines(folder / "output.jsonl", line(metadata=None))
    if metadata:
        write(folder / "metadata.json", metadata)
    assert runs_of(tmp_path)["model_name"].tolist() == [model]


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (None, [None, None, None, None]),
        ({"accumulated_cost": 0, "accumulated_token_usage": None}, [None, None, None, None]),
        ({"accumulated_token_usage": dict.fromkeys(METRICS["accumulated_token_usage"], 0)}, [None, None, None, None]),
        ({"accumulated_token_usage": {"prompt_tokens": 5, "cache_read_tokens": 0}}, [5, 0, None, None]),
    ],
)
def test_zero_tokens_and_cost_were_not_counted(tmp_path, metrics, expected):
    lines(tmp_path / "output.jsonl", line(metrics=metrics))
    assert rows_of(runs_of(tmp_path), "tokens_in", "tokens_cache", "tokens_out", "cost") == [expected]


def test_an_instance_counts_once_by_the_output_with_the_spend_of_all_attempts(tmp_path):
    first, second = (line("e", history=[{**SAID, "id": 32 * digit}]) for digit in "12")
    lines(tmp_path / "output.critic_attempt_1.jsonl", line("a", ""), line("b"), line("c", metrics=None), first)
    lines(tmp_path / "output.critic_attempt_2.jsonl", line("a", attempt=2), line("c", attempt=2))
    lines(tmp_path / "output.critic_attempt_3.jsonl", line("d", attempt=3))
    lines(tmp_path / "output.jsonl", line("a", attempt=2), line("b"), line("c", attempt=2), second)
    runs = runs_of(tmp_path).sort_values("task_id")
    assert rows_of(runs, "task_id", "tokens_in", "cost", "retries", "status") == [
        ["a", 200, 0.5, 1, "completed"],
        ["b", 100, 0.25, None, "completed"],
        ["c", None, None, 1, "completed"],  # what the first attempt took is unknown
        ["d", 100, 0.25, None, "completed"],  # the output is not written yet
        ["e", 200, 0.5, 1, "completed"],  # no file has its second attempt
    ]


def test_the_copy_of_an_old_output_with_reports_tells_the_outcome_of_its_lines(tmp_path):
    verdicts = [{"resolved": True}, {"resolved": False}, {"test_timeout": True}, {"empty_generation": True}]
    graded = [line(str(at), test_result={"git_patch": "d", "report": one}) for at, one in enumerate(verdicts)]
    lines(tmp_path / "output.swebench_eval.jsonl", *graded)
    outcomes = [True, False, None, False]
    assert runs_of(tmp_path)["is_successful"].astype("object").where(lambda own: own.notna(), None).tolist() == outcomes
    lines(tmp_path / "output.jsonl", *(line(str(at)) for at in range(4)))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "is_successful") == [[one] for one in outcomes]
    assert {Path(source).name for source in logs.runs["source"]} == {"output.jsonl"}


def test_events_of_both_generations_become_messages_with_calls_and_results(tmp_path):
    parallel = [action(1, "r"), action(2, "r", thought=[])]
    parallel += [answer(1, output="one"), answer(2, content=[{"text": "two"}])]
    failed = [action(3), {"kind": "AgentErrorEvent", "tool_call_id": "call-3", "error": "no such tool"}]
    update = {"kind": "ConversationStateUpdateEvent", "key": "k", "value": "v"}
    lines(tmp_path / "new" / "output.jsonl", line(history=[SAID, *parallel, *failed, update]))
    logs = trajectories.load(tmp_path / "new")
    assert rows_of(logs.messages, "role", "text", "tool_calls") == [
        ["user", "fix it", 0],
        ["assistant", "thought 1", 2],
        ["assistant", "thought 3", 1],
        ["system", "diff", 0],
    ]
    assert rows_of(logs.tool_calls, "result", "is_error") == [["one", False], ["two", False], ["no such tool", True]]
    assert logs.runs["turns"].tolist() == [2]
    old: list[Any] = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "fix it"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}},
        {"id": 2, "source": "agent", "cause": 1, "observation": "run", "content": "setup.py"},
        {"id": 3, "source": "environment", "observation": "agent_state_changed", "content": ""},
    ]
    for name, history in (("old", old), ("oldest", [old[0], old[1:3]])):
        lines(tmp_path / name / "output.jsonl", line(history=history))
        logs = trajectories.load(tmp_path / name)
        assert rows_of(logs.messages, "role", "text")[:2] == [["user", "fix it"], ["assistant", "I look."]]
        assert rows_of(logs.tool_calls, "name", "arguments", "result") == [["run", '{"command":"ls"}', "setup.py"]]
        assert logs.runs["turns"].tolist() == [1]


def test_calls_of_agents_that_run_under_openhands_are_updated(tmp_path):
    begun = {"kind": "ACPToolCallEvent", "tool_call_id": "1", "title": "Bash", "raw_input": {"command": "ls"}}
    ended = {**begun, "raw_output": "setup.py", "status": "failed"}
    lines(tmp_path / "output.jsonl", line(history=[SAID, begun, {"kind": "DreamEvent", "x": 1}, ended]))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.tool_calls, "name", "arguments", "result", "is_error") == [
        ["Bash", '{"command":"ls"}', "setup.py", True]
    ]
    assert rows_of(logs.messages, "role", "text")[2] == ["system", '{"x":1}']


def test_events_of_unknown_kinds_other_lines_and_repeated_instances_are_counted_in_the_ledger(tmp_path):
    strange = [{"kind": "DreamEvent"}, {"kind": "DreamEvent"}, {"who": "?"}]
    own = [line("a", history=strange), line("b"), line("b")]
    lines(tmp_path / "output.jsonl", *own, {"test_result": {}}, "[1]", '{"instance_id": "c", ')
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "task_id", "turns") == [["a", None], ["b", 1]]
    assert logs.ledger["reason"].tolist() == [
        "3 events of unknown types: DreamEvent (2), no kind, 1 line without an instance left out, "
        "1 instance repeated: the last line counts, 1 broken line left out, 1 line without an object left out"
    ]
    assert "records of unknown types are left out: DreamEvent (2) and no kind (1)" in str(logs.chosen)


def index(folder: Path, model: str, **instances: Any) -> Path:
    """Write the results of a model on a benchmark."""
    about = {"agent_name": "OpenHands", "agent_version": "v1", "model": model, "openness": "open"}
    scores = {"benchmark": "bench", "score": 12.5, "metric": "accuracy", "agent_version": "v2", "full_archive": "x"}
    write(folder / "metadata.json", about)
    write(folder / "scores.json", [scores])
    write(folder / "instance_results" / "bench.json", instances)
    return folder


def test_the_index_has_outcomes_costs_models_agents_and_published_figures(tmp_path):
    instances = {"a": {"resolved": True, "cost": 1.5}, "b": {"resolved": None, "cost": 0}, "c": {"resolved": False}}
    index(tmp_path / "results" / "oak-1", "Oak 1", **instances)
    other = index(tmp_path / "alternative_agents" / "codex" / "oak-1", "Oak 1", a={"resolved": False, "cost": None})
    write(other / "metadata.json", {"agent_name": "Codex", "agent_version": "9", "model": "Oak 1"})
    logs = trajectories.load(tmp_path, compare_by="model_name")
    columns = ["model_name", "agent", "agent_version", "task_type", "task_id", "is_successful", "cost"]
    assert rows_of(logs.runs, *columns) == [
        ["Oak 1", "Codex", "v2", "bench", "a", False, None],
        ["Oak 1", "OpenHands", "v2", "bench", "a", True, 1.5],
        ["Oak 1", "OpenHands", "v2", "bench", "b", None, None],
        ["Oak 1", "OpenHands", "v2", "bench", "c", False, None],
    ]
    assert has_flag(logs.runs, "no_outcome").tolist() == [False, False, True, False]
    assert rows_of(logs.published, "model_name", "agent", "task_type", "metric", "value") == [
        ["Oak 1", "Codex", "bench", "accuracy", 0.125],
        ["Oak 1", "OpenHands", "bench", "accuracy", 0.125],
    ]


@pytest.mark.parametrize("shape", [line(), METADATA, {"a": {"resolved": True, "cost": 1}}, report(a="resolved")])
@settings(max_examples=25)
@given(data=st.data())
def test_parsing_never_raises_whatever_a_document_holds(shape, data):
    assert_parsing_never_raises(shape, data, "output.jsonl", "output.json", "scores.json")


@real
@pytest.mark.parametrize(
    ("folder", "outcomes"),
    [
        ("eval_outputs", {"completed": True, "unresolved": False, "empty_patch": False, "error": None}),
        ("v0", {"completed": True, "unresolved": False}),
    ],
)
def test_real_outputs_are_all_used_and_have_the_outcomes_of_their_reports(folder, outcomes):
    logs = trajectories.load(SHARED / "leaderboards" / "openhands" / folder)
    assert set(logs.ledger["status"]) == {"used"}
    assert dict(rows_of(logs.runs, "status", "is_successful")) == outcomes
    assert logs.tool_calls["result"].notna().all()


@real
def test_the_real_index_has_its_null_outcomes_and_published_scores():
    logs = trajectories.load(SHARED / "leaderboards" / "openhands" / "index")
    own = logs.runs[logs.runs["task_type"] == "commit0"].groupby("model_name")["success_rate"].mean()
    stated = logs.published.query("task_type == 'commit0' and metric == 'accuracy'").set_index("model_name")["value"]
    assert own.to_dict() == stated.to_dict()
    assert logs.runs["is_successful"].isna().sum() == has_flag(logs.runs, "no_outcome").sum() == 2


@real
@pytest.mark.parametrize("folder", ["lm-eval/output", "openhands"])
def test_a_url_gives_the_runs_of_the_folder_and_each_run_can_be_shown(folder):
    local = SHARED / "leaderboards" / folder
    remote = fsspec.filesystem("memory")
    for path in filter(Path.is_file, local.rglob("*")):
        remote.pipe(f"/boards/{folder}/{path.relative_to(local)}", path.read_bytes())
    logs, found = trajectories.load(local), trajectories.load(f"memory://boards/{folder}")
    for name in ("runs", "scores", "published", "messages", "tool_calls"):
        own, other = (getattr(one, name) for one in (logs, found))
        columns = own.columns.difference(["source", "run_id", "plan"])
        pd.testing.assert_frame_equal(own[columns], other[columns])
    for run_id in found.runs.groupby("task_type")["run_id"].first():
        assert found.show(run_id).turns
