"""Reliability of models over repetitions of tasks."""

from collections.abc import Sequence

import pandas as pd

from evalkit.compare.comparison import Comparison, comparison
from evalkit.kinds.runs import MOST_MODELS, leading
from evalkit.stats import reliability as reliability_of


def reliability(runs: pd.DataFrame | Comparison, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """Estimate pass@k, pass^k and agreement per model, each k on tasks with at least k runs.

    The table is that of `evalkit.stats.reliability`, by model_name; no rows if runs have no success or failure.
    Of more than 200 models, it has those with the highest means.
    """
    data = comparison(runs, "is_successful")
    if len(data.all_cells.models) > MOST_MODELS:
        data = Comparison(data.outcomes._replace(table=leading(data.outcomes.table)))
    return reliability_of(data.all_cells, ks=ks, order="repetition")
