"""Render figures as SVG, PNG and PDF with one layout."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text
from PIL import Image

from evalkit.display.narrow import narrow as lay_out_narrow
from evalkit.display.style import THEME, is_themed
from evalkit.display.svg import Canvas, draw_svg
from evalkit.io import plain

DPI = 144  # of PNG
LARGEST = 1_000_000  # characters of an SVG; a figure of more is a PNG
LARGEST_TWICE = 200_000  # characters of one that is also drawn for narrow windows


class Drawing(NamedTuple):
    """A figure in the formats for pages, front ends and papers; empty if not made."""

    svg: str
    png: bytes
    pdf: bytes
    narrow: str = ""  # SVG for narrow windows


def draw(figure: Figure, alt: str, *, pdf: bool = False, narrow: bool = False) -> Drawing:
    """Lay out a figure once and render it in all formats; text is plain, never a formula.

    The figure is left unchanged except for the positions of its axes; drawn for `narrow` windows too, it keeps that
    layout. The PDF embeds its fonts, and its bytes are reproducible.
    """
    for text in figure.findobj(Text):  # also what was written outside the theme, such as legends and notes
        text.set_parse_math(False)
        text.set_text(plain(text.get_text(), keep_lines=True))
    with laid_out(figure):
        svg = draw_svg(figure, alt)
        drawing = Drawing(svg if len(svg) <= LARGEST else "", _png(figure), _pdf(figure) if pdf else b"")
    if not narrow or not 0 < len(drawing.svg) <= LARGEST_TWICE or not is_themed(figure):
        return drawing
    with prepared(figure):
        return drawing._replace(narrow=draw_svg(figure, alt)) if lay_out_narrow(figure) else drawing


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Lay out a figure as in `prepared` and keep the layout fixed within a ``with`` block; then restore its engine."""
    engine = figure.get_layout_engine()
    with prepared(figure):
        try:
            if engine is not None:
                engine.execute(figure)
                figure.set_layout_engine("none")
            yield
        finally:
            if engine is not None:
                figure.set_layout_engine(engine)


@contextmanager
def prepared(figure: Figure) -> Iterator[None]:
    """Set a figure to 72 dpi and a canvas that can draw within a ``with`` block; restore its own afterwards."""
    canvas, dpi = figure.canvas, figure.get_dpi()
    try:
        with mpl.rc_context(THEME), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # readers' fonts may have it
            figure.set_dpi(72)
            Canvas(figure)
            yield
    finally:
        figure.set_canvas(canvas)
        figure.set_dpi(dpi)


def _png(figure: Figure) -> bytes:
    figure.set_dpi(DPI)
    agg = FigureCanvasAgg(figure)
    agg.draw()
    image = Image.fromarray(np.asarray(agg.buffer_rgba())).convert("RGB")
    if not figure.findobj(AxesImage):  # flat colours: a third of the size, and quicker to compress
        image = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        palette = image.getpalette() or ()  # white comes out a little grey
        image.putpalette([255 if channel == 254 else channel for channel in palette])
    buffer = io.BytesIO()
    image.save(buffer, format="png", dpi=(DPI, DPI))
    figure.set_dpi(72)
    return buffer.getvalue()


def _pdf(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    FigureCanvasPdf(figure).print_pdf(buffer, metadata={"CreationDate": None, "Producer": None, "Creator": None})
    return buffer.getvalue()
