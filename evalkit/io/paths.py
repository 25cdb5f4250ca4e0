"""Paths and states of files, local or behind a URL, and how large a file may be.

The functions of ``os.path`` that only split and join work for both. A file within an archive has one path too:
``zip://runs.zip!/task/log.json`` is what fsspec calls ``zip://task/log.json::runs.zip``.
"""

import errno
import os
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from evalkit.io.text import cut_line

StorageOptions = Mapping[str, Any] | None

MOST_BYTES = "EVALKIT_MAX_BYTES"  # the variable that limits the size of a file, also once it is decoded
CELL = 32  # bytes that a value of a table takes at least
CHARACTER = 4  # bytes that a character of a text takes at most
INSIDE = "!/"  # between an archive and the path within it
CREDENTIALS_HINT = "credentials don't belong in a URL; give storage options or set the environment"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_options: ContextVar[StorageOptions] = ContextVar("storage_options", default=None)

# Links of a chain of URLs, such as simplecache::s3://bucket/x: each ends where the next one begins
_NAME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}"
_LINK = re.compile(rf"({_NAME})://((?:(?!::{_NAME}(?:://|::))\S)*)")
_NO_HOST = ("zip", "tar", "file", "local")  # protocols of files within files, which have no login
_MOST_NESTED = 20  # archives within archives
_USER = re.compile(r"\A(?:[^/@:]*:.*@|[^/]*@)")  # the text before a host: a password may contain slashes
_QUERY = re.compile(r"[?#;].*")
_SECRET_PARAMETER = re.compile(
    r"(?!(?:max|min|n|num)_)(?:.*_)?(?:token|secret|password|passwd|pwd|passphrase|credentials?|authorization|auth|bearer"
    r"|(?:api|access|private|secret|auth|signing)_?keys?)"
)
SECRET_NAME = re.compile(r"key|secret|token|pass|credential|cred|signature|sig|sas|auth", re.IGNORECASE)


class SourceError(ValueError):
    """A source that can't be used at all: missing, unreadable, or without anything of the kind asked for."""

    def __init__(self, message: object = "") -> None:
        super().__init__("\n".join(map(cut_line, redacted(str(message)).split("\n"))))


class LimitError(OSError):
    """A file that is too large, or needs more memory or stack than there is."""


class FileState(NamedTuple):
    """The state of a file, which changes with its content."""

    size: int
    modified: int  # time of the last change, in epoch nanoseconds; 0 where unknown
    changed: int = 0  # of its inode
    tag: str = ""  # other marks of its state: an ETag, or the state of a file that belongs to it


def is_url(path: str | os.PathLike) -> bool:
    """Return whether a path is a URL, such as ``s3://bucket/runs``."""
    return isinstance(path, str) and "://" in path and _URL.match(path) is not None


def protocol_of(url: str) -> str:
    """Return a URL's protocol, such as ``s3``; empty for a local path."""
    match = _URL.match(url)
    return match[1].lower() if match else ""


def redacted(text: str) -> str:
    """Replace credentials in any URL of a text with ``…``: text before an ``@``, queries of http or named ``token``."""
    return _LINK.sub(_redact_link, text) if "://" in text else text


def _redact_link(match: re.Match) -> str:
    protocol, rest = match.groups()
    if protocol.lower() not in _NO_HOST:
        rest = _USER.sub("…@", rest)
    else:
        rest = redacted(rest) if rest.count("://") < _MOST_NESTED else "…"
    query = _QUERY.search(rest)
    if query and not query[0].startswith("…", 1):
        is_signed = protocol.lower() in ("http", "https") and "?" in query[0]
        pairs = (pair.partition("=") for pair in re.split(r"[?#;&]", query[0]))
        if is_signed or any(value and SECRET_NAME.search(name) for name, _, value in pairs):
            rest = f"{rest[: query.start()]}{query[0][0]}…"
    return f"{protocol}://{rest}"


def check_path(path: str) -> None:
    """Raise SourceError for a URL that contains credentials, which every table and page would show, and for a NUL."""
    if redacted(path) != path:
        raise SourceError(f"{redacted(path)}: {CREDENTIALS_HINT}")
    if "\0" in path:
        raise SourceError(f"{path}: a path can't contain a NUL character")


def is_secret_name(name: str) -> bool:
    """Return whether a parameter's name marks its value as a secret: ``api_key`` does, ``max_tokens`` does not."""
    return _SECRET_PARAMETER.fullmatch(re.sub(r"(?<=[a-z])(?=[A-Z])|[-.]", "_", name).lower()) is not None


def absolute(path: str) -> str:
    """Return a path that does not depend on the working directory; a URL stays as it is."""
    return path if is_url(path) else os.path.abspath(path)


def common_folder(folders: Iterable[str]) -> str:
    """Return the folder that contains, or equals, all folders; empty if there is none."""
    common = os.path.commonprefix([f"{folder.rstrip('/')}/" for folder in folders])  # noqa: RUF071 - cut after a whole name below
    return common.rpartition("/")[0]


@contextmanager
def storage(options: StorageOptions) -> Iterator[None]:
    """Open URLs with these options of fsspec within a ``with`` block; None keeps the options of an enclosing block."""
    token = _options.set(storage_options() if options is None else dict(options))
    try:
        yield
    finally:
        _options.reset(token)


def storage_options() -> Mapping[str, Any]:
    """Return the current options for opening URLs."""
    return _options.get() or {}


def most_bytes() -> int:
    """Return the most bytes that are read of one file: a small archive may contain a very large one."""
    text = os.environ.get(MOST_BYTES, "")
    try:
        return int(float(text)) if text else 2**30
    except ValueError:
        raise SourceError(f"{MOST_BYTES}={text}: write a number, such as 2e9") from None


def too_large(size: int) -> LimitError:
    """Return the error for a file of too many bytes, with the setting that reads it."""
    text = f"{size} bytes are more than the limit of {most_bytes()}; {MOST_BYTES}={size} reads it"
    return LimitError(errno.EFBIG, text)


def check_size(size: int) -> None:
    """Raise LimitError for a file by its size."""
    if size > most_bytes():
        raise too_large(size)


def check_text(size: int, values: int = 0) -> None:
    """Raise LimitError for a document, or a line, whose characters and values take too much memory once decoded."""
    check_size(CHARACTER * size + CELL * values)


def check_json(data: bytes) -> None:
    """Raise LimitError for a JSON document whose characters and values take too much memory once decoded."""
    if (CHARACTER + CELL) * len(data) > most_bytes():  # a smaller one fits even if each byte is a value
        check_text(len(data), count_values(data))


def count_values(data: bytes) -> int:
    """Return how many values JSON has at most: its commas, lists and objects."""
    return sum(map(data.count, b",[{"))


def check_members(members: Iterable[zipfile.ZipInfo]) -> None:
    """Raise OSError for members of a zip archive that share bytes: a small one may unpack to any size like this."""
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise OSError(errno.EINVAL, f"{member.filename} overlaps another member of the archive")
        end = member.header_offset + member.compress_size + 1


def check_regular(status: os.stat_result) -> None:
    """Raise OSError for pipes, sockets and devices: some never end, and opening others waits for a writer."""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "not a regular file")
