"""Where logs live: what a user names (a folder, a file, a URL, a glob, several of these) as a list of files."""

import glob
import os
import re
import time
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from evalkit.io.paths import (
    INSIDE,
    FileState,
    SourceError,
    StorageOptions,
    absolute,
    common_folder,
    has_magic,
    is_url,
    protocol_of,
    refuse_credentials,
)

Source = str | os.PathLike | Iterable[str | os.PathLike]

SETTLED = 2.0  # seconds a file must have been left alone: one that is being written may change within its time stamp
_SAMPLES = "samples:"
_INNER = re.compile(r"(?P<protocol>zip|tar)://(?P<inner>.*)::(?P<archive>.+)", re.DOTALL)


MISSING = FileState(0, 0)  # a dangling link, or a file that went away after it was listed


class FolderState(NamedTuple):
    """What tells one list of a folder's entries from another; 0 where that can't be told."""

    modified: int
    changed: int = 0


class Listing(NamedTuple):
    """The files of a source.

    Attributes
    ----------
    root : str
        The folder that all of it lies in.
    files : list of str
        In the order of the sources that were named, those of each sorted; none twice, under whatever names. A folder
        that can't be listed stands among the files: reading it fails, and the ledger says why.
    folders : dict of str to FolderState
        In the same order.
    states : dict of str to FileState
        Of files behind a URL, as the listing tells them; empty for local ones.
    """

    root: str
    files: list[str]
    folders: dict[str, FolderState]
    states: dict[str, FileState]


class KnownFolders:
    """What local folders held when they were last listed: one whose state is the same need not be listed again."""

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
        """Give all files and folders below a folder; None where a folder has changed and has to be listed."""
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
        """Give a folder's files and folders; None where it has to be listed."""
        if not state.modified or self._states.get(folder) != state:
            return None
        return self._files[folder], self._folders[folder]


NOTHING_KNOWN = KnownFolders({}, ())


def list_source(
    source: Source, pattern: str = "*", *, recursive: bool = True, known: KnownFolders = NOTHING_KNOWN
) -> Listing:
    """List the files of a source; hidden files and folders are left out.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs such as ``runs/exp_*``, ``samples:NAME``, URLs that fsspec knows (``s3://bucket/runs``,
        also with ``*``), archives (``zip://::runs.zip``, ``zip://inner/folder::s3://bucket/runs.zip``).
    pattern : str
        Glob matched against the names of files in folders, as in ``*.json``; a file that is named counts always.
    recursive : bool
        Also the folders below. Links to folders are followed once, never in a circle.
    known : KnownFolders
        Listed before, with the same pattern.

    Returns
    -------
    Listing

    Raises
    ------
    SourceError
        Where nothing is there, nothing matches, or it can't be listed.
    """
    roots: list[str] = []
    files: dict[str, None] = {}
    folders: dict[str, FolderState] = {}
    states: dict[str, FileState] = {}
    for text in [source] if isinstance(source, str | os.PathLike) else source:
        base, paths = _expand(os.fspath(text))
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


def file_states(listing: Listing, extra: Iterable[str] = ()) -> dict[str, FileState]:
    """Give the state of each file of a listing, and of more files; `MISSING` for those that are not there."""
    return {path: listing.states.get(path) or state_of(path) or MISSING for path in (*listing.files, *extra)}


def state_of(path: str) -> FileState | None:
    """Ask for the state of a file or folder; None where it is not there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        if not is_url(path):
            return None
        from evalkit.io.remote import state_remote

        return state_remote(path)
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def fits(path: str, pattern: str) -> bool:
    """Tell whether a file's name fits a glob; its ending may be in capitals."""
    stem, dot, ending = os.path.basename(path).rpartition(".")
    return fnmatch(f"{stem}{dot}{ending.lower()}", pattern) or fnmatch(f"{stem}{dot}{ending}", pattern)


def resolve(source: str | os.PathLike) -> str:
    """Turn what a user names into a local path or a URL.

    Parameters
    ----------
    source : str or path
        A path, ``~`` allowed, a URL, or ``samples:NAME`` for the sample data that come with the package.

    Returns
    -------
    str

    Raises
    ------
    SourceError
        Where nothing stands at that path (a URL is not asked), or a URL holds credentials.
    """
    text = os.fspath(source)
    if not text:
        raise SourceError("no path was given (the path is empty)")
    if text.startswith(_SAMPLES):
        return _sample(text)
    refuse_credentials(text)
    if is_url(text):
        return _normal_url(text)
    try:
        path = Path(text).expanduser()
        there = path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a NUL byte, the home of an unknown user
        raise SourceError(f"{text}: {error}") from error
    if not there:
        raise SourceError(f"{text}: no such file or folder")
    return str(path)


def own_sources(*sources: str | list[str]) -> tuple[str | list[str], ...]:
    """Leave sample data out as soon as one source is the user's own, so that the two never mix.

    Parameters
    ----------
    *sources : str or list of str
        Those of one notebook or command; ``""`` and ``[]`` stand for none.

    Returns
    -------
    tuple
        The sources as they were given; where one of them is not sample data, those that are become ``""`` or ``[]``.
    """
    if all(_is_sample_name(name) for source in sources for name in _listed(source)):
        return sources
    return tuple(type(source)() if any(map(_is_sample_name, _listed(source))) else source for source in sources)


def is_sample(source: object) -> bool:
    """Tell whether a source names sample data, such as ``samples:crafter``."""
    return any(isinstance(name, str) and _is_sample_name(name) for name in _listed(source))


def _listed(source: object) -> list:
    return [name for name in (source if isinstance(source, list) else [source]) if name]


def _is_sample_name(name: str) -> bool:
    return name.startswith(_SAMPLES)


def read_storage_options(path: str | os.PathLike) -> StorageOptions:
    """Read storage options from a JSON file, which nobody but its owner need be able to read.

    Parameters
    ----------
    path : str or path
        A local file; it holds one object, such as ``{"key": "…", "secret": "…"}`` for S3.

    Returns
    -------
    dict
        As fsspec takes them.

    Raises
    ------
    SourceError
        Where it is not there, or holds no JSON object; what it holds is not repeated.
    """
    import json

    try:
        with open(path, "rb") as file:
            options = json.load(file)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise SourceError(f"{path}: not a JSON file") from None
    if not isinstance(options, dict):
        raise SourceError(f"{path}: holds no JSON object")
    return options


def _sample(text: str) -> str:
    root = Path(_samples())
    path = root / text.removeprefix(_SAMPLES)
    if not path.exists() or path.resolve() == root.resolve():
        known = ", ".join(f"samples:{p.name}" for p in sorted(root.iterdir()) if _is_sample_folder(p))
        raise SourceError(f"{text}: no such samples; there are {known}")
    return str(path)


def _samples() -> str:
    """Give the folder of the sample data."""
    from importlib.resources import files as package_files  # as slow to import as the rest of this module

    return os.path.join(str(package_files("evalkit")), "samples")


def _is_sample_folder(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(("_", "."))


def _normal_url(url: str) -> str:
    """Write a URL in the one form that paths have here."""
    from urllib.parse import unquote

    if protocol_of(url) in ("file", "local"):
        return resolve(unquote(url.partition("://")[2]))
    if match := _INNER.fullmatch(url):
        archive = resolve(match["archive"])
        return f"{match['protocol']}://{archive}{INSIDE}{match['inner'].strip('/')}"
    if protocol_of(url) in ("zip", "tar") and INSIDE not in url:
        return f"{protocol_of(url)}://{resolve(url.partition('://')[2])}{INSIDE}"
    return url


def paths_of(text: str) -> list[str]:
    """Give the files and folders that a name or glob stands for; see `list_source` for names and errors."""
    return _expand(text)[1]


def _expand(text: str) -> tuple[str | None, list[str]]:
    """Give the files and folders that a name stands for; for a glob also the folder that they are looked for in."""
    refuse_credentials(text)
    if text.startswith(_SAMPLES) and has_magic(text):
        text = os.path.join(_samples(), text.removeprefix(_SAMPLES))
    glob_like = has_magic(text)
    try:
        if glob_like and is_url(text):
            from evalkit.io.remote import glob_remote

            url = _normal_url(text)
            base, paths = _fixed_part(url), glob_remote(url)
        elif glob_like and not os.path.lexists(text):
            text = os.path.expanduser(text)
            base, paths = _fixed_part(text), sorted(glob.glob(text, recursive=True))
        else:
            return None, [resolve(text)]
    except OSError as error:
        raise SourceError(f"{text}: {error.strerror or error}") from None
    if not paths:
        raise SourceError(f"{text}: no file matches")
    return base, paths


def _fixed_part(pattern: str) -> str:
    """Give the folder of a glob that stands before its first special character."""
    parts = pattern.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if has_magic(part))])


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
    seen: set[tuple[int, int] | str] | None = None  # asked for only where a link may lead to a folder again
    waiting, links = [root], []
    newest = (time.time() - SETTLED) * 1e9  # a folder that changed later may change again within its time stamp
    while waiting or links:
        # links last: a folder that is there under its own name keeps it
        folder = waiting.pop() if waiting else links.pop()
        try:
            if seen is not None:
                if (identity := identity_of(folder)) in seen:
                    continue
                seen.add(identity)
            status = os.stat(folder)
            state = FolderState(status.st_mtime_ns, status.st_ctime_ns)
            if (entries := known.entries(folder, state)) is not None:
                own, below, linked = *entries, []
            else:
                own, below, linked = _scan(folder)
            folders[folder] = FolderState(0) if linked or status.st_ctime_ns > newest else state
            files += own
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
            }  # it may be readable the next time
        if links and not waiting:
            links.sort(reverse=True)
            seen = set(map(identity_of, folders)) if seen is None else seen
    return files, folders


def _scan(folder: str) -> tuple[list[str], list[str], list[str]]:
    """Give the files of a folder, its folders, and its links to folders."""
    files, folders, links = [], [], []
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
    """Leave out local paths that lead where another one leads; one without links is kept, else the first."""
    kept: dict[str, str] = {}
    real = cache(os.path.realpath)  # of folders
    for path in paths:
        place = path
        if not is_url(path):
            folder, name = os.path.split(os.path.abspath(path))
            place = os.path.join(real(folder), name)
            place = os.path.realpath(place) if os.path.islink(place) else place
        if place not in kept or path == place:
            kept[place] = path
    return list(kept.values())


def identity_of(folder: str) -> tuple[int, int] | str:
    """Give what tells a local folder whatever its name; its name where it is not there."""
    try:
        status = os.stat(folder)
    except OSError:
        return folder
    return status.st_dev, status.st_ino


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle: reading it will say so
        return False
