"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.io import Entry, Listing, SourceError, absolute, paused_gc, unescape_surrogates, unescaped
from evalkit.kinds import Assembled, Records
from evalkit.mindcraft.format import Missing, Results
from evalkit.mindcraft.runs.arrays import COUNTS, STATUSES, LogArrays
from evalkit.mindcraft.runs.combine import TaskRuns, combine, runs_of
from evalkit.mindcraft.runs.frames import agents_frame, flag_arrays, runs_frame
from evalkit.mindcraft.runs.layout import (
    TaskFolder,
    absolute_paths,
    drop_stray,
    empty_folders,
    group_by_task,
    split_repetitions,
)
from evalkit.mindcraft.runs.models import ModelNames
from evalkit.mindcraft.table import LAZY_TABLES
from evalkit.mindcraft.tasks.definitions import Resolved, TaskDefinitions, as_definitions
from evalkit.mindcraft.tasks.facts import Facts, agent_count_of, task_facts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any], *, all_folders: bool = False) -> Assembled:
    """Assemble the logs of runs.

    Parameters
    ----------
    records : Records
    options : mapping
        tasks, layout, scale, missing, original_mtimes, as for `load`.
    all_folders : bool
        Whether every folder without logs is a run.

    Raises
    ------
    SourceError
        If `missing` is ``raise`` and a run has no definition.
    """
    definitions = as_definitions(options.get("tasks") or ())
    scale, missing = options.get("scale", "auto"), options.get("missing", "keep")
    table, listing = records.tables["logs"], records.listing
    logs = _arrays(table, records.files if options.get("original_mtimes") else None)
    names = _model_names(records.tables["other_files"], listing.root, options.get("layout"))
    folders = _task_folders(logs, listing, definitions, all_folders=all_folders)
    tasks = _known_tasks(folders, logs.sources, names, definitions)
    notes = _without_definition(tasks, logs.sources, missing)
    if missing == "skip":
        tasks = [task for task in tasks if task.definition is not None]
    tasks.sort(key=lambda task: (task.folder.folder, task.folder.task_id))
    combined = combine(tasks, runs_of(tasks, logs.sources), logs, scale)
    runs = runs_frame(tasks, combined, table)
    agents = agents_frame(runs, combined, table)
    notes += _entries_of(definitions, listing.files)
    lazy = {name: partial(_make, name, records, runs, agents) for name in LAZY_TABLES}
    return Assembled({"runs": runs, "agents": agents}, notes, {"definitions": definitions}, lazy)


def _make(name: str, records: Records, runs: "pd.DataFrame", agents: "pd.DataFrame") -> "pd.DataFrame":
    """Build a lazy frame, on first access."""
    from evalkit.mindcraft import transcript
    from evalkit.mindcraft.legacy.folders import folders_frame

    if name == "folders":
        return folders_frame(records, runs)
    return (transcript.messages_frame if name == "messages" else transcript.commands_frame)(agents)


def _arrays(logs: "pa.Table", files: "pa.Table | None") -> LogArrays:
    """Return the arrays of logs, with the files' times if these are the experiment's own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def numbers(name: str) -> np.ndarray:
        return logs[name].to_numpy()

    digest = logs["digest"].combine_chunks().dictionary_encode()
    copies = np.array([-1 if text == "" else code for code, text in enumerate(digest.dictionary.to_pylist())], int)
    statuses = pc.index_in(logs["completion_status"], pa.array(STATUSES, pa.large_string()))
    modified = np.full(len(logs), np.nan)
    if files is not None:
        modified = files["modified"].take(pc.index_in(logs["source"], files["source"])).to_numpy() / 1e9
    return LogArrays(
        unescaped(logs["source"]),
        numbers("raw_score"),
        statuses.to_numpy(),
        pc.is_valid(logs["final_system_message"]).to_numpy(),
        numbers("agent_log_processed"),
        numbers("timed_out"),
        numbers("task_start"),
        copies[digest.indices.to_numpy()] if len(logs) else np.zeros(0, int),
        flag_arrays(logs["flags"]),
        {name: numbers(name) for name in COUNTS},
        modified,
    )


def _model_names(other_files: "pa.Table", root: str, layout: str | None) -> ModelNames:
    names = ModelNames(root, layout)
    for row in other_files.drop_columns("legacy").to_pylist():
        source, *results, profile_model = row.values()
        names.add(unescape_surrogates(source), Results(*results), profile_model)
    return names


def _task_folders(
    logs: LogArrays, listing: Listing, definitions: TaskDefinitions, *, all_folders: bool
) -> list[TaskFolder]:
    """Find the folders of task runs, including those without any log."""
    folders = drop_stray(group_by_task(logs.sources, definitions), set(np.flatnonzero(~logs.processed).tolist()))
    return folders + empty_folders(listing.files, listing.folders, folders, definitions, all_folders=all_folders)


def _known_tasks(
    folders: Iterable[TaskFolder], sources: Sequence[str], names: ModelNames, definitions: TaskDefinitions
) -> list[TaskRuns]:
    """Determine everything about runs but their scores."""
    tasks: list[TaskRuns] = []
    known: dict[tuple, tuple[Resolved, Facts]] = {}  # many models ran the same tasks, many times
    facts: dict[tuple, Facts] = {}
    for folder in folders:
        named = names.name(folder)
        if "task_id" in named.fields:
            folder = folder._replace(task_id=named.fields["task_id"])
        task_id, candidates, n_logs = folder.task_id, definitions.candidates(folder.task_id), None
        if len(candidates) > 1:
            counts = {agent_count_of(definition) for definition in candidates}
            count = counts.pop() if len(counts) == 1 else None
            repetitions = split_repetitions([sources[i] for i in folder.logs], count, folder.prefix)
            n_logs = max((len(repetition.logs) for repetition in repetitions), default=0)
        key = (task_id, named.results.task_path, n_logs, type_of_path := named.fields.get("task_type", ""))
        if key not in known:
            resolved = definitions.resolve(task_id, named.results.task_path, n_logs)
            of_task = (task_id, id(resolved.definition), type_of_path)
            if of_task not in facts:
                facts[of_task] = task_facts(task_id, resolved.definition, type_of_path)
            known[key] = resolved, facts[of_task]
        resolved, facts_of_task = known[key]
        tasks.append(TaskRuns(folder, resolved.definition, facts_of_task, named, resolved.ambiguous))
    return tasks


def _without_definition(tasks: Iterable[TaskRuns], sources: Sequence[str], missing: Missing) -> list[Entry]:
    """Note in the ledger which logs are skipped for lack of a definition, or raise SourceError."""
    notes = []
    for task in tasks if missing != "keep" else ():
        folder = task.folder
        if task.definition is None and missing == "raise":
            raise SourceError(f"{folder.folder}: no definition of task {folder.task_id!r}")
        if task.definition is None:
            notes += [Entry(sources[i], "skipped", f"no definition of task {folder.task_id}") for i in folder.logs]
    return notes


def _entries_of(definitions: TaskDefinitions, files: Iterable[str]) -> list[Entry]:
    """Return the ledger of definitions, with the paths of the source for those within it."""
    entries = definitions.ledger.entries
    if not entries:
        return []
    names = list(files)
    listed = dict(zip(absolute_paths(names), names, strict=True))
    named = [entry._replace(source=listed.get(absolute(entry.source), entry.source)) for entry in entries]
    return [entry for entry in named if entry.status == "used" or entry.source not in listed.values()]
