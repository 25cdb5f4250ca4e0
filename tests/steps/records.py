"""Strategies that make records of steps, good and bad."""

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda c: st.lists(c, max_size=4) | st.dictionaries(st.text(max_size=8), c, max_size=4),
    max_leaves=10,
)
FUNCTIONS = st.sampled_from(
    ["perform_enrichment_analyses", "dea_split_by_condition", "process_cells", "compare_cell_counts",
     "search_enrichment_semantic", "display_x", "conversational_response"]
)  # fmt: skip


def some(*keys, **values):
    """Make dictionaries with some of these keys, of any value or of the one given."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, JSON) | values)


METHOD = some("top_terms", "top_pvalues", "total_significant")
ENTRY = some("category", "significant_genes", "cell_count", "html")
RESULT = (
    JSON
    | st.dictionaries(st.sampled_from(["go", "KEGG", "top_terms", "status", "error"]), METHOD | JSON)
    | some("dea_results", "count_results", "search_results", "plots", "html", "path", "type", "group_to_cell_type")
    | st.builds(lambda key, entries: {key: entries}, st.sampled_from(["dea_results", "count_results", "plots"]),
                st.lists(ENTRY))
    | JSON.map(str)
    | JSON.map(lambda value: f"group_to_cell_type = {value}")
)  # fmt: skip
STEP = some("parameters", "skip_reason", "expected_children", "target_cell_type", function_name=FUNCTIONS | JSON)
RECORD = some(
    "step_index", "parameters", "error", "error_type", "timestamp", "shape",
    step=STEP | JSON,
    function_name=FUNCTIONS | JSON,
    success=st.booleans() | JSON,
    result=RESULT,
    result_summary=RESULT,
    result_type=st.sampled_from(["structured", "visualization", "text", "skipped", "validation"]) | JSON,
    result_metadata=JSON | st.fixed_dictionaries({"truncated": JSON}),
)  # fmt: skip
