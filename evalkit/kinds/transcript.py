"""What happened in a run, turn by turn: the same form for every kind of log."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from evalkit.io.paths import SourceError
from evalkit.io.read import read_file
from evalkit.io.sources import resolve
from evalkit.io.text import plain
from evalkit.kinds.detection import HEAD, recognise
from evalkit.kinds.registry import LogKind, kind_named

SIGNS = {"system": "·", "assistant": "»", "user": "«", "action": "»", "result": "·"}


class Turn(NamedTuple):
    """One thing that happened: who did it, in what role, what it says, and what it is marked with."""

    actor: str
    role: str  # system, assistant, user, action, result, …
    text: str
    marks: tuple[str, ...] = ()  # such as "final message"


class Transcript(NamedTuple):
    """What happened in a run.

    Attributes
    ----------
    title : str
    facts : sequence of str
        What is known of the whole run, each a few words.
    turns : sequence of Turn
    """

    title: str
    facts: Sequence[str]
    turns: Sequence[Turn]

    def text(self, last: int | None = None, width: int | None = None) -> str:
        """Write the transcript as plain text; only a turn's first line begins at the margin.

        Parameters
        ----------
        last : int, optional
            Only so many turns, from the end.
        width : int, optional
            Characters kept of each turn; None for all.
        """
        shown = self.turns if last is None else self.turns[-last:]
        lines = [plain(self.title), plain(", ".join(self.facts)), ""]
        if len(shown) < len(self.turns):
            lines.append(f"… {len(self.turns) - len(shown)} earlier turns")
        for turn in shown:
            text = plain(turn.text, width, keep_lines=True).replace("\n", "\n    ")
            marks = f"   ◀ {', '.join(map(plain, turn.marks))}" if turn.marks else ""
            lines.append(f"{SIGNS.get(turn.role, '?')} {plain(turn.actor or turn.role)}: {text}{marks}")
        return "\n".join(lines) + "\n"


def read_transcript(
    make: Callable[[Sequence[str], Callable[[str], bytes]], Transcript], *paths: str | os.PathLike
) -> Transcript:
    """Read the files of a run, and make its transcript as the kind does.

    Raises
    ------
    SourceError
        Where a file is missing, a folder, or can't be read.
    """
    return make([resolve(path) for path in paths], read_log)


def read_log(path: str) -> bytes:
    """Read one file that was named; every failure is a `SourceError`."""
    try:
        return read_file(path)
    except IsADirectoryError as error:
        raise SourceError(f"{path}: a folder; name one log in it") from error
    except OSError as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error.strerror or error}") from error


def show_source(source: str, kind: str | None = None, last: int | None = None) -> str:
    """Write one log as text, turn by turn.

    Parameters
    ----------
    source : str
        A file.
    kind : str, optional
        Told by its content, where none is given.
    last : int, optional
        Only so many turns, from the end.

    Raises
    ------
    SourceError
        Where the file is missing, broken, a folder, or of no kind that can be shown.
    """
    path = resolve(source)
    data = read_log(path)
    found = kind_named(kind) if kind else _kind_of(path, data)
    if found.transcript is None:
        raise SourceError(f"{path}: {found.name} logs can't be shown turn by turn")
    try:
        return found.transcript([path], lambda _: data).text(last)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path}: {type(error).__name__}: {error}") from error


def _kind_of(path: str, data: bytes) -> LogKind:
    if not data.strip():
        raise SourceError(f"{path}: the file is empty")
    look = recognise(data[:HEAD])
    if look is None or not look.kind:
        what = f"{look.title}, which evalkit does not read" if look else "of no kind that evalkit knows"
        raise SourceError(f"{path}: {what}")
    return kind_named(look.kind)
