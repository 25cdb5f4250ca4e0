"""One agent log as a conversation, for reading why a run failed."""

import os
from typing import TYPE_CHECKING

from evalkit.io import BrokenFileError, SourceError, decode_json, is_url, plain, read_file, resolve
from evalkit.mindcraft.finals import read_final
from evalkit.mindcraft.format import ANYTHING, EVENT, NEARLY_FINAL
from evalkit.mindcraft.parse import describe, parse_file

if TYPE_CHECKING:
    import pandas as pd

MARKS = {"system": "·", "assistant": "»", "user": "«"}


def conversation(path: str | os.PathLike, last: int | None = None, width: int | None = 2000) -> str:
    """Write a log as plain text: outcome, flags, then its turns, the final message marked.

    Parameters
    ----------
    path : str or path
    last : int, optional
        Only so many turns, from the end.
    width : int, optional
        Characters kept of each turn; None for all.

    Returns
    -------
    str
        Free of control characters; only a turn's first line begins at the margin, so that no turn can pass for two.

    Raises
    ------
    SourceError
        Where the file is missing, broken, a folder, or holds no list of turns.
    """
    source = resolve(path)
    try:
        data = read_file(source)
    except IsADirectoryError as error:
        raise SourceError(f"{source}: a folder; name one log in it") from error
    except OSError as error:
        raise SourceError(f"{source}: {describe(error)}") from error
    turns = _turns(source, data)
    outcome = parse_file(source, data, as_log=True).outcome
    score = "none" if outcome["raw_score"] is None else f"{outcome['raw_score']:g}"
    head = [f"status {outcome['completion_status']}", f"score {score}", f"{len(turns)} turns"]
    head += [f"flags: {' '.join(outcome['flags'])}"] * bool(outcome["flags"]) + outcome["parsing_errors"]
    lines = [source, ", ".join(head), ""]
    shown = turns if last is None else turns[-last:]
    if len(shown) < len(turns):
        lines.append(f"… {len(turns) - len(shown)} earlier turns")
    for role, content in shown:
        text = plain(content, width, keep_lines=True).replace("\n", "\n    ")
        lines.append(f"{MARKS.get(role, '?')} {plain(role)}: {text}{_note(role, content)}")
    return "\n".join([*map(plain, lines[:2]), *lines[2:]]) + "\n"


def _turns(source: str, data: bytes) -> list[tuple[str, str]]:
    """Read the turns of a log as (role, content); content that is no text is shown as JSON-like text."""
    try:
        value, _ = decode_json(data, ANYTHING)
    except BrokenFileError as error:
        raise SourceError(f"{source}: {error}") from error
    turns = value.get("turns") if isinstance(value, dict) else value
    if not isinstance(turns, list):
        raise SourceError(f"{source}: no agent log: no list of turns in it")
    if turns and all(isinstance(turn, dict) and not turn.keys() & {"role", "content"} for turn in turns):
        raise SourceError(f"{source}: no agent log: nothing in it has a role or a content")
    return [_turn(turn) for turn in turns]


def _turn(turn: object) -> tuple[str, str]:
    if not isinstance(turn, dict):
        return "(no turn)", repr(turn)
    content = turn.get("content")
    return str(turn.get("role")), content if isinstance(content, str) else f"(no text: {content!r})"


def _note(role: str, content: str) -> str:
    if role != "system":
        return ""
    if read_final(content):
        return "   ◀ final message"
    if NEARLY_FINAL.search(content):
        return "   ◀ nearly a final message"
    match = EVENT.search(content)
    return f"   ◀ {match.lastgroup}" if match else ""


def show_conversations(runs: "pd.DataFrame", agents: "pd.DataFrame", last: int = 15, limit: int = 60) -> None:
    """Show the end of every run's conversations in a notebook, each run folded under its title.

    Parameters
    ----------
    runs : DataFrame
        The runs to show, as `failed_runs` gives them.
    agents : DataFrame
        All agent logs, as `agents_df` gives them.
    last : int
        Turns of each agent.
    limit : int
        At most so many runs; a line says how many were left out.
    """
    from evalkit.display import show_details, show_text

    keys = ["source", "task_id", "repetition"]
    folders = agents.assign(file=agents["source"], source=agents["source"].map(os.path.dirname))
    logs = folders.groupby(keys)["file"].apply(list).to_dict()
    shown = [(run, logs.get(tuple(run[key] for key in keys), [])) for run in runs.head(limit).to_dict("records")]
    named = [file for _, files in shown for file in files]
    if named and not any(is_url(file) or os.path.exists(file) for file in named):
        show_text(
            f"The logs are not where they were read ({plain(named[0])} and all others): there is nothing to show."
        )
        return
    for run, files in shown:
        title = f"{run['task_id']}, repetition {run['repetition']}: {run['overall_completion_status']}"
        show_details(title, "\n".join(_or_reason(file, last) for file in files) or "No agent log in this folder.")
    if len(runs) > limit:
        show_text(f"{len(runs) - limit} more runs are not shown.")
    if not len(runs):
        show_text("No runs of this kind.")


def _or_reason(path: str, last: int) -> str:
    try:
        return conversation(path, last)
    except SourceError as error:
        return f"{error}\n"
