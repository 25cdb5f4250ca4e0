"""The Crafter benchmark: its official score, files of results, and published scores."""

from evalkit._lazy import door

_PLACES = {
    "scores": (
        "BUDGET CrafterScore pooled_score Progression crafter_score crafter_scores mean_rates_score "
        "pooled_episodes_score progression score_of_rates"
    ),
    "references": "REFERENCES reference_scores",
    "runs": "Runs check_run load_runs",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
