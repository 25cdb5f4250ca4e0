"""Transcripts of histories: the call of each step, and its result."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from evalkit._text import counted_noun
from evalkit.io import SourceError
from evalkit.kinds import Call, Transcript, Turn
from evalkit.steps.format import CRITICAL, WENT_WRONG, StepRecord
from evalkit.steps.judge import end_of_route, histories_of
from evalkit.steps.literals import as_text
from evalkit.steps.parse import parse_file

MOST_SHOWN = 20_000  # maximum number of characters of a result
_parsed = lru_cache(maxsize=1)(parse_file)  # the threads of a checkpoint are shown one after the other


def transcript(paths: Sequence[str], read: Callable[[str], bytes], thread: str = "") -> Transcript:
    """Return the transcript of a file or `thread`; its decision is the step after which the routers would end it."""
    [path] = paths
    parsed = _parsed(path, read(path))
    if parsed.status != "used":
        raise SourceError(f"{path}: {parsed.reason}")
    threads, steps = (
        [(path, *row) for row in parsed.rows[name] if thread in ("", row[0])] for name in ("histories", "steps")
    )
    histories = histories_of(threads, steps)
    if thread and not histories:
        raise SourceError(f"{path}: no thread {thread!r}")
    turns: list[Turn] = []
    for history in histories:
        _, last = end_of_route(history)
        results = []
        for number, (record, evaluation) in enumerate(zip(history.records, history.evaluations, strict=True), 1):
            results.append(_result(record, evaluation, decides=number == last))
        for part, position in history.turns:
            if part == "thread":
                turns.append(Turn("thread", "system", history.thread))
            elif part == "result":
                turns.append(results[position])
            else:
                record, evaluation = history.records[position], history.evaluations[position]
                turns.append(_call(record, evaluation, position + 1, results[position].text))
    records = sum(len(history.records) for history in histories)
    facts = [counted_noun(records, "record"), counted_noun(len(histories), "thread")]
    if parsed.reason:
        facts.append(parsed.reason)
    return Transcript(path, facts, turns)


def _call(record: StepRecord, evaluation: Mapping[str, Any], number: int, result: str) -> Turn:
    """Return the turn that shows the call of a step."""
    step = record["step"]
    call = f"{step['function_name'] or 'no function'} {json.dumps(step['parameters'], ensure_ascii=False)}"
    arguments = json.dumps(step["parameters"], sort_keys=True, ensure_ascii=False)
    has_failed = None if evaluation["verdict"] == "unknown" else evaluation["verdict"] in ("failure", CRITICAL)
    made = Call(step["function_name"] or "", arguments, result, has_failed, 1, is_in_text=True)
    description = as_text(step.get("description"))
    text = f"{call}\n{description}" if description else call
    actor, when = f"record {number}, step {(record['step_index'] or 0) + 1}", record["timestamp"] or ""
    return Turn(actor, "action", text, events=("command",), when=when, same=call, agent="agent", call=made)


def _result(record: StepRecord, evaluation: Mapping[str, Any], *, decides: bool) -> Turn:
    """Return the turn that shows the result of a step, with its verdict and checks."""
    step, result = record["step"], record["result"]
    lines = []
    if record["error"]:
        lines.append(f"error: {record['error']}")
    if reason := step.get("skip_reason"):
        lines.append(str(reason))
    if result is not None:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        lines.append(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text)} characters)")
    silent = evaluation["silent_failure_reason"]
    marks = [f"silent failure: {silent}" if silent else evaluation["verdict"]]
    if evaluation["truncated"]:
        marks.append("cut")
    checks = evaluation["checks"][1:]  # the first is the verdict
    marks += [f"{check['name']}: {check['label']}" for check in checks if check["severity"] != "info"]
    events = {"error": evaluation["verdict"] in WENT_WRONG, "decision": decides}
    raised = tuple(filter(events.get, events))
    text, when = "\n".join(lines) or "nothing", record["timestamp"] or ""
    values = {"silent_failure": silent, "is_cut": evaluation["truncated"], "checks": checks}
    agent = step["function_name"] or ""
    return Turn(record["result_type"], "result", text, tuple(marks), raised, when, agent=agent, values=values)
