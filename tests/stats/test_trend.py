import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.discrete.discrete_model import Logit
from statsmodels.stats.proportion import confint_proportions_2indep

from evalkit.stats import rate_interval, trend_by, trend_steps, trend_test
from evalkit.stats.pairs import holm

LEVELS = st.lists(
    st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=5
)


def exact_p_value(successes, n, scores):
    """Two-sided p value of Σ score × successes over all tables with these margins."""
    mean, total, found = np.dot(scores, n) / sum(n), sum(successes), {}
    for table in product(*[range(size + 1) for size in n]):
        if sum(table) == total:
            far = abs(np.dot(np.array(scores) - mean, table))
            found[table] = far, math.prod(math.comb(size, s) for size, s in zip(n, table, strict=True))
    seen = found[tuple(successes)][0]
    return sum(w for far, w in found.values() if far >= seen - 1e-9) / sum(w for _, w in found.values())


@settings(max_examples=25)
@given(st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=4))
def test_independent_trials_have_the_exact_conditional_p_value(levels):
    successes, n = zip(*levels, strict=True)
    found = trend_test(successes, n, range(len(n)))
    if sum(successes) in (0, sum(n)):
        assert math.isnan(found.p_value)
        assert str(found.warning) == "all outcomes are equal"
        return
    assert found.p_value == pytest.approx(exact_p_value(successes, n, range(len(n))), abs=0.025)
    assert (found.n, found.n_clusters) == (sum(n), sum(n))


def test_clusters_of_one_level_each_are_permuted_whole():
    rates, scores = np.array([4, 3, 4, 1, 2, 0]), np.array([0, 0, 1, 1, 2, 2])
    found = trend_test(rates, [4] * 6, scores, range(6))

    def studentised(order):
        parts = (scores - 1) * (np.array(order) - rates.mean())
        return abs(parts.sum()) / math.sqrt((parts**2).sum())

    exact = np.mean([studentised(order) >= studentised(rates) - 1e-9 for order in permutations(rates)])
    assert found.p_value == pytest.approx(exact, abs=0.02)
    assert found.method == "permutation of clusters"


def test_clusters_that_span_levels_have_their_levels_permuted():
    successes = np.array([[4, 2, 1], [3, 3, 0], [4, 4, 3]])
    found = trend_test(successes.ravel(), [4] * 9, [0, 1, 2] * 3, np.repeat(range(3), 3))
    orders = list(permutations([-1, 0, 1]))

    def studentised(three):
        parts = np.array([np.dot(o, row) for o, row in zip(three, successes, strict=True)])
        return abs(parts.sum()) / max(math.sqrt((parts**2).sum()), 1e-9)

    seen = studentised([[-1, 0, 1]] * 3)
    exact = np.mean([studentised(three) >= seen - 1e-9 for three in product(*[orders] * 3)])
    assert found.p_value == pytest.approx(exact, abs=0.02)
    assert found.method == "permutation of levels within clusters"


def test_the_odds_ratio_is_that_of_a_logistic_fit():
    successes, n, scores = [10, 6, 2], [12, 12, 12], [0, 1, 2]
    found = trend_test(successes, n, scores)
    outcome = np.concatenate([[1] * s + [0] * (m - s) for s, m in zip(successes, n, strict=True)])
    level = np.repeat(scores, n)
    fit = Logit(outcome, np.column_stack([np.ones(36), level])).fit(disp=0)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (np.exp(fit.params[1]), *np.exp(fit.conf_int()[1])), rel=1e-5
    )
    assert found.estimate < 1
    assert str(found.warning) == ""


def test_no_trend_is_claimed_where_clusters_of_some_levels_hold_many_more_runs():
    found = trend_test([9, 9, 10, 8, 0, 0, 0, 1], [10] * 4 + [1] * 4, [0] * 4 + [1] * 4, range(8))
    assert (found.direction, "uneven" in found.warning) == ("no", True)


def test_the_odds_ratio_excludes_1_exactly_where_the_test_rejects_it():
    rng = np.random.default_rng(0)
    for _ in range(60):
        successes = rng.binomial(4, rng.choice([0.3, 0.5, 0.8], 9))
        found = trend_test(successes, [4] * 9, [0, 1, 2] * 3, range(9), n_permutations=499)
        if math.isfinite(found.low):
            assert (found.low > 1 or found.high < 1) == (found.p_value <= 0.05)


@pytest.mark.parametrize(
    ("successes", "n", "direction"),
    [
        ([95, 60, 20], 100, "falls"),
        ([20, 60, 95], 100, "rises"),
        ([90, 88, 40], 100, "falls overall"),
        ([100, 13, 60], 100, "falls, not steadily"),
        ([50, 52, 51], 100, "no"),
        ([5, 5, 5], 5, ""),
    ],
)
def test_success_is_said_to_fall_only_where_each_step_shows_it(successes, n, direction):
    found = trend_test(successes, [n] * 3, [0, 1, 2])
    assert found.direction == direction
    steps = trend_steps(successes, [n] * 3, [0, 1, 2])
    if direction == "falls":
        assert (steps["high"] < 0).all()
    if direction == "falls, not steadily":
        assert (steps["estimate"] > 0).any()


RUNS = pd.DataFrame(
    [
        (model, f"{model}{level}{task}", level, float(run < passed))
        for model, passes in {"down": (4, 2, 0), "flat": (2, 2, 2), "up": (0, 1, 4)}.items()
        for level, passed in enumerate(passes)
        for task in range(5)
        for run in range(4)
    ],
    columns=["model", "task", "level", "value"],
)


def test_trends_of_groups_are_corrected_for_their_number():
    found = trend_by(RUNS, "model", "level", "value", "task").set_index("model")
    assert found["p_holm"].tolist() == pytest.approx(holm(found["p_value"]).tolist())
    assert found.loc["flat", "direction"] == "no"
    assert found.loc["down", "direction"].startswith("falls")
    part = RUNS[RUNS["model"] == "down"].groupby(["level", "task"])["value"].agg(["sum", "size"]).reset_index()
    alone = trend_test(part["sum"], part["size"], part["level"], part["task"])
    assert found.loc["down", "estimate"] == pytest.approx(alone.estimate)
    assert found.loc["down", "n_clusters"] == 15


@pytest.mark.parametrize(
    ("successes", "n", "scores", "clusters", "warning"),
    [
        ([], [], [], None, "no trials"),
        ([0, 0], [0, 0], [0, 1], None, "no trials"),
        ([1], [2], [0], None, "a single level has no trend"),
        ([1, 2], [2, 3], [1, 1], None, "a single level has no trend"),
        ([2, 2], [2, 2], [0, 1], None, "all outcomes are equal"),
        ([0, 0], [2, 2], [0, 1], ["a", "b"], "all outcomes are equal"),
        ([3, 2, 0], [4, 4, 4], [0, 1, 2], list("abc"), "too few clusters: need more than one per level"),
        ([1, None], [2, 2], [0, 1], None, "a single level has no trend; 1 row left out as missing"),
    ],
)
def test_what_has_no_trend_is_nan_and_says_why(successes, n, scores, clusters, warning):
    found = trend_test(successes, n, scores, clusters)
    assert all(math.isnan(value) for value in found[:4])
    assert str(found.warning) == warning


@pytest.mark.parametrize(("successes", "ratio"), [([8, 0], 0), ([0, 8], math.inf), ([8, 3, 0], 0), ([8, 3, 1], None)])
def test_levels_that_separate_the_outcomes_have_an_odds_ratio_without_bounds(successes, ratio):
    found = trend_test(successes, [8] * len(successes), range(len(successes)))
    assert 0 < found.p_value < 0.01
    if ratio is None:
        assert found.low < found.estimate < found.high < 1
    else:
        assert found.estimate == ratio
        assert math.isnan(found.low)
        assert str(found.warning).startswith("the levels separate")


def test_steps_have_the_interval_of_newcombe_of_those_of_both_levels():
    found = trend_steps([9, 4, 4], [12, 10, 20], [0, 1, 5])
    assert found[["level", "next_level"]].to_numpy().tolist() == [[0, 1], [1, 5]]
    for row, (s1, n1, s2, n2) in zip(found.to_dict("records"), ((9, 12, 4, 10), (4, 10, 4, 20)), strict=True):
        theirs = confint_proportions_2indep(s2, n2, s1, n1, method="newcomb")
        assert row["estimate"] == pytest.approx(s2 / n2 - s1 / n1)
        assert (row["low"], row["high"]) == pytest.approx(theirs, abs=1e-9)
        assert (row["n_clusters"], row["next_n_clusters"]) == (n1, n2)
    first, second = [4, 3, 4, 2], [1, 2, 0]  # of clusters of one level each
    found = trend_steps(first + second, [4] * 7, [0] * 4 + [1] * 3, range(7)).iloc[0]
    one, other = (
        rate_interval(np.repeat(x, 4) > np.tile(range(4), len(x)), np.repeat(range(len(x)), 4)) for x in (first, second)
    )
    below = math.hypot(other.estimate - other.low, one.high - one.estimate)
    assert (found["estimate"], found["low"]) == pytest.approx(
        (other.estimate - one.estimate, other.estimate - one.estimate - below)
    )
