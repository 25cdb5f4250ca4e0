"""Hooks that produce the metadata of events: unlocked achievements, and actions without effect.

A hook takes one step of the game, (state before, action, state after), and returns an entry for ``event_metadata`` or
None. States are observations as in traces; hooks read their ``inventory``, ``achievements_status`` and
``player_position``, and give no verdict where these are missing. `judge` runs hooks on an action whose states are
known, `annotate` on an event of ``event_history``, with the states of every action of its turn or without.

A turn of several actions without these states is judged by its first action against the change of the whole turn. Such
a verdict can be false, so it carries ``"suspect": true``, and is counted separately.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeGuard

from evalkit.crafter.format import ACTIONS, TIER_OF, TIERS, action_name

State = Mapping[str, Any]
Entry = dict[str, Any]

MOVES = {"move_left": (-1, 0), "move_right": (1, 0), "move_up": (0, -1), "move_down": (0, 1)}

_FULL_ENERGY = 9
_NOT_COLLECTED = ("health", "energy")  # these rise by themselves
_PLACED = {"place_stone": "stone", "place_table": "wood", "place_furnace": "stone", "place_plant": "sapling"}
_CODES = {  # and priorities
    "easy_achievement": ("E", 3),
    "medium_achievement": ("M", 4),
    "hard_achievement": ("H", 5),
    "invalid_action": ("X", 2),
}


class Step(NamedTuple):
    """One action and the states around it."""

    before: State
    action: str | int
    after: State


class HookFunction(Protocol):
    """Anything that takes a step and returns an entry for ``event_metadata``, or None."""

    name: str
    on: str  # the events whose states it reads: "environment" (a turn's outcome) or "runtime" (its actions)

    def __call__(self, before: State, action: str | int | None, after: State) -> Entry | None:
        """Judge one step."""


class AchievementHook:
    """Finds the achievements of one difficulty (``easy``, ``medium`` or ``hard``) that a step unlocks."""

    on = "environment"

    def __init__(self, tier: str) -> None:
        if tier not in TIERS:
            raise ValueError(f"unknown difficulty {tier!r}: {', '.join(TIERS)}")
        self.tier, self.name = tier, f"{tier}_achievement"

    def __call__(self, before: State, action: str | int | None, after: State) -> Entry | None:
        """Return an entry whose ``data.achievements`` names the unlocked achievements, or None."""
        names = sorted(name for name in _unlocked(before, after) if TIER_OF.get(name) == self.tier)
        text = f"{self.tier.capitalize()} achievement(s) unlocked: {', '.join(names)}"
        return _entry(self.name, text, {"achievements": names, "difficulty": self.tier}) if names else None


class InvalidActionHook:
    """Finds actions that had none of their intended effects.

    A move must change the position by one step in its direction; a blocked move that only turns the player is
    invalid, as in the original traces. ``do`` must raise something in the inventory (health and energy rise by
    themselves and don't count) or unlock something; ``place_*`` must use up its material or unlock something;
    ``make_*`` must make the item. ``sleep`` is invalid at full energy, where the game ignores it. ``noop`` is always
    valid, an unknown action never.
    """

    name = "invalid_action"
    on = "runtime"

    def __call__(self, before: State, action: str | int | None, after: State) -> Entry | None:
        """Return an entry with ``data.action`` and ``data.reason``, or None."""
        name = action_name(action)
        reason = None if name is None else _why_invalid(before, name, after)
        data = {"action": name, "reason": reason}
        return _entry(self.name, f"Invalid {name}: {reason}", data) if reason else None


EASY, MEDIUM, HARD = AchievementHook("easy"), AchievementHook("medium"), AchievementHook("hard")
INVALID = InvalidActionHook()
HOOKS: tuple[HookFunction, ...] = (EASY, MEDIUM, HARD, INVALID)


def judge(before: State, action: str | int | None, after: State, hooks: Sequence[HookFunction] = HOOKS) -> list[Entry]:
    """Run hooks on one step, and return entries for ``event_metadata``.

    `before` and `after` are observations, and `action` is a name or an index; if it is None (unknown), only
    achievements are judged. Your own hook is any callable with a `name` and `on`.
    """
    return [entry for hook in hooks if (entry := hook(before, action, after)) is not None]


def annotate(
    event: Mapping[str, Any], steps: Iterable[Step] | None = None, hooks: Sequence[HookFunction] = HOOKS
) -> list[Entry]:
    """Run hooks on an event of ``event_history``, as `judge`: those of its type, which its keys show.

    With `steps`, every action of the turn with its states, each action is judged by itself: the entry of an invalid
    action has ``data.action_index``, and no entry is suspect.
    """
    if "llm_call_records" in event or "call_records" in event:
        return []
    kind = "runtime" if "actions" in event else "environment"
    hooks = [hook for hook in hooks if hook.on == kind]
    before, after = _observation(event, "before"), _observation(event, "after")
    if kind == "environment":
        return judge(before, None, after, hooks)
    actions = event["actions"] if isinstance(event["actions"], list) else []
    judged: list[tuple[list[Entry], Entry]]
    if steps is None:
        judged = [(judge(before, actions[0] if actions else None, after, hooks), {"suspect": len(actions) > 1})]
    else:
        judged = [(judge(*step, hooks), {"action_index": i, "suspect": False}) for i, step in enumerate(steps)]
    return [{**entry, "data": {**entry["data"], **about}} for entries, about in judged for entry in entries]


def _why_invalid(before: State, action: str, after: State) -> str | None:
    """Return why an action is invalid, by the rules of `InvalidActionHook`; None if it is valid or can't be judged."""
    if action == "noop":
        return None
    if action not in ACTIONS:
        return "Unknown action"
    if action in MOVES:
        start, end = before.get("player_position"), after.get("player_position")
        if not (_is_point(start) and _is_point(end)):
            return None
        moved, expected = [end[0] - start[0], end[1] - start[1]], list(MOVES[action])
        return None if moved == expected else f"Expected position change {expected}, got {moved}"
    was, now = _inventory(before), _inventory(after)
    if was is None or now is None:
        return None
    if action == "sleep":
        energy = was.get("energy")
        return None if energy is None or energy < _FULL_ENERGY else f"Energy is full ({energy})"
    if _unlocked(before, after):
        return None
    if action == "do":
        rose = any(now[item] > was.get(item, 0) for item in now if item not in _NOT_COLLECTED)
        return None if rose else "No resource collected or achievement unlocked"
    if action in _PLACED:
        item = _PLACED[action]
        return None if now.get(item, 0) < was.get(item, 0) else f"No {item} used"
    item = action.removeprefix("make_")
    return None if now.get(item, 0) > was.get(item, 0) else f"No {item} made"


def _unlocked(before: State, after: State) -> list[str]:
    was, now = before.get("achievements_status"), after.get("achievements_status")
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return []
    return [name for name, got in now.items() if got and not was.get(name)]


def _inventory(state: State) -> dict[str, float] | None:
    inventory = state.get("inventory")
    if not isinstance(inventory, Mapping) or not inventory:
        return None
    return {name: n for name, n in inventory.items() if isinstance(n, int | float)}


def _is_point(value: Any) -> TypeGuard[Sequence[float]]:
    return isinstance(value, Sequence) and len(value) == 2 and all(isinstance(n, int | float) for n in value)


def _observation(event: Mapping[str, Any], when: str) -> State:
    state = event.get(f"system_state_{when}")
    if not isinstance(state, Mapping):
        return {}
    shown = state.get("public_state") or state.get("observation") or state
    return shown if isinstance(shown, Mapping) else {}


def _entry(name: str, description: str, data: dict[str, Any]) -> Entry:
    code, priority = _CODES[name]
    entry = {"hook_name": name, "description": description, "data": data, "timestamp": datetime.now().isoformat()}
    return {**entry, "code": code, "priority": priority}
