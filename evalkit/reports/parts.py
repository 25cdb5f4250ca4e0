"""Parts of pages: their scripts, their content security policy, and SVG that follows light and dark."""

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from evalkit.io.text import is_local_link

TEMPLATES = Path(__file__).parent / "templates"

# No request to any host and no other script, whatever text from a log, or a library's HTML, attempts
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"

# Allowed elements of a figure; a figure with others is embedded as an image, where nothing in it is active
_ELEMENTS = {"svg", "g", "defs", "style", "path", "rect", "use", "text", "tspan", "clipPath", "pattern", "a", "title",
             "image"}  # fmt: skip
_ATTRIBUTES = set(
    """
    aria-label class clip-path d fill fill-opacity fill-rule font-family font-size font-style font-variant font-weight
    height href id opacity patternUnits role stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin
    stroke-opacity stroke-width tabindex text-anchor transform viewBox width x y
    """.split()  # noqa: SIM905 - a list of its own on every line would be longer than the rest
)
_REFERENCE = re.compile(r"url\(#([\w.-]+)\)")
_HREFS: dict[str, Callable[[str], Any]] = {
    "a": is_local_link,
    "use": re.compile(r"#[\w.-]+").fullmatch,
    "image": re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*").fullmatch,
}


def policy_of(code: str) -> str:
    """Return the content security policy of a page that runs one script, known by its hash, and no other."""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"{_POLICY}; script-src 'sha256-{digest}'"


def clean_svg(svg: str, prefix: str) -> str:
    """Sanitise an SVG: keep shapes and links within the site, and prefix its ids.

    No script, style, event handler or external address is allowed. The style sheet is removed, as a page has its own
    for the same classes.
    """
    if "<!" in svg:  # declarations, which could define entities
        return ""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return ""
    for element in root.iter():
        space, _, element.tag = str(element.tag).rpartition("}")
        if space != "{http://www.w3.org/2000/svg" or element.tag not in _ELEMENTS:
            return ""
        cleaned = {name: _clean_value(element.tag, name, value, prefix) for name, value in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update({name: value for name, value in cleaned.items() if value is not None})
    if root.tag != "svg":
        return ""
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag == "style"]:
            parent.remove(child)
    return ElementTree.tostring(root, encoding="unicode").strip()


def _clean_value(tag: str, name: str, value: str, prefix: str) -> str | None:
    """Return an attribute's value as allowed in a page; None if it is not allowed."""
    if name not in _ATTRIBUTES:
        return None
    if name == "href":
        if tag not in _HREFS or not _HREFS[tag](value):
            return None
        return f"#{prefix}{value[1:]}" if tag == "use" else value
    if name == "id":
        return prefix + value
    if name == "tabindex":
        return value if value == "-1" else None
    value = _REFERENCE.sub(rf"url(#{prefix}\1)", value)
    return None if "url(" in _REFERENCE.sub("", value) else value
