"""Render pages of single runs and of two runs side by side: HTML files from templates that escape all text."""

import base64
import io
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd
from markupsafe import Markup

from evalkit._html import asset, render_page
from evalkit.display.show import SORTING
from evalkit.display.tables import ALIGNED, table_html
from evalkit.evidence.references import RunList, RunRef, page_name
from evalkit.io import plain
from evalkit.kinds import EVENTS, Image, Transcript, Turn

UNFOLDED = 1_200  # maximum number of characters of a turn that is not folded
HEAD = 300  # characters of a folded turn that stay visible
LINES = 16  # maximum number of line breaks in a turn that is not folded
LARGEST = 100_000  # characters after which a turn is truncated
MOST = 2_000  # maximum number of turns on a page; of a longer run, half from the beginning and half from the end
SIDE = 256  # maximum length of a picture's longer side, in pixels
_LISTED = ("task_id", "model_name", "repetition", "status", "score", "is_successful", "run_flags")
RULE = (  # text on pages of two runs
    "Turns are aligned from the beginning. Two turns are the same if their role and their commands or actions are the "
    "same, or, without commands or actions, their text. Names of agents are ignored."
)
_ROLES = frozenset(("system", "assistant", "user", "action", "result"))

Lists = Sequence[dict[str, Any]]
_Pictures = dict[Image, dict[str, Any]]  # the pictures of a page, without duplicates


def run_page(run: RunRef, transcript: Transcript, lists: Lists = ()) -> str:
    """Render the page of a run, with its positions in the tables that link to it, from `places`."""
    pictures: _Pictures = {}
    turns = [_turn(number, turn, pictures) for number, turn in enumerate(transcript.turns, 1)]
    return render_page(
        "run.html.j2",
        asset("viewer.js"),
        "viewer.css",
        title=_title(run),
        facts=run.facts,
        says=map(plain, transcript.facts),
        files=map(plain, run.paths),
        lists=lists,
        events=_counted(turns),
        turns=_shortened(turns),
        pictures=pictures.values(),
    )


def pair_page(runs: Sequence[RunRef], a: Transcript, b: Transcript, lists: Lists = ()) -> str:
    """Render the page of two runs side by side, as `run_page` does."""
    pictures: _Pictures = {}
    shown: list[dict[str, Any]] = []
    for number, (one, other) in enumerate(zip_longest(a.turns, b.turns), 1):
        turns = [turn and _turn(number, turn, pictures) for turn in (one, other)]
        events = dict.fromkeys(event for turn in turns if turn for event in turn["events"])
        differs = one is None or other is None or _what_was_done(one) != _what_was_done(other)
        shown.append({"number": number, "turns": turns, "differs": differs, "events": list(events)})
    sides = [{"name": _title(run), "short": _name(run), "page": run.page, "facts": run.facts} for run in runs]
    return render_page(
        "pair.html.j2",
        asset("viewer.js"),
        "viewer.css",
        title=f"{runs[0].fact('task') or 'two runs'}: {' and '.join(map(_name, runs))}",
        first=next((row["number"] for row in shown if row["differs"]), None),
        rule=RULE,
        sides=sides,
        lists=lists,
        events=_counted(shown),
        rows=_shortened(shown),
        pictures=pictures.values(),
    )


def _what_was_done(turn: Turn) -> tuple[str, str]:
    """Return the values that must be equal for two turns to count as the same."""
    return turn.role, " ".join((turn.same or turn.shown).split())


def _counted(rows: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    counts = Counter(event for row in rows for event in row["events"])
    return [(event, counts[event]) for event in EVENTS if counts[event]]


def list_page(title: str, note: str, runs: pd.DataFrame, folder: str) -> str:
    """Render a page that lists runs, given as rows of the first table; their pages are in `folder`."""
    pages = [f"{folder}/{page_name(run_id)}" for run_id in runs["run_id"]]
    shown = runs[[*_LISTED, "run_id"]].assign(run=runs["run_id"], href=pages)
    table = ""
    if pages:
        table, _ = table_html(shown, "Runs", digits=3, percent=True, rows=len(runs), estimate="", counted="runs")
    safe = Markup(table.replace(ALIGNED, ""))
    return render_page("runs.html.j2", SORTING, "style.css", title=title, note=note, table=safe)


def places(lists: Sequence[RunList]) -> dict[str, list[dict[str, Any]]]:
    """Return the positions of each page in tables: its number, and the pages before and after it."""
    positions: dict[str, list[dict[str, Any]]] = {}
    for listing in lists:
        members = list(dict.fromkeys(listing.members))
        table = {"key": listing.key, "title": plain(listing.title), "page": listing.page, "n": len(members)}
        for at, (before, page, after) in enumerate(zip(["", *members], members, [*members[1:], ""], strict=False), 1):
            positions.setdefault(page, []).append({**table, "place": at, "before": before, "after": after})
    return positions


def _picture(image: Image, pictures: _Pictures) -> dict[str, Any]:
    """Return a picture for a page. Re-encode it and add it to the page's `pictures` the first time."""
    from PIL import Image as Pillow  # imported here, since few runs have pictures

    if image not in pictures:
        picture = Pillow.frombytes("RGB", (image.width, image.height), image.pixels)
        picture.thumbnail((SIDE, SIDE))
        buffer = io.BytesIO()
        picture.save(buffer, "WEBP", quality=75, method=4)
        data = f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
        name = f"picture-{len(pictures) + 1}"
        pictures[image] = {"name": name, "width": picture.width, "height": picture.height, "data": data}
    return pictures[image]


def _turn(number: int, turn: Turn, pictures: _Pictures) -> dict[str, Any]:
    text = plain(turn.shown, keep_lines=True)
    size = f"{len(text):,} characters"
    if len(text) > LARGEST:
        text, size = f"{text[:LARGEST]}…", f"the first {LARGEST:,} of {size}"
    is_long = len(text) > UNFOLDED or text.count("\n") > LINES or "reasoning" in turn.marks
    return {
        "number": number,
        "who": plain(turn.actor or turn.role, 80),
        "role": plain(turn.role, 80),
        "look": turn.role if turn.role in _ROLES else "other",
        "when": plain(turn.when, 40),
        "events": [event for event in turn.events if event in EVENTS],
        "marks": [plain(mark, 200) for mark in turn.marks],
        "head": plain(text[:HEAD]) if is_long else "",
        "size": size,
        "text": text,
        "images": [_picture(image, pictures) for image in turn.images],
        "left_out": 0,
    }


def _shortened(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop the middle of a long list; the first row after it records the number of dropped rows."""
    if len(rows) <= MOST:
        return rows
    half = MOST // 2
    return [*rows[:half], {**rows[-half], "left_out": len(rows) - MOST}, *rows[1 - half :]]


def _title(run: RunRef) -> str:
    return ", ".join(filter(None, (run.fact("task") or run.run_id, _name(run), run.fact("status"))))


def _name(run: RunRef) -> str:
    """Return the name of a run: its model and repetition."""
    model, repetition = run.fact("model"), run.fact("repetition")
    if repetition in ("", "0"):
        return model or run.run_id
    return f"{model} ({repetition})".strip()
