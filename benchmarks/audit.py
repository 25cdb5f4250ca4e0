"""Plant defects in simulated leaderboards, and count how often the audit finds them. Also audit boards without defects.

    python -m benchmarks.audit --boards 20 --write        # writes the table into docs/audit.md

A board is a folder of inspect_ai logs with four models, 30 tasks and four runs of each task by each model. Models
differ in how many tasks they solve. A defect is found if the check for it reports a problem. On boards without a
defect, each reported problem is a false alarm.
"""

import copy
import json
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import click
import pandas as pd

import evalkit
from evalkit.compare import audit

TASKS, EPOCHS = 30, 4
SKILLS = {"alder-large": 0.85, "birch-70b": 0.6, "cedar-8b": 0.52, "dogwood-2b": 0.1}
START, END = "<!-- measured -->", "<!-- end -->"
PAGE = Path(__file__).parents[1] / "docs" / "audit.md"
Log = dict[str, Any]  # log of one model
Board = dict[str, Log]  # logs by file name
Plant = Callable[[Board, Random], Any]  # plants a defect in a board
DEFECTS: dict[str, tuple[str, Plant]] = {}  # by name: the check that should find the defect, and its function


def board(rng: Random) -> Board:
    """Make a leaderboard without a defect."""
    difficulty = [rng.random() for _ in range(TASKS)]
    ids = [f"{rng.choice(['sort', 'parse', 'deploy', 'train'])}-{rng.randrange(16**6):06x}" for _ in range(TASKS)]
    logs = {}
    for model, skill in SKILLS.items():
        chances = [min(max(skill + 0.6 * (0.5 - hard), 0.02), 0.98) for hard in difficulty]
        samples = [
            sample(rng, model, task, epoch, rng.random() < chance)
            for task, chance in zip(ids, chances, strict=True)
            for epoch in range(1, EPOCHS + 1)
        ]
        logs[f"{model}.json"] = log(model, samples, ids)
    return logs


def log(model: str, samples: list[dict[str, Any]], ids: list[str]) -> Log:
    """Make the log of a model."""
    evaluation = {
        "eval_id": model, "run_id": model, "created": "2026-09-14T09:00:00+00:00",
        "task": "chores", "task_id": "chores",
        "dataset": {"samples": len(ids), "sample_ids": ids}, "model": model, "solver": "react",
        "config": {"epochs": EPOCHS, "message_limit": 50}, "model_generate_config": {"temperature": 0.2},
    }  # fmt: skip
    return {"version": 2, "status": "success", "eval": evaluation, "samples": samples}


def sample(rng: Random, model: str, task: str, epoch: int, is_solved: bool) -> dict[str, Any]:
    """Make a run with a transcript of four messages."""
    begun = datetime(2026, 9, 14, tzinfo=UTC) + timedelta(milliseconds=rng.randrange(10**8))
    tokens = {"input_tokens": rng.randrange(2_000, 90_000), "output_tokens": rng.randrange(200, 9_000)}
    call = {"id": "1", "function": "bash", "arguments": {"cmd": "ls"}}
    return {
        "id": task, "epoch": epoch, "uuid": uuid.UUID(int=rng.getrandbits(128)).hex, "input": "Do it.",
        "target": f"answer {task}", "scores": {"match": {"value": "C" if is_solved else "I"}},
        "messages": [
            {"role": "user", "content": f"Please do {task}."},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "content": "a file", "tool_call_id": "1"},
            {"role": "assistant", "content": f"answer {task}" if is_solved else "I do not know."},
        ],
        "model_usage": {model: {**tokens, "total_tokens": sum(tokens.values()), "total_cost": rng.uniform(0.01, 2)}},
        "message_count": 4, "started_at": begun.isoformat(), "total_time": rng.uniform(5, 900),
    }  # fmt: skip


def defect(name: str, check: str) -> Callable[[Plant], Plant]:
    """Register a function that plants a defect, and the check that should find it."""

    def register(plant: Plant) -> Plant:
        DEFECTS[name] = (check, plant)
        return plant

    return register


def of(logs: Board, model: str = "birch-70b") -> Log:
    """Return the log of a model."""
    return logs[f"{model}.json"]


def some(logs: Board, rng: Random, count: int, value: str = "", model: str = "birch-70b") -> list[dict[str, Any]]:
    """Choose random runs of a model; if `value` is given, only runs with this grade."""
    runs = [one for one in of(logs, model)["samples"] if not value or one["scores"]["match"]["value"] == value]
    return rng.sample(runs, min(count, len(runs)))


def _run_again(one: Log, rng: Random) -> None:
    """Replace the runs of a log with new runs of the same tasks and epochs."""
    keys = [(run["id"], run["epoch"]) for run in one["samples"]]
    one["samples"] = [sample(rng, "birch-70b", task, epoch, rng.random() < 0.4) for task, epoch in keys]


def usage(one: dict[str, Any]) -> dict[str, Any]:
    """Return the tokens and cost of a run."""
    return next(iter(one["model_usage"].values()))


@defect("planned trials are not there", "missing trials")
def _missing(logs: Board, rng: Random) -> None:
    gone = {one["uuid"] for one in some(logs, rng, 12, "I")}
    of(logs)["samples"] = [one for one in of(logs)["samples"] if one["uuid"] not in gone]


@defect("a model has fewer runs, without a plan", "unequal runs")
def _unequal(logs: Board, rng: Random) -> None:
    for one in logs.values():
        del one["eval"]["dataset"]
    _missing(logs, rng)


@defect("runs were begun again after errors", "retries")
def _retries(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 6):
        one["error_retries"] = [{"message": "connection reset"}]


@defect("failures were run again until one succeeded", "retried until solved")
def _until_solved(logs: Board, rng: Random) -> None:
    kept, solved = [], set()
    for one in of(logs)["samples"]:
        if one["id"] not in solved:
            kept.append(one)
        if one["scores"]["match"]["value"] == "C":
            solved.add(one["id"])
    of(logs)["samples"] = kept


@defect("a log lies in two places", "copies")
def _copied(logs: Board, rng: Random) -> None:
    logs["backup.json"] = copy.deepcopy(of(logs))


@defect("a submission repeats another one under its own name", "equal runs")
def _submitted_twice(logs: Board, rng: Random) -> None:
    twin = copy.deepcopy(of(logs))
    twin["eval"] |= {"model": "elm-9b", "eval_id": "elm-9b", "run_id": "elm-9b"}
    for one in twin["samples"]:
        one["uuid"] = uuid.UUID(int=rng.getrandbits(128)).hex
    logs["elm-9b.json"] = twin


@defect("a submission repeats another one with other times and tokens", "equal runs")
def _repeated(logs: Board, rng: Random) -> None:
    _submitted_twice(logs, rng)
    for one in logs["elm-9b.json"]["samples"]:
        other = sample(rng, "elm-9b", one["id"], one["epoch"], True)
        one |= {name: other[name] for name in ("model_usage", "started_at", "total_time")}


@defect("the sandbox broke in runs of one model", "infrastructure")
def _broken(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 15):
        one |= {"error": {"message": "ConnectionError('reset')", "traceback": "ConnectionError: reset"}, "scores": {}}


@defect("pass^k leaves out runs that were not measured", "pass^k")
def _pass_hat_k(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 10, "I"):
        one |= {"error": {"message": "RuntimeError('x')", "traceback": "RuntimeError: x"}, "scores": {}}


@defect("runs have no score", "no outcome")
def _no_score(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 8):
        one["scores"] = {}


@defect("runs succeeded after their time was up", "time-outs that succeeded")
def _late(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 5, "C"):
        one["limit"] = {"type": "time", "limit": 600}


@defect("scores above 1", "scores out of range")
def _above_one(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 4):
        one["scores"]["match"]["value"] = 1.5


@defect("successes without a token of output", "success without an answer")
def _silent(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 4, "C"):
        usage(one)["output_tokens"] = 0


@defect("tokens of a model are all 0", "zero tokens or cost")
def _zero(logs: Board, rng: Random) -> None:
    for one in of(logs)["samples"]:
        usage(one).update(input_tokens=0, output_tokens=0, total_tokens=0)


@defect("tokens are missing where runs failed", "tokens missing by ending")
def _tokens_of_successes(logs: Board, rng: Random) -> None:
    for one in some(logs, rng, 200, "I"):
        one["model_usage"] = {}


@defect("a published rate is 4 points too high", "published figures")
def _published(logs: Board, rng: Random) -> None:
    of(logs)["published"] = 0.04


@defect("one model ran at another temperature", "settings")
def _temperature(logs: Board, rng: Random) -> None:
    of(logs)["eval"]["model_generate_config"]["temperature"] = 1.0


@defect("one model had twice the messages", "settings")
def _limits(logs: Board, rng: Random) -> None:
    of(logs)["eval"]["config"]["message_limit"] = 100


@defect("two agents ran one model", "agents")
def _agents(logs: Board, rng: Random) -> None:
    second = copy.deepcopy(of(logs))
    second["eval"] |= {"solver": "planner", "eval_id": "second"}
    _run_again(second, rng)
    logs["second.json"] = second


@defect("the first two models are equally good", "undecided ranks")
def _equal_models(logs: Board, rng: Random) -> None:
    best = {(one["id"], one["epoch"]): one["scores"]["match"]["value"] for one in of(logs, "alder-large")["samples"]}
    for one in of(logs)["samples"]:
        one["scores"]["match"]["value"] = best[one["id"], one["epoch"] % EPOCHS + 1]


@defect("tasks are variants of three templates", "variants")
def _variants(logs: Board, rng: Random) -> None:
    ids = of(logs)["eval"]["dataset"]["sample_ids"]
    names = {task: f"{('sort', 'parse', 'deploy')[place % 3]}_v{place // 3}" for place, task in enumerate(ids)}
    for one in logs.values():
        one["eval"]["dataset"]["sample_ids"] = list(names.values())
        for run in one["samples"]:
            run["id"] = names[run["id"]]


@defect("all models solve most tasks", "tasks that do not separate the models")
def _saturated(logs: Board, rng: Random) -> None:
    easy = set(rng.sample(of(logs)["eval"]["dataset"]["sample_ids"], 20))
    for one in logs.values():
        for run in one["samples"]:
            if run["id"] in easy:
                run["scores"]["match"]["value"] = "C"


@defect("the prompt contains the expected answer", "leaks")
def _told(logs: Board, rng: Random) -> None:
    for one in of(logs)["samples"]:
        one["messages"][0]["content"] += f" (Reference: {one['target']})"


@defect("agents read the benchmark's tests", "leaks")
def _looked(logs: Board, rng: Random) -> None:
    for one in of(logs)["samples"]:
        one["messages"][1]["tool_calls"][0]["arguments"]["cmd"] = "cat /tests/test_outputs.py"


@defect("one model has two names, one with a date", "names")
def _dated(logs: Board, rng: Random) -> None:
    second = copy.deepcopy(of(logs))
    second["eval"] |= {"model": "birch-70b-20260901", "eval_id": "dated"}
    _run_again(second, rng)
    logs["dated.json"] = second


@defect("a log names no model", "unnamed runs")
def _unnamed(logs: Board, rng: Random) -> None:
    of(logs, "dogwood-2b")["eval"]["model"] = ""


def results(one: Log, shift: float = 0.0) -> dict[str, Any]:
    """Return the figures that inspect_ai publishes in a log: the mean over tasks, with `shift` added."""
    values: dict[str, list[float]] = {}
    for run in one["samples"]:
        for score in run["scores"].values():
            values.setdefault(run["id"], []).append({"C": 1.0, "I": 0.0}.get(score["value"], score["value"]))
    mean = fmean(map(fmean, values.values())) + shift
    metrics = {"accuracy": {"name": "accuracy", "value": mean}}
    total = len(one["samples"])
    return {"total_samples": total, "scores": [{"name": "match", "scorer": "match", "metrics": metrics}]}


def audited(logs: Board, checks: Sequence[str] = ()) -> pd.DataFrame:
    """Write a board to files and audit it. The logs publish the rates of their runs, except for planted shifts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, one in logs.items():
            one["results"] = results(one, one.pop("published", 0.0))
            Path(folder, name).write_text(json.dumps(one))
        return audit(evalkit.load(folder, "trajectories"), checks=checks).table.set_index("check")


@click.command()
@click.option("--boards", default=20, show_default=True, help="Boards of each kind; twice as many without a defect.")
@click.option("--write", is_flag=True, help="Write the table into docs/audit.md.")
def main(boards: int, write: bool) -> None:
    """Print how often the audit finds each defect, and how often checks raise false alarms."""
    alarms, computed = Counter[str](), 0
    for seed in range(2 * boards):
        table = audited(board(Random(seed)))
        alarms.update(table.index[table["verdict"].isin(["look", "wrong"])])
        computed += int(table["verdict"].ne("not computed").sum())
    lines = ["| planted defect | check | found | alternative ranking |", "|---|---|---|---|"]
    for name, (check, plant) in DEFECTS.items():
        found = changed = 0
        for seed in range(boards):
            rng = Random(seed)
            logs = board(rng)
            plant(logs, rng)
            table = audited(logs, [check])
            found += int(table["verdict"].isin(["look", "wrong"]).sum())
            changed += int(table["moved"].fillna(0).gt(0).sum())
        lines.append(f"| {name} | {check} | {found} of {boards} | {f'changes in {changed}' if changed else '–'} |")
        print(lines[-1], flush=True)
    false = sum(alarms.values())
    which = ", ".join(f"{name}: {count}" for name, count in alarms.most_common()) or "none"
    summary = (
        f"{2 * boards} boards without a defect raised {false} false alarms in {computed:,} checks that were computed "
        f"({false / computed * 100:.1f} %; {which})."
    )
    print(summary)
    if write:
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(START)
        after = rest.partition(END)[2]
        PAGE.write_text("\n".join([f"{before}{START}", "", *lines, "", summary, "", f"{END}{after}"]), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
