"""Format frames as HTML tables, which a script can sort and search."""

import contextlib
import hashlib
import math
import os
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from evalkit._html import render, render_macro
from evalkit._text import Parts, counted_noun, format_interval
from evalkit.display.words import finding_parts
from evalkit.io import plain
from evalkit.io.paths import common_folder
from evalkit.io.sources import without_projects
from evalkit.io.text import is_local_link
from evalkit.kinds import Finding
from evalkit.kinds.registry import all_kinds, all_labels

LONG = 160  # characters above which a cell is folded
MOST_ANSWERED = 10  # maximum number of rows in the table under the answer; a later table has all rows
BAR = 110  # width of an estimate drawn in its cell, in pixels
TITLES = {  # titles of common columns and of estimates; other columns have the label of their kind, else their name
    "adjusted_estimate": "adjusted for tasks",
    "agent_count": "agents",
    "claim_at": "decided if p is at most",
    "corrected_estimate": "corrected for selection",
    "cost_estimate": "cost",
    "cost_high": "cost, upper limit",
    "cost_low": "cost, lower limit",
    "coverage": "share of all tasks",
    "detectable": "detectable with these tasks",
    "direction": "trend",
    "dominated_by": "beaten by",
    "front_share": "probability of being on the front",
    "highest_estimate": "if the unmeasured had succeeded",
    "is_successful": "success",
    "k": "runs per task (k)",
    "leading": "main reason",
    "leading_mode": "main reason",
    "logged_model": "model as logged",
    "lowest_estimate": "if the unmeasured had failed",
    "mean_baseline": "mean of baseline",
    "mean_duration": "seconds per run",
    "measured_estimate": "measured only",
    "model_name": "model",
    "n_baseline": "runs of baseline",
    "n_measured": "measured",
    "n_models": "models",
    "n_not_measured": "not measured",
    "n_tasks": "tasks",
    "n_unshared": "unshared tasks",
    "on_front": "on the Pareto front",
    "p_adjusted": "p, corrected",
    "p_holm": "p, corrected for all models",
    "p_not_worse": "p, not worse",
    "p_value": "p",
    "per_success_estimate": "cost per success",
    "per_success_high": "cost per success, upper limit",
    "per_success_low": "cost per success, lower limit",
    "precision_estimate": "precision",
    "precision_n": "yes by the judge",
    "recall_estimate": "recall",
    "recall_n": "yes by people",
    "run_flags": "flags",
    "run_ids": "ids of runs",
    "run_ids_baseline": "ids of runs of baseline",
    "same_first": "same first model",
    "side": "model",
    "source": "file or folder",
    "std": "standard deviation",
    "task_id": "task",
    "task_type": "type of task",
    "tasks_expected": "expected tasks",
    "tasks_high": "tasks, upper limit",
    "tasks_low": "tasks, lower limit",
    "tasks_used": "share of tasks with k runs",
    "tokens_cache": "tokens from a cache",
    "what": "entry",
    "zero_estimate": "if the unmeasured had scored 0",
}
_CODES = ("status", "ending", "flag", "task_type")  # suffixes of the names of columns whose values have labels
_VALUES = {  # labels of the values of other columns
    "target": {
        "new tasks": "new tasks like these",
        "new values": "new values like these",
        "these tasks": "these tasks, run again",
    },
    "method": {
        "cluster jackknife t": "jackknife over clusters",
        "cluster t": "Student's t over clusters",
        "cluster t, Hall's correction": "Student's t over clusters with Hall's correction",
        "cluster wilson": "Wilson interval on the effective n, clustered",
        "jackknife t": "jackknife",
        "permutation of clusters": "permutation test over clusters",
        "t": "Student's t",
        "t within tasks": "Student's t within tasks",
        "t, Hall's correction": "Student's t with Hall's correction",
        "wilson": "Wilson interval",
        "wilson within tasks": "Wilson interval within tasks",
        "wilson, effective n": "Wilson interval on the effective n",
    },
}
_AMOUNTS = ("cost_estimate", "per_success_estimate")  # estimates in another unit than the estimates of their table
_TECHNICAL = ("method", "target", "warning")  # columns shown as notes under a table, except warnings that differ
# columns that become attributes of a row: its run, and the link of its first cell; NAME_href has the link of cell NAME,
# or the text of the cell as `Parts` with links
_ATTRIBUTES = ["run_id", "href"]
_INTERVAL = " [95 %]"
_NUMBER = Markup(' class="number"')
ALIGNED = Markup(' style="text-align:left"')  # for text, which JupyterLab and VS Code align right


def linked_parts(parts: Parts, links: Mapping[Hashable, Any]) -> list[tuple[str, str]]:
    """Return the plain text of each part of a text with its address from `links`, or "" if it has none."""
    texts = [plain(part.text) for part in parts.parts]
    whole = plain(parts)
    if "".join(texts) != whole:  # a credential extends over several parts, and is masked only in the whole text
        return [(whole, "")]
    addresses = [links.get(part.key) for part in parts.parts]
    return [(text, href if is_local_link(href) else "") for text, href in zip(texts, addresses, strict=True)]


@lru_cache(maxsize=10_000, typed=True)
def value_code(value: Hashable) -> str:
    """Return the code of a column's value in addresses. Values that differ have different codes.

    Text never has the code of a number. Whole numbers have the same code in columns of integers and of floats.
    """
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, Real) and math.isnan(value)):
        text = "missing"
    elif isinstance(value, bool | np.bool_):
        text = f"bool {value}"
    elif isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer()):
        text = f"number {int(value)}"
    elif isinstance(value, Real):
        text = f"number {float(value)}"
    elif isinstance(value, str):
        text = f"str {value}"
    else:
        text = f"{type(value).__name__} {value}"
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def items_of(cell: Any) -> list[Hashable]:
    """Return the values of a cell: the items of a list, or else the cell itself; values without a hash as text."""
    items = list(cell) if isinstance(cell, list | tuple | set | np.ndarray) else [cell]
    return [item if isinstance(item, Hashable) else str(item) for item in items]


def _addressed(keys: pd.Series, column: pd.Series) -> dict[str, str]:
    """Return what links need to find the rows with a value: its code and text, one value a line, and rows.

    `keys` are the values by rows, and `column` the same values as the table shows them. For each row, separated by
    spaces, ``rows`` has the numbers of its values, separated by commas.
    """
    codes = [[value_code(item) for item in items_of(cell)] for cell in keys]
    items = pd.Series([item for cell in column for item in items_of(cell)], name=column.name)
    texts = dict(zip(chain.from_iterable(codes), cell_texts(items, str(column.name)), strict=True))
    numbers = {code: number for number, code in enumerate(texts)}
    rows = [",".join(str(numbers[code]) for code in own) for own in codes]
    return {"values": "\n".join(f"{code} {text}" for code, text in texts.items()), "rows": " ".join(rows)}


def is_filled(texts: Iterable[str]) -> bool:
    """Return whether a table shows a column with these texts, since it has at least one value."""
    return not {"", "–"}.issuperset(texts)


def answer_html(
    finding: Finding, table: pd.DataFrame, caption: str, *, rows: int = MOST_ANSWERED, **options: Any
) -> tuple[str, str]:
    """Format the answer and the first rows of its table as HTML and as plain text."""
    parts = finding_parts(finding)
    text = plain(parts)
    page = render_macro("show.html.j2", "answer", linked_parts(parts, finding.links))
    if len(table):
        rows = rows if len(table) > rows + 2 else len(table)  # hiding one or two rows would save no space
        shown, cells = table_html(table, caption, rows=rows, rest="in the tables below", bars=True, **options)
        page += shown
        text = f"{text}\n\n{cells}"
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
    keys: pd.DataFrame | None = None,
    bars: bool = False,
) -> tuple[str, str]:
    """Format a non-empty frame as HTML and text, as `show_table` does; with `bars`, also draw its estimates."""
    first = table.head(rows)
    shown, notes = _readable(first, digits, percent, unit)
    if more := max(len(table) - rows, 0):
        notes.append(f"{counted_noun(more, 'more row')} {'is' if more == 1 else 'are'} {rest}.")
    estimate = estimate or ("success rate" if percent else "mean")
    clusters = next((kind.runs for kind in all_kinds() if counted in kind.tables and counted != kind.runs), "tasks")
    labels = {**all_labels(), **TITLES, "estimate": estimate, "n": counted, "n_tasks": clusters}
    columns = []
    for name in map(str, shown):
        column = name.removesuffix(_INTERVAL)
        title = _title(column, labels)
        if name != column:
            title += " [95\u00a0%]"
        is_number = name != column or (name in table and pd.api.types.is_numeric_dtype(table[name]))
        is_drawn = bars and name == f"estimate{_INTERVAL}"
        alignment = _NUMBER if is_number and not is_drawn else ALIGNED
        addressed = {}
        if keys is not None and name in keys:
            addressed = {"name": plain(name), **_addressed(keys[name].head(rows), first[name])}
        columns.append({"title": plain(title), "alignment": alignment, "is_drawn": is_drawn, "addressed": addressed})
    drawn = _bars(first, percent) if bars and "estimate" in first else [None] * len(first)
    body = []
    cells = shown.itertuples(index=False, name=None)
    for texts, row, bar in zip(cells, first.to_dict("records"), drawn, strict=True):
        run_id = row.get("run_id")
        parts = []
        for place, (text, name) in enumerate(zip(texts, map(str, shown), strict=True)):
            href = row.get(f"{name}_href" if place else "href")
            if isinstance(href, Parts):  # the text of the cell in parts, whose keys are their addresses
                parts.append(linked_parts(href, {part.key: part.key for part in href.parts}))
            else:
                parts.append([(text, href)] if text and is_local_link(href) else [])
        run_id = plain(run_id) if isinstance(run_id, str) else ""
        body.append({"texts": texts, "parts": parts, "run_id": run_id, "drawn": bar})
    page = render(
        "table.html.j2",
        caption=plain(caption or "table"),
        size=counted_noun(len(table), "row"),
        left=ALIGNED,
        columns=columns,
        rows=body,
        notes=notes,
        anchor=anchor,
        is_folding=not bars,
        long=LONG,
        width=BAR,
        zip=zip,
    )
    text = shown.set_axis([column["title"] for column in columns], axis=1).to_string(index=False)
    return page, "\n".join([text, *notes])


def _title(column: str, labels: Mapping[str, str]) -> str:
    """Return the title of a column; columns such as model_a have the label of the column without the suffix."""
    if label := labels.get(column):
        return label
    if column.endswith(("_a", "_b")) and column[:-2] in labels:
        return f"{labels[column[:-2]]}, {column[-1]}"
    return plain(column).replace("_", " ")


def _bars(table: pd.DataFrame, percent: bool) -> list[dict[str, Any]]:
    """Return the position in pixels of each row's estimate and interval. The scale is 0 to 1, or the range of rows."""
    numbers = table[["estimate", "low", "high"]].astype("float64")
    first, last = (0.0, 1.0) if percent else (min(0.0, numbers.min().min()), numbers.max().max())
    places = ((numbers - first) / ((last - first) or 1.0) * (BAR - 8) + 4).clip(4, BAR - 4).to_numpy()
    bars = []
    for estimate, low, high in places:
        interval = None if math.isnan(low + high) else (low, high)
        bars.append({"estimate": None if math.isnan(estimate) else estimate, "interval": interval})
    return bars


def _readable(table: pd.DataFrame, digits: int, percent: bool, unit: str | None) -> tuple[pd.DataFrame, list[str]]:
    """Format the cells of a frame as text, and return notes: intervals become one column, empty columns are dropped."""
    folder = ""
    with contextlib.suppress(TypeError):  # some sources may be missing
        folder = without_projects(common_folder(map(os.path.dirname, table["source"]))) if "source" in table else ""
    out: dict[str, list[str]] = {}
    bounds: set[str] = set()
    hidden = [*_TECHNICAL, *_ATTRIBUTES, *(f"{name}_href" for name in table)]
    if "measure" in table and table["measure"].nunique() == 1:  # the title of the column estimate states it
        hidden.append("measure")
    for name in table.columns.drop(hidden, errors="ignore"):
        low, high = (str(name).replace("estimate", bound) for bound in ("low", "high"))
        if "estimate" in str(name) and name not in _AMOUNTS and low in table and high in table:
            triples = zip(table[name], table[low], table[high], strict=True)
            how: dict[str, Any] = {"percent": percent, "unit": unit if name == "estimate" and percent else None}
            out[f"{name}{_INTERVAL}"] = [format_interval(*triple, **how) for triple in triples]
            bounds |= {low, high}
        else:
            out[name] = cell_texts(table[name], str(name), digits, folder)
    notes = []
    for name in (name for name in _TECHNICAL if name in table):
        texts = cell_texts(table[name], name)
        known = [text for text in dict.fromkeys(texts) if text not in ("", "–")]
        if name == "warning" and len(set(texts)) > 1:
            out["notes"] = ["" if text == "–" else text for text in texts]
        elif known:
            notes.append(f"{name.capitalize()}: {', '.join(known)}.")
    notes = [" ".join(notes)] if notes else []
    if folder:
        notes.append(f"Paths are relative to {plain(folder)}.")
    filled = {name: texts for name, texts in out.items() if name not in bounds and is_filled(texts)}
    return pd.DataFrame(filled or out, index=table.index), notes


def cell_texts(values: pd.Series, name: str, digits: int = 3, folder: str = "") -> list[str]:
    """Return the text of each cell of a column, as shown in a table; paths are relative to `folder`."""
    if name == "source" and folder:
        return [plain(without_projects(path).removeprefix(folder).lstrip("/")) for path in values]
    labels = all_labels() if name.endswith(_CODES) else _VALUES.get(name, {})
    if name == "seed":  # a name, not a number to format
        values = values.astype("object").map(str, na_action="ignore")
    is_float = pd.api.types.is_float_dtype(values)
    if name.startswith("p_") and is_float:
        return ["< 0.001" if value < 0.001 else _cell(value, 3) for value in values]
    if is_float and (values.dropna() % 1 == 0).all():
        digits = 0
    elif is_float and 0 < (largest := values.abs().max()) < 1:
        digits = max(digits, 1 - math.floor(math.log10(largest)))  # two significant digits, for small costs
    texts = (labels.get(value) if isinstance(value, str) else None for value in values)
    cells = [text or _cell(value, digits) for text, value in zip(texts, values, strict=True)]
    return [cell.replace("_", " ") for cell in cells] if name == "event" else cells  # names such as failed_call


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple, set)):
        return ", ".join(_cell(item, digits) for item in value)
    if isinstance(value, Mapping):
        return plain(dict(value))
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        if 1e-9 < abs(value) < 0.5 / 10**digits:
            digits = 1 - math.floor(math.log10(abs(value)))  # don't show a number other than 0 as 0
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.{digits}f}"
    return f"{value:,}" if isinstance(value, int | np.integer) else plain(value)
