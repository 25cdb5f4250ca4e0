"""Plots, one function per type: each takes a frame and axes, and returns axes.

Every interval drawn is a pair of columns of the frame, low and high; nothing is estimated here.
"""

from evalkit.display.plots.cells import heatmap, mirrored
from evalkit.display.plots.elements import facets
from evalkit.display.plots.lines import curves, timeline
from evalkit.display.plots.rows import estimates, shares, strips

__all__ = ["curves", "estimates", "facets", "heatmap", "mirrored", "shares", "strips", "timeline"]
