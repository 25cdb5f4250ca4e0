"""Limits on the resources of one file: a file that exceeds one is `failed` in the ledger, and the rest is read.

Sources are untrusted: a small file can ask for much memory or time. The limits are far above real logs; the environment
variable ``EVALKIT_LIMITS`` changes them, as in ``EVALKIT_LIMITS="bytes=2G,seconds=300"``, and applies to child
processes too.
"""

import errno
import os
import re
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple, TypeVar

from evalkit.io.paths import SourceError

T = TypeVar("T")
VARIABLE = "EVALKIT_LIMITS"
NO_MEMORY = "the memory does not suffice for this file"
NOT_REGULAR = "not a regular file"
MOST_MATCHED = 1_000  # characters of an id or a name, from its beginning, that patterns are matched with
_UNITS = {"": 1, "k": 2**10, "M": 2**20, "G": 2**30}
_SETTING = re.compile(r"\s*(?P<name>[a-z_]+)\s*=\s*(?P<number>[0-9]{1,15})(?P<unit>[kMG]?)\s*")
_AGAIN = 1.0  # seconds after which work that continues is interrupted again


class Limits(NamedTuple):
    """Limits on reading; every one is a positive whole number."""

    bytes: int = 2**30  # of a file; of a member of an archive, after decompression; of all that is read from a database
    seconds: int = 60  # to parse one file; without the signal (in other threads, on Windows), of databases only


class LimitError(OSError):
    """A file that exceeds a limit, or the memory."""


def limits() -> Limits:
    """Return the current limits; SourceError if ``EVALKIT_LIMITS`` can't be parsed."""
    given = {}
    for item in filter(str.strip, os.environ.get(VARIABLE, "").split(",")):
        match = _SETTING.fullmatch(item)
        if match is None or match["name"] not in Limits._fields or not int(match["number"]):
            names = ", ".join(Limits._fields)
            raise SourceError(f"{VARIABLE}: {item.strip()!r} is no limit; write NAME=NUMBER, with {names}")
        given[match["name"]] = int(match["number"]) * _UNITS[match["unit"]]
    return Limits(**given)


def check_size(size: int) -> None:
    """Raise LimitError for a file by its size, with the setting that reads it."""
    if size > (most := limits().bytes):
        unit, factor = next(((u, s) for u, s in reversed(_UNITS.items()) if size > 8 * s), ("", 1))
        remedy = f'{VARIABLE}="bytes={-(-size // factor)}{unit}" reads it'
        raise LimitError(errno.EFBIG, f"{size} bytes are more than the limit of {most}; {remedy}")


def check_regular(status: os.stat_result) -> None:
    """Raise OSError for pipes, sockets and devices: some never end, and opening others waits for a writer."""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, NOT_REGULAR)


class _OverdueError(BaseException):
    """Raised if one file takes too long."""


@contextmanager
def guarded(parse: Callable[[str, bytes | OSError], T]) -> Iterator[Callable[[str, bytes | OSError], tuple[T, bool]]]:
    """Yield a function that returns what `parse` does, and whether the file could be read.

    A file that needs too much memory, stack or time is given to `parse` again, as one that can't be read.

    Time is not limited where the signal is not available: in other threads, on Windows, and where other code uses it.
    """
    seconds, is_running = limits().seconds, False
    can_interrupt = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    )

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_running:
            raise _OverdueError

    def parse_within_limits(path: str, data: bytes | OSError) -> tuple[T, bool]:
        nonlocal is_running
        try:
            if can_interrupt:
                signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
            is_running = True
            result = parse(path, data)
            is_running = False
            return result, not isinstance(data, OSError)
        except MemoryError:
            failure = LimitError(errno.ENOMEM, NO_MEMORY)
        except RecursionError:
            failure = LimitError(errno.EOVERFLOW, "nested too deep")
        except _OverdueError:
            cause = f"parsing took longer than the limit of {seconds} seconds"
            failure = LimitError(errno.ETIMEDOUT, f'{cause}; {VARIABLE}="seconds={10 * seconds}" allows more')
        is_running = False
        return parse(path, failure), False

    if can_interrupt:
        signal.signal(signal.SIGALRM, interrupt)
    try:
        yield parse_within_limits
    finally:
        is_running = False
        if can_interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
