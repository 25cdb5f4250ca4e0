"""Transcripts of agents' logs, and frames of all messages and commands."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from evalkit.io import BrokenFileError, SourceError, decode_json, frame_of, read_files, resolve
from evalkit.kinds import Logs, RunFiles, Transcript, Turn
from evalkit.kinds.transcript import read_log as read_bytes
from evalkit.mindcraft.format import ANYTHING, EVENT, NEARLY_FINAL, STATUSES, name_and_number
from evalkit.mindcraft.parse import AgentOutcome, agent_outcome, read_final, read_log
from evalkit.mindcraft.table import LAZY_TABLES

_COMMAND = re.compile(r"(?<![\w!])(![A-Za-z]\w*)(?:\(([^()\n]*)\))?")
_HEARD = re.compile(r"(?P<name>[^\s:]+): \(FROM OTHER BOT\)(?P<text>.*)", re.DOTALL)


class AgentTurns(NamedTuple):
    """The turns of one agent."""

    name: str
    turns: Sequence[tuple[str, str]]  # role, content


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Return the transcript of one log, or of all logs of a run on one timeline; see `merge`.

    The final message that decided the run is marked: one of a time-out, else that of the highest score. Without any,
    the last turn is marked. Of several logs, one that can't be read is a turn that says why; of one, a SourceError.
    """
    if not paths:
        return Transcript("no agent log", ["no agent log in this folder"], [])
    if len(paths) == 1:
        data = read(paths[0])
        log, outcome = _turns(paths[0], data), agent_outcome(paths[0], read_log(data))
        shown = [_turn("", role, content) for role, content in log]
        return Transcript(paths[0], _facts(outcome, len(log)), _with_decision(shown, outcome["final_system_message"]))
    agents, outcomes, broken = [], [], []
    for path in paths:
        name, _ = name_and_number(path)
        try:
            data = read(path)
            agents.append(AgentTurns(name, _turns(path, data)))
        except SourceError as error:
            broken.append(Turn(name, "system", f"log can't be read: {error}", ("unreadable log",), ("error",)))
        else:
            outcomes.append(agent_outcome(path, read_log(data)))
    turns = [_turn(agents[i].name, *agents[i].turns[place]) for i, place in merge(agents)]
    facts = [f"agents: {', '.join(agent.name for agent in agents) or 'none that can be read'}"]
    facts += [f"{one['agent_name']}: {', '.join(_facts(one, one['message_count']))}" for one in outcomes]
    decided = [one for one in outcomes if one["final_system_message"]]
    decided.sort(key=lambda one: (not one["timed_out"], one["raw_score"] is None, -(one["raw_score"] or 0.0)))
    text = decided[0]["final_system_message"] if decided else None
    return Transcript(os.path.dirname(paths[0]), facts, _with_decision([*broken, *turns], text))


def run_files(logs: Logs, run: Mapping[str, Any]) -> RunFiles:
    """Return the paths of the logs of a run's agents."""
    return RunFiles(logs.agents.loc[logs.agents["run_id"] == run["run_id"], "source"].tolist())


def _turn(agent: str, role: str, content: str) -> Turn:
    """Return a turn; `agent` is empty if a log is shown by itself."""
    called = [f"{match[1]}({match[2] or ''})" for match in _COMMAND.finditer(content)] if role == "assistant" else []
    heard = _HEARD.match(content) if role == "user" else None  # another agent's message
    marks = _marks(role, content)
    is_trouble = bool(marks) and not marks[0].endswith("final message")
    actor = f"{heard['name']} → {agent}" if agent and heard else agent
    events = ("command",) * bool(called) + ("error",) * is_trouble
    return Turn(actor, role, content, marks, events, same=heard["text"] if heard else " ".join(called))


def _with_decision(turns: list[Turn], text: str | None) -> list[Turn]:
    """Mark the turn that decided: the first with the final message, else the last one."""
    is_final = (at for at, turn in enumerate(turns) if turn.role == "system" and turn.text.strip() == text)
    place = next(is_final, len(turns) - 1)
    if turns:
        turns[place] = turns[place]._replace(events=(*turns[place].events, "decision"))
    return turns


def merge(agents: Sequence[AgentTurns]) -> list[tuple[int, int]]:
    """Merge the logs of a run's agents into one timeline: positions in `agents` and in the turns of each.

    Turns have no timestamps. A message that an agent received comes after the turn of the agent that sent it. Where
    nothing links two agents, their logs are interleaved from their first turns; system messages that end a log come
    last.
    """
    sources = {(to, turn): place for to in range(len(agents)) for turn, place in _heard_by(agents, to).items()}
    done, order = [0] * len(agents), []

    def place(agent: int) -> tuple[bool, int, int]:
        """Return the sort key of an agent's next turn; a system message that ends its log comes after all else."""
        turns, turn = agents[agent].turns, done[agent]
        return turn + 1 == len(turns) and turns[turn][0] == "system", turn, agent

    for _ in range(sum(len(agent.turns) for agent in agents)):
        left = [i for i, agent in enumerate(agents) if done[i] < len(agent.turns)]
        sent = {i: sources.get((i, done[i])) for i in left}
        ready = [i for i, source in sent.items() if source is None or done[source[0]] > source[1]]
        first = min(ready or left, key=place)  # turns that wait for each other come from texts sent twice: none waits
        order.append((first, done[first]))
        done[first] += 1
    return order


def _heard_by(agents: Sequence[AgentTurns], to: int) -> dict[int, tuple[int, int]]:
    """Find the turns that sent the messages an agent received; each turn sends a message once."""
    names = {agent.name: speaker for speaker, agent in enumerate(agents) if speaker != to}
    reached = dict.fromkeys(names.values(), -1)
    sent_by = {}
    for turn, (role, content) in enumerate(agents[to].turns):
        heard = _HEARD.match(content) if role == "user" else None
        speaker = names.get(heard["name"]) if heard else None
        text = heard["text"].strip() if heard else ""
        if speaker is None or not text:
            continue
        spoken = agents[speaker].turns
        later = range(reached[speaker] + 1, len(spoken))
        place = next((at for at in later if spoken[at][0] == "assistant" and text in spoken[at][1]), None)
        if place is not None:
            sent_by[turn], reached[speaker] = (speaker, place), place
    return sent_by


def conversation(path: str | os.PathLike, last: int | None = None, width: int | None = 2000) -> str:
    """Format a log as plain text: outcome, flags, then its turns, with the final message marked.

    Parameters
    ----------
    path : str or path
    last : int, optional
        Show only this many turns, from the end.
    width : int, optional
        Characters kept of each turn; None for all.

    Returns
    -------
    str
        Free of control characters; only a turn's first line begins at the margin, so that no turn can look like two.

    Raises
    ------
    SourceError
        If the file is missing, broken, a folder, or holds no list of turns.
    """
    return transcript([resolve(path)], read_bytes).text(last, width)


def messages_frame(agents: pd.DataFrame) -> pd.DataFrame:
    """Read all messages of logs again, but for those that can't be read: a row per turn, columns as `LAZY_TABLES`."""
    rows = []
    for log, turn, role, content in _read_again(agents):
        rows.append((log, turn, role, content, ", ".join(_marks(role, content or ""))))
    return _with_ids("messages", agents, rows)


def commands_frame(agents: pd.DataFrame) -> pd.DataFrame:
    """Read all commands in the agents' own turns: a row per command, with the columns of `LAZY_TABLES`."""
    rows: list[tuple] = []
    for log, turn, role, content in _read_again(agents):
        if role == "assistant" and content and "!" in content:
            rows += [(log, turn, *match.groups()) for match in _COMMAND.finditer(content)]
    return _with_ids("commands", agents, rows)


def _read_again(agents: pd.DataFrame) -> Iterator[tuple[int, int, str, str | None]]:
    """Read the turns of all logs: the places of the log and of the turn in it, role, content."""
    for log, (_, data) in enumerate(read_files(agents["source"].tolist())):
        with suppress(BrokenFileError):
            for place, turn in enumerate(_decode(data)):
                yield (log, place, *_role_and_content(turn))


def _with_ids(name: str, agents: pd.DataFrame, rows: list[tuple]) -> pd.DataFrame:
    """Build a frame of rows that begin with the position of their log, each with the ids of that log."""
    columns = LAZY_TABLES[name]
    ids = [column.name for column in columns if column.name in agents]
    own = [column.name for column in columns if column.name not in agents]
    logs, *values = zip(*rows, strict=True) if rows else [()] * (len(own) + 1)
    taken = agents[ids].take(logs)
    return frame_of({**dict(taken.items()), **dict(zip(own, values, strict=True))}, columns)


def _decode(data: bytes | OSError) -> list:
    if isinstance(data, OSError):
        raise BrokenFileError(str(data))
    value, _ = decode_json(data, ANYTHING)
    turns = value.get("turns") if isinstance(value, dict) else value
    if not isinstance(turns, list):
        raise BrokenFileError("no agent log: no list of turns in it")
    if turns and all(isinstance(turn, dict) and not turn.keys() & {"role", "content"} for turn in turns):
        raise BrokenFileError("no agent log: nothing in it has a role or a content")
    return turns


def _role_and_content(turn: object) -> tuple[str, str | None]:
    if not isinstance(turn, dict):
        return "(no turn)", None
    content = turn.get("content")
    return str(turn.get("role")), content if isinstance(content, str) else None


def _turns(path: str, data: bytes) -> list[tuple[str, str]]:
    """Read the turns of a log as (role, content); content other than text is shown as JSON-like text."""
    turns = []
    try:
        for turn in _decode(data):
            role, content = _role_and_content(turn)
            if content is None:
                content = f"(no text: {turn.get('content')!r})" if isinstance(turn, dict) else repr(turn)
            turns.append((role, content))
    except BrokenFileError as error:
        raise SourceError(f"{path}: {error}") from error
    return turns


def _facts(outcome: AgentOutcome, turns: int) -> list[str]:
    score = "none" if outcome["raw_score"] is None else f"{outcome['raw_score']:g}"
    facts = [STATUSES[outcome["completion_status"]].label, f"score {score}", f"{turns} turns"]
    return facts + [f"flags: {' '.join(outcome['flags'])}"] * bool(outcome["flags"]) + outcome["parsing_errors"]


def _marks(role: str, content: str) -> tuple[str, ...]:
    if role != "system":
        return ()
    if read_final(content):
        return ("final message",)
    if NEARLY_FINAL.search(content):
        return ("nearly a final message",)
    match = EVENT.search(content)
    return (match.lastgroup or "",) if match else ()
