"""Turn the files of a source into records in a store: list them, read and parse changed files, and store their rows."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evalkit._text import counted_noun, did_you_mean
from evalkit.io.frames import COLUMN_ERRORS, SOURCE, Column, Status, arrow_table, paused_gc
from evalkit.io.paths import FileState, StorageOptions, is_url, storage, storage_options
from evalkit.io.read import Excerpt, in_chunks, read_files, reason_of
from evalkit.io.sources import MISSING, SETTLED, Listing, Source, list_source, state_of
from evalkit.io.store import FILES, FileRow, RecordStore
from evalkit.kinds.kind import LogKind, Parsed, Records

COMMIT_EVERY = 5.0  # seconds
_PACKED = (".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")  # not read; archives that can be read are sources (`runs.zip`)
_Rows = Mapping[str, Sequence[tuple]]  # rows of a file, by table of records
_Read = tuple[str, bool, Parsed]  # path of a file, whether it was read and parsed, and its parsed contents
Progress = Callable[[int, int], object] | None  # called with the numbers of files read and files to read


def list_logs(
    kind: LogKind, source: Source, pattern: str, *, recursive: bool = True, known: Listing | None = None
) -> Listing:
    """List a source as `list_source` does. Add the states of its files and of files above it that describe them."""
    listing = list_source(source, pattern, recursive=recursive, known=known)
    states: dict[str, FileState] = {}
    companions = kind.files.companions
    for path in listing.files:
        states[path] = state = listing.states.get(path) or state_of(path) or MISSING
        if companions:
            for other in filter(None, map(state_of, companions(path))):
                modified, changed = max(state.modified, other.modified), max(state.changed, other.changed)
                states[path] = FileState(state.size, modified, changed, f"{state.tag} {other.size}".strip())
    above = kind.files.context(listing.files) if kind.files.context else ()
    for path in above:  # in the order that the kind gives, since the first of several names takes precedence
        if path not in states and (found := state_of(path)):
            states[path] = found
    return listing._replace(states=states)


class Changes(NamedTuple):
    """Numbers of files of an update. New and changed files were read; files `being_written` keep their old contents."""

    new: int
    changed: int
    vanished: int
    unchanged: int
    being_written: frozenset[str] = frozenset()

    def summary(self) -> str:
        """Summarise the changes in one line."""
        files = self.new + self.changed + self.unchanged
        changes = f"{self.new} new, {self.changed} changed, {self.vanished} vanished, {self.unchanged} as before"
        return f"{counted_noun(files, 'file')}: {changes}"


@paused_gc()
def update(
    store: RecordStore,
    kind: LogKind,
    listing: Listing,
    *,
    known: Listing | None = None,
    jobs: int | None = None,
    progress: Progress = None,
    about: Mapping[str, object] | None = None,
    changed_recently: Callable[[str], bool] | None = None,
) -> Changes:
    """Read new and changed files of a listing with states into a store, and drop the rows of vanished files.

    Rows are committed every few seconds, so an interrupted update continues from the last commit. At any time, the
    store contains the previous or the current contents of every file. Pass `known` if you have already read it from the
    store. `progress` is called after each chunk of files. A file that can't be parsed and for which `changed_recently`
    is true is being written: the store keeps its previous contents, and the next update reads it again.
    """
    known = known or store.known()
    about = about or {}
    being_written: set[str] = set()
    above = listing.states.keys() - set(listing.files)
    moved = above ^ (known.states.keys() - set(known.files))  # in the source before and above it now, or the reverse
    vanished = known.states.keys() - listing.states.keys()
    to_read = list[str]()
    for path, state in listing.states.items():
        if known.states.get(path) != state or path in moved:
            to_read.append(path)
    if vanished:  # keep the files of a folder that can't be listed at the moment
        unlisted = tuple(f"{path}/" for path in to_read if os.path.isdir(path))
        vanished = {path for path in vanished if not path.startswith(unlisted)}

    settled_before = time.time_ns() - int(SETTLED * 1e9)
    done, commit_at = 0, time.monotonic() + COMMIT_EVERY
    for read, tables in parse_logs(kind, to_read, listing.states, kind.records, jobs):
        rows, kept = list[FileRow](), list[str]()  # rows of the table of files; paths that keep their previous contents
        for path, was_read, parsed in read:
            state = listing.states[path]
            is_unfinished = bool(changed_recently and parsed.status == "failed" and changed_recently(path))
            if is_unfinished:
                being_written.add(path)
                if path in known.states:
                    kept.append(path)
                    continue
            left_alone = bool(state.tag) if is_url(path) else state.modified < settled_before
            if is_unfinished or not (was_read and left_alone):
                state = state._replace(changed=-1)  # matches no file, so the next update reads it again
            row = FileRow(
                source=path,
                size=state.size,
                modified=state.modified,
                changed=state.changed,
                tag=state.tag,
                context=path in above,
                status=parsed.status,
                reason=parsed.reason,
            )
            rows.append(row)
        if kept:
            names = pa.array(kept, pa.large_string())
            tables = {name: table.filter(pc.invert(pc.is_in(table["source"], names))) for name, table in tables.items()}
        store.put({"files": arrow_table(list(zip(*rows, strict=True)), FILES), **tables})
        done += len(read)
        if done < len(to_read) and (now := time.monotonic()) > commit_at:
            store.commit(complete=False, **about)
            took = time.monotonic() - now
            commit_at = now + took + COMMIT_EVERY * (1 + 2 * took)  # a large store is written less often
        if progress:
            progress(done, len(to_read))
    if to_read or vanished:
        store.arrange([*listing.states, *sorted(known.states.keys() - listing.states.keys() - vanished)])
    store.commit(**about, complete=True, folders=listing.folders)

    changed = len(known.states.keys() & set(to_read))
    counts = len(to_read) - changed, changed, len(vanished), len(listing.states) - len(to_read)
    return Changes(*counts, frozenset(being_written))


def parse_logs(
    kind: LogKind,
    paths: Iterable[str],
    states: Mapping[str, FileState],
    records: Mapping[str, Sequence[Column]],
    jobs: int | None = None,
) -> Iterator[tuple[list[_Read], dict[str, pa.Table]]]:
    """Read and parse files. Yield the parsed files of each chunk, with their rows as the tables of `records`.

    If `records` is empty, there are no tables, and the parsed files keep their rows.
    """
    to_parse = list[str]()
    skipped = list[_Read]()
    size = 0
    accepts, excerpted = kind.files.accepts, kind.files.excerpted
    for path in paths:
        is_packed = path.lower().endswith(_PACKED)
        name = path.rpartition(".")[0] if is_packed else path
        reason = accepts(name) if accepts else ""
        if (reason or is_packed) and not os.path.isdir(path):
            status: Status = "skipped" if reason else "failed"
            skipped.append((path, True, Parsed(status, "packed: unpack it first" if is_packed else reason)))
            continue
        to_parse.append(path)
        if not path.endswith(excerpted):
            size += states[path].size
    functions = _Functions(kind.name, kind.parse, kind.unreadable)
    work = partial(_parse_chunk, functions, kind.files.excerpt, records, storage_options())
    return chain([(skipped, {})] if skipped else [], in_chunks(work, to_parse, size, jobs))


class _Functions(NamedTuple):
    """The functions of a kind that parse one file. A worker process may not know the kind itself."""

    kind: str
    parse: Callable[[str, bytes], Parsed]
    unreadable: Callable[[str, str], Parsed]


def _parse_chunk(
    functions: _Functions,
    excerpt: Excerpt | None,
    records: Mapping[str, Sequence[Column]],
    options: StorageOptions,
    paths: Sequence[str],
) -> tuple[list[_Read], dict[str, pa.Table]]:
    """Read and parse a chunk of files, possibly in a worker process.

    A file fails if it can't be read, if parsing it raises an exception, or if what `parse` returns does not fit the
    tables of records.
    """
    read, rows = list[_Read](), dict[str, _Rows]()
    with storage(options), paused_gc():
        for path, data in read_files(paths, excerpt=excerpt):
            if isinstance(data, IsADirectoryError):
                was_read, parsed = False, Parsed("failed", f"the folder can't be listed: {reason_of(data)}")
            else:
                was_read, parsed = _parse_file(functions, records, path, data)
            rows[path] = parsed.rows
            if records:
                parsed = Parsed(parsed.status, parsed.reason)  # without its rows
            read.append((path, was_read, parsed))
            del data  # free the memory before the next file is read
    try:
        return read, tables_of(records, rows)
    except COLUMN_ERRORS:
        for place, (path, was_read, _) in enumerate(read):
            if misfit := _misfit(records, rows[path]):
                read[place] = path, was_read, Parsed("failed", f"kind {functions.kind}: {misfit}")
                del rows[path]
        return read, tables_of(records, rows)


def _parse_file(
    functions: _Functions, records: Mapping[str, Sequence[Column]], path: str, data: bytes | OSError
) -> tuple[bool, Parsed]:
    """Parse a file. Return whether it was read and parsed, and its contents; `unreadable` adds rows if it failed."""
    was_read = False
    try:
        if isinstance(data, OSError):
            raise data
        parsed = _checked(functions.parse(path, data), records)
        was_read = True
    except (MemoryError, RecursionError) as error:
        cause = f"parsing this file needs more memory or stack than available ({type(error).__name__})"
        parsed = Parsed("failed", f"LimitError: {cause}")
    except _MistakeError as error:
        return False, Parsed("failed", f"kind {functions.kind}: parse {error}")
    except Exception as error:
        parsed = Parsed("failed", reason_of(error))
    if parsed.status == "failed" and not any(parsed.rows.values()):
        try:
            parsed = _checked(functions.unreadable(path, parsed.reason), records)
        except Exception as error:
            what = str(error) if isinstance(error, _MistakeError) else f"raised {reason_of(error)}"
            parsed = Parsed("failed", f"{parsed.reason}; kind {functions.kind}: unreadable {what}")
    return was_read, parsed


class _MistakeError(Exception):
    """Raised for a result of `parse` or `unreadable` that is not as `Parsed` describes."""


def _checked(parsed: Any, records: Mapping[str, Sequence[Column]]) -> Parsed:
    """Return parsed contents; raise _MistakeError if they are of another type, or have rows of an unknown table."""
    if not isinstance(parsed, Parsed):
        raise _MistakeError(f"returned {type(parsed).__name__}, not Parsed")
    if parsed.status not in get_args(Status):
        raise _MistakeError(f"returned status {parsed.status!r}; {did_you_mean(str(parsed.status), get_args(Status))}")
    if not isinstance(parsed.rows, Mapping):
        raise _MistakeError(f"returned rows that are a {type(parsed.rows).__name__}, not a mapping of tables to rows")
    unknown = [name for name in parsed.rows if records and name not in records]
    if unknown:
        hint = did_you_mean(str(unknown[0]), records)
        raise _MistakeError(f"returned rows of table {unknown[0]!r}, which records lack; {hint}")
    return parsed


def _misfit(records: Mapping[str, Sequence[Column]], rows: _Rows) -> str:
    """Return why the rows of a file do not fit the tables of records; "" if they fit."""
    for name, own in rows.items():
        columns = records[name]
        if not isinstance(own, Sequence):
            return f"rows of {name!r} are a {type(own).__name__}, not a list"
        for row in own:
            if not isinstance(row, tuple | list):
                return f"a row of {name!r} is a {type(row).__name__}, not a tuple of the values of its columns"
            if len(row) != len(columns):
                n = counted_noun(len(columns), "column")
                return f"a row of {name!r} has {counted_noun(len(row), 'value')} for {n}"
        for column, values in zip(columns, zip(*own, strict=True), strict=False):
            try:
                arrow_table([values], [column])
            except COLUMN_ERRORS as error:
                return f"column {column.name!r} of {name!r}: {error}"
    return ""


def tables_of(records: Mapping[str, Sequence[Column]], rows: Mapping[str, _Rows]) -> dict[str, pa.Table]:
    """Build the tables of records from the rows of files."""
    tables = {}
    for name, columns in records.items():
        sources, values = list[str](), list[tuple]()
        for path, own in rows.items():
            added = own.get(name, ())
            sources += [path] * len(added)
            values += added
        for of_rows in set(map(type, values)):
            if not issubclass(of_rows, tuple | list):  # the keys of a dictionary would become the values
                raise TypeError(f"rows of {name!r} are of type {of_rows.__name__}")
        tables[name] = arrow_table([sources, *zip(*values, strict=True)], (SOURCE, *columns))
    return tables


def records_of(store: RecordStore, listing: Listing) -> Records:
    """Return the records of a listing's files, and of files above them, from a store in the order of the listing."""
    tables = dict(store.tables)
    files = tables.pop("files")
    if len(files) - (pc.sum(files["context"]).as_py() or 0) > len(listing.files):  # only part of a dataset is listed
        here = pa.array(listing.files, pa.large_string())
        files = files.filter(pc.or_(pc.is_in(files["source"], here), files["context"]))
        for name, table in tables.items():
            tables[name] = table.filter(pc.is_in(table["source"], files["source"].combine_chunks()))
    return Records(tables, files, listing)
