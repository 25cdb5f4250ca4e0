"""Facets: the same type of plot for every group of a table."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import style
from evalkit.display.plots import elements
from evalkit.display.words import key_of, names_of

COLUMNS = 4  # panels side by side
WIDTH = 2.4  # of each, in inches


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
    names = elements.keys(table[by])
    if not names:
        return np.array([style.nothing_to_draw()])
    across = min(COLUMNS, len(names))
    down = math.ceil(len(names) / across)
    shape = {"nrows": down, "ncols": across, "squeeze": False, "sharex": sharex, "sharey": True}
    size = max(WIDTH * across + 1.2, 6.0), 0.6 + height * down
    panels = style.new_axes(*size, **shape).ravel()
    for panel in panels[len(names) :]:
        panel.remove()
    groups = [key_of(name) for name in table[by]]
    titles = style.labels(names_of(names), int(WIDTH * 9))
    for i, (panel, name, title) in enumerate(zip(panels, names, titles, strict=False)):
        draw(table[[group == name for group in groups]], panel)
        panel.set_title(title, size=10, pad=14)
        panel.set_xlabel("" if xlabel else panel.get_xlabel())
        panel.set_ylabel("" if ylabel or i % across else panel.get_ylabel())
        if i + across >= len(names):  # nothing stands below
            panel.tick_params(axis="x", labelbottom=True)
    figure = panels[0].figure
    figure.supxlabel(elements.broken(xlabel, size[0] - 1.0), size=10.5, color=style.INK)
    figure.supylabel(elements.broken(ylabel, size[1] - 0.4), size=10.5, color=style.INK)
    return panels[: len(names)]
