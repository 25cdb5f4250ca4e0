"""Files behind a URL, by fsspec: listed once, read concurrently, retried on failure.

Credentials come from the environment, from fsspec's configuration or from storage options, never from the URL: paths
are shown in tables and reports. Credentials are removed from error messages.
"""

import errno
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import islice
from typing import Any

from evalkit.io.limits import check_size, limits
from evalkit.io.paths import (
    CREDENTIALS_HINT,
    INSIDE,
    SECRET_NAME,
    FileState,
    check_regular,
    is_url,
    place_of,
    protocol_of,
    redacted,
    state_from,
    storage_options,
)

AT_A_TIME = 16  # concurrent reads
READ_AHEAD = 64  # files requested before the first of them is used
ATTEMPTS = 2  # besides those that many file systems make themselves
PAUSE = 0.5  # seconds between them
TIMEOUT = 60.0  # seconds per read; of a web server, per request

_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)  # retrying won't help
_HTTP = ("http", "https")
_KINDS = (*_FINAL, TimeoutError, ConnectionError)


class _Store:
    """The file system of one place (a bucket, a host, an archive), with URLs turned into its paths and back.

    Raises OSError if it can't be opened.
    """

    def __init__(self, url: str) -> None:
        import fsspec

        place, options = place_of(url), storage_options()
        if redacted(url) != url:
            raise OSError(errno.EINVAL, CREDENTIALS_HINT)
        self._secrets, self._attempts = list(_secrets(options)), ATTEMPTS
        try:
            if place.endswith(INSIDE):
                archive = place.removesuffix(INSIDE).partition("://")[2]
                inner = {"target_options": options} if is_url(archive) else {}
                if not inner:
                    check_regular(os.stat(archive))
                    self._attempts = 1  # damage in a local file is permanent
                self.fs = fsspec.filesystem(protocol_of(url), fo=archive, **inner)
                self._prefix = place
            else:
                if protocol_of(url) in _HTTP:
                    from aiohttp import ClientTimeout

                    given = {"timeout": ClientTimeout(total=TIMEOUT), **options.get("client_kwargs", {})}
                    options = {**options, "client_kwargs": given}
                self.fs, path = fsspec.core.url_to_fs(url, **options)
                host = place.partition("://")[2]
                self._prefix = f"{protocol_of(url)}://" + f"{host}/" * (not path.lstrip("/").startswith(host))
        except Exception as error:  # file systems raise errors of any type
            raise _plain_error(error, self._secrets) from None
        if not self._prefix.endswith(INSIDE) and protocol_of(url) in _HTTP:
            self._prefix = ""  # its paths are URLs

    def path(self, url: str) -> str:
        return url.rpartition(INSIDE)[2] if self._prefix.endswith(INSIDE) else self.fs._strip_protocol(url)

    def url(self, path: str) -> str:
        return self._prefix + path.strip("/")

    def call(self, function: Callable, *args: Any, **options: Any) -> Any:
        """Call a function of the file system, with retries; raises nothing but OSError."""
        for attempt in range(self._attempts):
            try:
                return function(*args, **options)
            except Exception as error:
                is_late = not self._prefix and isinstance(error, TimeoutError)  # of a web server, it is not asked again
                if attempt == self._attempts - 1 or is_late or isinstance(error, _FINAL):
                    raise _plain_error(error, self._secrets) from None
                time.sleep(PAUSE)
        raise AssertionError

    def read(self, url: str, most: int | None = None, *, limited: bool = True) -> bytes | OSError:
        byte_range = {} if most is None else {"start": 0, "end": most}
        try:
            if self.fs.async_impl:
                from fsspec.asyn import sync

                if protocol_of(url) in _HTTP:
                    end = most or (limits().bytes if limited else sys.maxsize)
                    data = self.call(sync, self.fs.loop, _stream, self.fs, self.path(url), end, timeout=TIMEOUT)
                    check_size(0 if most or not limited else len(data))
                    return data[:end]
                read = partial(self.call, sync, self.fs.loop, self.fs._cat_file, self.path(url), timeout=TIMEOUT)
            else:
                read = partial(self.call, self.fs.cat_file, self.path(url))
            if most is not None or not limited:
                return read(**byte_range)
            return self._read_limited(url, read)
        except OSError as error:
            return error

    def _read_limited(self, url: str, read: Callable[..., bytes]) -> bytes:
        """Read a file within limits; its size is checked first if that costs no request."""
        info: Mapping[str, Any] = {}
        if self._prefix.endswith(INSIDE):
            info = self.call(self.fs.info, self.path(url))
        elif self.fs.async_impl:
            with suppress(FileNotFoundError):
                info = next(iter(self.fs._ls_from_cache(self.path(url)) or ()), {})
        check_size(int(info.get("size") or 0), info.get("compress_size"))
        data = read() if self.fs.async_impl else read(end=limits().bytes + 1)  # S3 returns no range of an empty object
        check_size(len(data))
        return data


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
            folders.update(store.url(f"{root}/{folder}") for folder in _folders_above(below))
    if not files and not store.call(store.fs.isdir, root):
        raise FileNotFoundError(errno.ENOENT, "no such file or folder")
    return files, sorted(folders) if recursive else [store.url(root)]


def glob_remote(url: str) -> list[str]:
    """Return the files and folders that match a URL with ``*``, ``?`` or ``[``, sorted, hidden ones left out.

    Raises as `list_remote`.
    """
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


def read_remote(
    urls: Iterable[str], most: int | None = None, *, limited: bool = True
) -> Iterator[tuple[str, bytes | OSError]]:
    """Read files, or the first bytes of each, in order and concurrently, as `read_files` does.

    Failed reads are retried, and then their error is returned.
    """
    stores: dict[str, _Store] = {}
    coming = iter(urls)
    with ThreadPoolExecutor(AT_A_TIME, "evalkit-read") as pool:
        waiting = deque(_start(url, most, stores, pool, limited) for url in islice(coming, READ_AHEAD))
        try:
            while waiting:
                url, result = waiting.popleft()
                data = result()
                waiting.extend(_start(ahead, most, stores, pool, limited) for ahead in islice(coming, 1))
                yield url, data
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def write_remote(url: str, data: bytes) -> None:
    """Write a file behind a URL; parent folders are created, but no bucket.

    Raises
    ------
    OSError
        If it can't be written.
    """
    store = _Store(url)
    try:
        store.call(store.fs.pipe_file, store.path(url), data)
    except FileNotFoundError:  # a file system with real folders, or a missing bucket
        place = f"{place_of(url)}/"
        for below in reversed(list(_folders_above(url.removeprefix(place)))):
            if not store.call(store.fs.exists, folder := store.path(place + below)):
                store.call(store.fs.mkdir, folder, create_parents=False)
        store.call(store.fs.pipe_file, store.path(url), data)


def remove_remote(url: str) -> None:
    """Remove a file behind a URL; missing files, and those that may not be removed, are ignored."""
    with suppress(OSError):
        store = _Store(url)
        store.call(store.fs.rm_file, store.path(url))


def _start(
    url: str, most: int | None, stores: dict[str, _Store], pool: ThreadPoolExecutor, limited: bool
) -> tuple[str, Callable[[], bytes | OSError]]:
    """Start reading a file; in a file system without concurrency, nothing is done before its turn."""
    place = place_of(url)
    if place not in stores:
        try:
            stores[place] = _Store(url)
        except OSError as error:
            return url, partial(copy, error)
    store = stores[place]
    read = partial(store.read, url, most, limited=limited)
    return url, pool.submit(read).result if store.fs.async_impl else read


async def _stream(fs: Any, url: str, end: int) -> bytes:
    """Read from a web server, which need not send a length, until it ends or more than `end` bytes arrive."""
    session, parts = await fs.set_session(), []
    async with session.get(fs.encode_url(url), **fs.kwargs) as response:
        fs._raise_not_found_for_status(response, url)
        async for part in response.content.iter_chunked(2**16):
            parts.append(part)
            end -= len(part)
            if end < 0:
                break
    return b"".join(parts)


def _folders_above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _plain_error(error: Exception, secrets: Iterable[str]) -> OSError:
    """Convert an error of a file system to a plain OSError, without credentials."""
    kind = next((kind for kind in _KINDS if isinstance(error, kind)), OSError)
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
