import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from evalkit.stats import agreement

PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60)


@given(PAIRS)
def test_kappa_is_that_of_statsmodels_and_lies_in_its_interval(pairs):
    a, b = zip(*pairs, strict=True)
    found = agreement(a, b)
    if len({*a, *b}) == 1:
        assert math.isnan(found.estimate)
        assert "one_label" in found.warning
        return
    table = np.zeros((3, 3))
    np.add.at(table, (a, b), 1)
    assert found.estimate == pytest.approx(cohens_kappa(table, return_results=False))
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    assert found.low < found.high


def test_units_that_one_of_two_did_not_label_are_left_out():
    found = agreement(["yes", "no", None, "yes"], ["yes", "no", "no", None])
    assert (found.n, found.estimate) == (2, 1)
    assert "left_out" in found.warning


def test_several_people_agree_by_krippendorffs_alpha():
    pytest.importorskip("krippendorff")
    # table 3 of Krippendorff (2011), nominal: alpha is .743
    a = [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None]
    b = [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3]
    c = [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None]
    d = [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None]
    found = agreement(a, b, c, d)
    assert found.estimate == pytest.approx(0.743, abs=5e-4)
    assert found.n == 11
    assert found.low < found.estimate < found.high <= 1


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="lengths differ"):
        agreement([1, 0], [1])
