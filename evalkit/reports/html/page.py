"""Pages: an executed notebook as one HTML file that works offline and runs no script."""

import html
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from jinja2 import pass_context
from nbconvert.exporters.html import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode
from traitlets.config import Config

from evalkit.reports.html.index import POLICY, TEMPLATES
from evalkit.reports.html.sanitise import clean, terminal
from evalkit.reports.html.svg import caption, figure
from evalkit.reports.job import Failure

# The richest form first that needs no script
_PRIORITY = ["image/svg+xml", "image/png", "image/jpeg", "text/html", "text/markdown", "text/latex", "text/plain"]


class PageExporter(HTMLExporter):
    """nbconvert's HTML exporter with this package's template."""

    @property
    def default_config(self) -> Config:
        """The exporter's settings."""
        config = Config(super().default_config)
        config.merge(Config({"NbConvertBase": {"display_data_priority": _PRIORITY}}))
        return config

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw: Any) -> tuple[Any, dict]:
        """Convert a notebook; HTMLExporter's second parse of the whole page, for its own template, is left out."""
        language = nb.metadata.get("language_info", {}).get("pygments_lexer", "ipython3")
        resources = self._init_resources(resources)
        self.register_filter("highlight_code", Highlight2HTML(pygments_lexer=language, parent=self))
        types = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", types)
        return TemplateExporter.from_notebook_node(self, nb, resources, **kw)

    def default_filters(self) -> Iterable[tuple[str, Any]]:
        """Give the template's filters."""
        yield from super().default_filters()
        yield "clean", clean
        yield "terminal", terminal
        yield "drawn", drawn
        yield "caption", caption

    @pass_context
    def markdown2html(self, context: Mapping[str, Any], source: str) -> str:
        """Render Markdown; its headings get anchors and go into the list of contents."""
        page = context["resources"]["evalkit"]
        return _with_anchors(super().markdown2html(context, source), page["contents"], page["anchors"])


@cache
def exporter(code: bool = True) -> PageExporter:
    """Return the exporter, built once per process: building it costs more than a page."""
    made = PageExporter(
        template_name="evalkit",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_anchor_links=True,
        embed_images=True,
        exclude_input=not code,
    )
    made.template  # noqa: B018 - compiled here, so that forked children inherit it
    return made


def render(
    nb: NotebookNode,
    *,
    key: str,
    facts: Iterable[tuple[str, str]] = (),
    files: Iterable[str] = (),
    failure: Failure | None = None,
    code: bool = True,
    path: str = "",
) -> str:
    """Make the page of an executed notebook.

    Parameters
    ----------
    nb : NotebookNode
    key : str
        The report's name, shown above the page.
    facts : iterable of (name, value)
        What the page's end says about how it was made.
    files : iterable of str
        Names of files beside the page, to be linked.
    failure : Failure, optional
    code : bool
        Whether the code is in the page, folded; if not, it is really absent.
    path : str
        Folder from which local images in Markdown cells are taken.

    Returns
    -------
    str
    """
    page = {
        "key": key,
        "title": title_of(nb) or key,
        "policy": POLICY,
        "facts": list(facts),
        "files": list(files),
        "failure": failure,
        "contents": [],
        "anchors": {"failed", "show-code"},  # the page's own
        "figures": [],
    }
    text, _ = exporter(code).from_notebook_node(nb, {"metadata": {"path": path}, "evalkit": page})
    return text


def drawn(output: NotebookNode, page: dict) -> str:
    """Make elements of the page of the SVG that evalkit.display drew; empty for that of others."""
    about = output.get("metadata", {}).get("image/svg+xml", {})
    if not about.get("evalkit_safe"):
        return ""
    page["figures"].append(about)
    return figure(output.data["image/svg+xml"], about, len(page["figures"]))


def title_of(nb: NotebookNode) -> str:
    """Return the first top heading of a notebook, or an empty text."""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and (match := re.search(r"^# +(.+?)\s*$", cell.source, re.MULTILINE)):
            return match[1]
    return ""


def _with_anchors(text: str, contents: list, anchors: set[str]) -> str:
    def anchored(match: re.Match) -> str:
        level, inner = int(match[1]), match[2]
        words = html.unescape(re.sub(r"<[^>]*>", "", inner))
        base = anchor = re.sub(r"[^\w-]+", "-", words.lower()).strip("-") or "section"
        number = 1
        while anchor in anchors:
            number += 1
            anchor = f"{base}-{number}"
        anchors.add(anchor)
        if level in (2, 3):
            contents.append((level, anchor, html.escape(words)))
        return f'<h{level} id="{anchor}">{inner}</h{level}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", anchored, text, flags=re.DOTALL)
