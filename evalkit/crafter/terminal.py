"""Terminal summaries of traces, from the same estimates as the notebook's tables."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from evalkit._words import counted_noun, format_interval, interval_cells
from evalkit.crafter import analysis
from evalkit.crafter.analysis import interval_text, number
from evalkit.crafter.evaluate import NAMES, Group, TraceScore, episodes_of_results, results_of, trace_text
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.scoring import BANDS, Counting
from evalkit.io import (
    Entry,
    SourceError,
    distinct_names,
    plain,
    resolve,
    short_paths,
    summarise,
    write_frame,
    write_text,
)
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Snapshot

_HOOKS = {column: column.split("_")[0] for column in analysis.HOOKS}  # easy, medium, hard, invalid
TOP_REASONS = 5  # of invalid actions
TOP = 3  # episodes listed with the sources of their points
_NAME, _FILE, _STRIP = 40, 120, 40  # characters of a model, of a file's path, and of a trajectory
_MOST_NAMED = 5  # files left out for one reason, up to which all are named


def describe(logs: Logs, views: Mapping[str, Any]) -> str:
    """Format logs: the trace of a single file, else the summary, with `verbose` after every trace."""
    episodes, rules = logs.episodes, logs.rules
    with suppress(SourceError):  # several sources, whose names are joined in one text
        if logs.ledger["source"].tolist() == [resolve(logs.source)]:
            return f"{trace_text(*results_of(episodes, rules))}\n"
    by: list[Group] = ["model_name"] if analysis.per_budget(episodes)["model_name"].nunique() > 1 else []
    by += ["difficulty"] if views.get("by_difficulty") else []
    sections = [trace_text(result) for result in results_of(episodes, rules)] if views.get("verbose") else []
    sections.append(_summary(episodes, by, rules["weights"], rules["counting"]))
    if len(reasons := analysis.invalid_actions(logs.actions, []).head(TOP_REASONS)):
        rows = [(f"{r.invalid:,} of {r.taken:,}", r.action, r.reason, r.episodes) for r in reasons.itertuples()]
        width, name = (max(map(len, column)) for column in list(zip(*rows, strict=True))[:2])
        lines = [
            f"   {n:>{width}}  {plain(action):{name}}  {plain(reason, _FILE)} ({counted_noun(k, 'trace')})"
            for n, action, reason, k in rows
        ]
        sections.append("\n".join(["🚫 Invalid actions, of all that were taken", *lines]))
    return "\n\n".join([*sections, _ledger_text([Entry(*row) for row in logs.ledger.itertuples(index=False)])])


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format how many traces there are of each model, and their mean score; a trace is complete once it can be read."""
    episodes = snapshot.logs.episodes
    lines = _breakdown_lines(episodes, "model_name", lambda n: so_far(n, snapshot.expected))
    if options.get("by_difficulty"):
        lines += ["", *_breakdown_lines(episodes, "difficulty")]
    models = episodes["model_name"].value_counts()
    expected = None if snapshot.expected is None else snapshot.expected * len(models)
    (mean,) = analysis.mean_scores(episodes, []).to_dict("records")
    if budgets := analysis.describe_budgets(episodes):
        lines += ["", f"budgets differ: {budgets}"]
    lines += ["", f"total: {so_far(len(episodes), expected)} traces, mean score {interval_text(mean)}"]
    lines += [f"aborted: {text}" for text in _aborted(episodes)]
    done = snapshot.expected is not None and not snapshot.being_written and models.min() >= snapshot.expected
    return "\n".join(lines), done


def write(logs: Logs, views: Mapping[str, Any], path: str) -> None:
    """Write the results and the ledger as JSON, or the episodes as a table."""
    if not path.lower().endswith(".json"):
        write_frame(logs.episodes, path)
        return
    content = {"results": results_of(logs.episodes, logs.rules), "ledger": logs.ledger.to_dict("records")}
    write_text(json.dumps(content, indent=2), path)


def _summary(
    episodes: pd.DataFrame, by: Sequence[Group], weights: Mapping[str, float] | None, counting: Counting
) -> str:
    """Format the summary, its breakdowns, the best three and the ranking; `weights` are None where they differ."""
    sections = [_summary_lines(episodes, weights, counting)]
    sections += [_breakdown_lines(episodes, group) for group in by]
    sections += [_top_lines(episodes), _ranking_lines(episodes)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _summary_lines(episodes: pd.DataFrame, weights: Mapping[str, float] | None, counting: Counting) -> list[str]:
    """Format mean score with interval, spread, shares, points (only with weights), bands, and what was left out."""
    (row,) = analysis.mean_scores(episodes, []).to_dict("records")
    models = episodes["model_name"].unique()
    of = f"{len(models)} models" if len(models) > 1 else distinct_names(models, _NAME)[models[0]]
    n = f"n = {row['n']}" + f" traces of {row['n_clusters']} tasks" * (row["n_clusters"] != row["n"])
    doubts = row["warning"].without("left_out")
    known = not pd.isna(row["low"])
    lines = [f"📈 {len(episodes)} {'trace' if len(episodes) == 1 else 'traces'} of {of}"]
    if budgets := analysis.describe_budgets(episodes):
        lines.append(f"   Budgets differ: {budgets}; by model they stand apart")
    basis = f"95 % interval, {n}" if known else f"{n}; {doubts}"
    lines.append(f"   Mean score{' over all budgets' * bool(budgets)}: {interval_text(row)} ({basis})")
    lines += [f"   Note: {doubts}"] * (known and bool(doubts))
    lines += [f"   Aborted: {text}" for text in _aborted(episodes)]
    if row["n"]:
        lines.append(f"   Range: {number(row['minimum'])} to {number(row['maximum'])}")
        lines.append(f"   Median: {number(row['median'])}")
        lines.append(f"   Standard deviation: {number(row['std'])}")
        shares = analysis.sign_shares(episodes, []).to_dict("records")
        lines += [f"   {share['sign'].capitalize()}: {_share_text(share)}" for share in shares]
        for (name, title), hook in zip(
            NAMES.items(), analysis.breakdown(episodes, [], weights or WEIGHTS).to_dict("records"), strict=True
        ):
            points = f" × {weights[name]} = {number(hook['points'])}" if weights else ""
            lines.append(f"   {title}: {hook['total']}{points}")
        lines.append(f"   Total: {analysis.describe_counting(episodes, counting)}")
    bands = episodes["band"].value_counts()
    lines.append("   Bands:")
    lines += [f"     {name}: {bands.get(name, 0)} ({meaning})" for name, _, meaning in BANDS]
    flags = [f"{row.flag} {row.episodes}" for row in analysis.flag_counts(episodes).itertuples()]
    return lines + [f"   Flags: {', '.join(flags)}"] * bool(flags)


def _aborted(episodes: pd.DataFrame) -> list[str]:
    """Describe how many traces were aborted, and the mean with them; nothing if none was."""
    rows = analysis.with_aborted_at_zero(episodes, []).to_dict("records")
    return [
        f"{r['aborted']} of {r['n']}, left out; mean score with {r['aborted']} at 0: {interval_text(r)}" for r in rows
    ]


def _share_text(row: Mapping[Any, Any]) -> str:
    """Format a share of episodes with its n and its interval in percent."""
    share, plain_share = (format_interval(x, None, None) for x in (row["estimate"], row["episodes"] / row["n"]))
    weights = "" if plain_share == share else " with equal weight for each task"
    return f"{row['episodes']} of {row['n']}, {format_interval(row['estimate'], row['low'], row['high'])}{weights}"


def _breakdown_lines(episodes: pd.DataFrame, by: Group, seen: Callable[[int], str] | None = None) -> list[str]:
    """Format one line per group; `seen` formats how many traces it has so far, in a column of its own."""
    episodes = analysis.per_budget(episodes) if by == "model_name" else episodes
    table = analysis.mean_scores(episodes, by)
    names = distinct_names(table[by].astype("str"), _NAME)
    counts = analysis.breakdown(episodes, by).pivot(index=by, columns="hook", values="estimate")
    sizes = episodes[by].value_counts()
    zero = {row[by]: row for row in analysis.with_aborted_at_zero(episodes, by).to_dict("records")}
    rows = [["", *["traces"] * bool(seen), "n", "score", "95 % interval", *_HOOKS.values(), ""]]
    for row in table.to_dict("records"):
        more = [seen(int(sizes[row[by]]))] if seen else []
        note = str(row["warning"]) if pd.isna(row["low"]) else ""
        means = map(number, counts.loc[row[by]])
        rows.append([names[row[by]], *more, str(row["n"]), *interval_cells(row, percent=False), *means, note])
        if other := zero.get(row[by]):
            cells = [
                f"  with {other['aborted']} aborted at 0",
                *[""] * len(more),
                str(other["n"]),
                *interval_cells(other, percent=False),
            ]
            rows.append(cells + [""] * (len(rows[0]) - len(cells)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:]), row[-1]] for row in rows)
    title = f"📈 By {by.removesuffix('_name')} (mean score; mean count per trace)"
    return [title, *(f"   {'  '.join(row)}".rstrip() for row in aligned)]


def _top_lines(episodes: pd.DataFrame) -> list[str]:
    """Format the episodes with the most points, and the sources of these."""
    names = _file_names(episodes)
    rows = []
    for place, row in enumerate(_ranked(episodes).head(TOP).to_dict("records"), start=1):
        counts = ", ".join(f"{row[column]} {hook}" for column, hook in _HOOKS.items() if row[column])
        rows.append(
            f"   {place}  {number(row['score']):>6} points  {names[row['source']]}{': ' * bool(counts)}{counts}"
        )
    return [f"🥇 Top {len(rows)}", *rows] if rows else []


def _ranking_lines(episodes: pd.DataFrame) -> list[str]:
    """Format all episodes in descending order of score; aborted ones, which have none, come last."""
    names, rows = _file_names(episodes), [("rank", "score", "trajectory", "file")]
    for rank, row in enumerate(_ranked(episodes).to_dict("records"), start=1):
        rows.append((str(rank), number(row["score"]), plain(row["trajectory"], _STRIP), names[row["source"]]))
    aborted = episodes.loc[episodes["score"].isna(), "source"]
    rows += [("", "–", "(aborted: no events)", names[source]) for source in aborted]
    width = max(len(row[2]) for row in rows)
    lines = [f"   {rank:>4} {score:>8}  {strip:{width}}  {name}" for rank, score, strip, name in rows]
    return ["🏆 Traces by score", *lines]


def _ranked(episodes: pd.DataFrame) -> pd.DataFrame:
    """Sort the episodes with a score in descending order; equal ones keep their order."""
    return episodes.dropna(subset="score").sort_values("score", ascending=False, kind="stable")


def _file_names(episodes: pd.DataFrame) -> dict[str, str]:
    """Return the shortest distinct path of each source, safe to print."""
    short = short_paths(episodes["source"])
    shown = distinct_names(short.values(), _FILE)
    return {source: shown[name] for source, name in short.items()}


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
    if scored:
        weights, counting = _same(scored, "weights", WEIGHTS), _same(scored, "counting", "achievement")
        print(_summary(episodes_of_results(scored), by, weights, counting or "achievement"))
    else:
        print("📈 no traces")
    for result in results:
        if result["total_score"] is None:
            print(f"   not read: {plain(result['trace_file'])}: {plain(result['error'])}")
    if (ledger := getattr(results, "ledger", None)) is not None:
        print(f"\n{_ledger_text(ledger.entries)}")


def _same(results: Iterable[TraceScore], key: str, default: Any) -> Any:
    """Return the value that all results share; None if they differ."""
    first, *others = [result.get(key, default) for result in results]
    return first if all(other == first for other in others) else None


def print_breakdown(results: Iterable[TraceScore], by: Group) -> None:
    """Print one line per model or per difficulty: n, mean score with its interval, mean counts per trace.

    Aborted traces are left out; if there are any, a second line counts them as 0.
    """
    print("\n".join(_breakdown_lines(episodes_of_results(results), by)))


def _ledger_text(entries: Sequence[Entry]) -> str:
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
