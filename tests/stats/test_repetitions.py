import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.stats import mean_interval, pass_at_k, pass_hat_k

ATTEMPTS = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(ATTEMPTS)
def test_it_is_the_share_of_subsets_that_hold_a_success(attempts):
    n, c, k = attempts
    subsets = list(combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(np.mean([any(subset) for subset in subsets]), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(np.mean([all(subset) for subset in subsets]), abs=1e-12)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_one_attempt_succeeds_at_the_success_rate(counts):
    n, c = counts
    assert pass_at_k(n, c, 1) == pytest.approx(c / n, abs=1e-9)


def test_it_is_unbiased():
    rate, n, k = 0.2, 6, 4
    outcomes = np.random.default_rng(0).binomial(n, rate, 200_000)
    assert pass_at_k(np.full(len(outcomes), n), outcomes, k).mean() == pytest.approx(1 - (1 - rate) ** k, abs=0.003)


def test_a_task_with_fewer_attempts_than_k_or_missing_counts_is_nan():
    found = pass_at_k([2, 5, 5, None, 5], [2, 5, 0, 1, None], 3)
    assert found.tolist() == pytest.approx([math.nan, 1, 0, math.nan, math.nan], nan_ok=True)
    assert isinstance(pass_at_k(5, 2, 1), float)
    assert math.isnan(pass_at_k(1, 1, 2))
    assert mean_interval(found).n == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 6, 1), "0 <= c <= n"),
        ((5, -1, 1), "0 <= c"),
        ((5, 1, 0), "from 1"),
        ((5.5, 1, 1), "whole"),
        ((5, 1, 1.5), "k"),
    ],
)
def test_counts_that_cannot_be_are_misuse(arguments, message):
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=message):
            function(*arguments)
