"""Update a store of records from its source: only new and changed files are read and parsed."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from evalkit.io.columns import Column, cut_row
from evalkit.io.frames import arrow_schema, arrow_table, escape_surrogates, paused_gc
from evalkit.io.parallel import parse_chunks
from evalkit.io.paths import FileState, is_url
from evalkit.io.records import FILES, FOLDERS, SOURCE, Known, RecordStore, States, known_in
from evalkit.io.sources import (
    MISSING,
    SETTLED,
    Listing,
    state_of,
)
from evalkit.io.text import cut_line
from evalkit.kinds.registry import LogKind, Parsed, Records

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_EVERY = 5.0  # seconds
CHUNK_FILES, CHUNK_BYTES = 10_000, 200_000_000  # most that is read before its rows are stored
PARALLEL_FILES, PARALLEL_BYTES = 2_000, 100_000_000  # from here on several processes are faster
MOST_SLICES = 100  # of a table whose rows are put in order without copying them
_MISFITS = (AttributeError, NotImplementedError, OverflowError, TypeError, ValueError)  # of values and their columns
_Result = tuple[str, bool, Parsed]  # a file, whether it could be read, and its contents
Progress = Callable[[int, int], object] | None  # of files read, files to read


class Changes(NamedTuple):
    """Numbers of files of an update; `new` and `changed` ones were read. those `being_written` were left out."""

    new: int
    changed: int
    vanished: int
    unchanged: int
    being_written: frozenset[str] = frozenset()

    def summary(self) -> str:
        """Return one line."""
        files = self.new + self.changed + self.unchanged
        changes = f"{self.new} new, {self.changed} changed, {self.vanished} vanished, {self.unchanged} as before"
        return f"{files} files: {changes}"


@paused_gc()
def update(
    store: RecordStore,
    kind: LogKind,
    listing: Listing,
    *,
    known: Known | None = None,
    states: States | None = None,
    jobs: int | None = None,
    progress: Progress = None,
    about: Mapping[str, object] | None = None,
    changed_recently: Callable[[str], bool] = lambda path: False,
) -> Changes:
    """Read new and changed files, and drop the rows of those that have vanished.

    Rows are committed every few seconds: an interrupted update continues from there the next time. At any point, the
    store has the former or the current contents of every file. `listing` is that of the source, with the pattern and
    depth of the store; `known` and `states` are passed where they were read already; `progress` is called after each
    chunk. A file that can't be parsed and `changed_recently` counts as being written: its former contents are kept, and
    it is read again the next time.
    """
    import numpy as np

    known = known or known_in(store)
    states = states or states_of(listing, kind)
    listed = set(states.paths)
    # in the order of the kind: of several names of a model, the first counts
    names = (path for path in kind.files.context(listing.files) if path not in listed)
    above = {path: state for path in names if (state := state_of(path))}
    context = np.arange(len(states.paths) + len(above)) >= len(states.paths)
    states = States.of([*states.items(), *above.items()]) if above else states
    unread = (~known.are_current(states, context)).nonzero()[0].tolist()
    to_read = dict(states.items(unread))
    vanished = known.files.keys() - listed - above.keys()
    vanished -= _below(vanished, [f"{path}/" for path in to_read if vanished and os.path.isdir(path)])
    changed = len(known.files.keys() & to_read.keys())
    about, being_written, committed = dict(about or {}), set(), time.monotonic()
    done = 0
    for chunk in _chunks(to_read):
        read = _read(kind, chunk, jobs, sum(to_read[path].size for path in chunk))
        done += len(chunk)
        failed = (path for path, (_, status, _) in read.files.items() if status == "failed")
        unfinished = set(filter(changed_recently, failed))
        being_written |= unfinished
        left_out = unfinished & known.files.keys()  # their former contents are kept
        rows = _rows(read, to_read, above.keys(), unfinished, left_out)
        replaced = read.files.keys() & known.files.keys() - left_out
        store.replace(set(map(escape_surrogates, replaced)), rows)
        if done < len(to_read) and time.monotonic() - committed > COMMIT_EVERY:
            store.commit(complete=False, **about)
            committed = time.monotonic()
        if progress:
            progress(done, len(to_read))
    store.replace(set(map(escape_surrogates, vanished)), {})
    if known.folders != listing.folders:
        folders = [(path, *state) for path, state in listing.folders.items()]
        store.set_folders(arrow_table(folders, arrow_schema(FOLDERS)))
    if store.is_changed or store.about != {**store.about, **about, "complete": True}:
        store.commit(complete=True, **about)
    unchanged = len(states.paths) - len(to_read)
    return Changes(len(to_read) - changed, changed, len(vanished), unchanged, frozenset(being_written))


def states_of(listing: Listing, kind: LogKind) -> States:
    """Return the state of each file of a listing."""
    import numpy as np

    if listing.states or any(map(kind.files.companions, listing.files)):
        return States.of([(path, listing.states.get(path) or current_state(path, kind)) for path in listing.files])
    try:
        found = ((s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in map(os.stat, listing.files))
        times = np.fromiter(found, np.dtype((np.int64, 3)), len(listing.files))
    except (OSError, ValueError):  # such as a dangling link
        return States.of([(path, state_of(path) or MISSING) for path in listing.files])
    return States(listing.files, times, [""] * len(listing.files))


def records_of(store: RecordStore, kind: LogKind, listing: Listing) -> Records:
    """Return the records of a store, in the order of the listing's files, followed by those of context files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    files = store.table("files")
    tables = {name: store.table(name) for name in kind.records}
    context = files["source"].filter(files["context"]).combine_chunks()
    listed = pa.array(list(map(escape_surrogates, listing.files)), pa.large_string())
    order = pa.concat_arrays([listed, context])
    if files["source"].combine_chunks().equals(order):
        return Records(tables, files, listing)

    def in_order(rows: "pa.Table") -> "pa.Table":
        places = pc.index_in(rows["source"], order)
        if places.null_count:  # not all of a dataset may be requested
            rows, places = rows.filter(pc.is_valid(places)), places.drop_null()
        sorting = np.argsort(places.to_numpy(), kind="stable")
        breaks = np.flatnonzero(np.diff(sorting) != 1) + 1
        if len(breaks) >= MOST_SLICES:
            return rows.take(sorting)
        together = [rows.slice(int(piece[0]), len(piece)) for piece in np.split(sorting, breaks) if len(piece)]
        return pa.concat_tables([rows[:0], *together])

    return Records({name: in_order(table) for name, table in tables.items()}, in_order(files), listing)


def current_state(path: str, kind: LogKind) -> FileState:
    """Return the state of a file, including that of its companions."""
    state, companions = state_of(path) or MISSING, kind.files.companions(path)
    if not companions:
        return state
    states = [state, *filter(None, map(state_of, companions))]
    modified, changed = (max(times) for times in zip(*(state[1:3] for state in states), strict=True))
    return FileState(state.size, modified, changed, " ".join(state.tag for state in states).strip())


def _below(paths: set[str], folders: Sequence[str]) -> set[str]:
    """Return the files in a folder that is among the files, since it can't be listed now."""
    return {path for path in paths if path.startswith(tuple(folders))}


class _Read(NamedTuple):
    """Parsed files: whether each could be read, its status and reason; the rows of records; and the time."""

    files: dict[str, tuple[bool, str, str]]
    tables: "dict[str, pa.Table]"
    begun: int = 0  # epoch nanoseconds


def _chunks(files: Mapping[str, FileState]) -> Iterator[list[str]]:
    """Split files, so that neither their number nor their size is too large."""
    chunk, size = list[str](), 0
    for path, state in files.items():
        if chunk and (len(chunk) == CHUNK_FILES or size + state.size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(path)
        size += state.size
    if chunk:
        yield chunk


def _read(kind: LogKind, paths: Sequence[str], jobs: int | None, size: int) -> _Read:
    """Read and parse files; those that need not be read are skipped."""
    import pyarrow as pa

    begun = time.time_ns()
    files = {path: (True, "skipped", reason) for path in paths if (reason := kind.files.accepts(path))}
    files = {path: chunks for path, chunks in files.items() if not os.path.isdir(path)}
    wanted, pack = [path for path in paths if path not in files], partial(_pack, kind.records)
    serial_below = 0 if size >= PARALLEL_BYTES else PARALLEL_FILES
    chunks = list(parse_chunks(wanted, partial(_parse_file, kind.parse), pack, jobs, serial_below))
    for one in chunks:
        files |= one.files
    tables = {name: pa.concat_tables([one.tables[name] for one in chunks]) for name in kind.records if chunks}
    tables = {name: table.combine_chunks() for name, table in tables.items()}  # of many small ones
    return _Read({path: files[path] for path in paths}, tables, begun)


def _parse_file(parse: Callable[[str, bytes | OSError], Parsed], path: str, data: bytes | OSError) -> _Result:
    if isinstance(data, IsADirectoryError):
        return path, False, Parsed("failed", f"the folder can't be listed: {type(data).__name__}: {data.strerror}")
    return path, not isinstance(data, OSError), parse(path, data)


def _pack(records: Mapping[str, Sequence[Column]], results: Iterator[_Result]) -> _Read:
    """Build tables of parsed files; a file with values that no column can hold has failed."""
    parsed = [_with_cut_names(records, one) for one in results]  # before the next file is read
    try:
        tables = _tables(records, parsed)
    except _MISFITS:
        parsed = [_fitting(records, one) for one in parsed]
        tables = _tables(records, parsed)
    return _Read({path: (was_read, one.status, one.reason) for path, was_read, one in parsed}, tables)


def _with_cut_names(records: Mapping[str, Sequence[Column]], one: _Result) -> _Result:
    """Cut what a file says to the lengths of its columns."""
    path, was_read, parsed = one
    named = {name for name in parsed.rows if any(column.dtype == "name" for column in records[name])}
    rows = {name: [cut_row(row, records[name]) for row in parsed.rows[name]] for name in named}
    return path, was_read, parsed._replace(reason=cut_line(parsed.reason), rows={**parsed.rows, **rows})


def _fitting(records: Mapping[str, Sequence[Column]], one: _Result) -> _Result:
    """Return the contents of a file if its columns can hold them, else why they can't."""
    path, was_read, _ = one
    try:
        _tables(records, [one])
    except _MISFITS as error:
        return path, was_read, Parsed("failed", f"a value does not fit its column: {error}")
    return one


def _tables(records: Mapping[str, Sequence[Column]], parsed: Sequence[_Result]) -> "dict[str, pa.Table]":
    rows: dict[str, list[tuple]] = {name: [] for name in records}
    for path, _, result in parsed:
        name = escape_surrogates(path)
        for table, added in result.rows.items():
            rows[table] += [(name, *row) for row in added]
    return {name: arrow_table(values, arrow_schema((SOURCE, *records[name]))) for name, values in rows.items()}


def _rows(
    read: _Read, states: Mapping[str, FileState], context: Set[str], unfinished: Set[str], left_out: Set[str]
) -> "dict[str, pa.Table]":
    """Return the rows to be stored, with one for each file; a file unchanged for long enough before is settled."""
    import pyarrow as pa
    import pyarrow.compute as pc

    settled_before, files = read.begun - int(SETTLED * 1e9), []
    for path, (was_read, status, reason) in read.files.items():
        if path not in left_out:
            state = states[path]
            settled = (
                was_read
                and path not in unfinished
                and (bool(state.tag) if is_url(path) else state.modified < settled_before)
            )
            files.append((escape_surrogates(path), *state, settled, path in context, status, reason))
    tables = read.tables
    if left_out:
        gone = pa.array(sorted(map(escape_surrogates, left_out)), pa.large_string())
        tables = {name: own.filter(pc.invert(pc.is_in(own["source"], gone))) for name, own in tables.items()}
    return {"files": arrow_table(files, arrow_schema(FILES)), **tables}
