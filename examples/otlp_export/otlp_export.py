"""Write histories of steps as OpenTelemetry traces: OTLP JSON with OpenInference attributes and evaluation events.

    python examples/otlp_export/otlp_export.py HISTORIES OUTPUT.json

Names: OTLP/JSON of the OpenTelemetry protocol 1.x, OpenInference's semantic conventions for tool spans, and the event
``gen_ai.evaluation.result`` of OpenTelemetry's conventions for generative AI.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import evalkit
from evalkit.io import write_text
from evalkit.steps import History, Options, StepRecord, evaluate_history, load, to_jsonable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OK, _ERROR = 1, 2  # status codes of OTLP
_INTERNAL = 1  # kind of span of OTLP


def to_otlp(histories: Iterable[History], options: Options | None = None) -> dict[str, Any]:
    """Convert histories to one trace each: a span of kind AGENT, and below it one of kind TOOL (or CHAIN) per record.

    Every check becomes an event ``gen_ai.evaluation.result`` with name, score, label and explanation; a failure also
    an ``exception`` event. Ids are made from the records and their positions: the same history always gets the same
    ids, wherever its file is; of equal ones in one export the second gets other ids. A span ends when its record was
    written and begins when the one before was; without times they are 0, which OTLP reads as unknown.

    Parameters
    ----------
    histories : iterable of History
    options : Options, optional
        By default those of each history.

    Returns
    -------
    dict
        An OTLP ``TracesData`` message, ready for ``json.dumps``.
    """
    spans: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    for history in histories:
        trace_id = _hash(json.dumps(to_jsonable([history.thread, history.records]), sort_keys=True), 16)
        seen[trace_id] += 1
        own_id = _hash(f"{trace_id}/{seen[trace_id]}", 16) if seen[trace_id] > 1 else trace_id
        spans += _trace(history, evaluate_history(history, options), own_id)
    scope = {"name": "evalkit.steps", "version": evalkit.__version__}
    resource = {"attributes": _attributes({"service.name": "evalkit"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def write_otlp(histories: Iterable[History], path: str) -> None:
    """Write `to_otlp` as a JSON file; a reader sees the old file or the new one, never half of it."""
    write_text(json.dumps(to_otlp(histories), ensure_ascii=False, allow_nan=False) + "\n", path)


def _trace(history: History, evaluations: list[dict[str, Any]], trace_id: str) -> list[dict[str, Any]]:
    root_id = _hash(f"{trace_id}/root", 8)
    times = [_nanoseconds(record) for record in history.records] or ["0"]
    session = {"openinference.span.kind": "AGENT", "session.id": history.label}
    root = _span(to_jsonable(history.label), times[0], times[-1], session)
    spans = [{"traceId": trace_id, "spanId": root_id, **root, "status": {}}]
    for i, (record, evaluation) in enumerate(zip(history.records, evaluations, strict=True)):
        ids = {"traceId": trace_id, "spanId": _hash(f"{trace_id}/{i}", 8), "parentSpanId": root_id}
        spans.append(ids | _of_record(record, evaluation, times[max(i - 1, 0)], times[i]))
    return spans


def _span(name: str, start: str, end: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "kind": _INTERNAL,
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": _attributes(attributes),
    }


def _of_record(record: StepRecord, evaluation: Mapping[str, Any], start: str, end: str) -> dict[str, Any]:
    step, result = record["step"], record["result"]
    function = step["function_name"]
    attributes = {
        "openinference.span.kind": "TOOL" if function else "CHAIN",
        "tool.name": function,
        "tool.description": step.get("description"),
        "input.value": _json(step["parameters"]),
        "input.mime_type": "application/json",
        "output.value": result if isinstance(result, str) else _json(result),
        "output.mime_type": "text/plain" if isinstance(result, str) else "application/json",
        "evalkit.step_index": record["step_index"],
        "evalkit.result_type": record["result_type"],
        **{f"evalkit.{key}": evaluation[key] for key in ("truncated", "silent_failure", "critical_failure", "attempt")},
    }
    happened = [("gen_ai.evaluation.result", _of_check(check)) for check in evaluation["checks"]]
    if failed := record["success"] is False and record["result_type"] != "skipped":
        thrown = {"exception.type": record["error_type"], "exception.message": record["error"]}
        happened.append(("exception", thrown))
    message = evaluation["silent_failure_reason"] or record["error"] or ""
    wrong = failed or evaluation["silent_failure"]
    return {
        **_span(function or record["result_type"], min(start, end, key=int), end, attributes),
        "events": [{"timeUnixNano": end, "name": name, "attributes": _attributes(of)} for name, of in happened],
        "status": {"code": _ERROR, "message": message} if wrong else {"code": _OK},
    }


def _of_check(check: Mapping[str, Any]) -> dict[str, Any]:
    names = {"name": "name", "score": "score.value", "label": "score.label"}
    values = {f"gen_ai.evaluation.{name}": check.get(key) for key, name in names.items()}
    values["gen_ai.evaluation.explanation"] = check.get("explanation") or None
    return values | {"evalkit.severity": check.get("severity")}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert attributes to OTLP; those without a value are left out."""
    return [{"key": key, "value": _typed(value)} for key, value in values.items() if value is not None]


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # JSON has no integers of 64 bits
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(to_jsonable(value))}


def _nanoseconds(record: StepRecord) -> str:
    """Return the time of a record in nanoseconds since 1970, as text; UTC without a time zone, 0 without a time."""
    try:
        time = datetime.fromisoformat(record["timestamp"] or "")
        since = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC) - _EPOCH
    except (ValueError, OverflowError):
        return "0"
    return str(max(since // timedelta(microseconds=1) * 1000, 0))


def _hash(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(to_jsonable(value), ensure_ascii=False)


if __name__ == "__main__":
    write_otlp(load(sys.argv[1]).histories, sys.argv[2])
