"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

from evalkit._lazy import door

_PLACES = {
    "judge": "History end_of_route evaluate_history evaluate_step evaluates find_loops plan_adherence",
    "kind": "KIND checks_df load steps_df",
    "record": "Options StepRecord",
    "results": "check",
    "storage": (
        "create_result_summary extract_key_findings_from_execution record_execution save_history store_execution_result"
    ),
    "values": "to_jsonable",
    "workflow": (
        "WorkflowState build_workflow format_step_evaluation print_step_evaluation route_from_executor "
        "route_from_step_evaluator step_evaluator_node"
    ),
}
_MODULES = ("analysis", "figures", "show")

__getattr__, __dir__, __all__ = door(__name__, _PLACES, _MODULES)
