"""Detectors of events: the form in which they see a run, and the record that describes a detector.

Detectors for all kinds are in `evalkit.failures.rules`, and detectors for one kind are in its `events.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from evalkit.io.text import cut_end
from evalkit.kinds.errors import is_error
from evalkit.kinds.turns import Transcript, Turn

Found = tuple[int, str, str]  # number of a turn (from 1), a detail, and the text that shows the event
LAST = 3  # number of turns at the end of a run in which a line may state the outcome
LONGEST = 400  # maximum length of the text that shows an event, in characters

_STATED = r"^[^\w\n]*(?:(?:final|total|episode|task|run|overall)\W{{1,4}})?(?:{})\b\W{{0,4}}(?:[:=]|is\b).*$"
_REWARD = re.compile(_STATED.format("reward|score|grade|outcome|verdict|resolved"), re.IGNORECASE | re.MULTILINE)
_OUTCOME = re.compile(  # for messages only, because the result of a call may mention the success of the call
    _STATED.format("reward|score|grade|outcome|verdict|resolved|is_?successful|success|correct|passed|accuracy")
    + r"|^[^\w\n]*(?:task (?:succeeded|failed|(?:was )?(?:successful|unsuccessful))|result\W{1,3}(?:pass|fail)(?:ed)?)"
    r"\b[^:\n]*:? *",  # keeps a reason after the colon
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


class Made(msgspec.Struct, frozen=True):
    """A call that an agent made, as detectors see it."""

    turn: int  # number of the turn, from 1
    agent: str
    name: str
    arguments: str
    result: str | None  # stripped, without memory addresses; None if the log does not record it
    has_failed: bool

    @property
    def call(self) -> tuple[str, str]:
        """Name and arguments, which are equal for equal calls."""
        return self.name, self.arguments

    @property
    def text(self) -> str:
        """The call as one line of text."""
        return shortened(f"{self.name} {self.arguments}")


class Seen(Transcript):
    """A transcript as detectors see it: without its title and facts, and without text that states the outcome."""

    target = ""  # what the task asked for, such as items or an answer, if the frames of the kind contain it
    ended = ""  # why the run ended, in the words of its log, if the frames contain it

    def __init__(self, title: str, facts: Sequence[str], turns: Sequence[Turn]) -> None:
        self.calls: list[Made] = []  # in the order of turns, like the other lists
        self.calls_of_agents: dict[str, list[Made]] = {}
        # the numbered turns in which each agent speaks or acts, without turns that are reasoning
        self.turns_of_agents: dict[str, list[tuple[int, Turn]]] = {}
        for number, turn in enumerate(turns, 1):
            is_of_agent = turn.role in ("assistant", "action")
            if turn.call is None and not is_of_agent:
                continue
            if turn.role == "action" and turn.actor == "user":  # a call of a simulated user
                continue
            agent = agent_of(turn)
            if is_of_agent and "reasoning" not in turn.marks:
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
        self.repeats: dict[str, int] = {}  # how many calls of each agent equal an earlier call with the same result
        for agent, own in self.calls_of_agents.items():
            self.repeats[agent] = len(own) - len({(made.name, made.arguments, made.result) for made in own})
        self.shared: dict[str, Any] = {}  # by name: values that several detectors need, each computed once


class Detector(NamedTuple):
    """A function that finds one type of event in a transcript, and what these events mean for a failed run."""

    name: str
    question: str  # question that the detector answers
    find: Callable[[Seen], Iterable[Found]]
    # failure mode of a failed run with at least `least` events; "" if the events do not explain a failure
    mode: str = ""
    severity: int = 1  # a run's main mode is the one with the highest severity, or the first of several
    least: int = 1


def seen(transcript: Transcript, target: str = "", ended: str = "") -> Seen:
    """Return a transcript as detectors see it, with the outcome removed."""
    turns = list(transcript.turns)
    for place, turn in enumerate(turns):
        if turn.states_outcome:
            turns[place] = Turn(turn.actor, turn.role, "", when=turn.when, agent=turn.agent)
    for place in range(max(len(turns) - LAST, 0), len(turns)):
        turn = turns[place]
        if turn.role not in ("assistant", "action") and _OUTCOME.search(turn.text):
            turns[place] = replace(turn, text=_OUTCOME.sub("", turn.text))
        if turn.call and turn.call.result and _REWARD.search(turn.call.result):
            turns[place] = replace(turn, call=replace(turn.call, result=_REWARD.sub("", turn.call.result)))
    made = Seen("", [], turns)
    made.target = target
    made.ended = ended
    return made


def failed_tries(calls: Sequence[Made]) -> Iterator[tuple[Sequence[Made], Made | None]]:
    """Yield each failed call with its unchanged retries, unless a retry succeeds, and the call after them."""
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
    """Return a text as one line, cut to the maximum length of a text that shows an event."""
    line = " ".join(cut_end(text, 2 * LONGEST).split())
    return line if len(line) <= LONGEST else f"{cut_end(line, LONGEST)}…"
