"""Store the results of steps, and make the summaries and key findings on which an agent bases its answer."""

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from evalkit.io import write_text
from evalkit.io.text import UniqueNames
from evalkit.steps.format import DEFAULTS, Options, cell_types_of, is_talk, normalise_history, normalise_record
from evalkit.steps.judge import History, StoredRecords, as_history, outcome
from evalkit.steps.literals import as_bool, as_count, as_text, to_jsonable
from evalkit.steps.results import ANALYSES, Reading, read_result


def store_execution_result(
    step: Mapping[str, Any] | None, result: Any, success: bool, options: Options = DEFAULTS
) -> dict[str, Any]:
    """Convert the result of a step to its stored form.

    A step with a ``skip_reason`` is stored as skipped. The result of a failed step is stored as text, with its
    ``type``. A text longer than ``options.text_limit`` characters is cut, with ``{"truncated": [length, kept]}``.
    Numbers, empty results and None are stored unchanged.

    Parameters
    ----------
    step : mapping or None
        The step of the plan.
    result : Any
        What the step returned.
    success : bool
        Whether the step reports success.
    options : Options
        Settings of the judge.

    Returns
    -------
    dict
        result_type, result, result_summary and result_metadata, which can be stored as JSON.

    Examples
    --------
    >>> steps.store_execution_result({"function_name": "f"}, 3, True)["result"]
    3
    """
    step, returned = step if isinstance(step, Mapping) else {}, type(result).__name__
    result, function = to_jsonable(result), as_text(step.get("function_name"))
    kind = "text"
    metadata: dict[str, Any] = {}
    if reason := as_text(step.get("skip_reason")):
        kind = "skipped"
        summary = f"Skipped: {reason}"
        metadata = {"skip_reason": reason}
    elif as_bool(success) is not True:
        summary, text = "Failed", "" if result is None else str(result)
        result = None
        if text:
            summary, (result, metadata) = f"Failed: {text}", _cut(text, options)
            metadata["type"] = returned
    else:
        reading = _read_success(step, result, options)
        summary = reading.summary
        if function in options.structured_functions:
            kind = "structured"
        elif options.is_plot(function):
            kind, metadata = "visualization", {key: reading.found[key] for key in ("type", "html_length", "plots")}
        elif result and not isinstance(result, (bool, int, float)):
            result, metadata = _cut(str(result), options)
    summary = summary[: options.summary_limit] if kind in ("text", "skipped") else summary
    return {"result_type": kind, "result": result, "result_summary": summary, "result_metadata": metadata}


def _cut(text: str, options: Options) -> tuple[str, dict[str, Any]]:
    n, most = len(text), options.text_limit
    return text[:most], {"length": n} if n <= most else {"truncated": [n, most]}


def create_result_summary(step: Mapping[str, Any] | str | None, result: Any, options: Options = DEFAULTS) -> str:
    """Summarise the result of a successful step in one line.

    Known functions have their own summaries, for example ``Enrichment: GO: 12 terms, KEGG: 3 terms``. A step without a
    result gives ``Success``. For other results, and for results that describe a failure, the summary is the first
    ``options.summary_limit`` characters.

    Parameters
    ----------
    step : mapping, str or None
        The step, or the name of its function.
    result : Any
        What the step returned.
    options : Options
        Settings of the judge.

    Returns
    -------
    str
        The summary.

    Examples
    --------
    >>> steps.create_result_summary("my_function", None)
    'Success'
    """
    return _read_success(step, to_jsonable(result), options).summary


def _read_success(step: Any, result: Any, options: Options) -> Reading:
    record = normalise_record({"step": to_jsonable(step), "success": True, "result": result}, options)
    return read_result(record, options)


def record_execution(
    state: Mapping[str, Any],
    step: Mapping[str, Any] | None,
    result: Any,
    success: bool,
    error: BaseException | str | None = None,
    options: Options = DEFAULTS,
) -> list[dict[str, Any]]:
    """Append one executed step to the history of a state, and return a new list.

    The index of the step is the state's ``current_step_index`` or, without one, the number of earlier records. An
    exception is stored with its class.

    Parameters
    ----------
    state : mapping
        State of the workflow; it is not changed.
    step : mapping or None
        The step of the plan.
    result : Any
        What the step returned.
    success : bool
        Whether the step reports success.
    error : exception or str, optional
        The error.
    options : Options
        Settings of the judge.

    Returns
    -------
    list of dict
        The history with the new record.

    Examples
    --------
    >>> len(steps.record_execution({}, {"function_name": "f"}, None, True))
    1
    """
    history = list(state.get("execution_history") or [])
    index = as_count(state.get("current_step_index"))
    stored = store_execution_result(step, result, success, options)
    text = None if error is None else str(error) or type(error).__name__
    if stored["result_summary"] == "Failed" and text:
        stored["result_summary"] = f"Failed: {text}"[: options.summary_limit]
    record = {
        "step_index": len(history) if index is None else index,
        "step": step if isinstance(step, Mapping) else {},
        "success": as_bool(success) is True,
        **stored,
        "error": text,
        "error_type": type(error).__name__ if isinstance(error, BaseException) else None,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    return [*history, to_jsonable(record)]


def save_history(history: Iterable[Mapping[str, Any]], path: str | os.PathLike) -> None:
    """Write a history as a JSON list, or as JSON lines if the name ends in ``.jsonl``.

    Parameters
    ----------
    history : iterable of mapping
        The records.
    path : path
        The file.

    Raises
    ------
    SourceError
        If the file can't be written.

    Examples
    --------
    >>> steps.save_history([], "history.json")  # doctest: +SKIP
    """
    records = normalise_history(to_jsonable(list(history)))
    stored = ({key: value for key, value in record.items() if key != "shape"} for record in records)
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in stored]
    if os.fspath(path).endswith((".jsonl", ".ndjson")):
        text = "".join(f"{line}\n" for line in lines)
    else:
        text = "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
    write_text(text, path)


def extract_key_findings_from_execution(
    history: History | StoredRecords, options: Options | None = None
) -> dict[str, dict[str, Any]]:
    """Collect the findings of a history, including findings in legacy text.

    Parameters
    ----------
    history : History, or mappings
        A history, a list of records, or a state that contains one.
    options : Options
        Settings of the judge.

    Returns
    -------
    dict
        ``successful_analyses`` (findings by analysis and cell type), ``failed_analyses`` (failures and silent failures,
        with their error) and ``skipped_analyses`` (reasons). The key of a repeated analysis ends in `` #2``. Counts
        that were cut off are None; terms that were cut off are left out.

    Examples
    --------
    >>> sorted(steps.extract_key_findings_from_execution([]))
    ['failed_analyses', 'skipped_analyses', 'successful_analyses']
    """
    history = as_history(history, options)
    findings: dict[str, dict[str, Any]] = {"successful_analyses": {}, "failed_analyses": {}, "skipped_analyses": {}}
    unique = {kind: UniqueNames("{} #{}") for kind in findings}
    for record, reading in zip(history.records, history.readings, strict=True):
        step = record["step"]
        function, cell_type = step["function_name"], ", ".join(cell_types_of(record))
        if is_talk(function):
            continue
        is_plot = history.options.is_plot(function)
        if function in ANALYSES:
            about = step["parameters"].get("query") if function == "search_enrichment_semantic" else cell_type
            key = f"{ANALYSES[function].key}_{about or 'unknown'}"
        elif is_plot:
            key = f"visualization_{function.partition('_')[2]}{f'_{cell_type}' if cell_type else ''}"
        else:
            key = function

        verdict, silent = outcome(record, reading, history.options)
        kind, found = "successful_analyses", reading.found
        if verdict == "skipped":
            kind, found = "skipped_analyses", {"skip_reason": step.get("skip_reason")}
        elif verdict != "success":
            kind, found = "failed_analyses", {"error": silent or record["error"] or "unknown"}
            found |= {"error_type": record["error_type"], "silent": silent is not None}
            found["step_index"] = record["step_index"]
        elif function == "perform_enrichment_analyses" and not found:
            found = {"status": reading.status or "unknown"}
        elif function in ("perform_enrichment_analyses", "dea_split_by_condition", "search_enrichment_semantic"):
            found = _shortened(found)
        elif function not in ANALYSES and not is_plot:
            found = {"summary": record["result_summary"] or str(record["result"])[: DEFAULTS.summary_limit]}
        findings[kind][unique[kind](key)] = found
    return findings


def _shortened(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _shortened(value) for key, value in found.items()}
    return found[:5] if isinstance(found, list) else found
