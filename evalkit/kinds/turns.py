"""Turns and transcripts: what happened in a run, in the same form for every kind of log."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from evalkit._html import render
from evalkit.io.secrets import masking
from evalkit.io.text import plain

SIGNS = {"system": "·", "assistant": "»", "user": "«", "action": "»", "result": "·"}
MOST_SHOWN = 1_000  # maximum number of turns in a notebook cell
UNFOLDED, HEAD = 400, 120  # in a notebook cell, a turn of more than 400 characters is folded; its first 120 are shown
EVENTS = ("command", "error", "achievement", "decision")  # events that a viewer can jump to


class Image(NamedTuple):
    """An image of raw RGB pixels, row by row: ``3 * width * height`` bytes."""

    width: int
    height: int
    pixels: bytes


class Call(msgspec.Struct, frozen=True):
    """A call of a tool, a command or an action in a turn, and its result."""

    name: str
    arguments: str = ""  # in canonical form, so that equal arguments are equal texts
    result: str | None = None  # None if the log does not record it
    has_failed: bool | None = None  # as the log records it; None if only the text of the result may show it
    result_after: int = 0  # number of turns from the call to its result; 0 if the same turn shows both
    is_in_text: bool = False  # whether the text of the turn already shows the call, perhaps in another form

    def changed(self, change: Callable[[str], str]) -> "Call":
        """Return a copy of the call with `change` applied to its texts."""
        result = None if self.result is None else change(self.result)
        name, arguments = change(self.name), change(self.arguments)
        if not self.is_in_text:
            shown = change(f"{self.name} {self.arguments}")
            if shown != f"{name} {arguments}":  # such as a token after the name of its header
                arguments = shown.removeprefix(name).strip()
        return replace(self, name=name, arguments=arguments, result=result)


class Turn(msgspec.Struct, frozen=True):
    """One event of a run."""

    actor: str  # who acted
    role: str  # system, assistant, user, action, result, …
    text: str
    marks: tuple[str, ...] = ()  # marks that flags and findings refer to, such as ``final message``
    events: tuple[str, ...] = ()  # the `EVENTS` that apply to the turn
    when: str = ""  # time of the turn; "" if not logged
    same: str = ""  # text to compare with turns of other runs of the task, to find equal turns; by default `shown`
    images: tuple[Image, ...] = ()  # what the agent saw
    agent: str = ""  # name of the agent, if `actor` is not the name; by default `actor`
    call: Call | None = None  # the call in the turn
    values: Mapping[str, Any] = {}  # values by name, for detectors of events of this kind of log
    states_outcome: bool = False  # whether the turn shows that the run succeeded or failed; hidden from detectors

    @property
    def shown(self) -> str:
        """The text as pages and commands show it: followed by what it lacks of the call and its result."""
        call = self.call
        if call is None or call.is_in_text:
            return self.text
        lines = [self.text] if self.text else []
        made = f"{call.name} {call.arguments}".strip()
        if not _contains(self.text, made):
            lines.append(f"call: {made}")
        result = ""
        if call.result and call.result_after == 0:
            result = call.result.strip()
        if not _contains(self.text, result):
            lines.append(f"{'failed' if call.has_failed else 'result'}: {result}")
        elif call.has_failed:
            lines.append("failed")
        return "\n".join(lines)


def _contains(text: str, part: str) -> bool:
    """Return whether a text contains a part that is not within a word or a number; the empty part always is."""
    if not part:
        return True
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


class Transcript(NamedTuple):
    """What happened in a run.

    The number of a turn is its position in `turns`, counted from 1. Pages, links, findings, `evalkit show` and the
    frame ``turns`` of logs all use it.
    """

    title: str
    facts: Sequence[str]  # short facts about the whole run
    turns: Sequence[Turn]

    def changed(self, change: Callable[[str], str]) -> "Transcript":
        """Return a copy with a function, such as `evalkit.io.masked`, applied to all texts."""
        turns = []
        for turn in self.turns:
            names = ("actor", "role", "text", "when", "same", "agent")
            texts: dict[str, Any] = {name: change(getattr(turn, name)) for name in names}
            call = turn.call and turn.call.changed(change)
            turns.append(replace(turn, **texts, marks=tuple(map(change, turn.marks)), call=call))
        return Transcript(change(self.title), list(map(change, self.facts)), turns)

    @masking(False)  # the caller chose whether to mask when building the transcript
    def text(self, last: int | None = None, width: int | None = None) -> str:
        """Format the transcript, or its `last` turns, as plain text. All lines of a turn but the first are indented.

        Each turn is cut to `width` characters; None keeps everything.
        """
        shown = self.turns if last is None else self.turns[-last:]
        earlier = len(self.turns) - len(shown)
        lines = [plain(self.title), plain(", ".join(self.facts)), ""]
        if earlier:
            lines.append(f"… {earlier} earlier turns")
        for number, turn in enumerate(shown, earlier + 1):
            text = plain(turn.shown, width, keep_lines=True).replace("\n", "\n    ")
            marks = f"   ◀ {', '.join(map(plain, turn.marks))}" if turn.marks else ""
            lines.append(f"{number} {SIGNS.get(turn.role, '?')} {plain(turn.actor or turn.role)}: {text}{marks}")
        return "\n".join(lines) + "\n"

    @masking(False)
    def _repr_html_(self) -> str:
        """Return HTML for a notebook cell, in which long turns are folded."""
        return render(
            "transcript.html.j2",
            title=self.title,
            facts=self.facts,
            turns=self.turns[:MOST_SHOWN],
            left_out=len(self.turns[MOST_SHOWN:]),
            unfolded=UNFOLDED,
            head=HEAD,
        )


def canonical(arguments: str) -> str:
    """Return the arguments of a call in canonical form, so that equal arguments are equal texts.

    Parameters
    ----------
    arguments : str
        The arguments as logged.

    Returns
    -------
    str
        JSON with sorted keys; other text with one space in place of other white space.

    Examples
    --------
    >>> kinds.canonical('{"b": 1, "a": 2}')
    '{"a":2,"b":1}'
    """
    if arguments.startswith(("{", "[")):
        try:
            return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    return " ".join(arguments.split())
