"""What matplotlib writes as SVG, made small: styles as attributes, tones as classes, groups that say things once."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from xml.etree import ElementTree

from evalkit.display.marks import TOKEN, Mark
from evalkit.display.style import TONES
from evalkit.io.text import is_local_link

MANY = 12  # elements of a group that are worth groups of their own

_NAMES = {light: name for name, (light, _) in TONES.items()}
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_FONT = re.compile(r"(?P<font_style>italic |oblique )?(?:small-caps )?(?P<font_weight>\d+ )?(?P<font_size>[\d.]+)px")
_SPACES = re.compile(r"\s*([A-Za-z])\s*")
_INHERITED = (
    "class", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray",
    "stroke-dashoffset", "fill-opacity", "stroke-opacity", "clip-path", "font-size", "font-weight", "text-anchor",
)  # fmt: skip


def compact(root: ElementTree.Element, marks: Sequence[Mark], *, themed: bool) -> None:
    """Make an SVG of matplotlib small, in place: it draws the same, and holds no metadata and no style sheet.

    Parameters
    ----------
    root : Element
        The ``svg`` element.
    marks : sequence of Mark
        Tooltips and links that stand-in addresses stand for, as `evalkit.display.marks.marked` gives them.
    themed : bool
        Whether colours that are tones get classes of their name: ``fill-ink``, ``stroke-series-1``.
    """
    for element in root.iter():
        _tidy(element, themed=themed)
    used = {own for element in root.iter() for own in _references(element)}
    root[:] = [kept for child in root if child.tag != "metadata" for kept in _kept(child, used, marks)]
    _short_ids(root)


def _tidy(element: ElementTree.Element, *, themed: bool) -> None:
    """Make attributes of styles, classes of tones, and short numbers of long ones."""
    element.tag = element.tag.rpartition("}")[2]
    element.tail = None
    if element.tag not in ("text", "tspan", "style"):
        element.text = None
    given = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    styles = dict(part.split(": ", 1) for part in given.pop("style", "").split("; ") if ": " in part)
    styles.pop("font-family", None)
    if font := _FONT.match(styles.pop("font", "")):  # until matplotlib 3.10
        styles |= {name.replace("_", "-"): value.strip() for name, value in font.groupdict().items() if value}
    if "font-size" in styles:
        styles["font-size"] = styles["font-size"].removesuffix("px")
    given.pop("target", None)
    given |= styles
    drawn = element.tag == "text" or (element.tag in ("path", "use") and styles and "id" not in given)
    if drawn and "fill" not in given:
        given["fill"] = "#000000"  # which matplotlib leaves out
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
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


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
    place = TOKEN.fullmatch(href)
    mark = marks[int(place[1])] if place else Mark("", href if is_local_link(href) else "")
    element.tag = "a" if mark.href else "g"
    if mark.href:
        element.set("href", mark.href)
        element.set("aria-label", mark.tip or mark.href)
        if not mark.is_first:
            element.set("tabindex", "-1")
    if mark.tip:
        title = ElementTree.Element("title")
        title.text = mark.tip
        element.insert(0, title)
    return element


def _hoist(group: ElementTree.Element) -> None:
    """Have a group say what all within it say; where there are many, so does a group of its own for each series."""
    drawn = [child for child in group if child.tag not in ("defs", "title")]
    _say_once(group, drawn)
    if len(drawn) < MANY or len(drawn) < len(group) - 1:
        return
    inner = [child for child in group if child.tag == "defs"]
    for _, series in groupby(drawn, key=lambda child: (child.get("class"), child.get("fill"), child.get("stroke"))):
        own = ElementTree.Element("g")
        own.extend(series)
        _say_once(own, list(own))
        inner += [own] if own.attrib else own
    group[:] = inner


def _say_once(group: ElementTree.Element, drawn: Sequence[ElementTree.Element]) -> None:
    for name in _INHERITED:
        value, *others = {child.get(name) for child in drawn} or {None}
        if value is not None and not others and name not in group.attrib:
            if name == "clip-path" and any(child.tag == "use" or child.get("transform") for child in drawn):
                continue  # it would be cut where it stood before it was moved
            group.set(name, value)
            for child in drawn:
                del child.attrib[name]


def _references(element: ElementTree.Element) -> Iterable[str]:
    for name, value in element.attrib.items():
        if name == "href" and element.tag == "use":
            yield value.removeprefix("#")
        elif name != "href":
            yield from _REFERENCE.findall(value)


def _short_ids(root: ElementTree.Element) -> None:
    """Give ids that are short, and differ from those of every other figure: they begin with a hash of this one."""
    own = hashlib.blake2b(ElementTree.tostring(root), digest_size=3).hexdigest()
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
