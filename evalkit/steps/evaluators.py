"""Judging one step and a whole history: checks only, nothing is ever changed."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalkit.io import plain
from evalkit.steps import functions  # noqa: F401  (its evaluators are registered on import)
from evalkit.steps.format import DEFAULTS, Options, StepRecord
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.records import function_of, normalise_history, normalise_record, same_call, whole
from evalkit.steps.registry import Check, check, evaluator_for
from evalkit.steps.results import truncated
from evalkit.steps.structure import UNEXPECTED, judge_structure
from evalkit.steps.verdicts import failure_in_result, silent_failure, verdict_given

EVALUATION_VERSION = "v1_checking_only"
_log = logging.getLogger(__name__)


def evaluate_step(execution: Any, state: Mapping[str, Any] | None = None, options: Options = DEFAULTS) -> dict:
    """Judge one executed step; never raises for what a record holds.

    Parameters
    ----------
    execution : object
        A record of shape A, B or C.
    state : mapping, optional
        The workflow's state; where its ``execution_history`` ends with `execution`, repeated attempts are counted.
    options : Options

    Returns
    -------
    dict
        JSON-able. Always step_index, function_name, success, result_type, timestamp (the record's, where it has
        one, else now), evaluation_version, verdict, critical_failure, silent_failure (and silent_failure_reason),
        truncated, attempt and checks. A failure adds failure_evaluation; a success what its kind of result and its
        function's evaluator give. The keys are listed in the kit's documentation.
    """
    state = state if isinstance(state, Mapping) else {}
    record = normalise_record(execution, options)
    history = state.get("execution_history")
    attempt = 1
    if isinstance(history, list) and history and (history[-1] is execution or history[-1] == execution):
        attempt = attempts(normalise_history(history, options))[-1]
    if record["step_index"] is None:
        record["step_index"] = whole(to_jsonable(state.get("current_step_index")))
    return evaluate_record(record, attempt, options)


def evaluate_history(records: Any, options: Options = DEFAULTS) -> list[dict]:
    """Judge every step of a history; as `evaluate_step`, one evaluation per record, in order."""
    return evaluate_records(normalise_history(records, options), options)


def evaluate_records(history: Sequence[StepRecord], options: Options = DEFAULTS) -> list[dict]:
    """Judge every step of a normalised history; see `evaluate_history`."""
    pairs = zip(history, attempts(history), strict=True)
    return [evaluate_record(record, attempt, options) for record, attempt in pairs]


def evaluate_record(record: StepRecord, attempt: int = 1, options: Options = DEFAULTS) -> dict:
    """Judge a normalised record, the `attempt`-th at its step."""
    silent = silent_failure(record, options)
    ended = verdict_given(record, silent, options)
    evaluation: dict[str, Any] = {
        "step_index": record["step_index"],
        "function_name": function_of(record),
        "success": record["success"],
        "result_type": record["result_type"],
        "timestamp": _timestamp(record["timestamp"]),
        "evaluation_version": EVALUATION_VERSION,
        "verdict": ended,
        "critical_failure": ended == "critical failure",
        "silent_failure": silent is not None,
        "silent_failure_reason": silent,
        "truncated": truncated(record),
        "attempt": attempt,
        "checks": [],
    }
    if record["result_type"] == "skipped":
        reason = str(record["step"].get("skip_reason") or "")
        _add(evaluation, {"skipped_evaluation": {"skip_reason": reason, "status": "skipped"}})
    elif record["success"] is True:
        _add(evaluation, _of_success(record, silent, options))
    else:
        _add(evaluation, {"failure_evaluation": _of_failure(record, ended)})
    common = [_outcome(evaluation), *_repeats(record, attempt, options)]
    evaluation["checks"] = [*common, *evaluation["checks"]]
    return to_jsonable(evaluation)


def attempts(history: Sequence[StepRecord]) -> list[int]:
    """Count for each record how often its call was made in a row up to it, while each one before had failed."""
    counts: list[int] = []
    for i, record in enumerate(history):
        before = history[i - 1] if i else None
        repeated = before is not None and before["success"] is False and same_call(before, record)
        counts.append(counts[-1] + 1 if repeated else 1)
    return counts


def _of_failure(record: StepRecord, ended: str) -> dict[str, Any]:
    said = "The record does not say whether the step succeeded" if ended == "unknown" else "Unknown error"
    critical = ended == "critical failure"
    return {
        "error_message": record["error"] or said,
        "error_type": record["error_type"],
        "error_category": "system_error" if critical else "analysis_error",
        "suggested_action": "abort_workflow" if critical else "continue_with_caution",
    }


def _of_success(record: StepRecord, silent: str | None, options: Options) -> dict[str, Any]:
    """Judge the result by its type, then by its function."""
    failed = failure_in_result(record, options) if record["error"] else silent
    found = _by_type(record, without_data=failed is not None)
    evaluator = evaluator_for(function_of(record))
    if evaluator is None:
        return found | {"function_evaluation": "generic_success"}
    try:
        own = dict(evaluator(record, options))
        own["checks"] = [dict(made) for made in own.get("checks", [])]
    except Exception as error:  # a user's evaluator may do anything, the workflow goes on
        _log.warning("the evaluator of %s failed: %s", plain(function_of(record)), plain(error))
        text = f"{type(error).__name__}: {error}"
        own = {"evaluator_error": text, "checks": [check("evaluator", None, "failed", text, "error")]}
    return found | own | {"checks": [*found["checks"], *own["checks"]]}


def _by_type(record: StepRecord, without_data: bool) -> dict[str, Any]:
    kind = record["result_type"]
    if kind == "validation":
        result = record["result"]
        status = result.get("status") if isinstance(result, Mapping) else None
        return {"validation_evaluation": {"status": status, "result": result}, "checks": []}
    if kind not in ("structured", "text"):
        return {"checks": []}
    judged = judge_structure(record, without_data)
    label, issues = judged["data_completeness"], judged["parsing_issues"]
    if kind == "text":
        cut = label == "limited"
        why = "only the beginning of the result was kept" if cut else ""
        return judged | {"checks": [check("text_kept", not cut, label, why, "warning" if cut else "info")]}
    severity = "error" if judged["data_quality"] == UNEXPECTED else "warning" if issues else "info"
    return judged | {"checks": [check("structure", not issues, label, "; ".join(issues), severity)]}


def _outcome(evaluation: dict[str, Any]) -> Check:
    """Make the check every step has: did it do what it was to do?"""
    score, severity = _OUTCOMES[evaluation["verdict"]]
    if evaluation["verdict"] == "skipped":
        why = evaluation["skipped_evaluation"]["skip_reason"]
    else:
        why = evaluation["silent_failure_reason"] or evaluation.get("failure_evaluation", {}).get("error_message", "")
    return check("outcome", score, evaluation["verdict"], why, severity)


_OUTCOMES = {
    "success": (1, "info"),
    "silent failure": (0, "error"),
    "failure": (0, "error"),
    "critical failure": (0, "critical"),
    "skipped": (None, "info"),
    "unknown": (None, "warning"),
}


def _repeats(record: StepRecord, attempt: int, options: Options) -> list[Check]:
    if attempt == 1:
        return []
    looping = record["success"] is False and attempt >= options.loop_length
    text = f"attempt {attempt} with the same parameters"
    return [check("attempts", not looping, "loop" if looping else "retry", text, "error" if looping else "info")]


def _add(evaluation: dict[str, Any], found: Mapping[str, Any]) -> None:
    """Add keys; an evaluator can't change what every evaluation says."""
    evaluation["checks"] = found.get("checks", [])
    for key, value in found.items():
        evaluation.setdefault(key, value)


def _timestamp(recorded: str | None) -> str:
    try:
        return datetime.fromisoformat(recorded or "").isoformat()
    except ValueError:
        return datetime.now(UTC).isoformat(timespec="seconds")
