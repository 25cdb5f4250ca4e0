"""Draw figures of task runs with `evalkit.display.plots`, from the frames of `analysis`."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit.display import Look, describe_estimates, plots, set_alt
from evalkit.kinds import rates
from evalkit.mindcraft.analysis import counted
from evalkit.mindcraft.table import STATUSES

__all__ = ["by_blocked", "estimates", "heatmap", "scores", "statuses"]

STATUS_LOOKS = {code: Look(one.colour, hatch=one.hatch, text=one.label) for code, one in STATUSES.items()}
estimates, heatmap = plots.estimates, plots.heatmap


def statuses(table: pd.DataFrame, category: str = "model_name", ax: Axes | None = None) -> Axes:
    """Draw the shares of statuses as one stacked bar per category.

    Parameters
    ----------
    table : DataFrame
        Result of `analysis.status_counts`.
    category : str
        Column with the category of each bar.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.statuses(analysis.status_counts(runs))
    """
    return plots.shares(table, category, STATUS_LOOKS, ax=ax)


def scores(runs: pd.DataFrame, highlight: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw every construction score as a point, and the mean of each model; stale copies are excluded.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    highlight : str, optional
        Model to emphasise.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.scores(analysis.select(runs, task_type="construction"))
    """
    building = counted(runs[runs["task_type"] == "construction"])
    style: dict[str, Any] = {"highlight": highlight, "xlabel": "construction score", "percent": True, "ax": ax}
    return plots.strips(building, "model_name", "score", means=rates(building, value="score"), **style)


def by_blocked(table: pd.DataFrame) -> Figure:
    """Draw success against the number of blocked agents, one panel per model.

    Parameters
    ----------
    table : DataFrame
        Result of `analysis.success_by` by model_name and n_blocked_agents.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> figure = figures.by_blocked(analysis.success_by(analysis.cooking(runs), ["model_name", "n_blocked_agents"]))
    """
    known = table[table["n_blocked_agents"].notna()].astype({"n_blocked_agents": float})

    def draw(shown: pd.DataFrame, ax: Axes) -> None:
        model = shown["model_name"].iloc[0]
        plots.curves(known, "n_blocked_agents", "model_name", highlight=model, ax=ax)

    xlabel = "agents without access to the recipe"
    panels = plots.facets(known, "model_name", draw, xlabel=xlabel, ylabel="success rate, 95 % interval")
    text = describe_estimates(known, "model_name", "n_blocked_agents")
    set_alt(panels[0].figure, f"Success rate by number of blocked agents. {text}")
    return panels[0].figure
