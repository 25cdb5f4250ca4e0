"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

from importlib import import_module
from typing import Any

_WHERE = {
    "Check": "registry",
    "History": "parse",
    "Options": "format",
    "StepHistories": "table",
    "StepRecord": "format",
    "WorkflowState": "workflow",
    "analysis": "analysis",
    "build_workflow": "workflow",
    "check": "registry",
    "checks_df": "table",
    "collect": "collecting",
    "compare_histories": "comparison",
    "contents": "contents",
    "create_result_summary": "summaries",
    "describe": "describe",
    "evaluate_history": "evaluators",
    "evaluate_step": "evaluators",
    "evaluates": "registry",
    "extract_key_findings_from_execution": "findings",
    "figures": "figures",
    "find_loops": "trajectory",
    "format_step_evaluation": "report",
    "load": "table",
    "load_history": "histories",
    "normalise_history": "records",
    "plan_adherence": "trajectory",
    "print_step_evaluation": "report",
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
    "steps_df": "table",
    "store_execution_result": "storage",
    "to_jsonable": "jsonable",
    "to_otlp": "export",
    "write_otlp": "export",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.steps' has no attribute {name!r}")
    module = import_module(f"evalkit.steps.{_WHERE[name]}")
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return sorted(__all__)
