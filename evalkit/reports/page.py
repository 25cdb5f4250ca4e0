"""Render an executed notebook as one HTML file that works offline and runs only evalkit's script."""

import html
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import nbformat
from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from jinja2 import pass_context
from markupsafe import Markup
from nbconvert.exporters.html import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode
from traitlets.config import Config

from evalkit._html import TEMPLATES, asset, policy_of, render_macro
from evalkit.display.anchors import RESERVED, heading_anchor, section_keys
from evalkit.display.show import HIDDEN, SAFE, SORTING
from evalkit.evidence.references import RUNS
from evalkit.io.text import plain
from evalkit.reports.notebooks import title_of
from evalkit.reports.report import Failure

# MIME types that need no script, the preferred one first
_PRIORITY = ["image/svg+xml", "image/png", "image/jpeg", "text/html", "text/markdown", "text/latex", "text/plain"]
_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: (.*)(?:\n  .*)?", re.MULTILINE)  # as Python prints it


def _is_allowed_in_image(_: str, name: str, value: str) -> bool:
    """Return whether an image may have an attribute. Its source must be embedded in the page."""
    return name in ("alt", "height", "width") or (name == "src" and value.startswith("data:"))


# Tags and attributes allowed in HTML and Markdown that are not from evalkit.display; other tags appear as text
_TAGS = """
    a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr
    i img ins kbd li mark ol p pre s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var
""".split()  # noqa: SIM905 - a list would be formatted with one tag per line
_ATTRIBUTES = {
    "*": ["aria-label", "class", "dir", "id", "lang", "style", "title"],
    "a": ["href"],
    "img": _is_allowed_in_image,
    "td": ["colspan", "rowspan"],
    "th": ["colspan", "rowspan", "scope"],
    "details": ["open"],
    "ol": ["start"],
}
_PROTOCOLS = ["http", "https", "mailto", "data"]
_RUN_LINK = re.compile(rf' href="\.\./{RUNS}/([^"#]*)[^"]*"')
_SECTION = re.compile(r'<span class="evalkit-section" data-section="([^"<>]*)"></span>')  # place of a finding's link
_ID = re.compile(r'\sid="|url\(#|^<use [^<>]*href="#')  # text before an id in an SVG tag
_CLEANER = Cleaner(tags=_TAGS, attributes=_ATTRIBUTES, protocols=_PROTOCOLS, css_sanitizer=CSSSanitizer())
_STYLE = re.compile(r"<style[^<>]*>([^<]*)</style>")  # pandas puts a style sheet before a table


class PageExporter(HTMLExporter):
    """nbconvert's HTML exporter with evalkit's template."""

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw: Any) -> tuple[Any, dict]:
        """Convert a notebook. Skip HTMLExporter's second parse of the whole page, which only its template needs."""
        language = nb.metadata.get("language_info", {}).get("pygments_lexer", "ipython3")
        resources = self._init_resources(resources)
        self.register_filter("highlight_code", Highlight2HTML(pygments_lexer=language, parent=self))
        types = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", types)
        return TemplateExporter.from_notebook_node(self, nb, resources, **kw)

    @pass_context
    def markdown2html(self, context: Mapping[str, Any], source: str) -> str:
        """Render Markdown. Give its headings ids, and add them to the table of contents."""
        page = context["resources"]["evalkit"]

        def anchored(match: re.Match) -> str:
            level, inner = int(match[1]), match[2]
            words = html.unescape(re.sub(r"<[^>]*>", "", inner))
            first = heading_anchor(words)
            anchor = first
            numbers = itertools.count(2)
            while anchor in page["anchors"]:
                anchor = f"{first}-{next(numbers)}"
            page["anchors"].add(anchor)
            if level in (2, 3):
                page["contents"].append((level, anchor, html.escape(words)))
            for key in section_keys(context["cell"]):
                page["sections"].setdefault(key, (anchor, words))
            return render_macro("parts.html.j2", "heading", level, anchor, Markup(inner))

        return re.sub(r"<h([1-6])>(.*?)</h\1>", anchored, super().markdown2html(context, source), flags=re.DOTALL)


@cache
def _exporter(code: bool) -> PageExporter:
    """Return the exporter, cached because creating it takes longer than rendering a page."""
    return PageExporter(
        filters={"sanitised": sanitised, "terminal": terminal, "drawn": drawn},
        config=Config({"NbConvertBase": {"display_data_priority": _PRIORITY}}),
        template_name="evalkit",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_anchor_links=True,
        embed_images=True,
        exclude_input=not code,
    )


def render(
    nb: NotebookNode,
    *,
    key: str,
    facts: Iterable[Sequence[str]] = (),
    files: Iterable[str] = (),
    failure: Failure | None = None,
    code: bool = True,
    path: str = "",
    run_pages: Collection[str] | None = None,
) -> str:
    """Render the page of an executed notebook.

    `facts` appear at the end of the page and describe how it was made. `files` are the report's files, relative to the
    page, and `path` is the folder of local images in Markdown. Links to pages of runs that are not in `run_pages` are
    left out; by default, all links are kept.
    """
    page: dict[str, Any] = {
        "key": key,
        "title": title_of(nb.cells) or key,
        "policy": policy_of(SORTING),
        "script": SORTING,
        "style": asset("style.css"),
        "facts": list(facts),
        "files": list(files),
        "failure": failure,
        "contents": [],
        "anchors": set(RESERVED),
        "sections": {},  # anchor and heading of each section, by its key
        "numbers": itertools.count(1),  # numbers of figures
    }
    shown = _shown(nb, whole=failure is not None)
    text, resources = _exporter(code).from_notebook_node(shown, {"metadata": {"path": path}, "evalkit": page})
    sections = resources["evalkit"]["sections"]

    def linked(match: re.Match) -> str:
        section = sections.get(html.unescape(match[1]))
        return render_macro("parts.html.j2", "section_link", *section) if section else ""

    text = _SECTION.sub(linked, text)  # no links to sections that were left out
    if run_pages is None:
        return text
    return _RUN_LINK.sub(lambda link: link[0] if link[1] in run_pages else "", text)


def warm_up() -> None:
    """Render a minimal page to initialise libraries."""
    cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("1")]
    render(nbformat.v4.new_notebook(cells=cells), key="")


def _shown(nb: NotebookNode, *, whole: bool) -> NotebookNode:
    """Return a notebook without hidden outputs and, unless `whole`, without the prose of sections that show nothing."""
    cells, levels = [NotebookNode(cell) for cell in nb.cells], []
    for cell in cells:
        if cell.get("outputs"):
            cell.outputs = [output for output in cell.outputs if not output.get("metadata", {}).get(HIDDEN)]
        heading = re.match(r"(#{1,6}) ", cell.source) if cell.cell_type == "markdown" else None
        levels.append(len(heading[1]) if heading else 0)
    left_out: set[int] = set()
    for start, level in enumerate(levels):
        end = next((i for i, other in enumerate(levels) if i > start and 0 < other <= level), len(levels))
        codes = [cell for cell in cells[start:end] if cell.cell_type == "code"]
        if level > 1 and codes and not any(cell.get("outputs") for cell in codes):
            left_out |= {i for i in range(start, end) if cells[i].cell_type == "markdown"}
    return NotebookNode({**nb, "cells": [cell for i, cell in enumerate(cells) if whole or i not in left_out]})


def drawn(output: NotebookNode, page: dict) -> str:
    """Return an SVG from evalkit.display as an element with ids that are unique on the page; "" for other SVGs."""
    if not output.get("metadata", {}).get("image/svg+xml", {}).get(SAFE):
        return ""
    number = next(page["numbers"])
    svg = re.sub("<style>[^<]*</style>", "", output.data["image/svg+xml"])
    return re.sub(r"<[^<>]*>", lambda tag: _ID.sub(rf"\g<0>figure-{number}-", tag[0]), svg).strip()


def sanitised(text: str) -> str:
    """Sanitise HTML: remove scripts, frames, forms and anything that loads a resource; keep pandas' style sheets."""
    text = plain(text, keep_lines=True)
    styles = render_macro("parts.html.j2", "styles", map(Markup, _STYLE.findall(text)))
    return styles + _CLEANER.clean(_STYLE.sub("", text))


def terminal(text: str) -> str:
    """Convert printed text to HTML: drop colours, apply carriage returns, and keep only the text of warnings."""
    text = _WARNING.sub(r"Warning: \1", text)
    lines = (line.rsplit("\r", 1)[-1] for line in strip_ansi(text).replace("\r\n", "\n").split("\n"))
    return html.escape(plain("\n".join(lines), keep_lines=True))
