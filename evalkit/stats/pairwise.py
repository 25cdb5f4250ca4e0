"""Compare every pair of models on shared tasks, and every model with a baseline; find cycles among the verdicts."""

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pandas as pd
from scipy import special
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evalkit._notes import Notes, note
from evalkit.stats import pair_tests
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import LEVEL, Target, check_choice, numbers, typed, variance_of_mean
from evalkit.stats.pair_tests import Compared

MOST_PAIRED = 100  # maximum number of models for comparing every pair; with more, only pairs of the first are compared
N_DRAWS = 10_000  # number of random draws for max-T
CHUNK = 250  # draws per step, so that 5,000 tests need less than 10 MB

_TESTED = "model_a model_b n_tasks n_unshared n mean_a mean_b estimate"
_COLUMNS = (
    f"{_TESTED} low high p_value p_holm p_adjusted claim_at decided p_equivalent equivalent "
    "method target correction tested margin warning"
)
_BASELINE_COLUMNS = (
    "model_name n_tasks n_unshared n mean mean_baseline estimate low high p_value p_adjusted claim_at p_not_worse "
    "verdict method target warning"
)


def compare_all(
    cells: Cells, *, target: Target = "new tasks", margin: float | None = None, rng: np.random.Generator | None = None
) -> pd.DataFrame:
    """Compare every pair of models, paired on shared tasks (docs/statistics.md).

    Runs of a model on a task are averaged first, so that each task counts once. The interval and p value of a pair are
    uncorrected. A pair is decided if its p value, corrected for all pairs with shared tasks (by max-T; for the target
    "these tasks" by Holm), is at most `claim_at`: 0.05, or less for few or skewed scores. Models are compared within
    conditions, over families of tasks, and with the variance between seeds. If cells have strata, comparisons for new
    tasks also use the tasks that only one model ran.

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    margin : float, optional
        Models with a difference within ± margin are equivalent, by two one-sided tests.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    DataFrame
        One row per pair: model_a, model_b, n_tasks (shared), n_unshared, n (runs on shared tasks), mean_a, mean_b,
        estimate (mean_a − mean_b), low, high, p_value, p_holm, p_adjusted, claim_at, decided, p_equivalent (corrected),
        equivalent, method, target, correction, tested (pairs with shared tasks), margin, warning.

    Examples
    --------
    >>> stats.compare_all(cells)["estimate"].round(2).tolist()
    [0.33]
    """
    check_choice("target", target, get_args(Target))
    is_new = target == "new tasks"
    table, parts = pair_rows(cells, list(combinations(range(len(cells.models)), 2)), target, margin)
    table["p_holm"] = holm(table["p_value"])
    table["p_adjusted"] = table["p_holm"]
    if is_new:
        table["p_adjusted"] = table["p_value"].clip(lower=max_t(parts, table["p_value"], rng))
    table["decided"] = table["p_adjusted"] <= table["claim_at"]
    table["p_equivalent"] = holm(table[["p_above", "p_below"]].max(axis=1, skipna=False))
    table["equivalent"] = table["p_equivalent"] <= LEVEL
    table["correction"] = "max-T" if is_new else "Holm"
    table = table.assign(target=target, tested=table["p_value"].notna().sum())
    return typed(table.assign(margin=math.nan if margin is None else margin), _COLUMNS)


def compare_to_baseline(
    cells: Cells,
    baseline: str,
    *,
    margin: float = 0.05,
    target: Target = "new tasks",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare every model with a baseline, paired on shared tasks.

    Verdicts: "better" (the difference is above 0), "not worse" (the loss is smaller than `margin`: non-inferiority,
    one-sided, by Holm), "regression" (the difference is below 0, and not shown to be within the margin) or "not
    decided".

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    baseline : str
        Name of the baseline.
    margin : float
        Largest acceptable loss, above 0, in the unit of the values.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    DataFrame
        One row per other model: model_name, n_tasks, n_unshared, n (runs on shared tasks), mean, mean_baseline,
        estimate (model − baseline), low, high, p_value, p_adjusted, claim_at, p_not_worse (corrected), verdict, method,
        target, warning.

    Raises
    ------
    ValueError
        For an unknown baseline or a margin that is not positive.

    Examples
    --------
    >>> stats.compare_to_baseline(cells, "a")["verdict"].tolist()
    ['not decided']
    """
    if baseline not in cells.models:
        raise ValueError(f"no runs of the baseline {baseline!r}; there are {', '.join(map(repr, cells.models))}")
    base = cells.models.index(baseline)
    pairs = [(i, base) for i in range(len(cells.models)) if i != base]
    table, parts = pair_rows(cells, pairs, target, margin)
    table["p_adjusted"] = holm(table["p_value"])
    if target == "new tasks":
        table["p_adjusted"] = table["p_value"].clip(lower=max_t(parts, table["p_value"], rng))
    table["p_not_worse"] = holm(table["p_above"])
    different, above = table["p_adjusted"] <= table["claim_at"], table["estimate"] > 0
    choices = [different & above, table["p_not_worse"] <= LEVEL, different & ~above]
    table["verdict"] = np.select(choices, ["better", "not worse", "regression"], "not decided")
    table = table.rename(columns={"model_a": "model_name", "mean_a": "mean", "mean_b": "mean_baseline"})
    return typed(table.assign(target=target), _BASELINE_COLUMNS)


def pair_rows(
    cells: Cells, pairs: list[tuple[int, int]], target: str, margin: float | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Compare the models of each pair without corrections; if cells have strata, also on tasks they don't share.

    The table has the columns of `compare_all` up to the estimate, and the fields of `Compared`. Also return the
    contribution of each task (row) to the statistic of each pair (column).
    """
    if margin is not None and not margin > 0:
        raise ValueError(f"margin must be positive (got {margin})")
    least = math.nan if margin is None else margin
    rows = []
    clusters = np.arange(len(cells.tasks)) if cells.clusters is None else cells.clusters
    parts = np.zeros((clusters.max(initial=-1) + 1, len(pairs)))
    shares, is_new = cells.shares, target == "new tasks"
    for number, (a, b) in enumerate(pairs):
        shared = cells.has(a, b)
        left, right = cells.by_task(cells.means[shared, a], shared), cells.by_task(cells.means[shared, b], shared)
        count, runs = len(left), int(cells.sizes[shared][:, [a, b]].sum())
        differences = left - right
        means = [left.mean(), right.mean(), differences.mean()] if count else [math.nan] * 3
        variance, cautious = math.nan, Notes()
        compared = None
        if not is_new and count:
            compared = pair_tests.compare_runs(cells.of(a, shared), cells.of(b, shared), shares, least)
            cautious = note("not_repeated") if compared is None else Notes()
        if compared is None and count > 1:
            compared = pair_tests.compare_units(left, right, least)
        elif compared is None:
            p_value, reason = (1.0, note("one_shared")) if count else (math.nan, note("no_shared"))
            compared = Compared(math.nan, math.nan, p_value, "", reason)
        if shares and count:
            _, error = pair_tests.padded(means[2], float((differences**2).sum()), count, 1.0)
            variance = error**2 * (count + 2) / count
        elif count > 1:
            variance = float(variance_of_mean(differences))
        parts[np.unique(clusters[shared]), number] = _unit(differences)
        apart, others = pair_tests.unshared(cells, a, b) if is_new and variance != 0 else None, 0
        if apart is not None and (count or min(apart.tasks) > 1):
            on_shared = None if math.isnan(variance) else compared
            if count == 1 and on_shared is not None:
                on_shared = on_shared._replace(low=-1.0, high=1.0, warning=Notes())
            compared, weight = pair_tests.combine(on_shared, differences, variance, apart, shares, least)
            own = np.bincount(clusters, weights=apart.parts, minlength=len(parts))
            if not own.any():
                own = np.bincount(clusters, weights=cells.sizes[:, a] + cells.sizes[:, b])
            own = _unit(own)
            parts[:, number] = math.sqrt(weight) * parts[:, number] + math.sqrt(1 - weight) * own
            ran = list(apart[:2])
            if weight:
                ran = [weight * one + (1 - weight) * other for one, other in zip(means[:2], apart[:2], strict=True)]
            means, others = [*ran, ran[0] - ran[1]], sum(apart.tasks)
            variance = 1 / ((1 / variance if weight else 0) + 1 / apart.variance)
            shares_note = note("partly_shared" if count else "unpaired", a=apart.tasks[0], b=apart.tasks[1])
            compared = compared._replace(warning=compared.warning + shares_note)
        if is_new and cells.seeds is not None and variance > 0:
            seeds = [cells.seeds[a], cells.seeds[b]]
            compared = pair_tests.allow_for_seeds(compared, means[2], variance, seeds, shares)
        tasks = count
        if cells.are_families:
            tasks = int(shared.sum())
            cautious += note("families", count=count)
            if cells.shares:
                compared = compared._replace(low=max(compared.low, -1.0), high=min(compared.high, 1.0))
        compared = compared._replace(warning=compared.warning + cautious + cells.lost_of(a, b))
        row = {"model_a": cells.models[a], "model_b": cells.models[b], "n_tasks": tasks, "n_unshared": others}
        row |= {"n": runs, "mean_a": means[0], "mean_b": means[1], "estimate": means[2]}
        rows.append(row | compared._asdict())
    return typed(pd.DataFrame(rows, columns=[*_TESTED.split(), *Compared._fields])), parts


def _unit(values: np.ndarray) -> np.ndarray:
    norm = math.sqrt(float((values**2).sum()))
    return values / norm if norm > 0 else values


def holm(p_values: Iterable[Any]) -> np.ndarray:
    """Adjust p values for multiple tests (Holm 1979); NaN stays NaN and does not count as a test."""
    p_values = numbers(p_values)
    order = np.argsort(p_values)  # NaN last
    count = int((~np.isnan(p_values)).sum())
    order, adjusted = order[:count], np.full(len(p_values), math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1)), 1.0)
    return adjusted


def max_t(
    parts: np.ndarray, p_values: Iterable[Any], rng: np.random.Generator | None = None, n_draws: int = N_DRAWS
) -> np.ndarray:
    """Adjust two-sided p values for multiple tests by the distribution of the smallest one.

    This is step-down max-T (Westfall and Young 1993, algorithm 2.8; Romano and Wolf 2005) on normal quantiles. `parts`,
    of shape (tasks, tests), are the contributions of each task to each statistic, up to a factor per test. They show
    which tests share data, so that the adjustment is smaller than for independent tests. A p value of NaN means that
    there was no test; its adjusted value is 1. A single test is not adjusted.
    """
    rng = np.random.default_rng(0 if rng is None else rng)
    p_values = numbers(p_values)
    tested = np.flatnonzero(~np.isnan(p_values))
    adjusted = np.ones(len(p_values))
    if len(tested) < 2:
        adjusted[tested] = p_values[tested]
        return adjusted
    seen = -special.ndtri(np.clip(p_values, pair_tests.SMALLEST, 1.0) / 2)
    order = tested[np.argsort(seen[tested], kind="stable")]
    used = parts[(parts != 0).any(axis=1)][:, order]
    norms = np.sqrt((used**2).sum(axis=0))
    scaled = (used / np.where(norms > 0, norms, 1)).astype(np.float32)
    exceeding = np.zeros(len(order))
    for start in range(0, n_draws, CHUNK):
        weights = rng.standard_normal((min(CHUNK, n_draws - start), len(used)), dtype=np.float32)
        maxima = np.maximum.accumulate(np.abs(weights @ scaled), axis=1)
        exceeding += (maxima >= (seen[order] - 1e-4)[None, :]).sum(axis=0)
    shares = (exceeding + 1) / (n_draws + 1)
    shares[0] = p_values[order[0]]  # the last step is a single test
    adjusted[order] = np.maximum.accumulate(shares[::-1])[::-1]
    return adjusted


def pair_structure(pairs: pd.DataFrame) -> Notes:
    """Find disjoint sets of models, and cycles among the decided pairs.

    A cycle has no valid order; it arises if models were compared on different tasks.

    Parameters
    ----------
    pairs : DataFrame
        Result of `compare_all`.

    Returns
    -------
    Notes
        Notes with the codes sets and cycle.

    Examples
    --------
    >>> bool(stats.pair_structure(stats.compare_all(cells)))
    False
    """
    codes, models = pd.factorize(np.array([*pairs["model_a"], *pairs["model_b"]], dtype=object))
    a, b = codes.reshape(2, -1)
    shared, decided = (pairs["n_tasks"] > 0).to_numpy(), pairs["decided"].to_numpy(bool)
    ahead = (pairs["estimate"] > 0).to_numpy()
    group_of = components(a[shared], b[shared], len(models))
    cycle_of = components(np.where(ahead, a, b)[decided], np.where(ahead, b, a)[decided], len(models), directed=True)
    names = pd.Series(models, dtype="object")
    notes = Notes()
    for members in sorted(names.groupby(cycle_of).agg(tuple)):
        if len(members) > 1:
            notes += note("cycle", models=members)
    groups = tuple(names.groupby(group_of).agg(tuple))
    if len(groups) > 1:
        notes += note("sets", sets=groups)
    apart = np.flatnonzero(~shared & (group_of[a] == group_of[b]))
    if len(apart):
        notes += note("unshared", pairs=tuple(zip(models[a[apart]], models[b[apart]], strict=True)))
    return notes


def components(start: np.ndarray, end: np.ndarray, count: int, directed: bool = False) -> np.ndarray:
    """Label each of `count` nodes with the number of its (strongly) connected component, given edges."""
    if not count:
        return np.empty(0, dtype=int)
    graph = csr_array((np.ones(len(start)), (start, end)), shape=(count, count))
    return connected_components(graph, directed=directed, connection="strong")[1]
