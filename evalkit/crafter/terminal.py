"""Format traces for the terminal, from the same estimates as the notebook's tables; return results as dictionaries."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pandas as pd
import pyarrow as pa

from evalkit._text import counted_noun
from evalkit.crafter import analysis
from evalkit.crafter.analysis import interval_text, number
from evalkit.crafter.assemble import BANDS, NO_SCORED_EVENTS, Counting, Rules
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.logs import CrafterLogs
from evalkit.crafter.table import FLAGS
from evalkit.display.follow import Snapshot
from evalkit.display.terminal import INTERVAL, Part, fit_table
from evalkit.io import distinct_names, plain, short_paths
from evalkit.io.screen import so_far
from evalkit.kinds import has_flag
from evalkit.kinds.success_rates import best_first

_NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_HOOKS = {column: f"{column.split('_')[0]} points" for column in analysis.HOOKS}  # easy, medium, hard, invalid
# columns of episodes that results also have
ABOUT = ("session_id", "task_id", "task_source", "max_turns", "model_name", "difficulty")
_SPARE = ("without suspects", *_HOOKS.values())  # columns that a narrow table leaves out, in this order
TOP_REASONS, MOST_TRACES = 3, 6  # maximum numbers of reasons of invalid actions and of traces on one screen
_NAME = 40  # maximum number of characters of a model's name
_FILE = 120  # maximum number of characters of a file's path
_STRIP = 40  # maximum number of characters of a trajectory


class TraceScore(TypedDict):
    """The score of a trace; see `evalkit.crafter.evaluate_trace`. An unreadable file has only some of these."""

    total_score: float | None  # in points; None for an unreadable file
    counts: dict[str, int]
    trajectory: str
    num_events: int
    trace_file: str
    source: str
    flags: list[str]
    session_id: NotRequired[str | None]
    task_id: NotRequired[str | None]
    task_source: NotRequired[str | None]
    max_turns: NotRequired[int | None]
    model_name: NotRequired[str]
    difficulty: NotRequired[str | None]
    suspect_invalid_actions: NotRequired[int]
    weights: NotRequired[dict[str, float]]
    counting: NotRequired[Counting]
    error: NotRequired[str]  # only of an unreadable file


def results_of(episodes: pd.DataFrame | Mapping[Any, Any], rules: Rules) -> list[TraceScore]:
    """Return the rows of episodes (a frame or its columns) as results in descending order of score."""
    hooks = {f"{name}s": name for name in WEIGHTS}
    names = ("source", "score", "trajectory", "events", "run_flags", "suspect_invalid_actions", *ABOUT, *hooks)
    results = list[TraceScore]()
    columns = [episodes[name] for name in names]
    if isinstance(episodes, pd.DataFrame):  # lists have None for missing values
        columns = [pa.array(column, from_pandas=True).to_pylist() for column in columns]
    for values in zip(*columns, strict=True):
        row = dict(zip(names, values, strict=True))
        result: TraceScore = {
            "total_score": row["score"] or 0.0,  # an aborted trace has no score
            "counts": {name: row[column] for column, name in hooks.items() if row[column]},
            "trajectory": row["trajectory"] or NO_SCORED_EVENTS,
            "num_events": row["events"],
            "trace_file": os.path.basename(row["source"]),
            "source": row["source"],
            "session_id": row["session_id"],
            "task_id": row["task_id"],
            "task_source": row["task_source"],
            "max_turns": row["max_turns"],
            "model_name": row["model_name"],
            "difficulty": row["difficulty"],
            "suspect_invalid_actions": row["suspect_invalid_actions"] or 0,
            "flags": row["run_flags"],
        }
        results.append({**result, **rules})
    return sorted(results, key=lambda result: result["total_score"] or 0.0, reverse=True)


def trace_text(result: TraceScore) -> str:
    """Format a result: score, events, breakdown, trajectory, and notes about anything doubtful."""
    lines = [f"📊 Trace: {plain(result['trace_file'])}"]
    if result["total_score"] is None:
        return "\n".join([*lines, f"   Error: {plain(result['error'])}"])
    lines += [f"   Score: {number(result['total_score'])}", f"   Events: {result['num_events']}"]
    lines += ["   Breakdown:"] if result["counts"] else []
    for name, count in result["counts"].items():
        weight = result["weights"][name]
        lines.append(f"     {_NAMES[name]}: {count} × {weight} = {count * weight:.2f}")
    lines.append(f"   Trajectory: {result['trajectory']}")
    if suspect := result["suspect_invalid_actions"]:
        invalid = result["counts"]["invalid_action"]
        lines.append(f"   Suspect: {suspect} of {invalid} invalid actions, judged over turns of several actions")
    if others := [flag.replace("_", " ") for flag in result["flags"] if flag != "suspect_invalid_actions"]:
        lines.append(f"   Flags: {', '.join(others)}")
    return "\n".join(lines)


def describe(logs: CrafterLogs, views: Mapping[str, Any]) -> list[Part]:
    """Format a single trace; for several, format groups, all traces together, their ranking, and invalid actions."""
    episodes, rules = logs.episodes, logs.rules
    everything = bool(views.get("all"))
    if len(logs.ledger) == 1 and len(episodes) == 1:
        lines = trace_text(*results_of(episodes, rules)).split("\n")
        return [Part("the trace", lines, always=True, frame=analysis.mean_scores(episodes))]
    by = ["model_name", "difficulty"] if views.get("by_difficulty") else ["model_name"]
    verbose = results_of(episodes, rules) if views.get("verbose") else ()
    reasons = analysis.invalid_actions(logs.events, [])  # the most frequent first
    why = []
    for row in reasons.head(len(reasons) if everything else TOP_REASONS).to_dict("records"):
        reason = f"{plain(row['reason'], _FILE)} ({counted_noun(row['episodes'], 'trace')})"
        why.append({"invalid action": plain(row["action"]), "times": f"{row['invalid']:,}", "reason": reason})
    return [*parts(episodes, by, verbose, everything=everything), Part("invalid actions", rows=why)]


def progress(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the number of traces of each model, and their mean score. A trace is complete once it is readable."""
    episodes = snapshot.logs["episodes"]
    tables = [group_rows(episodes, "model_name", lambda n: so_far(n, snapshot.expected))]
    tables += [group_rows(episodes, "difficulty")] if options.get("by_difficulty") else []
    lines = ["\n\n".join(fit_table(rows, spare=_SPARE, width=snapshot.width) for rows in tables)]
    models = episodes["model_name"].value_counts()
    expected = None if snapshot.expected is None else snapshot.expected * len(models)
    (mean,) = analysis.mean_scores(episodes, []).to_dict("records")
    if budgets := _budgets(episodes):
        lines += ["", f"budgets: {budgets}"]
    lines += ["", f"total: {so_far(len(episodes), expected, 'trace')}, mean score {interval_text(mean)}"]
    lines += [f"aborted: {text}" for text in _aborted(episodes)]
    done = snapshot.expected is not None and not snapshot.being_written and models.min() >= snapshot.expected
    return "\n".join(lines), done


def parts(
    episodes: pd.DataFrame, by: Sequence[str] = (), verbose: Sequence[TraceScore] = (), *, everything: bool = False
) -> list[Part]:
    """Format every trace in `verbose`, the groups, all traces together, and the ranking of traces."""
    traces = [line for result in verbose for line in (trace_text(result), "")]
    titles = {"model_name": "models", "difficulty": "difficulties"}
    groups = [Part(titles[group], rows=group_rows(episodes, group), always=True, spare=_SPARE) for group in by]
    if groups:  # an output file contains only the last table
        groups[-1] = groups[-1]._replace(frame=analysis.mean_scores(analysis.per_budget(episodes), by[-1]))

    (row,) = analysis.mean_scores(episodes, []).to_dict("records")
    n = f"n = {row['n']}"
    if row["n_tasks"] != row["n"]:
        n += f" traces of {counted_noun(row['n_tasks'], 'task')}"
    doubts = row["warning"].without("left_out")
    counted = ", ".join(f"{name} {n}" for name, n in analysis.bands(episodes, []).iloc[0][list(BANDS)].items())
    budgets = _budgets(episodes)
    together = [f"Budgets, which split models: {budgets}"] if budgets else []
    mean = f"All traces: mean score{' over all budgets' if budgets else ''} {interval_text(row)} ({n})"
    together.append(f"{mean}; {doubts}" if doubts else mean)
    together.append(f"Bands: {counted}")
    together += [f"Aborted: {text}" for text in _aborted(episodes)]
    counts = {name.replace("_", " "): int(has_flag(episodes, name).sum()) for name in FLAGS}
    if flags := [f"{name} {n}" for name, n in counts.items() if n]:
        together.append(f"Flags: {', '.join(flags)}")
    if everything and row["n"]:
        spread = (number(row[name]) for name in ("minimum", "maximum", "median", "std"))
        together.append("Range: {} to {}; median {}; standard deviation {}".format(*spread))

    short = short_paths(episodes["source"])
    files = distinct_names(short.values(), _FILE)
    ranked = analysis.counted(episodes).sort_values("score", ascending=False, kind="stable", na_position="last")
    ranking = []
    for rank, episode in enumerate(ranked.to_dict("records"), start=1):
        score = number(episode["score"])
        cells = {"rank": str(rank), "score": score, "trajectory": plain(episode["trajectory"], _STRIP)}
        if pd.isna(episode["score"]):  # these come last
            cells |= {"rank": "–", "trajectory": "(aborted: no events)"}
        ranking.append({**cells, "file": files[short[episode["source"]]]})
    return [
        Part("every trace", traces, always=True),
        *groups,
        Part("all traces together", together),
        Part("traces", rows=ranking, most=MOST_TRACES, left=0, spare=("trajectory",)),
    ]


def _budgets(episodes: pd.DataFrame) -> str:
    """List the budgets and their numbers of episodes; empty if there is only one budget."""
    return ", ".join(f"{name} ({counted_noun(n, 'episode')})" for name, n in analysis.budgets(episodes).items())


def _aborted(episodes: pd.DataFrame) -> list[str]:
    """Describe how many traces were aborted, and the mean with them at 0; empty if no trace was."""
    rows = analysis.with_aborted_at_zero(episodes, []).to_dict("records")
    return [
        f"{r['aborted']} of {r['n']}, left out; mean score with {r['aborted']} at 0: {interval_text(r)}" for r in rows
    ]


def group_rows(episodes: pd.DataFrame, by: str, seen: Callable[[int], str] | None = None) -> list[dict[str, str]]:
    """Format a row per group, and a second row with aborted traces at 0; `seen` formats the number of traces so far."""
    episodes = analysis.per_budget(episodes) if by == "model_name" else episodes
    table = analysis.mean_scores(episodes, by)
    table = table if table[by].dtype == "category" else best_first(table)  # categories are already ordered
    names = distinct_names(table[by].astype("str"), _NAME)
    of_score = analysis.points(episodes, by).pivot(index=by, columns="hook", values="estimate")
    sizes = episodes[by].value_counts()
    zero = {row[by]: row for row in analysis.with_aborted_at_zero(episodes, by).to_dict("records")}
    has_suspects = (table["without_suspects"] - table["estimate"]).abs().gt(0).any()
    rows: list[dict[str, str]] = []
    for row in table.to_dict("records"):
        cells = {by.removesuffix("_name"): names[row[by]]}
        cells |= {"traces": seen(int(sizes[row[by]]))} if seen else {}
        cells |= {"n": str(row["n"]), f"mean score{INTERVAL}": interval_text(row)}
        cells |= {"without suspects": number(row["without_suspects"])} if has_suspects else {}
        cells |= dict(zip(_HOOKS.values(), map(number, of_score.loc[row[by]]), strict=True))
        rows.append(cells)
        if other := zero.get(row[by]):
            again = {by.removesuffix("_name"): f"with {other['aborted']} aborted at 0", "n": str(other["n"])}
            rows.append(dict.fromkeys(cells, "") | again | {f"mean score{INTERVAL}": interval_text(other)})
    return rows
