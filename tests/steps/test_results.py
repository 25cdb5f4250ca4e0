"""What results say, by function: structures, legacy text and cut text; and which successes are none."""

import pytest

from evalkit.steps import evaluate_step
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION, make


def several(*plots):
    return {"multiple_plots": True, "plots": list(plots)}


SILENT = [
    ("display_dotplot", "No enrichment results found", "No enrichment"),
    ("display_dotplot", "❌ Error: <b>no</b> data", "no</b> data"),
    ("display_dotplot", several({"html": "Error: no data"}), "no data"),
    ("display_dotplot", "Success", "no plot"),  # what shape A made of None
    ("process_cells", "Process cells failed: no markers", "no markers"),
    ("process_cells", {"status": "no_cells_found", "message": "none of 354"}, "no_cells_found (none of 354)"),
    ("process_cells", {"status": "Annotation failed"}, "Annotation failed"),
    ("dea_split_by_condition", {"status": "insufficient_cells", "dea_results": []}, "insufficient_cells"),
    ("dea_split_by_condition", {}, "no result"),
    ("dea_split_by_condition", "Success", "no result"),  # what shape A made of {} and None
    ("compare_cell_counts", "Error: no such category", "no such category"),
    ("search_enrichment_semantic", "{'error': \"it's" + "x" * 20, "it's"),  # cut inside the message
]
LOUD = [  # further ones are in `SAID`
    ("display_dotplot", "<html>Error bars, none found</html>"),
    ("display_dotplot", "plot was shown"),
    ("display_dotplot", several({"html": "<p>x</p>"}, {"html": None})),
    ("process_cells", {"status": "insufficient_markers", "group_to_cell_type": {"0": "T cell"}}),
    ("process_cells", "group_to_cell_type = {"),  # cut right behind the bracket
    ("other", {"status": "failed"}),  # what its status means is not known
    ("dea_split_by_condition", {"dea_results": []}),
    ("perform_enrichment_analyses", {"status": "needs_processing"}),
    ("perform_enrichment_analyses", "{'error': None, 'go': {}}"),
    ("perform_enrichment_analyses", "{'error': None, 'go': {'top_te"),
    ("conversational_response", "Error bars show that …"),
    (None, None),
]


@pytest.mark.parametrize(("function", "result", "reason"), [*SILENT, *((*case, None) for case in LOUD)])
def test_a_success_whose_result_says_otherwise_is_a_silent_failure(function, result, reason):
    found = evaluate_step(make(function, result))
    assert found["verdict"] == ("success" if reason is None else "silent failure")
    assert (reason or "") in (found["silent_failure_reason"] or "")


def test_a_recorded_error_is_a_silent_failure_and_long_messages_are_shortened():
    found = evaluate_step(make("f", "x", error="it broke"))
    assert (found["verdict"], found["silent_failure_reason"]) == ("silent failure", "an error is recorded: it broke")
    assert len(evaluate_step(make("f", {"error": "x" * 100_000}))["silent_failure_reason"]) < 300
    assert evaluate_step(make("display_x", None, None))["silent_failure"] is False  # success was not reported


def go(terms=None, total=None, p_values=None):
    """Make an enrichment with what is given of one method."""
    given = {"top_terms": terms, "top_pvalues": p_values, "total_significant": total}
    return {"go": {key: value for key, value in given.items() if value is not None}}


ENRICH, DEA, COUNT = "perform_enrichment_analyses", "dea_split_by_condition", "compare_cell_counts"
CELL_TYPES, SEARCH, PLOT = "process_cells", "search_enrichment_semantic", "display_dotplot"
STRUCTURES = [
    # function, result, what was asked for: completeness, the beginnings of issues
    (ENRICH, ENRICHMENT, {"analyses": ["go", "kegg"]}, "complete", []),
    (ENRICH, ENRICHMENT, {"analyses": ["reactome"]}, "partial", ["reactome: requested"]),
    (ENRICH, go(["a"], 1, [0.1, 0.2]), {}, "partial", ["go: 1 terms, 2 p-values"]),
    (ENRICH, go(["a"], 1, [1.5]), {}, "partial", ["go: '1.5' is no p-value"]),
    (ENRICH, go(["a", "b"], 1, [0, 1]), {}, "partial", ["go: 1 significant terms, but 2 are listed"]),
    (ENRICH, go([]), {}, "partial", ["go: the number"]),
    (ENRICH, {"go": "oops"}, {}, "partial", ["go: not a structure"]),
    (ENRICH, {"status": "cached_result"}, {}, "none", ["only a status"]),
    (ENRICH, "Error", {}, "none", ["the result is str"]),
    (DEA, EXPRESSION, {}, "complete", []),
    (DEA, [{"category": "x"}], {}, "partial", ["x: no list of genes"]),
    (DEA, [5], {}, "partial", ["condition 1: no category"]),
    (DEA, None, {}, "none", ["the result is nothing"]),
    (COUNT, {"count_results": [{"category": "x", "cell_count": "many"}]}, {}, "partial", ["x: no number"]),
    ("unknown", {"a": 1}, {}, "complete", []),
]


@pytest.mark.parametrize(("function", "result", "parameters", "completeness", "issues"), STRUCTURES)
def test_structures_are_checked(function, result, parameters, completeness, issues):
    found = evaluate_step(make(function, result, kind="structured", parameters=parameters))
    assert found["data_completeness"] == completeness
    assert len(found["parsing_issues"]) == len(issues)
    assert all(found.startswith(start) for found, start in zip(found["parsing_issues"], issues, strict=True))
    unexpected = bool(issues) and issues[0].startswith("the result is")
    assert found["data_quality"] == ("unexpected_structure" if unexpected else "high_structured_access")


CUT = [
    ("process_cells", "Annotating the clusters of PBMC with 1200 cells and their mark"),
    ("process_cells", "Process cells completed. group_to_cell_type = {"),
    ("process_cells", CELLS[:-20]),
    ("perform_enrichment_analyses", str(ENRICHMENT)[:130]),
    ("dea_split_by_condition", str(EXPRESSION)[:60]),
    ("compare_cell_counts", str(COUNTS)[:70]),
    ("search_enrichment_semantic", "{'search_results': {'results': [{'term': 'a'}, {'te"),
]


@pytest.mark.parametrize(("function", "text"), CUT)
def test_a_cut_result_is_limited_and_what_is_not_known_of_it_is_unknown(function, text):
    step = {"parameters": {"analyses": ["go", "kegg"]}, "expected_children": ["T cell", "B cell", "NK cell"]}
    record = make(function, text, kind="text", **step) | {"result_metadata": {"truncated": [900, len(text)]}}
    evaluation = evaluate_step(record)
    assert (evaluation["verdict"], evaluation["truncated"]) == ("success", True)
    assert (evaluation["data_quality"], evaluation["data_completeness"]) == ("legacy_text_parsing", "limited")
    assert evaluation["parsing_issues"] == ["truncation_likely"]
    checks = [one for one in evaluation["checks"] if one["name"] not in ("text_kept", "structure")]
    assert 0 not in [one["score"] for one in checks]
    cells = evaluation.get("process_cells_evaluation", {"discovery_status": "unknown", "cell_type_count": None})
    assert cells["discovery_status"] == ("discovered" if cells.get("discovered_cell_types") else "unknown")
    assert cells["cell_type_count"] is cells.get("missing_children") is None
    assert evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways") is None


KEGG, BOTH = {"kegg": go([], 1)["go"]}, {"parameters": {"analyses": ["go", "kegg"]}}
ONLY_KEGG, NO_TYPES = {"parameters": {"analyses": ["kegg"]}}, {"discovered_cell_types": []}
CHILDREN, EMPTY = {"expected_children": ["T cells", "NK cell"]}, {"dea_results": []}
MATCHES = str({"search_results": {"results": [{"term": "a"}, {"term": "b"}], "total_matches": 77}})
FAILED = {"error": "x", "results": [], "total_matches": 0}
SILENTLY, LOUDLY = {"verdict": "silent failure"}, {"verdict": "success"}
EVERY = {  # every evaluation says these
    "step_index": 0, "function_name": ENRICH, "success": True, "result_type": "structured", "attempt": 1,
    "evaluation_version": "v1_checking_only", "critical_failure": False, "silent_failure": False,
    "silent_failure_reason": None, "truncated": False, **LOUDLY,
}  # fmt: skip
NONE = {"html_length": 0, "plots": 0, "status": "no_plot", "plot": 0, **SILENTLY}
HTML = {"type": "html", "html_generated": True, "plots": 1, "status": "generated", "plot": 1, **LOUDLY}
FILE = {"type": "file_ref", "html_generated": False, "html_length": None, "plots": 1, "status": "stored_in_file"}
SAID = [
    # function, result, further keys of the step: what the evaluation says, that of the function, and checks
    (ENRICH, ENRICHMENT, {}, {
        "pathway_counts": {"go": 12, "kegg": 3, "gsea": 0}, "total_significant_pathways": 15, "method_count": 2,
        "successful_methods": ["GO", "KEGG"], "data_quality": "high_structured_access", "status": None,
        "top_pathways": {"GO": ["a", "b", "c"], "KEGG": ["k1", "k2", "k3"]}, "concerns": [], "highlights": []} | EVERY),
    # concerns and highlights; numbers may be written as text
    (ENRICH, go([], 0), {}, {"concerns": ["No significant pathways found in any method",
                                          "Consider adjusting parameters or trying different approaches"],
                             "successful_methods": []}),
    (ENRICH, go(["a"], 100), {}, {"concerns": [], "highlights": [], "successful_methods": ["GO"]}),
    (ENRICH, go(["a"], "354"), {}, {"highlights": ["Rich pathway enrichment found (354 total)",
                                                   "Successful methods: GO"]}),
    # a method is successful only where it has terms
    (ENRICH, go(None, 5), {}, {"successful_methods": ["GO"]}),  # the count is known, the list was not kept
    (ENRICH, go(["a"], None), {}, {"successful_methods": ["GO"]}),  # the list is there, the count is not
    (ENRICH, go([], 5), {}, {"successful_methods": []}),  # the list is whole, and empty
    (ENRICH, go(), {}, {"successful_methods": []}),
    # a total is unknown where a method that was asked for is
    (ENRICH, {**go([], 0), **KEGG}, BOTH, {"total_significant_pathways": 1, "pathway_counts": {"go": 0, "kegg": 1},
                                           "pathways_found": 1, "requested_methods": 1}),
    (ENRICH, {"GO": "failed", **KEGG}, BOTH, {"total_significant_pathways": None, "requested_methods": 0.5,
                                              "pathway_counts": {"go": None, "kegg": 1}, "pathways_found": None}),
    (ENRICH, KEGG, BOTH, {"total_significant_pathways": None, "pathway_counts": {"go": None, "kegg": 1}}),
    (ENRICH, {"go": None, **KEGG}, {}, {"total_significant_pathways": None}),
    (ENRICH, {"go": None, **KEGG}, ONLY_KEGG, {"total_significant_pathways": 1, "pathway_counts": {"kegg": 1}}),
    (ENRICH, {"status": "cached_result"}, BOTH, {"total_significant_pathways": None, "requested_methods": 0}),
    (PLOT, "<div>" + "x" * 495, {}, {**HTML, "html_length": 500}),
    (PLOT, several({"html": "<p>1</p>"}, {"html": "<p>22</p>"}), {},
     {**HTML, "type": "multiple_plots", "html_length": 17, "plots": 2}),
    (PLOT, several(), {}, {**NONE, "type": "multiple_plots"}),
    (PLOT, {"type": "file_ref", "path": "a/b.html"}, {}, FILE | LOUDLY),
    (PLOT, "{'type': 'file_ref', 'path': 'a/b.html'}", {}, FILE),
    (PLOT, "Dotplot not available", {},
     {"type": "text", "html_generated": False, "status": "message_instead", **SILENTLY}),
    (PLOT, None, {}, {**NONE, "type": "none", "html_generated": False}),
    (CELL_TYPES, CELLS, CHILDREN, {
        "discovery_status": "discovered", "discovered_cell_types": ["T cell", "B cell"], "cell_type_count": 2,
        "group_count": 3, "missing_children": ["NK cell"], "unexpected_children": ["B cell"],
        "expected_cell_types": 0.5, "discovery": 1}),
    (CELL_TYPES, "Process cells completed, but no new cell types were discovered.", {},
     {**NO_TYPES, "discovery_status": "no_new_cell_types", "verdict": "success", "data_completeness": "none"}),
    (CELL_TYPES, "Process cells failed: x", {}, {**NO_TYPES, "discovery_status": "failed", "discovery": 0}),
    (CELL_TYPES, "Process cells failed: group_to_cell_type = {", CHILDREN, {
        **NO_TYPES, "partial": False, "cell_type_count": 0, "expected_cell_types": 0}),  # what was cut is no discovery
    (CELL_TYPES, {"status": "leaf_node"}, {},
     {**NO_TYPES, "discovery_status": "leaf_node", "discovery": None, "verdict": "success"}),
    (CELL_TYPES, "{'status': 'no_cells_found', 'cell_type': 'B cell'}", {},
     {**NO_TYPES, "discovery_status": "no_cells_found", "discovery": 0, "verdict": "silent failure"}),
    (CELL_TYPES, "group_to_cell_type = {}", {}, {**NO_TYPES, **SILENTLY, "discovery_status": "empty_mapping"}),
    (CELL_TYPES, "something else", {},
     {**NO_TYPES, "discovery_status": "unknown", "discovery": None, "data_completeness": "complete"}),
    (CELL_TYPES, None, {}, {**NO_TYPES, "discovery_status": "no_result", "verdict": "silent failure"}),
    # discoveries in words
    (CELL_TYPES, "✅ discovered new cell type : T cell.\nDiscovered new cell type: B cell\nDone.", {},
     {"discovered_cell_types": ["T cell", "B cell"], "discovery_status": "discovered", "group_count": None,
      "verdict": "success", "data_completeness": "complete"}),
    (CELL_TYPES, "Discovered new cell types: ['T cell', 'B cell']", {},
     {"discovered_cell_types": ["T cell", "B cell"], "cell_type_count": 2}),
    (CELL_TYPES, {"status": "completed", "message": "Discovered new cell type: T cell"}, {},
     {"discovered_cell_types": ["T cell"], "verdict": "success"}),
    # the matches of a search are unknown where it failed or was cut
    (SEARCH, {"search_results": {"total_matches": 7, "results": [{"term": "a"}]}}, {},
     {"total_matches": 7, "message": None, "search_matches": 1, "verdict": "success"}),
    (SEARCH, "{'search_results': {'total_matches': 7, 'results': [", {}, {"total_matches": 7, "verdict": "success"}),
    (SEARCH, MATCHES, {}, {"total_matches": 77}),
    (SEARCH, MATCHES[: MATCHES.index("77")], {}, {"total_matches": None, "search_matches": None, "verdict": "success"}),
    (SEARCH, FAILED, {}, {"total_matches": None, "message": "x", **SILENTLY, "search_matches is": "unknown"}),
    (SEARCH, {"search_results": FAILED}, {}, {"total_matches": None, "message": "x", **SILENTLY}),
    (SEARCH, {"results": []}, {}, {"total_matches": 0, "search_matches": 0, "search_matches is": "no matches"}),
    (DEA, EXPRESSION, {}, {"genes_per_condition": {"healthy": 2, "ill": 0}, "empty_conditions": ["ill"],
                           "condition_count": 2, "conditions_with_genes": 0.5}),
    (COUNT, COUNTS, {}, {"cells_per_category": {"x": 354, "y": 0}, "empty_categories": ["y"], "category_count": 2,
                         "total_cells": 354}),
    # an empty list is 0, and unknown beside an error
    (DEA, EMPTY, {}, {"condition_count": 0, "conditions_with_genes is": "no conditions"}),
    (DEA, {**EMPTY, "error": "x"}, {}, {"condition_count": None}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "result", "step", "expected"), SAID)
def test_evaluations_of_known_functions_have_their_own_keys(function, result, step, expected):
    evaluation = evaluate_step(make(function, result, **step))
    said = evaluation | {f"{one['name']} is": one["label"] for one in evaluation["checks"]}
    said |= {one["name"]: one["score"] for one in evaluation["checks"]}
    for key, of_function in evaluation.items():
        said |= of_function if key.endswith("_evaluation") else {}
    assert {key: said[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<div>" + "x" * 495, "html"),
        ("{'multiple_plots': True, 'plots': [{'html': '<div>".ljust(500, "x"), "multiple_plots"),
        ("{'type': 'dotplot', 'html': '<div>xxxx".ljust(500, "x"), "unknown"),  # its HTML was cut away
    ],
)
def test_a_plot_cut_on_disk_is_no_failure_and_of_unknown_length(text, kind):
    found = evaluate_step({"function_name": "display_x", "success": True, "result_summary": text})
    plot, made = found["visualization_evaluation"], None if kind == "unknown" else True
    assert (plot["type"], plot["html_generated"], plot["html_length"]) == (kind, made, None)
    assert (found["verdict"], "parsing_issues" in found) == ("success", False)
    assert [one["score"] for one in found["checks"] if one["name"] == "plot"] == [made]
