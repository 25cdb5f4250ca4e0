"""Mindcraft (MineCollab) task runs: agent logs, outcomes, frames, estimates, figures."""

from evalkit._lazy import door

_PLACES = {
    "agent_log": "AgentOutcome analyze_agent_log",
    "format": "CompletionStatus",
    "kind": "KIND agents_df aggregate_results collect load models runs_df",
    "tasks.definitions": "TaskDefinitions load_task_definitions",
    "outcomes": "TaskOutcome aggregate_results_to_dataframe extract_task_outcome extract_task_outcomes",
    "transcript": "conversation",
}
_MODULES = ("analysis", "figures")

__getattr__, __dir__, __all__ = door(__name__, _PLACES, _MODULES)
