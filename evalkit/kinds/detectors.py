"""Detectors of events: what they see of a run, and what they are registered with.

Detectors for every kind are in `evalkit.failures.rules`, detectors for one kind in its `events.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from evalkit.io.text import cut_end
from evalkit.kinds.errors import is_error
from evalkit.kinds.transcript import Transcript, Turn

Found = tuple[int, str, str]  # the number of a turn from 1, a detail, and the text that shows the event
LAST = 3  # turns at the end of a run in which a line may state its outcome
LONGEST = 400  # characters of the text that shows an event

_STATED = r"^[^\w\n]*(?:(?:final|total|episode|task|run|overall)\W{{1,4}})?(?:{})\b\W{{0,4}}(?:[:=]|is\b).*$"
_REWARD = re.compile(_STATED.format("reward|score|grade|outcome|verdict|resolved"), re.IGNORECASE | re.MULTILINE)
_OUTCOME = re.compile(  # in messages; the result of a call may mention its own success
    _STATED.format("reward|score|grade|outcome|verdict|resolved|is_?successful|success|correct|passed|accuracy")
    + r"|^[^\w\n]*(?:task (?:succeeded|failed|(?:was )?(?:successful|unsuccessful))|result\W{1,3}(?:pass|fail)(?:ed)?)"
    r"\b[^:\n]*:? *",  # a reason stays
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


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

    def __init__(self, title: str, facts: Sequence[str], turns: Sequence[Turn]) -> None:
        self.calls: list[Made] = []  # in the order of turns, as all that follow
        self.calls_of_agents: dict[str, list[Made]] = {}
        # the turns in which each agent speaks or acts, with their numbers, but not its reasoning
        self.turns_of_agents: dict[str, list[tuple[int, Turn]]] = {}
        for number, turn in enumerate(turns, 1):
            agent = agent_of(turn)
            if turn.role in ("assistant", "action") and "reasoning" not in turn.marks:
                self.turns_of_agents.setdefault(agent, []).append((number, turn))
            if call := turn.call:
                result, has_failed = call.result, call.has_failed
                if result is not None:
                    result = result.strip()
                    if "0x" in result:
                        result = _ADDRESS.sub("0x", result)
                    if has_failed is None:
                        has_failed = is_error(result, call.name, call.arguments)
                made = Made(number, agent, call.name, call.arguments, result, bool(has_failed))
                self.calls.append(made)
                self.calls_of_agents.setdefault(agent, []).append(made)
        self.failed_calls = [made for made in self.calls if made.has_failed]


class Detector(NamedTuple):
    """A function that finds events of one name in a transcript, and what they mean for a failed run."""

    name: str
    question: str  # that it answers
    find: Callable[[Seen], Iterable[Found]]
    # the failure mode of a failed run with at least `least` events; empty for one that explains nothing by itself
    mode: str = ""
    severity: int = 1  # of several modes of a run, the highest leads; of equal ones, the first in order
    least: int = 1


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


def failed_tries(calls: Sequence[Made]) -> Iterator[tuple[Sequence[Made], Made | None]]:
    """Yield each failed call with its unchanged retries, unless the last one succeeds, and the call that follows."""
    same: list[Made] = []
    for made, following in zip_longest(calls, calls[1:]):
        if not made.has_failed:
            continue
        same.append(made)
        is_last = following is None or following.call != made.call
        if is_last:
            yield same, following
        if is_last or not following.has_failed:
            same = []


def agent_of(turn: Turn) -> str:
    """Return who acted in a turn."""
    return turn.agent or turn.actor or turn.role


def shortened(text: str) -> str:
    """Return a text on one line, at most so long that it shows an event."""
    line = " ".join(cut_end(text, 2 * LONGEST).split())
    return line if len(line) <= LONGEST else f"{cut_end(line, LONGEST)}…"
