"""Datasets: records of logs, collected into a folder. `load` accepts a dataset instead of the original source."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

from evalkit._version import code_version
from evalkit.io.paths import SourceError, StorageOptions, absolute, check_path, is_url, protocol_of, storage
from evalkit.io.sources import Source, anchored, expand, fits, list_source, source_names
from evalkit.io.store import Manifest, RecordStore, StoreError, read_manifest
from evalkit.io.write import check_no_links, exclusive
from evalkit.kinds.kind import LogKind, Records
from evalkit.kinds.reading import Changes, Progress, list_logs, records_of, update


def dataset_records(kind: LogKind, name: str, manifest: Manifest, pattern: str, *, recursive: bool) -> Records:
    """Return the records of a dataset. Raise SourceError if it belongs to another kind or can't be read."""
    store = RecordStore(manifest.folder, kind.records)
    if manifest.about.get("kind") != kind.name:  # its tables differ
        raise SourceError(f"{name}: a dataset of {manifest.about.get('kind')} logs, not of {kind.name} logs")
    store.read()
    if not store.about.get("complete"):
        text = "collecting was stopped or is still running; files may be missing until it finishes"
        warnings.warn(f"{store.path}: {text}", stacklevel=4)
    elif store.about["code"] != code_version(kind.parse.__module__):
        text = "collected by another version of evalkit; collect again to read its logs with this version"
        warnings.warn(f"{store.path}: {text}", stacklevel=4)
    root, known = store.about["root"], store.known()
    files = [path for path in known.files if not pattern or fits(path, pattern)]
    if not recursive:
        files = [path for path in files if os.path.dirname(path) == root]
    return records_of(store, known._replace(root=root, files=files))


def collect(
    kind: LogKind,
    source: Source,
    output: str | os.PathLike,
    *,
    pattern: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Progress = None,
) -> Changes:
    """Collect logs into a dataset, or update it. `load` accepts a dataset instead of the folder of the logs.

    The pattern and `recursive` of a dataset can't change. Later calls may add sources, but must repeat earlier ones.

    Parameters
    ----------
    kind : LogKind
        Kind of log.
    source : str, path, or several of them
        Folders, files, globs or URLs of logs.
    output : path
        Folder or URL of the dataset.
    pattern : str
        Glob for the names of files in folders.
    recursive : bool
        Whether to read subfolders.
    jobs : int, optional
        Number of processes that read files; -1 for all cores.
    storage_options : mapping, optional
        Options for remote file systems, passed to fsspec.
    progress : function, optional
        Called with the number of files read so far and the number of files to read.

    Returns
    -------
    Changes
        Numbers of files that were read, dropped or unchanged.

    Raises
    ------
    SourceError
        If the source does not exist or is empty, `output` contains other files or is inside the source, the dataset was
        collected from other sources or with another pattern, or another process is updating it.

    Examples
    --------
    >>> kinds.collect(kinds.kind_named("mindcraft"), "samples:mindcraft/runs", "dataset")  # doctest: +SKIP
    """
    named, path = list(map(anchored, source_names(source))), anchored(output).rstrip("/")
    if not named or not path:
        raise SourceError("no path was given")
    with storage(storage_options):
        _check_place(path, named)
        about: dict[str, Any] = {
            "kind": kind.name,
            "code": code_version(kind.parse.__module__),
            "sources": named,
            "pattern": pattern or kind.files.pattern,
            "recursive": recursive,
        }
        store = RecordStore(path, kind.records)
        with exclusive(path) as alone:
            if not alone:
                raise SourceError(f"{path}: another process is collecting into it")
            check_no_links(path, store.tables)
            if manifest := read_manifest(path):
                before = manifest.about
                same = {**about, "code": before.get("code"), "sources": before.get("sources", [])}
                if not (same.items() <= before.items() and set(same["sources"]) <= set(named)):
                    how = "".join(f", {name} {before.get(name)}" for name in ("pattern", "recursive"))
                    raise StoreError(
                        f"{path}: was collected from {before.get('kind')} logs in {', '.join(same['sources'])}{how}; "
                        "use the same (you may add sources), or a new dataset"
                    )
                store.read()
            known = store.known()
            listing = list_logs(kind, named, about["pattern"], recursive=recursive, known=known)
            if known.files and not listing.files:
                raise SourceError(f"{path}: none of its files exists any more; remove the dataset if this is intended")
            about["root"] = absolute(listing.root)
            if manifest is None:
                store.commit(complete=False, **about)  # first, because a retry refuses a folder without a manifest
            elif store.about.get("code") != about["code"]:  # files may be parsed differently now
                store.clear()
                known = store.known()
            return update(store, kind, listing, known=known, jobs=jobs, progress=progress, about=about)


def _check_place(path: str, named: Sequence[str]) -> None:
    """Raise SourceError if a dataset can't be written to a path. Call this before writing anything."""
    check_path(path)
    if protocol_of(path) in ("zip", "tar"):
        raise SourceError(f"{path}: a dataset can't be written into an archive; name a folder")
    if datasets := list(filter(read_manifest, named)):
        raise SourceError(f"{datasets[0]}: is a dataset itself; collect from the logs")
    place = path if is_url(path) else os.path.realpath(path)
    for source in (one for name in named for one in expand(name)[1]):
        above = source if is_url(source) else os.path.realpath(source)
        if f"{place}/".startswith(f"{above.rstrip('/')}/"):
            raise SourceError(f"{path}: a dataset can't be inside its own source")
    if read_manifest(path):
        return
    try:
        files = list_source(path).files
    except SourceError:
        return  # it does not exist yet
    if files:
        raise SourceError(
            f"{path}: contains files that do not belong to a dataset, such as {os.path.basename(files[0])}"
        )
