"""The real game, made deterministic: the same seed and actions give the same episode."""

from collections import defaultdict
from typing import Any

from evalkit.io import SourceError


def make_env(seed: int, **options: Any) -> Any:
    """Create a game whose episodes are the same for the same seed and actions.

    The game keeps the objects of a region in a Python set, whose order changes from process to process, and draws at
    random from it; ordered sets fix that order.

    Parameters
    ----------
    seed : int
    **options
        As for ``crafter.Env``, such as ``length`` or ``size``.

    Returns
    -------
    crafter.Env
    """
    try:
        import crafter
    except ImportError as error:
        raise SourceError("recording needs the game: pip install 'evalkit[crafter]'") from error
    env = crafter.Env(seed=seed, **options)
    world = env._world
    plain_reset = world.reset

    def reset(seed: int | None = None) -> None:
        plain_reset(seed)
        world._chunks = defaultdict(_OrderedSet)

    world.reset = reset
    return env


class _OrderedSet(dict):
    """The part of a set that the game uses, in order of insertion."""

    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]
