"""The Crafter benchmark: its official score, files of results, and published scores."""

from evalkit._lazy import door

_NAMES = {
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

__getattr__, __dir__, __all__ = door(__name__, _NAMES)
