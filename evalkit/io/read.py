"""Read files: the bytes of each are read once, and the next ones are requested ahead."""

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

READ_AHEAD = 64  # files requested from the disk ahead of reading; cold folders take a third of the time

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # does not wait for a pipe
_OWN = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # the open files of this process
_ADVISES = hasattr(os, "posix_fadvise")


def read_file(path: str | os.PathLike, *, limited: bool = True) -> bytes:
    """Read a file's bytes.

    Parameters
    ----------
    path : str or path
    limited : bool
        Whether to reject a file that exceeds `evalkit.io.limits`.

    Raises
    ------
    OSError
        As ``open``, and for a pipe or device. A pipe that the caller holds open, such as that of a shell's
        ``<(command)``, is read to its end.
    """
    if os.fspath(path).startswith(_OWN):
        with open(path, "rb") as file:
            piped = file.read(limits().bytes + 1)
            check_size(len(piped))
            return piped
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
        For invalid JSON, and for lists and objects nested deeper than Python can read.
    """
    data = read_file(path)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_files(
    paths: Iterable[str], most: int | None = None, *, limited: bool = True
) -> Iterator[tuple[str, bytes | OSError]]:
    """Read many files, in order; the next `READ_AHEAD` are requested ahead, and those behind a URL concurrently.

    Parameters
    ----------
    paths : iterable of str
    most : int, optional
        The number of bytes to read from the beginning of each; None for all.
    limited : bool
        Whether to reject files that exceed `evalkit.io.limits`.

    Yields
    ------
    path : str
    data : bytes, or the OSError met
        A pipe or device in a folder is an error, without waiting for it, as is a file that exceeds a limit. Failed
        reads of URLs are retried first.
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
                descriptor = _open(path)  # too many were open; some are closed now
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
        except OSError:  # a pipe, for example; reading it will report that
            pass
    return descriptor


def _read(descriptor: int, most: int | None, limit: int) -> bytes | OSError:
    """Read and close a file; a file larger than the limit is not read."""
    try:
        status = os.fstat(descriptor)
        check_regular(status)
        if most is not None:
            return os.read(descriptor, most)
        if status.st_size > limit:
            check_size(status.st_size)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:  # one more byte was requested: this is the end
            return data
        chunks, size = [data], len(data)
        while chunk := os.read(descriptor, 1 << 20):  # it grows, or has no size, as in /proc
            chunks.append(chunk)
            if (size := size + len(chunk)) > limit:
                check_size(size)
        return b"".join(chunks)
    except MemoryError:
        return LimitError(errno.ENOMEM, NO_MEMORY)
    except OSError as error:
        return error
    finally:
        os.close(descriptor)
