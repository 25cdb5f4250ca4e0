"""Compare what the original MineCollab scripts report for the same logs with our figures."""

from evalkit._lazy import door

_NAMES = {"LegacySummary": "summary", "legacy_summary": "summary"}

__getattr__, __dir__, __all__ = door(__name__, _NAMES)
