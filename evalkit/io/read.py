"""Read files: the bytes of each once, within the limits."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, BinaryIO

from evalkit.io.limits import NO_MEMORY, NOT_REGULAR, LimitError, check_regular, check_size, limits
from evalkit.io.paths import is_url, redacted
from evalkit.io.remote import read_remote

Excerpt = Callable[[str, BinaryIO], bytes | None]  # takes what is needed of an open file; None for the whole of it
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # does not wait for a pipe


def read_file(path: str | os.PathLike, *, limited: bool = True) -> bytes:
    """Read a file's bytes; OSError for a pipe or device, and, if `limited`, for what exceeds `evalkit.io.limits`."""
    ((_, data),) = read_files([os.fspath(path)], limited=limited)
    if isinstance(data, OSError):
        data.filename = redacted(data.filename or os.fspath(path))
        raise data
    return data


def read_json(path: str | os.PathLike) -> Any:
    """Read a JSON file; ValueError for invalid JSON, and for lists and objects nested deeper than Python can read."""
    data = read_file(path)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_files(
    paths: Iterable[str], most: int | None = None, *, limited: bool = True, excerpt: Excerpt | None = None
) -> Iterator[tuple[str, bytes | OSError]]:
    """Read many files, or the first `most` bytes of each, in order, those behind a URL concurrently.

    Yields the path and its data, or the OSError met: a pipe or device in a folder is an error, without waiting for it,
    as is a file that exceeds `evalkit.io.limits`, if `limited`. With `excerpt`, its part of a local file is the data.
    """
    limit = limits().bytes if limited else sys.maxsize
    for remote, group in groupby(paths, is_url):
        if remote:
            yield from read_remote(group, most, limited=limited)
        else:
            for path in group:
                yield path, _read_local(path, most, limit, excerpt)


def _read_local(path: str, most: int | None, limit: int, excerpt: Excerpt | None) -> bytes | OSError:
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        return OSError(errno.EINVAL, NOT_REGULAR, path) if error.errno == errno.ENXIO else error  # a socket
    try:
        status = os.fstat(descriptor)
        check_regular(status)
        if most is not None:
            return os.read(descriptor, most)
        if excerpt:
            with open(descriptor, "rb", closefd=False) as file:
                if (part := excerpt(path, file)) is not None:
                    return part
            os.lseek(descriptor, 0, os.SEEK_SET)
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
