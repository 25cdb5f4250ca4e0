import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.stats import difference_sequence, mean_sequence

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


def test_a_look_uses_nothing_of_later_values():
    values = np.random.default_rng(0).random(30)
    assert mean_sequence(values)[:12].equals(mean_sequence(values[:12]))


def test_only_the_first_run_of_a_task_is_used_and_its_look_is_kept():
    found = mean_sequence([1, 0, None, 1, 0], ["a", "a", "b", "b", "c"])
    assert found["look"].tolist() == [1, 4, 5]
    assert found["estimate"].tolist() == pytest.approx([1, 1, 2 / 3])
    assert found["high"].tolist() == mean_sequence([1, 1, 0])["high"].tolist()


def test_a_difference_is_decided_once_the_interval_has_left_0_for_good():
    found = difference_sequence([1] * 40, [0] * 40)
    first = found.index[found["decided"]][0]
    assert 5 < first < 25
    assert found["decided"].tolist() == [i >= first for i in range(40)]
    back = difference_sequence([1] * 25 + [0] * 400, [0] * 25 + [1] * 400)
    assert back["decided"].iloc[25]
    assert not difference_sequence([1, 0] * 100, [0, 1] * 100)["decided"].any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_sequence([2]), "beyond the bounds"),
        (lambda: mean_sequence([0], bounds=(1, 0)), "least and the largest"),
        (lambda: mean_sequence([0], confidence=95), "between 0 and 1"),
        (lambda: difference_sequence([1], [0, 1]), "one length"),
        (lambda: difference_sequence([1], [-1]), "beyond the bounds"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
