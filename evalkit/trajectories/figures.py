"""Figures of trajectories, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import AutoLocator

from evalkit.display import Look, describe_curves, plots, set_alt
from evalkit.trajectories.table import ENDINGS

__all__ = ["cost", "endings", "reliability", "tools"]

_LOOKS = {name: Look(one.colour, hatch=one.hatch, text=one.text) for name, one in ENDINGS.items()}
_UNITS = {"cost": "US dollars per run", "tokens": "tokens per run", "duration": "seconds per run"}
MOST_TOOLS = 20
MOST_MODELS = 12  # curves or points of one figure; those with the highest estimates


def endings(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how the runs of each model ended as one stacked bar; `table` as `analysis.endings` returns it."""
    return plots.shares(table, "model_name", {name: look for name, look in _LOOKS.items() if table[name].any()}, ax=ax)


def cost(front: pd.DataFrame, unit: str, *, percent: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the results of models against what they take; `front` and `unit` as from `evalkit.compare.cost`."""
    points = _points(front)
    style: dict[str, Any] = {"percent": percent, "ylabel": "success rate" if percent else "mean score"}
    ax = plots.curves(points, "cost", "model", xlabel=_UNITS.get(unit, ""), **style, dodge=False, ax=ax)
    if len(points) and 0 < 10 * points["cost"].min() < points["cost"].max():
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        ax.xaxis.set_major_locator(AutoLocator())
    best = ", ".join(front.loc[front["on_front"].astype("boolean").fillna(False), "model"])
    words = describe_curves(points, "cost", "model", percent=percent)
    set_alt(ax, f"Results by cost ({_UNITS.get(unit, unit)}). {words} On the front: {best}.")
    return ax


def _points(front: pd.DataFrame) -> pd.DataFrame:
    names = {"success": "estimate", "success_low": "low", "success_high": "high"}
    points = front.rename(columns=names).dropna(subset=["estimate", "cost"])
    return points.nlargest(MOST_MODELS, "estimate").sort_values("cost")


def reliability(table: pd.DataFrame, measure: str, ax: Axes | None = None) -> Axes:
    """Draw ``pass@`` or ``pass^`` against the number of attempts k, per model, over the planned trials."""
    style: dict[str, Any] = {"xlabel": "attempts, k", "ylabel": f"{measure}k, share of tasks"}
    return plots.curves(_of_k(table, measure), "k", "model_name", **style, ax=ax)


def _of_k(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    rows = table[table["measure"].str.startswith(measure) & table["trials"].eq("planned")]
    best = rows[rows["k"] == 1].nlargest(MOST_MODELS, "estimate")["model_name"]
    return rows[rows["model_name"].isin(best)]


def tools(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the calls of each tool per run and model; of many tools, those called most."""
    most = table.groupby("tool")["calls"].sum().nlargest(MOST_TOOLS).index
    shown = table[table["tool"].isin(most)].drop(columns="n")
    xlabel = "calls per run"
    style: dict[str, Any] = {"value": "per_run", "percent": False, "digits": 1, "xlabel": xlabel}
    ax = plots.heatmap(shown, "tool", "model_name", **style, ax=ax)
    first = table.sort_values("calls", ascending=False, kind="stable").drop_duplicates("model_name")
    texts = [f"{row.model_name}: {row.tool} {row.per_run:.1f} per run" for row in first.itertuples()]
    set_alt(ax, f"The tool that each model calls most. {'; '.join(texts)}.")
    return ax
