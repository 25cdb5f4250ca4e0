"""One normaliser: a record of shape A, B or C, or anything else JSON can hold, becomes a `StepRecord`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.steps.format import DEFAULTS, HISTORY_KEY, RESULT_TYPES, Options, Shape, Step, StepRecord
from evalkit.steps.literal import read_literal

_STEP_KEYS = ("step", "function_name", "success", "result", "result_summary", "error")
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


def is_record(value: Any) -> bool:
    """Say whether a value looks like the record of a step, in any shape."""
    return isinstance(value, Mapping) and sum(key in value for key in _STEP_KEYS) >= 2


def normalise_record(raw: Any, options: Options = DEFAULTS) -> StepRecord:
    """Bring a record of any shape into the one form; never raises.

    What the record does not say stays None. `success` is True or False only where the record says so (also as text,
    ``"True"``). A stored text of exactly ``options.text_limit`` characters counts as cut, unless its metadata give
    its length.

    Parameters
    ----------
    raw : object
        A record of shape A, B or C; anything else becomes a record that says nothing.
    options : Options

    Returns
    -------
    StepRecord
    """
    raw = raw if isinstance(raw, Mapping) else {}
    shape = _shape(raw)
    flat = shape == "C" and "step" not in raw  # where it is there, the record was normalised before
    step = _step(raw)
    success = truth(raw.get("success"))
    # on disk (shape C) what is called summary is the cut result itself
    result = raw.get("result_summary") if flat else raw.get("result")
    metadata = dict(raw["result_metadata"]) if isinstance(raw.get("result_metadata"), Mapping) else {}
    kind = raw.get("result_type") if raw.get("result_type") in RESULT_TYPES else None
    kind = kind or _result_type(step, success, result, options)
    if "truncated" not in metadata and _looks_cut(result, kind, shape, metadata, options):
        metadata["truncated"] = [None, options.text_limit]
    return StepRecord(
        step_index=whole(raw.get("step_index")),
        step=step,
        success=success,
        result=result,
        result_type=kind,
        result_summary="" if flat else str(raw.get("result_summary") or ""),
        result_metadata=metadata,
        error=_error(raw.get("error")),
        error_type=name(raw.get("error_type")),
        timestamp=name(raw.get("timestamp")),
        shape=shape,
    )


def normalise_history(records: Any, options: Options = DEFAULTS) -> list[StepRecord]:
    """Bring a whole history into the one form, and count the steps where the records do not.

    Where no record of a run of records has an index (shape C), a record that repeats the function and parameters of
    a failed one is another attempt at the same step; every other record is the next step.

    Parameters
    ----------
    records : list, or a mapping that holds one under ``execution_history``

    Returns
    -------
    list of StepRecord
        In the order given; entries that are no mapping become records that say nothing.
    """
    if isinstance(records, Mapping):
        records = records.get(HISTORY_KEY)
    if not isinstance(records, Sequence) or isinstance(records, (str, bytes)):
        return []
    out: list[StepRecord] = []
    for raw in records:
        record = normalise_record(raw, options)
        if record["step_index"] is None and out:
            before = out[-1]
            retried = before["success"] is False and same_call(before, record)
            record["step_index"] = (before["step_index"] or 0) + (0 if retried else 1)
        elif record["step_index"] is None:
            record["step_index"] = 0
        out.append(record)
    return out


def function_of(record: StepRecord) -> str | None:
    """Name the function of a step; None for a step without one."""
    return record["step"].get("function_name")


def cell_types_of(record: StepRecord) -> list[str]:
    """Name the cell types a step is about: `target_cell_type`, else what its parameters name."""
    step = record["step"]
    parameters = step.get("parameters", {})
    for value in (step.get("target_cell_type"), *(parameters.get(k) for k in ("cell_type", "cell_types", "celltype"))):
        names = value if isinstance(value, list) else [value]
        if found := [one for one in names if isinstance(one, str) and one.strip()]:
            return found
    return []


def cell_type_of(record: StepRecord) -> str | None:
    """Name the cell types a step is about in one text; None where it names none."""
    return ", ".join(cell_types_of(record)) or None


def same_call(a: StepRecord, b: StepRecord) -> bool:
    """Say whether two records are the same function with the same parameters."""
    return function_of(a) == function_of(b) and a["step"].get("parameters") == b["step"].get("parameters")


def truth(value: Any) -> bool | None:
    """Read a yes or no, also from text or 0 and 1; None where it is neither."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, (str, int, float)) else ""
    return True if text in _YES else False if text in _NO else None


def number(value: Any) -> float | None:
    """Read a finite number, also from text as ``default=str`` writes it; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def whole(value: Any) -> int | None:
    """Read a whole number of at least 0, also from text; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 2**63 else None
    read = number(value)
    return int(read) if read is not None and read.is_integer() and 0 <= read < 2**53 else None


def name(value: Any) -> str | None:
    """Read a text that is not empty; a number becomes its text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and value.strip() else None


def _shape(raw: Mapping) -> Shape:
    if raw.get("shape") in ("A", "B", "C") and "step" in raw:
        return raw["shape"]
    if "step" not in raw and "result" not in raw:
        return "C"
    return "B" if raw.get("result_type") is not None else "A"


def _step(raw: Mapping) -> Step:
    given = raw.get("step")
    if isinstance(given, str):
        given = {"function_name": given}
    step = dict(given) if isinstance(given, Mapping) else {}
    if "function_name" not in step:
        step["function_name"] = raw.get("function_name")
    if "parameters" not in step:
        step["parameters"] = raw.get("parameters")
    step["function_name"] = name(step["function_name"])
    parameters = step["parameters"]
    if isinstance(parameters, str):  # default=str
        parameters = read_literal(parameters).value
    step["parameters"] = dict(parameters) if isinstance(parameters, Mapping) else {}
    return step


def _result_type(step: Step, success: bool | None, result: Any, options: Options) -> str:
    if name(step.get("skip_reason")):
        return "skipped"
    if success is False:
        return "text"
    if options.is_plot(step["function_name"]):
        return "visualization"
    return "structured" if isinstance(result, (Mapping, list)) else "text"


def _looks_cut(result: Any, kind: str, shape: Shape, metadata: Mapping, options: Options) -> bool:
    if not isinstance(result, str) or len(result) != options.text_limit or "length" in metadata:
        return False
    # in memory (A, B) plots and structures are whole; on disk (C) everything is cut
    return kind == "text" or shape == "C"


def _error(value: Any) -> str | None:
    if value is None or value is False or value in ("", {}, []):
        return None
    if isinstance(value, Mapping) and isinstance(value.get("message"), str):
        return value["message"]
    return str(value)
