"""What is known of files, and of the file systems behind URLs, without loading fsspec."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

StorageOptions = Mapping[str, Any] | None
_options: ContextVar[StorageOptions] = ContextVar("storage_options", default=None)


SETTLED = 2.0  # seconds a file must have been left alone: one that is being written may change within its time stamp


class FileMark(NamedTuple):
    """What tells one state of a file from another: bytes, time of the last change (epoch seconds), and more."""

    size: int
    modified: float
    tag: str = ""


@contextmanager
def storage(options: StorageOptions) -> Iterator[None]:
    """Open URLs with these options of their file system within a ``with`` block.

    Parameters
    ----------
    options : mapping or None
        As fsspec takes them; they replace those of a block around this one. None keeps these.
    """
    token = _options.set(storage_options() if options is None else dict(options))
    try:
        yield
    finally:
        _options.reset(token)


def storage_options() -> Mapping[str, Any]:
    """Give the options that URLs are opened with here."""
    return _options.get() or {}
