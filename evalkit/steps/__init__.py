"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

from importlib import import_module
from typing import Any

_WHERE = {
    "Check": "evaluation.evaluators",
    "History": "history.records",
    "KIND": "kind",
    "Options": "format",
    "StepRecord": "format",
    "WorkflowState": "execution.workflow",
    "build_workflow": "execution.workflow",
    "check": "evaluation.evaluators",
    "checks_df": "kind",
    "compare_histories": "contents",
    "create_result_summary": "execution.findings",
    "evaluate_history": "evaluation.evaluate",
    "evaluate_step": "evaluation.evaluate",
    "evaluates": "evaluation.evaluators",
    "extract_key_findings_from_execution": "execution.findings",
    "find_loops": "evaluation.trajectory",
    "format_step_evaluation": "evaluation.evaluate",
    "load": "kind",
    "load_history": "kind",
    "normalise_history": "history.records",
    "plan_adherence": "evaluation.trajectory",
    "print_step_evaluation": "evaluation.evaluate",
    "record_execution": "execution.storage",
    "route_from_executor": "execution.workflow",
    "route_from_step_evaluator": "execution.workflow",
    "save_history": "execution.storage",
    "score_tool_calls": "evaluation.trajectory",
    "show_findings": "show",
    "show_plots": "show",
    "show_step_reports": "show",
    "simulate_routing": "execution.workflow",
    "step_evaluator_node": "execution.workflow",
    "steps_df": "kind",
    "store_execution_result": "execution.storage",
    "to_jsonable": "history.values",
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
