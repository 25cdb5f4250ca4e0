import json

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
)
from evalkit.steps.format import normalise_record
from evalkit.steps.judge import as_history
from tests.steps.cases import ENRICHMENT, make
from tests.steps.records import JSON, RECORD

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
def test_failures_are_critical_by_class_or_message(error_type, message, critical):
    found = evaluate_step(make("f", None, False, error=message, error_type=error_type, kind="text"))
    assert (found["critical_failure"], "function_evaluation" in found) == (critical, False)
    assert found["failure_evaluation"] == {
        "error_message": message or "Unknown error",
        "error_type": error_type,
        "error_category": "system_error" if critical else "analysis_error",
        "suggested_action": "abort_workflow" if critical else "continue_with_caution",
    }


def test_skipped_steps_are_no_failures():
    found = evaluate_step(make("process_cells", None, False, skip_reason="no cells", error="No module named 'x'"))
    assert (found["verdict"], found["critical_failure"]) == ("skipped", False)
    assert found["skipped_evaluation"] == {"skip_reason": "no cells", "status": "skipped"}


def test_failures_in_a_row_are_attempts_and_then_a_loop():
    records = [make("f", None, False, error="x")] * 4 + [make("f", "done")] + [make("f", "done")]
    found = evaluate_history(records)
    assert [one["attempt"] for one in found] == [1, 2, 3, 4, 5, 1]
    labels = [[made["label"] for made in one["checks"] if made["name"] == "attempts"] for one in found]
    assert labels == [[], ["retry"], ["loop"], ["loop"], ["retry"], []]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"cell_type": "B", "n": 2}', {"cell_type": "B", "n": 2}),
        ("{'cell_type': 'T', 'all': True}", {"cell_type": "T", "all": True}),
        ("{'cell_type': 'T', 'genes': ['A', ", {"": "{'cell_type': 'T', 'genes': ['A', "}),  # cut
        ("{1: 2, 'b': 3}", {"1": 2, "b": 3}),
        (["B", 3], {"": ["B", 3]}),
        ("B cells", {"": "B cells"}),
        (None, {}),
        ("", {}),
    ],
)
def test_parameters_may_be_text_or_a_list(given, read):
    for raw in ({"function_name": "f", "parameters": given, "success": False}, {"step": {"parameters": given}}):
        record = normalise_record(raw)
        assert record["step"]["parameters"] == read
        assert normalise_record(record) == record


@given(st.lists(RECORD | JSON, min_size=1, max_size=5), JSON)
def test_any_history_and_any_record_with_any_state_are_judged(records, state):
    assert len(evaluate_history(records)) == len(records)
    once = as_history(records).records
    assert json.dumps(as_history(once).records) == json.dumps(once)
    for given_state in (state, {"execution_history": records}):
        json.dumps(evaluate_step(records[-1], given_state), allow_nan=False)


TIME = "2026-03-02T09:00:00"
RULE = "=" * 60
TYPES = {str(i): name for i, name in enumerate(["T cell", "B cell", "NK cell", "Monocyte"])}
REPORTS = [
    # a record: from which line on its report reads so
    ({"function": "f", "success": False, "error": "No module named 'x'", "index": 20}, 0, [
        RULE, "📊 STEP EVALUATION REPORT - Step 21", RULE,
        "Function: f", "Success: ❌ (False)", "Result Type: text", f"Timestamp: {TIME}", "",
        "❌ FAILURE ANALYSIS:", "   Error Type: system_error", "   Critical: 🚨 YES",
    ]),
    ({"function": "process_cells", "result": f"group_to_cell_type = {TYPES}", "kind": "structured"}, 8, [
        "✅ SUCCESS ANALYSIS:",
        "   🧬 PROCESS CELLS RESULTS:", "      Discovered: 4 new cell types",
        "         - T cell", "         - B cell", "         - NK cell",
    ]),
    ({"function": "perform_enrichment_analyses", "result": ENRICHMENT, "kind": "structured"}, 9, [
        "   🧬 ENRICHMENT RESULTS:",
        "      ✅ GO: 12 pathways", "      ✅ KEGG: 3 pathways", "      ⭕ GSEA: 0 pathways",
        "   📊 Total Significant: 15 pathways", "   🎯 Data Quality: high_structured_access",
        "   🔝 Sample Pathways:", "      GO: a, b", "      KEGG: k1, k2",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("record", "start", "lines"), REPORTS)
def test_the_report_of_a_step_shows_its_verdict_and_contents(record, start, lines):
    report = format_step_evaluation(evaluate_step({**make(**record), "timestamp": TIME})).splitlines()
    assert report[start:] == [*lines, RULE]


def test_a_users_evaluator_is_called(evaluators):
    @evaluates("score_genes")
    def scores(record, options):
        return {"gene_score": len(record["result"]), "success": "no", "checks": [check("genes", 0.5, "some")]}

    found = evaluate_step(make("score_genes", [1, 2], kind="structured"))
    assert (found["gene_score"], "function_evaluation" in found) == (2, False)
    assert found["success"] is True  # what every evaluation says can't be overwritten
    assert {"name": "genes", "score": 0.5, "label": "some", "explanation": "", "severity": "info"} in found["checks"]


@pytest.mark.parametrize("bad", [lambda r, o: 1 / 0, lambda r, o: None, lambda r, o: {"checks": 5}])
def test_a_faulty_evaluator_stops_nothing(evaluators, caplog, bad):
    evaluates("mine")(bad)
    assert "evaluator_error" in evaluate_step(make("mine", "x"))
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


def test_each_planned_step_has_the_outcome_of_its_last_attempt():
    plan = {"steps": [{"function_name": name} for name in ("a", "b", "c", "d", "e", "final_question")]}
    steps = [*zip("abcde", ("success", "success", "failure", "skipped", "not run"), (1, 1, 2, 1, 0), strict=True)]
    assert [step[1:] for step in plan_adherence(run("a", "c!", "c!", "b", "d-"), plan)] == steps
    # a retry is one also where another call stands between
    one = [{"function_name": "a", "parameters": {"x": "1"}}]
    assert plan_adherence(run("a:1!", "a:2", "a:1", "a:1"), one) == [(0, "a", "success", 2)]
    any_other = [*one, {"function_name": "a"}]  # a call is taken once
    assert [step.status for step in plan_adherence(run("a:1", "a:2!"), any_other)] == ["success", "failure"]


def test_forty_three_failures_in_a_row_are_one_loop():
    assert find_loops(run("a", *["b:1!"] * 43, "b:1", "c!", "c!")) == [(1, 43, "b")]
    assert find_loops(run("b:1!", "b:1!", "b:2!", "b:2!", "b:2", "b:2!")) == []  # other parameters, or a success
    assert [loop.position for loop in find_loops(run("a!", "a!", "a!", "b!", "b!", "b!"))] == [0, 3]
