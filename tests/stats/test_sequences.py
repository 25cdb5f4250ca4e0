import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.stats import mean_sequence

UNIT = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(UNIT)
def test_intervals_never_widen_and_start_without_knowledge(values):
    found = mean_sequence(values)
    assert found["n"].tolist() == list(range(1, len(values) + 1))
    assert (np.diff(found["low"].dropna()) >= 0).all()
    assert (np.diff(found["high"].dropna()) <= 0).all()
    assert found["low"].iloc[0] < 0.05
    assert found["high"].iloc[0] > 0.95


@given(UNIT)
def test_the_mirror_of_values_has_the_mirrored_bounds(values):
    found, mirrored = mean_sequence(values), mean_sequence(1 - np.array(values))
    assert mirrored["low"].to_numpy() == pytest.approx(1 - found["high"].to_numpy(), abs=1e-3, nan_ok=True)


def test_a_look_uses_nothing_of_later_values_and_missing_ones_are_left_out():
    values = np.random.default_rng(0).random(30)
    assert mean_sequence(values)[:12].equals(mean_sequence([None, *values[:12]]))


def test_a_difference_leaves_0_for_good_and_equal_models_never_differ():
    found = mean_sequence([1] * 40, bounds=(-1, 1))
    first = found.index[found["low"] > 0][0]
    assert 5 < first < 25
    assert (found["low"] > 0).tolist() == [i >= first for i in range(40)]
    assert not (mean_sequence([1, -1] * 100, bounds=(-1, 1))["low"] > 0).any()


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([2], {}, "beyond the bounds"),
        ([0], {"bounds": (1, 0)}, "least and the largest"),
        ([0], {"confidence": 95}, "between 0 and 1"),
    ],
)
def test_misuse_is_named(values, options, message):
    with pytest.raises(ValueError, match=message):
        mean_sequence(values, **options)
