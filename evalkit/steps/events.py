"""Detectors of events in histories: silent failures, cut results, missing parameters, and unchanged retries."""

import re
from collections.abc import Iterator

from evalkit.kinds import Detector, Found, Transcript, calls_of
from evalkit.kinds.detectors import shortened

_EMPTY = re.compile(r'"(?P<name>\w+)": (?:null|"")')  # in parameters
_NOT_GIVEN = re.compile(
    r"missing \d+ required (?:positional |keyword-only )?arguments?: (?P<python>[^\n]+)"
    r"|(?:missing|required|requires?|needs?|no)\W+(?:the |a |an )?(?:required )?(?:parameter|argument|field"
    r"|value|input)s?"
    r"(?: named| called| for)?\W*(?P<named>\w+)?|(?:parameter|argument|field)s? \W?(?P<before>\w+)\W? (?:is |was |are "
    r"|were )?(?:missing|required|not (?:given|provided|specified|set)|None)"
    r"|(?P<bare>\w+) (?:must be|is|was|were|not) (?:provided|specified|given|required)|^KeyError: '(?P<key>\w+)'"
    r"|^'(?P<quoted>\w+)'$|\bno (?P<without>\w+) (?:was |were )?(?:provided|specified|given)",
    re.IGNORECASE | re.MULTILINE,
)


def silent_failure(transcript: Transcript) -> Iterator[Found]:
    """Find each step that reports success, while its result says otherwise; the detail is why."""
    for number, turn in enumerate(transcript.turns, 1):
        if why := turn.values.get("silent_failure"):
            yield number, shortened(why)[:80], shortened(turn.text)


def result_cut(transcript: Transcript) -> Iterator[Found]:
    """Find each stored result that is cut, so that what was cut away is unknown."""
    for number, turn in enumerate(transcript.turns, 1):
        if turn.values.get("is_cut"):
            yield number, turn.agent, shortened(turn.text)


def parameter_not_given(transcript: Transcript) -> Iterator[Found]:
    """Find each step that fails, also silently, for want of a parameter: its error names it, or it is empty.

    The detail is the name.
    """
    for made in calls_of(transcript):
        turn = transcript.turns[made.turn - 1]
        after = transcript.turns[made.turn] if made.turn < len(transcript.turns) else None
        is_silent = bool(after and after.values.get("silent_failure"))
        if not (made.has_failed or is_silent):
            continue
        stated = (made.result or "").removeprefix("error: ")
        if match := _NOT_GIVEN.search(stated) or _EMPTY.search(made.arguments):
            name = next(filter(None, match.groups()), "")
            yield made.turn, shortened(name)[:80], shortened(f"{turn.text} → {made.result}")


def retry_unchanged(transcript: Transcript) -> Iterator[Found]:
    """Find a step that fails, also silently, and is tried again unchanged as the very next one, until it fails again.

    The detail is the number of tries; retries that end with a success are healthy.
    """
    steps = []
    for made in calls_of(transcript):
        after = transcript.turns[made.turn] if made.turn < len(transcript.turns) else None
        steps.append((made, made.has_failed or bool(after and after.values.get("silent_failure"))))
    start = 0
    while start < len(steps):
        first, has_failed = steps[start]
        end = start + 1
        while has_failed and end < len(steps) and steps[end][0].call == first.call and steps[end][1]:
            end += 1
        is_healed = end < len(steps) and steps[end][0].call == first.call
        if end - start > 1 and not is_healed:
            yield first.turn, str(end - start), shortened(f"{first.text} → {first.result}")
        start = end


DETECTORS = (
    Detector("retry_unchanged", "Is a failed step tried again unchanged?", retry_unchanged, "retries unchanged", 7),
    Detector("parameter_not_given", "Is a parameter missing?", parameter_not_given, "leaves out a parameter", 5),
    Detector("silent_failure", "Does a step fail silently?", silent_failure, "fails silently", 4),
    Detector("result_cut", "Is a result cut?", result_cut),
)
FAILURES = ("failed_call", "silent_failure")  # a history with one of these has failed
