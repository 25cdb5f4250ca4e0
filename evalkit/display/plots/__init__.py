"""Plots, one function per type: each takes a frame and axes, and returns axes.

Every interval drawn is a pair of columns of the frame, low and high; nothing is estimated here.
"""

from evalkit.display.plots.cells import heatmap
from evalkit.display.plots.curves import curves
from evalkit.display.plots.events import timeline
from evalkit.display.plots.facets import facets
from evalkit.display.plots.prepare import mirrored
from evalkit.display.plots.rows import estimates, shares, strips

__all__ = ["curves", "estimates", "facets", "heatmap", "mirrored", "shares", "strips", "timeline"]


def __dir__() -> list[str]:
    return sorted(__all__)
