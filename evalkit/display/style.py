"""The look of figures: one theme, a colour-blind palette, and a marker as second cue.

Figures are made without pyplot, so that nothing depends on a notebook's plotting backend and nothing stays open.
"""

from collections.abc import Iterable
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evalkit.io import plain
from evalkit.io.text import shorten

# Okabe and Ito, "Color Universal Design" (2008), without the yellow that is too pale on white
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#595959", "#8C6BB1")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

THEME = {
    "axes.edgecolor": "#8a8f98",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": "#30343b",
    "axes.prop_cycle": mpl.cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.size": 10.5,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "text.parse_math": False,  # names come from logs: a dollar sign is a dollar sign
    "xtick.color": "#30343b",
    "ytick.color": "#30343b",
}


def new_figure(width: float = 7.0, height: float = 3.6) -> Figure:
    """Make an empty figure in the kit's theme; sizes in inches."""
    with mpl.rc_context(THEME):
        return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float = 7.0, height: float = 3.6, **subplots) -> Axes:
    """Make axes on a figure of their own, in the kit's theme.

    Parameters
    ----------
    width, height : float
        Size of the figure in inches.
    **subplots
        As for ``Figure.subplots``; with ``nrows`` or ``ncols`` an array of axes comes back.
    """
    with mpl.rc_context(THEME):
        return new_figure(width, height).subplots(**subplots)


def nothing_to_draw(what: str = "runs", ax: Axes | None = None) -> Axes:
    """Say on otherwise empty axes that there are no runs (episodes, steps) of this kind."""
    ax = ax or new_axes(7, 1.0)
    ax.text(0.5, 0.5, f"no {what} of this kind", ha="center", va="center", color="#5b616b", transform=ax.transAxes)
    ax.set_axis_off()
    return ax


def colours(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Give every name a colour and a marker, the same ones for the same list of names.

    With more names than colours the pairs still differ: the marker moves on at every round.
    """
    out = {}
    for i, name in enumerate(dict.fromkeys(names)):
        out[name] = (PALETTE[i % len(PALETTE)], MARKERS[(i + i // len(PALETTE)) % len(MARKERS)])
    return out


def label(text: object, width: int = 32) -> str:
    """Make a name from a log fit to be drawn: one line of plain text of at most `width` characters.

    A longer one is cut in the middle: the names of models differ at both ends.
    """
    return shorten(plain(text), width)


def percent_axis(ax: Axes, which: Literal["x", "y"] = "x") -> Axes:
    """Show shares from 0 to 1 as percentages from 0 to 100 on one axis."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    (ax.set_xlim if which == "x" else ax.set_ylim)(-0.02, 1.02)
    return ax
