"""Assemble the records of files into frames of runs and agents, and apply the user's options."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._notes import Notes, note
from evalkit._text import listed
from evalkit.io import Column, Entry, absolute, cut_name, frame, frame_of
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.mindcraft.layout import Named, Repetition, TaskFolder, name_models, split_repetitions, task_folders
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, LOG_FLAGS, OUTCOMES, RECORDS, RUNS, CompletionStatus
from evalkit.mindcraft.tasks import Definition, TaskDefinitions, metrics_of, task_facts
from evalkit.mindcraft.transcript import commands_frame, messages_frame

LEFT_OVER = 300_000  # milliseconds; the agents of one run start closer together than this
_SERVER = re.compile(r"_\d{1,9}\Z", re.ASCII)  # server number at the end of an agent's name
_ID = re.compile(r"(?:\d\D*){4}|\A[0-9a-f-]{6,}\Z", re.ASCII)  # an id or a date
_OF_TASKS = {"task_id", "has_definition", "definition_file", *task_facts("", None)}
_TASK_COLUMNS = [column for column in RUNS if column.name in _OF_TASKS]
_TASK_COLUMNS.append(Column("is_ambiguous", "bool", "several definitions fit the task"))
_LOG_COLUMNS = (*(column for column in AGENTS if column.name in ("source", "agent_name")), *RECORDS["logs"])
_COUNTS = [column.name for column in COUNT_COLUMNS[1:]]  # without message_count, which is `turns` in runs
_NOT_MEASURED = [status for status, outcome in OUTCOMES.items() if outcome == "not measured"]


class Task(NamedTuple):
    """A task that some runs share."""

    place: int  # position in the list of tasks
    facts: Mapping[str, Any]  # values of `_TASK_COLUMNS`
    definition: Definition


class Run(NamedTuple):
    """A run: one repetition of a task in a folder."""

    folder: TaskFolder
    named: Named
    task: Task
    repetition: Repetition


def assemble(
    records: Records, options: Mapping[str, Any], *, folders: Sequence[str] = (), task_id: str = ""
) -> Assembled:
    """Assemble runs; `options` as for `load`, `folders` and `task_id` as `asked` and `own_id` of `task_folders`."""
    definitions = options["tasks"]
    others = records.tables["other_files"].to_pylist()
    only_in_runs = {row["source"] for row in others if row["other"]}  # files that are logs only in a run's folder
    found, tasks = _find_runs(records, others, only_in_runs, options, task_id, folders)
    places = [run.task.place for run in found]
    runs, logs = _as_found(found, records, has_times=bool(options.get("original_mtimes")))
    runs = runs.join(frame([task.facts for task in tasks], _TASK_COLUMNS).take(places).reset_index(drop=True))
    sizes = np.bincount(logs["run"], logs["size"], len(runs)).astype(int)
    paths, task_ids, numbers = runs[["path", "task_id", "repetition"]].to_numpy("object").T
    runs["run_id"] = run_ids("mindcraft", paths, task_ids, numbers, records=records, sizes=sizes)
    logs["original"] = _originals(logs, runs["path"])
    runs["agent_count"] = runs["agents_asked_for"].fillna(runs["n_agents"])
    runs = runs.join(_gathered(logs))
    runs = runs.fillna(dict.fromkeys(["turns", "n_read", "n_read_agents", *_COUNTS], 0))  # for runs without logs
    _add_scores(runs, logs, options.get("scale", "auto"))
    _add_endings(runs, logs)
    runs["run_flags"] = _flags(runs, logs)
    ids = runs[["run_id", "model_name", "task_id", "repetition", "experiment"]].take(logs["run"].to_numpy())
    logs = logs.join(ids.reset_index(drop=True))
    agents = frame_of(logs, AGENTS)
    not_logged = [None] * len(runs)
    runs = frame_of({column.name: runs.get(column.name, not_logged) for column in RUNS}, RUNS)
    metrics = metrics_frame([metrics_of(task.definition) for task in tasks])
    if not metrics.columns.empty:
        runs = runs.join(metrics.take(places).reset_index(drop=True))
    lazy = {"messages": partial(messages_frame, agents), "commands": partial(commands_frame, agents)}
    notes = _notes(records, only_in_runs, agents, definitions)
    attributes = {"definitions": definitions, "all_runs": runs[["run_id", "model_name", "task_id"]]}
    chosen = _choices(runs, others, records.listing.root, options.get("scale", "auto"))
    return Assembled({"runs": runs, "agents": agents}, notes, attributes, lazy, chosen)


def _notes(
    records: Records, only_in_runs: Collection[str], agents: pd.DataFrame, definitions: TaskDefinitions
) -> list[Entry]:
    """Return ledger entries for definition files (used or in the source), and for files that are logs only in a run."""
    notes, entries = list[Entry](), definitions.ledger.entries
    in_source = {absolute(file): file for file in records.listing.files} if entries else {}
    for entry in entries:
        within = in_source.get(absolute(entry.source))
        if entry.status == "used" or within is None:
            notes.append(entry._replace(source=within or entry.source))
    unread = agents.loc[agents["source"].isin(only_in_runs), ["source", "parsing_errors"]]
    notes += [Entry(source, "failed", error) for source, error in unread.itertuples(index=False, name=None)]
    return notes


def _choices(runs: pd.DataFrame, others: Sequence[Mapping[str, Any]], root: str, scale: str) -> Notes:
    """Note what evalkit assumed: tasks without their definitions, the scale of scores, and the names of models."""
    chosen = Notes()
    undefined = set(runs.loc[~runs["has_definition"], "task_id"])
    files = [row["source"].removeprefix(f"{root}/") for row in others if not undefined.isdisjoint(row["defined"])]
    if files:
        chosen += note("unused_definitions", files=listed(files, 3))
    # models whose scores are at most 1, like fractions, but are read as percentages because others exceed 1
    is_in_percent = runs["score_scale"].eq("percent") & (runs["raw_score"] > 0)
    if scale == "auto" and is_in_percent.any():
        scored = runs[is_in_percent].groupby(["model_name", "experiment"], dropna=False)["raw_score"]
        scores = scored.agg(["max", "size"])
        doubtful = scores.index[(scores["max"] <= 1) & (scores["size"] > 1)]
        names = [f"{model} in {experiment}" for model, experiment in doubtful]
        if names:
            chosen += note("mixed_scales", names=listed(names, 3))
    if runs["model_source"].unique().tolist() == ["parent_folder"]:
        chosen += note("parent_folder")
    return chosen


def _find_runs(
    records: Records,
    others: Sequence[Mapping[str, Any]],
    only_in_runs: Collection[str],
    options: Mapping[str, Any],
    own_id: str,
    asked: Sequence[str],
) -> tuple[list[Run], list[Task]]:
    """Return the runs in the order of their folders, and their tasks."""
    sources = records.tables["logs"]["source"].to_pylist()
    broken = set(np.flatnonzero(~records.tables["logs"]["agent_log_processed"].to_numpy()).tolist())
    listing, definitions = records.listing, options["tasks"]
    paths = frozenset(map(absolute, asked))
    folders = task_folders(sources, broken, only_in_runs, listing, definitions, asked=paths, own_id=own_id)
    folders.sort(key=attrgetter("folder", "task_id"))
    runs, tasks = list[Run](), dict[tuple, Task]()
    models = name_models(folders, listing.root, options.get("layout"), others)
    for folder, named in zip(folders, models, strict=True):
        task_id = named.fields.get("task_id", folder.task_id)
        names = tuple(_name_in_run(sources[place], folder.task_id if folder.flat else "") for place in folder.logs)
        n_logs = None
        if len(definitions.variants.get(task_id, ())) > 1:  # a run's number of logs may show which one applies
            n_logs = max(len(repetition.logs) for repetition in split_repetitions(names, None))
        type_of_path = named.fields.get("task_type", "")
        key = (task_id, named.task_path, n_logs, type_of_path)
        if key not in tasks:  # many runs share a task
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
        least = 1 if folder.flat else None  # the last number in a flat log's name is a repetition
        for repetition in split_repetitions(names, task.facts["agent_count"] or least):
            runs.append(Run(folder, named, task, repetition))
    return runs, list(tasks.values())


def _name_in_run(source: str, task: str) -> str:
    """Return a log's file name without its task's id; if that leaves no agent's name, the only agent is ``agent_0``."""
    own = source.rpartition("/")[2].removeprefix(task).removeprefix("_")
    if not task or own[0].isalpha():
        return own
    return f"agent_0{own}" if own.startswith(".") else f"agent_0_{own}"


@lru_cache(maxsize=4096)  # the agents of many runs have the same names
def _count_ids(agents: tuple[str, ...]) -> int:
    """Count the names that, without a server number, are ids or dates; names such as gpt-4o are neither."""
    names = {_SERVER.sub("", agent) for agent in agents}
    return sum(_ID.search(name) is not None for name in names)


def _as_found(found: Sequence[Run], records: Records, *, has_times: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what is known of runs without reading their logs, and their logs, each with the position of its run.

    Logs have the time of their file if `has_times`.
    """
    n_logs = np.array([len(run.repetition.logs) for run in found], int)
    values: dict[str, Any] = {
        "kind": "mindcraft",
        "source": [run.folder.folder for run in found],
        "model_name": [run.named.model_name for run in found],
        "model_source": [run.named.model_source for run in found],
        "experiment": [run.named.experiment for run in found],
        "repetition": [run.repetition.number for run in found],
        "experiment_folder": [run.named.experiment_folder for run in found],
        "flat_layout": [run.folder.flat for run in found],
        "experiment_total": [run.named.total for run in found],
        "suite": [run.named.fields.get("suite") for run in found],
        "total_agent_logs_found": n_logs,
        "repetition_rule": [run.repetition.rule for run in found],
        "path": pd.Series([run.folder.path for run in found], dtype="str"),
        "n_agents": np.array([len(set(run.repetition.agents)) for run in found], int),
        "n_ids": np.array([_count_ids(run.repetition.agents) for run in found], int),
        "fits_layout": np.array([run.named.fits_layout for run in found], bool),
    }
    runs = pd.DataFrame(values)
    places = [run.folder.logs[place] for run in found for place in run.repetition.logs]
    stored = records.tables["logs"].take(pa.array(places, "int64"))
    values = dict(zip(stored.column_names, stored.columns, strict=True))
    values["agent_name"] = [name for run in found for name in run.repetition.agents]
    logs = frame_of(values, _LOG_COLUMNS)
    logs["parsing_errors"] = logs["parsing_errors"].map("; ".join).astype("str")
    logs["run"] = np.repeat(np.arange(len(found)), n_logs)
    files = records.files.take(pc.index_in(stored["source"], records.files["source"].combine_chunks()))
    logs["size"] = files["size"].to_numpy()
    logs["modified"] = files["modified"].to_numpy() / 1e9 if has_times else np.nan
    return runs, logs


def _gathered(logs: pd.DataFrame) -> pd.DataFrame:
    """Flag the logs that are copies, and return each run's values over all its logs, without the starts in copies."""
    is_stale = logs["original"] >= 0
    for flags in logs.loc[is_stale, "flags"]:
        flags.append("stale_copy")
    started = logs["task_start"].mask(is_stale)
    seconds = logs["modified"] - started / 1000
    table = logs.assign(
        lowest=logs["raw_score"],
        started=started,
        duration=seconds.where(seconds >= 0),
        turns=logs["message_count"],
        n_read=logs["agent_log_processed"],
        n_read_agents=logs["agent_name"].where(logs["agent_log_processed"]),
    )
    of_run = table.groupby("run")
    highest = of_run[["raw_score", "timed_out", "duration", "original"]].max()
    lowest = of_run[["lowest", "started"]].min()
    totals = of_run[["n_read", "turns", *_COUNTS]].sum()
    return pd.concat([highest, lowest, totals, of_run["n_read_agents"].nunique()], axis=1)


def _add_scores(runs: pd.DataFrame, logs: pd.DataFrame, scale: str) -> None:
    """Add the scale of scores to runs, and the score from 0 to 1 (NaN if it is out of range) to runs and logs."""
    raw = runs["raw_score"]
    is_construction = runs["task_type"].eq("construction")
    is_unknown = runs["task_type"].eq("unknown")
    exceeds_one = bool((raw[is_construction] > 1).any())
    is_assumed = scale == "auto" and not exceeds_one
    runs["scale_assumed"] = is_construction & raw.notna() & (raw != 0) & is_assumed
    if scale == "auto":
        scale = "percent" if exceeds_one else "fraction"
    runs["score_scale"] = np.select([is_construction, is_unknown], [scale, "unknown"], "binary")
    in_percent = runs["score_scale"].eq("percent") | (is_unknown & (raw > 1))
    for table, is_so in ((runs, in_percent), (logs, in_percent.to_numpy()[logs["run"]])):
        score = table["raw_score"].mask(is_so, table["raw_score"] / 100)
        table["score"] = score.where(score.between(0, 1))


def _add_endings(runs: pd.DataFrame, logs: pd.DataFrame) -> None:
    """Add how runs and logs ended, and to runs their success, originals, errors and final messages."""
    runs["timed_out"] = runs["timed_out"].eq(True)
    runs["inferred_timeout"] = (runs["duration"] >= runs["timeout"]) & (runs["score"] != 1) & ~runs["timed_out"]
    is_unread = (runs["total_agent_logs_found"] > 0) & (runs["n_read"] == 0)
    runs["status"] = _status(runs, runs["timed_out"] | runs["inferred_timeout"], is_unread)
    logs["completion_status"] = _status(logs, logs["timed_out"], ~logs["agent_log_processed"])
    is_unmeasured = runs["raw_score"].isna() & runs["status"].isin(_NOT_MEASURED)
    runs["is_successful"] = runs["score"].eq(1).astype("boolean").mask(is_unmeasured)
    runs["success_rate"] = runs["is_successful"].to_numpy("float64", na_value=np.nan)
    original = runs["original"].fillna(-1).astype(int)
    runs["copy_of"] = runs["run_id"].reindex(original).to_numpy()
    runs["copied_model"] = runs["model_name"].reindex(original).to_numpy()
    errors = logs["parsing_errors"][~logs["agent_log_processed"]].groupby(logs["run"]).agg("; ".join)
    runs["parsing_errors"] = errors.reindex(runs.index, fill_value="")
    # the final message of the first log with the run's status, else of the first log that has a final message
    differs = logs["completion_status"].to_numpy() != runs["status"].to_numpy()[logs["run"]]
    messages = logs["final_system_message"].iloc[np.argsort(differs, kind="stable")]
    runs["final_system_message"] = messages.groupby(logs["run"]).first()


def _status(table: pd.DataFrame, timed_out: pd.Series, is_unread: pd.Series) -> np.ndarray:
    """Return how runs or logs ended; the score decides if they could be read and did not time out."""
    endings = {
        CompletionStatus.TIMED_OUT: timed_out,
        CompletionStatus.LOG_FILE_ERROR: is_unread,
        CompletionStatus.NO_SCORE_LOGGED: table["raw_score"].isna(),
        CompletionStatus.SUCCESS: table["score"] == 1,
        CompletionStatus.FAILED_PARTIAL_SCORE: table["raw_score"] > 0,
    }
    return np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))


def _flags(runs: pd.DataFrame, logs: pd.DataFrame) -> list[list[str]]:
    """Return the flags of each run, including the flags of its logs."""
    flagged: dict[str, set[int]] = {flag: set() for flag in LOG_FLAGS}
    for run, own in zip(logs["run"], logs["flags"], strict=True):
        for flag in own:
            flagged[flag].add(run)
    carried = {flag: runs.index.isin(places) for flag, places in flagged.items()}
    raw, has_score = runs["raw_score"], runs["raw_score"].notna()
    is_contradicted = (raw > runs["lowest"]) | (runs["timed_out"] & has_score & (raw != 0))
    raised = {
        **carried,
        "ambiguous_definition": runs["is_ambiguous"],
        "facts_from_id": ~runs["has_definition"] & runs["task_type"].ne("unknown"),
        "layout_mismatch": ~runs["fits_layout"],
        "missing_agent_logs": runs["n_agents"] < runs["agent_count"],
        "extra_agent_logs": (runs["n_read_agents"] > runs["agent_count"]) | (runs["n_ids"] > 1),
        "conflicting": carried["conflicting"] | is_contradicted,
        "quoted_only": carried["quoted_only"] & runs["final_system_message"].isna(),
        "score_out_of_range": has_score & runs["score"].isna(),
        "scale_assumed": runs["scale_assumed"],
        "unreadable_logs": runs["n_read"] < runs["total_agent_logs_found"],
        "inferred_timeout": runs["inferred_timeout"],
    }
    flags = sorted(raised)  # in the order of `FLAGS`
    columns = [np.asarray(raised[flag], bool).tolist() for flag in flags]
    return [list(compress(flags, own)) for own in zip(*columns, strict=True)]


def _originals(logs: pd.DataFrame, paths: pd.Series) -> pd.Series:
    """Find copied logs: equal content, or equal agent and start. Return the run of each log's original; -1 if none.

    If several runs share a log, the later run has the copy. A run is later if other agents in it started more than
    `LEFT_OVER` after the shared log did, because that log is then left over from an earlier run. Otherwise the run with
    the younger file is later, if file times are original; else the run with more words in its path (`paths`), since
    copied folders often get longer names; else the run whose path sorts last.
    """
    logs = logs[["run", "agent_name", "task_start", "digest", "modified"]]
    original = pd.Series(-1, logs.index)
    for keys, unknown in ((["digest"], ""), (["agent_name", "task_start"], 0)):
        is_known = logs[keys[-1]].notna() & (logs[keys[-1]] != unknown)
        shared = logs[is_known & logs.duplicated(keys, keep=False)]
        if shared.empty:
            continue
        starts = logs.groupby("run")["task_start"]
        spread = starts.max() - starts.min()
        spread = spread.where(spread > LEFT_OVER, 0)
        words = paths[shared["run"].unique()].str.count(r"\d+|[^\W\d_]+")
        order = shared.assign(left_over=shared["run"].map(spread), words=shared["run"].map(words))
        order = order.sort_values(["left_over", "modified", "words", "run"], kind="stable")
        owner = order.groupby(keys)["run"].transform("first")
        owner = owner[owner != order["run"]]
        original[owner.index] = owner
    return original


def metrics_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Build a column ``metric_NAME`` for each metric: numbers, booleans, or text if the values are neither."""
    types, columns = dict[str, set[type]](), list[Column]()
    named = list[dict[str, Any]]()
    for row in rows:
        named.append({})
        for metric, value in row.items():
            name = cut_name(f"metric_{metric}")
            named[-1][name] = value
            types.setdefault(name, set()).add(type(value))
    for name, own in types.items():
        dtype = "str"
        if own == {bool}:
            dtype = "bool?"
        elif own <= {int, float}:
            dtype = "float"
        columns.append(Column(name, dtype, "metric of the definition"))
    return frame(named, columns)
