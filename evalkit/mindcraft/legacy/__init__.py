"""What the original MineCollab scripts say of the same logs, beside ours."""

from evalkit._lazy import door

_NAMES = {"LegacySummary": "summary", "legacy_summary": "summary"}

__getattr__, __dir__, __all__ = door(__name__, _NAMES)
