"""Crafter: session traces, scores, trajectories and the benchmark score.

The names in ``__all__`` are imported on first use: scoring in a terminal needs no pandas.
"""

from evalkit._lazy import door

_PLACES = {
    "format": "WEIGHTS ACHIEVEMENTS ACTIONS TIERS",
    "scoring": "BANDS band",
    "evaluate": "evaluate_event evaluate_trace TraceScore print_trace_evaluation",
    "kind": "evaluate_all_traces KIND load collect episodes_df events_df achievements_df",
    "terminal": "print_evaluation_summary print_breakdown",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES, ["analysis", "benchmark", "figures", "hooks"])
