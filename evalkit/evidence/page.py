"""Render pages of runs: one HTML file each, from a template that escapes all text."""

import base64
import hashlib
import io
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup

from evalkit.evidence.alignment import RULE, align, first_difference
from evalkit.evidence.references import PairRef, RunList, RunRef
from evalkit.io import plain
from evalkit.kinds import EVENTS, Image, Transcript, Turn

TEMPLATES = Path(__file__).parent / "templates"
UNFOLDED = 1_200  # characters; a longer turn is folded
HEAD = 300  # characters shown of a folded turn
LINES = 16  # a turn of more is folded
LARGEST = 100_000  # characters; a longer turn is truncated
MOST = 2_000  # turns of a page; of more, half from the beginning and half from the end
SIDE = 256  # pixels of a picture's longer side
_LISTED = ("model", "task", "repetition", "status", "score", "success", "flags")
_ROLES = frozenset(("system", "assistant", "user", "action", "result"))

Lists = Sequence[dict[str, Any]]


def run_page(run: RunRef, transcript: Transcript, lists: Lists = ()) -> str:
    """Render the page of a run."""
    pictures = Pictures()
    turns = [_turn(number, turn, pictures) for number, turn in enumerate(transcript.turns, 1)]
    counts = Counter(event for turn in transcript.turns for event in turn.events)
    return _render(
        "run.html.j2",
        "viewer.js",
        title=_title(run),
        facts=run.facts,
        says=[plain(fact) for fact in transcript.facts],
        files=[plain(path) for path in run.paths],
        lists=lists,
        events=[(event, counts[event]) for event in EVENTS if counts[event]],
        turns=_shortened(turns),
        nothing="The log holds no turns.",
        pictures=pictures.all,
    )


def pair_page(pair: PairRef, a: Transcript, b: Transcript, lists: Lists = ()) -> str:
    """Render the page of two runs side by side; parameters as for `run_page`."""
    pictures, rows = Pictures(), align(a, b)
    first = first_difference(rows)
    shown: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 1):
        turns = [turn and _turn(number, turn, pictures) for turn in (row.a, row.b)]
        events = dict.fromkeys(event for turn in turns if turn for event in turn["events"])
        shown.append({"number": number, "turns": turns, "differs": row.differs, "events": list(events)})
    counts = Counter(event for row in shown for event in row["events"])
    sides = [
        {"name": _title(run), "short": _name(run), "page": run.page, "facts": run.facts} for run in (pair.a, pair.b)
    ]
    return _render(
        "pair.html.j2",
        "viewer.js",
        title=f"{pair.a.fact('task') or 'two runs'}: {_name(pair.a)} and {_name(pair.b)}",
        first=None if first is None else first + 1,
        rule=RULE,
        sides=sides,
        lists=lists,
        events=[(event, counts[event]) for event in EVENTS if counts[event]],
        rows=_shortened(shown),
        pictures=pictures.all,
    )


def list_page(title: str, note: str, runs: Sequence[RunRef], folder: str) -> str:
    """Render a page that lists runs whose pages are in `folder`."""
    names = [name for name in _LISTED if any(run.fact(name) for run in runs)]
    rows = [
        {"run_id": run.run_id, "page": f"{folder}/{run.page}", "cells": [(name, run.fact(name)) for name in names]}
        for run in runs
    ]
    return _render("runs.html.j2", "list.js", title=title, note=note, columns=["run", *names], rows=rows)


def places(lists: Sequence[RunList]) -> dict[str, list[dict[str, Any]]]:
    """Return the positions of every page in tables: its number, and the pages before and after it."""
    positions: dict[str, list[dict[str, Any]]] = {}
    for listing in lists:
        members = list(dict.fromkeys(listing.members))
        table = {"key": listing.key, "title": plain(listing.title), "page": listing.page, "n": len(members)}
        for at, (before, page, after) in enumerate(zip(["", *members], members, [*members[1:], ""], strict=False), 1):
            positions.setdefault(page, []).append({**table, "place": at, "before": before, "after": after})
    return positions


class Pictures:
    """The pictures of a page, re-encoded and without duplicates."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self._names: dict[Image, tuple[str, int, int]] = {}

    def add(self, image: Image) -> tuple[str, int, int]:
        """Add a picture, and return its name, width and height."""
        if image not in self._names:
            data, width, height = _encoded(image)
            name = f"picture-{len(self.all) + 1}"
            self.all.append({"name": name, "width": width, "height": height, "data": data})
            self._names[image] = name, width, height
        return self._names[image]


def _encoded(image: Image) -> tuple[str, int, int]:
    from PIL import Image as Pillow  # few runs have pictures

    picture = Pillow.frombytes("RGB", (image.width, image.height), image.pixels)
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=75, method=4)
    text = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{text}", *picture.size


def _turn(number: int, turn: Turn, pictures: Pictures) -> dict[str, Any]:
    text = plain(turn.text, keep_lines=True)
    size = f"{len(text):,} characters"
    if len(text) > LARGEST:
        text, size = f"{text[:LARGEST]}…", f"the first {LARGEST:,} of {size}"
    is_long = len(text) > UNFOLDED or text.count("\n") > LINES
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
        "images": [pictures.add(image) for image in turn.images],
        "left_out": 0,
    }


def _shortened(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop the middle of a long list; the next row holds the number of dropped rows."""
    if len(rows) <= MOST:
        return rows
    half = MOST // 2
    return [*rows[:half], {**rows[-half], "left_out": len(rows) - MOST}, *rows[1 - half :]]


def _title(run: RunRef) -> str:
    facts = (run.fact("task") or run.run_id, _name(run), run.fact("status"))
    return ", ".join(filter(None, facts))


def _name(run: RunRef) -> str:
    """Return the name of a run: its model and repetition."""
    repetition = run.fact("repetition")
    model = run.fact("model")
    return " ".join(filter(None, (model, f"({repetition})" * (repetition not in ("", "0"))))) or run.run_id


def _render(template: str, script: str, **values: Any) -> str:
    page, code, policy = _page(template, script)
    return page.render(script=code, style=_style(), policy=policy, **values)


@cache
def _page(template: str, script: str) -> tuple[Template, Markup, str]:
    """Return a template, its script, and a policy that allows this script and style and nothing else."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    code = Markup((TEMPLATES / script).read_text(encoding="utf-8"))
    policy = (
        f"default-src 'none'; img-src data:; script-src '{_digest(code)}'; style-src '{_digest(_style())}'; "
        "form-action 'none'; base-uri 'none'"
    )
    return environment.get_template(template), code, policy


@cache
def _style() -> Markup:
    return Markup((TEMPLATES / "viewer.css").read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
