"""Lay out figures for narrow windows: the same axes on less width, panels in two columns, labels wrapped again."""

import math
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text

from evalkit.display.style import broken, legend_columns

WIDTH = 4.9  # inches: fits a window of 390 px with text of 8 px
WIDEST = 7.0  # a figure of one panel that is wider, such as a timeline, needs its width
_MOST_TEXTS = 300  # that are checked for overlaps


def narrow(figure: Figure) -> bool:
    """Lay out a themed figure for a narrow window, in place; this can't be undone."""
    places = [(ax, spec) for ax in figure.axes if (spec := ax.get_subplotspec()) is not None]
    if figure.get_figwidth() <= WIDTH or len(places) != len(figure.axes) or not places:
        return False
    grid = places[0][1].get_gridspec()
    if grid.ncols == 1 and figure.get_figwidth() > WIDEST:
        return False
    height = figure.get_figheight()
    if grid.ncols > 2:
        down = math.ceil(len(places) / 2)
        height *= down / grid.nrows
        _regrid(figure, [ax for ax, _ in places], down)
    for ax, _ in places:
        ax.set_xlabel(broken(ax.get_xlabel().replace("\n", " "), WIDTH - 2.2))
    for text in (figure._supxlabel, figure._supylabel):  # type: ignore[attr-defined]  # no public access
        if text is not None:
            text.set_text(broken(text.get_text().replace("\n", " "), WIDTH - 1.0))
    height += sum(_rearrange_legends(figure))
    figure.set_size_inches(WIDTH, height)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    return not any(map(_has_overlaps, figure.axes))


def _regrid(figure: Figure, panels: list[Axes], down: int) -> None:
    grid = GridSpec(down, 2, figure=figure)
    for i, ax in enumerate(panels):
        ax.set_subplotspec(grid[i // 2, i % 2])
        ax.tick_params(axis="y", labelleft=i % 2 == 0 or not ax.get_shared_y_axes().joined(ax, panels[0]) or i == 0)
        ax.tick_params(axis="x", labelbottom=i + 2 >= len(panels) or not ax.get_shared_x_axes().joined(ax, panels[-1]))


def _rearrange_legends(figure: Figure) -> list[float]:
    """Set the legends below a figure in as many columns as fit; return the additional inches each needs."""
    added = []
    for legend in list(figure.legends):
        handles = [handle for handle in legend.legend_handles if handle is not None]
        before, now = legend._ncols, legend_columns(handles, WIDTH)  # type: ignore[attr-defined]
        legend.remove()
        figure.legend(handles=handles, loc="outside lower center", ncols=now)
        added.append(0.21 * (math.ceil(len(handles) / now) - math.ceil(len(handles) / before)))
    return added


def _has_overlaps(ax: Axes) -> bool:
    """Return whether labels on or below axes overlap."""
    texts: list[Text] = [*ax.texts, *(label for label in ax.get_xticklabels() if not label.get_rotation())]
    boxes = [text.get_window_extent() for text in texts[:_MOST_TEXTS] if text.get_text() and text.get_visible()]
    return any(
        a.x0 < b.x1 - 1 and b.x0 < a.x1 - 1 and a.y0 < b.y1 - 1 and b.y0 < a.y1 - 1 for a, b in combinations(boxes, 2)
    )
