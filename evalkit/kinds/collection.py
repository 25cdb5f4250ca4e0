"""Collect the logs of a source into a dataset that is updated incrementally."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from evalkit.io.paths import (
    SourceError,
    StorageOptions,
    absolute,
    has_magic,
    is_url,
    protocol_of,
    refuse_credentials,
    storage,
)
from evalkit.io.records import RecordStore, StoreError, known_in, list_again, read_manifest
from evalkit.io.sources import Listing, Source, identity_of, list_source, source_names
from evalkit.io.versions import code_version
from evalkit.io.write import check_path, exclusive
from evalkit.kinds.registry import LogKind
from evalkit.kinds.update import Changes, Progress, update

ARCHIVES = ("zip", "tar")  # protocols that are read-only


def collect(
    kind: LogKind,
    source: Source,
    output: str | os.PathLike,
    options: Mapping[str, Any] | None = None,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Progress = None,
) -> Changes:
    """Collect logs into a dataset, which `load` accepts in place of their folder, or update it.

    Parameters
    ----------
    kind : LogKind
    source : str, path, or several of them
        As for `load`. A dataset keeps its sources: more may be added later, but none left out.
    output : str or path
        The dataset's folder, or a URL.
    options : mapping, optional
        Of `kind`: stored as the defaults for loading the dataset.
    pattern, recursive, jobs, storage_options
        As for `load`; the dataset keeps to its pattern and depth.
    progress : function of (files read, files to read), optional
        Called after each chunk of files.

    Returns
    -------
    Changes
        How many files were new, changed, vanished and unchanged.

    Raises
    ------
    SourceError
        If the source does not exist or is empty now, `output` holds other files or lies in the source, it was
        collected from other sources or with another pattern, or another process is updating it.
    """
    named = list(map(_anchored, source_names(source)))
    path = _anchored(output).rstrip("/")
    if not named:
        raise SourceError("no path was given")
    _check_name(path)
    with storage(storage_options):
        about: dict[str, Any] = {
            "kind": kind.name,
            "code": code_version(kind.parse.__module__),
            "sources": named,
            "pattern": pattern or kind.files.pattern,
            "recursive": recursive,
        }
        store = RecordStore(path, kind.records, durable=True)
        if not store.open():  # else a folder would be created where it can't be
            _check_listing(path, named, list_source(named, about["pattern"], recursive=recursive))
            _check_free(path)
        with exclusive(path) as alone:
            if not alone:
                raise SourceError(f"{path}: another process is collecting into it")
            return _collect(store, kind, about, dict(options or {}), jobs, progress)


def _collect(
    store: RecordStore,
    kind: LogKind,
    about: dict[str, Any],
    options: dict[str, Any],
    jobs: int | None,
    progress: Progress,
) -> Changes:
    is_new = not store.open()  # again: another process may have just created it
    if not is_new:
        _check_same(store, about)
    known = known_in(store)
    listing = list_again(known, about["sources"], about["pattern"], recursive=about["recursive"])
    _check_listing(store.path, about["sources"], listing)
    if known.listed and not listing.files:
        raise SourceError(f"{store.path}: none of its files is there any more; remove it, if that is meant")
    about |= {"root": absolute(listing.root), "options": {**store.about.get("options", {}), **options}}
    if is_new:
        store.commit(complete=False, **about)  # first: a folder with parts but no manifest belongs to something else
    elif store.about.get("code") != about["code"]:  # files may be parsed differently now
        store.clear()
        known = known_in(store)
    return update(store, kind, listing, known=known, jobs=jobs, progress=progress, about=about)


def _anchored(name: str | os.PathLike) -> str:
    """Make a name independent of the working directory."""
    text = os.path.expanduser(os.fspath(name))
    refuse_credentials(text)  # before it becomes an absolute path, which hides them
    if protocol_of(text) in ("file", "local"):
        text = unquote(text.partition("://")[2])
    return absolute(text) if text and not text.startswith("samples:") else text


def _check_name(path: str) -> None:
    if protocol_of(path) in ARCHIVES:
        raise SourceError(f"{path}: a dataset can't be written into an archive; name a folder")
    check_path(path)
    if not path or path.startswith("samples:") or (is_url(path) and has_magic(path)):
        raise SourceError(f"{path or repr(path)}: can't be the name of a dataset")


def _check_listing(path: str, named: list[str], listing: Listing) -> None:
    """Raise SourceError for a dataset in its own source, and for one as a source."""
    if _lies_in(path, listing.folders):
        raise SourceError(f"{path}: a dataset can't lie in its own source")
    if datasets := [name for name in named if read_manifest(name)]:
        raise SourceError(f"{datasets[0]}: is a dataset itself; collect from the logs")


def _lies_in(path: str, folders: Mapping[str, Any]) -> bool:
    """Return whether a path is one of the folders or below one, even through a link."""
    if is_url(path):
        return any(f"{path}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)
    place = Path(path).resolve()
    here = {identity_of(str(folder)) for folder in (place, *place.parents)}
    return any(identity_of(folder) in here for folder in folders)


def _check_free(path: str) -> None:
    """Raise SourceError for a folder that holds other files, and for a file."""
    try:
        files = list_source(path).files
    except SourceError:
        return  # it does not exist yet
    if files == [path]:
        raise SourceError(f"{path}: is a file, not a folder")
    if files:
        raise SourceError(f"{path}: holds other files than a dataset, such as {os.path.basename(files[0])}")


def _check_same(store: RecordStore, about: Mapping[str, Any]) -> None:
    """Raise SourceError for another kind or pattern, or without a former source, whose rows would vanish."""
    known = store.about
    if known.get("kind") != about["kind"]:
        raise StoreError(f"{store.path}: a dataset of {known.get('kind')} logs, not of {about['kind']} logs")
    if left_out := [name for name in known.get("sources", ()) if name not in about["sources"]]:
        raise StoreError(f"{store.path}: was also collected from {left_out[0]}; name it too, or take a new dataset")
    for name in ("pattern", "recursive"):
        if known.get(name) != about[name]:
            raise StoreError(
                f"{store.path}: was collected with {name} {known.get(name)}; keep to that, or take a new one"
            )
