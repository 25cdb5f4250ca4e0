"""Provide hooks that produce the metadata of events: unlocked achievements, and actions without effect.

`judge` takes one step of the game, (state before, action, state after), and returns entries for ``event_metadata``.
States are observations as in traces. `judge` reads their ``inventory``, ``achievements_status`` and
``player_position``, and gives no verdict if these are missing. `annotate` judges an event of ``event_history``; it can
use the states before and after every action of the turn.

Without these states, a turn of several actions is judged by its first action and the change over the whole turn. Such a
verdict can be false, so it contains ``"suspect": true`` and is counted separately.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeGuard

from evalkit.crafter.format import ACTIONS, HOOKS, action_name

State = Mapping[str, Any]
Entry = dict[str, Any]

MOVES = {"move_left": (-1, 0), "move_right": (1, 0), "move_up": (0, -1), "move_down": (0, 1)}

_FULL_ENERGY = 9
_NOT_COLLECTED = ("health", "energy")  # these rise without any action
_PLACED = {"place_stone": "stone", "place_table": "wood", "place_furnace": "stone", "place_plant": "sapling"}


class Step(NamedTuple):
    """One action and the states around it."""

    before: State
    action: str | int
    after: State


def judge(before: State, action: str | int | None, after: State) -> list[Entry]:
    """Judge one step. Return an entry for each difficulty with unlocked achievements, and one if the action is invalid.

    `action` is a name or an index; if it is None (unknown), only achievements are judged. A move must change the
    position by one step in its direction; a blocked move that only turns the player is invalid, as in the original
    traces. ``do`` must increase an item of the inventory (not health or energy, which rise without any action) or
    unlock an achievement. ``place_*`` must use up its material or unlock an achievement. ``make_*`` must make the item
    or unlock an achievement. ``sleep`` is invalid at full energy, because the game then ignores it. ``noop`` is always
    valid. An action unknown to the game is always invalid.
    """
    return [*_achievements(before, after), *_invalid(before, action, after)]


def annotate(event: Mapping[str, Any], steps: Iterable[Step] | None = None) -> list[Entry]:
    """Judge an event of ``event_history`` as `judge` does: an environment's achievements, or a runtime's actions.

    If `steps` gives every action of the turn with its states, each action is judged separately. The entry of an invalid
    action then has ``data.action_index``, and no entry is suspect.
    """
    if "llm_call_records" in event or "call_records" in event:
        return []
    before, after = _observation(event, "before"), _observation(event, "after")
    if "actions" not in event:
        return _achievements(before, after)
    if steps is not None:
        return [entry for i, step in enumerate(steps) for entry in _invalid(*step, action_index=i, suspect=False)]
    actions = event["actions"] if isinstance(event["actions"], list) else []
    return _invalid(before, actions[0] if actions else None, after, suspect=len(actions) > 1)


def _achievements(before: State, after: State) -> list[Entry]:
    unlocked, entries = _unlocked(before, after), []
    for name, hook in HOOKS.items():
        if names := sorted(set(hook.achievements).intersection(unlocked)):
            text = f"{hook.tier.capitalize()} achievement(s) unlocked: {', '.join(names)}"
            entries.append(_entry(name, text, {"achievements": names, "difficulty": hook.tier}))
    return entries


def _invalid(before: State, action: str | int | None, after: State, **about: Any) -> list[Entry]:
    name = action_name(action)
    reason = None if name is None else _why_invalid(before, name, after)
    if reason is None:
        return []
    return [_entry("invalid_action", f"Invalid {name}: {reason}", {"action": name, "reason": reason, **about})]


def _why_invalid(before: State, action: str, after: State) -> str | None:
    """Return the reason why `judge` finds an action invalid; None if it is valid or can't be judged."""
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
    entry = {"hook_name": name, "description": description, "data": data, "timestamp": datetime.now().isoformat()}
    return {**entry, "code": HOOKS[name].code, "priority": HOOKS[name].priority}
