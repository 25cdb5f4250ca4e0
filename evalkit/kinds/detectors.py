"""Detectors of events: what they see of a run, and what they are registered with.

Detectors for every kind are in `evalkit.failures.rules`, detectors for one kind in its `events.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, zip_longest
from typing import NamedTuple

from evalkit.io.text import cut_end
from evalkit.kinds.errors import is_error
from evalkit.kinds.transcript import Call, Transcript, Turn

Found = tuple[int, str, str]  # the number of a turn from 1, a detail, and the text that shows the event
LAST = 3  # turns at the end of a run in which a line may state its outcome
LONGEST = 400  # characters of the text that shows an event

_STATED = r"^[^\w\n]*(?:(?:final|total|episode|task|run|overall)\W{{1,4}})?(?:{})\b\W{{0,4}}(?:[:=]|is\b).*$"
_REWARD = re.compile(_STATED.format("reward|score|grade|outcome|verdict|resolved"), re.IGNORECASE | re.MULTILINE)
_OUTCOME = re.compile(  # in messages; the result of a call may mention its own success
    _STATED.format("reward|score|grade|outcome|verdict|resolved|is_?successful|success|correct|passed|accuracy")
    + r"|^[^\w\n]*task (?:succeeded|failed|(?:was )?(?:successful|unsuccessful))\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


class Detector(NamedTuple):
    """A function that finds events of one name in a transcript, and what they mean for a failed run."""

    name: str
    question: str  # that it answers
    find: Callable[[Transcript], Iterable[Found]]
    # the failure mode of a failed run with at least `least` events; empty for one that explains nothing by itself
    mode: str = ""
    severity: int = 1  # of several modes of a run, the highest leads; of equal ones, the first in order
    least: int = 1


class Made(NamedTuple):
    """A call that an agent made, as detectors see it."""

    turn: int  # its number
    agent: str
    name: str
    arguments: str
    result: str | None  # without spaces around it and addresses in memory; None if the log has none
    has_failed: bool

    @property
    def call(self) -> tuple[str, str]:
        """Its name and arguments."""
        return self.name, self.arguments

    @property
    def text(self) -> str:
        """The call as text, on one line."""
        return shortened(f"{self.name} {self.arguments}")


class Seen(Transcript):
    """A transcript as detectors see it: without title, facts, and turns or lines that state the outcome."""

    target = ""  # what was asked for, if the kind's frames name it: items, an answer
    ended = ""  # why the run ended, in the words of its log, if its frames name it

    @cached_property
    def calls(self) -> Sequence[Made]:
        """All calls, in the order of turns."""
        return [_made(number, turn, turn.call) for number, turn in enumerate(self.turns, 1) if turn.call]

    @cached_property
    def by_agent(self) -> Sequence[Sequence[Made]]:
        """The calls of each agent, in the order of turns."""
        agents: dict[str, list[Made]] = {}
        for made in self.calls:
            agents.setdefault(made.agent, []).append(made)
        return list(agents.values())

    @cached_property
    def turns_of_agents(self) -> Mapping[str, Sequence[tuple[int, Turn]]]:
        """The turns in which each agent speaks or acts, with their numbers, but not its reasoning."""
        agents: dict[str, list[tuple[int, Turn]]] = {}
        for number, turn in enumerate(self.turns, 1):
            if turn.role in ("assistant", "action") and "reasoning" not in turn.marks:
                agents.setdefault(agent_of(turn), []).append((number, turn))
        return agents


def seen(transcript: Transcript, target: str = "", ended: str = "") -> Seen:
    """Return what detectors see of a transcript."""
    turns = list(transcript.turns)
    for place, turn in enumerate(turns):
        if turn.states_outcome:
            turns[place] = Turn(turn.actor, turn.role, "", when=turn.when, agent=turn.agent)
    for place in range(max(len(turns) - LAST, 0), len(turns)):
        turn = turns[place]
        if turn.role not in ("assistant", "action") and _OUTCOME.search(turn.text):
            turns[place] = turn._replace(text=_OUTCOME.sub("", turn.text))
        if turn.call and turn.call.result and _REWARD.search(turn.call.result):
            turns[place] = turn._replace(call=turn.call._replace(result=_REWARD.sub("", turn.call.result)))
    made = Seen("", [], turns)
    made.target = target
    made.ended = ended
    return made


def _as_seen(transcript: Transcript) -> Seen:
    """Return a transcript with its calls; one that detectors get has them already."""
    return transcript if isinstance(transcript, Seen) else Seen(*transcript)


def calls_of(transcript: Transcript) -> Sequence[Made]:
    """Return all calls of a transcript, in the order of turns."""
    return _as_seen(transcript).calls


def by_agent(transcript: Transcript) -> Sequence[Sequence[Made]]:
    """Return the calls of each agent, in the order of turns."""
    return _as_seen(transcript).by_agent


def _made(number: int, turn: Turn, call: Call) -> Made:
    """Return a call of a turn as detectors see it."""
    result = None if call.result is None else _ADDRESS.sub("0x", call.result.strip())
    has_failed = call.has_failed
    if has_failed is None:
        has_failed = result is not None and is_error(result, call.name, call.arguments)
    return Made(number, agent_of(turn), call.name, call.arguments, result, has_failed)


def failed_tries(calls: Sequence[Made]) -> Iterator[tuple[Sequence[Made], Made | None]]:
    """Yield each failed call with its unchanged retries, unless the last one succeeds, and the call that follows."""
    tries = [list(equal) for _, equal in groupby(calls, lambda made: (made.call, made.has_failed))]
    for same, later in zip_longest(tries, tries[1:]):
        following = later[0] if later else None
        if same[0].has_failed and (following is None or following.call != same[0].call):
            yield same, following


def turns_of_agents(transcript: Transcript) -> Mapping[str, Sequence[tuple[int, Turn]]]:
    """Return the turns in which each agent speaks or acts, with their numbers, but not its reasoning."""
    return _as_seen(transcript).turns_of_agents


def agent_of(turn: Turn) -> str:
    """Return who acted in a turn."""
    return turn.agent or turn.actor or turn.role


def shortened(text: str) -> str:
    """Return a text on one line, at most so long that it shows an event."""
    line = " ".join(cut_end(text, 2 * LONGEST).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
