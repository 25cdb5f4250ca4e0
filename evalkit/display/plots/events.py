"""Timelines: a line of events per run."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from evalkit.display import style
from evalkit.display.plots.points import draw_points
from evalkit.display.plots.prepare import binned, keys, link_of
from evalkit.display.style import Look
from evalkit.display.words import key_of, name_of, names_of

WIDTH = 8.0  # of a figure, in inches
MANY = 4000  # events that are drawn one by one; of more, those at nearby positions share a mark
PLACES = 160  # of such marks side by side
_ROOM = 380  # width of the axes for events, in points


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

    Of more than 4,000 events, those at nearby positions of a line share a mark: that of their most frequent kind.

    Parameters
    ----------
    table : DataFrame
        One row per event, optionally with tip and href. Events of a kind that `kinds` lacks are not drawn, but their
        line is.
    row, x, kind : str
        Columns of the lines, of the positions (numbers) and of the kinds of events.
    kinds : mapping of kind to Look
        A look's text is its label in the legend. If marks overlap, those of the kinds named last are in front.
    xlabel : str
    path : bool
        Whether to connect all events in their order, across the lines.
    ax : Axes, optional
    """
    if table.empty:
        return style.nothing_to_draw("events", ax)
    width = 1
    if len(table) > MANY:
        width = math.ceil((table[x].max() - table[x].min() + 1) / PLACES)
        table = binned(table, row, x, kind, width)
        xlabel = f"{xlabel}; each mark: the most frequent kind of {width} places"
    names = keys(table[row])
    places = {name: y for y, name in enumerate(names)}
    events = table.assign(_y=[places[key_of(name)] for name in table[row]])
    present = {name: look for name, look in kinds.items() if events[kind].eq(name).any()}
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, ls="", ms=7, label=style.label(look.text or name))
        for name, look in present.items()
    ]
    owns_figure, first, last = ax is None, events[x].min(), events[x].max()
    side = min(max(_ROOM * width / (last - first + width), 3.0), 7.0)
    ax = ax or style.new_axes(WIDTH, 1.1 + 0.27 * max(len(names), 2) + style.legend_height(handles, WIDTH))
    ax.hlines(range(len(names)), first, last, color=style.PALE, lw=0.5, zorder=0)
    if path:
        ax.plot(events[x], events["_y"], color=style.PALE, lw=1, zorder=1)
    draw_points(ax, _points(events, row, x, kind, present), present, size=side**2, edge=0.6 if side > 4 else 0)
    ax.set_yticks(range(len(names)), style.labels(names_of(names), 36))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(xlabel)
    ax.set_ylabel("")
    ax.grid(False)
    style.fit_labels(ax, WIDTH - 2.6, 9)
    style.legend_below(ax, handles, owns_figure=owns_figure)
    return ax


def _points(events: pd.DataFrame, row: str, x: str, kind: str, kinds: Mapping[Any, Look]) -> pd.DataFrame:
    """Position events of known kinds, those of the kinds named last in front."""
    ranks = {name: i for i, name in enumerate(kinds)}
    shown = events[events[kind].isin(list(kinds))].sort_values(kind, key=lambda names: names.map(ranks), kind="stable")
    records, where = shown.to_dict("records"), x.replace("_", " ")
    names = (kinds[record[kind]].text or record[kind] for record in records)
    made = (f"{name_of(r[row])}, {where} {name_of(r[x])}: {name}" for r, name in zip(records, names, strict=True))
    tips = [record.get("tip") or tip for record, tip in zip(records, made, strict=True)]
    marks = {"x": shown[x].astype(float), "y": shown["_y"].astype(float), "series": shown[kind], "tip": tips}
    return pd.DataFrame({**marks, "href": list(map(link_of, records))}, index=shown.index)
