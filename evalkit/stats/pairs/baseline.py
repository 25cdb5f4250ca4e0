"""Compare models with a baseline: which are worse, and which are not worse by more than a margin."""

from typing import Literal

import numpy as np
import pandas as pd

from evalkit.stats._inputs import check_confidence
from evalkit.stats.pairs.cells import cells_of
from evalkit.stats.pairs.multiplicity import holm
from evalkit.stats.pairs.pairwise import adjusted_by_max_t, beyond, pair_rows

Verdict = Literal["better", "not worse", "regression", "not decided"]

_DTYPES = {
    "model": "str",
    "n_tasks": "int64",
    "n_runs": "int64",
    "mean": "float64",
    "mean_baseline": "float64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "p_value": "float64",
    "p_adjusted": "float64",
    "p_not_worse": "float64",
    "verdict": "str",
    "method": "str",
    "target": "str",
    "warning": "str",
}


def compare_to_baseline(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    baseline: str,
    *,
    margin: float = 0.05,
    confidence: float = 0.95,
    target: Literal["new tasks", "these tasks"] = "new tasks",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare every model with a baseline, paired on the tasks both have runs of.

    Each model gets one verdict:

    - "not worse": it is not worse than the baseline by `margin` or more (non-inferiority: a one-sided test, with Holm's
      correction for the number of models)
    - "better": its difference from the baseline is above 0
    - "regression": its difference is below 0, and it is not shown to be within the margin
    - "not decided": neither; more tasks are needed

    Differences from 0 are corrected by max-T over the models (for these tasks by Holm).

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns, as for `compare_all`.
    baseline : str
        The model to compare with.
    margin : float
        In the unit of the values, above 0: the largest loss that is acceptable.
    confidence, target, rng
        As for `compare_all`.

    Returns
    -------
    DataFrame
        One row per model but the baseline: model, n_tasks, n_runs, mean, mean_baseline, estimate (model − baseline),
        low, high, p_value, p_adjusted, p_not_worse (corrected), verdict, method, target, warning.

    Raises
    ------
    ValueError
        For a baseline without runs, an unknown column, or an impossible margin or confidence.
    """
    check_confidence(confidence)
    if not margin > 0:
        raise ValueError(f"a margin is above 0, not {margin}")
    cells = cells_of(frame, model, task, value)
    if baseline not in cells.models:
        raise ValueError(f"no runs of the baseline {baseline!r}; there are {', '.join(map(repr, cells.models))}")
    base = cells.models.index(baseline)
    pairs = [(i, base) for i in range(len(cells.models)) if i != base]
    table = pair_rows(cells, pairs, target, confidence)
    within = target == "these tasks"
    table["p_adjusted"] = holm(table["p_value"]) if within else adjusted_by_max_t(cells, pairs, table["p_value"], rng)
    table["p_not_worse"] = holm(beyond(table["centre"] + margin, table))
    different = (table["p_adjusted"] <= 1 - confidence).to_numpy()
    not_worse = (table["p_not_worse"] <= 1 - confidence).to_numpy()
    above = (table["estimate"] > 0).to_numpy()
    choices = [different & above, not_worse, different & ~above]
    table["verdict"] = np.select(choices, ["better", "not worse", "regression"], "not decided")
    table = table.rename(columns={"model_a": "model", "mean_a": "mean", "mean_b": "mean_baseline"})
    return table.assign(target=target)[list(_DTYPES)].astype(_DTYPES)
