"""Heatmaps: a shaded cell per group, with its value and n in it."""

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from evalkit._words import number
from evalkit.display import style
from evalkit.display.marks import attach
from evalkit.display.plots.prepare import Keys, grid, link_of
from evalkit.display.style import Look
from evalkit.display.words import describe_value, name_of, names_of, size_of

_Cell = Mapping[Hashable, Any]
_DARK = "#1a1a1a"  # text on lighter cells: not a tone, as the cells keep their colour on dark pages
_FOLLOWING = (style.GROUND, style.GRID, style.PALE, style.SHADE)  # cells that change their tone there


@style.themed
def heatmap(
    table: pd.DataFrame,
    row: str,
    column: str,
    *,
    value: str = "estimate",
    percent: bool = True,
    signed: bool = False,
    digits: int = 2,
    frame: str | None = None,
    kinds: Mapping[Any, Look] | None = None,
    xlabel: str | None = None,
    rows: Keys = (),
    columns: Keys = (),
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw a table of shaded cells, with the value and n in each; a cell without data stays empty.

    Of more than 40 rows, those whose values differ most are drawn, and the label below says so.

    Parameters
    ----------
    table : DataFrame
        One row per cell: the columns named and, optionally, n, tip and href. A cell with data but without a value
        holds a dash.
    row, column : str
        Columns of the rows and the columns, in the order of the table; if both have the same names, they have the same
        order.
    value : str
        Column of the values.
    percent : bool
        Whether values are shares from 0 to 1: they are written as percentages, without the percent sign.
    signed : bool
        Whether values are differences: written with a sign, in two colours that meet at 0.
    digits : int
        Decimals of values that are not shares.
    frame : str, optional
        Column that says which cells are framed and bold.
    kinds : mapping of value to Look, optional
        For values that are names: the colour of each, and its short text in cells and legend.
    xlabel : str, optional
    rows, columns : sequence
        Keys that come first, even if the table lacks them: for panels that share an axis.
    legend : bool
    ax : Axes, optional
    """
    import seaborn as sns

    rows, columns, cells, note = grid(table, row, column, rows, columns, value)
    if not cells:
        return style.nothing_to_draw(ax=ax)
    shades = _shades(cells, value, percent, signed, kinds or {})
    texts = {key: _text(cell, value, percent, signed, digits, kinds) for key, cell in cells.items()}
    shown = {cell[value] for cell in cells.values()} if kinds and legend else set()
    present = {kind: look for kind, look in (kinds or {}).items() if kind in shown}
    handles = style.area_handles([f"{look.text} {kind}" for kind, look in present.items()], list(present.values()))
    owns_figure = ax is None
    ax = ax or _new_axes(rows, columns, max(map(len, texts.values())), handles)
    matrix = [[shades.of(cells[r, c][value]) if (r, c) in cells else math.nan for c in columns] for r in rows]
    written = np.array([[texts.get((r, c), "") for c in columns] for r in rows], dtype=object)
    ends = {"vmin": shades.lowest, "vmax": shades.highest, "cmap": shades.colours}
    look = {"cbar": False, "xticklabels": False, "yticklabels": False, "linewidths": 1, "linecolor": style.GROUND}
    sns.heatmap(np.array(matrix), annot=written, fmt="", annot_kws={"size": 8}, ax=ax, **look, **ends)
    ax.grid(False)
    _restyle(ax, rows, columns, cells, value, kinds or {}, frame)
    places = {(r, c): (columns.index(c), rows.index(r)) for r, c in cells}
    for key, (x, y) in places.items():
        if math.isnan(shades.of(cells[key][value])):  # no value, or an unknown kind: seaborn leaves the cell empty
            ax.text(x + 0.5, y + 0.5, texts[key], ha="center", va="center", size=8, color=style.QUIET)
    for key, cell in cells.items():
        tip = cell.get("tip") or _tip(cell, row, column, value, percent, digits)
        _cover(ax, *places[key], tip, link_of(cell), framed=bool(frame and cell[frame]))
    _name_cells(ax, rows, columns)
    plain = column.replace("_", " ") + ("; cells: percent (n)" if percent and not kinds and not signed else "")
    ax.set_xlabel("; ".join(filter(None, [plain if xlabel is None else xlabel, note])))
    ax.set_ylabel("")
    style.fit_labels(ax, style.figure_of(ax).get_figwidth() - 2.2 if owns_figure else 9, 9)
    style.legend_below(ax, handles, owns_figure=owns_figure)
    return ax


class _Shades(NamedTuple):
    """The mapping from values to shades, and their range and colour map."""

    of: Callable[[Any], float]
    lowest: float
    highest: float
    colours: Any


def _shades(cells: Mapping[Any, _Cell], value: str, percent: bool, signed: bool, kinds: Mapping[Any, Look]) -> _Shades:
    import seaborn as sns

    if kinds:
        places = {kind: i for i, kind in enumerate(kinds)}
        colours = mpl.colors.ListedColormap([look.colour for look in kinds.values()])
        return _Shades(lambda given: places.get(given, math.nan), -0.5, len(kinds) - 0.5, colours)
    shades = [_shade(cell[value]) for cell in cells.values()]
    if signed:
        most = 1.1 * (1.0 if percent else max(map(abs, shades)))
        return _Shades(_shade, -most, most, mpl.colormaps["PuOr_r"])
    known = [] if percent else [shade for shade in shades if not math.isnan(shade)]
    lowest, highest = (min(0.0, *known), max(0.0, *known) or 1.0) if known else (0.0, 1.0)
    return _Shades(_shade, lowest, highest, sns.color_palette("crest", as_cmap=True))


def _shade(value: Any) -> float:
    known = number(value)
    return math.nan if known is None else float(known)


def _text(cell: _Cell, value: str, percent: bool, signed: bool, digits: int, kinds: Mapping[Any, Look] | None) -> str:
    if kinds:
        return kinds[cell[value]].text if cell[value] in kinds else "?"
    shown, n = number(cell[value]), size_of(cell)
    size = "" if n is None or signed else f" ({n:.0f})"
    if shown is None:
        return f"–{size}"
    digits = 0 if percent else digits
    rounded = round(shown * 100 if percent else shown, digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}{size}"  # 0 has no sign


def _tip(cell: _Cell, row: str, column: str, value: str, percent: bool, digits: int) -> str:
    shown = cell[value]
    text = shown if isinstance(shown, str) else describe_value(cell, percent=percent, digits=digits, value=value)
    return f"{name_of(cell[row])}, {name_of(cell[column])}: {text}"


def _restyle(
    ax: Axes,
    rows: list,
    columns: list,
    cells: Mapping,
    value: str,
    kinds: Mapping[Any, Look],
    frame: str | None,
) -> None:
    """Style the text that seaborn wrote into the cells: bold in framed cells, in ink on tones that follow the page."""
    import seaborn as sns

    for text in ax.texts:
        x, y = (int(place) for place in text.get_position())
        cell = cells.get((rows[y], columns[x]), {})
        if frame and cell.get(frame):
            text.set_fontweight("bold")
        if look := kinds.get(cell.get(value)):
            on_dark = "white" if sns.utils.relative_luminance(look.colour) <= 0.17 else _DARK
            text.set(size=9.5, weight="bold", color=style.INK if look.colour in _FOLLOWING else on_dark)


def _cover(ax: Axes, x: int, y: int, tip: str, href: str, *, framed: bool) -> None:
    """Cover a cell with a transparent shape for its tooltip and link, with a frame if asked for."""
    look: dict[str, Any] = {"edgecolor": style.INK, "linewidth": 1.8} if framed else {"linewidth": 0}
    shape = Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=(1, 1, 1, 0), zorder=3 + framed, **look)
    attach(ax.add_patch(shape), [tip], [href])


def _name_cells(ax: Axes, rows: list, columns: list) -> None:
    texts = style.labels(names_of(columns), 20)
    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(np.arange(len(columns)) + 0.5, texts, **slanted if max(map(len, texts)) > 6 else {})
    ax.set_yticks(np.arange(len(rows)) + 0.5, style.labels(names_of(rows)), rotation=0)
    ax.tick_params(length=0)


def _new_axes(rows: list, columns: list, longest: int, handles: list) -> Axes:
    width = max(2.6 + max(0.62, 0.16 + 0.075 * longest) * max(len(columns), 2), 4.0)
    turned = 0.55 * 0.085 * max(len(text) for text in style.labels(names_of(columns), 20))
    return style.new_axes(width, 0.9 + 0.3 * max(len(rows), 2) + turned + style.legend_height(handles, width))
