"""Keep and judge the steps of an analysis agent; run it as ``python examples/judge_steps.py [FOLDER]``."""

import sys
import tempfile
from pathlib import Path

from evalkit.steps import (
    Options,
    build_workflow,
    check,
    evaluate_step,
    evaluates,
    plan_adherence,
    print_step_evaluation,
    record_execution,
    save_history,
    steps_df,
)

# results of other functions than the agent's own are kept as text, unless they are named here
OPTIONS = Options(structured_functions=Options().structured_functions | {"score_genes"})


# 1. An evaluator of one's own, for a function of one's own
@evaluates("score_genes")
def judge_scores(record, options):
    """Judge a gene score: how many of the genes asked for have one."""
    asked, scored = record["step"]["parameters"]["genes"], record["result"]["scores"]
    share = len(scored) / len(asked)
    return {
        "gene_score_evaluation": {"asked": len(asked), "scored": len(scored)},
        "checks": [check("genes_scored", share, f"{len(scored)} of {len(asked)}")],
    }


# 2. The functions an agent calls; one of them fails
def score_genes(genes):
    """Score the genes that are known."""
    return {"scores": {gene: len(gene) / 10 for gene in genes if gene != "UNKNOWN"}}


def load_counts(path):
    """Read a table of counts."""
    return Path(path).read_text()


TOOLS = {"score_genes": score_genes, "load_counts": load_counts}
PLAN = [
    {"function_name": "score_genes", "parameters": {"genes": ["CD3D", "MS4A1", "UNKNOWN"]}},
    {"function_name": "load_counts", "parameters": {"path": "/not/there.tsv"}},
]


def execute(state):
    """Run the step whose turn it is and keep what it returned or raised: a node for the workflow, too."""
    step = state["execution_plan"]["steps"][state["current_step_index"]]
    result, error = None, None
    try:
        result = TOOLS[step["function_name"]](**step["parameters"])
    except Exception as raised:
        error = raised
    history = record_execution(state, step, result, error is None, error, OPTIONS)
    return {"execution_history": history, "current_step_index": state["current_step_index"] + (error is None)}


def main(folder):
    """Judge two steps by hand, keep the history; then let LangGraph run the same steps."""
    state = {"execution_plan": {"steps": PLAN}, "current_step_index": 0, "execution_history": []}
    for _ in PLAN:
        state |= execute(state)
        evaluation = evaluate_step(state["execution_history"][-1], state)
        print_step_evaluation(evaluation)
        print([f"{made['name']}: {made['label']}" for made in evaluation["checks"]])

    path = Path(folder) / "history.json"
    save_history(state["execution_history"], path)
    print(steps_df(path)[["function_name", "verdict", "error_type"]].to_string(index=False))
    print([f"{step.function_name}: {step.status}" for step in plan_adherence(state["execution_history"], PLAN)])

    try:
        workflow = build_workflow(
            {
                "input_processor": lambda state: {},
                "planner": lambda state: {"execution_plan": {"steps": PLAN}, "current_step_index": 0},
                "executor": execute,
                "final_evaluator": lambda state: {},
                "response_generator": lambda state: {"response": state["last_step_evaluation"]["verdict"]},
                "plot_integration": lambda state: {},
            }
        )
    except ImportError as error:  # LangGraph comes with the extra `workflow`
        print(error)
    else:
        print("the workflow ended in a", workflow.invoke({"question": "Which genes score?"})["response"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1] if len(sys.argv) > 1 else temporary)
