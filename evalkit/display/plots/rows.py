"""Plots with a row per group: estimates with intervals, single values, stacked shares."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit._words import format_interval, number
from evalkit.display import style
from evalkit.display.drawing import attach
from evalkit.display.plots import elements
from evalkit.display.plots.elements import BESIDE, Keys, link_of
from evalkit.display.style import Look
from evalkit.display.words import (
    about,
    describe_estimates,
    describe_shares,
    describe_value,
    is_empty,
    key_of,
    name_of,
    names_of,
    reason_of,
    size_of,
)
from evalkit.io.text import shorten

WIDTH = 7.0  # of a figure, in inches
ROOM = WIDTH - 2.4  # for the label below, beside the names of rows
LANES = 13  # of single values in a row


@style.themed
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
    marks, names, series = _place(table, category, hue, order, percent)
    published = [] if references is None else references.to_dict("records")
    if marks.empty:
        return style.nothing_to_draw(ax=ax)
    beside = 1 if hue == category else len(series)
    looks, words, owns_figure = style.looks(series), category.replace("_", " "), ax is None
    has_legend = hue not in (None, category)
    entries = elements.legend_entries(names_of(series), looks.values(), "line") if has_legend else []
    if ax is None:
        of_row = 0.3 if beside == 1 else 0.165 * beside if beside <= 6 else 0.11 * beside
        height = 0.95 + max(of_row, 0.3) * len(names) + 0.3 * len(published)
        height = max(height, 0.65 + 0.09 * len(words))  # of the vertical label
        ax = style.new_axes(WIDTH, height + elements.legend_height(entries, WIDTH))
    strong = _is_strong(marks["key"], highlight) | _is_strong(marks["series"], highlight)
    for some, pale in ((marks[~strong], True), (marks[strong], False)):
        _draw_estimates(ax, some, looks, pale=pale, small=beside > 6)
    _write_beside(ax, marks, marks if beside <= 6 else marks[:0], percent, valued=beside <= 2 and owns_figure)
    if beside > 1:
        between = np.arange(1, len(names)) - 0.5
        ax.hlines(between, 0, 1, color=style.GRID, lw=0.8, zorder=0, transform=ax.get_yaxis_transform())
    _name_rows(ax, names, words, [row["name"] for row in published])
    first = len(names)
    for y, row in enumerate(published, start=first):  # in grey below the rows, each with a line through them
        ax.plot([row["mean"]] * 2, [-0.55, y], color=style.QUIET, lw=0.7, ls=(0, (4, 3)), alpha=0.6, zorder=0)
        ax.errorbar(row["mean"], y, xerr=number(row.get("spread")), fmt="|", color=style.QUIET, ms=9, lw=1.6)
    if published:
        ax.axhspan(first - 0.5, first + len(published) - 0.45, color=style.SHADE, zorder=-1)
    _scale(ax, marks[["x", "low", "high"]], percent)
    ax.set_xlabel(f"{xlabel} with 95 % interval" if marks["low"].notna().any() else xlabel)
    high = style.figure_of(ax).get_figheight() if owns_figure else 9
    keys = list(dict.fromkeys(filter(None, (category, hue))))
    alt = f"{about(xlabel, *keys)} {describe_estimates(table, *keys, percent=percent)}"
    return elements.finish(ax, ROOM, high, entries, owns_figure=owns_figure, alt=alt)


@style.themed
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
    values = values.dropna(subset=value)
    marks, names, _ = _place(means, category, category, percent=percent)
    if marks.empty:
        return style.nothing_to_draw(ax=ax)
    words, owns_figure, looks = category.replace("_", " "), ax is None, style.looks(names)
    ax = ax or style.new_axes(WIDTH, max(1.1 + 0.6 * len(names), 0.65 + 0.09 * len(words)))

    drawn = []
    for row in values.to_dict("records"):
        name, x = key_of(row[category]), float(row[value])
        if name in looks:
            tip = row.get("tip") or f"{name_of(name)}: {format_interval(x, None, None, percent=percent)}"
            drawn.append((x, float(names.index(name)), name, tip, link_of(row)))
    points = pd.DataFrame(drawn, columns=["x", "y", "series", "tip", "href"]).astype({"series": "object"})
    lane = 5 * points.groupby("y")["x"].rank(method="first") % LANES  # those next to each other lie in different ones
    points["y"] += 0.55 * (lane / LANES - 0.5) - 0.1

    below = marks.assign(y=marks["y"] + 0.28)
    for pale in (True, False):
        single, mean = (some[_is_strong(some["series"], highlight) != pale] for some in (points, below))
        elements.draw_points(ax, single, looks, size=18, alpha=0.3 if pale else 0.6, edge=0)
        _draw_estimates(ax, mean, looks, pale=pale, small=False)
    _write_beside(ax, below, marks, percent, valued=owns_figure)
    _name_rows(ax, names, words)
    _scale(ax, pd.concat([marks[["x", "low", "high"]], pd.DataFrame({"x": values[value]})]), percent)
    bounded = " with 95 % interval" if marks["low"].notna().any() else ""
    ax.set_xlabel(f"{xlabel}; small: single values, large: mean{bounded}")
    alt = f"{about(xlabel, category)} {describe_estimates(means, category, percent=percent)}"
    return elements.finish(ax, ROOM, style.figure_of(ax).get_figheight() if owns_figure else 9, alt=alt)


@style.themed
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
    counts = table[list(parts)].astype(float).fillna(0)
    filled = counts.sum(axis=1).to_numpy() > 0
    if not filled.any():
        return style.nothing_to_draw(ax=ax)
    counts, rows = counts[filled], table[filled].to_dict("records")
    totals = counts.sum(axis=1).to_numpy()
    present = {part: look for part, look in parts.items() if counts[part].any()}
    entries = elements.legend_entries([look.text or part for part, look in present.items()], present.values(), "area")
    owns_figure = ax is None
    ax = ax or style.new_axes(WIDTH, 1.0 + 0.42 * len(rows) + elements.legend_height(entries, WIDTH))
    box = {"facecolor": style.GROUND, "alpha": 0.85, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    left = np.zeros(len(rows))
    for part, look in present.items():
        numbers = counts[part].to_numpy()
        widths, drawn = numbers / totals, np.flatnonzero(numbers).tolist()
        bars = ax.barh(
            drawn, widths[drawn], left=left[drawn], height=0.68,
            color=look.colour, hatch=look.hatch, edgecolor=style.GROUND, linewidth=0.8,
        )  # fmt: skip
        for bar, y in zip(bars, drawn, strict=True):
            n, text, of = numbers[y], f"{numbers[y]:.0f}", f"{totals[y]:,.0f} ({numbers[y] / totals[y] * 100:.0f} %)"
            tip = f"{name_of(rows[y][category])}: {n:,.0f} {look.text or part} of {of}"
            attach(bar, [tip], [link_of(rows[y], part)])
            if widths[y] >= 0.025 + 0.015 * len(text):
                ax.text(left[y] + widths[y] / 2, y, text, color=style.INK, ha="center", va="center", size=8.5, bbox=box)
        left = left + widths
    for y, total in enumerate(totals):
        ax.annotate(f"n={total:.0f}", (1.0, y), (4, 0), size=8, **BESIDE)
    _name_rows(ax, [name_of(row[category]) for row in rows], "")
    ax.grid(False)
    ax.set_xlabel("share of runs; the numbers are counts")
    style.percent_axis(ax).set_xlim(0, 1)
    alt = f"{about('counts', category)} {describe_shares(table, category, parts)}"
    return elements.finish(ax, ROOM, legend=entries, owns_figure=owns_figure, alt=alt)


def _place(
    table: pd.DataFrame,
    category: str,
    hue: str | None = None,
    order: Keys = (),
    percent: bool = True,
) -> tuple[pd.DataFrame, list, list]:
    """Position estimates on rows, from top to bottom; return the marks, the keys of rows and those of series.

    The series of a row share 0.8 of its height; where `hue` is `category`, each row is a series of its own. None is the
    key of missing values. A group with data but without an estimate gets its reason.
    """
    groups = [row for row in table.to_dict("records") if not is_empty(row)]
    names = elements.keys((row[category] for row in groups), order)
    series = names if hue == category else elements.keys(row[hue] for row in groups) if hue else [None]
    beside = 1 if hue == category else len(series)
    marks = []
    for row in groups:
        key, member = key_of(row[category]), key_of(row[hue]) if hue else None
        offset = 0 if beside == 1 else (series.index(member) - (beside - 1) / 2) * 0.8 / beside
        reason = reason_of(row, "no score") if number(row["estimate"]) is None else ""
        title = ", ".join(name_of(row[column]) for column in dict.fromkeys(filter(None, (category, hue))))
        numbers = (number(row.get(name)) for name in ("estimate", "low", "high"))
        tip = row.get("tip") or f"{title}: {describe_value({**row, 'reason': reason}, percent=percent)}"
        marks.append((key, member, names.index(key) + offset, *numbers, size_of(row), reason, tip, link_of(row)))
    columns = ["key", "series", "y", "x", "low", "high", "n", "reason", "tip", "href"]
    types = {"key": "object", "series": "object"} | dict.fromkeys(("y", "x", "low", "high", "n"), "float64")
    return pd.DataFrame(marks, columns=columns).astype(types), names, series


def _is_strong(names: pd.Series, highlight: Hashable) -> pd.Series:
    return names.eq(key_of(highlight)) | (highlight is None)


def _draw_estimates(ax: Axes, marks: pd.DataFrame, looks: Mapping[Hashable, Look], *, pale: bool, small: bool) -> None:
    alpha = 0.45 if pale else 1.0
    for series, group in marks.groupby("series", sort=False, dropna=False):
        bounded = group.dropna(subset=["x", "low", "high"])
        if len(bounded):
            line: dict[str, Any] = {"color": looks[key_of(series)].colour, "lw": 1.6 if pale or small else 2.4}
            ax.hlines(bounded["y"], bounded["low"], bounded["high"], alpha=alpha, zorder=2, **line)
    elements.draw_points(ax, marks[marks["x"].notna()], looks, size=30 if pale else 40 if small else 56, alpha=alpha)


def _write_beside(ax: Axes, marks: pd.DataFrame, sized: pd.DataFrame, percent: bool, *, valued: bool) -> None:
    """Write the reason in the place of a missing estimate; beside `sized` marks n, and the estimate if `valued`."""
    for mark in marks[marks["x"].isna()].itertuples():
        ax.annotate(shorten(str(mark.reason), 60), (0.0, mark.y), (6, 0), style="italic", size=8, **BESIDE)
    for y, x, low, high, n in sized[["y", "x", "low", "high", "n"]].to_numpy(dtype=float).tolist():
        value = [format_interval(x, low, high, percent=percent)] * (valued and not math.isnan(x))
        text = ", ".join([*value, *[f"n={n:.0f}"] * (not math.isnan(n))])
        ax.annotate(text, (1.0, y), (4, 0), size=8, **BESIDE)


def _name_rows(ax: Axes, names: Keys, words: str, published: Sequence[str] = ()) -> None:
    texts = [*style.labels(names_of(names), 30), *style.labels(published, 30)]
    ax.set_yticks(range(len(texts)), texts)
    ax.set_ylim(len(texts) - 0.45, -0.55)
    ax.set_ylabel(words)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)


def _scale(ax: Axes, numbers: pd.DataFrame, percent: bool) -> None:
    lowest, highest = float(numbers.min().min()), float(numbers.max().max())
    if percent:
        style.percent_axis(ax)
        ax.set_xlim(np.nanmin([-0.02, lowest]), np.nanmax([1.02, highest]))
    elif lowest < 0:
        ax.axvline(0, color=style.EDGE, lw=0.8, zorder=0)
