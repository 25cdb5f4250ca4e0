"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.io import Column, Entry, SourceError, absolute, frame, frame_of, paused_gc, unescaped
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.mindcraft.format import OUTCOMES, CompletionStatus, Scale
from evalkit.mindcraft.layout import (
    NO_LOGS,
    UNNAMED,
    ModelNames,
    Named,
    TaskFolder,
    absolute_paths,
    split_repetitions,
    task_folders,
)
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, FLAGS, LOG_FLAGS, RUNS
from evalkit.mindcraft.tasks import (
    Definition,
    Facts,
    TaskDefinitions,
    agent_count_of,
    as_definitions,
    metric_columns,
    metrics_of,
    task_facts,
)
from evalkit.mindcraft.transcript import commands_frame, messages_frame

LEFT_OVER = 300_000  # milliseconds: agents of one run do not start so far apart
_WORDS = re.compile(r"\d+|[^\W\d_]+")
_SHARED = {*Facts.__annotations__, *Named._fields, "kind", "source", "task_id", "flat_layout", "has_definition",
           "definition_file", "suite", "experiment_total"}  # fmt: skip
_OF_TASKS = [column for column in RUNS if column.name in _SHARED]  # that all runs of a task in one folder share
_OF_RUNS = ("run_id", "model_name", "task_id", "repetition", "experiment")  # columns of agents, too
_NOT_LOGGED = ("seed", "tokens_in", "tokens_out", "cost")  # common columns of runs
_NOT_MEASURED = [status for status, outcome in OUTCOMES.items() if outcome == "not measured"]
_COMBINED = ("raw_score", "completion_status", "timed_out", "agent_log_processed", "task_start", "digest",
             *(column.name for column in COUNT_COLUMNS))  # fmt: skip
Columns = dict[str, Any]  # the values of each column: arrays of NumPy or Arrow, or lists, all of one length


class TaskRuns(NamedTuple):
    """The runs of one task in one folder, with everything known about them but their scores."""

    folder: TaskFolder
    definition: Definition | None
    facts: Facts
    metrics: Mapping[str, Any] = {}  # by column
    named: Named = UNNAMED
    ambiguous: bool = False  # the definition


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any], *, all_folders: bool = False) -> Assembled:
    """Assemble the logs of runs; options as for `load`. With `all_folders`, every folder without logs is a run."""
    definitions = as_definitions(options.get("tasks") or ())
    missing, listing = options.get("missing", "keep"), records.listing
    logs, others = records.tables["logs"], records.tables["other_files"]
    sources = unescaped(logs["source"])
    others = others.set_column(0, "source", pa.array(unescaped(others["source"])))
    folders = task_folders(
        sources,
        set(np.flatnonzero(~logs["agent_log_processed"].to_numpy()).tolist()),
        others.filter(pc.not_equal(others["other"], ""))["source"].to_pylist(),
        listing,
        definitions,
        all_folders=all_folders,
    )
    names = ModelNames(listing.root, options.get("layout") or "", others.to_pylist())
    tasks = _known_tasks(folders, sources, logs["task_start"].to_numpy(), names, definitions)
    notes = _ledger_of(definitions, listing.files)
    for folder in [task.folder for task in tasks if task.definition is None and missing != "keep"]:
        if missing == "raise":
            raise SourceError(f"{folder.folder}: no definition of task {folder.task_id!r}")
        notes += [Entry(sources[place], "skipped", f"no definition of task {folder.task_id}") for place in folder.logs]
    if missing == "skip":
        tasks = [task for task in tasks if task.definition is not None]
    tasks.sort(key=attrgetter("folder.folder", "folder.task_id"))
    files = records.files if options.get("original_mtimes") else None
    runs, agents = _frames(tasks, *combine(tasks, logs, options.get("scale", "auto"), files))
    lazy = {"messages": partial(messages_frame, agents), "commands": partial(commands_frame, agents)}
    return Assembled({"runs": runs, "agents": agents}, notes, {"definitions": definitions}, lazy)


def _ledger_of(definitions: TaskDefinitions, files: Iterable[str]) -> list[Entry]:
    """Return the ledger of definitions, with the paths of the source for those within it."""
    if not (entries := definitions.ledger.entries):
        return []
    names = list(files)
    listed = dict(zip(absolute_paths(names), names, strict=True))
    notes = []
    for entry in entries:
        within = listed.get(absolute(entry.source))
        if entry.status == "used" or within is None:
            notes.append(entry._replace(source=within or entry.source))
    return notes


def _known_tasks(
    folders: Iterable[TaskFolder],
    sources: Sequence[str],
    starts: np.ndarray,
    names: ModelNames,
    definitions: TaskDefinitions,
) -> list[TaskRuns]:
    """Determine everything about runs but their scores."""
    tasks = []
    known: dict[tuple, tuple[Definition | None, bool, Facts, dict]] = {}  # many models ran the same tasks, many times
    for folder in folders:
        named = names.name(folder)
        if "task_id" in named.fields:
            folder = folder._replace(task_id=named.fields["task_id"])
        task_id, n_logs, type_of_path = folder.task_id, None, named.fields.get("task_type", "")
        if len(candidates := definitions.candidates(task_id)) > 1:  # the number of logs of a run may tell
            counts = set(map(agent_count_of, candidates))
            paths, begun = [sources[i] for i in folder.logs], starts[list(folder.logs)].tolist()
            runs = split_repetitions(paths, counts.pop() if len(counts) == 1 else None, folder.prefix, begun)
            n_logs = max((len(run.logs) for run in runs), default=0)
        key = (task_id, named.results.task_path, n_logs, type_of_path)
        if key not in known:
            definition, ambiguous = definitions.resolve(task_id, named.results.task_path, n_logs)
            facts, metrics = task_facts(task_id, definition, type_of_path), metric_columns(metrics_of(definition or {}))
            known[key] = definition, ambiguous, facts, metrics
        definition, ambiguous, facts, metrics = known[key]
        tasks.append(TaskRuns(folder, definition, facts, metrics, named, ambiguous))
    return tasks


def combine(
    tasks: Sequence[TaskRuns], records: pa.Table, scale: Scale, files: pa.Table | None = None
) -> tuple[Columns, Columns]:
    """Combine the records of logs into columns of runs, of which `task` is the place in `tasks`, and of their logs.

    `scale` ``auto`` is percent as soon as one construction score exceeds 1. With `files`, whose times are then those of
    the experiment, runs have durations, and time-outs are inferred from them.
    """
    runs, logs = _runs_and_logs(tasks, records, files)
    of_runs = [tasks[place] for place in runs["task"]]
    n_agents, n_logs, run = runs["n_agents"], runs["total_agent_logs_found"], logs["run"]
    timeouts = np.array([task.facts["timeout"] for task in of_runs], float)
    types = np.array([task.facts["task_type"] for task in of_runs], object)
    from_id = np.array([task.facts["facts_source"] == "id" for task in of_runs], bool)
    asked_for = [task.facts["agent_count"] for task in of_runs]
    agent_count = np.array([n if asked is None else asked for asked, n in zip(asked_for, n_agents, strict=True)], int)
    filled = np.flatnonzero(n_logs)  # some have no logs
    firsts = (np.cumsum(n_logs) - n_logs)[filled]

    def by_run(function: np.ufunc, values: np.ndarray, empty: Any) -> np.ndarray:
        """Reduce the values of each run's logs, which stand together, to one; `empty` for a run without any."""
        reduced = np.full((len(n_logs), *values.shape[1:]), empty, values.dtype)
        if len(filled):
            reduced[filled] = function.reduceat(values, firsts)
        return reduced

    starts = logs["task_start"]
    spread = by_run(np.fmax, starts, np.nan) - by_run(np.fmin, starts, np.nan)
    logs["original"] = _originals(logs, spread, of_runs)
    is_copy = logs["original"] >= 0
    logs["log_flags"][:, list(LOG_FLAGS).index("stale_copy")] = is_copy
    started = np.where(is_copy, np.nan, starts)
    seconds = logs["modified"] - started / 1000
    seconds[seconds < 0] = np.nan  # a file older than its start is not an original

    raw, lowest = (by_run(function, logs["raw_score"], np.nan) for function in (np.fmax, np.fmin))
    duration = by_run(np.fmax, seconds, np.nan)
    timed_out, speaks = (by_run(np.logical_or, logs[name], False) for name in ("timed_out", "speaks"))
    is_read = logs["agent_log_processed"]
    some_read, some_unread = (by_run(np.logical_or, values, False) for values in (is_read, ~is_read))
    counts = {column.name: by_run(np.add, logs[column.name], 0) for column in COUNT_COLUMNS}

    construction, unknown, has_score = types == "construction", types == "unknown", ~np.isnan(raw)
    if scale == "auto" and (raw[construction] > 1).any():
        scale = "percent"
    # of an unknown type, a score above 1 is a percentage
    score = np.where((construction & (scale == "percent")) | (unknown & (raw > 1)), raw / 100, raw)
    in_range = (score >= 0) & (score <= 1)
    score = np.where(in_range, score, np.nan)
    successful = score == 1
    scales = [construction & (scale == "percent"), construction, unknown]

    inferred = (duration >= timeouts) & ~successful & ~timed_out
    endings = {
        CompletionStatus.TIMED_OUT: timed_out | inferred,
        CompletionStatus.LOG_FILE_ERROR: (n_logs > 0) & ~some_read,
        CompletionStatus.NO_SCORE_LOGGED: ~has_score,
        CompletionStatus.SUCCESS: successful,
        CompletionStatus.FAILED_PARTIAL_SCORE: raw > 0,
    }
    status = np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))

    # the final message is that of the first log that agrees with the run's status, else of the first that has any
    speaking = np.flatnonzero(logs["speaks"])
    differs = logs["completion_status"][speaking] != status[run[speaking]]
    best_first = speaking[np.lexsort((differs, run[speaking]))]
    with_message, places = np.unique(run[best_first], return_index=True)
    deciding = np.full(len(status), -1)
    deciding[with_message] = best_first[places]

    of_logs = dict(zip(LOG_FLAGS, by_run(np.logical_or, logs["log_flags"], False).T, strict=True))
    flags = {
        **dict.fromkeys(FLAGS, np.zeros(len(status), bool)),
        **of_logs,
        "ambiguous_definition": np.array([task.ambiguous for task in of_runs], bool),
        "facts_from_id": from_id & ~unknown,
        "layout_mismatch": np.array([not task.named.fits_layout for task in of_runs], bool),
        "missing_agent_logs": n_agents < agent_count,
        "extra_agent_logs": n_agents > agent_count,
        "conflicting": of_logs["conflicting"] | (raw > lowest) | (timed_out & (raw != 0) & has_score),
        "quoted_only": of_logs["quoted_only"] & ~speaks,
        "score_out_of_range": has_score & ~in_range,
        "scale_assumed": construction & (scale == "auto") & has_score & (raw != 0),
        "unreadable_logs": some_unread,
        "inferred_timeout": inferred,
    }
    flag_names = np.array(list(FLAGS), object)
    runs |= {
        "agent_count": agent_count,
        "overall_raw_score": raw,
        "overall_score": score,
        "overall_is_successful": successful,
        "overall_is_completed": score > 0,
        "overall_completion_status": status,
        "score_scale": np.select(scales, ["percent", "fraction", "unknown"], "binary"),
        "started": by_run(np.fmin, started, np.nan),
        "duration": duration,
        "original": by_run(np.maximum, logs["original"], -1),
        "deciding_log": deciding,
        "run_flags": [flag_names[carried].tolist() for carried in np.column_stack(list(flags.values()))],
        **counts,
        **{f"flag_{name}": carried for name, carried in flags.items()},
    }
    return runs, logs


def _runs_and_logs(tasks: Sequence[TaskRuns], records: pa.Table, files: pa.Table | None) -> tuple[Columns, Columns]:
    """Return what repetitions there are of each task, and the logs in the order of their runs."""
    sources, starts = unescaped(records["source"]), records["task_start"].to_numpy()
    rows, rules, places, agents = list[tuple](), list[str](), list[int](), list[str]()
    for number, task in enumerate(tasks):
        folder = task.folder
        paths, begun = [sources[i] for i in folder.logs], starts[list(folder.logs)].tolist()
        for run in split_repetitions(paths, task.facts["agent_count"], folder.prefix, begun) or NO_LOGS:
            rows.append((number, run.number, len(set(run.agents)), len(run.logs)))
            rules.append(run.rule)
            places += [folder.logs[i] for i in run.logs]
            agents += run.agents
    names = ("task", "repetition", "n_agents", "total_agent_logs_found")
    runs: Columns = dict(zip(names, np.array(rows, int).reshape(-1, len(names)).T, strict=True))
    runs["repetition_rule"] = np.array(rules, object)

    ordered = records.take(pa.array(places, "int64"))
    logs: Columns = dict(zip(ordered.column_names, ordered.columns, strict=True))
    logs |= {name: logs[name].to_numpy() for name in _COMBINED}
    logs["place"] = places
    logs["run"] = np.repeat(np.arange(len(rows)), runs["total_agent_logs_found"])
    logs["agent_name"] = agents
    logs["speaks"] = pc.is_valid(ordered["final_system_message"]).to_numpy()
    carried = [[name in flags for name in LOG_FLAGS] for flags in ordered["flags"].to_pylist()]
    logs["log_flags"] = np.array(carried, bool).reshape(-1, len(LOG_FLAGS))
    logs["modified"] = np.full(len(places), np.nan)
    if files is not None:
        seconds = files["modified"].to_numpy() / 1e9
        logs["modified"] = seconds[pc.index_in(ordered["source"], files["source"]).to_numpy()]
    return runs, logs


def _frames(tasks: Sequence[TaskRuns], runs: Columns, logs: Columns) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Build the frames of runs and of agents from what `combine` returns."""
    n_runs = len(runs["task"])
    shared = frame(map(_row, tasks), _OF_TASKS).take(runs["task"]).reset_index(drop=True)
    paths = [tasks[place].folder.path for place in runs["task"]]
    ids = [tasks[place].folder.task_id for place in runs["task"]]
    run_id = run_ids("mindcraft", paths, ids, runs["repetition"].tolist())

    unread = np.flatnonzero(~logs["agent_log_processed"])
    errors: list[list[str]] = [[] for _ in range(n_runs)]
    for run, messages in zip(logs["run"][unread], logs["parsing_errors"].take(unread).to_pylist(), strict=True):
        errors[run] += messages
    status, successful = runs["overall_completion_status"], runs["overall_is_successful"]
    original, deciding = runs["original"], runs["deciding_log"]
    unmeasured = np.isnan(runs["overall_raw_score"]) & np.isin(status, _NOT_MEASURED)
    values: Columns = {
        **dict.fromkeys(_NOT_LOGGED, [None] * n_runs),
        **dict(shared.items()),
        **runs,
        "run_id": run_id,
        "score": runs["overall_score"],
        "is_successful": np.where(unmeasured, None, successful),
        "success_rate": np.where(unmeasured, np.nan, successful),
        "status": status,
        "turns": runs["message_count"],
        "final_system_message": logs["final_system_message"].take(pa.array(deciding, mask=deciding < 0)),
        "parsing_errors": list(map("; ".join, errors)),
        "copy_of": pd.Series(run_id, dtype="str").take(original).where(original >= 0),
        "copied_model": shared["model_name"].take(original).where(original >= 0),
    }
    table = frame_of(values, RUNS)
    of_runs = {name: table[name].take(logs["run"]) for name in _OF_RUNS}
    flags = {f"flag_{name}": carried for name, carried in zip(LOG_FLAGS, logs["log_flags"].T, strict=True)}
    texts = list(map("; ".join, logs["parsing_errors"].to_pylist()))
    agents = frame_of({**logs, **of_runs, **flags, "parsing_errors": texts}, AGENTS)
    metrics = metrics_frame([task.metrics for task in tasks])
    return table if metrics.empty else table.join(metrics.take(runs["task"]).reset_index(drop=True)), agents


def _row(task: TaskRuns) -> dict[str, Any]:
    """Return what is known of all runs of a task in a folder."""
    return {
        **task.facts,
        "kind": "mindcraft",
        "source": task.folder.folder,
        "flat_layout": task.folder.flat,
        "has_definition": task.definition is not None,
        "definition_file": (task.definition or {}).get("definition_file"),
        "experiment_total": task.named.results.total,
        **task.named.fields,
        **task.named._asdict(),
        "task_id": task.folder.task_id,
        "task_type": task.facts["task_type"],
    }


def _originals(logs: Columns, spread: np.ndarray, tasks: Sequence[TaskRuns]) -> np.ndarray:
    """Find logs that are copies: equal content, or an equal start of the agent of that name; return the original's run.

    -1 for a log that is no copy. Of the runs that share a log, the one that came later holds the copy: one whose other
    agents started more than `LEFT_OVER` later, as the log is left over from before; else the one whose file is younger,
    if the files' times are those of the experiment; else the later one by the names of model and folders: that of a
    copy has more words. `spread` is between the starts of each run's agents, `tasks` are those of the runs.
    """
    runs, starts = logs["run"].tolist(), logs["task_start"].tolist()
    spread, modified = np.where(spread > LEFT_OVER, spread, 0.0), np.nan_to_num(logs["modified"])
    name_order = cache(lambda run: _name_order(tasks[run]))

    def age(log: int) -> tuple:
        run = runs[log]
        return spread[run], modified[log], name_order(run), run

    original = np.full(len(runs), -1)
    by_start = [
        (start, name) if start == start else None for start, name in zip(starts, logs["agent_name"], strict=True)
    ]
    for marks in (logs["digest"], by_start):
        sharing = defaultdict[Any, list[int]](list)
        for log, mark in enumerate(marks):
            if mark:
                sharing[mark].append(log)
        for shared in sharing.values():
            if len(shared) > 1:
                owner = runs[min(shared, key=age)]
                for log in shared:
                    if runs[log] != owner:
                        original[log] = owner
    return original


def _name_order(task: TaskRuns) -> list[tuple[int, list[tuple[int, int, str]]]]:
    """Return what orders runs by the names of model and folders: how many words, then these; numbers by their value."""
    order = []
    for name in (task.named.model_name, *task.folder.path.split("/"), task.folder.task_id):
        words = _WORDS.findall(name)
        parts = [(0, int(word), "") if word.isdecimal() and len(word) < 20 else (1, 0, word) for word in words]
        order.append((len(parts), parts))
    return order


def metrics_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Build a column of every metric: numbers, truth values, or text where they are neither."""
    columns = []
    for name in dict.fromkeys(name for row in rows for name in row):
        known = [value for row in rows if (value := row.get(name)) is not None]
        if known and all(isinstance(value, bool) for value in known):
            dtype = "bool?"
        elif all(isinstance(v, (int, float)) and not isinstance(v, bool) and not abs(v) > 1e300 for v in known):
            dtype = "float"
        else:
            dtype = "str"
        columns.append(Column(name, dtype, "metric of the definition"))
    return frame(rows, columns)
