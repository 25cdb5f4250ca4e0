"""Crafter: session traces, scores, trajectories and the benchmark score.

The names in ``__all__`` are imported on first use: scoring in a terminal needs no pandas.
"""

from evalkit._lazy import door

_NAMES = {
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

__getattr__, __dir__, __all__ = door(__name__, _NAMES, _MODULES)
