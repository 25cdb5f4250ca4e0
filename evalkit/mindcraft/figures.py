"""Pictures of estimates: frames and axes in, axes out."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from evalkit.display import colours, label, new_axes, nothing_to_draw, percent_axis
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.labels import key_of, names_of, text_of
from evalkit.mindcraft.panels import (
    NO_SCORE,
    by_blocked,
    describe_differences,
    differences,
    heatmap,
    item_by_blocked,
)
from evalkit.mindcraft.analysis.rates import counted

__all__ = [
    "by_blocked",
    "describe_differences",
    "describe_estimates",
    "describe_statuses",
    "differences",
    "estimates",
    "heatmap",
    "item_by_blocked",
    "scores",
    "statuses",
]

# from best to worst; the last two are faults of the record, not of the model
STATUS_COLOURS = {
    CompletionStatus.SUCCESS: ("#009E73", ""),
    CompletionStatus.FAILED_PARTIAL_SCORE: ("#56B4E9", ".."),
    CompletionStatus.FAILED_SCORE_ZERO: ("#D55E00", "//"),
    CompletionStatus.TIMED_OUT: ("#E69F00", "xx"),
    CompletionStatus.NO_SCORE_LOGGED: ("#B8BDC6", "--"),
    CompletionStatus.LOG_FILE_ERROR: ("#595959", "++"),
}


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
    """Draw estimates with their intervals, one line per category, one colour and marker per hue.

    Parameters
    ----------
    table : DataFrame
        With estimate, low, high, n and the columns named.
    category : str
        Column of the lines, from top to bottom in the order of the table.
    hue : str, optional
        Column of the colours.
    highlight : str, optional
        The hue (or category) that is drawn strong; the others are drawn pale.
    xlabel : str
    references : DataFrame, optional
        Published means to draw as lines: model_name, mean.
    ax : Axes, optional
        Made to fit where none is given.
    """
    if table.empty:
        return nothing_to_draw(ax=ax)
    names = names_of(table[category])
    hues = names_of(table[hue]) if hue else {"": ""}
    words = label(category.replace("_", " "))
    legend = 0.15 + 0.2 * math.ceil(len(hues) / 3) if hue else 0
    beside = 0.65 + 0.09 * len(words) + legend  # what the label of the axis takes, which stands upright
    ax = ax or new_axes(7, max(1.1 + 0.3 * len(names) * max(1, 0.55 * len(hues)), beside))
    styles = dict(zip(hues, colours(map(str, range(len(hues)))).values(), strict=True))
    for row in table.to_dict("records"):
        name, own = key_of(row[category]), key_of(row[hue]) if hue else ""
        offset = (list(hues).index(own) - (len(hues) - 1) / 2) * 0.8 / len(hues)
        y = list(names).index(name) + offset
        _draw_estimate(ax, row, y, *styles[own], pale=highlight is not None and highlight not in (own, name))
    ax.set_yticks(range(len(names)), list(names.values()))
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_xlabel(f"{xlabel} with 95 % interval")
    ax.set_ylabel(words)
    ax.grid(False, axis="y")
    if references is not None:
        _draw_references(ax, references)
    if hue:
        handles = [Line2D([], [], color=styles[h][0], marker=styles[h][1], label=text) for h, text in hues.items()]
        _legend_below(ax, handles)
    return percent_axis(ax)


def statuses(table: pd.DataFrame, category: str = "model_name", ax: Axes | None = None) -> Axes:
    """Draw the shares of completion statuses as one stacked bar per category; `table` as `status_counts` gives it."""
    if table.empty:
        return nothing_to_draw(ax=ax)
    ax = ax or new_axes(7, 1.5 + 0.42 * len(table))
    counts = table[[str(status) for status in STATUS_COLOURS]].astype(float)
    totals = counts.sum(axis=1)
    left = np.zeros(len(table))
    y = np.arange(len(table))
    shown = [status for status in STATUS_COLOURS if counts[str(status)].any()]
    for status in shown:
        colour, hatch = STATUS_COLOURS[status]
        share = (counts[str(status)] / totals).fillna(0).to_numpy()  # a group of stale copies has no run
        ax.barh(y, share, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8, height=0.68)
        for i, n in enumerate(counts[str(status)]):
            if share[i] >= 0.05:
                box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
                ax.text(left[i] + share[i] / 2, i, f"{n:.0f}", ha="center", va="center", size=8.5, bbox=box)
        left = left + share
    names = names_of(table[category])
    ticks = zip(table[category], totals, strict=True)
    ax.set_yticks(y, [f"{names[key_of(name)]}  (n={total:.0f})" for name, total in ticks])
    ax.invert_yaxis()
    ax.grid(False)
    ax.set_xlabel("share of runs; the numbers are counts")
    look = {"edgecolor": "white"}
    _legend_below(
        ax,
        [Patch(facecolor=STATUS_COLOURS[s][0], hatch=STATUS_COLOURS[s][1], label=_words(s), **look) for s in shown],
    )
    percent_axis(ax)
    ax.set_xlim(0, 1)
    return ax


def scores(runs: pd.DataFrame, highlight: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw every construction score as a dot and the mean as a line, one row per model; stale copies are left out."""
    table = counted(runs[runs["task_type"] == "construction"])
    if table.empty:
        return nothing_to_draw(ax=ax)
    names = names_of(table["model_name"].sort_values())
    ax = ax or new_axes(7, 1.3 + 0.45 * len(names))
    styles = colours(names)
    numbers = []
    for y, name in enumerate(names):
        values = np.sort(table.loc[table["model_name"] == name, "overall_score"].dropna().to_numpy())
        numbers.append(len(values))
        if not len(values):
            _write_no_score(ax, y)
            continue
        spread = (np.arange(len(values)) % 3 - 1) * 0.14  # so that equal scores stay visible
        colour, marker = styles[name]
        pale = highlight is not None and name != highlight
        ax.plot(values, y + spread, marker, color=colour, ms=6, alpha=0.4 if pale else 0.85, mec="white", mew=0.5)
        ax.plot([values.mean()] * 2, [y - 0.33, y + 0.33], color=colour, lw=2.2, alpha=0.5 if pale else 1)
    ax.set_yticks(range(len(names)), [f"{text}  (n={n})" for text, n in zip(names.values(), numbers, strict=True)])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.set_xlabel("construction score; the line is the mean")
    return percent_axis(ax)


def describe_estimates(table: pd.DataFrame, *keys: str) -> str:
    """Put estimates into words, for alt text: ``alder: 63 % (52 to 73, n = 40); …``."""
    parts = []
    for row in table.to_dict("records"):
        name = ", ".join(text_of(row[key]) for key in keys)
        if pd.isna(row["estimate"]):
            parts.append(f"{name}: {NO_SCORE} (n = {max(row['n'], row.get('n_without_score', 0))})")
            continue
        bounds = "" if pd.isna(row["low"]) else f"{row['low'] * 100:.0f} to {row['high'] * 100:.0f}, "
        parts.append(f"{name}: {row['estimate'] * 100:.0f} % ({bounds}n = {row['n']})")
    return "; ".join(parts) + "." if parts else "No runs of this kind."


def describe_statuses(table: pd.DataFrame, category: str = "model_name") -> str:
    """Put counts of statuses into words, for alt text."""
    parts = []
    for row in table.to_dict("records"):
        counts = [f"{row[str(s)]} {_words(s)}" for s in STATUS_COLOURS if row[str(s)]]
        parts.append(f"{text_of(row[category])}: {', '.join(counts)}")
    return "; ".join(parts) + "." if parts else "No runs of this kind."


def _draw_estimate(ax: Axes, row: dict, y: float, colour: str, marker: str, *, pale: bool) -> None:
    look = {"color": colour, "alpha": 0.45 if pale else 1.0}
    if pd.isna(row["estimate"]):
        _write_no_score(ax, y)
    else:
        ax.plot([row["low"], row["high"]], [y, y], lw=1.6 if pale else 2.4, solid_capstyle="round", **look)
        ax.plot(row["estimate"], y, marker, ms=5 if pale else 7, mec="white", mew=0.6, **look)
    beside = {"xytext": (4, 0), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    ax.annotate(f"n={row['n']}", (1.0, y), va="center", size=8, color="#5b616b", **beside)


def _draw_references(ax: Axes, references: pd.DataFrame) -> None:
    """Draw published means as dashed lines; those closer than 5 points share a label."""
    groups: list[list[dict]] = []
    for row in references.sort_values("mean").to_dict("records"):
        ax.axvline(row["mean"], color="#5b616b", lw=1, ls=(0, (4, 3)), zorder=0)
        if groups and row["mean"] - groups[-1][0]["mean"] < 0.05:
            groups[-1].append(row)
        else:
            groups.append([row])
    look = {"rotation": 30, "size": 8, "color": "#5b616b", "textcoords": "offset points"}
    for group in groups:
        names = ", ".join(f"{label(row['model_name'])} {row['mean'] * 100:.0f}" for row in group)
        ax.annotate(names, (group[0]["mean"], 1.0), (1, 3), xycoords=("data", "axes fraction"), **look)


def _write_no_score(ax: Axes, y: float) -> None:
    """Say in the place of a point that no run logged a score."""
    ax.text(0.01, y, NO_SCORE, va="center", size=8.5, style="italic", color="#5b616b")


def _words(status: str) -> str:
    return str(status).replace("FAILED_", "").replace("_", " ").lower()


def _legend_below(ax: Axes, handles: list) -> None:
    ax.figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 3), fontsize=9, frameon=False)
