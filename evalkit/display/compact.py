"""Compact the SVG that matplotlib writes: styles as attributes, tones as classes, shared attributes on groups."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from xml.etree import ElementTree

from evalkit.display.marks import TOKEN, Mark
from evalkit.display.style import TONES
from evalkit.io.text import is_local_link

MANY = 12  # elements from which on a group is split into one per series

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
    """Compact an SVG of matplotlib in place; it renders the same, without metadata and style sheet.

    `marks` are the tooltips and links behind its placeholder addresses. If it is `themed`, colours that are tones get
    classes named after them: ``fill-ink``, ``stroke-series-1``.
    """
    for element in root.iter():
        _tidy(element, themed=themed)
    used = {name for element in root.iter() for name in _references(element)}
    root[:] = [inner for child in root if child.tag != "metadata" for inner in _compacted(child, used, marks)]
    _short_ids(root)


def _tidy(element: ElementTree.Element, *, themed: bool) -> None:
    """Turn styles into attributes and tones into classes, and shorten numbers."""
    element.tag = element.tag.rpartition("}")[2]
    element.tail = None
    if element.tag not in ("text", "tspan", "style"):
        element.text = None
    given = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    styles = dict(rule.split(": ", 1) for rule in given.pop("style", "").split("; ") if ": " in rule)
    styles.pop("font-family", None)
    if font := _FONT.match(styles.pop("font", "")):  # until matplotlib 3.10
        styles |= {name.replace("_", "-"): value.strip() for name, value in font.groupdict().items() if value}
    if "font-size" in styles:
        styles["font-size"] = styles["font-size"].removesuffix("px")
    given.pop("target", None)
    given |= styles
    drawn = element.tag == "text" or (element.tag in ("path", "use") and styles and "id" not in given)
    if drawn and "fill" not in given:
        given["fill"] = "#000000"  # the default, which matplotlib omits
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
    for attribute in ("fill", "stroke"):
        colour = given.get(attribute, "").lower()
        if colour == "#000000":
            colour = TONES["ink"][0]
        on_cell = tag == "text" and colour == TONES["ground"][0]  # white text stands on a coloured cell
        if colour in _NAMES and not on_cell:
            classes.append(f"{attribute}-{_NAMES[colour]}")
            given[attribute] = colour
    if classes:
        given["class"] = " ".join(classes)


def _shorter(match: re.Match) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _compacted(element: ElementTree.Element, used: set[str], marks: Sequence[Mark]) -> list[ElementTree.Element]:
    if element.tag == "defs" and len(element) == 1 and element[0].tag == "style":
        return []  # matplotlib's own, set on the root
    if element.get("id") not in used:
        element.attrib.pop("id", None)
    element[:] = [inner for child in element for inner in _compacted(child, used, marks)]
    if element.tag == "a":
        element = _marked(element, marks)
    if element.tag == "g" and len(element):
        _hoist(element)
        element[:] = [inner for child in element for inner in _unwrapped(child)]
    if element.tag in ("g", "defs") and not len(element):
        return []
    return _unwrapped(element)


def _unwrapped(element: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the children of a group without attributes, or its only child where that can take the attributes."""
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
    """Turn a placeholder address into a link, or a group, with the mark's tooltip; other addresses must be local."""
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
    """Move attributes shared by all children to their group; many children are first grouped by series."""
    drawn = [child for child in group if child.tag not in ("defs", "title")]
    _share_attributes(group, drawn)
    if len(drawn) < MANY or len(drawn) < len(group) - 1:
        return
    inner = [child for child in group if child.tag == "defs"]
    for _, series in groupby(drawn, key=lambda child: (child.get("class"), child.get("fill"), child.get("stroke"))):
        subgroup = ElementTree.Element("g")
        subgroup.extend(series)
        _share_attributes(subgroup, list(subgroup))
        inner += [subgroup] if subgroup.attrib else subgroup
    group[:] = inner


def _share_attributes(group: ElementTree.Element, drawn: Sequence[ElementTree.Element]) -> None:
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
    """Replace ids by short ones, unique across figures: they begin with a hash of this one."""
    prefix = hashlib.blake2b(ElementTree.tostring(root), digest_size=3).hexdigest()
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    names = {name: f"f{prefix}-{i}" for i, name in enumerate(ids)}
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, names[value])
            elif name == "href" and element.tag == "use":
                element.set(name, f"#{names[value.removeprefix('#')]}")
            elif name != "href":
                element.set(name, _REFERENCE.sub(lambda match: f"url(#{names[match[1]]})", value))
