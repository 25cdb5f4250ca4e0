"""Twice the input takes no more than three times the time, also where it was made to be slow."""

import pytest

from benchmarks.complexity import CASES, WORST, ratio

LONG_ENOUGH = 0.01  # seconds of the processor


@pytest.mark.parametrize("name", CASES)
def test_time_grows_with_the_input(name):
    tries = (ratio(CASES[name], LONG_ENOUGH, 3)[0] for _ in range(4))  # a busy machine may spoil some
    assert any(found < WORST for found in tries)
