"""Estimate how reliable models are over repetitions: pass@k, pass^k and agreement on one set of tasks."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit.stats._inputs import by_cluster, check_confidence, clean, join, numbers
from evalkit.stats.intervals import Estimate, mean_interval, rate_interval
from evalkit.stats.repetitions import pass_at_k, pass_hat_k

N_PERMUTATIONS = 1_999
FLAGGED_AT = 0.01
MOST_K = 10
SAME_NUMBER = "all tasks have the same number of runs"
NOTHING_MIXED = "no task has both successes and failures"
NEVER_REPEATED = "no task was run more than once"

_COLUMNS = ["measure", "k", "n", "n_clusters", "estimate", "low", "high", "method", "target", "warning"]
_DTYPES = {"measure": "str", "k": "int64", "n": "int64", "n_clusters": "int64", "method": "str", "warning": "str"}


class RepeatsTest(NamedTuple):
    """A test of whether the number of runs of a task depends on their outcomes.

    Attributes
    ----------
    p_value : float
        Two-sided; NaN where the data can't show it.
    flagged : bool
        Whether the p value is at most 0.01, which flags one model of 100 wrongly.
    n_tasks : int
        Tasks used.
    method : str
    warning : str
    """

    p_value: float
    flagged: bool
    n_tasks: int
    method: str
    warning: str = ""


def reliability(
    frame: pd.DataFrame,
    by: str,
    task: str,
    value: str,
    *,
    ks: Sequence[int] | None = None,
    order: str | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Estimate for each group pass@k, pass^k and the agreement of runs, all on the same tasks.

    The tasks are those of the group with at least as many runs as the largest k, so that pass@k can't fall and pass^k
    can't rise with k. Each task has the same weight; the target is new tasks like these.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    by, task, value : str
        Columns of the group (such as the model), of the task and of the 0/1 outcome. Rows with a missing one are left
        out.
    ks : sequence of int, optional
        By default 1, 2, ... up to the number of runs that at least half of the tasks of each group have, at most 10.
    order : str, optional
        Column that orders the runs of a task, such as the repetition: it shows best whether tasks were retried until
        they succeeded; see `repeats_test`.
    confidence : float

    Returns
    -------
    DataFrame
        For each group rows of `by`, measure ("pass@k", "pass^k", "agreement"), k, n (runs), n_clusters (tasks),
        estimate, low, high, method, target, warning. "pass@1" is the success rate. "agreement" is the probability that
        two runs of a task end alike. The warning counts the tasks left out, and says where the number of runs depends
        on their outcome, which biases all of these.

    Raises
    ------
    ValueError
        For an unknown column, outcomes other than 0 and 1, or ks that are not whole numbers from 1.
    """
    check_confidence(confidence)
    check_columns(frame, by, task, value, order)
    outcomes = numbers(frame[value])
    usable = np.isfinite(outcomes) & frame[[by, task]].notna().all(axis=1).to_numpy()
    if not np.isin(outcomes[usable], (0.0, 1.0)).all():
        raise ValueError("pass@k needs 0/1 outcomes")
    rows = frame[usable].assign(_value=outcomes[usable])
    ks = _default_ks(rows, by, task) if ks is None else sorted(set(ks))
    if any(k < 1 or int(k) != k for k in ks):
        raise ValueError(f"ks are whole numbers from 1, not {list(ks)}")
    tables = []
    for name, group_rows in rows.groupby(by, observed=True):
        tables.append(_of_group(group_rows, task, ks, order, confidence).assign(**{by: name}))
    if not tables:
        return pd.DataFrame(columns=[by, *_COLUMNS])
    return pd.concat(tables, ignore_index=True)[[by, *_COLUMNS]].astype(_DTYPES)


def repeats_test(
    values: Iterable[Any],
    tasks: Iterable[Any],
    order: Iterable[Any] | None = None,
    rng: np.random.Generator | None = None,
) -> RepeatsTest:
    """Test whether the number of runs of a task depends on their outcomes, such as by retrying until one succeeds.

    With `order`: whether the last run of a task succeeds more, or less, often than its others. If runs are
    exchangeable, the last of n runs with c successes succeeds with probability c / n; the exact distribution of the
    number of such tasks is that of independent trials with these probabilities. Without: whether the success rate of
    tasks goes with (the logarithm of) their number of runs, by random permutation of a studentised sum.

    Parameters
    ----------
    values : array-like of 0/1
        Missing values are left out.
    tasks : array-like
        One label per value.
    order : array-like, optional
        One sortable value per run.
    rng : numpy.random.Generator, optional
        By default one with seed 0.

    Returns
    -------
    RepeatsTest
    """
    values, codes, _ = clean(values, tasks) if order is None else _ordered(values, tasks, order)
    groups = by_cluster(values, codes)
    if order is not None:
        return _last_runs(values, codes, groups)
    method = "success rate against number of runs, permutation"
    if not len(groups.sizes) or np.ptp(groups.sizes) == 0:
        return RepeatsTest(np.nan, False, len(groups.sizes), method, SAME_NUMBER)
    rng = np.random.default_rng(0) if rng is None else rng
    sizes, means = np.log(groups.sizes) - np.log(groups.sizes).mean(), groups.means - groups.means.mean()
    permuted = rng.permuted(np.broadcast_to(means, (N_PERMUTATIONS, len(means))), axis=1)
    beyond = (_studentised(permuted, sizes) >= _studentised(means, sizes) - 1e-9).sum()
    p_value = float((beyond + 1) / (N_PERMUTATIONS + 1))
    return RepeatsTest(p_value, p_value <= FLAGGED_AT, len(means), method)


def _studentised(means: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return |Σ size × mean| over its standard error, since means of many runs vary less than single runs."""
    error = np.sqrt(means**2 @ sizes**2)
    return np.divide(np.abs(means @ sizes), error, out=np.zeros_like(error), where=error > 1e-12)


def _ordered(values: Any, tasks: Any, order: Any) -> tuple[np.ndarray, np.ndarray, str]:
    table = pd.DataFrame({"value": numbers(values), "task": list(tasks), "order": list(order)})
    table = table.sort_values("order", kind="stable")
    return clean(table["value"], table["task"])


def _last_runs(values: np.ndarray, codes: np.ndarray, groups: Any) -> RepeatsTest:
    method = "last run of each task against its others, exact"
    mixed = (groups.means > 0) & (groups.means < 1)
    if not mixed.any():
        reason = NOTHING_MIXED if (groups.sizes > 1).any() else NEVER_REPEATED
        return RepeatsTest(np.nan, False, 0, method, reason)
    last = np.zeros(len(groups.sizes))
    last[codes] = values  # the last assignment of each task stays
    chances = groups.means[mixed]
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    seen = int(last[mixed].sum())
    tail = min(distribution[: seen + 1].sum(), distribution[seen:].sum())
    p_value = float(min(1.0, 2 * tail))
    return RepeatsTest(p_value, p_value <= FLAGGED_AT, int(mixed.sum()), method)


def _default_ks(rows: pd.DataFrame, by: str, task: str) -> list[int]:
    runs = rows.groupby([by, task], observed=True).size()
    if not len(runs):
        return [1]
    half = runs.groupby(level=0).quantile(0.5, interpolation="lower").min()
    return list(range(1, int(min(max(half, 1), MOST_K)) + 1))


def _of_group(rows: pd.DataFrame, task: str, ks: Sequence[int], order: str | None, confidence: float) -> pd.DataFrame:
    counts = rows.groupby(task, observed=True)["_value"].agg(["size", "sum"])
    used = counts[counts["size"] >= max(ks)]
    runs = rows[rows[task].isin(used.index)]
    n, c = used["size"].to_numpy(), used["sum"].to_numpy()
    tested = repeats_test(rows["_value"], rows[task], None if order is None else rows[order])
    depends = f"the number of runs depends on their outcome ({tested.method}, p = {tested.p_value:.2g}): biased"
    n_left_out = len(counts) - len(used)
    notes = f"{n_left_out} tasks with fewer than {max(ks)} runs left out" * (n_left_out > 0), depends * tested.flagged
    measures = []
    for k in ks:
        for measure, formula in (("pass@", pass_at_k), ("pass^", pass_hat_k)):
            if k == 1:
                estimate = rate_interval(runs["_value"], runs[task], confidence)
            else:
                estimate = _over_tasks(np.asarray(formula(n, c, k)), used.index, confidence)
            measures.append((f"{measure}{k}", k, len(runs), *_fields(estimate, notes)))
    agreement = (c * (c - 1) + (n - c) * (n - c - 1)) / np.where(n > 1, n * (n - 1), np.nan)
    estimate = _over_tasks(agreement, used.index, confidence)
    measures.append(("agreement", 2, int(n[n > 1].sum()), *_fields(estimate, notes)))
    return pd.DataFrame(measures, columns=_COLUMNS)


def _over_tasks(values: np.ndarray, tasks: pd.Index, confidence: float) -> Estimate:
    known = np.isfinite(values)
    return mean_interval(values[known], tasks[known], confidence, bounds=(0.0, 1.0))


def _fields(estimate: Estimate, notes: tuple[str, str]) -> tuple:
    warning = join(estimate.warning, *notes)
    return estimate.n_clusters, *estimate[:3], estimate.method, estimate.target, warning
