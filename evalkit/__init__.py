"""From raw logs of LLM agents to tables one can trust, pictures and HTML reports.

The names in ``__all__`` are imported on first use, so that ``import evalkit`` and ``evalkit --help`` stay fast.
"""

from evalkit._lazy import door

_PLACES = {
    "evalkit._version": "__version__",
    "evalkit.evidence": "Evidence show_pairs show_runs",
    "evalkit.kinds.pipeline": "load",
    "evalkit.io": "own_sources",
    "evalkit.display": (
        "headline provenance publish show_answer show_details show_figure show_findings show_table show_text"
    ),
}
_PACKAGES = ("mindcraft", "crafter", "steps", "trajectories", "compare", "stats")

__getattr__, __dir__, __all__ = door(__name__, _PLACES, _PACKAGES)
