"""Read files: the bytes of each once, within the limit, in this process or several, and the JSON in them.

JSON is decoded strictly and fast first, then leniently for what real writers emit. Decoders hold the interpreter's
lock, so threads don't help, and processes pay only from some thousand files on. They are forked where that is safe,
since starting new ones takes longer than reading most folders. Within ``joblib.parallel_config``, its backend does the
work, such as Dask's on a cluster.
"""

import codecs
import ctypes
import errno
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, BinaryIO, TypeVar

import lazy_loader
import msgspec

from evalkit.io.paths import LimitError, check_json, check_regular, is_url, most_bytes, redacted, too_large
from evalkit.io.remote import read_remote

joblib = lazy_loader.load("joblib")  # takes long to import, and few files need no processes
R = TypeVar("R")
ANYTHING = msgspec.json.Decoder()
Excerpt = Callable[[str, Callable[[], BinaryIO]], bytes | None]  # takes what is needed; None for the whole file
SERIAL_FILES, SERIAL_BYTES = 2_000, 100_000_000  # from here on several processes are faster
CHUNK = 256  # files of one task, at most
TASKS = 16  # tasks per process, at least, so that none is idle for long at the end
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


def reason_of(error: Exception) -> str:
    """Return why a file can't be read, as ``ErrorName: cause``, without its path, which messages name before it."""
    cause = str(getattr(error, "strerror", None) or error)
    return cause if isinstance(error, BrokenFileError) else f"{type(error).__name__}: {cause}"


def read_file(path: str | os.PathLike, *, limited: bool = True) -> bytes:
    """Read a file's bytes; OSError for a pipe or device, and, if `limited`, for a file that is too large."""
    ((_, data),) = read_files([os.fspath(path)], limited=limited)
    if isinstance(data, OSError):
        data.filename = redacted(data.filename or os.fspath(path))
        try:
            raise data
        finally:
            del data  # an error and this frame, which refer to each other, would keep the logs of all callers
    return data


def read_json(path: str | os.PathLike) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    ValueError
        For invalid JSON, or lists and objects nested too deeply.

    Examples
    --------
    >>> io.read_json("run.json")  # doctest: +SKIP
    """
    data = read_file(path)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_files(
    paths: Iterable[str], most: int | None = None, *, limited: bool = True, excerpt: Excerpt | None = None
) -> Iterator[tuple[str, bytes | OSError]]:
    """Read many files, or the first `most` bytes of each, or their `excerpt`, in order: path, and data or an OSError.

    A pipe or device is an error, without waiting for it, and so is a file that is too large, if `limited`.
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
                yield path, LimitError(errno.ENOMEM, "not enough memory for this file")
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


def in_chunks(work: Callable[[list[str]], R], paths: list[str], size: int, jobs: int | None = None) -> Iterator[R]:
    """Yield what `work`, a function of a module that raises nothing, returns of chunks of the paths, in their order.

    `jobs` is the number of processes, -1 for one per core. None: as in ``joblib.parallel_config``, else one per core if
    they can be forked safely. Few files, of few bytes together (`size`), are read in this process, and so are, with a
    warning, those of processes that break down.
    """
    is_many = len(paths) >= SERIAL_FILES or size >= SERIAL_BYTES
    workers, can_fork = _workers(jobs, any(map(is_url, paths))) if is_many else (1, False)
    length = max(1, min(CHUNK, len(paths) // (TASKS * workers) if workers > 1 else CHUNK))
    chunks, done = [paths[at : at + length] for at in range(0, len(paths), length)], 0
    if workers > 1:
        try:
            for result in _elsewhere(work, chunks, workers, can_fork):
                done += 1
                yield result
        except Exception as error:  # of the processes, since work raises nothing; if it does, it will do so here, too
            warnings.warn(
                f"worker processes failed ({type(error).__name__}); this process reads the rest", stacklevel=2
            )
    for chunk in chunks[done:]:
        yield work(chunk)


def _workers(jobs: int | None, is_remote: bool) -> tuple[int, bool]:
    """Return how many processes are to read, and whether they are to be forked from this one."""
    backend, configured = joblib.parallel.get_active_backend()
    if not isinstance(backend, joblib.parallel.BACKENDS[joblib.parallel.DEFAULT_BACKEND]):  # the user's choice
        return backend.effective_n_jobs(jobs or configured or backend.default_n_jobs), False
    is_main = threading.current_thread() is threading.main_thread()
    can_fork = sys.platform == "linux" and is_main and not is_remote and not multiprocessing.current_process().daemon
    if not (can_fork or jobs or configured):  # a backend that starts slowly was not asked for
        return 1, False
    return joblib.effective_n_jobs(jobs or configured or -1), can_fork


def _elsewhere(work: Callable[[list[str]], R], chunks: list[list[str]], workers: int, can_fork: bool) -> Iterator[R]:
    if not can_fork:
        yield from joblib.Parallel(n_jobs=workers)(joblib.delayed(work)(chunk) for chunk in chunks)
        return
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, fork, _begin_worker, (os.getpid(),)) as pool:
        yield from pool.map(work, chunks)


def _begin_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, too, and ends this one
    end_with_parent(parent)


def end_with_parent(parent: int) -> None:
    """Let Linux end this process when the process `parent` is killed; if it has ended already, end at once."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


class BrokenFileError(ValueError):
    """A file with invalid contents; the text is ``ErrorName: cause`` with a name that users know."""


class WrongShapeError(BrokenFileError):
    """Well-formed JSON with a shape other than the decoder's."""


def decode_json(data: bytes, decoder: msgspec.json.Decoder = ANYTHING) -> tuple[Any, list[str]]:
    """Decode one JSON file, and return what was recovered.

    The whole file is checked to be UTF-8 and well-formed, even the parts the decoder skips. A byte order mark, UTF-16
    with one, Latin-1, bare ``NaN`` / ``Infinity`` (read as null) and lone surrogates (read as ``�``) are recovered and
    named: ``byte_order_mark``, ``utf_16``, ``latin_1``, ``nan_literal``, ``lone_surrogate``.

    Parameters
    ----------
    data : bytes
        Contents of the file.
    decoder : msgspec.json.Decoder
        Decoder, optionally with a type.

    Returns
    -------
    tuple
        The value, and a list of names of what was recovered.

    Raises
    ------
    BrokenFileError
        For a malformed file.
    WrongShapeError
        For another shape than the decoder's.
    LimitError
        For a file that is too large.

    Examples
    --------
    >>> io.decode_json(b'[NaN]')
    ([None], ['nan_literal'])
    """
    data, recovered = without_mark(data)
    if not data or data.isspace():
        raise BrokenFileError("JSONDecodeError: the file is empty")
    check_json(data)
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
            except UnicodeDecodeError:  # damaged: decoding reports where
                return (data[len(mark) :], [name]) if encoding != "utf-16" else (data, [])
    return data, []


def beginning(data: bytes) -> bytes:
    """Return the first bytes of a file, whose last character may be cut, as UTF-8."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the former begins like the mark of UTF-16
        return data.decode("utf-32", "ignore").encode()
    encoding = next((encoding for mark, (encoding, _) in _MARKS.items() if data.startswith(mark)), "")
    return data.decode(encoding, "ignore").encode() if encoding == "utf-16" else data


@lru_cache(maxsize=1)  # each kind asks for the same one; nobody changes it
def decode_start(head: bytes) -> Any:
    """Decode the list or object that a JSON file begins with: ``{"a": [1, 2], "b": "c`` gives ``{"a": [1, 2]}``."""
    text = head.decode("utf-8-sig", "replace")
    if not text.lstrip().startswith(("[", "{")):
        return None
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
