"""Estimate how reliable models are over repetitions: pass@k, pass^k, agreement, and whether runs were retried."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import check_columns
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import (
    Values,
    by_cluster,
    check_groups,
    clean,
    mean_interval,
    numbers,
    rate_interval,
    typed,
)

FLAGGED_AT = 0.01
MOST_K = 10
MOST_ADDITIONAL = 10  # maximum number of additional runs of a task that `repeats_test` compares with its others

Whole = int | np.integer
Wholes = Sequence[int] | np.ndarray | pd.Series

_COLUMNS = "measure k n n_tasks tasks_used estimate low high method target warning"


class RepeatsTest(NamedTuple):
    """A test of whether the number of runs of a task depends on their outcomes."""

    p_value: float  # two-sided; NaN if it can't be computed
    flagged: bool  # whether p <= 0.01, last runs succeed more often, and tasks have different numbers of runs
    n_tasks: int  # tasks used
    method: str
    warning: Notes = Notes()


def reliability(cells: Cells, *, ks: Sequence[int] | None = None, order: str | None = None) -> pd.DataFrame:
    """Estimate pass@k, pass^k and the agreement of runs for each model, on new tasks like these.

    Each k uses all tasks with at least k runs, with equal weight, so pass@1 equals the success rate. If some tasks have
    fewer runs, different k use different tasks.

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    ks : sequence of int, optional
        Values of k; by default 1, 2, ... up to the number of runs of at least half of each model's tasks, at most 10.
    order : str, optional
        Column that orders the runs of a task, for `repeats_test`.

    Returns
    -------
    DataFrame
        The model's column, measure ("pass@k", "pass^k", "agreement": whether two runs of a task have the same outcome),
        k, n (runs), n_tasks, tasks_used (share of tasks with k runs), estimate, low, high, method, target, warning
        (including one if the number of runs depends on outcomes).

    Raises
    ------
    ValueError
        For values other than 0 and 1, for k below 1, or if the model's column has the name of another column of the
        result.

    Examples
    --------
    >>> stats.reliability(cells, ks=[1])["estimate"].round(2).tolist()
    [0.67, 0.67, nan, 0.33, 0.33, nan]
    """
    by, task, value = cells.columns[:3]
    check_columns(cells.runs, order)
    check_groups([by], _COLUMNS.split())
    outcomes = numbers(cells.runs[value])
    usable = np.isfinite(outcomes) & cells.runs[task].notna().to_numpy()
    if not np.isin(outcomes[usable], (0.0, 1.0)).all():
        raise ValueError("pass@k needs 0/1 outcomes")
    rows = cells.runs[usable].assign(_value=outcomes[usable])
    sizes = rows.groupby([by, task], observed=True).size()
    if ks is None:
        half = sizes.groupby(level=0).quantile(0.5, interpolation="lower").min() if len(sizes) else 1
        ks = range(1, int(min(max(half, 1), MOST_K)) + 1)
    ks = sorted(set(ks))
    usual = int(sizes.mode()[0]) if len(sizes) else None
    measures = []
    for name, own in rows.groupby(by, observed=True):
        counts = own.groupby(task, observed=True)["_value"].agg(["size", "sum"])
        tested = repeats_test(own["_value"], own[task], None if order is None else own[order], usual)
        retried = note("retried", method=tested.method, p_value=tested.p_value) if tested.flagged else Notes()
        for measure, k in [*((measure, k) for k in ks for measure in ("pass@", "pass^")), ("agreement", 2)]:
            used = counts[counts["size"] >= k]
            n, c = used["size"].to_numpy(), used["sum"].to_numpy()
            if measure == "agreement":
                shares = (c * (c - 1) + (n - c) * (n - c - 1)) / (n * (n - 1))
            else:
                shares = np.asarray(pass_at_k(n, c, k) if measure == "pass@" else pass_hat_k(n, c, k))
            if k == 1:
                estimate = rate_interval(own["_value"], own[task])
            else:
                estimate = mean_interval(shares, used.index, bounds=(0.0, 1.0))
            left = len(counts) - len(used)
            doubts = note("too_few_runs", count=left, runs=k) if left else Notes()
            row = {by: name, "measure": measure if measure == "agreement" else f"{measure}{k}", "k": k}
            row |= estimate._replace(n=int(n.sum()))._asdict()
            row |= {"tasks_used": len(used) / len(counts), "warning": estimate.warning + doubts + retried}
            measures.append(row)
    table = pd.DataFrame(measures, columns=[by, *_COLUMNS.split()])
    return pd.concat([table[[by]], typed(table, _COLUMNS)], axis=1) if measures else table


def repeats_test(
    values: Values, tasks: Iterable[Any], order: Iterable[Any] | None = None, usual: int | None = None
) -> RepeatsTest:
    """Test whether the number of runs of a task depends on their outcomes, as it does with retries.

    If runs are exchangeable, the last of n runs with c successes is a success with probability c / n. The number of
    tasks whose last run is a success then has the exact distribution of independent trials with these probabilities. If
    tasks have more runs than usual, their additional runs (of each task the last ten) are tested in the same way, with
    a hypergeometric distribution; the smaller p value counts, times 2. If all tasks have the same number of runs, a
    small p shows only that later runs differ from earlier ones.

    Parameters
    ----------
    values : array_like, shape (n,)
        0/1 outcome of each run; NaN for a run that was not measured.
    tasks : array_like, shape (n,)
        Task of each run.
    order : array_like, shape (n,), optional
        Sortable position of each run within its task.
    usual : int, optional
        Usual number of runs of a task; by default the most frequent number.

    Returns
    -------
    RepeatsTest
        p_value, method, and `flagged`: whether runs were repeated until one succeeded.

    Examples
    --------
    >>> stats.repeats_test([0, 1, 0, 1], ["a", "a", "b", "b"]).p_value
    0.5
    """
    table = pd.DataFrame({"value": numbers(values), "task": list(tasks)})
    if order is not None:
        table = table.assign(order=list(order)).sort_values("order", kind="stable")
    known, codes, _ = clean(table["value"], table["task"])
    sizes, means, _ = by_cluster(known, codes)
    method, mixed = "last run of each task against its others, exact", (means > 0) & (means < 1)
    if not mixed.any():
        reason = note("nothing_mixed") if (sizes > 1).any() else note("never_repeated", why="")
        return RepeatsTest(math.nan, False, 0, method, reason)
    if usual is None:
        usual = int(pd.Series(sizes).mode()[0])
    p_value, is_more = _late_runs(known, codes, mixed.astype(int))
    late = np.where(mixed, np.clip(sizes - usual, 0, MOST_ADDITIONAL), 0).astype(int)
    if late.any():
        p_beyond, is_more_beyond = _late_runs(known, codes, late)
        if p_beyond < p_value:
            method = f"runs of each task after the first {usual} against these, exact"
            p_value, is_more = p_beyond, is_more_beyond
        p_value = min(1.0, 2 * p_value)  # the smaller of two p values
    is_unequal = len(set(sizes)) > 1 and table["task"].value_counts().nunique() > 1
    flagged = bool(p_value <= FLAGGED_AT and is_unequal and is_more)
    return RepeatsTest(p_value, flagged, int(mixed.sum()), method)


def _late_runs(known: np.ndarray, codes: np.ndarray, late: np.ndarray) -> tuple[float, bool]:
    """Return a two-sided p value for the successes in each task's last `late` runs, and whether there are too many."""
    sizes, successes = np.bincount(codes), np.bincount(codes, known).astype(int)
    distribution = np.ones(1)
    for n, c, drawn in zip(sizes.tolist(), successes.tolist(), late.tolist(), strict=True):
        ways = [math.comb(c, k) * math.comb(n - c, drawn - k) for k in range(drawn + 1)]
        distribution = np.convolve(distribution, [one / math.comb(n, drawn) for one in ways])
    from_last = pd.Series(codes).groupby(codes).cumcount(ascending=False).to_numpy()
    seen = int(known[from_last < late[codes]].sum())
    tail = min(distribution[: seen + 1].sum(), distribution[seen:].sum())
    return float(min(1.0, 2 * tail)), bool(seen > (late * successes / sizes).sum())


@overload
def pass_at_k(n: Whole, c: Whole, k: int) -> float: ...


@overload
def pass_at_k(n: Wholes, c: Whole | Wholes, k: int) -> np.ndarray: ...


@overload
def pass_at_k(n: Whole, c: Wholes, k: int) -> np.ndarray: ...


def pass_at_k(n: Whole | Wholes, c: Whole | Wholes, k: int) -> np.ndarray | float:
    """Estimate the probability that at least one of k attempts succeeds (Chen et al. 2021, equation 1).

    The unbiased estimate 1 − C(n − c, k) / C(n, k).

    Parameters
    ----------
    n : int or array of int
        Attempts per task.
    c : int or array of int
        Successes per task.
    k : int
        Number of attempts.

    Returns
    -------
    float or ndarray
        Probability per task; NaN for fewer than k attempts.

    Raises
    ------
    ValueError
        For impossible counts.

    Examples
    --------
    >>> float(stats.pass_at_k(4, 1, 2))
    0.5
    """
    attempts, passed = numbers(np.atleast_1d(n)), numbers(np.atleast_1d(c))
    share = 1 - np.asarray(pass_hat_k(attempts, attempts - passed, k))  # share of the subsets that have a success
    return float(share[0]) if np.broadcast(n, c).ndim == 0 else share


@overload
def pass_hat_k(n: Whole, c: Whole, k: int) -> float: ...


@overload
def pass_hat_k(n: Wholes, c: Whole | Wholes, k: int) -> np.ndarray: ...


@overload
def pass_hat_k(n: Whole, c: Wholes, k: int) -> np.ndarray: ...


def pass_hat_k(n: Whole | Wholes, c: Whole | Wholes, k: int) -> np.ndarray | float:
    """Estimate the probability that all of k attempts succeed (Yao et al. 2024).

    The unbiased estimate C(c, k) / C(n, k).

    Parameters
    ----------
    n : int or array of int
        Attempts per task.
    c : int or array of int
        Successes per task.
    k : int
        Number of attempts.

    Returns
    -------
    float or ndarray
        Probability per task; NaN for fewer than k attempts.

    Raises
    ------
    ValueError
        For impossible counts.

    Examples
    --------
    >>> round(float(stats.pass_hat_k(4, 2, 2)), 3)
    0.167
    """
    attempts, passed = np.broadcast_arrays(numbers(np.atleast_1d(n)), numbers(np.atleast_1d(c)))
    if k < 1 or not float(k).is_integer():
        raise ValueError(f"k is a whole number from 1, not {k}")
    if ((passed < 0) | (passed > attempts) | (attempts % 1 > 0) | (passed % 1 > 0)).any():
        raise ValueError("attempts n and successes c are whole numbers with 0 <= c <= n")
    known, share = np.isfinite(attempts) & np.isfinite(passed) & (attempts >= k), np.full(attempts.shape, math.nan)
    if known.any():
        drawn = np.arange(k)[:, None]
        share[known] = np.prod(np.maximum(passed[known] - drawn, 0) / (attempts[known] - drawn), axis=0)
    return float(share[0]) if np.broadcast(n, c).ndim == 0 else share
