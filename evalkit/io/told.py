"""Warnings as a command tells them: a line each, without the place in the code they come from."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evalkit.io.text import plain


@contextmanager
def told_warnings() -> Iterator[None]:
    """Write warnings to stderr as ``evalkit: warning: TEXT`` within a ``with`` block, each text once."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = plain(message)
        if text not in told:
            told.add(text)
            print(f"evalkit: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield
