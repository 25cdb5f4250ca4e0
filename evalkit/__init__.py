"""From raw logs of LLM agents to tables one can trust, pictures and HTML reports.

The names in ``__all__`` are imported on first use, so that ``import evalkit`` and ``evalkit --help`` stay fast.
"""

from evalkit._lazy import door

_NAMES = {
    "__version__": "evalkit._version",
    "Evidence": "evalkit.evidence",
    "load": "evalkit.kinds.logs:load_source",
    "own_sources": "evalkit.io",
    "show_details": "evalkit.display",
    "show_findings": "evalkit.display",
    "show_figure": "evalkit.display",
    "show_pairs": "evalkit.evidence",
    "show_runs": "evalkit.evidence",
    "show_table": "evalkit.display",
    "show_text": "evalkit.display",
    "publish": "evalkit.display",
    "headline": "evalkit.display",
    "provenance": "evalkit.display",
}
_PACKAGES = ("mindcraft", "crafter", "steps", "compare", "stats")

__getattr__, __dir__, __all__ = door(__name__, _NAMES, _PACKAGES)
