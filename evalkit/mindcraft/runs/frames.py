"""Frames of runs and agents, made of what was combined."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.io import Column, frame, frame_of
from evalkit.kinds import run_ids
from evalkit.mindcraft.runs.arrays import COUNTS, STATUSES
from evalkit.mindcraft.runs.combine import CombinedRuns, TaskRuns
from evalkit.mindcraft.runs.models import Named
from evalkit.mindcraft.table import AGENTS, FLAGS, LOG_FLAGS, RUNS
from evalkit.mindcraft.tasks.facts import Facts, metrics_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_OF_LOGS = (
    "source", "raw_score", "completion_status", "timed_out", "final_system_message", "near_final_message",
    "agent_log_processed", "skipped_turns", "task_start", *COUNTS,
)  # fmt: skip
_OF_RUNS = ("run_id", "model_name", "task_id", "repetition", "experiment")
_OF_NAME = ("model_name", "model_source", "experiment", "experiment_folder", "experiment_total", "suite")


def runs_frame(tasks: Sequence[TaskRuns], combined: CombinedRuns, logs: "pa.Table") -> "pd.DataFrame":
    """Make the frame of runs: the columns of `RUNS`, then one ``metric_NAME`` for every metric of the definitions."""
    import pandas as pd

    of, repetitions = combined.of_task, combined.repetitions
    own = [tasks[task] for task in of.tolist()]
    numbers = np.array([repetition.number for repetition in repetitions], int)
    values = _outcome_columns(combined, numbers)
    values |= _columns_of_few([task.named for task in tasks], of, _of_name, _OF_NAME)
    values |= _columns_of_few([task.facts for task in tasks], of, dict, tuple(Facts.__annotations__))
    logged = np.array([repetition.n_agents for repetition in repetitions], int)
    tasks_of_runs = [task.folder.task_id for task in own]
    values |= {
        "run_id": run_ids("mindcraft", [task.folder.path for task in own], tasks_of_runs, numbers.tolist()),
        "kind": ["mindcraft"] * len(own),
        "source": [task.folder.folder for task in own],
        "task_id": tasks_of_runs,
        "flat_layout": [task.folder.flat for task in own],
        "agent_count": values["agent_count"].fillna(pd.Series(logged)),
        "has_definition": [task.definition is not None for task in own],
        "definition_file": [(task.definition or {}).get("definition_file") for task in own],
        "repetition_rule": [repetition.rule for repetition in repetitions],
        "total_agent_logs_found": [len(repetition.logs) for repetition in repetitions],
        "final_system_message": _taken(logs["final_system_message"], combined.message),
        "parsing_errors": _joined_errors(combined, logs),
    }
    values |= {column.name: [None] * len(own) for column in RUNS if column.name not in values}
    runs = frame_of({column.name: values[column.name] for column in RUNS}, RUNS)
    metrics, codes = _few([task.definition for task in tasks])
    table = metrics_frame([metrics_of(definition or {}) for definition in metrics])
    return runs if table.columns.empty else runs.join(table.take(codes[of]).reset_index(drop=True))


def _of_name(named: Named) -> dict[str, Any]:
    return {**named.fields, **named._asdict(), "experiment_total": named.results.total}


def _columns_of_few(
    objects: Sequence[Any], of: np.ndarray, row: Callable[[Any], Mapping[str, Any]], names: Sequence[str]
) -> "dict[str, pd.Series]":
    """Make columns of a few objects that many runs share."""
    few, codes = _few(objects)
    table = frame(map(row, few), [column for column in RUNS if column.name in names])
    return {name: table[name].take(codes[of]).reset_index(drop=True) for name in table}


def _few(objects: Iterable[Any]) -> tuple[list[Any], np.ndarray]:
    """Give each object once, and the places of all among them."""
    once: list[Any] = []
    places: dict[int, int] = {}
    codes = []
    for value in objects:
        if id(value) not in places:
            places[id(value)] = len(once)
            once.append(value)
        codes.append(places[id(value)])
    return once, np.array(codes, int)


def _outcome_columns(combined: CombinedRuns, numbers: np.ndarray) -> dict[str, Any]:
    """Give the columns that say what runs came to."""
    status = np.array(STATUSES, object)[combined.status]
    known = ~np.isnan(combined.raw_score)
    successful = combined.score == 1
    none = np.zeros(len(status), bool)
    flags = {f"flag_{name}": combined.flags.get(name, none) for name in FLAGS}
    return {
        "repetition": numbers,
        "overall_raw_score": combined.raw_score,
        "overall_score": combined.score,
        "score": combined.score,
        "overall_is_successful": successful,
        "is_successful": np.where(known, successful, None),
        "overall_is_completed": combined.score > 0,
        "overall_completion_status": status,
        "status": status,
        "score_scale": combined.scale,
        "started": combined.started,
        "duration": combined.duration,
        "turns": combined.counts["message_count"],
        **combined.counts,
        **flags,
        "flags": _lists_of(combined.flags, len(status)),
    }


def _lists_of(flags: Mapping[str, np.ndarray], n: int) -> list[list[str]]:
    """Give the names of the flags of each run."""
    lists: list[list[str]] = [[] for _ in range(n)]
    for name, carried in flags.items():
        for i in np.flatnonzero(carried).tolist():
            lists[i].append(name)
    return lists


def _taken(column: "pa.ChunkedArray", places: np.ndarray) -> "pa.ChunkedArray":
    """Take values by their places; a missing one for -1."""
    import pyarrow as pa

    return column.take(pa.array(places, mask=places < 0))


def _joined_errors(combined: CombinedRuns, logs: "pa.Table") -> list[str]:
    """Give what was wrong with the logs of each run."""
    errors = _errors_of(logs)
    joined: list[list[str]] = [[] for _ in combined.repetitions]
    for run, log in zip(combined.run_of_log.tolist(), combined.logs.tolist(), strict=True) if errors else ():
        joined[run] += errors.get(log, [])
    return ["; ".join(own) for own in joined]


def _errors_of(logs: "pa.Table") -> dict[int, list[str]]:
    """Give what was wrong with the few logs that could not be read, by their places."""
    broken = np.flatnonzero(~logs["agent_log_processed"].to_numpy())
    return dict(zip(broken.tolist(), logs["parsing_errors"].take(broken).to_pylist(), strict=True))


def agents_frame(runs: "pd.DataFrame", combined: CombinedRuns, logs: "pa.Table") -> "pd.DataFrame":
    """Make the frame of agents: one row per log, in the order of the runs, with the columns of `AGENTS`."""
    import pyarrow as pa

    own = logs.take(pa.array(combined.logs))
    values: dict[str, Any] = {name: own[name] for name in _OF_LOGS}
    for name in _OF_RUNS:
        values[name] = runs[name].take(combined.run_of_log)
    values["agent_name"] = combined.agents
    errors = _errors_of(logs)
    values["parsing_errors"] = ["; ".join(errors.get(log, ())) for log in combined.logs.tolist()]
    flags = flag_arrays(own["flags"])
    none = np.zeros(len(own), bool)
    values |= {f"flag_{name}": flags.get(name, none) for name in LOG_FLAGS}
    values["flag_stale_copy"] = combined.stale
    return frame_of({column.name: values[column.name] for column in AGENTS}, AGENTS)


def flag_arrays(flags: "pa.ChunkedArray") -> dict[str, np.ndarray]:
    """Tell for each flag that any log carries which do."""
    import pyarrow.compute as pc

    carried, carriers = pc.list_flatten(flags), pc.list_parent_indices(flags)
    arrays = {}
    for flag in carried.unique().to_pylist():
        arrays[flag] = np.zeros(len(flags), bool)
        arrays[flag][carriers.filter(pc.equal(carried, flag)).to_numpy()] = True
    return arrays


def metrics_frame(metrics: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Make a column ``metric_NAME`` of every metric: numbers, truth values, or text where they are neither."""
    rows = [_flat(own, "metric") for own in metrics]
    names = dict.fromkeys(name for row in rows for name in row)
    return frame(rows, [Column(n, _dtype([row.get(n) for row in rows]), "metric of the definition") for n in names])


def _flat(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{name}_{key}").items()}
    return {name: value}


def _dtype(values: list) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(v, bool) for v in known):
        return "bool?"
    numbers = (isinstance(v, (int, float)) and not isinstance(v, bool) and not abs(v) > 1e300 for v in known)
    return "float" if all(numbers) else "str"
