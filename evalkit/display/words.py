"""Describe estimates, counts and events in words, for alt texts, tooltips and headlines."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._notes import Notes
from evalkit.io import plain
from evalkit.stats.text import format_interval as format_interval
from evalkit.stats.text import number as number
from evalkit.stats.text import numerals

MOST = 40  # groups that an alt text lists one by one

_Row = Mapping[Hashable, Any]


def key_of(value: Any) -> Any:
    """Return the key of a column's value as a group: None if it is missing, whole numbers as integers."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def name_of(value: Any) -> str:
    """Return the name of a group in one line of plain text."""
    return "unknown" if (key := key_of(value)) is None else plain(key)


def names_of(keys: Sequence[Any]) -> list[str]:
    """Return the names of groups; a missing one is distinguished from one named ``unknown``."""
    texts = [name_of(key) for key in keys]
    doubtful = texts.count("unknown") > 1
    return ["unknown (missing)" if doubtful and key is None else text for key, text in zip(keys, texts, strict=True)]


def reason_of(row: _Row, missing: str = "no estimate") -> str:
    """Return why a group has data but no estimate: its `reason`, else the first note of its `warning`."""
    notes = row.get("warning")
    why = next(iter(notes.notes), "") if isinstance(notes, Notes) else notes if isinstance(notes, str) else ""
    return plain(row.get("reason") or why or missing)


def size_of(row: _Row) -> float | None:
    """Return n; without an estimate, the number of runs that were not measured, if that is larger."""
    n, unscored = number(row.get("n")), number(row.get("n_not_measured"))
    return n if n is None or unscored is None or number(row.get("estimate")) is not None else max(n, unscored)


def is_empty(row: _Row) -> bool:
    """Return whether a group has no data and gives no reason."""
    return size_of({"n": 1, **row}) == 0 and not row.get("reason") and not row.get("warning")


def describe_value(row: _Row, *, percent: bool = True, digits: int = 2, value: str = "estimate") -> str:
    """Describe one estimate with interval and n: ``63 % (52 to 73, n = 40)``; without an estimate, the reason."""
    text, low, high = numerals(*(row.get(name) for name in (value, "low", "high")), percent=percent, digits=digits)
    n = size_of(row)
    text = text or reason_of(row)
    inside = ", ".join([f"{low} to {high}"] * bool(low and high) + ([] if n is None else [f"n = {n:,.0f}"]))
    return f"{text} ({inside})" if inside else text


def describe_estimates(
    table: pd.DataFrame, *keys: str, percent: bool = True, digits: int = 2, value: str = "estimate"
) -> str:
    """Describe estimates: ``alder: 63 % (52 to 73, n = 40); birch: …``.

    Parameters
    ----------
    table : DataFrame
        With the column of `value`, the columns `keys` and, optionally, low, high, n and reason.
    *keys : str
        Columns that name a group.
    percent : bool
        Whether the values are shares from 0 to 1, to be described as percentages.
    digits : int
        Decimals of other values.
    value : str

    Returns
    -------
    str
        Of more than 40 groups only the extremes.
    """
    rows = [row for row in table.to_dict("records") if not is_empty(row)]
    names = [", ".join(name_of(row[key]) for key in keys) for row in rows]
    values = (describe_value(row, percent=percent, digits=digits, value=value) for row in rows)
    texts = [f"{name}: {text}" for name, text in zip(names, values, strict=True)]
    if len(rows) <= MOST:
        return _sentence(texts)
    known = sorted((float(row[value]), i) for i, row in enumerate(rows) if number(row[value]) is not None)
    ends = [f"Lowest: {texts[known[0][1]]}", f"highest: {texts[known[-1][1]]}"] if known else []
    counts = f"{len(rows)} groups, {len(known)} of them with an estimate."
    return f"{counts} {'; '.join(ends)}." if ends else counts


def _sentence(texts: Sequence[str]) -> str:
    return "; ".join(texts) + "." if texts else "Nothing to show."


def describe_heatmap(
    table: pd.DataFrame, row: str, column: str, *, value: str = "estimate", percent: bool = True, digits: int = 2
) -> str:
    """Describe the cells of a heatmap, row by row; of more than 40 only the extremes."""
    return describe_estimates(table, row, column, value=value, percent=percent, digits=digits)


def describe_shares(table: pd.DataFrame, category: str, parts: Mapping[str, Any] | Sequence[str]) -> str:
    """Describe counts: ``alder: 12 success, 3 timed out of 15; …``; parts that are 0 are left out."""
    looks, texts = parts if isinstance(parts, Mapping) else {}, []
    for row in table.to_dict("records"):
        counts = {str(getattr(looks.get(part), "text", "") or part): number(row[part]) or 0 for part in parts}
        total = sum(counts.values())
        if total:
            listed = ", ".join(f"{count:,.0f} {plain(part)}" for part, count in counts.items() if count)
            texts.append(f"{name_of(row[category])}: {listed} of {total:,.0f}")
    return _sentence(texts)


def describe_strips(
    values: pd.DataFrame,
    category: str,
    value: str,
    means: pd.DataFrame | None = None,
    *,
    percent: bool = False,
    digits: int = 2,
) -> str:
    """Describe single values and their means: ``alder: mean 1.25 (0.80 to 1.70, n = 20), values from 0 to 4``."""
    given = {key_of(row[category]): row for row in means.to_dict("records")} if means is not None else {}
    texts = []
    for name, group in values.dropna(subset=value).groupby(category, sort=False, dropna=False)[value]:
        mean = given.get(key_of(name), {"estimate": group.mean(), "n": len(group)})
        ends = group.min(), group.max()
        lowest, highest = (format_interval(end, None, None, percent=percent, digits=digits) for end in ends)
        described = describe_value(mean, percent=percent, digits=digits)
        texts.append(f"{name_of(name)}: mean {described}, values from {lowest} to {highest}")
    return _sentence(texts)


def describe_curves(
    table: pd.DataFrame, x: str, hue: str, *, xlabel: str = "", percent: bool = True, digits: int = 2
) -> str:
    """Describe curves: the value at each x, or, for more than 6, at the first and the last."""
    where, texts = xlabel or x.replace("_", " "), []
    for name, rows in table.dropna(subset=[x, "estimate"]).sort_values(x).groupby(hue, sort=False, dropna=False):
        shown = (rows if len(rows) <= 6 else rows.iloc[[0, -1]]).to_dict("records")
        values = (describe_value(row, percent=percent, digits=digits) for row in shown)
        points = (f"{text} at {where} {name_of(row[x])}" for text, row in zip(values, shown, strict=True))
        texts.append(f"{name_of(name)}: {', '.join(points)}")
    return _sentence(texts)


def describe_timeline(table: pd.DataFrame, row: str, kind: str, looks: Mapping[Any, Any]) -> str:
    """Describe events: the number of each kind in each row; for more than 40 rows, in all of them."""
    many, texts = table[row].nunique(dropna=False) > MOST, []
    for row_name, group in [("all", table)] if many else table.groupby(row, sort=False, dropna=False):
        counts = group[kind].value_counts()
        listed = (f"{counts[name]} {plain(looks[name].text or name)}" for name in looks if name in counts)
        texts.append(f"{name_of(row_name)}: {', '.join(listed)}")
    return _sentence(texts if len(table) else [])
