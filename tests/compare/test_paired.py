"""Pairs, a baseline, reliability, plans and cost, on runs of any kind."""

import numpy as np
import pytest

from evalkit import compare
from evalkit.io import SourceError
from tests.compare.runs import runs_of


def played(rates, tasks=40, repetitions=1, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (m, f"t{t}", bool(rng.random() < p)) for m, p in rates.items() for t in range(tasks) for _ in range(repetitions)
    ]


def test_a_model_without_any_outcome_is_not_compared():
    (pair,) = compare.pairs(runs_of([("a", "t", True), ("b", "t", None)])).to_dict("records")
    assert "unmeasured" in pair["warning"]
    assert pair["sentence"] == "Not compared: no run of b was measured."


@pytest.mark.parametrize(
    ("rate", "verdict"), [(0.95, "better"), (0.6, "not worse"), (0.1, "regression"), (0.5, "not decided")]
)
def test_a_model_against_a_baseline(rate, verdict):
    base = [("old", f"t{i}", i % 10 < 6) for i in range(200)]
    new = {"not worse": [("new", f"t{i}", i % 10 < 6) for i in range(200)]}
    runs = runs_of(base + new.get(verdict, played({"new": rate}, tasks=200 if verdict != "not decided" else 9)))
    assert compare.against(runs, "old", margin=0.05)["verdict"].tolist() == [verdict]


def test_a_baseline_without_runs_is_an_error_that_names_the_models():
    with pytest.raises(SourceError, match=r"baseline 'c'.*'a'"):
        compare.against(runs_of([("a", "t", True)]), "c")


@pytest.mark.parametrize(("columns", "unit"), [({"cost": 1.0}, "cost"), ({"duration": 5.0}, "duration"), ({}, "")])
def test_cost_is_what_the_runs_carry(columns, unit):
    runs = runs_of(played({"a": 0.9, "b": 0.2}), **columns)
    if unit:
        runs[unit] = runs[unit].where(runs["model_name"] == "a", 9.0)
    table, found = compare.cost(runs)
    assert found == unit
    assert table["model"].tolist() == (["a", "b"] if unit else [])
    assert table.loc[table["on_front"], "model"].tolist() == (["a"] if unit else [])


def test_of_many_pairs_a_page_shows_those_that_say_most():
    runs = runs_of(played({f"m{i:02d}": 0.05 + 0.06 * i for i in range(15)}, tasks=30))
    pairs = compare.pairs(runs)
    assert (len(pairs), len(compare.notable(pairs))) == (105, 45)
    assert compare.notable(pairs)["p_adjusted"].is_monotonic_increasing
    assert compare.pairs_text(pairs).startswith(f"{int(pairs['decided'].sum())} of 105 pairs of 15 models are decided.")
    assert len(compare.figures.differences(pairs).get_yticklabels()) == 15
