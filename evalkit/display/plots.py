"""One function for each shape of picture: frames and axes in, axes out.

Every interval drawn is a pair of columns of the frame, low and high; nothing is estimated here.
"""

from evalkit.display.cells import heatmap
from evalkit.display.curves import curves
from evalkit.display.events import timeline
from evalkit.display.facets import facets
from evalkit.display.prepare import mirrored
from evalkit.display.rows import estimates, shares, strips

__all__ = ["curves", "estimates", "facets", "heatmap", "mirrored", "shares", "strips", "timeline"]


def __dir__() -> list[str]:
    return sorted(__all__)
