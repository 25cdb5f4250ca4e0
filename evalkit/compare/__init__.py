"""Compare models on runs of any kind: ranks, pairs, a baseline, reliability, plans and cost."""

from evalkit._lazy import door

_NAMES = {
    "Leaderboard": "ranks",
    "leaderboard": "ranks",
    "headline": "ranks",
    "rank_table": "ranks",
    "standings": "ranks",
    "findings": "conclusions",
    "pairs": "paired",
    "discordant": "discordance",
    "examples": "discordance",
    "notable": "paired",
    "in_words": "paired",
    "against": "paired",
    "reliability": "paired",
    "plan": "paired",
    "cost": "paired",
    "describe_runs": "evalkit.kinds.runs",
    "select": "evalkit.kinds.runs",
}

__getattr__, __dir__, __all__ = door(__name__, _NAMES, ["figures"])
