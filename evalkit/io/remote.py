"""Files behind a URL, by fsspec: listed once, and read concurrently.

Credentials come from the environment, from fsspec's configuration or from storage options, never from the URL: paths
are shown in tables and reports. Credentials are removed from error messages.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from typing import Any

import fsspec
from fsspec.asyn import sync

from evalkit.io.limits import check_regular, check_size, limits
from evalkit.io.paths import (
    CREDENTIALS_HINT,
    INSIDE,
    SECRET_NAME,
    FileState,
    is_url,
    protocol_of,
    redacted,
    storage_options,
)

AT_A_TIME = 16  # concurrent reads
BATCH = 64  # files that are requested together
TIMEOUT = 60.0  # seconds per read; of a web server, per request

_ERRORS = (  # types that are kept
    FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, TimeoutError, ConnectionError,
)  # fmt: skip
_HTTP = ("http", "https")
_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "CRC", "generation")
_TIMES = ("LastModified", "mtime", "updated", "last_modified", "modified", "date_time", "created")
_MOST_BYTES = 2**63 - 1
_LATEST = 2.0**33  # epoch seconds, in the year 2242


class _Store:
    """The file system of one place (a bucket, a host, an archive), with URLs turned into its paths and back.

    Raises OSError if it can't be opened.
    """

    def __init__(self, url: str) -> None:
        place, protocol, options = _place_of(url), protocol_of(url), storage_options()
        if redacted(url) != url:
            raise OSError(errno.EINVAL, CREDENTIALS_HINT)
        self._secrets = list(_secrets(options))
        self.is_archive, self.is_web = place.endswith(INSIDE), protocol in _HTTP
        try:
            if self.is_archive:
                archive = place.removesuffix(INSIDE).partition("://")[2]
                inner = {"target_options": options} if is_url(archive) else {}
                if not inner:
                    check_regular(os.stat(archive))
                self.fs, self._prefix = fsspec.filesystem(protocol, fo=archive, **inner), place
            else:
                if self.is_web:
                    from aiohttp import ClientTimeout  # an extra

                    given = {"timeout": ClientTimeout(total=TIMEOUT), **options.get("client_kwargs", {})}
                    options = {**options, "client_kwargs": given}
                self.fs, path = fsspec.core.url_to_fs(url, **options)
                host = place.partition("://")[2]
                self._prefix = f"{protocol}://" + f"{host}/" * (not path.lstrip("/").startswith(host))
        except Exception as error:  # file systems raise errors of any type
            raise _plain_error(error, self._secrets) from None

    def path(self, url: str) -> str:
        return url.rpartition(INSIDE)[2] if self.is_archive else self.fs._strip_protocol(url)

    def url(self, path: str) -> str:
        return path if self.is_web else self._prefix + path.strip("/")

    def call(self, function: Callable, *args: Any, **options: Any) -> Any:
        """Call a function of the file system; raises nothing but OSError."""
        try:
            return function(*args, **options)
        except Exception as error:
            raise _plain_error(error, self._secrets) from None

    def read(self, url: str, most: int | None, limited: bool) -> bytes | OSError:
        """Read a file, or its first bytes; one that exceeds a limit is an error, before it is read where possible."""
        path, end = self.path(url), most or (limits().bytes + 1 if limited else sys.maxsize)
        try:
            if self.is_web:
                data = self.call(sync, self.fs.loop, _stream, self.fs, path, end, timeout=TIMEOUT)
            else:
                info: Mapping[str, Any] = {}
                if limited and self.is_archive:
                    info = self.call(self.fs.info, path)
                elif limited and self.fs.async_impl:
                    with suppress(FileNotFoundError):
                        info = next(iter(self.fs._ls_from_cache(path) or ()), {})
                if most is None:
                    check_size(int(info.get("size") or 0))
                if not self.fs.async_impl:
                    data = self.call(self.fs.cat_file, path, start=0, end=end)
                else:  # S3 has no range of an empty object
                    span = {"start": 0, "end": most} if most else {}
                    data = self.call(sync, self.fs.loop, self.fs._cat_file, path, **span, timeout=TIMEOUT)
            if limited and most is None:
                check_size(len(data))
        except OSError as error:
            return error
        return data


async def _stream(fs: Any, url: str, end: int) -> bytes:
    """Read at most `end` bytes from a web server, which need not say how many there are."""
    session, parts, size = await fs.set_session(), [], 0
    async with session.get(fs.encode_url(url), **fs.kwargs) as response:
        fs._raise_not_found_for_status(response, url)
        async for part in response.content.iter_chunked(2**16):
            parts.append(part)
            size += len(part)
            if size >= end:
                break
    return b"".join(parts)[:end]


def list_remote(url: str, *, recursive: bool = True) -> tuple[dict[str, FileState], list[str]]:
    """List the files under a URL, or `url` itself, and the folders that hold any; hidden ones are left out."""
    store = _Store(url)
    root = store.path(url).rstrip("/")
    store.fs.invalidate_cache()
    infos = store.call(store.fs.find, root, detail=True, withdirs=True, maxdepth=None if recursive else 1)
    files, folders = {}, {store.url(root)}
    for path, info in infos.items():
        below = path.strip("/")[len(root.strip("/")) :].strip("/")
        if any(name.startswith(".") and name != "." for name in below.split("/")):
            continue
        if info.get("type") == "directory" or path.endswith("/"):
            folders.add(store.url(path))
        elif not below:
            return {store.url(path): state_from(info)}, []
        else:
            files[store.url(path)] = state_from(info)
            while below := below.rpartition("/")[0]:
                folders.add(store.url(f"{root}/{below}"))
    if not files and not store.call(store.fs.isdir, root):
        raise FileNotFoundError(errno.ENOENT, "no such file or folder")
    return files, sorted(folders) if recursive else [store.url(root)]


def glob_remote(url: str) -> list[str]:
    """Return the files and folders that match a URL with ``*``, ``?`` or ``[``, sorted, hidden ones left out."""
    store = _Store(url)
    store.fs.invalidate_cache()
    matches = (path.strip("/") for path in store.call(store.fs.glob, store.path(url)))
    return sorted(store.url(path) for path in matches if "/." not in f"/{path}")


def state_remote(url: str) -> FileState | None:
    """Return a file's state; None if it does not exist or its state can't be read."""
    try:
        store = _Store(url)
        return state_from(store.call(store.fs.info, store.path(url)))
    except OSError:
        return None


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


def read_remote(urls: Iterable[str], most: int | None, *, limited: bool) -> Iterator[tuple[str, bytes | OSError]]:
    """Read files as `read_files` does, those of a file system that can do so concurrently."""
    for place, group in groupby(urls, _place_of):
        try:
            store = _Store(place)
        except OSError as error:
            yield from ((url, copy(error)) for url in group)
            continue
        read = partial(store.read, most=most, limited=limited)
        if not store.fs.async_impl:
            yield from ((url, read(url)) for url in group)
            continue
        with ThreadPoolExecutor(AT_A_TIME, "evalkit-read") as pool:
            while batch := list(islice(group, BATCH)):
                yield from zip(batch, pool.map(read, batch), strict=True)


def write_remote(url: str, data: bytes) -> None:
    """Write a file behind a URL; parent folders are created, but no bucket."""
    store = _Store(url)
    path = store.path(url)
    try:
        store.call(store.fs.pipe_file, path, data)
    except FileNotFoundError:  # a file system with real folders, or a missing bucket
        if not store.call(store.fs.exists, store.path(_place_of(url))):
            raise
        store.call(store.fs.makedirs, store.fs._parent(path), exist_ok=True)
        store.call(store.fs.pipe_file, path, data)


def remove_remote(url: str) -> None:
    """Remove a file behind a URL; missing files, and those that may not be removed, are ignored."""
    with suppress(OSError):
        store = _Store(url)
        store.call(store.fs.rm_file, store.path(url))


def _place_of(url: str) -> str:
    """Return the part of a URL that names the file system: protocol and host or bucket, or the archive."""
    archive, inside, _ = url.rpartition(INSIDE)
    return archive + inside if inside else "/".join(url.split("/", 3)[:3])


def _plain_error(error: Exception, secrets: Iterable[str]) -> OSError:
    """Convert an error of a file system to a plain OSError, without credentials."""
    kind = next((kind for kind in _ERRORS if isinstance(error, kind)), OSError)
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        text = f"no whole answer within {TIMEOUT:g} seconds"
    elif not isinstance(error, OSError):
        text = f"{type(error).__name__}: {text}"
        if type(error).__module__.startswith("aiohttp"):  # its texts repeat what the server sent
            status, is_broken = getattr(error, "status", 0), error.__cause__ is not None
            text = f"it answered {status}" if status and not is_broken else "its answer is no valid HTTP"
    for secret in secrets:
        text = text.replace(secret, "…")
    return kind(getattr(error, "errno", None) or errno.EIO, redacted(text))


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) > 2 and SECRET_NAME.search(str(name)):
            yield value
