"""What is not known is no 0: failed searches, methods that gave nothing, errors beside empty lists."""

import pytest

from evalkit.steps import evaluate_step, format_step_evaluation, steps_df

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
