"""Transcripts of histories: the call of each step, and its result."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalkit._text import counted_noun
from evalkit.io import SourceError
from evalkit.kinds import Transcript, Turn
from evalkit.steps.judge import end_of_route, histories_of
from evalkit.steps.parse import parse_file
from evalkit.steps.record import WENT_WRONG, StepRecord
from evalkit.steps.values import as_text

_MOST_SHOWN = 20_000  # characters of a result


def transcript(paths: Sequence[str], read: Callable[[str], bytes], thread: str = "") -> Transcript:
    """Return the transcript of a file: the call of each step, then its stored result, verdict and checks not passed.

    The step after which the workflow's routers would have ended the run decides it. `thread` selects one of a
    checkpoint. Raises SourceError if the file holds no history.
    """
    [path] = paths
    parsed = parse_file(path, read(path))
    if parsed.status != "used":
        raise SourceError(f"{path}: {parsed.reason}")
    threads, steps = ([(path, *row) for row in parsed.rows[name]] for name in ("histories", "steps"))
    histories = [history for history in histories_of(threads, steps) if thread in ("", history.thread)]
    if thread and not histories:
        raise SourceError(f"{path}: no thread {thread!r}")
    turns: list[Turn] = []
    for history in histories:
        turns += [Turn("thread", "system", history.thread)] * bool(history.thread)
        _, last = end_of_route(history)
        for place, (record, evaluation) in enumerate(zip(history.records, history.evaluations, strict=True), start=1):
            turns += _turns(place, record, evaluation, decides=place == last)
    records = sum(len(history.records) for history in histories)
    facts = [counted_noun(records, "record"), counted_noun(len(histories), "thread")]
    return Transcript(path, facts + [parsed.reason] * bool(parsed.reason), turns)


def _turns(place: int, record: StepRecord, evaluation: Mapping[str, Any], *, decides: bool) -> list[Turn]:
    """Return two turns of a step: the call, and its result."""
    step, result, silent = record["step"], record["result"], evaluation["silent_failure_reason"]
    parameters = json.dumps(step["parameters"], ensure_ascii=False)
    call = f"{record['step']['function_name'] or 'no function'} {parameters}"
    described = f"{call}\n{description}" if (description := as_text(step.get("description"))) else call
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    text = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text)} characters)"
    error, reason = record["error"], step.get("skip_reason")
    lines = [f"error: {error}"] * bool(error) + [str(reason)] * bool(reason)
    lines += [text] * (result is not None)
    marks = [f"silent failure: {silent}" if silent else evaluation["verdict"], *["cut"] * evaluation["truncated"]]
    marks += [f"{made['name']}: {made['label']}" for made in evaluation["checks"][1:] if made["severity"] != "info"]
    events = ("error",) * (evaluation["verdict"] in WENT_WRONG) + ("decision",) * decides
    when, where = record["timestamp"] or "", f"record {place}, step {(record['step_index'] or 0) + 1}"
    return [
        Turn(where, "action", described, (), ("command",), when, call),
        Turn(record["result_type"], "result", "\n".join(lines) or "nothing", tuple(marks), events, when),
    ]
