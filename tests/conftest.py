"""Settings of all tests."""

import gc

import pytest
from hypothesis import HealthCheck, settings

collect_ignore = ["reports/data"]  # a notebook that tests make reports of

# time limits of single examples say more about a busy machine than about the code
settings.register_profile("evalkit", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evalkit")

gc.disable()  # until all is imported and collected: nothing of it is garbage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests, so that at the end no worker waits long for another."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Leave what was collected and imported out of every collection of garbage."""
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()
