"""Show figures, tables, findings, text and provenance in notebooks. Text from logs is escaped."""

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol, TypedDict

import pandas as pd
from IPython import get_ipython
from IPython.display import display
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit._html import asset, render_macro
from evalkit._text import as_number, counted_noun, format_interval
from evalkit._version import code_version, package_versions
from evalkit.display.drawing import alt_of, draw, has_nothing_to_draw
from evalkit.display.tables import answer_html, linked_parts, table_html
from evalkit.display.terminal import chosen_lines
from evalkit.display.words import abstract_text, finding_parts, finding_text, headline_text
from evalkit.io import for_spreadsheets, plain
from evalkit.io.paths import SourceError, absolute, common_folder, is_secret_name, is_url, redacted
from evalkit.io.secrets import is_masking
from evalkit.io.sources import list_source
from evalkit.io.store import read_manifest
from evalkit.io.text import is_local_link, shorten
from evalkit.kinds import Finding
from evalkit.kinds.findings import RunLink
from evalkit.kinds.logs import Logs

HEADLINE = "application/vnd.evalkit.headline+json"  # a report's headline, which the index of reports shows
FINDINGS = "application/vnd.evalkit.findings+json"  # sentences with their sections; the index shows the first
CHOSEN = "application/vnd.evalkit.chosen+json"  # how logs were read, as lines; the command and the index show them
TABLE = "application/vnd.evalkit.table+json"  # a table, which the report saves as a CSV file
FIGURE = "application/vnd.evalkit.figure+json"  # name and PDF of a figure, which the report saves
HIDDEN = "evalkit_hidden"  # key in the metadata of outputs that a report's page leaves out
SAFE = "evalkit_safe"  # key in the metadata of HTML and SVG whose markup comes only from evalkit
MOST_FINDINGS = 4  # maximum number of findings shown at the beginning of a page; the others are folded
REPORT = "EVALKIT_EVIDENCE"  # environment variable that only reports set: "1" if their runs get pages, else empty
SORTING = asset("tables.js")  # script that sorts, filters and searches tables
_STYLE = (
    ".evalkit-table { overflow-x: auto; } .evalkit-table tr[hidden] { display: none; } "
    ".evalkit-table th button { all: unset; cursor: pointer; } .evalkit-table th button::after { content: ' ↕'; } "
    ".evalkit-fold .tools { display: flex; flex-wrap: wrap; gap: .4em 1em; margin: .4em 0; }"
)


class NamedResult(Protocol):
    """A result with named values, such as `evalkit.stats.Estimate` and any other NamedTuple."""

    def _asdict(self) -> dict[str, Any]: ...


def show_figure(figure: Figure | Axes, caption: str = "", name: str = "", *, alt: str = "") -> None:
    """Show a figure as SVG and PNG, with alt text; show nothing if `nothing_to_draw` drew it.

    Parameters
    ----------
    figure : Figure or Axes
        The figure, or axes on it.
    caption : str
        A line below the figure.
    name : str
        Name of the files (SVG, PDF, PNG) that a report saves next to its page; by default, it saves none.
    alt : str
        Alt text; required for figures that evalkit did not draw.

    Raises
    ------
    ValueError
        If the figure has no alt text, or `name` is not a valid file name.

    Examples
    --------
    >>> evalkit.show_figure(compare.figures.ranking(compare.leaderboard(runs)))  # doctest: +SKIP
    """
    if name:
        _check_name(name)
    root: Any = figure.get_figure(root=True) if isinstance(figure, Axes) else figure
    if has_nothing_to_draw(root):
        display({FIGURE: {}, "text/plain": ""}, raw=True, metadata={HIDDEN: True})
        return
    if not (alt := alt or alt_of(root)).strip():
        raise ValueError("a figure needs alt text that describes it: alt='…'")
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
    if caption:  # for front ends, which show no caption; a report's page shows it under the figure
        _show_html(_html("caption", plain(caption)), plain(caption), hidden=True)


class TableOptions(TypedDict, total=False):
    """The options of `show_table`, for functions that pass them on."""

    digits: int
    percent: bool
    rows: int
    estimate: str
    counted: str
    unit: str | None
    anchor: str
    keys: pd.DataFrame | None
    name: str


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
    keys: pd.DataFrame | None = None,
    name: str = "",
) -> None:
    """Show a frame as a formatted table; show nothing if it has no rows.

    Columns estimate, low and high (or scored_estimate, …) become one column. A method, target or warning that is the
    same in all rows appears below the table. The columns run_id and href belong to the row and are hidden, and so is
    a measure that all rows share. Readers can sort, search and filter the rows in JupyterLab and in reports.

    Parameters
    ----------
    table : DataFrame
        The rows to show.
    caption : str
        Title of the table.
    digits : int
        Decimal places of numbers that are not percentages.
    percent : bool
        Whether estimates are shares from 0 to 1, shown as percentages.
    rows : int
        Maximum number of rows; a line below the table counts the others.
    estimate : str
        Title of the column estimate; by default ``success rate``, or ``mean`` unless `percent`.
    counted : str
        What n counts, such as ``runs``.
    unit : str, optional
        Unit of the estimate, such as ``points`` for a difference of shares.
    anchor : str
        Id of the table, for links to it.
    keys : DataFrame, optional
        Columns whose values links address, with the rows of `table`: ``#ANCHOR?COLUMN=CODE`` shows the rows with the
        value that has this code. In a column of lists, each item is a value. `evalkit.Evidence` makes such links.
    name : str
        Also save the whole table under this name, as `publish` does.

    Examples
    --------
    >>> evalkit.show_table(runs[["model_name", "score"]].head(2))
          model score
    alder-large     –
    alder-large 0.442
    """
    if name:
        is_unnamed = bool(estimate) and "estimate" in table and "measure" not in table
        publish(**{name: table.assign(measure=estimate) if is_unnamed else table})
    if table.empty:
        return
    options: dict[str, Any] = {"digits": digits, "percent": percent, "rows": rows, "estimate": estimate}
    rest = f"not shown; a report has them in {name}.csv" if name else f"not shown: rows={len(table)} shows them"
    page, text = table_html(table, caption, **options, counted=counted, unit=unit, rest=rest, anchor=anchor, keys=keys)
    _show_html(page + _sorting(), text)


def show_answer(
    findings: Sequence[Finding],
    table: pd.DataFrame,
    caption: str = "",
    *,
    headline: NamedResult | Mapping[Any, Any] | None = None,
    label: str = "",
    digits: int = 2,
    percent: bool = True,
    estimate: str = "",
    counted: str = "runs",
    unit: str | None = None,
    methods: str = "",
) -> None:
    """Show the beginning of a report: the answer to its question, a table, other findings, and an abstract to copy.

    Parameters
    ----------
    findings : sequence of Finding
        The answer is the first finding that has a headline, or else the first finding. The others follow as in
        `show_findings`. If several have the same text, only the last is shown.
    table : DataFrame
        The estimates for the answer (estimate, low, high), the most important row first.
    caption : str
        Title of the table.
    headline : named result or mapping, optional
        The estimate for the index of reports; by default the estimate of the answer.
    label : str
        What the headline estimates; by default the text of the answer's headline.
    digits : int
        Decimal places of numbers that are not percentages.
    percent : bool
        Whether estimates are shares from 0 to 1.
    estimate : str
        Title of the column estimate.
    counted : str
        What n counts, such as ``runs``.
    unit : str, optional
        Unit of the estimate, such as ``points``.
    methods : str
        A paragraph on methods for readers to copy, such as from `evalkit.compare.methods_text`.

    Examples
    --------
    >>> board = compare.leaderboard(runs)
    >>> evalkit.show_answer(compare.findings(board), compare.answer_table(board))  # doctest: +SKIP
    """
    answer = next((finding for finding in findings if "headline" in finding.values), findings[0])
    options: dict[str, Any] = {"digits": digits, "percent": percent, "estimate": estimate, "counted": counted}
    page, text = answer_html(answer, table, caption, unit=unit, **options)
    data = headline_data(answer.values.get("headline", {}) if headline is None else headline, label, percent=percent)
    sentences = [{"text": plain(finding_text(answer)), "section": plain(answer.section)}]
    _show_html(page + _sorting(), text, {HEADLINE: data, FINDINGS: sentences})
    others = {finding_text(finding): finding for finding in findings if finding is not answer}.values()
    show_findings(others)
    first = table.iloc[0].to_dict() if len(table) else {}
    abstract = plain(abstract_text(answer, others, first))
    _show_html(_html("abstract", "Abstract to copy", abstract), f"Abstract: {abstract}")
    if methods:
        methods = plain(methods, keep_lines=True)
        _show_html(_html("abstract", "Methods to copy", methods), f"Methods: {methods}")


def show_findings(findings: Iterable[Finding]) -> None:
    """Show findings with links to their sections and runs, the first four unfolded, and pass them to the index.

    A report's page has the links to sections. The notebook's Markdown cell with the heading of the section ``ranking``
    has the tag ``section:ranking``, and the link shows this heading. Without such a cell, there is no link.

    Parameters
    ----------
    findings : iterable of Finding
        Findings; `evalkit.Evidence.cite` turns their examples into links.

    Examples
    --------
    >>> evalkit.show_findings([])
    """
    items = []
    for finding in findings:
        parts = finding_parts(finding)
        text = plain(parts)
        item: dict[str, Any] = {
            "text": text,
            "parts": linked_parts(parts, finding.links),
            "section": plain(finding.section),
        }
        run = next((link for link in finding.examples if isinstance(link, RunLink)), None)
        if run and is_local_link(run.href):
            label = plain(run.label)
            # short, so that the sentence and the link fit on a line; the link's title is the whole label
            item |= {"href": run.href, "label": label, "short_label": shorten(label, 16)}
        items.append(item)
    sentences = [{"text": item["text"], "section": item["section"]} for item in items]
    text = "\n".join(f"- {item['text']}" for item in items)
    _show_html(_html("findings", items, MOST_FINDINGS), text, {FINDINGS: sentences})


def show_text(text: str) -> None:
    """Show a sentence or preformatted text, escaped; show nothing if it is empty.

    Parameters
    ----------
    text : str
        The text.

    Examples
    --------
    >>> evalkit.show_text("All runs ended.")
    All runs ended.
    """
    if text.strip():
        safe = plain(text, keep_lines=True)
        _show_html(_html("text", safe), safe)


def show_details(title: str, text: str) -> None:
    """Show text folded under a title, escaped.

    Parameters
    ----------
    title : str
        The title, which stays visible.
    text : str
        Long text, such as a conversation from a log. If it is empty, nothing is shown.

    Examples
    --------
    >>> evalkit.show_details("Log", "first line")
    Log
    first line
    """
    if not text:
        return
    safe = plain(text, keep_lines=True)
    _show_html(_html("details", plain(title), safe), f"{plain(title)}\n{safe}")


def publish(**tables: pd.DataFrame) -> None:
    """Save tables of a report as CSV files next to its page; outside reports, do nothing.

    Parameters
    ----------
    **tables : DataFrame
        Tables by file name: ``models=models`` makes ``models.csv``.

    Raises
    ------
    ValueError
        If a name is not a valid file name.

    Examples
    --------
    >>> evalkit.publish(models=runs)
    """
    for name, table in tables.items():
        _check_name(name)
        csv = for_spreadsheets(table, mask=is_masking()).to_csv(index=False)
        data = {"name": name, "csv": csv, "rows": len(table)}
        display({TABLE: data, "text/plain": ""}, raw=True, metadata={HIDDEN: True})


def _check_name(name: str) -> None:
    if not re.fullmatch("[A-Za-z0-9_-]{1,80}", name):
        raise ValueError(f"{name!r} can't be a file's name: up to 80 letters, digits, _ and - only")


def headline(estimate: NamedResult | Mapping[Any, Any], label: str = "", *, percent: bool = True) -> None:
    """Show a report's main result, and pass it to the index of reports.

    Parameters
    ----------
    estimate : named result or mapping
        An estimate with low, high and n.
    label : str
        What is estimated; by default the text of its ``code``, as in a result of `evalkit.compare.headline`.
    percent : bool
        Whether the estimate is a share from 0 to 1.

    Examples
    --------
    >>> evalkit.headline({"estimate": 0.5, "low": 0.2, "high": 0.8, "n": 10}, "success rate")
    success rate: 50 % [20, 80] (n = 10)
    """
    data = headline_data(estimate, label, percent=percent)
    n = "" if data["n"] is None else f" (n = {data['n']:,.0f})"
    text = f"{data['label']}: {data['text']}{n}"
    _show_html(_html("answer", [(text, "")], False), text, {HEADLINE: data})


def headline_data(
    estimate: NamedResult | Mapping[Any, Any], label: str = "", *, percent: bool = True
) -> dict[str, Any]:
    """Return the data that the index of reports shows for a report's main result."""
    values = dict(estimate) if isinstance(estimate, Mapping) else estimate._asdict()
    label = label or (headline_text(values) if "code" in values else "")
    numbers = {key: as_number(values.get(key)) for key in ("estimate", "low", "high", "n")}
    bounds = (numbers[key] for key in ("estimate", "low", "high"))
    text = format_interval(*bounds, percent=percent, unit=values.get("unit"))
    return {"label": plain(label), **numbers, "method": values.get("method"), "percent": percent, "text": text}


def _sorting() -> str:
    """Return the script that sorts tables, for notebook output; a report's page contains the script once."""
    has_kernel = hasattr(get_ipython(), "kernel")
    if not has_kernel or REPORT in os.environ:
        return ""
    return render_macro("parts.html.j2", "sorting", Markup(_STYLE), Markup(SORTING))


def _html(macro: str, *values: Any) -> str:
    return render_macro("show.html.j2", macro, *values)


def _show_html(page: str, text: str, more: Mapping[str, Any] | None = None, *, hidden: bool = False) -> None:
    """Show HTML whose text from logs is already escaped, and mark it as safe for a report's page."""
    metadata: dict[str, Any] = {"text/html": {SAFE: True}}
    if hidden:
        metadata[HIDDEN] = True
    display({**(more or {}), "text/html": page, "text/plain": text}, raw=True, metadata=metadata)


def fingerprint(sources: Iterable[str]) -> tuple[int, str]:
    """Return the total size in bytes of a ledger's files (paths and URLs), and a hash of their names and contents.

    Names are hashed relative to the files' common folder, so that the same data in another place have the same
    fingerprint. For a URL, the hash includes the size and tag instead of the contents. For a file that can't be read,
    a pipe or a device, it includes only the name.
    """
    names = {path: absolute(path) for path in sorted(set(sources))}
    root = common_folder({os.path.dirname(name) for name in names.values()})
    states = {}
    if any(map(is_url, names)):
        with suppress(SourceError):
            states = list_source(root).states
    digest = hashlib.blake2b(digest_size=8)
    size = 0
    for path, name in names.items():
        digest.update(name.removeprefix(root).lstrip("/").encode("utf-8", "surrogateescape") + b"\0")
        if path in states:
            size += states[path].size
            digest.update(f"{states[path].size} {states[path].tag}".encode())
        elif os.path.isfile(path):
            with suppress(OSError), open(path, "rb") as file:
                left = os.fstat(file.fileno()).st_size  # 0 for files in /proc, which may block or never end
                size += left
                contents = hashlib.blake2b()
                while left > 0 and (part := file.read(min(left, 2**20))):
                    contents.update(part)
                    left -= len(part)
                digest.update(contents.digest())
    return size, digest.hexdigest()


def provenance(logs: Logs | pd.DataFrame, **parameters: Any) -> None:
    """Show the provenance of a report: versions, code, parameters, input files with their fingerprint, and time.

    If a parameter names a dataset, the fingerprint covers the dataset's files. The choices of logs, such as how columns
    were interpreted, are passed to `evalkit report`, which prints them, and to the index of reports.

    Parameters
    ----------
    logs : Logs or DataFrame
        The logs, or only their ledger, which contains no choices.
    **parameters : Any
        Parameters of the notebook, by name.

    Examples
    --------
    >>> evalkit.provenance(logs, runs="samples:mindcraft/runs")  # doctest: +SKIP
    """
    if isinstance(logs, Logs):
        ledger = logs.ledger
        if logs.chosen:
            warned, chosen = chosen_lines(logs)
            display({CHOSEN: [*warned, *chosen], "text/plain": ""}, raw=True, metadata={HIDDEN: True})
    else:
        ledger = logs
    used = ledger.loc[ledger["status"] != "skipped", "source"].tolist()
    files = set(used)
    given = [name for value in parameters.values() for name in (value if isinstance(value, list) else [value])]
    datasets = (read_manifest(name) for name in given if isinstance(name, str))
    for dataset in filter(None, datasets):
        files = {path for path in files if not path.startswith(f"{dataset.about['root']}/")}.union(dataset.files)
    size, digest = fingerprint(files)
    values = {
        f"parameter {name}": "…" if is_secret_name(name) and value else redacted(repr(value))
        for name, value in parameters.items()
    }
    rows = [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        *package_versions().items(),
        ("code of evalkit", code_version()),
        *values.items(),
        ("input files", f"{len(used)} read, {len(ledger)} seen"),
        ("size of the input", f"{size:,} bytes in {counted_noun(len(files), 'file')}"),
        ("fingerprint of the input", digest),
    ]
    show_table(pd.DataFrame(rows, columns=["what", "value"]), caption="Provenance")
