"""Render figures as SVG: compact, reproducible, following light and dark, with tooltips and links.

Text stays text, in the reader's own font. A style sheet assigns colours to the tones of `evalkit.display.style`.
"""

import io
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure

from evalkit.display.compact import compact
from evalkit.display.marks import marked
from evalkit.display.style import TONES, is_themed
from evalkit.io import plain

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "evalkit"}
PIXELS = 100  # of a page per inch of a figure

_INVALID = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters not allowed in XML


class Canvas(FigureCanvasSVG):
    """A canvas that measures text as wide as readers' fonts may draw it."""

    def get_renderer(self) -> RendererSVG:
        """Return a renderer for laying out the figure."""
        return self.renderer(io.StringIO())

    def renderer(self, stream: TextIO) -> RendererSVG:
        """Return a renderer that writes to a stream."""
        width, height = self.figure.get_size_inches() * 72
        return _Renderer(width, height, stream, image_dpi=72, metadata=dict(_NO_METADATA))


class _Renderer(RendererSVG):
    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        """Measure text, cached for all renderers.

        The default font has no wide characters (CJK, emoji), and counts them as narrow ones.
        """
        key = (s, hash(prop), ismath)
        if key not in _measured:
            if len(_measured) > 10_000:
                _measured.clear()
            width, height, descent = super().get_text_width_height_descent(s, prop, ismath)
            wide = 0 if s.isascii() else sum(unicodedata.east_asian_width(character) in "WF" for character in s)
            _measured[key] = width + 0.45 * wide * prop.get_size_in_points(), height, descent
        return _measured[key]

    def draw_path_collection(
        self, gc: Any, master_transform: Any, paths: Any, all_transforms: Any, offsets: Any, *args: Any, **options: Any
    ) -> None:
        """Draw a collection; seaborn sets a path and a size for every point, though few of them differ."""
        sizes = [np.asarray(size).tobytes() for size in all_transforms] or [b""]
        kinds: dict[tuple, list[int]] = {}
        for i, path in enumerate(paths):
            kinds.setdefault((id(path), sizes[i % len(sizes)]), []).append(i)
        if not len(kinds) < len(paths) == len(offsets):
            super().draw_path_collection(gc, master_transform, paths, all_transforms, offsets, *args, **options)
            return
        offset_trans, *properties, position = args
        draw: Any = super().draw_path_collection  # the stubs have an earlier signature
        for at in kinds.values():
            transforms = all_transforms[at[0] % len(all_transforms) :][:1]
            rest = [offset_trans, *(_of(values, at) for values in properties), position]
            more = {name: _of(values, at) for name, values in options.items()}
            draw(gc, master_transform, [paths[at[0]]], transforms, _of(offsets, at), *rest, **more)


def _of(values: Any, at: Sequence[int]) -> Any:
    """Select the values at some points; fewer values than points are repeated cyclically."""
    return values if values is None or len(values) < 2 else [values[i % len(values)] for i in at]


_measured: dict[tuple, tuple[float, float, float]] = {}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def draw_svg(figure: Figure, alt: str) -> str:
    """Render a figure that is laid out already, at 72 dpi and with a canvas that can draw; `alt` is plain text.

    Returns an ``svg`` element for a file or a page, with its own style for light and dark, no script, and ids that no
    other figure has.
    """
    stream = io.StringIO()
    width, height = figure.get_size_inches()
    with mpl.rc_context(SETTINGS), marked(figure) as marks:
        renderer = Canvas(figure).renderer(stream)
        mixed: Any = MixedModeRenderer(figure, width, height, 72, renderer)
        figure.draw(mixed)
        renderer.finalize()
    root = ElementTree.fromstring(_INVALID.sub("\ufffd", stream.getvalue()))
    compact(root, marks, themed=is_themed(figure))
    return _written(root, figure, alt, linked=any(mark.href for mark in marks))


def _written(root: ElementTree.Element, figure: Figure, alt: str, *, linked: bool) -> str:
    inner = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    width, height = (f"{size * PIXELS:.0f}" for size in figure.get_size_inches())
    about = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "evalkit-figure" + " themed" * is_themed(figure),
        "role": "group" if linked else "img",  # the keyboard can't reach what is in an image
        "aria-label": plain(alt),
        "width": width,
        "height": height,
        "viewBox": root.get("viewBox", ""),
        "font-family": FONTS,
        "stroke-linejoin": "round",
    }
    shell = ElementTree.tostring(ElementTree.Element("svg", about), encoding="unicode")
    return f"{shell.removesuffix(' />')}>{_style(inner)}{inner}</svg>\n"


def _style(inner: str) -> str:
    """Write the style sheet of the tones that are used, for light and dark."""
    classes = {name for names in re.findall(r'class="([^"]*)"', inner) for name in names.split()}
    used = [name.split("-", 1) for name in sorted(classes)]
    rules = ["".join(f".{key}-{name}{{{key}:{TONES[name][scheme]}}}" for key, name in used) for scheme in (0, 1)]
    return f"<style>{rules[0]}@media(prefers-color-scheme:dark){{{rules[1]}}}</style>" if used else ""
