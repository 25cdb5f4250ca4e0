"""The logs of a run's agents as one timeline.

Turns carry no time. A message that an agent heard stands behind the turn of the other agent that said it. Where nothing
ties two agents together, their logs are laid side by side from their first turns; system messages that end a log come
last.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

HEARD = "(FROM OTHER BOT)"  # what stands between the name and the words of another agent
_HEARD = re.compile(rf"(?P<name>[^\s:]+): {re.escape(HEARD)}(?P<text>.*)", re.DOTALL)


class AgentTurns(NamedTuple):
    """The turns of one agent, each as (role, content)."""

    name: str
    turns: Sequence[tuple[str, str]]


def sender_of(role: str, content: str) -> str:
    """Name the agent whose message a turn passes on; empty where it is none."""
    heard = _HEARD.match(content) if role == "user" else None
    return heard["name"] if heard else ""


def merge(agents: Sequence[AgentTurns]) -> list[tuple[int, int]]:
    """Order the turns of all agents.

    Returns
    -------
    list of (agent, turn)
        Places in `agents` and in the turns of each; every turn once, those of one agent in their order.
    """
    said = {(to, turn): place for to in range(len(agents)) for turn, place in _heard_by(agents, to).items()}
    done, order = [0] * len(agents), []
    for _ in range(sum(len(agent.turns) for agent in agents)):
        left = [own for own, agent in enumerate(agents) if done[own] < len(agent.turns)]
        ready = [own for own in left if _is_said(said.get((own, done[own])), done)]
        # turns that wait for each other come from texts that were said twice: then none waits
        first = min(ready or left, key=lambda own: (_place(agents[own].turns, done[own]), own))
        order.append((first, done[first]))
        done[first] += 1
    return order


def _place(turns: Sequence[tuple[str, str]], turn: int) -> tuple[bool, int]:
    """Say where in its log a turn stands; a system message that ends it comes behind all that others did."""
    return turn + 1 == len(turns) and turns[turn][0] == "system", turn


def _is_said(place: tuple[int, int] | None, done: Sequence[int]) -> bool:
    return place is None or done[place[0]] > place[1]


def _heard_by(agents: Sequence[AgentTurns], to: int) -> dict[int, tuple[int, int]]:
    """Find for the messages that an agent heard the turns that said them; each turn says a message once."""
    names = {agent.name: own for own, agent in enumerate(agents) if own != to}
    reached = dict.fromkeys(names.values(), -1)
    found = {}
    for turn, (role, content) in enumerate(agents[to].turns):
        heard = _HEARD.match(content) if role == "user" else None
        own = names.get(heard["name"]) if heard else None
        text = heard["text"].strip() if heard else ""
        if own is None or not text:
            continue
        spoken = agents[own].turns
        later = range(reached[own] + 1, len(spoken))
        place = next((at for at in later if spoken[at][0] == "assistant" and text in spoken[at][1]), None)
        if place is not None:
            found[turn], reached[own] = (own, place), place
    return found
