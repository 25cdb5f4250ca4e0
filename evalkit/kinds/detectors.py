"""Detectors of events: what they see of a run, and what they are registered with.

Detectors for every kind are in `evalkit.failures.rules`, detectors for one kind in its `events.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, zip_longest
from typing import NamedTuple

import msgspec

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
        has_failed = result is not None and is_error(result)
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
    line = " ".join(text[: 2 * LONGEST].split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


# how the text of a failed result begins, and lines that such a text contains
_STARTS = re.compile(
    r"\W*(?:(?:tool|code|action|command|execution|observation|function|api|request)s? (?:output|result|call|execution)?"
    r"[:\s]*)?(?:\W*(?:an? |the )?(?:\w+ ){0,2}?(?:error|exception)(?:\s*[:(\[!.–—-]|\s+(?:\w+ing|while|in|on"
    r"|at|when|from|occurred|code|calling|\d{3})\b)"
    r"|(?:fail(?:ed|ure)|fatal|unable|could ?n[o']t|cannot|can'?t|could not)\b(?!\s*[:=]\s*0\b)(?! tests?: 0)"
    r"|traceback \(most recent|(?:unknown|unrecogni[sz]ed|unsupported|undefined|no such|invalid|bad|missing)"
    r" (?:\w+ ){0,2}?(?:tool|function|command|action|argument|parameter|option|request|file|method|input"
    r"|value|item|key|id|name|type|field|order|user|syntax|credentials)s?\b"
    r"|permission denied|access denied|unauthori[sz]ed|forbidden|not found|time[d -]*out\b|rate limit"
    r"|(?:http[/\d. ]*|status(?: code)?[: ]*)?[45]\d\d (?:bad |un|payment|forbidden|not |method|request|conflict|gone"
    r"|too many|internal|service|gateway|client|server|error)|command (?:failed|not found)"
    r"|<(?:tool_use_)?error>|npm err|syntax ?error|!!code threw)",
    re.IGNORECASE,
)
_LINES = re.compile(
    r"^Traceback \(most recent call last\)|^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?:: |\s*$)"
    r"|(?:^|[\s(\[<])(?:exit|return)[ _-]?(?:code|status)\W{0,3}(?:is |was |of |with )?(?!0\b)-?[1-9]\d{0,2}\b"
    r"|exit(?:ed)? (?:with )?(?:code|status)[ :=]*(?!0\b)-?[1-9]\d{0,2}\b|non-?zero exit"
    r"|<returncode>\s*(?!0\s*<)-?\d+|(?:command not found|: not found)$|: No such file or directory$"
    r"|: Permission denied$|\bHTTP(?:/[\d.]+| status(?: code)?| error)?[ :]*[45]\d\d\b"
    r"|\bstatus(?:[ _]code)?[ :=]+[45]\d\d\b"
    r"|^(?:[45]\d\d (?:Client|Server) Error|npm ERR!|fatal: |error: |Error: |ERROR: |ERROR - )"
    r"|^(?:The |Error: )?(?:[Tt]ool|[Cc]ommand|[Ff]unction|[Aa]ction) \S{1,80} (?:does not exist"
    r"|is not (?:defined|available|found|recogni[sz]ed)|not found)",
    re.MULTILINE,
)
_NO_ERROR = re.compile(r"\W*(?:no errors?\b|0 errors?\b|errors?\W+(?:0|none|null|false)\b)", re.IGNORECASE)
UNKNOWN_TOOL = re.compile(
    r"(?:unknown|unrecogni[sz]ed|undefined|unsupported|unavailable|no such|invalid|non-?existent)\s+(?:tool|function"
    r"|command name|command|action)s?\b(?!\s*(?:arg|param|call arg|input|line|option))"
    r"|(?:tool|function|command|action)(?: named| called| name)?:? \S{1,80} (?:does not exist|doesn't exist|is unknown"
    r"|is not (?:a (?:valid|known|registered|recogni[sz]ed)\b|defined|available|found|recogni[sz]ed"
    r"|registered|supported"
    r"|one of|a )|(?:was )?not found|is (?:undefined|invalid))|\bno (?:tool|function|command|action) (?:named|called)\b"
    r"|\bunsupported call: \w|not a (?:valid|known|registered|recogni[sz]ed) (?:tool|function|command|action)\b"
    r"|there(?: is|'s) no (?:tool|function|command|action)\b|(?:tool|function)_?not_?found|unknown_(?:tool|function)",
    re.IGNORECASE,
)
_EDGE = 600  # characters at the beginning and at the end of a result, in which lines tell of a failure
_FAILED_STATUS = ("error", "failed", "failure", "fail", "exception", "timeout", "denied")


def is_error(result: str) -> bool:
    """Return whether the text of a result reports that its call failed, in one of the common forms."""
    if result.startswith(("{", "[")):
        answer = _json_says(result)
        if answer is not None:
            return answer
    head = result[:_EDGE]
    if _NO_ERROR.match(head):
        return False
    if UNKNOWN_TOOL.search(head[:200]) and len(result) <= 2 * _EDGE:
        return True
    tail = result[-_EDGE:] if len(result) > _EDGE else ""
    return bool(_STARTS.match(head[:200]) or _LINES.search(head) or (tail and _LINES.search(tail)))


def _json_says(text: str) -> bool | None:
    """Return whether JSON reports an error; None where it is no JSON, or silent about errors."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return False
    keys = {str(name).lower().replace("_", ""): given for name, given in value.items()}
    if any(keys.get(name) for name in ("error", "errors", "iserror", "errormessage", "exception", "traceback")):
        return True
    if keys.get("stderr") and (keys.get("exitcode") or keys.get("returncode")):
        return True
    if any(keys.get(name) is False for name in ("success", "ok", "succeeded")):
        return True
    if any(isinstance(code := keys.get(name), int) and code for name in ("exitcode", "returncode", "exitstatus")):
        return True
    for name in ("status", "statuscode", "code", "httpstatus", "type"):
        given = keys.get(name)
        if isinstance(given, int) and 400 <= given < 600:
            return True
        if isinstance(given, str) and given.lower() in _FAILED_STATUS:
            return True
    return False
