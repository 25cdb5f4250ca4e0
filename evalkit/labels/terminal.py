"""Label in a terminal: a transcript page by page, and a key for the answer."""

import shutil
import sys

import click

from evalkit._text import counted_noun
from evalkit.io import SourceError, plain
from evalkit.labels.session import NO, UNDECIDED, YES, Session

KEYS = "y yes, n no, u undecided, s later, space next page, b back, m note, q stop"
_LABELS = {"y": YES, "n": NO, "u": UNDECIDED}
_AROUND = 6  # lines of a page that are no transcript


def label_in_terminal(session: Session) -> None:
    """Ask for the label of each unit that is left, until all have one, `q`, or the end of the input."""
    while session.left:
        unit = session.left[0]
        try:
            lines = session.transcript(unit).text().splitlines()
        except SourceError as error:
            lines = [plain(f"can't be read: {error}")]
        answer = _ask(session, lines)
        if answer == "q":
            break
        if answer == "s":
            session.put_off()
    print(f"{counted_noun(session.done, 'label')} of {session.total} in {plain(session.path)}")


def _ask(session: Session, lines: list[str]) -> str:
    """Show a transcript until a key answers; keep the label, and return the key."""
    height = max(shutil.get_terminal_size().lines - _AROUND, 5)
    pages = range(0, max(len(lines), 1), height)
    page, note = 0, ""
    while True:
        click.clear()
        start = pages[page]
        print("\n".join(lines[start : start + height]))
        place = f"page {page + 1} of {len(pages)}"
        print(f"\n{place}. {plain(session.question)}\n{KEYS}")
        if note:
            print(f"note: {plain(note)}")
        key = _key()
        if key in _LABELS:
            session.save(_LABELS[key], note)
            return key
        if key in ("q", "s"):
            return key
        if key == "m":
            note = _line()
        elif key == "b":
            page = max(page - 1, 0)
        elif key in (" ", "\r", "\n"):
            page = min(page + 1, len(pages) - 1)


def _key() -> str:
    """Wait for a key; `q` at the end of the input."""
    if not sys.stdin.isatty():
        return sys.stdin.read(1) or "q"
    try:
        return click.getchar()
    except EOFError:
        return "q"


def _line() -> str:
    """Wait for a line; empty at the end of the input."""
    print("note: ", end="", flush=True)
    return sys.stdin.readline().strip()
