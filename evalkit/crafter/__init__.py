"""Crafter: session traces, scores, trajectories and the benchmark score.

The names in ``__all__`` are imported when they are first used: scoring in a terminal needs no pandas.
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "WEIGHTS": "format",
    "BANDS": "scoring",
    "ACHIEVEMENTS": "format",
    "ACTIONS": "format",
    "TIERS": "format",
    "evaluate_event": "evaluate",
    "evaluate_trace": "evaluate",
    "evaluate_all_traces": "kind",
    "TraceScore": "evaluate",
    "print_trace_evaluation": "evaluate",
    "print_evaluation_summary": "terminal",
    "print_breakdown": "terminal",
    "KIND": "kind",
    "load": "kind",
    "collect": "kind",
    "episodes_df": "kind",
    "events_df": "kind",
    "achievements_df": "kind",
    "band": "scoring",
}
_MODULES = {
    **{name: name for name in ("analysis", "benchmark", "figures", "hooks", "recorder")},
    "unlocks": "benchmark.unlocks",
}

__all__ = [*_WHERE, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"evalkit.crafter.{_MODULES[name]}")
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.crafter' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.crafter.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
