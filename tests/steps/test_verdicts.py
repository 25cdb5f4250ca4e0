import pytest

from evalkit.steps import Options, evaluate_step
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION

SILENT = [
    ("display_dotplot", "Dotplot not available for this cell type", "not available"),
    ("display_dotplot", "Error generating plot: x", "Error generating"),
    ("display_dotplot", "No enrichment results found", "No enrichment"),
    ("display_dotplot", "❌ Error: <b>no</b> data", "no</b> data"),
    ("display_dotplot", None, "no plot"),
    ("display_dotplot", {"error": "no data"}, "no data"),
    ("display_dotplot", {"multiple_plots": True, "plots": []}, "no plot"),
    ("display_dotplot", {"multiple_plots": True, "plots": [{"html": None}, {"html": ""}]}, "no plot"),
    ("display_dotplot", {"multiple_plots": True, "plots": [{"html": "Error: no data"}]}, "no data"),
    ("display_dotplot", "Success", "no plot"),  # what shape A made of None
    ("process_cells", "Process cells failed: no markers", "no markers"),
    ("process_cells", None, "no result"),
    ("process_cells", {"status": "no_cells_found"}, "no_cells_found"),
    ("process_cells", {"status": "no_cells_found", "message": "none of 354"}, "no_cells_found (none of 354)"),
    ("process_cells", "{'status': 'no_cells_found', 'cell_type': 'B cell'}", "no_cells_found"),
    ("process_cells", {"status": "insufficient_markers"}, "insufficient_markers"),
    ("process_cells", {"status": "cell_type_not_found"}, "cell_type_not_found"),
    ("process_cells", {"status": "Annotation failed"}, "Annotation failed"),
    ("process_cells", "Process cells completed. group_to_cell_type = {}", "no group of cells was named"),
    ("process_cells", {"group_to_cell_type": {}}, "no group of cells was named"),
    ("dea_split_by_condition", {"status": "insufficient_cells", "dea_results": []}, "insufficient_cells"),
    ("search_enrichment_semantic", None, "no result"),
    ("dea_split_by_condition", {}, "no result"),
    ("dea_split_by_condition", None, "no result"),
    ("dea_split_by_condition", "Success", "no result"),  # what shape A made of {} and None
    ("perform_enrichment_analyses", {"error": "x"}, "x"),
    ("compare_cell_counts", "Error: no such category", "no such category"),
    ("search_enrichment_semantic", {"error": "no index", "results": []}, "no index"),
    ("search_enrichment_semantic", {"search_results": {"error": "no index", "results": []}}, "no index"),
    ("search_enrichment_semantic", "{'error': 'no index', 'results': []}", "no index"),
    ("search_enrichment_semantic", "{'error': \"it's" + "x" * 20, "it's"),  # cut inside the message
    ("anything", {"error": "x"}, "x"),
]
LOUD = [
    ("display_dotplot", "<html>Error bars, none found</html>"),
    ("display_dotplot", "plot was shown"),
    ("display_dotplot", {"multiple_plots": True, "plots": [{"html": "<p>x</p>"}, {"html": None}]}),
    ("display_dotplot", {"multiple_plots": True, "plots": [{"type": "file_ref", "path": "a.html"}]}),
    ("display_dotplot", {"type": "file_ref", "path": "a.html"}),
    ("process_cells", CELLS),
    ("process_cells", "Process cells completed, but no new cell types were discovered."),
    ("process_cells", {"status": "leaf_node"}),
    ("process_cells", {"status": "leaf_node", "group_to_cell_type": {}}),
    ("process_cells", "Discovered new cell type: T cell"),
    ("process_cells", {"status": "no_new_cell_types"}),
    ("process_cells", {"status": "insufficient_markers", "group_to_cell_type": {"0": "T cell"}}),
    ("process_cells", "group_to_cell_type = {"),  # cut right behind the bracket
    ("other", {"status": "failed"}),  # what its status means is not known
    ("dea_split_by_condition", {"dea_results": []}),
    ("perform_enrichment_analyses", {"status": "needs_processing"}),
    ("perform_enrichment_analyses", {"error": None, "go": {}}),
    ("perform_enrichment_analyses", "{'error': None, 'go': {}}"),
    ("perform_enrichment_analyses", "{'error': None, 'go': {'top_te"),
    ("search_enrichment_semantic", {"message": "nothing", "total_matches": 0}),
    ("other", None),
    ("conversational_response", "Error bars show that …"),
    (None, None),
]


@pytest.mark.parametrize(("function", "result", "reason"), SILENT)
def test_a_success_whose_result_says_otherwise(make, function, result, reason):
    found = evaluate_step(make(function, result))
    assert found["verdict"] == "silent failure"
    assert reason in found["silent_failure_reason"]


@pytest.mark.parametrize(("function", "result"), LOUD)
def test_what_is_no_silent_failure(make, function, result):
    found = evaluate_step(make(function, result))
    assert (found["verdict"], found["silent_failure_reason"]) == ("success", None)


def test_an_error_beside_a_success_is_a_silent_failure(make):
    found = evaluate_step(make("f", "x", error="it broke"))
    assert (found["verdict"], found["silent_failure_reason"]) == ("silent failure", "an error is recorded: it broke")


def test_a_huge_message_is_shortened(make):
    assert len(evaluate_step(make("f", {"error": "x" * 100_000}))["silent_failure_reason"]) < 300


def test_several_plots_whose_list_was_cut_are_no_silent_failure(make):
    for text in ("{'multiple_plots': True, 'plots': [", "{'multiple_plots': True, 'plots': [{'html': None}, {'ht"):
        record = make("display_x", text) | {"result_metadata": {"truncated": [900, len(text)]}}
        assert evaluate_step(record)["silent_failure"] is False


@pytest.mark.parametrize("success", [False, None])
def test_only_a_reported_success_can_fail_in_silence(make, success):
    assert evaluate_step(make("display_x", None, success))["silent_failure"] is False


STRUCTURES = [
    ("perform_enrichment_analyses", ENRICHMENT, {"analyses": ["go", "kegg"]}, "complete", []),
    ("perform_enrichment_analyses", ENRICHMENT, {"analyses": ["reactome"]}, "partial", ["reactome: requested"]),
    ("perform_enrichment_analyses", {"go": {"top_terms": ["a"], "top_pvalues": [], "total_significant": 1}}, {},
     "complete", []),
    ("perform_enrichment_analyses", {"go": {"top_terms": ["a"], "top_pvalues": [0.1, 0.2], "total_significant": 1}}, {},
     "partial", ["go: 1 terms, 2 p-values"]),
    ("perform_enrichment_analyses", {"go": {"top_terms": ["a"], "top_pvalues": [1.5], "total_significant": 1}}, {},
     "partial", ["go: '1.5' is no p-value"]),
    ("perform_enrichment_analyses", {"go": {"top_terms": ["a", "b"], "top_pvalues": [0, 1], "total_significant": 1}},
     {}, "partial", ["go: 1 significant terms, but 2 are listed"]),
    ("perform_enrichment_analyses", {"go": {"top_terms": []}}, {}, "partial", ["go: the number"]),
    ("perform_enrichment_analyses", {"go": "oops"}, {}, "partial", ["go: not a structure"]),
    ("perform_enrichment_analyses", {"status": "cached_result"}, {}, "none", ["only a status"]),
    ("perform_enrichment_analyses", "Error", {}, "none", ["the result is str"]),
    ("dea_split_by_condition", EXPRESSION, {}, "complete", []),
    ("dea_split_by_condition", EXPRESSION["dea_results"], {}, "complete", []),
    ("dea_split_by_condition", [{"category": "x"}], {}, "partial", ["x: no list of genes"]),
    ("dea_split_by_condition", [5], {}, "partial", ["condition 1: no category"]),
    ("dea_split_by_condition", None, {}, "none", ["the result is nothing"]),
    ("compare_cell_counts", COUNTS, {}, "complete", []),
    ("compare_cell_counts", {"count_results": [{"category": "x", "cell_count": "many"}]}, {}, "partial",
     ["category 1"]),
    ("compare_cell_counts", "Error: nothing", {}, "none", ["the result is str"]),
    ("process_cells", CELLS, {}, "complete", []),
    ("unknown", {"a": 1}, {}, "complete", []),
]  # fmt: skip


@pytest.mark.parametrize(("function", "result", "parameters", "completeness", "issues"), STRUCTURES)
def test_structures_are_checked(make, function, result, parameters, completeness, issues):
    found = evaluate_step(make(function, result, kind="structured", parameters=parameters))
    assert found["data_completeness"] == completeness
    assert len(found["parsing_issues"]) == len(issues)
    assert all(found.startswith(start) for found, start in zip(found["parsing_issues"], issues, strict=True))
    unexpected = bool(issues) and issues[0].startswith("the result is")
    assert found["data_quality"] == ("unexpected_structure" if unexpected else "high_structured_access")


@pytest.mark.parametrize(
    ("length", "completeness", "issues"), [(500, "limited", ["truncation_likely"]), (400, "complete", [])]
)
def test_texts_are_judged_by_whether_they_were_cut(make, length, completeness, issues):
    found = evaluate_step(make("other", "x" * length))
    assert (found["data_quality"], found["data_completeness"]) == ("legacy_text_parsing", completeness)
    assert found["parsing_issues"] == issues
    assert found["truncated"] is bool(issues)
    assert found["function_evaluation"] == "generic_success"


def test_a_count_without_any_listed_term_is_an_issue(make):
    entry = {"top_terms": [], "top_pvalues": [], "total_significant": 5}
    found = evaluate_step(make("perform_enrichment_analyses", {"go": entry}, kind="structured"))
    assert found["parsing_issues"] == ["go: 5 significant terms, but none is listed"]
    assert found["data_completeness"] == "partial"


def test_an_error_beside_data_leaves_the_data_complete(make):
    found = evaluate_step(make("compare_cell_counts", COUNTS, kind="structured", error="late"))
    assert (found["verdict"], found["data_completeness"]) == ("silent failure", "complete")
    empty = evaluate_step(make("compare_cell_counts", {}, kind="structured", error="late"))
    assert (empty["verdict"], empty["data_completeness"]) == ("silent failure", "none")


def test_failed_statuses_are_options(make):
    record = make("process_cells", {"status": "leaf_node"})
    assert evaluate_step(record)["verdict"] == "success"
    assert evaluate_step(record, {}, Options(failed_statuses=("leaf_.*",)))["verdict"] == "silent failure"
