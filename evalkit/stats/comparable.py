"""Rates of models that ran different tasks, made comparable: adjusted for tasks, or for one mix of types of tasks."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from evalkit._words import Notes, note
from evalkit.stats import formulas
from evalkit.stats.inputs import Cells, by_cluster, cells_of, numbers
from evalkit.stats.intervals import Kind, estimate_by
from evalkit.stats.pairs import components

RAW, ADJUSTED, STANDARDISED, NONE = "raw", "adjusted for tasks", "standardised", "none"
MOST_GROUPS = 40  # of tasks, that are left out in turn
MOST_SOLVED = 300  # models, for least squares
EASE = np.linspace(-6, 6, 25)  # of tasks, on the logit scale
PRIOR = 3.0


class LikeWithLike(NamedTuple):
    """Rates of models with and without adjustment for the tasks they ran."""

    table: pd.DataFrame  # one row per model; see `like_with_like`
    headline: str  # the estimates for a headline: "raw", "adjusted for tasks", "standardised" or "none"
    reason: Notes  # why these


def like_with_like(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    stratum: str | None = None,
    *,
    condition: str = "",
    kind: Kind = "proportion",
    confidence: float = 0.95,
) -> LikeWithLike:
    """Return each model's raw rate beside its coverage of the tasks and its rate adjusted for them.

    The rule for the headline: where all models ran the same tasks, the raw rates. Else those adjusted for tasks (see
    `docs/statistics.md`) where shared tasks link all models, else those standardised to the pooled mix of strata where
    all models have all strata, else none. The reason names models that the raw rates and those of the headline order
    differently.

    Arguments are as for `compare_all` and `estimate_by`; `stratum` is the column of the type of task. Tasks under
    different conditions are different ones, from the same cluster. The table has model, n (runs), n_tasks, coverage;
    estimate, low, high, method (raw); adjusted, standardised and headline (that of the rule; NaN for "none"), each with
    _low and _high; warning.
    """
    cells = cells_of(frame, model, task, value, condition, stratum)
    known = frame[frame[model].notna() & frame[task].notna()].astype({model: "str"})
    raw = estimate_by(known, model, value, task, kind, confidence).rename(columns={model: "model"})
    by_task_type = pd.DataFrame(columns=["model", "estimate", "low", "high"], dtype="float64").astype({"model": "str"})
    if stratum is not None:
        by_task_type = standardise(known, model, stratum, value, task, kind, confidence)
    coverage = (cells.sizes > 0).mean(axis=0) if cells.tasks else math.nan
    table = pd.DataFrame({"model": pd.Series(cells.models, dtype="str"), "coverage": coverage})
    raw = raw.rename(columns={"n_clusters": "n_tasks"}).drop(columns="target")
    table = table.merge(raw, on="model", how="left").astype({"n_tasks": "Int64"}).fillna({"n_tasks": 0})
    adjustments = {"adjusted": adjusted(cells, confidence), STANDARDISED: by_task_type}
    for name, other in adjustments.items():
        renamed = other.rename(columns={"estimate": name, "low": f"{name}_low", "high": f"{name}_high"})
        table = table.merge(renamed, on="model", how="left")
    columns = {ADJUSTED: "adjusted", STANDARDISED: STANDARDISED}
    if len(table) < 2 or (table["coverage"] == 1).all():
        headline, reason = RAW, note("same_tasks" if len(table) > 1 else "one_model")
    else:
        headline = next((name for name, column in columns.items() if table[column].notna().all()), NONE)
        reason = note("incomparable")
    if headline in columns:
        column, reason = columns[headline], note("same_order", basis=headline)
        order = table.sort_values(["estimate", column], ascending=False, kind="stable")
        swapped = np.flatnonzero((np.diff(order["estimate"]) < -1e-9) & (np.diff(order[column]) > -1e-9))
        if len(swapped):
            one, other = order["model"].iloc[swapped[0]], order["model"].iloc[swapped[0] + 1]
            reason = note("other_order", basis=headline, one=one, other=other)
    for end in ("", "_low", "_high"):
        source = f"{columns[headline]}{end}" if headline in columns else end.removeprefix("_") or "estimate"
        table[f"headline{end}"] = math.nan if headline == NONE else table[source]
    return LikeWithLike(table, headline, reason)


def standardise(
    frame: pd.DataFrame, model: str, stratum: str, value: str, task: str, kind: Kind, confidence: float
) -> pd.DataFrame:
    """Estimate the rate or mean of each model for one mix of strata, such as types of tasks (direct standardisation).

    The estimate is Σ weight × mean of the stratum, weights the numbers of different tasks; each task of a stratum has
    the same weight. The interval of a bounded value is put together from those of the strata (MOVER, Zou and Donner
    2008), that of others is Welch's t. A model without values of a stratum has no estimate: it can't reach the mix.
    """
    outcomes, keys = numbers(frame[value]), frame[[model, stratum, task]]
    usable = np.isfinite(outcomes) & keys.notna().all(axis=1).to_numpy()
    rows = keys[usable].set_axis(["model", "stratum", "task"], axis=1).assign(value=outcomes[usable])
    counted = rows.groupby("stratum", observed=True)["task"].nunique()
    estimates = []
    for name, own in rows.groupby("model", observed=True):
        strata = [runs for _, runs in own.groupby("stratum", observed=True)]
        if len(strata) < len(counted):
            continue
        groups = [by_cluster(runs["value"].to_numpy(float), pd.factorize(runs["task"])[0]) for runs in strata]
        counts, weights = np.array([len(group.means) for group in groups]), (counted / counted.sum()).to_numpy()
        means = np.array([group.means.mean() for group in groups])
        estimate = float(weights @ means)
        low: np.ndarray | float = math.nan
        high: np.ndarray | float = math.nan
        if kind != "mean":
            ends = [  # of each stratum
                formulas.bounded(group.means, group.sizes, confidence, kind == "proportion")
                if len(group.means) > 1
                else formulas.wilson(group.means[0], 1, confidence)
                for group in groups
            ]
            below, above = np.sqrt(weights**2 @ (np.array(ends) - means[:, None]) ** 2)
            low, high = estimate - below, estimate + above
        elif counts.min() > 1:
            terms = weights**2 * [formulas.variance_of_mean(group.means) for group in groups]
            if terms.sum() > 0:
                freedom = terms.sum() ** 2 / (terms**2 / (counts - 1)).sum()
                low, high = formulas.by_t(estimate, terms.sum(), freedom, confidence)
        estimates.append((name, estimate, float(low), float(high)))
    types = {"model": "str", "estimate": "float64", "low": "float64", "high": "float64"}
    return pd.DataFrame(estimates, columns=list(types)).astype(types)


def adjusted(cells: Cells, confidence: float) -> pd.DataFrame:
    """Estimate what each model would score on all tasks, from the tasks it ran and the other models' results on them.

    Values from 0 to 1: a logistic model, the effects of tasks (of each stratum) of any distribution (Laird 1978),
    standardised over the tasks, with Wilson's interval on the effective n. Others: least squares and t. Intervals leave
    out one task, or group of tasks, at a time. No estimates where models share no tasks, directly or through others;
    no interval from a single task, nor where models fall into groups without some of the tasks.
    """
    there = cells.sizes > 0
    tasks, count = there.shape
    table = pd.DataFrame({"model": pd.Series(cells.models, dtype="str"), "estimate": math.nan})
    table = table.assign(low=math.nan, high=math.nan)
    if not tasks or not _linked(there) or (not cells.shares and count > MOST_SOLVED):
        return table
    groups = (np.arange(tasks) if cells.clusters is None else cells.clusters) % MOST_GROUPS
    left = [groups != group for group in range(groups.max() + 1)]
    means, sizes = np.nan_to_num(cells.means), cells.sizes.astype(float)
    whole = bool(there.all())
    if cells.shares:
        kinds = np.zeros(tasks, int) if cells.strata is None else cells.strata
        start = np.zeros(count), np.full((kinds.max() + 1, len(EASE)), 1 / len(EASE))
        estimates, start = (means.mean(axis=0), start) if whole else _logistic(means, sizes, kinds, start, 200)
    else:
        estimates = _least_squares(means, there.astype(float))
    table["estimate"] = estimates
    if tasks == 1 or not (whole or count > MOST_SOLVED or all(_linked(there[used]) for used in left)):
        return table
    if cells.shares and whole:
        variance = formulas.variance_of_mean(means.T)
    else:
        without = np.array(
            [
                _logistic(means[used], sizes[used], kinds[used], start, 20)[0]
                if cells.shares
                else _least_squares(means[used], there[used].astype(float))
                for used in left
            ]
        )
        variance = (len(left) - 1) / len(left) * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    if cells.shares:
        runs, rates = np.maximum(sizes.sum(axis=0), 1), np.clip(estimates, 0, 1)
        variance = variance * (formulas.quantile(confidence, groups.max()) / formulas.quantile(confidence)) ** 2
        variance = np.maximum(variance, rates * (1 - rates) / runs)  # what is expected of tasks not run has no noise
        low, high = formulas.effective_wilson(rates, variance, 1, np.maximum(there.sum(axis=0), 1), confidence)
        return table.assign(low=low, high=high)
    variance = np.where(variance > (1e-9 * estimates) ** 2, variance, math.nan)
    low, high = formulas.by_t(estimates, variance, groups.max(), confidence)
    return table.assign(low=low, high=high)


def _linked(there: np.ndarray) -> bool:
    """Return whether shared tasks link all models."""
    tasks, count = there.shape
    rows, columns = np.nonzero(there)
    return len(np.unique(components(rows, tasks + columns, tasks + count)[tasks:])) < 2


def _logistic(
    means: np.ndarray, sizes: np.ndarray, strata: np.ndarray, start: tuple[np.ndarray, np.ndarray], most: int
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Fit effects of models and the distribution of those of tasks by EM from `start`, and standardise over the tasks.

    Normal priors with a deviation of `PRIOR` on the logit scale keep effects finite where all runs end alike. Also
    returns what another fit may start from.
    """
    (effects, shares), successes = start, means * sizes
    for _ in range(most):
        logits = effects + EASE[:, None]  # levels of ease × models
        likely = successes @ special.log_expit(logits).T + (sizes - successes) @ special.log_expit(-logits).T
        chances = special.softmax(likely + np.log(shares[strata]), axis=1)  # tasks × levels
        runs, rates = chances.T @ sizes, special.expit(logits)
        slope = (chances.T @ successes - runs * rates).sum(axis=0) - effects / PRIOR**2
        step = np.clip(slope / ((runs * rates * (1 - rates)).sum(axis=0) + PRIOR**-2), -1, 1)
        effects, counts = effects + step, np.zeros_like(shares)
        np.add.at(counts, strata, chances)
        counts += chances.mean(axis=0)  # a small stratum is drawn to the others
        shares = np.maximum(counts / counts.sum(axis=1, keepdims=True), 1e-9)
        if np.abs(step).max() < 1e-4:
            break
    expected = chances @ special.expit(effects + EASE[:, None])
    return np.where(sizes > 0, means, expected).mean(axis=0), (effects, shares)


def _least_squares(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return each model's effect, of effects of models and tasks, plus the mean effect of tasks.

    The effects of tasks are eliminated first, and those of models add up to 0.
    """
    shares = there / there.sum(axis=1)[:, None]
    levels = (values * shares).sum(axis=1)
    laplacian = np.diag(there.sum(axis=0)) - shares.T @ there
    effects = np.linalg.solve(laplacian + 1 / len(laplacian), ((values - levels[:, None]) * there).sum(axis=0))
    return effects + (levels - shares @ effects).mean()
