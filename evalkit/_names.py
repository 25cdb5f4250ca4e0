"""Hints for unknown names in error messages: the nearest name, or all of them."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 20  # names that are listed


def nearest(name: str, there: Iterable[object], *, cutoff: float = 0.6) -> str:
    """Return the end of a message on an unknown name: "did you mean 'x'?" or "there are 'x', 'y'".

    `cutoff` is how similar a name must be, from 0 to 1.
    """
    known = list(map(str, there))
    if near := get_close_matches(name, known, 1, cutoff):
        return f"did you mean {near[0]!r}?"
    more = f" and {len(known) - _MOST} more" * (len(known) > _MOST)
    return f"there {'are' if len(known) > 1 else 'is'} {', '.join(map(repr, known[:_MOST])) or 'none'}{more}"


def check_columns(table: Iterable[object], *names: str | None) -> None:
    """Raise ValueError for the first column that a frame does not have; None is ignored."""
    there = list(table)
    for name in names:
        if name is not None and name not in there:
            raise ValueError(f"no column {name!r}; {nearest(name, there, cutoff=0.4)}")
