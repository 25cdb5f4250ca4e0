"""A recorder: it wraps ``crafter.Env``, has hooks judge every action by its own states, and writes session traces."""

import base64
import json
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from evalkit.crafter import ACHIEVEMENTS, ACTIONS
from evalkit.crafter.hooks import Step, annotate

Observations = Literal["images", "no images", "none"]

_RADIUS = 3  # of the local map as text: 7 × 7


class _OrderedSet(dict):
    """The part of a set that the game uses, in order of insertion."""

    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]


def make_env(seed: int, **options: Any) -> Any:
    """Create a game (``crafter.Env`` with these options) whose episodes are the same for the same seed and actions.

    The game keeps the objects of a region in a Python set, whose order changes from process to process, and draws at
    random from it; ordered sets fix that order.
    """
    import crafter

    env = crafter.Env(seed=seed, **options)
    world = env._world
    plain_reset = world.reset

    def reset(seed: int | None = None) -> None:
        plain_reset(seed)
        world._chunks = defaultdict(_OrderedSet)

    world.reset = reset
    return env


class Recorder:
    """One recorded session of the game: after `reset`, `play_turn` until it is `done`, then `save`.

    Each turn is one runtime and one environment event.

    Parameters
    ----------
    seed : int
        Seed of the game; the same seed and actions give the same episode.
    model_name : str
        Who plays.
    difficulty, agent_type, task_id, session_id : str
        As written to the trace; ``""`` makes a task id from the seed, and a new session id.
    observations : {"images", "no images", "none"}
        What states hold: everything, with images as base64 of raw RGB; shape, size and checksum in place of images; or
        nothing (states are null).
    clock : callable
        Returns the time of each event; fixed ones make files reproducible.
    **options
        As for ``crafter.Env``.

    Attributes
    ----------
    env : crafter.Env
        The game; scripted policies may use its state, which the player can't see.
    done : bool
        Whether the episode has ended: by death or after ``length`` steps.
    """

    def __init__(
        self,
        seed: int,
        model_name: str,
        *,
        difficulty: str = "unknown",
        agent_type: str = "recorded",
        task_id: str = "",
        session_id: str = "",
        observations: Observations = "no images",
        clock: Callable[[], datetime] = datetime.now,
        **options: Any,
    ) -> None:
        if observations not in ("images", "no images", "none"):
            raise ValueError(f"unknown observations {observations!r}: 'images', 'no images' or 'none'")
        self.env = make_env(seed, **options)
        self.seed = seed
        self.model_name = model_name
        self.difficulty = difficulty
        self.agent_type = agent_type
        self.task_id = task_id or f"seed-{seed}"
        self.session_id = session_id or f"crafter_episode_{seed}_{model_name}_{uuid4()}"
        self.observations, self.clock = observations, clock
        self.done = True

    def reset(self) -> Any:
        """Start an episode; returns its first image, an array of height × width × 3."""
        self._image = self.env.reset()
        self._started = self.clock().isoformat()
        self._events: list[dict[str, Any]] = []
        self._turns = self._steps = 0
        self._reward = 0.0
        self.done = False
        return self._image

    def play_turn(
        self, actions: Iterable[str | int], *, reasoning: str = "", call: Mapping[str, Any] | None = None
    ) -> Any:
        """Play a turn of one or more actions and record it; stops early if the episode ends.

        Parameters
        ----------
        actions : iterable of str or int
            Names or indices. It may be a generator that reads the game between its actions.
        reasoning : str
            The agent's reasons, in its own words.
        call : mapping, optional
            Metadata of the language model's call that chose the actions, such as ``prompt_tokens``,
            ``completion_tokens`` and ``total_tokens``; it becomes an event of its own.

        Returns
        -------
        The image after the turn.

        Raises
        ------
        RuntimeError
            If no episode is running.
        ValueError
            For an action the game does not have.
        """
        if self.done:
            raise RuntimeError("no episode is running: call reset()")
        steps: list[Step] = []
        image, before = self._image, self.observe()
        reward = 0.0
        for action in actions:
            name = ACTIONS[action] if isinstance(action, int) and 0 <= action < len(ACTIONS) else str(action)
            if name not in ACTIONS:
                raise ValueError(f"the game has no action {action!r}")
            self._image, gained, self.done, _ = self.env.step(ACTIONS.index(name))
            self._steps += 1
            self._reward += float(gained)
            after = self.observe()
            steps.append(Step(before, name, after))
            before, reward = after, reward + float(gained)
            if self.done:
                break
        if steps:
            self._record(steps, (image, self._image), reward, reasoning, call)
        return self._image

    def observe(self) -> dict[str, Any]:
        """Return what a state of the trace holds now, without images."""
        player = self.env._player
        return {
            "inventory": {name: int(n) for name, n in player.inventory.items()},
            "achievements_status": {name: bool(player.achievements[name]) for name in ACHIEVEMENTS},
            "player_position": [int(x) for x in player.pos],
            "player_direction": [int(x) for x in player.facing],
            "num_steps_taken": self._steps,
            "max_steps_episode": int(self.env._length or 0),
            "terminated": bool(player.health <= 0),
            "truncated": self.done and player.health > 0,
            "total_reward_episode": round(self._reward, 2),
            "semantic_map_text": self._map_text(),
        }

    def trace(self) -> dict[str, Any]:
        """Return the session so far as a trace."""
        unlocked = {name: int(self.env._player.achievements[name]) for name in ACHIEVEMENTS}
        config = {"task_instance_id": self.task_id}
        config |= {name: getattr(self, name) for name in ("difficulty", "model_name", "agent_type", "seed")}
        results = {
            "total_reward": round(self._reward, 2),
            "num_achievements": sum(n > 0 for n in unlocked.values()),
            "achievements": {name: n > 0 for name, n in unlocked.items()},
            "achievement_counts": unlocked,
            "rollout_length": self._steps,
            "terminated": self.done,
        }
        return {
            "session_id": self.session_id,
            "session_metadata": [
                {"metadata_type": "episode_config", "data": config, "timestamp": self._started},
                {"metadata_type": "episode_results", "data": results, "timestamp": self._started},
            ],
            "message_history": [],
            "event_history": self._events,
            "created_at": self._started,
        }

    def save(self, folder: str | os.PathLike, indent: int | None = 2) -> str:
        """Write the trace to ``session_<session_id>.json`` in `folder`, which is created if needed; return its path."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in self.session_id)
        path = Path(folder) / f"session_{name}.json"
        separators = (",", ":") if indent is None else None
        path.write_text(json.dumps(self.trace(), indent=indent, separators=separators) + "\n", encoding="utf-8")
        return str(path)

    def _record(
        self, steps: list[Step], images: tuple[Any, Any], reward: float, reasoning: str, call: Mapping[str, Any] | None
    ) -> None:
        names, turn = [step.action for step in steps], {"turn": self._turns}
        ends = {"before": steps[0].before, "after": steps[-1].after}
        states = {when: self._state(end, image) for (when, end), image in zip(ends.items(), images, strict=True)}
        if call is not None:
            metadata = {"model_name": self.model_name, **call, **turn}
            self._events.append(self._event(self.model_name, {}, "", {"llm_call_records": []}, metadata, []))
        runtime = {"actions": [ACTIONS.index(name) for name in names]}
        metadata = {"action_names": names, "action_reasoning": reasoning, **turn}
        entries = annotate(runtime, steps)
        self._events.append(self._event("runtime", states, "observation", runtime, metadata, entries))
        outcome = {"reward": round(reward, 2), "terminated": self.done}
        entries = annotate({**outcome, **{f"system_state_{w}": end for w, end in ends.items()}})
        metadata = {"actions_executed": names, **turn}
        self._events.append(self._event(self.task_id, states, "public_state", outcome, metadata, entries))
        self._turns += 1

    def _event(
        self, system: str, states: dict, shown_as: str, fields: dict, metadata: dict, entries: list[dict]
    ) -> dict[str, Any]:
        time = self.clock().isoformat()
        shown = {w: states.get(w) and {shown_as: states[w]} for w in ("before", "after")}
        return {
            "time_record": {"event_time": time, "message_time": 0},
            "system_instance_id": system,
            **{f"system_state_{when}": state for when, state in shown.items()},
            **fields,
            "metadata": metadata,
            "event_metadata": [{**entry, "timestamp": time} for entry in entries],
        }

    def _state(self, observation: Mapping[str, Any], image: Any) -> dict[str, Any] | None:
        if self.observations == "none":
            return None
        shown = {**observation, "observation_image_shape": list(image.shape)}
        if self.observations == "images":
            return {**shown, "observation_image_base64": base64.b64encode(image.tobytes()).decode("ascii")}
        size = {"observation_image_size_kb": round(image.nbytes / 1024, 1)}
        return {**shown, **size, "observation_image_hash": zlib.crc32(image.tobytes())}

    def _map_text(self) -> str:
        world, (x, y) = self.env._world, self.env._player.pos
        rows = []
        for dy in range(-_RADIUS, _RADIUS + 1):
            cells = (world[(x + dx, y + dy)] for dx in range(-_RADIUS, _RADIUS + 1))
            rows.append([type(thing).__name__.lower() if thing else material or "void" for material, thing in cells])
        seen = sorted({name for row in rows for name in row} - {"player"})
        lines = [f"Local Map View ({len(rows)}x{len(rows)}):", *(" ".join(row) for row in rows)]
        return "\n".join(lines) + f"\nVisible items: {', '.join(seen)}"
