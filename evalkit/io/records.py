"""The store of records: what the files of a source say, so that a file that has not changed is never parsed again.

    STORE/evalkit-records.json    what is stored, and the parts that count
    STORE/TABLE/000012.parquet    a part of a table: the rows of some thousand files

A part is never changed. An update writes new parts, then the manifest, which is what makes them count, then removes the
parts that no manifest names any more. So whoever stops in between leaves a whole store behind: the former or the next.
Every table has the column `source`; the table ``files`` has one row per file.
"""

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io.frames import Column, arrow_schema
from evalkit.io.paths import SourceError, is_url
from evalkit.io.read import read_file
from evalkit.io.sources import list_source, resolve
from evalkit.io.write import remove_files, write_bytes

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "evalkit-records.json"
FORMAT = 2
PART_FILES = 10_000  # files of one part, at most
FORMER = "evalkit-dataset.json"  # the manifest of datasets that evalkit 0.1 wrote
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
    Column("reason", "str", "why it was skipped or failed; for a used file, what was recovered, or empty"),
)
FOLDERS = (
    Column("source", "str", "path of a folder that was looked into"),
    Column(
        "modified", "int", "time of the last change of its entries; 0 where it has to be listed anew", "nanoseconds"
    ),
    Column("changed", "int", "time of the last change of its inode", "nanoseconds"),
)
_RETRIES = 5  # of reading while another process updates the store


class Part(NamedTuple):
    """Some files' rows in all tables; `tables` names those that have any."""

    number: int
    tables: tuple[str, ...]

    def path(self, store: str, table: str) -> str:
        """Give the path of one of its tables."""
        return f"{store}/{table}/{self.number:06d}.parquet"


class StoreError(SourceError):
    """A store that can't be read as it should be."""


class RecordStore:
    """Tables of records that are edited by the files that they come from; in memory only where `path` is empty.

    Parameters
    ----------
    path : str
        Folder or URL.
    columns : mapping of str to sequence of Column
        The columns of each table of records; ``files`` and ``folders`` are added.
    durable : bool
        What was committed outlives a power failure.

    Attributes
    ----------
    about : dict
        What is stored: plain JSON; empty where nothing is stored yet.
    """

    def __init__(self, path: str, columns: Mapping[str, Sequence[Column]], *, durable: bool = False) -> None:
        self.path, self.durable = path, durable
        self.schemas = {name: arrow_schema((SOURCE, *own)) for name, own in columns.items()}
        self.schemas["files"] = arrow_schema(FILES)
        self.about: dict[str, Any] = {}
        self._parts: list[Part] = []
        self._folders, self._number = 0, 0
        self._loaded: dict[int, dict[str, pa.Table]] = {}
        self._dirty: set[int] = set()
        self._changed = False
        self._folder_table: pa.Table | None = None

    @property
    def is_changed(self) -> bool:
        """Tell whether there is something to commit."""
        return self._changed

    def open(self) -> bool:
        """Read the manifest; False where there is none.

        Raises
        ------
        StoreError
            For a manifest that can't be read, and for a dataset of evalkit 0.1.
        """
        found = read_manifest(self.path) if self.path else None
        if found is None:
            return False
        try:
            self._number, self._folders = int(found["number"]), int(found["folders"])
            self._parts = [Part(int(number), tuple(tables)) for number, tables in found["parts"]]
            self.about = dict(found["about"])
            if not all(set(part.tables) <= set(self.schemas) for part in self._parts):
                raise ValueError("a table that this kind does not have")
        except (KeyError, TypeError, ValueError) as error:
            cause = f"{type(error).__name__}: {error}"
            raise StoreError(f"{self.path}/{MANIFEST}: not the manifest of a dataset ({cause})") from error
        self._loaded.clear()
        self._dirty.clear()
        self._folder_table = None
        return True

    def table(self, name: str, columns: Sequence[str] = ()) -> "pa.Table":
        """Give a table of all parts, or some of its columns.

        Raises
        ------
        StoreError
            Where a part can't be read.
        """
        import pyarrow as pa

        for _ in range(_RETRIES):
            try:
                tables = [self._load(part, name) for part in self._parts if name in part.tables]
                break
            except FileNotFoundError:  # removed by an update of another process, which has written a new manifest
                if self._dirty or not self.open():
                    raise StoreError(f"{self.path}: a part of it is missing; collect it again") from None
        else:
            raise StoreError(f"{self.path}: other processes write to it again and again")
        schema = self.schemas[name]
        merged = pa.concat_tables([schema.empty_table(), *tables])
        return merged.select(list(columns)) if columns else merged

    def folders(self) -> "pa.Table":
        """Give the folders that were looked into; see `FOLDERS`."""
        if self._folder_table is None:
            schema = arrow_schema(FOLDERS)
            self._folder_table = schema.empty_table()
            if self._folders:
                with contextlib.suppress(FileNotFoundError, StoreError):  # they are listed anew
                    self._folder_table = self._read(Part(self._folders, ()), "folders", schema)
        return self._folder_table

    def replace(self, dropped: Collection[str], added: Mapping[str, "pa.Table"]) -> None:
        """Drop all rows of some sources, and add rows to the tables; nothing is written before `commit`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        gone = pa.array(sorted(dropped), pa.large_string())
        for part in list(self._parts) if len(gone) else []:
            tables = {name: self._load(part, name) for name in part.tables}
            if not pc.any(pc.is_in(tables["files"]["source"], gone)).as_py():
                continue
            kept = {name: rows.filter(pc.invert(pc.is_in(rows["source"], gone))) for name, rows in tables.items()}
            self._parts.remove(part)
            self._changed = True
            self._add(kept)
        if not added.get("files"):
            return
        last = self._parts[-1] if self._parts else None
        if last and len(self._load(last, "files")) + len(added["files"]) <= PART_FILES:
            self._parts.remove(last)
            names = {*last.tables, *added}
            empty = {name: self.schemas[name].empty_table() for name in names}
            before = {**empty, **{name: self._load(last, name) for name in last.tables}}
            added = {name: pa.concat_tables([before[name], added.get(name, empty[name])]) for name in names}
        self._add(added)

    def set_folders(self, folders: "pa.Table") -> None:
        """Replace the folders."""
        if not folders.equals(self.folders()):
            self._folder_table, self._folders = folders, self._take_number()
            self._dirty.add(self._folders)
            self._changed = True

    def commit(self, **about: Any) -> None:
        """Write what has changed, then the manifest, then remove the parts that no longer count.

        Raises
        ------
        SourceError
            Where it can't be written; the former state stays.
        """
        self.about |= about
        self._changed = False
        if not self.path:
            return
        for part in self._parts:
            if part.number in self._dirty:
                for name in part.tables:
                    self._write(part.path(self.path, name), self._loaded[part.number][name])
        if self._folders in self._dirty and self._folder_table is not None:
            self._write(Part(self._folders, ()).path(self.path, "folders"), self._folder_table)
        parts = [[part.number, part.tables] for part in self._parts]
        manifest = {"format": FORMAT, "number": self._number, "folders": self._folders, "parts": parts}
        text = json.dumps(manifest | {"about": self.about}, default=str)
        write_bytes(text.encode(errors="surrogatepass"), f"{self.path}/{MANIFEST}", durable=self.durable)
        self._dirty.clear()
        counted = {part.path(self.path, name) for part in self._parts for name in part.tables}
        counted.add(Part(self._folders, ()).path(self.path, "folders"))
        remove_files(path for path in self._written() if path not in counted)

    def clear(self) -> None:
        """Forget all rows; they are gone once that is committed."""
        self._parts, self._folders, self._folder_table, self.about = [], 0, None, {}
        self._loaded.clear()
        self._dirty.clear()
        self._changed = True

    def remove(self) -> None:
        """Remove the store from the disk; what lies in its folder and is not its own stays."""
        folders = [entry for entry in os.scandir(self.path) if entry.is_dir() and not entry.is_symlink()]
        parts = [
            (folder.path, entry.path) for folder in folders for entry in os.scandir(folder) if _is_part(entry.name)
        ]
        remove_files([f"{self.path}/{MANIFEST}", *(path for _, path in parts), f"{self.path}/.lock"])
        for folder in (*{folder for folder, _ in parts}, self.path):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _add(self, tables: Mapping[str, "pa.Table"]) -> None:
        tables = {name: rows for name, rows in tables.items() if len(rows)}
        if tables:
            part = Part(self._take_number(), tuple(sorted(tables)))
            self._parts.append(part)
            self._loaded[part.number] = tables
            self._dirty.add(part.number)
            self._changed = True

    def _take_number(self) -> int:
        self._number += 1
        return self._number

    def _load(self, part: Part, name: str) -> "pa.Table":
        tables = self._loaded.setdefault(part.number, {})
        if name not in tables:
            tables[name] = self._read(part, name, self.schemas[name])
        return tables[name]

    def _read(self, part: Part, name: str, schema: "pa.Schema") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = part.path(self.path, name)
        try:
            source = pa.BufferReader(read_file(path))
            found = pq.read_table(source, use_threads=False, page_checksum_verification=True)
            return found.select(schema.names).cast(schema)
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError) as error:  # what Arrow raises are of these
            raise StoreError(f"{path}: can't be read ({type(error).__name__}: {error}); collect it again") from error

    def _write(self, path: str, table: "pa.Table") -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, write_page_checksum=True)
        write_bytes(sink.getvalue(), path, durable=self.durable)

    def _written(self) -> Iterator[str]:
        """Name the parts in the store's folder, whether they count or not; nothing else that lies there."""
        for name in (*self.schemas, "folders"):
            with contextlib.suppress(SourceError):
                found = list_source(f"{self.path}/{name}", "*.parquet", recursive=False).files
                yield from (path for path in found if _is_part(os.path.basename(path)))


def _is_part(name: str) -> bool:
    return re.fullmatch(r"[0-9]{6,12}\.parquet", name) is not None


def read_manifest(path: str | os.PathLike) -> dict[str, Any] | None:
    """Read the manifest of a dataset; None where `path` is something else.

    Raises
    ------
    StoreError
        Where it can't be read, and for a dataset of evalkit 0.1.
    """
    try:
        folder = resolve(path).rstrip("/")
        data = read_file(f"{folder}/{MANIFEST}")
    except (SourceError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        _refuse_former(path)
        return None
    except OSError as error:
        if isinstance(error, PermissionError) and is_url(folder):
            return None  # S3 may say that one is not allowed to read what is not there
        raise StoreError(f"{folder}: {error.strerror or error}") from None
    try:
        found = json.loads(data)
        version = found["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise StoreError(f"{folder}/{MANIFEST}: not the manifest of a dataset ({cause})") from error
    if version != FORMAT:
        raise StoreError(f"{folder}: a dataset of another format ({version}); collect it again into a new folder")
    return found


def dataset_files(path: str) -> tuple[str, list[str]] | None:
    """Name the root that a dataset was collected from, and its parts; None where `path` is something else."""
    found = read_manifest(path)
    if found is None:
        return None
    folder = resolve(path).rstrip("/")
    parts = [Part(number, tuple(tables)) for number, tables in found["parts"]]
    return found["about"]["root"], [part.path(folder, name) for part in parts for name in part.tables]


def _refuse_former(path: str | os.PathLike) -> None:
    try:
        folder = resolve(path).rstrip("/")
        read_file(f"{folder}/{FORMER}")
    except (SourceError, OSError):
        return
    text = "a dataset of evalkit 0.1, which this version does not read; collect its logs again into a new folder"
    raise StoreError(f"{folder}: {text} (nothing in it was changed)")
