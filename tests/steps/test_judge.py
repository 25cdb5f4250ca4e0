import json
import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import (
    check,
    evaluate_history,
    evaluate_step,
    evaluates,
    find_loops,
    format_step_evaluation,
    plan_adherence,
    score_tool_calls,
)
from evalkit.steps.judge import EVALUATORS
from evalkit.steps.normalise import normalise_history
from tests.steps.cases import CELLS
from tests.steps.records import JSON, RECORD


def test_every_evaluation_says_these(make):
    found = evaluate_step(make("process_cells", CELLS, kind="structured", index=2), {})
    expected = {"step_index": 2, "function_name": "process_cells", "success": True, "result_type": "structured",
                "evaluation_version": "v1_checking_only", "verdict": "success", "critical_failure": False,
                "silent_failure": False, "silent_failure_reason": None, "truncated": False, "attempt": 1}  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert "T" in found["timestamp"]


FAILURES = [
    ("ValueError", "no cells", False),
    (None, None, False),
    ("FileNotFoundError", "gone", True),
    ("PermissionError", "", True),
    ("builtins.PermissionError", "", True),
    (None, "[Errno 2] No such file or directory: 'a.h5ad'", True),
    (None, "No module named 'scanpy'", True),
    (None, "'NoneType' object has no attribute 'obs'", True),
    (None, "FileNotFoundError: gone", True),
    (None, "MyFileNotFoundErrors happen", False),
]


@pytest.mark.parametrize(("error_type", "message", "critical"), FAILURES)
def test_failures_are_critical_by_class_or_message(make, error_type, message, critical):
    found = evaluate_step(make("f", None, False, error=message, error_type=error_type, kind="text"))
    assert found["critical_failure"] is critical
    failure = found["failure_evaluation"]
    assert failure["error_message"] == (message or "Unknown error")
    assert failure["error_category"] == ("system_error" if critical else "analysis_error")
    assert failure["suggested_action"] == ("abort_workflow" if critical else "continue_with_caution")
    assert "function_evaluation" not in found


@pytest.mark.parametrize("success", [True, False])
def test_skipped_steps_are_no_failures(make, success):
    found = evaluate_step(make("process_cells", None, success, skip_reason="no cells", error="x"))
    assert (found["verdict"], found["critical_failure"]) == ("skipped", False)
    assert found["skipped_evaluation"] == {"skip_reason": "no cells", "status": "skipped"}
    assert "failure_evaluation" not in found


def test_failures_in_a_row_are_attempts_and_then_a_loop(make):
    records = [make("f", None, False, error="x")] * 4 + [make("f", "done")] + [make("f", "done")]
    found = evaluate_history(records)
    assert [one["attempt"] for one in found] == [1, 2, 3, 4, 5, 1]
    labels = [[made["label"] for made in one["checks"] if made["name"] == "attempts"] for one in found]
    assert labels == [[], ["retry"], ["loop"], ["loop"], ["retry"], []]


@given(RECORD | JSON, JSON | st.fixed_dictionaries({"execution_history": st.lists(RECORD, max_size=3)}))
def test_any_record_is_judged(record, state):
    json.dumps(evaluate_step(record, state), allow_nan=False)


@given(st.lists(RECORD | JSON, max_size=5))
def test_any_history_is_judged(records):
    assert len(evaluate_history(records)) == len(records)
    again = normalise_history(normalise_history(records))
    assert json.dumps(again) == json.dumps(normalise_history(records))


TIME = "2026-03-02T09:00:00"
RULE = "=" * 60


def report(record):
    return format_step_evaluation(evaluate_step({**record, "timestamp": TIME})).splitlines()


def test_the_report_of_a_failure(make):
    head = [
        RULE,
        "📊 STEP EVALUATION REPORT - Step 21",
        RULE,
        "Function: f",
        "Success: ❌ (False)",
        "Result Type: text",
    ]
    failure = ["", "❌ FAILURE ANALYSIS:", "   Error Type: system_error", "   Critical: 🚨 YES", RULE]
    record = make("f", None, False, error="No module named 'x'", index=20)
    assert report(record) == [*head, f"Timestamp: {TIME}", *failure]


def test_the_report_of_a_success(make):
    types = {str(i): name for i, name in enumerate(["T cell", "B cell", "NK cell", "Monocyte"])}
    assert report(make("process_cells", f"group_to_cell_type = {types}", kind="structured"))[8:-1] == [
        "✅ SUCCESS ANALYSIS:",
        "   🧬 PROCESS CELLS RESULTS:",
        "      Discovered: 4 new cell types",
        "         - T cell",
        "         - B cell",
        "         - NK cell",
    ]


@pytest.fixture
def registry():
    before = dict(EVALUATORS)
    yield EVALUATORS
    EVALUATORS.clear()
    EVALUATORS.update(before)


@pytest.mark.parametrize("name", ["score_genes", "score_", "score_*", "sc*"])
def test_a_users_evaluator_is_called(make, registry, name):
    @evaluates(name)
    def scores(record, options):
        return {"gene_score": len(record["result"]), "success": "no", "checks": [check("genes", 0.5, "some")]}

    found = evaluate_step(make("score_genes", [1, 2], kind="structured"))
    assert found["gene_score"] == 2
    assert found["success"] is True  # what every evaluation says can't be overwritten
    assert "function_evaluation" not in found
    assert {"name": "genes", "score": 0.5, "label": "some", "explanation": "", "severity": "info"} in found["checks"]


def test_the_own_name_counts_before_the_longest_prefix(make, registry):
    for name in ("display_", "display_dot*", "display_dotplot"):
        evaluates(name)(lambda record, options, name=name: {"by": name})
    found = {name: evaluate_step(make(name, "<p>")) for name in ("display_dotplot", "display_dotty", "display_x")}
    assert [one["by"] for one in found.values()] == ["display_dotplot", "display_dot*", "display_"]
    assert "by" not in evaluate_step(make("displays", "<p>"))


@pytest.mark.parametrize("bad", [lambda r, o: 1 / 0, lambda r, o: None, lambda r, o: {"checks": 5}])
def test_a_faulty_evaluator_stops_nothing(make, registry, caplog, bad):
    evaluates("mine")(bad)
    with caplog.at_level(logging.WARNING):
        found = evaluate_step(make("mine", "x"))
    assert "evaluator_error" in found
    assert "the evaluator of mine failed" in caplog.text


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
    ("a b d", "a b c", "subset", False, 2 / 3, 2 / 3, 2 / 3),
    ("a b c d", "a b c", "superset", True, 0.75, 1, 6 / 7),
    ("a a", "a", "subset", False, 0.5, 1, 2 / 3),
    # parameters count where they are given
    ("a:1 a:2", ["a", ("a", {"x": "1"})], "unordered", True, 1, 1, 1),
    ("a:1 a:2", [("a", {"x": "1"}), ("a", {"x": "3"})], "unordered", False, 0.5, 0.5, 0.5),
    ("a:1 a:2", [("a", {"x": "1"}), ("a", {"x": "2"})], "strict", True, 1, 1, 1),
    # retries are one call; skipped steps and talk are none
    ("a! a! a a", "a a", "unordered", True, 1, 1, 1),
    ("a b- conversational_response final_question", "a", "strict", True, 1, 1, 1),
    ("", "", "unordered", True, math.nan, math.nan, math.nan),
]


@pytest.mark.parametrize(("made", "expected", "mode", "match", "precision", "recall", "f1"), SCORES)
def test_tool_calls_against_an_expected_list(made, expected, mode, match, precision, recall, f1):
    score = score_tool_calls(run(*made.split()), expected.split() if isinstance(expected, str) else expected, mode)
    assert score.match is match
    assert (score.precision, score.recall, score.f1) == pytest.approx((precision, recall, f1), nan_ok=True)


def test_retries_are_calls_of_their_own_where_asked_for():
    assert score_tool_calls(run("a!", "a!", "a", "a"), ["a"] * 4, "unordered", retries=True).match


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


def test_a_retry_is_one_also_where_another_call_stands_between():
    plan = [{"function_name": "a", "parameters": {"x": "1"}}]
    [step] = plan_adherence(run("a:1!", "a:2", "a:1", "a:1"), plan)
    assert (step.status, step.attempts) == ("success", 2)


def test_forty_three_failures_in_a_row_are_one_loop():
    loops = find_loops(run("a", *["b:1!"] * 43, "b:1", "c!", "c!"))
    assert [(loop.position, loop.length, loop.function_name, loop.parameters) for loop in loops] == [
        (1, 43, "b", {"x": "1"})
    ]
    assert find_loops(run("b:1!", "b:1!", "b:2!", "b:2!", "b:2", "b:2!")) == []  # other parameters, or a success
    assert [loop.position for loop in find_loops(run("a!", "a!", "a!", "b!", "b!", "b!"))] == [0, 3]
