import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import (
    Options,
    evaluate_history,
    evaluate_step,
    format_step_evaluation,
    normalise_history,
    print_step_evaluation,
)
from tests.steps.cases import CELLS, ENRICHMENT
from tests.steps.records import JSON, RECORD


def test_every_evaluation_says_these(make):
    found = evaluate_step(make("process_cells", CELLS, kind="structured", index=2), {})
    expected = {
        "step_index": 2,
        "function_name": "process_cells",
        "success": True,
        "result_type": "structured",
        "evaluation_version": "v1_checking_only",
        "verdict": "success",
        "critical_failure": False,
        "silent_failure": False,
        "silent_failure_reason": None,
        "truncated": False,
        "attempt": 1,
    }
    assert {key: found[key] for key in expected} == expected
    assert "T" in found["timestamp"]
    json.dumps(found, allow_nan=False)


def test_the_time_of_the_record_is_kept():
    record = {"function_name": "f", "success": True, "timestamp": "2026-03-02T09:00:00"}
    assert evaluate_step(record)["timestamp"] == "2026-03-02T09:00:00"


FAILURES = [
    ("ValueError", "no cells", False),
    (None, "no cells", False),
    (None, None, False),
    ("FileNotFoundError", "gone", True),
    ("ImportError", "", True),
    ("ModuleNotFoundError", "", True),
    ("AttributeError", "", True),
    ("PermissionError", "", True),
    ("builtins.PermissionError", "", True),
    (None, "[Errno 2] No such file or directory: 'a.h5ad'", True),
    (None, "No module named 'scanpy'", True),
    (None, "'NoneType' object has no attribute 'obs'", True),
    (None, "[Errno 13] Permission denied: '/x'", True),
    (None, "cannot import name 'x' from 'y'", True),
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


def test_critical_errors_are_options(make):
    record = make("f", None, False, error="disk full")
    assert not evaluate_step(record)["critical_failure"]
    assert evaluate_step(record, {}, Options(critical_patterns=("disk full",)))["critical_failure"]
    lax = Options(critical_errors=frozenset(), critical_patterns=())
    assert not evaluate_step(make("f", None, False, error="No module named 'x'"), {}, lax)["critical_failure"]


def test_a_record_that_does_not_say_how_it_ended():
    found = evaluate_step({"function_name": "f"})
    assert (found["success"], found["verdict"], found["critical_failure"]) == (None, "unknown", False)


@pytest.mark.parametrize("success", [True, False])
def test_skipped_steps_are_no_failures(make, success):
    found = evaluate_step(make("process_cells", None, success, skip_reason="no cells", error="x"))
    assert (found["verdict"], found["critical_failure"]) == ("skipped", False)
    assert found["skipped_evaluation"] == {"skip_reason": "no cells", "status": "skipped"}
    assert "failure_evaluation" not in found


def test_validation_results_have_a_branch_of_their_own(make):
    found = evaluate_step(make("validate", {"status": "partial_success"}, kind="validation"))
    assert found["validation_evaluation"]["status"] == "partial_success"


def test_failures_in_a_row_are_attempts_and_then_a_loop(make):
    records = [make("f", None, False, error="x")] * 4 + [make("f", "done")] + [make("f", "done")]
    found = evaluate_history(records)
    assert [one["attempt"] for one in found] == [1, 2, 3, 4, 5, 1]
    labels = [[made["label"] for made in one["checks"] if made["name"] == "attempts"] for one in found]
    assert labels == [[], ["retry"], ["loop"], ["loop"], ["retry"], []]


def test_the_state_tells_of_attempts_and_index(make):
    records = [make("f", None, False), make("f", None, False)]
    assert evaluate_step(records[-1], {"execution_history": records})["attempt"] == 2
    assert evaluate_step({"function_name": "f", "success": True}, {"current_step_index": 7})["step_index"] == 7


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


def test_an_enrichment(make):
    assert report(make("perform_enrichment_analyses", ENRICHMENT, kind="structured", index=4)) == [
        RULE,
        "📊 STEP EVALUATION REPORT - Step 5",
        RULE,
        "Function: perform_enrichment_analyses",
        "Success: ✅ (True)",
        "Result Type: structured",
        f"Timestamp: {TIME}",
        "",
        "✅ SUCCESS ANALYSIS:",
        "   🧬 ENRICHMENT RESULTS:",
        "      ✅ GO: 12 pathways",
        "      ✅ KEGG: 3 pathways",
        "      ⭕ GSEA: 0 pathways",
        "   📊 Total Significant: 15 pathways",
        "   🎯 Data Quality: high_structured_access",
        "   🔝 Sample Pathways:",
        "      GO: a, b",
        "      KEGG: k1, k2",
        RULE,
    ]


def test_process_cells(make):
    types = {str(i): name for i, name in enumerate(["T cell", "B cell", "NK cell", "Monocyte"])}
    assert report(make("process_cells", f"group_to_cell_type = {types}", kind="structured"))[8:] == [
        "✅ SUCCESS ANALYSIS:",
        "   🧬 PROCESS CELLS RESULTS:",
        "      Discovered: 4 new cell types",
        "         - T cell",
        "         - B cell",
        "         - NK cell",
        RULE,
    ]


@pytest.mark.parametrize(
    ("error", "category", "critical"),
    [("no cells", "analysis_error", "⚠️ No"), ("No module named 'x'", "system_error", "🚨 YES")],
)
def test_a_failure(make, error, category, critical):
    assert report(make("f", None, False, error=error))[4:] == [
        "Success: ❌ (False)",
        "Result Type: text",
        f"Timestamp: {TIME}",
        "",
        "❌ FAILURE ANALYSIS:",
        f"   Error Type: {category}",
        f"   Critical: {critical}",
        RULE,
    ]


def test_a_plain_success(make):
    assert report(make("f", "done"))[8:] == ["✅ SUCCESS ANALYSIS:", RULE]


def test_unknown_counts_are_not_invented(make):
    lines = report(make("perform_enrichment_analyses", str(ENRICHMENT)[:130]))
    assert "      ❔ KEGG: unknown pathways" in lines
    assert "   📊 Total Significant: unknown pathways" in lines
    assert "      Discovered: at least 1 new cell types" in report(make("process_cells", CELLS[:-20]))
    assert "      Discovered: unknown number of new cell types" in report(make("process_cells", "odd"))


def test_silent_failures_and_skipped_steps_say_so(make):
    assert "   🔇 Silent failure: the step left no result" in report(make("process_cells", None))
    assert "   Reason: no cells" in report(make("process_cells", None, skip_reason="no cells"))


def test_control_characters_never_reach_the_terminal(make, capsys):
    result = {"go": {"top_terms": ["\x1b[31mred\nline"], "top_pvalues": [0.1], "total_significant": 1}}
    record = make("perform_enrichment_analyses\x1b]0;title\x07", "x")
    print_step_evaluation(evaluate_step(record))
    print_step_evaluation(evaluate_step(make("perform_enrichment_analyses", result, kind="structured")))
    print_step_evaluation(evaluate_step(make("process_cells", "group_to_cell_type = {'0': 'T\\x1b[31m'}")))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "red line" in shown


def test_steps_count_from_one(make):
    titles = [report(make("f", "x", index=index))[1] for index in (0, 20)]
    assert titles == ["📊 STEP EVALUATION REPORT - Step 1", "📊 STEP EVALUATION REPORT - Step 21"]


def test_an_evaluation_of_nothing_is_printed():
    assert format_step_evaluation({}).splitlines()[1] == "📊 STEP EVALUATION REPORT - Step ?"
    assert format_step_evaluation({"status": "no_history", "critical_failure": False})
