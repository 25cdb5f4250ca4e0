import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import find_loops, plan_adherence, score_tool_calls


def run(*calls):
    """Make records of calls such as ``a``, ``a!`` (failed), ``a:1`` (with a parameter), ``a-`` (skipped)."""
    records = []
    for call in calls:
        name, _, parameter = call.rstrip("!-").partition(":")
        step = {"function_name": name, "parameters": {"x": parameter} if parameter else {}}
        if call.endswith("-"):
            step["skip_reason"] = "no"
        records.append({"step": step, "success": not call.endswith("!"), "result": "r", "error": None})
    return records


SCORES = [
    # made, expected, mode: match, precision, recall, f1
    ("a b c", "a b c", "strict", True, 1, 1, 1),
    ("a c b", "a b c", "strict", False, 2 / 3, 2 / 3, 2 / 3),
    ("a c b", "a b c", "unordered", True, 1, 1, 1),
    ("a b", "a b c", "unordered", False, 1, 2 / 3, 0.8),
    ("a b", "a b c", "subset", True, 1, 2 / 3, 0.8),
    ("a b d", "a b c", "subset", False, 2 / 3, 2 / 3, 2 / 3),
    ("a b c d", "a b c", "superset", True, 0.75, 1, 6 / 7),
    ("a b", "a b c", "superset", False, 1, 2 / 3, 0.8),
    ("a", "a a", "unordered", False, 1, 0.5, 2 / 3),  # counted: one expected twice must be made twice
    ("a a", "a", "subset", False, 0.5, 1, 2 / 3),
]


@pytest.mark.parametrize(("made", "expected", "mode", "match", "precision", "recall", "f1"), SCORES)
def test_tool_calls_against_an_expected_list(made, expected, mode, match, precision, recall, f1):
    score = score_tool_calls(run(*made.split()), expected.split(), mode)
    assert score.match is match
    assert (score.precision, score.recall, score.f1) == pytest.approx((precision, recall, f1))


def test_extra_and_missing_calls_are_named():
    score = score_tool_calls(run("a", "d:1"), ["a", ("b", {"x": 1}), {"function_name": "c", "parameters": {"y": 2}}])
    assert [tuple(call) for call in score.extra] == [("d", {"x": "1"})]
    assert [tuple(call) for call in score.missing] == [("b", {"x": 1}), ("c", {"y": 2})]


def test_parameters_count_where_they_are_given():
    records = run("a:1", "a:2")
    assert score_tool_calls(records, ["a", ("a", {"x": "1"})]).match
    assert not score_tool_calls(records, [("a", {"x": "1"}), ("a", {"x": "3"})]).match
    assert score_tool_calls(records, [("a", {"x": "1"}), ("a", {"x": "2"})], "strict").match


def test_retries_are_one_call_unless_asked_for():
    records = run("a!", "a!", "a", "a")
    assert score_tool_calls(records, ["a", "a"]).match
    assert score_tool_calls(records, ["a"] * 4, retries=True).match


def test_skipped_and_pseudo_steps_are_no_calls():
    assert score_tool_calls(run("a", "b-", "conversational_response", "final_question"), ["a"], "strict").match


def test_what_cannot_be_computed_is_nan():
    score = score_tool_calls([], [])
    assert score.match is True
    assert all(math.isnan(value) for value in (score.precision, score.recall, score.f1))
    assert score_tool_calls(run("a"), []).precision == 0


def test_unknown_modes_and_nameless_calls_are_refused():
    with pytest.raises(ValueError, match="unknown mode 'some'"):
        score_tool_calls([], [], "some")
    with pytest.raises(ValueError, match="needs a function name"):
        score_tool_calls([], [{"parameters": {}}])


CALLS = st.lists(st.sampled_from("abc"), max_size=6)


@given(CALLS, CALLS)
def test_modes_agree_with_each_other(made, expected):
    records = run(*made)
    score = {mode: score_tool_calls(records, expected, mode) for mode in ("strict", "unordered", "subset", "superset")}
    assert score["strict"].match is (made == expected)
    assert score["unordered"].match is (sorted(made) == sorted(expected))
    assert score["unordered"].match is (score["subset"].match and score["superset"].match)
    assert score["strict"].matched <= score["unordered"].matched
    one = score["unordered"]
    assert one.matched + len(one.extra) == len(made)
    assert one.matched + len(one.missing) == len(expected)


def test_what_became_of_a_plan():
    plan = {"steps": [{"function_name": name} for name in ("a", "b", "c", "d", "e")]}
    steps = plan_adherence(run("a", "c!", "c!", "b", "d-"), plan)
    assert [(step.call.function_name, step.status, step.attempts, step.in_order) for step in steps] == [
        ("a", "success", 1, True),
        ("b", "success", 1, True),
        ("c", "failure", 2, False),
        ("d", "skipped", 1, True),
        ("e", "not run", 0, None),
    ]


def test_a_step_planned_twice_must_run_twice():
    plan = [{"function_name": "a", "parameters": {}}, {"function_name": "a", "parameters": {}}]
    assert [step.status for step in plan_adherence(run("a", "a"), plan)] == ["success", "success"]
    assert [step.status for step in plan_adherence(run("a!", "a"), plan)] == ["success", "not run"]


def test_a_retry_is_one_also_where_another_call_stands_between():
    plan = [{"function_name": "a", "parameters": {"x": "1"}}]
    [step] = plan_adherence(run("a:1!", "a:2", "a:1", "a:1"), plan)
    assert (step.status, step.attempts) == ("success", 2)


@pytest.mark.parametrize("plan", [None, {}, {"steps": None}, "text", [5, {}, {"function_name": None}]])
def test_no_plan_gives_nothing(plan):
    assert plan_adherence(run("a"), plan) == []


def test_forty_three_failures_in_a_row_are_one_loop():
    loops = find_loops(run("a", *["b:1!"] * 43, "b:1", "c!", "c!"))
    assert [(loop.position, loop.length, loop.function_name, loop.parameters) for loop in loops] == [
        (1, 43, "b", {"x": "1"})
    ]


def test_other_parameters_or_a_success_end_a_loop():
    assert find_loops(run("b:1!", "b:1!", "b:2!", "b:2!", "b:2", "b:2!")) == []
    assert [loop.position for loop in find_loops(run("a!", "a!", "a!", "b!", "b!", "b!"))] == [0, 3]
