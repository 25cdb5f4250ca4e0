"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

from evalkit._lazy import door

_PLACES = {
    "evaluation.evaluate": "evaluate_history evaluate_step format_step_evaluation print_step_evaluation",
    "evaluation.evaluators": "Check check evaluates",
    "evaluation.trajectory": "find_loops plan_adherence score_tool_calls",
    "execution.findings": "create_result_summary extract_key_findings_from_execution",
    "execution.storage": "record_execution save_history store_execution_result",
    "execution.workflow": (
        "WorkflowState build_workflow route_from_executor route_from_step_evaluator simulate_routing "
        "step_evaluator_node"
    ),
    "format": "Options StepRecord",
    "history.records": "History normalise_history",
    "history.values": "to_jsonable",
    "kind": "compare_histories KIND checks_df load load_history steps_df",
    "show": "show_findings show_plots show_step_reports",
}
_MODULES = ("analysis", "contents", "figures", "show")

__getattr__, __dir__, __all__ = door(__name__, _PLACES, _MODULES)
