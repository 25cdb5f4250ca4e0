"""Read files: the bytes of each once, within the limit."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, BinaryIO

from evalkit.io.paths import LimitError, check_regular, is_url, most_bytes, redacted, too_large
from evalkit.io.remote import read_remote

Excerpt = Callable[[str, Callable[[], BinaryIO]], bytes | None]  # takes what is needed; None for the whole file
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # does not wait for a pipe


def read_file(path: str | os.PathLike, *, limited: bool = True) -> bytes:
    """Read a file's bytes; OSError for a pipe or device, and, if `limited`, for a file that is too large."""
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
    as is a file that is too large, if `limited`. With `excerpt`, its part of a file is the data.
    """
    limit = most_bytes() if limited else sys.maxsize
    for remote, group in groupby(paths, is_url):
        if remote:
            yield from read_remote(group, most, limited=limited, excerpt=excerpt)
            continue
        for path in group:
            try:
                yield path, _read_local(path, most, excerpt, limit)
            except MemoryError:
                yield path, LimitError(errno.ENOMEM, "the memory does not suffice for this file")
            except OSError as error:
                is_escaped = "\\udc" in path and isinstance(error, FileNotFoundError)
                yield path, OSError(errno.EILSEQ, "its name is not UTF-8") if is_escaped else error


def _read_local(path: str, most: int | None, excerpt: Excerpt | None, limit: int) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        check_regular(status)
        if most is not None:
            return os.read(descriptor, most)
        if excerpt:
            if (part := excerpt(path, lambda: os.fdopen(descriptor, "rb", closefd=False))) is not None:
                return part
            os.lseek(descriptor, 0, os.SEEK_SET)
        if status.st_size > limit:
            raise too_large(status.st_size)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:  # it grows, or has no size, as in /proc
            with open(descriptor, "rb", closefd=False) as file:
                data += file.read()
            if len(data) > limit:
                raise too_large(len(data))
        return data
    finally:
        os.close(descriptor)
