"""Create figures in evalkit's theme for light and dark pages, and render them as SVG, PNG and PDF.

Figures are created without pyplot, so they don't depend on the notebook's plotting backend and never stay open. An SVG
keeps text as text, in the reader's font. It has tooltips, links, and a style sheet with the colours for dark pages.
"""

import io
import json
import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack, overload
from weakref import WeakKeyDictionary
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import PercentFormatter
from PIL import Image

from evalkit._html import render_macro
from evalkit._text import columns_in_words
from evalkit.display.tables import TITLES
from evalkit.io import plain
from evalkit.io.text import is_local_link
from evalkit.kinds.runs import compared_in

# Name of each tone: its colour on light pages, in which figures are drawn, and its colour on dark pages. Series 1 to 7
# are the colours of Okabe and Ito, "Color Universal Design" (2008), without yellow, which is too pale on white.
TONES = {
    "ground": ("#ffffff", "#15181c"),
    "ink": ("#30343b", "#dfe3e8"),
    "quiet": ("#5b616b", "#a3abb5"),
    "edge": ("#8a8f98", "#79818c"),
    "pale": ("#c9ced6", "#4a515c"),
    "grid": ("#e4e7eb", "#2b3038"),
    "shade": ("#f3f4f6", "#1f2329"),
    "series-1": ("#0072b2", "#4c9fe0"),
    "series-2": ("#d55e00", "#ee7a33"),
    "series-3": ("#009e73", "#2fbf95"),
    "series-4": ("#cc79a7", "#db93bb"),
    "series-5": ("#56b4e9", "#a8dcf9"),
    "series-6": ("#e69f00", "#f0c040"),
    "series-7": ("#595959", "#7d828a"),
    "series-8": ("#4a2fc4", "#7b6cff"),
}
GROUND, INK, QUIET, EDGE, PALE, GRID, SHADE = (light for light, _ in list(TONES.values())[:7])
PALETTE = tuple(light for name, (light, _) in TONES.items() if name.startswith("series"))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p")
HATCHES = ("", "//", ".", "xx", "--", "\\\\", "++", "||")
DASHES = ((), (4, 1.5), (1, 1.2))

THEME: Any = {
    "axes.edgecolor": EDGE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": mpl.cycler(color=PALETTE),  # type: ignore[attr-defined]  # missing from matplotlib's types
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "figure.facecolor": GROUND,
    "font.size": 10.5,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.color": GROUND,
    "hatch.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # names come from logs and may contain dollar signs
    "xtick.color": INK,
    "ytick.color": INK,
}
themed = mpl.rc_context(THEME)  # decorator: draw in this theme, independent of the current settings

DPI = 144  # resolution of PNG files
LARGEST = 1_000_000  # maximum number of characters of an SVG; a larger figure is shown as PNG
MOST_MARKS = 2000  # maximum number of tooltips and links in a figure; above that, keep only the first mark of each link
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"

_MARK = "evalkit-mark:"  # prefix of an artist's URL that contains its tooltip and link as JSON
_ALTS = WeakKeyDictionary[Artist, str]()  # alt texts of axes and figures
_PIXELS = 100  # pixels on a page per inch of a figure
_INVALID = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters not allowed in XML
_REFERENCE = re.compile(r'(?:url\(|href=")#([^")]*)')
_STYLE = re.compile(r"([\w-]+): ([^;]+)")  # a CSS property and its value
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_SPACES = re.compile(r"\s*([A-Za-z])\s*")
_THEMED, _NOTHING = "evalkit", "nothing-to-draw"  # gids of themed figures and of empty axes
Name = TypeVar("Name", bound=Hashable)
_kept: dict[Hashable, int] = {}  # index of the look that `keep_looks` fixed for each name


class Look(NamedTuple):
    """What distinguishes a series from the others: its colour, and cues that work without colour."""

    colour: str
    marker: str = "o"
    hatch: str = ""
    dashes: tuple[float, ...] = ()
    text: str = ""


class SubplotOptions(TypedDict, total=False):
    """Options of ``Figure.subplots``, except the numbers of rows and columns."""

    sharex: bool | Literal["none", "all", "row", "col"]
    sharey: bool | Literal["none", "all", "row", "col"]
    squeeze: bool
    width_ratios: Sequence[float]
    height_ratios: Sequence[float]
    subplot_kw: Mapping[str, Any]
    gridspec_kw: Mapping[str, Any]


@overload
def new_axes(width: float = 7.0, height: float = 3.6) -> Axes: ...


@overload
def new_axes(
    width: float = 7.0, height: float = 3.6, *, nrows: int, ncols: int = 1, **subplots: Unpack[SubplotOptions]
) -> np.ndarray: ...


@overload
def new_axes(
    width: float = 7.0, height: float = 3.6, *, ncols: int, **subplots: Unpack[SubplotOptions]
) -> np.ndarray: ...


@themed
def new_axes(
    width: float = 7.0, height: float = 3.6, *, nrows: int = 1, ncols: int = 1, **subplots: Unpack[SubplotOptions]
) -> Axes | np.ndarray:
    """Create axes on a new figure in evalkit's theme.

    Parameters
    ----------
    width : float
        Width in inches.
    height : float
        Height in inches.
    nrows, ncols : int
        Numbers of rows and columns of axes.
    **subplots : Any
        Other options of ``Figure.subplots``.

    Returns
    -------
    Axes or array of Axes
        The axes; an array if there are several.

    Examples
    --------
    >>> axes = display.new_axes(4, 3)
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.set_gid(_THEMED)
    options: dict[str, Any] = dict(subplots)
    return figure.subplots(nrows, ncols, **options)


def dark_rules(svg: str) -> str:
    """Write style rules that give the tones of an SVG their dark colours. White text, on dark cells, stays white."""
    rules = [f".themed{{fill:{TONES['ink'][1]}}}"]  # elements without a fill are black: draw them as ink
    for attribute in ("fill", "stroke"):
        for light, dark in [*TONES.values(), ("#000000", TONES["ink"][1])]:
            if (own := f'{attribute}="{light}"') in svg:
                within = ":not(text)" if light == GROUND else ""
                rules.append(f".themed {within}[{own}]{{{attribute}:{dark}}}")
    return "".join(rules)


@themed
def nothing_to_draw(what: str = "runs", ax: Axes | None = None) -> Axes:
    """Write on empty axes that there is nothing to draw.

    Parameters
    ----------
    what : str
        What is missing.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = display.nothing_to_draw("episodes")
    """
    ax = ax or new_axes(7, 1.0)
    ax.text(0.5, 0.5, f"no {what} of this kind", ha="center", va="center", color=QUIET, transform=ax.transAxes)
    ax.set_axis_off()
    ax.set_gid(_NOTHING)
    return ax


def has_nothing_to_draw(figure: Figure) -> bool:
    """Return whether `nothing_to_draw` drew all axes of a figure."""
    return bool(figure.axes) and all(ax.get_gid() == _NOTHING for ax in figure.axes)


def keep_looks(*tables: pd.DataFrame) -> None:
    """Fix the colour and marker of each model for all following figures.

    If runs are compared by columns other than the model, such as the agent, headings and axes name these columns.

    Parameters
    ----------
    *tables : DataFrame
        Tables with a column model_name. Without tables, the fixed looks are discarded.

    Examples
    --------
    >>> evalkit.keep_looks(runs)
    """
    names = [name for table in tables for name in sorted(table["model_name"].dropna().astype("str").unique())]
    _kept.clear()
    _kept.update({name: place for place, name in enumerate(dict.fromkeys(names))})
    TITLES["model_name"] = columns_in_words(next(filter(None, map(compared_in, tables)), ("model_name",)))


def looks(names: Iterable[Name]) -> dict[Name, Look]:
    """Assign a colour, marker, hatch and line style to each name; names passed to `keep_looks` keep theirs.

    Up to 8 names differ in colour, 12 in marker, 8 in hatch, 24 in colour and line style, 96 in colour and marker.

    Parameters
    ----------
    names : iterable of hashable
        The names, in order.

    Returns
    -------
    dict of Look
        Looks by name.

    Examples
    --------
    >>> list(display.looks(["a", "b"]))
    ['a', 'b']
    """
    out, names = {}, list(dict.fromkeys(names))
    others = count(0 if _kept.keys().isdisjoint(names) else len(_kept))
    for name in names:
        i = _kept[name] if name in _kept else next(others)
        marker = MARKERS[(i + i // 24) % len(MARKERS)]  # shifted every 24 names, or pairs would repeat
        dashes = DASHES[i // len(PALETTE) % len(DASHES)]
        out[name] = Look(PALETTE[i % len(PALETTE)], marker, HATCHES[i % len(HATCHES)], dashes)
    return out


def percent_axis(ax: Axes, which: Literal["x", "y"] = "x") -> Axes:
    """Format one axis of shares from 0 to 1 as percentages from 0 to 100.

    Parameters
    ----------
    ax : Axes
        The axes.
    which : {"x", "y"}
        The axis.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = display.percent_axis(display.new_axes())
    """
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    (ax.set_xlim if which == "x" else ax.set_ylim)(-0.02, 1.02)
    return ax


def with_zero(ax: Axes, values: Iterable[float]) -> Axes:
    """Begin the x axis at 0 if all values are equal, since its scale would be arbitrary otherwise."""
    known = sorted({value for value in values if np.isfinite(value)})
    if len(known) == 1 and known[0]:
        ax.set_xlim(*sorted((0.0, known[0] * 1.1)))
    return ax


class Drawing(NamedTuple):
    """A figure as SVG for pages, PNG for front ends and PDF for papers; a format that was not rendered is empty."""

    svg: str
    png: bytes
    pdf: bytes


def attach(artist: Artist, tips: Iterable[str], hrefs: Iterable[object] = ()) -> None:
    """Attach tooltips and local links for SVG to an artist: one per point of a collection, or one to a patch."""
    tips = list(tips)
    marks = list[str | None]()
    for tip, href in zip(tips, list(hrefs) or [""] * len(tips), strict=True):
        mark = plain(tip), str(href) if is_local_link(href) else ""
        marks.append(_MARK + json.dumps(mark) if any(mark) else None)
    if isinstance(artist, Collection):
        artist.set_urls(marks)
    else:
        artist.set_url(marks[0])


def set_alt(part: Axes | Figure, text: str) -> None:
    """Set the alt text of axes, or of a whole figure.

    Parameters
    ----------
    part : Axes or Figure
        The alt text of a figure replaces the alt texts of its axes.
    text : str
        The alt text.

    Examples
    --------
    >>> display.set_alt(display.new_axes(), "Two points.")
    """
    _ALTS[part] = plain(text)


def alt_of(figure: Figure) -> str:
    """Return the alt text of a figure or else the alt texts of its axes, each after its title; "" if there is none."""
    if figure in _ALTS:
        return _ALTS[figure]
    titles = {ax: ax.get_title("left") or ax.get_title() for ax in figure.axes if ax in _ALTS}
    return " ".join(f"{title}: {_ALTS[ax]}" if title else _ALTS[ax] for ax, title in titles.items())


def draw(figure: Figure, alt: str, *, pdf: bool = False) -> Drawing:
    """Lay out a figure once and render it in all formats. The same figure always has the same bytes."""
    svg = io.BytesIO()
    png = io.BytesIO()
    document = io.BytesIO()
    for text in figure.findobj(Text):  # also text from outside the theme
        text.set_parse_math(False)
        text.set_text(plain(text.get_text(), keep_lines=True))
    canvas = figure.canvas
    dpi = figure.get_dpi()
    engine = figure.get_layout_engine()
    settings = {**THEME, "svg.fonttype": "none", "svg.hashsalt": "evalkit"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the reader's fonts may have it
        try:
            figure.set_dpi(72)  # the resolution of SVG
            FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
            figure.set_layout_engine("none")
            if pdf:
                FigureCanvasPdf(figure).print_pdf(document, metadata={"CreationDate": None})
            figure.set_dpi(DPI)
            pixels = FigureCanvasAgg(figure)
            pixels.draw()
            image = Image.fromarray(np.asarray(pixels.buffer_rgba())).convert("RGB")
            # figures have few colours: a palette needs a third of the bytes and less time to write
            image = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            exact = [255 if channel == 254 else channel for channel in image.getpalette() or ()]  # keep white
            image.putpalette(exact)
            image.save(png, format="png", dpi=(DPI, DPI))
        finally:
            figure.set_canvas(canvas)
            figure.set_dpi(dpi)
            if engine is not None:
                figure.set_layout_engine(engine)
    page = _page_svg(svg.getvalue().decode(), figure, alt)
    return Drawing(page if len(page) <= LARGEST else "", png.getvalue(), document.getvalue())


def _page_svg(drawn: str, figure: Figure, alt: str) -> str:
    """Turn matplotlib's SVG into an element for a file or a page: with light and dark styles, without scripts."""
    root = ElementTree.fromstring(_INVALID.sub("\ufffd", drawn))
    referred = set(_REFERENCE.findall(drawn))
    root[:] = [part for child in root for part in _simplified(child, referred)]
    has_links = _resolve_marks(root)
    inner = "".join(ElementTree.tostring(part, encoding="unicode") for part in root)
    width, height = (f"{size * _PIXELS:.0f}" for size in figure.get_size_inches())
    follows_page = figure.get_gid() == _THEMED  # created by `new_axes`
    about = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "evalkit-figure themed" if follows_page else "evalkit-figure",
        "role": "group" if has_links else "img",  # links inside an "img" can't get the keyboard focus
        "aria-label": plain(alt),
        "width": width,
        "height": height,
        "viewBox": root.get("viewBox", ""),
        "font-family": FONTS,
        "stroke-linejoin": "round",
    }
    dark = Markup(dark_rules(inner)) if follows_page else ""
    return render_macro("parts.html.j2", "svg", about, dark, Markup(inner)) + "\n"


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _simplified(element: ElementTree.Element, referred: set[str]) -> list[ElementTree.Element]:
    """Simplify an element of matplotlib's SVG. A group without attributes is replaced by its children."""
    tag = element.tag.rpartition("}")[2]
    if tag in ("metadata", "style"):
        return []
    given = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    given |= dict(_STYLE.findall(given.pop("style", "")))
    given.pop("font-family", None)
    given.pop("target", None)
    if given.get("id") not in referred:
        given.pop("id", None)
    for name, value in given.items():
        if name != "href":
            given[name] = _DECIMALS.sub(_rounded, value)
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
    """Turn URLs from `attach` and local URLs into links or groups with tooltips. Return whether there are links."""
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
