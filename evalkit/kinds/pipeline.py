"""The way of the logs of any kind, from the files of a source to frames.

    list ─► read what changed ─► parse ─► keep ─► assemble
    files   bytes                rows     store   frames

`load` goes all of it, with a store in the user's cache; `collect` goes it up to a store under a name, a dataset, which
stands for its source from then on; `evalkit.kinds.follow` goes it again and again, with a store in memory.
"""

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._html import render
from evalkit._version import code_version
from evalkit._words import as_list, counted_noun, did_you_mean, join_first, note
from evalkit.io.frames import LEDGER, SOURCE, Column, Entry, arrow_table, frame_of, paused_gc, summarise
from evalkit.io.paths import (
    FileState,
    LimitError,
    SourceError,
    StorageOptions,
    absolute,
    check_path,
    is_url,
    protocol_of,
    storage,
    storage_options,
)
from evalkit.io.read import Excerpt, in_chunks, read_files
from evalkit.io.secrets import masked
from evalkit.io.sources import (
    MISSING,
    SETTLED,
    Listing,
    Source,
    anchored,
    expand,
    fits,
    list_source,
    source_names,
    state_of,
)
from evalkit.io.store import FILES, Manifest, RecordStore, StoreError, cached_store, collected_from, read_manifest
from evalkit.io.write import exclusive
from evalkit.kinds.detection import kind_of_source, nothing_used
from evalkit.kinds.kind import RUN_COLUMNS, Assembled, LogKind, Parsed, Records
from evalkit.kinds.registry import kind_named
from evalkit.kinds.runs import UNKNOWN
from evalkit.kinds.selection import Renames, name_by_source, rename_models, renames_of, select_runs
from evalkit.kinds.transcript import Transcript, run_facts, transcript_of

COMMIT_EVERY = 5.0  # seconds
MOST_MODELS, MOST_REASONS = 10, 5  # models, and reasons why files are unused, in the summary of logs
_PACKED = (".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")  # others, which are read, are sources: ``runs.zip``
_MISFITS = (AttributeError, NotImplementedError, OverflowError, TypeError, ValueError)  # of values and their columns
_Rows = Mapping[str, Sequence[tuple]]  # what a file says, by table of records
_Read = tuple[str, bool, Parsed]  # a file, whether it could be read, and what it says
Progress = Callable[[int, int], object] | None  # of files read, files to read


class ReadOptions(TypedDict, total=False):
    """The options of `load` that every kind of logs has, other than the pattern of names."""

    recursive: bool
    jobs: int | None
    storage_options: StorageOptions
    rename: Renames
    model: str
    where: str | Sequence[str]
    cluster: str


class LoadOptions(ReadOptions, total=False):
    """The options of `load` that every kind of logs has."""

    pattern: str


def load(
    source: Source,
    kind: str | LogKind = "",
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    **options: Any,
) -> "Logs":
    """Read the logs of a source of any kind: ``evalkit.load("path/to/logs")``; unchanged files come from the store.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs such as ``runs/exp_*``, ``samples:NAME``, URLs that fsspec knows, archives, or a dataset
        of `collect`.
    kind : str or LogKind
        Such as ``mindcraft``; by default that of most files by their content, with a warning that names the others.
    pattern : str
        Glob for the names of files in folders; by default that of the kind.
    recursive : bool
        Whether to read the folders below, too.
    jobs : int, optional
        Processes to read many files with; -1, and the default where they can be forked, for all cores.
    storage_options : mapping, optional
        Options for the file systems behind URLs, passed to fsspec.
    **options
        Of the kind, such as ``tasks`` of Mindcraft; of every kind ``rename``, a list of ``"OLD=NEW"`` or a mapping of
        models' names, ``model``, the model of runs whose logs name none, ``where``, conditions such as
        ``"max_turns>=20"`` on columns of the runs to load, and ``cluster``, the column of the families of tasks.

    Returns
    -------
    Logs

    Raises
    ------
    SourceError
        If a source is missing or holds no logs, and for options that the kind does not have.
    """
    if isinstance(kind, str):
        kind = kind_named(kind) if kind else kind_of_source(source)
    for name in options:
        if name not in kind.defaults and name not in kind.settings:
            raise SourceError(f"{kind.name} logs have no option {name!r}; {did_you_mean(name, kind.defaults)}")
    named = source_names(source)
    with storage(storage_options):
        prepared = kind.prepare(options)
        records = read_records(kind, source, pattern=pattern, recursive=recursive, jobs=jobs)
        used = pc.filter(records.files["source"], pc.equal(records.files["status"], "used")).combine_chunks()
        for name in kind.log_records:
            if pc.any(pc.is_in(records.tables[name]["source"], used)).as_py():
                break
        else:
            files = records.files.filter(pc.invert(records.files["context"]))
            entries = [Entry(**row) for row in files.select(Entry._fields).to_pylist()]
            raise nothing_used(named, entries, kind.title, pattern or kind.files.pattern, recursive=recursive)
    return assemble(kind, records, prepared, named, storage_options)


def read_records(
    kind: LogKind,
    source: Source,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    keep: bool = True,
) -> Records:
    """Return the records of a source, or of a dataset in its place; only with `keep` they stay in the user's cache.

    SourceError if the source does not exist. If none of its files can be used, there are no rows.
    """
    named = source_names(source)
    if not named:
        raise SourceError("no path was given (the path is empty)")
    for name in named:
        if manifest := read_manifest(name):
            if len(named) > 1:
                raise SourceError(f"{name}: a dataset can't be loaded together with other sources")
            return _dataset_records(kind, name, manifest, pattern, recursive=recursive)
    pattern = pattern or kind.files.pattern
    key = [kind.name, list(map(absolute, named)), pattern, recursive, dict(storage_options())] if keep else []
    about = {"kind": kind.name, "code": code_version(kind.parse.__module__)}
    with cached_store(key, kind.records) as store:
        try:
            if store.read() and store.about.get("code") != about["code"]:
                store.clear()
        except StoreError:  # damaged
            store.clear()
        known = store.known()
        listing = list_logs(kind, named, pattern, recursive=recursive, known=known)
        update(store, kind, listing, known=known, jobs=jobs, about=about)
    return records_of(store, listing)


def _dataset_records(kind: LogKind, name: str, manifest: Manifest, pattern: str, *, recursive: bool) -> Records:
    """Return the records of a dataset; SourceError for one of another kind, or that can't be read."""
    store = RecordStore(manifest.folder, kind.records)
    if manifest.about.get("kind") != kind.name:  # it has other tables
        raise SourceError(f"{name}: a dataset of {manifest.about.get('kind')} logs, not of {kind.name} logs")
    store.read()
    if not store.about.get("complete"):
        text = "collecting was stopped, or still goes on; files may be missing until it is done"
        warnings.warn(f"{store.path}: {text}", stacklevel=4)
    elif store.about["code"] != code_version(kind.parse.__module__):
        text = "collected by another version of evalkit; collect again, and its logs are read as they are now"
        warnings.warn(f"{store.path}: {text}", stacklevel=4)
    root, known = store.about["root"], store.known()
    files = [path for path in known.files if not pattern or fits(path, pattern)]
    if not recursive:
        files = [path for path in files if os.path.dirname(path) == root]
    return records_of(store, known._replace(root=root, files=files))


def list_logs(
    kind: LogKind, source: Source, pattern: str, *, recursive: bool = True, known: Listing | None = None
) -> Listing:
    """List a source, with the states of its files and of those above them that describe them; as `list_source`."""
    listing = list_source(source, pattern, recursive=recursive, known=known)
    states, companions, context = dict[str, FileState](), kind.files.companions, kind.files.context
    for path in listing.files:
        states[path] = state = listing.states.get(path) or state_of(path) or MISSING
        for other in filter(None, map(state_of, companions(path))) if companions else ():
            modified, changed = max(state.modified, other.modified), max(state.changed, other.changed)
            states[path] = FileState(state.size, modified, changed, f"{state.tag} {other.size}".strip())
    above = context(listing.files) if context else ()
    for path in above:  # in the order of the kind: of several names, the first counts
        if path not in states and (found := state_of(path)):
            states[path] = found
    return listing._replace(states=states)


class Changes(NamedTuple):
    """Numbers of files of an update; `new` and `changed` ones were read, those `being_written` were left out."""

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
    known: Listing | None = None,
    jobs: int | None = None,
    progress: Progress = None,
    about: Mapping[str, object] | None = None,
    changed_recently: Callable[[str], bool] | None = None,
) -> Changes:
    """Read new and changed files of a listing with states into a store, and drop the rows of those that have vanished.

    Rows are committed every few seconds: an interrupted update continues from there the next time. At any point, the
    store has the former or the current contents of every file. `known` is passed if it was read from the store already;
    `progress` is called after some files each. A file that can't be parsed and `changed_recently` counts as being
    written: its former contents are kept, and it is read again the next time.
    """
    known, about, being_written = known or store.known(), about or {}, set[str]()
    above = listing.states.keys() - set(listing.files)
    moved = above ^ (known.states.keys() - set(known.files))  # from the source to above it, or back
    vanished = known.states.keys() - listing.states.keys()
    to_read = list[str]()
    for path, state in listing.states.items():
        if known.states.get(path) != state or path in moved:
            to_read.append(path)
    if vanished:  # but for the files of a folder that can't be listed now
        unlisted = tuple(f"{path}/" for path in to_read if os.path.isdir(path))
        vanished = {path for path in vanished if not path.startswith(unlisted)}

    settled_before = time.time_ns() - int(SETTLED * 1e9)
    done, commit_at = 0, time.monotonic() + COMMIT_EVERY
    for read, tables in parse_logs(kind, to_read, listing.states, kind.records, jobs):
        rows, kept = list[tuple](), list[str]()  # of files; those whose former contents are kept
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
                state = state._replace(changed=-1)  # as that of no file: it is read again
            rows.append((path, *state, path in above, parsed.status, parsed.reason))
        if kept:
            names = pa.array(kept, pa.large_string())
            tables = {name: table.filter(pc.invert(pc.is_in(table["source"], names))) for name, table in tables.items()}
        store.put({"files": arrow_table(list(zip(*rows, strict=True)), FILES), **tables})
        done += len(read)
        if done < len(to_read) and (now := time.monotonic()) > commit_at:
            store.commit(complete=False, **about)
            took = time.monotonic() - now
            commit_at = now + took + COMMIT_EVERY * (1 + 2 * took)  # a large store is written more rarely
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
    """Read and parse files, chunk by chunk: what each says, and the tables of `records` that hold the rows of it.

    Without `records` there are no tables, and the rows stay where they are.
    """
    to_parse, skipped, size, accepts = list[str](), list[_Read](), 0, kind.files.accepts
    for path in paths:
        reason = "packed: unpack it first" if path.lower().endswith(_PACKED) else accepts(path) if accepts else ""
        if reason and not os.path.isdir(path):
            skipped.append((path, True, Parsed("skipped", reason)))
        else:
            to_parse.append(path)
            size += 0 if path.endswith(kind.files.excerpted) else states[path].size
    work = partial(_parse_chunk, kind.parse, kind.files.excerpt, records, storage_options())
    return chain([(skipped, {})] if skipped else [], in_chunks(work, to_parse, size, jobs))


def _parse_chunk(
    parse: Callable[[str, bytes | OSError], Parsed],
    excerpt: Excerpt | None,
    records: Mapping[str, Sequence[Column]],
    options: StorageOptions,
    paths: Sequence[str],
) -> tuple[list[_Read], dict[str, pa.Table]]:
    """Read and parse files for `parse_logs`, in any process; one with values that fit no column has failed."""
    read, rows = list[_Read](), dict[str, _Rows]()
    with storage(options), paused_gc():
        for path, data in read_files(paths, excerpt=excerpt):
            try:
                parsed = parse(path, data)
            except LimitError as error:
                data = error
                parsed = parse(path, data)
            except (MemoryError, RecursionError) as error:
                data = LimitError(f"this file takes more memory or stack than there is ({type(error).__name__})")
                parsed = parse(path, data)
            if isinstance(data, IsADirectoryError):
                parsed = Parsed("failed", f"the folder can't be listed: {type(data).__name__}: {data.strerror}")
            read.append((path, not isinstance(data, OSError), parsed._replace(rows={}) if records else parsed))
            rows[path] = parsed.rows
            del data  # before the next file is read into the same memory
    try:
        return read, tables_of(records, rows)
    except _MISFITS:
        for place, (path, was_read, _) in enumerate(read):
            try:
                tables_of(records, {path: rows[path]})
            except _MISFITS as error:
                read[place] = path, was_read, Parsed("failed", f"a value does not fit its column: {error}")
                del rows[path]
        return read, tables_of(records, rows)


def tables_of(records: Mapping[str, Sequence[Column]], rows: Mapping[str, _Rows]) -> dict[str, pa.Table]:
    """Return the tables of records from the rows of files."""
    tables = {}
    for name, columns in records.items():
        sources, values = list[str](), list[tuple]()
        for path, own in rows.items():
            added = own.get(name, ())
            sources += [path] * len(added)
            values += added
        tables[name] = arrow_table([sources, *zip(*values, strict=True)], (SOURCE, *columns))
    return tables


def records_of(store: RecordStore, listing: Listing) -> Records:
    """Return the records of a listing's files, and of those above them, from a store that holds them in order."""
    tables = dict(store.tables)
    files = tables.pop("files")
    if len(files) - (pc.sum(files["context"]).as_py() or 0) > len(listing.files):  # as of a part of a dataset
        here = pa.array(listing.files, pa.large_string())
        files = files.filter(pc.or_(pc.is_in(files["source"], here), files["context"]))
        for name, table in tables.items():
            tables[name] = table.filter(pc.is_in(table["source"], files["source"].combine_chunks()))
    return Records(tables, files, listing)


@paused_gc()
def assemble(
    kind: LogKind,
    records: Records,
    options: Mapping[str, Any],
    sources: Sequence[str],
    storage_options: StorageOptions = None,
) -> "Logs":
    """Build the frames of records, and the ledger."""
    options = {**kind.defaults, **options}
    rename, model, where, cluster = map(options.pop, ("rename", "model", "where", "cluster"))
    assembled = kind.assemble(records, options) if kind.assemble else as_recorded(kind, records)
    renames = renames_of(rename, model)
    models = assembled.frames[kind.runs]["model_name"].dropna()
    if not renames.keys() & set(models):  # else the user knows the models by the names in their logs
        assembled = name_by_source(assembled, kind, collected_from(sources[0]) or sources)
    if renames:
        assembled = rename_models(assembled, renames)
    runs = assembled.frames[kind.runs]
    runs["success_rate"] = runs["is_successful"].to_numpy("float64", na_value=np.nan)
    if model:  # that of runs without one is no question any more
        assembled = assembled._replace(chosen=assembled.chosen.without("no_model"))
    if where or cluster:
        assembled = select_runs(assembled, kind, where, cluster)
    if where:
        assembled = assembled._replace(chosen=assembled.chosen + note("filter", where=as_list(where)))
    own = records.files.filter(pc.invert(records.files["context"])).select(Entry._fields)
    ledger = frame_of(dict(zip(Entry._fields, own.columns, strict=True)), LEDGER)
    if assembled.notes:  # they replace the entries of their files
        notes = frame_of(dict(zip(Entry._fields, zip(*assembled.notes, strict=True), strict=True)), LEDGER)
        ledger = pd.concat([ledger, notes]).groupby("source", as_index=False, sort=False).last()
    return Logs(kind, sources, assembled, ledger, storage_options)


def as_recorded(kind: LogKind, records: Records) -> Assembled:
    """Build frames from the tables of records of the same names; common columns that are not recorded are filled in."""
    frames = {}
    for name, columns in kind.tables.items():
        table = records.tables[name]
        values = {column: table[column] for column in table.column_names}
        if name == kind.runs:
            sources, n = table["source"].to_pylist(), len(table)
            repetitions = pd.Series(sources, dtype="str").groupby(sources).cumcount()  # of runs in one file
            values |= {"run_id": run_ids(kind.name, map(absolute, sources), repetitions), "kind": [kind.name] * n}
            values.setdefault("model_name", [UNKNOWN] * n)
            values.setdefault("run_flags", [[] for _ in range(n)])
            values |= {column: [None] * n for column in {common.name for common in RUN_COLUMNS} - values.keys()}
        frames[name] = frame_of({column.name: values[column.name] for column in columns}, columns)
    return Assembled(frames)


def run_ids(kind: str, *keys: Iterable[object]) -> list[str]:
    """Return stable ids of runs, as in ``m-3f9a51c07e21``, made of what identifies each: its path, its repetition, …

    They begin with the first letter of the kind.
    """
    ids = []
    for key in zip(*map(partial(map, str), keys), strict=True):
        identity = "\0".join(key).encode(errors="surrogatepass")
        ids.append(f"{kind[0]}-{hashlib.blake2b(identity, digest_size=6).hexdigest()}")
    return ids


class Logs:
    """What `load` returns: frames by name, the first with one row per run, and the ledger of files.

    Some kinds have further frames, which are built on first access; `dir` lists them, too.

    Attributes
    ----------
    kind : LogKind
    sources : list of str
        The places that were loaded together, as given; `source` is their names as one text.
    runs : DataFrame
        The first frame, with one row per run.
    ledger : DataFrame
        One row per file that was seen: source, status, reason.
    chosen : Notes
        What was chosen where logs leave it open: columns of tables, scorers, conditions. Every command prints it.
    storage_options : mapping, optional
        Options with which files behind URLs were read.
    """

    def __init__(
        self,
        kind: LogKind,
        sources: Sequence[str],
        assembled: Assembled,
        ledger: pd.DataFrame,
        storage_options: StorageOptions = None,
    ) -> None:
        self.kind, self.sources, self.source, self.ledger = kind, list(sources), ", ".join(sources), ledger
        self.storage_options, self.runs = storage_options, assembled.frames[kind.runs]
        self.chosen = assembled.chosen
        self._frames, self._lazy = dict(assembled.frames), dict(assembled.lazy)
        vars(self).update(assembled.frames, **assembled.attributes)

    def __getattr__(self, name: str) -> Any:
        make = vars(self).get("_lazy", {}).get(name)
        if make is None:
            raise AttributeError(f"{name!r}: these logs have {', '.join(dir(self))}")
        with storage(self.storage_options):
            vars(self)[name] = make()
        return vars(self)[name]

    def __dir__(self) -> list[str]:
        return [name for name in sorted({"show", *vars(self), *vars(self).get("_lazy", ())}) if name[0] != "_"]

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Return the frames in order, then the ledger: ``episodes, events, achievements, ledger = load(…)``."""
        return iter([*self._frames.values(), self.ledger])

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(table)} {name}" for name, table in self._frames.items())
        return f"<{self.kind.name} logs from {self.source}: {counts}; {summarise(self.ledger['status'])}>"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks: models, frames, and files, with the reasons why some were not used."""
        models = self.runs["model_name"].fillna(UNKNOWN).value_counts()
        named = [f"{model} ({counted_noun(runs, 'run')})" for model, runs in models.items()]
        lines = [("source", self.source), ("models", join_first(named, MOST_MODELS, ", and {} more models"))]
        for name, table in self._frames.items():
            lines.append((name, f"{counted_noun(len(table), 'row')}, {counted_noun(table.shape[1], 'column')}"))
        if self.chosen:
            lines.append(("chosen", str(self.chosen)))
        lines.append(("ledger", summarise(self.ledger["status"])))
        others = self.ledger[self.ledger["status"] != "used"].groupby(["status", "reason"])["source"]
        reasons = others.agg(["first", "size"]).nlargest(MOST_REASONS, "size").itertuples()
        lines += [(status, f"{counted_noun(n, 'file')}, as {path}: {why}") for (status, why), path, n in reasons]
        return render("logs.html.j2", kind=self.kind.name, lines=lines)

    def show(self, run_id: str = "", *, mask: bool = True) -> Transcript:
        """Return what a run did, turn by turn; the beginning of its id is enough, and of a single run it is not needed.

        Credentials of known forms are masked. SourceError if there is no such run, or several, or one of its files
        can't be read.
        """
        ids = self.runs["run_id"]
        if ids.empty:
            raise SourceError(f"{self.source}: no run was found: see the ledger for what was")
        found = self.runs[ids == run_id] if (ids == run_id).any() else self.runs[ids.str.startswith(run_id)]
        if len(found) != 1:
            several = f"{len(found):,} runs begin with {run_id!r}" if run_id else f"which of {len(found):,} runs?"
            what = f"no run {run_id!r}" if found.empty else several
            raise SourceError(f"{self.source}: {what}; `evalkit show {self.source} --list all` lists them")
        run = {str(name): value for name, value in found.iloc[0].items()}
        with storage(self.storage_options):
            files = self.kind.run_files(self, run)
            made = transcript_of(self.kind, files, mask=mask)
        facts = [f"{name} {text}" for name, text in run_facts(self.kind, run, files)]
        return made._replace(facts=[*(map(masked, facts) if mask else facts), *made.facts])


def collect(
    kind: LogKind,
    source: Source,
    output: str | os.PathLike,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Progress = None,
) -> Changes:
    """Collect logs into a dataset, which `load` accepts in place of their folder, or update it.

    `output` is a folder or a URL. A dataset keeps to its pattern, depth and sources: more of these may be added later,
    but none left out. `progress` is called with the numbers of files read and to be read. SourceError if the source
    does not exist or is empty now, `output` holds other files or lies in the source, it was collected from other
    sources or with another pattern, or another process is updating it.
    """
    named, path = list(map(anchored, source_names(source))), anchored(output).rstrip("/")
    if not named or not path:
        raise SourceError("no path was given")
    with storage(storage_options):
        _check_place(path, named)
        about: dict[str, Any] = {
            "kind": kind.name,
            "code": code_version(kind.parse.__module__),
            "sources": named,
            "pattern": pattern or kind.files.pattern,
            "recursive": recursive,
        }
        store = RecordStore(path, kind.records)
        with exclusive(path) as alone:
            if not alone:
                raise SourceError(f"{path}: another process is collecting into it")
            if manifest := read_manifest(path):
                before = manifest.about
                same = {**about, "code": before.get("code"), "sources": before.get("sources", [])}
                if not (same.items() <= before.items() and set(same["sources"]) <= set(named)):
                    how = "".join(f", {name} {before.get(name)}" for name in ("pattern", "recursive"))
                    raise StoreError(
                        f"{path}: was collected from {before.get('kind')} logs in {', '.join(same['sources'])}{how}; "
                        "keep to that (more sources may be added), or take a new dataset"
                    )
                store.read()
            known = store.known()
            listing = list_logs(kind, named, about["pattern"], recursive=recursive, known=known)
            if known.files and not listing.files:
                raise SourceError(f"{path}: none of its files is there any more; remove it, if that is meant")
            about["root"] = absolute(listing.root)
            if manifest is None:
                store.commit(complete=False, **about)  # first: parts without a manifest belong to something else
            elif store.about.get("code") != about["code"]:  # files may be parsed differently now
                store.clear()
                known = store.known()
            return update(store, kind, listing, known=known, jobs=jobs, progress=progress, about=about)


def _check_place(path: str, named: Sequence[str]) -> None:
    """Raise SourceError for a place where no dataset can be, before anything is written there."""
    check_path(path)
    if protocol_of(path) in ("zip", "tar"):
        raise SourceError(f"{path}: a dataset can't be written into an archive; name a folder")
    if datasets := list(filter(read_manifest, named)):
        raise SourceError(f"{datasets[0]}: is a dataset itself; collect from the logs")
    place = path if is_url(path) else os.path.realpath(path)
    for source in (one for name in named for one in expand(name)[1]):
        above = source if is_url(source) else os.path.realpath(source)
        if f"{place}/".startswith(f"{above.rstrip('/')}/"):
            raise SourceError(f"{path}: a dataset can't lie in its own source")
    if read_manifest(path):
        return
    try:
        files = list_source(path).files
    except SourceError:
        return  # it does not exist yet
    if files:
        raise SourceError(f"{path}: holds other files than a dataset, such as {os.path.basename(files[0])}")
