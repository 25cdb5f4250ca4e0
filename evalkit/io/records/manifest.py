"""The manifest of a store of records: its valid parts, and what they were made from."""

import json
import os
import zlib
from typing import Any, NamedTuple

from evalkit.io.limits import LimitError
from evalkit.io.paths import SourceError, is_url, protocol_of
from evalkit.io.read import read_file
from evalkit.io.sources import resolve

MANIFEST = "evalkit-records.json"
FORMAT = 2
FORMER = "evalkit-dataset.json"  # the manifest of datasets that evalkit 0.1 wrote


class Part(NamedTuple):
    """The rows of some files in all tables.

    Attributes
    ----------
    number : int
    tables : dict of str to int
        The tables that have any of these rows, and the checksum (CRC-32) of each one's Parquet file.
    """

    number: int
    tables: dict[str, int]

    def path(self, store: str, table: str) -> str:
        """Return the path of one of its tables."""
        return f"{store}/{table}/{self.number:06d}.parquet"


class Manifest(NamedTuple):
    """The contents of a store: its parts, the part of the folders (see `FOLDERS`), the last number, what is stored."""

    parts: list[Part]
    folders: Part | None
    number: int
    about: dict[str, Any]


class StoreError(SourceError):
    """A store that can't be read."""


def collected_from(path: str) -> list[str]:
    """Return the sources that a local dataset was collected from; none for anything else."""
    manifest = read_manifest(path) if os.path.isdir(path) else None
    return list(map(str, manifest.about.get("sources", ()))) if manifest else []


def read_manifest(path: str | os.PathLike) -> Manifest | None:
    """Read the manifest of a dataset; None if `path` is something else.

    Raises
    ------
    StoreError
        If it can't be read, and for a dataset of evalkit 0.1.
    """
    is_web = protocol_of(os.fspath(path)) in ("http", "https")
    try:
        folder = resolve(path).rstrip("/")
        data = read_file(f"{folder}/{MANIFEST}")
    except (SourceError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        _refuse_former(path)
        return None
    except OSError as error:
        if (is_web and not isinstance(error, TimeoutError | LimitError)) or (
            isinstance(error, PermissionError) and is_url(folder)
        ):
            return None  # a web server may answer anything to unknown paths, S3 that they may not be read
        kind = SourceError if is_url(folder) else StoreError  # nothing shows that there is a dataset
        raise kind(f"{folder}: {error.strerror or error}") from None
    try:
        return _manifest_of(json.loads(data), folder)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, StoreError):
            raise
        if is_web:
            return None
        cause = f"{type(error).__name__}: {error}"
        raise StoreError(f"{folder}/{MANIFEST}: not the manifest of a dataset ({cause})") from error


def manifest_bytes(manifest: Manifest) -> bytes:
    """Serialise a manifest as JSON that contains its own checksum."""
    text = json.dumps({"format": FORMAT, **manifest._asdict()}, default=str, sort_keys=True)
    return f'{text[:-1]}, "checksum": {zlib.crc32(text.encode())}}}\n'.encode()


def _manifest_of(contents: dict[str, Any], folder: str) -> Manifest:
    if contents["format"] != FORMAT:
        version = contents["format"]
        raise StoreError(f"{folder}: a dataset of another format ({version}); collect it again into a new folder")
    checksum = contents.pop("checksum")
    if zlib.crc32(json.dumps(contents, sort_keys=True).encode()) != checksum:
        raise ValueError("its checksum is another one")
    parts = [Part(int(number), dict(tables)) for number, tables in contents["parts"]]
    folders = Part(*contents["folders"]) if contents["folders"] else None
    if not all("files" in part.tables and all(map(str.isidentifier, part.tables)) for part in parts):
        raise ValueError("parts that no dataset has")
    return Manifest(parts, folders, int(contents["number"]), dict(contents["about"]))


def dataset_files(path: str) -> tuple[str, list[str]] | None:
    """Return the root that a dataset was collected from, and its parts' paths; None if `path` is something else."""
    manifest = read_manifest(path)
    if manifest is None:
        return None
    folder = resolve(path).rstrip("/")
    return manifest.about["root"], [part.path(folder, name) for part in manifest.parts for name in part.tables]


def _refuse_former(path: str | os.PathLike) -> None:
    try:
        folder = resolve(path).rstrip("/")
        read_file(f"{folder}/{FORMER}")
    except (SourceError, OSError):
        return
    text = "a dataset of evalkit 0.1, which this version does not read; collect its logs again into a new folder"
    raise StoreError(f"{folder}: {text} (nothing in it was changed)")
