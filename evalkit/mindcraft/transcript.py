"""Build transcripts from agents' logs, and frames of all messages and commands."""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from weakref import ref

import pandas as pd
from msgspec.structs import replace

from evalkit.io import BrokenFileError, SourceError, decode_json, frame_of, read_files
from evalkit.kinds import Call, RunFiles, Transcript, Turn, canonical
from evalkit.mindcraft import parse
from evalkit.mindcraft.logs import MindcraftLogs
from evalkit.mindcraft.table import FLAG_LABELS, LAZY_TABLES, STATUSES, CompletionStatus

_COMMAND = re.compile(r"(!(?<![\w!]!)[A-Za-z]\w*)(?:\(([^()\n]*)\))?")  # fast, as it begins with a literal
_COMMA = re.compile(r"\s*,\s*")  # between arguments, with spaces that do not matter
# commands that change nothing in the game
LOOKS_OR_TALKS = frozenset((
    "!startConversation", "!endConversation", "!inventory", "!stats", "!nearbyBlocks", "!craftable", "!entities",
    "!modes", "!savedPlaces", "!rememberHere", "!getCraftingPlan", "!searchWiki", "!help", "!goal", "!endGoal", "!stay",
    "!wait", "!stop", "!stfu", "!viewChest", "!checkBlueprint", "!checkBlueprintLevel", "!getBlueprint",
    "!getBlueprintLevel",
))  # fmt: skip
_OUTPUT = re.compile(r"(?<!\s)\s*(?:code|action) output:\s*", re.IGNORECASE)
FAILED = re.compile(  # beginning of the game's answer to a command that failed, or of the answer's last line
    r"\s*(?:failed|could ?n[o']t|could not|cannot|can't|unable|invalid|(?:you )?(?:do not|don't) have"
    r"|you (?:do not|don't|cannot|have no\b)|not enough|there (?:is|are) no|no (?!more )\w+ |path not found(?!, but)"
    r"|collected 0 |!!code threw|code execution timed out|command !\S+ (?:does not|was given|requires)|incorrect"
    r"|block type|unknown|param|error|missing|i can't|does not exist|\S+ is (?:either )?not an? |crafting \S+ requires"
    r"|the \w+ (?:does not|doesn't) (?:have|contain)"
    r"|pathfinding stopped|took to+ long|(?:the )?furnace is currently|inventory (?:is )?full)",
    re.IGNORECASE,
)
# answers that report success: a line, or a list with a heading
_SUCCEEDED = re.compile(r"(?:Successfully|Collected|You have reached|Found) [^\n]*\Z|(?:INVENTORY|NEARBY_\w+|STATS)\n")
_HEARD = re.compile(r"(?P<name>[^\s:]+): \(FROM OTHER BOT\)(?P<text>.*)", re.DOTALL)


_paths: dict[int, tuple[ref[pd.DataFrame], dict[str, list[str]]]] = {}  # paths of each run's logs, by frame of agents


NO_TEXT = "(no text: None)"


class AgentTurns(NamedTuple):
    """The turns of one agent."""

    name: str
    turns: Sequence[tuple[str, str]] = ()  # role, content
    without_text: frozenset[int] = frozenset()  # positions of turns whose content only states that they have no text
    error: str | None = None  # why the log is unreadable; then it has no turns


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Return the transcript of one log, or of all logs of a run on one timeline (see `merge`).

    The final message that decided the run is marked, or the last turn if there is none. An unreadable log becomes a
    turn if there are several logs; otherwise raise SourceError.
    """
    if not paths:
        return Transcript("no agent log", ["no agent log in this folder"], [])
    agents: list[AgentTurns] = []
    records: list[Mapping[str, Any]] = []  # of the readable logs
    for path in paths:
        name = parse.split_stem(parse.stem_of(path))[0]
        try:
            data = read(path)
            decoded = parse.decode_turns(data)
            if decoded:
                record, logged = decoded
                turns = [(str(turn.role), NO_TEXT if turn.content is None else turn.content) for turn in logged]
            else:
                record, turns = parse.decode_log(data), list(map(_role_and_text, _decode(data)))
            agents.append(AgentTurns(name, turns))
            records.append(record)
        except (SourceError, BrokenFileError) as error:
            reason = str(error).removeprefix(f"{path}: ")
            if len(paths) == 1:
                raise SourceError(f"{path}: {reason}") from error
            agents.append(AgentTurns(name, error=reason))
    shown = _turns(agents, is_alone=len(paths) == 1)
    decided = [record for record in records if record["final_system_message"]]
    final = min(decided, key=_rank)["final_system_message"] if decided else None
    is_final = (at for at, turn in enumerate(shown) if turn.role == "system" and turn.text.strip() == final)
    place = next(is_final, len(shown) - 1)
    if shown:
        shown[place] = replace(shown[place], events=(*shown[place].events, "decision"))
    if len(paths) == 1:
        return Transcript(paths[0], _facts(records[0]), shown)
    names = [agent.name for agent in agents if agent.error is None]
    facts = [f"agents: {', '.join(names) or 'none that can be read'}"]
    facts += [f"{name}: {', '.join(_facts(record))}" for name, record in zip(names, records, strict=True)]
    return Transcript(os.path.dirname(paths[0]), facts, shown)


def _rank(record: Mapping[str, Any]) -> tuple[bool, float]:
    """Return a sort key for logs: the log that decides how its run ended comes first."""
    score = record["raw_score"]
    return not record["timed_out"], math.inf if score is None else -score


def run_files(logs: MindcraftLogs, run: Mapping[str, Any]) -> RunFiles:
    """Return the paths of the logs of a run's agents, and its target."""
    agents = logs.agents
    known, paths = _paths.get(id(agents), (None, {}))
    if known is None or known() is not agents:
        paths = {}
        for run_id, source in zip(agents["run_id"].tolist(), agents["source"].tolist(), strict=True):
            paths.setdefault(run_id, []).append(source)
        for key in [key for key, (frame, _) in _paths.items() if frame() is None]:
            del _paths[key]
        _paths[id(agents)] = ref(agents), paths
    target = "blueprint" if run["task_type"] == "construction" else ", ".join(run["target_items"])
    return RunFiles(paths.get(run["run_id"], []), facts=[("target", target)])


def _turns(agents: Sequence[AgentTurns], *, is_alone: bool) -> list[Turn]:
    """Return the turns of all agents on one timeline; if there is only one log, leave out the agent's name."""
    order = merge(agents)
    places = {position: place for place, position in enumerate(order)}
    shown = []
    for place, (i, number) in enumerate(order):
        agent, own = agents[i].name, agents[i].turns
        if agents[i].error is not None:
            text = f"unreadable log: {agents[i].error}"
            shown.append(Turn(agent, "system", text, marks=("unreadable log",), events=("error",)))
            continue
        role, content = own[number]
        actor = "" if is_alone else agent
        same = ""
        marks: tuple[str, ...] = ()
        events: tuple[str, ...] = ()
        call = None
        values: dict[str, Any] = {}
        if role == "system":
            marks = _marks(content)
            if marks and not marks[0].endswith("final message"):
                events = ("error",)
            if marks and (final := parse.read_final(content)) and final.status == CompletionStatus.TIMED_OUT:
                values = {"is_limit": True}
        elif role == "user":
            if heard := _HEARD.match(content):  # another agent's message
                name, same = heard.groups()
                values = {"from": name, "words": same}
                actor = f"{name} → {agent}" if not is_alone else ""
        elif role == "assistant":
            found = list(_COMMAND.finditer(content)) if "!" in content else []
            values = {"words": content}
            if found:  # the game runs only the first command
                first = found[0]
                same = " ".join([f"{match[1]}({match[2] or ''})" for match in found])
                events = ("command",)
                call = Call(first[1], canonical(_COMMA.sub(", ", first[2] or "")), is_in_text=True)
                if number + 1 < len(own):
                    call = _answered(call, *own[number + 1], places[i, number + 1] - place)
                values = {"words": content[: first.start()].strip(), "acts": call.name not in LOOKS_OR_TALKS}
        states_outcome = parse.states_outcome(content) or parse.ENDED.fullmatch(content.strip()) is not None
        turn = Turn(
            actor,
            role,
            content,
            marks=marks,
            events=events,
            same=same,
            agent=agent,
            call=call,
            values=values,
            states_outcome=states_outcome,
        )
        shown.append(turn)
    return shown


def _answered(call: Call, role: str, content: str, turns_later: int) -> Call:
    """Return a call with the game's answer: the next message, if the system wrote it and it is not a final message."""
    if role != "system" or parse.states_outcome(content) or parse.read_final(content):
        return call
    answer = content.strip()
    if "output:" in content.lower():
        answer = _OUTPUT.sub("", content, count=1).strip()
    says_so = FAILED.match(answer) or ("\n" in answer and FAILED.match(answer.rpartition("\n")[2]))
    has_failed = bool(says_so) if says_so or _SUCCEEDED.match(answer) else None
    return replace(call, result=content, has_failed=has_failed, result_after=turns_later)


def merge(agents: Sequence[AgentTurns]) -> list[tuple[int, int]]:
    """Merge the logs of a run's agents, which have no timestamps. Return positions in `agents` and in their turns.

    The number of a turn is its place in the result, from 1. An unreadable log has one turn, before those of others.
    A message that an agent received comes after the turn in which another agent sent it. Apart from that, turns are in
    the order of their positions in each log. System messages that end a log come last.
    """
    order = [(place, 0) for place, agent in enumerate(agents) if agent.error is not None]
    if len(agents) == 1:
        return order or [(0, turn) for turn in range(len(agents[0].turns))]
    # for each receiver, by its turn: the sender of the message and the sender's turn; each turn sends one message
    sources: list[dict[int, tuple[int, int]]] = [{} for _ in agents]
    for to, agent in enumerate(agents):
        readable = [place for place, other in enumerate(agents) if place != to and other.error is None]
        speakers = {agents[place].name: place for place in readable}
        reached = dict.fromkeys(speakers.values(), -1)
        for turn, (role, content) in enumerate(agent.turns):
            heard = _HEARD.match(content) if role == "user" else None
            if not heard:
                continue
            speaker = speakers.get(heard["name"])
            text = heard["text"].strip()
            if speaker is None or not text:
                continue
            spoken = agents[speaker].turns
            later = range(reached[speaker] + 1, len(spoken))
            said = next((at for at in later if spoken[at][0] == "assistant" and text in spoken[at][1]), None)
            if said is not None:
                sources[to][turn] = speaker, said
                reached[speaker] = said
    # for each agent, the position of a system message that ends its log; else -1
    ends = []
    for agent in agents:
        is_ended = agent.turns and agent.turns[-1][0] == "system"
        ends.append(len(agent.turns) - 1 if is_ended else -1)
    done = [0] * len(agents)
    left = {i: len(agent.turns) for i, agent in enumerate(agents) if agent.turns}
    while left:
        ranks = []
        for i in left:
            turn = done[i]
            source = sources[i].get(turn)
            # if all agents wait, for example because a text was sent twice, the first of them continues
            waits = source is not None and done[source[0]] <= source[1]
            ranks.append((waits, turn == ends[i], turn, i))
        *_, first = min(ranks)
        order.append((first, done[first]))
        done[first] += 1
        if done[first] == left[first]:
            del left[first]
    return order


def messages_frame(agents: pd.DataFrame) -> pd.DataFrame:
    """Read all messages of the readable logs again. Return one row per turn, with the columns of `LAZY_TABLES`."""
    logs = list[int]()
    values: dict[str, list[Any]] = {name: [] for name in ("position", "turn", "role", "content", "mark")}
    for log, agent, numbers in _read_again(agents):
        for position, (role, content) in enumerate(agent.turns):
            has_text = position not in agent.without_text
            marks = _marks(content) if role == "system" and has_text else ()
            logs.append(log)
            values["position"].append(position)
            values["turn"].append(numbers[position])
            values["role"].append(role)
            values["content"].append(content if has_text else None)
            values["mark"].append(", ".join(marks))
    return _with_ids("messages", agents, logs, values)


def commands_frame(agents: pd.DataFrame) -> pd.DataFrame:
    """Read all commands in the turns of agents. Return one row per command, with the columns of `LAZY_TABLES`."""
    logs = list[int]()
    values: dict[str, list[Any]] = {name: [] for name in ("position", "turn", "command", "arguments")}
    for log, agent, numbers in _read_again(agents):
        for position, (role, content) in enumerate(agent.turns):
            if role != "assistant" or "!" not in content or position in agent.without_text:
                continue
            for match in _COMMAND.finditer(content):
                logs.append(log)
                values["position"].append(position)
                values["turn"].append(numbers[position])
                values["command"].append(match[1])
                values["arguments"].append(match[2])
    return _with_ids("commands", agents, logs, values)


def _read_again(agents: pd.DataFrame) -> Iterator[tuple[int, AgentTurns, list[int]]]:
    """Yield the position of each log in `agents`, its turns (none if unreadable), and their numbers in the run."""
    logs = zip(agents["run_id"].tolist(), read_files(agents["source"].tolist()), strict=True)
    for _, of_run in groupby(enumerate(logs), lambda log: log[1][0]):
        places = list[int]()
        own = list[AgentTurns]()
        for place, (_, (path, data)) in of_run:
            places.append(place)
            name = parse.split_stem(parse.stem_of(path))[0]
            try:
                turns = _decode(data)
            except BrokenFileError as error:
                own.append(AgentTurns(name, error=str(error)))
            else:
                without = [at for at, turn in enumerate(turns) if not _has_text(turn)]
                own.append(AgentTurns(name, list(map(_role_and_text, turns)), frozenset(without)))
        numbers = [[0] * len(agent.turns) for agent in own]
        for number, (at, turn) in enumerate(merge(own), 1):
            if own[at].error is None:
                numbers[at][turn] = number
        yield from zip(places, own, numbers, strict=True)


def _with_ids(name: str, agents: pd.DataFrame, logs: list[int], values: Mapping[str, Sequence]) -> pd.DataFrame:
    """Build a frame from columns, and add the ids of each row's log, given its position in `agents`."""
    columns = LAZY_TABLES[name]
    ids = agents[[column.name for column in columns if column.name not in values]].take(logs)
    return frame_of({**{str(name): ids[name] for name in ids}, **values}, columns)


def _decode(data: bytes | OSError) -> list:
    if isinstance(data, OSError):
        raise BrokenFileError(str(data))
    value, _ = decode_json(data)
    turns = value.get("turns") if isinstance(value, dict) else value
    if not isinstance(turns, list):
        raise BrokenFileError("no agent log: no list of turns in it")
    return turns


def _role_and_text(turn: object) -> tuple[str, str]:
    """Return a turn's role and content; show content that is not text as its repr."""
    if not isinstance(turn, dict):
        return "(no turn)", repr(turn)
    content = turn.get("content")
    return str(turn.get("role")), content if isinstance(content, str) else f"(no text: {content!r})"


def _has_text(turn: object) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("content"), str)


def _facts(record: Mapping[str, Any]) -> list[str]:
    score = "none" if record["raw_score"] is None else f"{record['raw_score']:g}"
    facts = [f"logged score {score}", f"{record['message_count']} turns"]  # the page of a run shows how it ended
    if record["raw_score"] is None or record["timed_out"]:
        facts.insert(0, STATUSES[parse.status_of(record)].label)
    if record["flags"]:
        facts.append(f"flags: {', '.join(FLAG_LABELS[flag] for flag in record['flags'])}")
    return facts + record["parsing_errors"]


def _marks(content: str) -> tuple[str, ...]:
    """Return the marks of a system message."""
    if parse.FINAL_START.search(content):
        if parse.read_final(content):
            return ("final message",)
        if parse.NEARLY_FINAL.search(content):
            return ("nearly a final message",)
    match = parse.EVENT.search(content) if "\n" in content else parse.EVENT.match(content)
    return (match.lastgroup or "",) if match else ()
