"""What a task asks for: from its definition, else from its id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io.frames import frame
from evalkit.mindcraft.table import RUNS
from evalkit.mindcraft.tasks import Facts, task_facts
from tests.mindcraft.builders import task

COOK = "multiagent_cooking_2_1_bread_1_cake"
PLAN = "!getCraftingPlan"


@pytest.mark.parametrize(
    ("task_id", "definition", "expected"),
    [
        # the type: `type`, else `task_type`, else the id
        ("x", task("techtree"), {"task_type": "techtree"}),
        ("x", task("crafting"), {"task_type": "techtree"}),
        ("x", {"task_type": "construction"}, {"task_type": "construction"}),
        (COOK, {"goal": "?"}, {"task_type": "cooking", "facts_source": "definition"}),
        (COOK, None, {"task_type": "cooking", "facts_source": "id"}),
        ("multiagent_crafting_shears", None, {"task_type": "techtree"}),
        ("materials_3_rooms_2_window_0_carpet_0_variant_1", None,
         {"task_type": "construction", "materials": 3, "rooms": 2}),
        ("something_else", None, {"task_type": "unknown"}),
        # agents, timeout, difficulty
        (COOK, task(agent_count=3), {"agent_count": 3}),
        (COOK, task(agent_count="4"), {"agent_count": 4}),
        (COOK, task(agent_count=0), {"agent_count": None}),
        (COOK, task(agent_count=None), {"agent_count": None}),
        (f"{COOK}_num_agents_5", None, {"agent_count": 5}),
        (COOK, None, {"agent_count": None}),
        (COOK, task(timeout=500), {"timeout": 500.0}),
        (COOK, task(), {"timeout": 300.0}),
        (COOK, task(timeout=None), {"timeout": 300.0}),
        (COOK, task(timeout="x"), {"timeout": 300.0}),
        (COOK, task(timeout=10**400), {"timeout": 300.0}),
        (COOK, task(difficulty="hard"), {"difficulty": "hard"}),
        (COOK, task(difficulty_metrics={"difficulty_category": "easy"}), {"difficulty": "easy"}),
        (COOK, task(difficulty=3), {"difficulty": None}),
        # cooking: blocked agents from the definition, never from the id beside it
        (COOK, task(blocked_access_to_recipe=["0", "1"]), {"n_blocked_agents": 2}),
        (COOK, task(blocked_access_to_recipe=[0, "0", 1]), {"n_blocked_agents": 2}),
        (COOK, task(blocked_access_to_recipe=[]), {"n_blocked_agents": 0}),
        (COOK, task(), {"n_blocked_agents": 0}),
        (f"{COOK}_blocked_access_0_1", task(blocked_access_to_recipe=["0"]), {"n_blocked_agents": 1}),
        (f"{COOK}_blocked_access_0_1", None, {"n_blocked_agents": 2}),
        # by the id alone: no suffix says that nobody is blocked, where the id is one of cooking at all
        (COOK, None, {"n_blocked_agents": 0, "facts_source": "id"}),
        ("cooking_1_bread", None, {"n_blocked_agents": 0}),
        ("multiagent_cooking_soup", None, {"n_blocked_agents": 0}),
        ("bread_cake_hells_kitchen", None, {"n_blocked_agents": 0, "hells_kitchen": True}),
        ("my_cooking_test", None, {"task_type": "cooking", "n_blocked_agents": None}),
        (f"{COOK}_blocked_access_all", None, {"n_blocked_agents": None}),
        ("x", task("techtree"), {"n_blocked_agents": None}),
        # targets
        (COOK, task(target={"cake": 1, "bread": 1}), {"target_items": ["bread", "cake"], "hells_kitchen": False}),
        (COOK, task(target=["cake", "bread"]), {"target_items": ["bread", "cake"], "hells_kitchen": True}),
        (COOK, {"task_type": "cooking", "target": ["cake", "bread"]}, {"hells_kitchen": True}),
        ("multiagent_cooking_bread_cake_hells_kitchen", None, {"hells_kitchen": True}),
        ("x", task("techtree", target="shears"), {"target_items": ["shears"], "hells_kitchen": False}),
        (COOK, None, {"target_items": ["bread", "cake"]}),
        ("multiagent_cooking_2_1_baked_potato_1_golden_apple_blocked_access_1", None,
         {"target_items": ["baked_potato", "golden_apple"], "n_blocked_agents": 1}),
        # crafting: the plan, by how many agents have it blocked
        ("x", task("techtree"), {"plan_availability": "full"}),
        ("x", task("techtree", blocked_actions={"0": [], "1": []}), {"plan_availability": "full"}),
        ("x", task("techtree", blocked_actions={"0": [PLAN], "1": []}), {"plan_availability": "partial"}),
        ("x_with_plan", task("techtree", blocked_actions={"0": [PLAN]}), {"plan_availability": "partial"}),
        ("x", task("techtree", blocked_actions={"0": [PLAN], "1": [PLAN]}), {"plan_availability": "none"}),
        ("no_plan", task("techtree", 3, blocked_actions={"0": [PLAN], "1": [PLAN]}), {"plan_availability": "partial"}),
        ("multiagent_crafting_x_partial_plan__depth_2", None, {"plan_availability": "partial", "depth": 2}),
        ("multiagent_crafting_x_no_plan__depth_0", None, {"plan_availability": "none", "depth": 0}),
        ("multiagent_crafting_x", None, {"plan_availability": None, "depth": None}),
        (COOK, task(), {"plan_availability": None}),
        ("x_depth_2", task("techtree", depth=1, max_depth=3), {"depth": 1, "max_depth": 3}),
        ("x", task("techtree", missing_items=["stick"]), {"missing_items": ["stick"]}),
        ("x", task("techtree", requires_ctable=True), {"requires_crafting_table": True}),
        ("x", task("techtree", requires_crafting_table=False), {"requires_crafting_table": False}),
        ("x", task("techtree"), {"requires_crafting_table": None}),
        ("multiagent_crafting_x_full_plan_requires_ctable__depth_0", None, {"requires_crafting_table": True}),
        (f"materials_{'9' * 30}_rooms_1", None, {"materials": None, "rooms": 1}),
    ],
)  # fmt: skip
def test_facts(task_id, definition, expected):
    facts = task_facts(task_id, definition)
    assert {name: facts[name] for name in expected} == expected


@pytest.mark.parametrize(("task_id", "kind"), [("it", "techtree"), ("multiagent_cooking_1_bread", "cooking")])
def test_the_type_that_a_path_names_is_the_last_resort(task_id, kind):
    assert task_facts(task_id, None, "crafting")["task_type"] == kind
    assert task_facts(task_id, task("debug"), "crafting")["task_type"] == "debug"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
keys = [
    "type",
    "task_type",
    "agent_count",
    "timeout",
    "difficulty",
    "difficulty_metrics",
    "target",
    "depth",
    "max_depth",
]
keys += ["blocked_access_to_recipe", "blocked_actions", "missing_items", "requires_ctable", "requires_crafting_table"]


@given(
    st.text(max_size=30) | st.sampled_from([COOK, "multiagent_crafting_x", "materials_1_rooms_1"]),
    st.none() | st.dictionaries(st.sampled_from(keys), anything | st.sampled_from(["cooking", "techtree", 10**400])),
)
def test_any_definition_gives_facts_that_fit_a_frame(task_id, definition):
    facts = task_facts(task_id, definition)
    assert set(facts) == set(Facts.__annotations__)
    columns = [column for column in RUNS if column.name in facts and column.name != "agent_count"]
    assert len(frame([facts], columns)) == 1


@pytest.mark.parametrize(
    ("task_id", "definition", "agents"),
    [
        (COOK, task(blocked_access_to_recipe=["1", 0, "0"]), "0, 1"),
        (COOK, task(blocked_access_to_recipe=[]), "none"),
        (f"{COOK}_blocked_access_1", None, "1"),
        (COOK, None, "none"),
        ("my_cooking_test", None, None),
        ("x", task("techtree"), None),
    ],
)
def test_which_agents_are_blocked(task_id, definition, agents):
    assert task_facts(task_id, definition)["blocked_agents"] == agents
