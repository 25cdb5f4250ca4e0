"""Results of the agent's functions and records of its steps, in their real shapes."""

ENRICHMENT = {
    "go": {"top_terms": ["a", "b", "c", "d"], "top_pvalues": [0.001, 0.002, "N/A", 0.04], "total_significant": 12},
    "kegg": {"top_terms": ["k1", "k2", "k3"], "top_pvalues": [1e-5, 0.01, 0.02], "total_significant": 3},
    "gsea": {"top_terms": [], "top_pvalues": [], "total_significant": 0},
    "formatted_summary": "…",
    "top_terms": [{"method": "go", "term": "a"}],  # a list of dicts at the top level, no method
    "significant_genes": ["G1"],
}
EXPRESSION = {
    "dea_results": [
        {"category": "healthy", "significant_genes": ["G1", "G2"], "description": "up"},
        {"category": "ill", "significant_genes": [], "description": "up"},
    ],
    "hierarchy_metadata": {},
}
CELLS = "Process cells completed. group_to_cell_type = {'0': 'T cell', '1': 'B cell', '2': 'T cell'}"
COUNTS = {"count_results": [{"category": "x", "cell_count": "354"}, {"category": "y", "cell_count": 0}]}

# flat records: a success, a failure, and a success whose result says otherwise
GOOD = {"function_name": "f", "parameters": {}, "success": True, "result_summary": "done", "error": None}
BAD = {**GOOD, "success": False, "result_summary": None, "error": "no cells"}
SILENT = {**GOOD, "function_name": "process_cells", "result_summary": "{'status': 'no_cells_found'}"}

# the same step in the three shapes of records
A = {"step_index": 3, "step": {"function_name": "process_cells"}, "success": True, "result": CELLS, "error": None}
B = {**A, "result_type": "structured", "result_summary": "s", "result_metadata": {}, "error_type": None}
C = {"timestamp": "t", "function_name": "process_cells", "parameters": {}, "success": True, "error": None,
     "result_summary": CELLS}  # fmt: skip


def make(function, result=None, success=True, *, error=None, error_type=None, kind=None, index=0, **step):
    """Make a record of shape A, or B (with `kind`, its result_type), for a function and its result."""
    plan = {"function_name": function, "parameters": step.pop("parameters", {}), **step}
    record = {"step_index": index, "step": plan, "success": success, "result": result, "error": error}
    if kind:
        record |= {"result_type": kind, "result_summary": "", "result_metadata": {}, "error_type": error_type}
    return record
