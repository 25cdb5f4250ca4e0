"""Read files up to a size limit, in one process or several, and decode JSON.

JSON is first decoded with a fast and strict decoder. If that fails, a lenient decoder accepts what real programs write.
Decoders keep the global interpreter lock, so threads don't help, and processes pay off only for thousands of files.
Processes are forked where that is safe, because starting new ones takes longer than reading most folders. Within
``joblib.parallel_config``, the configured backend does the work, such as Dask on a cluster.
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

from evalkit.io.paths import LimitError, check_document, check_regular, is_url, most_bytes, redacted, too_large
from evalkit.io.remote import read_remote

joblib = lazy_loader.load("joblib")  # slow to import, and needed only for many files
R = TypeVar("R")
ANYTHING = msgspec.json.Decoder()
Excerpt = Callable[[str, Callable[[], BinaryIO]], bytes | None]  # returns None to read the whole file
SERIAL_FILES, SERIAL_BYTES = 2_000, 100_000_000  # numbers of files or bytes above which several processes are faster
CHUNK = 256  # maximum number of files per task
TASKS = 16  # minimum number of tasks per process, so that no process is idle for long at the end
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # opening a pipe does not block
_MARKS = {  # byte order marks: encoding, and the name under which its recovery is reported
    codecs.BOM_UTF8: ("utf-8-sig", "byte_order_mark"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf_16"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf_16"),
}
_LATIN = re.compile(rb"[\x00-\x7f\xa0-\xfe]*")  # no control characters, and no bytes that usually mean damage
_UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_REPAIRS = {  # defects that json accepts and msgspec rejects: a pattern whose group is the defect, and its replacement
    "nan_literal": (re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|(NaN|-?Infinity)', re.DOTALL), b"null"),
    "lone_surrogate": (
        re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL),
        b"fffd",
    ),
}
_MOST_TOKENS = 2_000  # maximum number of JSON tokens read from the beginning of a file
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)  # a string, or a punctuation mark


def reason_of(error: Exception) -> str:
    """Return why a file can't be read, as ``ErrorName: cause``. The path is left out, since messages begin with it."""
    cause = str(getattr(error, "strerror", None) or error)
    return cause if isinstance(error, BrokenFileError) else f"{type(error).__name__}: {cause}"


def read_file(path: str | os.PathLike, *, limited: bool = True) -> bytes:
    """Read the bytes of a file. Raise OSError for a pipe or device, or if `limited`, for a file over the size limit."""
    ((_, data),) = read_files([os.fspath(path)], limited=limited)
    if isinstance(data, OSError):
        data.filename = redacted(data.filename or os.fspath(path))
        try:
            raise data
        finally:
            del data  # breaks the cycle of error and frame, which would keep the logs of all callers in memory
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
        If the JSON is invalid, or its lists and objects are nested too deeply.

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
    """Yield each path with all data of its file, the first `most` bytes, or the `excerpt`; in order.

    Yield an OSError instead of data for a pipe or device, without blocking, and if `limited`, for a file over a limit.
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
        if len(data) != status.st_size:  # it is growing, or reports no size, as in /proc
            with open(descriptor, "rb", closefd=False) as file:
                data += file.read()
            if len(data) > limit:
                raise too_large(len(data))
        return data
    finally:
        os.close(descriptor)


def in_chunks(work: Callable[[list[str]], R], paths: list[str], size: int, jobs: int | None = None) -> Iterator[R]:
    """Apply `work` to chunks of the paths, and yield the results in order.

    `work` must be a function of a module, and must not raise exceptions. `jobs` is the number of processes; -1 means
    one per core. None means the number in ``joblib.parallel_config``, or else one per core if forking is safe. This
    process does all work for few files with few bytes in total (`size`). If workers fail, it warns and does the rest.
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
        except Exception as error:  # a worker failed, since `work` raises nothing; if it does, it raises again below
            warnings.warn(
                f"worker processes failed ({type(error).__name__}); this process reads the rest", stacklevel=2
            )
    for chunk in chunks[done:]:
        yield work(chunk)


def _workers(jobs: int | None, is_remote: bool) -> tuple[int, bool]:
    """Return the number of processes to use, and whether to fork them from this process."""
    backend, configured = joblib.parallel.get_active_backend()
    if not isinstance(backend, joblib.parallel.BACKENDS[joblib.parallel.DEFAULT_BACKEND]):  # the user chose the backend
        return backend.effective_n_jobs(jobs or configured or backend.default_n_jobs), False
    is_main = threading.current_thread() is threading.main_thread()
    can_fork = sys.platform == "linux" and is_main and not is_remote and not multiprocessing.current_process().daemon
    if not (can_fork or jobs or configured):  # other backends start slowly, so use them only on request
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also interrupts the parent, which ends its workers
    end_with_parent(parent)


def end_with_parent(parent: int) -> None:
    """On Linux, end this process when the process `parent` ends, or now if it has already ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


class BrokenFileError(ValueError):
    """Raised for invalid contents of a file, with the message ``ErrorName: cause`` and a name that users know."""


class WrongShapeError(BrokenFileError):
    """Raised if well-formed JSON does not have the type that the decoder expects."""


def decode_json(data: bytes, decoder: msgspec.json.Decoder = ANYTHING) -> tuple[Any, list[str]]:
    """Decode one JSON file, and report which defects were repaired.

    The whole file must be UTF-8 and well-formed, including parts that the decoder skips. Some defects are repaired and
    reported: a byte order mark (``byte_order_mark``), UTF-16 with such a mark (``utf_16``), Latin-1 (``latin_1``), bare
    ``NaN`` or ``Infinity``, read as null (``nan_literal``), and lone surrogates, read as ``�`` (``lone_surrogate``).

    Parameters
    ----------
    data : bytes
        Contents of the file.
    decoder : msgspec.json.Decoder
        Decoder, optionally with an expected type.

    Returns
    -------
    tuple
        The value, and a list of the names of repaired defects.

    Raises
    ------
    BrokenFileError
        If the file is malformed.
    WrongShapeError
        If the value does not have the type that the decoder expects.
    LimitError
        If the decoded file would need too much memory.

    Examples
    --------
    >>> io.decode_json(b'[NaN]')
    ([None], ['nan_literal'])
    """
    data, recovered = without_mark(data)
    if not data or data.isspace():
        raise BrokenFileError("JSONDecodeError: the file is empty")
    check_document(data)
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
            strict_error = str(error)  # the error would keep this function's data in memory
        for name, (pattern, new) in _REPAIRS.items():
            repaired, end = bytearray(), 0
            for match in pattern.finditer(data):
                if match[1]:
                    repaired += data[end : match.start(1)] + new
                    end = match.end(1)
            if end:
                data = bytes(repaired + data[end:])
                recovered.append(name)
        return decoder.decode(data), recovered
    except msgspec.ValidationError as error:
        raise WrongShapeError(f"TypeError: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenFileError(f"UnicodeDecodeError: not UTF-8 at byte {error.start}: {error.reason}") from error
    except RecursionError as error:
        raise BrokenFileError("RecursionError: nested too deep") from error
    except msgspec.DecodeError as error:
        raise BrokenFileError(f"JSONDecodeError: {strict_error}") from error


def without_mark(data: bytes) -> tuple[bytes, list[str]]:
    """Convert a text file with a byte order mark to UTF-8 without it, and return the mark's name. Keep other files."""
    for mark, (encoding, name) in _MARKS.items():
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode(), [name]
            except UnicodeDecodeError:  # damaged; the decoder reports the position
                return (data[len(mark) :], [name]) if encoding != "utf-16" else (data, [])
    return data, []


def beginning(data: bytes) -> bytes:
    """Return the first bytes of a file as UTF-8. The last character may be incomplete."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # first, since one begins like the mark of UTF-16
        return data.decode("utf-32", "ignore").encode()
    encoding = next((encoding for mark, (encoding, _) in _MARKS.items() if data.startswith(mark)), "")
    return data.decode(encoding, "ignore").encode() if encoding == "utf-16" else data


@lru_cache(maxsize=1)  # all kinds pass the same bytes in turn, and no caller changes the result
def decode_start(head: bytes) -> Any:
    """Decode an incomplete list or object at the start of a file: ``{"a": [1, 2], "b": "c`` gives ``{"a": [1, 2]}``."""
    text = head.decode("utf-8-sig", "replace")
    if not text.lstrip().startswith(("[", "{")):
        return None
    closing, cut = list[str](), 0
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        mark = token[0]
        if mark == '"' or (mark in "]}" and (not closing or closing.pop() != mark)):
            break  # an unclosed string, or not JSON
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
