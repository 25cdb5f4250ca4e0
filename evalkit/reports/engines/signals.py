"""Stop a batch cleanly at the first SIGINT or SIGTERM, without interruption by further ones."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def _stop(*_: Any) -> None:
    for number in _SIGNALS:
        signal.signal(number, _nothing)
    raise KeyboardInterrupt


def _nothing(*_: Any) -> None:
    """Ignore a signal; with SIG_IGN, Python would complain of one that came just before."""


@contextmanager
def stopped_once(*, is_last: bool = False) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM, and ignore those that follow, within a ``with`` block.

    Signals belong to the main thread; in other threads, and within another such block, nothing is changed.
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
