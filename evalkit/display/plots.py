"""Plots, one function per type: each takes a frame and axes, and returns axes, with what they show in words.

Every interval drawn is a pair of columns of the frame, low and high; nothing is estimated here.
"""

import math
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import ScaledTranslation

from evalkit._notes import Notes
from evalkit._text import as_number, format_interval, sentence
from evalkit.display.drawing import (
    EDGE,
    GRID,
    GROUND,
    INK,
    PALE,
    QUIET,
    SHADE,
    Look,
    attach,
    looks,
    new_axes,
    nothing_to_draw,
    percent_axis,
    set_alt,
    themed,
    with_zero,
)
from evalkit.display.tables import TITLES
from evalkit.io import distinct_names, plain
from evalkit.io.text import shorten

__all__ = ["curves", "estimates", "facets", "heatmap", "mirrored", "shares", "strips", "timeline"]

Keys = Sequence[Hashable]
Row = Mapping[Hashable, Any]

WIDTH = 7.0  # of a figure, in inches
ROOM = WIDTH - 2.4  # for the label below, beside the names of rows
LANES = 13  # of single values in a row
MOST_ROWS = 40  # of a figure
MOST_SAID = 40  # groups that an alt text lists one by one
HEIGHT = 3.4  # of a figure of curves, in inches
FEW = 12  # positions of curves with a marker and an interval each; more get a band and sparse markers
COLUMNS, PANEL = 4, 2.4  # panels side by side, and the width of each, in inches

_BESIDE: dict[str, Any] = {  # how words right of the axes are written
    "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "color": QUIET
}  # fmt: skip
_DARK = "#1a1a1a"  # text on lighter cells of kinds: not a tone, as the cells keep their colour on dark pages
_FULL, _LEAST, _MOST = "#0b62a4", "#6a3d9a", "#b35806"  # colours of 100 %, and of the ends of differences
_ON_DARK = 0.7  # the share of such a colour in a cell from which its text is white
_FOLLOWING = (GROUND, GRID, PALE, SHADE)  # cells that change their tone there
_EVENTS = 380  # width of the axes for events, in points
_DRAWN = {True: "steps-post", False: "default"}  # curves, with steps or without
_NUMBERS = ("x", "y", "low", "high", "n")
_POINT = ["x", "y", "colour", "marker", "tip", "href"]


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
    """Draw estimates with their intervals, a row per category, a colour and a marker per hue (or per row, if it is the
    category).

    `table` has estimate, low, high (NaN: no bar), n and the columns named; optionally reason or warning (why there is
    no estimate), n_not_measured, tip and href. Groups without any runs are not drawn; those with runs but without an
    estimate show the reason. The hue or category to `highlight` is emphasised, the others are pale. `percent`: whether
    estimates are shares from 0 to 1. `references` are published results for rows of their own: name, mean and,
    optionally, spread. The categories of `order` come first, even if the table lacks them: for panels that share an
    axis. By default axes are on a new figure of fitting size.
    """
    hue = hue or (category if category == "model_name" else None)
    cut = ""
    for name in [] if order else dict.fromkeys(filter(None, (category, hue))):
        table, cut = first_of(table, name, cut)
    marks, names, look_of = _place(table, category, hue, highlight, percent, order)
    if marks.empty:
        return nothing_to_draw(ax=ax)
    published = pd.DataFrame(columns=["name", "mean"]) if references is None else references
    beside = 1 if hue == category else len(look_of)
    owns_figure, first, words = ax is None, len(names), _title(category)
    entries = [] if hue in (None, category) else legend_entries(short_labels(look_of), look_of.values(), "line")
    if ax is None:
        of_row = 0.3 if beside == 1 else 0.165 * beside if beside <= 6 else 0.11 * beside
        height = 0.95 + max(of_row, 0.3) * len(names) + 0.3 * len(published)
        ax = new_axes(WIDTH, max(height, 0.65 + 0.09 * len(words)))  # of the vertical label
    for is_pale in (True, False):
        _draw_estimates(ax, marks[marks["is_pale"] == is_pale], pale=is_pale, small=beside > 6)
    _write_beside(ax, marks, percent, has_n=beside <= 6, has_value=beside <= 2 and owns_figure)
    if beside > 1:
        between = np.arange(1, first) - 0.5
        ax.hlines(between, 0, 1, color=GRID, lw=0.8, zorder=0, transform=ax.get_yaxis_transform())
    _name_rows(ax, [*short_labels(names, 30), *short_labels(published["name"], 30)], words)
    for y, row in enumerate(published.to_dict("records"), start=first):  # in grey below, with a line through the rows
        ax.plot([row["mean"]] * 2, [-0.55, y], color=QUIET, lw=0.7, ls=(0, (4, 3)), alpha=0.6, zorder=0)
        ax.errorbar(row["mean"], y, xerr=as_number(row.get("spread")), fmt="|", color=QUIET, ms=9, lw=1.6)
    if len(published):
        ax.axhspan(first - 0.5, first + len(published) - 0.45, color=SHADE, zorder=-1)
    xlabel = f"{xlabel} with 95 % interval" if marks["low"].notna().any() else xlabel
    ax.set_xlabel("; ".join(filter(None, [xlabel, cut])))
    by = dict.fromkeys(filter(None, (category, hue)))
    alt = f"{about(xlabel, *by)} {_listed(list(marks['said']), list(marks['x']))}"
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

    `values` have the columns named and, optionally, tip and href, one row per value. `means` have `category`, estimate,
    low, high and n, in the order of the rows. The rest is as for `estimates`.
    """
    values, (means, cut) = values.dropna(subset=value), first_of(means, category)
    marks, names, look_of = _place(means, category, category, highlight, percent)
    if marks.empty:
        return nothing_to_draw(ax=ax)
    words, owns_figure = _title(category), ax is None
    ax = ax or new_axes(WIDTH, max(1.1 + 0.6 * len(names), 0.65 + 0.09 * len(words)))
    drawn = []
    for row in values.to_dict("records"):
        name, x = key_of(row[category]), float(row[value])
        if name in look_of:
            tip = row.get("tip") or f"{name_of(name)}: {format_interval(x, None, None, percent=percent)}"
            is_pale = highlight is not None and name != key_of(highlight)
            drawn.append((x, float(names.index(name)), *look_of[name][:2], tip, row.get("href"), is_pale))
    points = pd.DataFrame(drawn, columns=[*_POINT, "is_pale"])
    lane = 5 * points.groupby("y")["x"].rank(method="first") % LANES  # those next to each other lie in different ones
    points["y"] += 0.55 * (lane / LANES - 0.5) - 0.1
    for is_pale in (True, False):
        single, mean = (some[some["is_pale"] == is_pale] for some in (points, marks))
        draw_points(ax, single, size=18, alpha=0.3 if is_pale else 0.6, edge=0)
        _draw_estimates(ax, mean.assign(y=mean["y"] + 0.28), pale=is_pale)
    _write_beside(ax, marks, percent, has_value=owns_figure, below=0.28, others=values[value])
    _name_rows(ax, short_labels(names, 30), words)
    bounded = " with 95 % interval" if marks["low"].notna().any() else ""
    ax.set_xlabel("; ".join(filter(None, [xlabel, f"small: single values, large: mean{bounded}", cut])))
    alt = f"{about(xlabel, category)} {_listed(list(marks['said']), list(marks['x']))}"
    return finish(ax, ROOM, owns_figure=owns_figure, alt=alt)


@themed
def shares(
    table: pd.DataFrame,
    category: str,
    parts: Mapping[str, Look],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw counts as one stacked bar per row; parts differ in colour and hatch, and are labelled with their counts.

    `table` has one row per bar, with `category`, a column of counts per part and, optionally, href, of the bar or as a
    mapping of its parts; bars without any counts are not drawn. `parts` maps these columns, from left to right, to
    their looks, whose texts stand in the legend.
    """
    table, cut = first_of(table, category)
    counts = table[list(parts)].astype(float).fillna(0)
    filled = counts.sum(axis=1).to_numpy() > 0
    if not filled.any():
        return nothing_to_draw(ax=ax)
    counts, rows = counts[filled], table[filled].to_dict("records")
    totals = counts.sum(axis=1).to_numpy()
    present = {part: look for part, look in parts.items() if counts[part].any()}
    entries = legend_entries([look.text or part for part, look in present.items()], present.values(), "area")
    owns_figure = ax is None
    ax = ax or new_axes(WIDTH, 1.0 + 0.42 * len(rows))
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
            n, text, of = numbers[y], f"{numbers[y]:.0f}", f"{totals[y]:,.0f} ({numbers[y] / totals[y] * 100:.0f} %)"
            tip = f"{name_of(rows[y][category])}: {n:,.0f} {look.text or part} of {of}"
            href = rows[y].get("href")
            attach(bar, [tip], [href.get(part) if isinstance(href, Mapping) else href])
            if widths[y] >= 0.025 + 0.015 * len(text):
                ax.text(left[y] + widths[y] / 2, y, text, color=INK, ha="center", va="center", size=8.5, bbox=box)
        left = left + widths
    for y, total in enumerate(totals):
        ax.annotate(f"n={total:.0f}", (1.0, y), (4, 0), size=8, **_BESIDE)
    _name_rows(ax, short_labels((row[category] for row in rows), 30), "")
    ax.grid(False)
    ax.set_xlabel("; ".join(filter(None, ["share of runs; the numbers are counts", cut])))
    percent_axis(ax).set_xlim(0, 1)
    alt = f"{about('counts', category)} {describe_shares(table, category, parts)}"
    return finish(ax, ROOM, legend=entries, owns_figure=owns_figure, alt=alt)


def _place(
    table: pd.DataFrame, category: str, hue: str | None, highlight: Hashable, percent: bool, order: Keys = ()
) -> tuple[pd.DataFrame, list, dict[Any, Look]]:
    """Position estimates on rows, from top to bottom; return the marks, the keys of rows, and the look of each series.

    The series of a row share 0.8 of its height; where `hue` is `category`, each row is a series of its own. None is the
    key of missing values. A group with data but without an estimate gets its reason.
    """
    groups, by = with_data(table), dict.fromkeys(filter(None, (category, hue)))
    names = keys([*order, *(row[category] for row in groups)])
    series = names if hue == category else keys(row[hue] for row in groups) if hue else [None]
    look_of, beside, marks = looks(series), 1 if hue == category else len(series), []
    for row in groups:
        key, member = key_of(row[category]), key_of(row[hue]) if hue else None
        offset = 0 if beside == 1 else (series.index(member) - (beside - 1) / 2) * 0.8 / beside
        said = describe_value(row, *map(row.get, by), percent=percent)
        point = as_number(row["estimate"]), names.index(key) + offset, *look_of[member][:2]
        ends = as_number(row.get("low")), as_number(row.get("high"))
        is_pale = highlight is not None and key_of(highlight) not in (key, member)
        rest = row["n"], row["reason"], is_pale, member, said
        marks.append((*point, row.get("tip") or said, row.get("href"), *ends, *rest))
    table = pd.DataFrame(marks, columns=[*_POINT, "low", "high", "n", "reason", "is_pale", "series", "said"])
    return table.astype(dict.fromkeys(_NUMBERS, "float64") | {"series": "object"}), names, look_of


def _draw_estimates(ax: Axes, marks: pd.DataFrame, *, pale: bool, small: bool = False) -> None:
    alpha = 0.45 if pale else 1.0
    for _, group in marks.dropna(subset=["x", "low", "high"]).groupby("series", sort=False, dropna=False):
        look: dict[str, Any] = {"color": group["colour"].iloc[0], "lw": 1.6 if pale or small else 2.4}
        ax.hlines(group["y"], group["low"], group["high"], alpha=alpha, zorder=2, **look)
    draw_points(ax, marks[marks["x"].notna()], size=30 if pale else 40 if small else 56, alpha=alpha)


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
    """Write n and the estimate beside each mark, and the reason in the place of a missing one; scale the axis.

    Marks stand so far `below` their rows, and the axis also holds the `others`.
    """
    for y, reason in marks.loc[marks["x"].isna(), ["y", "reason"]].to_numpy().tolist():
        ax.annotate(shorten(plain(reason), 60), (0.0, y + below), (6, 0), style="italic", size=8, **_BESIDE)
    sized = marks if has_n else marks[:0]
    for y, x, low, high, n in sized[["y", "x", "low", "high", "n"]].to_numpy(dtype=float).tolist():
        value = [format_interval(x, low, high, percent=percent)] * (has_value and not math.isnan(x))
        text = ", ".join([*value, *[f"n={n:.0f}"] * (not math.isnan(n))])
        ax.annotate(text, (1.0, y), (4, 0), size=8, **_BESIDE)
    extent = [*marks[["x", "low", "high"]].to_numpy().ravel(), *others]
    if percent:
        percent_axis(ax).set_xlim(np.nanmin([-0.02, *extent]), np.nanmax([1.02, *extent]))
    elif np.nanmin([0.0, *extent]) < 0:
        ax.axvline(0, color=EDGE, lw=0.8, zorder=0)
    if not percent:
        with_zero(ax, extent)


def _name_rows(ax: Axes, names: Sequence[str], words: str) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_ylabel(words)
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
    """Draw a table of shaded cells, with the value and n in each; a cell without data stays empty.

    `table` has one row per cell: the columns named and, optionally, n, tip and href, in the order of rows and columns;
    if both have the same names, they have the same order. A cell with data but without a value holds a dash. Of more
    than 40 rows, those whose values differ most are drawn, and the label below says so.

    Values are shares from 0 to 1, written as percentages without the sign, if `percent`, else numbers with so many
    `digits`. `signed` ones are differences, in two colours that meet at 0. Where values are names, `kinds` maps them to
    looks, whose texts stand in cells and legend. `frame` is the column that says which cells are framed and bold.
    `rows` come first, even if the table lacks them.
    """
    if not (groups := with_data(table)):
        return nothing_to_draw(ax=ax)
    cells = {(key_of(group[row]), key_of(group[column])): group for group in groups}
    down = keys([*rows, *(group[row] for group in groups)])
    across = keys(group[column] for group in groups)
    across = down if set(down) == set(across) else across
    cut = ""
    if not rows and len(down) > MOST_ROWS:
        values = pd.to_numeric(pd.Series([cell[value] for cell in cells.values()]), errors="coerce")
        places = {key: i for i, key in enumerate(down)}
        by_row = values.groupby([places[key] for key, _ in cells])
        spread = (by_row.max() - by_row.min()).fillna(-1.0).to_numpy()
        widest = {down[i] for i in np.argsort(-spread, kind="stable")[:MOST_ROWS]}
        which = "those whose values differ most" if (spread > 0).any() else "the first"
        cut = f"{MOST_ROWS} of {len(down):,} rows: {which}"
        down, cells = [key for key in down if key in widest], {k: cell for k, cell in cells.items() if k[0] in widest}

    kinds = kinds or {}
    texts = {key: _text(cell, value, percent, signed, digits, kinds) for key, cell in cells.items()}
    names = short_labels(across, 20)
    shown = {cell[value] for cell in cells.values()} if kinds else set()
    present = {kind: look for kind, look in kinds.items() if kind in shown}
    titles = [f"{look.text} {kind}" for kind, look in present.items()]
    entries = legend_entries(titles, present.values(), "area")
    owns_figure = ax is None
    if ax is None:
        longest = max(map(len, texts.values()))
        width = max(2.6 + max(0.62, 0.16 + 0.075 * longest) * max(len(across), 2), 4.0)
        turned = 0.55 * 0.085 * max(map(len, names))
        ax = new_axes(width, 0.9 + 0.3 * max(len(down), 2) + turned)

    if kinds:
        places = {kind: i for i, kind in enumerate(kinds)}
        shades = {key: places.get(cell[value], math.nan) for key, cell in cells.items()}
        ends: dict[str, Any] = {"vmin": -0.5, "vmax": len(kinds) - 0.5}
        ends["cmap"] = mpl.colors.ListedColormap([look.colour for look in kinds.values()])
    else:
        shades = {key: np.nan if as_number(cell[value]) is None else float(cell[value]) for key, cell in cells.items()}
        known = [shade for shade in shades.values() if not math.isnan(shade)]
        if signed:
            most = 1.1 * (1.0 if percent else max(map(abs, known), default=1.0))
            ends = {"vmin": -most, "vmax": most, "cmap": _shading(_LEAST, _MOST)}
        else:
            lowest, highest = (0.0, 1.0) if percent or not known else (min(0.0, *known), max(0.0, *known) or 1.0)
            ends = {"vmin": lowest, "vmax": highest, "cmap": _shading(_FULL)}
    matrix = np.array([[shades.get((r, c), math.nan) for c in across] for r in down])
    written = np.array([[texts.get((r, c), "") for c in across] for r in down], dtype=object)
    look = {"cbar": False, "xticklabels": False, "yticklabels": False, "linewidths": 1, "linecolor": GROUND}
    sns.heatmap(matrix, annot=written, fmt="", annot_kws={"size": 8}, ax=ax, **look, **ends)
    ax.grid(False)
    for text in ax.texts:
        x, y = (int(place) for place in text.get_position())
        cell = cells.get((down[y], across[x]), {})
        if frame and cell.get(frame):
            text.set_fontweight("bold")
        if not kinds:
            share = ends["cmap"]((matrix[y, x] - ends["vmin"]) / (ends["vmax"] - ends["vmin"]))[3]
            text.set_color("white" if share > _ON_DARK else INK)
        if kind := kinds.get(cell.get(value)):  # in ink on tones that follow the page
            on_dark = "white" if sns.utils.relative_luminance(kind.colour) <= 0.17 else _DARK
            text.set(size=9.5, weight="bold", color=INK if kind.colour in _FOLLOWING else on_dark)
    for (r, c), cell in cells.items():
        x, y = across.index(c), down.index(r)
        if math.isnan(shades[r, c]):  # no value, or an unknown kind: seaborn leaves the cell empty
            ax.text(x + 0.5, y + 0.5, texts[r, c], ha="center", va="center", size=8, color=QUIET)
        # a transparent shape covers each, for its tooltip and link, with a frame if asked for
        framed, own = bool(frame and cell[frame]), cell[value]
        line: dict[str, Any] = {"edgecolor": INK, "linewidth": 1.8} if framed else {"linewidth": 0}
        shape = Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=(1, 1, 1, 0), zorder=3 + framed, **line)
        if isinstance(own, str):
            said = f"{name_of(cell[row])}, {name_of(cell[column])}: {own}"
        else:
            said = describe_value(cell, cell[row], cell[column], percent=percent, digits=digits, value=value)
        attach(ax.add_patch(shape), [cell.get("tip") or said], [cell.get("href")])

    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(np.arange(len(across)) + 0.5, names, **slanted if max(map(len, names)) > 6 else {})
    ax.set_yticks(np.arange(len(down)) + 0.5, short_labels(down), rotation=0)
    ax.tick_params(length=0)
    if xlabel is None:
        xlabel = _title(column) + ("; cells: percent (n)" if percent and not kinds and not signed else "")
    ax.set_xlabel("; ".join(filter(None, [xlabel, cut])))
    ax.set_ylabel("")
    figure: Any = ax.figure
    room = figure.get_figwidth() - 2.2 if owns_figure else 9
    said = describe_timeline(table, row, value, {kind: look._replace(text="") for kind, look in kinds.items()})
    if not kinds:
        said = describe_estimates(table, row, column, percent=percent, digits=digits, value=value)
    alt = f"{about('values' if value == 'estimate' else value, row, column)} {said}"
    return finish(ax, room, legend=entries, owns_figure=owns_figure, alt=alt)


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
    shown, n = as_number(cell[value]), cell["n"]
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
    """Draw curves with their intervals: as bars at up to 12 positions, as bands at more.

    `table` has `x` (numbers), `hue`, estimate, low, high, n and, optionally, tip and href; rows without x or estimate
    are left out. The curve to `highlight` is drawn with its intervals and n, the others pale behind it. With `steps`
    values hold until the next position. Without `dodge`, points stand exactly at their x, also where they hide each
    other.
    """
    drawn, cut = first_of(table[table[x].notna() & table["estimate"].notna()], hue)
    drawn = drawn.sort_values(x, kind="stable")
    if drawn.empty:
        return nothing_to_draw(ax=ax)
    names = keys(drawn[hue])
    owns_figure, is_sparse, look_of = ax is None, drawn[x].nunique() <= FEW, looks(names)
    # with `dodge`, points at the same x lie side by side, so that none is hidden
    gaps, apart = np.diff(np.unique(drawn[x].astype(float))), 0.0
    if dodge and is_sparse and highlight is None:
        apart = 0.3 * min(gaps, default=1.0) / len(names)
    marks = []
    for row in drawn.to_dict("records"):
        name = key_of(row[hue])
        place = float(row[x]) + (names.index(name) - (len(names) - 1) / 2) * apart
        tip = row.get("tip") or describe_value(row, row[hue], row[x], percent=percent)
        point = place, as_number(row["estimate"]), *look_of[name][:2], tip, row.get("href")
        marks.append((*point, *(as_number(row.get(column)) for column in ("low", "high", "n")), name))
    rows = pd.DataFrame(marks, columns=[*_POINT, "low", "high", "n", "series"])
    rows = rows.astype(dict.fromkeys(_NUMBERS, "float64") | {"series": "object"})
    shown = names if highlight is None else []
    sizes = {key_of(name): n for name, n in rows.groupby("series", dropna=False)["n"].max().items()}
    titles = [
        text if math.isnan(n := sizes.get(name, math.nan)) else f"{text} (n={n:.0f})"
        for text, name in zip(short_labels(shown), shown, strict=True)
    ]
    entries = legend_entries(titles, [look_of[name] for name in shown], "line", 40)
    ax = ax or new_axes(WIDTH, HEIGHT)
    strong = rows[rows["series"].eq(key_of(highlight)) | (highlight is None)]
    for _, other in rows.drop(strong.index).groupby("series", sort=False, dropna=False):
        ax.plot(other["x"], other["y"], color=PALE, lw=1, zorder=1, drawstyle=_DRAWN[steps])
    if len(strong):
        _draw_curves(ax, strong, look_of, sparse=is_sparse, steps=steps)
    if highlight is not None and len(strong) <= FEW / 2:  # more of them have no room in a panel
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
        percent_axis(ax, "y").set_ylim(-0.05, 1.05)
    else:
        ax.set_ylim(bottom=min(0, rows[["y", "low"]].min().min()))
    said = table if highlight is None else table[table[hue].map(key_of).eq(key_of(highlight))]
    alt = f"{about(ylabel, x)} {describe_curves(said, x, hue, percent=percent)}"
    return finish(ax, WIDTH - 1.0, HEIGHT - 0.4, entries, owns_figure=owns_figure, alt=alt)


def _draw_curves(ax: Axes, rows: pd.DataFrame, look_of: Mapping[Any, Look], *, sparse: bool, steps: bool) -> None:
    marked = []
    for series, curve in rows.groupby("series", sort=False, dropna=False):
        bounded, look = curve.dropna(subset=["low", "high"]), look_of[key_of(series)]
        line: dict[str, Any] = {"dashes": look.dashes or (None, None), "drawstyle": _DRAWN[steps]}
        ax.plot(curve["x"], curve["y"], color=look.colour, lw=1.8, zorder=3, **line)
        if sparse:
            ax.vlines(bounded["x"], bounded["low"], bounded["high"], color=look.colour, lw=2, alpha=0.7, zorder=2)
        elif len(bounded):
            band: dict[str, Any] = {"color": look.colour, "alpha": 0.15, "lw": 0, "step": "post" if steps else None}
            ax.fill_between(bounded["x"], bounded["low"], bounded["high"], **band)
        spaced = np.unique(np.linspace(0, len(curve) - 1, 7).round().astype(int))[1:]
        marked.append(curve if sparse or len(curve) < 2 else curve.iloc[spaced])
    draw_points(ax, pd.concat(marked), size=48)


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

    `table` has one row per event: `row` names its line, `x` its position (a number), `kind` its kind, which `kinds`
    maps to a look whose text stands in the legend; optionally tip and href. Events of other kinds are not drawn, but
    their line is. If marks overlap, those of the kinds named last are in front. With `path`, all events are connected
    in their order, across the lines.
    """
    if table.empty:
        return nothing_to_draw("events", ax)
    names = keys(table[row])
    events = table.assign(_y=[names.index(key_of(name)) for name in table[row]])
    present = {name: look for name, look in kinds.items() if events[kind].eq(name).any()}
    titles = [look.text or name for name, look in present.items()]
    entries = legend_entries(titles, present.values(), "point")
    owns_figure, first, last, width_figure = ax is None, events[x].min(), events[x].max(), WIDTH + 1
    side = min(max(_EVENTS / (last - first + 1), 3.0), 7.0)
    ax = ax or new_axes(width_figure, 1.1 + 0.27 * max(len(names), 2))
    ax.hlines(range(len(names)), first, last, color=PALE, lw=0.5, zorder=0)
    if path:
        ax.plot(events[x], events["_y"], color=PALE, lw=1, zorder=1)

    ranks = {name: i for i, name in enumerate(present)}  # events of the kinds named last lie in front
    shown = events[events[kind].isin(list(present))]
    shown = shown.sort_values(kind, key=lambda names: names.map(ranks), kind="stable")
    points = []
    for event in shown.to_dict("records"):
        look, place = kinds[event[kind]], f"{name_of(event[row])}, {x.replace('_', ' ')} {name_of(event[x])}"
        tip = event.get("tip") or f"{place}: {look.text or event[kind]}"
        points.append((float(event[x]), float(event["_y"]), look.colour, look.marker, tip, event.get("href")))
    draw_points(ax, pd.DataFrame(points, columns=_POINT), size=side**2, edge=0.6 if side > 4 else 0)

    ax.set_yticks(range(len(names)), short_labels(names, 36))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(xlabel)
    ax.set_ylabel("")
    ax.grid(False)
    alt = describe_timeline(table, row, kind, kinds)
    return finish(ax, width_figure - 2.6, legend=entries, owns_figure=owns_figure, alt=alt)


@themed
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

    `draw` is a function of (table, axes) that draws the rows of one panel: any plot of this package. Four stand side by
    side, each of a `height` in inches; with a label for all of them, panels have none of their own.
    """
    names = keys(table[by])
    if not names:
        return np.array([nothing_to_draw()])
    across = min(COLUMNS, len(names))
    down = math.ceil(len(names) / across)
    shape = {"nrows": down, "ncols": across, "squeeze": False, "sharex": sharex, "sharey": True}
    size = max(PANEL * across + 1.2, 6.0), 0.6 + height * down
    panels = new_axes(*size, **shape).ravel()
    for panel in panels[len(names) :]:
        panel.remove()
    groups = [key_of(name) for name in table[by]]
    titles = short_labels(names, int(PANEL * 9))
    for i, (panel, name, title) in enumerate(zip(panels, names, titles, strict=False)):
        draw(table[[group == name for group in groups]], panel)
        panel.set_title(title, size=10, pad=14)
        is_last = i + across >= len(names)  # nothing stands below
        panel.set_xlabel("" if xlabel or (sharex and not is_last) else panel.get_xlabel())
        panel.set_ylabel("" if ylabel or i % across else panel.get_ylabel())
        if is_last:
            panel.tick_params(axis="x", labelbottom=True)
    figure = panels[0].figure
    figure.supxlabel(broken(xlabel, size[0] - 1.0), size=10.5, color=INK)
    figure.supylabel(broken(ylabel, size[1] - 0.4), size=10.5, color=INK)
    return panels[: len(names)]


def first_of(table: pd.DataFrame, column: str, cut: str = "") -> tuple[pd.DataFrame, str]:
    """Keep the rows of the first 40 groups, more than a figure has room for; also say how many there are, or `cut`."""
    names = keys(table[column])
    if len(names) <= MOST_ROWS:
        return table, cut
    kept = set(names[:MOST_ROWS])
    words = _title(column)
    return table[
        [key_of(value) in kept for value in table[column]]
    ], f"the first {MOST_ROWS} of {len(names):,} {words}s"


def keys(values: Iterable) -> list:
    """List the groups of a column, in order of appearance."""
    return list(dict.fromkeys(map(key_of, values)))


def draw_points(ax: Axes, points: pd.DataFrame, *, size: float, alpha: float = 1.0, edge: float = 0.6) -> None:
    """Draw points, of the columns `_POINT`, each in its colour and marker, with its tooltip and link.

    `size` is the area of a point in square points, `edge` the width of the line around it.
    """
    if points.empty:
        return
    look: dict[str, Any] = {"c": points["colour"].tolist(), "edgecolors": GROUND, "linewidths": edge, "alpha": alpha}
    drawn = ax.scatter(points["x"], points["y"], s=size, zorder=3, **look)
    shapes = [MarkerStyle(marker) for marker in points["marker"]]
    drawn.set_paths([shape.get_path().transformed(shape.get_transform()) for shape in shapes])
    attach(drawn, points["tip"], points["href"])


def legend_entries(
    names: Sequence[object], looks: Iterable[Look], shape: Literal["line", "point", "area"], width: int = 32
) -> list[Artist]:
    """Create the entries of a legend: of points on lines, of points, or of areas."""
    entries: list[Artist] = []
    for text, look in zip(short_labels(names, width), looks, strict=True):
        label = f" {text}" if text.startswith("_") else text  # matplotlib leaves out those with an underscore
        if shape == "area":
            entries.append(Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND, label=label))
        else:
            line: dict[str, Any] = {"ls": "", "ms": 7} if shape == "point" else {"dashes": look.dashes or (None, None)}
            entries.append(Line2D([], [], color=look.colour, marker=look.marker, label=label, **line))
    return entries


def finish(
    ax: Axes, width: float, height: float = 0.0, legend: Sequence[Artist] = (), *, owns_figure: bool = True, alt: str
) -> Axes:
    """Wrap the labels of axes to a width and a height (the figure's) in inches, and put the legend below; return them.

    `alt` says in words what they show. If the plot `owns_figure`, the legend stands at its edge, and the figure grows
    by it; else it stands below the axes.
    """
    set_alt(ax, alt)
    figure: Any = ax.get_figure(root=True)
    across, high = figure.get_size_inches()
    if legend:
        longest = max(len(str(entry.get_label())) for entry in legend)
        fitting = int(across * (1 if owns_figure else 0.8) / (0.55 + 0.078 * longest))
        columns = max(1, min(len(legend), fitting))
    if legend and owns_figure:
        high += 0.1 + 0.21 * math.ceil(len(legend) / columns)
        figure.set_size_inches(across, high)
        figure.legend(handles=legend, loc="outside lower center", ncols=columns)
    elif legend:
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
    """Describe one estimate, a row of `with_data`, with interval and n: ``63 % [52, 73] (n = 40)``; without one, the
    reason.

    The `names` of its group stand before it: ``alder, cooking: 63 % …``.
    """
    estimate, n = as_number(row.get(value)), as_number(row.get("n"))
    text = format_interval(estimate, row.get("low"), row.get("high"), percent=percent, digits=digits)
    text = plain(row["reason"]) if estimate is None else text
    return f"{', '.join(map(name_of, names))}{': ' * bool(names)}{text}{'' if n is None else f' (n = {n:,.0f})'}"


def describe_estimates(
    table: pd.DataFrame, *keys: str, percent: bool = True, digits: int = 2, value: str = "estimate"
) -> str:
    """Describe the estimates of the groups that `keys` name: ``alder: 63 % [52, 73] (n = 40); birch: …``.

    `table` has the column of `value` and, optionally, low, high, n and reason. Of more than 40 groups only the extremes
    are described.
    """
    groups = with_data(table)
    style: dict[str, Any] = {"percent": percent, "digits": digits, "value": value}
    said = [describe_value(row, *map(row.get, keys), **style) for row in groups]
    return _listed(said, [as_number(row[value]) for row in groups])


def _listed(texts: Sequence[str], values: Sequence[float | None] = ()) -> str:
    """List descriptions of groups; where there are more than 40 `values` of them, only the extremes."""
    if len(values) <= MOST_SAID:
        return "; ".join(texts) + "." if len(texts) else "Nothing to show."
    known = [(value, i) for i, value in enumerate(values) if not pd.isna(value)]
    counts = f"{len(texts)} groups, {len(known)} of them with an estimate."
    return f"{counts} Lowest: {texts[min(known)[1]]}; highest: {texts[max(known)[1]]}." if known else counts


def _title(column: str) -> str:
    """Return what an axis calls a column: as tables do."""
    return TITLES.get(column, column.replace("_", " "))


def about(what: str, *by: str) -> str:
    """Return the first sentence of an alt text: what is shown, by which columns."""
    names = " and ".join(by).replace("_name", "")
    return sentence(f"{what} by {names}".replace("_", " "))


def describe_shares(table: pd.DataFrame, category: str, parts: Mapping[str, Any]) -> str:
    """Describe counts: ``alder: 12 success, 3 timed out of 15; …``; parts that are 0 are left out."""
    texts = []
    for row in table.to_dict("records"):
        counts = {look.text or part: as_number(row[part]) or 0 for part, look in parts.items()}
        total = sum(counts.values())
        if total:
            listed = ", ".join(f"{count:,.0f} {plain(part)}" for part, count in counts.items() if count)
            texts.append(f"{name_of(row[category])}: {listed} of {total:,.0f}")
    return _listed(texts)


def describe_curves(table: pd.DataFrame, x: str, hue: str, *, percent: bool = True) -> str:
    """Describe curves: the value at each x, or, for more than 6, at the first and the last."""
    where, texts = x.replace("_", " "), []
    for name, rows in table.dropna(subset=[x, "estimate"]).sort_values(x).groupby(hue, sort=False, dropna=False):
        shown = (rows if len(rows) <= 6 else rows.iloc[[0, -1]]).to_dict("records")
        points = (f"{describe_value(row, percent=percent)} at {where} {name_of(row[x])}" for row in shown)
        texts.append(f"{name_of(name)}: {', '.join(points)}")
    return _listed(texts)


def describe_timeline(table: pd.DataFrame, row: str, kind: str, looks: Mapping[Any, Any]) -> str:
    """Describe events: the number of each kind in each row; for more than 40 rows, in all of them."""
    many, texts = table[row].nunique(dropna=False) > MOST_SAID, []
    for row_name, group in [("all", table)] if many else table.groupby(row, sort=False, dropna=False):
        counts = group[kind].value_counts()
        listed = (f"{counts[name]} {plain(looks[name].text or name)}" for name in looks if name in counts)
        texts.append(f"{name_of(row_name)}: {', '.join(listed)}")
    return _listed(texts if len(table) else [])


def with_data(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """List the rows of a table that have data, or say why they have none, with what is written of each.

    Its n is, without an estimate, the number of runs that were not measured, if that is larger (None: unknown); its
    `reason` for having no estimate is the one given, else the first note of its `warning`.
    """
    rows = []
    for row in table.to_dict("records"):
        n, unmeasured, notes = as_number(row.get("n")), as_number(row.get("n_not_measured")), row.get("warning")
        if n is not None and unmeasured is not None and as_number(row.get("estimate")) is None:
            n = max(n, unmeasured)
        if n != 0 or row.get("reason") or notes:
            why = next(iter(notes.notes), "") if isinstance(notes, Notes) else notes if isinstance(notes, str) else ""
            rows.append(row | {"n": n, "reason": row.get("reason") or why or "no estimate"})
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
    """Name groups on about `width` characters each, cut in their middle; different ones never look the same.

    A missing one is distinguished from one named ``unknown``.
    """
    groups = list(names)
    texts = list(map(name_of, groups))
    if texts.count("unknown") > 1:
        texts = ["unknown (missing)" if key_of(name) is None else name_of(name) for name in groups]
    shown = distinct_names(texts, width)
    return [shown[text] for text in texts]
