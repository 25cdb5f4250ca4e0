"""Mindcraft (MineCollab) task runs: agent logs, outcomes, frames, estimates, figures."""

from importlib import import_module
from typing import Any

_WHERE = {
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
    "legacy_summary": "legacy",
    "load": "kind",
    "load_task_definitions": "tasks.definitions",
    "models": "kind",
    "runs_df": "kind",
    "show_conversations": "transcript",
}
_MODULES = ("analysis", "figures")

__all__ = [*_WHERE, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"evalkit.mindcraft.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.mindcraft' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.mindcraft.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
