"""Generate the sample episodes ``samples:crafter``: real episodes of the game, the same ones on every run.

It needs the extra ``crafter``. Run it from the checkout: ``python -m tools.samples.crafter [FOLDER]``.

Three policies play: a random policy, a forager that lives off the land and reaches easy and medium achievements, and a
miner that works its way to stone and iron tools, which are hard. The two scripted policies see the whole world, so
their scores do not show what an agent could reach.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from evalkit.crafter.format import ACTIONS
from evalkit.crafter.hooks import MOVES
from examples.crafter_recorder.recorder import Observations, Recorder

FOLDER = Path(__file__).parents[2] / "evalkit/samples/crafter"
ACTIONS_PER_TURN = 5

GOALS = {
    "scripted-forager": "collect_wood collect_sapling place_plant collect_drink place_table make_wood_pickaxe eat_cow "
    "make_wood_sword wake_up",
    "scripted-miner": "place_table make_wood_pickaxe make_wood_sword collect_stone place_stone make_stone_pickaxe "
    "make_stone_sword collect_coal place_furnace collect_iron make_iron_pickaxe make_iron_sword collect_diamond "
    "defeat_skeleton",
}

EPISODES: tuple[tuple[str, int, int, Observations], ...] = (  # policy, seed, turns, observations
    *(("random", seed, 12, "no images" if seed == 5 else "none") for seed in range(1, 6)),
    *(("scripted-forager", seed, 30, "none") for seed in range(1, 6)),
    *(("scripted-miner", seed, 50, "none") for seed in range(1, 6)),
)

_SOURCES = {"wood": "tree", "drink": "water", "sapling": "grass"}  # other resources have the same name as their source
_FOES = ("zombie", "skeleton")


class Scripted:
    """A player that sees the whole world and pursues achievements in order, with their prerequisites.

    `rng` decides where to go when there is nothing to do.
    """

    def __init__(self, env: Any, goals: str, rng: Random) -> None:
        from crafter import constants

        self.env = env
        self.goals = goals.split()
        self.rng = rng
        self.rules = constants

    def turn(self) -> Iterator[str]:
        """Yield the actions of a turn. Each is decided after the previous action was played."""
        for _ in range(ACTIONS_PER_TURN):
            yield self._next_action()

    def _next_action(self) -> str:
        player = self.env._player
        if player.sleeping:
            return "noop"
        wishes = [self._defend, self._live]
        wishes += [partial(self._pursue, goal) for goal in self.goals if not player.achievements[goal]]
        return next((action for wish in wishes if (action := wish())), self.rng.choice(list(MOVES)))

    def _defend(self) -> str | None:
        return self._approach(lambda material, thing: _is_a(thing, *_FOES), "do", limit=0)

    def _live(self) -> str | None:
        stock = self.env._player.inventory
        if stock["drink"] < 4:
            return self._pursue("collect_drink")
        return self._pursue("eat_cow") if stock["food"] < 4 else None

    def _pursue(self, goal: str) -> str | None:
        verb, _, what = goal.partition("_")
        if verb == "collect":
            return self._collect(what)
        if verb == "place":
            rule = self.rules.place[what]
            return self._missing(rule["uses"]) or self._approach(
                lambda material, thing: material in rule["where"] and thing is None, goal
            )
        if verb == "make":
            return self._make(what)
        if verb in ("eat", "defeat"):
            return self._approach(lambda material, thing: _is_a(thing, what), "do")
        return "sleep" if self.env._player.inventory["energy"] < 9 else None

    def _collect(self, what: str) -> str | None:
        source = _SOURCES.get(what, what)
        for tool in self.rules.collect[source]["require"]:
            if not self.env._player.inventory[tool]:
                return self._make(tool)
        return self._approach(lambda material, thing: material == source and thing is None, "do")

    def _make(self, what: str) -> str | None:
        rule = self.rules.make[what]
        if action := self._missing(rule["uses"]):
            return action
        near = self.env._world.nearby(self.env._player.pos, 1)[0]
        first, *others = rule["nearby"]
        if first not in near:
            return self._approach(lambda material, thing: material == first, None) or self._pursue(f"place_{first}")
        return next((self._pursue(f"place_{other}") for other in others if other not in near), f"make_{what}")

    def _missing(self, uses: dict[str, int]) -> str | None:
        stock = self.env._player.inventory
        return next((self._collect(item) for item, n in uses.items() if stock[item] < n), None)

    def _approach(self, wanted: Callable[[str, Any], bool], action: str | None, limit: int = 60) -> str | None:
        """Return the next action to reach, face and use the nearest wanted place; None if it can't be reached."""
        if (target := self._beside(wanted, limit)) is None:
            return None
        player, (step, side) = self.env._player, target
        if step is None:
            return action if tuple(player.facing) == MOVES[side] else side
        dx, dy = MOVES[step]
        material, _ = self.env._world[(player.pos[0] + dx, player.pos[1] + dy)]
        return "do" if material == "stone" and tuple(player.facing) == (dx, dy) else step

    def _beside(self, wanted: Callable[[str, Any], bool], limit: int) -> tuple[str | None, str] | None:
        """Find the nearest place with a wanted neighbour. Return the first step to it, and the neighbour's side."""
        facing, start = tuple(self.env._player.facing), tuple(map(int, self.env._player.pos))
        queue: deque[tuple[tuple[int, ...], str | None, int]] = deque([(start, None, 0)])
        seen = {start}
        while queue:
            (x, y), first, far = queue.popleft()
            for side in sorted(MOVES, key=lambda side: far == 0 and MOVES[side] != facing):  # the faced side first
                place = (x + MOVES[side][0], y + MOVES[side][1])
                if wanted(*self.env._world[place]):
                    return first, side
                if far < limit and place not in seen and self._passable(place):
                    seen.add(place)
                    queue.append((place, first or side, far + 1))
        return None

    def _passable(self, place: tuple[int, int]) -> bool:
        material, thing = self.env._world[place]
        if material == "stone":
            return self.env._player.inventory["wood_pickaxe"] > 0
        return thing is None and material in self.rules.walkable


def play(policy: str, seed: int, turns: int, observations: Observations) -> Recorder:
    """Play one episode of at most `turns` turns."""
    ticks = iter(range(10**9))
    start = datetime(2025, 1, 1) + timedelta(days=seed)
    recorder = Recorder(
        seed,
        policy,
        agent_type="random" if policy == "random" else "scripted",
        session_id=f"crafter_episode_{seed}_{policy}",
        observations=observations,
        clock=lambda: start + timedelta(seconds=next(ticks)),
        length=turns * ACTIONS_PER_TURN,
    )
    recorder.reset()
    recorder.difficulty = difficulty(recorder.env)
    rng = Random(seed)
    scripted = None if policy == "random" else Scripted(recorder.env, GOALS[policy], rng)
    while not recorder.done:
        drawn = (rng.choice(ACTIONS) for _ in range(ACTIONS_PER_TURN))
        recorder.play_turn(drawn if scripted is None else scripted.turn())
    return recorder


def difficulty(env: Any) -> str:
    """Rate a world as easy, medium or hard by the distance of the nearest coal and iron from the start."""
    far, (x, y) = 0, env._player.pos
    for material in ("coal", "iron"):
        columns, rows = env._world.mask(0, 64, 0, 64, material).nonzero()
        far += min(abs(columns - x) + abs(rows - y), default=64)
    return "easy" if far < 25 else "medium" if far < 28 else "hard"


def main(folder: str | Path = FOLDER) -> None:
    """Play and write all sample episodes."""
    for policy, seed, turns, observations in EPISODES:
        print(play(policy, seed, turns, observations).save(folder, indent=None))


def _is_a(thing: Any, *kinds: str) -> bool:
    return type(thing).__name__.lower() in kinds


if __name__ == "__main__":
    main(*sys.argv[1:2])
