"""Align two runs turn by turn from their beginning, and find where they first differ."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from evalkit.kinds import Transcript, Turn

RULE = (
    "Turns are laid side by side from the beginning. Two are the same where their role and their commands or actions "
    "are the same; where a turn has none of these, where its words are. Names of agents don't count."
)


class Row(NamedTuple):
    """A turn of each run; None if a run ended before."""

    a: Turn | None
    b: Turn | None
    differs: bool


def align(a: Transcript, b: Transcript) -> list[Row]:
    """Align two transcripts turn by turn, from their beginning.

    Returns
    -------
    list of Row
        As long as the longer one.
    """
    return [Row(x, y, _key(x) != _key(y)) for x, y in zip_longest(a.turns, b.turns)]


def first_difference(rows: Sequence[Row]) -> int | None:
    """Return the index of the first row that differs; None if none does."""
    return next((index for index, row in enumerate(rows) if row.differs), None)


def _key(turn: Turn | None) -> tuple[str, str] | None:
    """Return what must be equal for turns to count as the same."""
    return None if turn is None else (turn.role, " ".join((turn.same or turn.text).split()))
