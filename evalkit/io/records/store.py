"""The store of records: the parsed contents of a source's files, so that an unchanged file is never parsed again.

    STORE/evalkit-records.json    what is stored, and the valid parts
    STORE/TABLE/000012.parquet    a part of a table: the rows of some thousand files

A part is never changed. An update writes new parts, then the manifest, which makes them valid, then removes the parts
that the manifest no longer names. So an interruption at any point leaves a valid store: the former or the next.
Every table has the column `source`; the table ``files`` has one row per file.
"""

import contextlib
import os
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.io.columns import Column
from evalkit.io.frames import arrow_schema
from evalkit.io.paths import SourceError, is_url
from evalkit.io.read import read_file
from evalkit.io.sources import list_source
from evalkit.io.write import LOCK, is_temporary, remove_files, write_bytes

if TYPE_CHECKING:
    import pyarrow as pa
from evalkit.io.records.manifest import MANIFEST, Manifest, Part, StoreError, manifest_bytes, read_manifest

PART_FILES = 10_000  # most files of one part
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


class _MissingPartError(StoreError):
    """A part that the manifest names is missing."""


class RecordStore:
    """Tables of records that are updated file by file; in memory only if `path` is empty.

    Parameters
    ----------
    path : str
        Folder or URL.
    columns : mapping of str to sequence of Column
        The columns of each table of records; ``files`` and ``folders`` are added.
    durable : bool
        Whether commits survive a power failure.

    Attributes
    ----------
    about : dict
        What is stored: plain JSON; empty if nothing is stored yet.
    """

    def __init__(self, path: str, columns: Mapping[str, Sequence[Column]], *, durable: bool = False) -> None:
        self.path, self.durable = path, durable
        self.schemas = {name: arrow_schema((SOURCE, *added)) for name, added in columns.items()}
        self.schemas |= {"files": arrow_schema(FILES), "folders": arrow_schema(FOLDERS)}
        self.about: dict[str, Any] = {}
        self._parts: list[Part] = []
        self._folders: Part | None = None
        self._number = 0  # of the latest part
        self._loaded: dict[int, dict[str, pa.Table]] = {}
        self._dirty: set[int] = set()  # parts not yet written
        self._changed = False

    @property
    def is_changed(self) -> bool:
        """Return whether there is something to commit."""
        return self._changed

    def open(self) -> bool:
        """Read the manifest; return False if there is none.

        Raises
        ------
        StoreError
            For a manifest that can't be read, and for a dataset of evalkit 0.1.
        """
        manifest = read_manifest(self.path) if self.path else None
        if manifest is None:
            return False
        if not all(set(part.tables) <= set(self.schemas) for part in manifest.parts):
            raise StoreError(f"{self.path}: holds tables that these logs do not have; {_REMEDY}")
        self._parts, self._folders, self._number, self.about = manifest
        self._loaded.clear()
        self._dirty.clear()
        return True

    def load_all(self) -> None:
        """Read all tables of one state into memory, even while another process updates the store.

        Raises StoreError if a part can't be read.
        """
        for _ in range(_RETRIES):
            before = (self._parts, self._folders)
            try:
                for part in self._parts:
                    for name in part.tables:
                        self._load(part, name)
                self.folders()
                return
            except _MissingPartError:  # removed by an update, which wrote a new manifest before
                if not self.open() or (self._parts, self._folders) == before:
                    raise
        raise StoreError(f"{self.path}: other processes write to it again and again")

    def table(self, name: str) -> "pa.Table":
        """Return a table of all parts; raises StoreError if one can't be read."""
        import pyarrow as pa

        tables = [self._load(part, name) for part in self._parts if name in part.tables]
        return pa.concat_tables([self.schemas[name].empty_table(), *tables])

    def folders(self) -> "pa.Table":
        """Return the folders that were listed; see `FOLDERS`."""
        if self._folders is not None:
            with contextlib.suppress(StoreError):  # they are listed again
                return self._load(self._folders, "folders")
        return self.schemas["folders"].empty_table()

    def replace(self, dropped: Collection[str], added: Mapping[str, "pa.Table"]) -> None:
        """Drop all rows of some sources, and add rows to the tables; nothing is written before `commit`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        gone = pa.array(sorted(dropped), pa.large_string())
        rest: dict[str, pa.Table] = {}
        for part in list(self._parts) if len(gone) else []:
            if pc.any(pc.is_in(self._load(part, "files")["source"], gone)).as_py():
                self._add(rest)
                rest = {name: t.filter(pc.invert(pc.is_in(t["source"], gone))) for name, t in self._take(part).items()}
        if added.get("files"):
            last = self._parts[-1] if self._parts and not rest else None
            if last and len(self._load(last, "files")) + len(added["files"]) <= PART_FILES:
                rest = self._take(last)
            elif rest and len(rest["files"]) + len(added["files"]) > PART_FILES:
                self._add(rest)
                rest = {}
            names = {*rest, *added}
            both = {name: [tables[name] for tables in (rest, added) if name in tables] for name in names}
            rest = {name: pa.concat_tables(tables) for name, tables in both.items()}
        self._add(rest)

    def set_folders(self, folders: "pa.Table") -> None:
        """Replace the folders."""
        if not folders.equals(self.folders()):
            self._folders = self._new_part({"folders": folders})

    def commit(self, **about: Any) -> None:
        """Write changed parts, then the manifest, then remove the parts that are no longer valid.

        Raises
        ------
        SourceError
            If it can't be written; the former state stays.
        """
        self.about |= about
        self._changed = False
        if not self.path:
            return
        parts = [*self._parts, *([self._folders] if self._folders else [])]
        dirty = [part for part in parts if part.number in self._dirty]
        try:
            for part in dirty:
                for name in part.tables:
                    part.tables[name] = self._write(part.path(self.path, name), self._loaded[part.number][name])
        except SourceError:  # such as a full disk, which needs the room
            remove_files(part.path(self.path, name) for part in dirty for name in part.tables)
            raise
        manifest = Manifest(self._parts, self._folders, self._number, self.about)
        write_bytes(manifest_bytes(manifest), f"{self.path}/{MANIFEST}", durable=self.durable)
        self._dirty.clear()
        counted = {part.path(self.path, name) for part in parts for name in part.tables}
        remove_files(path for path in self._written() if path not in counted)

    def clear(self) -> None:
        """Drop all rows; they are gone once this is committed."""
        self._parts, self._folders, self.about = [], None, {}
        self._loaded.clear()
        self._dirty.clear()
        self._changed = True

    def remove(self) -> None:
        """Remove a local store from the disk; other files in its folder stay."""
        folders = [entry.path for entry in os.scandir(self.path) if entry.is_dir(follow_symlinks=False)]
        files = [f"{folder}/{name}" for folder in folders for name in os.listdir(folder) if _is_own(name)]
        remove_files([f"{self.path}/{MANIFEST}", *files, *self._temporary(), f"{self.path}/{LOCK}"])
        for folder in (*folders, self.path):
            with contextlib.suppress(OSError):  # it holds other files
                os.rmdir(folder)

    def _add(self, tables: Mapping[str, "pa.Table"]) -> None:
        tables = {name: rows for name, rows in tables.items() if len(rows)}
        if tables:
            self._parts.append(self._new_part(tables))

    def _new_part(self, tables: "dict[str, pa.Table]") -> Part:
        self._number += 1
        self._loaded[self._number] = tables
        self._dirty.add(self._number)
        self._changed = True
        return Part(self._number, dict.fromkeys(sorted(tables), 0))

    def _take(self, part: Part) -> "dict[str, pa.Table]":
        """Remove a part from the store, and return its tables."""
        tables = {name: self._load(part, name) for name in part.tables}
        self._parts.remove(part)
        self._loaded.pop(part.number)
        self._changed = True
        return tables

    def _load(self, part: Part, name: str) -> "pa.Table":
        tables = self._loaded.setdefault(part.number, {})
        if name not in tables:
            tables[name] = self._read(part, name)
        return tables[name]

    def _read(self, part: Part, name: str) -> "pa.Table":
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, schema = part.path(self.path, name), self.schemas[name]
        try:
            data = read_file(path, limited=False)  # its size grows with the number of logs
            if zlib.crc32(data) != part.tables[name]:  # before decoding any of it
                raise StoreError(f"{path}: damaged ({len(data)} bytes, of another checksum); {_REMEDY}")
            table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
            return table.select(schema.names).cast(schema)
        except FileNotFoundError:
            raise _MissingPartError(f"{path}: a part of the dataset is missing; {_REMEDY}") from None
        except (OSError, KeyError, pa.ArrowException) as error:
            raise StoreError(f"{path}: can't be read ({type(error).__name__}: {error}); {_REMEDY}") from error

    def _write(self, path: str, table: "pa.Table") -> int:
        """Write a table; return the checksum of the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        data = sink.getvalue()
        write_bytes(data, path, durable=self.durable)
        return zlib.crc32(data)

    def _written(self) -> Iterator[str]:
        """Yield the files that evalkit has written into the store's folders, valid or not, and no others."""
        for folder in (f"{self.path}/{name}" for name in self.schemas):
            if is_url(folder):
                with contextlib.suppress(SourceError):
                    files = list_source(folder, "*.parquet", recursive=False).files
                    names = map(os.path.basename, files)  # the URL itself may be spelled differently in the listing
                    yield from (f"{folder}/{name}" for name in names if _is_own(name))
            elif os.path.isdir(folder) and not os.path.islink(folder):
                yield from (f"{folder}/{name}" for name in os.listdir(folder) if _is_own(name))
        yield from self._temporary()

    def _temporary(self) -> list[str]:
        """Return the files that a killed process has left beside the manifest."""
        if is_url(self.path):
            return []
        return [f"{self.path}/{name}" for name in os.listdir(self.path) if is_temporary(name)]


def _is_own(name: str) -> bool:
    """Return whether a file in a folder of parts is a part, or an incomplete one."""
    return re.fullmatch(r"[0-9]{6,12}\.parquet", name) is not None or is_temporary(name)
