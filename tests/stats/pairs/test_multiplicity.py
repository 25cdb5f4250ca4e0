import math

import numpy as np
import pytest
from scipy import stats

from evalkit.stats import holm, max_t, paired_test


def differences(tasks, models, seed=0, gap=0.0):
    """Differences of all pairs of models; the first is better by the gap."""
    values = np.random.default_rng(seed).normal(size=(tasks, models))
    values[:, 0] += gap
    first, second = np.triu_indices(models, 1)
    return values[:, first] - values[:, second]


def test_one_test_alone_is_not_corrected():
    gaps = differences(11, 2, gap=1.0)
    p_value = paired_test(gaps[:, 0], np.zeros(11)).p_value
    assert max_t(gaps, p_values=[p_value])[0] == pytest.approx(p_value, abs=0.01)
    binary = np.sign(gaps)
    assert max_t(binary)[0] == pytest.approx(stats.binomtest(int((binary > 0).sum()), 11).pvalue)


def test_tests_that_do_not_share_data_are_corrected_by_sidak():
    gaps = np.random.default_rng(3).normal(size=(400, 6))
    assert max_t(gaps, p_values=[0.01, *[0.9] * 5])[0] == pytest.approx(1 - 0.99**6, abs=0.01)


def test_all_flips_of_few_tasks_are_counted_out():
    gaps = differences(6, 3, seed=1, gap=2.0)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    norms = np.sqrt((gaps**2).sum(axis=0))
    drawn, seen = np.abs(signs @ gaps) / norms, np.abs(gaps.sum(axis=0)) / norms
    order = np.argsort(-seen)
    steps = [(drawn[:, order[i:]].max(axis=1) >= seen[order[i]] - 1e-9).mean() for i in range(3)]
    assert max_t(gaps)[order] == pytest.approx(np.maximum.accumulate(steps))


def test_it_corrects_by_less_than_holm_where_tests_share_data():
    gaps = differences(40, 8, seed=2, gap=0.6)
    alone = [paired_test(column, np.zeros(40)).p_value for column in gaps.T]
    adjusted = max_t(gaps, p_values=alone)
    assert (adjusted >= np.array(alone) - 0.02).all()
    assert adjusted.mean() < holm(alone).mean()


def test_the_same_generator_gives_the_same_values():
    gaps = differences(30, 4)
    assert (max_t(gaps) == max_t(gaps)).all()
    assert (max_t(gaps, np.random.default_rng(5)) != max_t(gaps)).any()


def test_tasks_that_a_test_does_not_use_are_left_out_of_it():
    gaps = differences(9, 2, gap=1.0)
    longer = np.vstack([gaps, np.full((4, 1), np.nan), np.zeros((3, 1))])
    assert max_t(longer) == pytest.approx(max_t(gaps))


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (5, 3)])
def test_tests_without_any_difference_are_1(shape):
    assert max_t(np.zeros(shape)).tolist() == [1.0] * shape[1]


def test_holm_gives_the_textbook_values():
    assert holm([0.01, 0.04, math.nan, 0.03]).tolist() == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)
