"""Writing files: the suffix says how a frame is written, nobody ever sees half a file, and one at a time may write."""

import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from evalkit.io.files import SourceError
from evalkit.io.paths import is_url

if TYPE_CHECKING:
    import pandas as pd

_ASIDE = ".evalkit-"  # what the name of a file begins with until it is whole
_WRITERS: dict[str, Callable[["pd.DataFrame", str], object]] = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".json": lambda table, path: table.to_json(path, orient="records", indent=1, force_ascii=False),
    ".parquet": lambda table, path: table.to_parquet(path, index=False),
}
_held: set[TextIO] = set()  # locks of this process


def check_output(path: str) -> None:
    """Refuse an output file before any work is done for it.

    Raises
    ------
    SourceError
        For another suffix than .csv, .json or .parquet, or a folder that is not there.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _WRITERS:
        raise SourceError(f"{path}: the output's name must end in {', '.join(_WRITERS)}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise SourceError(f"{path}: no folder {folder}")


def write_frame(table: "pd.DataFrame", path: str) -> None:
    """Write a frame as CSV, JSON (a list of records) or Parquet.

    Parameters
    ----------
    table : DataFrame
    path : str
        Ends in .csv, .json or .parquet. The file is written aside and then renamed.

    Raises
    ------
    SourceError
        As `check_output`, and where the file can't be written.
    """
    check_output(path)
    suffix = os.path.splitext(path)[1].lower()
    _replace(path, lambda aside: _WRITERS[suffix](table, aside))


def write_text(text: str, path: str | os.PathLike) -> None:
    """Write a text file in UTF-8; it is written aside and then renamed.

    Raises
    ------
    SourceError
        Where the file can't be written.
    """

    def write(aside: str) -> None:
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    _replace(os.fspath(path), write)


def write_bytes(data: bytes, path: str) -> None:
    """Write a file, local (aside, then renamed; folders above are made) or behind a URL.

    Raises
    ------
    SourceError
        Where it can't be written.
    """
    if is_url(path):
        from evalkit.io.remote import write_remote

        try:
            return write_remote(path, data)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from None

    def write(aside: str) -> None:
        with open(aside, "r+b") as file:  # it is there and empty; where one is truncated, ext4 flushes it when closed
            file.write(data)

    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    _replace(path, write)


def remove_files(paths: Iterable[str]) -> None:
    """Remove files, local or behind a URL; one that is not there any more, or may not be removed, stays as it is."""
    for path in paths:
        if is_url(path):
            from evalkit.io.remote import remove_remote

            remove_remote(path)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _let_go() -> None:
    """Close what a forked child has of the locks; else they would last as long as the child."""
    for lock in _held:
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Let one process at a time write into a local folder, which is made; behind a URL nothing keeps others out.

    Processes that are forked meanwhile don't hold the lock.

    Raises
    ------
    SourceError
        Where another one is at work, or the folder can't be made.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        fcntl = None
    if is_url(path) or fcntl is None:
        yield
        return
    try:
        os.makedirs(path, exist_ok=True)
        lock = open(f"{path}/.lock", "a")  # noqa: SIM115 - closed below
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SourceError(f"{path}: another process is collecting into it") from None
        _held.add(lock)
        try:
            yield
        finally:
            _held.discard(lock)


def unfinished(folder: str) -> list[str]:
    """Name the files in a folder that were being written when the process was killed, or are just now."""
    return glob.glob(f"{glob.escape(folder)}/{_ASIDE}*")


def _replace(path: str, write: Callable[[str], object]) -> None:
    """Let `write` fill a file beside `path`, and put it in its place when it is whole."""
    import tempfile  # slow to import, and many commands write nothing

    try:
        suffix = os.path.splitext(path)[1].lower()
        handle, aside = tempfile.mkstemp(suffix, _ASIDE, os.path.dirname(os.path.abspath(path)))
        os.close(handle)
        try:
            write(aside)
            os.chmod(aside, 0o666 & ~_umask())
            os.replace(aside, path)
        finally:
            if os.path.exists(aside):
                os.unlink(aside)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
