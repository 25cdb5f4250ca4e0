"""Reading files: the bytes of each are read once, the next ones are asked for before."""

import errno
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from evalkit.io.limits import NO_MEMORY, LimitError, check_size, limits
from evalkit.io.paths import NOT_REGULAR, check_regular, is_url, redacted

READ_AHEAD = 64  # files whose bytes are asked of the disk before they are read; cold folders take a third of the time

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # of a pipe nothing is waited for
_OWN = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # what this process has open
_ADVISES = hasattr(os, "posix_fadvise")


def read_file(path: str | os.PathLike, *, limited: bool = True) -> bytes:
    """Read a file's bytes.

    Parameters
    ----------
    path : str or path
    limited : bool
        Refuse a file beyond `evalkit.io.limits`.

    Raises
    ------
    OSError
        As ``open`` does, and for a pipe or device. A pipe that the caller holds open, such as that of a shell's
        ``<(command)``, is read to its end.
    """
    if os.fspath(path).startswith(_OWN):
        with open(path, "rb") as file:
            own = file.read(limits().bytes + 1)
            check_size(len(own))
            return own
    ((_, data),) = read_files([os.fspath(path)], limited=limited)
    if isinstance(data, OSError):
        data.filename = redacted(data.filename or os.fspath(path))
        raise data
    return data


def read_json(path: str | os.PathLike) -> Any:
    """Read a JSON file.

    Raises
    ------
    OSError
        As `read_file`.
    ValueError
        For what is not JSON, and for lists and objects nested deeper than Python can read them.
    """
    data = read_file(path)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_files(
    paths: Iterable[str], most: int | None = None, *, limited: bool = True
) -> Iterator[tuple[str, bytes | OSError]]:
    """Read many files, in order; the next `READ_AHEAD` are asked for beforehand, and those behind a URL side by side.

    Parameters
    ----------
    paths : iterable of str
    most : int, optional
        Bytes from the beginning of each; None for all.
    limited : bool
        Refuse files beyond `evalkit.io.limits`.

    Yields
    ------
    path : str
    data : bytes, or the OSError met
        A pipe or device in a folder is not waited for; it counts as an error, and so does a file beyond a limit. What
        fails behind a URL is tried again first.
    """
    for remote, group in groupby(paths, is_url):
        if remote:
            from evalkit.io.remote import read_remote  # loads fsspec

            yield from read_remote(group, most, limited=limited)
        else:
            yield from _read_local(group, most, limits().bytes if limited else sys.maxsize)


def _read_local(paths: Iterable[str], most: int | None, limit: int) -> Iterator[tuple[str, bytes | OSError]]:
    coming = iter(paths)
    waiting = deque((path, _open(path)) for path in islice(coming, READ_AHEAD))
    try:
        while waiting:
            path, descriptor = waiting.popleft()
            if isinstance(descriptor, OSError) and descriptor.errno in (errno.EMFILE, errno.ENFILE):
                descriptor = _open(path)  # too many were open; by now some are closed
            if (ahead := next(coming, None)) is not None:
                waiting.append((ahead, _open(ahead)))
            yield path, descriptor if isinstance(descriptor, OSError) else _read(descriptor, most, limit)
    finally:
        for _, descriptor in waiting:
            if not isinstance(descriptor, OSError):
                os.close(descriptor)


def _open(path: str) -> int | OSError:
    """Open a file and tell the kernel that it will be read soon."""
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        return OSError(errno.EINVAL, NOT_REGULAR, path) if error.errno == errno.ENXIO else error  # a socket
    if _ADVISES:
        try:  # noqa: SIM105 - half the time of suppress, once per file
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
        except OSError:  # a pipe, for one; reading it will say so
            pass
    return descriptor


def _read(descriptor: int, most: int | None, limit: int) -> bytes | OSError:
    """Read and close a file; one of more bytes than the limit is not read."""
    try:
        status = os.fstat(descriptor)
        check_regular(status)
        if most is not None:
            return os.read(descriptor, most)
        if status.st_size > limit:
            check_size(status.st_size)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:  # one byte more was asked for: this is the end
            return data
        parts, size = [data], len(data)
        while part := os.read(descriptor, 1 << 20):  # it grows, or it does not tell its size, as in /proc
            parts.append(part)
            if (size := size + len(part)) > limit:
                check_size(size)
        return b"".join(parts)
    except MemoryError:
        return LimitError(errno.ENOMEM, NO_MEMORY)
    except OSError as error:
        return error
    finally:
        os.close(descriptor)
