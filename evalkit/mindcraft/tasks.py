"""Read task definitions, of which several may have the same id, and collect facts about tasks."""

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import filterfalse
from typing import Any

import pandas as pd

from evalkit._text import counted_noun
from evalkit.io import BrokenFileError, Ledger, SourceError, Status, cut_name, decode_json, list_source, read_files
from evalkit.io.read import reason_of
from evalkit.io.text import MOST_MATCHED
from evalkit.kinds import has_flag
from evalkit.mindcraft import parse
from evalkit.mindcraft.parse import as_int

Definition = dict[str, Any]
METRICS = (
    "total_recipe_steps", "unique_target_items", "overall_difficulty_score", "difficulty_category",
    "max_steps_per_recipe", "blocked_agents_count",
)  # fmt: skip


class TaskDefinitions(dict[str, Definition]):
    """The first definition of each task id. `variants` has all different definitions, `ledger` the files read.

    A definition is a dictionary as on disk, with ``task_id`` and ``definition_file`` added.
    """

    def __init__(self, definitions: Mapping[str, Definition] | None = None) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.variants: dict[str, list[Definition]] = {}
        for task_id, definition in (definitions or {}).items():
            self.add(task_id, definition, "")

    def add(self, task_id: str, definition: Definition, file: str) -> None:
        """Add a definition; if another file has the same id and content, only add the name of the file."""
        added = {**definition, "task_id": task_id, "definition_file": file}
        variants = self.variants.setdefault(task_id, [])
        for known in variants:
            if {**known, "definition_file": file} == added:
                known["definition_file"] += f"{os.pathsep}{file}"
                return
        variants.append(added)
        self.setdefault(task_id, added)

    @property
    def ambiguous(self) -> dict[str, list[str]]:
        """The ids with several definitions, and the files of each; files with equal content are one entry."""
        several = {task_id: own for task_id, own in sorted(self.variants.items()) if len(own) > 1}
        return {task_id: [definition["definition_file"] for definition in own] for task_id, own in several.items()}

    def resolve(
        self, task_id: str, task_path: str | None = None, logs: int | None = None
    ) -> tuple[Definition | None, bool]:
        """Find the definition of a run, and whether it is ambiguous.

        Choose among several definitions by `task_path`, the file that ``results.txt`` names: the path that ends most
        like it counts. Otherwise guess from the number of agents (`logs`), which is too low if a log is lost. A single
        definition is ambiguous if `task_path` names a file with another name.
        """
        variants = self.variants.get(task_id, [])
        if not variants:
            return None, False
        shared = []  # for each definition, how many parts at the end of its path and of `task_path` are equal
        if task_path:
            wanted = task_path.replace("\\", "/").split("/")[::-1]
            for definition in variants:
                files = definition["definition_file"].replace("\\", "/").split(os.pathsep)
                common = [os.path.commonprefix([wanted, file.split("/")[::-1]]) for file in files]  # noqa: RUF071
                shared.append(max(map(len, common)))
        if len(variants) == 1:
            return variants[0], bool(variants[0]["definition_file"]) and shared == [0]
        if shared and shared.count(max(shared)) == 1:
            return variants[shared.index(max(shared))], False
        counts = [as_int(definition.get("agent_count")) for definition in variants]
        return variants[counts.index(logs) if logs and logs in counts else 0], True


def load_task_definitions(*paths: str | os.PathLike) -> TaskDefinitions:
    """Load task definitions from files, folders (with subfolders), globs or URLs.

    The ledger lists files and entries without a definition.

    Parameters
    ----------
    *paths : path
        Files, folders, globs such as ``tasks/**/*.json``, or URLs.

    Returns
    -------
    TaskDefinitions
        Definitions by task id, and a ledger.

    Raises
    ------
    SourceError
        If a path contains no definition.

    Examples
    --------
    >>> definitions = mindcraft.load_task_definitions("samples:mindcraft/tasks")
    """
    definitions = TaskDefinitions()
    used = dict[str, bool]()
    for named in paths:
        path = os.fspath(named)
        files = list_source(path, "*.json").files
        for file, data in read_files(filterfalse(used.__contains__, files)):
            good, bad = dict[str, Definition](), list[str]()
            try:
                if isinstance(data, OSError):
                    raise BrokenFileError(reason_of(data))
                value, _ = decode_json(data)
                if parse.is_task_definition(value):  # a single definition
                    value = {str(value.get("task_id") or os.path.basename(file).removesuffix(".json")): value}
                entries = value if isinstance(value, dict) and "turns" not in value else {}
                for task_id, entry in entries.items():
                    if isinstance(entry, dict) and parse.TASK_KEYS & entry.keys():
                        good[cut_name(task_id)] = entry
                    else:
                        bad.append(task_id)
                for task_id, definition in good.items():
                    definitions.add(task_id, definition, file)
                status: Status = "used" if good else "skipped"
                reason = "task definitions" + (f"; no definitions: {', '.join(bad)}" if bad else "")
                if not good:
                    reason = f"no task definitions in it ({parse.other_kind(value) or 'another shape'})"
            except (BrokenFileError, RecursionError) as error:
                status, reason = "failed", str(error)
            definitions.ledger.add(file, status, reason)
            used[file] = status == "used"
        if not any(used[file] for file in files):
            reasons = {entry.source: entry.reason for entry in definitions.ledger.entries}
            example = f", as {files[0]}: {reasons[files[0]]}" if files else ""
            raise SourceError(f"{path}: no task definition in its {counted_noun(len(files), 'JSON file')}{example}")
    return definitions


Tasks = str | os.PathLike | Iterable[str | os.PathLike] | Mapping[str, Definition] | TaskDefinitions

DEFAULT_TIMEOUT = 300.0  # seconds; for tasks whose definition has no time limit
PLAN_COMMAND = "!getCraftingPlan"
TYPE_NAMES = {"crafting": "techtree"}  # other names of task types, and their names in definitions
# task types, under their names in definitions, with the pattern of ids that show them; the first match counts
TYPES = {
    "construction": re.compile(r"construction|materials?_\d+_rooms?_\d+|blueprint"),
    "cooking": re.compile(r"cooking|hells_kitchen"),
    "techtree": re.compile(r"techtree|crafting"),
    "debug": re.compile(r"debug"),
}
_NAMED = {
    "agents": re.compile(r"num_agents_(\d+)"),
    "blocked": re.compile(r"_blocked_access_(\d+(?:_\d+)*)"),
    "depth": re.compile(r"_depth_(\d+)"),
    "plan": re.compile(r"_(full|partial|no)_plan"),
    "materials": re.compile(r"materials?_(\d+)_rooms?_\d+"),
    "rooms": re.compile(r"materials?_\d+_rooms?_(\d+)"),
}
_ITEM = re.compile(r"_\d+_(?!blocked)([a-z]+(?:_[a-z]+)*?)(?=_\d|_(?:[a-z]_)?blocked|$)")


def task_facts(task_id: str, definition: Definition | None, type_of_path: str = "") -> dict[str, Any]:
    """Collect the facts about a task from its definition or, if there is none, from its id; None if unknown.

    `type_of_path` counts if neither contains a type. Materials and rooms always come from the id.
    """
    task_id, task = task_id[:MOST_MATCHED], definition or {}
    task_type = type_in(task_id)
    if task_type == parse.UNKNOWN:
        task_type = type_of_path or task_type
    for key in ("task_type", "type"):  # if a definition has both, ``type`` counts
        if isinstance(task.get(key), str):
            task_type = task[key] or task_type
    task_type = TYPE_NAMES.get(task_type, task_type)
    is_cooking, is_crafting = task_type == "cooking", task_type == "techtree"
    in_kitchen = "hells_kitchen" in task_id
    named = dict.fromkeys(_NAMED, "")
    for name, pattern in _NAMED.items():
        if match := pattern.search(task_id):
            named[name] = match[1]
    blocked: set[str] | None = set()  # agents without access to the recipe; None if unknown
    plan = table = None
    target: Any
    if definition is None:
        agent_count, depth = as_int(named["agents"]), as_int(named["depth"])
        plan = "none" if named["plan"] == "no" else named["plan"] or None
        table = "requires_ctable" in task_id if is_crafting else None
        target = _ITEM.findall(task_id) if is_cooking else []
        if named["blocked"]:
            blocked = set(named["blocked"].split("_"))
        # an id without the word "blocked" means that no agent is, if it names items or is like MineCollab's
        elif not (target or in_kitchen or task_id.startswith("multiagent_cooking")) or "blocked" in task_id:
            blocked = None
    else:
        count, depth = as_int(task.get("agent_count")), as_int(task.get("depth"))
        agent_count = count if count and count > 0 else None
        table = task.get("requires_ctable", task.get("requires_crafting_table"))
        target = task.get("target")
        in_kitchen |= is_cooking and isinstance(target, list)
        actions = {} if task.get("blocked_actions") is None else task["blocked_actions"]
        if isinstance(actions, dict):
            without = [agent for agent, names in actions.items() if isinstance(names, list) and PLAN_COMMAND in names]
            if not without:
                plan = "full"
            elif len(without) >= max(agent_count or 0, len(actions)):
                plan = "none"
            else:
                plan = "partial"
        blocked, listed = None, task.get("blocked_access_to_recipe") or []
        if isinstance(listed, list):
            blocked = {str(agent) for agent in listed if isinstance(agent, (int, str))}
    blocked = blocked if is_cooking else None
    difficulty = task.get("difficulty") or metrics_of(task).get("difficulty_category")
    return {
        "task_type": task_type,
        "agent_count": agent_count,
        "agents_asked_for": agent_count,  # equal here; runs fill in missing values of agent_count only
        "timeout": parse.positive_number(task.get("timeout")) or DEFAULT_TIMEOUT,
        "difficulty": difficulty if isinstance(difficulty, str) else None,
        "n_blocked_agents": None if blocked is None else len(blocked),
        "target_items": _items(target),
        "hells_kitchen": in_kitchen,
        "plan_availability": plan if is_crafting else None,
        "depth": depth,
        "missing_items": _items(task.get("missing_items")),
        "requires_crafting_table": table if isinstance(table, bool) else None,
        "materials": as_int(named["materials"]),
        "rooms": as_int(named["rooms"]),
    }


@lru_cache(maxsize=4096)  # many models run the same task
def type_in(task_id: str) -> str:
    """Return the task type in an id, under its name in definitions (``cooking``, ``techtree``, …); else ``unknown``."""
    for name, pattern in TYPES.items():
        if pattern.search(task_id[:MOST_MATCHED]):
            return name
    return parse.UNKNOWN


def _items(target: Any) -> list[str]:
    if isinstance(target, str):
        return [target]
    return sorted({item for item in target if isinstance(item, str)}) if isinstance(target, (dict, list)) else []


def metrics_of(definition: Definition) -> dict[str, Any]:
    """Return the numbers, booleans and texts in ``difficulty_metrics``, and the `METRICS` outside of it."""
    stated = {name: definition[name] for name in METRICS if name in definition}
    if isinstance(nested := definition.get("difficulty_metrics"), dict):
        stated |= nested
    return {
        name: value
        for name, value in stated.items()
        if isinstance(value, str) or (isinstance(value, (int, float)) and not abs(value) > parse.MAX_INT)
    }


def tasks_of(runs: pd.DataFrame) -> pd.Series:
    """Return the identity of each run's task: its id, and the definition file if runs with that id have several."""
    tasks = runs["task_id"].astype("str")
    if "definition_file" not in runs:
        return tasks
    is_guessed = has_flag(runs, "ambiguous_definition")
    files = runs["definition_file"].astype("str").mask(is_guessed)
    if files.nunique() < 2:
        return tasks
    several = files.groupby(tasks).transform("nunique") > 1
    return tasks.mask(several & files.notna(), tasks + " of " + files)
