"""Evaluators by function name: one small function per kind of step, and a place for a user's own."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from evalkit.steps.format import Options, StepRecord

Severity = Literal["info", "warning", "error", "critical"]
Evaluator = Callable[[StepRecord, Options], Mapping[str, Any]]

_SHOWN = 500  # characters of an explanation

EVALUATORS: dict[str, Evaluator] = {}


class Check(TypedDict):
    """One judgement of one step; `score` from 0 to 1, None where it can't be computed."""

    name: str
    score: float | None
    label: str
    explanation: str
    severity: Severity


def check(name: str, score: float | None, label: str, explanation: str = "", severity: Severity = "info") -> Check:
    """Make a check, as evaluators return them under ``checks``."""
    return Check(
        name=name,
        score=None if score is None else float(score),
        label=label,
        explanation=explanation,
        severity=severity,
    )


def evaluates(function_name: str) -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator for a function, or for all whose names begin alike.

    The evaluator gets the record and the options of every successful step and returns the keys it adds to the
    evaluation; what it lists under ``checks`` is appended to the checks. The newest registration counts.

    Parameters
    ----------
    function_name : str
        A function's name; one that ends in ``_`` or ``*`` stands for every name that begins so.

    Examples
    --------
    >>> @evaluates("score_genes")
    ... def gene_scores(record, options):
    ...     return {"gene_score_evaluation": {"scored": len(record["result"])}}
    """

    def register(evaluator: Evaluator) -> Evaluator:
        EVALUATORS[function_name] = evaluator
        return evaluator

    return register


def evaluator_for(function_name: str | None) -> Evaluator | None:
    """Find the evaluator of a function: its own, else that of the longest prefix."""
    if not function_name:
        return None
    if function_name in EVALUATORS:
        return EVALUATORS[function_name]
    prefixes = [key for key in EVALUATORS if key.endswith(("_", "*")) and function_name.startswith(key.rstrip("*"))]
    return EVALUATORS[max(prefixes, key=len)] if prefixes else None
