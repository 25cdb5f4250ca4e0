"""Listing a folder and reading files: each file is listed once, and its bytes are read once."""

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

READ_AHEAD = 64  # files whose bytes are asked of the disk before they are read; cold folders take a third of the time


_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # of a pipe nothing is waited for


class SourceError(ValueError):
    """A source that can't be used at all: not there, not readable, or holding nothing of the kind asked for."""


def resolve(source: str | os.PathLike) -> str:
    """Turn what a user names into a local path.

    Parameters
    ----------
    source : str or path
        A path, ``~`` allowed, or ``samples:NAME`` for the sample data that come with the package.

    Returns
    -------
    str

    Raises
    ------
    SourceError
        Where nothing stands at that path.
    """
    text = os.fspath(source)
    if not text:
        raise SourceError("no path was given (the path is empty)")
    if text.startswith("samples:"):
        from importlib.resources import files as package_files  # as slow to import as the rest of this module

        root = Path(str(package_files("evalkit"))) / "samples"
        path = root / text.removeprefix("samples:")
        if not path.exists() or path.resolve() == root.resolve():
            known = ", ".join(f"samples:{p.name}" for p in sorted(root.iterdir()) if _is_sample(p))
            raise SourceError(f"{text}: no such samples; there are {known}")
        return str(path)
    try:
        path = Path(text).expanduser()
        there = path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a NUL byte, the home of an unknown user
        raise SourceError(f"{text}: {error}") from error
    if not there:
        raise SourceError(f"{text}: no such file or folder")
    return str(path)


def _is_sample(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(("_", "."))


def list_files(source: str | os.PathLike, pattern: str = "*", *, recursive: bool = True) -> list[str]:
    """List the files of a folder: sorted by path, hidden files and folders left out.

    Parameters
    ----------
    source : str or path
        A folder, or a single file (listed as itself, whatever `pattern` says).
    pattern : str
        Glob matched against the file's name, as in ``*.json``.
    recursive : bool
        Also the folders below. Links to folders are followed once, never in a circle.

    Returns
    -------
    list of str

    Raises
    ------
    SourceError
        Where `source` is not there or can't be listed.
    """
    root = resolve(source)
    if not os.path.isdir(root):
        return [root]
    files = list_tree(root, recursive=recursive)[0]
    return files if pattern == "*" else [path for path in files if fnmatch(os.path.basename(path), pattern)]


def list_tree(source: str | os.PathLike, *, recursive: bool = True) -> tuple[list[str], list[str]]:
    """List the files of a folder, and the folders that were looked into; see `list_files`.

    Returns
    -------
    files, folders : list of str
        Both sorted. A folder that can't be listed stands among the files: reading it fails, and the ledger says why.
    """
    root = resolve(source)
    files: list[str] = []
    visited: dict[tuple[int, int], str] = {}
    waiting, links = [root], []
    while waiting or links:
        # links last: a folder that is there under its own name keeps it
        folder = waiting.pop() if waiting else links.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited[status.st_dev, status.st_ino] = folder
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
        if not waiting:
            links.sort(reverse=True)
    return sorted(files), sorted(visited.values())


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle: reading it will say so
        return False


def read_file(path: str | os.PathLike) -> bytes:
    """Read a file's bytes.

    Raises
    ------
    OSError
        As ``open`` does.
    """
    with open(path, "rb") as file:
        return file.read()


def read_files(paths: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
    """Read many files one after the other, in order; the next `READ_AHEAD` are asked of the disk beforehand.

    Parameters
    ----------
    paths : iterable of str

    Yields
    ------
    path : str
    data : bytes, or the OSError met
        A pipe or device in a folder is not waited for; it counts as an error.
    """
    coming = iter(paths)
    waiting = deque((path, _open(path)) for path in islice(coming, READ_AHEAD))
    try:
        while waiting:
            path, descriptor = waiting.popleft()
            if isinstance(descriptor, OSError) and descriptor.errno in (errno.EMFILE, errno.ENFILE):
                descriptor = _open(path)  # too many were open; by now some are closed
            data = descriptor if isinstance(descriptor, OSError) else _read(descriptor)
            if (ahead := next(coming, None)) is not None:
                waiting.append((ahead, _open(ahead)))
            yield path, data
    finally:
        for _, descriptor in waiting:
            if not isinstance(descriptor, OSError):
                os.close(descriptor)


def _open(path: str) -> int | OSError:
    """Open a file and tell the kernel that it will be read soon."""
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        return error
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # a pipe, for one; reading it will say so
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
    return descriptor


def _read(descriptor: int) -> bytes | OSError:
    """Read and close a file."""
    try:
        status = os.fstat(descriptor)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return OSError(errno.EINVAL, "not a regular file")
        parts = []
        while part := os.read(descriptor, max(status.st_size + 1, 1 << 16)):
            parts.append(part)
        return b"".join(parts)
    except OSError as error:
        return error
    finally:
        os.close(descriptor)
