"""List the files of a source: a folder, a file, a URL, a glob, or several of these."""

import os
import time
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatch
from functools import cache, cached_property
from typing import NamedTuple

from evalkit.io.paths import (
    FileState,
    SourceError,
    absolute,
    common_folder,
    is_url,
)
from evalkit.io.sources.naming import Source, expand

SETTLED = 2.0  # seconds without a change: a file that is being written may change within its time stamp


MISSING = FileState(0, 0)  # a dangling link, or a file that vanished after it was listed


class FolderState(NamedTuple):
    """The state of a folder, which changes with its entries; 0 if unknown."""

    modified: int
    changed: int = 0


class Listing(NamedTuple):
    """The files of a source.

    Attributes
    ----------
    root : str
        The folder that holds all of them.
    files : list of str
        In the order of the sources as given, those of each sorted; each only once, under whatever names. A folder that
        can't be listed is among the files: reading it fails, and the ledger says why.
    folders : dict of str to FolderState
        In the same order.
    states : dict of str to FileState
        Of files behind a URL, from the listing; empty for local ones.
    """

    root: str
    files: list[str]
    folders: dict[str, FolderState]
    states: dict[str, FileState]


class KnownFolders:
    """The entries of local folders when last listed: a folder with the same state need not be listed again."""

    def __init__(self, folders: Mapping[str, FolderState], files: Collection[str]) -> None:
        self._states, self._all_files = folders, files

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        return self._children(self._all_files)

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        return self._children(self._states)

    def _children(self, paths: Iterable[str]) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {folder: [] for folder in self._states}
        for path in paths:
            above = children.get(path[: path.rfind("/")])
            if above is not None:
                above.append(path)
        return children

    def below(self, root: str) -> tuple[list[str], dict[str, FolderState]] | None:
        """Return all files and folders below a folder; None if a folder has changed and has to be listed."""
        start = f"{root.rstrip('/')}/"
        folders = {path: state for path, state in self._states.items() if path.startswith(start) or path == root}
        try:
            for path, (modified, changed) in folders.items():
                status = os.stat(path)
                if not modified or status.st_mtime_ns != modified or status.st_ctime_ns != changed:
                    return None
        except OSError:
            return None
        return ([path for path in self._all_files if path.startswith(start)], folders) if root in folders else None

    def entries(self, folder: str, state: FolderState) -> tuple[list[str], list[str]] | None:
        """Return a folder's files and folders; None if it has to be listed."""
        if not state.modified or self._states.get(folder) != state:
            return None
        return self._files[folder], self._folders[folder]


NOTHING_KNOWN = KnownFolders({}, ())


def list_source(
    source: Source, pattern: str = "*", *, recursive: bool = True, known: KnownFolders = NOTHING_KNOWN
) -> Listing:
    """List the files of a source, without hidden files and folders.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs such as ``runs/exp_*``, ``samples:NAME``, URLs that fsspec knows (``s3://bucket/runs``,
        also with ``*``), archives (``zip://::runs.zip``, ``zip://inner/folder::s3://bucket/runs.zip``).
    pattern : str
        Glob for the names of files in folders, such as ``*.json``; a file that is named itself is always included.
    recursive : bool
        Whether to list the folders below, too. Links to folders are followed once, never in a circle.
    known : KnownFolders
        Folders listed before, with the same pattern.

    Returns
    -------
    Listing

    Raises
    ------
    SourceError
        If it does not exist, nothing matches, or it can't be listed.
    """
    roots: list[str] = []
    files: dict[str, None] = {}
    folders: dict[str, FolderState] = {}
    states: dict[str, FileState] = {}
    for text in [source] if isinstance(source, str | os.PathLike) else source:
        base, paths = expand(os.fspath(text))
        listed: list[str] = []
        for path in paths:
            own_files, own_folders, own_states = _list_one(path, recursive, known)
            if own_folders and pattern != "*":
                own_files = [file for file in own_files if fits(file, pattern)]
            roots.append(base or (path if own_folders else os.path.dirname(path)))
            listed += own_files
            folders |= sorted(own_folders.items())
            states |= own_states
        files |= dict.fromkeys(sorted(listed))
    root = roots[0] if len(set(roots)) == 1 else common_folder(map(absolute, roots))
    if len(roots) > 1:
        files, folders = dict.fromkeys(_once(files)), {folder: folders[folder] for folder in _once(folders)}
    return Listing(root, list(files), folders, states)


def list_files(source: Source, pattern: str = "*", *, recursive: bool = True) -> list[str]:
    """List the files of a source, sorted by path, hidden files and folders left out; see `list_source`."""
    return list_source(source, pattern, recursive=recursive).files


def state_of(path: str) -> FileState | None:
    """Return the state of a file or folder; None if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        if not is_url(path):
            return None
        from evalkit.io.remote import state_remote

        return state_remote(path)
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def fits(path: str, pattern: str) -> bool:
    """Return whether a file's name matches a glob; its extension may be in capitals."""
    stem, dot, ending = os.path.basename(path).rpartition(".")
    return fnmatch(f"{stem}{dot}{ending.lower()}", pattern) or fnmatch(f"{stem}{dot}{ending}", pattern)


def _list_one(
    path: str, recursive: bool, known: KnownFolders
) -> tuple[list[str], dict[str, FolderState], dict[str, FileState]]:
    if is_url(path):
        from evalkit.io.remote import list_remote

        try:
            states, folders = list_remote(path, recursive=recursive)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from None
        return list(states), dict.fromkeys(folders, FolderState(0)), states
    return (*_walk(path, recursive, known), {}) if os.path.isdir(path) else ([path], {}, {})


def _walk(root: str, recursive: bool, known: KnownFolders) -> tuple[list[str], dict[str, FolderState]]:
    """List a local folder; folders that were seen already are not listed again."""
    if as_before := known.below(root):
        return as_before
    files: list[str] = []
    folders: dict[str, FolderState] = {}
    seen: set[tuple[int, int] | str] | None = None  # needed only if a link may lead to a folder again
    waiting, links = [root], list[str]()
    newest = (time.time() - SETTLED) * 1e9  # a folder that changed later may change again within its time stamp
    while waiting or links:
        # links last: a folder that is present under its own name keeps it
        folder = waiting.pop() if waiting else links.pop()
        try:
            if seen is not None:
                if (identity := identity_of(folder)) in seen:
                    continue
                seen.add(identity)
            status = os.stat(folder)
            state = FolderState(status.st_mtime_ns, status.st_ctime_ns)
            if (entries := known.entries(folder, state)) is not None:
                folder_files, below, linked = *entries, list[str]()
            else:
                folder_files, below, linked = _scan(folder)
            folders[folder] = FolderState(0) if linked or status.st_ctime_ns > newest else state
            files += folder_files
            if recursive:
                waiting += below
                links += linked
        except OSError as error:
            if folder == root:
                raise SourceError(f"{root}: {error.strerror or error}") from error
            files.append(folder)
            folders |= {
                os.path.dirname(folder): FolderState(0),
                folder: FolderState(0),
            }  # it may be readable next time
        if links and not waiting:
            links.sort(reverse=True)
            seen = set(map(identity_of, folders)) if seen is None else seen
    return files, folders


def _scan(folder: str) -> tuple[list[str], list[str], list[str]]:
    """Return the files of a folder, its folders, and its links to folders."""
    files, folders, links = list[str](), list[str](), list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if not _is_folder(entry):
                files.append(entry.path)
            else:
                (links if entry.is_symlink() else folders).append(entry.path)
    return files, folders, links


def _once(paths: Iterable[str]) -> list[str]:
    """Drop local paths that lead to the same file as another one; one without links is kept, else the first."""
    first_paths: dict[str, str] = {}
    real = cache(os.path.realpath)  # of folders
    for path in paths:
        place = path
        if not is_url(path):
            folder, name = os.path.split(os.path.abspath(path))
            place = os.path.join(real(folder), name)
            place = os.path.realpath(place) if os.path.islink(place) else place
        if place not in first_paths or path == place:
            first_paths[place] = path
    return list(first_paths.values())


def identity_of(folder: str) -> tuple[int, int] | str:
    """Return the identity of a local folder, whatever its name; its name if it does not exist."""
    try:
        status = os.stat(folder)
    except OSError:
        return folder
    return status.st_dev, status.st_ino


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link: reading it will report that
        return False
