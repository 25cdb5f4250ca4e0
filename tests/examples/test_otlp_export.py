import json
import re
import subprocess
import sys
from pathlib import Path

from evalkit.steps import History, load
from examples.otlp_export.otlp_export import to_otlp

ROOT = Path(__file__).parents[2]
SAMPLE = "samples:steps/typed.json"


def spans(histories):
    [resource] = to_otlp(histories)["resourceSpans"]
    return resource["scopeSpans"][0]["spans"]


def attributes(node):
    return {entry["key"]: next(iter(entry["value"].values())) for entry in node["attributes"]}


def test_one_trace_per_history_one_span_per_record():
    histories = load("samples:steps").histories
    found = spans(histories)
    assert len(found) == sum(len(history.records) + 1 for history in histories)
    assert len({span["traceId"] for span in found}) == len(histories)
    assert len({span["spanId"] for span in found}) == len(found)
    assert all(re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"]) for s in found)
    roots = {span["spanId"]: span["traceId"] for span in found if "parentSpanId" not in span}
    assert all(roots[span["parentSpanId"]] == span["traceId"] for span in found if "parentSpanId" in span)


def test_attributes_are_those_of_openinference():
    histories = load(SAMPLE).histories
    root, *found = spans(histories)
    assert attributes(root)["openinference.span.kind"] == "AGENT"
    span = attributes(found[4])
    assert span["openinference.span.kind"] == "TOOL"
    assert span["tool.name"] == "perform_enrichment_analyses"
    assert json.loads(span["input.value"])["cell_type"] == "T cell"
    assert json.loads(span["output.value"])["go"]["total_significant"] == 1
    assert span["output.mime_type"] == "application/json"
    assert found[4]["status"] == {"code": 1}


def test_checks_are_evaluation_events_and_errors_exceptions():
    histories = load(SAMPLE).histories
    span = spans(histories)[1 + 19]
    events = {event["name"]: attributes(event) for event in span["events"]}
    assert events["gen_ai.evaluation.result"]["gen_ai.evaluation.name"] == "outcome"
    assert events["gen_ai.evaluation.result"]["gen_ai.evaluation.score.label"] == "critical failure"
    assert events["gen_ai.evaluation.result"]["gen_ai.evaluation.score.value"] == 0.0
    assert events["exception"]["exception.type"] == "FileNotFoundError"
    assert span["status"]["code"] == 2
    silent = spans(histories)[1 + 7]
    assert silent["status"] == {"code": 2, "message": "the step left no result"}


def test_ids_are_the_same_wherever_the_history_stands(tmp_path):
    records = load(SAMPLE).histories[0].records
    a, b = (spans([History(source, "", records)]) for source in ("/a/typed.json", "/b/c/typed.json"))
    assert a == b
    other = spans([History("/a/typed.json", "", records[:-1])])
    assert other[0]["traceId"] != a[0]["traceId"]


def test_the_script_writes_strict_json(tmp_path):
    script = [sys.executable, "examples/otlp_export/otlp_export.py", "samples:steps", str(tmp_path / "trace.json")]
    subprocess.run(script, check=True, env={"PYTHONPATH": "."}, cwd=ROOT)
    written = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert written == to_otlp(load("samples:steps").histories)
