"""Points and intervals, the elements of several types of plots."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit._words import number
from evalkit.display import style
from evalkit.display.marks import attach
from evalkit.display.style import Look
from evalkit.display.words import key_of

BESIDE: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
BESIDE |= {"va": "center", "color": style.QUIET}


def with_codes(points: pd.DataFrame, styles: Mapping[Hashable, Look]) -> tuple[pd.DataFrame, dict[str, Look]]:
    """Add the column code, which names the series of each point for seaborn; also return the looks by code."""
    codes = {name: str(i) for i, name in enumerate(styles)}
    coded = points.assign(code=[codes[key_of(name)] for name in points["series"]])
    return coded, {codes[name]: look for name, look in styles.items()}


def draw_points(
    ax: Axes,
    points: pd.DataFrame,
    styles: Mapping[Hashable, Look],
    *,
    size: float,
    alpha: float = 1.0,
    edge: float = 0.6,
) -> None:
    """Draw points (x, y, series, tip, href) in the colours and markers of their series, with tooltips and links.

    `size` is the area of a point in square points, `edge` the width of the line around it.
    """
    import seaborn as sns

    if points.empty:
        return
    coded, looks = with_codes(points, styles)
    palette = {code: look.colour for code, look in looks.items()}
    markers = {code: look.marker for code, look in looks.items()}
    sizes = size * np.array([1.8 if looks[code].marker == "*" else 1.0 for code in coded["code"]])
    line = {"edgecolor": style.GROUND, "linewidth": edge, "alpha": alpha, "zorder": 3, "legend": False, "s": sizes}
    labels = ax.get_xlabel(), ax.get_ylabel()
    sns.scatterplot(coded, x="x", y="y", hue="code", style="code", palette=palette, markers=markers, ax=ax, **line)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    attach(ax.collections[-1], coded["tip"], coded["href"])


def draw_intervals(ax: Axes, marks: pd.DataFrame, colour: str, *, width: float, alpha: float = 1.0) -> None:
    """Draw horizontal intervals from low to high; none if a bound is missing."""
    bounded = marks.dropna(subset=["x", "low", "high"])
    if len(bounded):
        ax.hlines(bounded["y"], bounded["low"], bounded["high"], color=colour, lw=width, alpha=alpha, zorder=2)


def draw_sizes(ax: Axes, marks: pd.DataFrame) -> None:
    """Write n at the right end of every row."""
    for y, n in marks[["y", "n"]].dropna(subset="n").itertuples(index=False):
        ax.annotate(f"n={n:.0f}", (1.0, y), (4, 0), size=8, **BESIDE)


def draw_references(ax: Axes, published: Sequence[Mapping[Hashable, Any]], first: int) -> None:
    """Draw published results in grey below the rows, each with a vertical line through them."""
    for y, row in enumerate(published, start=first):
        ax.plot([row["mean"]] * 2, [-0.55, y], color=style.QUIET, lw=0.7, ls=(0, (4, 3)), alpha=0.6, zorder=0)
        ax.errorbar(row["mean"], y, xerr=number(row.get("spread")), fmt="|", color=style.QUIET, ms=9, lw=1.6)
    if published:
        ax.axhspan(first - 0.5, first + len(published) - 0.45, color=style.SHADE, zorder=-1)
