"""Follow a source that is still being written: each update lists its files and reads only the changed ones.

Files are written in place, so an update may find an incomplete file. A file that can't be parsed and changed less than
`SETTLE` seconds ago counts as being written: its previous contents are kept, and the next update reads it again. A file
that still can't be parsed after that time has failed.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

from evalkit._text import counted_noun
from evalkit.display.terminal import chosen_lines, file_lines, fit_table, overview
from evalkit.io.paths import FileState, SourceError, StorageOptions, storage
from evalkit.io.screen import View, so_far
from evalkit.io.sources import MISSING, Listing, Source, source_names, state_of
from evalkit.io.store import RecordStore, read_manifest
from evalkit.io.text import plain
from evalkit.kinds.kind import LogKind
from evalkit.kinds.logs import Logs
from evalkit.kinds.pipeline import assemble, prepare
from evalkit.kinds.reading import Changes, list_logs, records_of, update

SETTLE = 10.0  # seconds after its last change during which a broken file counts as being written


class Snapshot(NamedTuple):
    """The state of a source at one update, from which the progress text is written."""

    logs: Logs
    unchanged_for: Callable[[str], float]  # seconds since a file or folder changed
    being_written: frozenset[str]  # files that count as being written
    expected: int | None  # number of runs expected of each model; None if the user did not state it
    idle: float | None  # seconds after which an unchanged run counts as finished; None if the user did not state it
    width: int | None  # maximum number of characters in a line; None for no limit


@dataclass(eq=False)
class Following:
    """A source that is read repeatedly; parsed files are kept until they change.

    A source that does not exist yet is not an error: `look` reports it, and the next call tries again. `options` also
    apply to the kind's `progress`. `expected` and `idle` are as in `Snapshot`, and `clock` returns epoch seconds. The
    other parameters are the same as for `load`. Invalid options raise SourceError.
    """

    kind: LogKind
    source: Source
    options: Mapping[str, Any]
    _: KW_ONLY
    expected: int | None = None
    idle: float | None = None
    pattern: str = ""
    recursive: bool = True
    jobs: int | None = None
    storage_options: StorageOptions = None
    clock: Callable[[], float] = time.time
    logs: Logs | None = field(default=None, init=False)
    changes: Changes = field(default=Changes(0, 0, 0, 0), init=False)

    def __post_init__(self) -> None:
        self._sources = source_names(self.source)
        with storage(self.storage_options):
            self.options = prepare(self.kind, self._sources, self.options)
            if dataset := next(filter(read_manifest, self._sources), None):
                raise SourceError(f"{dataset}: a dataset can't be followed; name the folder that it is collected from")
        self.pattern = self.pattern or self.kind.files.pattern
        self._store = RecordStore("", self.kind.records)
        self._since: dict[str, tuple[FileState, float]] = {}  # state of each file or folder, and since when
        self._listing = Listing("", [], {}, {})
        self._is_first, self._now = True, 0.0
        self._notes: list[str] = []

    def look(self, width: int | None = None) -> View:
        """Update once. The view is `done` once all expected runs are present and none is running."""
        self._now = self.clock()
        with storage(self.storage_options):
            try:
                self._update()
            except SourceError as error:
                self._notes = [f"could not update, so this may be old: {plain(error)}"]
                self.changes = self.changes._replace(new=0, changed=0)
            text, done = f"no {self.kind.title} yet", False
            if self.logs is not None:
                being_written = self.changes.being_written
                snapshot = Snapshot(self.logs, self._unchanged_for, being_written, self.expected, self.idle, width)
                text, done = (self.kind.command.progress or progress_of_runs)(snapshot, self.options)
                warned, chosen = chosen_lines(self.logs)
                text = "\n".join([*warned, text, *chosen])
        new, changed, _, unchanged, being_written = self.changes
        status = f"{new + changed} of {counted_noun(new + changed + unchanged, 'file')} new"
        if being_written:
            status += f", {len(being_written)} being written"
        lines = [text]
        if self.logs is None:
            table = self._store.tables["files"].select(["source", "status", "reason", "context"]).to_pandas()
            files = table[~table["context"].astype("bool")]
        else:
            files = self.logs.ledger
        files = files[~files["source"].isin(being_written)]  # these have not failed yet
        if len(files):
            lines += ["", *file_lines(files, len(self.logs.runs) if self.logs else 0)]
        if self._notes:
            lines = [*self._notes, "", *lines]
        return View("\n".join(lines), status, done and not self._notes)

    def _update(self) -> None:
        """Update the records, and assemble frames from the usable files."""
        waiting = []
        try:
            listing = list_logs(self.kind, self._sources, self.pattern, recursive=self.recursive, known=self._listing)
        except SourceError as error:
            if self._since:
                raise
            listing, waiting = self._listing, [f"waiting for {plain(error)}"]
        for path, state in listing.states.items():
            self._see(path, state)
        self.changes = update(
            self._store,
            self.kind,
            listing,
            jobs=self.jobs,
            changed_recently=lambda path: self._unchanged_for(path) < SETTLE,
        )
        for path in self._since.keys() - listing.states.keys() - listing.folders.keys():
            del self._since[path]
        if any(self.changes[:3]) or listing.folders.keys() != self._listing.folders.keys():
            records = records_of(self._store, listing)
            begun = len(next(iter(records.tables.values()))) > 0  # including logs that are being written
            self.logs = (
                assemble(self.kind, records, self.options, self._sources, self.storage_options) if begun else None
            )
        self._listing, self._notes = listing, waiting
        self._is_first = False

    def _see(self, path: str, state: FileState) -> None:
        """Record since when a file or folder has had its state, by this computer's clock, not a file server's."""
        if path not in self._since or self._since[path][0] != state:
            modified = state.modified / 1e9
            was_there = self._is_first and 0 < modified <= self._now
            self._since[path] = (state, modified if was_there else self._now)

    def _unchanged_for(self, path: str) -> float:
        if path not in self._since:
            self._see(path, state_of(path) or MISSING)
        return self._now - self._since[path][1]


def progress_of_runs(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the overview with the present and expected numbers of runs. A run is done once its log can be read."""
    rows, _ = overview(snapshot.logs.runs, snapshot.logs.kind)
    counts = [int(row["runs"]) for row in rows]
    for row, n in zip(rows, counts, strict=True):
        row["runs"] = so_far(n, snapshot.expected)
    done = snapshot.expected is not None and not snapshot.being_written and min(counts) >= snapshot.expected
    return fit_table(rows, width=snapshot.width), done
