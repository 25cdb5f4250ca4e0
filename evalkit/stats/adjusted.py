"""Rates of models that ran different tasks, made comparable: adjusted for tasks, or for one mix of types of tasks."""

import math
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from evalkit._notes import Notes, note
from evalkit.stats import intervals
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import Kind, estimate_by, numbers
from evalkit.stats.pairwise import components

RAW, NONE = "raw", "none"
ADJUSTED, STANDARDISED = "adjusted for tasks", "standardised"
MOST_GROUPS = 40  # maximum number of groups of tasks that the jackknife leaves out in turn
EASE = np.linspace(-6, 6, 25)  # grid of task effects, in logits
PRIOR = 3.0  # standard deviation of the prior of model effects, in logits
MOST_VALUES = 1_000_000  # maximum number of values in one step of the fits that are computed together


class _Fits(NamedTuple):
    """Fits of the logistic model."""

    effects: np.ndarray  # of models, in logits; shape (fits, models)
    shares: np.ndarray  # of levels of ease among the tasks of a stratum; shape (fits, strata, levels)


class AdjustedRates(NamedTuple):
    """Rates of models, raw and adjusted for the tasks that each ran: the result of `adjusted_rates`."""

    table: pd.DataFrame
    basis: str  # kind of adjustment: "raw", "adjusted for tasks", "standardised" or "none"
    reason: Notes  # why it was chosen


def adjusted_rates(
    cells: Cells, *, kind: Kind = "proportion", conditions_of: Literal["run", "task"] = "run"
) -> AdjustedRates:
    """Return the raw rate of each model, its coverage of the tasks, and its rate adjusted for tasks.

    If all models ran the same tasks, adjusted rates equal raw rates. Otherwise, if shared tasks link all models, they
    are the rates that models would have on all tasks (docs/statistics.md). Otherwise, if all models ran tasks of all
    strata, they are standardised to the pooled mix of strata. In all other cases they are NaN.

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    kind : {"proportion", "score", "mean"}
        Type of the values, as for `estimate_by`.
    conditions_of : {"run", "task"}
        What conditions describe. Adjusted rates use only the conditions that all models ran, unless each task has one
        condition because conditions are facts of tasks, such as the number of agents that a task needs.

    Returns
    -------
    AdjustedRates
        `table` with model_name, n (runs), n_tasks, coverage (share of tasks), estimate, low, high, method (raw),
        adjusted_estimate, adjusted_low, adjusted_high, warning; and `reason`, which names two models that the
        adjustment reorders.

    Examples
    --------
    >>> stats.adjusted_rates(cells)[0]["coverage"].tolist()
    [1.0, 1.0]
    """
    model, task, value = cells.columns[:3]
    is_used = cells.runs[task].notna() & np.isfinite(numbers(cells.runs[value]))
    used = cells.runs if is_used.all() else cells.runs[is_used]
    if used[model].dtype != "str":
        used = used.astype({model: "str"})
    families, seeds = cells.columns.family or None, cells.columns.seed or None
    rates = estimate_by(used, model, value, task, kind, families=families, seeds=seeds)
    table = pd.DataFrame({"model_name": pd.Series(cells.models, dtype="str")})
    table["coverage"] = (cells.sizes > 0).mean(axis=0) if cells.tasks else math.nan
    of_model = rates.drop(columns="target").set_index(model).reindex(cells.models)
    table = table.join(of_model.reset_index(drop=True))
    table = table.fillna({"n": 0, "n_tasks": 0, "method": ""}).astype({"n": "int64", "n_tasks": "int64"})
    warnings = list[Notes]()
    for i, warning in enumerate(table["warning"]):
        known = warning if isinstance(warning, Notes) else note("no_values")
        warnings.append(known + cells.lost_of(i))
    table["warning"] = pd.Series(warnings, table.index, dtype="object")
    columns = ["adjusted_estimate", "adjusted_low", "adjusted_high"]
    if len(table) < 2 or (table["coverage"] == 1).all():
        table[columns] = table[["estimate", "low", "high"]]
        return AdjustedRates(table, RAW, note("same_tasks" if len(table) > 1 else "one_model"))
    basis = ADJUSTED
    table[columns] = math.nan
    tasks_vary = cells.conditions is not None and len({task for task, _ in cells.tasks}) < len(cells.tasks)
    if cells.conditions is not None and (conditions_of == "run" or tasks_vary):
        ran = pd.DataFrame(cells.sizes > 0).groupby(cells.conditions).transform("any").all(axis=1)
        if not ran.any():
            return AdjustedRates(table, NONE, note("incomparable"))
        cells = cells.take(ran.to_numpy())
    table[columns] = np.column_stack(adjust(cells))
    if table["adjusted_estimate"].notna().all() and np.ptp(cells.means[cells.sizes > 0]) == 0:
        # if all runs ended alike, the fit depends only on its priors
        table[columns] = table[["estimate", "low", "high"]]
    if cells.strata is not None and cells.strata.max(initial=0) > 0 and table["adjusted_estimate"].isna().any():
        basis = STANDARDISED
        table[columns] = standardise(cells, cells.strata, kind)
    if table["adjusted_estimate"].isna().any():
        table[columns] = math.nan
        return AdjustedRates(table, NONE, note("incomparable"))
    order = table.sort_values(["estimate", "adjusted_estimate"], ascending=False, kind="stable", ignore_index=True)
    swapped = np.flatnonzero((np.diff(order["estimate"]) < -1e-9) & (np.diff(order["adjusted_estimate"]) > -1e-9))
    if not len(swapped):
        return AdjustedRates(table, basis, note("same_order", basis=basis))
    higher, lower = order["model_name"].iloc[swapped[0] : swapped[0] + 2]
    return AdjustedRates(table, basis, note("other_order", basis=basis, one=higher, other=lower))


def standardise(cells: Cells, strata: np.ndarray, kind: Kind) -> np.ndarray:
    """Estimate the rate or mean of each model for one mix of strata, such as types of tasks (direct standardisation).

    Weights are the shares of tasks. Intervals of bounded values are combined from intervals of strata (Zou and Donner
    2008); intervals of other values use Welch's t. Returns estimate, low and high of each model, which are NaN if a
    stratum has no values of the model.
    """
    weights = np.bincount(strata) / len(strata)
    found = np.full((len(cells.models), 3), math.nan)
    for column in range(len(cells.models)):
        groups = [cells.of(column, strata == stratum) for stratum in range(len(weights))]
        counts = np.array([len(group.means) for group in groups])
        if not counts.all():
            continue
        means = np.array([group.means.mean() for group in groups])
        estimate: float = weights @ means
        bounds: tuple = (math.nan, math.nan)
        if kind != "mean":
            ends = [
                intervals.bounded(group.means, group.sizes, kind == "proportion")
                if len(group.means) > 1
                else intervals.wilson(group.means[0], 1)
                for group in groups
            ]
            below, above = np.sqrt(weights**2 @ (np.array(ends) - means[:, None]) ** 2)
            bounds = estimate - below, estimate + above
        elif counts.min() > 1:
            terms = weights**2 * [intervals.variance_of_mean(group.means) for group in groups]
            if terms.sum() > 0:
                bounds = intervals.by_t(estimate, terms.sum(), terms.sum() ** 2 / (terms**2 / (counts - 1)).sum())
        found[column] = estimate, *bounds
    return found


def adjust(cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate what each model would score on all tasks, from the tasks it ran and the other models' results on them.

    Values from 0 to 1 use a logistic model, with any distribution of task effects (Laird 1978), and Wilson's interval
    on the effective n. Other values use least squares and t. Standard errors come from leaving out one task, or group
    of tasks, at a time; they grow if the logistic and the least-squares fit disagree. All results are NaN if shared
    tasks don't link the models. The bounds are NaN if the models are no longer linked without one of these tasks.
    """
    is_run = cells.sizes > 0
    missing = np.full(is_run.shape[1], math.nan)
    if not _linked(is_run):
        return missing, missing, missing
    groups = (np.arange(len(is_run)) if cells.clusters is None else cells.clusters) % MOST_GROUPS
    left = groups != np.arange(groups.max() + 1)[:, None]  # the tasks without each group
    if not all(_linked(is_run[used]) for used in left):
        left = left[:0]  # no bounds
    means, sizes = np.nan_to_num(cells.means), cells.sizes.astype(float)
    if cells.shares:
        # tasks that different models ran may differ in difficulty, so each such set has its own distribution of effects
        columns = [is_run, *([] if cells.strata is None else [cells.strata[:, None]])]
        kinds = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
        start = _Fits(np.zeros((1, is_run.shape[1])), np.full((1, kinds.max() + 1, len(EASE)), 1 / len(EASE)))
        (estimates,), fit = _logistic(means, sizes, kinds, np.ones((1, len(is_run)), bool), start, 200)
        chunks = max(1, math.ceil(len(left) * len(is_run) * len(EASE) / MOST_VALUES))
        without = [
            rates for used in np.array_split(left, chunks) for rates in _logistic(means, sizes, kinds, used, fit, 20)[0]
        ]
    else:
        estimates = _least_squares(means, is_run.astype(float))
        without = [_least_squares(means[used], is_run[used].astype(float)) for used in left]
    if not len(left):
        return estimates, missing, missing
    variance = (len(left) - 1) / len(left) * ((without - np.mean(without, axis=0)) ** 2).sum(axis=0)
    if cells.shares:
        runs, rates = np.maximum(sizes.sum(axis=0), 1), np.clip(estimates, 0, 1)
        ran = np.maximum(is_run.sum(axis=0), 1)
        variance = variance * (intervals.quantile(freedom=groups.max()) / intervals.quantile()) ** 2
        # at least the binomial variance, since the expected results of tasks that were not run have no noise
        variance = np.maximum(variance, rates * (1 - rates) / runs)
        # On tasks that a model did not run, its rate is as uncertain as its mean difference from other models on shared
        # tasks. The variance of these differences includes two pseudo-pairs, at ± 1; t depends on the number of pairs.
        models = is_run.sum(axis=1)[:, None]
        shared = is_run & (models > 1)
        others = (means.sum(axis=1)[:, None] - means) / np.maximum(models - 1, 1)
        gaps = np.where(shared, means - others, 0.0)
        count = np.maximum(shared.sum(axis=0), 1)
        of_links = ((gaps**2).sum(axis=0) + 1) / (count + 2) - (gaps.sum(axis=0) / (count + 2)) ** 2
        factor = special.stdtrit(count, 1 - intervals.LEVEL / 2) / intervals.quantile()
        unrun = 1 - is_run.sum(axis=0) / len(is_run)
        least = unrun**2 * of_links / count * factor**2 + (1 - unrun) ** 2 * rates * (1 - rates) / ran
        variance = np.maximum(variance, least)
        # on tasks that a model did not run, the rate depends on whether models differ by logits or by points
        variance = variance + (estimates - np.clip(_least_squares(means, is_run.astype(float)), 0, 1)) ** 2
        # add a success and a failure to the rate, so that the effective n stays finite near 0 or 1
        padded = (rates * ran + 1) / (ran + 2)
        fewest = np.clip(padded * (1 - padded) / np.maximum(variance, 1e-15), 1, ran)
        return estimates, *intervals.effective_wilson(rates, variance, fewest, ran)
    variance = np.where(variance > (1e-9 * estimates) ** 2, variance, math.nan)
    return estimates, *intervals.by_t(estimates, variance, groups.max())


def _linked(is_run: np.ndarray) -> bool:
    """Return whether shared tasks link all models."""
    tasks, count = is_run.shape
    rows, columns = np.nonzero(is_run)
    return len(np.unique(components(rows, tasks + columns, tasks + count)[tasks:])) < 2


def _logistic(
    means: np.ndarray, sizes: np.ndarray, strata: np.ndarray, used: np.ndarray, start: _Fits, most: int
) -> tuple[np.ndarray, _Fits]:
    """Fit model effects and the distribution of task effects by EM from `start`, and average over tasks.

    There is a fit for each row of `used`, of shape (fits, tasks); it takes at most `most` steps. Normal priors keep
    effects finite if all runs end alike. Return the rates, of shape (fits, models), and the fits; another call can
    start from the first of them.
    """
    effects = np.repeat(start.effects[:1], len(used), axis=0)
    shares = np.repeat(start.shares[:1], len(used), axis=0)
    chances = np.empty((*used.shape, len(EASE)))  # of the levels of a task's ease
    order = np.argsort(strata, kind="stable")
    starts = np.searchsorted(strata[order], np.arange(shares.shape[1]))  # of the strata among the sorted tasks
    successes = means * sizes
    moving = np.arange(len(used))  # the fits that have not converged
    for _ in range(most):
        logits = effects[moving, None] + EASE[:, None]  # fits × levels × models
        passed, failed = special.log_expit(logits), special.log_expit(-logits)
        likely = successes @ passed.swapaxes(1, 2) + (sizes - successes) @ failed.swapaxes(1, 2)
        likely += np.log(shares[moving])[:, strata]
        likely = np.exp(likely - likely.max(axis=2, keepdims=True))  # scipy's softmax takes far longer
        chances[moving] = likely / likely.sum(axis=2, keepdims=True)
        weights = chances[moving] * used[moving, :, None]
        runs, rates = weights.swapaxes(1, 2) @ sizes, special.expit(logits)
        slope = (weights.swapaxes(1, 2) @ successes - runs * rates).sum(axis=1) - effects[moving] / PRIOR**2
        step = np.clip(slope / ((runs * rates * (1 - rates)).sum(axis=1) + PRIOR**-2), -1, 1)
        effects[moving] += step
        counts = np.add.reduceat(weights[:, order], starts, axis=1)
        # shrink small strata towards the others
        counts += weights.sum(axis=1, keepdims=True) / used[moving].sum(axis=1)[:, None, None]
        shares[moving] = np.maximum(counts / counts.sum(axis=2, keepdims=True), 1e-9)
        moving = moving[np.abs(step).max(axis=1) >= 1e-4]
        if not len(moving):
            break
    expected = chances @ special.expit(effects[:, None] + EASE[:, None])
    rates = (np.where(sizes > 0, means, expected) * used[:, :, None]).sum(axis=1) / used.sum(axis=1)[:, None]
    return rates, _Fits(effects, shares)


def _least_squares(values: np.ndarray, is_run: np.ndarray) -> np.ndarray:
    """Fit additive effects of models (summing to 0) and tasks; return each model's effect plus the mean task effect."""
    shares = is_run / is_run.sum(axis=1)[:, None]
    levels = (values * shares).sum(axis=1)
    laplacian = np.diag(is_run.sum(axis=0)) - shares.T @ is_run
    effects = np.linalg.solve(laplacian + 1 / len(laplacian), ((values - levels[:, None]) * is_run).sum(axis=0))
    return effects + (levels - shares @ effects).mean()
