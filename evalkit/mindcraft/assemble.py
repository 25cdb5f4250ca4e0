"""Assemble the records of files into frames of runs and agents, and apply the user's options."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._notes import Notes, note
from evalkit._text import listed
from evalkit.io import Column, Entry, absolute, cut_name, frame_of
from evalkit.io.frames import Dtype
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.mindcraft.layout import Named, Repetition, TaskFolder, name_models, split_repetitions, task_folders
from evalkit.mindcraft.parse import STATED
from evalkit.mindcraft.table import AGENTS, COUNT_COLUMNS, OUTCOMES, RECORDS, RUNS, CompletionStatus
from evalkit.mindcraft.tasks import Definition, TaskDefinitions, metrics_of, task_facts
from evalkit.mindcraft.transcript import commands_frame, messages_frame

LEFT_OVER = 300_000  # milliseconds; the agents of one run start closer together than this
_SERVER = re.compile(r"_\d{1,9}\Z", re.ASCII)  # server number at the end of an agent's name
_ID = re.compile(r"(?:\d\D*){4}|\A[0-9a-f-]{6,}\Z", re.ASCII)  # an id or a date
_WORD = re.compile(r"\d+|[^\W\d_]+")  # in a path: a number, or letters
_NAMES_OF_COLUMNS = [column.name for column in RUNS]
_OF_TASKS = ("task_id", "has_definition", "definition_file", "is_ambiguous", *task_facts("", None))
_NUMBERS = [column.name for column in RECORDS["logs"] if column.dtype in ("int", "float", "bool")]
_NOT_MEASURED = [status for status, outcome in OUTCOMES.items() if outcome == "not measured"]


_Columns = dict[str, Any]  # columns of a table: NumPy and Arrow arrays, and lists


class Task(NamedTuple):
    """A task that some runs share."""

    place: int  # position in the list of tasks
    facts: Mapping[str, Any]  # values of the columns `_OF_TASKS`
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
    definitions, scale = options["tasks"], options.get("scale", "auto")
    others = records.tables["other_files"].to_pylist()
    only_in_runs = {row["source"] for row in others if row["other"]}  # files that are logs only in a run's folder
    found, tasks = _find_runs(records, others, only_in_runs, options, task_id, folders)
    runs, logs = _as_found(found, records, has_times=bool(options.get("original_mtimes")))
    paths = [run.folder.path for run in found]
    sizes = np.bincount(logs["run"], logs["size"], len(found)).astype(int)
    runs["run_id"] = run_ids(
        "mindcraft", paths, runs["task_id"], runs["repetition"], records=records, sizes=sizes.tolist()
    )
    logs["original"] = _originals(logs, paths)
    _add_totals(runs, logs)
    _add_scores(runs, logs, scale)
    _add_endings(runs, logs)
    runs["run_flags"] = _flags(runs, logs)

    not_logged = dict.fromkeys(_NAMES_OF_COLUMNS, [None] * len(found))
    table = frame_of(not_logged | runs, RUNS)
    of_logs = table[["run_id", "model_name", "task_id", "repetition", "experiment"]].take(logs["run"])
    agents = frame_of(logs | {name: of_logs[name] for name in of_logs}, AGENTS)
    metrics = metrics_frame([metrics_of(task.definition) for task in tasks])
    if not metrics.columns.empty:
        table = table.join(metrics.take([run.task.place for run in found]).reset_index(drop=True))
    lazy = {"messages": partial(messages_frame, agents), "commands": partial(commands_frame, agents)}
    notes = _notes(records, only_in_runs, logs, definitions)
    attributes = {"definitions": definitions, "all_runs": table[["run_id", "model_name", "task_id"]]}
    chosen = _choices(table, others, records.listing.root, scale)
    return Assembled({"runs": table, "agents": agents}, notes, attributes, lazy, chosen)


def _notes(
    records: Records, only_in_runs: Collection[str], logs: _Columns, definitions: TaskDefinitions
) -> list[Entry]:
    """Return ledger entries for definition files (used or in the source), and for files that are logs only in a run."""
    notes, entries = list[Entry](), definitions.ledger.entries
    files = records.listing.files if entries else ()
    in_source = {absolute(file): file for file in files}
    for entry in entries:
        within = in_source.get(absolute(entry.source))
        if entry.status == "used" or within is None:
            notes.append(entry._replace(source=within or entry.source))
    if only_in_runs:
        for source, error in zip(logs["source"].to_pylist(), logs["parsing_errors"].to_pylist(), strict=True):
            if source in only_in_runs:
                notes.append(Entry(source, "failed", error))
    return notes


def _choices(runs: pd.DataFrame, others: Sequence[Mapping[str, Any]], root: str, scale: str) -> Notes:
    """Note what evalkit assumed: tasks without their definitions, the scale of scores, and the names of models."""
    chosen = Notes()
    undefined = set(runs["task_id"][~runs["has_definition"]])
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
    if set(runs["model_source"]) == {"parent_folder"}:
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
        own_names = list[str]()
        for place in folder.logs:
            name = sources[place].rpartition("/")[2]
            if folder.flat:  # the name begins with the task's id; if no agent's name follows, the only agent is agent_0
                name = name.removeprefix(folder.task_id).removeprefix("_")
                if name.startswith("."):
                    name = f"agent_0{name}"
                elif not name[0].isalpha():
                    name = f"agent_0_{name}"
            own_names.append(name.removeprefix("_"))
        names = tuple(own_names)
        n_logs = None
        if len(definitions.variants.get(task_id, ())) > 1:  # a run's number of logs may show which one applies
            n_logs = max(len(repetition.logs) for repetition in split_repetitions(names, None))
        type_of_path = named.fields.get("task_type", "")
        key = (task_id, named.task_path, n_logs, type_of_path)
        if key not in tasks:  # many runs share a task
            definition, is_ambiguous = definitions.resolve(task_id, named.task_path, n_logs)
            facts = {
                "task_id": cut_name(task_id),
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


@lru_cache(maxsize=4096)  # the agents of many runs have the same names
def _count_ids(agents: tuple[str, ...]) -> int:
    """Count the names that, without a server number, are ids or dates; names such as gpt-4o are neither."""
    names = {_SERVER.sub("", agent) for agent in agents}
    return sum(_ID.search(name) is not None for name in names)


def _as_found(found: Sequence[Run], records: Records, *, has_times: bool) -> tuple[_Columns, _Columns]:
    """Return what is known of runs without reading their logs, and their logs, each with the position of its run.

    Logs have the size of their file and, if `has_times`, its time.
    """
    runs: _Columns = {
        "kind": pd.Series("mindcraft", range(len(found)), "str"),
        "source": [run.folder.folder for run in found],
        "model_name": [run.named.model_name for run in found],
        "model_source": [run.named.model_source for run in found],
        "experiment": [run.named.experiment for run in found],
        "repetition": [run.repetition.number for run in found],
        "experiment_folder": [run.named.experiment_folder for run in found],
        "flat_layout": [run.folder.flat for run in found],
        "experiment_total": [run.named.total for run in found],
        "suite": [run.named.fields.get("suite") for run in found],
        "total_agent_logs_found": np.array([len(run.repetition.logs) for run in found], int),
        "repetition_rule": [run.repetition.rule for run in found],
        "n_agents": np.array([len(set(run.repetition.agents)) for run in found], int),
        "n_ids": np.array([_count_ids(run.repetition.agents) for run in found], int),
        "fits_layout": np.array([run.named.fits_layout for run in found], bool),
    }
    for name in _OF_TASKS:
        runs[name] = [run.task.facts[name] for run in found]
    asked_for = np.array(runs["agents_asked_for"], float)
    runs["agent_count"] = np.where(np.isnan(asked_for), runs["n_agents"], asked_for).astype(int)

    places = [run.folder.logs[place] for run in found for place in run.repetition.logs]
    stored = records.tables["logs"].take(pa.array(places, "int64"))
    logs: _Columns = dict(zip(stored.column_names, stored.columns, strict=True))
    for name in _NUMBERS:
        logs[name] = stored[name].to_numpy()
    logs["agent_name"] = [name for run in found for name in run.repetition.agents]
    logs["parsing_errors"] = pc.binary_join(stored["parsing_errors"], pa.scalar("; ", pa.large_string()))
    logs["flags"] = stored["flags"].to_pylist()
    logs["run"] = np.repeat(np.arange(len(found)), runs["total_agent_logs_found"])
    files = records.files.select(["size", "modified"])
    files = files.take(pc.index_in(stored["source"], records.files["source"].combine_chunks()))
    logs["size"] = files["size"].to_numpy()
    logs["modified"] = files["modified"].to_numpy() / 1e9 if has_times else np.full(len(places), np.nan)
    return runs, logs


def _add_totals(runs: _Columns, logs: _Columns) -> None:
    """Flag the logs that are copies, and add to runs the values over all their logs, without the starts in copies."""
    of_run, n = logs["run"], len(runs["run_id"])
    is_stale, is_read = logs["original"] >= 0, logs["agent_log_processed"]
    for place in np.flatnonzero(is_stale):
        logs["flags"][place].append("stale_copy")
    started = np.where(is_stale, np.nan, logs["task_start"])
    seconds = logs["modified"] - started / 1000
    runs["raw_score"] = _extreme(np.fmax, logs["raw_score"], of_run, n)
    runs["lowest"] = _extreme(np.fmin, logs["raw_score"], of_run, n)
    runs["started"] = _extreme(np.fmin, started, of_run, n)
    runs["duration"] = _extreme(np.fmax, np.where(seconds >= 0, seconds, np.nan), of_run, n)
    runs["timed_out"] = np.bincount(of_run, logs["timed_out"], n) > 0
    runs["original"] = np.full(n, -1)
    np.maximum.at(runs["original"], of_run, logs["original"])
    runs["n_read"] = np.bincount(of_run, is_read, n).astype(int)
    for column in COUNT_COLUMNS:
        name = "turns" if column.name == "message_count" else column.name  # as in the runs of every kind
        runs[name] = np.bincount(of_run, logs[column.name], n).astype(int)
    read_agents = [set[str]() for _ in range(n)]
    for place in np.flatnonzero(is_read):
        read_agents[of_run[place]].add(logs["agent_name"][place])
    runs["n_read_agents"] = np.array([len(names) for names in read_agents], int)


def _extreme(ufunc: np.ufunc, values: np.ndarray, of_run: np.ndarray, n: int) -> np.ndarray:
    """Return the highest or lowest value of each of `n` runs; NaN if it has none."""
    found = np.full(n, np.nan)
    ufunc.at(found, of_run, values)
    return found


def _add_scores(runs: _Columns, logs: _Columns, scale: str) -> None:
    """Add the scale of scores to runs, and the score from 0 to 1 (NaN if it is out of range) to runs and logs."""
    raw, types = runs["raw_score"], np.array(runs["task_type"], object)
    is_construction, is_unknown = types == "construction", types == "unknown"
    exceeds_one = bool((raw[is_construction] > 1).any())
    is_assumed = scale == "auto" and not exceeds_one
    runs["scale_assumed"] = is_construction & ~np.isnan(raw) & (raw != 0) & is_assumed
    if scale == "auto":
        scale = "percent" if exceeds_one else "fraction"
    runs["score_scale"] = np.select([is_construction, is_unknown], [scale, "unknown"], "binary")
    in_percent = (runs["score_scale"] == "percent") | (is_unknown & (raw > 1))
    for table, is_so in ((runs, in_percent), (logs, in_percent[logs["run"]])):
        score = np.where(is_so, table["raw_score"] / 100, table["raw_score"])
        table["score"] = np.where((score >= 0) & (score <= 1), score, np.nan)


def _add_endings(runs: _Columns, logs: _Columns) -> None:
    """Add how runs and logs ended, and to runs their success, originals, errors and final messages."""
    timed_out, score = runs["timed_out"], runs["score"]
    runs["inferred_timeout"] = (runs["duration"] >= np.array(runs["timeout"], float)) & (score != 1) & ~timed_out
    is_unread = (runs["total_agent_logs_found"] > 0) & (runs["n_read"] == 0)
    stated = pc.fill_null(logs["stated_status"], "")
    of_logs = {status: pc.equal(stated, str(status)).to_numpy() for status in STATED.values()}
    of_runs = {status: np.bincount(logs["run"], has_it, len(score)) > 0 for status, has_it in of_logs.items()}
    of_runs[CompletionStatus.TIMED_OUT] |= runs["inferred_timeout"]
    runs["status"] = _status(runs, of_runs, is_unread)
    logs["completion_status"] = _status(logs, of_logs, ~logs["agent_log_processed"])
    is_unmeasured = np.isnan(runs["raw_score"]) & np.isin(runs["status"], _NOT_MEASURED)
    runs["is_successful"] = pa.array(score == 1, mask=is_unmeasured)
    runs["success_rate"] = np.where(is_unmeasured, np.nan, score == 1)
    for name, column in (("copy_of", "run_id"), ("copied_model", "model_name")):
        runs[name] = [runs[column][original] if original >= 0 else None for original in runs["original"].tolist()]
    errors = [list[str]() for _ in runs["run_id"]]
    unread = np.flatnonzero(~logs["agent_log_processed"])
    for run, error in zip(logs["run"][unread], logs["parsing_errors"].take(unread).to_pylist(), strict=True):
        errors[run].append(error)
    runs["parsing_errors"] = ["; ".join(own) for own in errors]
    # the final message of the first log with the run's status, else of the first log that has a final message
    has_status = logs["completion_status"] == runs["status"][logs["run"]]
    of_status, of_others = dict[int, str](), dict[int, str]()
    messages = logs["final_system_message"].to_pylist()
    for run, is_of_status, message in zip(logs["run"].tolist(), has_status.tolist(), messages, strict=True):
        if message is not None and is_of_status:
            of_status.setdefault(run, message)
        elif message is not None:
            of_others.setdefault(run, message)
    final = of_others | of_status
    runs["final_system_message"] = [final.get(run) for run in range(len(errors))]


def _status(table: _Columns, stated: Mapping[CompletionStatus, np.ndarray], is_unread: np.ndarray) -> np.ndarray:
    """Return how runs or logs ended; the score decides if they could be read and their logs do not state it."""
    endings = {
        **stated,
        CompletionStatus.LOG_FILE_ERROR: is_unread,
        CompletionStatus.NO_SCORE_LOGGED: np.isnan(table["raw_score"]),
        CompletionStatus.SUCCESS: table["score"] == 1,
        CompletionStatus.FAILED_PARTIAL_SCORE: table["raw_score"] > 0,
    }
    return np.select(list(endings.values()), list(map(str, endings)), str(CompletionStatus.FAILED_SCORE_ZERO))


def _flags(runs: _Columns, logs: _Columns) -> list[list[str]]:
    """Return the flags of each run, in the order of `FLAGS`, including the flags of its logs."""
    flags = [set[str]() for _ in runs["run_id"]]
    for run, own in zip(logs["run"].tolist(), logs["flags"], strict=True):
        flags[run].update(own)
    for own, message in zip(flags, runs["final_system_message"], strict=True):
        if message is not None:
            own.discard("quoted_only")
    raw, agent_count = runs["raw_score"], runs["agent_count"]
    has_score = ~np.isnan(raw)
    is_undefined = ~np.array(runs["has_definition"], bool)
    raised = {
        "ambiguous_definition": runs["is_ambiguous"],
        "facts_from_id": is_undefined & (np.array(runs["task_type"], object) != "unknown"),
        "layout_mismatch": ~runs["fits_layout"],
        "missing_agent_logs": runs["n_agents"] < agent_count,
        "extra_agent_logs": (runs["n_read_agents"] > agent_count) | (runs["n_ids"] > 1),
        "conflicting": (raw > runs["lowest"]) | (runs["timed_out"] & has_score & (raw != 0)),
        "score_out_of_range": has_score & np.isnan(runs["score"]),
        "scale_assumed": runs["scale_assumed"],
        "unreadable_logs": runs["n_read"] < runs["total_agent_logs_found"],
        "inferred_timeout": runs["inferred_timeout"],
    }
    for flag, is_raised in raised.items():
        for run in np.flatnonzero(is_raised):
            flags[run].add(flag)
    return [sorted(own) for own in flags]


def _originals(logs: _Columns, paths: Sequence[str]) -> np.ndarray:
    """Find copied logs: equal content, or equal agent and start. Return the run of each log's original; -1 if none.

    If several runs share a log, the later run has the copy. A run is later if other agents in it started more than
    `LEFT_OVER` after the shared log did, because that log is then left over from an earlier run. Otherwise the run with
    the younger file is later, if file times are original; else the run with more words in its path (`paths`), since
    copied folders often get longer names; else the run whose path sorts last.
    """
    of_run, starts = logs["run"], logs["task_start"]
    spread = _extreme(np.fmax, starts, of_run, len(paths)) - _extreme(np.fmin, starts, of_run, len(paths))
    spread = np.where(spread > LEFT_OVER, spread, 0)
    times = np.nan_to_num(logs["modified"])  # unknown times are equal
    originals = np.full(len(of_run), -1)
    agents = zip(logs["agent_name"], starts.tolist(), strict=True)
    agents_and_starts = [(name, start) if start > 0 else None for name, start in agents]
    for keys in (logs["digest"].to_pylist(), agents_and_starts):
        counts = Counter(keys)
        shared = defaultdict[Any, list[int]](list)
        for place, key in enumerate(keys):
            if key and counts[key] > 1:
                shared[key].append(place)
        for places in shared.values():
            order = {}  # of the runs; the first one has the original
            for place in places:
                run = of_run[place]
                order[place] = spread[run], times[place], len(_WORD.findall(paths[run])), run
            owner = of_run[min(places, key=order.__getitem__)]
            for place in places:
                if of_run[place] != owner:
                    originals[place] = owner
    return originals


def metrics_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Build a column ``metric_NAME`` for each metric: numbers, booleans, or text if the values are neither."""
    values: dict[str, list[Any]] = {}
    types: dict[str, set[type]] = defaultdict(set)
    for place, row in enumerate(rows):
        for metric, value in row.items():
            name = cut_name(f"metric_{metric}")
            values.setdefault(name, [None] * len(rows))[place] = value
            types[name].add(type(value))
    columns = list[Column]()
    for name, own in types.items():
        dtype: Dtype = "str"
        if own == {bool}:
            dtype = "bool?"
        elif own <= {int, float}:
            dtype = "float"
        columns.append(Column(name, dtype, "metric of the definition"))
    return frame_of(values, columns)
