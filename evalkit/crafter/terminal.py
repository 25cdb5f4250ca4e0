"""Summaries of traces as lines of text, made of the same estimates as the notebook's tables."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from evalkit.crafter import analysis
from evalkit.crafter.evaluate import Group
from evalkit.crafter.scores import interval_cells, interval_text, number
from evalkit.crafter.scoring import BANDS, WEIGHTS, Counting
from evalkit.io.names import labels, short_paths

NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_HOOKS = {column: column.split("_")[0] for column in analysis.HOOKS}  # easy, medium, hard, invalid
TOP = 3  # episodes that are named with what their points are made of
_NAME, _FILE, _STRIP = 40, 120, 40  # characters of a model, of a file's path, and of a trajectory


def summary_lines(
    episodes: pd.DataFrame, weights: Mapping[str, float] | None = None, counting: Counting = "achievement"
) -> list[str]:
    """Write the answer: mean score with interval, spread, shares, points, bands, and what was left out.

    Parameters
    ----------
    episodes : DataFrame
        As `load` gives it.
    weights : mapping, optional
        Those the episodes were scored with; None where they differ, then no points are given per kind of hook.
    counting : {"achievement", "hook"}
        That by which they were scored.
    """
    (row,) = analysis.mean_scores(episodes, []).to_dict("records")
    models = episodes["model_name"].unique()
    of = f"{len(models)} models" if len(models) > 1 else labels(models, _NAME)[models[0]]
    n = f"n = {row['n']}" + f" traces of {row['n_clusters']} tasks" * (row["n_clusters"] != row["n"])
    doubts = "; ".join(text for text in row["warning"].split("; ") if text and not text.startswith("left out"))
    known = not pd.isna(row["low"])
    lines = [f"📈 {len(episodes)} {'trace' if len(episodes) == 1 else 'traces'} of {of}"]
    lines.append(f"   Mean score: {interval_text(row)} ({f'95 % interval, {n}' if known else f'{n}; {doubts}'})")
    lines += [f"   Note: {doubts}"] * (known and bool(doubts))
    lines += [
        f"   Aborted: {aborted_text(row)}" for row in analysis.with_aborted_at_zero(episodes, []).to_dict("records")
    ]
    if row["n"]:
        lines.append(f"   Range: {number(row['minimum'])} to {number(row['maximum'])}")
        lines.append(f"   Median: {number(row['median'])}")
        lines.append(f"   Standard deviation: {number(row['std'])}")
        shares = analysis.sign_shares(episodes, []).to_dict("records")
        lines += [f"   {share['sign'].capitalize()}: {share_text(share)}" for share in shares]
        lines += _point_lines(episodes, weights, counting)
    bands = episodes["band"].value_counts()
    lines.append("   Bands:")
    lines += [f"     {name}: {bands.get(name, 0)} ({meaning})" for name, _, meaning in BANDS]
    flags = [f"{row.flag} {row.episodes}" for row in analysis.flag_counts(episodes).itertuples()]
    return lines + [f"   Flags: {', '.join(flags)}"] * bool(flags)


def aborted_text(row: Mapping[str, Any]) -> str:
    """Say how many traces were aborted, and what the mean would be with them; `row` of `with_aborted_at_zero`."""
    return f"{row['aborted']} of {row['n']}, left out; mean score with {row['aborted']} at 0: {interval_text(row)}"


def _point_lines(episodes: pd.DataFrame, weights: Mapping[str, float] | None, counting: Counting) -> list[str]:
    lines = []
    counts = analysis.breakdown(episodes, [], weights or WEIGHTS).to_dict("records")
    for (name, title), row in zip(NAMES.items(), counts, strict=True):
        points = f" × {weights[name]} = {number(row['points'])}" if weights else ""
        lines.append(f"   {title}: {row['total']}{points}")
    return [*lines, f"   Total: {analysis.describe_counting(episodes, counting)}"]


def breakdown_lines(episodes: pd.DataFrame, by: Group, seen: Callable[[int], str] | None = None) -> list[str]:
    """Write one line per group: n, mean score with its interval, mean counts per trace.

    Parameters
    ----------
    episodes : DataFrame
    by : {"model_name", "difficulty"}
    seen : function of int, optional
        Writes how many traces of a group are there, in a column of its own.
    """
    table = analysis.mean_scores(episodes, by)
    names = labels(table[by].astype("str"), _NAME)
    counts = analysis.breakdown(episodes, by).pivot(index=by, columns="hook", values="estimate")
    sizes = episodes[by].value_counts()
    zero = {row[by]: row for row in analysis.with_aborted_at_zero(episodes, by).to_dict("records")}
    rows = []
    for row in table.to_dict("records"):
        means = ["–" if value != value else number(value) for value in counts.loc[row[by]]]
        more = [seen(int(sizes[row[by]]))] if seen else []
        note = row["warning"] if pd.isna(row["low"]) else ""
        rows.append([names[row[by]], *more, str(row["n"]), *interval_cells(row), *means, note])
        if row[by] in zero:
            other = zero[row[by]]
            blank = [""] * len(more)
            rows.append([f"  with {other['aborted']} aborted at 0", *blank, str(other["n"]), *interval_cells(other)])
    title = by.removesuffix("_name")
    heads = ["", *["traces"] * bool(seen), "n", "score", "95 % interval", *_HOOKS.values(), ""]
    return [f"📈 By {title} (mean score; mean count per trace)", *_table(rows, heads)]


def _table(rows: list[list[str]], heads: list[str]) -> list[str]:
    """Put cells below their heads: the first and the last column to the left, the others to the right."""
    rows = [heads, *(row + [""] * (len(heads) - len(row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:]), row[-1]] for row in rows]
    return [f"   {'  '.join(row)}".rstrip() for row in cells]


def top_lines(episodes: pd.DataFrame) -> list[str]:
    """Write the episodes with the most points, and what these are made of."""
    names = file_names(episodes)
    rows = []
    for place, row in enumerate(ranked(episodes).head(TOP).to_dict("records"), start=1):
        counts = [f"{row[column]} {hook}" for column, hook in _HOOKS.items() if row[column]]
        made_of = f": {', '.join(counts)}" if counts else ""
        rows.append(f"   {place}  {number(row['score']):>6} points  {names[row['source']]}{made_of}")
    return [f"🥇 Top {len(rows)}", *rows] if rows else []


def ranking_lines(episodes: pd.DataFrame) -> list[str]:
    """Write all episodes from the highest score to the lowest; aborted ones, which have none, last."""
    names, rows = file_names(episodes), []
    scored, aborted = ranked(episodes), episodes[episodes["score"].isna()]
    for rank, row in enumerate(scored.to_dict("records"), start=1):
        strip = row["trajectory"] if len(row["trajectory"]) <= _STRIP else f"{row['trajectory'][: _STRIP - 1]}…"
        rows.append((str(rank), number(row["score"]), strip, names[row["source"]]))
    rows += [("", "–", "(aborted)", names[source]) for source in aborted["source"]]
    width = max(len("trajectory"), *(len(row[2]) for row in rows))
    heads = ("rank", "score", "trajectory", "file")
    lines = [f"   {rank:>4} {score:>8}  {strip:{width}}  {name}" for rank, score, strip, name in (heads, *rows)]
    return ["🏆 Traces by score", *lines]


def ranked(episodes: pd.DataFrame) -> pd.DataFrame:
    """Sort the episodes that have a score, from high to low; equal ones as they stand."""
    return episodes.dropna(subset="score").sort_values("score", ascending=False, kind="stable")


def file_names(episodes: pd.DataFrame) -> dict[str, str]:
    """Name each source by the shortest path that tells it apart, fit to be printed."""
    short = short_paths(episodes["source"])
    shown = labels(short.values(), _FILE)
    return {source: shown[name] for source, name in short.items()}


def share_text(row: Mapping[str, Any]) -> str:
    """Write a share of episodes with its n and its interval in percent."""
    bounds = "" if pd.isna(row["low"]) else f" [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
    return f"{row['episodes']} of {row['n']}, {100 * row['estimate']:.0f} %{bounds}"
