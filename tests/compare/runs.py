"""Frames of runs for comparisons, made from what each model reached on each task."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalkit.io.frames import frame_of
from evalkit.kinds import RUN_COLUMNS


def runs_of(reached: Iterable[tuple], kind: str = "mindcraft", **more: Mapping[str, Any]) -> pd.DataFrame:
    """Make runs of (model, task, what it reached[, type of task]); a task that comes again is a repetition.

    What a run reached is True or False, a score, or None.
    """
    seen: dict[tuple, int] = {}
    columns: dict[str, list] = {column.name: [] for column in RUN_COLUMNS}
    for number, (model, task, value, *rest) in enumerate(reached):
        repetition = seen[model, task] = seen.get((model, task), -1) + 1
        is_success = value if isinstance(value, bool) else None
        row = {"run_id": str(number), "kind": kind, "source": f"{number}.json", "model_name": model, "task_id": task,
               "task_type": rest[0] if rest else None, "repetition": repetition, "is_successful": is_success,
               "score": None if value is None else float(value), "run_flags": []}  # fmt: skip
        for name, values in columns.items():
            values.append(row.get(name))
    return frame_of(columns, RUN_COLUMNS).assign(**more)


def played(rates: Mapping[str, float], tasks: int = 40, repetitions: int = 1, seed: int = 0) -> list[tuple]:
    """Make what models of these rates reach on the same tasks."""
    rng = np.random.default_rng(seed)
    cells = [(model, task) for model in rates for task in range(tasks) for _ in range(repetitions)]
    return [(model, f"t{task}", bool(rng.random() < rates[model])) for model, task in cells]


def reached(model: str, values: Iterable[Any], tasks: Iterable[str] | None = None) -> list[tuple]:
    """Make what one model reaches, on tasks 0, 1, … if no others are given."""
    return [(model, task, value) for task, value in zip(tasks or map(str, range(999)), values, strict=False)]
