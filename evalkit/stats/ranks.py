"""Rank models: ranks that the data leave open, whether the first is best, estimates corrected for being picked; and
success against cost: which models no other beats in both.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit._words import Notes, note
from evalkit.stats.formulas import LEVEL
from evalkit.stats.inputs import cells_of, numbers, typed
from evalkit.stats.intervals import mean_interval
from evalkit.stats.paired import UNPAIRED
from evalkit.stats.pairs import compare_all, pair_rows

RESAMPLED = 20  # times 100 resamples of tasks, for the front
MOST_PAIRED = 100  # models of which every pair is compared; of more, only those of the first

_COLUMNS = (
    "model n_tasks estimate low high rank_low rank_high behind_first ties_with_first corrected corrected_low "
    "corrected_high method target warning"
)
_COST_COLUMNS = "model n_tasks success success_low success_high cost cost_low cost_high"


def rank_models(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    *,
    condition: str = "",
    first: str = "",
    pairs: pd.DataFrame | None = None,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Rank models on new tasks like these, with the uncertainty of the ranks.

    - The interval of ranks of a model begins after the models that are decided to be better, and ends before those
      decided to be worse. All intervals together hold the true ranks with the confidence of the correction of `pairs`
      (Mogstad, Romano, Shaikh and Wilhelm 2024). Of more than 100 models only the pairs of the first are tested, with
      Bonferroni's correction for all pairs, since any model might have been the first.
    - The first model is best where it is ahead of each other one in the test of this pair alone: having been picked as
      the first needs no correction for all pairs (Gutmann and Maymin 1987; Hsu 1984). Its rank is then 1, and no other
      model ties with it.
    - The corrected estimate allows for having been picked from all models: shrunk towards their mean by the share of
      the spread of models that is noise (Efron and Morris 1975), and with an interval that holds for all models at once
      (Bonferroni), hence for any that is picked by its result.

    Arguments are those of `compare_all`; `first` is the model that is tested for being best, by default that with the
    highest estimate, and `pairs` the result of `compare_all`, if already computed.

    There is one row per model, the highest estimate first: model, n_tasks, estimate, low, high (of this model alone, on
    its own tasks), rank_low, rank_high, behind_first (decided to be worse than the first), ties_with_first (no model is
    decided to be better, and the first is not best), corrected, corrected_low, corrected_high, method, target, warning.
    Equal estimates are in the order of their names, which means nothing, as the ranks show.
    """
    cells = cells_of(frame, model, task, value)
    count, rows = len(cells.models), []
    for i, name in enumerate(cells.models):
        values, bounds = cells.of(i).means, (0.0, 1.0) if cells.shares else None
        alone = mean_interval(values, np.arange(len(values)), bounds=bounds)
        at_once = mean_interval(values, np.arange(len(values)), bounds=bounds, confidence=1 - LEVEL / count)
        described = alone.method, "new tasks", alone.warning + cells.lost_of(i)
        rows.append((name, alone.n_clusters, *alone[:3], 1, count, False, True, math.nan, *at_once[1:3], *described))
    table = typed(pd.DataFrame(rows, columns=_COLUMNS.split()))
    if not count:
        return table
    leading = cells.models.index(first) if first else int(np.argmax(table["estimate"].fillna(-math.inf)))
    if pairs is None and count <= MOST_PAIRED:
        pairs = compare_all(frame, model, task, value, condition=condition, rng=rng)
    others = [i for i in range(count) if i != leading]
    within = cells_of(frame, model, task, value, condition)
    tests = pair_rows(within, [(leading, i) for i in others], "new tasks").set_index("b")
    better, worse, behind = np.zeros(count, int), np.zeros(count, int), np.zeros(count, bool)
    if pairs is None:
        is_behind = tests["p_value"] * (count * (count - 1) / 2) <= tests["claim_at"]
        behind[others] = is_behind & (tests["estimate"] > 0)
        better, worse[leading] = behind.astype(int), behind.sum()
    else:
        place = dict(zip(map(str, cells.models), range(count), strict=True))
        for row in pairs[pairs["decided"] | pairs["method"].eq(UNPAIRED)].to_dict("records"):
            a, b = place[row["model_a"]], place[row["model_b"]]
            winner, loser = (a, b) if row["estimate"] > 0 else (b, a)
            if row["decided"]:
                better[loser], worse[winner] = better[loser] + 1, worse[winner] + 1
                behind[loser] |= winner == leading
            if row["method"] == UNPAIRED and leading in (a, b):
                result = (row["estimate"] if a == leading else -row["estimate"]), row["p_value"], LEVEL
                tests.loc[b if a == leading else a, ["estimate", "p_value", "claim_at"]] = result
    table["behind_first"] = behind
    table["rank_low"], table["rank_high"], table["ties_with_first"] = 1 + better, count - worse, better == 0
    if ((tests["p_value"] <= tests["claim_at"]) & (tests["estimate"] > 0)).all():  # no test at all: the only model
        table["rank_low"] = table["rank_low"].clip(lower=2).where(table.index != leading, 1)
        table["rank_high"] = table["rank_high"].where(table.index != leading, 1)
        table["ties_with_first"] = table.index == leading
    # the share of the variance of estimates that is not noise, from 0 to 1
    estimates, common, signal = table["estimate"].dropna().to_numpy(), cells.has(), 0.0
    if len(estimates) > 1 and np.ptp(estimates):
        if common.sum() > 1:
            values = cells.means[common]
            values = values - values.mean(axis=1, keepdims=True)  # how hard a task is says nothing about who is best
            noise = (values.var(axis=0, ddof=1) / len(values)).sum() / (values.shape[1] - 1)
        else:
            of_tasks = [cells.of(i).means for i in range(count)]
            noise = np.mean([means.var(ddof=1) / len(means) for means in of_tasks if len(means) > 1] or [math.inf])
        signal = max(0.0, 1 - float(noise) / float(estimates.var(ddof=1)))
    centre = table["estimate"].mean()
    shrunk = centre + signal * (table["estimate"] - centre)
    table["corrected"] = shrunk.clip(table["corrected_low"].fillna(-math.inf), table["corrected_high"].fillna(math.inf))
    return typed(table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True))


def cost_front(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    cost: str,
    *,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Return success and cost of each model, and which models are on the Pareto front.

    A model is on the front if no other has at least its success at no more than its cost, and one of the two strictly
    better. Runs of a task are averaged first. Models are compared on the tasks that all have runs of; where there are
    none, on their own, and `warning` says so. Arguments are those of `compare_all`, higher values are better; `cost` is
    the column of the cost, such as tokens or time.

    There is one row per model, the cheapest first: model, n_tasks, success and cost (means over tasks) with _low and
    _high, on_front, dominated_by (the cheapest model that is better in one and no worse in the other), front_share (of
    resamples of tasks, by the Bayesian bootstrap of Rubin 1981, in which it is on the front), warning.
    """
    check_columns(frame, model, task, value, cost)
    numeric = pd.DataFrame({"value": numbers(frame[value]), "cost": numbers(frame[cost])}, index=frame.index)
    usable = np.isfinite(numeric.to_numpy()).all(axis=1) & frame[[model, task]].notna().all(axis=1)
    keys = [frame.loc[usable, task], frame.loc[usable, model]]
    cells: Any = numeric[usable].groupby(keys, observed=True).mean().unstack()
    models = sorted(frame[model].dropna().unique(), key=str)
    empty = pd.DataFrame(columns=models, dtype="float64")
    values, costs = (cells[name].reindex(columns=models) if len(cells) else empty for name in numeric)
    common = values.notna().all(axis=1).to_numpy()
    where = note("on_common", what="", count=common.sum()) if common.any() else note("tasks_differ")
    where = Notes() if common.all() else where
    used = common if common.any() else slice(None)
    values, costs = values[used].to_numpy(float), costs[used].to_numpy(float)
    rows = []
    for i, name in enumerate(models):
        own, paid = (column[np.isfinite(column)] for column in (values[:, i], costs[:, i]))
        is_share = bool(((own >= 0) & (own <= 1)).all())
        parts = {
            "success": mean_interval(own, bounds=(0.0, 1.0) if is_share else None),
            "cost": mean_interval(paid),
        }
        doubts = (note("of_part", part=part, notes=one.warning) for part, one in parts.items() if one.warning)
        rows.append((name, len(own), *parts["success"][:3], *parts["cost"][:3], sum(doubts, Notes()) + where))
    table = pd.DataFrame(rows, columns=[*_COST_COLUMNS.split(), "warning"])
    dominating = _dominating(table["success"].to_numpy(float), table["cost"].to_numpy(float))
    known = table[["success", "cost"]].notna().all(axis=1)
    table["on_front"] = known & ~np.asarray(dominating.any(axis=1))
    paid = np.where(dominating, table["cost"], math.inf)  # by the models that dominate each
    table["dominated_by"] = [str(models[row.argmin()]) if row.min() < math.inf else "" for row in paid]
    table["front_share"] = math.nan
    if common.sum() > 1:
        rng, counts = np.random.default_rng(0 if rng is None else rng), np.zeros(len(models))
        for _ in range(RESAMPLED):
            weights = rng.dirichlet(np.ones(len(values)), 100)
            counts += (~_dominating(weights @ values, weights @ costs).any(axis=-1)).sum(axis=0)
        table["front_share"] = counts / (RESAMPLED * 100)
    else:
        table["warning"] = [doubt + note("few_common", what="share of resamples") for doubt in table["warning"]]
    table = table.sort_values(["cost", "success"], ascending=[True, False], kind="stable", ignore_index=True)
    return typed(table, f"{_COST_COLUMNS} on_front dominated_by front_share warning")


def _dominating(success: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return which models (last axis) dominate each model (second-last axis); NaN dominates nothing."""
    at_least = (success[..., None, :] >= success[..., :, None]) & (cost[..., None, :] <= cost[..., :, None])
    better = (success[..., None, :] > success[..., :, None]) | (cost[..., None, :] < cost[..., :, None])
    return at_least & better
