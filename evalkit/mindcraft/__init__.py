"""Mindcraft (MineCollab) task runs: agent logs, outcomes, frames, estimates, figures."""

from evalkit._lazy import door

_NAMES = {
    "AgentOutcome": "agent_log",
    "CompletionStatus": "format",
    "KIND": "kind",
    "TaskDefinitions": "tasks.definitions",
    "TaskOutcome": "runs.outcomes",
    "agents_df": "kind",
    "aggregate_results": "kind",
    "aggregate_results_to_dataframe": "runs.outcomes",
    "analyze_agent_log": "agent_log",
    "collect": "kind",
    "conversation": "transcript",
    "extract_task_outcome": "runs.outcomes",
    "extract_task_outcomes": "runs.outcomes",
    "legacy_summary": "legacy.summary",
    "load": "kind",
    "load_task_definitions": "tasks.definitions",
    "models": "kind",
    "runs_df": "kind",
}
_MODULES = ("analysis", "figures")

__getattr__, __dir__, __all__ = door(__name__, _NAMES, _MODULES)
