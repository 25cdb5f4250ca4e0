"""How a step ended, in a word; and silent failures: success is reported, while the result says otherwise."""

import re
from collections.abc import Mapping

from evalkit.steps.format import DEFAULTS, PSEUDO_STEPS, Options, StepRecord
from evalkit.steps.literal import is_cut
from evalkit.steps.records import function_of
from evalkit.steps.results import ERROR_TEXT, content, error_in, read_annotation, read_plots

VERDICTS = ("success", "silent failure", "failure", "critical failure", "skipped", "unknown")
_SHOWN, _READ = 200, 2000  # characters of a message that are shown, and that are looked at

# functions that always leave something: without a result they have done nothing
_NEEDS_RESULT = frozenset(
    {"perform_enrichment_analyses", "dea_split_by_condition", "process_cells", "compare_cell_counts"}
)
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
    if record["result_type"] == "skipped":
        return "skipped"
    if record["success"] is True:
        return "silent failure" if silent_failure(record, options) else "success"
    if options.is_critical(record["error_type"], record["error"]):
        return "critical failure"
    return "unknown" if record["success"] is None else "failure"


def silent_failure(record: StepRecord, options: Options = DEFAULTS) -> str | None:
    """Say why a step that reports success has failed, or None.

    The reasons: an error is recorded beside the success; the result is an error dict or a text that begins with
    "Error"; cells were not processed ("Process cells failed"); an analysis or a plot left nothing; the text in a
    plot's place speaks of an error. What the assistant says (pseudo-steps) and skipped steps never count.

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
    result = record["result"]
    value = content(record)
    inner = value.get("search_results") if isinstance(value, Mapping) else None
    if error := error_in(value) or error_in(inner):
        return f"the result is an error: {error[:_SHOWN]}"
    if isinstance(result, str) and (ERROR_TEXT.match(result) or _ERROR_DICT.match(result)):
        return f"the result is an error: {result[:_SHOWN]}"
    if function == "process_cells" and read_annotation(record).status == "failed":
        return f"cells were not processed: {str(result)[:_SHOWN]}"
    if function in _NEEDS_RESULT and result in _NO_RESULT:
        return "the step left no result"
    if options.is_plot(function):
        return _no_plot(record)
    return None


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
