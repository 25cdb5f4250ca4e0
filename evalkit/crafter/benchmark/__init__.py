"""The Crafter benchmark: its official score, files of results, and published scores."""

from importlib import import_module
from typing import Any

_WHERE = {
    "BUDGET": "scores",
    "CrafterScore": "scores",
    "pooled_score": "scores",
    "Progression": "scores",
    "REFERENCES": "references",
    "Runs": "runs",
    "check_run": "runs",
    "crafter_score": "scores",
    "crafter_scores": "scores",
    "load_runs": "runs",
    "mean_rates_score": "scores",
    "pooled_episodes_score": "scores",
    "progression": "scores",
    "reference_scores": "references",
    "score_of_rates": "scores",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.crafter.benchmark' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.crafter.benchmark.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
