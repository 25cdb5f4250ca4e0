import pytest

from evalkit.crafter import hooks
from evalkit.crafter.format import ACTIONS


def state(position=(5, 5), unlocked=(), energy=9, **inventory):
    return {
        "inventory": {"health": 9, "food": 9, "drink": 9, "energy": energy, **inventory},
        "achievements_status": {n: n in unlocked for n in ("collect_wood", "eat_cow", "defeat_zombie", "wake_up")},
        "player_position": list(position),
    }


def names(entries):
    return [(entry["hook_name"], entry["data"].get("achievements")) for entry in entries]


@pytest.mark.parametrize(
    ("before", "action", "after", "reason"),
    [
        (state((5, 5)), "move_up", state((5, 4)), None),
        (state((5, 5)), "move_up", state((5, 5)), "Expected position change [0, -1], got [0, 0]"),
        (state(), "do", state(wood=1), None),
        (state(), "do", state(), "No resource collected or achievement unlocked"),
        (state(health=3), "do", state(health=4), "No resource collected or achievement unlocked"),
        (state(), "do", state(unlocked=["defeat_zombie"]), None),
        (state(stone=1), "place_stone", state(stone=1), "No stone used"),
        (state(sapling=1), "place_plant", state(sapling=0), None),
        (state(wood=1), "make_wood_pickaxe", state(wood=0, wood_pickaxe=1), None),
        (state(), "make_iron_sword", state(), "No iron_sword made"),
        (state(energy=5), "sleep", state(energy=5), None),
        (state(energy=9), "sleep", state(energy=9), "Energy is full (9)"),
        (state(), "mine_down", state(), "Unknown action"),
        (state(), 99, state(), "Unknown action"),
        (state(), None, state(), None),
        ({}, "move_up", {}, None),
        ({"player_position": None}, "move_up", {"player_position": "here"}, None),
    ],
)
def test_an_action_without_its_effect_is_invalid(before, action, after, reason):
    entry = next((entry for entry in hooks.judge(before, action, after) if entry["code"] == "X"), None)
    assert (entry and entry["data"]["reason"]) == reason
    if entry:
        name = ACTIONS[action] if action in range(17) else str(action)
        assert entry["description"] == f"Invalid {name}: {reason}"


def test_achievements_are_separated_by_difficulty():
    before, after = state(unlocked=["wake_up"]), state(unlocked=["wake_up", "collect_wood", "eat_cow", "defeat_zombie"])
    assert names(hooks.judge(before, "noop", after)) == [
        ("easy_achievement", ["collect_wood"]),
        ("medium_achievement", ["eat_cow"]),
        ("hard_achievement", ["defeat_zombie"]),
    ]
    assert hooks.judge(after, "noop", after) == []


def event(before, after, **own):
    key = "observation" if "actions" in own else "public_state"
    return {"system_state_before": {key: before}, "system_state_after": {key: after}, "metadata": {}, **own}


def test_events_are_annotated_by_their_type():
    before, after = state((5, 5)), state((5, 5), unlocked=["collect_wood"])
    assert names(hooks.annotate(event(before, after, reward=1.0))) == [("easy_achievement", ["collect_wood"])]
    assert names(hooks.annotate(event(before, after, actions=[3]))) == [("invalid_action", None)]
    assert hooks.annotate(event(before, after, llm_call_records=[])) == []
    assert hooks.annotate({"actions": [], "system_state_before": None}) == []
    assert hooks.annotate({"actions": "up"}) == []


def test_a_turn_of_several_actions_is_suspect_unless_the_states_of_each_are_known():
    start, middle, end = state((5, 5)), state((6, 5)), state((7, 5))
    turn = event(start, end, actions=[2, 2, 5])
    (entry,) = hooks.annotate(turn)
    reason = "Expected position change [1, 0], got [2, 0]"
    assert entry["data"] == {"action": "move_right", "reason": reason, "suspect": True}
    steps = [hooks.Step(start, 2, middle), hooks.Step(middle, 2, end), hooks.Step(end, 5, end)]
    (entry,) = hooks.annotate(turn, steps)
    assert (entry["data"]["action"], entry["data"]["action_index"], entry["data"]["suspect"]) == ("do", 2, False)
    (entry,) = hooks.annotate(event(start, start, actions=[2]))
    assert entry["data"]["suspect"] is False
