"""Render figures as SVG, PNG and PDF with one layout; the SVG follows light and dark, with tooltips and links.

Text stays text, in the reader's own font. A style sheet gives the tones of `evalkit.display.style` their dark colours.
"""

import io
import json
import re
import warnings
from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.text import Text

from evalkit.display.style import THEME, dark_rules, is_themed
from evalkit.io import plain
from evalkit.io.text import is_local_link

DPI = 144  # of PNG
LARGEST = 1_000_000  # characters of an SVG; a figure of more is a PNG
MOST_MARKS = 2000  # tooltips and links of one figure; of more, only the first with each link stays
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"

_MARK = "evalkit-mark:"  # begins the address of an artist that stands for a tooltip and a link, as JSON
_ALTS = WeakKeyDictionary[Artist, str]()  # what axes and figures show, in words
_PIXELS = 100  # of a page per inch of a figure
_INVALID = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters not allowed in XML
_REFERENCE = re.compile(r'(?:url\(|href=")#([^")]*)')
_STYLE = re.compile(r"([\w-]+): ([^;]+)")  # a property and its value
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_SPACES = re.compile(r"\s*([A-Za-z])\s*")


class Drawing(NamedTuple):
    """A figure in the formats for pages, front ends and papers; empty if not made."""

    svg: str
    png: bytes
    pdf: bytes


def attach(artist: Artist, tips: Iterable[str], hrefs: Iterable[str] = ()) -> None:
    """Attach tooltips and links to an artist: one to each point of a collection, or one to a single patch.

    They are addresses of the artist, which only SVG has. Texts from logs are made plain; an empty link is none, and
    only relative addresses and ``#anchors`` are allowed.
    """
    tips = [plain(tip) for tip in tips]
    links = [href if is_local_link(href) else "" for href in hrefs] or [""] * len(tips)
    marks = [_MARK + json.dumps(pair) if any(pair) else None for pair in zip(tips, links, strict=True)]
    if isinstance(artist, Collection):
        artist.set_urls(marks)
    else:
        artist.set_url(marks[0])


def set_alt(part: Axes | Figure, text: str) -> None:
    """Say in words what axes or a whole figure show, for those who can't see it; that of a figure stands for all."""
    _ALTS[part] = plain(text)


def alt_of(figure: Figure) -> str:
    """Return the alt text of a figure: its own, else those of its axes, each after its title; empty if none has one."""
    if figure in _ALTS:
        return _ALTS[figure]
    titles = {ax: ax.get_title("left") or ax.get_title() for ax in figure.axes if ax in _ALTS}
    return " ".join(f"{title}: {_ALTS[ax]}" if title else _ALTS[ax] for ax, title in titles.items())


def draw(figure: Figure, alt: str, *, pdf: bool = False) -> Drawing:
    """Lay out a figure once and render it in all formats; the same figure has the same bytes every time.

    Its text is plain, never a formula. Afterwards only the positions of its axes have changed.
    """
    svg, png, document = io.BytesIO(), io.BytesIO(), io.BytesIO()
    for text in figure.findobj(Text):  # also what was written outside the theme, such as legends and notes
        text.set_parse_math(False)
        text.set_text(plain(text.get_text(), keep_lines=True))
    canvas, dpi, engine = figure.canvas, figure.get_dpi(), figure.get_layout_engine()
    settings = {**THEME, "svg.fonttype": "none", "svg.hashsalt": "evalkit"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # readers' fonts may have it
        try:
            figure.set_dpi(72)  # as SVG has
            FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
            if engine is not None:
                figure.set_layout_engine("none")
            if pdf:
                FigureCanvasPdf(figure).print_pdf(document, metadata={"CreationDate": None})
            figure.set_dpi(DPI)
            FigureCanvasAgg(figure).print_png(png)
        finally:
            figure.set_canvas(canvas)
            figure.set_dpi(dpi)
            if engine is not None:
                figure.set_layout_engine(engine)
    page = _page_svg(svg.getvalue().decode(), figure, alt)
    return Drawing(page if len(page) <= LARGEST else "", png.getvalue(), document.getvalue())


def _page_svg(drawn: str, figure: Figure, alt: str) -> str:
    """Turn matplotlib's SVG into an element for a file or a page, with its own style for light and dark and no script.

    Styles become attributes, which a page's style sheet overrules, numbers are rounded, and what nothing refers to is
    left out.
    """
    root = ElementTree.fromstring(_INVALID.sub("\ufffd", drawn))
    referred = set(_REFERENCE.findall(drawn))
    root[:] = [part for child in root for part in _simplified(child, referred)]
    has_links = _resolve_marks(root)
    inner = "".join(ElementTree.tostring(part, encoding="unicode") for part in root)
    width, height = (f"{size * _PIXELS:.0f}" for size in figure.get_size_inches())
    follows_page = is_themed(figure)
    about = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "evalkit-figure" + " themed" * follows_page,
        "role": "group" if has_links else "img",  # the keyboard can't reach what is in an image
        "aria-label": plain(alt),
        "width": width,
        "height": height,
        "viewBox": root.get("viewBox", ""),
        "font-family": FONTS,
        "stroke-linejoin": "round",
    }
    shell = ElementTree.tostring(ElementTree.Element("svg", about), encoding="unicode")
    style = f"<style>@media(prefers-color-scheme:dark){{{dark_rules(inner)}}}</style>" if follows_page else ""
    return f"{shell.removesuffix(' />')}>{style}{inner}</svg>\n"


def _simplified(element: ElementTree.Element, referred: set[str]) -> list[ElementTree.Element]:
    """Simplify an element of matplotlib's SVG; a group without attributes becomes its children."""
    tag = element.tag.rpartition("}")[2]
    if tag in ("metadata", "style"):
        return []
    given = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    given |= dict(_STYLE.findall(given.pop("style", "")))
    for name in ("font-family", "target", *["id"] * (given.get("id") not in referred)):
        given.pop(name, None)
    for name, value in given.items():
        if name != "href":
            given[name] = _DECIMALS.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value)
    if "d" in given:
        given["d"] = _SPACES.sub(r"\1", given["d"]).strip()
    if "font-size" in given:
        given["font-size"] = given["font-size"].removesuffix("px")
    simple = ElementTree.Element(tag, given)
    simple.extend(part for child in element for part in _simplified(child, referred))
    if tag in ("text", "tspan"):
        simple.text = element.text
    if tag in ("g", "defs") and not (len(simple) and (given or tag == "defs")):
        return list(simple)
    return [simple]


def _resolve_marks(root: ElementTree.Element) -> bool:
    """Turn the addresses of `attach` into links, or groups, with tooltips; return whether there are links.

    Other addresses must be local. The keyboard reaches only the first of those with the same link.
    """
    marks, seen = list(root.iter("a")), set()
    for element in marks:
        address = element.attrib.pop("href", "")
        other = "", address if is_local_link(address) else ""
        tip, href = json.loads(address.removeprefix(_MARK)) if address.startswith(_MARK) else other
        is_first = bool(href) and href not in seen
        seen.add(href)
        element.tag = "g"
        if len(marks) > MOST_MARKS and not is_first:
            continue
        if href:
            element.tag = "a"
            element.attrib |= {"href": href, "aria-label": tip or href} | ({} if is_first else {"tabindex": "-1"})
        if tip:
            title = ElementTree.Element("title")
            title.text = tip
            element.insert(0, title)
    return bool(seen - {""})
