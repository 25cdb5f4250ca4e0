"""Paths, states and size limits of local and remote files.

The functions of ``os.path`` that only split and join work for both. A file in an archive also has a single path:
``zip://runs.zip!/task/log.json`` is what fsspec calls ``zip://task/log.json::runs.zip``.
"""

import errno
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from evalkit.io.text import cut_line

StorageOptions = Mapping[str, Any] | None

MOST_BYTES = "EVALKIT_MAX_BYTES"  # environment variable that limits the size of a file, before and after decoding
CELL = 32  # minimum size of a value in a table, in bytes
CHARACTER = 4  # maximum size of a character of text, in bytes
INSIDE = "!/"  # separator between an archive and the path inside it
CREDENTIALS_HINT = "credentials don't belong in a URL; give storage options or set the environment"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_options: ContextVar[StorageOptions] = ContextVar("storage_options", default=None)

# The links of a chain of URLs, such as simplecache::s3://bucket/x. Each link ends where the next one begins
_NAME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}"
_LINK = re.compile(rf"({_NAME})://((?:(?!::{_NAME}(?:://|::))\S)*)")
_NO_HOST = ("zip", "tar", "file", "local")  # protocols of local files and archives, which have no login
_MOST_NESTED = 20  # maximum number of nested URLs, as of archives within archives
_USER = re.compile(r"\A(?:[^/@:]*:.*@|[^/]*@)")  # login before a host; a password may contain slashes
_QUERY = re.compile(r"[?#;].*")
_SECRET_PARAMETER = re.compile(
    r"(?!(?:max|min|n|num)_)(?:.*_)?(?:token|secret|password|passwd|pwd|passphrase|credentials?|authorization|auth|bearer"
    r"|(?:api|access|private|secret|auth|signing)_?keys?)"
)
SECRET_NAME = re.compile(r"key|secret|token|pass|credential|cred|signature|sig|sas|auth", re.IGNORECASE)


class SourceError(ValueError):
    """Raised if a source can't be used at all: it is missing, unreadable, or contains nothing of the requested kind."""

    def __init__(self, message: object = "") -> None:
        super().__init__("\n".join(map(cut_line, redacted(str(message)).split("\n"))))


class LimitError(OSError):
    """Raised if a file is too large, or needs more memory or stack than available."""


class FileState(NamedTuple):
    """The state of a file, which changes when its contents change."""

    size: int  # bytes
    modified: int  # time of the last change, in epoch nanoseconds; 0 if unknown
    changed: int = 0  # change time of the inode, in epoch nanoseconds; 0 if unknown
    tag: str = ""  # an ETag, or the sizes of other files that belong to it


def is_url(path: str | os.PathLike) -> bool:
    """Return whether a path is a URL, such as ``s3://bucket/runs``."""
    return isinstance(path, str) and "://" in path and _URL.match(path) is not None


def protocol_of(url: str) -> str:
    """Return the protocol of a URL, such as ``s3``; "" for a local path."""
    match = _URL.match(url)
    return match[1].lower() if match else ""


def redacted(text: str) -> str:
    """Replace credentials in URLs with ``…``: logins before ``@``, queries of http, and queries with secret names."""
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
    """Raise SourceError for a NUL, or for credentials in a URL, since every table and page would show them."""
    if redacted(path) != path:
        raise SourceError(f"{redacted(path)}: {CREDENTIALS_HINT}")
    if "\0" in path:
        raise SourceError(f"{path}: a path can't contain a NUL character")


def is_secret_name(name: str) -> bool:
    """Return whether the name of a parameter means that its value is secret: ``api_key``, but not ``max_tokens``."""
    return _SECRET_PARAMETER.fullmatch(re.sub(r"(?<=[a-z])(?=[A-Z])|[-.]", "_", name).lower()) is not None


def absolute(path: str) -> str:
    """Return a path that does not depend on the working directory. URLs are unchanged."""
    if is_url(path):
        return path
    return os.path.normpath(path) if path.startswith("/") else os.path.abspath(path)  # `abspath` is much slower


def common_folder(folders: Iterable[str]) -> str:
    """Return the deepest folder that contains or equals all folders; "" if there is none."""
    common = os.path.commonprefix([f"{folder.rstrip('/')}/" for folder in folders])  # noqa: RUF071 - cut after a whole name below
    return common.rpartition("/")[0]


@contextmanager
def storage(options: StorageOptions) -> Iterator[None]:
    """Within a ``with`` block, open URLs with these options of fsspec. None keeps the options of an enclosing block."""
    token = _options.set(storage_options() if options is None else dict(options))
    try:
        yield
    finally:
        _options.reset(token)


def storage_options() -> Mapping[str, Any]:
    """Return the current options for opening URLs."""
    return _options.get() or {}


def most_bytes() -> int:
    """Return the maximum size of a file in bytes. A limit is needed, since a small archive may contain a huge file."""
    text = os.environ.get(MOST_BYTES, "")
    try:
        return int(float(text)) if text else 2**30
    except ValueError:
        raise SourceError(f"{MOST_BYTES}={text}: write a number, such as 2e9") from None


def too_large(size: int) -> LimitError:
    """Return the error for a file over the size limit, with the setting that allows it."""
    text = f"{size} bytes are more than the limit of {most_bytes()}; {MOST_BYTES}={size} reads it"
    return LimitError(errno.EFBIG, text)


def check_size(size: int) -> None:
    """Raise LimitError if a file is larger than the limit. `size` is in bytes."""
    if size > most_bytes():
        raise too_large(size)


def check_text(size: int, values: int = 0) -> None:
    """Raise LimitError if the characters and values of a document or line need too much memory once decoded."""
    check_size(CHARACTER * size + CELL * values)


def most_unchecked() -> int:
    """Return the size in bytes up to which a document fits in memory even if every byte is a value."""
    return most_bytes() // (CHARACTER + CELL)


def check_document(
    data: bytes, count: Callable[[bytes], tuple[int, int]] | None = None, *, usual_size: int = 0
) -> None:
    """Raise LimitError if a document needs too much memory once decoded. Each document passes this check first.

    `count` returns the numbers of characters and of values to be decoded; by default all of them, in JSON. Documents up
    to `usual_size`, in bytes, are not checked.
    """
    if len(data) <= usual_size:
        return
    if count:
        check_text(*count(data))
    elif len(data) > most_unchecked():
        check_text(len(data), count_values(data))


def count_values(data: bytes) -> int:
    """Return an upper bound on the number of values in JSON: its commas, lists and objects."""
    return sum(map(data.count, b",[{"))


def check_members(members: Iterable[zipfile.ZipInfo]) -> None:
    """Raise OSError if members of a zip archive overlap, since this lets a small archive unpack to any size."""
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise OSError(errno.EINVAL, f"{member.filename} overlaps another member of the archive")
        end = member.header_offset + member.compress_size + 1


def check_regular(status: os.stat_result) -> None:
    """Raise OSError for pipes, sockets and devices: some never end, and others block until there is a writer."""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "not a regular file")
