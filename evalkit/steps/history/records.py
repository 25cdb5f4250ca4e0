"""Normalise histories: a record of shape A, B or C, or any other JSON value, becomes a `StepRecord`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from evalkit.io import escape_surrogates, short_paths
from evalkit.steps.format import (
    DEFAULTS,
    HISTORY_KEY,
    RESULT_TYPES,
    Options,
    Step,
    StepRecord,
    cell_type_of,
    count,
    name,
    truth,
)
from evalkit.steps.history.values import read_literal, unique_keys

_DECODER = msgspec.json.Decoder()
_RECORD_KEYS = ("step", "function_name", "success", "result", "result_summary", "error")


@dataclass(frozen=True)
class History:
    """One history, identified by its source and thread.

    Attributes
    ----------
    source : str
        Path of the file.
    thread : str
        Thread of a checkpoint; empty for other files.
    records : list of StepRecord
        Normalised (`normalise_history`).
    plan : object
        The plan, if it was stored.
    name : str
        Its distinct label among those it was read with.
    options : Options
        The options it was normalised with and is judged by.
    evaluations : list of dict, optional
        The result of `evaluate_history`, if available.
    """

    source: str
    thread: str
    records: list[StepRecord]
    plan: Any = None
    name: str = ""
    options: Options = DEFAULTS
    evaluations: list[dict[str, Any]] | None = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """The name or, for a history that was read alone, that of the file with the thread."""
        return self.name or unique_labels([(self.source, self.thread)])[self.source, self.thread]


def as_history(records: Any, options: Options | None = None) -> History:
    """Return a history as it is, or with other options if given; normalise anything else into one."""
    if isinstance(records, History):
        if options is None or options == records.options:
            return records
        return replace(records, options=options, evaluations=None)
    options = options or DEFAULTS
    return History("", "", normalise_history(records, options), options=options)


def histories_of(histories: Iterable[tuple], steps: Iterable[tuple], options: Options = DEFAULTS) -> list[History]:
    """Build histories from rows (source, thread, plan) and (source, thread, entry) of `table.RECORDS`."""
    entries: dict[tuple[str, str], list] = {}
    for source, thread, entry in steps:
        entries.setdefault((source, thread), []).append(_DECODER.decode(entry))
    plans = {(source, thread): plan if plan is None else _DECODER.decode(plan) for source, thread, plan in histories}
    return [
        History(*key, normalise_history(entries.get(key, []), options), plans[key], label, options)
        for key, label in unique_labels(plans).items()
    ]


def unique_labels(histories: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return distinct labels of histories that are shown together, given by source and thread.

    A label is the shortest end of a path that no other file has, and the thread: ``h.json``, ``run_07/h.json``,
    ``c.sqlite · thread-1``. Bytes that are not UTF-8 are escaped.
    """
    pairs, unique = list(dict.fromkeys(histories)), unique_keys()
    paths = short_paths(source for source, _ in pairs)
    return {(a, b): unique(escape_surrogates(f"{paths[a]} · {b}" if b else paths[a])) for a, b in pairs}


def is_record(value: Any) -> bool:
    """Return whether a value looks like the record of a step, in any shape."""
    return isinstance(value, Mapping) and sum(key in value for key in _RECORD_KEYS) >= 2


def normalise_record(raw: Any, options: Options = DEFAULTS) -> StepRecord:
    """Normalise a record of any shape; never raises.

    What the record does not say stays None, and anything but a mapping becomes an empty record. `success` is True or
    False only if the record says so (also as text, ``"True"``). A stored text of exactly
    ``options.text_limit`` characters counts as cut, unless its metadata give its length.
    """
    raw = raw if isinstance(raw, Mapping) else {}
    kind, shape = raw.get("result_type"), raw.get("shape")
    if shape not in ("A", "B", "C") or "step" not in raw:
        shape = "C" if "step" not in raw and "result" not in raw else "A" if kind is None else "B"
    flat = shape == "C" and "step" not in raw  # if present, the record was normalised before
    step, success = _step(raw), truth(raw.get("success"))
    # on disk (shape C) the summary is the cut result itself
    result = raw.get("result_summary") if flat else raw.get("result")
    metadata = dict(raw["result_metadata"]) if isinstance(raw.get("result_metadata"), Mapping) else {}
    if kind not in RESULT_TYPES:
        is_plot, is_structure = options.is_plot(step["function_name"]), isinstance(result, (Mapping, list))
        kind = "visualization" if is_plot else "structured" if is_structure else "text"
        kind = "skipped" if name(step.get("skip_reason")) else "text" if success is False else kind
    # in memory (A, B) plots and structures are stored as they are; on disk (C) everything is cut
    may_be_cut = (kind == "text" or shape == "C") and not {"truncated", "length"} & set(metadata)
    if may_be_cut and isinstance(result, str) and len(result) == options.text_limit:
        metadata["truncated"] = [None, options.text_limit]
    error = raw.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        error = error["message"]
    return StepRecord(
        step_index=count(raw.get("step_index")),
        step=step,
        success=success,
        result=result,
        result_type=kind,
        result_summary="" if flat else str(raw.get("result_summary") or ""),
        result_metadata=metadata,
        error=None if error is None or error is False or error in ("", {}, []) else str(error),
        error_type=name(raw.get("error_type")),
        timestamp=name(raw.get("timestamp")),
        shape=shape,
    )


def _step(raw: Mapping) -> Step:
    given = raw.get("step")
    step: Any = (
        dict(given) if isinstance(given, Mapping) else {"function_name": given} if isinstance(given, str) else {}
    )
    step["function_name"] = name(step.get("function_name", raw.get("function_name")))
    parameters = step.get("parameters", raw.get("parameters"))
    if isinstance(parameters, str):  # default=str
        parameters = read_literal(parameters).value
    step["parameters"] = dict(parameters) if isinstance(parameters, Mapping) else {}
    return step


def normalise_history(records: Any, options: Options = DEFAULTS) -> list[StepRecord]:
    """Normalise a whole history, and count the steps if the records do not.

    If no record of a run of records has an index (shape C), a record that repeats the function and parameters of
    a failed one is another attempt at the same step; every other record is the next step.

    Parameters
    ----------
    records : list, or a mapping that holds one under ``execution_history``

    Returns
    -------
    list of StepRecord
        In the order given; entries other than mappings become empty records.
    """
    if isinstance(records, Mapping):
        records = records.get(HISTORY_KEY)
    if not isinstance(records, Sequence) or isinstance(records, (str, bytes)):
        return []
    out: list[StepRecord] = []
    for record in (normalise_record(raw, options) for raw in records):
        if record["step_index"] is None:
            record["step_index"] = (out[-1]["step_index"] or 0) + (not repeats_failure(out[-1], record)) if out else 0
        out.append(record)
    return out


def same_call(a: StepRecord, b: StepRecord) -> bool:
    """Return whether two records are the same function with the same parameters."""
    return all(a["step"][key] == b["step"][key] for key in ("function_name", "parameters"))


def repeats_failure(before: StepRecord, record: StepRecord) -> bool:
    """Return whether a record is another attempt at the call that failed in the one before."""
    return before["success"] is False and same_call(before, record)


def attempts(history: Sequence[StepRecord]) -> list[int]:
    """Count for each record how often its call was made consecutively up to it, each time before having failed."""
    counts = [1] * len(history)
    for i, (before, record) in enumerate(pairwise(history), 1):
        counts[i] += counts[i - 1] * repeats_failure(before, record)
    return counts


def each_record(histories: Iterable[History]) -> Iterator[tuple[dict[str, Any], StepRecord]]:
    """Yield the records of histories, each with the columns of `table.RECORD`."""
    for history in histories:
        for position, record in enumerate(history.records):
            ids = {"history": history.label, "position": position, "function_name": record["step"]["function_name"]}
            yield ids | {"cell_type": cell_type_of(record)}, record


def time_of(record: StepRecord) -> datetime | None:
    """Return the time of a record in UTC, which is assumed without a time zone; None if it has none."""
    try:
        time = datetime.fromisoformat(record["timestamp"] or "")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
