"""Plots with a row per group: estimates with intervals, single values, stacked shares."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit._words import format_interval
from evalkit.display import style
from evalkit.display.marks import attach
from evalkit.display.plots.points import BESIDE, draw_intervals, draw_points, draw_references, draw_sizes
from evalkit.display.plots.prepare import Keys, Rows, link_of, place, stacked, swarm
from evalkit.display.style import Look
from evalkit.display.words import key_of, name_of, names_of

WIDTH = 7.0  # of a figure, in inches
_TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@style.themed
def estimates(
    table: pd.DataFrame,
    category: str,
    hue: str | None = None,
    *,
    highlight: Hashable = None,
    xlabel: str = "success rate",
    percent: bool = True,
    scale: Literal["linear", "symlog"] = "linear",
    references: pd.DataFrame | None = None,
    missing: str = "no score",
    order: Keys = (),
    hues: Keys = (),
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates with their intervals, a row per category, a colour and a marker per hue.

    Parameters
    ----------
    table : DataFrame
        With estimate, low, high (NaN: no bar), n and the columns named; optionally reason or warning (why there is no
        estimate), n_not_measured, tip and href. Groups without any runs are not drawn; those with runs but without an
        estimate show the reason.
    category : str
        Column of the rows, from top to bottom in the order of the table.
    hue : str, optional
        Column of the colours; the same as `category` for a colour per row.
    highlight : optional
        The hue or category that is emphasised; the others are drawn pale.
    xlabel : str
    percent : bool
        Whether estimates are shares from 0 to 1.
    scale : {"linear", "symlog"}
        "symlog": linear from 0 to 1, logarithmic above.
    references : DataFrame, optional
        Published results for rows of their own: name, mean and, optionally, spread.
    missing : str
        The text of a group with runs but without an estimate, reason or warning.
    order, hues : sequence
        Categories and hues that come first, even if the table lacks them: for panels that share an axis.
    legend : bool
    ax : Axes, optional
        By default on a new figure of fitting size.
    """
    rows = place(table, category, hue, order=order, hues=hues, percent=percent, missing=missing)
    published = [] if references is None else references.to_dict("records")
    if rows.marks.empty:
        return style.nothing_to_draw(ax=ax)
    beside = 1 if hue == category else len(rows.series)
    styles = style.looks(rows.series)
    shown = legend and hue not in (None, category)
    handles = style.series_handles(names_of(rows.series), list(styles.values())) if shown else []
    words, owns_figure = category.replace("_", " "), ax is None
    ax = ax or style.new_axes(WIDTH, _height(rows, beside, len(published), words) + style.legend_height(handles, WIDTH))
    strong = _is_strong(rows.marks["key"], highlight) | _is_strong(rows.marks["series"], highlight)
    for marks, pale in ((rows.marks[~strong], True), (rows.marks[strong], False)):
        _draw_estimates(ax, marks, styles, pale=pale, small=beside > 6)
    _draw_reasons(ax, rows.marks)
    if beside <= 6:
        draw_sizes(ax, rows.marks)
    if beside > 1:
        between = np.arange(1, len(rows.names)) - 0.5
        ax.hlines(between, 0, 1, color=style.GRID, lw=0.8, zorder=0, transform=ax.get_yaxis_transform())
    _name_rows(ax, rows.names, words, published)
    draw_references(ax, published, len(rows.names))
    _scale(ax, rows.marks[["x", "low", "high"]], percent, scale)
    ax.set_xlabel(f"{xlabel} with 95 % interval" if rows.marks["low"].notna().any() else xlabel)
    style.fit_labels(ax, WIDTH - 2.4, style.figure_of(ax).get_figheight() if owns_figure else 9)
    style.legend_below(ax, handles, owns_figure=owns_figure)
    return ax


@style.themed
def strips(
    values: pd.DataFrame,
    category: str,
    value: str,
    *,
    means: pd.DataFrame | None = None,
    highlight: Hashable = None,
    xlabel: str = "score",
    percent: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw every value as a small point, and per category the mean with its interval below them.

    Parameters
    ----------
    values : DataFrame
        With the columns named and, optionally, tip and href, one row per value; missing values are left out.
    category : str
        Column of the rows.
    value : str
    means : DataFrame, optional
        Means with `category`, estimate, low, high, n, in the order of the rows; by default plain means, without
        intervals.
    highlight : optional
        The category that is emphasised; the others are drawn pale.
    xlabel : str
    percent : bool
        Whether values are shares from 0 to 1.
    ax : Axes, optional
    """
    values = values.dropna(subset=value)
    if means is None:
        grouped = values.groupby(category, sort=False, dropna=False)[value]
        means = grouped.agg(["mean", "size"]).reset_index().set_axis([category, "estimate", "n"], axis=1)
    rows = place(means, category, category, percent=percent)
    if rows.marks.empty:
        return style.nothing_to_draw(ax=ax)
    words, owns_figure = category.replace("_", " "), ax is None
    ax = ax or style.new_axes(WIDTH, max(1.1 + 0.6 * len(rows.names), 0.65 + 0.09 * len(words)))
    styles = style.looks(rows.names)
    points = _values(values, category, value, rows.names, percent)
    means_below = rows.marks.assign(y=rows.marks["y"] + 0.28)
    for pale in (True, False):
        single, mean = (marks[_is_strong(marks["series"], highlight) != pale] for marks in (points, means_below))
        draw_points(ax, single, styles, size=18, alpha=0.3 if pale else 0.6, edge=0)
        _draw_estimates(ax, mean, styles, pale=pale, small=False)
    _draw_reasons(ax, means_below)
    draw_sizes(ax, rows.marks)
    _name_rows(ax, rows.names, words)
    _scale(ax, pd.concat([rows.marks[["x", "low", "high"]], pd.DataFrame({"x": values[value]})]), percent, "linear")
    bounded = " with 95 % interval" if rows.marks["low"].notna().any() else ""
    ax.set_xlabel(f"{xlabel}; small: single values, large: mean{bounded}")
    style.fit_labels(ax, WIDTH - 2.4, style.figure_of(ax).get_figheight() if owns_figure else 9)
    return ax


@style.themed
def shares(
    table: pd.DataFrame,
    category: str,
    parts: Mapping[str, Look] | Sequence[str],
    *,
    share: bool = True,
    xlabel: str = "share of runs; the numbers are counts",
    ax: Axes | None = None,
) -> Axes:
    """Draw counts as one stacked bar per row; parts differ in colour and hatch, and are labelled with their counts.

    Parameters
    ----------
    table : DataFrame
        One row per bar, with `category`, a column of counts per part and, optionally, href, of the bar or as a mapping
        of its parts. Bars without any counts are not drawn.
    category : str
    parts : mapping of column to Look, or sequence of columns
        From left to right. A look's text is the part's label in the legend.
    share : bool
        Whether all bars have the same length, else that of their sum.
    xlabel : str
    ax : Axes, optional
    """
    styles = parts if isinstance(parts, Mapping) else style.looks(parts)
    bars = stacked(table, category, {part: look.text or part for part, look in styles.items()}, share=share)
    if bars.empty:
        return style.nothing_to_draw(ax=ax)
    present = [part for part in styles if bars["part"].eq(part).any()]
    handles = style.area_handles([styles[part].text or part for part in present], [styles[part] for part in present])
    totals = bars.groupby("row")[["total", "width"]].agg({"total": "first", "width": "sum"})
    owns_figure, full_length = ax is None, 1.0 if share else totals["width"].max()
    ax = ax or style.new_axes(WIDTH, 1.0 + 0.42 * len(totals) + style.legend_height(handles, WIDTH))
    for part in present:
        _draw_part(ax, bars[bars["part"] == part], styles[part], full_length)
    for row, total in totals["total"].items():
        ax.annotate(f"n={total:.0f}", (1.0, row), (4, 0), size=8, **BESIDE)
    _name_rows(ax, bars.groupby("row")["name"].first().tolist(), "")
    ax.grid(False)
    ax.set_xlabel(xlabel)
    if share:
        style.percent_axis(ax)
    else:
        ax.locator_params(axis="x", integer=True)
    ax.set_xlim(0, full_length)
    style.fit_labels(ax, WIDTH - 2.4, 9)
    style.legend_below(ax, handles, owns_figure=owns_figure)
    return ax


def _is_strong(names: pd.Series, highlight: Hashable) -> pd.Series:
    return names.eq(key_of(highlight)) | (highlight is None)


def _draw_estimates(ax: Axes, marks: pd.DataFrame, styles: Mapping[Hashable, Look], *, pale: bool, small: bool) -> None:
    alpha = 0.45 if pale else 1.0
    for series, group in marks.groupby("series", sort=False, dropna=False):
        draw_intervals(ax, group, styles[key_of(series)].colour, width=1.6 if pale or small else 2.4, alpha=alpha)
    draw_points(ax, marks[marks["x"].notna()], styles, size=30 if pale else 40 if small else 56, alpha=alpha)


def _draw_reasons(ax: Axes, marks: pd.DataFrame) -> None:
    for mark in marks[marks["x"].isna()].itertuples():
        ax.annotate(style.label(mark.reason, 60), (0.0, mark.y), (6, 0), style="italic", size=8, **BESIDE)


def _values(values: pd.DataFrame, category: str, value: str, names: Keys, percent: bool) -> pd.DataFrame:
    """Position single values on the rows of their categories, close ones side by side."""
    places = {name: float(y) for y, name in enumerate(names)}
    points = values.assign(x=values[value].astype(float), series=[key_of(name) for name in values[category]])
    points = points[points["series"].map(lambda name: name in places).astype(bool)]
    links = list(map(link_of, points.to_dict("records")))
    points = points.assign(y=[places[name] for name in points["series"]], href=links)
    for _, row in points.groupby("y"):
        points.loc[row.index, "y"] += 0.55 * swarm(row["x"].to_numpy()) - 0.1
    texts = (format_interval(x, None, None, percent=percent) for x in points["x"])
    tips = [f"{name_of(name)}: {text}" for name, text in zip(points["series"], texts, strict=True)]
    given = points["tip"] if "tip" in points else [""] * len(points)
    return points.assign(tip=[text or tip for text, tip in zip(given, tips, strict=True)])


def _draw_part(ax: Axes, bars: pd.DataFrame, look: Look, full_length: float) -> None:
    drawn = ax.barh(
        bars["row"], bars["width"], left=bars["left"], height=0.68,
        color=look.colour, hatch=look.hatch, edgecolor=style.GROUND, linewidth=0.8,
    )  # fmt: skip
    box = {"facecolor": style.GROUND, "alpha": 0.85, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    for patch, bar in zip(drawn, bars.to_dict("records"), strict=True):
        attach(patch, [bar["tip"]], [bar["href"]])
        if bar["width"] >= (0.025 + 0.015 * len(text := f"{bar['n']:.0f}")) * full_length:
            centre = bar["left"] + bar["width"] / 2, bar["row"]
            ax.text(*centre, text, color=style.INK, ha="center", va="center", size=8.5, bbox=box)


def _name_rows(ax: Axes, names: Keys, words: str, published: Sequence[Mapping[Hashable, Any]] = ()) -> None:
    texts = [*style.labels(names_of(names), 30), *style.labels([row["name"] for row in published], 30)]
    ax.set_yticks(range(len(texts)), texts)
    ax.set_ylim(len(texts) - 0.45, -0.55)
    ax.set_ylabel(words)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)


def _scale(ax: Axes, numbers: pd.DataFrame, percent: bool, scale: str) -> None:
    lowest, highest = float(numbers.min().min()), float(numbers.max().max())
    if percent:
        style.percent_axis(ax)
        ax.set_xlim(np.nanmin([-0.02, lowest]), np.nanmax([1.02, highest]))
    elif scale == "symlog":
        end = max(np.nan_to_num(highest), 100)
        shown = [tick for tick in _TICKS if tick <= end]
        ax.set_xscale("symlog", linthresh=1, linscale=0.5)
        ax.set_xticks(shown, [str(tick) for tick in shown])
        ax.minorticks_off()
        ax.set_xlim(min(0, np.nan_to_num(lowest)), end * 1.05)
    elif lowest < 0:
        ax.axvline(0, color=style.EDGE, lw=0.8, zorder=0)


def _height(rows: Rows, beside: int, published: int, words: str) -> float:
    """Return the height of a figure for its rows and for the vertical label beside them."""
    row = 0.3 if beside == 1 else 0.165 * beside if beside <= 6 else 0.11 * beside
    return max(0.95 + max(row, 0.3) * len(rows.names) + 0.3 * published, 0.65 + 0.09 * len(words))
