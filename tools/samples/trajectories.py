"""Generate the samples of trajectories: made-up models, tasks and runs, in the formats of five frameworks and a table.

No model ever reached any of these scores: outcomes are drawn with the probabilities below. inspect_ai and
mini-swe-agent write their own logs with mock models. This script writes the others as the formats prescribe.

    python -m tools.samples.trajectories --inspect PYTHON --mini PYTHON    # interpreters with these tools installed

The result is the same every time.
"""

import argparse
import csv
import json
import random
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

JOB = str(UUID(int=72))
ROOT = Path(__file__).parents[2] / "evalkit/samples/trajectories"
START = datetime.fromisoformat("2026-09-14T09:00:00+00:00")
MODELS = {"alder/alder-large": 0.85, "birch/birch-70b": 0.6, "cedar/cedar-8b": 0.25}  # success probabilities
PRICES = {"alder/alder-large": 5e-6, "birch/birch-70b": 8e-7, "cedar/cedar-8b": 1e-7}  # US dollars per token
TASKS = {
    "fix-csv-parser": ("The parser drops the last column of every row.", 0.1),
    "count-log-errors": ("Count the errors of each service in /var/log/app.", 0.2),
    "build-static-site": ("Build the site in /srv/site without warnings.", 0.0),
    "resize-images": ("Resize every picture in /data to 640 pixels.", 0.1),
    "repair-git-repo": ("The repository in /repo can't be cloned any more.", -0.25),
    "train-tiny-model": ("Train the model in /model to an accuracy of 0.9.", -0.35),
    "schedule-backup": ("Back up /home every night.", 0.05),
    "merge-branches": ("Merge the branch feature into main.", -0.1),
}
COMMANDS = (
    ("ls -la", "total 12\n-rw-r--r-- 1 root root 318 main.py\n-rw-r--r-- 1 root root 902 tests.py", False),
    ("cat main.py", "import sys\n\nfor line in sys.stdin:\n    print(line.split(',')[:-1])", False),
    ("python tests.py", "Traceback (most recent call last):\n  AssertionError: 2 != 3", True),
    ("sed -i 's/\\[:-1\\]//' main.py", "", False),
    ("python tests.py", "ok", False),
)


def write(path: Path, value: Any) -> None:
    """Write a JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def at(seconds: float) -> str:
    """Return the time a number of seconds after the start of the first run."""
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def steps(rng: random.Random, model: str, task: str, begun: float, *, fails: bool, ends: bool) -> list[dict[str, Any]]:
    """Return the steps of an ATIF trajectory. If it `ends` by itself, the agent marks the task complete."""
    taken = [{"step_id": 1, "timestamp": at(begun), "source": "user", "message": TASKS[task][0]}]
    count = rng.randint(2, len(COMMANDS) - fails)
    for number, (command, output, _) in enumerate(COMMANDS[:count], start=2):
        read, wrote = 700 + 400 * number + rng.randint(0, 90), rng.randint(40, 160)
        taken.append(
            {
                "step_id": number,
                "timestamp": at(begun + 9 * number),
                "source": "agent",
                "model_name": model,
                "message": f"Step {number - 1}: {command.split()[0]} tells more.",
                "reasoning_content": "The file is small enough to be read whole.",
                "tool_calls": [
                    {"tool_call_id": f"call-{number}", "function_name": "bash", "arguments": {"command": command}}
                ],
                "observation": {"results": [{"source_call_id": f"call-{number}", "content": output}]},
                "metrics": {
                    "prompt_tokens": read,
                    "completion_tokens": wrote,
                    "cached_tokens": read // 2,
                    "cost_usd": round((read + 4 * wrote) * PRICES[model], 7),
                },
            }
        )
    if ends:
        number = len(taken) + 1
        done = {"tool_call_id": f"call-{number}", "function_name": "mark_task_complete", "arguments": {}}
        read = 700 + 400 * number
        taken.append(
            {
                **taken[-1],
                "step_id": number,
                "timestamp": at(begun + 9 * number),
                "message": "The task is done.",
                "tool_calls": [done],
                "observation": {"results": [{"content": ""}]},
                "metrics": {
                    "prompt_tokens": read,
                    "completion_tokens": 30,
                    "cached_tokens": read // 2,
                    "cost_usd": round((read + 120) * PRICES[model], 7),
                },
            }
        )
    return taken


def harbor(rng: random.Random) -> None:
    """Write a Harbor job with three models, eight tasks and three attempts. Some attempts do not finish."""
    job = ROOT / "harbor"
    begun, trials = 0.0, 0
    for model, chance in MODELS.items():
        provider, name = model.split("/")
        for task, (_, easier) in TASKS.items():
            for attempt in range(3):
                begun += 75
                luck, ended = rng.random(), rng.random()
                solved = luck < min(0.97, chance + easier)
                error = "SandboxBuildFailedError" if ended < 0.04 else "AgentTimeoutError" if ended > 0.92 else ""
                if ended > 0.995 or (model, task, attempt) == ("cedar/cedar-8b", "merge-branches", 2):
                    continue  # planned but never run
                trials += 1
                folder = job / f"{task}__{name[:5]}{attempt}"
                taken = steps(rng, model, task, begun, fails=not solved, ends=not error)
                used = [step["metrics"] for step in taken[1:]]
                usage = {
                    "n_input_tokens": sum(one["prompt_tokens"] for one in used),
                    "n_cache_tokens": sum(one["cached_tokens"] for one in used),
                    "n_output_tokens": sum(one["completion_tokens"] for one in used),
                    "cost_usd": round(sum(one["cost_usd"] for one in used), 6),
                }
                broken = error == "SandboxBuildFailedError"
                raised = {
                    "exception_type": error,
                    "exception_message": "made up",
                    "exception_traceback": "",
                    "occurred_at": at(begun + 60),
                }
                result = {
                    "id": str(UUID(int=rng.getrandbits(128))),
                    "task_name": task,
                    "trial_name": folder.name,
                    "trial_uri": f"file:///jobs/{folder.name}",
                    "task_id": {"path": f"tasks/{task}"},
                    "source": "made-up-bench",
                    "task_checksum": task[:4],
                    "config": {
                        "job_id": JOB,
                        "task": {"path": f"tasks/{task}"},
                        "agent": {"name": "terminus-2", "model_name": model},
                    },
                    "agent_info": {
                        "name": "terminus-2",
                        "version": "2.0.0",
                        "model_info": {"name": name, "provider": provider},
                    },
                    "agent_result": None if broken else usage,
                    "verifier_result": None if error else {"rewards": {"reward": float(solved)}},
                    "exception_info": raised if error else None,
                    "started_at": at(begun),
                    "finished_at": at(begun + 9 * len(taken) + 12),
                }
                write(folder / "result.json", result)
                if not broken:
                    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": model}
                    trajectory = {"schema_version": "ATIF-v1.7", "session_id": result["id"], "agent": agent}
                    write(folder / "agent" / "trajectory.json", {**trajectory, "steps": taken})
    stats = {"n_completed_trials": trials, "n_errored_trials": 0, "n_retries": 1}
    write(job / "result.json", {"id": JOB, "n_total_trials": 72, "started_at": at(0), "stats": stats})
    planned = [
        {"task": {"name": task}, "agent": {"name": "terminus-2", "model_name": model}}
        for model in MODELS
        for task in TASKS
        for _ in range(3)
    ]
    write(job / "lock.json", {"schema_version": 3, "n_concurrent_trials": 1, "trials": planned})


def tau2(rng: random.Random) -> None:
    """Write results of tau2-bench with two trials of six tasks."""
    simulations = []
    for task in range(6):
        for trial in range(2):
            reward = float(rng.random() < 0.6)
            reason = (
                "max_steps" if task == 4 and trial else "infrastructure_error" if task == 5 and trial else "user_stop"
            )
            said = [
                {"role": "assistant", "content": "Hi! How can I help you today?"},
                {"role": "user", "content": f"Where is my order {task}?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "call-1", "name": "find_order", "arguments": {"number": task}}],
                    "usage": {"prompt_tokens": 900, "completion_tokens": 30},
                },
                {"role": "tool", "id": "call-1", "content": "sent on Monday", "error": False},
                {"role": "assistant", "content": "It was sent on Monday."},
            ]
            simulations.append(
                {
                    "id": f"{task}-{trial}",
                    "task_id": str(task),
                    "trial": trial,
                    "seed": 300 + trial,
                    "start_time": at(100 * task + 40 * trial),
                    "end_time": at(100 * task + 40 * trial + 21),
                    "duration": 21.0,
                    "termination_reason": reason,
                    "agent_cost": 0.012,
                    "user_cost": 0.008,
                    "reward_info": {"reward": 0.0 if reason != "user_stop" else reward},
                    "messages": said,
                }
            )
    info = {
        "git_commit": "0000000",
        "num_trials": 2,
        "max_steps": 100,
        "max_errors": 10,
        "user_info": {"llm": "birch/birch-70b"},
        "agent_info": {"implementation": "llm_agent", "llm": "alder/alder-large", "llm_args": {"temperature": 0.0}},
        "environment_info": {"domain_name": "made-up-shop"},
    }
    tasks = [{"id": str(task)} for task in range(6)]
    write(ROOT / "tau2" / "results.json", {"info": info, "tasks": tasks, "simulations": simulations})


def inspect(rng: random.Random, python: str) -> None:
    """Let inspect_ai write two logs, one per model, of a task with five questions and two epochs."""
    answers: dict[str, dict[str, list[tuple[int, bool]]]] = {}
    for model, chance in list(MODELS.items())[:2]:
        for question in range(5):
            given = [(rng.random() < chance, 40 + rng.getrandbits(64) % 16) for _ in range(2)]
            answers.setdefault(model, {})[f"sum-{question}"] = [(tokens, is_right) for is_right, tokens in given]
    made_by(python, "inspect_ai", ROOT / "inspect", json.dumps(answers))


def swe(python: str) -> None:
    """Let mini-swe-agent write trajectories of two models on four instances, and write SWE-bench reports on them."""
    names = [f"made__up-{number}" for number in (101, 102, 103, 104)]
    if not made_by(python, "mini_swe_agent", ROOT / "swe-agent"):
        return
    reports = {
        "alder__alder-large": {"resolved_ids": names[:2], "unresolved_ids": names[2:3], "empty_patch_ids": names[3:]},
        "birch__birch-70b": {
            "resolved_ids": names[:1],
            "unresolved_ids": names[1:2],
            "empty_patch_ids": names[2:3],
            "error_ids": names[3:],
        },
    }
    for model, report in reports.items():
        write(ROOT / "swe-agent" / f"{model}.run1.json", {"submitted_ids": names, **report})


def made_by(python: str, tool: str, folder: Path, given: str = "") -> bool:
    """Let a tool write its samples with a given Python interpreter. Without one, keep the existing samples."""
    if not python:
        print(f"{tool}: no Python with it was named, so its samples stay as they are")
        return False
    shutil.rmtree(folder, ignore_errors=True)
    script = Path(__file__).with_name(f"made_by_{tool}.py")
    subprocess.run([python, script, folder], input=given, text=True, check=True)
    return True


def table(rng: random.Random) -> None:
    """Write a table of runs with few columns."""
    path = ROOT / "table" / "runs.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["model", "question_id", "correct", "cost"])
        for model, chance in MODELS.items():
            for question in range(12):
                rows.writerow([model, f"q{question:02}", rng.random() < chance, round(200 * PRICES[model], 6)])


def main() -> None:
    """Write all samples, replacing existing ones."""
    options = argparse.ArgumentParser()
    options.add_argument("--inspect", default="", metavar="PYTHON", help="a Python with inspect_ai")
    options.add_argument("--mini", default="", metavar="PYTHON", help="a Python with mini-swe-agent")
    pythons = options.parse_args()
    for name in ("harbor", "tau2", "table"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    rng = random.Random(20260914)
    harbor(rng)
    tau2(rng)
    inspect(rng, pythons.inspect)
    swe(pythons.mini)
    table(rng)


if __name__ == "__main__":
    main()
