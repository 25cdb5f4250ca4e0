"""Figures of judges: frames of `evalkit.labels` in, axes out."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import plots

__all__ = ["rates"]

RAW, CORRECTED = "judge alone", "corrected by labels"


def rates(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the rate by each judge alone, and the rate corrected by hand labels.

    The constants `always` and `never` are drawn, too: their corrected rate is the rate of the labels alone.

    Parameters
    ----------
    table : DataFrame
        As from `judge_table`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        A row per judge, with 95 % intervals of the corrected rates.

    Examples
    --------
    >>> ax = figures.rates(labels.judge_table(comparison))
    """
    said = table.assign(estimate=table["raw"], low=float("nan"), high=float("nan"), n=table["n_judged"], rate=RAW)
    rows = pd.concat([said[said["estimate"].notna()], table.assign(rate=CORRECTED)], ignore_index=True)
    return plots.estimates(rows.drop(columns="warning"), "judge", "rate", xlabel="share of yes", ax=ax)
