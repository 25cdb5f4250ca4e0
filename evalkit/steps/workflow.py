"""The agent's workflow: its state, the evaluator's node, the two routers, and the graph on LangGraph.

Only `build_workflow` needs LangGraph (extra `workflow`); nodes, routers and the simulation are plain functions.

    input_processor → planner → executor → step_evaluator → executor … → final_evaluator
        → response_generator → plot_integration → END
"""

import hashlib
import json
import logging
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, TypedDict, get_type_hints

from evalkit.steps.evaluators import evaluate_history, evaluate_step
from evalkit.steps.format import DEFAULTS, HISTORY_KEY, PLAN_KEY, Options
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.records import normalise_history, normalise_record, same_call, whole

NODES = ("input_processor", "planner", "executor", "final_evaluator", "response_generator", "plot_integration")
NO_HISTORY = {"status": "no_history", "critical_failure": False}
Node = Callable[[Any], Any]
_log = logging.getLogger(__name__)


class WorkflowState(TypedDict, total=False):
    """What the graph needs of a state; derive from it to add keys, since LangGraph drops those not declared.

    `execution_plan` holds the planned steps under ``steps``; `execution_history` is replaced as a whole by what
    `record_execution` returns; `step_evaluation_history` is appended to by its reducer.
    """

    question: str
    response: str
    execution_plan: dict[str, Any]
    current_step_index: int
    execution_history: list[dict[str, Any]]
    last_step_evaluation: dict[str, Any]
    step_evaluation_history: Annotated[list[dict[str, Any]], operator.add]


def step_evaluator_node(state: Mapping[str, Any], options: Options = DEFAULTS) -> dict[str, Any]:
    """Judge the newest record of a state's history; checks only, the plan stays as it is.

    Returns
    -------
    dict
        An update for LangGraph: `last_step_evaluation`, and `step_evaluation_history` with the one evaluation that
        the reducer appends. The evaluation also says whether the step is stuck: ``retry_cap_reached`` after
        ``options.retry_cap`` executions of one step that ended alike. A record that was judged before is not judged
        again; that the node was reached without a new record counts as one more attempt. Without a history
        `last_step_evaluation` is ``{"status": "no_history", "critical_failure": False}``.
    """
    history = state.get(HISTORY_KEY)
    if not isinstance(history, list) or not history:
        return {"last_step_evaluation": dict(NO_HISTORY)}
    identity = _identity(history)
    last = state.get("last_step_evaluation") or {}
    if last.get("record_id") == identity:
        idle = last.get("attempts_at_step", 1) + 1
        again = {"attempts_at_step": idle, "retry_cap_reached": idle >= options.retry_cap}
        return {"last_step_evaluation": {**last, **again}}
    evaluation = evaluate_step(history[-1], state, options)
    tried = _tried(history, _index(state), options)
    evaluation |= {"record_id": identity, "attempts_at_step": tried, "retry_cap_reached": tried >= options.retry_cap}
    _log.info(
        "step %s %s: success %s, critical %s, attempt %d",
        *(evaluation[key] for key in ("step_index", "function_name", "success", "critical_failure")),
        tried,
    )
    return {"last_step_evaluation": evaluation, "step_evaluation_history": [evaluation]}


def route_from_executor(state: Mapping[str, Any]) -> str:
    """Choose what follows the executor.

    Returns
    -------
    {"step_evaluate", "complete"}
        ``step_evaluate`` while there is a history and `current_step_index` is at most the number of planned steps.
    """
    there = bool(state.get(HISTORY_KEY))
    return "step_evaluate" if there and _index(state) <= _step_count(state) else "complete"


def route_from_step_evaluator(state: Mapping[str, Any]) -> str:
    """Choose what follows an evaluation.

    Returns
    -------
    {"abort", "complete", "continue"}
        ``abort`` after a critical failure, and where a step is stuck (`retry_cap_reached`); ``complete`` when
        `current_step_index` has reached the number of planned steps; else ``continue``.
    """
    last = state.get("last_step_evaluation") or {}
    if last.get("critical_failure"):
        return "abort"
    if _index(state) >= _step_count(state):
        return "complete"
    return "abort" if last.get("retry_cap_reached") else "continue"


def build_workflow(
    nodes: Mapping[str, Node],
    *,
    state_type: type = WorkflowState,
    checkpointer: Any = None,
    options: Options = DEFAULTS,
) -> Any:
    """Compile the workflow's graph on LangGraph.

    Parameters
    ----------
    nodes : mapping
        A function for each of input_processor, planner, executor, final_evaluator, response_generator and
        plot_integration; step_evaluator only to replace `step_evaluator_node`. The executor keeps what it did with
        `record_execution` and moves `current_step_index` on.
    state_type : type
        A TypedDict that declares at least what `WorkflowState` does.
    checkpointer : optional
        A checkpointer of LangGraph.
    options : Options
        With ``retry_cap``: so often one step may be executed without moving on.

    Returns
    -------
    langgraph.graph.state.CompiledStateGraph

    Raises
    ------
    ImportError
        Where LangGraph is not installed.
    ValueError
        For missing or unknown nodes, and a state type that lacks a key the graph writes.
    """
    if missing := [name for name in NODES if name not in nodes]:
        raise ValueError(f"nodes are missing: {', '.join(missing)}")
    if unknown := sorted(set(nodes) - {*NODES, "step_evaluator"}):
        raise ValueError(f"the workflow has no node {', '.join(unknown)}; it has {', '.join(NODES)}, step_evaluator")
    _check_state_type(state_type)
    try:
        from langgraph.graph import END, START, StateGraph
    except ImportError as error:
        raise ImportError("build_workflow needs LangGraph: pip install 'evalkit[workflow]'") from error

    graph = StateGraph(state_type)
    for name, node in {"step_evaluator": partial(step_evaluator_node, options=options), **nodes}.items():
        graph.add_node(name, node)
    for a, b in ((START, "input_processor"), ("input_processor", "planner"), ("planner", "executor")):
        graph.add_edge(a, b)
    to_end = {"step_evaluate": "step_evaluator", "complete": "final_evaluator"}
    graph.add_conditional_edges("executor", route_from_executor, to_end)
    onward = {"abort": "response_generator", "complete": "final_evaluator", "continue": "executor"}
    graph.add_conditional_edges("step_evaluator", route_from_step_evaluator, onward)
    for a, b in (("final_evaluator", "response_generator"), ("response_generator", "plot_integration")):
        graph.add_edge(a, b)
    graph.add_edge("plot_integration", END)
    # the retry cap ends every loop; LangGraph's own limit must not stop a long plan
    return graph.compile(checkpointer=checkpointer).with_config(recursion_limit=100_000)


def simulate_routing(records: Any, plan: Any = None, options: Options = DEFAULTS) -> list[dict[str, Any]]:
    """Tell what the routers would have done at every record of a stored history, without running a graph.

    After a record the index is that of the next record where the history moved on, else one further after a success.

    Parameters
    ----------
    records : list of records
        Any shape.
    plan : list of steps, or mapping with ``steps``, optional
        Without planned steps their number is that of the history.
    options : Options

    Returns
    -------
    list of dict
        Per record: position, step_index, function_name, success, attempts_at_step, critical_failure, from_executor,
        from_step_evaluator, and `reached`: False for records after the router would have ended the run.
    """
    history = normalise_history(records, options)
    indices = [record["step_index"] for record in history]
    steps = plan if _step_count({PLAN_KEY: plan}) else [None] * (max(indices, default=-1) + 1)
    rows, reached = [], True
    for i, evaluation in enumerate(evaluate_history(history, options)):
        moved_on = i + 1 < len(indices) and indices[i + 1] > indices[i]
        index = indices[i + 1] if moved_on else indices[i] + (evaluation["success"] is True)
        tried = _tried(history[: i + 1], index, options)
        state = {
            HISTORY_KEY: history[: i + 1],
            PLAN_KEY: steps,
            "current_step_index": index,
            "last_step_evaluation": {**evaluation, "retry_cap_reached": tried >= options.retry_cap},
        }
        first = route_from_executor(state)
        second = route_from_step_evaluator(state) if first == "step_evaluate" else None
        keys = ("step_index", "function_name", "success", "critical_failure")
        row = {"position": i, **{key: evaluation[key] for key in keys}, "attempts_at_step": tried}
        rows.append({**row, "from_executor": first, "from_step_evaluator": second, "reached": reached})
        reached = reached and first == "step_evaluate" and second == "continue"
    return rows


_NEEDED = (
    "execution_plan",
    "current_step_index",
    "execution_history",
    "last_step_evaluation",
    "step_evaluation_history",
)


def _check_state_type(state_type: type) -> None:
    declared = get_type_hints(state_type, include_extras=True)
    if undeclared := [key for key in _NEEDED if key not in declared]:
        raise ValueError(f"{state_type.__name__} does not declare {', '.join(undeclared)}: LangGraph would drop it")
    if not hasattr(declared["step_evaluation_history"], "__metadata__"):
        raise ValueError(f"{state_type.__name__}: step_evaluation_history needs a reducer, as in WorkflowState")


def _index(state: Mapping[str, Any]) -> int:
    return whole(to_jsonable(state.get("current_step_index"))) or 0


def _step_count(state: Mapping[str, Any]) -> int:
    plan = state.get(PLAN_KEY)
    steps = plan.get("steps") if isinstance(plan, Mapping) else plan
    return len(steps) if isinstance(steps, (list, tuple)) else 0


def _tried(history: list, index: int, options: Options) -> int:
    """Count the newest records of one step that all failed, or all succeeded without moving `index` on."""
    last = normalise_record(history[-1], options)
    failed, at = last["success"] is False, last["step_index"]
    if not failed and (at is None or index > at):
        return 1
    count = 0
    for raw in reversed(history):
        record = normalise_record(raw, options)
        same_step = record["step_index"] == at and ((at is not None and failed) or same_call(record, last))
        if record["success"] != last["success"] or not same_step:
            break
        count += 1
    return count


def _identity(history: list) -> str:
    """Tell a record from others by its place and its content, also after a history was begun anew."""
    text = json.dumps(history[-1], sort_keys=True, default=str)
    return f"{len(history) - 1}-{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
