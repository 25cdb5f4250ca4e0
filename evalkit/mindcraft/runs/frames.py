"""Build the frames of runs and agents from combined runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.io import Column, frame, frame_of
from evalkit.kinds import run_ids
from evalkit.mindcraft.format import OUTCOMES
from evalkit.mindcraft.runs.arrays import STATUSES, flag_arrays
from evalkit.mindcraft.runs.combine import CombinedRuns, TaskRuns
from evalkit.mindcraft.runs.models import Named
from evalkit.mindcraft.table import AGENTS, FLAGS, LOG_FLAGS, RUNS
from evalkit.mindcraft.tasks.facts import Facts, flat, metrics_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NOT_MEASURED = np.array([OUTCOMES[status] == "not measured" for status in STATUSES])
_OF_RUNS = ("run_id", "model_name", "task_id", "repetition", "experiment")
_OF_NAME = ("model_name", "model_source", "experiment", "experiment_folder", "experiment_total", "suite")


def runs_frame(tasks: Sequence[TaskRuns], combined: CombinedRuns, logs: "pa.Table") -> "pd.DataFrame":
    """Build the frame of runs: the columns of `RUNS`, then one ``metric_NAME`` for every metric of the definitions."""
    import pandas as pd
    import pyarrow as pa

    of, repetitions = combined.of_task, combined.repetitions
    tasks_by_run = [tasks[task] for task in of.tolist()]
    numbers = np.array([repetition.number for repetition in repetitions], int)
    values = _outcome_columns(combined)
    errors: list[list[str]] = [[] for _ in repetitions]
    for place, messages in _errors_of(combined, logs).items():
        errors[combined.run_of_log[place]] += messages
    values |= _shared_columns([task.named for task in tasks], of, _row_of_name, _OF_NAME)
    values |= _shared_columns([task.facts for task in tasks], of, dict, tuple(Facts.__annotations__))
    logged = np.array([repetition.n_agents for repetition in repetitions], int)
    task_ids = [task.folder.task_id for task in tasks_by_run]
    ids = run_ids("mindcraft", [task.folder.path for task in tasks_by_run], task_ids, numbers.tolist())
    deciding = pa.array(combined.message, mask=combined.message < 0)
    values |= {
        "run_id": ids,
        "kind": ["mindcraft"] * len(tasks_by_run),
        "copy_of": [ids[original] if original >= 0 else None for original in combined.copy_of.tolist()],
        "copied_model": values["model_name"].take(combined.copy_of).mask(combined.copy_of < 0).reset_index(drop=True),
        "source": [task.folder.folder for task in tasks_by_run],
        "task_id": task_ids,
        "repetition": numbers,
        "flat_layout": [task.folder.flat for task in tasks_by_run],
        "agent_count": values["agent_count"].fillna(pd.Series(logged)),
        "has_definition": [task.definition is not None for task in tasks_by_run],
        "definition_file": [(task.definition or {}).get("definition_file") for task in tasks_by_run],
        "repetition_rule": [repetition.rule for repetition in repetitions],
        "total_agent_logs_found": [len(repetition.logs) for repetition in repetitions],
        "final_system_message": logs["final_system_message"].take(deciding),
        "parsing_errors": list(map("; ".join, errors)),
    }
    unknown = [None] * len(tasks_by_run)
    runs = frame_of({column.name: values.get(column.name, unknown) for column in RUNS}, RUNS)
    metrics, codes = _distinct([task.definition for task in tasks])
    table = metrics_frame([metrics_of(definition or {}) for definition in metrics])
    return runs if table.columns.empty else runs.join(table.take(codes[of]).reset_index(drop=True))


def _row_of_name(named: Named) -> dict[str, Any]:
    return {**named.fields, **named._asdict(), "experiment_total": named.results.total}


def _shared_columns(
    objects: Sequence[Any], of: np.ndarray, row: Callable[[Any], Mapping[str, Any]], names: Sequence[str]
) -> "dict[str, pd.Series]":
    """Return columns of objects that many runs share."""
    distinct, codes = _distinct(objects)
    table = frame(map(row, distinct), [column for column in RUNS if column.name in names])
    return {name: table[name].take(codes[of]).reset_index(drop=True) for name in table}


def _distinct(objects: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """Return the distinct objects, and the position of each object among them."""
    once = {id(value): value for value in objects}
    places = {own: place for place, own in enumerate(once)}
    return list(once.values()), np.array([places[id(value)] for value in objects], int)


def _outcome_columns(combined: CombinedRuns) -> dict[str, Any]:
    """Return the columns that describe the outcomes of runs."""
    status = np.array(STATUSES, object)[combined.status]
    successful, none = combined.score == 1, np.zeros(len(status), bool)
    unmeasured = np.isnan(combined.raw_score) & _NOT_MEASURED[combined.status]
    flags: list[list[str]] = [[] for _ in status]
    for name, carried in combined.flags.items():
        for i in np.flatnonzero(carried).tolist():
            flags[i].append(name)
    return {
        "overall_raw_score": combined.raw_score,
        "overall_score": combined.score,
        "score": combined.score,
        "overall_is_successful": successful,
        "is_successful": np.where(unmeasured, None, successful),
        "success_rate": np.where(unmeasured, np.nan, successful),
        "overall_is_completed": combined.score > 0,
        "overall_completion_status": status,
        "status": status,
        "score_scale": combined.scale,
        "started": combined.started,
        "duration": combined.duration,
        "turns": combined.counts["message_count"],
        **combined.counts,
        **{f"flag_{name}": combined.flags.get(name, none) for name in FLAGS},
        "run_flags": flags,
    }


def _errors_of(combined: CombinedRuns, logs: "pa.Table") -> dict[int, list[str]]:
    """Return the parsing errors of logs, by their position in `combined.logs`; few have any."""
    broken = np.flatnonzero(~logs["agent_log_processed"].to_numpy()[combined.logs])
    return dict(zip(broken.tolist(), logs["parsing_errors"].take(combined.logs[broken]).to_pylist(), strict=True))


def agents_frame(runs: "pd.DataFrame", combined: CombinedRuns, logs: "pa.Table") -> "pd.DataFrame":
    """Build the frame of agents: one row per log, in the order of the runs, with the columns of `AGENTS`."""
    in_order = np.array_equal(combined.logs, np.arange(len(logs)))  # as usual: logs are sorted by path, as runs are
    logs_in_order, errors = logs if in_order else logs.take(combined.logs), _errors_of(combined, logs)
    flags = {**flag_arrays(logs_in_order["flags"]), "stale_copy": combined.stale}
    none = np.zeros(len(logs_in_order), bool)
    values: dict[str, Any] = {
        **{name: logs_in_order[name] for name in logs_in_order.column_names},
        **{name: runs[name].take(combined.run_of_log) for name in _OF_RUNS},
        "agent_name": combined.agents,
        "parsing_errors": ["; ".join(errors.get(place, ())) if errors else "" for place in range(len(combined.logs))],
        **{f"flag_{name}": flags.get(name, none) for name in LOG_FLAGS},
    }
    return frame_of({column.name: values[column.name] for column in AGENTS}, AGENTS)


def metrics_frame(metrics: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Build a column ``metric_NAME`` of every metric: numbers, truth values, or text where they are neither."""
    rows = [flat(metric, "metric") for metric in metrics]
    names = dict.fromkeys(name for row in rows for name in row)
    return frame(rows, [Column(n, _dtype([row.get(n) for row in rows]), "metric of the definition") for n in names])


def _dtype(values: list) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(v, bool) for v in known):
        return "bool?"
    numbers = (isinstance(v, (int, float)) and not isinstance(v, bool) and not abs(v) > 1e300 for v in known)
    return "float" if all(numbers) else "str"
