"""A messy folder of each kind of log: repetitions, copies, broken, foreign, aborted and nested files, long names.

What is true of them is counted by hand: for each model (steps: history) n, and the estimate, NaN where there is
none.
"""

import math
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.crafter.traces import config, environment, hook, runtime, trace
from tests.mindcraft.builders import SCORE, log, task, write_all
from tests.steps.cases import BAD, GOOD, SILENT
from tests.trajectories.folders import inspect_archive, inspect_log, mini, sample, trial

SHARED = "a-family-of-models-of-one-name-and-of-many-sizes-"  # longer than any output shows
ONE, TWO, NONE, SLOW = f"{SHARED}one", f"{SHARED}two", "no-score", "timed-out"
ALL = "all together"

_COPIED = log(f"{SCORE}1", start=1757845000000)
_AGENT_LOG = log(f"{SCORE}1")
MINDCRAFT = {
    f"x/{ONE}/cook/agent_0.json": 1,
    f"x/{ONE}/cook/agent_1.json": b"{",  # an agent's broken log beside a good one
    f"x/{ONE}/bake/Andy_0_0.json": 1,
    f"x/{ONE}/bake/Andy_0_1.json": 0,  # a repetition
    f"x/{ONE}/fry/Andy_0_0.json": None,
    f"x/{ONE}/sticks_missing/Andy_0_0.json": 1,
    f"x/{ONE}/materials_1_rooms_1/Andy_0_0.json": 0.5,
    f"x/{ONE}/copied/Andy_0_0.json": _COPIED,
    f"x/{ONE}/stale/Andy_0_0.json": _COPIED,
    f"x/{ONE}/cook/trace.json": {"session_id": "a", "event_history": []},  # of another kind
    f"below/it/y/{TWO}/bake/Andy_0_0.json": log("Task timeout reached"),
    f"below/it/y/{TWO}/bake/Andy_0_1.json": 1,
    f"below/it/y/{TWO}/fry/Andy_0_0.json": 0,
    f"below/it/y/{TWO}/materials_1_rooms_1/Andy_0_0.json": 1,
    f"x/{NONE}/cook/Andy_0_0.json": log(f"So: {SCORE}1"),  # nearly a final message
    f"x/{NONE}/fry/Andy_0_0.json": b"",
    f"x/{SLOW}/cook/Andy_0_0.json": log("Task timeout reached", who="slow"),  # the agent's own time-outs: failures
    f"x/{SLOW}/fry/Andy_0_0.json": log("Task timeout reached", who="slower"),
}
_NO_PLAN = {"0": ["!getCraftingPlan"], "1": ["!getCraftingPlan"]}
TASKS = {
    **{name: task(target={name: 1}, blocked_access_to_recipe=[]) for name in ("cook", "bake", "fry", "copied")},
    "stale": task(target={"stew": 1}, blocked_access_to_recipe=["0"]),
    "sticks_missing": task("techtree", depth=0, blocked_actions=_NO_PLAN),  # only its name says that items are missing
    "materials_1_rooms_1": task("construction"),
}


_EASY, _HARD = hook("easy_achievement", ["collect_wood"]), hook("hard_achievement", ["collect_iron"])
_TWO = hook("easy_achievement", ["collect_wood", "place_table"])
_INVALID, _UNNAMED = hook("invalid_action"), hook("easy_achievement")


def played(model: str, *hooks: dict, world: str | None = None, difficulty: str = "easy", aborted: bool = False) -> dict:
    events = [] if aborted else [environment(0, hooks), runtime(1)]
    settings = config(model_name=model, difficulty=difficulty, task_instance_id=world)
    return trace(*events, metadata=[settings], session_id=None)


CRAFTER = {
    "good.json": played(ONE, _HARD, _TWO, world="w1"),
    "again.json": played(ONE, _EASY, _INVALID, world="w1"),  # the same world
    "other.json": played(ONE, *[_INVALID] * 3, difficulty="hard"),
    "aborted.json": played(ONE, aborted=True),
    "below/it/good.json": played(TWO, _EASY, difficulty="hard"),
    "below/it/unnamed.json": played(TWO, _UNNAMED),  # does not say which achievement
    "below/nothing.json": played(TWO),
    "none.json": played(NONE, aborted=True),
    "broken.json": b'{"session_id": "a", "event_his',
    "log.json": _AGENT_LOG,  # of another kind
}


_SKIPPED = {
    "step_index": 3, "step": {"function_name": "f", "parameters": {}, "skip_reason": "cell type not there"},
    "success": False, "result_type": "skipped", "result": None, "error": None,
}  # fmt: skip
STEPS = {
    f"{ONE}/execution_history.json": [GOOD, GOOD, BAD, BAD, GOOD],
    f"{TWO}/execution_history.json": [GOOD, SILENT, _SKIPPED],
    "below/it/execution_history.json": [GOOD] * 4,
    f"{NONE}/execution_history.json": [],
    "broken.json": b'[{"function_name": "f", "succ',
    "log.json": _AGENT_LOG,  # of another kind
}


def harbor_trial(model: str, task: str, reward: float | None, error: str = "", number: int = 0) -> tuple[str, dict]:
    made = trial(task, reward, error, id=f"{task}-{model}-{number}")
    made["agent_info"]["model_info"] = {"name": model, "provider": None}
    return f"job/{task}__{model[-3:]}{number}/result.json", made


def _questions(*samples: dict, day: int) -> bytes:
    made = inspect_log(*samples, created=f"2026-11-0{day}T10:00:00+00:00")
    made["eval"]["model"] = TWO
    return inspect_archive(made)


_UNREPORTED = mini()
_UNREPORTED["info"]["config"]["model"]["model_name"] = NONE
TRAJECTORIES = {
    "job/result.json": {"id": "job", "n_total_trials": 10, "stats": {"n_retries": 1}},
    **dict(
        [
            harbor_trial(ONE, "cook", 1.0),
            harbor_trial(ONE, "cook", 0.0, number=1),  # a repetition
            harbor_trial(ONE, "bake", 1.0),
            harbor_trial(ONE, "fry", None, "AgentTimeoutError"),  # the agent's own: a failure
            harbor_trial(ONE, "stew", 0.0, "SandboxBuildFailedError"),  # not the agent's: no measurement
            harbor_trial(TWO, "cook", 1.0),
            harbor_trial(TWO, "bake", 0.0),
            harbor_trial(SLOW, "cook", None, "AgentTimeoutError"),
            harbor_trial(SLOW, "bake", None, "AgentTimeoutError"),
        ]
    ),
    "logs/first.eval": _questions(sample("q1", "I", uuid="a"), sample("q3", "I", uuid="b"), day=1),  # repeated later
    "logs/second.eval": _questions(
        sample("q1", "C", uuid="c"),
        sample("q1", "C", epoch=2, uuid="d"),
        sample("q2", "C", error="RateLimitError", uuid="e"),
        sample("q3", "I", uuid="f"),
        day=2,
    ),
    "untold/a.traj.json": _UNREPORTED,  # without the report that says its outcome
    "table.csv": f"model,task,score\n{SLOW},t1,0\n{SLOW},t2,0\n".encode(),
    "broken.json": b'{"task_name": "a", "trial_na',
    "log.json": _AGENT_LOG,  # of another kind
}


_CHAT = {"messages": [{"role": "system", "content": f"{SCORE}1"}, {"role": "assistant", "content": "Done."}]}
MIXED = {
    **{f"traces/{name}": content for name, content in CRAFTER.items()},
    **{f"runs/{model}/t{n}/Andy_0_0.json": n % 2 for model in ("GPT-4o", "openai/gpt-4o") for n in range(2)},
    "steps [é]/execution_history.json": [GOOD, BAD],
    "runs/GPT-4o/t0/cut.json": b'{"session_id": "a", "event_history": [{"even',  # a trace among runs
    "runs/cut.json": b"",
    "rollouts/chat.json": _CHAT,  # logs of nothing that evalkit knows
    "rollouts/chats.json": [_CHAT, _CHAT],
    "rollouts/turns.json": {"turns": 12, "rollout": _CHAT["messages"]},
    "rollouts/cut.json": b'{"mess',
    "tasks.json": TASKS,
    "config.json": {"a": 1},
}


FOLDERS = {"mindcraft": MINDCRAFT, "crafter": CRAFTER, "steps": STEPS, "trajectories": TRAJECTORIES, "mixed": MIXED}
KINDS = {  # of each model, or history: n, and the estimate
    "mindcraft": {
        ONE: (7, (1 + 0.5 + 0 + 1 + 0 + 1) / 6),  # cook, bake, fry, sticks, building, copied; the stale copy not
        TWO: (4, (0.5 + 0 + 1) / 3),
        NONE: (2, math.nan),
        SLOW: (2, 0.0),
    },
    "crafter": {
        ONE: (3, ((7 + 0.95) / 2 - 0.15) / 2),
        TWO: (3, (1 + 1 + 0) / 3),
        NONE: (0, math.nan),
        ALL: (6, ((7 + 0.95) / 2 - 0.15 + 1 + 1 + 0) / 5),
    },
    "steps": {
        f"{ONE}/execution_history.json": (5, 3 / 5),
        f"{TWO}/execution_history.json": (2, 1 / 2),
        "it/execution_history.json": (4, 1.0),
        f"{NONE}/execution_history.json": (0, math.nan),
        ALL: (11, (3 / 5 + 1 / 2 + 1) / 3),
    },
    "trajectories": {ONE: (4, (1 / 2 + 1 + 0) / 3), TWO: (5, (1 + 0 + 1 + 0) / 4), NONE: (0, math.nan), SLOW: (4, 0.0)},
}


@cache
def _root() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="messy-")  # gone when Python ends


@cache
def folder(kind: str) -> Path:
    """Write the folder of a kind (or `mixed`) once, and give its path: `logs` is in it, and what is given beside."""
    root = Path(_root().name) / kind
    write_all(root / "logs", FOLDERS[kind])
    return write_all(root, {"tasks.json": TASKS} if kind == "mindcraft" else {})


def with_folders(text: str) -> str:
    """Write the paths of folders for ``messy:KIND``."""
    return re.sub(r"messy:(\w+)", lambda name: str(folder(name[1])), text)


def without_folders(text: str) -> str:
    """Write ``messy:KIND`` for the paths of folders."""
    return text.replace(f"{_root().name}/", "messy:")
