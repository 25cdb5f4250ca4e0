"""The agent's workflow: its state, the evaluator's node, the two routers, and the graph on LangGraph.

Only `build_workflow` needs LangGraph (extra `workflow`); nodes and routers are plain functions.
"""

import hashlib
import json
import logging
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, TypedDict, get_type_hints

from evalkit.steps.format import DEFAULTS, HISTORY_KEY, PLAN_KEY, Options, StepRecord, count
from evalkit.steps.judge import as_history, evaluate_step, format_step_evaluation
from evalkit.steps.normalise import normalise_record, same_call, to_jsonable

NODES = ("input_processor", "planner", "executor", "final_evaluator", "response_generator", "plot_integration")
_log = logging.getLogger(__name__)


class WorkflowState(TypedDict, total=False):
    """The keys of a state that the graph needs; derive from it to add keys, since LangGraph drops undeclared ones.

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
    """Judge the newest record of a state's history, and log the report; checks only, the plan stays as it is.

    Returns an update for LangGraph: `last_step_evaluation`, and `step_evaluation_history` with the one evaluation that
    the reducer appends. ``retry_cap_reached`` after ``options.retry_cap`` executions of one step with the same outcome.
    A record that was judged before is not judged again; reaching the node without a new one counts as another attempt.
    """
    history = state.get(HISTORY_KEY)
    if not isinstance(history, list) or not history:
        return {"last_step_evaluation": {"status": "no_history", "critical_failure": False}}
    # its position and content identify a record, even after a history was begun anew
    text = json.dumps(history[-1], sort_keys=True, default=str)
    record_id = f"{len(history) - 1}-{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    last = state.get("last_step_evaluation") or {}
    if last.get("record_id") == record_id:
        tries = last.get("attempts_at_step", 1) + 1
        stuck = {"attempts_at_step": tries, "retry_cap_reached": tries >= options.retry_cap}
        return {"last_step_evaluation": last | stuck}

    evaluation = evaluate_step(history[-1], state, options)
    backwards = (normalise_record(to_jsonable(raw), options) for raw in reversed(history))
    tries = _executions(backwards, count(state.get("current_step_index")) or 0)
    evaluation |= {"record_id": record_id, "attempts_at_step": tries, "retry_cap_reached": tries >= options.retry_cap}
    _log.info("%s", format_step_evaluation(evaluation))
    return {"last_step_evaluation": evaluation, "step_evaluation_history": [evaluation]}


def _executions(backwards: Iterable[StepRecord], index: int) -> int:
    """Count how often the step of the newest record was executed with the same outcome; 1 once `index` is beyond it.

    The records come from the newest to the oldest.
    """
    backwards = iter(backwards)
    newest, n = next(backwards), 1
    step, has_failed = newest["step_index"], newest["success"] is False
    if not has_failed and (step is None or index > step):
        return 1
    for record in backwards:
        if record["step_index"] != step or record["success"] != newest["success"]:
            break
        if not (has_failed and step is not None) and not same_call(record, newest):
            break  # a failed step counts whatever it tried
        n += 1
    return n


def route_from_executor(state: Mapping[str, Any]) -> str:
    """Return ``step_evaluate`` while there is a history and the index is within the plan, else ``complete``."""
    index = count(state.get("current_step_index")) or 0
    return "step_evaluate" if state.get(HISTORY_KEY) and index <= _step_count(state.get(PLAN_KEY)) else "complete"


def route_from_step_evaluator(state: Mapping[str, Any]) -> str:
    """Return ``abort`` after a critical failure or if stuck, ``complete`` at the plan's end, else ``continue``."""
    last = state.get("last_step_evaluation") or {}
    if last.get("critical_failure"):
        return "abort"
    if (count(state.get("current_step_index")) or 0) >= _step_count(state.get(PLAN_KEY)):
        return "complete"
    return "abort" if last.get("retry_cap_reached") else "continue"


def build_workflow(
    nodes: Mapping[str, Callable[[Any], Any]],
    *,
    state_type: type = WorkflowState,
    checkpointer: Any = None,
    options: Options = DEFAULTS,
) -> Any:
    """Compile the workflow's graph on LangGraph, a ``CompiledStateGraph``.

    `nodes` holds a function for each of input_processor, planner, executor, final_evaluator, response_generator and
    plot_integration; step_evaluator only to replace `step_evaluator_node`. The executor stores its steps with
    `record_execution` and advances `current_step_index`. `state_type` is a TypedDict that declares at least what
    `WorkflowState` does; ``options.retry_cap`` is how often one step may be executed without advancing.
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
        raise ImportError("build_workflow needs LangGraph: pip install 'evalkit[workflow]'") from error

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
    # the retry cap ends every loop; LangGraph's own limit must not stop a long plan
    return graph.compile(checkpointer=checkpointer).with_config(recursion_limit=100_000)


def end_of_route(records: Any) -> tuple[str, int]:
    """Return how the workflow's routers would have ended a stored history, and after how many records.

    That is ``complete``, ``abort``, or ``continue`` where the history ends before the plan does; "" without records.
    Without a stored plan, the number of planned steps is that of the history.
    """
    history, route = as_history(records), ""
    indices = [record["step_index"] or 0 for record in history.records]
    planned = range(_step_count(history.plan) or max(indices, default=-1) + 1)
    for i, record in enumerate(history.records):
        # the index is that of the next record if the history advanced, else one more after a success
        has_advanced = i + 1 < len(indices) and indices[i + 1] > indices[i]
        index = indices[i + 1] if has_advanced else indices[i] + (record["success"] is True)
        tries = _executions(map(history.records.__getitem__, range(i, -1, -1)), index)
        last = {**history.evaluations[i], "retry_cap_reached": tries >= history.options.retry_cap}
        state = {HISTORY_KEY: [record], PLAN_KEY: planned, "current_step_index": index, "last_step_evaluation": last}
        route = route_from_executor(state)
        route = route_from_step_evaluator(state) if route == "step_evaluate" else route
        if route != "continue":
            return route, i + 1
    return route, len(history.records)


def _step_count(plan: Any) -> int:
    """Count the steps of a plan: a list, or a mapping that holds one under ``steps``."""
    steps = plan.get("steps") if isinstance(plan, Mapping) else plan
    return len(steps) if isinstance(steps, (list, tuple, range)) else 0
