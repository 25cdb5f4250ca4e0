"""The record of a step, readers of its plain values, and the options of storage and evaluation.

Three shapes are read: A (nested, untyped), B (nested, typed; what this package writes) and C (flat, on disk).
All become one `StepRecord`, which is shape B with two more keys.
"""

import math
import numbers
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

Shape = Literal["A", "B", "C"]
ResultType = Literal["structured", "visualization", "text", "skipped", "validation"]

RESULT_TYPES = get_args(ResultType)
PSEUDO_STEPS = frozenset({"conversational_response", "final_question"})  # talk, not analysis
HISTORY_KEY, PLAN_KEY = "execution_history", "execution_plan"  # of a dumped state and of a checkpoint
SILENT, CRITICAL, NOT_RUN = "silent failure", "critical failure", "not run"
VERDICTS = ("success", SILENT, "failure", CRITICAL, "skipped", "unknown")
STATUSES = (*VERDICTS, NOT_RUN)  # of a planned step or an analysis, from best to worst
NOT_JUDGED = ("skipped", "unknown")  # verdicts that no rate counts
WENT_WRONG = ("failure", CRITICAL, SILENT)

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class StepRecord(TypedDict):
    """One executed step, whatever shape it was stored in; all values are JSON."""

    step_index: int | None  # None if unknown
    step: dict[str, Any]  # function_name, parameters, and whatever else the planner gave
    success: bool | None  # None if the record does not say
    result: Any
    result_type: ResultType
    result_summary: str
    result_metadata: dict[str, Any]  # "truncated": [original length or None, kept] where a text is (or is likely) cut
    error: str | None
    error_type: str | None
    timestamp: str | None  # as recorded
    shape: Shape


@dataclass(frozen=True)
class Options:
    """Limits, thresholds and patterns of storage and evaluation; the defaults are those of the kit's documentation."""

    # functions whose results are stored as they are, and prefixes of the names of those that make plots
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
    # characters that are stored of other results, and of summaries
    text_limit: int = 500
    summary_limit: int = 100
    # exception classes after which no later step can work, and patterns of their messages, for records without a class
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
    # of the status of an analysis that could not be done, in lower case and with underscores; no other is a failure
    failed_statuses: tuple[str, ...] = (
        r"no_(?:cells|clusters|data|markers)(?:_found|_available|_left)?",
        r"(?:insufficient|too_few|not_enough)_\w+",
        r"(?:\w+_)?(?:not_found|failed|failure|error)",
    )
    rich_pathways: int = 100  # more significant pathways than this are called rich
    loop_length: int = 3  # consecutive failures of one function with the same parameters that make a loop
    retry_cap: int = 3  # attempts at one step without advancing that end the workflow

    def is_plot(self, function_name: str | None) -> bool:
        """Return whether a function of this name makes plots."""
        return bool(function_name and function_name.startswith(self.visualization_prefixes))

    def is_critical(self, error_type: str | None, message: str | None) -> bool:
        """Return whether an error is critical, by its class name or the text of its message."""
        if error_type and error_type.rpartition(".")[2] in self.critical_errors:
            return True
        classes = "|".join(map(re.escape, sorted(self.critical_errors))) or "(?!)"  # which nothing matches
        pattern = "|".join([rf"\b(?:{classes})\b", *self.critical_patterns])
        return re.search(pattern, message or "") is not None

    def is_failed_status(self, status: str) -> bool:
        """Return whether a status means that an analysis could not be done."""
        name = re.sub(r"\W+", "_", status[:100].strip().lower())
        return re.fullmatch("|".join(self.failed_statuses), name) is not None


DEFAULTS = Options()


def cell_types_of(record: StepRecord) -> list[str]:
    """Return the cell types of a step: `target_cell_type`, else those its parameters name."""
    step = record["step"]
    named = [step.get("target_cell_type"), *map(step["parameters"].get, ("cell_type", "cell_types", "celltype"))]
    for value in named:
        values = value if isinstance(value, list) else [value]
        if names := [one for one in values if isinstance(one, str) and one.strip()]:
            return names
    return []


def cell_type_of(record: StepRecord) -> str | None:
    """Return the cell types of a step as a text; None if it names none."""
    return ", ".join(cell_types_of(record)) or None


def truncated(record: StepRecord) -> bool:
    """Return whether the stored result is only the beginning of the original."""
    return bool(record["result_metadata"].get("truncated"))


def truth(value: Any) -> bool | None:
    """Convert a bool, its text, or 0 and 1 to a truth value; None for anything else."""
    return _TRUTHS.get(str(value).strip().lower())


def count(value: Any) -> int | None:
    """Convert a whole number of at least 0, or its text, to int; None for anything else."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value) if 0 <= int(value) < 2**53 else None
    read = number(value)
    return int(read) if read is not None and read.is_integer() and 0 <= read < 2**53 else None


def number(value: Any) -> float | None:
    """Convert a finite number, or text as ``default=str`` writes it, to float; None for anything else."""
    if isinstance(value, (numbers.Real, str)) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return read if math.isfinite(read := float(value)) else None
    return None


def name(value: Any) -> str | None:
    """Return a text that is not empty; a number becomes its text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and value.strip() else None
