"""List, read and write remote files with fsspec, reading concurrently.

Credentials come from the environment, from fsspec's configuration or from storage options, never from the URL, because
tables and reports show paths. Credentials are removed from error messages.
"""

import errno
import io
import os
import posixpath
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import groupby, islice
from typing import Any

import lazy_loader

from evalkit.io import paths

AT_A_TIME = 32  # number of concurrent reads
fsspec = lazy_loader.load("fsspec")  # slow to import, and most sources are local
_MOST_FOLDERS = 200  # maximum depth of folders in an archive, because fsspec recurses for each level
LARGE = 2**20  # size in bytes from which only the excerpt of a file is read

_LONGEST_RECORD = 2**20  # maximum size of the records of tar archives in bytes; the last record is filled with zeros
_MOST_DESCRIPTION = 8_192  # bytes that describe the next member of a tar archive; reading them takes quadratic time
_DESCRIPTIONS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)

_ERRORS = (  # types of errors that `_plain_error` keeps
    paths.LimitError, FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, TimeoutError,
    ConnectionError,
)  # fmt: skip
_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "CRC", "generation")
_TIMES = ("LastModified", "mtime", "updated", "last_modified", "modified", "date_time", "created")
_MOST_BYTES = 2**63 - 1
_LATEST = 2.0**33  # epoch seconds, in the year 2242


def _plain_error(error: Exception) -> OSError:
    """Convert an error of any type from a file system to a plain OSError without credentials."""
    kind = next((kind for kind in (*_ERRORS, paths.LimitError) if isinstance(error, kind)), OSError)
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, RecursionError):
        text = "its folders or headers are nested too deep, or never end"
    elif not isinstance(error, OSError):
        text = f"{type(error).__name__}: {text}"
    options = [paths.storage_options()]
    while options:
        for name, value in options.pop().items():
            if isinstance(value, Mapping):
                options.append(value)
            elif isinstance(value, str) and len(value) > 2 and paths.SECRET_NAME.search(str(name)):
                text = text.replace(value, "…")
    return kind(getattr(error, "errno", None) or errno.EIO, paths.redacted(text))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Convert any exception from a file system to a plain OSError."""
    try:
        yield
    except Exception as error:
        raise _plain_error(error) from None


class _Header(tarfile.TarInfo):
    """A header in a tar archive. Refuses headers that `tarfile` would read for a very long time, and damaged ones."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> "_Header":
        """Read the next header; raise OSError if it is damaged, where `tarfile` would end without the other members."""
        try:
            return super().fromtarfile(archive)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            text = f"the header at byte {archive.offset} of the archive is damaged: {error}"
            raise OSError(errno.EINVAL, text if archive.offset else f"not a tar archive: {error}") from error

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        """Parse a header; raise OSError if it states a negative size, or if it is a very long description."""
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _DESCRIPTIONS and header.size > _MOST_DESCRIPTION):
            raise _wrong_size(header)
        return header


def _wrong_size(member: tarfile.TarInfo) -> OSError:
    return OSError(errno.EINVAL, f"{member.name}: a header in the archive states a size of {member.size} bytes")


def _check_members(archive: tarfile.TarFile) -> None:
    """Raise OSError for a member of negative size or behind the end, and make links to files read like these files.

    `tarfile` would read a member of negative size again and again, and search all members for each link of a chain. It
    would also leave out the members of a second archive in the same file. An archive without a mark of its end counts
    as complete, since some programs write none.
    """
    members = dict[str, tarfile.TarInfo]()
    links = list[tarfile.TarInfo]()
    for member in archive:
        if member.size < 0:
            raise _wrong_size(member)
        members[posixpath.normpath(member.name)] = member
        if member.issym() or member.islnk():
            links.append(member)
    behind = archive.fileobj.read(_LONGEST_RECORD).lstrip(b"\0")  # zeros fill the last record
    with suppress(tarfile.HeaderError):  # other data, such as a line break, is no member
        _Header.frombuf(behind[: tarfile.BLOCKSIZE], tarfile.ENCODING, "surrogateescape")
        text = "several archives in one file, of which only the first would be read: unpack it first"
        raise OSError(errno.EINVAL, text)
    for link in links:
        folder = posixpath.dirname(link.name) if link.issym() else ""
        target = members.get(posixpath.normpath(posixpath.join(folder, link.linkname)))
        link.type = tarfile.FIFOTYPE  # not a file
        if target and target.isreg():
            link.type, link.size = target.type, target.size
            link.offset_data, link.sparse = target.offset_data, target.sparse


class _Place:
    """The file system of a bucket, a host or an archive. Converts URLs to its paths and back."""

    _within, _is_tar = "", False
    too_deep: Set[str] = frozenset()  # files of an archive that are nested too deep to be read
    _not_files: Set[str] = frozenset()  # folders, links and devices in a tar archive

    @_plain_errors()
    def __init__(self, url: str) -> None:
        if paths.redacted(url) != url:
            raise OSError(errno.EINVAL, paths.CREDENTIALS_HINT)
        root, options = _root_of(url), paths.storage_options()
        protocol = paths.protocol_of(url)
        self.is_archive, self.is_web = root.endswith(paths.INSIDE), protocol in ("http", "https")
        if self.is_archive:
            archive = root.removesuffix(paths.INSIDE).partition("://")[2]
            inner = {"target_options": options} if paths.is_url(archive) else {}
            if not inner:
                paths.check_regular(os.stat(archive))
            self._prefix, self._is_tar = root, protocol == "tar"
            if self._is_tar:
                # begin with an empty archive, since fsspec would read the headers without our limits
                self.fs = fsspec.filesystem("tar", fo=io.BytesIO(bytes(tarfile.RECORDSIZE)), skip_instance_cache=True)
                self.fs.of = fsspec.open(archive, compression="infer", **(options if inner else {}))
                self.fs.tar = tarfile.TarFile(fileobj=self.fs.of.open(), tarinfo=_Header)
                _check_members(self.fs.tar)
                self.fs._index()
            else:
                self.fs = fsspec.filesystem("zip", fo=archive, **inner)
                paths.check_members(self.fs.zip.infolist())
            names = self.fs.tar.getnames() if self._is_tar else self.fs.zip.NameToInfo
            for name in names:
                if name.startswith("/") or ".." in re.split(r"[/\\]", name):
                    raise OSError(errno.EINVAL, f"{name} is outside the archive")
            self.too_deep = {name for name in names if name.count("/") > _MOST_FOLDERS}
            if self._is_tar:  # fsspec would search the whole archive for each file that is read, and for each folder
                members = {one.name.rstrip("/"): one for one in self.fs.tar}
                self._not_files = {name for name, one in members.items() if not one.isreg()}
                self.fs.index = {
                    name: (info, start, members[own])
                    for name, (info, start, own) in self.fs.index.items()
                    if name not in self.too_deep
                }
                self.fs.find = self._find_in_tar
            else:
                self.fs.zip.filelist = [one for one in self.fs.zip.filelist if one.filename not in self.too_deep]
            if self.fs.ls("", detail=False) == ["."]:  # created with ``tar -c .``
                self._within = "./"
            return
        self.fs, path = fsspec.core.url_to_fs(url, **options)
        host = root.partition("://")[2]
        self._prefix = f"{protocol}://" if path.lstrip("/").startswith(host) else f"{protocol}://{host}/"

    def path(self, url: str) -> str:
        if self.is_archive:
            return self._within + url.rpartition(paths.INSIDE)[2].removeprefix(self._within)
        return self.fs._strip_protocol(url)

    def url(self, path: str) -> str:
        return path if self.is_web else self._prefix + path.removeprefix(self._within.strip("/")).strip("/")

    def _find_in_tar(self, root: str, maxdepth: int | None = None, **_: Any) -> dict[str, Any]:
        """Return the files and folders in a folder of a tar archive, or the file `root`, by path."""
        self.fs._get_dirs()
        root = root.strip("/")
        start = f"{root}/" if root else ""
        most = start.count("/") + (maxdepth or sys.maxsize)
        below = (path for path in self.fs.dir_cache if path.startswith(start) and path.count("/") < most)
        paths = {root, *below} & self.fs.dir_cache.keys()
        return {path: self.fs.dir_cache[path] for path in sorted(paths)}

    def error_of(self, url: str, error: Exception) -> OSError:
        """Return an error that explains to users why a file can't be read."""
        path = self.path(url)
        if path in self.too_deep:
            return OSError(errno.EINVAL, f"nested in more than {_MOST_FOLDERS} folders")
        if path in self._not_files:
            return OSError(errno.EINVAL, "neither a regular file nor a link to one in the archive")
        return _plain_error(error)

    def known_size(self, url: str) -> int:
        """Return the size of a file in bytes, from the index of its archive or an earlier listing; 0 if unknown."""
        with suppress(FileNotFoundError):
            infos = [self.fs.info(self.path(url))] if self.is_archive else self.fs._ls_from_cache(self.path(url))
            return infos[0].get("size") or 0 if infos else 0
        return 0


def _root_of(url: str) -> str:
    """Return the part of a URL that identifies the file system: protocol and host or bucket, or the archive."""
    archive, inside, _ = url.rpartition(paths.INSIDE)
    return archive + inside if inside else "/".join(url.split("/", 3)[:3])


@_plain_errors()
def list_remote(url: str, *, recursive: bool = True) -> tuple[dict[str, paths.FileState], list[str]]:
    """Return the files at or under a URL, and the folders that contain any. Leave out hidden files and folders."""
    place = _Place(url)
    root = place.path(url).rstrip("/")
    place.fs.invalidate_cache()
    infos = place.fs.find(root, detail=True, withdirs=True, maxdepth=None if recursive else 1)
    files, folders = {}, {place.url(root)}
    for path, info in infos.items():
        below = path.strip("/")[len(root.strip("/")) :].strip("/")
        if any(name.startswith(".") and name != "." for name in below.split("/")):
            continue
        if info.get("type") == "directory" or path.endswith("/"):
            folders.add(place.url(path))
        elif not below:
            return {place.url(path): state_from(info)}, []
        else:
            files[place.url(path)] = state_from(info)
            while below := below.rpartition("/")[0]:
                folders.add(place.url(f"{root}/{below}"))
    if recursive:
        start = f"{root}/" if root else ""
        deep = [name for name in place.too_deep if name.startswith(start) and not name.endswith("/")]
        files |= {place.url(name): paths.FileState(0, 0) for name in deep}
    if not files and not place.fs.isdir(root):
        raise FileNotFoundError(errno.ENOENT, "no such file or folder")
    return files, sorted(folders) if recursive else [place.url(root)]


@_plain_errors()
def glob_remote(url: str) -> list[str]:
    """Return the files and folders that match a URL with ``*``, ``?`` or ``[``, sorted and without hidden ones."""
    place = _Place(url)
    place.fs.invalidate_cache()
    matches = (path.strip("/") for path in place.fs.glob(place.path(url)))
    return sorted(place.url(path) for path in matches if "/." not in f"/{path.removeprefix('./')}")


def state_remote(url: str) -> paths.FileState | None:
    """Return the state of a file; None if the file does not exist or its state can't be read."""
    with suppress(OSError), _plain_errors():
        place = _Place(url)
        return state_from(place.fs.info(place.path(url)))
    return None


def state_from(info: Mapping[str, Any]) -> paths.FileState:
    """Return the state of a file from its fsspec info. An invalid time, which occurs in archives, becomes 0."""
    tag = next((str(info[name]) for name in _TAGS if info.get(name)), "")
    size = min(max(int(info.get("size") or 0), 0), _MOST_BYTES)
    value, seconds = next((info[name] for name in _TIMES if info.get(name)), 0.0), 0.0
    with suppress(ValueError, TypeError, OverflowError, OSError):
        if isinstance(value, tuple):  # from an archive: (year, month, day, hour, minute, second)
            value = datetime(*value[:6])
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        seconds = value.timestamp() if isinstance(value, datetime) else float(value)
    return paths.FileState(size, int(seconds * 1e9) if 0 <= seconds < _LATEST else 0, tag=tag)


def read_remote(
    urls: Iterable[str], most: int | None, *, limited: bool, excerpt: Any = None
) -> Iterator[tuple[str, bytes | OSError]]:
    """Read files as `read_files` does, concurrently if the file system can."""
    limit = paths.most_bytes() if limited and most is None else sys.maxsize
    for root, group in groupby(urls, _root_of):
        try:
            place = _Place(root)
        except OSError as error:
            yield from ((url, error) for url in group)
            continue
        while batch := list(islice(group, AT_A_TIME if place.fs.async_impl else 1)):
            read: dict[str, Any] = {url: _excerpt(place, url, excerpt) for url in batch} if excerpt else {}
            sizes = {url: place.known_size(url) for url in batch if read.get(url) is None}
            small = [url for url, size in sizes.items() if size <= limit]
            read |= zip(small, place.fs.cat_ranges(list(map(place.path, small)), None, most), strict=True)
            for url in batch:
                data = read.get(url) or b""
                if isinstance(data, Exception):
                    yield url, place.error_of(url, data)
                elif url in sizes and (size := max(len(data), sizes[url])) > limit:
                    yield url, paths.too_large(size)
                else:
                    yield url, data[:most]


def _excerpt(place: _Place, url: str, excerpt: Any) -> bytes | None:
    """Return the excerpt of a large file, requesting only the parts it needs; None to read the whole file."""

    def opened() -> Any:
        path = place.path(url)
        if place.fs.info(path)["size"] < LARGE:
            raise OSError("one request for the whole file takes less time")
        return io.BufferedReader(place.fs.open(path, "rb", block_size=LARGE))  # fsspec's `readline` takes no size

    with suppress(Exception):  # reading the whole file then reports the error
        return excerpt(url, opened)
    return None


@_plain_errors()
def write_remote(url: str, data: bytes) -> None:
    """Write a remote file. Create missing parent folders, but no bucket."""
    place = _Place(url)
    path = place.path(url)
    try:
        place.fs.pipe_file(path, data)
    except FileNotFoundError:  # a missing folder or a missing bucket
        if not place.fs.exists(place.path(_root_of(url))):
            raise
        place.fs.makedirs(place.fs._parent(path), exist_ok=True)
        place.fs.pipe_file(path, data)


def remove_remote(url: str) -> None:
    """Remove a remote file. Ignore files that are missing or can't be removed."""
    with suppress(OSError), _plain_errors():
        place = _Place(url)
        place.fs.rm_file(place.path(url))
