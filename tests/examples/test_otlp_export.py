"""Histories as traces of OpenTelemetry: one trace per history, one span per record."""

import json
import re

from evalkit.steps import History, load
from examples.otlp_export.otlp_export import to_otlp, write_otlp

SAMPLE = load("samples:steps/typed.json").histories


def spans(histories):
    [resource] = to_otlp(histories)["resourceSpans"]
    return resource["scopeSpans"][0]["spans"]


def attributes(node):
    return {entry["key"]: next(iter(entry["value"].values())) for entry in node["attributes"]}


def test_one_trace_per_history_one_span_per_record_in_strict_json(tmp_path):
    histories = load("samples:steps").histories
    found = spans(histories)
    assert len(found) == sum(len(history.records) + 1 for history in histories)
    assert len({span["traceId"] for span in found}) == len(histories)
    assert len({span["spanId"] for span in found}) == len(found)
    assert all(re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"]) for s in found)
    roots = {span["spanId"]: span["traceId"] for span in found if "parentSpanId" not in span}
    assert all(roots[span["parentSpanId"]] == span["traceId"] for span in found if "parentSpanId" in span)
    write_otlp(histories, tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text("utf-8")) == to_otlp(histories)


def test_attributes_are_those_of_openinference():
    root, *found = spans(SAMPLE)
    assert attributes(root)["openinference.span.kind"] == "AGENT"
    span = attributes(found[4])
    assert (span["openinference.span.kind"], span["tool.name"]) == ("TOOL", "perform_enrichment_analyses")
    assert json.loads(span["input.value"])["cell_type"] == "T cell"
    assert json.loads(span["output.value"])["go"]["total_significant"] == 1
    assert span["output.mime_type"] == "application/json"
    assert found[4]["status"] == {"code": 1}


def test_checks_are_evaluation_events_and_errors_exceptions():
    _, *found = spans(SAMPLE)
    events = {event["name"]: attributes(event) for event in found[19]["events"]}
    result = [events["gen_ai.evaluation.result"][f"gen_ai.evaluation.{key}"] for key in ("name", "score.label")]
    assert result == ["outcome", "critical failure"]
    assert events["exception"]["exception.type"] == "FileNotFoundError"
    assert found[19]["status"]["code"] == 2
    assert found[7]["status"] == {"code": 2, "message": "the step left no result"}  # a silent failure


def test_ids_are_the_same_wherever_the_history_stands():
    records = SAMPLE[0].records
    a, b = (spans([History(source, "", records)]) for source in ("/a/typed.json", "/b/c/typed.json"))
    assert a == b
    assert spans([History("/a/typed.json", "", records[:-1])])[0]["traceId"] != a[0]["traceId"]
