"""Terminal summaries of traces, from the same estimates as the notebook's tables."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from evalkit.crafter import analysis
from evalkit.crafter.analysis import interval_cells, interval_text, number
from evalkit.crafter.evaluate import (
    NAMES,
    Group,
    TraceScore,
    episodes_of_results,
    results_of,
    trace_text,
)
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.scoring import BANDS, Counting
from evalkit.io import (
    Entry,
    SourceError,
    labels,
    plain,
    resolve,
    short_paths,
    summarise,
    write_frame,
    write_text,
)
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Look

_HOOKS = {column: column.split("_")[0] for column in analysis.HOOKS}  # easy, medium, hard, invalid
TOP = 3  # episodes listed with the sources of their points
_NAME, _FILE, _STRIP = 40, 120, 40  # characters of a model, of a file's path, and of a trajectory
_MOST_NAMED = 5  # files left out for one reason, up to which all are named


def describe(logs: Logs, views: Mapping[str, Any]) -> str:
    """Format logs: the trace of a single file, else the summary, with `verbose` after every trace."""
    episodes, rules = logs.episodes, logs.rules
    if _is_one_file(logs):
        return f"{trace_text(*results_of(episodes, rules))}\n"
    by: list[Any] = ["model_name"] * (episodes["model_name"].nunique() > 1) + ["difficulty"] * bool(
        views.get("by_difficulty")
    )
    sections: list[str] = []
    if views.get("verbose"):
        sections += map(trace_text, results_of(episodes, rules))
    sections.append(summary_text(episodes, by, rules["weights"], rules["counting"]))
    entries = [Entry(*row) for row in logs.ledger.itertuples(index=False)]
    return "\n\n".join([*sections, ledger_text(entries)])


def _is_one_file(logs: Logs) -> bool:
    with suppress(SourceError):  # several sources, whose names are joined in one text
        return logs.ledger["source"].tolist() == [resolve(logs.source)]
    return False


def progress(look: Look, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format how many traces there are of each model, and their mean score; a trace is complete once it can be read."""
    episodes = look.logs.episodes
    lines = breakdown_lines(episodes, "model_name", lambda n: so_far(n, look.expected))
    if options.get("by_difficulty"):
        lines += ["", *breakdown_lines(episodes, "difficulty")]
    models = episodes["model_name"].value_counts()
    expected = None if look.expected is None else look.expected * len(models)
    (mean,) = analysis.mean_scores(episodes, []).to_dict("records")
    zero = analysis.with_aborted_at_zero(episodes, []).to_dict("records")
    total = f"total: {so_far(len(episodes), expected)} traces, mean score {interval_text(mean)}"
    text = "\n".join([*lines, "", total, *(f"aborted: {aborted_text(row)}" for row in zero)])
    return text, look.expected is not None and not look.writing and models.min() >= look.expected


def write(logs: Logs, views: Mapping[str, Any], path: str) -> None:
    """Write the results and the ledger as JSON, or the episodes as a table."""
    if not path.lower().endswith(".json"):
        write_frame(logs.episodes, path)
        return
    content = {"results": results_of(logs.episodes, logs.rules), "ledger": logs.ledger.to_dict("records")}
    write_text(json.dumps(content, indent=2), path)


def summary_text(
    episodes: pd.DataFrame,
    by: Sequence[Group] = (),
    weights: Mapping[str, float] | None = None,
    counting: Counting = "achievement",
) -> str:
    """Format the summary, its breakdowns, the best three and the ranking; parameters as for `summary_lines`."""
    sections = [summary_lines(episodes, weights, counting)]
    sections += [breakdown_lines(episodes, group) for group in by]
    sections += [top_lines(episodes), ranking_lines(episodes)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def summary_lines(
    episodes: pd.DataFrame, weights: Mapping[str, float] | None = None, counting: Counting = "achievement"
) -> list[str]:
    """Format the summary: mean score with interval, spread, shares, points, bands, and what was left out.

    Parameters
    ----------
    episodes : DataFrame
        As `load` returns it.
    weights : mapping, optional
        The weights that the episodes were scored with; if None, as they differ, no points per kind of hook are shown.
    counting : {"achievement", "hook"}
        The counting that they were scored by.
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
    zero = analysis.with_aborted_at_zero(episodes, []).to_dict("records")
    lines += [f"   Aborted: {aborted_text(group)}" for group in zero]
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


def aborted_text(row: Mapping[Any, Any]) -> str:
    """Describe how many traces were aborted, and the mean with them; `row` of `with_aborted_at_zero`."""
    return f"{row['aborted']} of {row['n']}, left out; mean score with {row['aborted']} at 0: {interval_text(row)}"


def _point_lines(episodes: pd.DataFrame, weights: Mapping[str, float] | None, counting: Counting) -> list[str]:
    lines = []
    counts = analysis.breakdown(episodes, [], weights or WEIGHTS).to_dict("records")
    for (name, title), row in zip(NAMES.items(), counts, strict=True):
        points = f" × {weights[name]} = {number(row['points'])}" if weights else ""
        lines.append(f"   {title}: {row['total']}{points}")
    return [*lines, f"   Total: {analysis.describe_counting(episodes, counting)}"]


def breakdown_lines(episodes: pd.DataFrame, by: Group, seen: Callable[[int], str] | None = None) -> list[str]:
    """Format one line per group: n, mean score with its interval, mean counts per trace.

    Parameters
    ----------
    episodes : DataFrame
    by : {"model_name", "difficulty"}
    seen : function of int, optional
        Formats how many traces a group has so far, in a column of its own.
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
    """Align cells below their headers: the first and the last column left, the others right."""
    rows = [heads, *(row + [""] * (len(heads) - len(row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:]), row[-1]] for row in rows]
    return [f"   {'  '.join(row)}".rstrip() for row in cells]


def top_lines(episodes: pd.DataFrame) -> list[str]:
    """Format the episodes with the most points, and the sources of these."""
    names = file_names(episodes)
    rows = []
    for place, row in enumerate(ranked(episodes).head(TOP).to_dict("records"), start=1):
        counts = [f"{row[column]} {hook}" for column, hook in _HOOKS.items() if row[column]]
        made_of = f": {', '.join(counts)}" if counts else ""
        rows.append(f"   {place}  {number(row['score']):>6} points  {names[row['source']]}{made_of}")
    return [f"🥇 Top {len(rows)}", *rows] if rows else []


def ranking_lines(episodes: pd.DataFrame) -> list[str]:
    """Format all episodes in descending order of score; aborted ones, which have none, come last."""
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
    """Sort the episodes with a score in descending order; equal ones keep their order."""
    return episodes.dropna(subset="score").sort_values("score", ascending=False, kind="stable")


def file_names(episodes: pd.DataFrame) -> dict[str, str]:
    """Return the shortest distinct path of each source, safe to print."""
    short = short_paths(episodes["source"])
    shown = labels(short.values(), _FILE)
    return {source: shown[name] for source, name in short.items()}


def share_text(row: Mapping[Any, Any]) -> str:
    """Format a share of episodes with its n and its interval in percent."""
    bounds = "" if pd.isna(row["low"]) else f" [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
    share = f"{100 * row['estimate']:.0f}"
    weights = "" if f"{100 * row['episodes'] / row['n']:.0f}" == share else " with equal weight for each task"
    return f"{row['episodes']} of {row['n']}, {share} %{bounds}{weights}"


def print_evaluation_summary(results: Sequence[TraceScore], by: Sequence[Group] = ()) -> None:
    """Print a folder: mean score, spread and points, then the best three, the ranking, and unused files.

    Aborted traces are left out of all means; the mean with them at 0 is shown, too.

    Parameters
    ----------
    results : sequence of TraceScore
        As `evaluate_all_traces` returns it; the files of its ledger that were not used come at the end.
    by : sequence of {"model_name", "difficulty"}
        Also break down the scores by these.
    """
    scored = [result for result in results if result["total_score"] is not None]
    if not scored:
        print("📈 no traces")
    else:
        _print_scored(scored, by)
    for result in results:
        if result["total_score"] is None:
            print(f"   not read: {plain(result['trace_file'])}: {plain(result['error'])}")
    if (ledger := getattr(results, "ledger", None)) is not None:
        print(f"\n{ledger_text(ledger.entries)}")


def _print_scored(scored: Sequence[TraceScore], by: Sequence[Group]) -> None:
    weights, counting = _same(scored, "weights", WEIGHTS), _same(scored, "counting", "achievement")
    print(summary_text(episodes_of_results(scored), by, weights, counting or "achievement"))


def _same(results: Iterable[TraceScore], key: str, default: Any) -> Any:
    """Return the value that all results share; None if they differ."""
    first, *others = [result.get(key, default) for result in results]
    return first if all(other == first for other in others) else None


def print_breakdown(results: Iterable[TraceScore], by: Group) -> None:
    """Print one line per model or per difficulty: n, mean score with its interval, mean counts per trace.

    Aborted traces are left out; if there are any, a second line counts them as 0.
    """
    print("\n".join(breakdown_lines(episodes_of_results(results), by)))


def ledger_text(entries: Sequence[Entry]) -> str:
    """Format how many files were used, skipped and failed, and why; if many share a reason, only an example."""
    lines = [f"📁 {summarise(entry.status for entry in entries)}"]
    unused: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.status != "used":
            unused.setdefault((entry.status, entry.reason), []).append(entry.source)
    for (status, reason), sources in unused.items():
        prefix = f"{len(sources)} files, such as " if len(sources) > _MOST_NAMED else ""
        shown = sources[: 1 if prefix else None]
        lines += [f"   {status}: {prefix}{plain(source)}: {plain(reason)}" for source in shown]
    return "\n".join(lines)
