"""Points and intervals, the elements of several types of plots."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.display.marks import attach
from evalkit.display.style import GROUND, QUIET, SHADE, Look
from evalkit.display.words import key_of, number

BESIDE: dict[str, Any] = {
    "xycoords": ("axes fraction", "data"),
    "textcoords": "offset points",
    "va": "center",
    "color": QUIET,
}


def draw_points(
    ax: Axes,
    points: pd.DataFrame,
    styles: Mapping[Hashable, Look],
    *,
    size: float,
    alpha: float = 1.0,
    edge: float = 0.6,
) -> None:
    """Draw points in the colours and markers of their series, with tooltips and links."""
    import seaborn as sns

    if points.empty:
        return
    codes = {name: str(i) for i, name in enumerate(styles)}
    coded = points.assign(code=[codes[key_of(name)] for name in points["series"]])
    looks = {codes[name]: look for name, look in styles.items()}
    semantics = {
        "palette": {code: look.colour for code, look in looks.items()},
        "markers": {code: look.marker for code, look in looks.items()},
    }
    sizes = size * np.array([1.8 if looks[code].marker == "*" else 1.0 for code in coded["code"]])
    line = {"edgecolor": GROUND, "linewidth": edge, "alpha": alpha, "zorder": 3}
    labels = ax.get_xlabel(), ax.get_ylabel()
    sns.scatterplot(coded, x="x", y="y", hue="code", style="code", s=sizes, legend=False, ax=ax, **semantics, **line)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    attach(ax.collections[-1], coded["tip"], coded["href"])


def draw_intervals(ax: Axes, marks: pd.DataFrame, colour: str, *, width: float, alpha: float = 1.0) -> None:
    """Draw horizontal intervals from low to high; none if a bound is missing."""
    bounded = marks.dropna(subset=["x", "low", "high"])
    if len(bounded):
        ax.hlines(bounded["y"], bounded["low"], bounded["high"], color=colour, lw=width, alpha=alpha, zorder=2)


def draw_sizes(ax: Axes, marks: pd.DataFrame) -> None:
    """Write n at the right end of every row."""
    for y, n in zip(marks["y"], marks["n"], strict=True):
        if n == n:
            ax.annotate(f"n={n:.0f}", (1.0, y), (4, 0), size=8, **BESIDE)


def draw_references(ax: Axes, published: Sequence[Mapping[Hashable, Any]], first: int) -> None:
    """Draw published results in grey below the rows, each with a vertical line through them."""
    for y, row in enumerate(published, start=first):
        ax.plot([row["mean"]] * 2, [-0.55, y], color=QUIET, lw=0.7, ls=(0, (4, 3)), alpha=0.6, zorder=0)
        ax.errorbar(row["mean"], y, xerr=number(row.get("spread")), fmt="|", color=QUIET, ms=9, lw=1.6)
    if published:
        ax.axhspan(first - 0.5, first + len(published) - 0.45, color=SHADE, zorder=-1)
