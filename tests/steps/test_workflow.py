import logging
from datetime import datetime
from typing import TypedDict, get_type_hints

import numpy as np
import pytest

from evalkit.steps import (
    History,
    Options,
    WorkflowState,
    build_workflow,
    end_of_route,
    load,
    record_execution,
    route_from_executor,
    route_from_step_evaluator,
    step_evaluator_node,
)
from evalkit.steps.judge import as_history
from evalkit.steps.parse import read_checkpoints
from tests.steps.cases import CELLS

CRITICAL = (None, FileNotFoundError(2, "No such file or directory", "a.h5ad"))
FAILED = (None, ValueError("no cells"))
DONE = (CELLS, None)
NUMBERS = ({"n": np.int64(3), "p": np.array([0.5, np.nan])}, None)
AGAIN, NOTHING = ("the index stays where it is", None), (None, None)
RUNS = {
    # what the executor meets, one after the other (the last again and again): the nodes after the executor
    "finish": ([DONE, DONE], ["executor", "executor", "final_evaluator"], 2),
    "abort": ([DONE, CRITICAL], ["executor", "executor"], 2),
    "retry": ([FAILED, DONE, DONE], ["executor", "executor", "executor", "final_evaluator"], 3),
    "cap": ([FAILED], ["executor", "executor", "executor"], 3),
    "numbers": ([NUMBERS], ["executor", "executor", "final_evaluator"], 2),
    "other parameters at every attempt": ([(*FAILED, {"parameters": {"n": n}}) for n in range(9)], ["executor"] * 3, 3),
    "a success that does not move on": ([AGAIN], ["executor"] * 3, 3),
    "nothing new is kept": ([AGAIN, NOTHING], ["executor"] * 3, 1),
}
TAIL = ["response_generator", "plot_integration"]


def workflow(outcomes):
    """Return the nodes of a workflow of two steps, and the list of those that ran."""
    steps, ran = [{"function_name": "process_cells", "parameters": {"n": n}} for n in range(2)], []

    def noted(name, node=lambda state: {}):
        return lambda state: ran.append(name) or node(state)

    def executor(state):
        result, error, *others = outcomes[min(ran.count("executor"), len(outcomes)) - 1]
        if (result, error) == NOTHING:
            return {}
        index = state["current_step_index"]
        history = record_execution(state, steps[index] | dict(*others), result, error is None, error)
        return {"execution_history": history, "current_step_index": index + (error is None and result != AGAIN[0])}

    nodes = {name: noted(name) for name in ("input_processor", "final_evaluator", *TAIL)}
    nodes["planner"] = noted("planner", lambda state: {"execution_plan": {"steps": steps}, "current_step_index": 0})
    return {**nodes, "executor": noted("executor", executor)}, ran


@pytest.mark.parametrize("kind", RUNS)
def test_graphs_finish_abort_retry_and_stop_at_the_cap(kind):
    pytest.importorskip("langgraph", reason="needs the extra 'workflow'")
    outcomes, expected, judged = RUNS[kind]
    nodes, ran = workflow(outcomes)
    state = build_workflow(nodes).invoke({"question": "q"})
    assert ran == ["input_processor", "planner", *expected, *TAIL]
    assert len(state["step_evaluation_history"]) == judged == len(state["execution_history"])
    is_newest = state["last_step_evaluation"] == state["step_evaluation_history"][-1]
    assert is_newest is (kind != "nothing new is kept")  # another attempt is counted
    assert state["last_step_evaluation"]["critical_failure"] is (kind == "abort")


def test_the_sqlite_checkpointer_keeps_a_history_that_can_be_read(tmp_path):
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs the extra 'workflow'")
    path = tmp_path / "checkpoints.sqlite"
    with sqlite.SqliteSaver.from_conn_string(str(path)) as saver:
        graph = build_workflow(workflow([NUMBERS])[0], checkpointer=saver)
        for thread in ("first", "second"):
            state = graph.invoke({"question": "q"}, {"configurable": {"thread_id": thread}})
        while_open = load(path)
    for read in (while_open, load(path)):
        assert [history.thread for history in read.histories] == ["first", "second"]
        records = [{**record, "shape": None} for record in read.histories[-1].records]
        assert records == [{**record, "shape": None} for record in state["execution_history"]]
        assert read.histories[-1].plan == state["execution_plan"]
    assert list(tmp_path.iterdir()) == [path]  # reading leaves no files of its own


def test_objects_in_a_checkpoint_are_read_as_data_and_never_called(tmp_path):
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs the extra 'workflow'")
    messages = pytest.importorskip("langchain_core.messages")
    values = {
        "messages": [messages.HumanMessage("hi")],
        "execution_history": [
            {"function_name": "f", "success": True, "result_summary": "x", "when": datetime(2026, 3, 2), "s": {1}}
        ],
    }
    checkpoint = {"v": 4, "id": "1", "ts": "", "channel_values": values, "channel_versions": {}, "versions_seen": {}}
    path = tmp_path / "c.sqlite"
    with sqlite.SqliteSaver.from_conn_string(str(path)) as saver:
        saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {}, {})
    [(thread, read)] = read_checkpoints(str(path), path.read_bytes())
    record = read["execution_history"][0]
    assert (thread, read["messages"][0]["content"]) == ("t", "hi")
    assert (record["when"], record["s"]) == ("2026-03-02T00:00:00", [1])


def test_a_state_may_declare_more_but_not_less():
    pytest.importorskip("langgraph", reason="needs the extra 'workflow'")

    declared = get_type_hints(WorkflowState, include_extras=True)
    more = TypedDict("More", {**declared, "extra": str})
    no_reducer = TypedDict("NoReducer", {**declared, "step_evaluation_history": list})
    del declared["last_step_evaluation"]
    nodes, _ = workflow([DONE])
    assert build_workflow(nodes, state_type=more).invoke({"extra": "kept"})["extra"] == "kept"
    for state_type in (TypedDict("Less", declared), no_reducer):
        with pytest.raises(ValueError, match=r"must declare execution_plan, .*, the last with a reducer"):
            build_workflow(nodes, state_type=state_type)
    del nodes["planner"]
    with pytest.raises(ValueError, match="missing: planner"):
        build_workflow(nodes)


def test_the_same_step_in_several_turns_is_not_stuck():
    history = []
    for turn in range(5):  # plans of one step, then one of two; each begins at 0
        plan = {"steps": [{}] * (1 if turn < 4 else 2)}
        state = {"execution_history": history, "current_step_index": 0, "execution_plan": plan}
        history = record_execution(state, {"function_name": "f"}, "x", True)
        state |= {"execution_history": history, "current_step_index": 1}
        state |= step_evaluator_node(state)
        assert route_from_step_evaluator(state) == ("complete" if turn < 4 else "continue")


def test_the_node_judges_the_newest_record_once_logs_its_report_and_changes_nothing(caplog):
    history = record_execution({}, {"function_name": "process_cells"}, CELLS, True)
    history = record_execution({"execution_history": history}, {"function_name": "f"}, None, False, "no")
    state = {"execution_history": history, "step_evaluation_history": [{"old": 1}], "execution_plan": {"steps": [{}]}}
    before = repr(state)
    with caplog.at_level(logging.INFO, "evalkit.steps.workflow"):
        update = step_evaluator_node(state)
    assert "STEP EVALUATION REPORT - Step 2\n" in caplog.text
    assert repr(state) == before
    assert set(update) == {"last_step_evaluation", "step_evaluation_history"}
    assert [one["function_name"] for one in update["step_evaluation_history"]] == ["f"]
    again = step_evaluator_node({**state, **update})
    assert set(again) == {"last_step_evaluation"}
    assert again["last_step_evaluation"]["attempts_at_step"] == 2


PLAN = {"steps": [{}, {}, {}]}
CRITICAL_STEP, GOOD_STEP = {"critical_failure": True}, {"critical_failure": False}
STUCK = {**GOOD_STEP, "retry_cap_reached": True}


ROUTES = [
    # the router, what it looks at beside the plan of three steps, the current step: the route
    *((route_from_executor, "execution_history", *case) for case in (
        ([{}], 1, "step_evaluate"), ([{}], 3, "step_evaluate"), ([{}], 4, "complete"), ([{}], np.int64(4), "complete"),
        ([], 0, "complete"), (None, 0, "complete"),
    )),
    *((route_from_step_evaluator, "last_step_evaluation", *case) for case in (
        (CRITICAL_STEP, 1, "abort"), (CRITICAL_STEP, 3, "abort"), (STUCK, 2, "abort"), (STUCK, 3, "complete"),
        (GOOD_STEP, 3, "complete"), (GOOD_STEP, 2, "continue"), (None, 0, "continue"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("router", "key", "value", "index", "route"), ROUTES)
def test_routers_choose_the_next_node_from_the_state(router, key, value, index, route):
    for plan in (PLAN, PLAN["steps"]):
        assert router({key: value, "current_step_index": index, "execution_plan": plan}) == route


def history(*executions):
    """Record executions, each given by function, result and error."""
    records = []
    for index, (function, result, error) in enumerate(executions):
        state = {"execution_history": records, "current_step_index": index}
        records = record_execution(state, {"function_name": function}, result, error is None, error)
    return records


def test_end_of_route_finds_where_the_routers_end_a_history():
    ok, critical = ("process_cells", CELLS, None), ("f", None, FileNotFoundError("x"))
    assert end_of_route([]) == ("", 0)
    assert end_of_route(history(ok, ok)) == ("complete", 2)
    assert end_of_route(History("", "", history(ok, ok), {"steps": [{}] * 3})) == ("continue", 2)
    assert end_of_route(history(ok, critical, ok)) == ("abort", 2)
    beyond = history(ok, ok, critical)[2:]  # its index is beyond the plan: the executor ends the run
    assert end_of_route(History("", "", beyond, {"steps": [{}]})) == ("complete", 1)
    failing = [{"function_name": "f", "parameters": {}, "success": False, "error": "no", "result_summary": None}] * 43
    assert end_of_route(failing) == ("abort", 3)
    assert end_of_route(as_history(failing, Options(retry_cap=10))) == ("abort", 10)
