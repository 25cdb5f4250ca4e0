"""Detectors of events in trajectories: answers that are missing or of another form, tests, edits and files."""

import re
from collections.abc import Iterator, Sequence

from evalkit.kinds import Detector, Found, Made, Transcript, Turn, calls_of
from evalkit.kinds.detectors import shortened

MOST_READ = 4_000  # characters of the arguments of a call
_FINISHES = re.compile(  # names of calls that end a run by themselves, and commands that do
    r"(?:.*_)?(?:submit|finish|finished|done|complete|attempt_completion|final_answer|answer|stop|end|exit|give_up"
    r"|task_complete|mark_task_complete|transfer_to_human\w*|respond|end_conversation)",
    re.IGNORECASE,
)
_SUBMITS = re.compile(
    r"COMPLETE_TASK_AND_SUBMIT|MINI_SWE_AGENT_FINAL_OUTPUT|(?:^|[;&|\n{\"]\s*)submit\b|\bexit_forfeit\b"
)
_ANSWERS = re.compile(r"(?:.*_)?answer|submit_\w+|respond|attempt_completion", re.IGNORECASE)
_GOES_ON = re.compile(r'"(?:is_)?task_complete"\s*:\s*false')  # in an answer of Terminus, which is JSON
_STOPS = re.compile(r"###(?:STOP|TRANSFER|OUT-OF-SCOPE)###", re.IGNORECASE)
_SHELL = re.compile(r"(?:.*_)?(?:shell|bash|sh|terminal|cmd|run|command|execute\w*|exec|python|ipython)(?:_\w+)?")
_EDIT = re.compile(
    r"(?:.*_)?(?:edit|write|create|str_replace|replace|insert|patch|multiedit|multi_edit)(?:_\w+)?", re.IGNORECASE
)
_EDIT_COMMAND = re.compile(
    r"\b(?:sed -i|perl -p?i|git apply|patch -p|apply_patch|ed -s|truncate -s)\b|(?<![<>\d&-])>>?\s*(?!/dev/"
    r"|&)[\w./~$\"']"
    r"|\btee (?!/dev)|\b(?:str_replace|insert|create|edit) |\.write_text\(|open\([^)]*['\"][wa]['\"]\)|<<\s*['\"]?EOF"
)
_EDIT_ARGUMENT = re.compile(
    r"\"command\":\s*\"(?:str_replace|insert|create|write|edit)\"|\"(?:old_str|new_str|old_string)\""
)
_UNDO = re.compile(
    r"\bundo(?:_edit|_last|_change)?\b|\bgit (?:checkout(?: HEAD)? (?:-- |[\w./]+\.\w)|restore"
    r"|stash\b(?! list| pop)|reset --hard|revert|clean -\w*f)"
)
_TEST = re.compile(
    r"\b(?:pytest|unittest|nosetests?|tox|runtests|run_tests?|runtest|jest|vitest|mocha|rspec|phpunit|ctest|gotestsum|junit"
    r"|test_\w+|\w+_test\b|tests?/|doctest)|\b(?:npm|yarn|pnpm|go|cargo|make|mvn|gradle|mix|dotnet|bundle|manage\.py|lein|swift"
    r"|bazel|rake|composer|sbt)(?: run)? (?:-\S+ )*(?:test|check|verify)|\breproduce\w*|\brepro\w*\.py"
    r"|\bpython3? (?:-\S+ )*\S*(?:test|repro|check|verify)\S*",
    re.IGNORECASE,
)
_READ = re.compile(r"(?:.*_)?(?:read|view|open|cat|get_file)(?:_\w+)?", re.IGNORECASE)
_READ_COMMAND = re.compile(
    r"^\W*(?:\"command\":\W*)?(?:cat|head|tail|less|more|nl|sed -n|view|open)\s+[^|;&<>]+$|\"command\":\s*\"view\""
)

_EMPTY_WORDS = ("", "none", "null", "n/a", "...", "…", "{}", "[]", '""', "''", "<empty>", "(empty)", "no answer")
_FORMS = (  # forms of an answer that instructions may ask for, and what an answer in this form looks like
    (r"\\boxed\b", r"\\boxed\s*\{"),
    (r"<answer>", r"<answer>.*?</answer>"),
    (r"(?:final answer|answer)\s*:\s*(?:\[|<|\{|\$|\.\.\.|your|x\b|yyy|letter|number)", r"answer\W{0,4}:\s*\S"),
    (
        r"\b(?:line|message|response|reply|answer|end|begins?|starts?)\b[^.\n]{0,60}['\"`](?P<said>[A-Z][\w ]{1,30}:)",
        None,
    ),
    (
        r"\b(?:answer|respond|reply|return|output)\b[^.\n]{0,40}\b(?:only|valid|as|in|a)\b[^.\n]{0,20}\bjson\b",
        r"^\W{0,12}(?:json)?\s*[\[{].*[\]}]\W*$",
    ),
    (
        r"\b(?:answer|respond|reply)\b[^.\n]{0,40}\b(?:only|just|single|one)\b[^.\n]{0,25}\b(?:letter|option|choice)\b",
        r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?\(?[A-Ja-j]\)?\W*$",
    ),
    (
        r"\b(?:answer|respond|reply)\b[^.\n]{0,40}\b(?:only|just|single)\b[^.\n]{0,25}\b(?:number|integer|numeral)\b",
        r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?[$€£]?-?[\d.,]+\s*%?\W*$",
    ),
    (
        r"\b(?:answer|respond|reply)\b[^.\n]{0,40}\b(?:only|just|simply"
        r"|with)\b[^.\n]{0,15}\byes\b['\"` ,/]+(?:or )?['\"`]?no\b",
        r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?(?:yes|no)\W*$",
    ),
)
_ASKS = [
    (re.compile(asks, re.IGNORECASE), given and re.compile(given, re.IGNORECASE | re.DOTALL)) for asks, given in _FORMS
]


def _last_act(transcript: Transcript) -> tuple[int, Turn] | None:
    """Return the last turn of the agent: its words, or a call; None if there is none."""
    for number, turn in reversed(list(enumerate(transcript.turns, 1))):
        if turn.role in ("assistant", "action") and "reasoning" not in turn.marks and turn.actor != "user":
            return number, turn
    return None


def _is_final(turn: Turn) -> bool:
    """Return whether a turn ends a run by itself: an answer, or a call that hands one in."""
    if turn.call is None:
        return turn.role == "assistant" and not _GOES_ON.search(turn.text)
    return bool(_FINISHES.fullmatch(turn.call.name) or _SUBMITS.search(turn.text))


def cut_off(transcript: Transcript) -> Iterator[Found]:
    """Find a run that ends without a final answer: its last act is a call that hands nothing in, or the user spoke.

    A user who ends the conversation with a word such as ``###STOP###`` needs no answer. A run without any act of the
    agent, or with a last answer that is empty, is another event.
    """
    last = _last_act(transcript)
    if last is None:
        return
    number, turn = last
    later = transcript.turns[number:]
    if any(_STOPS.search(other.text) for other in (turn, *later)):
        return
    has_spoken = any(other.role == "user" and other.text.strip() for other in later)
    if not _is_final(turn) or (turn.call is None and has_spoken):
        yield number, turn.call.name if turn.call else "", shortened(transcript.turns[-1].text or turn.text)


def empty_answer(transcript: Transcript) -> Iterator[Found]:
    """Find a run whose last act is an empty answer, or a call that hands in nothing."""
    last = _last_act(transcript)
    if last is None or not _is_final(last[1]):
        return
    number, turn = last
    text = turn.text
    if turn.call is not None:
        if not _ANSWERS.fullmatch(turn.call.name):
            return
        text = re.sub(r"^\{\W*\w+\W*:\s*(.*)\}$", r"\1", turn.call.arguments, flags=re.DOTALL).strip("\"' ")
    if text.strip().lower() in _EMPTY_WORDS:
        yield number, turn.call.name if turn.call else "", shortened(turn.text)


def wrong_answer_form(transcript: Transcript) -> Iterator[Found]:
    r"""Find a last answer that lacks the form that the instructions ask for.

    Known forms are ``\boxed{}``, ``<answer>``, ``Answer: …``, a line that begins with a given word, JSON, a single
    letter or number, yes or no; instructions are the system's and user's messages before the first act. The detail is
    the form.
    """
    last = _last_act(transcript)
    if last is None or last[1].call is not None or not last[1].text.strip():
        return
    number, turn = last
    for told in transcript.turns[: number - 1]:
        if told.role in ("assistant", "action"):
            return
        for asks, given in _ASKS:
            if told.role in ("system", "user") and (match := asks.search(told.text)):
                is_given = given.search(turn.text.strip()) if given else match["said"].lower() in turn.text.lower()
                if not is_given:
                    yield number, shortened(match[0])[:80], shortened(turn.text)
                return


def _text(made: Made) -> str:
    """Return the arguments of a call, of long ones the first part."""
    return made.arguments[:MOST_READ]


def _edits(made: Made) -> bool:
    """Return whether a call edits a file."""
    if _is_shell(made):
        return bool(_EDIT_COMMAND.search(_text(made)))
    if "editor" in made.name or "str_replace" in made.name:
        return bool(_EDIT_ARGUMENT.search(_text(made))) or not re.search(r"\"command\"", _text(made))
    is_of_file = bool(re.search(r"file|path|patch|old_str|diff|start_line|search", f"{made.name} {_text(made)}"))
    return bool(_EDIT.fullmatch(made.name)) and is_of_file


def _is_shell(made: Made) -> bool:
    return _SHELL.fullmatch(made.name) is not None


def _tests(made: Made) -> bool:
    return bool(_TEST.search(_text(made) if _is_shell(made) else f"{made.name} {_text(made)}"))


def _code_calls(transcript: Transcript) -> Sequence[Made]:
    """Return the calls of a run that can edit files or run commands; none of other runs."""
    calls = calls_of(transcript)
    return calls if any(_is_shell(made) or _edits(made) for made in calls) else []


def _reads(made: Made) -> bool:
    if _edits(made):
        return False
    if _is_shell(made):
        return bool(_READ_COMMAND.search(_text(made)))
    if re.search(r"\"command\":\"view\"", _text(made)):
        return True
    return bool(_READ.fullmatch(made.name)) and bool(re.search(r"file|path|\.\w{1,5}\b", f"{made.name} {_text(made)}"))


def test_not_run(transcript: Transcript) -> Iterator[Found]:
    """Find a run that edits files, and runs no test, and no script that reproduces the problem, after its last edit."""
    calls = _code_calls(transcript)
    edits = [place for place, made in enumerate(calls) if _edits(made) and not made.has_failed and not _tests(made)]
    if edits and not any(_tests(made) for made in calls[edits[-1] + 1 :]):
        yield calls[edits[-1]].turn, "", calls[edits[-1]].text


def edit_undone(transcript: Transcript) -> Iterator[Found]:
    """Find an edit that the agent takes back: by an undo, by git, or by an edit that swaps old and new text."""
    swaps = set[tuple[str, str]]()
    has_edited = False
    for made in _code_calls(transcript):
        if made.has_failed:
            continue
        if has_edited and _UNDO.search(f"{made.name} {_text(made)}"):
            yield made.turn, "", made.text
            continue
        old = re.search(r"\"old_str(?:ing)?\":\"((?:[^\"\\]|\\.)*)\"", _text(made))
        new = re.search(r"\"new_str(?:ing)?\":\"((?:[^\"\\]|\\.)*)\"", _text(made))
        if old and new:
            if (new[1], old[1]) in swaps and new[1] != old[1]:
                yield made.turn, "", made.text
            swaps.add((old[1], new[1]))
        has_edited = has_edited or _edits(made)


def file_read_again(transcript: Transcript) -> Iterator[Found]:
    """Find a file that is read again, with the same call and the same result; the detail is the number of readings."""
    first: dict[tuple[str, str], list[Made]] = {}
    for made in calls_of(transcript):
        if made.result and not made.has_failed and _reads(made):
            first.setdefault(made.call, []).append(made)
    for same in first.values():
        equal = [made for made in same if made.result == same[0].result]
        if len(equal) > 1:
            yield equal[1].turn, str(len(equal)), equal[1].text


def submitted_unchanged(transcript: Transcript) -> Iterator[Found]:
    """Find a run that hands in its work, and can edit files, and never did."""
    calls = _code_calls(transcript)
    submits = [made for made in calls if _FINISHES.fullmatch(made.name) or _SUBMITS.search(_text(made))]
    if submits and not any(_edits(made) and not made.has_failed for made in calls):
        yield submits[-1].turn, submits[-1].name, submits[-1].text


DETECTORS = (
    Detector("submitted_unchanged", "Is work handed in without a change?", submitted_unchanged, "changes nothing", 9),
    Detector("cut_off", "Does it end without an answer?", cut_off, "ends without an answer", 6),
    Detector("empty_answer", "Is the answer empty?", empty_answer, "gives an empty answer", 6),
    Detector("wrong_answer_form", "Has the answer another form?", wrong_answer_form, "answers in another form", 6),
    Detector("test_not_run", "Is the last edit tested?", test_not_run, "does not test its edits", 3),
    Detector("edit_undone", "Is an edit taken back?", edit_undone, "takes back edits", 2),
    Detector("file_read_again", "Is a file read again?", file_read_again),
)
