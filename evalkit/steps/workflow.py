"""The agent's workflow: its state, the evaluator's node and report, the two routers, and the LangGraph graph."""

import hashlib
import json
import logging
import operator
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_type_hints

from evalkit.io import plain
from evalkit.steps.format import DEFAULTS, HISTORY_KEY, PLAN_KEY, Options, normalise_record
from evalkit.steps.judge import Evaluation, evaluate_step, executions, planned_steps, route_after
from evalkit.steps.literals import as_count, to_jsonable

if TYPE_CHECKING:  # LangGraph is optional
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

RULE = "=" * 60
NODES = ("input_processor", "planner", "executor", "final_evaluator", "response_generator", "plot_integration")
_log = logging.getLogger(__name__)


class WorkflowState(TypedDict, total=False):
    """The keys of the state that the graph needs. Derive a class to add keys, since LangGraph drops undeclared ones.

    `execution_plan` contains the planned steps under ``steps``. The list that `record_execution` returns replaces
    `execution_history`. A reducer appends new evaluations to `step_evaluation_history`.
    """

    question: str
    response: str
    execution_plan: dict[str, Any]
    current_step_index: int
    execution_history: list[dict[str, Any]]
    last_step_evaluation: Mapping[str, Any]
    step_evaluation_history: Annotated[list[Evaluation], operator.add]


def step_evaluator_node(state: Mapping[str, Any], options: Options = DEFAULTS) -> dict[str, Any]:
    """Judge the newest record of a state's history, and log the report.

    The plan is not changed. ``retry_cap_reached`` is true after ``options.retry_cap`` executions of one step in a row
    with the same outcome; a visit without a new record counts as another execution.

    Parameters
    ----------
    state : mapping
        State of the workflow.
    options : Options
        Settings of the judge.

    Returns
    -------
    dict
        An update for LangGraph: `last_step_evaluation` and, for a new record, `step_evaluation_history`.

    Examples
    --------
    >>> update = steps.step_evaluator_node({"execution_history": []})
    """
    history = state.get(HISTORY_KEY)
    if not isinstance(history, list) or not history:
        return {"last_step_evaluation": {"status": "no_history", "critical_failure": False}}
    # position and content identify a record, even after the history was restarted
    text = json.dumps(history[-1], sort_keys=True, default=str)
    record_id = f"{len(history) - 1}-{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    last = state.get("last_step_evaluation") or {}
    if last.get("record_id") == record_id:
        tries = last.get("attempts_at_step", 1) + 1
        stuck = {"attempts_at_step": tries, "retry_cap_reached": tries >= options.retry_cap}
        return {"last_step_evaluation": last | stuck}

    evaluation = evaluate_step(history[-1], state, options)
    backwards = (normalise_record(to_jsonable(raw), options) for raw in reversed(history))
    tries = executions(backwards, as_count(state.get("current_step_index")) or 0)
    evaluation["record_id"] = record_id
    evaluation["attempts_at_step"] = tries
    evaluation["retry_cap_reached"] = tries >= options.retry_cap
    _log.info("%s", format_step_evaluation(evaluation))
    return {"last_step_evaluation": evaluation, "step_evaluation_history": [evaluation]}


def format_step_evaluation(evaluation: Mapping[str, Any]) -> str:
    """Format the report on a step; steps are numbered from 1.

    Parameters
    ----------
    evaluation : mapping
        Result of `evaluate_step`.

    Returns
    -------
    str
        The report, without control characters.

    Examples
    --------
    >>> print(steps.format_step_evaluation(steps.evaluate_step({})))  # doctest: +SKIP
    """

    def shown(value: Any, missing: str = "unknown") -> str:
        return missing if value is None or value == "" else plain(value)

    success, index = evaluation.get("success"), evaluation.get("step_index")
    ended = "❔ (unknown)"
    if success is True:
        ended = "✅ (True)"
    elif success is False:
        ended = "❌ (False)"
    lines = [
        RULE,
        f"📊 STEP EVALUATION REPORT - Step {index + 1 if isinstance(index, int) else '?'}",
        RULE,
        f"Function: {shown(evaluation.get('function_name'), 'none')}",
        f"Success: {ended}",
        f"Result Type: {shown(evaluation.get('result_type'))}",
        f"Timestamp: {shown(evaluation.get('timestamp'))}",
        "",
    ]
    if skipped := evaluation.get("skipped_evaluation"):
        lines += ["⏭️ SKIPPED:", f"   Reason: {shown(skipped.get('skip_reason'))}"]
    elif success is not True:
        category = (evaluation.get("failure_evaluation") or {}).get("error_category")
        critical = "🚨 YES" if evaluation.get("critical_failure") else "⚠️ No"
        lines += ["❌ FAILURE ANALYSIS:", f"   Error Type: {shown(category)}", f"   Critical: {critical}"]
    else:
        lines.append("✅ SUCCESS ANALYSIS:")
        if evaluation.get("silent_failure"):
            lines.append(f"   🔇 Silent failure: {plain(evaluation.get('silent_failure_reason'), 200)}")
        if enrichment := evaluation.get("enrichment_evaluation"):
            lines.append("   🧬 ENRICHMENT RESULTS:")
            for method, n in enrichment["pathway_counts"].items():
                mark = "✅" if n else "⭕"
                if n is None:
                    mark = "❔"
                lines.append(f"      {mark} {plain(method.upper())}: {shown(n)} pathways")
            lines.append(f"   📊 Total Significant: {shown(enrichment['total_significant_pathways'])} pathways")
            lines.append(f"   🎯 Data Quality: {enrichment['data_quality']}")
            if enrichment["top_pathways"]:
                lines.append("   🔝 Sample Pathways:")
            for method, terms in enrichment["top_pathways"].items():
                lines.append(f"      {plain(method.upper())}: {', '.join(map(plain, terms[:2]))}")
        if cells := evaluation.get("process_cells_evaluation"):
            types, n = cells["discovered_cell_types"], cells["cell_type_count"]
            if n is None:  # the list was cut
                n = f"at least {len(types)}" if types else "unknown number of"
            lines += ["   🧬 PROCESS CELLS RESULTS:", f"      Discovered: {n} new cell types"]
            lines += [f"         - {plain(name)}" for name in types[:3]]
    return "\n".join([*lines, RULE])


def print_step_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the report on a step.

    Parameters
    ----------
    evaluation : mapping
        Result of `evaluate_step`.

    Examples
    --------
    >>> steps.print_step_evaluation(steps.evaluate_step({}))  # doctest: +SKIP
    """
    print(format_step_evaluation(evaluation))


def route_from_executor(state: Mapping[str, Any]) -> str:
    """Return the next node after the executor.

    Parameters
    ----------
    state : mapping
        State of the workflow.

    Returns
    -------
    str
        ``step_evaluate`` if there is a history and the index is at most the number of planned steps, else ``complete``.

    Examples
    --------
    >>> steps.route_from_executor({})
    'complete'
    """
    index, n_steps = as_count(state.get("current_step_index")) or 0, len(planned_steps(state.get(PLAN_KEY)))
    return "step_evaluate" if state.get(HISTORY_KEY) and index <= n_steps else "complete"


def route_from_step_evaluator(state: Mapping[str, Any]) -> str:
    """Return the next node after the step evaluator.

    Parameters
    ----------
    state : mapping
        State of the workflow.

    Returns
    -------
    str
        ``abort`` after a critical failure, or if the retry cap is reached before the end of the plan; ``complete`` at
        the end of the plan; else ``continue``.

    Examples
    --------
    >>> steps.route_from_step_evaluator({})
    'complete'
    """
    index, n_steps = as_count(state.get("current_step_index")) or 0, len(planned_steps(state.get(PLAN_KEY)))
    return route_after(state.get("last_step_evaluation") or {}, index, n_steps)


def build_workflow(
    nodes: Mapping[str, Callable[[Any], Any]],
    *,
    state_type: type = WorkflowState,
    checkpointer: "BaseCheckpointSaver | None" = None,
    options: Options = DEFAULTS,
) -> "CompiledStateGraph":
    """Compile the workflow as a graph of LangGraph.

    The executor must store its steps with `record_execution` and advance ``current_step_index``.

    Parameters
    ----------
    nodes : mapping of str to function
        Functions for input_processor, planner, executor, final_evaluator, response_generator and plot_integration;
        step_evaluator only to replace `step_evaluator_node`.
    state_type : type
        A TypedDict that declares at least the keys of `WorkflowState`.
    checkpointer : BaseCheckpointSaver, optional
        Checkpointer of LangGraph.
    options : Options
        Settings of the judge.

    Returns
    -------
    CompiledStateGraph
        The graph.

    Raises
    ------
    ValueError
        If a node is missing, or if `state_type` lacks a required key or its reducer.
    ImportError
        If LangGraph is not installed.

    Examples
    --------
    >>> graph = steps.build_workflow(nodes)  # doctest: +SKIP
    """
    if missing := [name for name in NODES if name not in nodes]:
        raise ValueError(f"nodes are missing: {', '.join(missing)}")
    declared, reduced = get_type_hints(state_type, include_extras=True), "step_evaluation_history"
    needed = (PLAN_KEY, "current_step_index", HISTORY_KEY, "last_step_evaluation", reduced)
    if any(key not in declared for key in needed) or not hasattr(declared[reduced], "__metadata__"):
        raise ValueError(f"{state_type.__name__} must declare {', '.join(needed)}, the last with a reducer")
    try:
        from langgraph.graph import END, START, StateGraph
    except ImportError as error:
        raise ImportError("build_workflow needs LangGraph: pip install langgraph") from error

    graph: Any = StateGraph(state_type)
    for name, node in {"step_evaluator": partial(step_evaluator_node, options=options), **nodes}.items():
        graph.add_node(name, node)
    before = (START, "input_processor", "planner", "executor")
    after = ("final_evaluator", "response_generator", "plot_integration", END)
    for a, b in (*pairwise(before), *pairwise(after)):
        graph.add_edge(a, b)
    to_end = {"step_evaluate": "step_evaluator", "complete": "final_evaluator"}
    graph.add_conditional_edges("executor", route_from_executor, to_end)
    onward = {"abort": "response_generator", "complete": "final_evaluator", "continue": "executor"}
    graph.add_conditional_edges("step_evaluator", route_from_step_evaluator, onward)
    # the retry cap ends every loop, so LangGraph's recursion limit need not and must not stop a long plan
    return graph.compile(checkpointer=checkpointer).with_config(recursion_limit=100_000)
