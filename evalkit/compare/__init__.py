"""Which model is better, on runs of any kind: ranks, pairs, a baseline, reliability, plans and cost."""

from importlib import import_module
from typing import Any

_WHERE = {
    "Leaderboard": "ranks",
    "leaderboard": "ranks",
    "headline": "ranks",
    "rank_table": "ranks",
    "findings": "conclusions",
    "pairs": "paired",
    "discordant": "discordance",
    "notable": "paired",
    "in_words": "paired",
    "against": "paired",
    "reliability": "paired",
    "plan": "paired",
    "cost": "paired",
    "figures": "figures",
}

__all__ = list(_WHERE)


_OF_KINDS = ("describe_runs", "select")
__all__ += _OF_KINDS


def __getattr__(name: str) -> Any:
    if name in _OF_KINDS:
        return getattr(import_module("evalkit.kinds.runs"), name)
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.compare' has no attribute {name!r}")
    module = import_module(f"evalkit.compare.{_WHERE[name]}")
    return module if name == _WHERE[name] == "figures" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
