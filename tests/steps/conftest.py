import pytest

from evalkit.steps import load
from evalkit.steps.judge import EVALUATORS


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
def logs():
    """What is loaded of the samples."""
    return load("samples:steps")


@pytest.fixture
def evaluators():
    """The registered evaluators; those that a test registers are gone afterwards."""
    before = dict(EVALUATORS)
    yield EVALUATORS
    EVALUATORS.clear()
    EVALUATORS.update(before)
