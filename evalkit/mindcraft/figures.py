"""Figures of task runs, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit.display import Look, describe_estimates, plots, set_alt
from evalkit.mindcraft.analysis import counted, score_by
from evalkit.mindcraft.format import STATUSES

__all__ = [
    "by_blocked",
    "estimates",
    "heatmap",
    "item_by_blocked",
    "scores",
    "statuses",
]

STATUS_LOOKS = {code: Look(one.colour, hatch=one.hatch, text=one.label) for code, one in STATUSES.items()}
_BLOCKED = "agents without access to the recipe"


def estimates(
    table: pd.DataFrame,
    category: str,
    hue: str | None = None,
    *,
    highlight: str | None = None,
    xlabel: str = "success rate",
    references: pd.DataFrame | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates with their intervals, one row per category, one colour and marker per hue.

    `references` are published means, as `analysis.published` returns them; the rest is as for
    `evalkit.display.plots.estimates`.
    """
    published = None if references is None else references.rename(columns={"model_name": "name"})
    return plots.estimates(table, category, hue, highlight=highlight, xlabel=xlabel, references=published, ax=ax)


def statuses(table: pd.DataFrame, category: str = "model_name", ax: Axes | None = None) -> Axes:
    """Draw the shares of completion statuses as one stacked bar per category; `table` as `status_counts` returns it."""
    return plots.shares(table, category, STATUS_LOOKS, ax=ax)


def scores(runs: pd.DataFrame, highlight: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw every construction score as a point, and the mean per model; stale copies are left out."""
    building = counted(runs[runs["task_type"] == "construction"])
    style: dict[str, Any] = {"highlight": highlight, "xlabel": "construction score", "percent": True, "ax": ax}
    return plots.strips(building, "model_name", "overall_score", means=score_by(building), **style)


def by_blocked(table: pd.DataFrame) -> Figure:
    """Draw success against the number of blocked agents, one panel per model, with the other models pale behind it.

    `table` is as `cooking_by_blocked` returns it; rows with an unknown number are left out.
    """
    known = table[table["n_blocked_agents"].notna()].astype({"n_blocked_agents": float})

    def draw(shown: pd.DataFrame, ax: Axes) -> None:
        model = shown["model_name"].iloc[0]
        plots.curves(known, "n_blocked_agents", "model_name", highlight=model, legend=False, ax=ax)

    panels = plots.facets(known, "model_name", draw, xlabel=_BLOCKED, ylabel="success rate, 95 % interval")
    return _described(panels[0].figure, known, "model_name", "n_blocked_agents")


def heatmap(table: pd.DataFrame, row: str, column: str, ax: Axes | None = None) -> Axes:
    """Draw a rate or mean score in each cell, with n; a cell without runs stays empty."""
    return plots.heatmap(table, row, column, ax=ax)


def item_by_blocked(table: pd.DataFrame) -> Figure:
    """Draw item × number of blocked agents for each model; `table` as `cooking_item_by_blocked` returns it."""
    known = table[table["n_blocked_agents"].notna()]
    items, numbers = sorted(known["item"].unique()), sorted(known["n_blocked_agents"].unique())

    def draw(shown: pd.DataFrame, ax: Axes) -> None:
        plots.heatmap(shown, "item", "n_blocked_agents", rows=items, columns=numbers, ax=ax)

    height = 0.6 + 0.26 * max(len(items), 2)
    label = f"{_BLOCKED}; cells: success rate in percent (n)"
    panels = plots.facets(known, "model_name", draw, height=height, xlabel=label)
    return _described(panels[0].figure, known, "model_name", "item", "n_blocked_agents")


def _described(figure: Figure, table: pd.DataFrame, *keys: str) -> Figure:
    set_alt(figure, f"Success rate by number of blocked agents. {describe_estimates(table, *keys)}")
    return figure


def __dir__() -> list[str]:
    return sorted(__all__)
