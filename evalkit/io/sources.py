"""Sources of logs as users name them (folders, files, globs, URLs, archives, samples), and the files that they hold."""

import glob
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

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
from evalkit.io.read import read_json
from evalkit.io.remote import glob_remote, list_remote, state_remote

Source = str | os.PathLike | Iterable[str | os.PathLike]
SETTLED = 2.0  # seconds without a change: a file that is being written may change within its time stamp
MISSING = FileState(0, 0)  # a dangling link, or a file that vanished after it was listed
_SAMPLES = "samples:"
_SAMPLES_FOLDER = Path(__file__).parents[1] / "samples"
_PARTS = re.compile(r"::|!/|[a-z]+://")
_INNER = re.compile(r"(?P<protocol>zip|tar)://(?P<inner>.*)::(?P<archive>.+)", re.DOTALL)


class FolderState(NamedTuple):
    """The state of a folder, which changes with its entries; 0 if unknown."""

    modified: int
    changed: int = 0


class Listing(NamedTuple):
    """The files of a source.

    Each file is there only once, under whatever names. A folder that can't be listed is among the files: reading it
    fails, and the ledger says why.
    """

    root: str  # the folder that holds all of them
    files: list[str]  # in the order of the sources as given, those of each sorted
    folders: dict[str, FolderState]  # in the same order
    states: dict[str, FileState]  # of files behind a URL; empty for local ones


class KnownFolders:
    """The entries of local folders when last listed: a folder with the same state need not be listed again."""

    def __init__(self, folders: Mapping[str, FolderState], files: Collection[str]) -> None:
        self._states, self._files = folders, files

    def below(self, root: str) -> tuple[list[str], dict[str, FolderState]] | None:
        """Return all files and folders below a folder, if none of these has changed: the quickest way for many."""
        folders = {path: state for path, state in self._states.items() if path == root or path.startswith(f"{root}/")}
        try:
            for path, state in folders.items():
                status = os.stat(path)
                if not state.modified or (status.st_mtime_ns, status.st_ctime_ns) != state:
                    return None
        except OSError:
            return None
        return ([path for path in self._files if path.startswith(f"{root}/")], folders) if root in folders else None

    @cached_property
    def _entries(self) -> dict[str, tuple[list[str], list[str]]]:
        entries: dict[str, tuple[list[str], list[str]]] = {folder: ([], []) for folder in self._states}
        for place, paths in enumerate((self._files, self._states)):
            for path in paths:
                if above := entries.get(path[: path.rfind("/")]):
                    above[place].append(path)
        return entries

    def entries(self, folder: str, state: FolderState) -> tuple[list[str], list[str]] | None:
        """Return a folder's files and folders; None if it has to be listed."""
        return self._entries[folder] if state.modified and self._states.get(folder) == state else None


def source_names(source: Source) -> list[str]:
    """Return the names of a source, which may be one name or several; empty ones are left out."""
    names = [source] if isinstance(source, str | os.PathLike) else source
    return [os.fspath(name) for name in names if os.fspath(name)]


def resolve(source: str | os.PathLike) -> str:
    """Resolve a source's name, also ``~/runs``, a URL or ``samples:NAME``, to a local path or a URL.

    SourceError for a path that does not exist (URLs are not checked), and a URL that holds credentials.
    """
    text = os.fspath(source)
    if not text:
        raise SourceError("no path was given (the path is empty)")
    if text.startswith(_SAMPLES):
        root = _SAMPLES_FOLDER
        path = root / text.removeprefix(_SAMPLES)
        if not path.exists() or path.resolve() == root.resolve():
            folders = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith(("_", ".")))
            raise SourceError(f"{text}: no such samples; there are {', '.join(_SAMPLES + name for name in folders)}")
        return str(path)
    refuse_credentials(text)
    return _normal_url(text) if is_url(text) else _as_archive(_existing(text))


def _existing(text: str) -> str:
    try:
        path = Path(text).expanduser()
        there = path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a NUL byte, the home of an unknown user
        raise SourceError(f"{text}: {getattr(error, 'strerror', None) or error}") from error
    if not there:
        raise SourceError(f"{text}: no such file or folder")
    return str(path)


def _as_archive(path: str) -> str:
    """Return a local archive as a URL of its contents: ``runs.zip`` is ``zip://runs.zip!/``; others as they are."""
    kind = os.path.splitext(path)[1].lower()[1:]
    return f"{kind}://{path}{INSIDE}" if kind in ("zip", "tar") and os.path.isfile(path) else path


def _normal_url(url: str) -> str:
    """Normalise a URL to the form of paths here."""
    if protocol_of(url) in ("file", "local"):
        return _as_archive(_existing(unquote(url.partition("://")[2])))
    if match := _INNER.fullmatch(url):
        archive = _normal_url(match["archive"]) if is_url(match["archive"]) else _existing(match["archive"])
        return f"{match['protocol']}://{archive}{INSIDE}{match['inner'].strip('/')}"
    if protocol_of(url) in ("zip", "tar") and INSIDE not in url:
        return f"{protocol_of(url)}://{_existing(url.partition('://')[2])}{INSIDE}"
    return url


def paths_of(text: str) -> list[str]:
    """Return the files and folders that a name or glob stands for; see `list_source` for names and errors."""
    return _expand(text)[1]


def _expand(text: str) -> tuple[str, list[str]]:
    """Return the files and folders that a name stands for; before them the folder that a glob searches."""
    refuse_credentials(text)
    if not has_magic(text) or (not is_url(text) and os.path.lexists(text)):
        return "", [resolve(text)]
    if text.startswith(_SAMPLES):
        text = os.path.join(_SAMPLES_FOLDER, text.removeprefix(_SAMPLES))
    try:
        if is_url(text):
            pattern = _normal_url(text)
            paths = glob_remote(pattern)
        else:
            pattern = os.path.expanduser(text)
            paths = list(map(_as_archive, sorted(glob.glob(pattern, recursive=True))))
    except OSError as error:
        raise SourceError(f"{text}: {error.strerror or error}") from None
    if not paths:
        raise SourceError(f"{text}: no file matches")
    return _fixed_part(pattern), paths


def _fixed_part(pattern: str) -> str:
    """Return the folder of a glob before its first special character."""
    names = pattern.split("/")
    return "/".join(names[: next(i for i, name in enumerate(names) if has_magic(name))])


def list_source(
    source: Source, pattern: str = "*", *, recursive: bool = True, known: KnownFolders | None = None
) -> Listing:
    """List the files of a source, without hidden files and folders; SourceError if it is not there or can't be listed.

    A source is one or several of folders, files, globs such as ``runs/exp_*``, ``samples:NAME``, URLs that fsspec knows
    (``s3://bucket/runs``, also with ``*``) and archives (``zip://::runs.zip``,
    ``zip://inner/folder::s3://bucket/runs.zip``). The pattern is for names of files in folders: a file that is named
    itself is always included. Links to folders are followed once, never in a circle. Folders that are `known`, listed
    before with the same pattern, are looked into only if they have changed.
    """
    roots: list[str] = []
    files: dict[str, None] = {}
    folders: dict[str, FolderState] = {}
    states: dict[str, FileState] = {}
    for text in [source] if isinstance(source, str | os.PathLike) else source:
        base, paths = _expand(os.fspath(text))
        listed: list[str] = []
        for path in paths:
            own_folders: dict[str, FolderState] = {}
            if is_url(path):
                try:
                    own_states, urls = list_remote(path, recursive=recursive)
                except OSError as error:
                    raise SourceError(f"{path}: {error.strerror or error}") from None
                states |= own_states
                own_files, own_folders = list(own_states), dict.fromkeys(urls, FolderState(0))
            elif os.path.isdir(path):
                unchanged = known.below(path) if known and recursive else None
                own_files, own_folders = unchanged or _walk(path, recursive, known)
            else:
                own_files = [path]
            if own_folders and pattern != "*":
                own_files = [file for file in own_files if fits(file, pattern)]
            roots.append(base or (path if own_folders else os.path.dirname(path)))
            listed += own_files
            folders |= sorted(own_folders.items())
        files |= dict.fromkeys(sorted(listed))
    root = roots[0] if len(set(roots)) == 1 else common_folder(map(absolute, roots))
    if len(roots) > 1:
        files, folders = dict.fromkeys(_once(files)), {folder: folders[folder] for folder in _once(folders)}
    return Listing(root, list(files), folders, states)


def list_files(source: Source, pattern: str = "*", *, recursive: bool = True) -> list[str]:
    """List the files of a source, sorted by path, hidden files and folders left out; see `list_source`."""
    return list_source(source, pattern, recursive=recursive).files


def fits(path: str, pattern: str) -> bool:
    """Return whether a file's name matches a glob; its extension may be in capitals."""
    stem, dot, ending = os.path.basename(path).rpartition(".")
    return fnmatch(f"{stem}{dot}{ending.lower()}", pattern) or fnmatch(f"{stem}{dot}{ending}", pattern)


def _walk(root: str, recursive: bool, known: KnownFolders | None) -> tuple[list[str], dict[str, FolderState]]:
    """List a local folder; folders that were seen already are not listed again."""
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
            linked: list[str] = []
            if known and (entries := known.entries(folder, state)):
                folder_files, below = entries
            else:
                folder_files, below = [], []
                with os.scandir(folder) as there:
                    for entry in there:
                        if not entry.name.startswith("."):
                            kept = linked if entry.is_symlink() else below
                            (kept if _is_folder(entry) else folder_files).append(entry.path)
            folders[folder] = FolderState(0) if linked or status.st_ctime_ns > newest else state
            files += folder_files
            if recursive:
                waiting += below
                links += linked
        except OSError as error:
            if folder == root:
                raise SourceError(f"{root}: {error.strerror or error}") from error
            files.append(folder)
            folders |= {os.path.dirname(folder): FolderState(0), folder: FolderState(0)}  # it may be readable next time
        if links and not waiting:
            links.sort(reverse=True)
            seen = set(map(identity_of, folders)) if seen is None else seen
    return files, folders


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link: reading it will report that
        return False


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


def state_of(path: str) -> FileState | None:
    """Return the state of a file or folder; None if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return state_remote(path) if is_url(path) else None
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def own_sources(*sources: str | list[str]) -> tuple[str | list[str], ...]:
    """Drop sample data as soon as one source is the user's own, so that the two never mix.

    Parameters
    ----------
    *sources : str or list of str
        The sources of one notebook or command; ``""`` and ``[]`` stand for none.

    Returns
    -------
    tuple
        The sources as given; if one of them is not sample data, those that are become ``""`` or ``[]``.
    """
    names = [name for source in sources for name in source_names(source)]
    if all(name.startswith(_SAMPLES) for name in names):
        return sources
    return tuple(type(source)() if is_sample(source) else source for source in sources)


def is_sample(source: object) -> bool:
    """Return whether a source names sample data, such as ``samples:crafter``."""
    names = source if isinstance(source, list) else [source]
    return any(isinstance(name, str) and name.startswith(_SAMPLES) for name in names)


def shown_paths(sources: Iterable[str]) -> Callable[[str], str]:
    """Return a function that shortens paths in a text for those who are handed a page.

    A path of a source, as given, begins with the last part of the source's own path, and so do those above it; the home
    folder becomes ``~``. URLs stay as they are, but for the path of a local archive.
    """
    names: dict[str, str] = {}
    for source in sources:
        text = os.path.join(_SAMPLES_FOLDER, source.removeprefix(_SAMPLES)) if source.startswith(_SAMPLES) else source
        local = [part for part in _PARTS.split(text) if part.startswith("/")] if is_url(text) else [text]
        for part in (part for part in local if "\0" not in part):
            path = os.path.abspath(os.path.expanduser(_fixed_part(part) if has_magic(part) else part))
            for place in (path, os.path.realpath(path)):
                while place.count("/") > 1:
                    names.setdefault(place, os.path.basename(place))
                    place = os.path.dirname(place)
    home = os.path.expanduser("~").rstrip("/")
    names |= {home: "~"} if home else {}
    names |= {quote(path, safe=""): quote(name, safe="") for path, name in names.items()}
    found = re.compile(rf"(?<![\w.~-])(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?![\w-])")
    return lambda text: found.sub(lambda match: names[match[0]], text) if names else text


def read_storage_options(path: str | os.PathLike) -> StorageOptions:
    """Read options for fsspec from a JSON file, which can be readable by its owner only; errors don't repeat them."""
    try:
        options = read_json(path)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise SourceError(f"{path}: not a JSON file") from None
    if not isinstance(options, dict):
        raise SourceError(f"{path}: holds no JSON object")
    return options
