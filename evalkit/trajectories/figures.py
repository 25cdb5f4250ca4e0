"""Figures of trajectories. Each function draws a frame from `analysis` with `evalkit.display.plots`."""

from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import AutoLocator

from evalkit.display import Look, describe_curves, nothing_to_draw, plots, set_alt, with_zero
from evalkit.kinds import judge_mark
from evalkit.kinds.success_rates import CostUnit
from evalkit.trajectories.table import ENDINGS

__all__ = ["cost", "endings", "reliability"]

_UNITS = {"cost": "US dollars per run", "tokens": "tokens per run", "duration": "seconds per run"}
MOST_MODELS = 12  # models in a figure, chosen by highest estimate


def endings(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how the runs of each model ended, as stacked bars.

    Parameters
    ----------
    table : DataFrame
        As from `analysis.endings`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One bar per model.

    Examples
    --------
    >>> ax = trajectories.figures.endings(analysis.endings(runs))
    """
    shown = {name: one for name, one in ENDINGS.items() if table[name].any()}
    looks = {name: Look(one.colour, hatch=one.hatch, text=one.text) for name, one in shown.items()}
    return plots.shares(table, "model_name", looks, ax=ax)


def cost(front: pd.DataFrame, unit: CostUnit, *, percent: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the results of models against their cost, tokens or duration.

    Parameters
    ----------
    front : DataFrame
        As from `evalkit.compare.cost`. The figure shows at most the 12 models with the highest estimates.
    unit : {"cost", "tokens", "duration"}
        Unit of the costs, as from `evalkit.compare.cost`: US dollars, tokens or seconds per run.
    percent : bool
        Whether results are success rates, not mean scores.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One point per model, with its 95 % interval. The x axis is logarithmic if costs differ more than tenfold.

    Examples
    --------
    >>> front, unit = compare.cost(runs)
    >>> ax = trajectories.figures.cost(front, unit)
    """
    points = front.rename(columns={"cost_estimate": "cost"}).dropna(subset=["estimate", "cost"])
    points = points.nlargest(MOST_MODELS, "estimate").sort_values("cost")
    ylabel = ("success rate" if percent else "mean score") + judge_mark(front["warning"])
    style: dict[str, Any] = {"percent": percent, "xlabel": _UNITS.get(unit, ""), "ylabel": ylabel}
    ax = plots.curves(points, "cost", "model_name", **style, dodge=False, ax=ax)
    if len(points) and 0 < 10 * points["cost"].min() < points["cost"].max():
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        with_zero(ax, points["cost"]).xaxis.set_major_locator(AutoLocator())
    best = ", ".join(front.loc[front["on_front"].astype("boolean").fillna(False), "model_name"])
    words = describe_curves(points, "cost", "model_name", percent=percent)
    set_alt(ax, f"Results by cost ({_UNITS.get(unit, unit)}). {words} On the front: {best}.")
    return ax


def reliability(table: pd.DataFrame, measure: Literal["pass@", "pass^"], ax: Axes | None = None) -> Axes:
    """Draw ``pass@k`` or ``pass^k`` by k for each model. Labels show the share of tasks with k runs if it is below 1.

    Parameters
    ----------
    table : DataFrame
        As from `analysis.reliability`. Rows over measured trials only are not drawn.
    measure : {"pass@", "pass^"}
        Measure to draw.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One curve per model, for at most the 12 models with the highest rate at k = 1. Empty if no task was repeated.

    Examples
    --------
    >>> ax = trajectories.figures.reliability(analysis.reliability(runs, logs.plans), "pass^")
    """
    rows = table[table["measure"].str.startswith(measure) & table["trials"].ne("measured")]
    if not rows["k"].gt(1).any():
        return nothing_to_draw("repeated tasks", ax)
    best = rows[rows["k"] == 1].sort_values("estimate", ascending=False)["model_name"].head(MOST_MODELS)
    rows = rows[rows["model_name"].isin(best)]
    ylabel = f"{measure}k, share of tasks{judge_mark(table['warning'])}"
    ax = plots.curves(rows, "k", "model_name", xlabel="attempts, k", ylabel=ylabel, ax=ax)
    least = rows.groupby("k")["tasks_used"].min()
    if (least < 1).any():
        labels = [str(k) if share == 1 else f"{k}\n({share:.0%} of tasks)" for k, share in least.items()]
        ax.set_xticks(least.index, labels)
        shares = ", ".join(f"k = {k} on {share:.0%}" for k, share in least[least < 1].items())
        words = describe_curves(rows, "k", "model_name")
        set_alt(ax, f"{measure}k by k. {words} Not all tasks have k runs: {shares} of a model's tasks, or more.")
    return ax
