"""Detectors of events in trajectories: answers that are missing or of another form, tests, edits and files."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from evalkit.kinds import Detector, Found, Made, Seen, Turn
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
_BYE = re.compile(
    r"[^?]{0,120}\b(?:thanks?|thank you|(?:good)?bye|see you|have a (?:nice|good|great))\b[^?]{0,120}", re.IGNORECASE
)
_SHELL = re.compile(
    r"(?:.*_)?(?:shell|bash|sh|terminal|cmd|run|command|execute\w*|exec|python|ipython)(?:_\w+)?", re.IGNORECASE
)
_EDIT = re.compile(
    r"(?:.*_)?(?:edit|write|create|str_replace|replace|insert|patch|multi_?edit|search_replace)(?:_\w+)?", re.IGNORECASE
)
_OF_FILE = re.compile(r"file|path|patch|diff|old_str|start_line|search")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?[^\n]*\n.*?(?:^\s*\1\b|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
# what may precede a program in a command
_BEFORE = r"(?:^|[;&|(\n])\s*(?:\w+=\S* )*(?:(?:sudo|time|timeout \S+|poetry run|uv run|npx|bundle exec|xargs) )*"
_EDIT_PROGRAM = re.compile(
    rf"{_BEFORE}(?:(?:sed|perl|ruby)(?:\s[^|;&\n]*?)?\s-(?:[a-zA-Z]*i\b|i\S)|sed\s[^|;&\n]*--in-place"
    r"|git (?:apply|am|mv|rm)\b|patch\b|apply_patch\b|mv\s|ed\s|truncate\s|(?:edit|insert|create)\s+\S"
    r"|str_replace_editor\s+(?:str_replace|insert|create))"
    r"|\btee\s+(?!/dev|/tmp)|(?<![<>\d&=-])>>?\s*(?!/dev/|/tmp/|[&>=])[\w./~$]"
)
_EDIT_CODE = re.compile(r"\.write_text\(|open\([^)]*,\s*(?:mode=)?['\"][wa]b?\+?['\"]|\.writelines?\(")
_EDIT_ARGUMENT = re.compile(
    r"\"command\":\s*\"(?:str_replace|insert|create|write|edit)\"|\"(?:old_str|new_str|old_string)\""
)
_UNDO = re.compile(
    r"\bundo(?:_edit|_last|_change)?\b|\bgit (?:checkout(?: HEAD\S*)? (?:-- |\.(?:\s|$)|[\w./-]+\.\w)"
    r"|restore (?!--staged)|stash (?:drop|clear)|reset --hard|revert|clean -\w*f)"
)
_SWAP = re.compile(  # the old and the new text of an edit, in JSON or as options
    r"[\"-](?P<which>old|new)(?:_?(?:str|string|text))?\"?(?::\s*|=|\s+)"
    r"(?P<quote>[\"'])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)",
    re.DOTALL,
)
_PATH = re.compile(r"\"(?:file_?)?(?:path|name)\":\s*\"([^\"]*)\"|str_replace_editor \w+ (\S+)", re.IGNORECASE)
_TEST = re.compile(
    rf"{_BEFORE}(?:(?:python[\d.]*|node|bash|sh|ruby|perl|php)\s+(?:-\S+\s+)*\S*(?:test|repro|check|verify|unit\b)"
    r"|(?:npm|yarn|pnpm|go|cargo|make|mvnw?|gradlew?|mix|dotnet|bundle|lein|swift|bazel|rake|composer|sbt|deno|bun|hatch"
    r"|\S*/gradlew|\S*/mvnw|\S*python\S*\s+\S+\.py)(?:\s+run)?(?:\s+-\S+)*\s+\S*(?:test|check|verify)"
    r"|(?:tox|nox|rspec|phpunit|mocha|jest|vitest|behave)\b|(?!test\s+[-!\"$])[\w./-]*(?:test|repro)[\w.-]*(?:\s|$))"
    r"|\bpytest\b|\bunittest\b|\bdoctest\b",
    re.IGNORECASE,
)
_TEST_TOOL = re.compile(r"(?:\w+[_.-])?(?:run_?)?(?:unit_?)?tests?(?:[_.-]\w+)?|pytest", re.IGNORECASE)
_TEST_FILE = re.compile(r"(?:\b|_)tests?[_/]|_tests?\.\w|/tests?\.|repro", re.IGNORECASE)
_READ = re.compile(r"(?:.*_)?(?:read|view|open|cat|get_file)(?:_\w+)?", re.IGNORECASE)
_READ_PROGRAM = re.compile(
    r"\s*(?:cd \S+ && )?(?:(?:cat|head|tail|less|more|nl|bat|view|open)\s|sed -n\s|str_replace_editor view\s)"
    r"[^|;&<>]+(?:\|\s*(?:head|tail|nl|cat -\w+)\b[^|;&<>]*)?$"
)
_SHOWS_CODE = re.compile(
    rf"{_BEFORE}(?:grep|egrep|rg|ag|find|ls|cat|head|tail|less|sed|awk|git|which|pip|echo|printf|wc|vim?|nano|tree|cd"
    rf"|mkdir|touch"
    r"|chmod|rm|cp|mv|open|edit|create|str_replace_editor)\b[^;&|\n]*"
)

_EMPTY_WORDS = ("", "none", "null", "n/a", "...", "…", "{}", "[]", '""', "''", "<empty>", "(empty)", "no answer")
_ANSWER = (  # an instruction on the answer
    r"(?:(?:^|[.!?:;,\n]|\b(?:please|must|should|always|only|and|to))\s*(?:answer|respond|reply|return|output|give"
    r"|format|write)"
    r"|\b(?:answer|response|reply|output) (?:must|should|has to|needs to) be)\b"
)
_FORMS = (  # forms of an answer that instructions may ask for, and what an answer in this form looks like
    (r"\\boxed\b", r"\\boxed\s*\{"),
    (r"<answer>", r"<answer>.*?</answer>"),
    (r"(?:final answer|answer)\s*:\s*(?:\[|<|\{|\$|\.\.\.|your|x\b|yyy|letter|number)", r"answer\W{0,4}:\s*\S"),
    (
        r"\b(?:line|message|response|reply|answer|end|begins?|starts?)\b[^.\n]{0,60}['\"`](?P<said>[A-Z][\w ]{1,30}:)",
        None,
    ),
    (
        _ANSWER + r"[^.\n]{0,60}\bjson\b",
        r"^\W{0,12}(?:json)?\s*[\[{].*[\]}]\W*$",
    ),
    (
        _ANSWER + r"[^.\n]{0,40}\b(?:only|just|single|one)\b[^.\n]{0,25}\b(?:letter|option|choice)\b",
        r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?\(?[A-Ja-j]\)?\W*$",
    ),
    (
        _ANSWER + r"[^.\n]{0,40}\b(?:only|just|single)\b[^.\n]{0,25}\b(?:number|integer|numeral)\b",
        r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?[$€£]?-?[\d.,]+\s*%?\W*$",
    ),
    (
        _ANSWER + r"[^.\n]{0,40}\b(?:only|just|simply"
        r"|with)\b[^.\n]{0,15}\byes\b['\"` ,/]+(?:or )?['\"`]?no\b",
        r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?(?:yes|no)\W*$",
    ),
)
_ASKS = [
    (re.compile(asks, re.IGNORECASE | re.MULTILINE), given and re.compile(given, re.IGNORECASE | re.DOTALL))
    for asks, given in _FORMS
]


def _last_act(transcript: Seen) -> tuple[int, Turn] | None:
    """Return the last turn of the agent: its words, or a call; None if there is none."""
    for number, turn in reversed(list(enumerate(transcript.turns, 1))):
        if turn.role in ("assistant", "action") and "reasoning" not in turn.marks and turn.actor != "user":
            return number, turn
    return None


def _is_final(turn: Turn) -> bool:
    """Return whether a turn ends a run by itself: an answer, or a call that hands one in."""
    if turn.call is None:
        return turn.role == "assistant" and not _GOES_ON.search(turn.text)
    return _work(turn.call.name, turn.call.arguments).submits


def cut_off(transcript: Seen) -> Iterator[Found]:
    """Find a run that ends without a final answer: its last act is a call that hands nothing in, or the user spoke.

    A user who ends the conversation with a word such as ``###STOP###``, or with thanks, needs no answer. A run without
    any act of the agent, or with a last answer that is empty, is another event.
    """
    last = _last_act(transcript)
    if last is None:
        return
    number, turn = last
    later = transcript.turns[number:]
    if any(_STOPS.search(other.text) for other in (turn, *later)):
        return
    has_spoken = any(other.role == "user" and other.text.strip() and not _BYE.fullmatch(other.text) for other in later)
    if not _is_final(turn) or (turn.call is None and has_spoken):
        yield number, turn.call.name if turn.call else "", shortened(transcript.turns[-1].text or turn.text)


def empty_answer(transcript: Seen) -> Iterator[Found]:
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


def wrong_answer_form(transcript: Seen) -> Iterator[Found]:
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


class _Work(NamedTuple):
    """What a call does with code."""

    is_shell: bool = False
    edits: bool = False
    edits_tests: bool = False  # the file that it edits is a test, or reproduces the problem
    reads: bool = False
    tests: bool = False
    undoes: bool = False
    submits: bool = False


@lru_cache(maxsize=1024)  # several detectors ask about the calls of a run
def _work(name: str, arguments: str) -> _Work:
    """Return what a call does with code, by its name and arguments, of long ones the first part."""
    submits = _FINISHES.fullmatch(name) is not None
    if not _SHELL.fullmatch(name):
        text = arguments[:MOST_READ]
        edits = _EDIT.fullmatch(name) is not None and _OF_FILE.search(f"{name} {text}") is not None
        if "editor" in name or "str_replace" in name:
            edits = _EDIT_ARGUMENT.search(text) is not None or '"command"' not in text
        is_read = (
            _READ.fullmatch(name) is not None and re.search(r"file|path|\.\w{1,5}\b", f"{name} {text}") is not None
        )
        return _Work(
            edits=edits,
            edits_tests=any(_TEST_FILE.search(path[0] or path[1]) for path in _PATH.findall(text)),
            reads=not edits and (is_read or '"command":"view"' in text),
            tests=_TEST_TOOL.fullmatch(name) is not None,
            undoes=_UNDO.search(f"{name} {text}") is not None,
            submits=submits,
        )
    text = _command(arguments)[:MOST_READ]
    outer = _HEREDOC.sub("", text)
    bare = _QUOTED.sub("''", outer)
    edits = _EDIT_PROGRAM.search(bare) is not None or _EDIT_CODE.search(text) is not None
    return _Work(
        is_shell=True,
        edits=edits,
        edits_tests=_TEST_FILE.search(bare) is not None,
        reads=not edits and _READ_PROGRAM.match(text) is not None,
        tests=_TEST.search(_SHOWS_CODE.sub("", outer)) is not None,
        undoes=_UNDO.search(bare) is not None,
        submits=submits or _SUBMITS.search(text) is not None,
    )


def _command(arguments: str) -> str:
    """Return the command in the arguments of a shell: their text, or the value that they name so."""
    if not arguments.startswith("{"):
        return arguments
    try:
        values = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return arguments
    given = next((values[key] for key in ("command", "cmd", "script", "code", "input") if key in values), arguments)
    if isinstance(given, list):
        words = list(map(str, given))
        is_wrapped = len(words) == 3 and words[1] in ("-c", "-lc")  # bash -lc …
        return words[2] if is_wrapped else " ".join(words)
    return str(given)


def _code_calls(transcript: Seen) -> Sequence[tuple[Made, _Work]]:
    """Return the calls of a run that can edit files or run commands, with what each does; none of other runs."""
    calls = [(made, _work(made.name, made.arguments)) for made in transcript.calls]
    return calls if any(work.is_shell or work.edits for _, work in calls) else []


def test_not_run(transcript: Seen) -> Iterator[Found]:
    """Find a run that edits files, and from then on runs no test, and no script that reproduces the problem."""
    first = None
    for made, work in _code_calls(transcript):
        if first is None and work.edits and not made.has_failed and not work.edits_tests and not work.tests:
            first = made
        elif first and work.tests:
            return
    if first:
        yield first.turn, "", first.text


def edit_undone(transcript: Seen) -> Iterator[Found]:
    """Find an edit that the agent takes back: by an undo, by git, or by an edit that swaps old and new text."""
    swaps = set[tuple[str, ...]]()
    has_edited = False
    for made, work in _code_calls(transcript):
        if made.has_failed:
            continue
        if has_edited and work.undoes:
            yield made.turn, "", made.text
            continue
        if work.edits:
            has_edited = True
            text = made.arguments[:MOST_READ]
            texts = {match["which"]: match["text"] for match in _SWAP.finditer(text)}
            path = next(filter(None, (group for match in _PATH.finditer(text) for group in match.groups())), "")
            if len(texts) == 2 and texts["old"] != texts["new"]:
                if (path, texts["new"], texts["old"]) in swaps:
                    yield made.turn, "", made.text
                swaps.add((path, texts["old"], texts["new"]))


def file_read_again(transcript: Seen) -> Iterator[Found]:
    """Find a file that is read again, with the same call and the same result; the detail is the number of readings."""
    first: dict[tuple[str, str], list[Made]] = {}
    for made in transcript.calls:
        if made.result and not made.has_failed and _work(made.name, made.arguments).reads:
            first.setdefault(made.call, []).append(made)
    for same in first.values():
        equal = [made for made in same if made.result == same[0].result]
        if len(equal) > 1:
            yield equal[1].turn, str(len(equal)), equal[1].text


def submitted_unchanged(transcript: Seen) -> Iterator[Found]:
    """Find a run that hands in its work, and can edit files, and never did; what it hands in is no diff."""
    calls = _code_calls(transcript)
    submits = [made for made, work in calls if work.submits]
    if not submits or "diff --git" in (submits[-1].result or ""):
        return
    if not any(work.edits and not made.has_failed for made, work in calls):
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
