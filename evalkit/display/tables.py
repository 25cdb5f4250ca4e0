"""Format frames as plain HTML tables, which a report's page makes sortable and searchable."""

import contextlib
import html
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalkit._text import counted_noun, format_interval
from evalkit.display.words import finding_text
from evalkit.io import plain
from evalkit.io.paths import common_folder
from evalkit.io.text import is_local_link
from evalkit.kinds import Finding
from evalkit.kinds.registry import all_labels

LONG = 160  # characters; a longer cell is folded
MOST_ANSWERED = 10  # rows of the table that answers; all stand further below
BAR = 110  # pixels of an estimate that is drawn in its cell
TITLES = {  # of columns that all kinds have, and of estimates; others have the label of their kind, else their name
    "adjusted_estimate": "adjusted for tasks",
    "corrected_estimate": "corrected for picking",
    "coverage": "share of all tasks",
    "direction": "trend",
    "dominated_by": "beaten by",
    "equivalent": "shown to be equal",
    "front_share": "share on the front",
    "is_successful": "success",
    "k": "runs per task (k)",
    "highest_estimate": "if those not measured had succeeded",
    "lowest_estimate": "if those not measured had failed",
    "measured_estimate": "of those measured",
    "detectable": "difference that the tasks at hand would show",
    "model_name": "model",
    "n_clusters": "tasks",
    "n_tasks": "tasks",
    "n_unshared": "tasks of only one",
    "claim_at": "decided from p",
    "n_measured": "measured",
    "n_not_measured": "not measured",
    "mean_cost": "cost per run",
    "mean_duration": "seconds per run",
    "mean_tokens": "tokens per run",
    "p_adjusted": "p, corrected for all pairs",
    "p_holm": "p, corrected for all models",
    "p_value": "p",
    "run_flags": "flags",
    "source": "file or folder",
    "std": "standard deviation",
    "tasks_used": "share of tasks with k runs",
    "task_id": "task",
    "task_type": "type of task",
}
_COUNTED = {"runs": ("runs", "tasks"), "episodes": ("episodes", "tasks"), "steps": ("steps", "histories")}
_CODES = ("status", "ending", "flag")  # the last words of columns whose values have labels
_TARGETS = {"new tasks": "new tasks like these", "these tasks": "these tasks, run again"}
_TECHNICAL = ("method", "target", "warning")  # how estimates were made: below a table; differing warnings are its notes
_OF_ROWS = ("run_id", "href")  # columns that are not shown as cells: attributes of a row
_INTERVAL = " [95 %]"
_NUMBER, TEXT = ' class="number"', ' style="text-align:left"'  # Lab and VS Code align text right by default


def answer_html(
    finding: Finding, table: pd.DataFrame, caption: str, *, rows: int = MOST_ANSWERED, **options: Any
) -> tuple[str, str]:
    """Format a sentence that answers, and the first rows of the table that shows it, as HTML and as plain text."""
    text = plain(finding_text(finding))
    page = f'<p class="evalkit-answer"{TEXT}><strong>{html.escape(text)}</strong></p>'
    if len(table):
        rows = rows if len(table) > rows + 2 else len(table)  # to hide one or two would save nothing
        shown, cells = table_html(table, caption, rows=rows, rest="in the tables below", bars=True, **options)
        page, text = page + shown, f"{text}\n\n{cells}"
    return page, text


def table_html(
    table: pd.DataFrame,
    caption: str,
    *,
    digits: int,
    percent: bool,
    rows: int,
    estimate: str,
    counted: str,
    unit: str | None = None,
    rest: str = "not shown",
    anchor: str = "",
    bars: bool = False,
) -> tuple[str, str]:
    """Format a non-empty frame as HTML and plain text; parameters as for `evalkit.display.show_table`.

    `rest` says where the other rows are. With `bars` the column `estimate` also draws each estimate with its interval,
    and the table is not to be folded.
    """
    shown, notes = _readable(table.head(rows), digits, percent, unit)
    more = len(table) - rows
    drawn = iter(_bars(table.head(rows), percent) if bars else [])
    n, clusters = _COUNTED.get(counted, (counted, "tasks"))
    labels = {**all_labels(), **TITLES, "estimate": estimate, "n": n, "n_clusters": clusters}
    titles, kinds = [], []
    for name in map(str, shown):
        column = name.removesuffix(_INTERVAL)
        base, side = column[:-2], column[-2:].replace("_", ", ")
        side_title = labels[base] + side if side in (", a", ", b") and base in labels else ""
        title = labels.get(column) or side_title or column.replace("_", " ")
        titles.append(f"{title} [95\u00a0%]" if name != column else title)
        is_number = name != column or (name in table and pd.api.types.is_numeric_dtype(table[name]))
        kinds.append(_NUMBER if is_number and not (bars and column == "estimate") else TEXT)
    heads = zip(shown, titles, kinds, strict=True)
    head = "".join(f'<th scope="col"{k} data-column="{escape(name)}">{escape(title)}</th>' for name, title, k in heads)
    body, at = "", [*shown, f"estimate{_INTERVAL}"].index(f"estimate{_INTERVAL}")
    of_rows = table.head(rows).reindex(columns=list(_OF_ROWS)).itertuples(index=False, name=None)
    for texts, (run_id, href) in zip(shown.itertuples(index=False, name=None), of_rows, strict=True):
        cells = [f"<td{kind}>{_folded(text)}</td>" for text, kind in zip(texts, kinds, strict=True)]
        if bars and at < len(cells):  # not left out, as that of models without a run that counts
            cells[at] = f'<td class="estimate"{TEXT}>{next(drawn)} <nobr>{escape(texts[at])}</nobr></td>'
        if is_local_link(href) and cells:
            cells[0] = f'<td{kinds[0]}><a href="{escape(href)}">{escape(texts[0])}</a></td>'
        run = f' data-run="{escape(run_id)}"' if isinstance(run_id, str) and run_id else ""
        body += f"<tr{run}>{''.join(cells)}</tr>"
    notes += [f"{counted_noun(more, 'more row')} {'is' if more == 1 else 'are'} {rest}."] * (more > 0)
    below = f'<p class="quiet">{escape(" ".join(notes))}</p>' if notes else ""
    name = escape(caption or "table")
    id_attribute = f' id="{escape(anchor)}"' if anchor else ""
    size = f'<span class="quiet">{counted_noun(len(table), "row")}</span>'
    page = (
        f'<div class="evalkit-table" tabindex="0" role="region" aria-label="{name}"><table aria-label="{name}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{below}"
    )
    if not bars:
        page = (
            f'<details class="evalkit-fold"{id_attribute} open><summary{TEXT}>{name} {size}</summary>{page}</details>'
        )
    text = shown.set_axis(list(map(plain, titles)), axis=1).to_string(index=False)
    return page, "\n".join([text, *map(plain, notes)])


def _bars(table: pd.DataFrame, percent: bool) -> list[str]:
    """Draw the estimate of each row with its interval, as SVG, on one scale: 0 to 1, or that of all rows."""
    numbers = table[["estimate", "low", "high"]].astype("float64")
    first, last = (0.0, 1.0) if percent else (min(0.0, numbers.min().min()), numbers.max().max())
    places = ((numbers - first) / ((last - first) or 1.0) * (BAR - 8) + 4).clip(4, BAR - 4).to_numpy()
    drawn, size = [], f'width="{BAR}" height="14" viewBox="0 0 {BAR} 14"'
    for estimate, low, high in places:
        shapes = f'<path d="M4 7H{BAR - 4}" stroke="currentColor" stroke-opacity=".2"/>'
        if not math.isnan(low + high):
            shapes += f'<path d="M{low:.1f} 7H{high:.1f}" stroke="#0072b2" stroke-width="3"/>'
        if not math.isnan(estimate):
            shapes += f'<circle cx="{estimate:.1f}" cy="7" r="4" fill="#0072b2"/>'
        drawn.append(f'<svg class="themed" {size} aria-hidden="true">{shapes}</svg>')
    return drawn


def _readable(table: pd.DataFrame, digits: int, percent: bool, unit: str | None) -> tuple[pd.DataFrame, list[str]]:
    """Format the cells of a frame as text, with notes: intervals in one column, empty columns left out.

    How estimates were made stands in the notes if it is the same in all rows, else in the last column.
    """
    folder = ""
    with contextlib.suppress(TypeError):  # missing sources
        folder = common_folder(map(os.path.dirname, table["source"])) if "source" in table else ""
    out: dict[str, list[str]] = {}
    bounds: set[str] = set()
    for name in table.columns.drop([*_TECHNICAL, *_OF_ROWS], errors="ignore"):
        low, high = (str(name).replace("estimate", bound) for bound in ("low", "high"))
        if "estimate" in str(name) and low in table and high in table:
            triples = zip(table[name], table[low], table[high], strict=True)
            how: dict[str, Any] = {"percent": percent, "unit": unit if name == "estimate" and percent else None}
            out[f"{name}{_INTERVAL}"] = [format_interval(*triple, **how) for triple in triples]
            bounds |= {low, high}
        else:
            out[name] = cell_texts(table[name], str(name), digits, folder)
    notes = []
    for name in filter(table.columns.__contains__, _TECHNICAL):
        texts = cell_texts(table[name], name)
        known = [text for text in dict.fromkeys(texts) if text not in ("", "–")]
        if name == "warning" and len(set(texts)) > 1:
            out["notes"] = ["" if text == "–" else text for text in texts]
        elif known:
            notes.append(f"{name.capitalize()}: {', '.join(known)}.")
    filled = {name: texts for name, texts in out.items() if name not in bounds and not {"", "–"}.issuperset(texts)}
    shared = [" ".join(notes)] * bool(notes) + [f"Sources lie in {folder}"] * bool(folder)
    return pd.DataFrame(filled or out, index=table.index), shared


def cell_texts(values: pd.Series, name: str, digits: int = 3, folder: str = "") -> list[str]:
    """Return the text of each cell of a column, as shown in a table; paths are those within `folder`."""
    if name == "source" and folder:
        return [plain(path.removeprefix(folder).lstrip("/")) for path in values]
    labels = all_labels() if name.endswith(_CODES) else _TARGETS if name == "target" else {}
    is_float = pd.api.types.is_float_dtype(values)
    if name.startswith("p_") and is_float:
        return ["< 0.001" if value < 0.001 else _cell(value, 3) for value in values]
    if is_float and (values.dropna() % 1 == 0).all():
        digits = 0
    elif is_float and 0 < (largest := values.abs().max()) < 1:
        digits = max(digits, 1 - math.floor(math.log10(largest)))  # two that count, as of small costs
    texts = (labels.get(value) if isinstance(value, str) else None for value in values)
    return [text or _cell(value, digits) for text, value in zip(texts, values, strict=True)]


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
        if 1e-9 < abs(value) < 0.5 / 10**digits:
            digits = 1 - math.floor(math.log10(abs(value)))  # what is not 0 is not shown as 0
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.{digits}f}"
    return plain(value)


def _folded(text: str) -> str:
    """Fold long text under its beginning."""
    if len(text) <= LONG:
        return escape(text)
    return f"<details><summary>{escape(text[: LONG // 2])}…</summary>{escape(text)}</details>"


def escape(text: object) -> str:
    """Return text from logs, in one plain line, as HTML."""
    return html.escape(plain(text))
