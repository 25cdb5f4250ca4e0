"""Detect events in trajectories: missing or malformed answers, edits without tests, undone edits, files read again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from evalkit.kinds import Detector, Found, Made, Seen, Turn
from evalkit.kinds.detectors import shortened
from evalkit.kinds.errors import contains_any

MOST_READ = 4_000  # maximum number of characters that detectors read of a call's arguments
LONGEST_INSTRUCTIONS = 20_000  # maximum number of characters of a message that is remembered, with the form it asks for
MOST_REMEMBERED = 600  # maximum number of characters of a call that is remembered, with what it does
_FINISHES = re.compile(  # names of calls that end a run
    r"(?:.*_)?(?:submit|finish|finished|done|complete|attempt_completion|final_answer|answer|stop|end|exit|give_up"
    r"|task_complete|mark_task_complete|transfer_to_human\w*|respond|end_conversation)",
    re.IGNORECASE,
)
_SUBMITS = re.compile(
    r"COMPLETE_TASK_AND_SUBMIT|MINI_SWE_AGENT_FINAL_OUTPUT|(?:^|[;&|\n{\"]\s*)submit\b|\bexit_forfeit\b"
)
_SUBMITS_ANSWER = re.compile(r"\bsubmit[ \t]+['\"\w]")
_ANSWERS = re.compile(r"(?:.*_)?answer|submit_\w+|respond|attempt_completion", re.IGNORECASE)
_GOES_ON = re.compile(r'"(?:is_)?task_complete"\s*:\s*false')  # in the answers of Terminus, which are JSON
_STOPS = re.compile(r"###(?:STOP|TRANSFER|OUT-OF-SCOPE)###", re.IGNORECASE)
_BYE = re.compile(
    r"(?![^?]*\b(?:please|also|can you) (?!have|enjoy))[^?]{0,120}\b(?:thanks?|thank you|thx|(?:good)?bye|see you"
    r"|have a (?:nice|good|great)|danke|merci(?! d)|gracias|obrigad[oa]|grazie|спасибо|谢谢)(?:\b[^?]{0,120}|\W*)"
    r"|(?:[\w']{1,10}\W{1,3}){0,2}that(?:['’]s| is| was| will be) (?:all|it|everything)(?: for now| i need(?:ed)?)?\W*",
    re.IGNORECASE,
)
# words in the names of tools and their arguments, matched whole
_TESTS = {"test", "tests", "pytest", "unittest", "jest"}
_SHELLS = {"bash", "sh", "zsh", "shell", "powershell", "terminal", "console"}
_SHELLS |= {"cmd", "command", "commands", "keystrokes"}
_LANGUAGES = {"python", "ipython", "jupyter", "interpreter", "repl", "javascript", "node"}
_EDITS = {"edit", "editor", "multiedit", "write", "create", "replace", "insert", "save", "update", "modify", "apply"}
_READS = {"read", "view", "open", "cat"}
_MOVES = {"delete", "remove", "move", "rename", "copy", "download"}
_FILES = {"file", "files", "notebook", "diff"}
_OF_FILE = _FILES | {"path", "filename", "filepath", "patch", "old", "line", "start", "search"}  # words of arguments
_OF_TEXT = {"str", "string", "text", "line", "lines", "block", "search", "and", "based", "tool", "in", "into", "multi"}
_RUNS = {"run", "execute", "exec"}
_OF_TOOLS = _TESTS | _SHELLS | _LANGUAGES | _EDITS | _READS | _FILES | _RUNS  # names of tools contain one of these
_KEYS_OF_SHELLS = {"cmd", "keystrokes"}  # names of arguments that only a shell has
_MESSAGES = {"message", "summary", "reason", "comment", "explanation", "thought"}
_COMMANDS = ("command", "cmd", "keystrokes", "commands", "cmds", "script", "code", "input")
_JSON_OBJECT = msgspec.json.Decoder(dict[str, Any])
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAME_OF_FILE = re.compile(r"[\w-]+\.[a-zA-Z]\w{0,7}\b")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?[^\n]*\n.*?(?:^\s*\1\b|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
# what may precede a program in a command
_BEFORE = r"(?:^|[;&|(\n])[ \t]*(?:\w+=\S* )*(?:(?:sudo|time|timeout \S+|poetry run|uv run|npx|bundle exec|xargs) )*"
_EDIT_PROGRAM = re.compile(
    rf"{_BEFORE}(?:(?:g?sed|perl|ruby)(?:\s[^|;&\n]*?)?\s-(?:\w*i\b|i\S)|sed\s[^|;&\n]*--in-place"
    r"|(?:python[\d.]* -m )?(?:black|isort|ruff format|cargo fmt|rustfmt)(?![^\s;&|])(?![^|;&\n]*--(?:check|diff))"
    r"|(?:ruff|eslint)\s[^|;&\n]*--fix\b|prettier\s[^|;&\n]*(?:-w|--write)\b|(?:gofmt|goimports|clang-format)\s[^|;&\n]*-[wi]\b"
    r"|dd\s[^|;&\n]*\bof=(?!/dev|/tmp)|rm\s+(?:-\w+\s+)*\w[\w.-]*/\S*\.\w"
    r"|git (?:apply|am|mv|rm)\b|patch\b|apply_patch\b|mv\s|ed\s|ex -s|cp\s+(?:-\w+\s+)*/tmp/|truncate\s"
    r"|(?:edit|insert|create)\s+\S|str_replace_editor\s+(?:str_replace|insert|create))"
    r"|\btee\s+(?!/dev|/tmp)|(?<![<>\d&=-])>>?\s*(?!/dev/|/tmp/|[&>=])[\w./~$]"
)
_EDIT_CODE = re.compile(
    r"\.write_text\(|open\([^)]*,\s*(?:mode=)?['\"][wa]b?\+?['\"]|\.writelines?\(|\bwriteFile(?:Sync)?\("
)
_CHANGE = re.compile(  # commands that may change files without editing source code
    rf"{_BEFORE}(?:(?:cp|rm|mkdir|touch|ln|tar|unzip|dos2unix|make|cmake|docker|wget|chmod)\s|curl\s[^|;&\n]*-[oO]"
    r"|git (?:commit|merge|checkout|switch|pull|clone|rebase|cherry-pick|stash|reset|restore|revert|init)\b"
    r"|\S+ (?:-\S+ )*install\b|(?:(?:python[\d.]*|node|bash|sh|ruby|perl|php)\s+(?:-\S+\s+)*|\./)[\w./-]+\.\w+)"
)
_UNDO = re.compile(
    r"\bundo(?:_edit|_last|_change)?\b|\bgit (?:checkout(?: HEAD\S*)? (?:-- |\.(?:\s|$)|[\w./-]+\.\w+(?=[\s;&|)]|$))"
    r"|restore (?!--staged (?!--worktree))|stash (?:drop|clear)|reset (?:\S+ )?--hard|revert (?!--help)|clean -\w*f)"
    r"|\b(?:git apply|patch)\s+(?:-\S+\s+)*(?:-R|--reverse)\b"
    r"|\b(?:cp|mv)\s+(?:-\w+\s+)*(\S+)[.~_-](?:bak|orig|backup|old|save)\s+\1(?=[\s;&|]|$)"
)
_STASH = re.compile(rf"{_BEFORE}git stash\b(?! *(?:pop|apply|list|show|branch|drop|clear)\b)")
_SWAP = re.compile(  # the old and the new text of an edit, in JSON or as options
    r"[\"-](?P<which>old|new)(?:_?(?:str|string|text))?\"?(?::\s*|=|\s+)"
    r"(?P<quote>[\"'])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)",
    re.DOTALL,
)
_SED = re.compile(  # the old and the new text of a substitution, and the files
    r"\b(?:sed|perl)\s+(?:-\S+\s+)+[\\'\"]+s(?P<by>[/|#,@])(?P<old>.{1,200}?)(?P=by)(?P<new>.{0,200}?)(?P=by)\w*[\\'\"]+(?P<path>[^;&|\"\n]+)"
)
_PATCHED = re.compile(r"^([-+])(?!--|\+\+)(.*)", re.MULTILINE)  # lines that a patch removes or adds
_PATH = re.compile(
    r"\"(?:file_?)?(?:path|name)\":\s*\"([^\"]*)\"|str_replace_editor \w+ (\S+)"
    r"|\*\*\* \w+ File: ([^\n\\]+)|\+\+\+ (?:b/)?([^\s\\]+)",
    re.IGNORECASE,
)
_TEST = re.compile(
    rf"{_BEFORE}(?:(?:python[\d.]*|node|bash|sh|ruby|perl|php|elixir)\s+(?:-\S+\s+)*\S*(?:test|repro|check|verify|unit\b)"
    r"|(?:npm|yarn|pnpm|go|cargo|make|mvnw?|gradlew?|mix|dotnet|bundle|lein|swift|bazel|rake|composer|sbt|deno|bun|hatch"
    r"|php artisan|zig build|stack|cabal|ninja|just|task|act"
    r"|\S*/gradlew|\S*/mvnw|\S*python\S*\s+\S+\.py)(?:\s+(?:run|exec|dlx))?(?:\s+-\S+(?:\s+[\w./]+)?)*"
    r"\s+(?:\S*(?:test|check|verify|spec)|(?:ci|jest|mocha|karma|tox|nox)\b)"
    r"|npm t\b|(?:tox|nox|trial|rspec|phpunit|mocha|jest|vitest|behave)\b"
    r"|(?!test\s+[-!\"$])[\w./-]*(?:test|repro)[\w.-]*(?:\s|$))"
    r"|\bpytest\b|\bunittest\b|\bdoctest\b|\bPkg\.test\b|\bdevtools::test",
    re.IGNORECASE,
)
_TEST_FILE = re.compile(r"(?:\b|_)tests?[_/]|_tests?\.\w|/tests?\.|repro", re.IGNORECASE)
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
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
# a sentence about something that the task asks for, such as a function, which may have to answer or return something
_MADE = re.compile(
    r"\b(?:function|endpoint|api|method|script|program|class|server|service|tool|component|code|app|field)s?\b[^.]{0,30}?"
    r"\b(?:that|which|should|must|to|has|needs?|returns?|will|answers?|responds?)\b",
    re.IGNORECASE,
)
_REPLY = r"(?:(?:your|the|a) )?(?:final |last )?(?:answer|response|reply|output|result|solution)"
_ASKED = r"(?:^\W*|[,:;] |\b(?:please|always|must|should|only|just|then|and|to) )"
_ANSWER = (  # an instruction about the answer
    rf"(?:{_ASKED}(?:answer|respond|reply)\b|{_ASKED}(?:return|output|give|provide|format|write)"
    rf" (?={_REPLY}|(?:an? )?(?:only|just|single|valid|raw|json|one|in|as|with|yes|true)\b)"
    rf"|\b{_REPLY} (?:must|should|has to|needs to) be\b)"
)
_ALONE = r"^\W*(?:(?:final |the )?answer(?: is)?\W*)?{}\W*$"
# patterns of an instruction to answer in a certain form, and of an answer in this form; without the latter,
# the answer must contain the instruction's group `said`
_FORMS = (
    (r"\b(?:answer|result|solution|within|inside|in|into|using)\b[^.]{0,40}\\boxed\b", r"\\boxed\s*\{"),
    (
        r"(?:^\W*|\b(?:please|must|should|and) )(?:put|place|provide|write|give|return|wrap|enclose)\b[^.<]{0,40}"
        r"\b(?:answer|result|solution)\b[^.<]{0,40}(?P<said><\w+>)",
        None,
    ),
    (r"(?:final answer|answer)\s*:\s*(?:\[|<|\{|\$|\.\.\.|your|x\b|yyy|letter|number)", r"answer\W{0,4}:\s*\S"),
    (
        r"\b(?:line|message|response|reply|answer|end|begins?|starts?)\b[^.]{0,60}['\"`](?P<said>[A-Z][\w ]{1,30}:)",
        None,
    ),
    (r"\b(?:answer|result|solution)\b[^.]{0,40}(?P<said>####)", None),
    (rf"{_ANSWER}[^.]{{0,60}}\bjson\b", r"^\W{0,12}(?:json)?\s*[\[{].*[\]}]\W*$"),
    (
        rf"{_ANSWER}[^.]{{0,40}}\b(?:(?:only|just|single|one)\b[^.]{{0,25}}\b(?:letter|option|choice)\b|letter only\b)",
        _ALONE.format(r"\(?[A-Ja-j]\)?"),
    ),
    (
        rf"{_ANSWER}[^.]{{0,40}}\b(?:only|just|single)\b[^.]{{0,25}}\b(?:number|integer|numeral)\b",
        _ALONE.format(r"[$€£]?-?[\d.,]+\s*%?"),
    ),
    (rf"{_ANSWER}[^.]{{0,40}}\b(?:one|single) word\b", _ALONE.format(r"[\w'-]+")),
    (rf"{_ANSWER}(?:\W*(?:only|just|simply|with|either)\b)*\W*yes\b\W+(?:or )?\W*no\b", _ALONE.format("(?:yes|no)")),
    (
        rf"{_ANSWER}(?:\W*(?:only|just|simply|with|either)\b)*\W*true\b\W+(?:or )?\W*false\b",
        _ALONE.format("(?:true|false)"),
    ),
)
_ASKS = [
    (re.compile(asks, re.IGNORECASE), given and re.compile(given, re.IGNORECASE | re.DOTALL)) for asks, given in _FORMS
]


def _last_act(transcript: Seen) -> tuple[int, Turn] | None:
    """Return the number and the turn of the agent's last message or call, or None."""
    for number in range(len(transcript.turns), 0, -1):
        turn = transcript.turns[number - 1]
        if turn.role in ("assistant", "action") and "reasoning" not in turn.marks and turn.actor != "user":
            return number, turn
    return None


def _is_final(turn: Turn) -> bool:
    """Return whether a turn can end a run: an answer, or a call that submits the work or an answer."""
    if turn.call is None:
        return turn.role == "assistant" and not _GOES_ON.search(turn.text)
    return work_of(turn.call.name, turn.call.arguments).submits


def cut_off(transcript: Seen) -> Iterator[Found]:
    """Find a run that ends without a final answer: its last act is a call that submits nothing, or the user spoke last.

    A user who ends the conversation with a word such as ``###STOP###``, or with thanks, needs no answer. This event
    excludes runs in which the agent never acts, and runs with an empty last answer.
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
    """Find a run whose last act is an empty answer, or a call that submits an empty answer."""
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
    r"""Find a last answer that does not have the form that the instructions ask for.

    Known forms are ``\boxed{}``, a tag such as ``<answer>``, ``Answer: …``, a line that begins with a given word, JSON,
    a single letter, word or number, yes or no, true or false. Instructions are sentences in the messages of the system
    and the user before the agent's first act. Sentences about something that the task is to build, such as a function,
    are not instructions. The detail is the instruction.
    """
    last = _last_act(transcript)
    if last is None or last[1].call is not None or not last[1].text.strip():
        return
    number, turn = last
    for earlier in transcript.turns[: number - 1]:
        if earlier.role in ("assistant", "action"):
            return
        if earlier.role not in ("system", "user"):
            continue
        if len(earlier.text) <= LONGEST_INSTRUCTIONS:
            asked = _remembered_form(earlier.text)
        else:
            asked = _first_form(earlier.text)
        if asked is None:
            continue
        instruction, given = asked
        # also without ReAct's words, which may belong to the answer
        texts = (turn.text.strip(), turn.text.rpartition("Final Answer:")[2].strip())
        if not any(given.search(text) for text in texts):
            yield number, shortened(instruction)[:80], shortened(turn.text)
        return


def _first_form(text: str) -> tuple[str, re.Pattern] | None:
    """Return the first instruction about the form of the answer in a message, and the pattern of such answers."""
    for sentence in _SENTENCES.split(text):
        asked = _form_asked(sentence)
        if asked is not None:
            return asked
    return None


_remembered_form = lru_cache(maxsize=16)(_first_form)  # the runs of a benchmark begin with the same message


@lru_cache(maxsize=1024)  # messages about different tasks have instructions in common
def _form_asked(sentence: str) -> tuple[str, re.Pattern] | None:
    """Return the instruction about the form of the answer in a sentence, and the pattern of such answers, or None."""
    for asks, given in _ASKS:
        if (match := asks.search(sentence)) and not _MADE.search(sentence):
            return match[0], given or re.compile(re.escape(match["said"]), re.IGNORECASE)
    return None


class Work(msgspec.Struct, frozen=True):
    """What a call does to code and files."""

    tool: str = ""  # shell, code, editor, test or reader; empty for other tools
    submits: bool = False
    edits: bool = False
    edits_tests: bool = False  # it edits a test, or a script that reproduces the problem
    may_change: bool = False  # it edits files, or may change them in another way
    reads: bool = False
    tests: bool = False
    undoes: bool = False
    stashes: bool = False  # it sets edits aside with git


def work_of(name: str, arguments: str) -> Work:
    """Return what a call does, judged by its name and arguments (only the first part of long commands)."""
    work, may_be_tool = _named_work(name)
    if not may_be_tool and not contains_any(arguments, _KEYS_OF_SHELLS):
        return work
    if len(name) + len(arguments) <= MOST_REMEMBERED:
        return _remembered_work(name, arguments)
    return _work_of_tool(name, arguments)


def _work_of_tool(name: str, arguments: str) -> Work:
    """Return what a call of a tool that may be a shell or an editor does."""
    work, _ = _named_work(name)
    given = _given(arguments)
    tool = _tool(_words(name), given)
    if not tool:
        return work
    work = replace(work, tool=tool)
    if tool in ("shell", "code"):
        return _command_work(_command(given)[:MOST_READ], work)
    action = str(given.get("command") or given.get("action") or "")
    edits = tool == "editor" and action not in ("view", "read", "open", "show")
    paths = [str(value) for key, value in given.items() if _words(key) & {"path", "file", "filename", "filepath"}]
    return replace(
        work,
        edits=edits,
        edits_tests=any(map(_TEST_FILE.search, paths)),
        may_change=edits,
        reads=tool == "reader" or (tool == "editor" and not edits),
        tests=tool == "test",
        undoes=work.undoes or "undo" in action,
    )


_remembered_work = lru_cache(maxsize=4096)(_work_of_tool)  # runs of the same task have many calls in common


@lru_cache(maxsize=1024)  # the same names recur in many calls
def _named_work(name: str) -> tuple[Work, bool]:
    """Return what the name of a call tells about it, and whether `_tool` must examine its arguments."""
    words = _words(name)
    submits = _FINISHES.fullmatch(name) is not None
    work = Work(submits=submits, may_change=bool(words & _MOVES), undoes="undo" in words)
    return work, not words.isdisjoint(_OF_TOOLS)


def _command_work(text: str, work: Work) -> Work:
    """Return what a shell command or a piece of code does; in code, lines that begin with ``!`` are shell commands."""
    outer = _HEREDOC.sub("", text)
    commands = outer if work.tool == "shell" else "\n".join(re.findall(r"^\s*!(.*)", outer, re.MULTILINE))
    bare = _QUOTED.sub("''", commands)
    edits = _EDIT_PROGRAM.search(bare) is not None or _EDIT_CODE.search(text) is not None
    tests = _TEST.search(_SHOWS_CODE.sub("", outer)) is not None
    return replace(
        work,
        submits=work.submits or _SUBMITS.search(text) is not None,
        edits=edits,
        edits_tests=_TEST_FILE.search(bare) is not None,
        may_change=edits or (not tests and _CHANGE.search(bare) is not None),
        reads=not edits and _READ_PROGRAM.match(commands) is not None,
        tests=tests,
        undoes=_UNDO.search(bare) is not None,
        stashes=_STASH.search(bare) is not None,
    )


@lru_cache(maxsize=4096)  # the same names recur in many calls
def _words(name: str) -> frozenset[str]:
    """Return the words of a name in lower case, without the name of a server in front of it."""
    return frozenset(word.lower() for word in _WORD.findall(re.split(r"__|[.:/]", name)[-1]))


def _given(arguments: str) -> Mapping[str, Any]:
    """Return the arguments of a call by name; arguments that are plain text have the name ""."""
    if arguments.startswith("{"):
        try:
            return _JSON_OBJECT.decode(arguments)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    return {"": arguments}


def _tool(words: frozenset[str], given: Mapping[str, Any]) -> str:
    """Return the type of tool, from the words of its name and of its arguments' names."""
    if words & _TESTS and not words & (_EDITS | _READS | {"get", "list", "connection"}):
        return "test"
    if words & _EDITS and not words & {"directory", "folder", "dir"}:
        is_of_file = any(_words(key) & _OF_FILE for key in given)
        if words & _FILES or words >= {"apply", "patch"} or (is_of_file and words <= _EDITS | _OF_TEXT):
            return "editor"
    if words & _LANGUAGES or words in ({"run", "code"}, {"execute", "code"}):
        return "code"
    if words & _SHELLS or (words and words <= _RUNS) or given.keys() & _KEYS_OF_SHELLS:
        return "shell"
    if words & _READS or ("get" in words and words & _FILES):
        is_of_file = any(_words(key) & _OF_FILE or _NAME_OF_FILE.search(str(value)) for key, value in given.items())
        return "reader" if words & _FILES or is_of_file else ""
    return ""


def _command(given: Mapping[str, Any]) -> str:
    """Return the command in the arguments of a shell: the value under a usual name, or the only text."""
    texts = [value for value in given.values() if isinstance(value, str)]
    command = next((given[key] for key in _COMMANDS if key in given), texts[0] if len(texts) == 1 else "")
    if not isinstance(command, list):
        return str(command)
    parts = [f"{_command(part)}\n" if isinstance(part, dict) else str(part) for part in command]
    is_wrapped = len(parts) == 3 and parts[1] in ("-c", "-lc")  # such as bash -lc …
    return parts[2] if is_wrapped else " ".join(parts)


def _calls(transcript: Seen) -> Sequence[tuple[Made, Work]]:
    """Return the calls of a run, with what each does."""
    if "calls" not in transcript.shared:
        transcript.shared["calls"] = [(made, work_of(made.name, made.arguments)) for made in transcript.calls]
    return transcript.shared["calls"]


def _code_calls(transcript: Seen) -> Sequence[tuple[Made, Work]]:
    """Return the calls of a run, with what each does; no calls if the run has no editor and no shell."""
    if "code_calls" not in transcript.shared:
        calls = _calls(transcript)
        has_tools = any(work.tool in ("shell", "editor") or work.edits for _, work in calls)
        transcript.shared["code_calls"] = calls if has_tools else []
    return transcript.shared["code_calls"]


def test_not_run(transcript: Seen) -> Iterator[Found]:
    """Find a run that after its last edit of files runs neither a test nor a script that reproduces the problem.

    The turn is the turn of the first edit that is not tested.
    """
    untested = None
    for made, work in _code_calls(transcript):
        if work.tests:
            untested = None
        elif untested is None and work.edits and not made.has_failed and not work.edits_tests:
            untested = made
    if untested:
        yield untested.turn, "", untested.text


def edit_undone(transcript: Seen) -> Iterator[Found]:
    """Find an edit that the agent reverts: by an undo, with git (also by a stash that it never pops), or by a swap."""
    swaps = set[tuple[str, ...]]()
    has_edited = False
    calls = _code_calls(transcript)
    pops = any("stash pop" in made.arguments or "stash apply" in made.arguments for made, _ in calls)
    for made, work in calls:
        if made.has_failed:
            continue
        if has_edited and (work.undoes or (work.stashes and not pops)):
            yield made.turn, "", made.text
            continue
        if work.edits:
            has_edited = True
            text = made.arguments[:MOST_READ]
            texts = {match["which"]: match["text"] for match in _SWAP.finditer(text)}
            path = next(filter(None, (group for match in _PATH.finditer(text) for group in match.groups())), "")
            if sed := _SED.search(text):
                texts, path = sed.groupdict(), sed["path"]
            elif "@@" in text or "*** Begin Patch" in text:
                lines = _PATCHED.findall(text.replace("\\n", "\n"))
                texts["old"] = "\n".join(line for sign, line in lines if sign == "-")
                texts["new"] = "\n".join(line for sign, line in lines if sign == "+")
            if "old" in texts and "new" in texts and texts["old"] != texts["new"]:
                if (path, texts["new"], texts["old"]) in swaps:
                    yield made.turn, "", made.text
                swaps.add((path, texts["old"], texts["new"]))


def file_read_again(transcript: Seen) -> Iterator[Found]:
    """Find a file that the agent reads again with the same call and the same result, without an edit in between.

    The detail is the number of times that the file was read.
    """
    readings: dict[tuple[str, str], list[Made]] = {}
    found: list[list[Made]] = []
    for made, work in _calls(transcript):
        if work.reads and made.result and not made.has_failed:
            same = readings.setdefault(made.call, [])
            if not same or same[0].result == made.result:
                same.append(made)
            if len(same) == 2:
                found.append(same)
        elif (work.edits or work.undoes) and not made.has_failed:
            changed = set(_NAME_OF_FILE.findall(made.arguments[:MOST_READ]))  # an empty set may mean all files
            for call in list(readings):
                if not changed or not changed.isdisjoint(_NAME_OF_FILE.findall(call[1])):
                    del readings[call]
    for same in found:
        yield same[1].turn, str(len(same)), same[1].text


def submitted_unchanged(transcript: Seen) -> Iterator[Found]:
    """Find a run that can edit files and submits its work without a change, an answer or a diff.

    A message, such as the argument of ``finish``, counts as an answer unless the run used an editor.
    """
    calls = _code_calls(transcript)
    submits = [made for made, work in calls if work.submits]
    if not submits or any(work.may_change and not made.has_failed for made, work in calls):
        return
    last = submits[-1]
    has_answer = _SUBMITS_ANSWER.search(last.arguments) is not None
    if work_of(last.name, last.arguments).tool != "shell":
        no_answers = _MESSAGES if any(work.tool == "editor" for _, work in calls) else set[str]()
        given = _given(last.arguments).items()
        has_answer = any(isinstance(one, str) and one.strip() and not _words(key) & no_answers for key, one in given)
    if not has_answer and "diff --git" not in (last.result or ""):
        yield last.turn, last.name, last.text


def call_not_understood(transcript: Seen) -> Iterator[Found]:
    """Find the first message that seems to contain a call in a form that evalkit cannot parse."""
    for number, turn in enumerate(transcript.turns, 1):
        if turn.values.get("unread_call"):
            yield number, "", shortened(turn.text)
            return


DETECTORS = (
    Detector("submitted_unchanged", "Is work handed in without a change?", submitted_unchanged, "changes nothing", 9),
    Detector("cut_off", "Does it end without an answer?", cut_off, "ends without an answer", 6),
    Detector("empty_answer", "Is the answer empty?", empty_answer, "gives an empty answer", 6),
    Detector("wrong_answer_form", "Has the answer another form?", wrong_answer_form, "answers in another form", 6),
    Detector("test_not_run", "Is the last edit tested?", test_not_run, "does not test its edits", 3),
    Detector("edit_undone", "Is an edit taken back?", edit_undone, "takes back edits", 2),
    Detector("file_read_again", "Is a file read again?", file_read_again),
    Detector("call_not_understood", "Is a call written in an unknown form?", call_not_understood),
)
