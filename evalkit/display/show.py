"""Show figures, tables, findings and text in notebooks; text from logs is escaped."""

import base64
import html
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from IPython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit._text import as_number, format_interval
from evalkit.display.drawing import alt_of, draw, has_nothing_to_draw
from evalkit.display.tables import answer_html, escape, table_html
from evalkit.display.words import finding_text, headline_text
from evalkit.io import for_spreadsheets, plain
from evalkit.io.secrets import is_masking
from evalkit.io.text import is_local_link, shorten
from evalkit.kinds import Finding

HEADLINE = "application/vnd.evalkit.headline+json"  # shown beside a link in the index of reports
FINDINGS = "application/vnd.evalkit.findings+json"  # sentences with their sections; the index shows the first
TABLE = "application/vnd.evalkit.table+json"  # saved as a CSV file beside the page
FIGURE = "application/vnd.evalkit.figure+json"  # name and PDF of a figure that is saved beside the page
HIDDEN = "evalkit_hidden"  # metadata of outputs that a report's page leaves out
SAFE = "evalkit_safe"  # metadata of HTML and SVG that hold no markup but this package's
MOST_FINDINGS = 4  # open ones at the beginning of a page
REPORT = "EVALKIT_EVIDENCE"  # variable of the environment in a report: 1 if its runs get pages, else empty
SORTING = Path(__file__).with_name("tables.js").read_text(encoding="utf-8")  # makes tables sort, filter and search
_LOOKS = (
    ".evalkit-table { overflow-x: auto; } .evalkit-table tr[hidden] { display: none; } "
    ".evalkit-table th button { all: unset; cursor: pointer; } .evalkit-table th button::after { content: ' ↕'; } "
    ".evalkit-fold .tools { display: flex; flex-wrap: wrap; gap: .4em 1em; margin: .4em 0; }"
)


def show_figure(figure: Figure | Axes, caption: str = "", name: str = "", *, alt: str = "") -> None:
    """Show a figure as SVG and PNG, with alt text; nothing for a figure of `nothing_to_draw`.

    `caption` is a line below it. With a `name`, of letters, digits, ``_`` and ``-`` only, a report saves the figure
    beside its page as SVG, PDF and PNG. `alt` says what the figure shows, in words, for those who can't see it: plots
    of this package say it themselves, any other figure needs it.
    """
    if name:
        _check_name(name)
    root: Any = figure.get_figure(root=True) if isinstance(figure, Axes) else figure
    if has_nothing_to_draw(root):
        display({FIGURE: {}, "text/plain": ""}, raw=True, metadata={HIDDEN: True})
        return
    if not (alt := alt or alt_of(root)).strip():
        raise ValueError("a figure needs alt text: say in words what it shows, as alt='…'")
    drawing = draw(root, plain(alt), pdf=bool(name))
    width, height = (round(inches * 100) for inches in root.get_size_inches())
    about = {"alt": plain(alt), "caption": plain(caption), "width": width, "height": height}
    data: dict[str, Any] = {"image/png": drawing.png, "text/plain": f"Figure: {plain(alt)}"}
    metadata = {"image/png": about}
    if drawing.svg:
        data["image/svg+xml"] = drawing.svg
        metadata["image/svg+xml"] = {**about, SAFE: True}
    if name:
        data[FIGURE] = {"name": name, "pdf": base64.b64encode(drawing.pdf).decode("ascii")}
    display(data, raw=True, metadata=metadata)
    if caption:  # front ends show none; a report's page has it below the figure
        page = f'<p class="evalkit-caption" style="text-align:left">{escape(caption)}</p>'
        _show_html(page, plain(caption), hidden=True)


def show_table(
    table: pd.DataFrame,
    caption: str = "",
    *,
    digits: int = 3,
    percent: bool = True,
    rows: int = 200,
    estimate: str = "",
    counted: str = "runs",
    unit: str | None = None,
    anchor: str = "",
    name: str = "",
) -> None:
    """Show a frame as a formatted table; nothing if it has no rows.

    Columns estimate, low and high (or scored_estimate, …) become one; method, target and warning stand below the table
    if they are the same in all rows, else in its last column; `run_id` and `href`, a link within the site, apply to
    the row and are not shown as columns. Columns and values have the labels of their kind of log.

    Estimates are shown as percentages if `percent`, other floats with so many `digits`. Of more than so many `rows` a
    line below says where the others are. `estimate` says what the column of that name holds, by default a success
    rate, or a mean where `percent` is False; `unit` its unit where it is no percentage, such as the points of a
    difference of shares; `counted` what `n` counts: runs, episodes, steps. `anchor` is the id for
    links to the table; ``#ANCHOR?COLUMN=VALUE`` shows the rows with this value. With a `name` the whole table is also
    published, as by `publish`. In Lab and in reports, readers sort, search and filter the rows shown.
    """
    if name:
        publish(**{name: table})
    if table.empty:
        return
    estimate = estimate or ("success rate" if percent else "mean")
    options: dict[str, Any] = {"digits": digits, "percent": percent, "rows": rows, "estimate": estimate}
    rest = f"not shown; a report has them in {name}.csv" if name else f"not shown: rows={len(table)} shows them"
    page, text = table_html(table, caption, **options, counted=counted, unit=unit, rest=rest, anchor=anchor)
    _show_html(page + _sorting(), text)


def show_answer(
    findings: Sequence[Finding],
    table: pd.DataFrame,
    caption: str = "",
    *,
    headline: Any = None,
    label: str = "",
    digits: int = 2,
    percent: bool = True,
    estimate: str = "",
    counted: str = "runs",
    unit: str | None = None,
) -> None:
    """Show what a report begins with: the finding that answers, its table with estimates drawn, and other findings.

    The first of the `findings` with a headline, else the first one, answers; the others follow as in `show_findings`,
    what two of them say only once, with the links of the last.
    The `table` has estimate, low and high, the most important row first; the `caption` says what a row is. `headline`
    and `label` are the estimate for the index of reports, and what it is, by default those of the finding that answers.
    The rest is as for `show_table`.
    """
    answer = next((one for one in findings if "headline" in one.values), findings[0])
    options: dict[str, Any] = {"digits": digits, "percent": percent, "counted": counted, "unit": unit}
    options["estimate"] = estimate or ("success rate" if percent else "mean")
    page, text = answer_html(answer, table, caption, **options)
    data = headline_data(answer.values.get("headline", {}) if headline is None else headline, label, percent=percent)
    said = [{"text": plain(finding_text(answer)), "section": plain(answer.section)}]
    _show_html(page + _sorting(), text, {HEADLINE: data, FINDINGS: said})
    show_findings({finding_text(one): one for one in findings if one is not answer}.values())


class RunLink(NamedTuple):
    """A link to the page of a run: its label and address."""

    label: str
    href: str


def show_findings(findings: Iterable[Finding]) -> None:
    """Show findings as sentences with links to their sections and runs, and pass them to the index.

    The first four are open, the others folded below them: give the most important ones first. `evalkit.Evidence.cite`
    turns the examples of findings into links; without it they are left out.
    """
    sentences, items = [], list[str]()
    for finding in findings:
        text, section = finding_text(finding), plain(finding.section)
        sentences.append({"text": plain(text), "section": section})
        item, runs = escape(text), [one for one in finding.examples if isinstance(one, RunLink)]
        if runs and is_local_link(runs[0].href):
            label = plain(runs[0].label)
            shown = escape(shorten(label, 16))  # so that sentence and link fit a line; the whole one is its title
            item += f' <a class="evalkit-run" href="{escape(runs[0].href)}" title="{escape(label)}">{shown}</a>'
        elif section:  # by JupyterLab's id of it, which a report's page replaces by its own
            item += (
                f' <a class="evalkit-section" href="#{escape(quote(section.replace(" ", "-")))}">{escape(section)}</a>'
            )
        items.append(f"<li>{item}</li>")
    page, rest = (
        f'<ul class="evalkit-findings" style="text-align:left">{"".join(some)}</ul>'
        for some in (items[:MOST_FINDINGS], items[MOST_FINDINGS:])
    )
    if more := len(items[MOST_FINDINGS:]):
        page += f"<details><summary>{more} more, on data quality and caveats</summary>{rest}</details>"
    _show_html(page, "\n".join(f"- {sentence['text']}" for sentence in sentences), {FINDINGS: sentences})


def show_text(text: str) -> None:
    """Show a sentence or preformatted text, escaped; nothing if it is empty."""
    if text.strip():
        safe = plain(text, keep_lines=True)
        _show_html(f'<p class="evalkit-text">{html.escape(safe)}</p>', safe)


def show_details(title: str, text: str) -> None:
    """Show text folded under a title, escaped: for conversations and other long text from logs."""
    safe = plain(text, keep_lines=True)
    page = f"<summary>{escape(title)}</summary><pre>{html.escape(safe)}</pre>"
    _show_html(f'<details class="evalkit-details">{page}</details>', f"{plain(title)}\n{safe}")


def publish(**tables: pd.DataFrame) -> None:
    """Save tables of a report as CSV files: ``publish(models=models)`` as ``models.csv``.

    Outside of reports nothing is written or shown. `show_table` with a name does both.
    """
    for name, table in tables.items():
        _check_name(name)
        csv = for_spreadsheets(table, mask=is_masking()).to_csv(index=False)
        data = {"name": name, "csv": csv, "rows": len(table)}
        display({TABLE: data, "text/plain": ""}, raw=True, metadata={HIDDEN: True})


def _check_name(name: str) -> None:
    if not re.fullmatch("[A-Za-z0-9_-]{1,80}", name):
        raise ValueError(f"{name!r} can't be a file's name: up to 80 letters, digits, _ and - only")


def headline(estimate: Any, label: str = "", *, percent: bool = True) -> None:
    """Show a report's main result, a named result or a mapping (estimate, low, high, n), and pass it to the index.

    The `label` says what it is, such as ``success rate``; by default that of a result with a ``code``, as from
    `evalkit.compare.headline`. Where a table shows it, too, use `show_answer`.
    """
    data = headline_data(estimate, label, percent=percent)
    n = "" if data["n"] is None else f" (n = {data['n']:,.0f})"
    text = f"{data['label']}: {data['text']}{n}"
    _show_html(f'<p class="evalkit-answer"><strong>{html.escape(text)}</strong></p>', text, {HEADLINE: data})


def headline_data(estimate: Any, label: str = "", *, percent: bool = True) -> dict[str, Any]:
    """Return a report's main result, a named result or a mapping, as the index of reports shows it.

    The `label` says what it is, such as ``success rate``; by default that of a result with a ``code``.
    """
    values = estimate._asdict() if hasattr(estimate, "_asdict") else dict(estimate)
    label = label or (headline_text(values) if "code" in values else "")
    numbers = {key: as_number(values.get(key)) for key in ("estimate", "low", "high", "n")}
    text = format_interval(
        numbers["estimate"], numbers["low"], numbers["high"], percent=percent, unit=values.get("unit")
    )
    return {"label": plain(label), **numbers, "method": values.get("method"), "percent": percent, "text": text}


def _sorting() -> str:
    """Return what lets readers sort tables in the output of a kernel; the pages of reports have their own script."""
    has_kernel = hasattr(get_ipython(), "kernel")
    return f"<style>{_LOOKS}</style><script>{SORTING}</script>" if has_kernel and REPORT not in os.environ else ""


def _show_html(page: str, text: str, more: Mapping[str, Any] | None = None, *, hidden: bool = False) -> None:
    """Show HTML in which all foreign text is escaped, and mark it as such for a report's page."""
    data = {**(more or {}), "text/html": page, "text/plain": text}
    display(data, raw=True, metadata={"text/html": {SAFE: True}} | ({HIDDEN: True} if hidden else {}))
