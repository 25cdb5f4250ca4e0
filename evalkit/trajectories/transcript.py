"""Messages and calls of tools of runs of any format: as transcripts, and as frames."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pandas as pd

from evalkit.io import SourceError, StorageOptions, frame, storage
from evalkit.kinds import Logs, RunFiles, Transcript, Turn, cell_text, read_log
from evalkit.trajectories.chat import Call, Message
from evalkit.trajectories.parse import opened, parse
from evalkit.trajectories.table import LAZY_TABLES

# runs of one file follow each other
_opened = lru_cache(maxsize=1)(lambda path, data: opened(path, data, messages=True))


def run_files(logs: Logs, run: Mapping[str, Any]) -> RunFiles:
    """Return the files with a run's messages, then the file that states its outcome, and its part of that file."""
    facts = [("target", cell_text(run["target"])), ("scorer", cell_text(run["score_key"]))]
    return RunFiles([*run["trajectories"], run["source"]], run["part"] or "", facts)


def transcript(paths: Sequence[str], read: Callable[[str], bytes], part: str = "") -> Transcript:
    """Return the transcript of a run: the messages of the model, the tools it called, and their results."""
    if not part and len(paths) == 1:  # a file that was named, and not a run
        parts = [row[0] for row in parse(paths[0], read(paths[0])).rows.get("runs", ())]
        if len(parts) > 1:
            hint = f"`evalkit trajectories {paths[0]} --list all` lists them, and --run RUN shows one"
            raise SourceError(f"{paths[0]}: holds {len(parts)} runs; {hint}")
        part = next(iter(parts), "")
    turns = [turn for own in paths for message in messages(own, part, read) for turn, _ in turns_of(message)]
    return Transcript(" ".join(filter(None, [paths[0], part])), [f"{len(turns)} turns"], turns)


def turns_of(message: Message) -> list[tuple[Turn, Call | None]]:
    """Return the turns that show a message, of which there is one at least, each with the call that it shows."""
    actor = message.actor or message.role
    if message.role == "error":
        return [(Turn("error", "system", message.text, ("what ended the run",), ("error", "decision")), None)]
    shown: list[tuple[Turn, Call | None]] = []
    if message.reasoning:
        shown.append((Turn(actor, message.role, message.reasoning, ("reasoning",), when=message.when), None))
    if message.text or not (message.calls or message.reasoning):
        shown.append((Turn(actor, message.role, message.text, when=message.when), None))
    for call in message.calls:
        text = f"{call.name} {call.arguments}".strip()
        shown.append((Turn(actor, "action", text, events=("command",), when=message.when), call))
        if call.result is not None:
            marks, events = (("tool error",), ("error",)) if call.is_error else ((), ())
            shown.append((Turn(call.name or "tool", "result", call.result, marks, events), None))
    return shown


def messages(path: str, part: str, read: Callable[[str], bytes]) -> list[Message]:
    """List the messages of a run in a file, and in files that it names if they exist; SourceError for a broken one."""
    folder, own = os.path.split(path)
    visited = {own}  # each file is read once, however often it is named

    def open_named(name: str, *, is_text: bool = False) -> Any:
        if is_text:
            if not {"", ".", ".."} & set(name.split("/")):
                with suppress(SourceError, ValueError):
                    return read(os.path.join(folder, name)).decode("utf-8", "replace")
            return None
        for other in (name, own.partition("trajectory.")[0] + name):  # files of several runs have a name before it
            if os.path.basename(other) == other and other not in visited:
                with suppress(SourceError, ValueError):
                    visited.add(other)
                    return _opened(other, read(os.path.join(folder, other)))[1]
        return None

    try:
        reader, value, _ = _opened(path, read(path))
        return reader.messages(value, part, open_named) if reader else []
    except Exception as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error}") from error


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
        for run_id, source, paths, part in runs[["run_id", "source", "trajectories", "part"]].itertuples(index=False):
            try:
                yield run_id, [message for path in [*paths] or [source] for message in messages(path, part or "", read)]
            except SourceError:
                yield run_id, []
    _opened.cache_clear()
