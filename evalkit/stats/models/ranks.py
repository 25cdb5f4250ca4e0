"""Rank models: ranks that the data leave open, whether the first is best, and estimates corrected for being picked."""

import math

import numpy as np
import pandas as pd

from evalkit.stats._inputs import Cells, cells_of, check_confidence, typed
from evalkit.stats.intervals import mean_interval
from evalkit.stats.pairs.pairwise import compare_all, pair_rows

MOST_PAIRED = 100  # models of which every pair is compared; of more, ranks rest on bounds
CHUNK = 4_000_000  # pairs of models at a time

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
      (Mogstad, Romano, Shaikh and Wilhelm 2024). Of more than 100 models pairs are decided by bounds that hold for any
      distribution (Efron 1969 for 0/1 outcomes, Maurer and Pontil 2009), which is cautious.
    - The first model is best where it is ahead of each other one in the test of this pair alone: having been picked as
      the first needs no correction for all pairs (Gutmann and Maymin 1987; Hsu 1984). Its rank is then 1, and no other
      model ties with it.
    - The corrected estimate allows for having been picked from all models: shrunk towards their mean by the share of
      the spread of models that is noise (Efron and Morris 1975), and with an interval that holds for all models at once
      (Bonferroni), hence for any that is picked by its result.

    Parameters
    ----------
    frame, model, task, value, condition, confidence
        As for `compare_all`.
    first : str
        The model that is tested for being best; by default that with the highest estimate.
    pairs : DataFrame, optional
        The result of `compare_all` for the same rows and confidence, if already computed.
    rng : numpy.random.Generator, optional
        For `compare_all`.

    Returns
    -------
    DataFrame
        One row per model: model, n_tasks, estimate, low, high (of this model alone, on its own tasks), rank_low,
        rank_high, behind_first (decided to be worse than the first), ties_with_first (no model is decided to be better,
        and the first is not best), corrected, corrected_low, corrected_high, method, target, warning. The highest
        estimate comes first; equal ones are in the order of their names, which means nothing, as the ranks show.
    """
    check_confidence(confidence)
    cells = cells_of(frame, model, task, value)
    count, rows = len(cells.models), []
    for i, name in enumerate(cells.models):
        values, bounds = cells.of(i).means, (0.0, 1.0) if cells.shares else None
        levels = confidence, 1 - (1 - confidence) / count
        alone, at_once = (mean_interval(values, np.arange(len(values)), c, bounds=bounds) for c in levels)
        described = alone.method, "new tasks", alone.warning + cells.lost_of(i)
        rows.append((name, alone.n_clusters, *alone[:3], 1, count, False, True, math.nan, *at_once[1:3], *described))
    table = typed(pd.DataFrame(rows, columns=_COLUMNS.split()))
    if not count:
        return table
    leading = cells.models.index(first) if first else int(np.argmax(table["estimate"].fillna(-math.inf)))
    if pairs is None and count <= MOST_PAIRED:
        pairs = compare_all(frame, model, task, value, confidence=confidence, condition=condition, rng=rng)
    decide = _bounded(cells, leading, confidence) if pairs is None else _decided(pairs, cells.models, leading)
    better, worse, table["behind_first"] = decide
    table["rank_low"], table["rank_high"], table["ties_with_first"] = 1 + better, count - worse, better == 0
    others = [i for i in range(count) if i != leading]
    within = cells_of(frame, model, task, value, condition)
    tests = pair_rows(within, [(leading, i) for i in others], "new tasks", confidence).set_index("model_b")
    if pairs is not None:  # those that were compared unpaired
        of, level = pairs["warning"].map(lambda doubts: "unpaired" in doubts).astype(bool), 1 - confidence
        for row in pairs[of].to_dict("records"):
            for one, other, sign in (("model_a", "model_b", 1), ("model_b", "model_a", -1)):
                if row[one] == cells.models[leading]:
                    result = sign * row["estimate"], row["p_value"], level
                    tests.loc[row[other], ["estimate", "p_value", "claim_at"]] = result
    if ((tests["p_value"] <= tests["claim_at"]) & (tests["estimate"] > 0)).all():  # no test at all: the only model
        table["rank_low"] = table["rank_low"].clip(lower=2).where(table.index != leading, 1)
        table["rank_high"] = table["rank_high"].where(table.index != leading, 1)
        table["ties_with_first"] = table.index == leading
    signal = _signal(table["estimate"].to_numpy(), cells, cells.has())
    centre = table["estimate"].mean()
    shrunk = centre + signal * (table["estimate"] - centre)
    table["corrected"] = shrunk.clip(table["corrected_low"].fillna(-math.inf), table["corrected_high"].fillna(math.inf))
    return typed(table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True))


def _decided(pairs: pd.DataFrame, models: list, first: int) -> tuple[np.ndarray, ...]:
    """Return how many models are decided to be better and worse than each, and which are worse than the first."""
    decided, names = pairs[pairs["decided"]], [str(name) for name in models]
    ahead = decided["estimate"] > 0
    losers = decided["model_b"].where(ahead, decided["model_a"])
    winners = decided["model_a"].where(ahead, decided["model_b"])
    counts = (side.value_counts().reindex(names, fill_value=0).to_numpy() for side in (losers, winners))
    return *counts, np.isin(names, losers[winners == names[first]])


def _bounded(cells: Cells, first: int, confidence: float) -> tuple[np.ndarray, ...]:
    """Return what `_decided` does, for so many models that their pairs are taken in blocks and judged by bounds.

    The sum of differences over the root of that of their squares exceeds z with a chance of at most exp(−z² / 2) where
    signs are as likely either way, as for 0/1 outcomes of equal models; else the bound is the empirical Bernstein one.
    """
    there, known = (cells.sizes > 0).astype(float), cells.sizes > 0
    values = np.where(known, cells.means, 0.0)
    spread = float(np.ptp(values[known]))
    binary = np.asarray(np.isin(values, (0.0, 1.0)).all(axis=0))
    values = np.where(known, values - (values.sum(axis=1) / np.maximum(there.sum(axis=1), 1))[:, None], 0.0)
    squares, count = values**2, values.shape[1]
    log = math.log(2 * count * (count - 1) / (1 - confidence))  # of 2 / level of one side of one pair
    better, worse, behind = np.zeros(count, int), np.zeros(count, int), np.zeros(count, bool)
    step = max(CHUNK // count, 1)
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        n = there[:, part].T @ there
        sums = values[:, part].T @ there - there[:, part].T @ values
        square = squares[:, part].T @ there + there[:, part].T @ squares - 2 * values[:, part].T @ values
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.maximum(square - sums**2 / n, 0) / (n - 1)
            half = np.sqrt(2 * variance * log / n) + 14 * spread * log / (3 * (n - 1))
            signs, beyond = sums**2 > 2 * (log - math.log(2)) * square, np.abs(sums) > n * half
        both = binary[part, None] & binary
        shown = ((both & signs) | (~both & beyond)) & (n > 1) & (np.abs(sums) > 1e-9)
        worse[part], better[part] = (shown & (sums > 0)).sum(axis=1), (shown & (sums < 0)).sum(axis=1)
        if part.start <= first < part.stop:
            behind = (shown & (sums > 0))[first - part.start]
    return better, worse, behind


def _signal(estimates: np.ndarray, cells: Cells, common: np.ndarray) -> float:
    """Return the share of the variance of estimates that is not noise, from 0 to 1."""
    known = np.isfinite(estimates)
    if known.sum() < 2 or not np.ptp(estimates[known]):
        return 0.0
    if common.sum() > 1:
        values = cells.means[common]
        values = values - values.mean(axis=1, keepdims=True)  # how hard a task is says nothing about who is best
        noise = (values.var(axis=0, ddof=1) / len(values)).sum() / (values.shape[1] - 1)
    else:
        task_means = [cells.of(int(i)).means for i in np.flatnonzero(known)]
        noise = np.mean([means.var(ddof=1) / len(means) for means in task_means if len(means) > 1] or [math.inf])
    return max(0.0, 1 - float(noise) / float(estimates[known].var(ddof=1)))
