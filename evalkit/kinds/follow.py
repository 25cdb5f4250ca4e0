"""Follow a source that is still being written: each look lists it, and reads only the files that changed.

Files are written in place, so any look may meet a partial one. A file that can't be parsed and changed less than
`SETTLE` seconds ago counts as being written: its former contents are kept, and the next look reads it again. Only a
file that is still broken after that time has failed.

How long a file has been unchanged is counted from the look that saw it change, so that the clock of a file server does
not matter; for files present at the first look, from their own time.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from textwrap import wrap
from typing import Any, NamedTuple

import pandas as pd

from evalkit._words import counted_noun, interval_cells
from evalkit.io.columns import summarise
from evalkit.io.frames import escape_surrogates
from evalkit.io.paths import FileState, SourceError, StorageOptions, storage
from evalkit.io.screen import View, so_far
from evalkit.io.sources import MISSING, KnownFolders, Listing, Source, list_source, source_names, state_of
from evalkit.io.store import RecordStore, read_manifest
from evalkit.io.text import distinct_names, plain
from evalkit.kinds.kind import LogKind
from evalkit.kinds.pipeline import Changes, Logs, assemble, records_of, states_of, update
from evalkit.kinds.runs import outcome_of, outcomes
from evalkit.kinds.terminal import NAME_WIDTH, fit_table, overview_rows
from evalkit.stats.sequences import Bets

SETTLE = 10.0  # seconds after its last change in which a broken file counts as being written
MOST_FAILED = 3  # lines on files that could not be read
MOST_RATES = 4  # models whose rates are listed; for more, only how many pairs differ


@dataclass
class _Claim:
    """Bounds of a mean, from 0 to 1, that hold at every look."""

    bets: Bets
    used: list[float]
    low: float = math.nan
    high: float = math.nan
    ahead: int = 0  # of two models, whose difference of −1 to 1 stands as 0 to 1: 1, the first; -1, the second


class Counted:
    """The runs that count in claims made at every look: in the order of their start, up to the oldest still running.

    Where quick runs tend to succeed, those that have ended are no fair sample of those that have begun. So a run counts
    only once no older one is running, and what has been counted keeps its place, whatever turns up later. Of a model
    and a task the first measured run counts; of two models, tasks count in the order of their first run.

    Attributes
    ----------
    late : int
        Runs that were first seen after they had ended, though younger ones had been seen before: evidence that the
        files of a run appear only when it ends, so that its place in the order follows from its result.
    """

    def __init__(self) -> None:
        self.late = 0
        self._seen: set[str] = set()
        self._latest: Any = None
        self._tasks: dict[tuple[str, ...], dict[Any, None]] = {}
        self._claims: dict[tuple[tuple[str, ...], float], _Claim] = {}

    def see(self, runs: pd.DataFrame) -> None:
        """Take in the runs of a look: run_id, model_name, task, started, running, value (missing: not measured)."""
        new = ~runs["run_id"].isin(self._seen)
        if self._seen:
            self.late += int((new & ~runs["running"] & (runs["started"] < self._latest)).sum())
        self._seen.update(runs["run_id"])
        self._latest = runs["started"].max()
        hidden = runs["running"] & runs["started"].isna()  # a log that can't be read yet: any run may be younger
        runs = runs.assign(
            value=runs["value"].mask(runs["running"]), started=runs["started"].mask(hidden, runs["started"].min())
        ).sort_values("started", kind="stable")
        firsts = runs[runs["running"] | runs["value"].notna()].drop_duplicates(["model_name", "task"])
        columns = ["started", "value"]  # the value of a running run is missing
        self._first = {
            model: dict(zip(own["task"], own[columns].itertuples(index=False, name=None), strict=True))
            for model, own in firsts.groupby("model_name")
        }
        self._tried = {model: set(own) for model, own in runs.groupby("model_name")["task"]}
        self._active = set(runs.loc[runs["running"], "model_name"])

    def values(self, *models: str) -> list[list[float]]:
        """Return for each of the models its values on the tasks that count for all of them, in order."""
        firsts = [self._first.get(model, {}) for model in models]
        counted = self._tasks.setdefault(models, {})
        began: dict[Any, Any] = {}
        for first in firsts:
            for task, (started, _) in first.items():
                began[task] = min(started, began.get(task, started))
        waiting = [task for task in began if task not in counted]
        for task in sorted(
            waiting, key=lambda task: (began[task] != began[task], began[task])
        ):  # without a start: last
            runs = [first.get(task) for first in firsts]
            running = any(run and run[1] != run[1] for run in runs)
            lacking = [model for model, run in zip(models, runs, strict=True) if not run]
            if running or any(model in self._active and task not in self._tried[model] for model in lacking):
                break  # what is lacking may be about to begin
            if not lacking:
                counted[task] = None
        tasks = [task for task in counted if all(task in first for first in firsts)]
        return [[first[task][1] for task in tasks] for first in firsts]

    def claim(self, *models: str, confidence: float = 0.95) -> "_Claim":
        """Return the bounds of a model's mean, or which of two models is ahead; only values that are new are added."""
        first, *others = self.values(*models)
        shares = [(a - b + 1) / 2 for a, b in zip(first, others[0], strict=True)] if others else first
        shares = [share for share in shares if share == share]  # a log that counted may be written to again
        claim = self._claims.get((models, confidence))
        if claim is None or claim.used != shares[: len(claim.used)]:
            claim = self._claims[models, confidence] = _Claim(Bets(confidence), [])
        for share in shares[len(claim.used) :]:
            claim.low, claim.high = map(float, claim.bets.add(share))
            claim.used.append(share)
            claim.ahead = claim.ahead or (claim.low > 0.5) - (claim.high < 0.5)
        return claim


class Snapshot(NamedTuple):
    """A source at one look at it.

    Attributes
    ----------
    logs : Logs or None
        None if no file could be used yet.
    unchanged_for : function of path
        Returns the seconds for which a file, or a folder, has been unchanged.
    being_written : frozenset of str
        Files that count as being written.
    expected : int or None
        How many runs each model is to do, if the user stated it.
    idle : float or None
        Seconds after which an unchanged run counts as finished, if the user stated it.
    width : int or None
        Characters of a line; None: any.
    counted : Counted
        The runs that count in claims that hold at every look; the same object at each.
    """

    logs: Logs | None
    unchanged_for: Callable[[str], float]
    being_written: frozenset[str]
    expected: int | None
    idle: float | None
    width: int | None
    counted: Counted


class Following:
    """A source that is read repeatedly; parsed files are kept until they change.

    The source may not exist yet: then it is waited for. `options` are those of the kind and of its `progress`,
    `expected` and `idle` as in `Snapshot`, `clock` gives epoch seconds, the others as for `load`. `logs` and `changes`
    are those of the last look. SourceError for invalid options, and for a dataset, which holds no logs.
    """

    def __init__(
        self,
        kind: LogKind,
        source: Source,
        options: Mapping[str, Any],
        *,
        expected: int | None = None,
        idle: float | None = None,
        pattern: str = "",
        recursive: bool = True,
        jobs: int | None = None,
        storage_options: StorageOptions = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sources = source_names(source)
        with storage(storage_options):
            self._kind, self._options = kind, kind.prepare(options)
            if dataset := next(filter(read_manifest, self._sources), None):
                raise SourceError(f"{dataset}: a dataset can't be followed; name the folder that it is collected from")
        self._expected, self._idle = expected, idle
        self._pattern, self._recursive = pattern or kind.files.pattern, recursive
        self._jobs, self._storage, self._clock = jobs, storage_options, clock
        self._store = RecordStore("", kind.records)
        self._listed: set[str] = set()
        self._since: dict[str, tuple[FileState, float]] = {}
        self._listing = Listing("", [], {}, {})
        self._looks, self._now = 0, 0.0
        self._notes: list[str] = []
        self._counted = Counted()
        self._said: tuple[tuple[Any, ...], tuple[str, bool]] | None = None
        self.logs: Logs | None = None
        self.changes = Changes(0, 0, 0, 0)

    def look(self, width: int | None = None) -> View:
        """Look at the source once; the view keeps to a width, in characters, as far as possible.

        Its `status` says what was read; it is `done` once all expected runs are present and none is running.
        """
        self._now = self._clock()
        with storage(self._storage):
            self._update()
            known = (self.logs, self.changes.being_written, width)
            if self._said is None or self._said[0] != known:  # else nothing has changed, and no time was asked for
                asked: list[str] = []

                def unchanged_for(path: str) -> float:
                    asked.append(path)
                    return self._unchanged_for(path)

                snapshot = Snapshot(
                    self.logs,
                    unchanged_for,
                    self.changes.being_written,
                    self._expected,
                    self._idle,
                    width,
                    self._counted,
                )
                tell = self._kind.command.progress or progress_of_runs
                said = tell(snapshot, self._options) if self.logs else (f"no {self._kind.title} yet", False)
                self._said = None if asked else (known, said)
            else:
                said = self._said[1]
            text, done = said
        read = self.changes.new + self.changes.changed
        status = f"{read} of {read + self.changes.unchanged} files new"
        status += f", {len(self.changes.being_written)} being written" * bool(self.changes.being_written)
        lines = [*self._notes, *[""] * bool(self._notes), text, *self._file_lines()]
        return View("\n".join(lines), status, done and not self._notes)

    def _update(self) -> None:
        """Update the records, and build the frames of usable files."""
        try:
            listing, waiting = self._list()
        except SourceError as error:
            self._notes = [f"could not look, so this may be old: {plain(error)}"]
            self.changes = self.changes._replace(new=0, changed=0)
            return
        states = states_of(self._kind, listing)
        for path, state in states.items():
            self._note(path, state)
        here = set(listing.files)
        reading: Any = {"jobs": self._jobs, "changed_recently": self._changed_recently}
        self.changes = update(self._store, self._kind, listing, states=states, **reading)
        self._since = {path: since for path, since in self._since.items() if path in here or path in listing.folders}
        if any(self.changes[:3]) or listing.folders.keys() != self._listing.folders.keys():
            records = records_of(self._store, self._kind, listing)
            begun = len(next(iter(records.tables.values()))) > 0  # including logs that are being written
            self.logs = assemble(self._kind, records, self._options, listing.root, self._storage) if begun else None
        self._listing, self._notes = listing, [f"waiting for {plain(reason)}" for reason in waiting]
        self._looks += 1

    def _list(self) -> tuple[Listing, list[str]]:
        """List the sources; those seen before must exist, others are waited for."""
        pattern, recursive = self._pattern, self._recursive
        try:
            known = KnownFolders(self._listing.folders, self._listing.files)
            listing = list_source(self._sources, pattern, recursive=recursive, known=known)
            self._listed = set(self._sources)
            return listing, []
        except SourceError:
            here, waiting = [], []
            for source in self._sources:
                try:
                    list_source(source, pattern, recursive=recursive)
                    here.append(source)
                except SourceError as error:
                    if source in self._listed:
                        raise
                    waiting.append(str(error))
            self._listed = set(here)
            return list_source(here, pattern, recursive=recursive) if here else self._listing, waiting

    def _note(self, path: str, state: FileState) -> None:
        """Note the state of a file or folder, and since when it has it."""
        if (known := self._since.get(path)) and known[0] == state:
            return
        modified = state.modified / 1e9
        there_before = self._looks == 0 and 0 < modified <= self._now
        self._since[path] = (state, modified if there_before else self._now)

    def _changed_recently(self, path: str) -> bool:
        return self._unchanged_for(path) < SETTLE

    def _unchanged_for(self, path: str) -> float:
        if path not in self._since:
            self._note(path, state_of(path) or MISSING)
        return self._now - self._since[path][1]

    def _file_lines(self) -> list[str]:
        """Describe how many files there are, and which failed."""
        table = self._store.table("files")
        columns = (table[name].to_pylist() for name in ("source", "status", "reason", "context"))
        being_written = set(map(escape_surrogates, self.changes.being_written))
        rows = [row[:3] for row in zip(*columns, strict=True) if not row[3] and row[0] not in being_written]
        if not rows:
            return []
        root = self._listing.root.rstrip("/") + "/"
        failed = [(source.removeprefix(root), reason) for source, status, reason in rows if status == "failed"]
        lines = ["", summarise(status for _, status, _ in rows)]
        lines += [f"  failed: {plain(name)}: {plain(reason)}" for name, reason in failed[:MOST_FAILED]]
        more = f"  … {len(failed) - MOST_FAILED} more; evalkit.load(…).ledger lists them all"
        return lines + [more] * (len(failed) > MOST_FAILED)


def progress_of_runs(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the overview with the numbers of runs and those expected; a run is done once it can be read."""
    logs = snapshot.logs
    if logs is None:
        raise ValueError("nothing can be said of a source in which no run has begun")
    rows = overview_rows(logs.runs, logs.kind)
    counts = [int(row.pop("n")) for row in rows]
    shown = [
        {"model": row.pop("model"), "runs": so_far(n, snapshot.expected), **row}
        for row, n in zip(rows, counts, strict=True)
    ]
    done = snapshot.expected is not None and not snapshot.being_written and min(counts) >= snapshot.expected
    tells = "running" in logs.kind.rates.outcome_of.values()
    running = outcome_of(logs.runs, logs.kind).eq("running") if tells else None
    return "\n".join([fit_table(shown, width=snapshot.width), *any_look_lines(snapshot, logs, running)]), done


def any_look_lines(snapshot: Snapshot, logs: Logs, running: pd.Series | None) -> list[str]:
    """Describe what is valid however often one looks: rates with confidence sequences, and which models are ahead.

    Intervals of a fixed number of runs miss the truth more often if one looks repeatedly, and stops at will. Which runs
    count, and in which order, says `Counted`; differences are corrected for the number of pairs (Bonferroni).
    `running` says which runs are still running; where it is None they don't tell, and nothing is claimed. Empty if
    values are not shares.
    """
    runs, kind = logs.runs, logs.kind
    rated = outcomes(runs, kind=kind) if len(runs) else None
    if rated is None or not rated.is_share:
        return []
    models = list(dict.fromkeys(rated.table["model_name"].sort_values()))
    if running is None:
        reason = f"the logs do not say which runs are still running ({kind.title})"
    elif runs["started"].isna().all():
        reason = f"the logs do not say when runs began ({kind.title})"
    else:
        tasks = rated.table["task"].astype("str") + "\n" + rated.table["condition"]
        snapshot.counted.see(rated.table.assign(task=tasks, started=runs["started"], running=running))
        late = counted_noun(snapshot.counted.late, "run")
        reason = f"{late} had ended when first seen, after younger ones" if snapshot.counted.late else ""
    if reason:
        text = f"Which model is ahead can't be said before all runs have ended: {reason}."
        return wrap(text, snapshot.width or len(text)) if len(models) > 1 else []
    names, ahead, pairs = distinct_names(models, NAME_WIDTH), [], list(combinations(models, 2))
    for a, b in pairs:
        if sign := snapshot.counted.claim(a, b, confidence=1 - 0.05 / len(pairs)).ahead:
            first, second = (a, b) if sign > 0 else (b, a)
            ahead.append(f"{names[first]} is ahead of {names[second]}")
    if len(models) > MOST_RATES:
        return [f"{len(ahead)} of {len(pairs)} pairs of models differ, however often one looks"]
    rates = [(name, snapshot.counted.claim(name)) for name in models]
    rows = [(name, {"estimate": sum(rate.used) / len(rate.used), **vars(rate)}) for name, rate in rates if rate.used]
    texts = [f"{names[name]} {interval_cells(row)[1]}" for name, row in rows]
    text = f"{rated.name} in %, valid however often one looks: {'; '.join(texts + ahead)}"
    return wrap(text, snapshot.width or len(text)) if texts else []
