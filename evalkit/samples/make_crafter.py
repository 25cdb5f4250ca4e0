"""Generate the sample episodes ``samples:crafter``: real episodes of the game, the same ones on every run.

Needs the extra ``crafter``. Run from anywhere: ``python -m evalkit.samples.make_crafter [FOLDER]``.

Three policies play: `random_actions`; a forager, which lives off the land and reaches easy and medium achievements; and
a miner, which works its way to stone and iron tools, which are hard. The scripted ones see the whole world, so their
scores say nothing about what an agent could reach.
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
from evalkit.crafter.recorder import Observations, Recorder

FOLDER = Path(__file__).parent / "crafter"
ACTIONS_PER_TURN = 5

GOALS = {
    "scripted-forager": (
        "collect_wood",
        "collect_sapling",
        "place_plant",
        "collect_drink",
        "place_table",
        "make_wood_pickaxe",
        "eat_cow",
        "make_wood_sword",
        "wake_up",
    ),
    "scripted-miner": (
        "place_table",
        "make_wood_pickaxe",
        "make_wood_sword",
        "collect_stone",
        "place_stone",
        "make_stone_pickaxe",
        "make_stone_sword",
        "collect_coal",
        "place_furnace",
        "collect_iron",
        "make_iron_pickaxe",
        "make_iron_sword",
        "collect_diamond",
        "defeat_skeleton",
    ),
}

EPISODES: tuple[tuple[str, int, int, Observations], ...] = (  # policy, seed, turns, observations
    *(("random", seed, 12, "no images" if seed == 5 else "none") for seed in range(1, 6)),
    *(("scripted-forager", seed, 30, "none") for seed in range(1, 6)),
    *(("scripted-miner", seed, 50, "none") for seed in range(1, 6)),
)

_SOURCES = {"wood": "tree", "drink": "water", "sapling": "grass"}  # sources of resources; others are their own source
_FOES = ("zombie", "skeleton")


class Scripted:
    """A player that sees the whole world and pursues achievements in order, with their prerequisites.

    Parameters
    ----------
    env : crafter.Env
    goals : tuple of str
        Achievements; the first locked one is pursued.
    rng : Random
        Decides where to go when there is nothing to do.
    """

    def __init__(self, env: Any, goals: tuple[str, ...], rng: Random) -> None:
        from crafter import constants

        self.env, self.goals, self.rng, self.rules = env, goals, rng, constants

    def turn(self) -> Iterator[str]:
        """Yield a turn's actions, each decided after the one before was played."""
        for _ in range(ACTIONS_PER_TURN):
            yield self.next_action()

    def next_action(self) -> str:
        """Decide on one action."""
        player = self.env._player
        if player.sleeping:
            return "noop"
        wishes = [self._defend, self._live]
        wishes += [partial(self._pursue, goal) for goal in self.goals if not player.achievements[goal]]
        return next((action for wish in wishes if (action := wish())), self.rng.choice(list(MOVES)))

    def _defend(self) -> str | None:
        near = self._beside(lambda material, thing: _is_a(thing, *_FOES), limit=0)
        return near and self._use(near, "do")

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
            return self._missing(self.rules.place[what]["uses"]) or self._place(what)
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

    def _place(self, what: str) -> str | None:
        where = self.rules.place[what]["where"]
        return self._approach(lambda material, thing: material in where and thing is None, f"place_{what}")

    def _approach(self, wanted: Callable[[str, Any], bool], action: str | None) -> str | None:
        """Go next to the nearest wanted place, face it and act; None if it can't be reached."""
        target = self._beside(wanted)
        return target and self._use(target, action)

    def _use(self, target: tuple[str | None, str], action: str | None) -> str | None:
        step, side = target
        if step is not None:
            return self._walk(step)
        return action if tuple(self.env._player.facing) == MOVES[side] else side

    def _walk(self, step: str) -> str:
        """Step, or dig if there is stone in the way."""
        player, (dx, dy) = self.env._player, MOVES[step]
        material, _ = self.env._world[(player.pos[0] + dx, player.pos[1] + dy)]
        return "do" if material == "stone" and tuple(player.facing) == (dx, dy) else step

    def _beside(self, wanted: Callable[[str, Any], bool], limit: int = 60) -> tuple[str | None, str] | None:
        """Search outwards for a place with a wanted neighbour; return the first step there and the neighbour's side."""
        x, y = self.env._player.pos
        start = int(x), int(y)
        queue: deque[tuple[tuple[int, int], str | None, int]] = deque([(start, None, 0)])
        seen = {start}
        while queue:
            (x, y), first, far = queue.popleft()
            for side in self._sides(far):
                place = (x + MOVES[side][0], y + MOVES[side][1])
                if wanted(*self.env._world[place]):
                    return first, side
                if far < limit and place not in seen and self._passable(place):
                    seen.add(place)
                    queue.append((place, first or side, far + 1))
        return None

    def _sides(self, far: int) -> list[str]:
        """Return the sides of a place; at the player's own place, the faced side first."""
        facing = tuple(self.env._player.facing)
        return sorted(MOVES, key=lambda side: MOVES[side] != facing) if far == 0 else list(MOVES)

    def _passable(self, place: tuple[int, int]) -> bool:
        material, thing = self.env._world[place]
        if material == "stone":
            return self.env._player.inventory["wood_pickaxe"] > 0
        return thing is None and material in self.rules.walkable


def random_actions(rng: Random) -> list[str]:
    """Draw a turn's actions."""
    return [rng.choice(ACTIONS) for _ in range(ACTIONS_PER_TURN)]


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
        recorder.play_turn(random_actions(rng) if scripted is None else scripted.turn())
    return recorder


def difficulty(env: Any) -> str:
    """Rate a world as easy, medium or hard by the distance of the nearest coal and iron from the start."""
    x, y = env._player.pos
    far = 0
    for material in ("coal", "iron"):
        columns, rows = env._world.mask(0, 64, 0, 64, material).nonzero()
        far += min((abs(int(a) - x) + abs(int(b) - y) for a, b in zip(columns, rows, strict=True)), default=64)
    return "easy" if far < 25 else "medium" if far < 28 else "hard"


def main(folder: str | Path = FOLDER) -> None:
    """Play and write all sample episodes."""
    for policy, seed, turns, observations in EPISODES:
        print(play(policy, seed, turns, observations).save(folder, indent=None))


def _is_a(thing: Any, *kinds: str) -> bool:
    return type(thing).__name__.lower() in kinds


if __name__ == "__main__":
    main(*sys.argv[1:2])
