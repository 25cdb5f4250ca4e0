"""Generate the sample step histories: a small real analysis of a public data set, its steps stored in three shapes.

Run ``python -m tools.samples.steps`` with scanpy and gseapy installed, which are not dependencies of evalkit. It needs
no network. These parts are real: the data (700 blood cells and 765 genes, the reduced 68k PBMC set that scanpy's wheel
bundles), the differential expression (Wilcoxon, Benjamini-Hochberg), the enrichment (gseapy's hypergeometric test and
preranked GSEA), the counts, and every error, which a real call raised. These parts are made up: the plan, the times (a
minute apart) and the gene sets, since GO, KEGG and Reactome are not available offline. Instead, ``go`` and ``gsea`` are
families of gene symbols, and ``kegg`` and ``reactome`` are markers of cell types and of clusters, derived from one half
of the cells. The names of the terms show this.

Files, in ``evalkit/samples/steps``:

- ``typed.json``            first run in shape B: the form in which evalkit stores it
- ``nested.json``           the same executions in shape A: formerly kept in memory
- ``execution_history.json`` the same executions in shape C: formerly written to disk
- ``second_run.jsonl``     second run of the plan in shape B: the annotations file now exists, one library is missing
"""

import json
import tempfile
import warnings
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evalkit.steps import Options, record_execution, save_history
from tools.samples.blood_cells import Analysis

FOLDER = Path(__file__).parents[2] / "evalkit/samples/steps"
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def old_flat(step: dict[str, Any], result: Any, success: bool, error: Any = None, time: str = "") -> dict[str, Any]:
    """Return a step in shape C, as formerly written to disk: the summary is the first 500 characters of the result."""
    return {
        "timestamp": time or None,
        "function_name": step.get("function_name"),
        "parameters": step.get("parameters", {}),
        "success": success,
        "error": None if error is None else str(error),
        "result_summary": str(result)[:500] if result else None,
    }


def old_nested(step: dict[str, Any], result: Any, success: bool, error: Any = None, index: int = 0) -> dict[str, Any]:
    """Return a step in shape A: whole plots, the beginning of other results, and "Success" if there is no result."""
    options = Options()
    plot = options.is_plot(step.get("function_name")) and isinstance(result, str)
    text = result if plot else str(result)[: options.text_limit] if result else "Success"
    error = None if error is None else str(error)
    return {"step_index": index, "step": dict(step), "success": success, "result": text, "error": error}


def _step(function: str, description: str, **more: Any) -> dict[str, Any]:
    types = {"display": "visualization", "conversational": "conversation"}
    step_type = types.get(function.partition("_")[0], "analysis")
    step = {"step_type": step_type, "function_name": function, "parameters": more.pop("parameters", {})}
    return {**step, "description": description, **more}


def _of_type(function: str, description: str, cell_type: str, **more: Any) -> dict[str, Any]:
    parameters = {"cell_type": cell_type, **more}
    return _step(function, description, parameters=parameters, target_cell_type=cell_type)


def _plan() -> list[dict[str, Any]]:
    types = ["T cell", "B cell", "Monocyte", "NK cell", "Dendritic cell"]
    enrich, differ = "perform_enrichment_analyses", "dea_split_by_condition"
    every = ["go", "kegg", "reactome", "gsea"]
    found = {"expected_children": [*types, "Megakaryocyte"], "expected_outcome": "clusters carry names"}
    steps = [
        _step("process_cells", "Find the cell types", parameters={"cell_type": "PBMC"}, **found),
        _step("display_cell_count_comparison", "Draw cells per type", parameters={"cell_types": types}),
        _step("compare_cell_counts", "Count cells per phase", parameters={"cell_types": types}),
    ]
    for name, methods in (("T cell", every), ("Monocyte", every[:3]), ("Dendritic cell", every[:2])):
        steps.append(_of_type(differ, f"Compare populations of {name}", name))
        steps.append(_of_type(enrich, f"Enrich {name}", name, analyses=methods))
    skipped = _of_type(enrich, "Enrich Megakaryocyte", "Megakaryocyte", analyses=["go"])
    return [
        *steps,
        _step("search_enrichment_semantic", "Search for MHC", parameters={"query": "MHC"}),
        _of_type("display_enrichment_barplot", "Draw T cell terms", "T cell", analysis="kegg"),
        _of_type("display_enrichment_barplot", "Draw megakaryocyte terms", "Megakaryocyte", analysis="go"),
        _of_type(differ, "Compare populations of Progenitor", "Progenitor"),
        _of_type(differ, "Compare populations of Megakaryocyte", "Megakaryocyte"),
        {**skipped, "skip_reason": "Megakaryocyte was not discovered"},
        _step("load_annotations", "Read annotations", parameters={"path": "annotations/pbmc68k.tsv"}),
        _step("conversational_response", "Answer"),
    ]


def _run(libraries: tuple[str, ...], files: dict[str, str], attempts: int) -> list[dict[str, Any]]:
    """Execute the plan, retry failed steps, and return the result or error of every call."""
    analysis, executions = Analysis(libraries), list[Any]()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, text in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        for index, step in enumerate(_plan()):
            for _ in range(attempts):
                time = START + timedelta(minutes=len(executions))
                executions.append({"index": index, "step": step, "time": time, **_call(analysis, step)})
                if not isinstance(executions[-1]["error"], ValueError):
                    break
    return executions


def _call(analysis: Analysis, step: dict[str, Any]) -> dict[str, Any]:
    if "skip_reason" in step:
        return {"result": None, "error": None}
    try:
        return {"result": getattr(analysis, step["function_name"])(**step["parameters"]), "error": None}
    except (ValueError, OSError, KeyError) as raised:
        return {"result": None, "error": raised}


def _typed(executions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = []
    for e in executions:
        state = {"execution_history": history, "current_step_index": e["index"]}
        history = record_execution(state, e["step"], e["result"], e["error"] is None, e["error"])
        history[-1]["timestamp"] = e["time"].isoformat()
    return history


def main() -> None:
    """Run the plan twice and write the four files."""
    warnings.filterwarnings("ignore")
    FOLDER.mkdir(exist_ok=True)
    first = _run(("go", "kegg", "reactome"), {}, attempts=5)
    save_history(_typed(first), FOLDER / "typed.json")
    nested = [old_nested(e["step"], e["result"], e["error"] is None, e["error"], e["index"]) for e in first]
    flat = [old_flat(e["step"], e["result"], e["error"] is None, e["error"], e["time"].isoformat()) for e in first]
    for name, records in (("nested.json", nested), ("execution_history.json", flat)):
        (FOLDER / name).write_text(json.dumps(records, indent=1, default=str) + "\n")
    annotations = {"annotations/pbmc68k.tsv": "cluster\tnote\n0\tT cells, mostly CD4\n10\tCD34 positive\n"}
    save_history(_typed(_run(("go", "kegg"), annotations, attempts=2)), FOLDER / "second_run.jsonl")


if __name__ == "__main__":
    main()
