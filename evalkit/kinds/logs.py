"""Load a source into frames, for every kind of logs, from a folder, a dataset, a growing folder or a bucket."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from evalkit._names import nearest
from evalkit.io.columns import LEDGER, Entry
from evalkit.io.frames import frame_of, ledger_frame
from evalkit.io.paths import SourceError, StorageOptions, absolute, storage, storage_options
from evalkit.io.records import RecordStore, list_again
from evalkit.io.sources import Listing, Source, source_names
from evalkit.io.text import plain
from evalkit.io.versions import code_version
from evalkit.kinds.detection import kind_of_source, nothing_used
from evalkit.kinds.models import rename_models, renames_of
from evalkit.kinds.registry import Assembled, LogKind, Records, kind_named
from evalkit.kinds.runs import as_frame, flag_cut_names
from evalkit.kinds.where import COMMON, select_where, with_clusters

if TYPE_CHECKING:
    import pandas as pd
from evalkit.kinds.stores import cached_records, dataset_records, open_dataset, updated_records


class Logs:
    """What `load` returns: frames by name, the first with one row per run, and the ledger of files.

    Some kinds have further frames, which are built on first access; `dir` lists them, too.

    Attributes
    ----------
    kind : LogKind
    source : str
        The source, as given.
    ledger : DataFrame
        One row per file that was seen: source, status, reason.
    storage_options : mapping, optional
        Options with which files behind URLs were read.
    """

    def __init__(
        self,
        kind: LogKind,
        source: str,
        assembled: Assembled,
        ledger: "pd.DataFrame",
        storage_options: StorageOptions = None,
    ) -> None:
        self.kind, self.source, self.ledger = kind, source, ledger
        self._frames, self._more = dict(assembled.frames), dict(assembled.more)
        self._lazy, self.storage_options = dict(assembled.lazy), storage_options

    @property
    def runs(self) -> "pd.DataFrame":
        """The frame with one row per run."""
        return self._frames[self.kind.runs]

    def __getattr__(self, name: str) -> Any:
        for named in (self.__dict__.get("_frames", {}), self.__dict__.get("_more", {})):
            if name in named:
                return named[name]
        if make := self.__dict__.get("_lazy", {}).get(name):
            with storage(self.storage_options):
                self._more[name] = make()
            return self._more[name]
        names = dir(self) if "_frames" in self.__dict__ else ()  # none while it is being copied
        raise AttributeError(f"{name!r}: these logs have {', '.join(sorted(names))}")

    def __dir__(self) -> list[str]:
        return list(dict.fromkeys(["kind", "ledger", "runs", "source", *self._frames, *self._more, *self._lazy]))

    def __iter__(self) -> "Iterator[pd.DataFrame]":
        """Return the frames in order, then the ledger: ``episodes, events, achievements, ledger = load(…)``."""
        return iter([*self._frames.values(), self.ledger])

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(table)} {name}" for name, table in self._frames.items())
        statuses = self.ledger["status"].value_counts()
        files = ", ".join(f"{statuses.get(status, 0)} {status}" for status in ("used", "skipped", "failed"))
        return f"<{self.kind.name} logs from {self.source}: {counts}; {len(self.ledger)} files: {files}>"

    def _repr_html_(self) -> str:
        """Return a small table of what was loaded, for notebooks: each frame by name, and the files."""
        statuses = self.ledger["status"].value_counts()
        files = ", ".join(f"{statuses.get(status, 0):,} {status}" for status in ("used", "skipped", "failed"))
        frames = {name: f"{len(table):,} rows, {table.shape[1]} columns" for name, table in self._frames.items()}
        cells = {"source": self.source, **frames, "ledger": f"{len(self.ledger):,} files: {files}"}
        left = ' style="text-align:left"'
        rows = "".join(
            f'<tr><th scope="row"{left}>{escape(plain(name))}</th><td{left}>{escape(plain(text))}</td></tr>'
            for name, text in cells.items()
        )
        return f"<table><caption{left}>{escape(self.kind.name)} logs</caption><tbody>{rows}</tbody></table>"


def load_source(
    source: Source,
    kind: str = "",
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    **options: Any,
) -> Logs:
    """Read the logs of a source of any kind: ``evalkit.load("path/to/logs")``.

    Parameters
    ----------
    source : str, path, or several of them
    kind : str
        Such as ``mindcraft``; by default that of most files by their content, with a warning that names the others.
    pattern, recursive, jobs, storage_options
        As for the functions of each kind.
    **options
        Of the kind, such as ``tasks`` of Mindcraft; of every kind ``rename``, a list of ``"OLD=NEW"`` or a mapping of
        models' names, ``model``, the model of runs whose logs name none, ``where``, conditions such as
        ``"max_turns>=20"`` on columns of the runs to load, and ``cluster``, the column that stands for the task.

    Returns
    -------
    Logs

    Raises
    ------
    SourceError
        If a source is missing or holds no logs, and for options that the kind does not have.
    """
    chosen = kind_named(kind) if kind else kind_of_source(source)
    known = [option.name for option in (*chosen.options, *COMMON)]
    if unknown := [name for name in options if name not in known]:
        raise SourceError(f"{chosen.name} logs have no option {unknown[0]!r}; {nearest(unknown[0], known)}")
    return load(
        chosen, source, options, pattern=pattern, recursive=recursive, jobs=jobs, storage_options=storage_options
    )


def load(
    kind: LogKind,
    source: Source,
    options: Mapping[str, Any],
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> Logs:
    """Load the logs of a source; unchanged files are taken from the store.

    Parameters
    ----------
    kind : LogKind
    source : str, path, or several of them
        See `evalkit.io.list_source`; also a dataset of `collect`.
    options : mapping
        Of `kind`; also ``rename``, ``model``, ``where`` and ``cluster``.
    pattern : str
        Glob for file names; by default that of the kind.
    recursive : bool
        Whether to read the folders below, too.
    jobs : int, optional
        As for `evalkit.io.parse_files`.
    storage_options : mapping, optional
        Options for the file systems behind URLs, passed to fsspec.

    Returns
    -------
    Logs

    Raises
    ------
    SourceError
        If the source does not exist, or no file in it could be used.
    """
    with storage(storage_options):
        options = kind.prepare(options)
    records = read_records(
        kind, source, pattern=pattern, recursive=recursive, jobs=jobs, storage_options=storage_options
    )
    if not is_usable(records):
        with storage(storage_options):
            entries, asked = entries_of(records), pattern or kind.files.pattern
            raise nothing_used(_names(source), entries, kind.title, asked, recursive=recursive)
    return assemble(kind, records, options, ", ".join(_names(source)), storage_options)


def read_records(
    kind: LogKind,
    source: Source,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> Records:
    """Return the records of a source, or of a dataset in its place; parameters as for `load`.

    Raises
    ------
    SourceError
        If the source does not exist. If none of its files can be used, there are no rows.
    """
    named = _names(source)
    with storage(storage_options):
        dataset = open_dataset(kind, named)
        if dataset is not None:
            return dataset_records(dataset, kind, pattern, recursive=recursive)
        return _current_records(kind, named, pattern or kind.files.pattern, recursive=recursive, jobs=jobs)


def fresh_records(
    kind: LogKind, source: Source, *, pattern: str = "", recursive: bool = True, jobs: int | None = None
) -> Records:
    """Read the records of a source without storing them."""
    list_known = partial(list_again, source=_names(source), pattern=pattern or kind.files.pattern, recursive=recursive)
    return updated_records(RecordStore("", kind.records), kind, list_known, jobs, {})


def is_usable(records: Records) -> bool:
    """Return whether any used file has a row in the first table of records; other files only describe logs."""
    import pyarrow.compute as pc

    used = records.files["source"].filter(pc.equal(records.files["status"], "used"))
    first = next(iter(records.tables.values()))
    return pc.any(pc.is_in(first["source"], used.combine_chunks())).as_py() or False


def no_records(kind: LogKind) -> Records:
    """Return empty records."""
    store = RecordStore("", kind.records)
    return Records({name: store.table(name) for name in kind.records}, store.table("files"), Listing("", [], {}, {}))


def entries_of(records: Records) -> list[Entry]:
    """Return the ledger of records: the files of the source, as they were parsed."""
    columns = (records.files[name].to_pylist() for name in (*Entry._fields, "context"))
    return [Entry(*row[:-1]) for row in zip(*columns, strict=True) if not row[-1]]


def assemble(
    kind: LogKind,
    records: Records,
    options: Mapping[str, Any],
    source: str,
    storage_options: StorageOptions = None,
) -> Logs:
    """Build the frames of records, and the ledger; the options of a dataset are the defaults."""
    defaults = {option.name: option.default for option in kind.options}
    given = {name: value for name, value in options.items() if (value or None) != (defaults.get(name) or None)}
    options = {**defaults, **records.options, **given}
    renames = renames_of(options.pop("rename", ()), options.pop("model", ""))
    where, cluster = options.pop("where", ()), options.pop("cluster", "")
    models = options.pop("models", ()) if renames else ()  # as they are called then
    assembled = kind.assemble(records, options) if kind.assemble else assemble_as_recorded(kind, records)
    if renames:
        assembled = rename_models(assembled, renames, models)
    runs = flag_cut_names(assembled.frames[kind.runs], kind.tables[kind.runs])
    runs = runs.assign(success_rate=runs["is_successful"].astype("Float64").astype("float64"))
    assembled = assembled._replace(frames={**assembled.frames, kind.runs: runs})
    if cluster:
        assembled = with_clusters(assembled, kind, cluster)
    if where:
        assembled = select_where(assembled, kind, where)
    return Logs(kind, source, assembled, _ledger(records, assembled.notes), storage_options)


def _ledger(records: Records, notes: Sequence[Entry]) -> "pd.DataFrame":
    """Build the ledger of records; notes replace the entries of their files."""
    import pyarrow.compute as pc

    if not notes:
        files = records.files.filter(pc.invert(records.files["context"]))
        return frame_of({name: files[name] for name in Entry._fields}, LEDGER)
    entries = {entry.source: entry for entry in (*entries_of(records), *notes)}
    return ledger_frame(entries.values())


def _names(source: Source) -> list[str]:
    if not (named := source_names(source)):
        raise SourceError("no path was given (the path is empty)")
    return named


def _current_records(kind: LogKind, named: list[str], pattern: str, *, recursive: bool, jobs: int | None) -> Records:
    asked = [kind.name, [absolute(name) for name in named], pattern, recursive, dict(storage_options())]
    about = {"kind": kind.name, "code": code_version(kind.parse.__module__)}
    list_known = partial(list_again, source=named, pattern=pattern, recursive=recursive)
    return cached_records(kind, asked, list_known, about, jobs=jobs)


def assemble_as_recorded(kind: LogKind, records: Records) -> Assembled:
    """Build frames from the tables of records of the same names."""
    return Assembled({name: as_frame(kind, name, records.tables[name]) for name in kind.tables})
