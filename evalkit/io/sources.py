"""Resolve sources of logs as users name them (folders, files, globs, URLs, archives, samples), and list their files."""

import glob
import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple, overload
from urllib.parse import quote

from evalkit.io.paths import INSIDE, FileState, SourceError, absolute, check_path, common_folder, is_url, protocol_of
from evalkit.io.read import read_json
from evalkit.io.remote import glob_remote, list_remote, state_remote
from evalkit.io.secrets import is_masking, masked

Source = str | os.PathLike | Iterable[str | os.PathLike]
SETTLED = 2.0  # seconds since its last change before a file is settled; sooner, it may change without a new time stamp
NOTES = ".evalkit"  # name of the folder next to pages with evalkit's records of reports and pages
MISSING = FileState(0, 0)  # state of a dangling link, or of a file that vanished after it was listed
_ARCHIVES = ("zip", "tar")
_SAMPLES = "samples:"
_SAMPLES_FOLDER = Path(__file__).parents[1] / "samples"
_PROJECT = re.compile(  # a folder path as Claude Code encodes it, but not a number or option such as -1 or -v
    r"(?:(?<=/)|\A(?=-[A-Za-z]\w*[-/]|[A-Za-z]--))(?:-|[A-Za-z]--)[A-Za-z0-9-]+(?=/|\Z)"
)
_PARTS = re.compile(r"::|!/|[a-z]+://")


class Listing(NamedTuple):
    """The files of a source, each listed once. An unreadable folder counts as a file, so that the ledger names it."""

    root: str  # folder that contains all files
    files: list[str]  # in the order of the given sources, and sorted within each source
    folders: dict[str, int]  # change time of each folder's inode (0 if unknown), in the same order
    states: dict[str, FileState]  # states of remote files; empty for local files
    named: Collection[str] = ()  # files that the user named, instead of a folder, a glob or an archive with them
    paths: Sequence[str] = ()  # folders, files and archives that the names of the source mean; globs are expanded


def source_names(source: Source) -> list[str]:
    """Return the non-empty names of a source, which may be one name or several."""
    names = [source] if isinstance(source, str | os.PathLike) else source
    return list(filter(None, map(str, names)))


def anchored(name: str | os.PathLike) -> str:
    """Make a name independent of the working directory."""
    text = os.path.expanduser(os.fspath(name)).removeprefix("file://")
    check_path(text)  # before `absolute`, since credentials are no longer detected in an absolute path
    return absolute(text) if text and not text.startswith(_SAMPLES) else text


def resolve(source: str | os.PathLike) -> str:
    """Resolve the name of a source to an existing path, or to a URL without credentials.

    Parameters
    ----------
    source : str or path
        The source.

    Returns
    -------
    str
        The path or URL. A URL is not checked for existence.

    Raises
    ------
    SourceError
        If the path does not exist, or the URL contains credentials.

    Examples
    --------
    >>> io.resolve("samples:crafter").endswith("crafter")
    True
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

    check_path(text)
    name, inner = text.removeprefix("file://"), ""
    protocol = protocol_of(name)
    if protocol in _ARCHIVES and INSIDE not in text:  # zip://runs.zip, or zip://inner::runs.zip as in fsspec
        inner, _, name = text.partition("://")[2].rpartition("::")
    elif protocol:
        return text
    if protocol and is_url(name):  # an archive behind a URL
        return f"{protocol}://{name}{INSIDE}{inner.strip('/')}"
    name = str(Path(os.path.expanduser(name)))
    try:
        os.stat(name)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: NUL character in the path
        raise SourceError(f"{text}: no such file or folder") from None
    except OSError as error:
        raise SourceError(f"{text}: {error.strerror}") from None
    return f"{protocol}://{name}{INSIDE}{inner.strip('/')}" if protocol else _as_archive(name)


def _as_archive(path: str) -> str:
    """Return the URL of a local archive's contents: ``zip://runs.zip!/`` for ``runs.zip``. Keep other paths."""
    protocol = os.path.splitext(path)[1].lower()[1:]
    return f"{protocol}://{path}{INSIDE}" if protocol in _ARCHIVES and os.path.isfile(path) else path


def expand(text: str) -> tuple[str, list[str]]:
    """Return the folder that a glob searches ("" for a plain name), and the matching files and folders."""
    if not has_magic(text) or (not is_url(text) and os.path.lexists(text)):
        return "", [resolve(text)]
    check_path(text)
    try:
        if is_url(text):
            pattern = resolve(text)
            paths = glob_remote(pattern)
        else:
            pattern = os.path.expanduser(text)
            if text.startswith(_SAMPLES):
                pattern = os.path.join(_SAMPLES_FOLDER, text.removeprefix(_SAMPLES))
            paths = list(map(_as_archive, sorted(glob.glob(pattern, recursive=True))))
    except OSError as error:
        raise SourceError(f"{text}: {error.strerror or error}") from None
    if not paths:
        raise SourceError(f"{text}: no file matches")
    return _fixed_part(pattern), paths


def _fixed_part(pattern: str) -> str:
    """Return the folder part of a glob before the first component with a wildcard."""
    names = pattern.split("/")
    return "/".join(names[: next(i for i, name in enumerate(names) if has_magic(name))])


def list_source(source: Source, pattern: str = "*", *, recursive: bool = True, known: Listing | None = None) -> Listing:
    """List the files of a source, except hidden files and reports and pages that evalkit wrote.

    Links to folders are followed, but every folder is listed only once, so circular links do no harm.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs such as ``runs/exp_*``, ``samples:NAME``, URLs that fsspec knows (``s3://bucket/runs``,
        also with ``*``) and archives (``zip://::runs.zip``).
    pattern : str
        Glob for the names of files in folders. A file that `source` names directly is always included.
    recursive : bool
        Whether to read subfolders.
    known : Listing, optional
        An earlier listing with the same pattern; it is returned if `source` is a local folder without changes.

    Returns
    -------
    Listing
        Paths of files and folders, and the states of remote files.

    Raises
    ------
    SourceError
        If the source can't be listed.

    Examples
    --------
    >>> len(io.list_source("samples:crafter").states) > 0
    False
    """
    names = source_names(source)
    roots: list[str] = []
    files: dict[str, None] = {}
    folders: dict[str, int] = {}
    states: dict[str, FileState] = {}
    named: list[str] = []
    meant: list[str] = []
    for text in names:
        base, paths = expand(text)
        meant += paths
        listed: list[str] = []
        for path in paths:
            own_files, own_folders = [path], dict[str, int]()
            if is_url(path):
                try:
                    own_states, urls = list_remote(path, recursive=recursive)
                except OSError as error:
                    raise SourceError(f"{path}: {error.strerror or error}") from None
                states |= own_states
                own_files, own_folders = list(own_states), dict.fromkeys(urls, 0)
            elif os.path.isdir(path):
                if known and path in known.folders and names == [text] and not base and _is_as_before(known.folders):
                    return known._replace(root=path, states={}, paths=[path])
                own_files, own_folders = _walk(path, recursive)
            if own_files == [path] and not base:
                named.append(path)
            roots.append(base or (path if own_folders else os.path.dirname(path)))
            is_any = pattern == "*" or not own_folders
            listed += own_files if is_any else filter(partial(fits, pattern=pattern), own_files)
            folders |= sorted(own_folders.items())
        try:
            "".join(listed).encode()
        except UnicodeEncodeError:  # tables can't store such a name; reading the escaped path reports the cause
            listed = [name.encode(errors="backslashreplace").decode() for name in listed]
        files |= dict.fromkeys(sorted(listed))
    root = roots[0] if len(set(roots)) == 1 else common_folder(map(absolute, roots))
    if len(roots) > 1:
        files, folders = dict.fromkeys(_once(files)), {folder: folders[folder] for folder in _once(folders)}
    return Listing(root, list(files), folders, states, named, meant)


def fits(path: str, pattern: str) -> bool:
    """Return whether the name of a file matches a glob. The extension may also be in upper case."""
    name = os.path.basename(path)
    if fnmatchcase(name, pattern):
        return True
    stem, dot, ending = name.rpartition(".")
    return fnmatchcase(f"{stem}{dot}{ending.lower()}", pattern)


def _is_as_before(folders: Mapping[str, int]) -> bool:
    """Return whether no folder has changed. This is faster than listing the folders."""
    try:
        return all(changed and os.stat(folder).st_ctime_ns == changed for folder, changed in folders.items())
    except OSError:
        return False


def _walk(root: str, recursive: bool) -> tuple[list[str], dict[str, int]]:
    """Return the files of a local folder, and its subfolders with their change times (0 if they may change again)."""
    files: list[str] = []
    folders: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()  # device and inode of listed folders, since links may repeat them
    waiting, links = [root], list[str]()
    newest = (time.time() - SETTLED) * 1e9  # a folder changed after this may change without a new time stamp
    while waiting or links:
        folder = waiting.pop() if waiting else links.pop()  # links last, so that a folder is listed under its real path
        try:
            status = os.stat(folder)
            if (identity := (status.st_dev, status.st_ino)) in seen:
                continue
            seen.add(identity)
            folders[folder] = status.st_ctime_ns if status.st_ctime_ns <= newest else 0
            with os.scandir(folder) as found:
                entries = list(found)
            has_notes = any(entry.name == NOTES for entry in entries)
            for entry in entries:
                name = entry.name
                is_page = has_notes and (name == "manifest.json" or name.endswith(".html"))
                if name.startswith(".") or is_page or (has_notes and os.path.isdir(f"{folder}/{NOTES}/{name}")):
                    continue
                is_link = entry.is_symlink()
                if not (os.path.isdir(entry.path) if is_link else entry.is_dir()):  # a circular link is not a folder
                    files.append(entry.path)
                elif recursive:
                    (links if is_link else waiting).append(entry.path)
                    if is_link:
                        folders[folder] = 0
        except OSError as error:
            if folder == root:
                raise SourceError(f"{root}: {error.strerror or error}") from error
            files.append(folder)
            folders |= {os.path.dirname(folder): 0, folder: 0}  # list both again next time
        if not waiting:
            links.sort(reverse=True)
    return files, folders


def _once(paths: Iterable[str]) -> list[str]:
    """Drop repeated paths of the same local file. Keep the path without links, or else the first path."""
    first_paths: dict[str, str] = {}
    real = cache(os.path.realpath)  # called for folders only
    for path in paths:
        place = path
        if not is_url(path):
            folder, name = os.path.split(os.path.abspath(path))
            place = os.path.join(real(folder), name)
            place = os.path.realpath(place) if os.path.islink(place) else place
        if place not in first_paths or path == place:
            first_paths[place] = path
    return list(first_paths.values())


def state_of(path: str) -> FileState | None:
    """Return the state of a file or folder; None if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return state_remote(path) if is_url(path) else None
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@overload
def own_sources(*sources: list[str]) -> tuple[list[str], ...]: ...


@overload
def own_sources(*sources: str | list[str]) -> tuple[str | list[str], ...]: ...


def own_sources(*sources: str | list[str]) -> tuple[str | list[str], ...]:
    """Drop sample data if any source contains the user's data, so that the two never mix.

    Parameters
    ----------
    *sources : str or list of str
        Values of the parameters of a notebook that name sources.

    Returns
    -------
    tuple
        The sources. If any of them is not a sample, samples are replaced by ``""`` or ``[]``.

    Examples
    --------
    >>> evalkit.own_sources(["my/runs"], ["samples:mindcraft/tasks"])
    (['my/runs'], [])
    """
    names = [name for source in sources for name in source_names(source)]
    if all(name.startswith(_SAMPLES) for name in names):
        return sources
    return tuple(type(source)() if is_sample(source) else source for source in sources)


def is_sample(source: object) -> bool:
    """Return whether a source names sample data, such as ``samples:crafter``."""
    names = source if isinstance(source, list) else [source]
    return any(isinstance(name, str) and name.startswith(_SAMPLES) for name in names)


def without_projects(text: str) -> str:
    """Replace names of folders that Claude Code derives from a working directory by a digest.

    Examples
    --------
    >>> without_projects("projects/-home-jane-thesis/5d1c.jsonl")
    'projects/project-dbdefa/5d1c.jsonl'
    """

    def digest(match: re.Match) -> str:
        return f"project-{hashlib.blake2b(match[0].encode(), digest_size=3).hexdigest()}"

    return _PROJECT.sub(digest, text)


def shown_paths(sources: Iterable[str]) -> Callable[[str], str]:
    """Return a function that shortens paths in a text: the path of a source to its last part, the home folder to ``~``.

    Names of project folders become digests (`without_projects`), and credentials in paths are masked.
    """
    names: dict[str, str] = {}
    hidden = masked if is_masking() else str
    for source in sources:
        names |= {part: hidden(part) for part in source.split("/") if hidden(part) != part}
        text = os.path.join(_SAMPLES_FOLDER, source.removeprefix(_SAMPLES)) if source.startswith(_SAMPLES) else source
        local = [part for part in _PARTS.split(text) if part.startswith("/")] if is_url(text) else [text]
        for part in (part for part in local if "\0" not in part):
            path = os.path.abspath(os.path.expanduser(_fixed_part(part) if has_magic(part) else part))
            for place in (path, os.path.realpath(path)):
                while place.count("/") > 1:
                    names.setdefault(place, hidden(without_projects(os.path.basename(place))))
                    place = os.path.dirname(place)
    home = os.path.expanduser("~").rstrip("/")
    names |= {home: "~"} if home else {}
    names = {quote(path, safe=""): quote(name, safe="") for path, name in names.items()} | names
    found = re.compile(rf"(?<![\w.~-])(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?![\w-])")

    def shortened(text: str) -> str:
        return without_projects(found.sub(lambda match: names[match[0]], text) if names else text)

    return shortened


def read_storage_options(path: str | os.PathLike) -> dict[str, Any]:
    """Read options for fsspec from a JSON file. They may be secret, so error messages do not repeat them."""
    try:
        return dict(read_json(path).items())
    except (OSError, ValueError, AttributeError) as error:
        raise SourceError(f"{path}: can't be read as a JSON object ({type(error).__name__})") from None
