"""Read what a task asks for from its definition, or from its id if there is no definition."""

import re
from typing import Any, TypedDict

from evalkit.io.frames import cut_name
from evalkit.io.limits import MOST_MATCHED
from evalkit.mindcraft.format import DEFAULT_TIMEOUT, TASK_KEYS, as_int, positive_number

PLAN_COMMAND = "!getCraftingPlan"
METRICS = frozenset((
    "total_recipe_steps", "unique_target_items", "overall_difficulty_score", "difficulty_category",
    "max_steps_per_recipe", "blocked_agents_count",
))  # fmt: skip
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


def task_facts(task_id: str, definition: dict[str, Any] | None, type_of_path: str = "") -> Facts:
    """Collect what a task asks for: from its definition, or without any from its id, as `facts_source` says.

    `type_of_path` is the task type in the run's path, used if neither definition nor id names one. Materials and rooms
    of a construction are always read from the id, as the definition does not name them.
    """
    task, task_id, by_id = definition or {}, task_id[:MOST_MATCHED], definition is None
    task_type = type_of(task_id, definition, type_of_path)
    construction = _ROOMS.search(task_id)
    table = task.get("requires_ctable", task.get("requires_crafting_table"))
    if by_id and task_type == "techtree":
        table = "requires_ctable" in task_id
    n_agents = _number(_AGENTS.search(task_id)) if by_id else agent_count_of(task)
    blocked = _blocked_agents(task_id, definition) if task_type == "cooking" else None
    difficulty = task.get("difficulty") or _difficulty_metrics(task).get("difficulty_category")
    return Facts(
        task_type=task_type,
        agent_count=n_agents,
        agents_asked_for=n_agents,
        timeout=positive_number(task.get("timeout")) or DEFAULT_TIMEOUT,
        difficulty=difficulty if isinstance(difficulty, str) else None,
        n_blocked_agents=None if blocked is None else len(blocked),
        blocked_agents=None if blocked is None else ", ".join(blocked) or "none",
        target_items=_items(_ITEM.findall(task_id) if by_id and task_type == "cooking" else task.get("target")),
        hells_kitchen="hells_kitchen" in task_id or (task_type == "cooking" and isinstance(task.get("target"), list)),
        plan_availability=_plan(task_id, definition) if task_type == "techtree" else None,
        depth=_number(_DEPTH.search(task_id)) if by_id else as_int(task.get("depth")),
        max_depth=as_int(task.get("max_depth")),
        missing_items=_items(task.get("missing_items")),
        requires_crafting_table=table if isinstance(table, bool) else None,
        materials=as_int(construction[1]) if construction else None,
        rooms=as_int(construction[2]) if construction else None,
        facts_source="id" if by_id else "definition",
    )


def type_of(task_id: str, definition: dict[str, Any] | None, type_of_path: str = "") -> str:
    """Return the task type as in definitions (``cooking``, ``techtree``, ``construction``, …), else ``unknown``."""
    stated, task_id = [(definition or {}).get(key) for key in ("type", "task_type")], task_id[:MOST_MATCHED]
    by_id = [name for name, pattern in _TYPES if pattern.search(task_id)]
    value = next((v for v in (*stated, *by_id, type_of_path) if isinstance(v, str) and v), "unknown")
    return type_named(value)


def type_named(name: str) -> str:
    """Return the task type as definitions name it; ``crafting`` is another name of ``techtree``."""
    return "techtree" if name == "crafting" else name


def agent_count_of(definition: dict[str, Any]) -> int | None:
    """Read `agent_count`; None where it is missing or no positive whole number."""
    count = as_int(definition.get("agent_count"))
    return count if count and count > 0 else None


def metrics_of(definition: dict[str, Any]) -> dict[str, Any]:
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


def flat(value: Any, name: str) -> dict[str, Any]:
    """Return the values within a mapping, however deep, by their names joined with ``_``."""
    if isinstance(value, dict):
        return {k: v for key, inner in value.items() for k, v in flat(inner, cut_name(f"{name}_{key}")).items()}
    return {name: value}


def _difficulty_metrics(definition: dict[str, Any]) -> dict[str, Any]:
    value = definition.get("difficulty_metrics")
    return value if isinstance(value, dict) else {}


def _blocked_agents(task_id: str, definition: dict[str, Any] | None) -> list[str] | None:
    if definition is None:  # an id that names items, or begins as MineCollab's do, without a suffix for it says none
        if match := _BLOCKED.search(task_id):
            return sorted(set(match[1].split("_")))
        says_none = task_id.startswith("multiagent_cooking") or _ITEM.search(task_id) or "hells_kitchen" in task_id
        return [] if says_none and "blocked_access" not in task_id else None
    blocked = definition.get("blocked_access_to_recipe")
    if blocked is None:
        return []
    return sorted({str(agent) for agent in blocked}) if isinstance(blocked, list) else None


def _plan(task_id: str, definition: dict[str, Any] | None) -> str | None:
    if definition is None:
        match = _PLAN.search(task_id)
        return {"full": "full", "partial": "partial", "no": "none"}[match[1]] if match else None
    blocked = definition.get("blocked_actions")
    if blocked is None:
        return "full"
    if not isinstance(blocked, dict):
        return None
    without = sum(isinstance(actions, list) and PLAN_COMMAND in actions for actions in blocked.values())
    agents = max(agent_count_of(definition) or 0, len(blocked))
    return "full" if without == 0 else "none" if without >= agents else "partial"


def _items(target: Any) -> list[str]:
    if isinstance(target, str):
        return [target]
    if isinstance(target, (dict, list)):
        return sorted({item for item in target if isinstance(item, str)})
    return []


def _number(match: re.Match | None) -> int | None:
    return as_int(match[1]) if match else None
