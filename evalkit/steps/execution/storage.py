"""Store what a step returned: structures and plots in full, texts with their length, failures as failures."""

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from evalkit.io import write_text
from evalkit.steps.evaluation.verdicts import silent_failure
from evalkit.steps.execution.findings import summarise
from evalkit.steps.format import DEFAULTS, Options, count, name, truth
from evalkit.steps.history.records import normalise_history, normalise_record
from evalkit.steps.history.results import read_plots
from evalkit.steps.history.values import to_jsonable


def store_execution_result(
    step: Mapping[str, Any] | None, result: Any, success: bool, options: Options = DEFAULTS
) -> dict[str, Any]:
    """Convert what a step returned to its stored form.

    Parameters
    ----------
    step : mapping
        With ``function_name``; a step with a ``skip_reason`` is stored as skipped.
    result : object
        What the function returned; see `to_jsonable` for how it becomes JSON.
    success : bool
        Whether the step succeeded. The result of a failure is not stored: the summary names what was returned with it,
        and the error belongs in the record (`record_execution`).
    options : Options

    Returns
    -------
    dict
        Always `result_type`, `result`, `result_summary` and `result_metadata`, all JSON-able. A text result longer
        than ``options.text_limit`` is cut, with ``{"truncated": [its length, kept]}``; of any other text
        ``{"length": n}`` is noted. Numbers and empty results are stored as they are, None stays None.
    """
    step = step if isinstance(step, Mapping) else {}
    result, function = to_jsonable(result), name(step.get("function_name"))
    kind, metadata = "text", dict[str, Any]()
    if reason := name(step.get("skip_reason")):
        kind, summary, metadata = "skipped", f"Skipped: {reason}", {"skip_reason": reason}
    elif truth(to_jsonable(success)) is not True:
        summary, result = "Failed" if result in (None, "") else f"Failed: {result}", None
    else:
        record = normalise_record({"step": step, "success": True, "result": result}, options)
        summary = summarise(record, silent_failure(record, options), options)
        if function in options.structured_functions:
            kind = "structured"
        elif options.is_plot(function):
            kind, plots = "visualization", read_plots(record)
            metadata = {"type": plots.type, "html_length": plots.html_length, "plots": plots.plots}
        elif result and not isinstance(result, (bool, int, float)):
            text = result if isinstance(result, str) else str(result)
            result, n = text[: options.text_limit], len(text)
            metadata = {"length": n} if n <= options.text_limit else {"truncated": [n, options.text_limit]}
    summary = summary[: options.summary_limit] if kind in ("text", "skipped") else summary
    return {"result_type": kind, "result": result, "result_summary": summary, "result_metadata": metadata}


def record_execution(
    state: Mapping[str, Any],
    step: Mapping[str, Any] | None,
    result: Any,
    success: bool,
    error: BaseException | str | None = None,
    options: Options = DEFAULTS,
) -> list[dict[str, Any]]:
    """Append one executed step to the history of a state, without changing the state.

    Parameters
    ----------
    state : mapping
        Its ``current_step_index`` becomes the record's index, else the number of records so far.
    step, result, success
        As for `store_execution_result`.
    error : exception or str, optional
        Stored as text, for an exception with the class name as ``error_type``.

    Returns
    -------
    list of dict
        A new list: the records so far and one of shape B (with a UTC ``timestamp``).
    """
    history = list(state.get("execution_history") or [])
    index = count(to_jsonable(state.get("current_step_index")))
    stored = store_execution_result(step, result, success, options)
    text = None if error is None else str(error) or type(error).__name__
    if stored["result_summary"] == "Failed" and text:
        stored["result_summary"] = f"Failed: {text}"[: options.summary_limit]
    record = {
        "step_index": len(history) if index is None else index,
        "step": step if isinstance(step, Mapping) else {},
        "success": truth(to_jsonable(success)) is True,
        **stored,
        "error": text,
        "error_type": type(error).__name__ if isinstance(error, BaseException) else None,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    return [*history, to_jsonable(record)]


def save_history(history: Iterable[Mapping[str, Any]], path: str | os.PathLike) -> None:
    """Write a history in shape B: one JSON list, or one record per line if the name ends in ``.jsonl``.

    A reader sees the old file or the new one, never half of it.

    Parameters
    ----------
    history : iterable of records
        In any shape; records of other shapes become shape B.
    path : str or path

    Raises
    ------
    SourceError
        If the file can't be written.
    """
    records = normalise_history(list(history))
    stored = ({key: value for key, value in record.items() if key != "shape"} for record in records)
    lines = [json.dumps(to_jsonable(record), ensure_ascii=False, allow_nan=False) for record in stored]
    if os.fspath(path).endswith((".jsonl", ".ndjson")):
        text = "".join(f"{line}\n" for line in lines)
    else:
        text = "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
    write_text(text, path)
