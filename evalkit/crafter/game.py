"""Facts of the game: its actions, and its 22 achievements with the difficulty that weighs them."""

ACTIONS = (
    "noop",
    "move_left",
    "move_right",
    "move_up",
    "move_down",
    "do",
    "sleep",
    "place_stone",
    "place_table",
    "place_furnace",
    "place_plant",
    "make_wood_pickaxe",
    "make_stone_pickaxe",
    "make_iron_pickaxe",
    "make_wood_sword",
    "make_stone_sword",
    "make_iron_sword",
)

TIERS = {
    "easy": (
        "collect_wood",
        "collect_stone",
        "collect_sapling",
        "collect_drink",
        "place_stone",
        "place_table",
        "wake_up",
        "eat_plant",
    ),
    "medium": (
        "make_wood_pickaxe",
        "make_wood_sword",
        "place_furnace",
        "place_plant",
        "collect_coal",
        "collect_iron",
        "eat_cow",
    ),
    "hard": (
        "make_stone_pickaxe",
        "make_stone_sword",
        "make_iron_pickaxe",
        "make_iron_sword",
        "collect_diamond",
        "defeat_skeleton",
        "defeat_zombie",
    ),
}

TIER_OF = {name: tier for tier, names in TIERS.items() for name in names}
ACHIEVEMENTS = tuple(sorted(TIER_OF))
