"""Functions that take a frame, on frames as they come: odd types, gaps, doubled indices, nothing at all; and misuse."""

import warnings

import numpy as np
import pandas as pd
import pytest

from evalkit import stats
from evalkit.stats import cells_of


def cells(frame, **columns):
    return cells_of(frame, "model", "task", "value", **columns)


FUNCTIONS = {
    "estimate_by": lambda f: stats.estimate_by(f, "model", "value", "task"),
    "estimate_by, score": lambda f: stats.estimate_by(f, "model", "cost", "task", "score", target="these tasks"),
    "compare_all": lambda f: stats.compare_all(cells(f, stratum="type"), margin=0.1),
    "these tasks": lambda f: stats.compare_all(cells(f), target="these tasks"),
    "pair_structure": lambda f: stats.pair_structure(stats.compare_all(cells(f))),
    "rank_models": lambda f: stats.rank_models(cells(f)),
    "adjusted_rates": lambda f: stats.adjusted_rates(cells(f, stratum="type")),
    "plan": lambda f: stats.plan(cells(f), 0.1),
    "reliability": lambda f: stats.reliability(cells(f), order="run"),
    "trend_by": lambda f: stats.trend_by(f, "model", "run", "value", "task"),
    "cost_front": lambda f: stats.cost_front(cells(f), "cost"),
}


def frame():
    rng = np.random.default_rng(0)
    values = pd.array(rng.integers(0, 2, 60), dtype="boolean")
    values[3] = pd.NA
    return pd.DataFrame(
        {
            "model": np.repeat([3, 1, 2], 20),
            "task": np.tile(np.arange(10), 6),
            "run": np.tile(np.repeat([0, 1], 10), 3),
            "type": pd.Categorical(np.tile(["x", "y"], 30), ["y", "unused", "x"]),
            "value": values,
            "cost": rng.random(60),
        },
        index=rng.integers(0, 5, 60),
    )


FRAMES = {
    "numbered models, a doubled index, missing values": lambda f: f,
    "categories, some of them unused": lambda f: f.assign(
        model=pd.Categorical(f["model"].astype("str"), list("92 31"))
    ),
    "no rows": lambda f: f[:0],
    "one model": lambda f: f[f["model"] == 1],
    "one row": lambda f: f[:1],
    "no value known": lambda f: f.assign(value=None),
    "values without end, or whose powers overflow": lambda f: f.assign(value=np.resize([np.inf, 1e300, -1e300, 1], 60)),
    "no task known": lambda f: f.assign(task=None),
    "some models unknown": lambda f: f.assign(model=f["model"].where(f["model"] != 2)),
    "tasks that no two models share": lambda f: f.assign(task=f["model"] * 100 + f["task"]),
    "all outcomes equal": lambda f: f.assign(value=True),
    "hostile names": lambda f: f.assign(model=f["model"].map({1: "<b>\n", 2: "%s {0}", 3: ""})),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_data_never_raise_nor_warn_and_are_left_as_they_were(function, kind):
    given = FRAMES[kind](frame())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FUNCTIONS[function](given)
    pd.testing.assert_frame_equal(given, FRAMES[kind](frame()))


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name != "pair_structure"])
def test_the_order_of_rows_does_not_matter(function):
    given = frame().astype({"model": "str"})
    found, shuffled = (FUNCTIONS[function](rows) for rows in (given, given.sample(frac=1, random_state=1)))
    found, shuffled = (result.table if hasattr(result, "table") else result for result in (found, shuffled))
    pd.testing.assert_frame_equal(found, shuffled)


COLUMNS = ("model", "task", "value")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: stats.proportion_interval(3, 2), "3 successes of 2 can't be"),
        (lambda f: stats.proportion_interval(1.5, 2), "whole numbers"),
        (lambda f: stats.rate_interval([0, 1, 0.5]), "0/1 values"),
        (lambda f: stats.rate_interval([0, 1, 1], ["a", "b"]), "3 values, but 2 cluster labels"),
        (lambda f: stats.mean_interval([0.5, 1.5], bounds=(0, 1)), "beyond the bounds"),
        (lambda f: stats.mean_interval([0.5, 1.5], target="all tasks"), "unknown target 'all tasks'"),
        (lambda f: stats.mean_interval([0.5, 1.5], target="these tasks"), "needs clusters"),
        (lambda f: stats.estimate_by(f, "model", "value", None, "median"), "unknown kind 'median'"),
        (lambda f: stats.estimate_by(f, "mode", "value"), "no column 'mode'; did you mean 'model'"),
        (lambda f: stats.estimate_by(f.assign(n=1), "n", "value"), "can't group by 'n'"),
        (lambda f: stats.estimate_by(f, ["run", "model", "run"], "value"), "can't group by 'run': .* two columns"),
        (lambda f: stats.reliability(cells_of(f.assign(low=f["model"]), "low", "task", "value")), "group by 'low'"),
        (lambda f: stats.trend_by(f.assign(p_holm="x"), "p_holm", "run", "value", "task"), "can't group by 'p_holm'"),
        (lambda f: stats.mean_interval([2, 3], bounds=(4, 1)), "the smaller one first .got 4 and 1"),
        (lambda f: stats.mean_interval([2, 2], bounds=(2, 2)), "the smaller one first"),
        (lambda f: stats.mean_interval([2, 3], bounds=(-np.inf, 4)), "two finite numbers"),
        (lambda f: stats.mean_interval([2, 3], bounds=(0, np.nan)), "two finite numbers"),
        (lambda f: stats.mean_interval([2, 3, 7], confidence=99), "between 0 and 1 .got 99"),
        (lambda f: stats.mean_interval([2, 3, 7], confidence=1), "between 0 and 1"),
        (lambda f: stats.mean_interval([[2, 3], [4, 7]]), "one dimension .got 2"),
        (lambda f: stats.rate_interval(f[["value", "run"]]), "one dimension"),
        (lambda f: stats.half_width_after(-3, [1, 0], [1, 0], [1] * 9), "0 or larger .got -3"),
        (lambda f: stats.pass_at_k(9, 4, np.inf), "whole number from 1, not inf"),
        (lambda f: cells_of(f, "agent", "task", "value"), "no column 'agent'"),
        (lambda f: stats.compare_all(cells(f), target="none"), "unknown target"),
        (lambda f: stats.compare_all(cells(f), margin=-0.1), "margin must be positive"),
        (lambda f: stats.compare_to_baseline(cells(f), 7), "no runs of the baseline 7; there are 1, 2, 3"),
        (lambda f: stats.compare_to_baseline(cells(f), 1, margin=0), "margin must be positive"),
        (lambda f: stats.plan(cells(f), 0), "difference must be positive"),
        (lambda f: stats.plan(cells(f), 0.5, repeats=[0]), "from 1"),
        (lambda f: stats.plan(cells(f), 0.5, repeats=[]), "from 1"),
        (lambda f: stats.reliability(cells(f), ks=[0]), "from 1"),
        (lambda f: stats.reliability(cells(f), order="turn"), "no column 'turn'"),
        (lambda f: stats.reliability(cells(f.assign(value=0.5))), "0/1 outcomes"),
        (lambda f: stats.trend_test([3], [2], [0], ["a"]), "0 <= successes <= n"),
        (lambda f: stats.trend_test([1, 1], [2, 2], [0, 1], ["a"]), "2 values, but 1 cluster labels"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(frame())
