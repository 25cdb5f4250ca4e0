"""Heatmaps: a shaded cell per group, with its value and n in it."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from evalkit._words import number
from evalkit.display import style
from evalkit.display.drawing import attach
from evalkit.display.plots import elements
from evalkit.display.plots.elements import Keys, link_of
from evalkit.display.style import Look
from evalkit.display.words import (
    about,
    describe_estimates,
    describe_timeline,
    describe_value,
    is_empty,
    key_of,
    name_of,
    names_of,
    size_of,
)

MOST_ROWS = 40
_DARK = "#1a1a1a"  # text on lighter cells of kinds: not a tone, as the cells keep their colour on dark pages
_FULL, _LEAST, _MOST = "#0b62a4", "#6a3d9a", "#b35806"  # colours of 100 %, and of the ends of differences
_ON_DARK = 0.7  # the share of such a colour in a cell from which its text is white
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
    ax: Axes | None = None,
) -> Axes:
    """Draw a table of shaded cells, with the value and n in each; a cell without data stays empty.

    `table` has one row per cell: the columns named and, optionally, n, tip and href, in the order of rows and columns;
    if both have the same names, they have the same order. A cell with data but without a value holds a dash. Of more
    than 40 rows, those whose values differ most are drawn, and the label below says so.

    Values are shares from 0 to 1, written as percentages without the sign, if `percent`, else numbers with so many
    `digits`. `signed` ones are differences, in two colours that meet at 0. Where values are names, `kinds` maps them to
    looks, whose texts stand in cells and legend. `frame` is the column that says which cells are framed and bold.
    `rows` come first, even if the table lacks them.
    """
    groups = [group for group in table.to_dict("records") if not is_empty(group)]
    if not groups:
        return style.nothing_to_draw(ax=ax)
    cells = {(key_of(group[row]), key_of(group[column])): group for group in groups}
    down = elements.keys((group[row] for group in groups), rows)
    across = elements.keys(group[column] for group in groups)
    across = down if set(down) == set(across) else across
    note = ""
    if not rows and len(down) > MOST_ROWS:
        values = pd.to_numeric(pd.Series([cell[value] for cell in cells.values()]), errors="coerce")
        places = {key: i for i, key in enumerate(down)}
        by_row = values.groupby([places[key] for key, _ in cells])
        spread = (by_row.max() - by_row.min()).fillna(-1.0).to_numpy()
        widest = {down[i] for i in np.argsort(-spread, kind="stable")[:MOST_ROWS]}
        which = "those whose values differ most" if (spread > 0).any() else "the first"
        note = f"{MOST_ROWS} of {len(down):,} rows: {which}"
        down, cells = [key for key in down if key in widest], {k: cell for k, cell in cells.items() if k[0] in widest}

    kinds = kinds or {}
    texts = {key: _text(cell, value, percent, signed, digits, kinds) for key, cell in cells.items()}
    names = style.labels(names_of(across), 20)
    shown = {cell[value] for cell in cells.values()} if kinds else set()
    present = {kind: look for kind, look in kinds.items() if kind in shown}
    titles = [f"{look.text} {kind}" for kind, look in present.items()]
    entries = elements.legend_entries(titles, present.values(), "area")
    owns_figure = ax is None
    if ax is None:
        longest = max(map(len, texts.values()))
        width = max(2.6 + max(0.62, 0.16 + 0.075 * longest) * max(len(across), 2), 4.0)
        turned = 0.55 * 0.085 * max(map(len, names))
        height = 0.9 + 0.3 * max(len(down), 2) + turned + elements.legend_height(entries, width)
        ax = style.new_axes(width, height)

    if kinds:
        places = {kind: i for i, kind in enumerate(kinds)}
        shades = {key: places.get(cell[value], math.nan) for key, cell in cells.items()}
        ends: dict[str, Any] = {"vmin": -0.5, "vmax": len(kinds) - 0.5}
        ends["cmap"] = mpl.colors.ListedColormap([look.colour for look in kinds.values()])
    else:
        shades = {key: np.nan if number(cell[value]) is None else float(cell[value]) for key, cell in cells.items()}
        known = [shade for shade in shades.values() if not math.isnan(shade)]
        if signed:
            most = 1.1 * (1.0 if percent else max(map(abs, known), default=1.0))
            ends = {"vmin": -most, "vmax": most, "cmap": _shading(_LEAST, _MOST)}
        else:
            lowest, highest = (0.0, 1.0) if percent or not known else (min(0.0, *known), max(0.0, *known) or 1.0)
            ends = {"vmin": lowest, "vmax": highest, "cmap": _shading(_FULL)}
    matrix = np.array([[shades.get((r, c), math.nan) for c in across] for r in down])
    written = np.array([[texts.get((r, c), "") for c in across] for r in down], dtype=object)
    look = {"cbar": False, "xticklabels": False, "yticklabels": False, "linewidths": 1, "linecolor": style.GROUND}
    sns.heatmap(matrix, annot=written, fmt="", annot_kws={"size": 8}, ax=ax, **look, **ends)
    ax.grid(False)
    for text in ax.texts:
        x, y = (int(place) for place in text.get_position())
        cell = cells.get((down[y], across[x]), {})
        if frame and cell.get(frame):
            text.set_fontweight("bold")
        if not kinds:
            share = ends["cmap"]((matrix[y, x] - ends["vmin"]) / (ends["vmax"] - ends["vmin"]))[3]
            text.set_color("white" if share > _ON_DARK else style.INK)
        if kind := kinds.get(cell.get(value)):  # in ink on tones that follow the page
            on_dark = "white" if sns.utils.relative_luminance(kind.colour) <= 0.17 else _DARK
            text.set(size=9.5, weight="bold", color=style.INK if kind.colour in _FOLLOWING else on_dark)
    for (r, c), cell in cells.items():
        x, y = across.index(c), down.index(r)
        if math.isnan(shades[r, c]):  # no value, or an unknown kind: seaborn leaves the cell empty
            ax.text(x + 0.5, y + 0.5, texts[r, c], ha="center", va="center", size=8, color=style.QUIET)
        # a transparent shape covers each, for its tooltip and link, with a frame if asked for
        framed, own = bool(frame and cell[frame]), cell[value]
        line: dict[str, Any] = {"edgecolor": style.INK, "linewidth": 1.8} if framed else {"linewidth": 0}
        shape = Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=(1, 1, 1, 0), zorder=3 + framed, **line)
        said = own if isinstance(own, str) else describe_value(cell, percent=percent, digits=digits, value=value)
        tip = cell.get("tip") or f"{name_of(cell[row])}, {name_of(cell[column])}: {said}"
        attach(ax.add_patch(shape), [tip], [link_of(cell)])

    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(np.arange(len(across)) + 0.5, names, **slanted if max(map(len, names)) > 6 else {})
    ax.set_yticks(np.arange(len(down)) + 0.5, style.labels(names_of(down)), rotation=0)
    ax.tick_params(length=0)
    plain = column.replace("_", " ") + ("; cells: percent (n)" if percent and not kinds and not signed else "")
    ax.set_xlabel("; ".join(filter(None, [plain if xlabel is None else xlabel, note])))
    ax.set_ylabel("")
    room = style.figure_of(ax).get_figwidth() - 2.2 if owns_figure else 9
    said = describe_timeline(table, row, value, {kind: look._replace(text="") for kind, look in kinds.items()})
    if not kinds:
        said = describe_estimates(table, row, column, percent=percent, digits=digits, value=value)
    alt = f"{about('values' if value == 'estimate' else value, row, column)} {said}"
    return elements.finish(ax, room, legend=entries, owns_figure=owns_figure, alt=alt)


def _shading(*colours: str) -> mpl.colors.Colormap:
    """Return shades that are clear at 0, so that the page shows through, and full at one end, or two of colours."""
    first, last = colours[0], colours[-1]
    shades = [(0.0, f"{first}ff"), (0.5, f"{first}00"), (0.5, f"{last}00"), (1.0, f"{last}ff")]
    return mpl.colors.LinearSegmentedColormap.from_list("", shades if len(colours) > 1 else [f"{last}00", f"{last}ff"])


def _text(
    cell: Mapping[Hashable, Any], value: str, percent: bool, signed: bool, digits: int, kinds: Mapping[Any, Look]
) -> str:
    """Write a cell's value with its n."""
    if kinds:
        return kinds[cell[value]].text if cell[value] in kinds else "?"
    shown, n = number(cell[value]), size_of(cell)
    size = "" if n is None or signed else f" ({n:.0f})"
    if shown is None:
        return f"–{size}"
    digits = 0 if percent else digits
    rounded = round(shown * 100 if percent else shown, digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}{size}"  # 0 has no sign


def mirrored(pairs: pd.DataFrame) -> pd.DataFrame:
    """Add the mirror image of every pair, so that a matrix of differences is full: a minus b, and b minus a.

    Models are sorted by their mean over the pairs (columns mean_a and mean_b), the highest first.
    """
    swapped = pairs.rename(columns={"model_a": "model_b", "model_b": "model_a"})
    swapped = swapped.assign(estimate=-pairs["estimate"], low=-pairs["high"], high=-pairs["low"])
    both, names = pd.concat([pairs, swapped], ignore_index=True), [*pairs["model_a"], *pairs["model_b"]]
    means = pd.Series([*pairs["mean_a"], *pairs["mean_b"]], dtype="float64").groupby(names).mean()
    ranks = means.rank(ascending=False, method="first")
    columns = ["model_a", "model_b"]
    return both.sort_values(columns, key=lambda names: names.map(ranks), kind="stable", ignore_index=True)
