"""Processes of a batch: how they are started, and how signals stop them."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def start_method() -> str:
    """Return the start method of processes: fork if that is safe, else spawn."""
    return "fork" if sys.platform == "linux" else "spawn"


def quiet_imports() -> None:
    """Import papermill without slow, unused modules and without output to the terminal.

    rfc3987_syntax, an option of jsonschema that nbformat does not use, takes a second to build its grammar.
    """
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    absent = "rfc3987_syntax" not in sys.modules
    if absent:
        sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # None stops its import
    import papermill  # noqa: F401

    if absent:
        del sys.modules["rfc3987_syntax"]


def end_with_parent(parent: int) -> None:
    """Let Linux end this process when that of the id `parent` is killed; if it is gone by now, end at once."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _stop(*_: Any) -> None:
    for number in _SIGNALS:  # ignored from now on; with SIG_IGN, Python would complain of one that came just before
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


@contextmanager
def stopped_once(*, is_last: bool = False) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM, and ignore those that follow, within a ``with`` block.

    Signals belong to the main thread; in other threads, and within another such block, nothing is changed. If the
    process ends after the block (`is_last`), those after a first signal are ignored until the end.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is _stop:
        yield
        return
    before = {number: signal.signal(number, _stop) for number in _SIGNALS}
    try:
        yield
    finally:
        if not is_last or signal.getsignal(signal.SIGTERM) is _stop:
            for number, handler in before.items():
                signal.signal(number, handler)
        elif hasattr(signal, "pthread_sigmask"):  # Python drops its handlers a little before the process ends
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


@contextmanager
def held_signals() -> Iterator[None]:
    """Block SIGINT and SIGTERM within a ``with`` block; they arrive at its end.

    A process that is started within blocks them too, until it calls `release_signals`.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_signals() -> None:
    """Unblock the signals that were blocked when this process was started."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
