"""What results say, by function: structures, legacy text and cut text; and which successes are none."""

import pytest

from evalkit.steps import evaluate_step
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION


def checks_of(evaluation):
    return {one["name"]: one for one in evaluation["checks"]}


def several(*plots):
    return {"multiple_plots": True, "plots": list(plots)}


SILENT = [
    ("display_dotplot", "Dotplot not available for this cell type", "not available"),
    ("display_dotplot", "No enrichment results found", "No enrichment"),
    ("display_dotplot", "❌ Error: <b>no</b> data", "no</b> data"),
    ("display_dotplot", None, "no plot"),
    ("display_dotplot", several(), "no plot"),
    ("display_dotplot", several({"html": "Error: no data"}), "no data"),
    ("display_dotplot", "Success", "no plot"),  # what shape A made of None
    ("process_cells", "Process cells failed: no markers", "no markers"),
    ("process_cells", {"status": "no_cells_found", "message": "none of 354"}, "no_cells_found (none of 354)"),
    ("process_cells", {"status": "Annotation failed"}, "Annotation failed"),
    ("process_cells", "Process cells completed. group_to_cell_type = {}", "no group of cells was named"),
    ("dea_split_by_condition", {"status": "insufficient_cells", "dea_results": []}, "insufficient_cells"),
    ("dea_split_by_condition", {}, "no result"),
    ("dea_split_by_condition", "Success", "no result"),  # what shape A made of {} and None
    ("compare_cell_counts", "Error: no such category", "no such category"),
    ("search_enrichment_semantic", "{'error': \"it's" + "x" * 20, "it's"),  # cut inside the message
    ("anything", {"error": "x"}, "x"),
]
LOUD = [
    ("display_dotplot", "<html>Error bars, none found</html>"),
    ("display_dotplot", "plot was shown"),
    ("display_dotplot", several({"html": "<p>x</p>"}, {"html": None})),
    ("display_dotplot", {"type": "file_ref", "path": "a.html"}),
    ("process_cells", {"status": "leaf_node", "group_to_cell_type": {}}),
    ("process_cells", {"status": "insufficient_markers", "group_to_cell_type": {"0": "T cell"}}),
    ("process_cells", "group_to_cell_type = {"),  # cut right behind the bracket
    ("other", {"status": "failed"}),  # what its status means is not known
    ("dea_split_by_condition", {"dea_results": []}),
    ("perform_enrichment_analyses", {"status": "needs_processing"}),
    ("perform_enrichment_analyses", {"error": None, "go": {}}),
    ("perform_enrichment_analyses", "{'error': None, 'go': {}}"),
    ("perform_enrichment_analyses", "{'error': None, 'go': {'top_te"),
    ("conversational_response", "Error bars show that …"),
    (None, None),
]


@pytest.mark.parametrize(("function", "result", "reason"), [*SILENT, *((*case, None) for case in LOUD)])
def test_a_success_whose_result_says_otherwise_is_a_silent_failure(make, function, result, reason):
    found = evaluate_step(make(function, result))
    assert found["verdict"] == ("success" if reason is None else "silent failure")
    assert (reason or "") in (found["silent_failure_reason"] or "")


def test_a_recorded_error_is_a_silent_failure_and_long_messages_are_shortened(make):
    found = evaluate_step(make("f", "x", error="it broke"))
    assert (found["verdict"], found["silent_failure_reason"]) == ("silent failure", "an error is recorded: it broke")
    assert len(evaluate_step(make("f", {"error": "x" * 100_000}))["silent_failure_reason"]) < 300
    assert evaluate_step(make("display_x", None, None))["silent_failure"] is False  # success was not reported


def go(terms, p_values, total):
    return {"go": {"top_terms": terms, "top_pvalues": p_values, "total_significant": total}}


ENRICH, DEA, COUNT = "perform_enrichment_analyses", "dea_split_by_condition", "compare_cell_counts"
STRUCTURES = [
    # function, result, what was asked for: completeness, the beginnings of issues
    (ENRICH, ENRICHMENT, {"analyses": ["go", "kegg"]}, "complete", []),
    (ENRICH, ENRICHMENT, {"analyses": ["reactome"]}, "partial", ["reactome: requested"]),
    (ENRICH, go(["a"], [0.1, 0.2], 1), {}, "partial", ["go: 1 terms, 2 p-values"]),
    (ENRICH, go(["a"], [1.5], 1), {}, "partial", ["go: '1.5' is no p-value"]),
    (ENRICH, go(["a", "b"], [0, 1], 1), {}, "partial", ["go: 1 significant terms, but 2 are listed"]),
    (ENRICH, {"go": {"top_terms": []}}, {}, "partial", ["go: the number"]),
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
def test_structures_are_checked(make, function, result, parameters, completeness, issues):
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
def test_a_cut_result_is_limited_and_what_is_not_known_of_it_is_unknown(make, function, text):
    step = {"parameters": {"analyses": ["go", "kegg"]}, "expected_children": ["T cell", "B cell", "NK cell"]}
    record = make(function, text, kind="text", **step) | {"result_metadata": {"truncated": [900, len(text)]}}
    evaluation = evaluate_step(record)
    assert (evaluation["verdict"], evaluation["truncated"]) == ("success", True)
    assert (evaluation["data_quality"], evaluation["data_completeness"]) == ("legacy_text_parsing", "limited")
    assert evaluation["parsing_issues"] == ["truncation_likely"]
    assert 0 not in [
        one["score"] for name, one in checks_of(evaluation).items() if name not in ("text_kept", "structure")
    ]
    cells = evaluation.get("process_cells_evaluation", {"discovery_status": "unknown", "cell_type_count": None})
    assert cells["discovery_status"] == ("discovered" if cells.get("discovered_cell_types") else "unknown")
    assert cells["cell_type_count"] is cells.get("missing_children") is None
    assert evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways") is None


REMARKS = [
    # significant terms as stored: concerns, highlights
    (0, 2, []),
    (100, 0, []),
    ("354", 0, ["Rich pathway enrichment found (354 total)", "Successful methods: GO"]),  # numbers written as text
]


@pytest.mark.parametrize(("total", "concerns", "highlights"), REMARKS)
def test_concerns_and_highlights_of_an_enrichment(make, total, concerns, highlights):
    entry = {"top_terms": ["a"] * bool(total), "top_pvalues": [], "total_significant": total}
    found = evaluate_step(make("perform_enrichment_analyses", {"go": entry}))["enrichment_evaluation"]
    assert (found["pathway_counts"], len(found["concerns"])) == ({"go": int(total)}, concerns)
    assert found["highlights"] == highlights


SIGNIFICANT = [
    # terms listed (None: no list), their number: whether the method counts as successful
    (["a"], 1, True),
    (None, 5, True),  # the count is known, the list was not kept
    (["a"], None, True),  # the list is there, the count is not
    ([], 0, False),
    ([], 5, False),  # the list is whole, and empty
    (None, None, False),
]


@pytest.mark.parametrize(("terms", "total", "successful"), SIGNIFICANT)
def test_a_method_is_successful_only_where_it_has_terms(make, terms, total, successful):
    entry = {key: value for key, value in (("top_terms", terms), ("total_significant", total)) if value is not None}
    found = evaluate_step(make("perform_enrichment_analyses", {"go": entry}, kind="structured"))
    assert found["enrichment_evaluation"]["successful_methods"] == ["GO"] * successful


GO, KEGG = ({"top_terms": [], "top_pvalues": [], "total_significant": n} for n in (0, 1))
BOTH, ONLY_KEGG = {"analyses": ["go", "kegg"]}, {"analyses": ["kegg"]}
TOTALS = [
    # a result, what was asked for: the total, counts
    ({"go": GO, "kegg": KEGG}, BOTH, 1, {"go": 0, "kegg": 1}),
    ({"GO": "failed", "kegg": KEGG}, BOTH, None, {"go": None, "kegg": 1}),
    ({"kegg": KEGG}, BOTH, None, {"go": None, "kegg": 1}),
    ({"go": None, "kegg": KEGG}, {}, None, {"go": None, "kegg": 1}),
    ({"go": None, "kegg": KEGG}, ONLY_KEGG, 1, {"kegg": 1}),
    ({"status": "cached_result"}, BOTH, None, {"go": None, "kegg": None}),
]


@pytest.mark.parametrize(("result", "parameters", "total", "counts"), TOTALS)
def test_a_total_is_unknown_where_a_method_that_was_asked_for_is(make, result, parameters, total, counts):
    evaluation = evaluate_step(make("perform_enrichment_analyses", result, parameters=parameters))
    found, checks = evaluation["enrichment_evaluation"], checks_of(evaluation)
    assert (found["total_significant_pathways"], found["pathway_counts"]) == (total, counts)
    assert checks["pathways_found"]["label"] == ("unknown" if total is None else str(total))
    if parameters == BOTH:
        assert checks["requested_methods"]["score"] == sum(n is not None for n in counts.values()) / 2


PLOTS = [
    # a result: type, whether HTML was made, its length, number of plots, status
    ("<div>" + "x" * 495, "html", True, 500, 1, "generated"),
    (several({"html": "<p>1</p>"}, {"html": "<p>22</p>"}), "multiple_plots", True, 17, 2, "generated"),
    (several(), "multiple_plots", False, 0, 0, "no_plot"),
    ({"type": "file_ref", "path": "a/b.html"}, "file_ref", False, None, 1, "stored_in_file"),
    ("{'type': 'file_ref', 'path': 'a/b.html'}", "file_ref", False, None, 1, "stored_in_file"),
    ("Dotplot not available", "text", False, 0, 0, "message_instead"),
    (None, "none", False, 0, 0, "no_plot"),
]


@pytest.mark.parametrize(("result", "kind", "generated", "length", "plots", "status"), PLOTS)
def test_plots_are_judged_as_plots(make, result, kind, generated, length, plots, status):
    found = evaluate_step(make("display_dotplot", result))["visualization_evaluation"]
    expected = {"type": kind, "html_generated": generated, "html_length": length, "plots": plots, "status": status}
    assert {key: found[key] for key in expected} == expected


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
    plot = found["visualization_evaluation"]
    generated = None if kind == "unknown" else True
    assert (plot["type"], plot["html_generated"], plot["html_length"]) == (kind, generated, None)
    assert (found["verdict"], "parsing_issues" in found) == ("success", False)
    assert checks_of(found)["plot"]["score"] == (None if kind == "unknown" else 1)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ("Process cells completed, but no new cell types were discovered.", "no_new_cell_types"),
        ("Process cells failed: x", "failed"),
        ({"status": "leaf_node"}, "leaf_node"),
        ("{'status': 'no_cells_found', 'cell_type': 'B cell'}", "no_cells_found"),
        ("group_to_cell_type = {}", "empty_mapping"),
        ("something else", "unknown"),
        (None, "no_result"),
    ],
)
def test_how_a_discovery_ended(make, result, status):
    evaluation = evaluate_step(make("process_cells", result))
    found, discovery = evaluation["process_cells_evaluation"], checks_of(evaluation)["discovery"]
    assert (found["discovery_status"], found["discovered_cell_types"], discovery["label"]) == (status, [], status)
    assert evaluation["data_completeness"] == ("complete" if status == "unknown" else "none")
    assert (evaluation["verdict"] == "success") is (status in ("no_new_cell_types", "leaf_node", "unknown"))
    assert discovery["score"] == (None if status in ("leaf_node", "unknown") else 0)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Discovered new cell type: T cell", ["T cell"]),
        ("✅ discovered new cell type : T cell.\nDiscovered new cell type: B cell\nDone.", ["T cell", "B cell"]),
        ("Discovered new cell types: ['T cell', 'B cell']", ["T cell", "B cell"]),
        ({"status": "completed", "message": "Discovered new cell type: T cell"}, ["T cell"]),
    ],
)
def test_discoveries_in_words_are_read(make, text, types):
    evaluation = evaluate_step(make("process_cells", text))
    found = evaluation["process_cells_evaluation"]
    assert (found["discovery_status"], found["discovered_cell_types"]) == ("discovered", types)
    assert (found["cell_type_count"], found["group_count"]) == (len(types), None)
    assert (evaluation["verdict"], evaluation["data_completeness"]) == ("success", "complete")


MATCHES = str({"search_results": {"results": [{"term": "a"}, {"term": "b"}], "total_matches": 77}})
SEARCHES = [
    # a result: the number of matches, the message
    ({"search_results": {"total_matches": 7, "results": [{"term": "a"}]}}, 7, None),
    ("{'search_results': {'total_matches': 7, 'results': [", 7, None),
    (MATCHES, 77, None),
    (MATCHES[: MATCHES.index("77")], None, None),
    ({"error": "x", "results": [], "total_matches": 0}, None, "x"),
    ({"search_results": {"error": "x", "results": [], "total_matches": 0}}, None, "x"),
]


@pytest.mark.parametrize(("result", "total", "message"), SEARCHES)
def test_the_matches_of_a_search_are_unknown_where_it_failed_or_was_cut(make, result, total, message):
    evaluation = evaluate_step(make("search_enrichment_semantic", result))
    found = evaluation["search_evaluation"]
    assert (found["total_matches"], found["message"]) == (total, message)
    assert evaluation["verdict"] == ("silent failure" if message == "x" else "success")
    assert checks_of(evaluation)["search_matches"]["score"] == (None if total is None else total > 0)


def test_an_empty_list_is_0_and_unknown_beside_an_error(make):
    for error, n in (({}, 0), ({"error": "x"}, None)):
        found = evaluate_step(make("dea_split_by_condition", {"dea_results": [], **error}, kind="structured"))
        assert found["dea_evaluation"]["condition_count"] == n


def test_what_an_enrichment_and_a_discovery_hold(make):
    evaluation = evaluate_step(make("perform_enrichment_analyses", ENRICHMENT, kind="structured"))
    assert evaluation["enrichment_evaluation"] == {
        "pathway_counts": {"go": 12, "kegg": 3, "gsea": 0}, "total_significant_pathways": 15, "method_count": 2,
        "successful_methods": ["GO", "KEGG"], "data_quality": "high_structured_access", "status": None,
        "top_pathways": {"go": ["a", "b", "c"], "kegg": ["k1", "k2", "k3"]}, "concerns": [], "highlights": [],
    }  # fmt: skip
    record = make("process_cells", CELLS, kind="structured", expected_children=["T cells", "NK cell"])
    found = evaluate_step(record)["process_cells_evaluation"]
    assert (found["discovery_status"], found["discovered_cell_types"]) == ("discovered", ["T cell", "B cell"])
    assert (found["cell_type_count"], found["group_count"]) == (2, 3)
    assert (found["missing_children"], found["unexpected_children"]) == (["NK cell"], ["B cell"])
