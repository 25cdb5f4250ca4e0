"""SVG of figures: small, the same every time, following light and dark, with tooltips and links.

What matplotlib writes is taken apart and written anew: texts stay texts in the reader's own font, styles become
attributes, the tones of `evalkit.display.style` become classes that a style sheet colours for light and dark.
"""

import hashlib
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TextIO
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure

from evalkit.display.marks import TOKEN, Mark, marked
from evalkit.display.style import TONES, is_themed
from evalkit.io import plain
from evalkit.io.text import is_local_link

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "evalkit", "svg.id": None}
PIXELS = 100  # of a page to an inch of a figure

_NAMES = {light: name for name, (light, _) in TONES.items()}
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_SPACES = re.compile(r"\s*([A-Za-z])\s*")
_INVALID = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML has no room for
_INHERITED = (
    "class", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray",
    "stroke-dashoffset", "fill-opacity", "stroke-opacity", "clip-path", "font-size", "font-weight", "text-anchor",
)  # fmt: skip


class Canvas(FigureCanvasSVG):
    """A canvas that measures texts as wide as readers' fonts may draw them."""

    def get_renderer(self) -> RendererSVG:
        """Give a renderer to lay the figure out with."""
        return self.renderer(io.StringIO())

    def renderer(self, stream: TextIO) -> RendererSVG:
        """Give a renderer that writes to a stream."""
        width, height = self.figure.get_size_inches() * 72
        return _Renderer(width, height, stream, image_dpi=72, metadata=dict(_NO_METADATA))


class _Renderer(RendererSVG):
    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        """Measure a text, once for all renderers.

        The kit's own font has no wide characters (CJK, emoji), and takes them for narrow ones.
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
        """Draw a collection; seaborn gives every point a path and a size, though there are few different ones."""
        sizes = [np.asarray(size).tobytes() for size in all_transforms] or [b""]
        kinds: dict[tuple, list[int]] = {}
        for i, path in enumerate(paths):
            kinds.setdefault((id(path), sizes[i % len(sizes)]), []).append(i)
        if not len(kinds) < len(paths) == len(offsets):
            super().draw_path_collection(gc, master_transform, paths, all_transforms, offsets, *args, **options)
            return
        offset_trans, *properties, offset_position = args
        for at in kinds.values():
            first = paths[at[0]], all_transforms[at[0] % len(all_transforms) :][:1]
            rest = [_of(values, at) for values in properties]
            more = {name: _of(values, at) for name, values in options.items()}
            super().draw_path_collection(
                gc,
                master_transform,
                [first[0]],
                first[1],
                _of(offsets, at),
                offset_trans,
                *rest,
                offset_position,
                **more,
            )


def _of(values: Any, at: Sequence[int]) -> Any:
    """Take the values of some points; of what has fewer values than points they come round."""
    return values if values is None or len(values) < 2 else [values[i % len(values)] for i in at]


_measured: dict[tuple, tuple[float, float, float]] = {}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def draw_svg(figure: Figure, alt: str) -> str:
    """Draw a figure that is laid out already.

    Parameters
    ----------
    figure : Figure
        Of a dpi of 72, with a canvas that can draw.
    alt : str
        Plain text.

    Returns
    -------
    str
        An ``svg`` element that stands alone or in a page: with a style of its own for light and dark, no script, and
        ids that no other figure has.
    """
    stream = io.StringIO()
    width, height = figure.get_size_inches()
    with mpl.rc_context(SETTINGS), marked(figure) as marks:
        renderer = Canvas(figure).renderer(stream)
        figure.draw(MixedModeRenderer(figure, width, height, 72, renderer))
        renderer.finalize()
    root = ElementTree.fromstring(_INVALID.sub("\ufffd", stream.getvalue()))
    for element in root.iter():
        _tidy(element, themed=is_themed(figure))
    body = [child for child in root if child.tag not in ("metadata",)]
    _compact(root, body, marks)
    _short_ids(root)
    return _written(root, figure, alt, linked=any(mark.href for mark in marks))


def _tidy(element: ElementTree.Element, *, themed: bool) -> None:
    """Make attributes of styles, classes of tones, and short numbers of long ones."""
    element.tag = element.tag.rpartition("}")[2]
    element.tail = None
    if element.tag not in ("text", "tspan", "style"):
        element.text = None
    given = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    styles = dict(part.split(": ", 1) for part in given.pop("style", "").split("; ") if ": " in part)
    styles.pop("font-family", None)
    if "font-size" in styles:
        styles["font-size"] = styles["font-size"].removesuffix("px")
    given.pop("target", None)
    given |= styles
    if element.tag == "text" and "fill" not in given:
        given["fill"] = "#000000"
    if themed:
        _name_tones(element.tag, given)
    element.attrib.clear()
    for name, value in given.items():
        value = _DECIMALS.sub(_shorter, value) if name != "href" else value
        if name == "transform" and value.startswith("rotate(-0 "):
            continue
        element.attrib[name] = _SPACES.sub(r"\1", value).strip() if name == "d" else value


def _name_tones(tag: str, given: dict[str, str]) -> None:
    classes = []
    for part in ("fill", "stroke"):
        colour = given.get(part, "").lower()
        if colour == "#000000":
            colour = TONES["ink"][0]
        own = not (tag == "text" and colour == TONES["ground"][0])  # white words stand on a coloured cell
        if own and colour in _NAMES:
            classes.append(f"{part}-{_NAMES[colour]}")
            given[part] = colour
    if classes:
        given["class"] = " ".join(classes)


def _shorter(match: re.Match) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".").replace("-0", "-0") or "0"


def _compact(root: ElementTree.Element, body: Sequence[ElementTree.Element], marks: Sequence[Mark]) -> None:
    """Leave out groups that say nothing, have groups say once what all within them say, and write out the marks."""
    used = _used_ids(root)
    root[:] = [kept for child in body for kept in _kept(child, used, marks)]


def _kept(element: ElementTree.Element, used: set[str], marks: Sequence[Mark]) -> list[ElementTree.Element]:
    if element.tag == "defs" and len(element) == 1 and element[0].tag == "style":
        return []  # matplotlib's own, said on the root
    if element.get("id") not in used:
        element.attrib.pop("id", None)
    element[:] = [kept for child in element for kept in _kept(child, used, marks)]
    if element.tag == "a":
        element = _marked(element, marks)
    if element.tag == "g" and len(element):
        _hoist(element)
        element[:] = [inner for child in element for inner in _opened(child)]
    if element.tag in ("g", "defs") and not len(element):
        return []
    return _opened(element)


def _opened(element: ElementTree.Element) -> list[ElementTree.Element]:
    """Give what is in a group that says nothing itself, or its one element where that can say it."""
    if element.tag != "g" or (element.attrib and len(element) > 1):
        return [element]
    for child in element if element.attrib else ():
        moved = child.tag == "use" or "transform" in child.attrib  # a clip path would move along
        same = {"clip-path", "opacity", "transform"} & element.attrib.keys() & child.attrib.keys()
        if child.tag in ("title", "defs") or same or (moved and "clip-path" in element.attrib):
            return [element]
        child.attrib = {**element.attrib, **child.attrib}
    return list(element)


def _marked(element: ElementTree.Element, marks: Sequence[Mark]) -> ElementTree.Element:
    """Make of a stand-in address a link, or a group, with the mark's words; other addresses must be local."""
    href = element.attrib.pop("href", "")
    mark = (
        marks[int(href.removeprefix(TOKEN))]
        if href.startswith(TOKEN)
        else Mark("", href if is_local_link(href) else "")
    )
    element.tag = "a" if mark.href else "g"
    if mark.href:
        element.set("href", mark.href)
    if mark.tip:
        if mark.href:
            element.set("aria-label", mark.tip)
        title = ElementTree.Element("title")
        title.text = mark.tip
        element.insert(0, title)
    return element


def _hoist(group: ElementTree.Element) -> None:
    drawn = [child for child in group if child.tag not in ("defs", "title")]
    if not drawn:
        return
    for name in _INHERITED:
        values = {child.get(name) for child in drawn}
        if len(values) == 1 and None not in values and name not in group.attrib:
            if name == "clip-path" and any(child.tag == "use" or child.get("transform") for child in drawn):
                continue
            group.set(name, values.pop())
            for child in drawn:
                del child.attrib[name]


def _used_ids(root: ElementTree.Element) -> set[str]:
    return {own for element in root.iter() for own in _references(element)}


def _references(element: ElementTree.Element) -> Iterable[str]:
    for name, value in element.attrib.items():
        if name == "href" and element.tag == "use":
            yield value.removeprefix("#")
        elif name != "href":
            yield from _REFERENCE.findall(value)


def _short_ids(root: ElementTree.Element) -> None:
    """Give ids that are short, and differ from those of every other figure: they begin with a hash of this one."""
    own = hashlib.blake2b(ElementTree.tostring(root), digest_size=5).hexdigest()
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    names = {name: f"f{own}-{i}" for i, name in enumerate(ids)}
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, names[value])
            elif name == "href" and element.tag == "use":
                element.set(name, f"#{names[value.removeprefix('#')]}")
            elif name != "href":
                element.set(name, _REFERENCE.sub(lambda match: f"url(#{names[match[1]]})", value))


def _written(root: ElementTree.Element, figure: Figure, alt: str, *, linked: bool) -> str:
    inner = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    width, height = (f"{size * PIXELS:.0f}" for size in figure.get_size_inches())
    about = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "evalkit-figure" + " themed" * is_themed(figure),
        "role": "group" if linked else "img",  # what is in an image is out of a keyboard's reach
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
    used = Counter(re.findall(r"\b(fill|stroke)-([a-z]+(?:-\d)?)\b", " ".join(re.findall(r'class="([^"]*)"', inner))))
    rules = [
        "".join(f".{part}-{name}{{{part}:{TONES[name][scheme]}}}" for part, name in sorted(used)) for scheme in (0, 1)
    ]
    return f"<style>{rules[0]}@media(prefers-color-scheme:dark){{{rules[1]}}}</style>" if used else ""
