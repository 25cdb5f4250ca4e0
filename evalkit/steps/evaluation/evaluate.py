"""Judge one step and a whole history (checks only, nothing is ever changed), and print the report of a step."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evalkit.io import plain
from evalkit.steps.evaluation.evaluators import Check, Severity, check, evaluator_for
from evalkit.steps.evaluation.verdicts import failure_in_result, judge_structure, outcome
from evalkit.steps.format import (
    CRITICAL,
    DEFAULTS,
    HISTORY_KEY,
    SILENT,
    UNEXPECTED,
    Options,
    StepRecord,
    count,
    function_of,
    truncated,
)
from evalkit.steps.history.records import History, as_history, attempts, normalise_history, normalise_record
from evalkit.steps.history.values import to_jsonable

EVALUATION_VERSION = "v1_checking_only"
RULE = "=" * 60
_log = logging.getLogger(__name__)
_OUTCOMES: dict[str, tuple[int | None, Severity]] = {  # score and severity
    "success": (1, "info"),
    SILENT: (0, "error"),
    "failure": (0, "error"),
    CRITICAL: (0, "critical"),
    "skipped": (None, "info"),
    "unknown": (None, "warning"),
}


def evaluate_step(execution: Any, state: Mapping[str, Any] | None = None, options: Options = DEFAULTS) -> dict:
    """Judge one executed step; never raises for what a record holds.

    Parameters
    ----------
    execution : object
        A record of shape A, B or C.
    state : mapping, optional
        The workflow's state; if its ``execution_history`` ends with `execution`, repeated attempts are counted.
    options : Options

    Returns
    -------
    dict
        JSON-able. Always step_index, function_name, success, result_type, timestamp (the record's, if it has
        one, else now), evaluation_version, verdict, critical_failure, silent_failure (and silent_failure_reason),
        truncated, attempt and checks. A failure adds failure_evaluation; a success adds the keys of its kind of result
        and its function's evaluator. The keys are listed in the kit's documentation.
    """
    state = state if isinstance(state, Mapping) else {}
    record = normalise_record(execution, options)
    history = state.get(HISTORY_KEY)
    attempt = 1
    if isinstance(history, list) and history and (history[-1] is execution or history[-1] == execution):
        attempt = attempts(normalise_history(history, options))[-1]
    if record["step_index"] is None:
        record["step_index"] = count(to_jsonable(state.get("current_step_index")))
    return evaluate_record(record, attempt, options)


def evaluate_history(records: Any, options: Options | None = None) -> list[dict]:
    """Judge every step of a history; as `evaluate_step`, one evaluation per record, in order.

    Parameters
    ----------
    records : History, or list of records
    options : Options, optional
        By default those of the history.
    """
    history = as_history(records, options)
    if history.evaluations is not None:
        return history.evaluations
    pairs = zip(history.records, attempts(history.records), strict=True)
    return [evaluate_record(record, attempt, history.options) for record, attempt in pairs]


def judged(records: Any, options: Options | None = None) -> History:
    """Return a history with the evaluations of its steps; parameters as for `evaluate_history`."""
    history = as_history(records, options)
    return replace(history, evaluations=evaluate_history(history))


def evaluate_record(record: StepRecord, attempt: int = 1, options: Options = DEFAULTS) -> dict:
    """Judge a normalised record, the `attempt`-th at its step."""
    verdict, silent = outcome(record, options)
    evaluation: dict[str, Any] = {
        "step_index": record["step_index"],
        "function_name": function_of(record),
        "success": record["success"],
        "result_type": record["result_type"],
        "timestamp": _timestamp(record["timestamp"]),
        "evaluation_version": EVALUATION_VERSION,
        "verdict": verdict,
        "critical_failure": verdict == CRITICAL,
        "silent_failure": silent is not None,
        "silent_failure_reason": silent,
        "truncated": truncated(record),
        "attempt": attempt,
    }
    if verdict == "skipped":
        why = str(record["step"].get("skip_reason") or "")
        added = {"skipped_evaluation": {"skip_reason": why, "status": "skipped"}}
    elif record["success"] is True:
        why, added = silent or "", _judge_success(record, silent, options)
    else:
        added = {"failure_evaluation": _judge_failure(record, verdict)}
        why = added["failure_evaluation"]["error_message"]
    score, severity = _OUTCOMES[verdict]
    common = [check("outcome", score, verdict, why, severity), *_repeats(record, attempt, options)]
    evaluation["checks"] = [*common, *added.pop("checks", [])]
    return to_jsonable({**evaluation, **{key: value for key, value in added.items() if key not in evaluation}})


def _judge_failure(record: StepRecord, verdict: str) -> dict[str, Any]:
    default = "The record does not say whether the step succeeded" if verdict == "unknown" else "Unknown error"
    critical = verdict == CRITICAL
    return {
        "error_message": record["error"] or default,
        "error_type": record["error_type"],
        "error_category": "system_error" if critical else "analysis_error",
        "suggested_action": "abort_workflow" if critical else "continue_with_caution",
    }


def _judge_success(record: StepRecord, silent: str | None, options: Options) -> dict[str, Any]:
    """Judge the result by its type, then by its function."""
    failure = failure_in_result(record, options) if record["error"] else silent
    judged = _judge_result(record, without_data=failure is not None)
    evaluator = evaluator_for(function_of(record))
    if evaluator is None:
        return judged | {"function_evaluation": "generic_success"}
    try:
        result = dict(evaluator(record, options))
        result["checks"] = [dict(made) for made in result.get("checks", [])]
    except Exception as error:  # a user's evaluator may raise anything, the workflow continues
        _log.warning("the evaluator of %s failed: %s", plain(function_of(record)), plain(error))
        text = f"{type(error).__name__}: {error}"
        result = {"evaluator_error": text, "checks": [check("evaluator", None, "failed", text, "error")]}
    return judged | result | {"checks": [*judged["checks"], *result["checks"]]}


def _judge_result(record: StepRecord, without_data: bool) -> dict[str, Any]:
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
    severity: Severity = "error" if judged["data_quality"] == UNEXPECTED else "warning" if issues else "info"
    return judged | {"checks": [check("structure", not issues, label, "; ".join(issues), severity)]}


def _repeats(record: StepRecord, attempt: int, options: Options) -> list[Check]:
    if attempt == 1:
        return []
    looping = record["success"] is False and attempt >= options.loop_length
    text = f"attempt {attempt} with the same parameters"
    return [check("attempts", not looping, "loop" if looping else "retry", text, "error" if looping else "info")]


def _timestamp(recorded: str | None) -> str:
    try:
        return datetime.fromisoformat(recorded or "").isoformat()
    except ValueError:
        return datetime.now(UTC).isoformat(timespec="seconds")


def format_step_evaluation(evaluation: Mapping[str, Any]) -> str:
    """Format the report of a step from the result of `evaluate_step`.

    Steps count from 1; texts from the record lose their control characters.
    """
    success, index = evaluation.get("success"), evaluation.get("step_index")
    lines = [
        RULE,
        f"📊 STEP EVALUATION REPORT - Step {index + 1 if isinstance(index, int) else '?'}",
        RULE,
        f"Function: {_shown(evaluation.get('function_name'), 'none')}",
        f"Success: {'✅ (True)' if success is True else '❌ (False)' if success is False else '❔ (unknown)'}",
        f"Result Type: {_shown(evaluation.get('result_type'))}",
        f"Timestamp: {_shown(evaluation.get('timestamp'))}",
        "",
    ]
    if "skipped_evaluation" in evaluation:
        lines += ["⏭️ SKIPPED:", f"   Reason: {_shown(evaluation['skipped_evaluation'].get('skip_reason'))}"]
    elif success is True:
        lines += ["✅ SUCCESS ANALYSIS:", *_success_lines(evaluation)]
    else:
        failure = evaluation.get("failure_evaluation") or {}
        lines += [
            "❌ FAILURE ANALYSIS:",
            f"   Error Type: {_shown(failure.get('error_category'))}",
            f"   Critical: {'🚨 YES' if evaluation.get('critical_failure') else '⚠️ No'}",
        ]
    return "\n".join([*lines, RULE])


def print_step_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the report of a step; see `format_step_evaluation`."""
    print(format_step_evaluation(evaluation))


def _success_lines(evaluation: Mapping[str, Any]) -> Iterator[str]:
    if evaluation.get("silent_failure"):
        yield f"   🔇 Silent failure: {plain(evaluation.get('silent_failure_reason'), 200)}"
    enrichment = evaluation.get("enrichment_evaluation")
    if isinstance(enrichment, Mapping):
        yield "   🧬 ENRICHMENT RESULTS:"
        for method, n in (enrichment.get("pathway_counts") or {}).items():
            yield f"      {'✅' if n else '⭕' if n == 0 else '❔'} {plain(method.upper())}: {_shown(n)} pathways"
        yield f"   📊 Total Significant: {_shown(enrichment.get('total_significant_pathways'))} pathways"
        yield f"   🎯 Data Quality: {_shown(enrichment.get('data_quality'))}"
        if top := enrichment.get("top_pathways"):
            yield "   🔝 Sample Pathways:"
            for method, terms in top.items():
                yield f"      {plain(method.upper())}: {', '.join(plain(term) for term in terms[:2])}"
    cells = evaluation.get("process_cells_evaluation")
    if isinstance(cells, Mapping):
        types, n = cells.get("discovered_cell_types") or [], cells.get("cell_type_count")
        if n is None:  # the list was cut
            n = f"at least {len(types)}" if types else "unknown number of"
        yield "   🧬 PROCESS CELLS RESULTS:"
        yield f"      Discovered: {n} new cell types"
        for name in types[:3]:
            yield f"         - {plain(name)}"


def _shown(value: Any, missing: str = "unknown") -> str:
    return missing if value is None or value == "" else plain(value)
