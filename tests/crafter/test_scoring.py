import math

import pytest

from evalkit.crafter import ACHIEVEMENTS, TIERS, WEIGHTS, band, evaluate_event, evaluate_trace
from tests.crafter.traces import environment, hook, results, runtime, trace, write

INVALID = hook("invalid_action", action="move_up", reason="Expected position change [0, -1], got [0, 0]")


def test_the_maximum_of_22_achievements_is_60_and_a_half():
    assert len(ACHIEVEMENTS) == 22
    assert sum(len(names) * WEIGHTS[f"{tier}_achievement"] for tier, names in TIERS.items()) == 60.5


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (environment(hooks=[hook("easy_achievement", ["collect_wood", "place_table"])]), (2.0, "+")),
        (environment(hooks=[hook("easy_achievement")]), (1.0, "+")),
        (environment(hooks=[hook("new_achievement", ["collect_wood", "eat_cow", "defeat_zombie"])]), (8.5, "+")),
        (environment(hooks=[hook("new_achievement", ["fly"])]), (0.0, "")),
        (environment(hooks=[hook("inventory_increase", items=["wood"])]), (0.0, "")),
        (runtime(hooks=[hook("invalid_actions")]), (-0.05, "-")),
        ({"hooks_triggered": ["easy_achievement", "invalid_action"]}, (0.95, "+")),
        ({"event_metadata": None}, (0.0, "")),
        # names with and without difficulty on one event count once
        (environment(hooks=[hook(f"{which}_achievement", ["collect_wood"]) for which in ("new", "easy")]), (1.0, "+")),
    ],
)
def test_an_event_scores_by_its_hooks(event, expected):
    assert evaluate_event(event) == expected


def test_weights_of_the_users_own_replace_those_they_name():
    event = environment(hooks=[hook("easy_achievement", ["collect_wood"]), INVALID])
    assert evaluate_event(event, {"invalid_action": -1.0}) == (0.0, "0")
    assert evaluate_event(event, {"easy_achievement": 0.3, "invalid_action": -0.5}) == (-0.2, "-")
    three = environment(hooks=[hook("easy_achievement", ["a"])] + [INVALID] * 3)  # 0.3 - 3 × 0.1 is exactly 0
    assert evaluate_event(three, {"easy_achievement": 0.3, "invalid_action": -0.1}) == (0.0, "0")
    with pytest.raises(ValueError, match=r"no hook is called 'easy'; weights have the names easy_achievement"):
        evaluate_event(event, {"easy": 1})
    with pytest.raises(ValueError, match="unknown counting 'name'"):
        evaluate_event(event, counting="name")


def test_bands_have_the_published_bounds():
    bounds = {2.01: "Excellent", 2: "Good", 1: "Good", 0.99: "Limited", 0: "Limited", -0.05: "Poor", math.nan: None}
    assert {score: band(score) for score in bounds} == bounds


NONE, WOOD = {"collect_wood": False, "eat_cow": False}, {"collect_wood": True, "eat_cow": False}
BOTH = {"collect_wood": True, "eat_cow": True}
STATES = [environment(0, status=NONE, before=NONE), environment(1, status=WOOD, before=NONE)]
STATES += [environment(2, status=WOOD, before=WOOD), environment(3, status=BOTH, before=WOOD)]
EASY, HARD = hook("easy_achievement", ["collect_wood"]), hook("hard_achievement", ["defeat_zombie"])
JUDGED = hook("invalid_action", action="move_up", suspect=False)
ERROR = {"metadata_type": "error", "data": {"error_message": ""}, "timestamp": ""}
SEVERAL = [runtime(0, [INVALID], [2, 2, 5]), runtime(1, [INVALID], [3]), runtime(2, [JUDGED, JUDGED], [3, 3])]
FOUND = environment(hooks=[EASY])
AGAIN = [{"step_id": "turn_0", "events": [FOUND], "step_messages": []}]
ABORTED = (0.0, "(no scored events)", {}, ["aborted"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            trace(FOUND, *[runtime(i, [INVALID]) for i in range(20)]),
            (0.0, "+" + "-" * 20, {"easy_achievement": 1, "invalid_action": 20}, []),
        ),
        # achievements are derived from states only where there are no hooks at all, and not those of the first state
        (trace(*STATES), (3.5, "++", {"easy_achievement": 1, "medium_achievement": 1}, ["derived"])),
        (trace(*STATES, runtime(3, [INVALID])), (-0.05, "-", {"invalid_action": 1}, [])),
        (trace(environment(0, status=WOOD, before=WOOD)), (0.0, "(no scored events)", {}, [])),
        # what episode_results say is compared
        (trace(FOUND, metadata=[results("collect_wood")]), (1.0, "+", {"easy_achievement": 1}, [])),
        (trace(FOUND, metadata=[results("eat_cow")]), (1.0, "+", {"easy_achievement": 1}, ["results_mismatch"])),
        # invalid actions of turns with several actions are suspect, and still count
        (trace(*SEVERAL, environment()), (-0.2, "---", {"invalid_action": 4}, ["suspect_invalid_actions"])),
        (
            trace(runtime(0, [INVALID], metadata={"step": 0, "invalid_action": False}), environment()),
            (-0.05, "-", {"invalid_action": 1}, ["verdicts_disagree"]),
        ),
        (trace(environment(hooks=[HARD]), metadata=[ERROR]), (5.0, "+", {"hard_achievement": 1}, ["error_entry"])),
        # events that stand in time steps again count once
        (trace(FOUND, session_time_steps=AGAIN), (1.0, "+", {"easy_achievement": 1}, [])),
        (trace(), ABORTED),
        ({"session_id": "x"}, ABORTED),
    ],
)
def test_a_trace_scores_by_its_hooks_and_doubts_are_flags(content, expected, tmp_path):
    result = evaluate_trace(write(tmp_path, content))
    assert tuple(result[key] for key in ("total_score", "trajectory", "counts", "flags")) == expected
    assert str(result["total_score"]) != "-0.0"
    assert result["num_events"] == len(content.get("event_history") or [])
