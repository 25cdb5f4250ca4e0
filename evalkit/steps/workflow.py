"""The agent's workflow: its state, the evaluator's node, the two routers, and the graph on LangGraph.

Only `build_workflow` needs LangGraph (extra `workflow`); nodes, routers and the simulation are plain functions.
"""

import hashlib
import json
import logging
import operator
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise, takewhile
from typing import Annotated, Any, TypedDict, get_type_hints

from evalkit.steps.format import DEFAULTS, HISTORY_KEY, PLAN_KEY, Options, StepRecord, count
from evalkit.steps.judge import History, as_history, evaluate_step, format_step_evaluation
from evalkit.steps.normalise import normalise_record, same_call, to_jsonable

NODES = ("input_processor", "planner", "executor", "final_evaluator", "response_generator", "plot_integration")
_log = logging.getLogger(__name__)


class WorkflowState(TypedDict, total=False):
    """The keys of a state that the graph needs; derive from it to add keys, since LangGraph drops undeclared ones.

    `execution_plan` holds the planned steps under ``steps``; `execution_history` is replaced as a whole by what
    `record_execution` returns; `step_evaluation_history` is appended to by its reducer. With `print_report` the report
    of every step is printed.
    """

    question: str
    response: str
    execution_plan: dict[str, Any]
    current_step_index: int
    execution_history: list[dict[str, Any]]
    last_step_evaluation: dict[str, Any]
    step_evaluation_history: Annotated[list[dict[str, Any]], operator.add]
    print_report: bool


def step_evaluator_node(
    state: Mapping[str, Any], options: Options = DEFAULTS, *, print_report: bool | None = None
) -> dict[str, Any]:
    """Judge the newest record of a state's history; checks only, the plan stays as it is.

    Returns an update for LangGraph: `last_step_evaluation`, and `step_evaluation_history` with the one evaluation that
    the reducer appends. The evaluation also says whether the step is stuck: ``retry_cap_reached`` after
    ``options.retry_cap`` executions of one step with the same outcome. A record that was judged before is not judged
    again; reaching the node without a new record counts as one more attempt. Without a history `last_step_evaluation`
    is ``{"status": "no_history", "critical_failure": False}``. The report of the step is printed if `print_report`, or
    the state's key of this name, says so, else logged at INFO.
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
    newest, tries = normalise_record(to_jsonable(history[-1]), options), 1
    if not _has_moved_on(newest, _index(state)):
        older = (normalise_record(to_jsonable(raw), options) for raw in reversed(history[:-1]))
        tries += sum(1 for _ in takewhile(partial(_alike, newest), older))
    evaluation |= {"record_id": record_id, "attempts_at_step": tries, "retry_cap_reached": tries >= options.retry_cap}
    report = format_step_evaluation(evaluation)
    if state.get("print_report") if print_report is None else print_report:
        print(report)
    else:
        values = (evaluation[key] for key in ("function_name", "success", "critical_failure"))
        _log.info("%s: success %s, critical %s, attempt %d\n%s", *values, tries, report)
    return {"last_step_evaluation": evaluation, "step_evaluation_history": [evaluation]}


def route_from_executor(state: Mapping[str, Any]) -> str:
    """Return ``step_evaluate`` while there is a history and the index is within the plan, else ``complete``."""
    at_step = _index(state) <= _step_count(state.get(PLAN_KEY))
    return "step_evaluate" if at_step and state.get(HISTORY_KEY) else "complete"


def route_from_step_evaluator(state: Mapping[str, Any]) -> str:
    """Return ``abort`` after a critical failure or if stuck, ``complete`` at the plan's end, else ``continue``."""
    last = state.get("last_step_evaluation") or {}
    if last.get("critical_failure"):
        return "abort"
    if _index(state) >= _step_count(state.get(PLAN_KEY)):
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
    if unknown := sorted(set(nodes) - {*NODES, "step_evaluator"}):
        raise ValueError(f"the workflow has no node {', '.join(unknown)}; it has {', '.join(NODES)}, step_evaluator")
    declared, reduced = get_type_hints(state_type, include_extras=True), "step_evaluation_history"
    needed = (PLAN_KEY, "current_step_index", HISTORY_KEY, "last_step_evaluation", reduced)
    if undeclared := [key for key in needed if key not in declared]:
        raise ValueError(f"{state_type.__name__} does not declare {', '.join(undeclared)}: LangGraph would drop it")
    if not hasattr(declared[reduced], "__metadata__"):
        raise ValueError(f"{state_type.__name__}: {reduced} needs a reducer, as in WorkflowState")
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


def simulate_routing(records: Any, plan: Any = None, options: Options | None = None) -> list[dict[str, Any]]:
    """Return what the workflow's routers would have done at every record of a stored history, without running a graph.

    After a record, the index is that of the next record if the history advanced, else one more after a success.
    The plan is a list of steps or a mapping with ``steps``; by default that of the history; without planned steps,
    their number is that of the history. A row is `reached` unless the router would have ended the run before.
    """
    history = as_history(records, options)
    indices = [record["step_index"] or 0 for record in history.records]
    planned = range(_step_count(history.plan if plan is None else plan) or max(indices, default=-1) + 1)
    rows, reached, before, run = list[dict[str, Any]](), True, None, 0
    for i, (record, evaluation) in enumerate(zip(history.records, history.evaluations, strict=True)):
        has_advanced = i + 1 < len(indices) and indices[i + 1] > indices[i]
        index = indices[i + 1] if has_advanced else indices[i] + (record["success"] is True)
        run = run + 1 if before and _alike(record, before) else 1
        tries, before = 1 if _has_moved_on(record, index) else run, record
        last = {**evaluation, "retry_cap_reached": tries >= history.options.retry_cap}
        state = {HISTORY_KEY: [record], PLAN_KEY: planned, "current_step_index": index, "last_step_evaluation": last}
        executor = route_from_executor(state)
        evaluator = route_from_step_evaluator(state) if executor == "step_evaluate" else None
        row = {
            "position": i,
            "step_index": indices[i],
            "function_name": evaluation["function_name"],
            "success": evaluation["success"],
            "critical_failure": evaluation["critical_failure"],
            "attempts_at_step": tries,
            "from_executor": executor,
            "from_step_evaluator": evaluator,
            "reached": reached,
        }
        rows.append(row)
        reached = reached and executor == "step_evaluate" and evaluator == "continue"
    return rows


def end_of_route(history: History) -> tuple[str, int]:
    """Return how the workflow's routers would have ended a run, and after how many records; "" without any."""
    reached = [row for row in simulate_routing(history) if row["reached"]]
    return (reached[-1]["from_step_evaluator"] or reached[-1]["from_executor"], len(reached)) if reached else ("", 0)


def _index(state: Mapping[str, Any]) -> int:
    return count(state.get("current_step_index")) or 0


def _step_count(plan: Any) -> int:
    """Count the steps of a plan: a list, or a mapping that holds one under ``steps``."""
    steps = plan.get("steps") if isinstance(plan, Mapping) else plan
    return len(steps) if isinstance(steps, (list, tuple, range)) else 0


def _alike(a: StepRecord, b: StepRecord) -> bool:
    """Return whether two records of one step both failed, or are the same call with the same outcome."""
    if a["step_index"] != b["step_index"] or a["success"] != b["success"]:
        return False
    return (a["success"] is False and a["step_index"] is not None) or same_call(a, b)


def _has_moved_on(record: StepRecord, index: int) -> bool:
    """Return whether the workflow is at a later step than that of a record, which did not fail."""
    return record["success"] is not False and (record["step_index"] is None or index > record["step_index"])
