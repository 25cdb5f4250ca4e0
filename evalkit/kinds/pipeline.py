"""Load the logs of any kind: from the files of a source to frames.

    list ─► read what changed ─► parse ─► store ─► assemble
    files   bytes                rows     records  frames

`evalkit.kinds.reading` contains the steps up to the store, `evalkit.kinds.dataset` keeps a store under a name, and
`evalkit.display.follow` repeats the steps while files are being written.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, overload

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._notes import NO_NOTES, Notes, note
from evalkit._text import as_list, did_you_mean
from evalkit._version import code_version
from evalkit.io.frames import COLUMN_ERRORS, LEDGER, SOURCE, Entry, arrow_table, column_of, frame_of, paused_gc
from evalkit.io.paths import SourceError, StorageOptions, absolute, storage, storage_options
from evalkit.io.sources import Listing, Source, list_source, resolve, source_names
from evalkit.io.store import FILES, StoreError, cached_store, collected_from, read_manifest
from evalkit.kinds.dataset import dataset_records
from evalkit.kinds.detection import kind_of_source, nothing_used
from evalkit.kinds.ids import run_ids
from evalkit.kinds.keywords import KindOptions
from evalkit.kinds.kind import RUN_COLUMNS, Assembled, LogKind, Records
from evalkit.kinds.logs import Logs
from evalkit.kinds.names import TABLE_KIND
from evalkit.kinds.reading import list_logs, records_of, tables_of, update
from evalkit.kinds.registry import kind_named, remember
from evalkit.kinds.runs import UNKNOWN
from evalkit.kinds.selection import columns_of, name_by_source, rename_models, renames_of, select_runs, when_named
from evalkit.kinds.units import compare_units

_COMMON = [column.name for column in RUN_COLUMNS]


@overload
def load(
    source: Source,
    kind: str = "",
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    **options: Unpack[KindOptions],
) -> Logs: ...


@overload
def load(
    source: Source,
    kind: LogKind,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    **options: Any,  # only the kind knows its options
) -> Logs: ...


def load(
    source: Source,
    kind: str | LogKind = "",
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    **options: Any,
) -> Logs:
    """Read the logs of a source of any kind; unchanged files come from the store.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs such as ``runs/exp_*``, ``samples:NAME``, URLs that fsspec knows, archives, or a dataset
        of `collect`.
    kind : str or LogKind
        Kind of log, such as ``mindcraft``; by default the kind of most files, with a warning that names other kinds.
    pattern : str
        Glob for the names of files in folders; by default the pattern of the kind.
    recursive : bool
        Whether to read subfolders.
    jobs : int, optional
        Number of processes that read files; -1 for all cores. By default, many files are read on all cores if the
        system can fork processes.
    storage_options : mapping, optional
        Options for remote file systems, passed to fsspec.
    **options : Any
        Options of the kind, such as ``tasks`` of Mindcraft, and options of every kind: ``rename`` (a list of
        ``"OLD=NEW"`` or a mapping), ``model`` (the model of runs whose logs do not name one), ``where`` (conditions on
        columns, such as ``"max_turns>=20"``), ``compare_by`` (columns to compare by, such as ``"agent,model_name"``; by
        default the model, with the agent if agents differ, and with the folder if several folders have runs of the same
        models on the same tasks) and ``cluster`` (column with the family of a task).
        Empty options of other kinds are ignored.

    Returns
    -------
    Logs
        The frames of the kind, such as ``runs``, and the frame ``ledger`` with one row per input file.

    Raises
    ------
    SourceError
        If a source is missing or contains no logs, or if the kind has no option of a given name.

    Examples
    --------
    >>> len(evalkit.load("samples:mindcraft/runs").runs)
    133
    """
    if isinstance(kind, str):
        kind = kind_named(kind) if kind else kind_of_source(source)
    for name in list(options):
        if name in kind.defaults or name in kind.settings:
            continue
        if options.pop(name) not in ("", [], ()):  # notebooks for all kinds pass the options of other kinds empty
            raise SourceError(f"{kind.name} logs have no option {name!r}; {did_you_mean(name, kind.defaults)}")
    named = source_names(source)
    with storage(storage_options), paused_gc():
        prepared = prepare(kind, named, options)
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


def prepare(kind: LogKind, sources: Sequence[str], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check options and load the files that they name. Some options default to a certain folder inside the sources.

    If that folder contains none of the expected files, it is ignored: a source may use the name for something else.
    """
    found = dict[str, list[str]]()
    for option in kind.options:
        if option.within and not options.get(option.name):
            roots = [root for source in sources for root in collected_from(source) or [source]]
            found[option.name] = [folder for root in roots if (folder := _folder_in(root, option.within))]
    try:
        return kind.prepare({**options, **found})
    except SourceError:
        if not any(found.values()):
            raise
        return kind.prepare(options)


def _folder_in(source: str, name: str) -> str:
    """Return the path of the folder `name` in a source; "" if it does not exist or has no files."""
    try:
        folder = f"{resolve(source).rstrip('/')}/{name}"
        return folder if list_source(folder).files else ""
    except (SourceError, OSError):
        return ""


def read_records(
    kind: LogKind,
    source: Source,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    keep: bool = True,
) -> Records:
    """Return the records of a source or dataset. With `keep`, the records are stored in the user's cache.

    Raises SourceError if the source does not exist. The records have no rows if no file can be used.
    """
    named = source_names(source)
    if not named:
        raise SourceError("no path was given (the path is empty)")
    for name in named:
        if manifest := read_manifest(name):
            if len(named) > 1:
                raise SourceError(f"{name}: a dataset can't be loaded together with other sources")
            return dataset_records(kind, name, manifest, pattern, recursive=recursive)
    pattern = pattern or kind.files.pattern
    key = [kind.name, list(map(absolute, named)), pattern, recursive, dict(storage_options())] if keep else []
    about = {"kind": kind.name, "code": code_version(kind.parse.__module__)}
    with cached_store(key, kind.records) as store:
        try:
            if store.read() and store.about.get("code") != about["code"]:
                store.clear()
        except StoreError:  # the store is damaged
            store.clear()
        known = store.known()
        listing = list_logs(kind, named, pattern, recursive=recursive, known=known)
        update(store, kind, listing, known=known, jobs=jobs, about=about)
    return records_of(store, listing)


def assemble(
    kind: LogKind,
    records: Records,
    options: Mapping[str, Any],
    sources: Sequence[str],
    storage_options: StorageOptions = None,
) -> Logs:
    """Build the frames and the ledger from records."""
    remember(kind)  # functions find the kind of a frame of runs by its name
    options = {**kind.defaults, **options}
    rename, model, where, cluster = map(options.pop, ("rename", "model", "where", "cluster"))
    compare_by = options.pop("compare_by")
    assembled = kind.assemble(records, options) if kind.assemble else as_recorded(kind, records)
    assembled = complete(kind, records, assembled)
    renames = renames_of(rename, model)
    paths = records.listing.paths  # none in a dataset
    named = sources if paths else collected_from(sources[0]) or sources
    assembled = name_by_source(assembled, kind, named, renames, compare_by, paths)
    if renames:
        assembled = rename_models(assembled, renames)
    runs = assembled.frames[kind.runs]
    chosen = assembled.chosen
    if model:  # runs without a model name now have one, perhaps in spite of a column of models
        chosen = when_named(chosen)
    elif "source" in columns_of(compare_by):
        chosen = when_named(chosen, agents="the file")
    elif len(runs) and "no_model" not in chosen and runs["model_name"].fillna(UNKNOWN).eq(UNKNOWN).all():
        chosen += note("unnamed")
    assembled = assembled._replace(chosen=chosen)
    if where or cluster:
        assembled = select_runs(assembled, kind, where, cluster)
    if where:
        chosen = assembled.chosen + note("filter", where=as_list(where)) + _unit_of_others(assembled.frames[kind.runs])
        assembled = assembled._replace(chosen=chosen)
    assembled = compare_units(assembled, kind, compare_by)
    files = records.files.filter(pc.invert(records.files["context"])).select(Entry._fields)
    if assembled.notes:  # these entries replace the entries of the same files
        own = [Entry(**row) for row in files.to_pylist()]
        entries = {entry.source: entry for entry in (*own, *assembled.notes)}
        files = arrow_table(list(zip(*entries.values(), strict=True)), LEDGER)
    ledger = frame_of(files, LEDGER)
    logs_class = kind.logs or Logs
    return logs_class(kind, sources, assembled, ledger, storage_options)


def _unit_of_others(runs: pd.DataFrame) -> Notes:
    """Note that the scores of these runs look like outcomes or shares, but the scores of excluded runs do not."""
    scores = runs["score"].dropna()
    if scores.empty or runs["is_successful"].notna().any() or "is_share" not in runs:
        return NO_NOTES
    are_alike = scores.isin([0, 1]).all() or (scores.between(0, 1).all() and not runs["is_share"].all())
    return note("amounts") if are_alike else NO_NOTES


def runs_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of a table with one row per run, as `load` does for a file with these rows.

    Named levels of the index become columns. Frames of runs from evalkit are returned unchanged. Raises SourceError if
    the table does not contain runs.
    """
    if {"kind", "run_flags"} <= set(table) and "counts_as" not in table:
        return table
    kind, name = kind_named(TABLE_KIND), "table"
    table = table.reset_index([name for name in table.index.names if name not in (None, *table)])
    rows = table.astype("object").where(table.notna(), None).to_dict("records")
    data = msgspec.json.Encoder(enc_hook=_as_json).encode_lines(rows) or b"[]"
    parsed = kind.parse(f"{name}.jsonl", data)
    if parsed.status != "used":
        raise SourceError(f"no table of runs: {parsed.reason}")
    file = {"source": name, "size": len(data), "context": False, "status": "used", "reason": parsed.reason}
    files = pa.Table.from_pylist([file], arrow_table((), FILES).schema)
    records = Records(tables_of(kind.records, {name: parsed.rows}), files, Listing(name, [name], {}, {}))
    logs = assemble(kind, records, {}, [name])
    for doubt in logs.chosen.only("no_model", "told_apart", "table").notes:
        warnings.warn(str(doubt), stacklevel=3)
    return logs.runs


def _as_json(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def as_recorded(kind: LogKind, records: Records) -> Assembled:
    """Build each frame from the columns of the table of records with the same name."""
    frames = {}
    for name, columns in kind.tables.items():
        declared = {column.name for column in columns}
        recorded = [column for column in (SOURCE, *kind.records[name]) if column.name in declared]
        frames[name] = frame_of(records.tables[name], recorded)
    return Assembled(frames)


def complete(kind: LogKind, records: Records, assembled: Assembled) -> Assembled:
    """Give the frames of a kind the columns that it declares, in their order and with their types.

    In the first frame, common columns may be absent. Ids are then made from `source` and the position of the run among
    the runs of its source, the model is unknown, there are no flags, and other values are missing. Raises SourceError
    if a frame or another column is absent, or if a value does not fit its column.
    """
    if not isinstance(assembled, Assembled):
        raise SourceError(f"kind {kind.name}: assemble returned {type(assembled).__name__}, not Assembled")
    frames = dict(assembled.frames)
    for name, columns in kind.tables.items():
        if name not in frames:
            raise SourceError(f"kind {kind.name}: assemble returned no frame {name!r}; {did_you_mean(name, frames)}")
        frame = frames[name]
        where = f"kind {kind.name}: frame {name!r}"
        values: dict[Any, Any] = dict(frame.items())
        if name == kind.runs and "source" in values:
            if "run_id" not in values:
                sources = frame["source"].tolist()
                repetitions = pd.Series(sources, dtype="str").groupby(sources).cumcount()  # number within the source
                values["run_id"] = run_ids(kind.name, sources, repetitions, records=records)
            values.setdefault("model_name", [UNKNOWN] * len(frame))
            values = dict.fromkeys(_COMMON, [None] * len(frame)) | values
        needed = (SOURCE, *columns) if name == kind.runs else columns  # without sources, there are no ids
        for column in needed:
            if column.name not in values:
                suggestion = did_you_mean(column.name, frame)
                raise SourceError(f"{where}: assemble left out column {column.name!r}; {suggestion}")
        arrays = dict[str, Any]()
        for column in columns:
            try:
                arrays[column.name] = column_of(values.pop(column.name), column.dtype)
            except COLUMN_ERRORS as error:
                raise SourceError(f"{where}: column {column.name!r}: {error}") from error
        for other, series in values.items():
            arrays[str(other)] = series.array
        frames[name] = pd.DataFrame(arrays, copy=False)
    runs = frames[kind.runs]
    dtype = pd.CategoricalDtype([kind.name])  # keeps the kind in empty selections
    runs["kind"] = pd.Categorical.from_codes([0] * len(runs), dtype=dtype)
    runs["success_rate"] = runs["is_successful"].to_numpy("float64", na_value=np.nan)
    runs["run_flags"] = [[] if flags is None else flags for flags in runs["run_flags"]]
    return assembled._replace(frames=frames)
