import logging

import pytest

from evalkit.steps import check, evaluate_step, evaluates, format_step_evaluation, steps_df
from evalkit.steps.judge import EVALUATORS, evaluator_for
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION


def test_enrichment(make):
    found = evaluate_step(make("perform_enrichment_analyses", ENRICHMENT, kind="structured"))
    assert found["data_quality"] == "high_structured_access"
    assert found["enrichment_evaluation"] == {
        "pathway_counts": {"go": 12, "kegg": 3, "gsea": 0},
        "total_significant_pathways": 15,
        "successful_methods": ["GO", "KEGG"],
        "method_count": 2,
        "data_quality": "high_structured_access",
        "top_pathways": {"go": ["a", "b", "c"], "kegg": ["k1", "k2", "k3"]},
        "status": None,
        "concerns": [],
        "highlights": [],
    }


def test_enrichment_without_any_pathway_is_a_concern(make):
    none = {"go": {"top_terms": [], "top_pvalues": [], "total_significant": 0}}
    found = evaluate_step(make("perform_enrichment_analyses", none, kind="structured"))["enrichment_evaluation"]
    assert found["concerns"] == [
        "No significant pathways found in any method",
        "Consider adjusting parameters or trying different approaches",
    ]


@pytest.mark.parametrize(("total", "rich"), [(100, False), (101, True)])
def test_more_than_a_hundred_pathways_are_rich(make, total, rich):
    result = {"go": {"top_terms": ["a"], "top_pvalues": [0.1], "total_significant": total}}
    found = evaluate_step(make("perform_enrichment_analyses", result, kind="structured"))["enrichment_evaluation"]
    assert found["highlights"] == (
        [f"Rich pathway enrichment found ({total} total)", "Successful methods: GO"] if rich else []
    )


def test_numbers_written_as_text_count(make):
    result = {"go": {"top_terms": ["a"], "top_pvalues": ["0.01"], "total_significant": "354"}}
    found = evaluate_step(make("perform_enrichment_analyses", result, kind="structured"))
    assert found["enrichment_evaluation"]["pathway_counts"] == {"go": 354}
    assert found["parsing_issues"] == []


def test_a_status_is_no_enrichment(make):
    found = evaluate_step(make("perform_enrichment_analyses", {"status": "needs_processing"}, kind="structured"))
    assert found["enrichment_evaluation"]["total_significant_pathways"] is None
    assert found["enrichment_evaluation"]["concerns"] == ["No method has a result (status: needs_processing)"]
    assert found["silent_failure"] is False


def test_no_count_is_invented_from_cut_text(make):
    text = str(ENRICHMENT)[:130]
    found = evaluate_step(make("perform_enrichment_analyses", text, parameters={"analyses": ["go", "kegg"]}))
    enrichment = found["enrichment_evaluation"]
    assert enrichment["pathway_counts"] == {"go": 12, "kegg": None}
    assert enrichment["total_significant_pathways"] is None
    assert enrichment["concerns"] == []
    annotation = evaluate_step(make("process_cells", CELLS[:-20]))["process_cells_evaluation"]
    assert (annotation["cell_type_count"], annotation["group_count"], annotation["partial"]) == (None, None, True)
    assert annotation["discovered_cell_types"] == ["T cell"]
    expression = evaluate_step(make("dea_split_by_condition", str(EXPRESSION)[:60]))["dea_evaluation"]
    assert expression["condition_count"] is None
    assert expression["genes_per_condition"] == {"healthy": None}
    counts = evaluate_step(make("compare_cell_counts", str(COUNTS)[:70]))["cell_counts_evaluation"]
    assert (counts["total_cells"], counts["category_count"]) == (None, None)
    search = evaluate_step(make("search_enrichment_semantic", "{'search_results': {'results': [{'term': 'a'}, {'te"))
    assert search["search_evaluation"]["total_matches"] is None
    assert search["search_evaluation"]["top_results"] == ["a"]


SIGNIFICANT = [
    # a method's entry: whether it counts as successful
    ({"top_terms": ["a"], "top_pvalues": [0.1], "total_significant": 1}, True),
    ({"total_significant": 5}, True),  # the count is known, the list was not kept
    ({"top_terms": ["a"], "top_pvalues": [0.1]}, True),  # the list is there, the count is not
    ({"top_terms": [], "top_pvalues": [], "total_significant": 0}, False),
    ({"top_terms": [], "top_pvalues": [], "total_significant": 5}, False),  # the list is whole, and empty
    ({"top_terms": ["a"], "top_pvalues": [0.9], "total_significant": 0}, False),
    ({}, False),
]


@pytest.mark.parametrize(("entry", "successful"), SIGNIFICANT)
def test_a_method_is_successful_only_where_it_has_terms(make, entry, successful):
    found = evaluate_step(make("perform_enrichment_analyses", {"go": entry}, kind="structured"))
    assert found["enrichment_evaluation"]["successful_methods"] == ["GO"] * successful


PLOTS = [
    ("<div>" + "x" * 495, "html", True, 500, 1, "generated"),
    ("\n  <!DOCTYPE html><html></html>", "html", True, 31, 1, "generated"),
    ({"multiple_plots": True, "plots": [{"html": "<p>1</p>"}, {"html": "<p>22</p>"}]}, "multiple_plots", True, 17, 2,
     "generated"),
    ({"multiple_plots": True, "plots": []}, "multiple_plots", False, 0, 0, "no_plot"),
    ({"type": "file_ref", "path": "a/b.html"}, "file_ref", False, None, 1, "stored_in_file"),
    ("{'type': 'file_ref', 'path': 'a/b.html'}", "file_ref", False, None, 1, "stored_in_file"),
    ({"multiple_plots": True, "plots": [{"html": "<p>1</p>"}, {"type": "file_ref", "path": "a.html"}]},
     "multiple_plots", True, None, 2, "generated"),
    ({"multiple_plots": True, "plots": [{"html": "<p>1</p>", "path": "a.html"}]}, "multiple_plots", True, 8, 1,
     "generated"),
    ("data:image/png;base64,AAAA", "image", False, 0, 1, "image"),
    ("Dotplot not available", "text", False, 0, 0, "message_instead"),
    (None, "none", False, 0, 0, "no_plot"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "kind", "generated", "length", "plots", "status"), PLOTS)
@pytest.mark.parametrize("shape", [None, "visualization"])
def test_plots_are_judged_as_plots(make, shape, result, kind, generated, length, plots, status):
    found = evaluate_step(make("display_dotplot", result, kind=shape))
    judged = found["visualization_evaluation"]
    shown = (judged["type"], judged["html_generated"], judged["html_length"], judged["plots"], judged["status"])
    assert shown == (kind, generated, length, plots, status)
    assert "data_quality" not in found
    assert "parsing_issues" not in found
    assert "text_kept" not in {made["name"] for made in found["checks"]}


@pytest.mark.parametrize(
    "page", ["<div>" + "x" * 495, "{'multiple_plots': True, 'plots': [{'html': '<div>".ljust(500, "x")]
)
def test_a_plot_cut_on_disk_is_a_plot_of_unknown_length(page):
    found = evaluate_step({"function_name": "display_x", "success": True, "result_summary": page.ljust(500, "x")})
    assert found["visualization_evaluation"]["html_generated"] is True
    assert found["visualization_evaluation"]["html_length"] is None
    assert found["silent_failure"] is False
    assert "parsing_issues" not in found


@pytest.mark.parametrize("text", ["{'type': 'dotplot', 'html': '<div>xxxx", "{'title': 'T cell', 'ht"])
def test_a_plot_whose_html_was_cut_away_is_unknown_and_no_failure(make, text):
    record = make("display_x", text, kind="visualization") | {"result_metadata": {"truncated": [900, len(text)]}}
    evaluation = evaluate_step(record)
    judged = evaluation["visualization_evaluation"]
    assert (judged["type"], judged["status"], judged["plots"], judged["html_generated"]) == (
        "unknown", "unknown", None, None,
    )  # fmt: skip
    assert evaluation["verdict"] == "success"
    assert {check["score"] for check in evaluation["checks"] if check["name"] == "plot"} == {None}


def test_discovered_cell_types_are_compared_with_the_expected(make):
    record = make("process_cells", CELLS, kind="structured", expected_children=["T cells", "NK cell"])
    found = evaluate_step(record)["process_cells_evaluation"]
    assert found["discovery_status"] == "discovered"
    assert found["discovered_cell_types"] == ["T cell", "B cell"]
    assert (found["cell_type_count"], found["group_count"]) == (2, 3)
    assert found["missing_children"] == ["NK cell"]
    assert found["unexpected_children"] == ["B cell"]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ("Process cells completed, but no new cell types were discovered.", "no_new_cell_types"),
        ("Process cells failed: x", "failed"),
        ("Error: no markers", "failed"),
        ({"status": "leaf_node"}, "leaf_node"),
        ({"status": "insufficient_markers"}, "insufficient_markers"),
        ("{'status': 'no_cells_found', 'cell_type': 'B cell'}", "no_cells_found"),
        ("group_to_cell_type = {}", "empty_mapping"),
        ("something else", "unknown"),
        (None, "no_result"),
    ],
)
def test_how_a_discovery_ended(make, result, status):
    for kind in (None, "structured"):
        evaluation = evaluate_step(make("process_cells", result, kind=kind))
        assert evaluation["process_cells_evaluation"]["discovery_status"] == status
        assert evaluation["process_cells_evaluation"]["discovered_cell_types"] == []
        assert evaluation["data_completeness"] == ("complete" if status == "unknown" else "none")
        assert (evaluation["verdict"] == "success") is (status in ("no_new_cell_types", "leaf_node", "unknown"))
        [discovery] = [check for check in evaluation["checks"] if check["name"] == "discovery"]
        assert discovery["label"] == status
        assert discovery["score"] == (None if status in ("leaf_node", "unknown") else 0)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Discovered new cell type: T cell", ["T cell"]),
        ("✅ discovered new cell type : T cell.\nDiscovered new cell type: B cell\nDone.", ["T cell", "B cell"]),
        ("Discovered new cell type: CD4-positive, alpha-beta T cell", ["CD4-positive, alpha-beta T cell"]),
        ("Discovered new cell type: A. Discovered new cell type: B", ["A", "B"]),
        ("Discovered new cell types: T cell, B cell", ["T cell", "B cell"]),
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


def test_a_name_at_the_cut_is_no_name(make):
    text = "Discovered new cell type: T cell\nDiscovered new cell type: B ce"
    record = make("process_cells", text, kind="text") | {"result_metadata": {"truncated": [900, len(text)]}}
    found = evaluate_step(record)["process_cells_evaluation"]
    assert (found["discovered_cell_types"], found["partial"], found["cell_type_count"]) == (["T cell"], True, None)


CUT = [
    ("process_cells", "Annotating the clusters of PBMC with 1200 cells and their mark"),
    ("process_cells", "Process cells completed. group_to_cell_type = {"),
    ("process_cells", CELLS[:-20]),
    ("perform_enrichment_analyses", "{'formatted_summary': 'many words, and th"),
    ("perform_enrichment_analyses", "no brackets at all"),
    ("perform_enrichment_analyses", str(ENRICHMENT)[:130]),
    ("dea_split_by_condition", str(EXPRESSION)[:60]),
    ("compare_cell_counts", str(COUNTS)[:70]),
    ("search_enrichment_semantic", "{'search_results': {'results': [{'term': 'a'}, {'te"),
]


@pytest.mark.parametrize(("function", "text"), CUT)
@pytest.mark.parametrize("kind", ["text", "structured"])
def test_a_cut_result_is_limited_and_what_is_not_known_of_it_is_unknown(make, function, text, kind):
    step = {"parameters": {"analyses": ["go", "kegg"]}, "expected_children": ["T cell", "B cell", "NK cell"]}
    record = make(function, text, kind=kind, **step) | {"result_metadata": {"truncated": [900, len(text)]}}
    evaluation = evaluate_step(record)
    assert (evaluation["verdict"], evaluation["truncated"]) == ("success", True)
    assert (evaluation["data_quality"], evaluation["data_completeness"]) == ("legacy_text_parsing", "limited")
    assert evaluation["parsing_issues"] == ["truncation_likely"]
    scores = {check["name"]: check["score"] for check in evaluation["checks"]}
    assert 0 not in [scores[name] for name in scores if name not in ("text_kept", "structure")]
    cells = evaluation.get("process_cells_evaluation", {"discovery_status": "unknown", "cell_type_count": None})
    assert cells["discovery_status"] == ("discovered" if cells.get("discovered_cell_types") else "unknown")
    assert cells["cell_type_count"] is None
    assert cells.get("missing_children") is None
    enrichment = evaluation.get("enrichment_evaluation", {"total_significant_pathways": None, "concerns": []})
    assert enrichment["total_significant_pathways"] is None
    assert "No method has a result" not in enrichment["concerns"]
    [row] = steps_df([record]).to_dict("records")
    assert (row["truncated"], row["data_completeness"]) == (True, "limited")


def test_counts_and_search(make):
    counts = evaluate_step(make("compare_cell_counts", COUNTS, kind="structured"))["cell_counts_evaluation"]
    assert counts["cells_per_category"] == {"x": 354, "y": 0}
    assert (counts["total_cells"], counts["empty_categories"]) == (354, ["y"])
    for result, total in [
        ({"search_results": {"total_matches": 7, "results": [{"term": "a"}]}}, 7),
        ({"message": "nothing", "total_matches": 0}, 0),
        ("{'search_results': {'total_matches': 7, 'results': [", 7),
        ("free text", None),
    ]:
        found = evaluate_step(make("search_enrichment_semantic", result))["search_evaluation"]
        assert found["total_matches"] == total


def test_no_conditions_are_not_an_unknown_number_of_them(make):
    evaluation = evaluate_step(make("dea_split_by_condition", {"dea_results": []}, kind="structured"))
    found = next(check for check in evaluation["checks"] if check["name"] == "conditions_with_genes")
    assert evaluation["dea_evaluation"]["condition_count"] == 0
    assert (found["score"], found["label"]) == (None, "no conditions")


def test_matches_of_a_search_are_unknown_where_their_number_was_cut_away(make):
    text = str({"search_results": {"results": [{"term": "a"}, {"term": "b"}], "total_matches": 77}})
    cut = text[: text.index("77")]
    evaluations = [evaluate_step(make("search_enrichment_semantic", result)) for result in (text, cut)]
    assert [evaluation["search_evaluation"]["total_matches"] for evaluation in evaluations] == [77, None]


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


def test_the_own_name_counts_before_the_longest_prefix(registry):
    for name in ("display_", "display_dot*", "display_dotplot"):
        evaluates(name)(lambda record, options, name=name: {"by": name})
    assert evaluator_for("display_dotplot")(None, None) == {"by": "display_dotplot"}
    assert evaluator_for("display_dotty")(None, None) == {"by": "display_dot*"}
    assert evaluator_for("display_x")(None, None) == {"by": "display_"}
    assert evaluator_for("displays") is None


@pytest.mark.parametrize("bad", [lambda r, o: 1 / 0, lambda r, o: None, lambda r, o: {"checks": 5}])
def test_a_faulty_evaluator_stops_nothing(make, registry, caplog, bad):
    evaluates("mine")(bad)
    with caplog.at_level(logging.WARNING):
        found = evaluate_step(make("mine", "x"))
    assert "evaluator_error" in found
    assert "the evaluator of mine failed" in caplog.text


GO, KEGG = ({"top_terms": [], "top_pvalues": [], "total_significant": n} for n in (0, 1))
BOTH, ONLY_KEGG = {"analyses": ["go", "kegg"]}, {"analyses": ["kegg"]}
TOTALS = [
    ("both are there", {"go": GO, "kegg": KEGG}, BOTH, 1, {"go": 0, "kegg": 1}),
    ("one is null", {"go": None, "kegg": KEGG}, BOTH, None, {"go": None, "kegg": 1}),
    ("one is a text", {"GO": "failed", "kegg": KEGG}, BOTH, None, {"go": None, "kegg": 1}),
    ("one is not there", {"kegg": KEGG}, BOTH, None, {"go": None, "kegg": 1}),
    ("one is null, what was asked for is not known", {"go": None, "kegg": KEGG}, {}, None, {"go": None, "kegg": 1}),
    ("one is null, the other was asked for", {"go": None, "kegg": KEGG}, ONLY_KEGG, 1, {"kegg": 1}),
    ("a status only", {"status": "cached_result"}, BOTH, None, {"go": None, "kegg": None}),
]


@pytest.mark.parametrize(
    ("result", "parameters", "total", "counts"), [c[1:] for c in TOTALS], ids=[c[0] for c in TOTALS]
)
def test_a_total_is_unknown_where_a_method_that_was_asked_for_is(make, result, parameters, total, counts):
    record = make("perform_enrichment_analyses", result, kind="structured", parameters=parameters)
    evaluation = evaluate_step(record)
    found = evaluation["enrichment_evaluation"]
    assert (found["total_significant_pathways"], found["pathway_counts"]) == (total, counts)
    assert steps_df([record])["total_significant"].isna().tolist() == [total is None]
    made = {check["name"]: check for check in evaluation["checks"]}
    assert made["pathways_found"]["label"] == ("unknown" if total is None else str(total))
    if parameters == BOTH:
        assert made["requested_methods"]["score"] == sum(n is not None for n in counts.values()) / 2
    report = format_step_evaluation(evaluation)
    assert f"Total Significant: {'unknown' if total is None else total} pathways" in report
    assert report.count("❔") == sum(n is None for n in counts.values())


@pytest.mark.parametrize(
    "result",
    [
        {"error": "x", "results": []},
        {"error": "x", "results": [], "total_matches": 0},
        {"search_results": {"error": "x", "results": [], "total_matches": 0}},
        "{'error': 'x', 'results': []}",
    ],
)
def test_a_failed_search_has_no_number_of_matches(make, result):
    evaluation = evaluate_step(make("search_enrichment_semantic", result))
    assert evaluation["search_evaluation"] == {"total_matches": None, "top_results": [], "message": "x"}
    assert evaluation["verdict"] == "silent failure"
    found = next(check for check in evaluation["checks"] if check["name"] == "search_matches")
    assert (found["score"], found["label"], found["explanation"]) == (None, "unknown", "x")


@pytest.mark.parametrize(
    ("function", "key", "judged", "count"),
    [
        ("dea_split_by_condition", "dea_results", "dea_evaluation", "condition_count"),
        ("compare_cell_counts", "count_results", "cell_counts_evaluation", "category_count"),
    ],
)
def test_an_error_beside_an_empty_list_leaves_its_number_unknown(make, function, key, judged, count):
    assert evaluate_step(make(function, {key: []}, kind="structured"))[judged][count] == 0
    assert evaluate_step(make(function, {"error": "x", key: []}, kind="structured"))[judged][count] is None
