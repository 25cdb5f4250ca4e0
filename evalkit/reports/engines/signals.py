"""Stopping a batch: the first SIGINT or SIGTERM ends it in good order, and no other one comes in between."""

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
    """Ignore a signal; SIG_IGN makes Python complain of one that came just before."""


@contextmanager
def stopped_once(*, is_last: bool = False) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM, and ignore those that follow, within a ``with`` block.

    Signals are the main thread's alone; in another one nothing is changed. A block within another one changes nothing.

    Parameters
    ----------
    is_last : bool
        The process ends after the block: once a signal came, others are ignored until then.
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
