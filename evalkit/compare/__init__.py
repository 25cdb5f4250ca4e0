"""Compare models on runs of any kind: ranks, pairs, a baseline, reliability, plans and cost."""

from evalkit._lazy import door

_PLACES = {
    "ranks": (
        "Leaderboard answer_table leaderboard headline rank_table standings findings "
        "pairs notable pairs_text against discordant examples reliability plan cost"
    ),
    "versions": "changed_tasks",
    "items": "task_items fewer_tasks",
    "budget": "at_budget",
    "evalkit.kinds.estimates": "denominators usage",
    "evalkit.kinds.runs": "describe_runs select",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES, ["figures"])
