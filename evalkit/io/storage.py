"""What is known of files, and of the file systems behind URLs, without loading fsspec."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from evalkit.io.files import SourceError

StorageOptions = Mapping[str, Any] | None
_options: ContextVar[StorageOptions] = ContextVar("storage_options", default=None)


class FileMark(NamedTuple):
    """What tells one state of a file from another: bytes, time of the last change (epoch seconds), and more."""

    size: int
    modified: float
    tag: str = ""


def read_storage_options(path: str | os.PathLike) -> StorageOptions:
    """Read storage options from a JSON file, which nobody but its owner need be able to read.

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


@contextmanager
def storage(options: StorageOptions) -> Iterator[None]:
    """Open URLs with these options of their file system within a ``with`` block; None keeps those around it."""
    token = _options.set(storage_options() if options is None else dict(options))
    try:
        yield
    finally:
        _options.reset(token)


def storage_options() -> Mapping[str, Any]:
    """Give the options that URLs are opened with here."""
    return _options.get() or {}
