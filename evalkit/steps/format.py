"""Define the format on disk: the record of a step in each stored shape, and the options for storing and judging it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypedDict, get_args

from evalkit.steps.literals import as_bool, as_count, as_text, read_literal, to_jsonable

ResultType = Literal["structured", "visualization", "text", "skipped", "validation"]

HISTORY_KEY, PLAN_KEY = "execution_history", "execution_plan"  # keys of dumped states and checkpoints
SILENT = "silent failure"
CRITICAL = "critical failure"
NOT_RUN = "not run"
VERDICTS = ("success", SILENT, "failure", CRITICAL, "skipped", "unknown")
STATUSES = (*VERDICTS, NOT_RUN)  # outcomes of a planned step or an analysis, from best to worst
NOT_JUDGED = ("skipped", "unknown")  # verdicts that are excluded from all rates
WENT_WRONG = ("failure", CRITICAL, SILENT)

_RECORD_KEYS = frozenset({"step", "function_name", "success", "result", "result_summary", "error"})
_FLAT_KEYS = frozenset({"function_name", "result_summary"})  # a flat record has one of them, or `step` is a name
_RUN_KEYS = frozenset({"model", "model_name", "task", "task_id", "messages"})  # of which no flat record has one


class StepRecord(TypedDict):
    """One executed step of any stored shape, normalised to shape B with two more keys; all values are JSON."""

    step_index: int | None  # None if unknown
    step: dict[str, Any]  # function_name, parameters, and other keys of the planner
    success: bool | None  # None if the record does not state it
    result: Any
    result_type: ResultType
    result_summary: str
    result_metadata: dict[str, Any]  # "truncated": [original length or None, kept length] if a text is or may be cut
    error: str | None
    error_type: str | None
    timestamp: str | None  # as recorded
    shape: Literal["A", "B", "C"]  # A: nested, untyped; B: nested, typed, as written here; C: flat, on disk


@dataclass(frozen=True)
class Options:
    """Limits, thresholds and patterns of storage and evaluation; docs/steps.md lists the defaults."""

    # functions whose results are stored as structures, and name prefixes of functions that make plots
    structured_functions: frozenset[str] = frozenset(
        {
            "perform_enrichment_analyses",
            "dea_split_by_condition",
            "process_cells",
            "compare_cell_counts",
            "search_enrichment_semantic",
        }
    )
    visualization_prefixes: tuple[str, ...] = ("display_",)
    # maximum number of characters stored of other results and of summaries
    text_limit: int = 500
    summary_limit: int = 100
    # exception classes after which no later step can work; patterns of their messages, since records may lack a class
    critical_errors: frozenset[str] = frozenset(
        {"ImportError", "ModuleNotFoundError", "AttributeError", "FileNotFoundError", "PermissionError"}
    )
    critical_patterns: tuple[str, ...] = (
        r"\[(?:Errno|WinError) (?:2|13)\]",
        r"No such file or directory",
        r"No module named",
        r"cannot import name",
        r"has no attribute",
        r"Permission denied",
    )
    # patterns of statuses (in lower case, with underscores) that mean that an analysis failed; other statuses do not
    failed_statuses: tuple[str, ...] = (
        r"no_(?:cells|clusters|data|markers)(?:_found|_available|_left)?",
        r"(?:insufficient|too_few|not_enough)_\w+",
        r"(?:\w+_)?(?:not_found|failed|failure|error)",
    )
    rich_pathways: int = 100  # a result with more significant pathways is called rich
    loop_length: int = 3  # consecutive failures of one function with the same parameters that make a loop
    retry_cap: int = 3  # attempts at one step without advancing after which the workflow ends

    def is_plot(self, function_name: str | None) -> bool:
        """Return whether a function of this name makes plots."""
        return bool(function_name and function_name.startswith(self.visualization_prefixes))


DEFAULTS = Options()


def is_record(value: Any, *, in_history: bool = False) -> bool:
    """Return whether a value looks like a record of a step; outside of a history, also unlike a row of a table."""
    if not isinstance(value, Mapping) or len(_RECORD_KEYS & value.keys()) < 2:
        return False
    step = value.get("step")
    names_function = isinstance(step, str) or not _FLAT_KEYS.isdisjoint(value)
    return in_history or isinstance(step, Mapping) or (names_function and _RUN_KEYS.isdisjoint(value))


def normalise_record(raw: Any, options: Options = DEFAULTS) -> StepRecord:
    """Normalise a record of any shape with JSON values; never raises.

    A stored text of exactly ``options.text_limit`` characters counts as cut unless the metadata contain its length.
    """
    raw = raw if isinstance(raw, Mapping) else {}
    given = raw.get("step")
    kind, shape = raw.get("result_type"), raw.get("shape")
    step: Any = dict(given) if isinstance(given, Mapping) else {}
    function = given if isinstance(given, str) else step.get("function_name", raw.get("function_name"))
    step["function_name"] = as_text(function)
    parameters = step.get("parameters", raw.get("parameters"))
    if isinstance(parameters, str):
        literal = read_literal(parameters)
        if type(literal) is dict:  # whole, not a `CutDict`
            parameters = to_jsonable(literal)
    if not isinstance(parameters, Mapping):
        parameters = {"": parameters} if parameters else {}
    step["parameters"] = dict(parameters)

    if shape not in ("A", "B", "C") or "step" not in raw:
        shape = "A" if kind is None else "B"
        if "step" not in raw and "result" not in raw:
            shape = "C"
    flat = shape == "C" and "step" not in raw  # with a step, it was normalised before
    # on disk (shape C) the summary is the cut result itself
    result = raw.get("result_summary") if flat else raw.get("result")
    success = as_bool(raw.get("success"))
    if kind not in get_args(ResultType):
        kind = "text"
        if as_text(step.get("skip_reason")):
            kind = "skipped"
        elif success is not False and options.is_plot(step["function_name"]):
            kind = "visualization"
        elif success is not False and isinstance(result, (Mapping, list)):
            kind = "structured"
    metadata = dict(raw["result_metadata"]) if isinstance(raw.get("result_metadata"), Mapping) else {}
    # in memory (A, B) plots and structures are stored as they are; on disk (C) everything is cut
    may_be_cut = (kind == "text" or shape == "C") and not {"truncated", "length"} & set(metadata)
    if may_be_cut and isinstance(result, str) and len(result) == options.text_limit:
        metadata["truncated"] = [None, options.text_limit]
    error = raw.get("error")
    return StepRecord(
        step_index=as_count(raw.get("step_index")),
        step=step,
        success=success,
        result=result,
        result_type=kind,
        result_summary="" if flat else str(raw.get("result_summary") or ""),
        result_metadata=metadata,
        error=None if error is None or error is False or error in ("", {}, []) else str(error),
        error_type=as_text(raw.get("error_type")),
        timestamp=as_text(raw.get("timestamp")),
        shape=shape,
    )


def normalise_history(records: Any, options: Options = DEFAULTS) -> list[StepRecord]:
    """Normalise a history with JSON values, and number its steps where records have no index.

    A record without an index (shape C) is another attempt at the same step if it repeats the function and parameters
    of the record before it, and that one failed. Otherwise it is the next step.
    """
    history = list[StepRecord]()
    for raw in records if isinstance(records, list) else []:
        record = normalise_record(raw, options)
        if record["step_index"] is None:
            before = history[-1] if history else None
            is_next = before is not None and not repeats_failure(before, record)
            record["step_index"] = (before["step_index"] or 0 if before else 0) + is_next
        history.append(record)
    return history


def time_of(record: StepRecord) -> datetime | None:
    """Return a record's time in UTC (ISO 8601, RFC 2822 or time since 1970), or None. Without a zone, it is in UTC."""
    text = record["timestamp"] or ""
    try:
        if re.fullmatch(r"\d{10}(\d{3})?(\.\d+)?", text, re.ASCII):  # seconds, and their decimals
            return datetime.fromtimestamp(float(f"{text[:10]}.{text[10:].replace('.', '')}"), UTC)
        is_mail = re.search("[A-Za-z]{3} ", text)
        time = parsedate_to_datetime(text) if is_mail else datetime.fromisoformat(text.replace("/", "-"))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def is_talk(function_name: str | None) -> bool:
    """Return whether a step is talk, not analysis: it answers or asks the user, or it has no function."""
    return function_name in (None, "conversational_response", "final_question")


def same_call(a: StepRecord, b: StepRecord) -> bool:
    """Return whether two records call the same function with the same parameters."""
    step, other = a["step"], b["step"]
    return step["function_name"] == other["function_name"] and step["parameters"] == other["parameters"]


def repeats_failure(before: StepRecord, record: StepRecord) -> bool:
    """Return whether a record repeats the call of the record before it, which failed."""
    return before["success"] is False and same_call(before, record)


def cell_types_of(record: StepRecord) -> list[str]:
    """Return the cell types of a step: `target_cell_type`, else the cell types in its parameters."""
    step = record["step"]
    named = [step.get("target_cell_type"), *map(step["parameters"].get, ("cell_type", "cell_types", "celltype"))]
    for value in named:
        values = value if isinstance(value, list) else [value]
        if names := [one for one in values if isinstance(one, str) and one.strip()]:
            return names
    return []
