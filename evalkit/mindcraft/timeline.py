"""Merge the logs of a run's agents into one timeline.

Turns have no timestamps. A message that an agent received comes after the turn of the agent that sent it. Where nothing
links two agents, their logs are interleaved from their first turns; system messages that end a log come last.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

HEARD = "(FROM OTHER BOT)"  # the text between the name and the message of another agent
_HEARD = re.compile(rf"(?P<name>[^\s:]+): {re.escape(HEARD)}(?P<text>.*)", re.DOTALL)


class AgentTurns(NamedTuple):
    """The turns of one agent."""

    name: str
    turns: Sequence[tuple[str, str]]  # role, content


def sender_of(role: str, content: str) -> str:
    """Return the agent whose message a turn relays; empty if it relays none."""
    heard = _HEARD.match(content) if role == "user" else None
    return heard["name"] if heard else ""


def merge(agents: Sequence[AgentTurns]) -> list[tuple[int, int]]:
    """Order the turns of all agents.

    Returns
    -------
    list of (agent, turn)
        Positions in `agents` and in the turns of each; every turn once, those of one agent in their order.
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
