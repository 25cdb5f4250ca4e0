"""Twice the input takes no more than three times the time, also where it was made to be slow."""

import pytest

from tools.complexity import CASES, WORST, ratio

LONG_ENOUGH = (0.01, 0.1, 0.4)  # seconds; where a busy machine, or a buffer that grows once, spoils the first, the next


@pytest.mark.parametrize("name", CASES)
def test_time_grows_with_the_input(name):
    assert any(ratio(CASES[name], seconds, 3)[0] < WORST for seconds in LONG_ENOUGH)
