"""Sentences about histories, from the frames that stand beside them."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from evalkit.steps.contents import focus
from evalkit.steps.parse import History

SAMPLES = (
    "These samples were made for demonstration: a scripted plan, run on the 700 public blood cells that scanpy "
    "bundles. Tests, counts and errors are real; gene sets are stand-ins for GO, KEGG and Reactome, as their names say."
)


def source(histories: Sequence[History], name: str = "") -> str:
    """Say what was read, and of the samples that they are made."""
    shapes = Counter(record["shape"] for history in histories for record in history.records)
    parts = ", ".join(f"{n} in shape {shape}" for shape, n in sorted(shapes.items())) or "none"
    noun = "history" if len(histories) == 1 else "histories"
    text = f"{len(histories)} {noun} with {shapes.total()} records of steps: {parts}."
    if len(histories) > 1:
        text += f" Sections about one history look at the longest, {focus(histories)[0].label}."
    return f"{text} {SAMPLES}" if str(name).startswith("samples:") else text


def routing(table: pd.DataFrame) -> str:
    """Say how the router would have ended the run; `table` as `contents.routing` gives it, of one history."""
    if table.empty:
        return "No records to route."
    last = table[table["reached"]].iloc[-1]
    end = last["from_step_evaluator"] if last["from_executor"] == "step_evaluate" else last["from_executor"]
    why = {
        "abort": "critical failure" if last["critical_failure"] else "the step was tried too often",
        "complete": "the last step was reached",
        "continue": "the history ends before the plan does",
    }[end]
    left = len(table) - int(table["reached"].sum())
    rest = f" {left} records after it would not have been run." if left else ""
    return f"After record {last['position']} ({last['function_name']}) the router says {end}: {why}.{rest}"


def changes(table: pd.DataFrame, name: str = "") -> str:
    """Say how two histories differ; `table` as `compare_histories` gives it."""
    if not name:
        return "No second history was named."
    counts = table["change"].value_counts()
    kinds = ("same", "fixed", "broken", "changed", "only in a", "only in b")
    return f"{len(table)} steps: " + ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in kinds) + "."
