"""What plots of several shapes share: groups in their order, points with tooltips, legends, and panels for groups."""

import math
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from evalkit.display import style
from evalkit.display.drawing import attach, set_alt
from evalkit.display.style import Look
from evalkit.display.words import key_of, names_of

Keys = Sequence[Hashable]
BESIDE: dict[str, Any] = {  # how words right of the axes are written
    "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "color": style.QUIET
}  # fmt: skip
COLUMNS = 4  # panels side by side
PANEL = 2.4  # width of each, in inches


def keys(values: Iterable, order: Keys = ()) -> list:
    """List the groups of a column: those of `order` first, then the others in order of appearance."""
    return list(dict.fromkeys([*map(key_of, order), *map(key_of, values)]))


def link_of(row: Mapping[Hashable, Any], part: str = "") -> str:
    """Return the link of a row, or of one of its parts if each has its own; empty if there is none."""
    href = row.get("href")
    href = href.get(part) if isinstance(href, Mapping) else href
    return href if isinstance(href, str) else ""


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
    codes = {name: str(i) for i, name in enumerate(looks)}  # of any names, for seaborn
    coded = points.assign(code=[codes[key_of(name)] for name in points["series"]])
    look = {"palette": {codes[name]: one.colour for name, one in looks.items()}}
    look["markers"] = {codes[name]: one.marker for name, one in looks.items()}
    line = {"edgecolor": style.GROUND, "linewidth": edge, "alpha": alpha, "zorder": 3, "legend": False, "s": size}
    labels = ax.get_xlabel(), ax.get_ylabel()
    sns.scatterplot(coded, x="x", y="y", hue="code", style="code", ax=ax, **look, **line)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    attach(ax.collections[-1], coded["tip"], coded["href"])


def legend_entries(
    names: Sequence[object], looks: Iterable[Look], shape: Literal["line", "point", "area"], width: int = 32
) -> list[Artist]:
    """Create the entries of a legend: of points on lines, of points, or of areas."""
    entries: list[Artist] = []
    for text, look in zip(style.labels(names, width), looks, strict=True):
        label = f" {text}" if text.startswith("_") else text  # matplotlib leaves out those with an underscore
        if shape == "area":
            entries.append(Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=style.GROUND, label=label))
        else:
            line: dict[str, Any] = {"ls": "", "ms": 7} if shape == "point" else {"dashes": look.dashes or (None, None)}
            entries.append(Line2D([], [], color=look.colour, marker=look.marker, label=label, **line))
    return entries


def legend_height(entries: Sequence[Artist], width: float) -> float:
    """Return the height of a legend below a figure of this width, in inches."""
    return 0.1 + 0.21 * -(-len(entries) // _legend_columns(entries, width)) if entries else 0.0


def _legend_columns(entries: Sequence[Artist], width: float) -> int:
    """Return how many entries of a legend fit side by side into a width in inches."""
    longest = max(len(str(entry.get_label())) for entry in entries)
    return max(1, min(len(entries), int(width / (0.55 + 0.078 * longest))))


def finish(
    ax: Axes, width: float, height: float = 9.0, legend: Sequence[Artist] = (), *, owns_figure: bool = True, alt: str
) -> Axes:
    """Wrap the labels of axes to a width and a height in inches, and put the legend below; return the axes.

    `alt` says in words what they show.
    It stands at the edge of the figure if the plot `owns_figure`, else below the axes.
    """
    set_alt(ax, alt)
    ax.set_xlabel(broken(ax.get_xlabel(), width))
    ax.set_ylabel(broken(ax.get_ylabel(), height))
    across = style.figure_of(ax).get_figwidth()
    if legend and owns_figure:
        ax.figure.legend(handles=legend, loc="outside lower center", ncols=_legend_columns(legend, across))
    elif legend:
        below = ax.transAxes + ScaledTranslation(0, -0.55, ax.figure.dpi_scale_trans)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": below}
        ax.legend(handles=legend, ncols=_legend_columns(legend, 0.8 * across), **place)
    return ax


def broken(text: str, room: float) -> str:
    """Wrap a label to a width in inches; a number stays with its unit."""
    return "\n".join(textwrap.wrap(text.replace(" %", "\xa0%"), max(int(room / 0.09), 10))).replace("\xa0%", " %")


@style.themed
def facets(
    table: pd.DataFrame,
    by: str,
    draw: Callable[[pd.DataFrame, Axes], Any],
    *,
    height: float = 2.1,
    sharex: bool = True,
    xlabel: str = "",
    ylabel: str = "",
) -> np.ndarray:
    """Draw a panel for every group of a table, in its order; returns the axes of each.

    `draw` is a function of (table, axes) that draws the rows of one panel: any plot of this package, with
    ``legend=False``. Four stand side by side, each of a `height` in inches; with a label for all of them, panels have
    none of their own.
    """
    names = keys(table[by])
    if not names:
        return np.array([style.nothing_to_draw()])
    across = min(COLUMNS, len(names))
    down = math.ceil(len(names) / across)
    shape = {"nrows": down, "ncols": across, "squeeze": False, "sharex": sharex, "sharey": True}
    size = max(PANEL * across + 1.2, 6.0), 0.6 + height * down
    panels = style.new_axes(*size, **shape).ravel()
    for panel in panels[len(names) :]:
        panel.remove()
    groups = [key_of(name) for name in table[by]]
    titles = style.labels(names_of(names), int(PANEL * 9))
    for i, (panel, name, title) in enumerate(zip(panels, names, titles, strict=False)):
        draw(table[[group == name for group in groups]], panel)
        panel.set_title(title, size=10, pad=14)
        panel.set_xlabel("" if xlabel else panel.get_xlabel())
        panel.set_ylabel("" if ylabel or i % across else panel.get_ylabel())
        if i + across >= len(names):  # nothing stands below
            panel.tick_params(axis="x", labelbottom=True)
    figure = panels[0].figure
    figure.supxlabel(broken(xlabel, size[0] - 1.0), size=10.5, color=style.INK)
    figure.supylabel(broken(ylabel, size[1] - 0.4), size=10.5, color=style.INK)
    return panels[: len(names)]
