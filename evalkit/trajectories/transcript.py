"""Messages and calls of tools of runs of any format: as transcripts, and as frames."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
import pandas as pd

from evalkit.io import SourceError, StorageOptions, frame, reason_of, storage
from evalkit.kinds import Call, Logs, RunFiles, Transcript, Turn, canonical, cell_text, read_log
from evalkit.trajectories.chat import Message, ToolCall
from evalkit.trajectories.json_values import text_of
from evalkit.trajectories.parse import SESSION_FORMATS, opened, parse
from evalkit.trajectories.table import LAZY_TABLES

# runs of one file follow each other
_opened = lru_cache(maxsize=1)(lambda path, data: opened(path, data, messages=True))


MOST_WRITTEN = 20_000  # characters of a message that may contain a call as text
# calls that are text only: of ReAct, of blocks of shell commands (mini-swe-agent 1) or JSON, of tags; and their results
_WRITTEN = re.compile(
    r"^Action:\s*(?P<act>\w[\w.-]*)(?:\s*\[(?P<in>.*)\]|\s*\nAction Input:\s*(?P<input>.*))?\s*\Z"
    r"|```(?:bash|sh|shell)\n(?P<shell>.*?)\n?```"
    r"|(?:<(?:(?:tool|function)_call|tool_use)>|```(?:json)?)\s*(?P<json>\{.*?\})\s*(?:</|```)"
    r"|<(?P<tag>tool|invoke|function|tool_call)(?:=| name=)[\"']?(?P<name>[\w.-]+)[\"']?>(?P<body>.*?)</(?P=tag)>"
    r"|<(?P<runs>execute_\w+)>(?P<code>.*?)</(?P=runs)>",
    re.MULTILINE | re.DOTALL,
)
_MAY_BE_WRITTEN = re.compile(r"Action:|```|<(?:tool|function|invoke|execute_)")
_OBSERVED = re.compile(
    r"\s*(?:(?:Observation|OBSERVATION)\b:?\s*|(?=<returncode>|<output>)"
    r"|<(?:(?:tool|function)_(?:response|result|output)s?|observation)\b[^>]*>\s*|EXECUTION RESULT of [^\n]*:\s*)"
)
_END_OF_TAG = re.compile(r"\s*</(?:(?:tool|function)_\w+|observation)>\s*\Z")
_RETURNED = re.compile(r"<returncode>\s*(-?\d+)")


def run_files(logs: Logs, run: Mapping[str, Any]) -> RunFiles:
    """Return the files with a run's messages, then the file that states its outcome, and its part of that file."""
    facts = [("target", cell_text(run["target"])), ("scorer", cell_text(run["score_key"]))]
    paths = [*run["trajectories"], run["source"]]
    if run["format"] in SESSION_FORMATS:  # the other files are of its subagents
        paths = [run["source"], *run["trajectories"]]
    return RunFiles(paths, run["part"] or "", facts)


def transcript(paths: Sequence[str], read: Callable[[str], bytes], part: str = "") -> Transcript:
    """Return the transcript of a run: the messages of the model, the tools it called, and their results."""
    if not part and len(paths) == 1:  # a file that was named, and not a run
        parts = [row[0] for row in parse(paths[0], read(paths[0])).rows.get("runs", ())]
        if len(parts) > 1:
            hint = f"`evalkit trajectories {paths[0]} --list all` lists them, and --run RUN shows one"
            raise SourceError(f"{paths[0]}: holds {len(parts)} runs; {hint}")
        part = next(iter(parts), "")
    turns = [turn for message in messages(paths, part, read) for turn, _ in turns_of(message)]
    answer_in_order(turns)
    return Transcript(" ".join(filter(None, [paths[0], part])), [f"{len(turns)} turns"], turns)


def answer_in_order(turns: list[Turn]) -> None:
    """Give each call without a result the next message of a tool that names no call, or of the user as in ReAct."""
    waiting: list[int] = []
    for place, turn in enumerate(turns):
        if turn.call and turn.call.result is None:
            waiting.append(place)
        elif waiting and (turn.role in ("tool", "function") or (turn.role == "user" and _OBSERVED.match(turn.text))):
            asked = waiting.pop(0)
            call = turns[asked].call
            if call:
                returned = _RETURNED.search(turn.text)
                has_failed = returned[1] != "0" if returned else None
                result = turn.text
                if turn.role == "user":
                    result = _END_OF_TAG.sub("", _OBSERVED.sub("", turn.text, count=1))
                call = call._replace(result=result, has_failed=has_failed, result_after=place - asked)
                turns[asked] = turns[asked]._replace(call=call)
        elif turn.role == "assistant":
            waiting.clear()


def turns_of(message: Message) -> list[tuple[Turn, ToolCall | None]]:
    """Return the turns that show a message, of which there is one at least, each with the call that it shows."""
    actor = message.actor or message.role
    if message.role == "error":
        return [(Turn("error", "system", message.text, ("what ended the run",), ("error", "decision")), None)]
    shown: list[tuple[Turn, ToolCall | None]] = []
    if message.reasoning:
        shown.append((Turn(actor, message.role, message.reasoning, ("reasoning",), when=message.when), None))
    if message.text or not (message.calls or message.reasoning):
        written = None if message.calls or message.role != "assistant" else _written(message.text)
        is_reward = message.actor == "verifier"
        turn = Turn(actor, message.role, message.text, when=message.when, call=written, states_outcome=is_reward)
        shown.append((turn, None))
    for call in message.calls:
        text = f"{call.name} {call.arguments}".strip()
        has_failed = True if call.is_error else None
        made = Call(call.name, canonical(call.arguments), call.result, has_failed, int(call.result is not None))
        shown.append((Turn(actor, "action", text, events=("command",), when=message.when, call=made), call))
        if call.result is not None:
            marks, events = (("tool error",), ("error",)) if call.is_error else ((), ())
            shown.append((Turn(call.name or "tool", "result", call.result, marks, events), None))
    return shown


def _written(text: str) -> Call | None:
    """Return the call in the text of a message, if it has just one, in one of the forms without structure."""
    if len(text) > MOST_WRITTEN or not _MAY_BE_WRITTEN.search(text):
        return None
    found = list(islice(_WRITTEN.finditer(text), 2))
    if len(found) != 1:
        return None
    groups = found[0].groupdict()
    if groups["act"]:
        return Call(groups["act"], canonical((groups["in"] or groups["input"] or "").strip()))
    if groups["shell"] is not None:
        return Call("shell", canonical(groups["shell"]))
    if groups["name"]:
        return Call(groups["name"], canonical(groups["body"].strip()))
    if groups["runs"]:
        return Call(groups["runs"], canonical(groups["code"]))
    with suppress(msgspec.MsgspecError, RecursionError):
        value = msgspec.json.decode(groups["json"])
        name = next((value[key] for key in ("name", "action", "tool") if key in value), None)
        given = next((value[key] for key in ("arguments", "action_input", "input", "parameters") if key in value), None)
        is_call = found[0][0].startswith("<") or given is not None  # a block of JSON may be an answer
        if name and is_call and name != "Final Answer":
            return Call(text_of(name), canonical(text_of(given)))
    return None


def messages(paths: Sequence[str], part: str, read: Callable[[str], bytes]) -> list[Message]:
    """List the messages of a run in its files, and in files that these name if they exist.

    Each file is read once, in the place where it is named. SourceError for a broken one.
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
        before = own.partition("trajectory.")[0]  # files of several runs have a name before it
        below = f"{own.removesuffix('.jsonl')}/subagents/{name}"
        beside = [os.path.join(folder, other) for other in (name, before + name, below)]
        for other in (*(one for one in paths if one.endswith(name)), *beside):
            if other not in visited:
                with suppress(SourceError, ValueError):
                    value = _opened(other, read(other))[1]
                    visited.add(other)
                    return value
        return None

    for path in paths:
        if path in visited:
            continue
        visited.add(path)
        try:
            reader, value, _ = _opened(path, read(path))
            spoken += reader.messages(value, part, open_named) if reader else []
        except SourceError:
            raise
        except Exception as error:
            raise SourceError(f"{path}: {reason_of(error)}") from error
    return spoken


def messages_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Build the frame of all messages of runs; a message has the number of the first turn that shows it."""
    rows = []
    for run_id, spoken in messages_of(runs):
        turn = 1
        for place, message in enumerate(spoken):
            ids = {"run_id": run_id, "turn": turn, "message": place}
            rows.append({**ids, **vars(message), "tool_calls": len(message.calls)})
            turn += len(turns_of(message))
    return frame(rows, LAZY_TABLES["messages"])


def tool_calls_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Build the frame of all calls of tools; a call has the number of the turn that shows it."""
    rows = []
    for run_id, spoken in messages_of(runs):
        shown = [(place, call) for place, message in enumerate(spoken) for _, call in turns_of(message)]
        for turn, (place, call) in enumerate(shown, 1):
            if call is not None:
                rows.append({"run_id": run_id, "turn": turn, "message": place, **vars(call)})
    return frame(rows, LAZY_TABLES["tool_calls"])


def messages_of(runs: pd.DataFrame, options: StorageOptions = None) -> Iterator[tuple[str, list[Message]]]:
    """Yield the messages of each run; none of a run whose file can't be read any more."""
    read = lru_cache(maxsize=1)(read_log)
    with storage(options):
        columns = ["run_id", "source", "trajectories", "part", "format"]
        for run_id, source, others, part, of_format in runs[columns].itertuples(index=False):
            paths = [source, *others] if of_format in SESSION_FORMATS else [*others] or [source]
            try:
                yield run_id, messages(paths, part or "", read)
            except SourceError:
                yield run_id, []
    _opened.cache_clear()
