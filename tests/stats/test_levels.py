import math

import numpy as np
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

from evalkit.stats import paired_difference, rate_interval, trend_steps


def test_steps_of_independent_trials_have_the_interval_of_newcombe():
    found = trend_steps([9, 4, 4], [12, 10, 20], [0, 1, 5])
    assert found[["level", "next_level"]].to_numpy().tolist() == [[0, 1], [1, 5]]
    for row, (s1, n1, s2, n2) in zip(found.to_dict("records"), ((9, 12, 4, 10), (4, 10, 4, 20)), strict=True):
        theirs = confint_proportions_2indep(s2, n2, s1, n1, method="newcomb")
        assert row["estimate"] == pytest.approx(s2 / n2 - s1 / n1)
        assert (row["low"], row["high"]) == pytest.approx(theirs, abs=1e-9)
        assert (row["n_clusters"], row["next_n_clusters"]) == (n1, n2)


def test_steps_between_different_clusters_are_put_together_from_both():
    first, second = [4, 3, 4, 2], [1, 2, 0]
    found = trend_steps(first + second, [4] * 7, [0] * 4 + [1] * 3, range(7)).iloc[0]
    sides = [
        rate_interval(np.repeat(x, 4) > np.tile(range(4), len(x)), np.repeat(range(len(x)), 4)) for x in (first, second)
    ]
    below = math.hypot(sides[1].estimate - sides[1].low, sides[0].high - sides[0].estimate)
    assert found["estimate"] == pytest.approx(sides[1].estimate - sides[0].estimate)
    assert found["low"] == pytest.approx(found["estimate"] - below)
    assert (found["n_clusters"], found["next_n_clusters"]) == (4, 3)


def test_steps_within_the_same_clusters_are_paired():
    first, second = np.array([4, 3, 4, 2, 3, 4]), np.array([2, 2, 3, 0, 2, 3])
    found = trend_steps([*first, *second], [4] * 12, [0] * 6 + [1] * 6, [*range(6)] * 2).iloc[0]
    paired = paired_difference(second / 4, first / 4)
    assert (found["low"], found["high"]) == pytest.approx((paired.low, paired.high))
    assert found["method"] == "paired t"


def test_rows_of_one_cluster_and_level_are_added_up():
    found = trend_steps([1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 1, 1], list("aabccd"))
    assert found["n_clusters"].tolist() == [2]
    assert found["rate"].tolist() == [1.0]


def test_a_single_cluster_at_a_level_has_no_interval():
    found = trend_steps([4, 3, 0], [4] * 3, [0, 0, 1], range(3)).iloc[0]
    assert math.isnan(found["low"])
    assert str(found["warning"]) == "a level with a single cluster has no interval"


@pytest.mark.parametrize("rows", [([], [], []), ([1], [2], [0])])
def test_fewer_than_two_levels_have_no_step(rows):
    assert trend_steps(*rows).empty
