"""Analyse the tasks of a benchmark: which separate models, which contradict their order, and how few are enough."""

import numpy as np
import pandas as pd

from evalkit.compare.comparison import Comparison, comparison
from evalkit.kinds.runs import Value

DRAWS = 200  # number of random subsets of tasks per size
COLUMNS = ["task", "n_models", "n", "mean", "verdict", "discrimination"]


def task_items(runs: pd.DataFrame | Comparison, value: Value = "") -> pd.DataFrame:
    """Describe how each task separates models; tasks that contradict the order of models come first.

    The discrimination is the correlation, over models, of their means on the task with their means on all other tasks
    (the item-rest correlation of classical test theory).

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.

    Returns
    -------
    DataFrame
        task, n_models, n (runs), mean (over models), verdict ("all solve", "none solves", "equal", "contradicts the
        order" or "discriminates"), discrimination (from -1 to 1; NaN for fewer than 3 models).

    Examples
    --------
    >>> compare.task_items(runs)["verdict"].iloc[0]
    'contradicts the order'
    """
    data = comparison(runs, value)
    cells = data.cells.over_conditions
    if not cells.tasks:
        return pd.DataFrame(columns=COLUMNS)
    values, has_run = cells.means, cells.sizes > 0
    table = pd.DataFrame({"task": cells.tasks, "n_models": has_run.sum(axis=1), "n": cells.sizes.sum(axis=1)})
    table["mean"], table["discrimination"] = np.nanmean(values, axis=1), float("nan")
    for place, own in enumerate(values):
        rest = np.delete(values, place, axis=0)
        known = np.isfinite(own) & np.isfinite(rest).any(axis=0)
        if known.sum() > 2:
            others = np.nanmean(rest[:, known], axis=0)
            if np.ptp(own[known]) > 0 and np.ptp(others) > 0:
                table.loc[place, "discrimination"] = np.corrcoef(own[known], others)[0, 1]
    spread = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
    is_equal = (spread == 0) & (table["n_models"] > 1)
    choices = [
        is_equal & (table["mean"] == 1) & data.outcomes.is_share,
        is_equal & (table["mean"] == 0) & data.outcomes.is_share,
        spread == 0,
        table["discrimination"] < 0,
    ]
    verdicts = ["all solve", "none solves", "equal", "contradicts the order"]
    table["verdict"] = np.select(choices, verdicts, "discriminates")
    return table.sort_values(["discrimination", "task"], kind="stable", ignore_index=True)[COLUMNS]


def fewer_tasks(
    runs: pd.DataFrame | Comparison, value: Value = "", *, rng: np.random.Generator | None = None
) -> pd.DataFrame:
    """Estimate how often a random subset of the tasks gives the same ranking as all shared tasks.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    rng : Generator, optional
        Random generator; by default with a fixed seed.

    Returns
    -------
    DataFrame
        One row per number of tasks: n_tasks, same_first (share of 200 draws with the same first model) and same_order
        (share with the same order). Empty for fewer than 2 models or fewer than 2 shared tasks.

    Examples
    --------
    >>> compare.fewer_tasks(runs)["n_tasks"].tolist()[:2]
    [2, 3]
    """
    cells = comparison(runs, value).cells.over_conditions
    values = cells.means[cells.has()]
    rng = np.random.default_rng(0 if rng is None else rng)
    rows = []
    if min(values.shape) > 1:
        order = np.argsort(-values.mean(axis=0), kind="stable")
        for n in sorted({max(1, round(len(values) * share)) for share in (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 0.9)}):
            is_drawn = rng.permuted(np.tile(np.arange(len(values)) < n, (DRAWS, 1)), axis=1)
            means = (is_drawn @ values / n)[:, order]
            ahead = means[:, :-1] - means[:, 1:]
            is_first = means[:, 0] > means[:, 1:].max(axis=1)
            rows.append((n, float(is_first.mean()), float((ahead > 0).all(axis=1).mean())))
    return pd.DataFrame(rows, columns=["n_tasks", "same_first", "same_order"])
