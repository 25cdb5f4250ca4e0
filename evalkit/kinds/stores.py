"""Manage stores of records: those in the user's cache, which are updated before use, and datasets."""

import contextlib
import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalkit.io.paths import SourceError, absolute
from evalkit.io.records import MANIFEST, Known, RecordStore, StoreError, known_in, read_manifest
from evalkit.io.sources import Listing, fits, resolve
from evalkit.io.versions import code_version
from evalkit.io.write import exclusive
from evalkit.kinds.registry import LogKind, Records
from evalkit.kinds.update import records_of, update

WAIT = 60.0  # seconds to wait for another process that is updating the same store
KEPT_DAYS = 30
KEPT_BYTES = 2_000_000_000
_ENTRY = "records-"  # the folder of a store in the cache, before its digest
_ENTRY_NAME = re.compile(rf"{_ENTRY}[0-9a-f]{{32}}")


def cached_records(
    kind: LogKind,
    asked: Sequence[Any],
    list_known: Callable[[Known], Listing],
    about: Mapping[str, Any],
    *,
    jobs: int | None = None,
) -> Records:
    """Return the current records of files, from their store in the cache where nothing has changed.

    Parameters
    ----------
    kind : LogKind
    asked : sequence
        The key of the store: plain JSON.
    list_known : function of Known
        Lists the files.
    about : mapping
        What must be unchanged for rows of the store to be valid.
    jobs : int, optional
        As for `evalkit.io.parse_files`.
    """
    if (path := cache_path()) is not None:
        digest = hashlib.blake2b(json.dumps(asked, default=str).encode(errors="surrogatepass"), digest_size=16)
        folder = str(path / f"{_ENTRY}{digest.hexdigest()}")
        if not os.path.exists(folder):
            tidy_cache()
        with contextlib.suppress(SourceError), exclusive(folder, WAIT) as alone:
            if alone:
                return updated_records(RecordStore(folder, kind.records), kind, list_known, jobs, about)
    return updated_records(RecordStore("", kind.records), kind, list_known, jobs, about)


def updated_records(
    store: RecordStore,
    kind: LogKind,
    list_known: Callable[[Known], Listing],
    jobs: int | None,
    about: Mapping[str, Any],
) -> Records:
    """Update a store, and return its records; a damaged one, or one of other code, is rebuilt."""

    def bring_up_to_date() -> Records:
        known = known_in(store)
        listing = list_known(known)
        update(store, kind, listing, known=known, jobs=jobs, about=about)
        return records_of(store, kind, listing)

    try:
        if store.open() and any(store.about.get(name) != value for name, value in about.items()):
            store.clear()  # other code may parse the same files differently
        return bring_up_to_date()
    except StoreError:  # damaged
        store.clear()
        return bring_up_to_date()


def open_dataset(kind: LogKind, named: list[str]) -> RecordStore | None:
    """Open a dataset that is named in place of its logs; None if none is named.

    SourceError for a dataset beside other sources, of another kind, or one that can't be read.
    """
    datasets = {name: manifest for name in named if (manifest := read_manifest(name))}
    if not datasets:
        return None
    ((name, manifest), *_) = datasets.items()
    if len(named) > 1:
        raise SourceError(f"{name}: a dataset can't be loaded together with other sources")
    if manifest.about.get("kind") != kind.name:
        raise SourceError(f"{name}: a dataset of {manifest.about.get('kind')} logs, not of {kind.name} logs")
    store = RecordStore(absolute(resolve(name)).rstrip("/"), kind.records)
    store.open()
    store.load_all()
    if not store.about.get("complete"):
        text = "collecting was stopped, or still goes on; files may be missing until it is done"
        warnings.warn(f"{store.path}: {text}", stacklevel=4)
    elif store.about["code"] != code_version(kind.parse.__module__):
        text = "collected by another version of evalkit; collect again, and its logs are read as they are now"
        warnings.warn(f"{store.path}: {text}", stacklevel=4)
    return store


def dataset_records(store: RecordStore, kind: LogKind, pattern: str, *, recursive: bool) -> Records:
    """Return the records of a dataset in place of those of its source."""
    root, known = store.about["root"], known_in(store)
    files = [path for path in sorted(known.listed) if not pattern or fits(path, pattern)]
    if not recursive:
        files = [path for path in files if os.path.dirname(path) == root]
    records = records_of(store, kind, Listing(root, files, dict(sorted(known.folders.items())), {}))
    return records._replace(options=store.about.get("options", {}))


def cache_path() -> Path | None:
    """Return the folder of the cache, or None if it is off."""
    stated = os.environ.get("EVALKIT_CACHE", "")
    if stated.lower() == "off":
        return None
    return Path(stated or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "evalkit").expanduser()


def tidy_cache() -> None:
    """Remove stores unused for long, and the oldest ones if they take too much space; nothing else."""
    root, now, total = cache_path(), time.time(), 0
    stores, paths = list[tuple[float, int, Path]](), list[Path]()
    with contextlib.suppress(OSError):  # a folder that may not be listed
        paths = list(root.glob(f"{_ENTRY}*")) if root else []
    for path in paths:
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
