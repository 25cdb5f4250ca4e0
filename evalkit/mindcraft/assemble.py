"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evalkit.io import Column, Entry, absolute, cut_name, frame, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.mindcraft.layout import name_models, split_repetitions, task_folders
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, FLAGS, LOG_FLAGS, OUTCOMES, RECORDS, RUNS, CompletionStatus
from evalkit.mindcraft.tasks import TaskDefinitions, metrics_of, task_facts
from evalkit.mindcraft.transcript import commands_frame, messages_frame

LEFT_OVER = 300_000  # milliseconds: agents of one run do not start so far apart
_OWN = (  # columns of runs that are known of each folder and repetition
    "source", "task_id", "flat_layout", "repetition", "repetition_rule", "total_agent_logs_found",
    "model_name", "model_source", "experiment_folder", "experiment", "suite", "experiment_total",
)  # fmt: skip
_OF_RUNS = [
    *(next(column for column in RUNS if column.name == name) for name in _OWN),
    Column("fits_layout", "bool", "the path fits the layout that was stated"),
    Column("n_agents", "int", "agents that logged"),
    Column("task", "int", "place among the tasks"),
    Column("path", "str", "absolute path of the folder"),
]
_FACTS = {*task_facts("", None), "has_definition", "definition_file"} - {"agent_count"}  # runs share those of a task
_OF_TASKS = [*(column for column in RUNS if column.name in _FACTS), Column("ambiguous", "bool", "the definition")]
_NOT_LOGGED = ("seed", "tokens_in", "tokens_out", "cost")  # common columns of runs
_NOT_MEASURED = [status for status, outcome in OUTCOMES.items() if outcome == "not measured"]
_STORED = (*(column for column in AGENTS if column.name in ("source", "agent_name")), *RECORDS["logs"])
_COUNTS = [column.name for column in COUNT_COLUMNS]
_FLAGS, _LOG_FLAGS = ([f"flag_{name}" for name in names] for names in (FLAGS, LOG_FLAGS))


@paused_gc()
def assemble(
    records: Records, options: Mapping[str, Any], *, all_folders: bool = False, task_id: str = ""
) -> Assembled:
    """Assemble the logs of runs; options as for `load`, where `tasks` are the loaded definitions.

    With `all_folders`, every folder without logs is a run. With a `task_id`, the runs are those of this task in one
    folder, whatever it is called.
    """
    definitions, listing = options["tasks"], records.listing
    others = records.tables["other_files"].to_pylist()
    runs, logs, metrics = _runs_and_logs(records, others, definitions, options.get("layout"), task_id, all_folders)
    if options.get("original_mtimes"):
        times = pd.Series(records.files["modified"].to_numpy() / 1e9, records.files["source"].to_pylist())
        logs["modified"] = logs["source"].map(times)
    runs, agents = _outcomes(runs, logs, options.get("scale", "auto"))
    if not metrics.columns.empty:
        runs = runs.join(metrics.take(runs["task"].to_numpy()).reset_index(drop=True))

    # the ledger names files of definitions too; within the source, only those used replace the entries of their files
    notes, entries = [], definitions.ledger.entries
    listed = dict(zip(map(absolute, listing.files), listing.files, strict=True)) if entries else {}
    for entry in entries:
        within = listed.get(absolute(entry.source))
        if entry.status == "used" or within is None:
            notes.append(entry._replace(source=within or entry.source))
    doubtful = {row["source"] for row in others if row["other"]}
    counted = agents.loc[agents["source"].isin(doubtful), ["source", "parsing_errors"]]
    notes += [Entry(source, "failed", error) for source, error in counted.itertuples(index=False, name=None)]
    lazy = {"messages": partial(messages_frame, agents), "commands": partial(commands_frame, agents)}
    frames = {"runs": runs.drop(columns="task"), "agents": agents}
    return Assembled(frames, notes, {"definitions": definitions}, lazy)


def _runs_and_logs(
    records: Records,
    others: Sequence[Mapping[str, Any]],
    definitions: TaskDefinitions,
    layout: str | None,
    own_id: str,
    all_folders: bool,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return a row for each run, with all that is known but its outcome; for each log, in order; for each task."""
    sources = records.tables["logs"]["source"].to_pylist()
    broken = set(np.flatnonzero(~records.tables["logs"]["agent_log_processed"].to_numpy()).tolist())
    listing = records.listing
    folders = task_folders(sources, broken, others, listing, definitions, all_folders=all_folders, own_id=own_id)
    folders.sort(key=attrgetter("folder", "task_id"))

    rows, places, agent_names = list[tuple](), list[int](), list[str]()
    known, tasks, metrics = dict[tuple, int](), list[dict[str, Any]](), list[Mapping[str, Any]]()
    for folder, named in zip(folders, name_models(folders, listing.root, layout, others), strict=True):
        task_id, n_logs = named.fields.get("task_id", folder.task_id), None
        prefix = f"{folder.task_id}_" if folder.flat else ""
        names = tuple(sources[place].rpartition("/")[2].removeprefix(prefix) for place in folder.logs)
        if len(definitions.variants.get(task_id, ())) > 1:  # the number of logs of a run may tell which is meant
            n_logs = max(len(run.logs) for run in split_repetitions(names, None))
        key = (task_id, named.task_path, n_logs, named.fields.get("task_type", ""))
        if key not in known:  # many models ran a task, many times
            definition, ambiguous = definitions.resolve(*key[:3])
            own: dict[str, Any] = {"has_definition": definition is not None, "ambiguous": ambiguous}
            own["definition_file"] = (definition or {}).get("definition_file")
            known[key] = len(tasks)
            tasks.append({**task_facts(task_id, definition, key[3]), **own})
            metrics.append(metrics_of(definition or {}))
        model = (named.model_name, named.model_source, named.experiment_folder, named.experiment)
        of_named = (*model, named.fields.get("suite"), named.total, named.fits_layout)
        for run in split_repetitions(names, tasks[known[key]]["agent_count"]):
            own_row = (folder.folder, task_id, folder.flat, run.number, run.rule, len(run.logs))
            rows.append((*own_row, *of_named, len(set(run.agents)), known[key], folder.path))
            agent_names += run.agents
            places += map(folder.logs.__getitem__, run.logs)

    columns = list(zip(*rows, strict=True)) or [()] * len(_OF_RUNS)
    values = dict(zip(map(attrgetter("name"), _OF_RUNS), columns, strict=True))
    runs = frame_of(values, _OF_RUNS)
    ids = run_ids("mindcraft", values["path"], values["task_id"], values["repetition"])
    runs["run_id"] = pd.Series(ids, dtype="str")
    runs = runs.join(frame(tasks, _OF_TASKS).take(runs["task"].to_numpy()).reset_index(drop=True))
    stored = records.tables["logs"].take(pa.array(places, "int64"))
    logs = frame_of({**dict(zip(stored.column_names, stored.columns, strict=True)), "agent_name": agent_names}, _STORED)
    logs["run"], logs["modified"] = np.repeat(runs.index, runs["total_agent_logs_found"].astype(int)), np.nan
    return runs, logs, metrics_frame(metrics)


def _outcomes(runs: pd.DataFrame, logs: pd.DataFrame, scale: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frame of runs, and that of agents.

    A `scale` of ``auto`` is percent as soon as one construction score exceeds 1. Where logs have times of modification,
    these are the experiment's: runs then have durations, and time-outs are inferred from them.
    """
    carried = np.zeros((len(logs), len(LOG_FLAGS)), bool)
    for log, names in enumerate(logs["flags"]):
        if names:
            carried[log] = [flag in names for flag in LOG_FLAGS]
    logs = logs.join(pd.DataFrame(carried, columns=_LOG_FLAGS))
    logs["original"] = _originals(logs, runs)
    logs["flag_stale_copy"] = logs["original"] >= 0
    logs["started"] = logs["task_start"].mask(logs["flag_stale_copy"])
    seconds = logs["modified"] - logs["started"] / 1000
    logs["seconds"] = seconds.where(seconds >= 0)  # a file older than its start is not an original
    logs["is_unread"] = ~logs["agent_log_processed"]
    logs["parsing_errors"] = logs["parsing_errors"].map("; ".join).astype("str")
    read_agents = logs[~logs["is_unread"]].groupby("run")["agent_name"].nunique().reindex(runs.index, fill_value=0)

    # those of each run, which may have none
    by_run, n_logs, n_agents = logs.groupby("run"), runs["total_agent_logs_found"].astype(int), runs["n_agents"]
    ever = by_run[["timed_out", "agent_log_processed", "is_unread", *_LOG_FLAGS]].any()
    ever = ever.reindex(runs.index, fill_value=False)
    highest = by_run[["raw_score", "seconds", "original"]].max().reindex(runs.index)
    lowest = by_run[["raw_score", "started"]].min().reindex(runs.index)
    counts = by_run[_COUNTS].sum().reindex(runs.index, fill_value=0)
    errors = logs[logs["is_unread"]].groupby("run")["parsing_errors"].agg("; ".join).reindex(runs.index, fill_value="")
    original = highest["original"].fillna(-1).astype(int)

    types, raw = runs["task_type"], highest["raw_score"]
    construction, unknown, has_score = types.eq("construction"), types.eq("unknown"), raw.notna()
    if scale == "auto" and (raw[construction] > 1).any():
        scale = "percent"
    is_percent = construction & (scale == "percent")
    # of an unknown type, a score above 1 is a percentage
    in_percent = is_percent | (unknown & (raw > 1))
    score = raw.mask(in_percent, raw / 100)
    in_range = score.between(0, 1)
    score = score.where(in_range)
    successful = score == 1
    logs["score"] = logs["raw_score"].mask(logs["run"].map(in_percent), logs["raw_score"] / 100)
    logs["score"] = logs["score"].where(logs["score"].between(0, 1))
    by_score = np.select(
        [logs["score"] == 1, logs["raw_score"] > 0],
        [str(CompletionStatus.SUCCESS), str(CompletionStatus.FAILED_PARTIAL_SCORE)],
        str(CompletionStatus.FAILED_SCORE_ZERO),
    )
    is_scored = logs["raw_score"].notna() & ~logs["timed_out"].astype(bool)
    logs["completion_status"] = logs["completion_status"].mask(is_scored, pd.Series(by_score, logs.index))

    inferred = (highest["seconds"] >= runs["timeout"]) & ~successful & ~ever["timed_out"]
    endings = {
        CompletionStatus.TIMED_OUT: ever["timed_out"] | inferred,
        CompletionStatus.LOG_FILE_ERROR: (n_logs > 0) & ~ever["agent_log_processed"],
        CompletionStatus.NO_SCORE_LOGGED: ~has_score,
        CompletionStatus.SUCCESS: successful,
        CompletionStatus.FAILED_PARTIAL_SCORE: raw > 0,
    }
    chosen = np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))
    status = pd.Series(chosen, dtype="str")
    is_successful = successful.astype("boolean").mask(~has_score & status.isin(_NOT_MEASURED))

    # the final message is that of the first log that agrees with the run's status, else of the first that has any
    speaking = logs.loc[logs["final_system_message"].notna(), ["run", "final_system_message"]]
    speaking["differs"] = logs["completion_status"] != logs["run"].map(status)
    deciding = speaking.sort_values(["run", "differs"], kind="stable").drop_duplicates("run").set_index("run")

    agent_count = runs["agents_asked_for"].fillna(n_agents).astype(int)
    names = logs["agent_name"].str.replace(r"_\d{1,9}$", "", regex=True)
    ids = names.where(names.str.contains(r"(?:\d\D*){4}|^[0-9a-f-]{6,}$"))  # or dates: agents have names such as gpt-4o
    n_unlike = ids.groupby(logs["run"]).nunique().reindex(runs.index, fill_value=0)
    flags = {
        **dict.fromkeys(FLAGS, pd.Series(False, runs.index)),
        **dict(zip(LOG_FLAGS, map(ever.__getitem__, _LOG_FLAGS), strict=True)),
        "ambiguous_definition": runs["ambiguous"],
        "facts_from_id": ~runs["has_definition"] & ~unknown,
        "layout_mismatch": ~runs["fits_layout"],
        "missing_agent_logs": n_agents < agent_count,
        "extra_agent_logs": (read_agents > agent_count) | (n_unlike > 1),
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
        "kind": ["mindcraft"] * len(runs),
        "run_flags": [flag_names[own].tolist() for own in carried_by],
        "agent_count": agent_count,
        "overall_raw_score": raw,
        "overall_score": score,
        "overall_is_successful": successful,
        "overall_is_completed": score > 0,
        "overall_completion_status": status,
        "score_scale": np.select([is_percent, construction, unknown], ["percent", "fraction", "unknown"], "binary"),
        "score": score,
        "is_successful": is_successful,
        "success_rate": is_successful.astype("Float64").astype("float64"),
        "status": status,
        "started": lowest["started"],
        "duration": highest["seconds"],
        "turns": counts["message_count"],
        "final_system_message": deciding["final_system_message"].reindex(runs.index),
        "parsing_errors": errors,
        "copy_of": runs["run_id"].reindex(original).to_numpy(),
        "copied_model": runs["model_name"].reindex(original).to_numpy(),
        **dict.fromkeys(_NOT_LOGGED, [None] * len(runs)),
        **counts,
        **dict(zip(_FLAGS, carried_by.T, strict=True)),
    }
    table = runs.join(frame_of(values, [column for column in RUNS if column.name in values]))
    shared = runs[["run_id", "model_name", "task_id", "repetition", "experiment"]].take(logs["run"].to_numpy())
    agents = logs.astype(dict.fromkeys(_COUNTS, "Int64")).join(shared.reset_index(drop=True))
    return table[[*map(attrgetter("name"), RUNS), "task"]], agents[list(map(attrgetter("name"), AGENTS))]


def _originals(logs: pd.DataFrame, runs: pd.DataFrame) -> pd.Series:
    """Find logs that are copies: equal content, or an equal start of the agent of that name; return the original's run.

    -1 for a log that is no copy. Of the runs that share a log, the one that came later holds the copy: one whose other
    agents started more than `LEFT_OVER` later, as the log is left over from before; else the one whose file is younger,
    if the files' times are those of the experiment; else the one with more words in its path, as that of a copied
    folder has, or the later one by its path.
    """
    starts = logs.groupby("run")["task_start"].agg(["min", "max"])
    spread = starts["max"] - starts["min"]
    spread[~(spread > LEFT_OVER)] = 0
    words = runs["path"].str.count(r"\d+|[^\W\d_]+")
    order = logs[["agent_name", "task_start", "digest", "run", "modified"]].assign(
        left_over=logs["run"].map(spread), words=logs["run"].map(words)
    )
    order = order.sort_values(["left_over", "modified", "words", "run"], kind="stable")
    original = pd.Series(-1, logs.index)
    for keys, unknown in ((["digest"], ""), (["agent_name", "task_start"], 0)):
        known = order[order[keys[-1]].notna() & (order[keys[-1]] != unknown)]
        owner = known[known.duplicated(keys, keep=False)].groupby(keys)["run"].transform("first")
        owner = owner[owner != logs["run"].reindex(owner.index)]
        original[owner.index] = owner
    return original


def metrics_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Build a column ``metric_NAME`` of every metric: numbers, truth values, or text where they are neither."""
    types, named = dict[str, set[type]](), list[dict[str, Any]]()
    for row in rows:
        named.append({})
        for metric, value in row.items():
            name = cut_name(f"metric_{metric}")
            named[-1][name] = value
            types.setdefault(name, set()).add(type(value))
    columns = []
    for name, own in types.items():
        dtype = "bool?" if own == {bool} else "float" if own <= {int, float} else "str"
        columns.append(Column(name, dtype, "metric of the definition"))
    return frame(named, columns)
