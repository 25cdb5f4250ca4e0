"""Read files: the bytes of each once, within the limit, and the JSON in them.

JSON is decoded strictly and fast first, then leniently for what real writers emit.
"""

import codecs
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, BinaryIO

import msgspec

from evalkit.io.paths import LimitError, check_regular, is_url, most_bytes, redacted, too_large
from evalkit.io.remote import read_remote

Excerpt = Callable[[str, Callable[[], BinaryIO]], bytes | None]  # takes what is needed; None for the whole file
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # does not wait for a pipe
_MARKS = {  # encoding, and what recovering it is called
    codecs.BOM_UTF8: ("utf-8-sig", "byte_order_mark"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf_16"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf_16"),
}
_LATIN = re.compile(rb"[\x00-\x7f\xa0-\xfe]*")  # no control characters, and no byte that damage is likely to leave
_UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_MOST_TOKENS = 2_000  # of the beginning of a file
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)  # a string, or a single mark


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


class BrokenFileError(ValueError):
    """A file with invalid contents; the text is ``ErrorName: cause`` with a name users know."""


class WrongShapeError(BrokenFileError):
    """Well-formed JSON with a shape other than the decoder's."""


def decode_json(data: bytes, decoder: msgspec.json.Decoder) -> tuple[Any, list[str]]:
    """Decode one JSON file; also return what was recovered.

    The whole file is checked to be UTF-8 and well-formed, even the parts the decoder skips. A byte order mark, UTF-16
    with one, Latin-1, bare ``NaN`` / ``Infinity`` (they become null) and lone surrogates (they become ``\ufffd``) are
    recovered and named: ``byte_order_mark``, ``utf_16``, ``latin_1``, ``nan_literal``, ``lone_surrogate``.

    BrokenFileError for an empty, truncated or malformed file, WrongShapeError once the shape is known to be wrong.
    """
    data, recovered = without_mark(data)
    if not data or data.isspace():
        raise BrokenFileError("JSONDecodeError: the file is empty")
    try:
        if not data.isascii():
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                if not _LATIN.fullmatch(data) or _UTF_8.search(data):
                    raise
                data = data.decode("latin-1").encode()
                recovered.append("latin_1")
        try:
            return decoder.decode(data), recovered
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as error:
            strict_error = error
        # what json accepts and msgspec rejects, as its clean equivalent; json is given text, since it takes UTF-16, too
        constants = list[str]()
        value = json.loads(data.decode("utf-8"), parse_constant=constants.append)  # which returns None: null
        text = json.dumps(value, ensure_ascii=False)
        if constants:
            recovered.append("nan_literal")
        try:
            clean = text.encode()
        except UnicodeEncodeError:
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
            recovered.append("lone_surrogate")
        return decoder.decode(clean), recovered
    except msgspec.ValidationError as error:
        raise WrongShapeError(f"TypeError: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenFileError(f"UnicodeDecodeError: not UTF-8 at byte {error.start}: {error.reason}") from error
    except RecursionError as error:
        raise BrokenFileError("RecursionError: nested too deep") from error
    except (ValueError, msgspec.DecodeError) as error:
        raise BrokenFileError(f"JSONDecodeError: {strict_error}") from error


def without_mark(data: bytes) -> tuple[bytes, list[str]]:
    """Return a text file that begins with a byte order mark as UTF-8 without it, and what that was; any other as is."""
    for mark, (encoding, name) in _MARKS.items():
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode(), [name]
            except UnicodeDecodeError:  # damaged: decoding says where
                return (data[len(mark) :], [name]) if encoding != "utf-16" else (data, [])
    return data, []


def beginning(data: bytes) -> bytes:
    """Return the first bytes of a file, whose last character may be cut, as UTF-8."""
    encoding = next((encoding for mark, (encoding, _) in _MARKS.items() if data.startswith(mark)), "")
    return data.decode(encoding, "ignore").encode() if encoding == "utf-16" else data


@lru_cache(maxsize=1)  # each kind asks for the same one; nobody changes it
def decode_start(head: bytes) -> Any:
    """Decode what the first bytes of a JSON file hold of its first value; None for anything but a list or an object.

    What is cut off in the middle is left out, so that ``{"a": [1, 2], "b": "c`` gives ``{"a": [1, 2]}``.
    """
    text = head.decode("utf-8-sig", "replace")
    closing, cut = list[str](), 0
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        mark = token[0]
        if mark == '"' or (mark in "]}" and (not closing or closing.pop() != mark)):
            break  # a string without an end, or no JSON
        if mark in "[{":
            closing.append("]" if mark == "[" else "}")
        if mark in "[{]}":
            cut = token.end()
        elif mark == ",":
            cut = token.start()
        if cut and not closing:
            break
    try:
        return json.loads(text[:cut] + "".join(reversed(closing)), strict=False) if cut else None
    except (ValueError, RecursionError):
        return None
