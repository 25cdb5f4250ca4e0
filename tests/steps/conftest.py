import pytest

from evalkit.steps import load, record_execution, save_history
from evalkit.steps.judge import EVALUATORS
from tests.steps.cases import CELLS, ENRICHMENT, EXPRESSION


@pytest.fixture(scope="session")
def make():
    """Return a function that makes a record of shape A or B (with result_type) for a function and its result."""

    def make(function, result=None, success=True, *, error=None, error_type=None, kind=None, index=0, **step):
        plan = {"function_name": function, "parameters": step.pop("parameters", {}), **step}
        record = {"step_index": index, "step": plan, "success": success, "result": result, "error": error}
        if kind:
            record |= {"result_type": kind, "result_summary": "", "result_metadata": {}, "error_type": error_type}
        return record

    return make


@pytest.fixture(scope="session")
def history():
    """Return a function that runs (function, result, error) triples through `record_execution`."""

    def history(*executions):
        records = []
        for i, (function, result, error, *parameters) in enumerate(executions):
            state = {"execution_history": records, "current_step_index": i}
            step = {"function_name": function, "parameters": parameters[0] if parameters else {}}
            records = record_execution(state, step, result, error is None, error)
        return records

    return history


@pytest.fixture(scope="session")
def folder(tmp_path_factory, history):
    """A folder with two histories: the second one mends a failure and breaks a step."""
    good, bad = ("process_cells", CELLS, None, {"cell_type": "T cell"}), ValueError("No cells of type 'B cell'")
    first = history(
        good,
        ("perform_enrichment_analyses", ENRICHMENT, None, {"cell_type": "T cell", "analyses": ["go", "kegg"]}),
        *[("dea_split_by_condition", None, bad, {"cell_type": "B cell"})] * 3,
        ("display_dotplot", "Dotplot not available", None),
        ("other", "x" * 700, None),
        ("load", None, FileNotFoundError("gone"), {}),
    )
    for record in first[2:5]:
        record["step_index"] = 2
    second = history(
        good,
        ("perform_enrichment_analyses", None, ValueError("no")),
        ("dea_split_by_condition", EXPRESSION, None, {"cell_type": "B cell"}),
    )
    folder = tmp_path_factory.mktemp("two")
    save_history(first, folder / "a.json")
    save_history(second, folder / "b.jsonl")
    (folder / "broken.json").write_text("[{")
    return folder


@pytest.fixture(scope="session")
def logs(folder):
    """What is loaded of these."""
    return load(folder)


@pytest.fixture
def evaluators():
    """The registered evaluators; those that a test registers are gone afterwards."""
    before = dict(EVALUATORS)
    yield EVALUATORS
    EVALUATORS.clear()
    EVALUATORS.update(before)
