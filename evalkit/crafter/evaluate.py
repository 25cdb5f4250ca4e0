"""Provide the functions of the script trace_eval under their original names; a result is a row of episodes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalkit.crafter.assemble import (
    NO_SCORED_EVENTS,
    Counting,
    EventScore,
    Rules,
    check_rules,
    counted_hooks,
    score_event,
    score_traces,
)
from evalkit.crafter.format import WEIGHTS, Event, fit
from evalkit.crafter.kind import KIND
from evalkit.crafter.parse import columns_of, parse_file, read_hooks
from evalkit.crafter.table import EPISODES
from evalkit.crafter.terminal import TraceScore as TraceScore
from evalkit.crafter.terminal import parts, results_of, trace_text
from evalkit.display.terminal import file_lines, on_screen
from evalkit.io import Entry, Ledger, Source, StorageOptions, check_path, frame, paused_gc, plain, storage
from evalkit.io.read import read_file, reason_of
from evalkit.io.sources import source_names
from evalkit.io.store import read_manifest
from evalkit.kinds import Parsed, read_records
from evalkit.kinds.reading import list_logs, parse_logs


class TraceScores(list[TraceScore]):
    """Results of a folder in descending order of score; `ledger` lists every file in it."""

    def __init__(self, results: Iterable[TraceScore], ledger: Ledger) -> None:
        super().__init__(results)
        self.ledger = ledger


def evaluate_event(
    event: Mapping[str, Any] | Event, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> EventScore:
    """Score one event of ``event_history`` by its hooks.

    Counting by achievement counts every achievement that a hook names (a hook without names counts once); the symbol is
    the sign of the score. Counting by hook counts every hook once, and adds up points in the same order as the original
    trace_eval; the symbol is the sign of the last scored hook.

    Parameters
    ----------
    event : mapping or Event
        The event.
    weights : mapping of str to float
        Points per hook; missing names have the points of `WEIGHTS`.
    counting : {"achievement", "hook"}
        Whether to count every achievement that a hook names, or every hook once.

    Returns
    -------
    EventScore
        score (points) and symbol (empty without a scored hook).

    Raises
    ------
    ValueError
        If `weights` contains an unknown name.

    Examples
    --------
    >>> crafter.evaluate_event({"hooks": {}})[0]
    0.0
    """
    weights = check_rules(weights, counting)
    read = event if isinstance(event, Event) else fit(event, Event)
    return score_event(getattr(read_hooks(read), counted_hooks(counting)), weights, counting)


def evaluate_trace(
    path: str | os.PathLike, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> TraceScore:
    """Score one session trace. The contents of the file never cause an exception.

    Parameters
    ----------
    path : path
        The trace.
    weights : mapping of str to float
        Points per hook; missing names have the points of `WEIGHTS`.
    counting : {"achievement", "hook"}
        Whether to count every achievement that a hook names, or every hook once.

    Returns
    -------
    TraceScore
        A dictionary of total_score (Σ count × weight, in points; 0.0 for an aborted trace, None for an unreadable
        file), counts, trajectory (a symbol per event with a scored hook), num_events, trace_file, source, session_id,
        task_id, task_source, max_turns, model_name, difficulty, suspect_invalid_actions, flags, weights, counting. The
        result of an unreadable file contains only some of these, and error.

    Examples
    --------
    >>> crafter.evaluate_trace("missing.json")["total_score"]
    """
    weights, place = check_rules(weights, counting), os.fspath(path)
    check_path(place)
    try:
        parsed = parse_file(place, read_file(place))
    except OSError as error:
        parsed = Parsed("failed", reason_of(error))
    if parsed.status == "used":
        return _results(columns_of({place: parsed.rows}), weights, counting)[0]
    return {
        "total_score": None,
        "counts": {},
        "trajectory": NO_SCORED_EVENTS,
        "num_events": 0,
        "trace_file": os.path.basename(place),
        "source": place,
        "flags": [],
        "error": parsed.reason,
    }


@paused_gc()
def evaluate_all_traces(
    trace_dir: Source,
    pattern: str = "*.json",
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> TraceScores:
    """Score the traces of a folder and its subfolders.

    Parameters
    ----------
    trace_dir : str, path, or several of them
        Folder of traces, a trace, a glob or a URL.
    pattern : str
        Glob for the names of files in folders.
    weights : mapping of str to float
        Points per hook; missing names have the points of `WEIGHTS`.
    counting : {"achievement", "hook"}
        Whether to count every achievement that a hook names, or every hook once.
    recursive : bool
        Whether to read subfolders.
    jobs : int, optional
        Number of processes that read files; -1 for all cores.
    storage_options : mapping, optional
        Options for the file systems of URLs, which evalkit passes to fsspec.

    Returns
    -------
    list of dict
        Results of `evaluate_trace`, the highest total_score first, with copies flagged; ``ledger`` lists all files.

    Examples
    --------
    >>> crafter.evaluate_all_traces("samples:crafter")[0]["total_score"] > 0
    True
    """
    weights, named = check_rules(weights, counting), source_names(trace_dir)
    with storage(storage_options):
        if not named or any(map(read_manifest, named)):  # no source, or a dataset
            records = read_records(KIND, named, pattern=pattern, recursive=recursive)
            traces = {name: table.to_pydict() for name, table in records.tables.items()}
            entries = [Entry(**row) for row in records.files.select(Entry._fields).to_pylist()]
        else:
            listing = list_logs(KIND, named, pattern, recursive=recursive)
            chunks = parse_logs(KIND, listing.files, listing.states, {}, jobs)
            parsed = {path: contents for files, _ in chunks for path, _, contents in files}
            traces = columns_of({path: parsed[path].rows for path in listing.files})
            entries = [Entry(path, parsed[path].status, parsed[path].reason) for path in listing.files]
    return TraceScores(_results(traces, weights, counting), Ledger(entries))


def _results(traces: Mapping[str, Any], weights: dict[str, float], counting: Counting) -> list[TraceScore]:
    """Score the records of traces (lists by table and column) in the same way as `assemble`."""
    scores, _ = score_traces(traces["episodes"], traces["events"], weights, counting)
    return results_of({**traces["episodes"], **scores}, Rules(weights=weights, counting=counting))


def print_trace_evaluation(result: TraceScore) -> None:
    """Print the score, events, breakdown, trajectory and flags of a trace.

    Parameters
    ----------
    result : dict
        Result of `evaluate_trace`.

    Examples
    --------
    >>> crafter.print_trace_evaluation(crafter.evaluate_trace("trace.json"))  # doctest: +SKIP
    """
    print(trace_text(result))


def print_evaluation_summary(results: Sequence[TraceScore]) -> None:
    """Print the mean score with its interval, the ranking of traces, and unused files.

    Parameters
    ----------
    results : sequence of dict
        Results of `evaluate_all_traces`.

    Examples
    --------
    >>> crafter.print_evaluation_summary(crafter.evaluate_all_traces("samples:crafter"))  # doctest: +SKIP
    """
    rows = []  # rows of the frame of episodes, with the columns that the summary needs
    for result in results:
        flags, score = result["flags"], result["total_score"]
        if score is not None:
            row = {"score": None if "aborted" in flags else score, "events": result["num_events"]}
            rows.append({**result, **row, "kind": KIND.name, "run_flags": flags})
    print(on_screen(parts(frame(rows, EPISODES), everything=True), everything=True) if rows else "no traces")
    for result in results:
        if result["total_score"] is None:
            print(f"   not read: {plain(result['trace_file'])}: {plain(result['error'])}")
    if (ledger := getattr(results, "ledger", None)) is not None:
        print("", *file_lines(ledger.frame(), len(rows), "trace", everything=True), sep="\n")
