"""The game: its actions, its achievements and their difficulty."""

from typing import Any

_ACTIONS = """
noop move_left move_right move_up move_down do sleep place_stone place_table place_furnace place_plant
make_wood_pickaxe make_stone_pickaxe make_iron_pickaxe make_wood_sword make_stone_sword make_iron_sword
"""
_TIERS = {
    "easy": "collect_wood collect_stone collect_sapling collect_drink place_stone place_table wake_up eat_plant",
    "medium": "make_wood_pickaxe make_wood_sword place_furnace place_plant collect_coal collect_iron eat_cow",
    "hard": "make_stone_pickaxe make_stone_sword make_iron_pickaxe make_iron_sword collect_diamond defeat_skeleton "
    "defeat_zombie",
}
ACTIONS = tuple(_ACTIONS.split())  # by index
TIERS = {tier: tuple(names.split()) for tier, names in _TIERS.items()}
TIER_OF = {name: tier for tier, names in TIERS.items() for name in names}
ACHIEVEMENTS = tuple(sorted(TIER_OF))
WEIGHTS = {"easy_achievement": 1.0, "medium_achievement": 2.5, "hard_achievement": 5.0, "invalid_action": -0.05}
UNKNOWN = "unknown"


def action_name(action: str | int | None) -> str | None:
    """Return the name of an action given by name or index; other values as text, None as None."""
    if isinstance(action, int) and not isinstance(action, bool) and 0 <= action < len(ACTIONS):
        return ACTIONS[action]
    return None if action is None else str(action)


def action_names(actions: Any) -> list[str | None] | None:
    """Return the names of a list of actions, and None for anything else."""
    if not isinstance(actions, list):
        return None
    n = len(ACTIONS)  # the usual case, inlined for speed
    return [ACTIONS[action] if type(action) is int and 0 <= action < n else action_name(action) for action in actions]
