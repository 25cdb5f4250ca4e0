"""What the original MineCollab scripts say of the same logs, beside ours."""

from importlib import import_module
from typing import Any

_WHERE = {"LegacySummary": "summary", "legacy_summary": "summary"}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.mindcraft.legacy' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.mindcraft.legacy.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
