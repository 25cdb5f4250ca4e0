"""Sentences about histories, from the frames that stand beside them."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from evalkit.steps.parse import History, labelled

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
    return f"{text} {SAMPLES}" if str(name).startswith("samples:") else text


def headline(histories: Sequence[History]) -> str:
    """Say what the share of confirmed success is a share of."""
    text = "steps that succeeded, without silent failures"
    return text if len(histories) == 1 else f"{text}, in {len(histories)} histories"


def focus(histories: Sequence[History], one: Sequence[History], chosen: str = "") -> str:
    """Say which history the sections about one look at, and how it was chosen (`analysis.focus`)."""
    if not one:
        return "There is no history to look at."
    if len(histories) == 1:
        return f"This is {one[0].label}, the only history."
    why = "which the parameter focus names" if chosen else "the one with the lowest confirmed success"
    hint = "" if chosen else " The parameter focus names another by its label."
    return f"Of {len(histories)} histories this is {one[0].label}, {why}.{hint}"


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
    return f"After record {last['position'] + 1} ({last['function_name']}) the router says {end}: {why}.{rest}"


def changes(table: pd.DataFrame, a: Sequence[History], b: Sequence[History]) -> str:
    """Say how two histories differ; `table` as `contents.changes` gives it."""
    if not a or not b:
        return "Nothing to compare: no second history was named." if a else "Nothing to compare: there is no history."
    counts = table["change"].value_counts()
    kinds = ("same", "fixed", "broken", "changed", "only in a", "only in b")
    found = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in kinds)
    names = [history[0].label for history in (a, b)]
    if names[0] == names[1]:  # of two loads, each of which has labels of its own
        names = [history.label for history in labelled((a[0], b[0]))]
    return f"a: {names[0]}; b: {names[1]}. {len(table)} steps: {found}."
