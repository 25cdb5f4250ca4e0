"""Folders of made-up trajectories of every format, after the facts of the formats."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any


def write(path: Path, value: Any) -> Path:
    """Write a JSON document, or text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def trial(task: str = "fix-bug", reward: float | None = 1.0, error: str = "", **changes: Any) -> dict[str, Any]:
    """Return the result of a Harbor trial."""
    return {
        "id": "0",
        "task_name": task,
        "trial_name": f"{task}__abc",
        "source": "terminal-bench",
        "task_checksum": "c0ffee",
        "config": {"job_id": "job-1", "agent": {"name": "terminus-2", "model_name": "openai/gpt-4o"}},
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": "gpt-4o", "provider": "openai"},
        },
        "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 40, "n_output_tokens": 20, "cost_usd": 0.5},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": {"exception_type": error, "exception_message": "it broke"} if error else None,
        "started_at": "2026-11-01T10:00:00Z",
        "finished_at": "2026-11-01T10:01:30Z",
        **changes,
    }


def harbor_job(folder: Path, *trials: dict[str, Any], planned: int = 0) -> Path:
    """Write a job with its trials."""
    job = {"id": "job-1", "n_total_trials": planned or len(trials), "stats": {"n_completed_trials": len(trials)}}
    write(folder / "result.json", job)
    for number, one in enumerate(trials):
        write(folder / f"{one['task_name']}__{number}" / "result.json", {**one, "id": f"{folder.name}-{number}"})
    return folder


def atif(*messages: str, reference: str = "", copied: int = 0, prompt: int = 10) -> dict[str, Any]:
    """Return a trajectory of one step for each message, the first ones copied from an earlier trajectory."""
    steps = [
        {
            "step_id": number + 1,
            "source": "agent" if number else "user",
            "message": message,
            "is_copied_context": number < copied,
            **({"metrics": {"prompt_tokens": prompt, "completion_tokens": 1, "cost_usd": 0.25}} if number else {}),
        }
        for number, message in enumerate(messages)
    ]
    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": "openai/gpt-4o"}
    follows = {"continued_trajectory_ref": reference} if reference else {}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps, **follows}


def simulation(task: str, trial: int, reward: float | None, reason: str = "user_stop") -> dict[str, Any]:
    """Return a simulation of tau2-bench."""
    return {
        "id": f"{task}-{trial}",
        "task_id": task,
        "trial": trial,
        "seed": 7,
        "start_time": "2026-11-01T10:00:00",
        "end_time": "2026-11-01T10:00:05",
        "duration": 5.0,
        "termination_reason": reason,
        "agent_cost": 0.25,
        "user_cost": 0.5,
        "reward_info": None if reward is None else {"reward": reward, "reward_breakdown": {"DB": reward}},
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "tool_calls": [{"id": "call-1", "name": "find_order", "arguments": {"id": 3}}]},
            {"role": "tool", "id": "call-1", "content": "order 3", "error": False},
            {"role": "assistant", "content": "done", "cost": 0.0},
        ],
    }


def tau2(*simulations: dict[str, Any], trials: int = 2) -> dict[str, Any]:
    """Return the results of tau2-bench."""
    info = {
        "git_commit": "abc",
        "num_trials": trials,
        "max_steps": 100,
        "agent_info": {"implementation": "llm_agent", "llm": "gpt-4o", "llm_args": {"temperature": 0.5}},
        "environment_info": {"domain_name": "retail"},
    }
    tasks = [{"id": task} for task in sorted({one["task_id"] for one in simulations})]
    return {"timestamp": "2026-11-01", "info": info, "tasks": tasks, "simulations": list(simulations)}


def sample(number: str, value: Any = "C", epoch: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a sample of inspect_ai, as its summary and as the whole of it."""
    return {
        "id": number,
        "epoch": epoch,
        "scores": {"match": {"value": value}},
        "model_usage": {"openai/gpt-4o": {"input_tokens": 5, "output_tokens": 2, "input_tokens_cache_read": 3}},
        "started_at": "2026-11-01T10:00:00+00:00",
        "total_time": 2.5,
        "completed": True,
        "messages": [{"role": "user", "content": "attachment://a"}, {"role": "assistant", "content": "4"}],
        "attachments": {"a": "2 + 2?"},
        **changes,
    }


def inspect_log(*samples: dict[str, Any], status: str = "success", **changes: Any) -> dict[str, Any]:
    """Return a log of inspect_ai as one document; changes are of its evaluation."""
    evaluation = {
        "task": "sums",
        "task_id": "eval-1",
        "created": "2026-11-01T10:00:00+00:00",
        "model": "openai/gpt-4o",
        "model_args": {"api_key": "sk-secret-0123456789"},
        "dataset": {"samples": len({one["id"] for one in samples})},
        "config": {"epochs": 1, "message_limit": 8},
        **changes,
    }
    return {"version": 2, "status": status, "eval": evaluation, "samples": list(samples)}


def inspect_archive(log: dict[str, Any], *, is_running: bool = False, is_old: bool = False) -> bytes:
    """Return a log of inspect_ai as an archive; one still written has no header, one of 2024 short summaries."""
    kept = ["id", "epoch", "scores", "limit", "error"]
    if not is_old:
        kept += ["model_usage", "started_at", "total_time", "completed"]
    summaries = [{key: one[key] for key in kept if key in one} for one in log["samples"]]
    header = {key: value for key, value in log.items() if key != "samples"}
    members: dict[str, Any] = {"_journal/start.json": {"version": 2, "eval": log["eval"]}}
    members |= {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in log["samples"]}
    members["_journal/summaries/1.json"] = summaries
    if not is_running:
        members |= {"summaries.json": summaries, "header.json": header}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value))
    return target.getvalue()


def mini(**info: Any) -> dict[str, Any]:
    """Return a trajectory of mini-swe-agent."""
    stated = {"exit_status": "Submitted", "mini_version": "2.4.6"}
    stated["model_stats"] = {"instance_cost": 0.5, "api_calls": 2}
    stated["config"] = {"agent": {"step_limit": 50}, "model": {"model_name": "gpt-4o"}}
    messages = [{"role": "system", "content": "You …"}, {"role": "assistant", "content": "ls"}]
    return {"info": {**stated, **info}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}


def tb_trial(task: str = "fix", resolved: bool | None = True, mode: str = "unset", **changes: Any) -> dict[str, Any]:
    """Return a trial of Terminal-Bench; its id is made of the task and the attempt."""
    attempt = changes.pop("attempt", "1-of-1")
    return {
        "id": f"{task}-{attempt}",
        "trial_name": f"{task}.{attempt}",
        "task_id": task,
        "instruction": f"Do {task}.",
        "is_resolved": resolved,
        "failure_mode": mode,
        "parser_results": None if resolved is None else {"test_it": "passed" if resolved else "failed"},
        "recording_path": f"/home/secret-person/{task}/sessions/agent.cast",
        "total_input_tokens": 120,
        "total_output_tokens": 30,
        "trial_started_at": "2025-08-28T03:16:00+00:00",
        "trial_ended_at": "2025-08-28T03:17:30+00:00",
        **changes,
    }


def tb_summary(*trials: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a run of Terminal-Bench."""
    ids: dict[bool, list[str]] = {True: [], False: []}
    for trial in trials:
        ids[trial.get("is_resolved") is True].append(trial["task_id"])
    counts = {"n_resolved": len(ids[True]), "n_unresolved": len(ids[False])}
    return {"results": list(trials), **counts, "resolved_ids": ids[True], "unresolved_ids": ids[False], "accuracy": 0.5}


def tb_metadata(*tasks: str, **changes: Any) -> dict[str, Any]:
    """Return the metadata of a run of Terminal-Bench."""
    return {
        "run_id": "run-1",
        "dataset_name": "terminal-bench-core",
        "dataset_version": "0.1.1",
        "agent_name": "terminus",
        "model_name": "openai/gpt-4o",
        "task_ids": list(tasks),
        "n_attempts": 1,
        "dataset_size": len(tasks),
        "username": "secret-person",
        "output_path": "/home/secret-person/runs",
        **changes,
    }


def tb_lock(*tasks: str, **changes: Any) -> dict[str, Any]:
    """Return the lock of a run of Terminal-Bench."""
    return {
        "lockfile_version": "1.0",
        "invocation": {"command": "tb", "args": ["--agent-kwarg", "api_key=secret-person"]},
        "agent": {"name": "terminus", "model_name": "openai/gpt-4o"},
        "run_config": {"n_attempts": 1, "global_timeout_multiplier": 1.0, "global_agent_timeout_sec": None},
        "dataset": {"name": "terminal-bench-core", "version": "0.1.1", "task_ids": list(tasks)},
        **changes,
    }


def tau_run(task: int, trial: int, reward: float = 1.0, error: str = "", domain: str = "Airline") -> dict[str, Any]:
    """Return a run of tau-bench version 1."""
    chat = [
        {"role": "system", "content": f"# {domain} agent policy\n\nBe kind."},
        {"role": "user", "content": f"hello {task} {trial}"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "name": "find", "content": "found"},
    ]
    info: dict[str, Any] = {"user_cost": 0.5, "reward_info": {"reward": reward}}
    if error:
        info, chat, reward = {"error": error, "traceback": "File /home/secret-person/a.py"}, [], 0.0
    return {"task_id": task, "reward": reward, "info": info, "traj": chat, "trial": trial}


def lines(path: Path, *records: Any) -> Path:
    """Write records, a line each; text as it is."""
    return write(path, "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))


def claude(session: str, number: int, message: Any, **changes: Any) -> dict[str, Any]:
    """Return a record of a session of Claude Code: what a user says as text, or an answer."""
    return {
        "parentUuid": f"u{number - 1}",
        "isSidechain": False,
        "cwd": "/home/jane/thesis",
        "gitBranch": "secret-branch",
        "sessionId": session,
        "version": "2.1.1",
        "type": "user" if isinstance(message, (str, list)) else "assistant",
        "uuid": f"u{number}",
        "timestamp": f"2026-06-15T10:00:{number:02d}.000Z",
        "message": {"role": "user", "content": message} if isinstance(message, (str, list)) else message,
        **changes,
    }


def answer(own_id: str, *blocks: Any, read: int = 4, cached: int = 6, written: int = 5, model: str = "opus") -> dict:
    """Return an answer of a model in Claude Code: texts, or calls of tools by their names and ids."""
    content = [
        {"type": "text", "text": one} if isinstance(one, str) else {"type": "tool_use", "name": one[0], "id": one[1]}
        for one in blocks
    ]
    usage = {"input_tokens": read, "cache_read_input_tokens": cached, "output_tokens": written}
    return {"id": own_id, "role": "assistant", "model": model, "content": content, "usage": usage}


def result(call: str, text: str = "done", *, error: bool = False) -> list[dict[str, Any]]:
    """Return what a tool answered in Claude Code."""
    return [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}]


def codex(kind: str, second: int = 0, outer: str = "", **payload: Any) -> dict[str, Any]:
    """Return a line of a rollout of Codex."""
    if not outer:
        outer = "event_msg" if kind in ("user_message", "agent_message", "token_count", "task_started") else kind
    named = payload if kind == outer else {"type": kind, **payload}
    return {"timestamp": f"2026-06-08T12:00:{second:02d}.000Z", "type": outer, "payload": named}


def said(role: str, text: str, second: int = 0) -> dict[str, Any]:
    """Return a message as an item of Codex."""
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
    return codex("message", second, "response_item", role=role, content=content)


def totals(read: int, written: int, *, last: tuple[int, int] | None = None, second: int = 0) -> dict[str, Any]:
    """Return a count of tokens of Codex: those of the session so far, and of the last call."""
    usages = {"total": (read, written)} | ({"last": last} if last else {})
    info = {
        f"{name}_token_usage": {"input_tokens": one[0], "output_tokens": one[1], "total_tokens": sum(one)}
        for name, one in usages.items()
    }
    return codex("token_count", second, info=info)


def meta(own_id: str, second: int = 0, **changes: Any) -> dict[str, Any]:
    """Return the first line of a rollout of Codex."""
    about = {"timestamp": f"2026-06-08T12:00:{second:02d}.000Z", "cwd": "/home/jane/thesis", "cli_version": "0.153.0"}
    return codex("session_meta", second, id=own_id, **{**about, **changes})
