import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from evalkit.stats import cells_of, mean_interval, pass_at_k, pass_hat_k, rate_interval, reliability, repeats_test


def retried(tasks=40, most=5, seed=0, model="m", stop=True):
    """Runs of tasks, until one succeeds or for a fixed number of times."""
    rng, rows = np.random.default_rng(seed), []
    for task in range(tasks):
        rate = rng.beta(1, 1)
        for attempt in range(most):
            passed = rng.random() < rate
            rows.append((model, task, attempt, float(passed)))
            if passed and stop:
                break
    return pd.DataFrame(rows, columns=["model", "task", "attempt", "value"])


def measured(table, **options):
    return reliability(cells_of(table, "model", "task", "value"), **options).set_index("measure")


def test_each_k_uses_all_tasks_with_as_many_runs_and_says_their_share():
    few = retried(most=2, seed=2, stop=False)
    more = retried(tasks=120, most=5, seed=5, stop=False).assign(task=lambda rows: rows["task"] + 100)
    table = pd.concat([few, more])
    found = measured(table, ks=[1, 2, 4])
    assert found["n_tasks"].to_dict() == {
        "pass@1": 160, "pass^1": 160, "pass@2": 160, "pass^2": 160, "pass@4": 120, "pass^4": 120, "agreement": 160,
    }  # fmt: skip
    assert found["tasks_used"].tolist() == [1, 1, 1, 1, 0.75, 0.75, 1]
    assert found.loc["pass@1", "estimate"] == rate_interval(table["value"], table["task"]).estimate
    assert found.loc["pass@4", "estimate"] == measured(more, ks=[4]).loc["pass@4", "estimate"]
    noted = found["warning"].map(str).str.contains("40 tasks with fewer than 4 runs excluded")
    assert noted.tolist() == [False] * 4 + [True] * 2 + [False]


def test_pass_at_1_is_the_rate_of_all_tasks_where_hard_ones_have_fewer_runs():
    hard = [("m", f"hard{task}", run, 0.0) for task in range(20) for run in range(2)]
    easy = [("m", f"easy{task}", run, float(run < 4)) for task in range(40) for run in range(5)]
    found = measured(pd.DataFrame(hard + easy, columns=["model", "task", "attempt", "value"]))
    assert found.loc["pass@1", "estimate"] == pytest.approx(40 * 0.8 / 60)
    assert found.loc["pass@5", ["estimate", "tasks_used"]].tolist() == pytest.approx([1, 2 / 3])


def test_measures_are_means_over_tasks_with_the_interval_of_bounded_values():
    table = retried(stop=False)
    found = measured(table, ks=[1, 3])
    counts = table.groupby("task")["value"].agg(["size", "sum"])
    expected = mean_interval(pass_at_k(counts["size"], counts["sum"], 3), counts.index, bounds=(0, 1))
    assert found.loc["pass@3", ["estimate", "low", "high"]].tolist() == pytest.approx(list(expected[:3]))
    assert found.loc["pass@1", ["low", "high"]].tolist() == pytest.approx(
        list(rate_interval(table["value"], table["task"])[1:3])
    )
    assert found.loc["pass@3", "target"] == "new tasks"


def test_agreement_is_the_share_of_pairs_of_runs_that_end_alike():
    table = pd.DataFrame({"model": "m", "task": list("aaabbb"), "value": [1, 1, 0, 0, 0, 0]})
    assert measured(table, ks=[1]).loc["agreement", ["k", "estimate"]].tolist() == pytest.approx([2, (1 / 3 + 1) / 2])


def test_retrying_until_success_is_flagged_and_honest_repetition_is_not():
    flagged, honest = measured(retried(), order="attempt"), measured(retried(stop=False), order="attempt")
    assert flagged["warning"].map(str).str.contains("the number of runs depends on their outcome").all()
    assert not honest["warning"].map(str).str.contains("depends").any()
    assert measured(retried()).equals(measured(retried(), order="attempt"))  # the rows are in this order


def test_the_order_of_runs_decides_which_run_of_a_task_is_the_last():
    # the run with the success is the last by its number, the first by its place
    rows = [(task, attempt, float(attempt == 3)) for task in range(12) for attempt in (3, 1, 2, 0)]
    rows.append((12, 0, 1.0))
    tasks, attempts, values = zip(*rows, strict=True)
    found = repeats_test(values, tasks, attempts)
    assert found.p_value == pytest.approx(2 * 0.25**12)
    assert (found.flagged, found.n_tasks) == (True, 12)
    assert repeats_test(values, tasks, [-a for a in attempts]).p_value > 0.01  # the last never succeeds: .75 ** 12
    assert repeats_test([1, 0, 0, 1], list("aabb")).p_value == 1  # one of the two lasts: both tails hold most of it


@pytest.mark.parametrize(
    ("runs", "flagged"),
    [
        ({range(20): [0, 1]}, False),  # each task twice: a second pass under other conditions
        ({range(20): [0, 1], range(20, 25): [1, None]}, False),  # not measured, but run
        ({range(20): [0, 1], range(20, 25): [1]}, True),
        ({range(20): [1, 0], range(20, 25): [1]}, False),  # until it failed
    ],
)
def test_only_unequal_numbers_of_runs_that_end_with_a_success_are_retries(runs, flagged):
    rows = [(task, value) for tasks, values in runs.items() for task in tasks for value in values]
    tasks, values = zip(*rows, strict=True)
    found = repeats_test(values, tasks)
    assert found.p_value < 0.001
    assert found.flagged == flagged


@pytest.mark.parametrize(
    ("extra", "usual", "flagged"),
    [([1, 1, 1], 5, True), ([0, 0, 1], 5, False), ([1, 1, 1], 8, False), ([1, 1, 1], None, True)],
)
def test_failures_that_were_run_again_are_retries_in_tasks_that_mostly_succeed(extra, usual, flagged):
    rows = []
    for task in range(36):
        values = [1, 1, 1, 1]
        values.insert(task % 5, 0)
        if task < 16:  # of such a task, 7 of 8 runs succeed, so its last run says little
            values += extra
        rows += [(task, value) for value in values]
    tasks, values = zip(*rows, strict=True)
    assert repeats_test(values, tasks, usual=usual).flagged == flagged


def test_the_test_of_additional_runs_is_hypergeometric():
    found = repeats_test([0, 0, 1, 1, 1, 0, 1], list("aaaaabb"), usual=2)
    assert found.p_value == pytest.approx(2 * 2 * hypergeom(5, 3, 3).pmf(3))  # of both tests, two-sided


def test_the_flag_is_raised_wrongly_in_about_one_percent():
    rng, wrong = np.random.default_rng(4), []
    for _ in range(150):
        sizes = rng.integers(1, 6, 25)
        tasks = np.repeat(np.arange(25), sizes)
        values = rng.random(len(tasks)) < rng.beta(1, 1, 25)[tasks]
        wrong.append(repeats_test(values, tasks).flagged)
    assert np.mean(wrong) <= 0.03


@pytest.mark.parametrize(
    ("values", "tasks", "order", "warning"),
    [
        ([], [], None, "no task was run more than once"),
        ([1, 0], list("ab"), [0, 0], "no task was run more than once"),
        ([1, 1, 0], list("aab"), [0, 1, 0], "no task has both successes and failures"),
    ],
)
def test_what_tells_nothing_is_not_flagged(values, tasks, order, warning):
    found = repeats_test(values, tasks, order)
    assert math.isnan(found.p_value)
    assert (found.flagged, str(found.warning)) == (False, warning)


ATTEMPTS = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(ATTEMPTS)
def test_pass_at_k_is_the_share_of_subsets_with_a_success(attempts):
    n, c, k = attempts
    subsets = list(combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(np.mean([any(subset) for subset in subsets]), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(np.mean([all(subset) for subset in subsets]), abs=1e-12)


@pytest.mark.parametrize(
    ("function", "n", "c", "k", "share"),
    [
        (pass_hat_k, 3000, 1500, 1, 0.5),
        (pass_hat_k, 5000, 4999, 2500, 0.5),
        (pass_at_k, 4000, 1, 3000, 0.75),
        (pass_at_k, 1500, 0, 700, 0.0),
    ],
)
def test_thousands_of_attempts_have_their_share(function, n, c, k, share):
    assert function(n, c, k) == pytest.approx(share, rel=1e-9)


def test_a_task_with_fewer_attempts_than_k_or_missing_counts_is_nan():
    found = pass_at_k([2, 5, 5, None, 5], [2, 5, 0, 1, None], 3)
    assert found.tolist() == pytest.approx([math.nan, 1, 0, math.nan, math.nan], nan_ok=True)
    assert isinstance(pass_at_k(5, 2, 1), float)
    assert math.isnan(pass_at_k(1, 1, 2))
    assert mean_interval(found).n == 2
