"""Mindcraft (MineCollab) task runs: agent logs, outcomes, frames, estimates, figures."""

from evalkit._lazy import door

_PLACES = {
    "parse": "AgentOutcome analyze_agent_log",
    "table": "CompletionStatus",
    "kind": "KIND agents_df collect load models runs_df",
    "tasks": "TaskDefinitions load_task_definitions",
    "outcomes": (
        "TaskOutcome aggregate_results aggregate_results_to_dataframe extract_task_outcome extract_task_outcomes"
    ),
}
_MODULES = ("analysis", "figures")

__getattr__, __dir__, __all__ = door(__name__, _PLACES, _MODULES)
