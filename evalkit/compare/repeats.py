"""Estimate the reliability of models over repetitions of tasks."""

from collections.abc import Sequence

import pandas as pd

from evalkit.compare.comparison import Comparison, comparison
from evalkit.kinds.runs import MOST_MODELS, leading
from evalkit.stats import reliability as reliability_of


def reliability(runs: pd.DataFrame | Comparison, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """Estimate pass@k, pass^k and agreement per model, each k on tasks with at least k runs.

    The table contains at most 200 models, the ones with the highest means.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    ks : sequence of int, optional
        Values of k; by default as for `evalkit.stats.reliability`.

    Returns
    -------
    DataFrame
        The table of `evalkit.stats.reliability`, by model_name; empty if no run has a success or failure.

    Examples
    --------
    >>> compare.reliability(runs, [1])["measure"].unique().tolist()
    ['pass@1', 'pass^1', 'agreement']
    """
    data = comparison(runs, "is_successful")
    if len(data.all_cells.models) > MOST_MODELS:
        data = Comparison.of(data.outcomes._replace(table=leading(data.outcomes.table)))
    return data.outcomes.marked(reliability_of(data.all_cells, ks=ks, order="repetition"))
