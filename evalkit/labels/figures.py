"""Draw figures of judges from the frames of `evalkit.labels`."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import plots

__all__ = ["rates"]

RAW, CORRECTED = "judge alone", "corrected by labels"


def rates(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the raw rate of each judge, and the rate corrected with hand labels.

    The figure includes the constants `always` and `never`; their corrected rate is the rate of the labels alone.

    Parameters
    ----------
    table : DataFrame
        Result of `judge_table`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One row per judge, with 95 % intervals of the corrected rates.

    Examples
    --------
    >>> ax = figures.rates(labels.judge_table(comparison))
    """
    said = table.assign(estimate=table["raw"], low=float("nan"), high=float("nan"), n=table["n_judged"], rate=RAW)
    rows = pd.concat([said[said["estimate"].notna()], table.assign(rate=CORRECTED)], ignore_index=True)
    return plots.estimates(rows.drop(columns="warning"), "judge", "rate", xlabel="share of yes", ax=ax)
