"""Frames of steps and checks; every column's name, type and unit stands here once."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io import Column, Ledger, StorageOptions, frame, is_url, storage
from evalkit.steps.collecting import open_collected
from evalkit.steps.evaluators import evaluate_records
from evalkit.steps.format import DEFAULTS, Options, StepRecord
from evalkit.steps.functions import BUILT_IN
from evalkit.steps.histories import check_used, list_histories, read_histories, read_listed
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.parse import History
from evalkit.steps.records import cell_type_of, function_of, normalise_history, whole
from evalkit.steps.registry import EVALUATORS
from evalkit.steps.summaries import summarise
from evalkit.steps.verdicts import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

IDS = (
    Column("history", "str", "label that tells the history apart from those loaded with it"),
    Column("source", "str", "path of the history's file"),
    Column("thread", "str", "thread of a checkpoint; empty for other files"),
    Column("position", "int", "place of the record in its history, from 0"),
    Column("step_index", "int?", "index of the step; where none was recorded, counted: a retry keeps its step's"),
    Column("function_name", "str", "function of the step"),
)
STEP_COLUMNS = (
    *IDS,
    Column("attempt", "int", "how often the call was made in a row, each time before having failed, from 1"),
    Column("step_type", "str", "as planned: analysis, visualization, …"),
    Column("cell_type", "str", "cell type the step is about"),
    Column("success", "bool?", "as recorded; missing where the record does not say"),
    Column("verdict", "str", ", ".join(VERDICTS)),
    Column("silent_failure", "bool", "success was reported, but the result says otherwise"),
    Column("silent_failure_reason", "str", "what the result says"),
    Column("critical_failure", "bool", "an error after which nothing that follows can work"),
    Column("error_category", "str", "system_error or analysis_error, of failures"),
    Column("error_type", "str", "class of the error, where it was recorded"),
    Column("error", "str", "message of the error"),
    Column("result_type", "str", "structured, visualization, text, skipped, validation"),
    Column("truncated", "bool", "the stored text is cut, or of exactly the length at which it would be cut"),
    Column("stored_length", "int?", "length of the stored text or HTML", "characters"),
    Column("original_length", "int?", "its length before it was cut; missing where that is not known", "characters"),
    Column("data_completeness", "str", "complete, partial, limited (cut) or none (an error, a status, nothing)"),
    Column("discovery_status", "str", "how the discovery of cell types ended (process_cells)"),
    Column("total_significant", "int?", "significant terms over all methods, for orientation (enrichment)"),
    Column("summary", "str", "what a step that reports success did, in a line, as its result says"),
    Column("result_summary", "str", "the summary that was stored"),
    Column("description", "str", "what the step was to do"),
    Column("skip_reason", "str", "why the step was skipped"),
    Column("parameters", "str", "parameters of the call, as JSON"),
    Column("timestamp", "str", "as recorded"),
    Column("shape", "str", "shape of the record: A, B or C"),
)
CHECK_COLUMNS = (
    *IDS,
    Column("name", "str", "name of the check"),
    Column("score", "float", "from 0 to 1; NaN where it can't be computed", "share"),
    Column("label", "str", "the judgement in a word"),
    Column("explanation", "str", "why"),
    Column("severity", "str", "info, warning, error or critical"),
)
_HISTORY_COLUMNS = tuple(Column(name, "object", "as it was read") for name in History._fields)


class StepHistories(NamedTuple):
    """Everything read from one or more sources.

    Attributes
    ----------
    steps : DataFrame
        One row per step (`STEP_COLUMNS`).
    checks : DataFrame
        One row per step and check (`CHECK_COLUMNS`).
    ledger : DataFrame
        One row per file seen.
    histories : list of History
        The records themselves.
    """

    steps: "pd.DataFrame"
    checks: "pd.DataFrame"
    ledger: "pd.DataFrame"
    histories: list[History]


def load(
    source: Any,
    options: Options = DEFAULTS,
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> StepHistories:
    """Read and judge histories, or take them from the store of parsed tables where no file has changed.

    Evaluators other than the kit's own, and `Options` of a subclass, are code that the store can't tell from another:
    with one of these, and of named pipes, everything is read and judged anew.

    Parameters
    ----------
    source : str, path, or a list of them
        Files (JSON, JSONL, LangGraph's SQLite checkpoints), folders, or ``samples:steps``; also globs and URLs. Empty
        names in a list are left out.
    options : Options
    jobs, storage_options
        As for `evalkit.steps.histories.read_histories`.

    Returns
    -------
    StepHistories

    Raises
    ------
    SourceError
        Where a source is not there, or none of its files is an execution history.
    """
    with storage(storage_options):
        if open_collected(source):
            frames = _frames(*read_histories(source, options), options)
        else:
            frames = _frames_of_files(source, options, jobs)
        check_used(source, frames["ledger"].to_dict("records"))
    table = frames.pop("histories")
    return StepHistories(**frames, histories=list(map(History, *(table[name] for name in table))))


def _frames_of_files(source: Any, options: Options, jobs: int | None) -> "dict[str, pd.DataFrame]":
    from evalkit.io import cached_frames

    listing, pipes = list_histories(source)

    def build() -> "dict[str, pd.DataFrame]":
        return _frames(*read_listed(listing.files, pipes, options, jobs), options)

    if pipes or type(options) is not Options or EVALUATORS != BUILT_IN:
        return build()
    # what a database was told last may stand beside it
    seen = [*listing.files, *(f"{file}-wal" for file in listing.files if not is_url(file))]
    asked = {"order": listing.files, "options": to_jsonable(options)}
    return cached_frames("steps", seen, build, listing.marks, **asked)


def _frames(histories: list[History], ledger: Ledger, options: Options) -> "dict[str, pd.DataFrame]":
    rows = [evaluated_rows(history, options) for history in histories]
    return {
        "steps": frame([row for step_rows, _ in rows for row in step_rows], STEP_COLUMNS),
        "checks": frame([row for _, check_rows in rows for row in check_rows], CHECK_COLUMNS),
        "ledger": ledger.frame(),
        "histories": frame([history._asdict() for history in histories], _HISTORY_COLUMNS),
    }


def steps_df(source: Any, options: Options = DEFAULTS) -> "pd.DataFrame":
    """Give the frame of steps of a source, or of a list of records; see `load` and `STEP_COLUMNS`."""
    return _rows_of(source, 0, options)


def checks_df(source: Any, options: Options = DEFAULTS) -> "pd.DataFrame":
    """Give the frame of checks of a source, or of a list of records; see `load` and `CHECK_COLUMNS`."""
    return _rows_of(source, 1, options)


def evaluated_rows(history: History, options: Options = DEFAULTS) -> tuple[list[dict], list[dict]]:
    """Judge a history and make the rows of its steps and of its checks, as dictionaries."""
    steps, checks = [], []
    evaluations = evaluate_records(history.records, options)
    for position, (record, evaluation) in enumerate(zip(history.records, evaluations, strict=True)):
        ids = {
            "history": history.label,
            "source": history.source,
            "thread": history.thread,
            "position": position,
            "step_index": record["step_index"],
            "function_name": function_of(record),
        }
        steps.append(ids | _step_row(record, evaluation, options))
        checks += [ids | {column: check.get(column) for column in _CHECK} for check in evaluation["checks"]]
    return steps, checks


_CHECK = tuple(column.name for column in CHECK_COLUMNS[len(IDS) :])


def _step_row(record: StepRecord, evaluation: Mapping[str, Any], options: Options) -> dict[str, Any]:
    step, metadata = record["step"], record["result_metadata"]
    failure = evaluation.get("failure_evaluation", {})
    cut = metadata.get("truncated")
    original = whole(cut[0]) if isinstance(cut, (list, tuple)) and cut else None
    has_result = evaluation["verdict"] in ("success", "silent failure") and record["result"] is not None
    stored = len(record["result"]) if isinstance(record["result"], str) else None
    return {
        **{key: evaluation.get(key) for key in _FROM_EVALUATION},
        "step_type": _text(step.get("step_type")),
        "cell_type": cell_type_of(record),
        "error_category": failure.get("error_category"),
        "error_type": record["error_type"],
        "error": record["error"],
        "stored_length": stored,
        "original_length": original if cut else stored,
        "discovery_status": evaluation.get("process_cells_evaluation", {}).get("discovery_status"),
        "total_significant": whole(evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways")),
        "summary": summarise(record, options) if has_result else None,
        "result_summary": record["result_summary"] or None,
        "description": _text(step.get("description")),
        "skip_reason": _text(step.get("skip_reason")),
        "parameters": json.dumps(to_jsonable(step["parameters"]), sort_keys=True, ensure_ascii=False),
        "timestamp": record["timestamp"],
        "shape": record["shape"],
    }


_FROM_EVALUATION = (
    "attempt",
    "success",
    "verdict",
    "silent_failure",
    "silent_failure_reason",
    "critical_failure",
    "result_type",
    "truncated",
    "data_completeness",
)


def _rows_of(source: Any, which: int, options: Options) -> "pd.DataFrame":
    columns = (STEP_COLUMNS, CHECK_COLUMNS)[which]
    if _is_records(source):
        return frame(evaluated_rows(History("", "", normalise_history(source, options)), options)[which], columns)
    return load(source, options)[which]


def _is_records(source: Any) -> bool:
    return isinstance(source, Mapping) or (isinstance(source, list) and any(isinstance(x, Mapping) for x in source))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
