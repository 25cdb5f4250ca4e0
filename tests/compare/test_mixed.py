"""The mixed model that stands beside paired comparisons as a second opinion."""

import numpy as np
import pytest
from scipy.special import expit

from evalkit import compare
from tests.compare.runs import runs_of


def played(effects, tasks=60, repetitions=3, spread=1.0, seed=0, scores=False):
    rng = np.random.default_rng(seed)
    ease = spread * rng.standard_normal(tasks)
    draw = (lambda x: float(5 * x + rng.normal())) if scores else (lambda x: bool(rng.random() < expit(x)))
    return [
        (m, f"t{t}", draw(b + ease[t])) for m, b in effects.items() for t in range(tasks) for _ in range(repetitions)
    ]


def test_marginal_means_are_close_to_the_means_of_complete_runs_and_parts_to_their_variances():
    runs = runs_of(played({"a": 1.0, "b": -0.5, "c": 0.0}, seed=2))
    found = compare.mixed(runs)
    assert found.reason == ""
    means = compare.leaderboard(runs).table.set_index("model_name")["estimate"]
    table = found.table.set_index("model_name")
    assert table["estimate"].to_dict() == pytest.approx(means.to_dict(), abs=0.03)
    assert (table["low"] < table["estimate"]).all()
    assert table.loc["b", "difference_high"] < 0
    assert table.loc["a", ["difference", "difference_low", "difference_high"]].tolist() == [0, 0, 0]
    assert found.shares["share"].sum() == pytest.approx(1)
    assert 0.4 < found.shares.set_index("part").loc["task", "variance"] < 2


def test_scores_beyond_0_to_1_are_fitted_by_a_linear_model():
    found = compare.mixed(runs_of(played({"a": 1.0, "b": 0.0}, scores=True), "crafter"), "score")
    table = found.table.set_index("model_name")
    assert table.loc["b", "difference"] == pytest.approx(-5, abs=0.5)
    assert found.shares.set_index("part").loc["repetition", "variance"] == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(("effects", "tasks"), [({"a": 0.0}, 20), ({"a": 0.0, "b": 0.0}, 3)])
def test_what_cannot_be_fitted_has_no_numbers_but_a_reason(effects, tasks):
    found = compare.mixed(runs_of(played(effects, tasks)))
    assert found.table["estimate"].isna().all()
    assert found.shares["share"].isna().all()
    assert found.reason
