"""Tasks: their definitions, read from files in which one id may mean several tasks, and what each asks for."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from operator import eq
from typing import Any, TypedDict

import pandas as pd

from evalkit.io import BrokenFileError, Ledger, SourceError, cut_name, decode_json, list_files, read_files
from evalkit.io.limits import MOST_MATCHED
from evalkit.mindcraft.format import (
    ANYTHING,
    DEFAULT_TIMEOUT,
    TASK_KEYS,
    as_int,
    error_text,
    is_task_definition,
    other_kind,
    positive_number,
)

MOST_LEVELS = 100  # of nested lists and objects in a file of definitions
MOST_METRICS = 1_000  # different metrics in one file: each is a column of the runs
Definition = dict[str, Any]


class TaskDefinitions(Mapping[str, Definition]):
    """All definitions that were loaded, by task id.

    As a mapping, it holds the first definition loaded for each id. Each definition is a dictionary as on disk, with
    ``task_id`` and ``definition_file`` added.

    Attributes
    ----------
    ledger : Ledger
        The files that were read.
    """

    def __init__(self, definitions: Mapping[str, Definition] | None = None) -> None:
        self.ledger = Ledger()
        self._by_id: dict[str, list[Definition]] = {}
        self._by_content: dict[tuple[str, str], Definition] = {}  # by id and JSON text
        for task_id, definition in (definitions or {}).items():
            self.add(task_id, definition, "")

    def add(self, task_id: str, definition: Definition, file: str) -> None:
        """Add one definition; the same content and id from another file only adds that file."""
        content = {**definition}
        content.pop("task_id", None)
        content.pop("definition_file", None)
        same = (task_id, json.dumps(content, sort_keys=True, default=str))
        if same in self._by_content:
            self._by_content[same]["definition_file"] += f"{os.pathsep}{file}"
            return
        added = {**content, "task_id": task_id, "definition_file": file}
        self._by_content[same] = added
        self._by_id.setdefault(task_id, []).append(added)

    def __getitem__(self, task_id: str) -> Definition:
        return self._by_id[task_id][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ambiguous(self) -> dict[str, list[str]]:
        """The ids with differing definitions, and their files (files of equal content are one entry)."""
        return {i: [d["definition_file"] for d in ds] for i, ds in sorted(self._by_id.items()) if len(ds) > 1}

    def candidates(self, task_id: str) -> list[Definition]:
        """All differing definitions of an id."""
        return self._by_id.get(task_id, [])

    def resolve(
        self, task_id: str, task_path: str | None = None, logs: int | None = None
    ) -> tuple[Definition | None, bool]:
        """Find the definition of a run, and whether it is ambiguous.

        Of several, that counts whose path ends like `task_path`, the file that ``results.txt`` names. If none does, the
        named file may define the task differently, and the one for as many agents as there are `logs` is a guess, as a
        lost log would pick the wrong one: both are ambiguous.
        """
        candidates = self.candidates(task_id)
        if not candidates:
            return None, False
        shared = [_shared_parts(c["definition_file"], task_path) for c in candidates] if task_path else []
        if len(candidates) == 1:
            return candidates[0], bool(candidates[0]["definition_file"]) and shared == [0]
        if shared and max(shared) > 0 and shared.count(max(shared)) == 1:
            return candidates[shared.index(max(shared))], False
        fitting = [c for c in candidates if logs is not None and agent_count_of(c) == logs]
        return fitting[0] if fitting else candidates[0], True

    def longest_id(self, stem: str) -> str | None:
        """Find the longest known id that a flat log's name begins with, followed by ``_``."""
        task_id = stem[:MOST_MATCHED]
        while "_" in task_id:
            task_id = task_id.rpartition("_")[0]
            if task_id in self._by_id:
                return task_id
        return None


def _shared_parts(files: str, task_path: str) -> int:
    """Count the path parts that one of the files and a path share at their ends, starting with the file's name."""
    wanted, *have = (path.replace("\\", "/").split("/")[::-1] for path in (task_path, *files.split(os.pathsep)))
    return max(sum(takewhile(bool, map(eq, parts, wanted))) for parts in have)


def load_task_definitions(*paths: str | os.PathLike) -> TaskDefinitions:
    """Load task definitions; the ledger names files without any, and entries that are not definitions.

    Parameters
    ----------
    *paths : str or path
        Files, folders (read recursively), globs such as ``tasks/**/*.json``, or URLs of these.

    Raises
    ------
    SourceError
        If a path does not exist, a glob matches nothing, or none of the files of a path holds a definition.
    """
    definitions = TaskDefinitions()
    files_of = {os.fspath(path): list_files(path, "*.json") for path in paths}
    for file, data in read_files(dict.fromkeys(file for files in files_of.values() for file in files)):
        try:
            if isinstance(data, OSError):
                raise BrokenFileError(error_text(data))
            value, _ = decode_json(data, ANYTHING)
            if _is_deeper(value, MOST_LEVELS):
                raise BrokenFileError(f"LimitError: nested deeper than the limit of {MOST_LEVELS} levels")
            _add_all(definitions, file, value)
        except BrokenFileError as error:
            definitions.ledger.add(file, "failed", str(error))
    entries = {entry.source: entry for entry in definitions.ledger.entries}
    for path, files in files_of.items():
        if not files:
            raise SourceError(f"{path}: no task definition in it: there is no JSON file")
        if not any(entries[file].status == "used" for file in files):
            first = entries[files[0]]
            unread = "" if first.status == "skipped" else "no task definition can be read in it: "
            count = "file" if len(files) == 1 else f"{len(files)} files"
            example = "" if files[0] == path else f"no task definition in its {count}, such as {files[0]}: "
            raise SourceError(f"{path}: {example}{unread}{first.reason}")
    return definitions


def _is_deeper(value: Any, depth: int) -> bool:
    """Return whether lists and dictionaries are nested deeper than a number of levels."""
    level = [value]
    for _ in range(depth):
        inner = [one for one in level if isinstance(one, (dict, list))]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


def _add_all(definitions: TaskDefinitions, file: str, value: Any) -> None:
    """Add the definitions of a decoded file, a single one or several by id, and its line of the ledger."""
    if is_task_definition(value):
        value = {str(value.get("task_id") or os.path.basename(file).removesuffix(".json")): value}
    good, bad = {}, []
    for task_id, entry in value.items() if isinstance(value, dict) and "turns" not in value else ():
        if isinstance(entry, dict) and TASK_KEYS & entry.keys():
            good[task_id] = entry
        else:
            bad.append(task_id)
    if not good:
        definitions.ledger.add(file, "skipped", f"holds no task definitions ({other_kind(value) or 'another shape'})")
        return
    n_metrics = len(set().union(*map(metric_columns, map(metrics_of, good.values()))))
    if n_metrics > MOST_METRICS:
        raise BrokenFileError(f"LimitError: {n_metrics} metrics are more than the limit of {MOST_METRICS}")
    for task_id, definition in good.items():
        definitions.add(cut_name(task_id), definition, file)
    definitions.ledger.add(file, "used", "task definitions" + (f"; no definitions: {', '.join(bad)}" if bad else ""))


Tasks = str | os.PathLike | Iterable[str | os.PathLike] | Mapping[str, Definition] | TaskDefinitions


def as_definitions(tasks: Tasks) -> TaskDefinitions:
    """Return task definitions as they are, or load the named files."""
    if isinstance(tasks, TaskDefinitions):
        return tasks
    if isinstance(tasks, Mapping):
        return TaskDefinitions(tasks)
    paths = [tasks] if isinstance(tasks, (str, os.PathLike)) else tasks
    return load_task_definitions(*filter(os.fspath, paths))


PLAN_COMMAND = "!getCraftingPlan"
METRICS = frozenset((
    "total_recipe_steps", "unique_target_items", "overall_difficulty_score", "difficulty_category",
    "max_steps_per_recipe", "blocked_agents_count",
))  # fmt: skip
# what ids say, where no definition does
_ROOMS = re.compile(r"materials?_(\d+)_rooms?_(\d+)")
_BLOCKED = re.compile(r"_blocked_access_(\d+(?:_\d+)*)")
_DEPTH = re.compile(r"_depth_(\d+)")
_AGENTS = re.compile(r"num_agents_(\d+)")
_ITEM = re.compile(r"_\d+_([a-z]+(?:_[a-z]+)*?)(?=_\d|_blocked_access|$)")
_PLAN = re.compile(r"_(full|partial|no)_plan")
# part of an id -> the task type as definitions name it
_TYPES = (
    ("construction", re.compile(r"construction|materials?_\d+_rooms?_\d+|blueprint")),
    ("cooking", re.compile(r"cooking|hells_kitchen")),
    ("techtree", re.compile(r"techtree|crafting")),
    ("debug", re.compile(r"debug")),
)


class Facts(TypedDict):
    """The facts about a task; None where they are unknown."""

    task_type: str
    agent_count: int | None
    agents_asked_for: int | None  # the same; the frame of runs fills the other in
    timeout: float
    difficulty: str | None
    n_blocked_agents: int | None  # without access to the recipe (cooking)
    blocked_agents: str | None  # these, as in 0, 1; or none
    target_items: list[str]  # sorted
    hells_kitchen: bool  # each agent holds the other's recipe: named in the id, or shown by a list of targets
    plan_availability: str | None  # full, partial, none: by how many agents have the plan command blocked
    depth: int | None
    max_depth: int | None
    missing_items: list[str]
    requires_crafting_table: bool | None
    materials: int | None
    rooms: int | None
    facts_source: str


def task_facts(task_id: str, definition: Definition | None, type_of_path: str = "") -> Facts:
    """Collect what a task asks for: from its definition, or without any from its id, as `facts_source` says.

    `type_of_path` is the task type in the run's path, used if neither definition nor id names one. Materials and rooms
    of a construction are always read from the id, as the definition does not name them.
    """
    task_id, task = task_id[:MOST_MATCHED], definition or {}
    task_type = type_of(task_id, definition, type_of_path)
    is_cooking, is_crafting = task_type == "cooking", task_type == "techtree"
    in_kitchen = "hells_kitchen" in task_id
    blocked: set[str] | None = set()  # agents without access to the recipe; None: unknown
    plan = table = None
    target: Any
    if definition is None:
        agent_count, depth = as_int(_found(_AGENTS, task_id)), as_int(_found(_DEPTH, task_id))
        plan = "none" if (named := _found(_PLAN, task_id)) == "no" else named
        table = "requires_ctable" in task_id if is_crafting else None
        target = _ITEM.findall(task_id) if is_cooking else []
        if numbers := _found(_BLOCKED, task_id):
            blocked = set(numbers.split("_"))
        # an id that names items, or begins as MineCollab's do, without a suffix for it says that none is blocked
        elif not (target or in_kitchen or task_id.startswith("multiagent_cooking")) or "blocked_access" in task_id:
            blocked = None
    else:
        agent_count, depth = agent_count_of(task), as_int(task.get("depth"))
        table = task.get("requires_ctable", task.get("requires_crafting_table"))
        target = task.get("target")
        in_kitchen |= is_cooking and isinstance(target, list)
        actions = {} if task.get("blocked_actions") is None else task["blocked_actions"]
        if isinstance(actions, dict):
            without = sum(isinstance(names, list) and PLAN_COMMAND in names for names in actions.values())
            agents = max(agent_count or 0, len(actions))
            plan = "full" if without == 0 else "none" if without >= agents else "partial"
        if (listed := task.get("blocked_access_to_recipe")) is not None:
            blocked = set(map(str, listed)) if isinstance(listed, list) else None
    blocked = blocked if is_cooking else None
    difficulty = task.get("difficulty") or _difficulty_metrics(task).get("difficulty_category")
    rooms = _ROOMS.search(task_id)
    return Facts(
        task_type=task_type,
        agent_count=agent_count,
        agents_asked_for=agent_count,
        timeout=positive_number(task.get("timeout")) or DEFAULT_TIMEOUT,
        difficulty=difficulty if isinstance(difficulty, str) else None,
        n_blocked_agents=None if blocked is None else len(blocked),
        blocked_agents=None if blocked is None else ", ".join(sorted(blocked)) or "none",
        target_items=_items(target),
        hells_kitchen=in_kitchen,
        plan_availability=plan if is_crafting else None,
        depth=depth,
        max_depth=as_int(task.get("max_depth")),
        missing_items=_items(task.get("missing_items")),
        requires_crafting_table=table if isinstance(table, bool) else None,
        materials=as_int(rooms[1]) if rooms else None,
        rooms=as_int(rooms[2]) if rooms else None,
        facts_source="id" if definition is None else "definition",
    )


def _found(pattern: re.Pattern, text: str) -> str | None:
    """Return what the first group of a pattern finds in a text."""
    match = pattern.search(text)
    return match[1] if match else None


def type_of(task_id: str, definition: Definition | None, type_of_path: str = "") -> str:
    """Return the task type as in definitions (``cooking``, ``techtree``, ``construction``, …), else ``unknown``."""
    for key in ("type", "task_type"):
        if definition and isinstance(stated := definition.get(key), str) and stated:
            return type_named(stated)
    task_id = task_id[:MOST_MATCHED]
    for name, pattern in _TYPES:
        if pattern.search(task_id):
            return name
    return type_named(type_of_path) or "unknown"


def type_named(name: str) -> str:
    """Return the task type as definitions name it; ``crafting`` is another name of ``techtree``."""
    return "techtree" if name == "crafting" else name


def agent_count_of(definition: Definition) -> int | None:
    """Read `agent_count`; None where it is missing or no positive whole number."""
    count = as_int(definition.get("agent_count"))
    return count if count and count > 0 else None


def _items(target: Any) -> list[str]:
    if isinstance(target, str):
        return [target]
    return sorted({item for item in target if isinstance(item, str)}) if isinstance(target, (dict, list)) else []


def _difficulty_metrics(definition: Definition) -> dict[str, Any]:
    value = definition.get("difficulty_metrics")
    return value if isinstance(value, dict) else {}


def metrics_of(definition: Definition) -> dict[str, Any]:
    """Collect the metrics of a definition: those under ``difficulty_metrics``, and those at its top level.

    At the top level these are the names of `METRICS`, and any other number or truth value that is no field of the
    format (`TASK_KEYS`). A name in both places has the value under ``difficulty_metrics``.
    """
    top = {
        name: value
        for name, value in definition.items()
        if name in METRICS or (isinstance(value, (int, float)) and name not in TASK_KEYS)
    }
    return {**top, **_difficulty_metrics(definition)}


def metric_columns(metrics: Any, name: str = "metric") -> dict[str, Any]:
    """Return metrics by column, ``metric_NAME``; names within others are joined with ``_``."""
    if not isinstance(metrics, dict):
        return {name: metrics}
    columns: dict[str, Any] = {}
    for key, inner in metrics.items():
        columns |= metric_columns(inner, cut_name(f"{name}_{key}"))
    return columns


def tasks_of(runs: pd.DataFrame) -> pd.Series:
    """Return the identity of each run's task: its id, with the definition's file where runs of an id have several.

    A file that was only guessed (the flag ``ambiguous_definition``) is not used.
    """
    if "definition_file" not in runs:
        return runs["task_id"]
    files = runs["definition_file"].mask(runs["flag_ambiguous_definition"])
    several = files.groupby(runs["task_id"]).transform("nunique") > 1
    return runs["task_id"].mask(several & files.notna(), runs["task_id"] + " of " + files)
