"""Prepare frames for plots: one row per mark, with its position, tooltip and link."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._words import number
from evalkit.display.words import describe_value, is_empty, key_of, name_of, reason_of, size_of

Keys = Sequence[Hashable]
MOST_ROWS = 40  # of a heatmap


class Rows(NamedTuple):
    """Marks on the rows of a plot, from top to bottom, in series within each row; None is the key of missing values."""

    marks: pd.DataFrame  # one row per mark: key, series, y, x, low, high, n, reason, tip, href
    names: list
    series: list


def keys(values: pd.Series, order: Keys = ()) -> list:
    """List the groups of a column: those of `order` first, then the others in order of appearance."""
    return list(dict.fromkeys([*map(key_of, order), *map(key_of, values)]))


def with_data(table: pd.DataFrame) -> pd.DataFrame:
    """Drop groups without data that give no reason either."""
    if "n" not in table:
        return table
    return table[np.array([not is_empty(row) for row in table.to_dict("records")], dtype=bool)]


def place(
    table: pd.DataFrame,
    category: str,
    hue: str | None = None,
    *,
    order: Keys = (),
    hues: Keys = (),
    percent: bool = True,
    missing: str = "no estimate",
) -> Rows:
    """Position estimates on rows, a row per category; the series of a row share 0.8 of its height.

    Where `hue` is `category`, each row is a series of its own. Those of `order` and `hues` come first, whether the
    table has them or not. A group with data but without an estimate gets its reason, else the text `missing`.
    """
    table = with_data(table)
    names, series = keys(table[category], order), keys(table[hue], hues) if hue else [None]
    beside = 1 if hue == category else len(series)
    marks = []
    for row in table.to_dict("records"):
        key, member = key_of(row[category]), key_of(row[hue]) if hue else None
        offset = 0 if beside == 1 else (series.index(member) - (beside - 1) / 2) * 0.8 / beside
        reason = reason_of(row, missing) if number(row["estimate"]) is None else ""
        title = ", ".join(name_of(row[column]) for column in dict.fromkeys(filter(None, (category, hue))))
        numbers = (number(row.get(name)) for name in ("estimate", "low", "high"))
        tip = row.get("tip") or f"{title}: {describe_value({**row, 'reason': reason}, percent=percent)}"
        marks.append((key, member, names.index(key) + offset, *numbers, size_of(row), reason, tip, link_of(row)))
    columns = ["key", "series", "y", "x", "low", "high", "n", "reason", "tip", "href"]
    types = {"key": "object", "series": "object"} | dict.fromkeys(("y", "x", "low", "high", "n"), "float64")
    return Rows(pd.DataFrame(marks, columns=columns).astype(types), names, series)


def link_of(row: Mapping[Hashable, Any], part: str = "") -> str:
    """Return the link of a row, or of one of its parts if each has its own; empty if there is none."""
    href = row.get("href")
    href = href.get(part) if isinstance(href, Mapping) else href
    return href if isinstance(href, str) else ""


def swarm(values: Sequence[float] | np.ndarray, width: float = 0.02) -> np.ndarray:
    """Spread points across their row so that those close to each other stay apart.

    Points are close if they fall into the same bin, of `width` as a share of their range. Returns an offset for each
    from -0.5 to 0.5; 0 for a point that stands alone.
    """
    at = np.asarray(values, dtype=float)
    if not len(at):
        return at
    span = np.ptp(at)
    bins = pd.Series(np.floor((at - at.min()) / span / width) if span > 0 else np.zeros(len(at)))
    order = bins.groupby(bins).cumcount().to_numpy()
    step = 1 / max(int(bins.value_counts().max()), 6)
    return step * np.where(order % 2, (order + 1) // 2, -(order // 2))


class Grid(NamedTuple):
    """Cells of a table: the table's row by (row, column)."""

    rows: list  # keys of those with data
    columns: list
    cells: dict[tuple, dict]
    note: str  # which rows these are, if not all are drawn


def grid(
    table: pd.DataFrame, row: str, column: str, rows: Keys = (), columns: Keys = (), value: str = "estimate"
) -> Grid:
    """Arrange the rows of a table in cells; of more than 40 rows, those whose values differ most are kept.

    Keys of `rows` and `columns` come first, even if the table lacks them; if `rows` are given, all are kept. Rows and
    columns of the same keys have the same order.
    """
    table = with_data(table)
    cells = {(key_of(record[row]), key_of(record[column])): record for record in table.to_dict("records")}
    down, across = keys(table[row], rows), keys(table[column], columns)
    across = down if set(down) == set(across) else across
    if rows or len(down) <= MOST_ROWS:
        return Grid(down, across, cells, "")
    places = table[row].map(key_of).map({key: i for i, key in enumerate(down)}, na_action=None)
    values = pd.to_numeric(table[value], errors="coerce").groupby(places.to_numpy())
    spread = (values.max() - values.min()).fillna(-1.0).to_numpy()
    selected = {down[i] for i in np.argsort(-spread, kind="stable")[:MOST_ROWS]}
    which = "those whose values differ most" if (spread > 0).any() else "the first"
    cells = {key: cell for key, cell in cells.items() if key[0] in selected}
    return Grid([key for key in down if key in selected], across, cells, f"{MOST_ROWS} of {len(down):,} rows: {which}")


def mirrored(pairs: pd.DataFrame, first: str = "model_a", second: str = "model_b") -> pd.DataFrame:
    """Add the mirror image of every pair, so that a matrix of differences is full: a minus b, and b minus a.

    Models are sorted by their mean over the pairs (columns mean_a and mean_b), the highest first.
    """
    swapped = pairs.rename(columns={first: second, second: first}).assign(estimate=-pairs["estimate"])
    if {"low", "high"} <= set(pairs.columns):
        swapped = swapped.assign(low=-pairs["high"], high=-pairs["low"])
    both = pd.concat([pairs, swapped], ignore_index=True)
    if not {"mean_a", "mean_b"} <= set(pairs.columns) or both.empty:
        return both
    sides = (first, "mean_a"), (second, "mean_b")
    listed = pd.concat([pairs[[name, mean]].set_axis(["name", "mean"], axis=1) for name, mean in sides])
    means = listed.groupby("name")["mean"].mean().sort_values(ascending=False, kind="stable")
    ranks = {name: i for i, name in enumerate(means.index)}
    return both.sort_values([first, second], key=lambda names: names.map(ranks), kind="stable", ignore_index=True)


def stacked(table: pd.DataFrame, category: str, parts: Mapping[str, str], *, share: bool = True) -> pd.DataFrame:
    """Reshape a table of counts to one row per part of a bar: row, name, part, n, total, left, width, tip and href.

    `parts` are columns of counts, from left to right, with their labels in tooltips. Rows that sum to 0 and parts that
    are 0 are left out. With `share`, all bars have length 1, else that of their sum.
    """
    counts = table[list(parts)].astype(float).fillna(0)
    filled = counts.sum(axis=1).to_numpy() > 0
    out = []
    records = zip(table[filled].to_dict("records"), counts[filled].to_numpy(), strict=True)
    for i, (row, numbers) in enumerate(records):
        total = numbers.sum()
        widths = numbers / total if share else numbers
        name = name_of(row[category])
        for part, n, width, left in zip(parts, numbers, widths, np.cumsum(widths) - widths, strict=True):
            tip = f"{name}: {n:,.0f} {parts[part]} of {total:,.0f} ({n / total * 100:.0f} %)"
            out.append((i, name, part, n, total, left, width, tip, link_of(row, part)))
    frame = pd.DataFrame(out, columns=["row", "name", "part", "n", "total", "left", "width", "tip", "href"])
    return frame[frame["n"] > 0].reset_index(drop=True)


def binned(events: pd.DataFrame, row: str, x: str, kind: str, width: int) -> pd.DataFrame:
    """Merge the events of every `width` positions of a row into one at the first, of their most frequent kind.

    Its tip counts them.
    """
    bins = events.assign(_bin=(events[x] - events[x].min()) // width)
    counts = bins.groupby([row, "_bin", kind], sort=False, dropna=False).size().rename("count").reset_index()
    totals = counts.groupby([row, "_bin"], sort=False, dropna=False)["count"].transform("sum")
    most = counts.assign(total=totals).sort_values("count", ascending=False, kind="stable")
    most = most.drop_duplicates([row, "_bin"]).sort_index()
    first = most["_bin"] * width + events[x].min()
    merged = zip(most[row], first, most["count"], most["total"], most[kind], strict=True)
    tips = [
        f"{name_of(name)}, from {name_of(start)}: {n} of {total} {name_of(what)}"
        for name, start, n, total, what in merged
    ]
    return most.assign(**{x: first, "tip": tips})[[row, x, kind, "tip"]]
