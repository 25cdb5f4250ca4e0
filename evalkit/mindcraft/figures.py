"""Figures of task runs, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit.display import Look, describe_estimates, plots, set_alt
from evalkit.mindcraft.analysis import counted, score_by
from evalkit.mindcraft.table import STATUSES

__all__ = ["by_blocked", "estimates", "heatmap", "scores", "statuses"]

STATUS_LOOKS = {code: Look(one.colour, hatch=one.hatch, text=one.label) for code, one in STATUSES.items()}
estimates, heatmap = plots.estimates, plots.heatmap


def statuses(table: pd.DataFrame, category: str = "model_name", ax: Axes | None = None) -> Axes:
    """Draw the shares of completion statuses as one stacked bar per category; `table` as `status_counts` returns it."""
    return plots.shares(table, category, STATUS_LOOKS, ax=ax)


def scores(runs: pd.DataFrame, highlight: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw every construction score as a point, and the mean per model; stale copies are left out."""
    building = counted(runs[runs["task_type"] == "construction"])
    style: dict[str, Any] = {"highlight": highlight, "xlabel": "construction score", "percent": True, "ax": ax}
    return plots.strips(building, "model_name", "score", means=score_by(building), **style)


def by_blocked(table: pd.DataFrame) -> Figure:
    """Draw success (of `success_by`) against the known numbers of blocked agents, one panel per model."""
    known = table[table["n_blocked_agents"].notna()].astype({"n_blocked_agents": float})

    def draw(shown: pd.DataFrame, ax: Axes) -> None:
        model = shown["model_name"].iloc[0]
        plots.curves(known, "n_blocked_agents", "model_name", highlight=model, ax=ax)

    xlabel = "agents without access to the recipe"
    panels = plots.facets(known, "model_name", draw, xlabel=xlabel, ylabel="success rate, 95 % interval")
    text = describe_estimates(known, "model_name", "n_blocked_agents")
    set_alt(panels[0].figure, f"Success rate by number of blocked agents. {text}")
    return panels[0].figure
