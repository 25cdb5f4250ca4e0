import pytest

from evalkit.crafter import ACHIEVEMENTS, TIERS, WEIGHTS, band, evaluate_event, evaluate_trace
from tests.crafter.traces import environment, hook, results, runtime, trace, write

INVALID = hook("invalid_action", action="move_up", reason="Expected position change [0, -1], got [0, 0]")


def test_all_22_achievements_have_a_tier_and_the_maximum_is_60_and_a_half():
    assert len(ACHIEVEMENTS) == 22
    assert sum(len(names) * WEIGHTS[f"{tier}_achievement"] for tier, names in TIERS.items()) == 60.5


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (environment(hooks=[hook("easy_achievement", ["collect_wood"])]), (1.0, "+")),
        (environment(hooks=[hook("medium_achievement", ["eat_cow"])]), (2.5, "+")),
        (environment(hooks=[hook("hard_achievement", ["defeat_zombie"])]), (5.0, "+")),
        (runtime(hooks=[INVALID]), (-0.05, "-")),
        (environment(hooks=[hook("easy_achievement", ["collect_wood", "place_table"])]), (2.0, "+")),
        (environment(hooks=[hook("easy_achievement", [])]), (1.0, "+")),
        (environment(hooks=[hook("easy_achievement")]), (1.0, "+")),
        (environment(hooks=[hook("new_achievement", ["collect_wood", "eat_cow", "defeat_zombie"])]), (8.5, "+")),
        (environment(hooks=[hook("new_achievement", ["fly"])]), (0.0, "")),
        (environment(hooks=[hook("inventory_increase", items=["wood"])]), (0.0, "")),
        (environment(hooks=[hook("easy_achievements", ["collect_wood"])]), (1.0, "+")),
        (runtime(hooks=[hook("invalid_actions")]), (-0.05, "-")),
        ({"hooks_triggered": ["easy_achievement", "invalid_action"]}, (0.95, "+")),
        ({"hooks_triggered": ["invalid_action"], "event_metadata": []}, (-0.05, "-")),
        ({"event_metadata": None}, (0.0, "")),
        ({}, (0.0, "")),
    ],
)
def test_an_event_scores_by_its_hooks(event, expected):
    assert evaluate_event(event) == expected


def test_names_with_and_without_difficulty_on_one_event_count_once():
    both = [hook("new_achievement", ["collect_wood"]), hook("easy_achievement", ["collect_wood"])]
    assert evaluate_event(environment(hooks=both)) == (1.0, "+")


def test_counting_by_hook_counts_each_hook_once():
    event = environment(
        hooks=[hook("easy_achievement", ["collect_wood", "place_table"]), hook("hard_achievement", ["x", "y"])]
    )
    assert evaluate_event(event, counting="hook").score == 6.0
    by_name = environment(hooks=[hook("new_achievement", ["collect_wood", "place_table", "eat_cow"])])
    assert evaluate_event(by_name, counting="hook") == (0.0, "")  # a hook that the original does not know


def test_weights_of_the_users_own_replace_those_they_name():
    event = environment(hooks=[hook("easy_achievement", ["collect_wood"]), INVALID])
    assert evaluate_event(event, {"invalid_action": -1.0}) == (0.0, "0")
    assert evaluate_event(event, {"easy_achievement": 0.3, "invalid_action": -0.5}) == (-0.2, "-")
    with pytest.raises(ValueError, match=r"no hook is called 'easy'; weights have the names easy_achievement"):
        evaluate_event(event, {"easy": 1})
    with pytest.raises(ValueError, match="unknown counting 'name'"):
        evaluate_event(event, counting="name")


def test_sums_of_decimals_cancel_to_zero():
    event = environment(hooks=[hook("easy_achievement", ["a"])] + [INVALID] * 3)
    assert evaluate_event(event, {"easy_achievement": 0.3, "invalid_action": -0.1}) == (0.0, "0")


def test_one_easy_achievement_and_twenty_invalid_actions_are_exactly_zero(tmp_path):
    events = [
        environment(hooks=[hook("easy_achievement", ["collect_wood"])]),
        *[runtime(i, [INVALID]) for i in range(20)],
    ]
    result = evaluate_trace(write(tmp_path, trace(*events)))
    assert str(result["total_score"]) == "0.0"
    assert result["counts"] == {"easy_achievement": 1, "invalid_action": 20}
    assert result["trajectory"] == "+" + "-" * 20
    assert result["num_events"] == 21


@pytest.mark.parametrize(
    ("score", "name"),
    [
        (2.01, "Excellent"),
        (2.0, "Good"),
        (1.0, "Good"),
        (0.99, "Limited"),
        (0.0, "Limited"),
        (-0.05, "Poor"),
        (float("nan"), None),
    ],
)
def test_bands_have_the_published_bounds(score, name):
    assert band(score) == name


def test_achievements_are_derived_from_states_only_where_there_are_no_hooks_at_all(tmp_path):
    none, wood = {"collect_wood": False, "eat_cow": False}, {"collect_wood": True, "eat_cow": False}
    both = {"collect_wood": True, "eat_cow": True}
    events = [environment(0, status=none, before=none), environment(1, status=wood, before=none)]
    events += [environment(2, status=wood, before=wood), environment(3, status=both, before=wood)]
    result = evaluate_trace(write(tmp_path, trace(*events)))
    assert (result["total_score"], result["trajectory"], result["flags"]) == (3.5, "++", ["derived"])
    assert result["counts"] == {"easy_achievement": 1, "medium_achievement": 1}
    with_hook = evaluate_trace(write(tmp_path, trace(*events, runtime(3, [INVALID]))))
    assert with_hook["counts"] == {"invalid_action": 1}


def test_what_the_first_state_has_is_not_derived_as_unlocked(tmp_path):
    had = {"collect_wood": True, "eat_cow": False}
    result = evaluate_trace(write(tmp_path, trace(environment(0, status=had, before=had))))
    assert result["counts"] == {}


@pytest.mark.parametrize(
    ("claimed", "flags"), [(["collect_wood"], []), ([], ["results_mismatch"]), (["eat_cow"], ["results_mismatch"])]
)
def test_a_mismatch_with_episode_results_is_flagged(tmp_path, claimed, flags):
    event = environment(hooks=[hook("easy_achievement", ["collect_wood"])])
    result = evaluate_trace(write(tmp_path, trace(event, metadata=[results(*claimed)])))
    assert (result["flags"], result["total_score"]) == (flags, 1.0)


def test_invalid_actions_of_turns_with_several_actions_are_suspect_and_still_count(tmp_path):
    judged = hook("invalid_action", action="move_up", suspect=False)
    events = [runtime(0, [INVALID], [2, 2, 5]), runtime(1, [INVALID], [3]), runtime(2, [judged, judged], [3, 3])]
    result = evaluate_trace(write(tmp_path, trace(*events, environment())))
    assert result["counts"] == {"invalid_action": 4}
    assert result["suspect_invalid_actions"] == 1
    assert result["flags"] == ["suspect_invalid_actions"]


def test_an_event_whose_metadata_says_other_than_its_hook_is_flagged(tmp_path):
    event = runtime(0, [INVALID], metadata={"step": 0, "invalid_action": False})
    result = evaluate_trace(write(tmp_path, trace(event, environment())))
    assert result["flags"] == ["verdicts_disagree"]


def test_an_error_entry_only_flags_a_trace(tmp_path):
    error = {"metadata_type": "error", "data": {"error_message": ""}, "timestamp": ""}
    event = environment(hooks=[hook("hard_achievement", ["defeat_zombie"])])
    result = evaluate_trace(write(tmp_path, trace(event, metadata=[error])))
    assert (result["total_score"], result["flags"]) == (5.0, ["error_entry"])


def test_events_that_stand_in_time_steps_again_count_once(tmp_path):
    event = environment(hooks=[hook("easy_achievement", ["collect_wood"])])
    steps = [{"step_id": "turn_0", "events": [event], "step_messages": []}]
    assert evaluate_trace(write(tmp_path, trace(event, session_time_steps=steps)))["total_score"] == 1.0


@pytest.mark.parametrize("content", [trace(), {"session_id": "x"}, {"session_id": "x", "event_history": None}])
def test_an_aborted_trace_scores_nothing_and_is_flagged(tmp_path, content):
    result = evaluate_trace(write(tmp_path, content))
    assert (result["total_score"], result["trajectory"], result["counts"]) == (0.0, "(no scored events)", {})
    assert result["flags"] == ["aborted"]
