import pytest

from evalkit.steps import record_execution


@pytest.fixture
def make():
    """Return a function that makes a record of shape A or B (with result_type) for a function and its result."""

    def make(function, result=None, success=True, *, error=None, error_type=None, kind=None, index=0, **step):
        plan = {"function_name": function, "parameters": step.pop("parameters", {}), **step}
        record = {"step_index": index, "step": plan, "success": success, "result": result, "error": error}
        if kind:
            record |= {"result_type": kind, "result_summary": "", "result_metadata": {}, "error_type": error_type}
        return record

    return make


@pytest.fixture
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
