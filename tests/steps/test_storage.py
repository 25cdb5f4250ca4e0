import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.steps import (
    Options,
    create_result_summary,
    extract_key_findings_from_execution,
    load,
    record_execution,
    save_history,
    store_execution_result,
    to_jsonable,
)
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION, make
from tests.steps.records import JSON

LONG = "x" * 1234
PAGE = "<html><body>" + LONG + "</body></html>"

PLOT = {"type": "html", "html_length": 1260, "plots": 1}
STORED = [
    # function, result, success: type, result, summary, metadata
    ("dea_split_by_condition", EXPRESSION, True, "structured", EXPRESSION, "DEA: Analysis completed", {}),
    ("process_cells", CELLS, True, "structured", CELLS, "Process cells: Discovery completed: T cell, B cell", {}),
    ("compare_cell_counts", COUNTS, True, "structured", COUNTS, str(COUNTS)[:100], {}),
    ("process_cells", None, True, "structured", None, "Success", {}),
    ("display_dotplot", PAGE, True, "visualization", PAGE, "Visualization: 1 plot (html, 1260 characters)", PLOT),
    ("display_dotplot", None, True, "visualization", None, "Success", {"type": "none", "html_length": 0, "plots": 0}),
    ("other", LONG, True, "text", LONG[:500], LONG[:100], {"truncated": [1234, 500]}),
    ("other", "y" * 500, True, "text", "y" * 500, "y" * 100, {"length": 500}),
    ("other", {"a": 1}, True, "text", "{'a': 1}", "{'a': 1}", {"length": 8}),
    ("other", 0, True, "text", 0, "0", {}),
    ("perform_enrichment_analyses", None, False, "text", None, "Failed", {}),
    (
        "perform_enrichment_analyses",
        ENRICHMENT,
        False,
        "text",
        str(ENRICHMENT),
        f"Failed: {ENRICHMENT}"[:100],
        {"length": len(str(ENRICHMENT)), "type": "dict"},
    ),
    ("other", LONG, False, "text", LONG[:500], f"Failed: {LONG}"[:100], {"truncated": [1234, 500], "type": "str"}),
    ("other", {}, False, "text", "{}", "Failed: {}", {"length": 2, "type": "dict"}),
    ("other", "", False, "text", None, "Failed", {}),
]


@pytest.mark.parametrize(("function", "result", "success", "kind", "kept", "summary", "metadata"), STORED)
def test_results_are_stored_by_type_with_a_summary(function, result, success, kind, kept, summary, metadata):
    expected = {"result_type": kind, "result": kept, "result_summary": summary, "result_metadata": metadata}
    assert store_execution_result({"function_name": function, "parameters": {}}, result, success) == expected
    skipped = store_execution_result({"function_name": function, "skip_reason": "no cells"}, result, False)
    assert (skipped["result_type"], skipped["result_summary"]) == ("skipped", "Skipped: no cells")


NOTHING_NEW = "Process cells completed, but no new cell types were discovered."
SEARCH = {"search_results": {"total_matches": 2, "results": [{"term": "a"}, {"term": "b"}]}}
SUMMARIES = [
    ("perform_enrichment_analyses", ENRICHMENT, "Enrichment: GO: 12 terms, KEGG: 3 terms, GSEA: 0 terms"),
    ("perform_enrichment_analyses", {"go": {"top_terms": ["a"]}}, "Enrichment: GO: unknown number of terms"),
    ("perform_enrichment_analyses", {"status": "needs_processing"}, "Enrichment: No results (needs_processing)"),
    ("process_cells", "group_to_cell_type = {'0': 'T c", "group_to_cell_type = {'0': 'T c"),
    ("process_cells", {"status": "insufficient_markers"},
     "Process cells: No cell types discovered (insufficient_markers)"),
    ("process_cells", NOTHING_NEW, "Process cells: No new cell types discovered"),
    ("process_cells", {"group_to_cell_type": {i: f"cell type number {i}" for i in range(30)}},
     "Process cells: Discovery completed: " + ", ".join(f"cell type number {i}" for i in range(5)) + ", "),
    ("dea_split_by_condition", {"dea_results": []}, "DEA: No conditions compared"),
    ("dea_split_by_condition", {"status": "insufficient_cells"}, "DEA: No results (insufficient_cells)"),
    ("search_enrichment_semantic", SEARCH, "Search: 2 matches: a, b"),
    ("search_enrichment_semantic", {"message": "no index yet", "total_matches": 0}, "Search: 0 matches (no index yet)"),
    ("display_x", {"plots": [{"html": PAGE}] * 2},
     "Visualization: 2 plots (html, 2520 characters)"),
    ("display_x", {"type": "file_ref", "path": "a.html"}, "Visualization: 1 plot in a file (a.html)"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "result", "summary"), SUMMARIES)
def test_results_of_known_functions_have_a_summary_of_their_contents(function, result, summary):
    assert create_result_summary(function, result) == summary
    assert create_result_summary({"function_name": function, "parameters": {}}, result) == summary


def test_limits_and_functions_are_options():
    options = Options(structured_functions=frozenset({"mine"}), text_limit=10, summary_limit=5)
    kept = store_execution_result({"function_name": "mine"}, {"a": [1]}, True, options)
    assert (kept["result_type"], kept["result"]) == ("structured", {"a": [1]})
    cut = store_execution_result({"function_name": "process_cells"}, LONG, True, options)
    assert cut["result_metadata"] == {"truncated": [1234, 10]}
    assert len(cut["result_summary"]) == 5


def test_recording_gives_a_new_history_and_leaves_the_state_alone():
    old = [{"step_index": 0}]
    history = record_execution({"execution_history": old, "current_step_index": 4}, {}, CELLS, True)
    assert (old, history[:-1]) == ([{"step_index": 0}], old)
    assert [history[-1][key] for key in ("step_index", "success", "error", "error_type")] == [4, True, None, None]
    assert history[-1]["timestamp"].endswith("+00:00")


def test_errors_are_kept_with_their_class():
    missing = FileNotFoundError(2, "No such file or directory", "a.h5")
    for error, text, name in (
        (missing, "[Errno 2] No such file or directory: 'a.h5'", "FileNotFoundError"),
        (ValueError(), "ValueError", "ValueError"),
        ("it broke", "it broke", None),
    ):
        record = record_execution({}, {"function_name": "f"}, None, False, error)[-1]
        assert (record["error"], record["error_type"], record["result"]) == (text, name, None)
        assert (record["result_summary"], record["step_index"]) == (f"Failed: {text}", 0)


@settings(max_examples=30)
@given(
    st.sampled_from(["process_cells", "display_x", "other", None]),
    JSON.map(to_jsonable),
    st.sampled_from(["h.json", "h.jsonl"]),
)
def test_saving_and_loading_keeps_every_record(tmp_path_factory, function, result, name):
    path = tmp_path_factory.mktemp("round") / name
    records = record_execution({}, {"function_name": function, "parameters": {}}, result, True)
    records = record_execution({"execution_history": records}, {"parameters": {}}, None, False, ValueError("no"))
    save_history(records, path)
    kept = load(path).histories[0].records
    as_written = {"step": None, "shape": "B"}
    assert [record | as_written for record in kept] == [record | as_written for record in records]
    assert list(path.parent.iterdir()) == [path]
    assert kept[0]["result"] == result or function != "process_cells"  # every number of a structure


MANY = {"top_terms": list("abcdefg"), "top_pvalues": [0.1] * 7, "total_significant": 7}


def found(records, kind="successful_analyses"):
    return extract_key_findings_from_execution(records)[kind]


def test_legacy_text_gives_what_it_holds():
    record = make("perform_enrichment_analyses", str(ENRICHMENT)[:130], target_cell_type="B cell")
    go = {"top_terms": ["a", "b", "c", "d"], "p_values": [0.001, 0.002, None, 0.04], "total_significant": 12}
    kegg = {"top_terms": [], "p_values": [], "total_significant": None}
    assert found([record]) == {"enrichment_B cell": {"go": go, "kegg": kegg}}
    first = {"discovered_cell_types": ["T cell"], "group_to_cell_type": {"0": "T cell"}}
    partial = found([make("process_cells", CELLS[:-20])])["process_cells_unknown"]
    assert partial == {"status": "discovered", "partial": True, **first}


def test_key_findings_contain_the_results_of_every_function():
    cell_type, cell_types = {"cell_type": "T cell"}, {"cell_types": ["T cell", "B cell"]}
    records = [
        make("dea_split_by_condition", EXPRESSION, kind="structured", parameters=cell_type),
        make("dea_split_by_condition", EXPRESSION["dea_results"], kind="structured"),
        make("compare_cell_counts", COUNTS, kind="structured", parameters=cell_types),
        make("display_dotplot", "<div></div>", parameters=cell_type),
        make("search_enrichment_semantic", SEARCH, parameters={"query": "immune"}),
        make("perform_enrichment_analyses", {"go": MANY}, kind="structured", parameters=cell_type),
        make("my_tool", "some text"),
        make("conversational_response", "hello"),
        make(None, "hello"),
    ]
    healthy, ill = ({"significant_genes": len(genes), "top_genes": genes} for genes in (["G1", "G2"], []))
    assert found(records) == {
        "dea_T cell": {"healthy": healthy, "ill": ill},
        "dea_unknown": {"healthy": healthy, "ill": ill},
        "compare_cell_counts_T cell, B cell": {"x": 354, "y": 0},
        "visualization_dotplot_T cell": {"type": "html", "plots": 1, "html_length": 11},
        "enrichment_T cell": {"go": {"top_terms": list("abcde"), "p_values": [0.1] * 5, "total_significant": 7}},
        "search_immune": {"total_matches": 2, "results": ["a", "b"], "message": None},
        "my_tool": {"summary": "some text"},
    }


def test_failures_and_silent_failures_are_no_findings():
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


def test_a_state_and_nothing_are_read_too():
    assert found({"execution_history": [make("my_tool", "x")]}) == {"my_tool": {"summary": "x"}}
    for nothing in (None, [], {}, "text", 5):
        assert found(nothing) == {}
