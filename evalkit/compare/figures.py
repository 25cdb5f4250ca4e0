"""Draw figures of comparisons from the frames of `evalkit.compare`."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from evalkit._text import counted_noun
from evalkit.compare.ranking import Leaderboard
from evalkit.display import nothing_to_draw, plots, set_alt
from evalkit.kinds import judge_mark
from evalkit.stats.adjusted import RAW

__all__ = ["differences", "ranking"]

MOST_DRAWN = 30  # maximum number of models in a matrix of pairs


def ranking(board: Leaderboard, ax: Axes | None = None) -> Axes:
    """Draw each model's estimate with its interval; raw and adjusted estimates if they differ.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One row per model, with 95 % intervals; a message if no model was measured.

    Examples
    --------
    >>> ax = compare.figures.ranking(compare.leaderboard(runs))
    """
    values, table = board.outcomes, board.table
    if table["estimate"].isna().all():
        return nothing_to_draw("measured runs", ax)
    hue = None
    if board.is_adjusted:
        hue, columns = "which", {"estimate": "adjusted_estimate", "low": "adjusted_low", "high": "adjusted_high"}
        adjusted = table.assign(**{name: table[source] for name, source in columns.items()}, which=board.basis)
        table = pd.concat([table.assign(which=RAW), adjusted], ignore_index=True)
    return plots.estimates(table, "model_name", hue, percent=values.is_share, xlabel=values.title, ax=ax)


def differences(pairs: pd.DataFrame, *, percent: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the matrix of paired differences, row minus column, with decided pairs framed.

    Parameters
    ----------
    pairs : DataFrame
        Result of `pairs`.
    percent : bool
        Whether differences are in percentage points (rates) or in the unit of the score.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One row and one column per model, for at most the first 30 models.

    Examples
    --------
    >>> ax = compare.figures.differences(compare.pairs(runs))
    """
    models = list(dict.fromkeys([*pairs["model_a"], *pairs["model_b"]]))[:MOST_DRAWN]
    shown = pairs[pairs["model_a"].isin(models) & pairs["model_b"].isin(models)]
    unit = "percentage points" if percent else "the unit of the score"
    xlabel = f"row minus column, in {unit}{judge_mark(pairs['warning'])}; framed and bold: decided"
    style: dict[str, Any] = {"signed": True, "frame": "decided", "percent": percent, "xlabel": xlabel}
    ax = plots.heatmap(plots.mirrored(shown), "model_a", "model_b", **style, ax=ax)
    sentences = " ".join(pairs["sentence"]) if len(pairs) <= MOST_DRAWN else ""
    decided = f"{int(pairs['decided'].sum())} of {counted_noun(len(pairs), 'pair')} decided"
    set_alt(ax, f"Paired differences. {decided}. {sentences}")
    return ax
