"""Rank models, with the uncertainty of ranks and estimates corrected for selection of the best."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from evalkit._notes import Notes, note
from evalkit.stats._inputs import check_confidence, typed
from evalkit.stats.intervals import mean_interval
from evalkit.stats.pairs.cells import Cells, cells_of
from evalkit.stats.pairs.pairwise import compare_all

N_RESAMPLES = 4_000
CHUNK = 500  # resamples at a time
P_BEST = "probability of being best"

_COLUMNS = (
    "model n_tasks estimate low high p_best rank_low rank_high ties_with_first corrected corrected_low corrected_high "
    "method target warning"
)


def rank_models(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    *,
    confidence: float = 0.95,
    pairs: pd.DataFrame | None = None,
    n_resamples: int = N_RESAMPLES,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Rank models on new tasks like these, with the uncertainty of the ranks.

    - The interval of ranks of a model begins after the models that are decided to be better, and ends before those
      decided to be worse; models than which none is better tie with the first. All intervals together hold the true
      ranks with the confidence of the correction of `pairs` (Mogstad, Romano, Shaikh and Wilhelm 2024).
    - The corrected estimate allows for having been picked from all models: shrunk towards their mean by the share of
      the spread of models that is noise (Efron and Morris 1975), and with an interval that holds for all models at once
      (Bonferroni), hence for any that is picked by its result.
    - The probability of being best is the share of draws in which the model has the highest mean: its corrected
      estimate, plus what the Bayesian bootstrap over tasks (Rubin 1981) adds to it, as far as that is not noise. Where
      all of the spread of models may be noise, all are equally likely to be best.

    Parameters
    ----------
    frame, model, task, value, confidence
        As for `compare_all`.
    pairs : DataFrame, optional
        The result of `compare_all` for the same rows and confidence, if already computed.
    n_resamples : int
    rng : numpy.random.Generator, optional
        Of the draws; by default one with seed 0.

    Returns
    -------
    DataFrame
        One row per model: model, n_tasks, estimate, low, high (of this model alone, on its own tasks), p_best,
        rank_low, rank_high, ties_with_first, corrected, corrected_low, corrected_high, method, target, warning. The
        highest estimate comes first; equal ones are in the order of their names, which means nothing, as the ranks
        show.

    Raises
    ------
    ValueError
        For an unknown column or an impossible confidence.
    """
    check_confidence(confidence)
    cells = cells_of(frame, model, task, value)
    if pairs is None:
        pairs = compare_all(frame, model, task, value, confidence=confidence, sentences=False, rng=rng)
    count, common = len(cells.models), cells.has()
    rows = []
    for i, (name, better, worse) in enumerate(zip(cells.models, *_decided(pairs, cells.models), strict=True)):
        values, bounds = cells.of(i).means, (0.0, 1.0) if cells.shares else None
        levels = confidence, 1 - (1 - confidence) / count
        alone, at_once = (mean_interval(values, np.arange(len(values)), c, bounds=bounds) for c in levels)
        ranks = math.nan, 1 + better, count - worse, better == 0
        described = alone.method, "new tasks", alone.warning + cells.lost_of(i)
        rows.append((name, alone.n_clusters, *alone[:3], *ranks, math.nan, *at_once[1:3], *described))
    table = typed(pd.DataFrame(rows, columns=_COLUMNS.split()))
    signal = _signal(table["estimate"].to_numpy(), cells, common)
    centre = table["estimate"].mean()
    shrunk = centre + signal * (table["estimate"] - centre)
    table["corrected"] = shrunk.clip(table["corrected_low"].fillna(-math.inf), table["corrected_high"].fillna(math.inf))
    table["p_best"] = _best(cells.means[common], signal, n_resamples, np.random.default_rng(0 if rng is None else rng))
    where = note("on_common", what=f"{P_BEST} ", count=common.sum()) if not common.all() else Notes()
    where = note("few_common", what=P_BEST) if common.sum() < 2 else where
    table["warning"] = [doubt + (where if count > 1 else Notes()) for doubt in table["warning"]]
    return typed(table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True))


def _decided(pairs: pd.DataFrame, models: list) -> Iterator[np.ndarray]:
    """Return how many models are decided to be better, and how many worse, than each."""
    decided = pairs[pairs["decided"]]
    sides, ahead = (decided["model_a"], decided["model_b"]), decided["estimate"] > 0
    losers, winners = sides[1].where(ahead, sides[0]), sides[0].where(ahead, sides[1])
    names = [str(name) for name in models]
    return (side.value_counts().reindex(names, fill_value=0).to_numpy() for side in (losers, winners))


def _best(values: np.ndarray, signal: float, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each model (last axis) has the highest mean; ties are shared."""
    tasks, count = values.shape
    if tasks < 2:
        return np.full(count, 1.0 if count == 1 else math.nan)
    wins, means = np.zeros(count), values.mean(axis=0)
    for start in range(0, n_resamples, CHUNK):
        weights = rng.dirichlet(np.ones(tasks), min(CHUNK, n_resamples - start))
        drawn = signal * means + math.sqrt(signal) * (weights @ values - means)
        first = drawn >= drawn.max(axis=1, keepdims=True) - 1e-9
        wins += (first / first.sum(axis=1, keepdims=True)).sum(axis=0)
    return wins / n_resamples


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
