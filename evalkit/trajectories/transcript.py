"""Messages and tool calls of runs in any format, as transcripts and as frames."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec
import pandas as pd
from msgspec.structs import asdict, replace

from evalkit.io import SourceError, StorageOptions, frame, reason_of, storage
from evalkit.kinds import Call, RunFiles, Transcript, Turn, canonical, cell_text, read_log
from evalkit.trajectories.chat import Message, ToolCall
from evalkit.trajectories.json_values import text_of
from evalkit.trajectories.logs import TrajectoriesLogs
from evalkit.trajectories.parse import SESSION_FORMATS, opened, parse
from evalkit.trajectories.table import LAZY_TABLES

# one entry is enough, since callers read all runs of a file one after another
opened_file = lru_cache(maxsize=1)(lambda path, data: opened(path, data, messages=True))


LONGEST_TAGS = 200  # maximum number of characters of the tags at the end of a result
LONGEST_PROMPT = 400  # maximum number of characters of a shell prompt at the end of a result
# the beginning of a tool call written as text: a ReAct action, a fenced command, code or JSON, a tag, or the whole
# message; the name of the last matching group is the form of the call, and the arguments follow the match
_WRITTEN = re.compile(
    r"^\**Action(?: \d+)?:\**\s*(?P<act>\w[\w.-]*)"
    r"(?:\s*[\[(](?P<in>)|\s*\n\**Action Input(?: \d+)?:\**\s*(?P<input>)|(?=(?:\s*^Observation[ \d]*:)?\Z))"
    r"|```(?P<language>bash|sh|shell|mswea_bash_command|python|py|tool_code)\n(?P<block>)"
    r"|(?:<(?:(?:tool|function)_call|tool_use)>|\[TOOL_CALLS\]|<\|python_tag\|>)\s*(?=[{\[])(?P<json>)"
    r"|(?:\A|```(?:json)?)\s*(?=\{)(?P<answer>)"
    r"|```(?P<other>[\w+-]*)\n(?P<fence>)"
    r"|<(?:\w+:)?(?=(?P<tag>\w+))(?:(?!(?:tool|function)_)[a-z]+_[a-z_]+>(?P<code>)"
    r"|(?:tool|invoke|function|tool_call)(?:=| name=)[\"']?(?P<name>[\w.-]+)[\"']?>(?P<body>))"
    r"|\A\[(?P<python>\w[\w.]*)\((?P<values>)",
    re.MULTILINE,
)
_ENDS = {  # the end of a call by its form; calls in a tag end with the closing tag
    "in": re.compile(r"[\])](?:\s*^Observation[ \d]*:)?\Z", re.MULTILINE),
    **dict.fromkeys(("act", "input"), re.compile(r"(?:^Observation[ \d]*:)?\Z", re.MULTILINE)),
    **dict.fromkeys(("block", "fence"), re.compile("```")),
    "json": re.compile(r"(?<=[}\]])\s*(?:<[/|]|\Z)"),
    "answer": re.compile(r"(?<=\})\s*(?:```|\Z)"),
    "values": re.compile(r"\)\]\Z"),
}
_CLOSING = re.compile(r"</(?:\w+:)?(?P<tag>\w+)>")
_SEEMS_WRITTEN = re.compile(
    r"^\**Action(?: \d+)?:[\s*]*+(?:[^\s\[(]++\s*+)?(?:[\[(]|(?<=\n)\**Action Input)"
    r"|<(?:\w+:)?(?:invoke|function=|tool_call\b)|\[TOOL_CALLS\]|<\|python_tag\|>",
    re.MULTILINE,
)
_CERTAIN = ("act", "in", "input", "json", "body")  # forms that are always calls; others may be part of an answer
_OTHER_STEPS = re.compile(r"^[^\w\n]*(?:Observation|Final Answer)\b", re.MULTILINE)
_CODE = ("python", "py", "tool_code")
_NAMES = ("name", "action", "tool", "function", "tool_name", "command")
_ARGUMENTS = ("arguments", "action_input", "input", "parameters", "args", "params", "tool_input")
_PARAMETER = re.compile(r"<(?:\w+:)?(?P<tag>\w+)(?:(?:=| name=)[\"']?(?P<name>[\w.-]+)[\"']?)?>")
_OBSERVED = re.compile(
    r"\s*(?:(?=<returncode>|<output>)|<function_results>\s*<result>\s*(?:<tool_name>.*?</tool_name>\s*)?(?:<stdout>\s*)?"
    r"|<(?:(?:tool|function)_(?:response|result|output)s?|observation)\b[^>]*>\s*|```tool_output\n"
    r"|\**(?:(?:tool|command|function|execution|code|action) )?(?:result|output|response|observation)s?\b(?: \d{1,2})?"
    r"(?: of [^\n]*)?:\**\s*|\[[^\]\n]+\] Result:\s*|Command \S+ returned:\s*|(?-i:OBSERVATION|Observation)\b\s*)",
    re.IGNORECASE,
)
_END_OF_TAG = re.compile(r"(?:(?:</(?:(?:tool|function)_\w+|observation|stdout|result)>|```)\s*)+\Z")
_NEXT_RESULT = re.compile(r"</(?:(?:tool|function)_\w+|result)>\s*(?=<(?:tool_|function_|result>))")
_PROMPT = re.compile(r"\s*(?:\(Open file: .*\)\s*)?(?:\(Current directory: .*\)\s*)?bash-\$\s*\Z")  # of SWE-agent
_RETURNED = re.compile(r"<returncode>\s*(-?\d+)")


def run_files(logs: TrajectoriesLogs, run: Mapping[str, Any]) -> RunFiles:
    """Return the files of a run (its `source` last, but first for sessions), its part, and its target and scorer."""
    scorer = cell_text(run["score_key"])
    if run["format"] == "table":
        meanings = [note.values["meaning"] for note in logs.chosen.only("columns").notes]
        if not any("score_key" in own for own in meanings):  # columns of outcomes and scores
            columns = {tuple(own[role] for role in ("is_successful", "score") if role in own) for own in meanings}
            scorer = " and ".join(columns.pop()) if len(columns) == 1 else scorer
    facts = [("target", cell_text(run["target"])), ("scorer", scorer)]
    paths = [*run["trajectories"], run["source"]]
    if run["format"] in SESSION_FORMATS:  # the other files belong to its subagents
        paths = [run["source"], *run["trajectories"]]
    return RunFiles(paths, run["part"] or "", facts)


def transcript(paths: Sequence[str], read: Callable[[str], bytes], part: str = "") -> Transcript:
    """Return the transcript of a run: its messages, tool calls and results."""
    if not part and len(paths) == 1:  # the user named a file, not a run
        parts = [row[0] for row in parse(paths[0], read(paths[0])).rows.get("runs", ())]
        if len(parts) > 1:
            hint = f"`evalkit trajectories {shlex.quote(paths[0])} --list all` lists them, and --run RUN shows one"
            raise SourceError(f"{paths[0]}: holds {len(parts)} runs; {hint}")
        part = next(iter(parts), "")
    turns = [turn for message in messages(paths, part, read) for turn, _ in turns_of(message)]
    answer_in_order(turns)
    return Transcript(" ".join(filter(None, [paths[0], part])), [f"{len(turns)} turns"], turns)


def answer_in_order(turns: list[Turn]) -> None:
    """Set the result of each call without one to the next tool message that names no call.

    The result may also be a user message that follows immediately and starts like a result. If the call is written as
    text, its result may be any later user or system message that starts like a result. If the form of the call is
    certain, its result may be any user message that follows immediately. Text in an uncertain form is a call only if
    some text of the same form has a result.
    """
    is_open = any(turn.call is not None and turn.call.result is None for turn in turns)
    if not (is_open or any("```" in turn.text for turn in turns)):  # without blocks of code, no call was misunderstood
        return
    waiting: list[int] = []
    written: list[int] = []
    with_results = set[str]()  # forms of written calls that have a result
    for place, turn in enumerate(turns):
        before = turns[place - 1]
        if turn.call and turn.call.result is None:
            waiting.append(place)
            if "written" in turn.values:
                written.append(place)
        elif turn.role == "assistant":
            waiting.clear()
        elif waiting:
            form = turns[waiting[0]].values.get("written", "")
            is_next = turn.role == "user" and before.call is not None
            is_result = (is_next and form in _CERTAIN) or ((is_next or form) and _is_result(turn.text))
            if turn.role not in ("tool", "function") and not is_result:
                continue
            with_results.add(form)
            returned = _RETURNED.search(turn.text)
            has_failed = returned[1] != "0" if returned else None
            results = _NEXT_RESULT.split(turn.text)
            for asked, result in zip(waiting, results, strict=False):
                if call := turns[asked].call:
                    result = _unwrapped(result)
                    call = replace(call, result=result, has_failed=has_failed, result_after=place - asked)
                    turns[asked] = replace(turns[asked], call=call)
            del waiting[: len(results)]
        elif before.role == "assistant" and "```" in before.text and _is_result(turn.text):
            turns[place - 1] = replace(before, values={"unread_call": True})
    for place in written:
        form = turns[place].values["written"]
        if form not in with_results and form not in _CERTAIN:
            turns[place] = replace(turns[place], call=None)


def _is_result(text: str) -> bool:
    """Return whether a message begins like a result, or ends with the prompt of a shell."""
    return _OBSERVED.match(text) is not None or _ends_with_prompt(text)


def _ends_with_prompt(text: str) -> bool:
    return text.rstrip().endswith("bash-$")


def _unwrapped(text: str) -> str:
    """Return a result without its heading, the tags around it, and the prompt after it."""
    if _ends_with_prompt(text):
        text = text[:-LONGEST_PROMPT] + _PROMPT.sub("", text[-LONGEST_PROMPT:])
    heading = _OBSERVED.match(text)
    if not heading:
        return text
    start = heading.end()
    end = None
    if text.rstrip().endswith((">", "```")):
        end = _END_OF_TAG.search(text, max(start, len(text) - LONGEST_TAGS))
    return text[start : end.start() if end else None]


def turns_of(message: Message) -> list[tuple[Turn, ToolCall | None]]:
    """Return the turns that show a message (at least one), each with the tool call that it shows, if any."""
    actor = message.actor or message.role
    if message.role == "error":
        return [(Turn("error", "system", message.text, ("what ended the run",), ("error", "decision")), None)]
    shown: list[tuple[Turn, ToolCall | None]] = []
    if message.reasoning:
        shown.append((Turn(actor, message.role, message.reasoning, ("reasoning",), when=message.when), None))
    if message.text or not (message.calls or message.reasoning):
        may_call = message.role == "assistant" and not message.calls and _may_call(message.text)
        written = _written(message.text) if may_call else []
        call: Call | None = None
        values: dict[str, Any] = {}
        if len(written) == 1:
            values["written"], call = written.pop()
        elif may_call and not written and _SEEMS_WRITTEN.search(message.text):
            values["unread_call"] = True
        is_reward = message.actor == "verifier"
        turn = Turn(
            actor,
            message.role,
            message.text,
            when=message.when,
            call=call,
            values=values,
            states_outcome=is_reward,
        )
        shown.append((turn, None))
        for form, call in written:
            text = f"{call.name} {call.arguments}"
            values = {"written": form}
            turn = Turn(actor, "action", text, events=("command",), when=message.when, call=call, values=values)
            shown.append((turn, None))
    for made in message.calls:
        text = f"{made.name} {made.arguments}".strip()
        has_failed = True if made.is_error else None
        result = made.result and _unwrapped(made.result)
        result_after = int(made.result is not None)
        call = Call(made.name, canonical(made.arguments), result, has_failed, result_after, is_in_text=True)
        caller = "user" if message.role == "user" else actor
        shown.append((Turn(caller, "action", text, (), ("command",), message.when, call=call), made))
        if made.result is not None:
            marks, events = (("tool error",), ("error",)) if made.is_error else ((), ())
            shown.append((Turn(made.name or "tool", "result", made.result, marks, events), None))
    return shown


def _may_call(text: str) -> bool:
    """Return whether `_WRITTEN` or `_SEEMS_WRITTEN` may match a text. This quick test rules out most messages."""
    if "Action" in text or "```" in text or "<" in text or "[TOOL_CALLS]" in text:
        return True
    return text.lstrip()[:1] in ("{", "[")


def _written(text: str) -> list[tuple[str, Call]]:
    """Return the forms and calls in the text of a message. Several calls count only if all their forms are certain."""
    calls: list[tuple[str, Call]] = []
    for begin, given in _enclosed(_WRITTEN, text.strip()):
        form = begin.lastgroup or ""
        if form in ("json", "answer"):
            with suppress(msgspec.MsgspecError, RecursionError, UnicodeError):
                calls += [(form, made) for made in _json_calls(msgspec.json.decode(given), form == "json")]
            continue
        parameters = _enclosed(_PARAMETER, given) if "<" in given else ()
        found = {one["name"] or one["tag"]: value.strip("\n") for one, value in parameters}
        is_tag = form == "body" or (form == "code" and (bool(found) or begin["tag"].startswith("execute_")))
        if found and is_tag:
            with suppress(UnicodeError):
                given = msgspec.json.encode(found).decode()
        name = begin["act"] or begin["name"] or begin["tag"] or begin["python"]
        if begin["other"]:
            continue
        if form == "fence":
            name = "shell"
        elif begin["language"]:
            name = "python" if begin["language"] in _CODE else "shell"
        has_other_steps = begin["act"] and _OTHER_STEPS.search(given)
        if (is_tag or form != "code") and not has_other_steps:
            calls.append((form, Call(name, canonical(given.strip()), is_in_text=True)))
    return calls if len(calls) == 1 or all(form in _CERTAIN for form, _ in calls) else []


def _enclosed(begins: re.Pattern, text: str) -> Iterator[tuple[re.Match, str]]:
    """Yield each match, and the text between it and its end, in time linear in the text."""
    ends: dict[str, list[re.Match]] = {}  # ends by form, or by tag after "<"; the first end is last
    tags: list[re.Match] | None = None  # all closing tags, once one is needed
    place = 0
    while begin := begins.search(text, place):
        form = f"<{begin['tag']}" if begin["tag"] else begin.lastgroup or ""
        if form in _ENDS and form not in ends:
            ends[form] = list(_ENDS[form].finditer(text, begin.end()))[::-1]
        elif begin["tag"] and tags is None:
            tags = list(_CLOSING.finditer(text))[::-1]
            for closing in tags:
                ends.setdefault(f"<{closing['tag']}", []).append(closing)
        left = ends.get(form, [])
        while left and left[-1].start() < begin.end():
            left.pop()
        place = begin.start() + 1
        if left:
            yield begin, text[begin.end() : left[-1].start()]
            place = left[-1].end()


def _json_calls(value: Any, is_marked: bool) -> list[Call]:
    """Return the calls in JSON. A name without arguments is a call only if the text marks it as one."""
    if isinstance(value, list):
        return [call for one in value for call in _json_calls(one, is_marked)]
    name = next((value[key] for key in _NAMES if key in value), None) if isinstance(value, dict) else None
    if not isinstance(name, str):
        return _json_calls(name, is_marked) if name else []
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    is_call = name and name != "Final Answer" and (is_marked or given is not None)
    return [Call(name, canonical(text_of(given)), is_in_text=True)] if is_call else []


def messages(paths: Sequence[str], part: str, read: Callable[[str], bytes]) -> list[Message]:
    """List the messages of a run in its files, and in the files that these name if they exist.

    Each file is read once, where it is first named. Raises SourceError if a file in `paths` is broken.
    """
    visited = set[str]()
    spoken: list[Message] = []

    def open_named(name: str, *, is_text: bool = False) -> Any:
        folder, own = os.path.split(path)
        if is_text:
            if not {"", ".", ".."} & set(name.split("/")):
                with suppress(SourceError, ValueError):
                    return read(f"{folder}/{name}").decode("utf-8", "replace")
            return None
        if os.path.basename(name) != name:
            return None
        before = own.partition("trajectory.")[0]  # prefix if the folder contains several runs
        below = f"{own.removesuffix('.jsonl')}/subagents/{name}"
        beside = [os.path.join(folder, other) for other in (name, before + name, below)]
        for other in (*(one for one in paths if one.endswith(name)), *beside):
            if other not in visited:
                with suppress(SourceError, ValueError):
                    value = opened_file(other, read(other))[1]
                    visited.add(other)
                    return value
        return None

    for path in paths:
        if path in visited:
            continue
        visited.add(path)
        try:
            reader, value, _ = opened_file(path, read(path))
            spoken += reader.messages(value, part, open_named) if reader else []
        except SourceError:
            raise
        except Exception as error:
            raise SourceError(f"{path}: {reason_of(error)}") from error
    return spoken


def messages_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Build the frame of all messages of runs. `turn` is the number of the first turn that shows the message."""
    rows = []
    for run_id, spoken in messages_of(runs):
        turn = 1
        for place, message in enumerate(spoken):
            ids = {"run_id": run_id, "turn": turn, "message": place}
            rows.append({**ids, **asdict(message), "tool_calls": len(message.calls)})
            turn += len(turns_of(message))
    return frame(rows, LAZY_TABLES["messages"])


def tool_calls_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Build the frame of all tool calls of runs. `turn` is the number of the turn that shows the call."""
    rows = []
    for run_id, spoken in messages_of(runs):
        shown = [(place, call) for place, message in enumerate(spoken) for _, call in turns_of(message)]
        for turn, (place, call) in enumerate(shown, 1):
            if call is not None:
                rows.append({"run_id": run_id, "turn": turn, "message": place, **asdict(call)})
    return frame(rows, LAZY_TABLES["tool_calls"])


def messages_of(runs: pd.DataFrame, options: StorageOptions = None) -> Iterator[tuple[str, list[Message]]]:
    """Yield the id and the messages of each run; the list is empty if its file can no longer be read."""
    read = lru_cache(maxsize=1)(read_log)
    with storage(options):
        columns = ["run_id", "source", "trajectories", "part", "format"]
        for run_id, source, others, part, of_format in runs[columns].itertuples(index=False):
            paths = [source, *others] if of_format in SESSION_FORMATS else [*others] or [source]
            try:
                yield run_id, messages(paths, part or "", read)
            except SourceError:
                yield run_id, []
    opened_file.cache_clear()
