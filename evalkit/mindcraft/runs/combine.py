"""Combine the logs of runs into one score, one status and flags for each run, as arrays over all runs."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evalkit.mindcraft.format import CompletionStatus, Scale
from evalkit.mindcraft.runs.arrays import COUNTS, STATUSES, Array, LogArrays, Segments
from evalkit.mindcraft.runs.layout import NO_LOGS, Repetition, TaskFolder, split_repetitions
from evalkit.mindcraft.runs.models import Named
from evalkit.mindcraft.table import FLAGS
from evalkit.mindcraft.tasks.definitions import Definition
from evalkit.mindcraft.tasks.facts import Facts

LEFT_OVER = 300  # seconds: agents of one run do not start so far apart
_WORDS = re.compile(r"\d+|[^\W\d_]+")


class TaskRuns(NamedTuple):
    """The runs of one task in one folder, with everything known about them but their scores."""

    folder: TaskFolder
    definition: Definition | None
    facts: Facts
    named: Named | None = None  # None: a folder alone does not show it
    ambiguous: bool = False


class Run(NamedTuple):
    """One run: its position in the list of `TaskRuns`, and the positions of its logs in the list of all logs."""

    task: int
    repetition: Repetition
    logs: Sequence[int]


class CombinedRuns(NamedTuple):
    """The combined logs of each run, one value per run."""

    of_task: Array  # positions in the list of `TaskRuns`
    repetitions: list[Repetition]
    logs: Array  # positions in the list of logs, sorted by run
    run_of_log: Array  # the run of each of `logs`
    raw_score: Array  # the highest of its logs
    score: Array  # the same from 0 to 1
    scale: Array
    status: Array  # position in `STATUSES`
    message: Array  # the log (position in the list of logs) whose final message decided; -1 for none
    flags: dict[str, Array]  # those of `FLAGS` that any run has
    stale: Array  # for each of `logs`, whether it is a copy of another run's log
    copy_of: Array  # the run whose log it holds; -1 for none
    counts: dict[str, Array]
    started: Array  # epoch milliseconds
    duration: Array  # seconds

    @property
    def agents(self) -> list[str]:
        """The agent of each of `logs`."""
        return [agent for repetition in self.repetitions for agent in repetition.agents]


def runs_of(tasks: Sequence[TaskRuns], sources: Sequence[str], starts: Array) -> list[Run]:
    """Return the runs of tasks; each repetition is a run of its own."""
    runs = []
    for i, task in enumerate(tasks):
        logs = task.folder.logs
        paths = [sources[place] for place in logs]
        begun = starts[list(logs)].tolist() if len(logs) > 1 else ()
        for repetition in split_repetitions(paths, task.facts["agent_count"], task.folder.prefix, begun) or NO_LOGS:
            run_logs = logs if len(repetition.logs) == len(logs) else [logs[place] for place in repetition.logs]
            runs.append(Run(i, repetition, run_logs))
    return runs


def combine(tasks: Sequence[TaskRuns], runs: Sequence[Run], logs: LogArrays, scale: Scale) -> CombinedRuns:
    """Combine the logs of each run; `scale` ``auto`` is percent as soon as one construction score exceeds 1."""
    repetitions = [run.repetition for run in runs]
    task_of = np.array([run.task for run in runs], int)
    order = np.fromiter((place for run in runs for place in run.logs), int)
    sizes = np.array([len(run.logs) for run in runs], int)
    segments, run_of_log = Segments(sizes), np.repeat(np.arange(len(sizes)), sizes)
    raw_scores, start = logs.raw_score[order], logs.start[order]
    raw = segments.reduce(np.fmax, raw_scores, np.nan)
    types = np.array([task.facts["task_type"] for task in tasks], object)[task_of]
    if scale == "auto" and (raw_scores[(types == "construction")[run_of_log]] > 1).any():
        scale = "percent"
    score, used, flags = _normalise(raw, types, scale)
    flags |= _flags_of_tasks(tasks, task_of, repetitions)
    original = _originals(segments, logs, order, run_of_log, runs, tasks)
    stale = original >= 0
    timed_out = segments.any(logs.timed_out[order])
    flags |= _flags_of_logs(segments, logs, order, stale, timed_out)
    processed = logs.processed[order]
    flags["unreadable_logs"] = segments.any(~processed)
    status = _statuses(raw, score, timed_out, broken=(sizes > 0) & ~segments.any(processed))
    duration = segments.reduce(np.fmax, _durations(logs.modified[order], start, stale), np.nan)
    timeout = np.array([task.facts["timeout"] for task in tasks], float)[task_of]
    inferred = (duration >= timeout) & (score != 1) & ~timed_out
    status[inferred] = STATUSES.index(CompletionStatus.TIMED_OUT)
    flags["inferred_timeout"] = inferred
    deciding = _deciding(segments, logs.has_message[order], logs.status[order] == status[run_of_log])
    return CombinedRuns(
        task_of,
        repetitions,
        order,
        run_of_log,
        raw,
        score,
        used,
        status,
        np.where(deciding < 0, -1, order[deciding]) if len(order) else deciding,
        {name: flags[name] for name in FLAGS if name in flags and flags[name].any()},
        stale,
        segments.reduce(np.fmax, original, -1),
        {name: segments.reduce(np.add, logs.counts[name][order], 0) for name in COUNTS},
        segments.reduce(np.fmin, np.where(stale, np.nan, start), np.nan),
        duration,
    )


def _durations(modified: Array, start: Array, stale: Array) -> Array:
    """Return the seconds from each log's start to its last change; NaN for copies and for impossible times."""
    late = (modified - start / 1000).astype(float)
    late[stale | ~(late >= 0)] = np.nan  # a file older than its start is not an original
    return late


def _deciding(segments: Segments, speaks: Array, agrees: Array) -> Array:
    """Return the position of the log whose final message decides: the first that agrees with the run's status."""
    deciding = segments.first(speaks & agrees)
    return np.where(deciding < 0, segments.first(speaks), deciding)


def _normalise(raw: Array, types: Array, scale: Scale) -> tuple[Array, Array, dict[str, Array]]:
    """Scale raw scores to 0..1, NaN if missing or out of range; return them with the scale used and flags."""
    building, unknown = types == "construction", types == "unknown"
    as_percent = (building & (scale == "percent")) | (unknown & (raw > 1))  # of unknown types, above 1: a percentage
    score = np.where(as_percent, raw / 100, raw)
    outside = ~np.isnan(raw) & ~((score >= 0) & (score <= 1))
    used = np.select([building, unknown], ["percent" if scale == "percent" else "fraction", "unknown"], "binary")
    assumed = building & (scale == "auto") & (raw != 0) & ~np.isnan(raw)
    return np.where(outside, np.nan, score), used, {"score_out_of_range": outside, "scale_assumed": assumed}


def _statuses(raw: Array, score: Array, timed_out: Array, broken: Array) -> Array:
    """Return how runs ended: a time-out before a score before none."""
    rules = {
        CompletionStatus.TIMED_OUT: timed_out,
        CompletionStatus.LOG_FILE_ERROR: broken,
        CompletionStatus.NO_SCORE_LOGGED: np.isnan(raw),
        CompletionStatus.SUCCESS: score == 1,
        CompletionStatus.FAILED_PARTIAL_SCORE: raw > 0,
    }
    codes = [STATUSES.index(status) for status in rules]
    return np.select(list(rules.values()), codes, STATUSES.index(CompletionStatus.FAILED_SCORE_ZERO))


def _flags_of_tasks(tasks: Sequence[TaskRuns], task_of: Array, repetitions: Sequence[Repetition]) -> dict[str, Array]:
    """Return what the definitions, paths and numbers of agents of runs flag."""
    from_id = [task.facts["facts_source"] == "id" and task.facts["task_type"] != "unknown" for task in tasks]
    flags = {
        "ambiguous_definition": [task.ambiguous for task in tasks],
        "facts_from_id": from_id,
        "layout_mismatch": [task.named is not None and not task.named.fits_layout for task in tasks],
    }
    expected = np.array([task.facts["agent_count"] or np.nan for task in tasks], float)[task_of]
    logged = np.array([repetition.n_agents for repetition in repetitions], int)
    numbers = {"missing_agent_logs": logged < expected, "extra_agent_logs": logged > expected}
    return {name: np.array(values, bool)[task_of] for name, values in flags.items()} | numbers


def _flags_of_logs(
    segments: Segments, logs: LogArrays, order: Array, stale: Array, timed_out: Array
) -> dict[str, Array]:
    """Return the flags of each run's logs, and where logs contradict each other."""
    flags = {name: segments.any(values[order]) for name, values in logs.flags.items() if name != "score_out_of_range"}
    raw = logs.raw_score[order]
    differ = segments.reduce(np.fmax, raw, np.nan) > segments.reduce(np.fmin, raw, np.nan)
    conflicting = differ | (segments.any(~np.isnan(raw) & (raw != 0)) & timed_out)
    flags["conflicting"] = flags.get("conflicting", False) | conflicting
    if "quoted_only" in flags:
        flags["quoted_only"] &= ~segments.any(logs.has_message[order])
    flags["stale_copy"] = segments.any(stale)
    return flags


def _originals(
    segments: Segments, logs: LogArrays, order: Array, run_of_log: Array, runs: Sequence[Run], tasks: Sequence[TaskRuns]
) -> Array:
    """Find logs that are copies: equal content, or an equal start of the agent of that name; return the original's run.

    -1 for a log that is no copy. Of the runs that share a log, the one that came later holds the copy: one whose other
    agents started more than `LEFT_OVER` later, as the log is left over from before; else the one whose file is younger,
    if the files' times are those of the experiment; else the later one by the names of model and folders: that of a
    copy has more words.
    """
    original = np.full(len(order), -1)
    start, digest, modified = logs.start[order], logs.digest[order], logs.modified[order]
    places: dict[str, int] = {}
    agent = np.array([places.setdefault(name, len(places)) for run in runs for name in run.repetition.agents], int)
    begun = np.unique(start, return_inverse=True)[1] * len(places) + agent
    known = np.where(start > 0, start, np.nan)
    spread = np.nan_to_num(segments.reduce(np.fmax, known, 0.0) - segments.reduce(np.fmin, known, 0.0))
    spread[spread <= LEFT_OVER * 1000] = 0
    for mark in (digest, np.where(start > 0, begun, -1)):
        shared = np.flatnonzero(_occurs_twice(mark) & (mark >= 0))
        holders, of = np.unique(mark[shared] * len(runs) + run_of_log[shared], return_inverse=True)
        marks, holding = np.divmod(holders, len(runs))  # of each run that holds a mark
        oldest = np.full(len(holders), np.inf)
        np.fmin.at(oldest, of, modified[shared])
        by_name = sorted(set(holding.tolist()), key=lambda run: (*_name_order(tasks[runs[run].task]), run))
        place = np.zeros(len(runs), int)
        place[by_name] = np.arange(len(by_name))
        ranked = np.lexsort((place[holding], np.where(np.isinf(oldest), 0.0, oldest), spread[holding], marks))
        owner_of_mark = holding[ranked[np.unique(marks[ranked], return_index=True)[1]]]
        owner = owner_of_mark[np.unique(marks, return_inverse=True)[1]][of]
        is_copy = owner != run_of_log[shared]
        original[shared[is_copy]] = owner[is_copy]
    return original


def _name_order(task: TaskRuns) -> list[list[tuple[int, list[tuple[int, int, str]]]]]:
    """Return what orders runs by the names of model and folders: how many words, then these; numbers by their value."""
    names = [[task.named.model_name if task.named else ""], [*task.folder.path.split("/"), task.folder.task_id]]
    words = [[[_word(word) for word in _WORDS.findall(name)] for name in part] for part in names]
    return [[(len(of_name), of_name) for of_name in part] for part in words]


def _word(word: str) -> tuple[int, int, str]:
    return (0, int(word), "") if word.isdecimal() and len(word) < 20 else (1, 0, word)


def _occurs_twice(values: Array) -> Array:
    """Return which values occur more than once."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts > 1)[inverse]
