"""The layout of task runs on disk: which logs belong to one run, nested or flat, and which are repetitions."""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from evalkit.io import Listing, absolute
from evalkit.mindcraft.format import NOT_LOGS_BY_NAME, RESULTS, split_stem, stem_of
from evalkit.mindcraft.tasks.definitions import TaskDefinitions
from evalkit.mindcraft.tasks.facts import type_of

# a flat log's name where its task is not among the definitions: task, agent with its server number, repetition
_FLAT = re.compile(r"(?P<task>.+)_(?P<agent>[A-Za-z][A-Za-z-]*_\d+)_(?P<repetition>\d+)")
_EXPERIMENT = re.compile(r"exp(?:eriment)?[_-].*|.*[_-]\d\d-\d\d[_-]\d\d-\d\d(?:-\d\d)?")
_GENERIC = re.compile(r"(?:experiment|log|run|result|output)s?|data|te?mp|samples?")
_LEFT_BY_RUNS = tuple(f"/{name}" for name in NOT_LOGS_BY_NAME)
_NAMING_MODELS = (RESULTS, "results.json", "last_profile.json", "profile.json")


class TaskFolder(NamedTuple):
    """The logs of one task in one folder: one repetition or several."""

    folder: str
    path: str  # absolute
    task_id: str
    flat: bool
    logs: Sequence[int]  # positions in the list of all logs
    prefix: str = ""  # of the file names, in the flat layout


class Repetition(NamedTuple):
    """The logs of one run, a repetition of a task: the position of each log in the folder, and its agent's name."""

    number: int
    rule: str
    logs: tuple[int, ...]
    agents: tuple[str, ...]
    n_agents: int


TOGETHER, APART = 60_000.0, 600_000.0  # milliseconds between the starts of logs of one run, and of several
NO_LOGS = (Repetition(0, "none", (), (), 0),)  # a task folder without any log is still a run


@lru_cache(maxsize=4096)
def is_experiment_name(name: str) -> bool:
    """Return whether a folder's name does not name a model: an experiment's name with a date, or a generic word."""
    lower = name.lower()
    return not lower or bool(_GENERIC.fullmatch(lower) or _EXPERIMENT.fullmatch(lower))


def task_folders(
    logs: Sequence[str],
    broken: Collection[int],
    foreign: Iterable[str],
    listing: Listing,
    definitions: TaskDefinitions,
    *,
    all_folders: bool,
) -> list[TaskFolder]:
    """Find the folders of task runs, including those without any log.

    `broken` are positions of logs, `foreign` the paths of files that are none of an experiment's.
    """
    folders = group_by_task(logs, definitions)
    if broken and not all_folders:
        folders = _drop_stray(folders, broken, foreign, definitions)
    return folders + _empty_folders(listing, folders, definitions, all_folders=all_folders)


def group_by_task(logs: Sequence[str], definitions: TaskDefinitions) -> list[TaskFolder]:
    """Group logs by task and folder.

    A folder named like a known task is nested, whatever its files are called. Else a file whose name begins with a
    known task id (the longest one counts) is flat; so is a file named ``task_agent_0_1.json`` in a folder that is
    named like an experiment. What remains is nested: the folder's name is the task id.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for i, path in enumerate(logs):
        end = path.rfind("/")
        members[path[:end] if end > 0 else os.path.dirname(path)].append(i)
    folders = []
    for (folder, folder_logs), path in zip(members.items(), absolute_paths(members), strict=True):
        name = sys.intern(path[path.rfind("/") + 1 :])  # many models run the same tasks
        if name in definitions or not (definitions or is_experiment_name(name)):
            folders.append(TaskFolder(folder, path, name, False, folder_logs))
            continue
        tasks: dict[str | None, list[int]] = defaultdict(list)
        for i in folder_logs:
            tasks[_flat_task(stem_of(logs[i]), name, definitions)].append(i)
        for task_id, some in tasks.items():
            flat = task_id is not None
            folders.append(TaskFolder(folder, path, task_id or name, flat, some, f"{task_id}_" if flat else ""))
    return folders


def absolute_paths(paths: Iterable[str]) -> list[str]:
    """Return absolute paths, quickly for those that already are."""
    return [path if path[:1] == "/" and "/." not in path and "//" not in path else absolute(path) for path in paths]


def _flat_task(stem: str, folder: str, definitions: TaskDefinitions) -> str | None:
    match = _FLAT.fullmatch(stem) if is_experiment_name(folder) else None
    task_id = definitions.longest_id(stem)
    if task_id and match and stem[len(task_id) + 1].isdigit():  # no agent's name: only the id's beginning is known
        return match["task"]
    return task_id or (match["task"] if match else None)


def split_repetitions(
    paths: Sequence[str], agent_count: int | None, prefix: str = "", starts: Sequence[float] = ()
) -> tuple[Repetition, ...]:
    """Distinguish repetitions of a task from agents by the names of the files of a folder; none without logs.

    The rules are ``number_is_agent`` (one name without a server number, several agents (or the count unknown and
    several files), and no more files than agents, as in ``andy_0.json``, ``andy_1.json``, unless their starts lie
    `APART`; always where the name is the plain word ``agent``, which is no agent's own), ``name_is_agent`` (each file
    with a name and a number of its own, whatever the number of agents: as in ``andy_0.json``, ``jill_1.json``, unless
    their starts lie `APART`; with server numbers, as in ``Andy_0_0.json``, ``Jill_0_1.json``, only if they lie
    `TOGETHER`), else ``single`` (one log), and ``last_number_is_repetition`` (the rest, as in ``Andy_0_1.json``).
    """
    known = [start for start in starts if start > 0]
    spread = max(known) - min(known) if known and len(known) == len(paths) else None
    names = tuple([path[path.rfind("/") + 1 :].removeprefix(prefix) for path in paths])
    return _split(names, agent_count, None if spread is None or TOGETHER < spread <= APART else spread <= TOGETHER)


@lru_cache(maxsize=4096)  # every run's folder has the same few names
def _split(names: tuple[str, ...], agent_count: int | None, together: bool | None) -> tuple[Repetition, ...]:
    stems = list(map(stem_of, names))
    parsed = [split_stem(stem) for stem in stems]
    nameless = [number is not None and name.lower() == "agent" for name, number in parsed]  # as in agent_0.json
    named = [entry for entry, no_name in zip(parsed, nameless, strict=True) if not no_name]
    usual = _rule(named, agent_count, together)
    members: dict[int, list[tuple[int, str]]] = defaultdict(list)
    rules: dict[int, str] = {}
    for place, (stem, (name, number)) in enumerate(zip(stems, parsed, strict=True)):
        rule = "number_is_agent" if nameless[place] else usual
        by_number = rule in ("last_number_is_repetition", "single")
        agent, repetition = (name, number or 0) if by_number else (stem, 0)
        members[repetition].append((place, agent))
        if rules.setdefault(repetition, rule) != "number_is_agent":
            rules[repetition] = rule
    runs = []
    for number, entries in sorted(members.items()):
        logs, agents = zip(*entries, strict=True)
        runs.append(Repetition(number, rules[number], logs, agents, len(set(agents))))
    return tuple(runs)


def _rule(parsed: list[tuple[str, int | None]], agent_count: int | None, together: bool | None) -> str:
    names, numbers = {name for name, _ in parsed}, {number for _, number in parsed}
    server_numbers = any(split_stem(name)[1] is not None for name in names)
    own = 1 < len(names) == len(parsed) and len(numbers) > 1  # each file has a name and a number of its own
    if own and (together or (together is None and not server_numbers)):
        return "name_is_agent"
    several = 1 < (agent_count or len(parsed)) >= len(parsed) and together is not False
    if len(names) == 1 and several and not server_numbers:
        return "number_is_agent"
    return "single" if len(parsed) == 1 else "last_number_is_repetition"


def context_files(files: Sequence[str]) -> list[str]:
    """Return the files above the listed folder that can name the model, such as the results file of one task folder."""
    folders = list({file[: file.rfind("/")] if "/" in file[1:] else os.path.dirname(file) for file in files})
    listed = set(absolute_paths(folders))
    above = {parent(folder) for folder in listed} - listed
    return [os.path.join(folder, name) for folder in sorted(above) for name in _NAMING_MODELS]


def _drop_stray(
    folders: list[TaskFolder], broken: Collection[int], foreign: Iterable[str], definitions: TaskDefinitions
) -> list[TaskFolder]:
    """Drop folders that hold only broken logs and are no task's.

    Such a folder is no task's if other task folders are in it or below. Else a broken file is of the kind of its
    siblings, the files of the nearest folder above that holds any: mostly logs, in folders as deep as this one, unless
    the folder's name is a task's.
    """
    good: dict[str, list[int]] = defaultdict(list)  # for each folder, how deep below it folders of readable logs are
    other: dict[str, int] = defaultdict(int)
    unread = [all(log in broken for log in run.logs) for run in folders]
    for run, is_unread in zip(folders, unread, strict=True):
        if not is_unread:
            for depth, path in enumerate(_upwards(run.path), 1 if run.flat else 0):
                good[path].append(depth)
    for path in absolute_paths(map(os.path.dirname, foreign)):
        for folder in _upwards(path):
            other[folder] += 1
    above = _with_parents({run.path if run.flat else os.path.dirname(run.path) for run in folders})

    def is_task(run: TaskFolder) -> bool:
        known = run.task_id in definitions or type_of(run.task_id, None) != "unknown"
        for depth, path in enumerate(_upwards(run.path)):
            if path in good or path in other:
                return len(good[path]) >= other[path] and (known or depth in good[path])
        return True

    return [
        run
        for run, is_unread in zip(folders, unread, strict=True)
        if not is_unread or run.flat or (run.path not in above and is_task(run))
    ]


def _upwards(path: str) -> Iterator[str]:
    """Return a folder and all those above it."""
    yield path
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def _empty_folders(
    listing: Listing, folders: list[TaskFolder], definitions: TaskDefinitions, *, all_folders: bool
) -> list[TaskFolder]:
    """Find task folders without any log: runs that broke before one was written.

    A folder counts if its name is a known task's, or if it holds nothing but what a run leaves beside its logs, has a
    task's name and lies beside other runs; with `all_folders` every folder counts.
    """
    taken = {run.path for run in folders}
    above = _with_parents({parent(path) for path in taken})
    nested = {parent(run.path) for run in folders if not run.flat}
    names = list(listing.folders)
    left = [
        (folder, path, os.path.basename(path))
        for folder, path in zip(names, absolute_paths(names), strict=True)
        if path not in taken and path not in above
    ]
    bare = {path for _, path, name in left if os.path.dirname(path) in nested and type_of(name, None) != "unknown"}
    bare -= _filled(bare, listing.files, names) if bare else set()
    return [
        TaskFolder(folder, path, name, False, [])
        for folder, path, name in left
        if all_folders or name in definitions or path in bare
    ]


def _filled(bare: set[str], files: Iterable[str], folders: Iterable[str]) -> set[str]:
    """Return the folders that hold files other than those a run leaves beside its logs."""
    parents = {file[: file.rfind("/") + 1] for file in files if not file.endswith(_LEFT_BY_RUNS)}
    return bare & {absolute(folder[:-1] or folder) for folder in parents} | bare & {
        os.path.dirname(absolute(folder)) for folder in folders
    }


def parent(path: str) -> str:
    """Return the parent folder, quickly."""
    return path[: path.rfind("/")] or "/"


def _with_parents(paths: Iterable[str]) -> set[str]:
    """Return paths and all their parents."""
    known: set[str] = set()
    for path in paths:
        while path not in known:
            known.add(path)
            path = os.path.dirname(path)
    return known
