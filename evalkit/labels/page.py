"""Write a page to label in a browser, without a server or a network; the page saves labels as a CSV file."""

import hashlib
import os
from typing import Any

from evalkit._html import asset, render_page
from evalkit._text import counted_noun
from evalkit.io import SourceError, plain, write_text
from evalkit.labels.session import Session

LARGEST = 20_000  # maximum number of characters of a turn; longer turns are truncated
MOST = 400  # maximum number of turns of a transcript; longer ones keep half from the start and half from the end


def write_page(session: Session, path: str | os.PathLike) -> str:
    """Write a page with the transcripts of all remaining units, and return its path.

    The page runs only its own script, and sends no data. It keeps labels in the browser and saves them as a file that
    `evalkit judges` reads. Such files can be concatenated. Units whose transcripts can't be read are excluded.

    Raises
    ------
    SourceError
        If no transcript can be read, or the page can't be written.
    """
    units: list[dict[str, Any]] = []
    for unit in session.left:
        try:
            made = session.transcript(unit)
        except SourceError:
            continue
        turns = []
        for number, turn in enumerate(made.turns, 1):
            text = plain(turn.text, LARGEST, keep_lines=True)  # with calls and results: see `blinded`
            turns.append({"number": number, "who": plain(turn.actor or turn.role, 80), "role": turn.role, "text": text})
        left_out = max(len(turns) - MOST, 0)
        del turns[MOST // 2 : MOST // 2 + left_out]
        units.append({"unit": unit, "facts": made.facts, "turns": turns, "left_out": left_out})
    if not units:
        raise SourceError(f"{session.path}: there is nothing left to label, or no transcript can be read")
    names = "\0".join([session.question, *(str(unit["unit"]) for unit in units)])
    page = render_page(
        "label.html.j2",
        asset("label.js"),
        "viewer.css",
        question=plain(session.question),
        units=units,
        counted=counted_noun(len(units), "turn" if units[0]["unit"].turn is not None else "run"),
        key=hashlib.blake2b(names.encode(errors="replace"), digest_size=8).hexdigest(),
    )
    write_text(page, os.fspath(path))
    return os.fspath(path)
