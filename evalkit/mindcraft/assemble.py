"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.io import Column, Entry, SourceError, absolute, frame, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.mindcraft.format import OUTCOMES, CompletionStatus, Scale
from evalkit.mindcraft.layout import (
    NO_LOGS,
    Named,
    Repetition,
    TaskFolder,
    absolute_paths,
    name_models,
    split_repetitions,
    task_folders,
)
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, FLAGS, LOG_FLAGS, RECORDS, RUNS
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

T = TypeVar("T")
LEFT_OVER = 300_000  # milliseconds: agents of one run do not start so far apart
_WORDS = re.compile(r"\d+|[^\W\d_]+")
# what runs share: those of a task (but the number of agents that logged), those named alike, those in a folder
_FACTS = {*Facts.__annotations__, "has_definition", "definition_file"} - {"agent_count"}
_OF_TASKS = [*(column for column in RUNS if column.name in _FACTS), Column("ambiguous", "bool", "the definition")]
_OF_NAMES = [
    *(column for column in RUNS if column.name in {*Named._fields, "suite", "experiment_total"}),
    Column("fits_layout", "bool", "the path does"),
]
_OF_FOLDERS = [column for column in RUNS if column.name in ("kind", "source", "task_id", "flat_layout")]
_OF_RUNS = ("run_id", "model_name", "task_id", "repetition", "experiment")  # columns of agents, too
_NOT_LOGGED = ("seed", "tokens_in", "tokens_out", "cost")  # common columns of runs
_NOT_MEASURED = [status for status, outcome in OUTCOMES.items() if outcome == "not measured"]
_STORED = (*(column for column in AGENTS if column.name in ("source", "agent_name")), *RECORDS["logs"])
_COUNTS = [column.name for column in COUNT_COLUMNS]
_FLAGS, _LOG_FLAGS = ([f"flag_{name}" for name in names] for names in (FLAGS, LOG_FLAGS))


class KnownTask(NamedTuple):
    """What is known of a task, which many models ran, many times."""

    definition: Definition | None
    ambiguous: bool  # the definition
    facts: Facts
    metrics: Mapping[str, Any]  # by column


class TaskRuns(NamedTuple):
    """The runs of one task in one folder, with everything known about them but their scores."""

    folder: TaskFolder
    repetitions: Sequence[Repetition]
    task: KnownTask
    named: Named


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any], *, all_folders: bool = False) -> Assembled:
    """Assemble the logs of runs; options as for `load`. With `all_folders`, every folder without logs is a run."""
    definitions = as_definitions(options.get("tasks") or ())
    missing, listing = options.get("missing", "keep"), records.listing
    logs, others = records.tables["logs"], records.tables["other_files"]
    sources = logs["source"].to_pylist()
    folders = task_folders(
        sources,
        set(np.flatnonzero(~logs["agent_log_processed"].to_numpy()).tolist()),
        others.filter(pc.not_equal(others["other"], ""))["source"].to_pylist(),
        listing,
        definitions,
        all_folders=all_folders,
    )
    names = name_models(folders, listing.root, options.get("layout") or "", others.to_pylist())
    tasks = known_tasks(folders, names, sources, logs["task_start"].to_numpy(), definitions)

    # the ledger names files of definitions too; within the source, only those used replace the entries of their files
    notes, entries = [], definitions.ledger.entries
    listed = dict(zip(absolute_paths(listing.files), listing.files, strict=True)) if entries else {}
    for entry in entries:
        within = listed.get(absolute(entry.source))
        if entry.status == "used" or within is None:
            notes.append(entry._replace(source=within or entry.source))
    kept = []
    for task in tasks:
        if task.task.definition is not None or missing == "keep":
            kept.append(task)
            continue
        if missing == "raise":
            raise SourceError(f"{task.folder.folder}: no definition of task {task.folder.task_id!r}")
        reason = f"no definition of task {task.folder.task_id}"
        notes += [Entry(sources[place], "skipped", reason) for place in task.folder.logs]
    kept.sort(key=attrgetter("folder.folder", "folder.task_id"))

    files = records.files if options.get("original_mtimes") else None
    runs, agents = combine(kept, logs, options.get("scale", "auto"), files)
    tasks_of_runs, places = distinct([kept[place].task for place in runs["task"]])
    metrics = metrics_frame([task.metrics for task in tasks_of_runs]).reindex(places).reset_index(drop=True)
    frames = {"runs": runs[list(map(attrgetter("name"), RUNS))].join(metrics)}
    frames["agents"] = agents = agents[list(map(attrgetter("name"), AGENTS))]
    lazy = {"messages": partial(messages_frame, agents), "commands": partial(commands_frame, agents)}
    return Assembled(frames, notes, {"definitions": definitions}, lazy)


def known_tasks(
    folders: Iterable[TaskFolder],
    names: Iterable[Named],
    sources: Sequence[str],
    starts: np.ndarray,
    definitions: TaskDefinitions,
) -> list[TaskRuns]:
    """Determine everything about runs but their scores; `sources` and `starts` are those of all logs."""
    tasks, begun = [], starts.tolist()
    known: dict[tuple, KnownTask] = {}
    for folder, named in zip(folders, names, strict=True):
        if (task_id := named.fields.get("task_id", folder.task_id)) != folder.task_id:
            folder = folder._replace(task_id=task_id)
        paths, own_starts = [sources[place] for place in folder.logs], [begun[place] for place in folder.logs]
        n_logs, type_of_path = None, named.fields.get("task_type", "")
        if len(variants := definitions.variants.get(task_id, ())) > 1:  # the number of logs of a run may tell
            counts = set(map(agent_count_of, variants))
            runs = split_repetitions(paths, counts.pop() if len(counts) == 1 else None, folder.prefix, own_starts)
            n_logs = max((len(run.logs) for run in runs), default=0)
        key = (task_id, named.results.task_path, n_logs, type_of_path)
        if key not in known:
            definition, ambiguous = definitions.resolve(task_id, named.results.task_path, n_logs)
            facts, metrics = task_facts(task_id, definition, type_of_path), metric_columns(metrics_of(definition or {}))
            known[key] = KnownTask(definition, ambiguous, facts, metrics)
        task = known[key]
        runs = split_repetitions(paths, task.facts["agent_count"], folder.prefix, own_starts) or NO_LOGS
        tasks.append(TaskRuns(folder, runs, task, named))
    return tasks


def distinct(items: Sequence[T]) -> tuple[list[T], list[int]]:
    """Return each object once, and the place of each item among these: many runs share one, which is converted once."""
    once = {id(item): item for item in items}
    places = dict(zip(once, range(len(once)), strict=True))
    return list(once.values()), [places[id(item)] for item in items]


def combine(
    tasks: Sequence[TaskRuns], records: pa.Table, scale: Scale = "auto", files: pa.Table | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Combine the records of logs into the frames of runs and of agents.

    Beside their columns, that of runs has `task`, the place in `tasks`, and that of agents `run` and `place`, the rows
    of the run and of the record. `scale` ``auto`` is percent as soon as one construction score exceeds 1. With `files`,
    whose times are then those of the experiment, runs have durations, and time-outs are inferred from them.
    """
    runs, shared, logs = _runs_and_logs(tasks, records)

    # copies of other runs' logs, and what else is known of logs
    speaks = logs["final_system_message"].notna()
    carried = np.zeros((len(logs), len(LOG_FLAGS)), bool)
    for log, names in enumerate(logs["flags"]):
        if names:
            carried[log] = [flag in names for flag in LOG_FLAGS]
    logs = logs.join(pd.DataFrame(carried, columns=_LOG_FLAGS))
    logs["modified"] = np.nan
    if files is not None:
        times = pd.Series(files["modified"].to_numpy() / 1e9, files["source"].to_pylist())
        logs["modified"] = logs["source"].map(times)
    logs["original"] = _originals(logs, runs, tasks)
    logs["flag_stale_copy"] = logs["original"] >= 0
    logs["started"] = logs["task_start"].mask(logs["flag_stale_copy"])
    seconds = logs["modified"] - logs["started"] / 1000
    logs["seconds"] = seconds.where(seconds >= 0)  # a file older than its start is not an original
    logs["is_unread"] = ~logs["agent_log_processed"]
    logs["parsing_errors"] = logs["parsing_errors"].map("; ".join).astype("str")

    # those of each run, which may have none
    by_run, n_logs, n_agents = logs.groupby("run"), runs["n_logs"], runs["n_agents"]
    ever = by_run[["timed_out", "agent_log_processed", "is_unread", *_LOG_FLAGS]].any()
    ever = ever.reindex(runs.index, fill_value=False)
    highest = by_run[["raw_score", "seconds", "original"]].max().reindex(runs.index)
    lowest = by_run[["raw_score", "started"]].min().reindex(runs.index)
    counts = by_run[_COUNTS].sum().reindex(runs.index, fill_value=0)
    errors = logs[logs["is_unread"]].groupby("run")["parsing_errors"].agg("; ".join).reindex(runs.index, fill_value="")
    original = highest["original"].fillna(-1).astype(int)

    types, raw = shared["task_type"], highest["raw_score"]
    construction, unknown, has_score = types.eq("construction"), types.eq("unknown"), raw.notna()
    if scale == "auto" and (raw[construction] > 1).any():
        scale = "percent"
    is_percent = construction & (scale == "percent")
    # of an unknown type, a score above 1 is a percentage
    score = raw.mask(is_percent | (unknown & (raw > 1)), raw / 100)
    in_range = score.between(0, 1)
    score = score.where(in_range)
    successful = score == 1

    inferred = (highest["seconds"] >= shared["timeout"]) & ~successful & ~ever["timed_out"]
    endings = {
        CompletionStatus.TIMED_OUT: ever["timed_out"] | inferred,
        CompletionStatus.LOG_FILE_ERROR: (n_logs > 0) & ~ever["agent_log_processed"],
        CompletionStatus.NO_SCORE_LOGGED: ~has_score,
        CompletionStatus.SUCCESS: successful,
        CompletionStatus.FAILED_PARTIAL_SCORE: raw > 0,
    }
    chosen = np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))
    status = pd.Series(chosen, dtype="str")
    is_unmeasured = ~has_score & status.isin(_NOT_MEASURED)

    # the final message is that of the first log that agrees with the run's status, else of the first that has any
    speaking = logs.loc[speaks, ["run", "final_system_message"]]
    speaking["differs"] = logs["completion_status"] != logs["run"].map(status)
    deciding = speaking.sort_values(["run", "differs"], kind="stable").drop_duplicates("run").set_index("run")

    agent_count = shared["agents_asked_for"].fillna(n_agents).astype(int)
    flags = {
        **dict.fromkeys(FLAGS, pd.Series(False, runs.index)),
        **dict(zip(LOG_FLAGS, map(ever.__getitem__, _LOG_FLAGS), strict=True)),
        "ambiguous_definition": shared["ambiguous"],
        "facts_from_id": shared["facts_source"].eq("id") & ~unknown,
        "layout_mismatch": ~shared["fits_layout"],
        "missing_agent_logs": n_agents < agent_count,
        "extra_agent_logs": n_agents > agent_count,
        "conflicting": ever["flag_conflicting"]
        | (raw > lowest["raw_score"])
        | (ever["timed_out"] & (raw != 0) & has_score),
        "quoted_only": ever["flag_quoted_only"] & ~runs.index.isin(deciding.index),
        "score_out_of_range": has_score & ~in_range,
        "scale_assumed": construction & (scale == "auto") & has_score & (raw != 0),
        "unreadable_logs": ever["is_unread"],
        "inferred_timeout": inferred,
    }
    carried_by, flag_names = np.column_stack(list(flags.values())), np.array(list(FLAGS), object)
    values = {
        "run_id": runs["run_id"],
        "repetition": runs["repetition"],
        "repetition_rule": runs["repetition_rule"],
        "total_agent_logs_found": n_logs,
        "run_flags": [flag_names[own].tolist() for own in carried_by],
        "agent_count": agent_count,
        "overall_raw_score": raw,
        "overall_score": score,
        "overall_is_successful": successful,
        "overall_is_completed": score > 0,
        "overall_completion_status": status,
        "score_scale": np.select([is_percent, construction, unknown], ["percent", "fraction", "unknown"], "binary"),
        "score": score,
        "is_successful": successful.astype("boolean").mask(is_unmeasured),
        "success_rate": successful.astype("float64").mask(is_unmeasured),
        "status": status,
        "started": lowest["started"],
        "duration": highest["seconds"],
        "turns": counts["message_count"],
        "final_system_message": deciding["final_system_message"].reindex(runs.index),
        "parsing_errors": errors,
        "copy_of": runs["run_id"].reindex(original).to_numpy(),
        "copied_model": shared["model_name"].reindex(original).to_numpy(),
        **dict.fromkeys(_NOT_LOGGED, [None] * len(runs)),
        **counts,
        **dict(zip(_FLAGS, carried_by.T, strict=True)),
    }
    table = frame_of(values, [column for column in RUNS if column.name in values])
    table = pd.concat([table, shared, runs["task"]], axis=1)
    of_runs = table[list(_OF_RUNS)].take(logs["run"]).reset_index(drop=True)
    return table, pd.concat([logs.astype(dict.fromkeys(_COUNTS, "Int64")), of_runs], axis=1)


def _runs_and_logs(tasks: Sequence[TaskRuns], records: pa.Table) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return a row for each run, what it shares with others of its task, and a row for each log, in order of runs."""
    rows, keys, of_runs = list[tuple](), list[tuple](), list[TaskRuns]()
    places, agent_names = list[int](), list[str]()
    for number, task in enumerate(tasks):
        for run in task.repetitions:
            of_runs.append(task)
            rows.append((number, run.number, run.rule, len(set(run.agents)), len(run.logs)))
            keys.append((task.folder.path, task.folder.task_id, run.number))
            agent_names += run.agents
            places += [task.folder.logs[i] for i in run.logs]
    runs = pd.DataFrame(rows, columns=["task", "repetition", "repetition_rule", "n_agents", "n_logs"])
    runs = runs.astype({"task": int, "n_agents": int, "n_logs": int})
    runs["run_id"] = pd.Series(run_ids("mindcraft", *zip(*keys, strict=True)), dtype="str")

    known, known_places = distinct([task.task for task in of_runs])
    facts = [
        {
            **task.facts,
            "has_definition": task.definition is not None,
            "definition_file": (task.definition or {}).get("definition_file"),
            "ambiguous": task.ambiguous,
        }
        for task in known
    ]
    named, named_places = distinct([task.named for task in of_runs])
    names = [{**one.fields, **one._asdict(), "experiment_total": one.results.total} for one in named]
    folders = {
        "kind": ["mindcraft"] * len(runs),
        "source": [task.folder.folder for task in of_runs],
        "task_id": [task.folder.task_id for task in of_runs],
        "flat_layout": [task.folder.flat for task in of_runs],
    }
    shared = pd.concat(
        [
            frame(facts, _OF_TASKS).take(known_places).reset_index(drop=True),
            frame(names, _OF_NAMES).take(named_places).reset_index(drop=True),
            frame_of(folders, _OF_FOLDERS),
        ],
        axis=1,
    )
    stored = records.take(pa.array(places, "int64"))
    values: dict[str, Any] = dict(zip(stored.column_names, stored.columns, strict=True))
    logs = frame_of({**values, "agent_name": agent_names}, _STORED)
    logs["run"], logs["place"] = np.repeat(runs.index, runs["n_logs"]), places
    return runs, shared, logs


def _originals(logs: pd.DataFrame, runs: pd.DataFrame, tasks: Sequence[TaskRuns]) -> np.ndarray:
    """Find logs that are copies: equal content, or an equal start of the agent of that name; return the original's run.

    -1 for a log that is no copy. Of the runs that share a log, the one that came later holds the copy: one whose other
    agents started more than `LEFT_OVER` later, as the log is left over from before; else the one whose file is younger,
    if the files' times are those of the experiment; else the later one by the names of model and folders: that of a
    copy has more words.
    """
    starts = logs.groupby("run")["task_start"].agg(["min", "max"])
    spread = starts["max"] - starts["min"]
    original = np.full(len(logs), -1)
    for keys, unknown in ((["digest"], ""), (["agent_name", "task_start"], 0)):
        marks = logs.loc[logs[keys[-1]].notna() & (logs[keys[-1]] != unknown), [*keys, "run", "modified"]]
        for _, shared in marks[marks.duplicated(keys, keep=False)].groupby(keys):
            ages = []
            for run, modified in zip(shared["run"].tolist(), shared["modified"].fillna(0).tolist(), strict=True):
                left_over = spread[run] if spread[run] > LEFT_OVER else 0
                ages.append((left_over, modified, _name_order(tasks[runs["task"][run]]), run))
            *_, owner = min(ages)
            original[shared.index[shared["run"] != owner]] = owner
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
