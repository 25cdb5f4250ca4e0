"""Detectors of events in histories: silent failures, cut results, missing parameters, and unchanged retries."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from evalkit.kinds import Detector, Found, Seen
from evalkit.kinds.detectors import Made, failed_tries, shortened

_EMPTY = re.compile(r'"(?P<name>\w+)": (?:null|"")')  # an empty parameter
_GIVEN = r"(?:provided|specified|given|supplied|passed)"
_OF_DATA = r"(?!(?:is|was|were|data\w*|array|matrix|results?|list|table|frame|object|index|this|it|they|input|value)\b)"
NOT_GIVEN = re.compile(
    r"missing \d+ required (?:positional |keyword-only )?arguments?: (?P<python>[^\n]+)"
    r"|(?:missing|required|requires?|needs?|no)\W+(?:(?:the|an?) )?(?:required )?(?:(?:parameter|argument|field)s?"
    r"|(?:value|input)(?= for))(?: named| called| for)?\W*(?P<named>\w+)?|\bfield required\W+(?P<field>\w+)"
    r"|^(?P<above>\w+)\n +field required|(?:parameter|argument|field)s? \W?(?P<before>\w+)\W? (?:is |was |are |were )?"
    rf"(?:missing|required|empty|None|not {_GIVEN}|not set)|\b{_OF_DATA}(?P<bare>\w+)\W? (?:must be|not|(?:is|was|were)"
    rf"(?: not)?) (?:required|{_GIVEN})|\b{_OF_DATA}(?P<empty>\w+)\W? (?:can ?not|can't|(?:must|should|may) not) be "
    r"(?:None|null|empty|blank)|\b(?:please|must|have to|need to) (?:provide|specify|supply|pass|give) (?!(?:an? )?"
    r"(?:more|fewer|less|different|other|another|smaller|larger|valid|new|at|one|it)\b)(?:(?:an?|the) )?(?:value for )?"
    rf"\W?(?P<asked>\w+)|\bno (?P<without>\w+) (?:was |were )?{_GIVEN}\b(?! by)"
    r"|^(?=(?:\w+Error: )?(?:'\w+'$|\W?\w+\W? (?:(?:is|was) (?:missing|(?-i:None)(?! of))|has no value)\b))"
    r"(?:\w+Error: )?\W?(?P<data>\w+)",  # perhaps of the data
    re.IGNORECASE | re.MULTILINE,
)
_NAME = re.compile(r'"(\w+)":')


def silent_failure(transcript: Seen) -> Iterator[Found]:
    """Find each step that reports success although its result shows a failure; the detail is the reason."""
    for number, turn in enumerate(transcript.turns, 1):
        if why := turn.values.get("silent_failure"):
            yield number, shortened(why)[:80], shortened(turn.text)


def result_cut(transcript: Seen) -> Iterator[Found]:
    """Find each stored result that is cut, so that the rest of it is unknown."""
    for number, turn in enumerate(transcript.turns, 1):
        if turn.values.get("is_cut"):
            yield number, turn.agent, shortened(turn.text)


def parameter_not_given(transcript: Seen) -> Iterator[Found]:
    """Find each failed step (also silently failed) with a missing parameter: the error names it, or its value is empty.

    The detail is the name of the parameter.
    """
    names = {name for made in transcript.calls for name in _NAME.findall(made.arguments)}
    for made in _steps(transcript):
        stated = (made.result or "").removeprefix("error: ")
        match = NOT_GIVEN.search(stated)
        if not match or (match["data"] and match["data"] not in names):
            match = _EMPTY.search(made.arguments)
        if match and made.has_failed:
            name = next(filter(None, match.groups()), "")
            text = transcript.turns[made.turn - 1].text
            yield made.turn, shortened(name)[:80], shortened(f"{text} → {made.result}")


def retry_unchanged(transcript: Seen) -> Iterator[Found]:
    """Find a step that fails, also silently, and is tried again unchanged as the very next step, and fails again.

    The detail is the number of tries; retries that end with a success are healthy.
    """
    for tries, _ in failed_tries(_steps(transcript)):
        if len(tries) > 1:
            yield tries[0].turn, str(len(tries)), shortened(f"{tries[0].text} → {tries[0].result}")


def _steps(transcript: Seen) -> list[Made]:
    """Return the calls of steps; a silent failure counts as failed."""
    steps = []
    for made in transcript.calls:
        following = transcript.turns[made.turn : made.turn + 1]
        is_silent = any(turn.values.get("silent_failure") for turn in following)
        steps.append(replace(made, has_failed=made.has_failed or is_silent))
    return steps


DETECTORS = (
    Detector("retry_unchanged", "Is a failed step tried again unchanged?", retry_unchanged, "retries unchanged", 7),
    Detector("parameter_not_given", "Is a parameter missing?", parameter_not_given, "leaves out a parameter", 5),
    Detector("silent_failure", "Does a step fail silently?", silent_failure, "fails silently", 4),
    Detector("result_cut", "Is a result cut?", result_cut),
)
FAILURES = ("failed_call", "silent_failure")  # a history with one of these has failed
