import json

from evalkit.steps import extract_key_findings_from_execution
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION


def found(records, kind="successful_analyses"):
    return extract_key_findings_from_execution(records)[kind]


def test_enrichment_by_cell_type_and_method(make):
    record = make("perform_enrichment_analyses", ENRICHMENT, kind="structured", parameters={"cell_type": "T cell"})
    assert found([record]) == {
        "enrichment_T cell": {
            "go": {"top_terms": ["a", "b", "c", "d"], "p_values": [0.001, 0.002, None, 0.04], "total_significant": 12},
            "kegg": {"top_terms": ["k1", "k2", "k3"], "p_values": [1e-5, 0.01, 0.02], "total_significant": 3},
            "gsea": {"top_terms": [], "p_values": [], "total_significant": 0},
        }
    }


def test_at_most_five_terms_are_listed(make):
    long = {"go": {"top_terms": list("abcdefgh"), "top_pvalues": [0.1] * 8, "total_significant": 8}}
    methods = found([make("perform_enrichment_analyses", long, kind="structured")])["enrichment_unknown"]
    assert methods["go"] == {"top_terms": list("abcde"), "p_values": [0.1] * 5, "total_significant": 8}


def test_legacy_text_gives_what_it_holds(make):
    text = str(ENRICHMENT)[:130]
    methods = found([make("perform_enrichment_analyses", text, target_cell_type="B cell")])["enrichment_B cell"]
    assert methods["go"]["total_significant"] == 12
    assert methods["kegg"]["total_significant"] is None
    partial = found([make("process_cells", CELLS[:-20])])["process_cells_unknown"]
    assert partial == {
        "status": "discovered",
        "discovered_cell_types": ["T cell"],
        "group_to_cell_type": {"0": "T cell"},
        "partial": True,
    }


def test_the_other_functions_by_their_real_shapes(make):
    records = [
        make("dea_split_by_condition", EXPRESSION, kind="structured", parameters={"cell_type": "T cell"}),
        make("dea_split_by_condition", EXPRESSION["dea_results"], kind="structured"),
        make("compare_cell_counts", COUNTS, kind="structured", parameters={"cell_types": ["T cell", "B cell"]}),
        make("display_dotplot", "<div></div>", parameters={"cell_type": "T cell"}),
        make("search_enrichment_semantic", {"search_results": {"total_matches": 1, "results": [{"term": "x"}]}},
             parameters={"query": "immune"}),
        make("my_tool", "some text"),
        make("conversational_response", "hello"),
        make(None, "hello"),
    ]  # fmt: skip
    conditions = {
        "healthy": {"significant_genes": 2, "top_genes": ["G1", "G2"]},
        "ill": {"significant_genes": 0, "top_genes": []},
    }
    assert found(records) == {
        "dea_T cell": conditions,
        "dea_unknown": conditions,
        "compare_cell_counts_T cell, B cell": {"x": 354, "y": 0},
        "visualization_dotplot_T cell": {"type": "html", "plots": 1, "html_length": 11},
        "search_immune": {"total_matches": 1, "results": ["x"], "message": None},
        "my_tool": {"summary": "some text"},
    }


def test_two_runs_of_one_analysis_do_not_overwrite_each_other(make):
    records = [make("perform_enrichment_analyses", ENRICHMENT, parameters={"cell_type": "T cell"})] * 3
    assert list(found(records)) == ["enrichment_T cell", "enrichment_T cell #2", "enrichment_T cell #3"]


def test_failures_and_silent_failures_are_no_findings(make):
    records = [
        make("dea_split_by_condition", None, False, error="no cells", error_type="ValueError", kind="text", index=4),
        make("dea_split_by_condition", {}, kind="structured", index=5),
        make("process_cells", None, skip_reason="not needed"),
    ]
    assert found(records) == {}
    assert found(records, "failed_analyses") == {
        "dea_unknown": {"error": "no cells", "error_type": "ValueError", "silent": False, "step_index": 4},
        "dea_unknown #2": {"error": "the step left no result", "error_type": None, "silent": True, "step_index": 5},
    }
    assert found(records, "skipped_analyses") == {"process_cells_unknown": {"skip_reason": "not needed"}}


def test_a_state_and_nothing_are_read_too(make):
    assert found({"execution_history": [make("my_tool", "x")]}) == {"my_tool": {"summary": "x"}}
    for nothing in (None, [], {}, "text", 5):
        assert found(nothing) == {}


def test_findings_are_jsonable(make):
    json.dumps(extract_key_findings_from_execution([make("process_cells", CELLS)]), allow_nan=False)
