"""Paths and states of files, local or behind a URL.

The functions of ``os.path`` that only split and join work for both. A file within an archive has one path too:
``zip://runs.zip!/task/log.json`` is what fsspec calls ``zip://task/log.json::runs.zip``.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NamedTuple

from evalkit.io.text import cut_line

StorageOptions = Mapping[str, Any] | None

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_MAGIC = re.compile(r"[*?[]")
_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "CRC", "generation")
_TIMES = ("LastModified", "mtime", "updated", "last_modified", "modified", "date_time", "created")
_MOST_BYTES = 2**63 - 1
_LATEST = 2.0**33  # epoch seconds, in the year 2242
_options: ContextVar[StorageOptions] = ContextVar("storage_options", default=None)
NOT_REGULAR = "not a regular file"
INSIDE = "!/"  # between an archive and the path within it
CREDENTIALS_HINT = "credentials don't belong in a URL; give storage options or set the environment"

# Links of a chain of URLs, such as simplecache::s3://bucket/x: each ends where the next one begins
_NAME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}"
_LINK = re.compile(rf"({_NAME})://((?:(?!::{_NAME}(?:://|::))\S)*)")
_NO_HOST = ("zip", "tar", "file", "local")  # protocols of files within files, which have no login
_USER = re.compile(r"\A(?:[^/@:]*:.*@|[^/]*@)")  # the text before a host: a password may hold slashes
_QUERY = re.compile(r"[?#;].*")
_SECRET_PARAMETER = re.compile(
    r"(?!(?:max|min|n|num)_)(?:.*_)?(?:token|secret|password|passwd|pwd|passphrase|credentials?|authorization|auth|bearer"
    r"|(?:api|access|private|secret|auth|signing)_?keys?)"
)
SECRET_NAME = re.compile(r"key|secret|token|pass|credential|cred|signature|sig|sas|auth", re.IGNORECASE)


class SourceError(ValueError):
    """A source that can't be used at all: missing, unreadable, or without anything of the kind asked for.

    Credentials in URLs are left out of its message, and each line of it is cut.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__("\n".join(map(cut_line, redacted(str(message)).split("\n"))))


class FileState(NamedTuple):
    """The state of a file, which changes with its content.

    Attributes
    ----------
    size : int
        Bytes.
    modified, changed : int
        Times of the last change of its content and of its inode, in epoch nanoseconds; 0 where unknown.
    tag : str
        Other marks of its state: an ETag, or the state of a file that belongs to it.
    """

    size: int
    modified: int
    changed: int = 0
    tag: str = ""


def state_from(info: Mapping[str, Any]) -> FileState:
    """Read the state of a file from its entry in fsspec's listing."""
    tag = next((str(info[name]) for name in _TAGS if info.get(name)), "")
    times = (_seconds(info[name]) for name in _TIMES if info.get(name))
    size = min(max(int(info.get("size") or 0), 0), _MOST_BYTES)
    return FileState(size, int(next(times, 0.0) * 1e9), tag=tag)


def _seconds(value: Any) -> float:
    """Read a time of a file; 0 for an invalid one, such as archives may hold: the 0th month, or the year 10^9."""
    try:
        if isinstance(value, tuple):  # in an archive: year to second
            value = datetime(*value[:6])
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        seconds = value.timestamp() if isinstance(value, datetime) else float(value)
    except (ValueError, TypeError, OverflowError, OSError):
        return 0.0
    return seconds if 0 <= seconds < _LATEST else 0.0


def is_url(path: str | os.PathLike) -> bool:
    """Return whether a path is a URL, such as ``s3://bucket/runs``."""
    return isinstance(path, str) and "://" in path and _URL.match(path) is not None


def protocol_of(url: str) -> str:
    """Return a URL's protocol, such as ``s3``; empty for a local path."""
    match = _URL.match(url)
    return match[1].lower() if match else ""


def place_of(url: str) -> str:
    """Return the part of a URL that names the file system: protocol and host or bucket, or the archive."""
    archive, inside, _ = url.rpartition(INSIDE)
    return archive + inside if inside else "/".join(url.split("/", 3)[:3])


def redacted(text: str) -> str:
    """Replace credentials in any URL of a text with ``…``.

    Text before an ``@`` counts as credentials, as does a query with a name like ``token`` or ``key``, and every query
    of http, as in signed addresses. Use it before showing or storing a URL that may contain credentials.
    """
    return _LINK.sub(_redact_link, text) if "://" in text else text


def _redact_link(match: re.Match) -> str:
    protocol, rest = match.groups()
    if protocol.lower() not in _NO_HOST:
        rest = _USER.sub("…@", rest)
    query = _QUERY.search(rest)
    if query and not query[0].startswith("…", 1) and _may_be_secret(protocol, query[0]):
        rest = f"{rest[: query.start()]}{query[0][0]}…"
    return f"{protocol}://{rest}"


def _may_be_secret(protocol: str, query: str) -> bool:
    if protocol.lower() in ("http", "https") and "?" in query:
        return True
    names = (pair.partition("=") for pair in re.split(r"[?#;&]", query))
    return any(value and SECRET_NAME.search(name) for name, _, value in names)


def refuse_credentials(text: str) -> None:
    """Raise SourceError for a URL that holds credentials, which every table and page would show.

    Raises
    ------
    SourceError
        Its message does not repeat them.
    """
    if redacted(text) != text:
        raise SourceError(f"{redacted(text)}: {CREDENTIALS_HINT}")


def is_secret_name(name: str) -> bool:
    """Return whether a parameter's name says that its value is a secret: ``api_key`` does, ``max_tokens`` does not."""
    return _SECRET_PARAMETER.fullmatch(re.sub(r"(?<=[a-z])(?=[A-Z])|[-.]", "_", name).lower()) is not None


def check_regular(status: os.stat_result) -> None:
    """Raise OSError for pipes, sockets and devices: some never end, and opening others waits for a writer.

    Raises
    ------
    OSError
        If the status is that of anything but a regular file or a folder.
    """
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, NOT_REGULAR)


def absolute(path: str) -> str:
    """Return a path that does not depend on the working directory; a URL stays as it is."""
    return path if is_url(path) else os.path.abspath(path)


def has_magic(path: str) -> bool:
    """Return whether a path holds any of ``*``, ``?`` and ``[``, as globs do."""
    return _MAGIC.search(path) is not None


def common_folder(folders: Iterable[str]) -> str:
    """Return the folder that is or holds all folders; empty if there is none."""
    split = [folder.split("/") for folder in folders]
    shared = []
    for names in zip(*split, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


@contextmanager
def storage(options: StorageOptions) -> Iterator[None]:
    """Open URLs with these file system options within a ``with`` block.

    Parameters
    ----------
    options : mapping or None
        Passed to fsspec; they replace those of an enclosing block. None keeps these.
    """
    token = _options.set(storage_options() if options is None else dict(options))
    try:
        yield
    finally:
        _options.reset(token)


def storage_options() -> Mapping[str, Any]:
    """Return the current options for opening URLs."""
    return _options.get() or {}
