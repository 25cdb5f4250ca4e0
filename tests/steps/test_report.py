import pytest

from evalkit.steps import evaluate_step, format_step_evaluation, print_step_evaluation
from tests.steps.cases import CELLS, ENRICHMENT

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
