"""The store of records: the parsed contents of a source's files, so that an unchanged file is not parsed again.

    STORE/evalkit-records.json    the manifest: what the store contains, and the current file of each table
    STORE/TABLE/000012.parquet    a table

A commit writes each changed table to a new file, then writes the manifest, which makes the new files valid, and then
removes the files that the manifest no longer names. An interruption at any point leaves a valid store, old or new.
Every table has the column `source`. The table ``files`` has one row per file. Rows are in the order of the files.

A store is either a dataset in a folder that the user chose, or in the user's cache, or in memory only. Its manifest
records the version of the code that parsed the files. If the version changes, the files are parsed again.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalkit.io.frames import LEDGER, SOURCE, Column, arrow_table
from evalkit.io.paths import FileState, SourceError, absolute, is_url, protocol_of
from evalkit.io.read import read_file, read_json
from evalkit.io.sources import Listing, list_source, resolve
from evalkit.io.write import LOCK, exclusive, remove_files, write_bytes

MANIFEST = "evalkit-records.json"
FORMAT = 5  # version of the layout; datasets with another version have to be collected again
WAIT = 60.0  # seconds to wait for another process that is updating the same store in the cache
KEPT = 30 * 86_400  # seconds that an unused store stays in the cache
FILES = (
    SOURCE,
    Column("size", "int", "length", "bytes"),
    Column("modified", "int", "time of the last change", "epoch nanoseconds"),
    Column(
        "changed",
        "int",
        "change time of its inode; 0 behind a URL, -1: it is read again next time",
        "epoch nanoseconds",
    ),
    Column("tag", "str", "further tag of its state, such as an ETag"),
    Column("context", "bool", "is above the source, and only gives information on it"),
    *LEDGER[1:],
)


class FileRow(NamedTuple):
    """A row of the table ``files``, with the fields in the order of `FILES`."""

    source: str
    size: int = 0
    modified: int = 0
    changed: int = 0
    tag: str = ""
    context: bool = False
    status: str = "used"
    reason: str = ""


_REMEDY = "remove the dataset and collect it again"
_FILE_NAME = re.compile(r"[0-9]{6,12}\.parquet")


class StoreError(SourceError):
    """Raised if a store can't be read."""


class Manifest(NamedTuple):
    """The contents of a store."""

    folder: str
    tables: dict[str, tuple[int, int]]  # for each table with rows: number of its file, and checksum (CRC-32)
    about: dict[str, Any]  # kind, version of the code, sources and folders of the rows, as plain JSON

    @property
    def files(self) -> list[str]:
        """Paths of the tables."""
        return [_file_of(self.folder, name, number) for name, (number, _) in self.tables.items()]


def read_manifest(path: str | os.PathLike) -> Manifest | None:
    """Read the manifest of a dataset; None if `path` is not a dataset. Raise StoreError if it can't be read."""
    if protocol_of(os.fspath(path)) in ("http", "https"):
        return None  # web servers may answer anything to unknown paths
    try:
        folder = resolve(path).rstrip("/")
        data = read_file(f"{folder}/{MANIFEST}", limited=False)
    except (SourceError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if is_url(folder) and isinstance(error, PermissionError):
            return None  # S3 denies access to unknown paths
        raise StoreError(f"{folder}: {error.strerror or error}") from None
    try:
        contents = json.loads(data)
        if (found := contents["format"]) != FORMAT:
            raise StoreError(f"{folder}: a dataset of another format ({found}); collect it again into a new folder")
        tables = {name: (int(number), int(checksum)) for name, (number, checksum) in contents["tables"].items()}
        return Manifest(absolute(folder), tables, dict(contents["about"]))
    except StoreError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise StoreError(f"{folder}/{MANIFEST}: not the manifest of a dataset ({cause})") from error


def collected_from(path: str) -> list[str]:
    """Return the sources that a local dataset was collected from; an empty list if `path` is not a dataset."""
    manifest = read_manifest(path) if os.path.isdir(path) else None
    return list(map(str, manifest.about.get("sources", ()))) if manifest else []


def _file_of(store: str, table: str, number: int) -> str:
    return f"{store}/{table}/{number:06d}.parquet"


class RecordStore:
    """Tables of records that are updated file by file, in a folder or URL, or in memory only if `path` is empty.

    `about` records what the rows were made from. If the store is a cache (`is_cache`), failing to write is no error.
    """

    def __init__(self, path: str, columns: Mapping[str, Sequence[Column]], *, is_cache: bool = False) -> None:
        self.path, self.is_cache = path, is_cache
        self._columns = columns
        self._written: dict[str, tuple[int, int]] = {}  # tables of the manifest
        self.clear()

    def clear(self) -> None:
        """Drop all rows. The files change only with the next commit."""
        self.about: dict[str, Any] = {}
        self._added: dict[str, list[pa.Table]] = {}  # new rows that are not yet in `tables`
        self.tables = {"files": arrow_table((), FILES)}
        for name, columns in self._columns.items():
            self.tables[name] = arrow_table((), (SOURCE, *columns))
        self._changed = set(self._written)  # tables that have to be written

    def read(self) -> bool:
        """Read a consistent state of all tables, even during an update by another process; False if there is none."""
        manifest = read_manifest(self.path) if self.path else None
        while manifest:
            self._written = manifest.tables
            try:
                for name, (number, checksum) in manifest.tables.items():
                    self.tables[name] = self._read_table(name, number, checksum)
            except StoreError:
                before, manifest = manifest, read_manifest(self.path)
                if manifest == before:
                    raise
                self.clear()
            else:
                self.about = manifest.about
                return True
        return False

    def _read_table(self, name: str, number: int, checksum: int) -> pa.Table:
        path = _file_of(self.path, name, number)
        if name not in self.tables:
            raise StoreError(f"{self.path}: contains tables that these logs do not have; {_REMEDY}")
        try:
            data = read_file(path, limited=False)  # unlimited, since the size grows with the logs
            if zlib.crc32(data) != checksum:  # checked before decoding
                raise StoreError(f"{path}: damaged ({len(data)} bytes, checksum differs); {_REMEDY}")
            schema = self.tables[name].schema
            table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
            if lacking := sorted(set(schema.names).difference(table.column_names)):
                raise StoreError(f"{path}: from another version of evalkit (no column {lacking[0]}); {_REMEDY}")
            return table.select(schema.names).cast(schema)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise StoreError(f"{path}: can't be read ({type(error).__name__}: {error}); {_REMEDY}") from error

    def known(self) -> Listing:
        """Return the files and folders of the store, with the states that all files had when they were read."""
        files = self.tables["files"]
        paths, *values = map(pa.ChunkedArray.to_pylist, files.select(["source", *FileState._fields]).columns)
        own = files.filter(pc.invert(files["context"]))["source"].to_pylist()
        return Listing("", own, self.about.get("folders", {}), dict(zip(paths, map(FileState, *values), strict=True)))

    def put(self, tables: Mapping[str, pa.Table]) -> None:
        """Replace all rows of the files that `tables["files"]` lists. `arrange` or `commit` carries this out."""
        for name, rows in tables.items():
            self._added.setdefault(name, []).append(rows)

    def arrange(self, order: Iterable[str] = ()) -> None:
        """Replace rows as `put` requested. With an `order` of files, sort rows by it and drop rows of other files."""
        files = pa.concat_tables([self.tables["files"].slice(0, 0), *self._added.get("files", ())])
        gone = files["source"].combine_chunks()  # files whose old rows are replaced
        names, is_ordered = pa.array(list(order), pa.large_string()), True
        for name, table in self.tables.items():  # the table of files is first
            kept = table.filter(pc.invert(pc.is_in(table["source"], gone))) if len(gone) else table
            new = pa.concat_tables([kept, *self._added.get(name, ())]).combine_chunks()
            if name == "files":
                is_ordered = not names or new["source"].combine_chunks().equals(names)
            if not is_ordered:
                places = pc.index_in(new["source"], names)
                new = new.filter(pc.is_valid(places)).take(np.argsort(places.drop_null().to_numpy(), kind="stable"))
            if not new.equals(table):
                self.tables[name] = new
                self._changed.add(name)
        self._added.clear()

    def commit(self, **about: Any) -> None:
        """Write changed tables, then the manifest. Raise SourceError if that fails, unless the store is a cache."""
        if self._added:
            self.arrange()
        about = {**self.about, **about}
        if not (self._changed or about != self.about):
            return
        self.about = about
        if not self.path:
            return
        tables, new = dict(self._written), list[str]()
        number = 1 + max(tables.values(), default=(0, 0))[0]
        try:
            for name in self._changed:
                tables.pop(name, None)
                if len(self.tables.get(name, ())):  # a damaged manifest may name unknown tables
                    sink = pa.BufferOutputStream()
                    pq.write_table(self.tables[name], sink)
                    data = sink.getvalue()
                    new.append(_file_of(self.path, name, number))
                    write_bytes(data, new[-1])
                    tables[name] = number, zlib.crc32(data)
            manifest = {"format": FORMAT, "tables": tables, "about": about}
            new.clear()  # keep the files of both states: a failed write may still have stored the manifest
            write_bytes(f"{json.dumps(manifest, default=str)}\n".encode(), f"{self.path}/{MANIFEST}")
        except SourceError as error:  # for example, the disk is full: free the space
            remove_files(new)
            if not self.is_cache:
                raise
            _warn_once(str(error))
            return
        self._written = tables
        self._changed.clear()
        for name in self.tables:
            valid = f"{tables.get(name, (0, 0))[0]:06d}.parquet"
            with contextlib.suppress(SourceError):
                for path in list_source(f"{self.path}/{name}", recursive=False).files:
                    file = os.path.basename(path)
                    if file != valid and _FILE_NAME.fullmatch(file):
                        remove_files([path])


@cache
def _warn_once(text: str) -> None:
    warnings.warn(f"{text}: continuing without the cache", stacklevel=5)


def cache_folder() -> Path | None:
    """Return the user's private cache folder; None if the cache is off, or (with a warning) can't be written."""
    given = os.environ.get("EVALKIT_CACHE", "")
    if given.lower() == "off":
        return None
    root = Path(given or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "evalkit").expanduser()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFile(dir=root):
            return root
    except OSError as error:
        _warn_once(f"{root}: {error.strerror}")
    return None


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Within a ``with`` block, create files and folders that only the user can read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def read_note(output: Path, name: str) -> Any:
    """Return a note about an output folder, or None. Notes are in the cache, so they are not shared with the folder."""
    path = _note(output, name)
    with contextlib.suppress(OSError, ValueError):
        return read_json(path) if path else None
    return None


def write_note(output: Path, name: str, value: Any) -> None:
    """Store a JSON value as a note about an output folder in the cache, unless the cache is off."""
    if path := _note(output, name):
        with private_files():
            write_bytes(json.dumps(value, default=str).encode(), str(path))


def _note(output: Path, name: str) -> Path | None:
    root, digest = cache_folder(), hashlib.blake2b(os.fsencode(output.resolve()), digest_size=16).hexdigest()
    return root and root / f"reports-{digest}" / f"{name}.json"


@contextlib.contextmanager
def cached_store(key: Sequence[Any], columns: Mapping[str, Sequence[Column]]) -> Iterator[RecordStore]:
    """Yield the store for a JSON key from the user's cache, locked for this process; else a store in memory."""
    store = RecordStore("", columns)
    with contextlib.ExitStack() as held:
        if key and (root := cache_folder()):
            held.enter_context(private_files())
            text = json.dumps(key, default=str).encode(errors="surrogatepass")
            path = root / f"records-{hashlib.blake2b(text, digest_size=16).hexdigest()}"
            with contextlib.suppress(SourceError, OSError):
                if not path.exists():  # before a new store, remove those unused for a month
                    for lock in root.glob(f"records-*/{LOCK}"):
                        if time.time() - lock.stat().st_mtime > KEPT:
                            shutil.rmtree(lock.parent, ignore_errors=True)
                if held.enter_context(exclusive(str(path), WAIT)):
                    os.utime(path / LOCK)
                    path.chmod(0o700)  # earlier versions may have created it with wider permissions
                    store = RecordStore(str(path), columns, is_cache=True)
        yield store
