import numpy as np
import pandas as pd
import pytest

from evalkit.stats import compare_all, pair_structure


def pairs(*rows):
    """Pairs from (better, worse) where decided, (one, other, shared tasks) where not."""
    found = [
        {
            "model_a": row[0],
            "model_b": row[1],
            "n_tasks": 9 if len(row) == 2 else row[2],
            "estimate": 0.5 if len(row) == 2 else np.nan,
            "decided": len(row) == 2,
        }
        for row in rows
    ]
    return pd.DataFrame(found, columns=["model_a", "model_b", "n_tasks", "estimate", "decided"])


@pytest.mark.parametrize(
    ("rows", "groups", "unshared", "cycles"),
    [
        ([("a", "b"), ("a", "c"), ("b", "c")], [("a", "b", "c")], [], []),
        ([("a", "b"), ("b", "c"), ("c", "a")], [("a", "b", "c")], [], [("a", "b", "c")]),
        ([("a", "b"), ("a", "c", 0), ("b", "c", 0)], [("a", "b"), ("c",)], [], []),
        ([("a", "b"), ("a", "c", 0), ("b", "c")], [("a", "b", "c")], [("a", "c")], []),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")], [("a", "b", "c", "d")], [], [("a", "c", "d")]),
        (
            [("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("y", "z"), ("z", "x"), ("a", "x")],
            [("a", "b", "c", "x", "y", "z")],
            [],
            [("a", "b", "c"), ("x", "y", "z")],
        ),
        ([], [], [], []),
    ],
)
def test_groups_gaps_and_cycles_are_found(rows, groups, unshared, cycles):
    found = pair_structure(pairs(*rows))
    assert found.groups == tuple(groups)
    assert found.unshared == tuple(unshared)
    assert found.cycles == tuple(cycles)
    assert bool(found.warning) == (len(groups) > 1 or bool(unshared) or bool(cycles))


def test_each_model_of_a_cycle_is_better_than_the_next():
    rng = np.random.default_rng(0)
    for _ in range(50):
        edges = {(a, b) for a, b in rng.integers(0, 7, (12, 2)) if a < b}
        edges = [(a, b) if rng.random() < 0.5 else (b, a) for a, b in edges]
        found = pair_structure(pairs(*[(str(a), str(b)) for a, b in edges]))
        for cycle in found.cycles:
            assert len(set(cycle)) == len(cycle) >= 3
            for one, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
                assert (int(one), int(following)) in edges


def test_rock_scissors_paper_on_disjoint_tasks_is_named():
    rows = [
        (name, f"{winner}{i}", float(name == winner))
        for winner, loser in (("rock", "scissors"), ("scissors", "paper"), ("paper", "rock"))
        for i in range(12)
        for name in (winner, loser)
    ]
    found = compare_all(pd.DataFrame(rows, columns=["model", "task", "value"]), "model", "task", "value")
    assert found["decided"].all()
    assert "paper > rock > scissors > paper is a cycle" in str(pair_structure(found).warning)
