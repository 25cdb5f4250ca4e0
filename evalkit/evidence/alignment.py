"""Two runs side by side: turn by turn from their beginning, and where they first differ."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from evalkit.kinds import Transcript, Turn

RULE = (
    "Turns are laid side by side from the beginning. Two are the same where their role and their commands or actions "
    "are the same; where a turn has none of these, where its words are. Names of agents don't count."
)


class Row(NamedTuple):
    """A turn of either run; None where a run ended before."""

    a: Turn | None
    b: Turn | None
    differs: bool


def align(a: Transcript, b: Transcript) -> list[Row]:
    """Lay two transcripts side by side, from their beginning.

    Returns
    -------
    list of Row
        As long as the longer one.
    """
    return [Row(x, y, _key(x) != _key(y)) for x, y in zip_longest(a.turns, b.turns)]


def first_difference(rows: Sequence[Row]) -> int | None:
    """Give the place of the first row that differs, from 0; None where none does."""
    return next((place for place, row in enumerate(rows) if row.differs), None)


def _key(turn: Turn | None) -> tuple[str, str] | None:
    """Give what must be equal for turns to be the same."""
    return None if turn is None else (turn.role, " ".join((turn.same or turn.text).split()))
