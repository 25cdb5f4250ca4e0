import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from statsmodels.discrete.discrete_model import Logit

from evalkit.stats import trend_by, trend_test
from evalkit.stats.pairwise import holm


def trials(successes, n):
    """Trials that are clusters of their own: outcome, size, level and cluster of each."""
    outcomes = np.concatenate([np.arange(n) < passed for passed in successes]).astype(float)
    return outcomes, np.ones(len(outcomes)), np.repeat(range(len(successes)), n), range(len(outcomes))


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
    given = trials([10, 6, 2], 12)
    fit = Logit(given[0], np.column_stack([np.ones(36), given[2]])).fit(disp=0)
    found = trend_test(*given)
    assert found.estimate == pytest.approx(np.exp(fit.params[1]), rel=1e-5)
    assert found.low < found.estimate < found.high < 1
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
        ([80, 65, 30], 100, "falls"),  # by Newcombe the first step ends at -2.6 %
        ([80, 69, 30], 100, "falls overall"),  # and here at 1.2 %
        ([80, 23, 50], 100, "falls, not steadily"),
        ([50, 52, 51], 100, "no"),
        ([5, 5, 5], 5, ""),
    ],
)
def test_success_is_said_to_fall_only_where_each_step_shows_it(successes, n, direction):
    assert trend_test(*trials(successes, n), n_permutations=999).direction == direction


def test_trends_of_groups_are_corrected_for_their_number():
    passes = {"down": (4, 2, 0), "flat": (2, 2, 2), "up": (0, 1, 4)}
    rows = [
        (model, f"{model}{level}{task}", level, float(run < passed))
        for model, levels in passes.items()
        for level, passed in enumerate(levels)
        for task in range(5)
        for run in range(4)
    ]
    runs = pd.DataFrame(rows, columns=["model", "task", "level", "value"])
    found = trend_by(runs, "model", "level", "value", "task").set_index("model")
    assert found["p_holm"].tolist() == pytest.approx(holm(found["p_value"]).tolist())
    assert found.loc["flat", "direction"] == "no"
    assert found.loc["down", "direction"].startswith("falls")
    part = runs[runs["model"] == "down"].groupby(["level", "task"])["value"].agg(["sum", "size"]).reset_index()
    alone = trend_test(part["sum"], part["size"], part["level"], part["task"])
    assert found.loc["down", "estimate"] == pytest.approx(alone.estimate)
    assert found.loc["down", "n_tasks"] == 15


@pytest.mark.parametrize(
    ("successes", "n", "scores", "clusters", "warning"),
    [
        ([], [], [], [], "no trials"),
        ([0, 0], [0, 0], [0, 1], "ab", "no trials"),
        ([1, 2], [2, 3], [1, 1], "ab", "a single level has no trend"),
        ([0, 0], [2, 2], [0, 1], "ab", "all outcomes are equal"),
        ([3, 2, 0], [4, 4, 4], [0, 1, 2], "abc", "too few clusters: each level needs more than one"),
        ([1, None], [2, 2], [0, 1], "ab", "a single level has no trend; 1 row left out as missing"),
    ],
)
def test_what_has_no_trend_is_nan_and_says_why(successes, n, scores, clusters, warning):
    found = trend_test(successes, n, scores, clusters)
    assert all(math.isnan(value) for value in found[:4])
    assert str(found.warning) == warning


@pytest.mark.parametrize(("successes", "ratio"), [([8, 0], 0), ([0, 8], math.inf), ([8, 3, 0], 0)])
def test_levels_that_separate_the_outcomes_have_an_odds_ratio_without_bounds(successes, ratio):
    found = trend_test(*trials(successes, 8))
    assert 0 < found.p_value < 0.01
    assert found.estimate == ratio
    assert math.isnan(found.low)
    assert "separated" in found.warning
