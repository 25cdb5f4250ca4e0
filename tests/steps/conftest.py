import pytest

from evalkit.steps import load
from evalkit.steps.judge import EVALUATORS


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
