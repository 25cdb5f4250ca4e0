"""One call for each thing a notebook shows; what comes from logs is escaped on its way."""

import base64
import html
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit.display.style import figure_of
from evalkit.display.words import format_interval, number
from evalkit.io import for_spreadsheets, plain
from evalkit.io.paths import common_folder
from evalkit.io.text import is_local_link

HEADLINE = "application/vnd.evalkit.headline+json"  # what the index of reports shows beside a link
TABLE = "application/vnd.evalkit.table+json"  # what becomes a CSV file beside the page
FIGURE = "application/vnd.evalkit.figure+json"  # name and PDF of a figure that is saved beside the page
SAFE = "evalkit_safe"  # metadata of HTML and SVG that hold no markup but this package's


def show_figure(figure: Figure | Axes, alt: str, caption: str = "", name: str = "") -> None:
    """Show a figure as SVG and PNG, with alt text.

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
    drawing = draw(whole, plain(alt), pdf=bool(name))
    size = {"width": round(whole.get_figwidth() * 100), "height": round(whole.get_figheight() * 100)}
    about = {"alt": plain(alt), "caption": plain(caption), **size}
    data: dict[str, Any] = {"image/png": drawing.png, "text/plain": f"Figure: {plain(alt)}"}
    metadata = {"image/png": about}
    if drawing.svg:
        data["image/svg+xml"] = drawing.svg
        metadata["image/svg+xml"] = {**about, SAFE: True}
    if name:
        data[FIGURE] = {"name": name, "pdf": base64.b64encode(drawing.pdf).decode("ascii")}
    display(data, raw=True, metadata=metadata)


_NUMBER, _TEXT = ' class="number"', ' style="text-align:left"'  # Lab and VS Code push texts to the right


def show_table(
    table: pd.DataFrame, caption: str = "", *, digits: int = 3, percent: bool = True, rows: int = 200
) -> None:
    """Show a frame as a table; columns estimate, low and high (or scored_estimate, …) become one.

    `run_id` and `href`, a link within the site, belong to the row and are no columns.

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
    """
    folder = _common_folder(table["source"].head(rows)) if "source" in table else ""
    shown = _readable(table.drop(columns=["run_id", "href"], errors="ignore").head(rows), digits, percent, folder)
    hrefs = table["href"].head(rows) if "href" in table else [None] * len(shown)
    right = [_NUMBER if c in table and pd.api.types.is_numeric_dtype(table[c]) else _TEXT for c in shown]
    head = "".join(f'<th scope="col"{r}>{_escape(_title(str(c)))}</th>' for c, r in zip(shown, right, strict=True))
    cells = zip(shown.itertuples(index=False, name=None), hrefs, strict=True)
    body = "".join(_row(values, right, href) for values, href in cells)
    body = body or f'<tr><td colspan="{max(len(right), 1)}">nothing of this kind</td></tr>'
    notes = [f"{len(table) - rows} more rows are not shown."] * (len(table) > rows)
    notes += [f"Sources lie in {folder}"] * bool(folder)
    below = "".join(f"<p>{_escape(note)}</p>" for note in notes)
    top = f"<caption>{_escape(caption)}</caption>" if caption else ""
    page = (
        f'<div class="evalkit-table" tabindex="0" role="region" aria-label="{_escape(caption or "table")}">'
        f"<table>{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{below}"
    )
    text = shown.rename(columns=plain).to_string(index=False) if len(shown) else "(no rows)"
    _show_html(page, "\n".join([text, *map(plain, notes)]))


def show_text(text: str) -> None:
    """Show a sentence or a preformatted text, escaped."""
    safe = plain(text, keep_lines=True)
    _show_html(f'<p class="evalkit-text">{html.escape(safe)}</p>', safe)


def show_details(title: str, text: str) -> None:
    """Show a text folded under its title, escaped: for conversations and other long things from logs."""
    title, text = plain(title), plain(text, keep_lines=True)
    body = f"<summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre>"
    page = f'<details class="evalkit-details">{body}</details>'
    _show_html(page, f"{title}\n{text}")


def show_sandboxed(page: str, title: str, height: int = 320) -> None:
    """Show HTML from a log in a frame where it can neither run scripts nor load anything.

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
    _show_html(frame, f"{plain(title)}: HTML, {len(page)} characters")


_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:"


def publish(table: pd.DataFrame, name: str) -> None:
    """Hand a table over to the report: it becomes ``NAME.csv`` beside the page.

    Parameters
    ----------
    table : DataFrame
    name : str
        Letters, digits, ``_`` and ``-`` only.
    """
    _check_name(name)
    data = {"name": name, "csv": for_spreadsheets(table).to_csv(index=False), "rows": len(table)}
    display({TABLE: data, "text/plain": f"{name}.csv: {len(table)} rows"}, raw=True)


def _check_name(name: str) -> None:
    if not re.fullmatch("[A-Za-z0-9_-]{1,80}", name):
        raise ValueError(f"{name!r} can't be a file's name: up to 80 letters, digits, _ and - only")


def headline(estimate: Any, label: str = "", *, percent: bool = True) -> None:
    """Hand the report's main figure over to the index, and show it.

    Parameters
    ----------
    estimate : a named result (estimate, low, high, n, ...) or a mapping or row with these keys
    label : str
        What the figure is, such as ``success rate``.
    percent : bool
        Show it as a percentage.
    """
    values = estimate._asdict() if hasattr(estimate, "_asdict") else dict(estimate)
    numbers = {key: number(values.get(key)) for key in ("estimate", "low", "high", "n")}
    text = format_interval(numbers["estimate"], numbers["low"], numbers["high"], percent=percent)
    data = {"label": plain(label), **numbers, "method": values.get("method"), "percent": percent, "text": text}
    n = "" if numbers["n"] is None else f"n = {numbers['n']:,.0f}"
    known = numbers["estimate"] is not None  # else the label says why there is no figure
    body = f"<strong>{_escape(text)}</strong> <span>{_escape(label)}</span> <span>{n}</span>"
    page = f'<p class="evalkit-headline">{body if known else f"<strong>{_escape(label)}</strong>"}</p>'
    _show_html(page, f"{plain(label)}: {text}, {n}" if known else plain(label), {HEADLINE: data})


def _show_html(page: str, text: str, more: Mapping[str, Any] | None = None) -> None:
    """Show HTML in which all that is not this module's own is escaped; the mark tells a report's page so."""
    data = {**(more or {}), "text/html": page, "text/plain": text}
    display(data, raw=True, metadata={"text/html": {SAFE: True}})


def _readable(table: pd.DataFrame, digits: int, percent: bool, folder: str) -> pd.DataFrame:
    """Make texts of a frame: intervals in one column, sources relative to `folder`, empty columns left out.

    How an estimate was made stands last, where it pushes no number out of sight.
    """
    out: dict[str, list[str]] = {}
    bounds = set()
    for name in sorted(table.columns, key=("method", "warning").__contains__):
        low, high = (str(name).replace("estimate", bound) for bound in ("low", "high"))
        if "estimate" in str(name) and low in table and high in table:
            triples = zip(table[name], table[low], table[high], strict=True)
            out[f"{name} [95 %]"] = [format_interval(*triple, percent=percent) for triple in triples]
            bounds |= {low, high}
        else:
            values: Iterable[Any] = table[name]
            if name == "source" and folder:
                values = [path.removeprefix(folder).lstrip("/") for path in values]
            whole = pd.api.types.is_float_dtype(table[name]) and (table[name].dropna() % 1 == 0).all()
            show = _p_value if str(name).startswith("p_") and pd.api.types.is_float_dtype(table[name]) else _cell
            out[name] = [show(value, 0 if whole else digits) for value in values]
    kept = {name: texts for name, texts in out.items() if name not in bounds and (any(texts) or not texts)}
    return pd.DataFrame(kept, index=table.index)


def _common_folder(sources: pd.Series) -> str:
    """Give the folder all sources lie in; empty where there is none."""
    try:
        return common_folder(os.path.dirname(path) for path in sources)
    except TypeError:  # missing ones
        return ""


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple, set)):
        return plain(", ".join(str(v) for v in value))
    if isinstance(value, Mapping):
        return plain(dict(value))
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return plain(value)


def _p_value(value: Any, digits: int) -> str:
    return "< 0.001" if value < 0.001 else _cell(value, 3)


def _escape(text: object) -> str:
    return html.escape(plain(text))


def _title(column: str) -> str:
    return str(column).replace("_", " ")


def _row(values: tuple, right: list[str], href: Any) -> str:
    cells = [f"<td{r}>{_escape(v)}</td>" for v, r in zip(values, right, strict=True)]
    if is_local_link(href) and cells:
        cells[0] = f'<td{right[0]}><a href="{_escape(href)}">{_escape(values[0])}</a></td>'
    return f"<tr>{''.join(cells)}</tr>"
