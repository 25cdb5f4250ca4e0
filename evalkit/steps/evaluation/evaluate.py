"""Judge one step and a whole history (checks only, nothing is ever changed), and print the report of a step."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from evalkit.io import plain
from evalkit.steps.evaluation.evaluators import Severity, check, evaluator_for
from evalkit.steps.evaluation.verdicts import UNEXPECTED, failure_in_result, judge_structure, outcome
from evalkit.steps.format import CRITICAL, DEFAULTS, HISTORY_KEY, SILENT, Options, StepRecord, count, truncated
from evalkit.steps.history.records import History, as_history, attempts, normalise_record, repeats_failure
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
    history, attempt = state.get(HISTORY_KEY), 1
    if isinstance(history, list) and history and (history[-1] is execution or history[-1] == execution):
        before = (normalise_record(raw, options) for raw in reversed(history[:-1]))
        attempt += sum(1 for _ in takewhile(lambda one: repeats_failure(one, record), before))
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
    critical, why = verdict == CRITICAL, silent or ""
    if verdict == "skipped":
        why = str(record["step"].get("skip_reason") or "")
        added: dict[str, Any] = {"skipped_evaluation": {"skip_reason": why, "status": "skipped"}}
    elif record["success"] is True:
        added = _judge_success(record, silent, options)
    else:
        default = "The record does not say whether the step succeeded" if verdict == "unknown" else "Unknown error"
        why = record["error"] or default
        added = {
            "failure_evaluation": {
                "error_message": why,
                "error_type": record["error_type"],
                "error_category": "system_error" if critical else "analysis_error",
                "suggested_action": "abort_workflow" if critical else "continue_with_caution",
            }
        }
    score, severity = _OUTCOMES[verdict]
    checks = [check("outcome", score, verdict, why, severity)]
    if attempt > 1:
        loop = record["success"] is False and attempt >= options.loop_length
        label, text = "loop" if loop else "retry", f"attempt {attempt} with the same parameters"
        checks.append(check("attempts", not loop, label, text, "error" if loop else "info"))
    evaluation = {
        "step_index": record["step_index"],
        "function_name": record["step"]["function_name"],
        "success": record["success"],
        "result_type": record["result_type"],
        "timestamp": _timestamp(record["timestamp"]),
        "evaluation_version": EVALUATION_VERSION,
        "verdict": verdict,
        "critical_failure": critical,
        "silent_failure": silent is not None,
        "silent_failure_reason": silent,
        "truncated": truncated(record),
        "attempt": attempt,
        "checks": [*checks, *added.get("checks", [])],
    }
    return to_jsonable(evaluation | added | evaluation)  # nothing added replaces these keys


def _judge_success(record: StepRecord, silent: str | None, options: Options) -> dict[str, Any]:
    """Judge the result by its type, then by its function."""
    kind, result, function = record["result_type"], record["result"], record["step"]["function_name"]
    judged, checks, made = dict[str, Any](), [], dict[str, Any]()
    if kind == "validation":
        status = result.get("status") if isinstance(result, Mapping) else None
        judged = {"validation_evaluation": {"status": status, "result": result}}
    elif kind in ("structured", "text"):
        failure = failure_in_result(record, options) if record["error"] else silent
        judged = judge_structure(record, without_data=failure is not None)
        label, issues = judged["data_completeness"], judged["parsing_issues"]
        if kind == "text":
            cut = label == "limited"
            why = "only the beginning of the result was kept" if cut else ""
            checks = [check("text_kept", not cut, label, why, "warning" if cut else "info")]
        else:
            severity: Severity = "warning" if issues else "info"
            severity = "error" if judged["data_quality"] == UNEXPECTED else severity
            checks = [check("structure", not issues, label, "; ".join(issues), severity)]
    if (evaluator := evaluator_for(function)) is None:
        return judged | {"checks": checks, "function_evaluation": "generic_success"}
    try:
        made = dict(evaluator(record, options))
        own: list[Any] = [dict(one) for one in made.get("checks", [])]
    except Exception as error:  # a user's evaluator may raise anything, the workflow continues
        _log.warning("the evaluator of %s failed: %s", plain(function), plain(error))
        text = f"{type(error).__name__}: {error}"
        made, own = {"evaluator_error": text}, [check("evaluator", None, "failed", text, "error")]
    return judged | made | {"checks": checks + own}


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
        category = (evaluation.get("failure_evaluation") or {}).get("error_category")
        critical = "🚨 YES" if evaluation.get("critical_failure") else "⚠️ No"
        lines += ["❌ FAILURE ANALYSIS:", f"   Error Type: {_shown(category)}", f"   Critical: {critical}"]
    return "\n".join([*lines, RULE])


def print_step_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the report of a step; see `format_step_evaluation`."""
    print(format_step_evaluation(evaluation))


def _success_lines(evaluation: Mapping[str, Any]) -> Iterator[str]:
    if evaluation.get("silent_failure"):
        yield f"   🔇 Silent failure: {plain(evaluation.get('silent_failure_reason'), 200)}"
    if isinstance(enrichment := evaluation.get("enrichment_evaluation"), Mapping):
        yield "   🧬 ENRICHMENT RESULTS:"
        for method, n in (enrichment.get("pathway_counts") or {}).items():
            yield f"      {'✅' if n else '⭕' if n == 0 else '❔'} {plain(method.upper())}: {_shown(n)} pathways"
        yield f"   📊 Total Significant: {_shown(enrichment.get('total_significant_pathways'))} pathways"
        yield f"   🎯 Data Quality: {_shown(enrichment.get('data_quality'))}"
        if top := enrichment.get("top_pathways"):
            yield "   🔝 Sample Pathways:"
            for method, terms in top.items():
                yield f"      {plain(method.upper())}: {', '.join(map(plain, terms[:2]))}"
    if isinstance(cells := evaluation.get("process_cells_evaluation"), Mapping):
        types, n = cells.get("discovered_cell_types") or [], cells.get("cell_type_count")
        if n is None:  # the list was cut
            n = f"at least {len(types)}" if types else "unknown number of"
        yield "   🧬 PROCESS CELLS RESULTS:"
        yield f"      Discovered: {n} new cell types"
        yield from (f"         - {plain(name)}" for name in types[:3])


def _shown(value: Any, missing: str = "unknown") -> str:
    return missing if value is None or value == "" else plain(value)
