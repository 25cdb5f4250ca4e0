"""Rank models: ranks that the data leave open, whether the first is best, and estimates corrected for being picked."""

import math

import numpy as np
import pandas as pd

from evalkit.stats.inputs import cells_of, check_confidence, typed
from evalkit.stats.intervals import mean_interval
from evalkit.stats.paired import UNPAIRED
from evalkit.stats.pairs import compare_all, pair_rows

MOST_PAIRED = 100  # models of which every pair is compared; of more, only those of the first

_COLUMNS = (
    "model n_tasks estimate low high rank_low rank_high behind_first ties_with_first corrected corrected_low "
    "corrected_high method target warning"
)


def rank_models(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    *,
    confidence: float = 0.95,
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
    check_confidence(confidence)
    cells = cells_of(frame, model, task, value)
    count, rows = len(cells.models), []
    for i, name in enumerate(cells.models):
        values, bounds = cells.of(i).means, (0.0, 1.0) if cells.shares else None
        alone = mean_interval(values, np.arange(len(values)), confidence, bounds=bounds)
        at_once = mean_interval(values, np.arange(len(values)), 1 - (1 - confidence) / count, bounds=bounds)
        described = alone.method, "new tasks", alone.warning + cells.lost_of(i)
        rows.append((name, alone.n_clusters, *alone[:3], 1, count, False, True, math.nan, *at_once[1:3], *described))
    table = typed(pd.DataFrame(rows, columns=_COLUMNS.split()))
    if not count:
        return table
    leading = cells.models.index(first) if first else int(np.argmax(table["estimate"].fillna(-math.inf)))
    if pairs is None and count <= MOST_PAIRED:
        pairs = compare_all(frame, model, task, value, confidence=confidence, condition=condition, rng=rng)
    others = [i for i in range(count) if i != leading]
    within = cells_of(frame, model, task, value, condition)
    tests = pair_rows(within, [(leading, i) for i in others], "new tasks", confidence).set_index("b")
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
                result = (row["estimate"] if a == leading else -row["estimate"]), row["p_value"], 1 - confidence
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
