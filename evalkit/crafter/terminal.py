"""Terminal summaries of traces, from the same estimates as the notebook's tables; results as dictionaries."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import pandas as pd
import pyarrow as pa

from evalkit._words import counted_noun, format_interval, interval_cells
from evalkit.crafter import analysis
from evalkit.crafter.analysis import interval_text, number
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.scoring import BANDS, DIGITS, NO_SCORED_EVENTS, Counting
from evalkit.io import (
    Entry,
    SourceError,
    distinct_names,
    plain,
    resolve,
    short_paths,
    summarise,
    unescape_surrogates,
    write_frame,
    write_text,
)
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Snapshot

Group = Literal["model_name", "difficulty"]
TraceScore = dict[str, Any]  # see `evalkit.crafter.evaluate_trace`

_NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_HOOKS = {column: column.split("_")[0] for column in analysis.HOOKS}  # easy, medium, hard, invalid
_OTHER = {
    "achievement": ("score_by_hook", "Per hook", "every hook counts once"),
    "hook": ("score_by_achievement", "Per achievement", "every achievement that a hook names counts"),
}
# columns of episodes that results have, too: who and where, and points, with those of an aborted trace
ABOUT = ("session_id", "task_id", "task_source", "max_turns", "model_name", "difficulty")
POINTS: dict[str, float] = {"score_by_achievement": 0.0, "score_by_hook": 0.0, "suspect_invalid_actions": 0}
TOP_REASONS = 5  # of invalid actions
TOP = 3  # episodes listed with the sources of their points
_NAME, _FILE, _STRIP = 40, 120, 40  # characters of a model, of a file's path, and of a trajectory
_MOST_NAMED = 5  # files left out for one reason, up to which all are named


def results_of(episodes: Mapping[Any, Any], rules: Mapping[str, Any]) -> list[TraceScore]:
    """Return the rows of episodes, a frame or its columns, as results in descending order of score."""
    hooks = {f"{name}s": name for name in WEIGHTS}
    names = ("source", "score", "trajectory", "events", "run_flags", *ABOUT, *POINTS, *hooks)
    results = []
    for values in zip(*(_listed(episodes[name]) for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        source = unescape_surrogates(row["source"])
        result = {
            "total_score": row["score"] or 0.0,  # as of an aborted trace
            "counts": {name: row[column] for column, name in hooks.items() if row[column]},
            "trajectory": row["trajectory"] or NO_SCORED_EVENTS,
            "num_events": row["events"],
            "trace_file": os.path.basename(source),
            "source": source,
            **{name: row[name] for name in ABOUT},
            **{name: row[name] or zero for name, zero in POINTS.items()},
            "flags": row["run_flags"],
        }
        results.append({**result, **rules})
    return sorted(results, key=lambda result: result["total_score"], reverse=True)


def _listed(column: Any) -> list:
    """Return the values of a column; missing ones are None."""
    return pa.array(column, from_pandas=True).to_pylist() if isinstance(column, pd.Series) else column


def trace_text(result: Mapping[str, Any]) -> str:
    """Format a result: score, events, breakdown, trajectory, and notes about anything doubtful."""
    lines = [f"📊 Trace: {plain(result['trace_file'])}"]
    if result["total_score"] is None:
        return "\n".join([*lines, f"   Error: {plain(result['error'])}"])
    lines += [f"   Score: {number(result['total_score'])}", f"   Events: {result['num_events']}", "   Breakdown:"]
    for name, count in result["counts"].items():
        weight = result.get("weights", WEIGHTS)[name]
        lines.append(f"     {_NAMES[name]}: {count} × {weight} = {count * weight:.2f}")
    key, title, meaning = _OTHER[result.get("counting", "achievement")]
    other = result.get(key)
    if other is not None and round(other - result["total_score"], DIGITS):
        lines.append(f"   {title}: {number(other)} ({meaning})")
    lines.append(f"   Trajectory: {result['trajectory']}")
    if suspect := result.get("suspect_invalid_actions"):
        invalid = result["counts"]["invalid_action"]
        lines.append(f"   Suspect: {suspect} of {invalid} invalid actions, judged over turns of several actions")
    if others := [flag.replace("_", " ") for flag in result.get("flags", []) if flag != "suspect_invalid_actions"]:
        lines.append(f"   Flags: {', '.join(others)}")
    return "\n".join(lines)


def describe(logs: Logs, views: Mapping[str, Any]) -> str:
    """Format logs: the trace of a single file, else the summary, with `verbose` after every trace."""
    episodes, rules = logs.episodes, logs.rules
    with suppress(SourceError):  # several sources, whose names are joined in one text
        if logs.ledger["source"].tolist() == [resolve(logs.source)]:
            return f"{trace_text(*results_of(episodes, rules))}\n"
    by: list[Group] = ["model_name"] if analysis.per_budget(episodes)["model_name"].nunique() > 1 else []
    by += ["difficulty"] if views.get("by_difficulty") else []
    sections = [trace_text(result) for result in results_of(episodes, rules)] if views.get("verbose") else []
    sections.append(summary(episodes, by, rules["weights"], rules["counting"]))
    if len(reasons := analysis.invalid_actions(logs.actions, []).head(TOP_REASONS)):
        rows = [(f"{row['invalid']:,} of {row['taken']:,}", row) for row in reasons.to_dict("records")]
        width, longest = max(len(count) for count, _ in rows), reasons["action"].map(len).max()
        lines = ["🚫 Invalid actions, of all that were taken"]
        for count, row in rows:
            reason = f"{plain(row['reason'], _FILE)} ({counted_noun(row['episodes'], 'trace')})"
            lines.append(f"   {count:>{width}}  {plain(row['action']):{longest}}  {reason}")
        sections.append("\n".join(lines))
    return "\n\n".join([*sections, ledger_text([Entry(*row) for row in logs.ledger.itertuples(index=False)])])


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format how many traces there are of each model, and their mean score; a trace is complete once it can be read."""
    episodes = snapshot.logs.episodes
    lines = breakdown_lines(episodes, "model_name", lambda n: so_far(n, snapshot.expected))
    if options.get("by_difficulty"):
        lines += ["", *breakdown_lines(episodes, "difficulty")]
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


def summary(
    episodes: pd.DataFrame, by: Sequence[Group], weights: Mapping[str, float] | None, counting: Counting
) -> str:
    """Format the summary, its breakdowns, the best three and the ranking; `weights` are None where they differ."""
    sections = [_summary_lines(episodes, weights, counting), *(breakdown_lines(episodes, group) for group in by)]
    return "\n\n".join("\n".join(lines) for lines in [*sections, *_ranking_lines(episodes)] if lines)


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
        totals = analysis.breakdown(episodes, [], weights or WEIGHTS).to_dict("records")
        for (name, title), hook in zip(_NAMES.items(), totals, strict=True):
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


def breakdown_lines(episodes: pd.DataFrame, by: Group, seen: Callable[[int], str] | None = None) -> list[str]:
    """Format one line per group; `seen` formats how many traces it has so far, in a column of its own."""
    episodes = analysis.per_budget(episodes) if by == "model_name" else episodes
    table = analysis.mean_scores(episodes, by)
    names = distinct_names(table[by].astype("str"), _NAME)
    counts = analysis.breakdown(episodes, by).pivot(index=by, columns="hook", values="estimate")
    sizes = episodes[by].value_counts()
    zero = {row[by]: row for row in analysis.with_aborted_at_zero(episodes, by).to_dict("records")}
    rows = [["", *["traces"] * bool(seen), "n", "score", "95 % interval", *_HOOKS.values(), ""]]
    for row in table.to_dict("records"):
        counted = [seen(int(sizes[row[by]]))] if seen else []
        note = str(row["warning"]) if pd.isna(row["low"]) else ""
        cells = [str(row["n"]), *interval_cells(row, percent=False), *map(number, counts.loc[row[by]]), note]
        rows.append([names[row[by]], *counted, *cells])
        if other := zero.get(row[by]):
            cells = [str(other["n"]), *interval_cells(other, percent=False), *[""] * len(_HOOKS), ""]
            rows.append([f"  with {other['aborted']} aborted at 0", *[""] * bool(seen), *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:]), row[-1]] for row in rows)
    title = f"📈 By {by.removesuffix('_name')} (mean score; mean count per trace)"
    return [title, *(f"   {'  '.join(row)}".rstrip() for row in aligned)]


def _ranking_lines(episodes: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Format the episodes with the most points and their sources, and all in descending order of score.

    Aborted ones, which have no score, come last. Files have the shortest paths that tell them apart.
    """
    short = short_paths(episodes["source"])
    shown = distinct_names(short.values(), _FILE)
    ranked = episodes.dropna(subset="score").sort_values("score", ascending=False, kind="stable").to_dict("records")
    best, rows = [f"🥇 Top {len(ranked[:TOP])}"] if ranked else [], [("rank", "score", "trajectory", "file")]
    for rank, row in enumerate(ranked, start=1):
        points, file = number(row["score"]), shown[short[row["source"]]]
        rows.append((str(rank), points, plain(row["trajectory"], _STRIP), file))
        if rank <= TOP:
            counts = ", ".join(f"{row[column]} {hook}" for column, hook in _HOOKS.items() if row[column])
            best.append(f"   {rank}  {points:>6} points  {file}{': ' * bool(counts)}{counts}")
    aborted = episodes.loc[episodes["score"].isna(), "source"]
    rows += [("", "–", "(aborted: no events)", shown[short[source]]) for source in aborted]
    width = max(len(row[2]) for row in rows)
    table = [f"   {rank:>4} {score:>8}  {strip:{width}}  {name}" for rank, score, strip, name in rows]
    return best, ["🏆 Traces by score", *table]


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
