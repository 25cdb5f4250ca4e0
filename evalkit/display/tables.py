"""Format frames as plain HTML tables, which a report's page makes sortable and searchable."""

import contextlib
import html
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalkit._words import counted_noun, format_interval
from evalkit.display.titles import NOTES, STATUSES, TECHNICAL, VALUES, WARNING, title_of
from evalkit.io import plain
from evalkit.io.paths import common_folder
from evalkit.io.text import is_local_link
from evalkit.kinds.registry import status_labels

LONG = 160  # characters; a longer cell is folded
_NUMBER, _TEXT = ' class="number"', ' style="text-align:left"'  # Lab and VS Code align text right by default
_ROW = ("run_id", "href")  # columns that are not shown as cells: attributes of a row


def table_html(
    table: pd.DataFrame,
    caption: str,
    *,
    digits: int,
    percent: bool,
    rows: int,
    estimate: str,
    counted: str,
    anchor: str = "",
) -> tuple[str, str]:
    """Format a non-empty frame as HTML and plain text; parameters as for `evalkit.display.show_table`."""
    shown, notes = _readable(table.head(rows), digits, percent)
    titles = [_title(str(name), estimate, counted) for name in shown]
    kinds = [_NUMBER if _is_number(table, str(name)) else _TEXT for name in shown]
    heads = zip(shown, titles, kinds, strict=True)
    head = "".join(f'<th scope="col"{k} data-column="{escape(name)}">{escape(title)}</th>' for name, title, k in heads)
    leads = table.head(rows).reindex(columns=list(_ROW)).itertuples(index=False, name=None)
    lines = zip(shown.itertuples(index=False, name=None), leads, strict=True)
    body = "".join(_row(values, kinds, *lead) for values, lead in lines)
    notes += [f"{len(table) - rows:,} more rows are not shown."] * (len(table) > rows)
    below = f'<p class="quiet">{escape(" ".join(notes))}</p>' if notes else ""
    name = escape(caption or "table")
    id_attribute = f' id="{escape(anchor)}"' if anchor else ""
    size = f'<span class="quiet">{counted_noun(len(table), "row")}</span>'
    page = (
        f'<details class="evalkit-fold"{id_attribute} open><summary{_TEXT}>{name} {size}</summary>'
        f'<div class="evalkit-table" tabindex="0" role="region" aria-label="{name}"><table aria-label="{name}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{below}</details>"
    )
    text = shown.set_axis(list(map(plain, titles)), axis=1).to_string(index=False)
    return page, "\n".join([text, *map(plain, notes)])


def _is_number(table: pd.DataFrame, name: str) -> bool:
    return name.endswith(_INTERVAL) or (name in table and pd.api.types.is_numeric_dtype(table[name]))


def _title(name: str, estimate: str, counted: str) -> str:
    column = name.removesuffix(_INTERVAL)
    return title_of(column, estimate, counted) + (" [95\u00a0%]" if name != column else "")


_INTERVAL = " [95 %]"


def _readable(table: pd.DataFrame, digits: int, percent: bool) -> tuple[pd.DataFrame, list[str]]:
    """Format the cells of a frame as text, with notes: intervals in one column, empty columns left out.

    How estimates were made stands in the notes if it is the same in all rows, else in the last column.
    """
    folder = ""
    with contextlib.suppress(TypeError):  # missing sources
        folder = common_folder(map(os.path.dirname, table["source"])) if "source" in table else ""
    out: dict[str, list[str]] = {}
    bounds: set[str] = set()
    twice = ["success_rate"] * ("estimate" in table)  # the estimate under a second name, for users of frames
    for name in table.columns.drop([*TECHNICAL, *_ROW, *twice], errors="ignore"):
        low, high = (str(name).replace("estimate", bound) for bound in ("low", "high"))
        if "estimate" in str(name) and low in table and high in table:
            triples = zip(table[name], table[low], table[high], strict=True)
            out[f"{name}{_INTERVAL}"] = [format_interval(*triple, percent=percent) for triple in triples]
            bounds |= {low, high}
        else:
            out[name] = cell_texts(table[name], str(name), digits, folder)
    shared, row_notes = _technical(table)
    out |= {NOTES: row_notes} if any(row_notes) else {}
    filled = {name: texts for name, texts in out.items() if name not in bounds and not {"", "–"}.issuperset(texts)}
    notes = [shared] * bool(shared) + [f"Sources lie in {folder}"] * bool(folder)
    return pd.DataFrame(filled or out, index=table.index), notes


def cell_texts(values: pd.Series, name: str, digits: int = 3, folder: str = "") -> list[str]:
    """Return the text of each cell of a column, as shown in a table; paths are those within `folder`."""
    if name == "source" and folder:
        return [plain(path.removeprefix(folder).lstrip("/")) for path in values]
    words = status_labels() if name in STATUSES else VALUES.get(name, {})
    is_float = pd.api.types.is_float_dtype(values)
    if name.startswith("p_") and is_float:
        return ["< 0.001" if value < 0.001 else _cell(value, 3) for value in values]
    digits = 0 if is_float and (values.dropna() % 1 == 0).all() else digits
    texts = (words.get(value) if words and isinstance(value, str) else None for value in values)
    return [text or _cell(value, digits) for text, value in zip(texts, values, strict=True)]


def _technical(table: pd.DataFrame) -> tuple[str, list[str]]:
    """Return how the estimates of a table were made, and the warning of each row if rows differ."""
    shared, row_warnings = [], [""] * len(table)
    for name in TECHNICAL:
        texts = cell_texts(table[name], name) if name in table else []
        known = [text for text in dict.fromkeys(texts) if text not in ("", "–")]
        if name == WARNING and len(set(texts)) > 1:
            row_warnings = ["" if text == "–" else text for text in texts]
        elif known:
            shared.append(f"{name.capitalize()}: {', '.join(known)}.")
    return " ".join(shared), row_warnings


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple, set)):
        return plain(", ".join(map(str, value)))
    if isinstance(value, Mapping):
        return plain(dict(value))
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return plain(value)


def _row(values: tuple, kinds: list[str], run_id: Any, href: Any) -> str:
    cells = [f"<td{kind}>{_folded(value)}</td>" for value, kind in zip(values, kinds, strict=True)]
    if isinstance(href, str) and is_local_link(href) and cells:
        cells[0] = f'<td{kinds[0]}><a href="{escape(href)}">{escape(values[0])}</a></td>'
    run = f' data-run="{escape(run_id)}"' if isinstance(run_id, str) and run_id else ""
    return f"<tr{run}>{''.join(cells)}</tr>"


def _folded(text: str) -> str:
    """Fold long text under its beginning."""
    if len(text) <= LONG:
        return escape(text)
    return f"<details><summary>{escape(text[: LONG // 2])}…</summary>{escape(text)}</details>"


def escape(text: object) -> str:
    """Return text from logs, in one plain line, as HTML."""
    return html.escape(plain(text))
