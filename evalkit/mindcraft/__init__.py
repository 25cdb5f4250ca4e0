"""Mindcraft (MineCollab) task runs: agent logs, outcomes, frames, estimates, figures."""

from importlib import import_module
from typing import Any

_WHERE = {
    "AgentOutcome": "parse",
    "CompletionStatus": "format",
    "MindcraftLogs": "logs",
    "TaskDefinitions": "definitions",
    "TaskOutcome": "outcome",
    "agents_df": "logs",
    "aggregate_results": "logs",
    "aggregate_results_to_dataframe": "table",
    "analysis": "analysis",
    "analyze_agent_log": "parse",
    "collect": "collecting",
    "conversation": "reading",
    "extract_task_outcome": "outcome",
    "extract_task_outcomes": "outcome",
    "figures": "figures",
    "legacy_summary": "legacy",
    "load": "logs",
    "load_task_definitions": "definitions",
    "models": "logs",
    "runs_df": "logs",
    "show_conversations": "reading",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.mindcraft' has no attribute {name!r}")
    module = import_module(f"evalkit.mindcraft.{_WHERE[name]}")
    return getattr(module, name, module)
