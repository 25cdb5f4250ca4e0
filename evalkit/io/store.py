"""The store of records: the parsed contents of a source's files, so that an unchanged file is never parsed again.

    STORE/evalkit-records.json    what is stored, and the valid file of each table
    STORE/TABLE/000012.parquet    a table

A table that has changed is written whole, into a new file; then the manifest, which makes it valid; then the files that
the manifest no longer names are removed. So an interruption at any point leaves a valid store: the former or the next.
Every table has the column `source`; ``files`` has one row per file, ``folders`` one per folder. Rows are in the order
of the files, as the source lists them.

A store is a dataset, where the user names it, lies in the user's cache, or is in memory only.
"""

import contextlib
import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalkit.io.frames import Column, arrow_schema, arrow_table
from evalkit.io.paths import FileState, LimitError, SourceError, is_url, protocol_of
from evalkit.io.read import read_file
from evalkit.io.sources import FolderState, Listing, list_source, resolve
from evalkit.io.write import LOCK, TEMPORARY, exclusive, remove_files, write_bytes

MANIFEST = "evalkit-records.json"
FORMAT = 4  # of the layout; a dataset of another one has to be collected again
WAIT = 60.0  # seconds to wait for another process that is updating the same store in the cache
KEPT_DAYS, KEPT_BYTES = 30, 2_000_000_000  # of stores in the cache
SOURCE = Column("source", "str", "path of the file")
FILES = (
    SOURCE,
    Column("size", "int", "length", "bytes"),
    Column("modified", "int", "time of the last change of its content", "epoch nanoseconds"),
    Column("changed", "int", "that of its inode; 0 behind a URL, -1: it is read again next time", "epoch nanoseconds"),
    Column("tag", "str", "what else tells its states apart, such as an ETag"),
    Column("context", "bool", "lies above the source, and only tells something of it"),
    Column("status", "str", "used, skipped (not a log of this kind) or failed (a log that can't be read)"),
    Column("reason", "line", "why it was skipped or failed; for a used file, what was recovered, or empty"),
)
FOLDERS = (
    Column("source", "str", "path of a folder that was looked into"),
    Column(
        "modified", "int", "time of the last change of its entries; 0 where it has to be listed anew", "nanoseconds"
    ),
    Column("changed", "int", "time of the last change of its inode", "nanoseconds"),
)
_REMEDY = "remove the dataset and collect it again"
_RETRIES = 5  # attempts to read while another process updates the store
_FILE_NAME = re.compile(r"[0-9]{6,12}\.parquet")
_ENTRY = "records-"  # the folder of a store in the cache, before its digest
_ENTRY_NAME = re.compile(rf"{_ENTRY}[0-9a-f]{{32}}")


class StoreError(SourceError):
    """A store that can't be read."""


class Manifest(NamedTuple):
    """What a store holds."""

    tables: dict[str, tuple[int, int]]  # those with rows: the number of the file, and its checksum (CRC-32)
    about: dict[str, Any]  # what the rows were made from, as plain JSON


def read_manifest(path: str | os.PathLike) -> Manifest | None:
    """Read the manifest of a dataset; None if `path` is something else, StoreError if it can't be read."""
    is_web = protocol_of(os.fspath(path)) in ("http", "https")
    try:
        folder = resolve(path).rstrip("/")
        data = read_file(f"{folder}/{MANIFEST}")
    except (SourceError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if (is_web and not isinstance(error, TimeoutError | LimitError)) or (
            isinstance(error, PermissionError) and is_url(folder)
        ):
            return None  # a web server may answer anything to unknown paths, S3 that they may not be read
        kind = SourceError if is_url(folder) else StoreError  # nothing shows that there is a dataset
        raise kind(f"{folder}: {error.strerror or error}") from None
    try:
        contents = json.loads(data)
        if (version := contents["format"]) != FORMAT:
            raise StoreError(f"{folder}: a dataset of another format ({version}); collect it again into a new folder")
        tables = {name: (int(number), int(checksum)) for name, (number, checksum) in contents["tables"].items()}
        if not all(map(str.isidentifier, tables)):
            raise ValueError("tables that no dataset has")
        return Manifest(tables, dict(contents["about"]))
    except StoreError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if is_web:
            return None
        cause = f"{type(error).__name__}: {error}"
        raise StoreError(f"{folder}/{MANIFEST}: not the manifest of a dataset ({cause})") from error


def collected_from(path: str) -> list[str]:
    """Return the sources that a local dataset was collected from; none for anything else."""
    manifest = read_manifest(path) if os.path.isdir(path) else None
    return list(map(str, manifest.about.get("sources", ()))) if manifest else []


def dataset_files(path: str) -> tuple[str, list[str]] | None:
    """Return the root that a dataset was collected from, and the paths of its tables, but for that of the folders.

    None if `path` is something else.
    """
    manifest = read_manifest(path)
    if manifest is None:
        return None
    folder = resolve(path).rstrip("/")
    tables = [_file_of(folder, name, number) for name, (number, _) in manifest.tables.items() if name != "folders"]
    return manifest.about["root"], tables


def _file_of(store: str, table: str, number: int) -> str:
    return f"{store}/{table}/{number:06d}.parquet"


class RecordStore:
    """Tables of records that are updated file by file; in memory only if `path`, a folder or URL, is empty.

    `columns` are those of each table of records; ``files`` and ``folders`` are added. With `durable`, commits survive a
    power failure. `tables` are by name; `about` says what the rows were made from.
    """

    def __init__(self, path: str, columns: Mapping[str, Sequence[Column]], *, durable: bool = False) -> None:
        self.path, self.durable = path, durable
        self._schemas = {"files": arrow_schema(FILES), "folders": arrow_schema(FOLDERS)}
        for name, own in columns.items():
            self._schemas[name] = arrow_schema((SOURCE, *own))
        self._written: dict[str, tuple[int, int]] = {}  # as in the manifest
        self.clear()

    def clear(self) -> None:
        """Drop all rows; they are gone once this is committed."""
        self.about: dict[str, Any] = {}
        self._dropped: list[pa.Array] = []  # sources of rows that are not arranged yet, and new rows
        self._added: dict[str, list[pa.Table]] = {}
        self.tables = {name: schema.empty_table() for name, schema in self._schemas.items()}
        self._changed = set(self._written)  # the tables that have to be written

    def read(self) -> bool:
        """Read all tables of one state, even while another process updates the store; False if there is none.

        StoreError for a store that is damaged, or has other tables.
        """
        manifest = read_manifest(self.path) if self.path else None
        for _ in range(_RETRIES):
            if manifest is None:
                return False
            self._written = manifest.tables
            self.clear()
            try:
                for name, (number, checksum) in manifest.tables.items():
                    self.tables[name] = self._read_table(name, number, checksum)
            except StoreError:
                before, manifest = manifest, read_manifest(self.path)
                if manifest == before:
                    raise
            else:
                self._changed.clear()
                self.about = manifest.about
                return True
        raise StoreError(f"{self.path}: other processes write to it again and again")

    def _read_table(self, name: str, number: int, checksum: int) -> pa.Table:
        path = _file_of(self.path, name, number)
        if name not in self._schemas:
            raise StoreError(f"{self.path}: holds tables that these logs do not have; {_REMEDY}")
        try:
            data = read_file(path, limited=False)  # its size grows with the number of logs
            if zlib.crc32(data) != checksum:  # before decoding any of it
                raise StoreError(f"{path}: damaged ({len(data)} bytes, of another checksum); {_REMEDY}")
            schema = self._schemas[name]
            return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).select(schema.names).cast(schema)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise StoreError(f"{path}: can't be read ({type(error).__name__}: {error}); {_REMEDY}") from error

    def known(self) -> Listing:
        """Return the files and folders as they were when they were read, with the states of all files."""
        files, folders = self.tables["files"], self.tables["folders"]
        paths = files["source"].to_pylist()
        values = [files[name].to_numpy().tolist() for name in ("size", "modified", "changed")]
        states = dict(zip(paths, map(FileState, *values, files["tag"].to_pylist()), strict=True))
        above = set(files["source"].filter(files["context"]).to_pylist())
        changes = [folders[name].to_numpy().tolist() for name in FolderState._fields]
        known_folders = dict(zip(folders["source"].to_pylist(), map(FolderState, *changes), strict=True))
        return Listing("", [path for path in paths if path not in above], known_folders, states)

    def put(self, tables: Mapping[str, pa.Table]) -> None:
        """Replace all rows of the files in the table ``files`` of some tables by these, once arranged or committed."""
        self._dropped.append(tables["files"]["source"].combine_chunks())
        for name, rows in tables.items():
            self._added.setdefault(name, []).append(rows)

    def drop(self, files: Iterable[str]) -> None:
        """Drop all rows of some files, once arranged or committed."""
        self._dropped.append(pa.array(list(files), pa.large_string()))

    def arrange(self, order: Iterable[str] | None = None) -> None:
        """Drop and add rows, and bring all into the order of the files, if it is given."""
        gone = pa.concat_arrays(self._dropped) if self._dropped else ()
        tables = {name: table for name, table in self.tables.items() if name != "folders"}
        for name, table in tables.items():
            kept = table.filter(pc.invert(pc.is_in(table["source"], gone))) if len(gone) else table
            tables[name] = pa.concat_tables([kept, *self._added.get(name, ())]).combine_chunks()
            if len(kept) < len(table) or len(tables[name]) > len(kept):
                self._changed.add(name)
        self._dropped.clear()
        self._added.clear()
        names = None if order is None else pa.array(list(order), pa.large_string())
        if names and not tables["files"]["source"].combine_chunks().equals(names):
            for name, table in tables.items():
                places = pc.index_in(table["source"], names)
                tables[name] = table.take(np.argsort(places.to_numpy(), kind="stable"))
                self._changed.add(name)
        self.tables |= tables

    def set_folders(self, folders: Mapping[str, FolderState]) -> None:
        """Replace the folders."""
        rows = [(path, *state) for path, state in folders.items()]
        self.tables["folders"] = arrow_table(rows, FOLDERS)
        self._changed.add("folders")

    def commit(self, **about: Any) -> None:
        """Write the tables that have changed, then the manifest, then remove the files that are no longer valid.

        If they can't be written, the former state stays; SourceError if it is to be durable.
        """
        self.arrange()
        if not self._changed and self.about == {**self.about, **about}:
            return
        self.about |= about
        if not self.path:
            return
        number = 1 + max((number for number, _ in self._written.values()), default=0)
        tables, new = dict(self._written), list[str]()
        try:
            for name in sorted(self._changed):
                tables.pop(name, None)
                if len(self.tables.get(name, ())):  # a damaged manifest may name other tables
                    sink = pa.BufferOutputStream()
                    pq.write_table(self.tables[name], sink)
                    data = sink.getvalue()
                    new.append(_file_of(self.path, name, number))
                    write_bytes(data, new[-1], durable=self.durable)
                    tables[name] = number, zlib.crc32(data)
            manifest = {"format": FORMAT, "tables": tables, "about": self.about}
            text = json.dumps(manifest, default=str, sort_keys=True)
            new.clear()  # if the manifest can't be written, it may still be there, so the files of both states stay
            write_bytes(f"{text}\n".encode(), f"{self.path}/{MANIFEST}", durable=self.durable)
        except SourceError:  # such as a full disk, which needs the room
            remove_files(new)
            if self.durable:
                raise
            return  # a cache only saves time
        self._written = tables
        self._changed.clear()
        valid = {_file_of(self.path, name, number) for name, (number, _) in tables.items()}
        remove_files(path for path in self._own_files(self._schemas) if path not in valid)

    def remove(self) -> None:
        """Remove a local store from the disk; other files in its folder stay."""
        folders = [entry.path for entry in os.scandir(self.path) if entry.is_dir(follow_symlinks=False)]
        own = self._own_files(map(os.path.basename, folders))
        remove_files([f"{self.path}/{MANIFEST}", *own, f"{self.path}/{LOCK}"])
        for folder in (*folders, self.path):
            with contextlib.suppress(OSError):  # it holds other files
                os.rmdir(folder)

    def _own_files(self, tables: Iterable[str]) -> Iterator[str]:
        """Yield the files of tables that evalkit has written, valid or not, and temporary ones; no others."""
        for folder in (f"{self.path}/{name}" for name in tables):
            names: list[str] = []
            if is_url(folder):
                with contextlib.suppress(SourceError):
                    files = list_source(folder, "*.parquet", recursive=False).files
                    names = list(map(os.path.basename, files))  # the listing may spell the URL itself differently
            elif os.path.isdir(folder) and not os.path.islink(folder):
                names = os.listdir(folder)
            yield from (
                f"{folder}/{name}" for name in names if _FILE_NAME.fullmatch(name) or name.startswith(TEMPORARY)
            )
        if not is_url(self.path):  # what a killed process has left beside the manifest
            yield from (f"{self.path}/{name}" for name in os.listdir(self.path) if name.startswith(TEMPORARY))


@contextlib.contextmanager
def cached_store(key: Sequence[Any], columns: Mapping[str, Sequence[Column]]) -> Iterator[RecordStore]:
    """Give the store in the user's cache for a key, plain JSON; no other process uses it meanwhile.

    If there is no key, the cache is off or can't be used, or another process has the store for too long, it is one in
    memory.
    """
    store, folder = RecordStore("", columns), os.environ.get("EVALKIT_CACHE", "")
    with contextlib.ExitStack() as held:
        if key and folder.lower() != "off":
            root = Path(folder or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "evalkit").expanduser()
            text = json.dumps(key, default=str).encode(errors="surrogatepass")
            path = str(root / f"{_ENTRY}{hashlib.blake2b(text, digest_size=16).hexdigest()}")
            with contextlib.suppress(SourceError, OSError):
                if not os.path.exists(path):
                    tidy_cache(root)
                if held.enter_context(exclusive(path, WAIT)):
                    store = RecordStore(path, columns)
        yield store


def tidy_cache(root: Path) -> None:
    """Remove stores unused for long, and the oldest ones if they take too much space; nothing else."""
    now, total, stores = time.time(), 0, list[tuple[float, int, Path]]()
    for path in root.glob(f"{_ENTRY}*"):
        with contextlib.suppress(OSError):  # another process may be removing it
            if _ENTRY_NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                manifest = path / MANIFEST
                status = (manifest if manifest.is_file() else path).stat()  # none if it was interrupted early
                size = sum(file.lstat().st_size for file in path.rglob("*") if file.is_file())
                stores.append((max(status.st_atime, status.st_mtime), size, path))
    for used, size, path in sorted(stores, reverse=True):
        total += size
        if total > KEPT_BYTES or now - used > KEPT_DAYS * 86_400:
            with contextlib.suppress(SourceError, OSError), exclusive(str(path)) as alone:
                if alone:
                    RecordStore(str(path), {}).remove()
