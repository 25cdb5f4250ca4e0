"""The functions of the script trace_eval, under their names; a result is a row of the frame of episodes."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit.crafter import scoring
from evalkit.crafter.format import UNKNOWN, WEIGHTS, Event, fit
from evalkit.crafter.kind import KIND, PATTERN
from evalkit.crafter.parse import parse_file, read_hooks
from evalkit.crafter.scoring import NO_SCORED_EVENTS, Columns, Counting, EventScore, check_rules, score_traces
from evalkit.crafter.table import EPISODES, FLAGS, RECORDS
from evalkit.crafter.terminal import (
    ABOUT,
    POINTS,
    Group,
    TraceScore,
    group_rows,
    parts,
    results_of,
    trace_text,
)
from evalkit.io import (
    Ledger,
    Source,
    StorageOptions,
    frame,
    plain,
    read_file,
    refuse_credentials,
    storage,
)
from evalkit.io.frames import cut_texts
from evalkit.io.sources import source_names
from evalkit.io.store import SOURCE, read_manifest
from evalkit.io.text import cut_line
from evalkit.kinds import Parsed, entries_of, parse_source, read_records
from evalkit.kinds.terminal import file_lines, on_screen, table_lines


class TraceScores(list[TraceScore]):
    """Results of a folder in descending order of score; `ledger` names every file that was seen."""

    def __init__(self, results: Iterable[TraceScore], ledger: Ledger) -> None:
        super().__init__(results)
        self.ledger = ledger


def evaluate_event(
    event: Mapping[str, Any] | Event, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> EventScore:
    """Score one event of ``event_history`` by its hooks: (score, symbol).

    Parameters
    ----------
    weights : mapping
        Points per hook; missing names have those of `WEIGHTS`. ValueError for others.
    counting : {"achievement", "hook"}
        Count every achievement a hook names (a hook without names counts once), or every hook once, as the original
        trace_eval does: with its running sum, and the sign of the last scored hook as the symbol.

    Returns
    -------
    EventScore
        The symbol is empty if the event has no scored hook, and by hook also if the score is 0.
    """
    weights = check_rules(weights, counting)
    read = event if isinstance(event, Event) else fit(event, Event)
    return scoring.score_event(read_hooks(read).hooks, weights, counting)


def evaluate_trace(
    path: str | os.PathLike, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> TraceScore:
    """Score one session trace. Never raises for the contents of the file.

    Weights and counting are those of `evaluate_event`.

    Returns
    -------
    dict
        total_score (Σ count × weight; 0.0 for an aborted trace), counts (the nonzero ones), trajectory (a symbol
        per event with a scored hook, or ``(no scored events)``), num_events (all of them), trace_file (the file's
        name); also source (its path), session_id, task_id, task_source, max_turns, model_name, difficulty,
        score_by_achievement and score_by_hook (the score by either counting), suspect_invalid_actions, flags, weights
        and counting. With `total_score` None and `error` for a file that can't be read.
    """
    weights, place = check_rules(weights, counting), os.fspath(path)
    refuse_credentials(place)
    try:
        data: bytes | OSError = read_file(path)
    except OSError as error:
        data = error
    parsed = parse_file(place, data)
    if parsed.status == "used":
        return _results(_columns([(place, parsed)]), weights, counting)[0]
    return {
        "total_score": None,
        "counts": {},
        "trajectory": NO_SCORED_EVENTS,
        "num_events": 0,
        "trace_file": os.path.basename(place),
        "source": place,
        "model_name": UNKNOWN,
        "difficulty": UNKNOWN,
        "suspect_invalid_actions": 0,
        "flags": [],
        "weights": weights,
        "error": parsed.reason,
    }


def evaluate_all_traces(
    trace_dir: Source,
    pattern: str = PATTERN,
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> TraceScores:
    """Score the traces of a folder, including those in folders below; parameters as of `load`.

    Returns
    -------
    TraceScores
        A list in descending order of total_score; unreadable files, and files that are not traces, are only in its
        `ledger`. Empty if no file is a trace: `load` and the command raise then.
    """
    weights, ledger = check_rules(weights, counting), Ledger()
    with storage(storage_options):
        if any(map(read_manifest, source_names(trace_dir))):
            records = read_records(KIND, trace_dir, pattern=pattern, recursive=recursive)
            columns = {table: records.tables[table].to_pydict() for table in RECORDS}
            ledger.entries += entries_of(records)
        else:
            files = parse_source(KIND, trace_dir, pattern=pattern, recursive=recursive, jobs=jobs)
            columns = _columns(files)
            for path, parsed in files:
                ledger.add(path, parsed.status, cut_line(parsed.reason))
    return TraceScores(_results(columns, weights, counting), ledger)


def _columns(files: Iterable[tuple[str, Parsed]]) -> dict[str, dict[str, Any]]:
    """Return the records of parsed files as lists of values by column."""
    used = [(path, parsed.rows) for path, parsed in files if parsed.status == "used"]
    columns: dict[str, dict[str, Any]] = {}
    for table, named in RECORDS.items():
        rows = [(path, *row) for path, tables in used for row in tables[table]]
        values = zip((SOURCE, *named), zip(*rows, strict=True) if rows else [()] * (len(named) + 1), strict=True)
        columns[table] = {column.name: cut_texts(many, column.dtype) for column, many in values}
    return columns


def _results(records: Mapping[str, Columns], weights: Mapping[str, float], counting: Counting) -> list[TraceScore]:
    """Score records of traces, and return a result of each in descending order of score."""
    scored = score_traces(records["episodes"], records["events"], weights, counting)
    return results_of({**records["episodes"], **scored.episodes}, {"weights": weights, "counting": counting})


def print_trace_evaluation(result: TraceScore) -> None:
    """Print a result of `evaluate_trace`: score, events, breakdown, trajectory, and notes about anything doubtful.

    Only its first five keys are required.
    """
    print(trace_text(result))


def print_evaluation_summary(results: Sequence[TraceScore], by: Sequence[Group] = ()) -> None:
    """Print a folder: mean score, spread and points, then the best three, the ranking, and unused files.

    Aborted traces are left out of all means; the mean with them at 0 is shown, too. The results are those of
    `evaluate_all_traces`; `by` are the columns (model_name, difficulty) by which to break down the scores, too.
    """
    scored = [result for result in results if result["total_score"] is not None]
    if scored:
        weights, *others = [result.get("weights", WEIGHTS) for result in scored]
        same = weights if all(other == weights for other in others) else None
        shown = parts(_episodes_of(scored), by, same, scored[0].get("counting", "achievement"), everything=True)
        print(on_screen(shown, everything=True))
    else:
        print("no traces")
    for result in results:
        if result["total_score"] is None:
            print(f"   not read: {plain(result['trace_file'])}: {plain(result['error'])}")
    if (ledger := getattr(results, "ledger", None)) is not None:
        print("", *file_lines(ledger.frame(), len(scored), "trace", everything=True), sep="\n")


def print_breakdown(results: Iterable[TraceScore], by: Group) -> None:
    """Print one line per model or per difficulty: n, mean score with its interval, mean counts per trace.

    Aborted traces are left out; if there are any, a second line counts them as 0.
    """
    print("\n".join(table_lines(group_rows(_episodes_of(results), by))))


def _episodes_of(results: Iterable[TraceScore]) -> pd.DataFrame:
    """Return results, which the user may have chosen or made, as the frame of episodes that the summary describes.

    Those of unreadable files (`total_score` None) are left out. The first five keys are enough.
    """
    rows, names = [], Counter[str]()
    for result in results:
        score = result["total_score"]
        if score is None:
            continue
        name = result.get("source") or result["trace_file"]
        names[name] += 1
        flags = {*result.get("flags", ()), *(["aborted"] if not result["num_events"] else [])}
        row: dict[str, Any] = {key: result.get(key) for key in ABOUT}
        row |= {key: result.get(key) or UNKNOWN for key in ("model_name", "difficulty")}
        row |= {"source": name if names[name] == 1 else f"{name} ({names[name]})", "events": result["num_events"]}
        row |= {f"flag_{flag}": flag in flags for flag in FLAGS}
        if "aborted" not in flags:
            row |= {key: result.get(key) for key in POINTS}
            row |= {"score": score, "band": scoring.band(score), "trajectory": result["trajectory"]}
            cost = (result.get("suspect_invalid_actions") or 0) * result.get("weights", WEIGHTS)["invalid_action"]
            row["score_without_suspects"] = round(score - cost, scoring.DIGITS)
            row |= {f"{hook}s": result["counts"].get(hook, 0) for hook in WEIGHTS}
        rows.append(row)
    return frame(rows, EPISODES)
