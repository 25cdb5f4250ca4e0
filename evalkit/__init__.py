"""From raw logs of LLM agents to tables one can trust, pictures and HTML reports.

The public door: the names in ``__all__`` are imported when they are first used, so that ``import evalkit`` and
``evalkit --help`` stay quick.
"""

from importlib import import_module
from typing import Any

from evalkit._version import __version__

_WHERE = {
    "mindcraft": "evalkit.mindcraft",
    "crafter": "evalkit.crafter",
    "steps": "evalkit.steps",
    "compare": "evalkit.compare",
    "stats": "evalkit.stats",
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

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit' has no attribute {name!r}")
    where, _, attribute = _WHERE[name].partition(":")
    module = import_module(where)
    return module if where == f"evalkit.{name}" else getattr(module, attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
