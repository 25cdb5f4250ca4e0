"""Plots along an axis: curves with their intervals, and timelines with a line of events per run."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import style
from evalkit.display.plots import elements
from evalkit.display.plots.elements import Keys, link_of
from evalkit.display.style import Look
from evalkit.display.words import (
    about,
    describe_curves,
    describe_timeline,
    describe_value,
    key_of,
    name_of,
    names_of,
)

WIDTH, HEIGHT = 7.0, 3.4  # of a figure of curves, in inches
FEW = 12  # positions with a marker and an interval each; more get a band and sparse markers
_ROOM = 380  # width of the axes for events, in points
_DRAWN = {True: "steps-post", False: "default"}


@style.themed
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
    drawn = table[table[x].notna() & table["estimate"].notna()].sort_values(x, kind="stable")
    if drawn.empty:
        return style.nothing_to_draw(ax=ax)
    names = elements.keys(drawn[hue])
    owns_figure, is_sparse, looks = ax is None, drawn[x].nunique() <= FEW, style.looks(names)
    rows = _places(drawn, x, hue, names, percent=percent, dodge=dodge and is_sparse and highlight is None)
    shown = names if highlight is None else []
    sizes = {key_of(name): n for name, n in rows.groupby("series", dropna=False)["n"].max().items()}
    titles = [
        text if math.isnan(n := sizes.get(name, math.nan)) else f"{text} (n={n:.0f})"
        for text, name in zip(style.labels(names_of(shown)), shown, strict=True)
    ]
    entries = elements.legend_entries(titles, [looks[name] for name in shown], "line", 40)
    ax = ax or style.new_axes(WIDTH, HEIGHT + elements.legend_height(entries, WIDTH))
    strong = rows[rows["series"].eq(key_of(highlight)) | (highlight is None)]
    for _, other in rows.drop(strong.index).groupby("series", sort=False, dropna=False):
        ax.plot(other["x"], other["y"], color=style.PALE, lw=1, zorder=1, drawstyle=_DRAWN[steps])
    if len(strong):
        _draw_curves(ax, strong, looks, sparse=is_sparse, steps=steps)
    if highlight is not None and is_sparse:
        above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
        for place, n in strong[["x", "n"]].dropna(subset="n").itertuples(index=False):
            ax.annotate(f"n={n:.0f}", (place, 1.0), (0, 2), size=7.5, color=style.QUIET, **above)
    if is_sparse:
        ax.set_xticks(sorted(drawn[x].astype(float).unique()))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.margins(x=0.12)
    else:
        ax.locator_params(axis="x", integer=bool((drawn[x] % 1 == 0).all()))
    ax.set_xlabel(xlabel or x.replace("_", " "))
    ax.set_ylabel(f"{ylabel}, 95 % interval" if rows["low"].notna().any() else ylabel)
    if percent:
        style.percent_axis(ax, "y").set_ylim(-0.05, 1.05)
    else:
        ax.set_ylim(bottom=min(0, rows[["y", "low"]].min().min()))
    said = table if highlight is None else table[table[hue].map(key_of).eq(key_of(highlight))]
    alt = f"{about(ylabel, x)} {describe_curves(said, x, hue, percent=percent)}"
    return elements.finish(ax, WIDTH - 1.0, HEIGHT - 0.4, entries, owns_figure=owns_figure, alt=alt)


def _places(table: pd.DataFrame, x: str, hue: str, names: Keys, *, percent: bool, dodge: bool) -> pd.DataFrame:
    """Position the points of curves; with `dodge`, those at the same x lie side by side, so that none is hidden."""
    places = table[x].astype(float)
    gaps = np.diff(np.sort(places.unique()))
    apart = 0.3 * (float(gaps.min()) if len(gaps) else 1.0) / len(names) if dodge else 0.0
    series = [key_of(name) for name in table[hue]]
    records = table.to_dict("records")
    tips = [
        row.get("tip") or f"{name_of(row[hue])}, {name_of(row[x])}: {describe_value(row, percent=percent)}"
        for row in records
    ]
    shift = [(names.index(name) - (len(names) - 1) / 2) * apart for name in series]
    bounds = {name: table[name].astype(float) if name in table else np.nan for name in ("low", "high", "n")}
    marks = {"x": places + shift, "y": table["estimate"].astype(float), **bounds, "tip": tips}
    frame = pd.DataFrame({**marks, "href": list(map(link_of, records))}, index=table.index)
    return frame.assign(series=pd.Series(series, index=table.index, dtype="object")).reset_index(drop=True)


def _draw_curves(ax: Axes, rows: pd.DataFrame, looks: Mapping[Hashable, Look], *, sparse: bool, steps: bool) -> None:
    marked = []
    for series, curve in rows.groupby("series", sort=False, dropna=False):
        bounded, colour = curve.dropna(subset=["low", "high"]), looks[key_of(series)].colour
        line: dict[str, Any] = {"dashes": looks[key_of(series)].dashes or (None, None), "drawstyle": _DRAWN[steps]}
        ax.plot(curve["x"], curve["y"], color=colour, lw=1.8, zorder=3, **line)
        if sparse:
            ax.vlines(bounded["x"], bounded["low"], bounded["high"], color=colour, lw=2, alpha=0.7, zorder=2)
        elif len(bounded):
            band: dict[str, Any] = {"color": colour, "alpha": 0.15, "linewidth": 0, "step": "post" if steps else None}
            ax.fill_between(bounded["x"], bounded["low"], bounded["high"], **band)
        spaced = np.unique(np.linspace(0, len(curve) - 1, 7).round().astype(int))[1:]
        marked.append(curve if sparse or len(curve) < 2 else curve.iloc[spaced])
    elements.draw_points(ax, pd.concat(marked), looks, size=48)


@style.themed
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
        return style.nothing_to_draw("events", ax)
    names = elements.keys(table[row])
    events = table.assign(_y=[names.index(key_of(name)) for name in table[row]])
    present = {name: look for name, look in kinds.items() if events[kind].eq(name).any()}
    titles = [look.text or name for name, look in present.items()]
    entries = elements.legend_entries(titles, present.values(), "point")
    owns_figure, first, last, width_figure = ax is None, events[x].min(), events[x].max(), WIDTH + 1
    side = min(max(_ROOM / (last - first + 1), 3.0), 7.0)
    height = 1.1 + 0.27 * max(len(names), 2) + elements.legend_height(entries, width_figure)
    ax = ax or style.new_axes(width_figure, height)
    ax.hlines(range(len(names)), first, last, color=style.PALE, lw=0.5, zorder=0)
    if path:
        ax.plot(events[x], events["_y"], color=style.PALE, lw=1, zorder=1)

    ranks = {name: i for i, name in enumerate(present)}  # events of the kinds named last lie in front
    shown = events[events[kind].isin(list(present))]
    shown = shown.sort_values(kind, key=lambda names: names.map(ranks), kind="stable")
    tips, links = [], []
    for event in shown.to_dict("records"):
        place = f"{name_of(event[row])}, {x.replace('_', ' ')} {name_of(event[x])}"
        tips.append(event.get("tip") or f"{place}: {kinds[event[kind]].text or event[kind]}")
        links.append(link_of(event))
    points = pd.DataFrame({"x": shown[x].astype(float), "y": shown["_y"].astype(float), "series": shown[kind]})
    points = points.assign(tip=tips, href=links)
    elements.draw_points(ax, points, present, size=side**2, edge=0.6 if side > 4 else 0)

    ax.set_yticks(range(len(names)), style.labels(names_of(names), 36))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(xlabel)
    ax.set_ylabel("")
    ax.grid(False)
    alt = describe_timeline(table, row, kind, kinds)
    return elements.finish(ax, width_figure - 2.6, legend=entries, owns_figure=owns_figure, alt=alt)
