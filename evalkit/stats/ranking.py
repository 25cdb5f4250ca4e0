"""Rank models: ranges of ranks from the tests of pairs, the best model, and estimates corrected for selection."""

import math

import numpy as np
import pandas as pd

from evalkit.stats import intervals
from evalkit.stats.cells import Cells
from evalkit.stats.pairwise import MOST_PAIRED, compare_all, pair_rows

_COLUMNS = (
    "model_name n_tasks estimate rank_low rank_high behind_first ties_with_first "
    "corrected_estimate corrected_low corrected_high target"
)


def rank_models(
    cells: Cells, *, first: str = "", pairs: pd.DataFrame | None = None, rng: np.random.Generator | None = None
) -> pd.DataFrame:
    """Rank models on new tasks like these, with the uncertainty of the ranks (docs/statistics.md).

    - The range of ranks of a model begins after the models that are shown to be better, and ends before the models that
      are shown to be worse. With more than 100 models, only pairs with the first model are tested, with Bonferroni's
      correction for all pairs.
    - If the first model is the best (`best_model`), its rank is 1.
    - The corrected estimate offsets the selection of the top model. It is shrunk towards the mean of all models by the
      share of their variance that is noise (Efron and Morris 1975). The corrected intervals cover all models at once
      (Bonferroni).

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.
    first : str
        Model to test for being the best; by default the one with the highest estimate.
    pairs : DataFrame, optional
        Result of `compare_all`, if already computed.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    DataFrame
        One row per model, the highest estimate first: model_name, n_tasks, estimate, rank_low, rank_high, behind_first
        (shown to be worse than the first), ties_with_first, corrected_estimate, corrected_low, corrected_high, target.

    Examples
    --------
    >>> stats.rank_models(cells)["rank_high"].tolist()
    [2, 2]
    """
    by_task = cells.over_conditions
    count = len(cells.models)
    values = [by_task.of(i).means for i in range(count)]
    table = pd.DataFrame({"model_name": cells.models, "n_tasks": list(map(len, values)), "target": "new tasks"})
    table["estimate"] = [own.mean() if len(own) else math.nan for own in values]
    table[["rank_low", "rank_high"]] = 1, count
    table[["behind_first", "ties_with_first"]] = False, True
    table[["corrected_estimate", "corrected_low", "corrected_high"]] = math.nan
    if not count:
        return intervals.typed(table, _COLUMNS)
    leading = cells.models.index(first) if first else int(np.argmax(table["estimate"].fillna(-math.inf)))
    tests, is_best = _against_others(cells, leading)
    if pairs is None and count > MOST_PAIRED:  # Bonferroni's correction for all pairs
        is_behind = tests["p_value"] * (count * (count - 1) / 2) <= tests["claim_at"]
        pairs = tests.assign(decided=is_behind & (tests["estimate"] > 0))
    elif pairs is None:
        pairs = compare_all(cells, rng=rng)
    place = {str(name): number for number, name in enumerate(cells.models)}
    decided = pairs[pairs["decided"]]
    is_a, sides = decided["estimate"] > 0, decided[["model_a", "model_b"]].map(place.get)
    winners = sides["model_a"].where(is_a, sides["model_b"]).to_numpy(int)
    losers = sides["model_b"].where(is_a, sides["model_a"]).to_numpy(int)
    table["rank_low"] = 1 + np.bincount(losers, minlength=count)
    table["rank_high"] = count - np.bincount(winners, minlength=count)
    table["behind_first"] = table.index.isin(losers[winners == leading])
    table["ties_with_first"] = table["rank_low"] == 1
    if is_best:
        table["rank_low"] = table["rank_low"].clip(lower=2).where(table.index != leading, 1)
        table["rank_high"] = table["rank_high"].where(table.index != leading, 1)
        table["ties_with_first"] = table.index == leading
    table[["corrected_estimate", "corrected_low", "corrected_high"]] = _corrected(by_task, values, table["estimate"])
    return intervals.typed(table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True), _COLUMNS)


def best_model(cells: Cells) -> str:
    """Return the model that is better than each other model in the uncorrected test of the pair.

    Only the model with the highest estimate is tested, so the tests need no correction for the number of pairs (Gutmann
    and Maymin 1987; Hsu 1984).

    Parameters
    ----------
    cells : Cells
        Result of `cells_of`.

    Returns
    -------
    str
        Name of the model; empty if no model is shown to be the best.

    Examples
    --------
    >>> stats.best_model(cells)
    ''
    """
    if not cells.models:
        return ""
    estimates = pd.DataFrame(cells.over_conditions.means, columns=range(len(cells.models))).mean()
    leading = int(np.argmax(estimates.fillna(-math.inf)))
    return str(cells.models[leading]) if _against_others(cells, leading)[1] else ""


def _against_others(cells: Cells, leading: int) -> tuple[pd.DataFrame, bool]:
    """Test one model against each other model; also return whether it is better than all (true for an only model)."""
    others = [(leading, i) for i in range(len(cells.models)) if i != leading]
    tests = pair_rows(cells, others, "new tasks")[0]
    return tests, bool(((tests["p_value"] <= tests["claim_at"]) & (tests["estimate"] > 0)).all())


def _corrected(by_task: Cells, values: list[np.ndarray], estimates: pd.Series) -> np.ndarray:
    """Return the corrected estimate of each model, with bounds; columns as in the table of `rank_models`."""
    confidence = 1 - intervals.LEVEL / len(values)
    bounds = []
    for model, own in enumerate(values):
        families = np.arange(len(own))
        if by_task.clusters is not None:
            families = by_task.clusters[by_task.sizes[:, model] > 0]
        if len(np.unique(families)) < len(own):
            limits = (0.0, 1.0) if by_task.shares else None
            tasks = np.arange(len(own))
            found = intervals.mean_interval(own, tasks, bounds=limits, families=families, confidence=confidence)
            bounds.append((found.low, found.high))
        else:
            bounds.append(at_once(own, by_task.shares, confidence))
    low, high = np.array(bounds).T

    spread = float(estimates.var())
    signal = 0.0  # share of the variance of the estimates that is not noise
    if spread > 0:
        common = by_task.has()
        if common.sum() > 1:
            shared = by_task.means[common]
            shared = shared - shared.mean(axis=1, keepdims=True)  # remove the difficulty of each task
            noise = (shared.var(axis=0, ddof=1) / len(shared)).sum() / (shared.shape[1] - 1)
        else:
            variances = [float(intervals.variance_of_mean(own)) for own in values if len(own) > 1]
            noise = np.mean(variances or [math.inf])
        signal = max(0.0, 1 - float(noise) / spread)
    shrunk = estimates.mean() + signal * (estimates.to_numpy() - estimates.mean())
    lowest, highest = np.where(np.isnan(low), -math.inf, low), np.where(np.isnan(high), math.inf, high)
    return np.column_stack([np.clip(shrunk, lowest, highest), low, high])


def at_once(values: np.ndarray, shares: bool, confidence: float) -> tuple[float, float]:
    """Return an interval of the mean of task values that is valid at confidence levels far above 95 %.

    Shares use Clopper and Pearson (1934), which is never too narrow, with the number of tasks or the effective n (Korn
    and Graubard 1998), whichever is larger. Other values use t with Hall's correction.
    """
    count = len(values)
    if count < 2:
        return math.nan, math.nan
    variance = float(intervals.variance_of_mean(values))
    if not shares and variance == 0:
        return math.nan, math.nan
    if not shares:
        by_t = intervals.corrected_t(values, confidence)
        return float(by_t[0]), float(by_t[1])
    rate = float(values.mean())
    factor = float(intervals.quantile(confidence, count - 1) / intervals.quantile(confidence)) ** 2
    factor *= 1 + 2 * float(intervals.skewness(values)) ** 2 / count
    n = float(count)
    if variance * factor > 0:
        n = max(n, float(rate * (1 - rate) / (variance * factor)))
    return intervals.clopper_pearson(rate, n, confidence)
