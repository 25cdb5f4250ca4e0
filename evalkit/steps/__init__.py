"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

from importlib import import_module
from typing import Any

_WHERE = {
    "Check": "evaluators",
    "History": "records",
    "KIND": "kind",
    "Options": "format",
    "StepRecord": "format",
    "WorkflowState": "workflow",
    "build_workflow": "workflow",
    "check": "evaluators",
    "checks_df": "kind",
    "compare_histories": "contents",
    "create_result_summary": "findings",
    "evaluate_history": "evaluate",
    "evaluate_step": "evaluate",
    "evaluates": "evaluators",
    "extract_key_findings_from_execution": "findings",
    "find_loops": "trajectory",
    "format_step_evaluation": "evaluate",
    "load": "kind",
    "load_history": "kind",
    "normalise_history": "records",
    "plan_adherence": "trajectory",
    "print_step_evaluation": "evaluate",
    "record_execution": "storage",
    "route_from_executor": "workflow",
    "route_from_step_evaluator": "workflow",
    "save_history": "storage",
    "score_tool_calls": "trajectory",
    "show_findings": "show",
    "show_plots": "show",
    "show_step_reports": "show",
    "simulate_routing": "workflow",
    "step_evaluator_node": "workflow",
    "steps_df": "kind",
    "store_execution_result": "storage",
    "to_jsonable": "values",
    "to_otlp": "export",
    "write_otlp": "export",
}
_MODULES = ("analysis", "contents", "figures", "show")

__all__ = [*_WHERE, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"evalkit.steps.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.steps' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.steps.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
