"""How a step ended, in a word; and silent failures: success is reported, while the result says otherwise."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from evalkit.steps.cell_types import EMPTY_MAPPING, FAILED, read_annotation
from evalkit.steps.format import DEFAULTS, PSEUDO_STEPS, Options, StepRecord
from evalkit.steps.literal import is_cut
from evalkit.steps.records import function_of
from evalkit.steps.results import (
    ERROR_TEXT,
    content,
    error_in,
    read_counts,
    read_enrichment,
    read_expression,
    read_plots,
    read_search,
    status_of,
)

CRITICAL = "critical failure"
VERDICTS = ("success", "silent failure", "failure", CRITICAL, "skipped", "unknown")
_SHOWN, _READ = 200, 2000  # characters of a message that are shown, and that are looked at

_NO_RESULT = (None, "", [], {}, "Success")  # "Success" is what shape A made of a result that counts as false
_NO_PLOT = re.compile(
    r"\b(?:not available|not found|unavailable|error|exception|failed|could not|cannot|can't|unable)\b"
    r"|\bno\b.*\bfound\b",
    re.IGNORECASE | re.DOTALL,
)
# the beginning of an error dict whose text can't be read whole
_ERROR_DICT = re.compile(r"^\s*\{\s*(['\"])error\1\s*:\s*+(?!None|null|''|\"\")")


def verdict(record: StepRecord, options: Options = DEFAULTS) -> str:
    """Say how a step ended: one of `VERDICTS`; ``unknown`` where the record does not say whether it succeeded."""
    return verdict_given(record, silent_failure(record, options), options)


def verdict_given(record: StepRecord, silent: str | None, options: Options = DEFAULTS) -> str:
    """Say how a step ended, where `silent_failure` has given `silent`."""
    if record["result_type"] == "skipped":
        return "skipped"
    if record["success"] is True:
        return "silent failure" if silent else "success"
    if options.is_critical(record["error_type"], record["error"]):
        return CRITICAL
    return "unknown" if record["success"] is None else "failure"


def silent_failure(record: StepRecord, options: Options = DEFAULTS) -> str | None:
    """Say why a step that reports success has failed, or None.

    The reasons: an error is recorded beside the success; the result is an error dict or a text that begins with
    "Error"; an analysis or a plot left nothing, or nothing but a status that says it could not be made
    (``options.failed_statuses``, such as ``no_cells_found``); cells were not processed ("Process cells failed"), or no
    group of them was named; the text in a plot's place speaks of an error. What the assistant says (pseudo-steps) and
    skipped steps never count.

    Returns
    -------
    str or None
        The reason, in words.
    """
    function = function_of(record)
    if record["success"] is not True or record["result_type"] == "skipped" or function in PSEUDO_STEPS or not function:
        return None
    if record["error"]:
        return f"an error is recorded: {record['error'][:_SHOWN]}"
    return failure_in_result(record, options)


def failure_in_result(record: StepRecord, options: Options = DEFAULTS) -> str | None:
    """Say why the result of a step that reports success is a failure, or None; see `silent_failure`."""
    function, result = function_of(record), record["result"]
    value = content(record)
    inner = value.get("search_results") if isinstance(value, Mapping) else None
    if error := error_in(value) or error_in(inner):
        return f"the result is an error: {error[:_SHOWN]}"
    if isinstance(result, str) and (ERROR_TEXT.match(result) or _ERROR_DICT.match(result)):
        return f"the result is an error: {result[:_SHOWN]}"
    if function in _HOLDS and result in _NO_RESULT:
        return "the step left no result"
    if function == "process_cells" and (reason := _no_cells(record)):
        return reason
    if (status := only_status(record)) and options.is_failed_status(status):
        return f"the result is only a status: {_with_message(status, value)}"
    return _no_plot(record) if options.is_plot(function) else None


def only_status(record: StepRecord) -> str | None:
    """Read the status of an analysis that returned nothing else."""
    holds = _HOLDS.get(function_of(record))
    status = status_of(content(record)) if holds else None
    return status if status and not holds(record) else None


def _no_cells(record: StepRecord) -> str | None:
    status = read_annotation(record).status
    if status == FAILED:
        return f"cells were not processed: {str(record['result'])[:_SHOWN]}"
    return "no group of cells was named: the mapping to cell types is empty" if status == EMPTY_MAPPING else None


def _with_message(status: str, value: Mapping) -> str:
    message = value.get("message")
    return f"{status} ({message})"[:_SHOWN] if isinstance(message, str) and message else status[:_SHOWN]


# the analyses, which always leave something, and what they return beside a status
_HOLDS: Mapping[str, Callable[[StepRecord], Any]] = {
    "perform_enrichment_analyses": lambda record: read_enrichment(record).methods,
    "dea_split_by_condition": lambda record: read_expression(record).genes,
    "process_cells": lambda record: read_annotation(record).types,
    "compare_cell_counts": lambda record: read_counts(record).cells,
    "search_enrichment_semantic": lambda record: read_search(record).results,
}


def _no_plot(record: StepRecord) -> str | None:
    plots, text = read_plots(record), str(record["result"])[:_READ]
    if (plots.plots == 0 and plots.type != "text") or text in _NO_RESULT:
        return "no plot was made"
    if plots.type == "multiple_plots" and (pages := _pages(record)):
        reasons = [_no_plot({**record, "result": page, "result_metadata": {}}) for page in pages]
        return reasons[0] if all(reasons) else None
    if plots.type == "text" and _NO_PLOT.search(text):
        return f"a message stands in place of the plot: {text[:_SHOWN]}"
    return None


def _pages(record: StepRecord) -> list[str | None]:
    """Give the HTML of several plots; empty where the list was cut, or a plot is kept in another form."""
    value = content(record)
    listed = value.get("plots") if isinstance(value, Mapping) else None
    if not isinstance(listed, list) or is_cut(listed):
        return []
    pages = [plot.get("html", plot) if isinstance(plot, Mapping) else plot for plot in listed]
    return pages if all(page is None or isinstance(page, str) for page in pages) else []
