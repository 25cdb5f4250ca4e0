"""What plots of several shapes share: groups in their order, points with tooltips, labels, and the legend below."""

import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from evalkit.display import style
from evalkit.display.drawing import attach
from evalkit.display.style import Look
from evalkit.display.words import key_of

Keys = Sequence[Hashable]
BESIDE: dict[str, Any] = {  # how words right of the axes are written
    "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "color": style.QUIET
}  # fmt: skip


def keys(values: Iterable, order: Keys = ()) -> list:
    """List the groups of a column: those of `order` first, then the others in order of appearance."""
    return list(dict.fromkeys([*map(key_of, order), *map(key_of, values)]))


def link_of(row: Mapping[Hashable, Any], part: str = "") -> str:
    """Return the link of a row, or of one of its parts if each has its own; empty if there is none."""
    href = row.get("href")
    href = href.get(part) if isinstance(href, Mapping) else href
    return href if isinstance(href, str) else ""


def with_codes(points: pd.DataFrame, looks: Mapping[Hashable, Look]) -> tuple[pd.DataFrame, dict[str, Look]]:
    """Add the column code, which names the series of each point for seaborn; also return the looks by code."""
    codes = {name: str(i) for i, name in enumerate(looks)}
    coded = points.assign(code=[codes[key_of(name)] for name in points["series"]])
    return coded, {codes[name]: look for name, look in looks.items()}


def draw_points(
    ax: Axes,
    points: pd.DataFrame,
    looks: Mapping[Hashable, Look],
    *,
    size: float,
    alpha: float = 1.0,
    edge: float = 0.6,
) -> None:
    """Draw points (x, y, series, tip, href) in the colours and markers of their series, with tooltips and links.

    `size` is the area of a point in square points, `edge` the width of the line around it.
    """
    if points.empty:
        return
    coded, by_code = with_codes(points, looks)
    palette = {code: look.colour for code, look in by_code.items()}
    markers = {code: look.marker for code, look in by_code.items()}
    sizes = size * np.array([1.8 if by_code[code].marker == "*" else 1.0 for code in coded["code"]])
    line = {"edgecolor": style.GROUND, "linewidth": edge, "alpha": alpha, "zorder": 3, "legend": False, "s": sizes}
    labels = ax.get_xlabel(), ax.get_ylabel()
    sns.scatterplot(coded, x="x", y="y", hue="code", style="code", palette=palette, markers=markers, ax=ax, **line)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    attach(ax.collections[-1], coded["tip"], coded["href"])


def broken(text: str, room: float) -> str:
    """Wrap a label to a width in inches; a number stays with its unit."""
    return "\n".join(textwrap.wrap(text.replace(" %", "\xa0%"), max(int(room / 0.09), 10))).replace("\xa0%", " %")


def fit_labels(ax: Axes, width: float, height: float) -> None:
    """Wrap the labels of both axes to a width and a height in inches."""
    ax.set_xlabel(broken(ax.get_xlabel(), width))
    ax.set_ylabel(broken(ax.get_ylabel(), height))


def line_handles(
    names: Sequence[object], looks: Sequence[Look], *, width: int = 32, points_only: bool = False
) -> list[Artist]:
    """Create the entries of a legend of points and lines, or of points only."""
    handles: list[Artist] = []
    for text, look in zip(_legend_texts(names, width), looks, strict=True):
        line: dict[str, Any] = {"ls": "", "ms": 7} if points_only else {"dashes": look.dashes or (None, None)}
        handles.append(Line2D([], [], color=look.colour, marker=look.marker, label=text, **line))
    return handles


def area_handles(names: Sequence[object], looks: Sequence[Look]) -> list[Artist]:
    """Create the entries of a legend of bars and cells."""
    return [
        Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=style.GROUND, label=text)
        for text, look in zip(_legend_texts(names), looks, strict=True)
    ]


def _legend_texts(names: Sequence[object], width: int = 32) -> list[str]:
    """Shorten names and hide a leading underscore, which matplotlib would leave out of legends."""
    return [f" {text}" if text.startswith("_") else text for text in style.labels(names, width)]


def legend_height(handles: Sequence[Artist], width: float) -> float:
    """Return the height of a legend below a figure of this width, in inches."""
    return 0.1 + 0.21 * -(-len(handles) // _legend_columns(handles, width)) if handles else 0.0


def _legend_columns(handles: Sequence[Artist], width: float) -> int:
    """Return how many entries of a legend fit side by side into a width in inches."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    return max(1, min(len(handles), int(width / (0.55 + 0.078 * longest))))


def legend_below(ax: Axes, handles: Sequence[Artist], *, owns_figure: bool) -> None:
    """Put a legend below axes: at the figure's edge if the plot `owns_figure`, else below these axes."""
    if not handles:
        return
    width = style.figure_of(ax).get_figwidth()
    if owns_figure:
        ax.figure.legend(handles=handles, loc="outside lower center", ncols=_legend_columns(handles, width))
    else:
        below = ax.transAxes + ScaledTranslation(0, -0.55, ax.figure.dpi_scale_trans)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": below}
        ax.legend(handles=handles, ncols=_legend_columns(handles, 0.8 * width), **place)
