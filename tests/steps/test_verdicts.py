import pytest

from evalkit.steps.records import normalise_record
from evalkit.steps.verdicts import silent_failure, verdict
from tests.steps.cases import CELLS

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
    record = normalise_record(make(function, result))
    assert reason in silent_failure(record)
    assert verdict(record) == "silent failure"


@pytest.mark.parametrize(("function", "result"), LOUD)
def test_what_is_no_silent_failure(make, function, result):
    record = normalise_record(make(function, result))
    assert silent_failure(record) is None
    assert verdict(record) == "success"


def test_an_error_beside_a_success_is_a_silent_failure(make):
    assert silent_failure(normalise_record(make("f", "x", error="it broke"))) == "an error is recorded: it broke"


def test_a_huge_message_is_shortened(make):
    assert len(silent_failure(normalise_record(make("f", {"error": "x" * 100_000})))) < 300


def test_several_plots_whose_list_was_cut_are_no_silent_failure(make):
    for text in ("{'multiple_plots': True, 'plots': [", "{'multiple_plots': True, 'plots': [{'html': None}, {'ht"):
        record = normalise_record(make("display_x", text) | {"result_metadata": {"truncated": [900, len(text)]}})
        assert silent_failure(record) is None


@pytest.mark.parametrize("success", [False, None])
def test_only_a_reported_success_can_fail_in_silence(make, success):
    assert silent_failure(normalise_record(make("display_x", None, success))) is None
