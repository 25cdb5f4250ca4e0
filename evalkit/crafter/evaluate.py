"""Scoring of events, files and folders: what users call."""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypedDict

from evalkit.crafter.collecting import EVERY, collected_frames, open_collected
from evalkit.crafter.format import Event, Trace
from evalkit.crafter.parse import SERIAL_BELOW, UNKNOWN, fit, open_trace, read_trace
from evalkit.crafter.scoring import (
    NO_SCORED_EVENTS,
    WEIGHTS,
    Counting,
    EventScore,
    check_rules,
    read_hooks,
    score_event,
    score_trace,
)
from evalkit.crafter.table import FLAGS
from evalkit.io import (
    BrokenFileError,
    Ledger,
    Source,
    StorageOptions,
    list_files,
    parse_files,
    read_file,
    storage,
)
from evalkit.io.dataset import Dataset
from evalkit.io.frames import as_named
from evalkit.io.ledger import Entry

Group = Literal["model_name", "difficulty"]


class TraceScore(TypedDict, total=False):
    """Result of one trace; `total_score` is None and `error` is there where the file can't be read."""

    total_score: float | None
    counts: dict[str, int]
    trajectory: str
    num_events: int
    trace_file: str
    source: str
    session_id: str | None
    task_id: str | None
    model_name: str
    difficulty: str
    score_by_achievement: float
    score_by_hook: float
    suspect_invalid_actions: int
    flags: list[str]
    weights: dict[str, float]
    counting: Counting
    error: str


class TraceScores(list[TraceScore]):
    """Results of a folder, sorted by score from high to low; `ledger` names every file that was seen."""

    def __init__(self, results: Iterable[TraceScore], ledger: Ledger) -> None:
        super().__init__(sorted(results, key=lambda result: -result["total_score"]))
        self.ledger = ledger


def evaluate_event(
    event: Mapping[str, Any] | Event, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> EventScore:
    """Score one event by its hooks.

    Parameters
    ----------
    event : mapping
        An event as it stands in ``event_history``.
    weights : mapping
        Points per hook; names left out keep those of `WEIGHTS`.
    counting : {"achievement", "hook"}
        Count every achievement a hook names (a hook without names counts once), or every hook once, as the original
        trace_eval does: with its running sum, and the sign of the last scored hook as the symbol.

    Returns
    -------
    EventScore
        (score, symbol). The symbol is empty where the event has no scored hook; by hook also where the score is 0.

    Raises
    ------
    ValueError
        For a weight or a counting that is not known.
    """
    weights = check_rules(weights, counting)
    if not isinstance(event, Event):
        event = fit(event, Event)
    return score_event(read_hooks(event), weights, counting)


def evaluate_trace(
    path: str | os.PathLike, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> TraceScore:
    """Score one session trace. Never raises for what stands in the file.

    Parameters
    ----------
    path : str or path
    weights, counting
        As for `evaluate_event`.

    Returns
    -------
    TraceScore
        total_score (Σ count × weight; 0.0 for an aborted trace), counts (those that are not zero), trajectory (a symbol
        per event with a scored hook, or ``(no scored events)``), num_events (all of them), trace_file (the file's
        name); beside these source (its path), session_id, task_id, model_name, difficulty, score_by_achievement and
        score_by_hook (the score by either counting), suspect_invalid_actions, flags, weights and counting. With
        `total_score` None and `error` for a file that can't be read.
    """
    weights = check_rules(weights, counting)
    try:
        trace, notes = read_trace(read_file(path))
    except OSError as error:
        return _broken(path, f"{type(error).__name__}: {error.strerror or error}", weights)
    except BrokenFileError as error:
        return _broken(path, str(error), weights)
    return _result(path, trace, notes, weights, counting)


def evaluate_all_traces(
    trace_dir: Source,
    pattern: str = EVERY,
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> TraceScores:
    """Score the traces of a folder, also those of folders below.

    Memory does not grow with the number of traces, beside their results of about 1 kB each.

    Parameters
    ----------
    trace_dir : str, path, or several of them
        A folder, or one file; ``samples:crafter`` for the samples. Also globs and URLs: see `evalkit.io.list_source`.
        A dataset of `collect` stands for the folder that it was collected from.
    pattern : str
        Glob for file names.
    weights, counting
        As for `evaluate_event`.
    recursive : bool
        False: only the folder's own files, as the original trace_eval reads it.
    jobs : int, optional
        Processes to read with; see `evalkit.io.parse_files`.
    storage_options : mapping, optional
        For the file systems behind URLs, as fsspec takes them.

    Returns
    -------
    TraceScores
        A list sorted by total_score, from high to low; files that can't be read, and files that are no traces, are in
        its `ledger` only. Empty where no file is a trace: `load` and the command raise there.

    Raises
    ------
    evalkit.io.SourceError
        Where `trace_dir` is not there or can't be listed, or is a dataset that was collected with other rules or is
        not to be read with the folders below.
    """
    rules = {"weights": check_rules(weights, counting), "counting": counting}
    score = partial(score_file, **rules)
    ledger, results = Ledger(), []
    with storage(storage_options):
        if dataset := open_collected(trace_dir):
            return _collected_scores(dataset, pattern, rules, recursive)
        files = list_files(trace_dir, pattern, recursive=recursive)
        for entry, result in parse_files(files, score, jobs, SERIAL_BELOW):
            ledger.entries.append(entry)
            results += [result] if result is not None else []
    return TraceScores(results, ledger)


def score_file(
    path: str, data: bytes | OSError, weights: dict[str, float], counting: Counting
) -> tuple[Entry, TraceScore | None]:
    """Read and score one file: its entry for the ledger and, where it is a trace, the result."""
    entry, read = open_trace(path, data)
    return entry, None if read is None else _result(path, *read, weights, counting)


def _collected_scores(dataset: Dataset, pattern: str, rules: dict[str, Any], recursive: bool) -> TraceScores:
    frames = collected_frames(dataset, pattern, rules, recursive)
    entries = [Entry(*entry) for entry in frames["ledger"].itertuples(index=False)]
    ledger = Ledger()
    ledger.entries += [entry._replace(source=as_named(entry.source)) for entry in entries]
    notes = {entry.source: entry.reason.split(", ") if entry.reason else [] for entry in entries}
    return TraceScores((_score_of(row, notes, rules) for row in frames["episodes"].to_dict("records")), ledger)


def _score_of(episode: dict[str, Any], notes: dict[str, list[str]], rules: dict[str, Any]) -> TraceScore:
    aborted = episode["flag_aborted"]
    recovered = notes[episode["source"]]
    counts = {} if aborted else {name: int(n) for name in WEIGHTS if (n := episode[f"{name}s"])}
    source = as_named(episode["source"])
    return TraceScore(
        total_score=0.0 if aborted else episode["score"],
        counts=counts,
        trajectory=NO_SCORED_EVENTS if aborted else episode["trajectory"],
        num_events=episode["events"],
        trace_file=os.path.basename(source),
        source=source,
        session_id=_text(episode["session_id"]),
        task_id=_text(episode["task_id"]),
        model_name=episode["model_name"],
        difficulty=episode["difficulty"],
        score_by_achievement=0.0 if aborted else episode["score_by_achievement"],
        score_by_hook=0.0 if aborted else episode["score_by_hook"],
        suspect_invalid_actions=0 if aborted else int(episode["suspect_invalid_actions"]),
        flags=[name for name in FLAGS if episode[f"flag_{name}"] and name not in recovered] + recovered,
        weights=rules["weights"],
        counting=rules["counting"],
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None  # a missing one is NaN in a frame


def _result(
    path: str | os.PathLike, trace: Trace, notes: list[str], weights: dict[str, float], counting: Counting
) -> TraceScore:
    scored = score_trace(trace, weights, counting)
    return TraceScore(
        total_score=scored.score,
        counts=scored.counts,
        trajectory=scored.trajectory,
        num_events=len(scored.verdicts),
        trace_file=os.path.basename(path),
        source=os.fspath(path),
        session_id=scored.session.session_id,
        task_id=scored.session.task_id,
        model_name=scored.session.model_name,
        difficulty=scored.session.difficulty,
        score_by_achievement=scored.by_counting["achievement"],
        score_by_hook=scored.by_counting["hook"],
        suspect_invalid_actions=scored.suspect,
        flags=scored.flags + notes,
        weights=weights,
        counting=counting,
    )


def _broken(path: str | os.PathLike, error: str, weights: dict[str, float]) -> TraceScore:
    return TraceScore(
        total_score=None,
        counts={},
        trajectory=NO_SCORED_EVENTS,
        num_events=0,
        trace_file=os.path.basename(path),
        source=os.fspath(path),
        model_name=UNKNOWN,
        difficulty=UNKNOWN,
        suspect_invalid_actions=0,
        flags=[],
        weights=weights,
        error=error,
    )
