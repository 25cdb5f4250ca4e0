"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

from evalkit._lazy import door

_NAMES = {
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

__getattr__, __dir__, __all__ = door(__name__, _NAMES, _MODULES)
