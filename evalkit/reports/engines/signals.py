"""Stopping a batch: the first SIGINT or SIGTERM ends it in good order, and no other one comes in between."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def stopped_once() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM, and ignore those that follow, within a ``with`` block.

    Signals are the main thread's alone; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_signals() -> Iterator[None]:
    """Keep SIGINT and SIGTERM back within a ``with`` block; they arrive at its end.

    A process that is started within keeps them back too, until it calls `release_signals`.
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
    """Let signals arrive that were held back where this process was started."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
