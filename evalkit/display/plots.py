"""Plots, one function per type: each takes a frame and axes, and returns the axes with an alt text.

Every interval drawn is a pair of columns of the frame, low and high; nothing is estimated here.
"""

import math
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import lazy_loader
import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import ScaledTranslation

from evalkit._notes import Note, Notes
from evalkit._text import as_number, counted_noun, format_amount, format_interval, sentence
from evalkit.display import drawing
from evalkit.display.drawing import EDGE, GRID, GROUND, INK, PALE, QUIET, SHADE, Look, themed
from evalkit.display.tables import TITLES
from evalkit.io import distinct_names, plain
from evalkit.io.text import shorten

__all__ = ["curves", "estimates", "facets", "heatmap", "mirrored", "shares", "strips", "timeline"]

sns: Any = lazy_loader.load("seaborn")  # the import takes half a second, and only heatmaps need it

Keys = Sequence[Hashable]
Row = Mapping[Hashable, Any]

WIDTH = 7.0  # width of a figure, in inches
ROOM = WIDTH - 2.4  # width of the label below axes whose rows have names, in inches
LANES = 13  # number of lanes over which a row spreads its single values
MOST_ROWS = 40  # maximum number of rows of a figure
MOST_DESCRIBED = 40  # maximum number of groups that an alt text lists one by one
HEIGHT = 3.4  # height of a figure of curves, in inches
FEW = 12  # curves with at most this many positions have a marker and an interval at each, others a band
COLUMNS = 4  # maximum number of panels side by side
PANEL = 2.4  # width of a panel, in inches

_RIGHT: dict[str, Any] = {  # style of texts to the right of the axes
    "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "color": QUIET
}  # fmt: skip
_DARK = "#1a1a1a"  # text on light cells, whose colour is the same on dark pages
# colours are transparent at 0 and opaque at 100 %, or at the largest differences
_SHARES = mpl.colors.LinearSegmentedColormap.from_list("", ["#0b62a400", "#0b62a4ff"])
_SIGNED = [(0.0, "#6a3d9aff"), (0.5, "#6a3d9a00"), (0.5, "#b3580600"), (1.0, "#b35806ff")]
_DIFFERENCES = mpl.colors.LinearSegmentedColormap.from_list("", _SIGNED)
_ON_DARK = 0.7  # cells that are at least this opaque have white text
_FOLLOWING = (GROUND, GRID, PALE, SHADE)  # colours that change on dark pages
_EVENTS = 380  # width of the axes for events, in points
_NUMBERS = ("x", "y", "low", "high", "n")
_MARK = [*_NUMBERS, "colour", "marker", "tip", "href", "series"]


@themed
def estimates(
    table: pd.DataFrame,
    category: str,
    hue: str | None = None,
    *,
    highlight: Hashable = None,
    xlabel: str = "success rate",
    percent: bool = True,
    references: pd.DataFrame | None = None,
    order: Keys = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates with their intervals, a row per category; each hue has its own colour and marker.

    Parameters
    ----------
    table : DataFrame
        `category`, `hue`, estimate, low, high (NaN: no bar) and n; optionally reason or warning (why there is no
        estimate), n_not_measured, tip and href.
    category : str
        Column of the rows.
    hue : str, optional
        Column of the colours.
    highlight : hashable, optional
        Hue or category to emphasise; the others are pale.
    xlabel : str
        Label of the axis of estimates.
    percent : bool
        Whether estimates are shares from 0 to 1.
    references : DataFrame, optional
        Published results, in rows of their own: name, mean and, optionally, spread.
    order : sequence
        Categories that come first, even if the table lacks them: for panels that share an axis.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.estimates(analysis.success_by(runs), "model_name")
    """
    if hue is None and category == "model_name":
        hue = category
    by = list(dict.fromkeys(filter(None, (category, hue))))
    cut = ""
    if not order:
        for name in by:
            table, cut = first_of(table, name, cut)
    marks, names, look_of = _place(table, category, hue, highlight, percent, order)
    if marks.empty:
        return drawing.nothing_to_draw(ax=ax)
    published = pd.DataFrame(columns=["name", "mean"]) if references is None else references
    n_series = 1 if hue == category else len(look_of)  # number of series in each row
    ylabel = _title(category)
    entries = [] if hue in (None, category) else legend_entries(short_labels(look_of), look_of.values(), "line")
    owns_figure = ax is None
    if ax is None:
        row_height = max(0.3, 0.165 * n_series if 1 < n_series <= 6 else 0.11 * n_series)
        height = 0.95 + row_height * len(names) + 0.3 * len(published)
        ax = drawing.new_axes(WIDTH, max(height, 0.65 + 0.09 * len(ylabel)))
    for is_pale in (True, False):
        _draw_estimates(ax, marks[marks["is_pale"] == is_pale], pale=is_pale, small=n_series > 6)
    _write_beside(ax, marks, percent, has_n=n_series <= 6, has_value=n_series <= 2 and owns_figure)
    if n_series > 1:
        between = np.arange(1, len(names)) - 0.5
        ax.hlines(between, 0, 1, color=GRID, lw=0.8, zorder=0, transform=ax.get_yaxis_transform())
    _name_rows(ax, [*short_labels(names, 30), *short_labels(published["name"], 30)], ylabel)
    for y, row in enumerate(published.to_dict("records"), start=len(names)):  # in grey, with a line across
        ax.plot([row["mean"]] * 2, [-0.55, y], color=QUIET, lw=0.7, ls=(0, (4, 3)), alpha=0.6, zorder=0)
        ax.errorbar(row["mean"], y, xerr=as_number(row.get("spread")), fmt="|", color=QUIET, ms=9, lw=1.6)
    if len(published):
        ax.axhspan(len(names) - 0.5, len(names) + len(published) - 0.45, color=SHADE, zorder=-1)
    if marks["low"].notna().any():
        xlabel += " with 95 % interval"
    ax.set_xlabel("; ".join(filter(None, [xlabel, cut])))
    alt = f"{about(xlabel, *by)} {_described(list(marks['text']), list(marks['x']))}"
    return finish(ax, ROOM, legend=entries, owns_figure=owns_figure, alt=alt)


@themed
def strips(
    values: pd.DataFrame,
    category: str,
    value: str,
    means: pd.DataFrame,
    *,
    highlight: Hashable = None,
    xlabel: str = "score",
    percent: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw every value as a small point, and per category the mean with its interval below them.

    `values` have the columns named and, optionally, tip and href, one row per value; `means` are as for `estimates`.
    """
    values = values.dropna(subset=value)
    means, cut = first_of(means, category)
    marks, names, look_of = _place(means, category, category, highlight, percent)
    if marks.empty:
        return drawing.nothing_to_draw(ax=ax)
    ylabel = _title(category)
    owns_figure = ax is None
    ax = ax or drawing.new_axes(WIDTH, max(1.1 + 0.6 * len(names), 0.65 + 0.09 * len(ylabel)))
    drawn = []
    for row in values.to_dict("records"):
        name = key_of(row[category])
        if name in look_of:
            tip = f"{name_of(name)}: {format_interval(row[value], None, None, percent=percent)}"
            mark = _mark(row, float(row[value]), float(names.index(name)), name, look_of[name], tip)
            drawn.append({**mark, "is_pale": highlight is not None and name != key_of(highlight)})
    points = _marks(drawn, "is_pale")
    lane = 5 * points.groupby("y")["x"].rank(method="first") % LANES  # neighbours get different lanes
    points["y"] += 0.55 * (lane / LANES - 0.5) - 0.1
    for is_pale in (True, False):
        draw_points(ax, points[points["is_pale"] == is_pale], size=18, alpha=0.3 if is_pale else 0.6, edge=0)
        means_below = marks[marks["is_pale"] == is_pale]
        _draw_estimates(ax, means_below.assign(y=means_below["y"] + 0.28), pale=is_pale)
    _write_beside(ax, marks, percent, has_value=owns_figure, below=0.28, others=values[value])
    _name_rows(ax, short_labels(names, 30), ylabel)
    interval = " with 95 % interval" if marks["low"].notna().any() else ""
    ax.set_xlabel("; ".join(filter(None, [xlabel, f"small: single values, large: mean{interval}", cut])))
    alt = f"{about(xlabel, category)} {_described(list(marks['text']), list(marks['x']))}"
    return finish(ax, ROOM, owns_figure=owns_figure, alt=alt)


@themed
def shares(table: pd.DataFrame, category: str, parts: Mapping[str, Look], *, ax: Axes | None = None) -> Axes:
    """Draw counts as one stacked bar per row; parts differ in colour and hatch, and are labelled with their counts.

    `table` has one row per bar, with `category`, a column of counts per part and, optionally, href: a link for the bar,
    or a mapping from parts to links. `parts` maps the columns of counts, from left to right, to their looks; the text
    of a look appears in the legend.
    """
    table, cut = first_of(table, category)
    counts = table[list(parts)].astype(float).fillna(0)
    filled = counts.sum(axis=1).to_numpy() > 0
    if not filled.any():
        return drawing.nothing_to_draw(ax=ax)
    counts, rows = counts[filled], table[filled].to_dict("records")
    totals = counts.sum(axis=1).to_numpy()
    present = {part: look for part, look in parts.items() if counts[part].any()}
    entries = legend_entries([look.text or part for part, look in present.items()], present.values(), "area")
    owns_figure = ax is None
    ax = ax or drawing.new_axes(WIDTH, 1.0 + 0.42 * len(rows))
    box = {"facecolor": GROUND, "alpha": 0.85, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    left = np.zeros(len(rows))
    for part, look in present.items():
        numbers = counts[part].to_numpy()
        widths, drawn = numbers / totals, np.flatnonzero(numbers).tolist()
        bars = ax.barh(
            drawn, widths[drawn], left=left[drawn], height=0.68,
            color=look.colour, hatch=look.hatch, edgecolor=GROUND, linewidth=0.8,
        )  # fmt: skip
        for bar, y in zip(bars, drawn, strict=True):
            text = f"{numbers[y]:.0f}"
            share = f"{totals[y]:,.0f} ({widths[y] * 100:.0f} %)"
            tip = f"{name_of(rows[y][category])}: {numbers[y]:,.0f} {look.text or part} of {share}"
            href = rows[y].get("href")
            drawing.attach(bar, [tip], [href.get(part) if isinstance(href, Mapping) else href])
            if widths[y] >= 0.025 + 0.015 * len(text):
                ax.text(left[y] + widths[y] / 2, y, text, color=INK, ha="center", va="center", size=8.5, bbox=box)
        left = left + widths
    for y, total in enumerate(totals):
        ax.annotate(f"n={total:.0f}", (1.0, y), (4, 0), size=8, **_RIGHT)
    _name_rows(ax, short_labels((row[category] for row in rows), 30), "")
    ax.grid(False)
    ax.set_xlabel("; ".join(filter(None, ["share of runs; the numbers are counts", cut])))
    drawing.percent_axis(ax).set_xlim(0, 1)
    alt = f"{about('counts', category)} {describe_shares(table, category, parts)}"
    return finish(ax, ROOM, legend=entries, owns_figure=owns_figure, alt=alt)


def _place(
    table: pd.DataFrame, category: str, hue: str | None, highlight: Hashable, percent: bool, order: Keys = ()
) -> tuple[pd.DataFrame, list, dict[Any, Look]]:
    """Position estimates on rows, from top to bottom; return the marks, the keys of rows, and the look of each hue."""
    groups = with_data(table)
    by = list(dict.fromkeys(filter(None, (category, hue))))
    names = keys([*order, *(row[category] for row in groups)])
    if hue is None:
        series = [None]
    elif hue == category:
        series = names
    else:
        series = keys(row[hue] for row in groups)
    look_of = drawing.looks(series)
    marks = []
    for row in groups:
        key = key_of(row[category])
        member = key_of(row[hue]) if hue else None
        y = float(names.index(key))
        if hue != category:
            y += (series.index(member) - (len(series) - 1) / 2) * 0.8 / len(series)
        text = describe_value(row, *map(row.get, by), percent=percent)
        is_pale = highlight is not None and key_of(highlight) not in (key, member)
        mark = _mark(row, as_number(row["estimate"]), y, member, look_of[member], text)
        marks.append({**mark, "reason": row["reason"], "is_pale": is_pale, "text": text})
    return _marks(marks, "reason", "is_pale", "text"), names, look_of


def _mark(row: Row, x: float | None, y: float | None, series: Any, look: Look, tip: str) -> dict[str, Any]:
    """Return the position and style of a row's mark, with its interval and its n if it has them."""
    return {
        "x": x,
        "y": y,
        "low": as_number(row.get("low")),
        "high": as_number(row.get("high")),
        "n": as_number(row.get("n")),
        "colour": look.colour,
        "marker": look.marker,
        "tip": row.get("tip") or tip,
        "href": row.get("href"),
        "series": series,
    }


def _marks(marks: Sequence[dict[str, Any]], *more: str) -> pd.DataFrame:
    table = pd.DataFrame(marks, columns=[*_MARK, *more])
    return table.astype(dict.fromkeys(_NUMBERS, "float64") | {"series": "object"})


def _draw_estimates(ax: Axes, marks: pd.DataFrame, *, pale: bool, small: bool = False) -> None:
    alpha = 0.45 if pale else 1.0
    for _, group in marks.dropna(subset=["x", "low", "high"]).groupby("series", sort=False, dropna=False):
        look: dict[str, Any] = {"color": group["colour"].iloc[0], "lw": 1.6 if pale or small else 2.4}
        ax.hlines(group["y"], group["low"], group["high"], alpha=alpha, zorder=2, **look)
    if pale:
        size = 30
    elif small:
        size = 40
    else:
        size = 56
    draw_points(ax, marks[marks["x"].notna()], size=size, alpha=alpha)


def _write_beside(
    ax: Axes,
    marks: pd.DataFrame,
    percent: bool,
    *,
    has_n: bool = True,
    has_value: bool,
    below: float = 0.0,
    others: Iterable[float] = (),
) -> None:
    """Write n and the estimate, or the reason for none, to the right of each mark; scale the axis to all values."""
    for y, reason in marks.loc[marks["x"].isna(), ["y", "reason"]].to_numpy().tolist():
        ax.annotate(shorten(plain(reason), 60), (0.0, y + below), (6, 0), style="italic", size=8, **_RIGHT)
    sized = marks if has_n else marks[:0]
    for y, x, low, high, n in sized[["y", "x", "low", "high", "n"]].to_numpy(dtype=float).tolist():
        value = format_interval(x, low, high, percent=percent) if has_value and not math.isnan(x) else ""
        size = "" if math.isnan(n) else f"n={n:.0f}"
        ax.annotate(", ".join(filter(None, [value, size])), (1.0, y), (4, 0), size=8, **_RIGHT)
    extent = [*marks[["x", "low", "high"]].to_numpy().ravel(), *others]
    if percent:
        drawing.percent_axis(ax).set_xlim(np.nanmin([-0.02, *extent]), np.nanmax([1.02, *extent]))
    else:
        if np.nanmin([0.0, *extent]) < 0:
            ax.axvline(0, color=EDGE, lw=0.8, zorder=0)
        drawing.with_zero(ax, extent)


def _name_rows(ax: Axes, names: Sequence[str], ylabel: str) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_ylabel(ylabel)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)


@themed
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
    """Draw a table of shaded cells with value and n; if there are many rows, only those whose values differ most.

    Parameters
    ----------
    table : DataFrame
        One row per cell: `row`, `column`, `value` and, optionally, n, tip and href. A cell without a value shows a
        dash.
    row : str
        Column of the rows.
    column : str
        Column of the columns.
    value : str
        Column of the values.
    percent : bool
        Whether values are shares from 0 to 1, written as percentages.
    signed : bool
        Whether values are differences, in two colours that meet at 0.
    digits : int
        Decimal places of values that are not shares.
    frame : str, optional
        Boolean column of the cells to frame.
    kinds : mapping, optional
        Looks of values that are names; their texts are in cells and legend.
    xlabel : str, optional
        Label below the cells; by default the column's.
    rows : sequence
        Rows that come first, even if the table lacks them.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.heatmap(analysis.success_by(runs, ["task_type", "model_name"]), "task_type", "model_name")
    """
    groups = with_data(table)
    if not groups:
        return drawing.nothing_to_draw(ax=ax)
    kinds = kinds or {}
    cells = {(key_of(group[row]), key_of(group[column])): group for group in groups}
    down = keys([*rows, *(group[row] for group in groups)])
    across = keys(group[column] for group in groups)
    across = down if set(down) == set(across) else across
    cut = ""
    if not rows and len(down) > MOST_ROWS:
        down, cut = _widest_rows(cells, down, value)
        cells = {key: cell for key, cell in cells.items() if key[0] in down}
    texts = {key: _text(cell, value, percent, signed, digits, kinds) for key, cell in cells.items()}
    names = short_labels(across, 20)
    values = {cell[value] for cell in cells.values()} if kinds else set()
    present = {kind: look for kind, look in kinds.items() if kind in values}
    entries = legend_entries([f"{look.text} {kind}" for kind, look in present.items()], present.values(), "area")
    owns_figure = ax is None
    if ax is None:
        longest = max(map(len, texts.values()))
        width = max(2.6 + max(0.62, 0.16 + 0.075 * longest) * max(len(across), 2), 4.0)
        turned = 0.55 * 0.085 * max(map(len, names))
        ax = drawing.new_axes(width, 0.9 + 0.3 * max(len(down), 2) + turned)

    shades, scale = _shades(cells, value, percent, signed, kinds)
    matrix = np.array([[shades.get((r, c), math.nan) for c in across] for r in down])
    written = np.array([[texts.get((r, c), "") for c in across] for r in down], dtype=object)
    look = {"cbar": False, "xticklabels": False, "yticklabels": False, "linewidths": 1, "linecolor": GROUND}
    sns.heatmap(matrix, annot=written, fmt="", annot_kws={"size": 8}, ax=ax, **look, **scale)
    ax.grid(False)
    for text in ax.texts:
        x, y = (int(place) for place in text.get_position())
        cell = cells.get((down[y], across[x]), {})
        if frame and cell.get(frame):
            text.set_fontweight("bold")
        if not kinds:
            opacity = scale["cmap"]((matrix[y, x] - scale["vmin"]) / (scale["vmax"] - scale["vmin"]))[3]
            text.set_color("white" if opacity > _ON_DARK else INK)
        elif kind := kinds.get(cell.get(value)):  # in ink on colours that follow the page
            on_dark = "white" if sns.utils.relative_luminance(kind.colour) <= 0.17 else _DARK
            text.set(size=9.5, weight="bold", color=INK if kind.colour in _FOLLOWING else on_dark)
    for (r, c), cell in cells.items():
        x, y = across.index(c), down.index(r)
        if math.isnan(shades[r, c]):  # no value, or an unknown kind: seaborn leaves the cell empty
            ax.text(x + 0.5, y + 0.5, texts[r, c], ha="center", va="center", size=8, color=QUIET)
        # cover each cell with a transparent shape that has its tooltip, its link and, if asked for, a frame
        is_framed = bool(frame and cell[frame])
        line: dict[str, Any] = {"edgecolor": INK, "linewidth": 1.8} if is_framed else {"linewidth": 0}
        shape = Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=(1, 1, 1, 0), zorder=3 + is_framed, **line)
        tip = cell.get("tip")
        if not tip and isinstance(cell[value], str):
            tip = f"{name_of(cell[row])}, {name_of(cell[column])}: {cell[value]}"
        elif not tip:
            tip = describe_value(cell, cell[row], cell[column], percent=percent, digits=digits, value=value)
        drawing.attach(ax.add_patch(shape), [tip], [cell.get("href")])

    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(np.arange(len(across)) + 0.5, names, **slanted if max(map(len, names)) > 6 else {})
    ax.set_yticks(np.arange(len(down)) + 0.5, short_labels(down), rotation=0)
    ax.tick_params(length=0)
    if xlabel is None:
        xlabel = _title(column)
        if percent and not kinds and not signed:
            xlabel += "; cells: percent (n)"
    ax.set_xlabel("; ".join(filter(None, [xlabel, cut])))
    ax.set_ylabel("")
    figure: Any = ax.figure
    room = figure.get_figwidth() - 2.2 if owns_figure else 9
    if kinds:
        description = describe_timeline(
            table, row, value, {kind: look._replace(text="") for kind, look in kinds.items()}
        )
    else:
        description = describe_estimates(table, row, column, percent=percent, digits=digits, value=value)
    alt = f"{about('values' if value == 'estimate' else value, row, column)} {description}"
    return finish(ax, room, legend=entries, owns_figure=owns_figure, alt=alt)


def _widest_rows(cells: Mapping[tuple[Any, Any], Row], down: Sequence[Any], value: str) -> tuple[list[Any], str]:
    """Return the 40 rows whose values differ most, in their order, and a text that describes the selection."""
    values = pd.to_numeric(pd.Series([cell[value] for cell in cells.values()]), errors="coerce")
    places = {key: i for i, key in enumerate(down)}
    by_row = values.groupby([places[key] for key, _ in cells])
    spread = (by_row.max() - by_row.min()).fillna(-1.0).to_numpy()
    widest = {down[i] for i in np.argsort(-spread, kind="stable")[:MOST_ROWS]}
    which = "the ones with the largest differences" if (spread > 0).any() else "the first"
    return [key for key in down if key in widest], f"{MOST_ROWS} of {len(down):,} rows: {which}"


def _shades(
    cells: Mapping[Any, Row], value: str, percent: bool, signed: bool, kinds: Mapping[Any, Look]
) -> tuple[dict[Any, float], dict[str, Any]]:
    """Return the number that determines the shade of each cell, and the colour map with its limits."""
    if kinds:
        places = {kind: float(i) for i, kind in enumerate(kinds)}
        shades = {key: places.get(cell[value], math.nan) for key, cell in cells.items()}
        colours = mpl.colors.ListedColormap([look.colour for look in kinds.values()])
        return shades, {"vmin": -0.5, "vmax": len(kinds) - 0.5, "cmap": colours}
    shades = {key: np.nan if as_number(cell[value]) is None else float(cell[value]) for key, cell in cells.items()}
    known = [shade for shade in shades.values() if not math.isnan(shade)]
    if signed:
        most = 1.1 * (1.0 if percent else max(map(abs, known), default=1.0))
        return shades, {"vmin": -most, "vmax": most, "cmap": _DIFFERENCES}
    lowest, highest = 0.0, 1.0
    if known and not percent:
        lowest, highest = min(0.0, *known), max(0.0, *known) or 1.0
    return shades, {"vmin": lowest, "vmax": highest, "cmap": _SHARES}


def _text(cell: Row, value: str, percent: bool, signed: bool, digits: int, kinds: Mapping[Any, Look]) -> str:
    """Write a cell's value with its n."""
    if kinds:
        return kinds[cell[value]].text if cell[value] in kinds else "?"
    shown, n = as_number(cell[value]), cell["n"]
    size = "" if n is None or signed else f" ({n:.0f})"
    if shown is None:
        return f"–{size}"
    digits = 0 if percent else digits
    rounded = round(shown * 100 if percent else shown, digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}{size}"  # 0 has no sign


def mirrored(pairs: pd.DataFrame) -> pd.DataFrame:
    """Add the mirror image of every pair, b minus a; sort models by their mean over the pairs, the highest first."""
    swapped = pairs.rename(columns={"model_a": "model_b", "model_b": "model_a"})
    swapped = swapped.assign(estimate=-pairs["estimate"], low=-pairs["high"], high=-pairs["low"])
    both, names = pd.concat([pairs, swapped], ignore_index=True), [*pairs["model_a"], *pairs["model_b"]]
    means = pd.Series([*pairs["mean_a"], *pairs["mean_b"]], dtype="float64").groupby(names).mean()
    ranks = means.rank(ascending=False, method="first")
    columns = ["model_a", "model_b"]
    return both.sort_values(columns, key=lambda names: names.map(ranks), kind="stable", ignore_index=True)


@themed
def curves(
    table: pd.DataFrame,
    x: str,
    hue: str,
    *,
    highlight: Hashable = None,
    xlabel: str = "",
    ylabel: str = "success rate",
    percent: bool = True,
    steps: bool = False,
    dodge: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw curves with their intervals: as bars at up to 12 positions, otherwise as bands.

    `table` has `x` (numbers), `hue`, estimate, low, high, n and, optionally, tip and href; rows without x or estimate
    are left out. The curve to `highlight` is drawn with its intervals and n, in front of the others, which are pale.
    With `steps`, values apply until the next position. `dodge` moves points at the same x apart.
    """
    drawn, cut = first_of(table[table[x].notna() & table["estimate"].notna()], hue)
    drawn = drawn.sort_values(x, kind="stable")
    if drawn.empty:
        return drawing.nothing_to_draw(ax=ax)
    names = keys(drawn[hue])
    look_of = drawing.looks(names)
    is_sparse = drawn[x].nunique() <= FEW
    apart = 0.0  # distance between points at the same x, so that they don't hide each other
    if dodge and is_sparse and highlight is None:
        apart = 0.3 * min(np.diff(np.unique(drawn[x].astype(float))), default=1.0) / len(names)
    marks = []
    for row in drawn.to_dict("records"):
        name = key_of(row[hue])
        place = float(row[x]) + (names.index(name) - (len(names) - 1) / 2) * apart
        tip = describe_value(row, row[hue], row[x], percent=percent)
        marks.append(_mark(row, place, as_number(row["estimate"]), name, look_of[name], tip))
    rows = _marks(marks)
    shown = names if highlight is None else []
    sizes = {key_of(name): n for name, n in rows.groupby("series", dropna=False)["n"].max().items()}
    titles = []
    for name, text in zip(shown, short_labels(shown), strict=True):
        n = sizes.get(name, math.nan)
        titles.append(text if math.isnan(n) else f"{text} (n={n:.0f})")
    entries = legend_entries(titles, [look_of[name] for name in shown], "line", 40)
    owns_figure = ax is None
    ax = ax or drawing.new_axes(WIDTH, HEIGHT)
    drawstyle: Any = "steps-post" if steps else "default"
    strong = rows[rows["series"].eq(key_of(highlight)) | (highlight is None)]
    for _, other in rows.drop(strong.index).groupby("series", sort=False, dropna=False):
        ax.plot(other["x"], other["y"], color=PALE, lw=1, zorder=1, drawstyle=drawstyle)
    marked = []
    for name, curve in strong.groupby("series", sort=False, dropna=False):
        bounded = curve.dropna(subset=["low", "high"])
        look = look_of[key_of(name)]
        dashes = look.dashes or (None, None)
        ax.plot(curve["x"], curve["y"], color=look.colour, lw=1.8, zorder=3, dashes=dashes, drawstyle=drawstyle)
        if is_sparse:
            ax.vlines(bounded["x"], bounded["low"], bounded["high"], color=look.colour, lw=2, alpha=0.7, zorder=2)
        elif len(bounded):
            band: dict[str, Any] = {"color": look.colour, "alpha": 0.15, "lw": 0, "step": "post" if steps else None}
            ax.fill_between(bounded["x"], bounded["low"], bounded["high"], **band)
        spaced = np.unique(np.linspace(0, len(curve) - 1, 7).round().astype(int))[1:]
        marked.append(curve if is_sparse or len(curve) < 2 else curve.iloc[spaced])
    if marked:
        draw_points(ax, pd.concat(marked), size=48)
    if highlight is not None and len(strong) <= FEW / 2:  # a panel has no room for more
        above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
        for place, n in strong[["x", "n"]].dropna(subset="n").itertuples(index=False):
            ax.annotate(f"n={n:.0f}", (place, 1.0), (0, 2), size=7.5, color=QUIET, **above)
    if is_sparse:
        ax.set_xticks(sorted(drawn[x].astype(float).unique()))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.margins(x=0.12)
    else:
        ax.locator_params(axis="x", integer=bool((drawn[x] % 1 == 0).all()))
    ax.set_xlabel("; ".join(filter(None, [xlabel or _title(x), cut])))
    ax.set_ylabel(f"{ylabel}, 95 % interval" if rows["low"].notna().any() else ylabel)
    if percent:
        drawing.percent_axis(ax, "y").set_ylim(-0.05, 1.05)
    else:
        ax.set_ylim(bottom=min(0, rows[["y", "low"]].min().min()))
    described = table if highlight is None else table[table[hue].map(key_of).eq(key_of(highlight))]
    alt = f"{about(ylabel, x)} {describe_curves(described, x, hue, percent=percent)}"
    return finish(ax, WIDTH - 1.0, HEIGHT - 0.4, entries, owns_figure=owns_figure, alt=alt)


@themed
def timeline(
    table: pd.DataFrame,
    row: str,
    x: str,
    kind: str,
    kinds: Mapping[Any, Look],
    *,
    xlabel: str = "in the order of events",
    path: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw events from left to right, a line per row, the kind of each as colour and marker.

    `table` has one row per event, with its line (`row`), its position (`x`, a number), its kind and, optionally, tip
    and href. `kinds` maps kinds to looks, whose texts are in the legend. Events of other kinds are not drawn, but their
    lines are. If marks overlap, the kinds named last are in front. With `path`, all events are connected in order.
    """
    if table.empty:
        return drawing.nothing_to_draw("events", ax)
    names = keys(table[row])
    events = table.assign(_y=[names.index(key_of(name)) for name in table[row]])
    present = {name: look for name, look in kinds.items() if events[kind].eq(name).any()}
    entries = legend_entries([look.text or name for name, look in present.items()], present.values(), "point")
    first, last = events[x].min(), events[x].max()
    side = min(max(_EVENTS / (last - first + 1), 3.0), 7.0)
    owns_figure = ax is None
    ax = ax or drawing.new_axes(WIDTH + 1, 1.1 + 0.27 * max(len(names), 2))
    ax.hlines(range(len(names)), first, last, color=PALE, lw=0.5, zorder=0)
    if path:
        ax.plot(events[x], events["_y"], color=PALE, lw=1, zorder=1)

    ranks = {name: i for i, name in enumerate(present)}  # events of the kinds named last are in front
    shown = events[events[kind].isin(list(present))]
    shown = shown.sort_values(kind, key=lambda names: names.map(ranks), kind="stable")
    points = []
    for event in shown.to_dict("records"):
        look = kinds[event[kind]]
        tip = f"{name_of(event[row])}, {x.replace('_', ' ')} {name_of(event[x])}: {look.text or event[kind]}"
        points.append(_mark(event, float(event[x]), float(event["_y"]), None, look, tip))
    draw_points(ax, _marks(points), size=side**2, edge=0.6 if side > 4 else 0)

    ax.set_yticks(range(len(names)), short_labels(names, 36))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(xlabel)
    ax.set_ylabel("")
    ax.grid(False)
    alt = describe_timeline(table, row, kind, kinds)
    return finish(ax, WIDTH - 1.6, legend=entries, owns_figure=owns_figure, alt=alt)


@themed
def facets(
    table: pd.DataFrame,
    by: str,
    draw: Callable[[pd.DataFrame, Axes], Any],
    *,
    height: float = 2.1,
    xlabel: str = "",
    ylabel: str = "",
) -> np.ndarray:
    """Draw a panel for every group of a table, in its order; returns the axes of each.

    `draw` is a function of (table, axes) that draws the rows of one panel, `height` inches high. With `xlabel` or
    `ylabel`, the figure has one label instead of one per panel.
    """
    names = keys(table[by])
    if not names:
        return np.array([drawing.nothing_to_draw()])
    across = min(COLUMNS, len(names))
    down = math.ceil(len(names) / across)
    size = max(PANEL * across + 1.2, 6.0), 0.6 + height * down
    panels = drawing.new_axes(*size, nrows=down, ncols=across, squeeze=False, sharex=True, sharey=True).ravel()
    for panel in panels[len(names) :]:
        panel.remove()
    groups = [key_of(name) for name in table[by]]
    titles = short_labels(names, int(PANEL * 9))
    for i, (panel, name, title) in enumerate(zip(panels, names, titles, strict=False)):
        draw(table[[group == name for group in groups]], panel)
        panel.set_title(title, size=10, pad=14)
        is_last = i + across >= len(names)  # the lowest panel of its column
        panel.set_xlabel("" if xlabel or not is_last else panel.get_xlabel())
        panel.set_ylabel("" if ylabel or i % across else panel.get_ylabel())
        if is_last:
            panel.tick_params(axis="x", labelbottom=True)
    figure = panels[0].figure
    figure.supxlabel(broken(xlabel, size[0] - 1.0), size=10.5, color=INK)
    figure.supylabel(broken(ylabel, size[1] - 0.4), size=10.5, color=INK)
    return panels[: len(names)]


def first_of(table: pd.DataFrame, column: str, cut: str = "") -> tuple[pd.DataFrame, str]:
    """Keep the rows of the first 40 groups, which fit a figure; also return a text on the cut, by default `cut`."""
    names = keys(table[column])
    if len(names) <= MOST_ROWS:
        return table, cut
    rows = table[table[column].map(key_of).isin(names[:MOST_ROWS])]
    return rows, f"the first {MOST_ROWS} of {counted_noun(len(names), _title(column))}"


def keys(values: Iterable) -> list:
    """List the groups of a column, in order of appearance."""
    return list(dict.fromkeys(map(key_of, values)))


def draw_points(ax: Axes, points: pd.DataFrame, *, size: float, alpha: float = 1.0, edge: float = 0.6) -> None:
    """Draw points, with the columns `_MARK`, with tooltips and links; `size` is their area in square points."""
    if points.empty:
        return
    look: dict[str, Any] = {"c": points["colour"].tolist(), "edgecolors": GROUND, "linewidths": edge, "alpha": alpha}
    drawn = ax.scatter(points["x"], points["y"], s=size, zorder=3, **look)
    paths = []
    for marker in points["marker"]:
        shape = MarkerStyle(marker)
        paths.append(shape.get_path().transformed(shape.get_transform()))
    drawn.set_paths(paths)
    drawing.attach(drawn, points["tip"], points["href"])


def legend_entries(
    names: Sequence[object], looks: Iterable[Look], shape: Literal["line", "point", "area"], width: int = 32
) -> list[Artist]:
    """Create the entries of a legend: points on lines, points, or areas."""
    entries: list[Artist] = []
    for text, look in zip(short_labels(names, width), looks, strict=True):
        label = f" {text}" if text.startswith("_") else text  # matplotlib leaves out names with an underscore
        if shape == "area":
            entries.append(Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND, label=label))
        else:
            line: dict[str, Any] = {"ls": "", "ms": 7} if shape == "point" else {"dashes": look.dashes or (None, None)}
            entries.append(Line2D([], [], color=look.colour, marker=look.marker, label=label, **line))
    return entries


def finish(
    ax: Axes, width: float, height: float = 0.0, legend: Sequence[Artist] = (), *, owns_figure: bool = True, alt: str
) -> Axes:
    """Set the alt text of axes, wrap their labels to a width and a height in inches, and put the legend below them."""
    drawing.set_alt(ax, alt)
    figure: Any = ax.get_figure(root=True)
    across, high = figure.get_size_inches()
    if legend:
        longest = max(len(str(entry.get_label())) for entry in legend)
        fitting = int(across * (1 if owns_figure else 0.8) / (0.55 + 0.078 * longest))
        columns = max(1, min(len(legend), fitting))
        if owns_figure:
            high += 0.1 + 0.21 * math.ceil(len(legend) / columns)
            figure.set_size_inches(across, high)
            figure.legend(handles=legend, loc="outside lower center", ncols=columns)
        else:
            below = ax.transAxes + ScaledTranslation(0, -0.55, figure.dpi_scale_trans)
            place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": below}
            ax.legend(handles=legend, ncols=columns, **place)
    ax.set_xlabel(broken(ax.get_xlabel(), width))
    ax.set_ylabel(broken(ax.get_ylabel(), height or (high if owns_figure else 9.0)))
    return ax


def broken(text: str, room: float) -> str:
    """Wrap a label to a width in inches; a number stays with its unit."""
    return "\n".join(textwrap.wrap(text.replace(" %", "\xa0%"), max(int(room / 0.09), 10))).replace("\xa0%", " %")


def describe_value(row: Row, *names: Any, percent: bool = True, digits: int = 2, value: str = "estimate") -> str:
    """Describe a row of `with_data` with the `names` of its group: ``alder, cooking: 63 % [52, 73] (n = 40)``."""
    estimate = as_number(row.get(value))
    n = as_number(row.get("n"))
    if estimate is None:
        text = plain(row["reason"])
    else:
        text = format_interval(estimate, row.get("low"), row.get("high"), percent=percent, digits=digits)
    if names:
        text = f"{', '.join(map(name_of, names))}: {text}"
    return text if n is None else f"{text} (n = {n:,.0f})"


def describe_estimates(
    table: pd.DataFrame, *keys: str, percent: bool = True, digits: int = 2, value: str = "estimate"
) -> str:
    """Describe groups, or the extremes if there are more than 40: ``alder: 63 % [52, 73] (n = 40); …``."""
    groups = with_data(table)
    texts = [describe_value(row, *map(row.get, keys), percent=percent, digits=digits, value=value) for row in groups]
    return _described(texts, [as_number(row[value]) for row in groups])


def _described(texts: Sequence[str], values: Sequence[float | None] = ()) -> str:
    """List the descriptions of groups; if there are more than 40 `values`, describe only the extremes."""
    if len(values) <= MOST_DESCRIBED:
        return "; ".join(texts) + "." if len(texts) else "Nothing to show."
    known = [(value, i) for i, value in enumerate(values) if not pd.isna(value)]
    counts = f"{len(texts)} groups, {len(known)} of them with an estimate."
    return f"{counts} Lowest: {texts[min(known)[1]]}; highest: {texts[max(known)[1]]}." if known else counts


def _title(column: str) -> str:
    """Return the title of a column for an axis, the same as in tables."""
    return TITLES.get(column, plain(column).replace("_", " "))


def about(what: str, *by: str) -> str:
    """Return the first sentence of an alt text: the quantity, and the columns that group it."""
    names = " and ".join(_title(name) if name == "model_name" else name for name in by)
    return sentence(f"{what} by {names}".replace("_", " "))


def describe_shares(table: pd.DataFrame, category: str, parts: Mapping[str, Any]) -> str:
    """Describe counts: ``alder: 12 success, 3 timed out of 15; …``; omit parts that are 0."""
    texts = []
    for row in table.to_dict("records"):
        counts = {look.text or part: as_number(row[part]) or 0 for part, look in parts.items()}
        total = sum(counts.values())
        if total:
            present = ", ".join(f"{count:,.0f} {plain(part)}" for part, count in counts.items() if count)
            texts.append(f"{name_of(row[category])}: {present} of {total:,.0f}")
    return _described(texts)


def describe_curves(table: pd.DataFrame, x: str, hue: str, *, percent: bool = True) -> str:
    """Describe curves by the value at each x, or at the first and the last of more than 6."""
    texts = []
    for name, rows in table.dropna(subset=[x, "estimate"]).sort_values(x).groupby(hue, sort=False, dropna=False):
        shown = (rows if len(rows) <= 6 else rows.iloc[[0, -1]]).to_dict("records")
        points = []
        for row in shown:
            place = format_amount(row[x]) if isinstance(row[x], float) else name_of(row[x])
            points.append(f"{describe_value(row, percent=percent)} at {x.replace('_', ' ')} {place}")
        texts.append(f"{name_of(name)}: {', '.join(points)}")
    return _described(texts)


def describe_timeline(table: pd.DataFrame, row: str, kind: str, looks: Mapping[Any, Any]) -> str:
    """Describe events by the number of each kind in each row, or in total if there are more than 40 rows."""
    groups: Iterable[Any] = table.groupby(row, sort=False, dropna=False)
    if table[row].nunique(dropna=False) > MOST_DESCRIBED:
        groups = [("all", table)]
    texts = []
    for row_name, group in groups:
        counts = group[kind].value_counts()
        present = (f"{counts[name]} {plain(looks[name].text or name)}" for name in looks if name in counts)
        texts.append(f"{name_of(row_name)}: {', '.join(present)}")
    return _described(texts)


def with_data(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """List the rows of a table that have data, or a reason for having none in `warning`, with their n."""
    rows = []
    for row in table.to_dict("records"):
        n = as_number(row.get("n"))
        unmeasured = as_number(row.get("n_not_measured"))
        if n is not None and unmeasured is not None and as_number(row.get("estimate")) is None:
            n = max(n, unmeasured)
        warning = row.get("warning")
        if isinstance(warning, Notes):
            warning = next(iter(warning.notes), "")
        reason = row.get("reason") or (warning if isinstance(warning, str | Note) else "")
        if n != 0 or reason:
            rows.append(row | {"n": n, "reason": reason or "no estimate"})
    return rows


def key_of(value: Any) -> Any:
    """Return the key of a column's value as a group: None if it is missing, whole numbers as integers."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def name_of(value: Any) -> str:
    """Return the name of a group in one line of plain text."""
    return "unknown" if (key := key_of(value)) is None else plain(key)


def short_labels(names: Iterable[Any], width: int = 32) -> list[str]:
    """Shorten the names of groups to about `width` characters, in their middle; different names stay different."""
    groups = list(names)
    texts = list(map(name_of, groups))
    if texts.count("unknown") > 1:
        texts = ["unknown (missing)" if key_of(name) is None else name_of(name) for name in groups]
    shown = distinct_names(texts, width)
    return [shown[text] for text in texts]
