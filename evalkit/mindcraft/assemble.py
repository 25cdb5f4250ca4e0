"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
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

LEFT_OVER = 300_000  # milliseconds: agents of one run do not start so far apart
_WORDS = re.compile(r"\d+|[^\W\d_]+")
_SOURCE = Column("source", "str", "path of the log")
_SHARED = {*Facts.__annotations__, *Named._fields, "kind", "source", "task_id", "flat_layout", "has_definition",
           "definition_file", "suite", "experiment_total"}  # fmt: skip
_OF_TASKS = (  # the columns of runs that all runs of a task in one folder share, and what two flags are made of
    *(column for column in RUNS if column.name in _SHARED),
    Column("ambiguous_definition", "bool", "see the flag"),
    Column("fits_layout", "bool", "the path fits the layout that was stated"),
)
_NOT_LOGGED = ("seed", "tokens_in", "tokens_out", "cost")  # common columns of runs


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
    runs, agents = combine(tasks, logs, options.get("scale", "auto"), files)
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
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Combine the records of logs into the frames of runs and of agents.

    `scale` ``auto`` is percent as soon as one construction score exceeds 1. With `files`, whose times are then those of
    the experiment, runs have durations, and time-outs are inferred from them.
    """
    runs, logs = _runs_and_logs(tasks, records, files)
    logs["original"] = _originals(logs, [tasks[place] for place in runs["task"]])
    logs["flag_stale_copy"] = logs["original"] >= 0
    logs["started"] = logs["task_start"].mask(logs["flag_stale_copy"])
    seconds = logs["modified"] - logs["started"] / 1000
    logs["seconds"] = seconds.where(seconds >= 0)  # a file older than its start is not an original

    of_run = pd.Categorical.from_codes(logs["run"].to_numpy(), pd.RangeIndex(len(runs)))  # some have no logs
    by_run = logs.groupby(pd.CategoricalIndex(of_run), observed=False)
    combined = by_run.agg(
        raw=("raw_score", "max"),
        lowest=("raw_score", "min"),
        timed_out=("timed_out", "any"),
        speaks=("speaks", "any"),
        some_read=("agent_log_processed", "any"),
        all_read=("agent_log_processed", "all"),
        started=("started", "min"),
        duration=("seconds", "max"),
        original=("original", "max"),
    ).set_axis(runs.index)
    counts = by_run[[column.name for column in COUNT_COLUMNS]].sum().set_axis(runs.index)
    log_flags = (
        by_run[[f"flag_{name}" for name in LOG_FLAGS]].any().set_axis(runs.index).set_axis(list(LOG_FLAGS), axis=1)
    )
    raw, timed_out, duration = combined["raw"], combined["timed_out"], combined["duration"]

    construction, unknown = runs["task_type"] == "construction", runs["task_type"] == "unknown"
    if scale == "auto" and (raw[construction] > 1).any():
        scale = "percent"
    # of an unknown type, a score above 1 is a percentage
    of_hundred = (construction & (scale == "percent")) | (unknown & (raw > 1))
    score = raw.mask(of_hundred, raw / 100)
    in_range = score.between(0, 1)
    score = score.where(in_range)
    successful, completed = score == 1, score > 0
    scales = [construction & (scale == "percent"), construction, unknown]

    inferred = (duration >= runs["timeout"]) & ~successful & ~timed_out
    endings = {
        CompletionStatus.TIMED_OUT: timed_out | inferred,
        CompletionStatus.LOG_FILE_ERROR: (runs["total_agent_logs_found"] > 0) & ~combined["some_read"],
        CompletionStatus.NO_SCORE_LOGGED: raw.isna(),
        CompletionStatus.SUCCESS: successful,
        CompletionStatus.FAILED_PARTIAL_SCORE: raw > 0,
    }
    status = np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))
    unmeasured = raw.isna() & pd.Series(status).map(OUTCOMES).eq("not measured")

    # the final message is that of the first log that agrees with the run's status, else of the first that has any
    speaking = logs[logs["speaks"]]
    differs = speaking["completion_status"].to_numpy() != status[speaking["run"]]
    deciding = speaking.assign(differs=differs).sort_values("differs", kind="stable").drop_duplicates("run")
    errors = logs[~logs["agent_log_processed"]].groupby("run")["parsing_errors"].agg("; ".join)
    is_copy, original = combined["original"] >= 0, combined["original"].fillna(-1).to_numpy(int)

    flags = log_flags.assign(
        ambiguous_definition=runs["ambiguous_definition"],
        facts_from_id=(runs["facts_source"] == "id") & ~unknown,
        layout_mismatch=~runs["fits_layout"],
        missing_agent_logs=runs["n_agents"] < runs["agent_count"],
        extra_agent_logs=runs["n_agents"] > runs["agent_count"],
        conflicting=log_flags["conflicting"] | (raw > combined["lowest"]) | (timed_out & (raw != 0) & raw.notna()),
        quoted_only=log_flags["quoted_only"] & ~combined["speaks"],
        score_out_of_range=raw.notna() & ~in_range,
        scale_assumed=construction & (scale == "auto") & raw.notna() & (raw != 0),
        unreadable_logs=~combined["all_read"],
        inferred_timeout=inferred,
    ).reindex(columns=list(FLAGS), fill_value=False)
    flag_names = np.array(list(FLAGS), object)

    runs = runs.assign(
        overall_raw_score=raw,
        overall_score=score,
        score=score,
        overall_is_successful=successful,
        is_successful=successful.astype("boolean").mask(unmeasured),
        success_rate=successful.astype(float).mask(unmeasured),
        overall_is_completed=completed,
        overall_completion_status=status,
        status=status,
        score_scale=np.select(scales, ["percent", "fraction", "unknown"], "binary"),
        started=pd.Series(combined["started"].to_numpy(), dtype="datetime64[ms, UTC]"),
        duration=duration,
        turns=counts["message_count"],
        final_system_message=deciding.set_index("run")["final_system_message"],
        parsing_errors=errors.reindex(runs.index, fill_value=""),
        copy_of=runs["run_id"].take(original).set_axis(runs.index).where(is_copy),
        copied_model=runs["model_name"].take(original).set_axis(runs.index).where(is_copy),
        run_flags=[flag_names[carried].tolist() for carried in flags.to_numpy(bool)],
        **counts,
        **flags.add_prefix("flag_"),
    )
    of_runs = runs[["run_id", "model_name", "task_id", "repetition", "experiment"]]
    agents = frame_of(dict(logs.join(of_runs, on="run").items()), AGENTS)
    values: dict[Any, Any] = dict.fromkeys(_NOT_LOGGED, [None] * len(runs)) | dict(runs.items())
    metrics = metrics_frame([task.metrics for task in tasks])
    table = frame_of(values, RUNS)
    return table if metrics.empty else table.join(metrics.take(runs["task"].tolist()).reset_index(drop=True)), agents


def _runs_and_logs(
    tasks: Sequence[TaskRuns], records: pa.Table, files: pa.Table | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what is known of each run but its score, and the logs in the order of their runs."""
    sources, starts = unescaped(records["source"]), records["task_start"].to_numpy()
    rows, places, agents = list[tuple](), list[int](), list[str]()
    for number, task in enumerate(tasks):
        folder = task.folder
        paths, begun = [sources[i] for i in folder.logs], starts[list(folder.logs)].tolist()
        for run in split_repetitions(paths, task.facts["agent_count"], folder.prefix, begun) or NO_LOGS:
            rows.append((number, run.number, run.rule, len(set(run.agents)), len(run.logs)))
            places += [folder.logs[i] for i in run.logs]
            agents += run.agents
    runs = pd.DataFrame(rows, columns=["task", "repetition", "repetition_rule", "n_agents", "total_agent_logs_found"])
    runs = runs.join(frame(map(_row, tasks), _OF_TASKS), on="task")
    runs["agent_count"] = runs["agents_asked_for"].fillna(runs["n_agents"])
    paths = [tasks[place].folder.path for place in runs["task"]]
    ids = [tasks[place].folder.task_id for place in runs["task"]]
    runs["run_id"] = run_ids("mindcraft", paths, ids, runs["repetition"].tolist())

    ordered = records.take(pa.array(places, "int64"))
    logs = frame_of(dict(zip(ordered.column_names, ordered.columns, strict=True)), (_SOURCE, *RECORDS["logs"]))
    logs["run"] = np.repeat(np.arange(len(runs)), runs["total_agent_logs_found"])
    logs["agent_name"] = pd.Series(agents, dtype="object")
    logs["speaks"] = logs["final_system_message"].notna()
    logs["parsing_errors"] = logs["parsing_errors"].map("; ".join)
    carried = logs["flags"].explode()
    flags = {f"flag_{name}": logs.index.isin(carried.index[carried == name]) for name in LOG_FLAGS}
    logs = logs.assign(**flags)
    logs["modified"] = np.nan
    if files is not None:
        seconds = files["modified"].to_numpy() / 1e9
        logs["modified"] = seconds[pc.index_in(ordered["source"], files["source"]).to_numpy()]
    return runs, logs


def _row(task: TaskRuns) -> dict[str, Any]:
    """Return what is known of all runs of a task in a folder."""
    return {
        **task.facts,
        "kind": "mindcraft",
        "source": task.folder.folder,
        "flat_layout": task.folder.flat,
        "has_definition": task.definition is not None,
        "definition_file": (task.definition or {}).get("definition_file"),
        "ambiguous_definition": task.ambiguous,
        "experiment_total": task.named.results.total,
        **task.named.fields,
        **task.named._asdict(),
        "task_id": task.folder.task_id,
        "task_type": task.facts["task_type"],
    }


def _originals(logs: pd.DataFrame, tasks: Sequence[TaskRuns]) -> pd.Series:
    """Find logs that are copies: equal content, or an equal start of the agent of that name; return the original's run.

    -1 for a log that is no copy. Of the runs that share a log, the one that came later holds the copy: one whose other
    agents started more than `LEFT_OVER` later, as the log is left over from before; else the one whose file is younger,
    if the files' times are those of the experiment; else the later one by the names of model and folders: that of a
    copy has more words. `tasks` are those of the runs.
    """
    original = pd.Series(-1, logs.index)
    starts = logs.groupby("run")["task_start"]
    spread = starts.transform("max") - starts.transform("min")
    logs = logs.assign(spread=spread.where(spread > LEFT_OVER, 0.0), modified=logs["modified"].fillna(0.0))
    for mark in (["digest"], ["task_start", "agent_name"]):
        known = logs[logs["digest"].ne("") if mark == ["digest"] else logs["task_start"].notna()]
        shared = known[known.duplicated(mark, keep=False)]
        by_name = sorted(shared["run"].unique().tolist(), key=lambda run: (_name_order(tasks[run]), run))
        place = shared["run"].map({run: place for place, run in enumerate(by_name)})
        shared = shared.assign(place=place).sort_values(["spread", "modified", "place"])
        owner = shared.groupby(mark)["run"].transform("first")
        copies = owner[owner != shared["run"]]
        original[copies.index] = copies
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
