"""Where logs live: what a user names (a folder, a file, a URL, a glob, several of these) as a list of files."""

import glob
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

from evalkit.io.files import SourceError
from evalkit.io.paths import INSIDE, absolute, common_folder, has_magic, is_url, protocol_of
from evalkit.io.storage import FileMark, StorageOptions

Source = str | os.PathLike | Iterable[str | os.PathLike]

_INNER = re.compile(r"(?P<protocol>zip|tar)://(?P<inner>.*)::(?P<archive>.+)", re.DOTALL)


class Listing(NamedTuple):
    """The files of a source.

    Attributes
    ----------
    root : str
        The folder that all of it lies in.
    files, folders : list of str
        In the order of the sources that were named, those of each sorted; none twice, under whatever names. A folder
        that can't be listed stands among the files: reading it fails, and the ledger says why.
    marks : dict of str to FileMark
        Of files behind a URL, as the listing names size and time; empty for local ones.
    """

    root: str
    files: list[str]
    folders: list[str]
    marks: dict[str, FileMark]


def list_source(source: Source, pattern: str = "*", *, recursive: bool = True) -> Listing:
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
    folders: dict[str, None] = {}
    marks: dict[str, FileMark] = {}
    for text in [source] if isinstance(source, str | os.PathLike) else source:
        base, paths = _expand(os.fspath(text))
        found: list[str] = []
        for path in paths:
            own_files, own_folders, own_marks = _list_one(path, recursive)
            if own_folders and pattern != "*":
                own_files = [file for file in own_files if fits(file, pattern)]
            roots.append(base or (path if own_folders else os.path.dirname(path)))
            found += own_files
            folders |= dict.fromkeys(sorted(own_folders))
            marks |= own_marks
        files |= dict.fromkeys(sorted(found))
    root = roots[0] if len(set(roots)) == 1 else common_folder(map(absolute, roots))
    if len(roots) > 1:
        files, folders = _once(files), _once(folders)
    return Listing(root, list(files), list(folders), marks)


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


def fits(path: str, pattern: str) -> bool:
    """Tell whether a file's name fits a glob; its ending may be in capitals."""
    stem, dot, ending = os.path.basename(path).rpartition(".")
    return fnmatch(f"{stem}{dot}{ending.lower()}", pattern) or fnmatch(f"{stem}{dot}{ending}", pattern)


def list_files(source: Source, pattern: str = "*", *, recursive: bool = True) -> list[str]:
    """List the files of a source, sorted by path, hidden files and folders left out; see `list_source`."""
    return list_source(source, pattern, recursive=recursive).files


def list_tree(source: Source, *, recursive: bool = True) -> tuple[list[str], list[str]]:
    """List the files of a source, and the folders that were looked into; see `list_source`."""
    listing = list_source(source, recursive=recursive)
    return listing.files, listing.folders


def mark_of(path: str) -> FileMark | None:
    """Ask for a file's or folder's mark; None where it is not there."""
    if is_url(path):
        from evalkit.io.remote import mark_remote

        return mark_remote(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return FileMark(status.st_size, status.st_mtime, f"{status.st_mtime_ns} {status.st_ctime_ns}")


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
    if text.startswith("samples:"):
        return _sample(text)
    if is_url(text):
        return _checked_url(text)
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
    return name.startswith("samples:")


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
        raise SourceError(f"{path}: no JSON file") from None
    if not isinstance(options, dict):
        raise SourceError(f"{path}: no JSON object")
    return options


def _sample(text: str) -> str:
    from importlib.resources import files as package_files  # as slow to import as the rest of this module

    root = Path(str(package_files("evalkit"))) / "samples"
    path = root / text.removeprefix("samples:")
    if not path.exists() or path.resolve() == root.resolve():
        known = ", ".join(f"samples:{p.name}" for p in sorted(root.iterdir()) if _is_sample(p))
        raise SourceError(f"{text}: no such samples; there are {known}")
    return str(path)


def _is_sample(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(("_", "."))


def _checked_url(url: str) -> str:
    """Write a URL in the one form that paths have here; refuse credentials, which every table would show."""
    from urllib.parse import unquote, urlsplit

    if urlsplit(url).username or urlsplit(url).password or (protocol_of(url) in ("http", "https") and "?" in url):
        bare = re.sub(r"(?<=://)[^/]*@", "", url).partition("?")[0]
        raise SourceError(f"{bare}: credentials don't belong in a URL; give storage options or set the environment")
    if protocol_of(url) in ("file", "local"):
        return resolve(unquote(url.partition("://")[2]))
    if match := _INNER.fullmatch(url):
        archive = resolve(match["archive"])
        return f"{match['protocol']}://{archive}{INSIDE}{match['inner'].strip('/')}"
    if protocol_of(url) in ("zip", "tar") and INSIDE not in url:
        return f"{protocol_of(url)}://{resolve(url.partition('://')[2])}{INSIDE}"
    return url


def _expand(text: str) -> tuple[str | None, list[str]]:
    """Give the files and folders that a name stands for; for a glob also the folder that they are looked for in."""
    glob_like = has_magic(text) and not text.startswith("samples:")
    try:
        if glob_like and is_url(text):
            from evalkit.io.remote import glob_remote

            url = _checked_url(text)
            base, found = _fixed_part(url), glob_remote(url)
        elif glob_like and not os.path.lexists(text):
            text = os.path.expanduser(text)
            base, found = _fixed_part(text), sorted(glob.glob(text, recursive=True))
        else:
            return None, [resolve(text)]
    except OSError as error:
        raise SourceError(f"{text}: {error.strerror or error}") from None
    if not found:
        raise SourceError(f"{text}: no file matches")
    return base, found


def _fixed_part(pattern: str) -> str:
    """Give the folder of a glob that stands before its first special character."""
    parts = pattern.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if has_magic(part))])


def _list_one(path: str, recursive: bool) -> tuple[list[str], list[str], dict[str, FileMark]]:
    if is_url(path):
        from evalkit.io.remote import list_remote

        try:
            marks, folders = list_remote(path, recursive=recursive)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from None
        return list(marks), folders, marks
    return (*_walk(path, recursive), {}) if os.path.isdir(path) else ([path], [], {})


def _walk(root: str, recursive: bool) -> tuple[list[str], list[str]]:
    """List a local folder; folders that were seen already are not listed again."""
    files: list[str] = []
    folders: list[str] = []
    seen: set[tuple[int, int] | str] | None = None  # asked for only where a link may lead to a folder again
    waiting, links = [root], []
    while waiting or links:
        # links last: a folder that is there under its own name keeps it
        folder = waiting.pop() if waiting else links.pop()
        try:
            if seen is not None:
                if (identity := identity_of(folder)) in seen:
                    continue
                seen.add(identity)
            folders.append(folder)
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if not _is_folder(entry):
                        files.append(entry.path)
                    elif recursive:
                        (links if entry.is_symlink() else waiting).append(entry.path)
        except OSError as error:
            if folder == root:
                raise SourceError(f"{root}: {error.strerror or error}") from error
            files.append(folder)
        if links and not waiting:
            links.sort(reverse=True)
            seen = set(map(identity_of, folders)) if seen is None else seen
    return files, folders


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
