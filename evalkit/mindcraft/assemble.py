"""Assemble records of files into frames of runs and agents; the user's options are applied here."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from evalkit.io import Entry, SourceError, absolute, paused_gc, unescape_surrogates, unescaped
from evalkit.kinds import Assembled, Records
from evalkit.mindcraft.format import Missing, Results
from evalkit.mindcraft.runs.arrays import LogArrays, log_arrays
from evalkit.mindcraft.runs.combine import TaskRuns, combine, runs_of
from evalkit.mindcraft.runs.frames import agents_frame, runs_frame
from evalkit.mindcraft.runs.layout import TaskFolder, absolute_paths, split_repetitions, task_folders
from evalkit.mindcraft.runs.models import ModelNames
from evalkit.mindcraft.tasks.definitions import Resolved, TaskDefinitions, as_definitions
from evalkit.mindcraft.tasks.facts import Facts, agent_count_of, task_facts
from evalkit.mindcraft.transcript import commands_frame, messages_frame

if TYPE_CHECKING:
    import pyarrow as pa


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any], *, all_folders: bool = False) -> Assembled:
    """Assemble the logs of runs; options as for `load`. With `all_folders`, every folder without logs is a run."""
    definitions = as_definitions(options.get("tasks") or ())
    scale, missing = options.get("scale", "auto"), options.get("missing", "keep")
    table, listing = records.tables["logs"], records.listing
    logs = log_arrays(table, records.files if options.get("original_mtimes") else None)
    others = records.tables["other_files"]
    names = _model_names(others, listing.root, options.get("layout"))
    broken = set(np.flatnonzero(~logs.processed).tolist())
    foreign = unescaped(others["source"].filter(pc.not_equal(others["other"], "")))
    folders = task_folders(logs.sources, broken, foreign, listing, definitions, all_folders=all_folders)
    tasks = _known_tasks(folders, logs, names, definitions)
    notes = _without_definition(tasks, logs.sources, missing)
    if missing == "skip":
        tasks = [task for task in tasks if task.definition is not None]
    tasks.sort(key=lambda task: (task.folder.folder, task.folder.task_id))
    combined = combine(tasks, runs_of(tasks, logs.sources, logs.start), logs, scale)
    runs = runs_frame(tasks, combined, table)
    agents = agents_frame(runs, combined, table)
    notes += _entries_of(definitions, listing.files)
    lazy = {
        "messages": partial(messages_frame, agents),
        "commands": partial(commands_frame, agents),
    }
    return Assembled({"runs": runs, "agents": agents}, notes, {"definitions": definitions}, lazy)


def _model_names(other_files: "pa.Table", root: str, layout: str | None) -> ModelNames:
    names = ModelNames(root, layout)
    for row in other_files.drop_columns("other").to_pylist():
        source, *results, profile_model = row.values()
        names.add(unescape_surrogates(source), Results(*results), profile_model)
    return names


def _known_tasks(
    folders: Iterable[TaskFolder], logs: LogArrays, names: ModelNames, definitions: TaskDefinitions
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
            repetitions = split_repetitions(
                [logs.sources[i] for i in folder.logs], count, folder.prefix, logs.start[list(folder.logs)].tolist()
            )
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
    folders = [task.folder for task in tasks if task.definition is None] if missing != "keep" else []
    if missing == "raise" and folders:
        raise SourceError(f"{folders[0].folder}: no definition of task {folders[0].task_id!r}")
    return [Entry(sources[i], "skipped", f"no definition of task {one.task_id}") for one in folders for i in one.logs]


def _entries_of(definitions: TaskDefinitions, files: Iterable[str]) -> list[Entry]:
    """Return the ledger of definitions, with the paths of the source for those within it."""
    entries = definitions.ledger.entries
    if not entries:
        return []
    names = list(files)
    listed = dict(zip(absolute_paths(names), names, strict=True))
    named = [entry._replace(source=listed.get(absolute(entry.source), entry.source)) for entry in entries]
    return [entry for entry in named if entry.status == "used" or entry.source not in listed.values()]
