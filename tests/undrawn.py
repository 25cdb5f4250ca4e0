"""Reports without figures, or with fewer forms of them, for tests that do not look at these.

Drawing takes half of the time of a report.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf


def undrawn() -> AbstractContextManager:
    """Leave out figures, in this process and those that it forks."""
    return mock.patch("evalkit.display.show.has_nothing_to_draw", return_value=True)


@contextmanager
def drawn_as_svg() -> Iterator[None]:
    """Draw figures as SVG, which pages show, in this process and those that it forks: no PDF, and an empty PNG."""
    with (
        mock.patch.object(FigureCanvasAgg, "draw", FigureCanvasAgg.get_renderer),  # which is empty
        mock.patch.object(FigureCanvasPdf, "print_pdf"),
    ):
        yield
