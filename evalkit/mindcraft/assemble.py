"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from evalkit.io import Column, Entry, absolute, cut_name, frame, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.mindcraft.layout import Named, Repetition, TaskFolder, name_models, split_repetitions, task_folders
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, FLAGS, LOG_FLAGS, OUTCOMES, RECORDS, RUNS, CompletionStatus
from evalkit.mindcraft.tasks import Definition, TaskDefinitions, metrics_of, task_facts
from evalkit.mindcraft.transcript import commands_frame, messages_frame

LEFT_OVER = 300_000  # milliseconds: agents of one run do not start so far apart
_TASK_COLUMNS = [
    *(
        column
        for column in RUNS
        if column.name in {"task_id", "has_definition", "definition_file", *task_facts("", None)}
    ),
    Column("is_ambiguous", "bool", "several definitions fit the task"),
]
_LOG_COLUMNS = (*(column for column in AGENTS if column.name in ("source", "agent_name")), *RECORDS["logs"])
_COUNTS = [column.name for column in COUNT_COLUMNS]
_NOT_MEASURED = [status for status, outcome in OUTCOMES.items() if outcome == "not measured"]


class Task(NamedTuple):
    """A task of some runs."""

    place: int  # in the list of tasks
    facts: Mapping[str, Any]  # with the columns `_TASK_COLUMNS`
    definition: Definition


class Run(NamedTuple):
    """A run: a repetition of a task in a folder."""

    folder: TaskFolder
    named: Named
    task: Task
    repetition: Repetition


@paused_gc()
def assemble(
    records: Records, options: Mapping[str, Any], *, all_folders: bool = False, task_id: str = ""
) -> Assembled:
    """Assemble the logs of runs; options as for `load`, where `tasks` are the loaded definitions.

    With `all_folders`, every folder without logs is a run. With a `task_id`, the runs are those of this task in one
    folder, whatever it is called.
    """
    definitions = options["tasks"]
    others = records.tables["other_files"].to_pylist()
    found, tasks = _find_runs(records, others, definitions, options.get("layout"), task_id, all_folders)
    places = [run.task.place for run in found]
    facts = frame([task.facts for task in tasks], _TASK_COLUMNS).take(places).reset_index(drop=True)
    known = _known(found, facts)
    logs = _logs(found, records, known["task_path"], has_times=bool(options.get("original_mtimes")))
    values = _outcomes(known, logs, options.get("scale", "auto"))
    runs = frame_of(values, RUNS)
    metrics = metrics_frame([metrics_of(task.definition) for task in tasks])
    if not metrics.columns.empty:
        runs = runs.join(metrics.take(places).reset_index(drop=True))
    ids = runs[[column.name for column in AGENTS if column.name in runs and column.name not in logs]]
    agents = logs.join(ids.take(logs["run"].to_numpy()).reset_index(drop=True))
    agents = agents.astype(dict.fromkeys(_COUNTS, "Int64"))[[column.name for column in AGENTS]]
    lazy = {"messages": partial(messages_frame, agents), "commands": partial(commands_frame, agents)}
    notes = _notes(records, others, agents, definitions)
    return Assembled({"runs": runs, "agents": agents}, notes, {"definitions": definitions}, lazy)


def _notes(
    records: Records, others: Sequence[Mapping[str, Any]], agents: pd.DataFrame, definitions: TaskDefinitions
) -> list[Entry]:
    """Return the ledger entries of files of definitions, and of files that are logs only in the folder of a run.

    Within the source, only the definitions that were used replace the entries of their files.
    """
    notes, entries = list[Entry](), definitions.ledger.entries
    files = records.listing.files if entries else ()
    listed = dict(zip(map(absolute, files), files, strict=True))
    for entry in entries:
        within = listed.get(absolute(entry.source))
        if entry.status == "used" or within is None:
            notes.append(entry._replace(source=within or entry.source))
    doubtful = {row["source"] for row in others if row["other"]}
    unread = agents.loc[agents["source"].isin(doubtful), ["source", "parsing_errors"]]
    notes += [Entry(source, "failed", error) for source, error in unread.itertuples(index=False, name=None)]
    return notes


def _find_runs(
    records: Records,
    others: Sequence[Mapping[str, Any]],
    definitions: TaskDefinitions,
    layout: str | None,
    own_id: str,
    all_folders: bool,
) -> tuple[list[Run], list[Task]]:
    """Return the runs in the order of their folders, and their tasks."""
    sources = records.tables["logs"]["source"].to_pylist()
    broken = set(np.flatnonzero(~records.tables["logs"]["agent_log_processed"].to_numpy()).tolist())
    listing = records.listing
    folders = task_folders(sources, broken, others, listing, definitions, all_folders=all_folders, own_id=own_id)
    folders.sort(key=attrgetter("folder", "task_id"))
    runs, tasks = list[Run](), dict[tuple, Task]()
    for folder, named in zip(folders, name_models(folders, listing.root, layout, others), strict=True):
        task_id = named.fields.get("task_id", folder.task_id)
        prefix = f"{folder.task_id}_" if folder.flat else ""
        names = tuple(sources[place].rpartition("/")[2].removeprefix(prefix) for place in folder.logs)
        n_logs = None
        if len(definitions.variants.get(task_id, ())) > 1:  # the number of logs of a run may tell which is meant
            n_logs = max(len(repetition.logs) for repetition in split_repetitions(names, None))
        type_of_path = named.fields.get("task_type", "")
        key = (task_id, named.task_path, n_logs, type_of_path)
        if key not in tasks:  # many models ran a task, many times
            definition, is_ambiguous = definitions.resolve(task_id, named.task_path, n_logs)
            facts = {
                "task_id": task_id,
                **task_facts(task_id, definition, type_of_path),
                "has_definition": definition is not None,
                "definition_file": (definition or {}).get("definition_file"),
                "is_ambiguous": is_ambiguous,
            }
            tasks[key] = Task(len(tasks), facts, definition or {})
        task = tasks[key]
        for repetition in split_repetitions(names, task.facts["agent_count"]):
            runs.append(Run(folder, named, task, repetition))
    return runs, list(tasks.values())


def _known(runs: Sequence[Run], facts: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of runs that do not depend on how they ended, and some that others are made of."""
    paths = [run.folder.path for run in runs]
    numbers = [run.repetition.number for run in runs]
    n_agents = pd.Series([len(set(run.repetition.agents)) for run in runs], dtype="int64")
    own = {name: facts[name] for name in facts}
    return {
        **own,
        "run_id": run_ids("mindcraft", paths, facts["task_id"], numbers),
        "kind": ["mindcraft"] * len(runs),
        "source": [run.folder.folder for run in runs],
        "model_name": [run.named.model_name for run in runs],
        "model_source": [run.named.model_source for run in runs],
        "experiment": [run.named.experiment for run in runs],
        "repetition": numbers,
        "experiment_folder": [run.named.experiment_folder for run in runs],
        "flat_layout": [run.folder.flat for run in runs],
        "experiment_total": [run.named.total for run in runs],
        "suite": [run.named.fields.get("suite") for run in runs],
        "agent_count": facts["agents_asked_for"].fillna(n_agents),
        "total_agent_logs_found": pd.Series([len(run.repetition.logs) for run in runs], dtype="int64"),
        "repetition_rule": [run.repetition.rule for run in runs],
        **dict.fromkeys(("seed", "tokens_in", "tokens_out", "cost"), [None] * len(runs)),
        "task_path": pd.Series(paths, dtype="str"),
        "n_agents": n_agents,
        "fits_layout": pd.Series([run.named.fits_layout for run in runs], dtype="bool"),
    }


def _logs(runs: Sequence[Run], records: Records, paths: pd.Series, *, has_times: bool) -> pd.DataFrame:
    """Return the logs of runs, run by run, with the position of the run, and what is known of each by the others.

    With `has_times`, the times of the files are those of the experiment, and give durations.
    """
    places = [run.folder.logs[place] for run in runs for place in run.repetition.logs]
    stored = records.tables["logs"].take(pa.array(places, "int64"))
    values = dict(zip(stored.column_names, stored.columns, strict=True))
    values["agent_name"] = [name for run in runs for name in run.repetition.agents]
    logs = frame_of(values, _LOG_COLUMNS)
    logs["parsing_errors"] = logs["parsing_errors"].map("; ".join).astype("str")
    logs["run"] = np.repeat(np.arange(len(runs)), [len(run.repetition.logs) for run in runs])
    logs["modified"] = np.nan
    if has_times:
        times = pd.Series(records.files["modified"].to_numpy() / 1e9, records.files["source"].to_pylist())
        logs["modified"] = logs["source"].map(times)
    logs["original"] = _originals(logs, paths)
    is_stale = logs["original"] >= 0
    logs["flags"] = logs["flags"].mask(
        is_stale, logs["flags"] + pd.Series([["stale_copy"]] * len(logs), dtype="object")
    )
    logs["started"] = logs["task_start"].mask(is_stale)
    seconds = logs["modified"] - logs["started"] / 1000
    logs["seconds"] = seconds.where(seconds >= 0)  # a file older than its start is not an original
    return logs


def _outcomes(known: Mapping[str, Any], logs: pd.DataFrame, scale: str) -> dict[str, Any]:
    """Return all columns of runs, and give the logs their score and status on the scale of their run.

    A `scale` of ``auto`` is percent as soon as one construction score exceeds 1.
    """
    n_logs, task_type = known["total_agent_logs_found"], known["task_type"]
    by_run = logs.groupby("run").agg(
        raw_score=("raw_score", "max"),
        lowest=("raw_score", "min"),
        timed_out=("timed_out", "any"),
        n_read=("agent_log_processed", "sum"),
        started=("started", "min"),
        seconds=("seconds", "max"),
        original=("original", "max"),
    )
    by_run = by_run.reindex(n_logs.index)  # there may be runs without logs
    timed_out = by_run["timed_out"].eq(True)
    n_read = by_run["n_read"].fillna(0)
    raw = by_run["raw_score"]

    is_construction = task_type.eq("construction")
    scale_is_open = scale == "auto" and not (raw[is_construction] > 1).any()
    if scale == "auto":
        scale = "fraction" if scale_is_open else "percent"
    score_scale = pd.Series("binary", raw.index).mask(task_type.eq("unknown"), "unknown").mask(is_construction, scale)
    # of an unknown type, a score above 1 is a percentage
    in_percent = score_scale.eq("percent") | (score_scale.eq("unknown") & (raw > 1))
    score = _share(raw, in_percent)
    logs["score"] = _share(logs["raw_score"], logs["run"].map(in_percent).astype(bool))
    logs["completion_status"] = _statuses(logs)

    is_inferred = (by_run["seconds"] >= known["timeout"]) & (score != 1) & ~timed_out
    endings = {
        CompletionStatus.TIMED_OUT: timed_out | is_inferred,
        CompletionStatus.LOG_FILE_ERROR: (n_logs > 0) & (n_read == 0),
        CompletionStatus.NO_SCORE_LOGGED: raw.isna(),
        CompletionStatus.SUCCESS: score == 1,
        CompletionStatus.FAILED_PARTIAL_SCORE: raw > 0,
    }
    chosen = np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))
    status = pd.Series(chosen, raw.index, dtype="str")
    is_successful = score.eq(1).astype("boolean").mask(raw.isna() & status.isin(_NOT_MEASURED))
    final = _deciding_messages(logs, status)
    raised = {
        "conflicting": (raw > by_run["lowest"]) | (timed_out & raw.notna() & (raw != 0)),
        "score_out_of_range": raw.notna() & score.isna(),
        "scale_assumed": is_construction & scale_is_open & raw.notna() & (raw != 0),
        "inferred_timeout": is_inferred,
    }
    original = by_run["original"].fillna(-1).astype(int)
    counts = logs.groupby("run")[_COUNTS].sum().reindex(raw.index, fill_value=0)
    unread = logs[~logs["agent_log_processed"]]
    return {
        **known,
        **{name: counts[name] for name in _COUNTS},
        "status": status,
        "score": score,
        "is_successful": is_successful,
        "success_rate": is_successful.astype("Float64").astype("float64"),
        "started": by_run["started"],
        "duration": by_run["seconds"],
        "turns": counts["message_count"],
        "run_flags": _flags(known, logs, raised, has_final=final.notna()),
        "raw_score": raw,
        "score_scale": score_scale,
        "final_system_message": final,
        "parsing_errors": unread.groupby("run")["parsing_errors"].agg("; ".join).reindex(raw.index, fill_value=""),
        "copy_of": pd.Series(known["run_id"], dtype="str").reindex(original).to_numpy(),
        "copied_model": pd.Series(known["model_name"], dtype="str").reindex(original).to_numpy(),
    }


def _share(raw: pd.Series, in_percent: pd.Series) -> pd.Series:
    """Return scores from 0 to 1; NaN for others."""
    score = raw.mask(in_percent, raw / 100)
    return score.where(score.between(0, 1))


def _statuses(logs: pd.DataFrame) -> pd.Series:
    """Return how logs ended: with a score, and no time-out, by this."""
    by_score = np.select(
        [logs["score"] == 1, logs["raw_score"] > 0],
        [str(CompletionStatus.SUCCESS), str(CompletionStatus.FAILED_PARTIAL_SCORE)],
        str(CompletionStatus.FAILED_SCORE_ZERO),
    )
    is_scored = logs["raw_score"].notna() & ~logs["timed_out"]
    return logs["completion_status"].mask(is_scored, pd.Series(by_score, logs.index))


def _deciding_messages(logs: pd.DataFrame, status: pd.Series) -> pd.Series:
    """Return the final message of each run: of the first log that agrees with its status, else of the first with any."""
    speaking = logs.loc[logs["final_system_message"].notna(), ["run", "final_system_message"]]
    speaking["differs"] = logs["completion_status"] != logs["run"].map(status)
    first = speaking.sort_values(["run", "differs"], kind="stable").drop_duplicates("run")
    return first.set_index("run")["final_system_message"].reindex(status.index)


def _flags(
    known: Mapping[str, Any], logs: pd.DataFrame, raised: Mapping[str, pd.Series], *, has_final: pd.Series
) -> list[list[str]]:
    """Return the flags of each run: those of its logs, those that `raised` says, and those of its files and task."""
    n_agents, agent_count = known["n_agents"], known["agent_count"]
    of_logs = logs.loc[logs["flags"].map(len) > 0, ["run", "flags"]].explode("flags")
    carried = {flag: n_agents.index.isin(of_logs.loc[of_logs["flags"] == flag, "run"]) for flag in LOG_FLAGS}
    is_read = logs["agent_log_processed"]
    n_read = logs[is_read].groupby("run")["agent_name"].nunique().reindex(n_agents.index, fill_value=0)
    names = logs["agent_name"].str.replace(r"_\d{1,9}$", "", regex=True)
    ids = names.where(names.str.contains(r"(?:\d\D*){4}|^[0-9a-f-]{6,}$"))  # or dates: agents have names such as gpt-4o
    n_ids = ids.groupby(logs["run"]).nunique().reindex(n_agents.index, fill_value=0)
    flags = {
        **carried,
        **raised,
        "ambiguous_definition": known["is_ambiguous"],
        "facts_from_id": ~known["has_definition"] & known["task_type"].ne("unknown"),
        "layout_mismatch": ~known["fits_layout"],
        "missing_agent_logs": n_agents < agent_count,
        "extra_agent_logs": (n_read > agent_count) | (n_ids > 1),
        "conflicting": carried["conflicting"] | raised["conflicting"],
        "quoted_only": carried["quoted_only"] & ~has_final,
        "unreadable_logs": n_agents.index.isin(logs.loc[~is_read, "run"]),
    }
    names_in_order = [name for name in FLAGS if name in flags]
    columns = [np.asarray(flags[name], bool).tolist() for name in names_in_order]
    return [list(compress(names_in_order, own)) for own in zip(*columns, strict=True)]


def _originals(logs: pd.DataFrame, paths: pd.Series) -> pd.Series:
    """Find logs that are copies: equal content, or an equal start of the agent of that name; return the original's run.

    -1 for a log that is no copy. Of the runs that share a log, the one that came later holds the copy: one whose other
    agents started more than `LEFT_OVER` later, as the log is left over from before; else the one whose file is younger,
    if the files' times are those of the experiment; else the one with more words in its path (`paths` of runs), as that
    of a copied folder has, or the later one by its path.
    """
    starts = logs.groupby("run")["task_start"].agg(["min", "max"])
    spread = starts["max"] - starts["min"]
    spread[~(spread > LEFT_OVER)] = 0
    words = paths.str.count(r"\d+|[^\W\d_]+")
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
