"""Small logs, definitions and folders in the shapes and layouts found on disk."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

SCORE = "Task ended with score : "
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def turn(role: Any, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def said(*finals: str) -> list[dict[str, Any]]:
    """A short conversation that ends in these messages."""
    talk = [turn("assistant", "On my way. !nearbyBlocks"), turn("user", "Jill_1: (FROM OTHER BOT)hello")]
    return talk + [turn("system", text) for text in finals]


def _memory(turns: list, **more: Any) -> dict[str, Any]:
    return {"memory": "", "turns": turns, **more}


# a log of each era: how the turns are wrapped
SHAPES = {
    "2024": lambda turns: _memory(turns, name="andy", npc={}, modes={}, memory_bank={}, self_prompt=""),
    "late 2024": lambda turns: _memory(turns, self_prompt=None, last_sender="jill"),
    "early 2025": lambda turns: _memory(turns, self_prompting_state=0, self_prompt=None, last_sender=None),
    "since March 2025": lambda turns: _memory(turns, self_prompting_state=0, taskStart=1757845200000, last_sender=None),
    "forks": lambda turns: _memory([{**t, "imagePath": None} for t in turns], taskStart=1757845200000),
    "list": lambda turns: turns,
}


def log(*finals: str, start: float | None = None, who: str = "") -> dict[str, Any]:
    """The log of one agent as written today; `start` or `who` make it differ from others."""
    return _memory(said(*finals) + [turn("assistant", who)] * bool(who), self_prompting_state=0, taskStart=start)


def write(path: Path, content: Any) -> Path:
    """Write bytes and texts as they are, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def write_all(root: Path, files: Mapping[str, Any]) -> Path:
    """Write a folder: relative path to content; a number or None is a log with this score or without one."""
    for number, (name, content) in enumerate(files.items()):
        if content is None or isinstance(content, (int, float)):
            finals = [] if content is None else [f"{SCORE}{content}"]
            content = log(*finals, start=1757845200000 + number, who=name)
        write(root / name, content)
    return root


def task(task_type: str = "cooking", agent_count: int | None = 2, **more: Any) -> dict[str, Any]:
    """One task definition."""
    counted = {} if agent_count is None else {"agent_count": agent_count}
    return {"goal": "Make it.", "type": task_type, **counted, **more}


# one experiment with every kind of file that lies beside logs
EXPERIMENT = {
    "exp_1/results.txt": "{'model': 'm', 'total': 2}",
    "exp_1/results.json": {"total": 2, "model": "m", "exp_name": "x"},
    "exp_1/last_profile.json": {"name": "Andy", "model": "m"},
    "exp_1/tasks.json": {"cook": task(), "bad entry": 5},
    "exp_1/one_task.json": task(),
    "exp_1/notes.md": "notes",
    "exp_1/cook/Andy_0_0.json": 1,
    "exp_1/cook/Jill_1_0.json": b'{"turns"',
    "exp_1/cook/Andy_0_1.json": b"\xef\xbb\xbf[]",
    "exp_1/cook/hells_kitchen_progress.json": {"taskId": "cook", "agent0Complete": True},
    "exp_1/cook/profile.json": {},
    "exp_1/cook/stray.json": {"a": 1},
    "exp_1/cook/coder.traj.json": [{"role": "system", "content": "of mini-swe-agent"}],
    "exp_1/other/Andy_0_0.json": b"",
    "exp_1/other/picture.png": b"\x89PNG",
    "exp_1/.hidden/Andy_0_0.json": 1,
}
