"""One call for each thing a notebook shows; what comes from logs is escaped on its way."""

import base64
import html
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit.display.style import figure_of, has_nothing_to_draw
from evalkit.display.tables import table_html
from evalkit.io import for_spreadsheets, plain
from evalkit.io.text import is_local_link, shorten
from evalkit.stats.text import format_interval, number

HEADLINE = "application/vnd.evalkit.headline+json"  # what the index of reports shows beside a link
TABLE = "application/vnd.evalkit.table+json"  # what becomes a CSV file beside the page
FINDINGS = "application/vnd.evalkit.findings+json"  # sentences with their sections; the index shows the first
REPORT = "EVALKIT_EVIDENCE"  # set in reports, as evalkit.evidence.VARIABLE
FIGURE = "application/vnd.evalkit.figure+json"  # name and PDF of a figure that is saved beside the page
HIDDEN = "evalkit_hidden"  # metadata of outputs that a report's page leaves out
SAFE = "evalkit_safe"  # metadata of HTML and SVG that hold no markup but this package's


def show_figure(figure: Figure | Axes, alt: str, caption: str = "", name: str = "") -> None:
    """Show a figure as SVG and PNG, with alt text; nothing where it says that there is nothing to draw.

    Parameters
    ----------
    figure : Figure or Axes
    alt : str
        What the figure shows, in words, for those who can't see it. Required.
    caption : str
        A line below the figure.
    name : str
        With a name, of letters, digits, ``_`` and ``-`` only, a report saves the figure beside its page as SVG, PDF and
        PNG.

    Raises
    ------
    ValueError
        Where `alt` is empty or `name` has other characters.
    """
    if not alt.strip():
        raise ValueError("a figure needs alt text")
    if name:
        _check_name(name)
    from evalkit.display.drawing import draw  # imported where it is needed: it brings all of matplotlib's backends

    whole = figure_of(figure) if isinstance(figure, Axes) else figure
    if has_nothing_to_draw(whole):
        display({FIGURE: {}, "text/plain": ""}, raw=True, metadata={HIDDEN: True})
        return
    drawing = draw(whole, plain(alt), pdf=bool(name), narrow=bool(os.environ.get(REPORT)))
    size = {"width": round(whole.get_figwidth() * 100), "height": round(whole.get_figheight() * 100)}
    about = {"alt": plain(alt), "caption": plain(caption), **size}
    data: dict[str, Any] = {"image/png": drawing.png, "text/plain": f"Figure: {plain(alt)}"}
    metadata = {"image/png": about}
    if drawing.svg:
        data["image/svg+xml"] = drawing.svg
        metadata["image/svg+xml"] = {**about, SAFE: True}
    if name:
        data[FIGURE] = {"name": name, "pdf": base64.b64encode(drawing.pdf).decode("ascii")}
    if drawing.narrow:
        data[FIGURE] = {**data.get(FIGURE, {}), "narrow": drawing.narrow}
    display(data, raw=True, metadata=metadata)
    if caption:  # front ends show none of their own; a report's page has it below the figure
        page = f'<p class="evalkit-caption" style="text-align:left">{_escape(caption)}</p>'
        shown = {"text/html": page, "text/plain": plain(caption)}
        display(shown, raw=True, metadata={"text/html": {SAFE: True}, HIDDEN: True})


def show_table(
    table: pd.DataFrame,
    caption: str = "",
    *,
    digits: int = 3,
    percent: bool = True,
    rows: int = 200,
    estimate: str = "",
    counted: str = "runs",
    anchor: str = "",
) -> None:
    """Show a frame as a table for people; nothing where it has no rows.

    Columns estimate, low and high (or scored_estimate, …) become one; method, target and warning stand below the table
    where they are the same in all rows, else in its last column; `run_id` and `href`, a link within the site, belong to
    the row and are no columns. Titles of columns and words for values are those of `evalkit.display.titles`.

    Parameters
    ----------
    table : DataFrame
    caption : str
    digits : int
        Decimals of other floats.
    percent : bool
        Show estimates as percentages; False for scores that are not shares.
    rows : int
        At most so many rows; a line below says how many were left out.
    estimate : str
        What the column `estimate` holds; by default a success rate, or a mean where `percent` is False.
    counted : str
        What the column `n` counts: runs, episodes, steps.
    anchor : str
        What the table is linked by, of letters, digits and ``-``; ``#ANCHOR?COLUMN=VALUE`` shows the rows that have
        this value.
    """
    if table.empty:
        return
    estimate = estimate or ("success rate" if percent else "mean")
    page, text = table_html(
        table, caption, digits=digits, percent=percent, rows=rows, estimate=estimate, counted=counted, anchor=anchor
    )
    _show_html(page, text)


def show_findings(findings: Iterable[tuple[Any, ...] | str]) -> None:
    """Show what was found, in sentences that lead to their sections and runs, and hand it over to the index.

    Parameters
    ----------
    findings : iterable of Finding, or of (text, section)
        `section` is the heading of a section; a text alone leads nowhere. `evalkit.Evidence.cite` makes links of the
        examples of a finding; without it they are left out.
    """
    parts = [(finding,) if isinstance(finding, str) else tuple(finding) for finding in findings]
    rows = [(part[0], part[1] if len(part) > 1 else "", part[2] if len(part) > 2 else ()) for part in parts]
    found = [{"text": plain(text), "section": plain(section)} for text, section, _ in rows]
    links = [_run_links(examples) for *_, examples in rows]
    items = "".join(
        f"<li>{_escape(one['text'])}{_section_link(one['section'])}{runs}</li>"
        for one, runs in zip(found, links, strict=True)
    )
    page = f'<ul class="evalkit-findings" style="text-align:left">{items}</ul>'
    _show_html(page, "\n".join(f"- {one['text']}" for one in found), {FINDINGS: found})


class RunLink(NamedTuple):
    """A link to the page of a run: what it is called, and where it leads."""

    label: str
    href: str


def _run_links(examples: Iterable[Any]) -> str:
    """Link to the runs that a sentence counts, where there are pages of them."""
    links = [one for one in examples if isinstance(one, RunLink) and is_local_link(one.href)]
    listed = ", ".join(f'<a href="{_escape(one.href)}">{_escape(shorten(plain(one.label), 90))}</a>' for one in links)
    return f' <span class="evalkit-runs">For example: {listed}</span>' if listed else ""


def _section_link(section: str) -> str:
    """Link to a section as JupyterLab names it; a report's page gives it the name it has there."""
    href = _escape(quote(section.replace(" ", "-")))
    return f' <a class="evalkit-section" href="#{href}">{_escape(section)}</a>' if section else ""


def show_text(text: str) -> None:
    """Show a sentence or a preformatted text, escaped; nothing where it is empty."""
    if not text.strip():
        return
    safe = plain(text, keep_lines=True)
    _show_html(f'<p class="evalkit-text">{html.escape(safe)}</p>', safe)


def show_details(title: str, text: str | Iterable[tuple[str, str]]) -> None:
    """Show a text folded under its title, escaped: for conversations and other long things from logs.

    Parameters
    ----------
    title : str
    text : str, or iterable of (title, text)
        Several texts are folded once more, each under its own title; nothing is shown where there are none.
    """
    parts = None if isinstance(text, str) else list(text)
    if parts == []:
        return
    inner = _pre(text) if parts is None else "".join(_folded(*part) for part in parts)
    said = [text] if parts is None else [f"{plain(name)}\n{body}" for name, body in parts]
    whole = "\n".join(plain(part, keep_lines=True) for part in said)
    _show_html(_details(title, inner), f"{plain(title)}\n{whole}")


def _folded(title: str, text: str) -> str:
    return _details(title, _pre(text))


def _details(title: str, inner: str) -> str:
    return f'<details class="evalkit-details"><summary>{_escape(title)}</summary>{inner}</details>'


def _pre(text: object) -> str:
    return f"<pre>{html.escape(plain(text, keep_lines=True))}</pre>"


def show_sandboxed(page: str, title: str, height: int = 320) -> None:
    """Show HTML from a log, folded, in a frame where it can neither run scripts nor load anything.

    The frame is sandboxed with no permissions (no scripts, forms, pop-ups, nor access to the page around it), and a
    content security policy in front of the HTML forbids every request; styles and images inside it show. A plot that
    draws itself with a script stays empty.

    Parameters
    ----------
    page : str
        HTML, hostile until shown otherwise.
    title : str
        What the frame shows, for those who can't see it. Required.
    height : int
        Of the frame, in pixels.

    Raises
    ------
    ValueError
        Where `title` is empty.
    """
    if not title.strip():
        raise ValueError("a frame needs a title")
    whole = page.encode("utf-8", "replace").decode("utf-8")  # lone surrogates can't be written
    inner = html.escape(f'<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="{_POLICY}">{whole}')
    frame = (
        f'<iframe class="evalkit-sandbox" sandbox="" referrerpolicy="no-referrer" loading="lazy" width="100%" '
        f'height="{int(height)}" title="{_escape(title)}" srcdoc="{inner}"></iframe>'
    )
    _show_html(_details(title, frame), f"{plain(title)}: HTML, {len(page)} characters")


_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:"


def publish(table: pd.DataFrame, name: str) -> None:
    """Hand a table over to the report: it becomes ``NAME.csv`` beside the page. Elsewhere nothing is written or shown.

    Parameters
    ----------
    table : DataFrame
    name : str
        Letters, digits, ``_`` and ``-`` only.
    """
    _check_name(name)
    data = {"name": name, "csv": for_spreadsheets(table).to_csv(index=False), "rows": len(table)}
    display({TABLE: data, "text/plain": ""}, raw=True, metadata={HIDDEN: True})


def _check_name(name: str) -> None:
    if not re.fullmatch("[A-Za-z0-9_-]{1,80}", name):
        raise ValueError(f"{name!r} can't be a file's name: up to 80 letters, digits, _ and - only")


def headline(estimate: Any, label: str = "", *, percent: bool = True, href: str = "") -> None:
    """Hand the report's main figure over to the index, and show it.

    Parameters
    ----------
    estimate : a named result (estimate, low, high, n, ...) or a mapping or row with these keys
    label : str
        What the figure is, such as ``success rate``.
    percent : bool
        Show it as a percentage.
    href : str
        Where the figure leads within the report, such as to its runs (`evalkit.Evidence.where`).
    """
    values = estimate._asdict() if hasattr(estimate, "_asdict") else dict(estimate)
    numbers = {key: number(values.get(key)) for key in ("estimate", "low", "high", "n")}
    text = format_interval(numbers["estimate"], numbers["low"], numbers["high"], percent=percent)
    data = {"label": plain(label), **numbers, "method": values.get("method"), "percent": percent, "text": text}
    n = "" if numbers["n"] is None else f"n = {numbers['n']:,.0f}"
    known = numbers["estimate"] is not None  # else the label says why there is no figure
    shown = f'<a href="{_escape(href)}">{_escape(text)}</a>' if is_local_link(href) else _escape(text)
    body = f"<strong>{shown}</strong> <span>{_escape(label)}</span> <span>{n}</span>"
    page = f'<p class="evalkit-headline">{body if known else f"<strong>{_escape(label)}</strong>"}</p>'
    said = f"{plain(label)}: {text}, {n}" if known else plain(label)
    _show_html(page, said, {HEADLINE: data}, hidden=not known)  # findings say it in full


def _show_html(page: str, text: str, more: Mapping[str, Any] | None = None, *, hidden: bool = False) -> None:
    """Show HTML in which all that is not this module's own is escaped; the mark tells a report's page so."""
    data = {**(more or {}), "text/html": page, "text/plain": text}
    display(data, raw=True, metadata={"text/html": {SAFE: True}} | ({HIDDEN: True} if hidden else {}))


def _escape(text: object) -> str:
    return html.escape(plain(text))
