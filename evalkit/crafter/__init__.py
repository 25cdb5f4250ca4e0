"""Crafter: session traces, scores, trajectories and the benchmark score."""

from evalkit._lazy import door

_PLACES = {
    "format": "WEIGHTS ACHIEVEMENTS ACTIONS TIERS",
    "scoring": "BANDS band",
    "kind": "KIND load collect episodes_df",
    "evaluate": (
        "TraceScore evaluate_event evaluate_trace evaluate_all_traces print_trace_evaluation print_evaluation_summary"
    ),
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES, ["analysis", "benchmark", "figures", "hooks"])
