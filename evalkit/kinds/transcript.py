"""Transcripts: what happened in a run, turn by turn, in the same form for every kind of log."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io.paths import SourceError
from evalkit.io.read import read_file
from evalkit.io.sources import resolve
from evalkit.io.text import masked, plain
from evalkit.kinds.detection import HEAD, recognise
from evalkit.kinds.registry import LogKind, RunFiles, kind_named

if TYPE_CHECKING:
    from evalkit.kinds.logs import Logs

SIGNS = {"system": "·", "assistant": "»", "user": "«", "action": "»", "result": "·"}
EVENTS = ("command", "error", "achievement", "decision")  # what a viewer can jump to


class Image(NamedTuple):
    """An image of raw RGB pixels, row by row: ``3 * width * height`` bytes."""

    width: int
    height: int
    pixels: bytes


class Turn(NamedTuple):
    """One event of a run.

    Attributes
    ----------
    actor : str
        Who did it.
    role : str
        system, assistant, user, action, result, …
    text : str
        What it says.
    marks : tuple of str
        Marks that flags and findings refer to, such as ``final message``.
    events : tuple of str
        Which of `EVENTS` it is.
    when : str
        Its time, if the log has one.
    same : str
        Text that must be equal in another run of the task for the turn to count as the same; by default `text`.
    images : tuple of Image
        What was seen.
    """

    actor: str
    role: str
    text: str
    marks: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    when: str = ""
    same: str = ""
    images: tuple[Image, ...] = ()


class Transcript(NamedTuple):
    """What happened in a run.

    Attributes
    ----------
    title : str
    facts : sequence of str
        Facts about the whole run, of a few words each.
    turns : sequence of Turn
    """

    title: str
    facts: Sequence[str]
    turns: Sequence[Turn]

    def changed(self, change: Callable[[str], str]) -> "Transcript":
        """Return the transcript with its texts changed by a function, such as `evalkit.io.masked`."""
        turns = [turn._replace(text=change(turn.text), same=change(turn.same)) for turn in self.turns]
        return Transcript(change(self.title), list(map(change, self.facts)), turns)

    def text(self, last: int | None = None, width: int | None = None) -> str:
        """Format the transcript as plain text; only a turn's first line begins at the margin.

        Parameters
        ----------
        last : int, optional
            Show only this many turns, from the end.
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
    """Read the files of a run, and build its transcript.

    Raises
    ------
    SourceError
        If a file is missing, a folder, or can't be read.
    """
    return make([resolve(path) for path in paths], read_log)


def read_log(path: str) -> bytes:
    """Read one named file; every failure is a `SourceError`."""
    try:
        return read_file(path)
    except IsADirectoryError as error:
        raise SourceError(f"{path}: a folder; name one log in it") from error
    except OSError as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error.strerror or error}") from error


def show_source(source: str, kind: str | None = None, last: int | None = None, *, mask: bool = True) -> str:
    """Format one log as text: its last turns, or all; SourceError for a file that can't be shown."""
    path = resolve(source)
    data = read_log(path)
    chosen = kind_named(kind) if kind else _kind_of(path, data)
    return transcript_of(chosen, RunFiles([path]), lambda _: data, mask=mask).text(last)


def transcript_of(
    kind: LogKind, files: RunFiles, read: Callable[[str], bytes] = read_log, *, mask: bool = True
) -> Transcript:
    """Build the transcript of a run from its files, with credentials of known forms masked.

    Raises
    ------
    SourceError
        If a file is missing or broken, or logs of this kind can't be shown.
    """
    where = files.paths[0] if files.paths else "the run"
    if kind.transcript is None:
        raise SourceError(f"{where}: {kind.name} logs can't be shown turn by turn")
    try:
        made = kind.transcript(files.paths, read, *([files.part] if files.part else []))
        return made.changed(masked) if mask else made
    except (ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{where}: {type(error).__name__}: {error}") from error


def show_run(logs: "Logs", run_id: str = "", last: int | None = None, *, mask: bool = True) -> str:
    """Format one run of loaded logs as text, turn by turn.

    Parameters
    ----------
    logs : Logs
    run_id : str
        May be left out if there is only one run.
    last : int, optional
        Show only this many turns, from the end.
    mask : bool
        Whether to mask credentials of known forms.

    Raises
    ------
    SourceError
        If there is no such run, or several and none was named, or one of its files can't be read.
    """
    run = find_run(logs, run_id)
    return transcript_of(logs.kind, logs.kind.run_files(logs, run), mask=mask).text(last)


def find_run(logs: "Logs", run_id: str = "") -> Mapping[str, Any]:
    """Return the row of a run by its id, or the only one there is.

    Raises
    ------
    SourceError
        If there is none, or several and none was named.
    """
    runs = logs.runs
    matches = runs[runs["run_id"] == run_id] if run_id else runs
    if len(matches) == 1 or (run_id and len(matches)):
        return {str(name): value for name, value in matches.iloc[0].items()}
    listed = f"`evalkit {logs.kind.name} {logs.source} --list all` lists them"
    if run_id:
        raise SourceError(f"{logs.source}: no run {run_id!r}; {listed}")
    raise SourceError(f"{logs.source}: {len(matches)} runs; name one with --run, {listed}")


def _kind_of(path: str, data: bytes) -> LogKind:
    if not data.strip():
        raise SourceError(f"{path}: the file is empty")
    look = recognise(data[:HEAD])
    if look is None or not look.kind:
        what = (
            f"{look.title}, which evalkit does not read"
            if look
            else "of no kind that evalkit knows; if it is a log, name its kind with --kind"
        )
        raise SourceError(f"{path}: {what}")
    return kind_named(look.kind)
