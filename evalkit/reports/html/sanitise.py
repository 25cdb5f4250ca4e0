"""Sanitise untrusted text and HTML for a page."""

import re
from functools import cache

from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from nbconvert.filters.ansi import ansi2html

from evalkit.io.text import plain

# Allowed in HTML and Markdown that a notebook shows by other means than evalkit.display; the rest shows as text
_TAGS = """
    a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr
    i img ins kbd li mark ol p pre s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var
""".split()  # noqa: SIM905 - a list of its own on every line would be longer than the rest
_ATTRIBUTES = {
    "*": ["aria-label", "class", "dir", "id", "lang", "style", "title"],
    "a": ["href"],
    "img": lambda _, name, value: name in ("alt", "height", "width") or (name == "src" and value.startswith("data:")),
    "td": ["colspan", "rowspan"],
    "th": ["colspan", "rowspan", "scope"],
    "details": ["open"],
    "ol": ["start"],
}
_PROTOCOLS = ["http", "https", "mailto", "data"]
_STYLE = re.compile(r"<style[^<>]*>([^<]*)</style>")  # pandas puts one before a table
_COLOUR = re.compile(r"(\x1b\[(?:\d|[39][0-7]|39)?(?:;(?:\d|[39][0-7]|39))*m)")  # colours of the page's own palette


@cache
def _cleaner() -> Cleaner:
    return Cleaner(tags=_TAGS, attributes=_ATTRIBUTES, protocols=_PROTOCOLS, css_sanitizer=CSSSanitizer())


def clean(text: str) -> str:
    """Sanitise HTML: no script, frame or form, nothing that loads or redirects by itself.

    What is not allowed shows as text. Leading style sheets, as pandas writes them, stay.
    """
    text = plain(text, keep_lines=True)
    styles = "".join(f"<style>{style}</style>" for style in _STYLE.findall(text))
    return styles + _cleaner().clean(_STYLE.sub("", text))


def terminal(text: str) -> str:
    """Convert printed text to HTML as a terminal shows it: basic colours only, with carriage returns applied."""
    text = re.sub(r"\x1b\[[34]8;[0-9;]*m", "", text)
    lines = (line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n"))
    pieces = _COLOUR.split("\n".join(lines))
    return ansi2html("".join(piece if i % 2 else plain(piece, keep_lines=True) for i, piece in enumerate(pieces)))
