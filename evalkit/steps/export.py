"""Histories as OpenTelemetry traces: OTLP JSON with OpenInference attributes and evaluation events.

Names: OTLP/JSON of the OpenTelemetry protocol 1.x, OpenInference's semantic conventions for tool spans, and the event
``gen_ai.evaluation.result`` of OpenTelemetry's conventions for generative AI.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalkit._version import __version__
from evalkit.io.output import write_text
from evalkit.steps.evaluators import evaluate_records
from evalkit.steps.format import DEFAULTS, Options, StepRecord
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.parse import History
from evalkit.steps.records import function_of

_OK, _ERROR, _INTERNAL = 1, 2, 1  # status codes and span kind of OTLP

Evaluations = Sequence[Sequence[Mapping[str, Any]]]


def to_otlp(
    histories: Iterable[History], options: Options = DEFAULTS, evaluations: Evaluations | None = None
) -> dict[str, Any]:
    """Make one trace per history: a span of kind AGENT, below it one of kind TOOL (or CHAIN) per record.

    Every check becomes an event ``gen_ai.evaluation.result`` with name, score, label and explanation; a failure also
    an ``exception`` event. Ids are made from the records and their places: the same history always gets the same
    ids, wherever it stands; of equal ones in one export the second gets ids of its own. A span ends when its record was
    written and begins when the one before was; where a history has no times they are 0, which OTLP reads as unknown.

    Parameters
    ----------
    histories : iterable of History
    options : Options
    evaluations : sequence of sequences of mappings, optional
        For each history the evaluations of its records, where they are at hand.

    Returns
    -------
    dict
        An OTLP ``TracesData`` message, ready for ``json.dumps``.
    """
    histories = list(histories)
    if evaluations is None:
        evaluations = [evaluate_records(history.records, options) for history in histories]
    spans: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    for history, judged in zip(histories, evaluations, strict=True):
        trace_id = _trace_id(history)
        seen[trace_id] += 1
        spans += _trace(history, judged, _hash(f"{trace_id}/{seen[trace_id]}", 16) if seen[trace_id] > 1 else trace_id)
    scope = {"name": "evalkit.steps", "version": __version__}
    resource = {"attributes": _attributes({"service.name": "evalkit"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def write_otlp(
    histories: Iterable[History],
    path: str | os.PathLike,
    options: Options = DEFAULTS,
    evaluations: Evaluations | None = None,
) -> None:
    """Write `to_otlp` as a JSON file; whole or not at all."""
    spans = to_otlp(histories, options, evaluations)
    write_text(json.dumps(spans, ensure_ascii=False, allow_nan=False) + "\n", path)


def _trace_id(history: History) -> str:
    return _hash(json.dumps(to_jsonable([history.thread, history.records]), sort_keys=True), 16)


def _trace(history: History, evaluations: Sequence[Mapping[str, Any]], trace_id: str) -> list[dict[str, Any]]:
    records = history.records
    root_id = _span_id(trace_id, "root")
    times = _times(records)
    root = {
        "traceId": trace_id,
        "spanId": root_id,
        "name": to_jsonable(history.label),
        "kind": _INTERNAL,
        "startTimeUnixNano": times[0] if times else "0",
        "endTimeUnixNano": times[-1] if times else "0",
        "attributes": _attributes({"openinference.span.kind": "AGENT", "session.id": history.label}),
        "status": {},
    }
    spans = [root]
    for i, (record, evaluation) in enumerate(zip(records, evaluations, strict=True)):
        ids = {"traceId": trace_id, "spanId": _span_id(trace_id, str(i)), "parentSpanId": root_id}
        spans.append(ids | _span(record, evaluation, times[max(i - 1, 0)], times[i]))
    return spans


def _span(record: StepRecord, evaluation: Mapping[str, Any], start: str, end: str) -> dict[str, Any]:
    step, function = record["step"], function_of(record)
    attributes = {
        "openinference.span.kind": "TOOL" if function else "CHAIN",
        "tool.name": function,
        "tool.description": step.get("description"),
        "input.value": _json(step["parameters"]),
        "input.mime_type": "application/json",
        "output.value": record["result"] if isinstance(record["result"], str) else _json(record["result"]),
        "output.mime_type": "text/plain" if isinstance(record["result"], str) else "application/json",
        "evalkit.step_index": record["step_index"],
        "evalkit.result_type": record["result_type"],
        "evalkit.truncated": evaluation["truncated"],
        "evalkit.silent_failure": evaluation["silent_failure"],
        "evalkit.critical_failure": evaluation["critical_failure"],
        "evalkit.attempt": evaluation["attempt"],
    }
    events = [_evaluation_event(check, end) for check in evaluation["checks"]]
    failed = record["success"] is False and record["result_type"] != "skipped"
    if failed:
        thrown = {"exception.type": record["error_type"], "exception.message": record["error"]}
        events.append({"timeUnixNano": end, "name": "exception", "attributes": _attributes(thrown)})
    wrong = failed or evaluation["silent_failure"]
    message = evaluation["silent_failure_reason"] or record["error"] or "" if wrong else ""
    return {
        "name": function or record["result_type"],
        "kind": _INTERNAL,
        "startTimeUnixNano": min(start, end, key=int),
        "endTimeUnixNano": end,
        "attributes": _attributes(attributes),
        "events": events,
        "status": {"code": _ERROR, "message": message} if wrong else {"code": _OK},
    }


def _evaluation_event(check: Mapping[str, Any], time: str) -> dict[str, Any]:
    attributes = {
        "gen_ai.evaluation.name": check.get("name"),
        "gen_ai.evaluation.score.value": check.get("score"),
        "gen_ai.evaluation.score.label": check.get("label"),
        "gen_ai.evaluation.explanation": check.get("explanation") or None,
        "evalkit.severity": check.get("severity"),
    }
    return {"timeUnixNano": time, "name": "gen_ai.evaluation.result", "attributes": _attributes(attributes)}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write attributes as OTLP does; those without a value are left out, integers are texts."""
    out = []
    for key, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            typed = {"boolValue": value}
        elif isinstance(value, int):
            typed = {"intValue": str(value)}
        elif isinstance(value, float):
            typed = {"doubleValue": value}
        else:
            typed = {"stringValue": str(to_jsonable(value))}
        out.append({"key": key, "value": typed})
    return out


def _times(records: list[StepRecord]) -> list[str]:
    return [_nanoseconds(record["timestamp"]) for record in records]


def _nanoseconds(timestamp: str | None) -> str:
    """Turn an ISO time into nanoseconds since 1970, as text; a time without a zone is taken for UTC."""
    try:
        time = datetime.fromisoformat(timestamp or "")
    except ValueError:
        return "0"
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return str(max(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000, 0))


def _span_id(trace_id: str, place: str) -> str:
    return _hash(f"{trace_id}/{place}", 8)


def _hash(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(to_jsonable(value), ensure_ascii=False)
