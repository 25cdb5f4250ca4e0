"""The store of records: the parsed contents of a source's files, so that an unchanged file is never parsed again.

    STORE/evalkit-records.json    what is stored, and the valid parts
    STORE/TABLE/000012.parquet    a part of a table: the rows of some thousand files

A part is never changed. An update writes new parts, then the manifest, which makes them valid, then removes the parts
that the manifest no longer names. So an interruption at any point leaves a valid store: the former or the next.
Every table has the column `source`; the table ``files`` has one row per file, the table ``folders`` one per folder.

A store is a dataset, where the user names it, lies in the user's cache, or is in memory only.
"""

import contextlib
import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalkit.io.frames import Column, arrow_schema, unescaped
from evalkit.io.limits import LimitError
from evalkit.io.paths import SourceError, is_url, protocol_of
from evalkit.io.read import read_file
from evalkit.io.sources import FolderState, list_source, resolve
from evalkit.io.write import LOCK, exclusive, is_temporary, remove_files, write_bytes

MANIFEST = "evalkit-records.json"
FORMAT = 3  # of the layout; a dataset of another one has to be collected again
PART_FILES = 10_000  # most files of one part
WAIT = 60.0  # seconds to wait for another process that is updating the same store in the cache
KEPT_DAYS, KEPT_BYTES = 30, 2_000_000_000  # of stores in the cache
SOURCE = Column("source", "str", "path of the file")
FILES = (
    SOURCE,
    Column("size", "int", "length", "bytes"),
    Column("modified", "int", "time of the last change of its content", "epoch nanoseconds"),
    Column("changed", "int", "time of the last change of its inode; 0 behind a URL", "epoch nanoseconds"),
    Column("tag", "str", "what else tells its states apart, such as an ETag"),
    Column("settled", "bool", "it had been left alone when it was read; one that had not is read again next time"),
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
_PART_NAME = re.compile(r"[0-9]{6,12}\.parquet")
_ENTRY = "records-"  # the folder of a store in the cache, before its digest
_ENTRY_NAME = re.compile(rf"{_ENTRY}[0-9a-f]{{32}}")


class StoreError(SourceError):
    """A store that can't be read."""


class _MissingPartError(StoreError):
    """A part that the manifest names is missing."""


class Part(NamedTuple):
    """The rows of some files: the tables that have any, with the checksum (CRC-32) of each one's Parquet file."""

    number: int
    tables: dict[str, int]

    def path(self, store: str, table: str) -> str:
        """Return the path of one of its tables."""
        return f"{store}/{table}/{self.number:06d}.parquet"


class Manifest(NamedTuple):
    """What a store holds."""

    parts: list[Part]
    number: int  # of the latest part: none is ever used again
    about: dict[str, Any]  # what the rows were made from, as plain JSON


class Known(NamedTuple):
    """What a store knows about a source."""

    states: dict[str, tuple | None]  # of the files, as a `FileState`; None for one that has to be read again
    above: set[str]  # those of the files that lie above the source
    folders: dict[str, FolderState]

    @property
    def listed(self) -> list[str]:
        """The files of the source, without those above it."""
        return [path for path in self.states if path not in self.above]


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
        parts = [Part(int(number), dict(tables)) for number, tables in contents["parts"]]
        if not all(map(str.isidentifier, (name for part in parts for name in part.tables))):
            raise ValueError("tables that no dataset has")
        return Manifest(parts, int(contents["number"]), dict(contents["about"]))
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
    """Return the root that a dataset was collected from, and the paths of its parts, but for those of the folders.

    None if `path` is something else.
    """
    manifest = read_manifest(path)
    if manifest is None:
        return None
    folder = resolve(path).rstrip("/")
    parts = (part for part in manifest.parts if "folders" not in part.tables)
    return manifest.about["root"], [part.path(folder, name) for part in parts for name in part.tables]


class RecordStore:
    """Tables of records that are updated file by file; in memory only if `path`, a folder or URL, is empty.

    `columns` are those of each table of records; ``files`` and ``folders`` are added. With `durable`, commits survive a
    power failure. `about` says what the rows were made from.
    """

    def __init__(self, path: str, columns: Mapping[str, Sequence[Column]], *, durable: bool = False) -> None:
        self.path, self.durable = path, durable
        self.schemas = {name: arrow_schema((SOURCE, *added)) for name, added in columns.items()}
        self.schemas |= {"files": arrow_schema(FILES), "folders": arrow_schema(FOLDERS)}
        self.about: dict[str, Any] = {}
        self.is_changed = False  # since the last commit
        self._parts: list[Part] = []
        self._number = 0  # of the latest part
        self._loaded: dict[tuple[int, str], pa.Table] = {}
        self._unwritten: set[int] = set()  # numbers of parts

    def open(self) -> bool:
        """Read the manifest; return False if there is none. StoreError for one that can't be read."""
        manifest = read_manifest(self.path) if self.path else None
        if manifest is None:
            return False
        if not all(set(part.tables) <= set(self.schemas) for part in manifest.parts):
            raise StoreError(f"{self.path}: holds tables that these logs do not have; {_REMEDY}")
        self._parts, self._number, self.about = manifest
        self._loaded.clear()
        self._unwritten.clear()
        return True

    def clear(self) -> None:
        """Drop all rows; they are gone once this is committed."""
        self.about, self._parts = {}, []
        self._loaded.clear()
        self._unwritten.clear()
        self.is_changed = True

    def load_all(self) -> None:
        """Read all tables of one state, even while another process updates the store; StoreError if it can't be."""
        for _ in range(_RETRIES):
            before = self._parts
            try:
                for name in self.schemas:
                    self.table(name)
                return
            except _MissingPartError:  # removed by an update, which wrote a new manifest before
                if not self.open() or self._parts == before:
                    raise
        raise StoreError(f"{self.path}: other processes write to it again and again")

    def table(self, name: str) -> pa.Table:
        """Return a table of all parts; raises StoreError if one can't be read."""
        tables = [self._load(part, name) for part in self._parts if name in part.tables]
        return pa.concat_tables([self.schemas[name].empty_table(), *tables])

    def known(self) -> Known:
        """Return what is known of the source."""
        files, folders = self.table("files"), self.table("folders")
        paths = unescaped(files["source"])
        times = (files[name].to_numpy().tolist() for name in ("size", "modified", "changed"))
        states: dict[str, tuple | None] = dict(
            zip(paths, zip(*times, files["tag"].to_pylist(), strict=True), strict=True)
        )
        for place in (~files["settled"].to_numpy()).nonzero()[0].tolist():
            states[paths[place]] = None
        above = {paths[place] for place in files["context"].to_numpy().nonzero()[0].tolist()}
        changes = (folders[name].to_numpy().tolist() for name in FolderState._fields)
        return Known(states, above, dict(zip(unescaped(folders["source"]), map(FolderState, *changes), strict=True)))

    def replace(self, dropped: Collection[str], added: Mapping[str, pa.Table]) -> None:
        """Drop all rows of some files, and add rows to the tables; nothing is written before `commit`."""
        gone = pa.array(sorted(dropped), pa.large_string())
        rest: dict[str, pa.Table] = {}  # of the last part that lost rows: it takes up those that are added
        for part in [part for part in self._parts if "files" in part.tables] if len(gone) else []:
            if pc.any(pc.is_in(self._load(part, "files")["source"], gone)).as_py():
                self._append(rest)
                rest = {name: t.filter(pc.invert(pc.is_in(t["source"], gone))) for name, t in self._take(part).items()}
        if added.get("files"):
            room = PART_FILES - len(added["files"])
            last = self._parts[-1] if self._parts and not rest else None
            if last and "files" in last.tables and len(self._load(last, "files")) <= room:
                rest = self._take(last)
            elif rest and len(rest["files"]) > room:
                self._append(rest)
                rest = {}
            both = {name: [tables[name] for tables in (rest, added) if name in tables] for name in {*rest, *added}}
            rest = {name: pa.concat_tables(tables) for name, tables in both.items()}
        self._append(rest)

    def set_folders(self, folders: pa.Table) -> None:
        """Replace the folders."""
        for part in [part for part in self._parts if "folders" in part.tables]:
            self._take(part)
        self._append({"folders": folders}, first=True)

    def commit(self, **about: Any) -> None:
        """Write new parts, then the manifest, then remove the parts that are no longer valid.

        If it can't be written, the former state stays; SourceError if it is to be durable.
        """
        self.about |= about
        self.is_changed = False
        if not self.path:
            return
        new = [part for part in self._parts if part.number in self._unwritten]
        try:
            for part in new:
                for name in part.tables:
                    sink = pa.BufferOutputStream()
                    pq.write_table(self._loaded[part.number, name], sink)
                    data = sink.getvalue()
                    write_bytes(data, part.path(self.path, name), durable=self.durable)
                    part.tables[name] = zlib.crc32(data)
        except SourceError:  # such as a full disk, which needs the room
            remove_files(part.path(self.path, name) for part in new for name in part.tables)
            if self.durable:
                raise
            return  # a cache only saves time
        manifest = {"format": FORMAT, "parts": self._parts, "number": self._number, "about": self.about}
        text = json.dumps(manifest, default=str, sort_keys=True)
        try:
            write_bytes(f"{text}\n".encode(), f"{self.path}/{MANIFEST}", durable=self.durable)
        except SourceError:  # the new manifest may be there, so the parts of both states stay
            if self.durable:
                raise
            return
        self._unwritten.clear()
        valid = {part.path(self.path, name) for part in self._parts for name in part.tables}
        remove_files(path for path in self._written(self.schemas) if path not in valid)

    def remove(self) -> None:
        """Remove a local store from the disk; other files in its folder stay."""
        folders = [entry.path for entry in os.scandir(self.path) if entry.is_dir(follow_symlinks=False)]
        remove_files([f"{self.path}/{MANIFEST}", *self._written(map(os.path.basename, folders)), f"{self.path}/{LOCK}"])
        for folder in (*folders, self.path):
            with contextlib.suppress(OSError):  # it holds other files
                os.rmdir(folder)

    def _append(self, tables: Mapping[str, pa.Table], *, first: bool = False) -> None:
        """Add a part, at the end or, before all files, at the beginning; none for tables without rows."""
        tables = {name: rows for name, rows in tables.items() if len(rows)}
        if tables:
            self._number += 1
            part = Part(self._number, dict.fromkeys(sorted(tables), 0))
            self._parts.insert(0 if first else len(self._parts), part)
            self._loaded |= {(part.number, name): rows for name, rows in tables.items()}
            self._unwritten.add(part.number)
            self.is_changed = True

    def _take(self, part: Part) -> dict[str, pa.Table]:
        """Remove a part from the store, and return its tables."""
        tables = {name: self._load(part, name) for name in part.tables}
        self._parts.remove(part)
        for name in tables:
            del self._loaded[part.number, name]
        self.is_changed = True
        return tables

    def _load(self, part: Part, name: str) -> pa.Table:
        """Return the rows of a part of a table, read from its file the first time."""
        if (rows := self._loaded.get((part.number, name))) is not None:
            return rows
        path, schema = part.path(self.path, name), self.schemas[name]
        try:
            data = read_file(path, limited=False)  # its size grows with the number of logs
            if zlib.crc32(data) != part.tables[name]:  # before decoding any of it
                raise StoreError(f"{path}: damaged ({len(data)} bytes, of another checksum); {_REMEDY}")
            rows = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).select(schema.names).cast(schema)
        except FileNotFoundError:
            raise _MissingPartError(f"{path}: a part of the dataset is missing; {_REMEDY}") from None
        except (OSError, KeyError, pa.ArrowException) as error:
            raise StoreError(f"{path}: can't be read ({type(error).__name__}: {error}); {_REMEDY}") from error
        self._loaded[part.number, name] = rows
        return rows

    def _written(self, tables: Iterable[str]) -> Iterator[str]:
        """Yield the files of tables that evalkit has written, valid or not, and temporary ones; no others."""
        for folder in (f"{self.path}/{name}" for name in tables):
            names: list[str] = []
            if is_url(folder):
                with contextlib.suppress(SourceError):
                    files = list_source(folder, "*.parquet", recursive=False).files
                    names = list(map(os.path.basename, files))  # the listing may spell the URL itself differently
            elif os.path.isdir(folder) and not os.path.islink(folder):
                names = os.listdir(folder)
            yield from (f"{folder}/{name}" for name in names if _PART_NAME.fullmatch(name) or is_temporary(name))
        if not is_url(self.path):  # what a killed process has left beside the manifest
            yield from (f"{self.path}/{name}" for name in os.listdir(self.path) if is_temporary(name))


def cache_folder() -> Path | None:
    """Return the folder of the user's cache, or None if it is off."""
    stated = os.environ.get("EVALKIT_CACHE", "")
    if stated.lower() == "off":
        return None
    return Path(stated or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "evalkit").expanduser()


@contextlib.contextmanager
def cached_store(key: Sequence[Any], columns: Mapping[str, Sequence[Column]]) -> Iterator[RecordStore]:
    """Give the store in the user's cache for a key, plain JSON; no other process uses it meanwhile.

    If the cache is off or can't be used, or another process has the store for too long, it is one in memory.
    """
    store, root = RecordStore("", columns), cache_folder()
    with contextlib.ExitStack() as held:
        if root is not None:
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
