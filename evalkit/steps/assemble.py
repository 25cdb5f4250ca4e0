"""Assemble records of histories into frames: every record is normalised once and judged once, by the user's options."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.io import absolute, frame, paused_gc, unescape_surrogates
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.steps.evaluation.evaluate import evaluate_history, judged
from evalkit.steps.evaluation.trajectory import find_loops, plan_adherence
from evalkit.steps.execution.findings import summarise
from evalkit.steps.execution.workflow import simulate_routing
from evalkit.steps.format import CRITICAL, DEFAULTS, NOT_JUDGED, SILENT, Options, StepRecord, cell_type_of, count
from evalkit.steps.history.records import History, histories_of, time_of
from evalkit.steps.history.values import to_jsonable
from evalkit.steps.table import CHECKS, FLAGS, IDS, RUNS, STEPS

if TYPE_CHECKING:
    import pandas as pd

STATUS_OF_ROUTE = {"complete": "completed", "abort": "aborted", "continue": "unfinished"}
_FROM_STEP = ("step_type", "description", "skip_reason")
_FROM_CHECK = tuple(column.name for column in CHECKS[len(IDS) :])


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of runs (one per history), steps and checks, and the histories; options as for `load`."""
    histories = [judged(history) for history in read_histories(records, options.get("options") or DEFAULTS)]
    return Assembled(frames_of(histories), more={"histories": histories})


def frames_of(histories: Sequence[History]) -> "dict[str, pd.DataFrame]":
    """Build the frames of judged histories."""
    ids = run_ids("steps", [absolute(h.source) for h in histories], [h.thread for h in histories])
    steps = [row for history in histories for row in _step_rows(history)]
    return {
        "runs": frame([{"run_id": id_, **_run_row(h)} for id_, h in zip(ids, histories, strict=True)], RUNS),
        "steps": frame([step for step, _ in steps], STEPS),
        "checks": frame([check for _, checks in steps for check in checks], CHECKS),
    }


def read_histories(records: Records, options: Options = DEFAULTS) -> list[History]:
    """Return the histories of records, normalised, each with a distinct label."""

    def rows(table: str, column: str) -> Iterator[tuple[str, str, Any]]:
        columns = (records.tables[table][name].to_pylist() for name in ("source", "thread", column))
        return ((unescape_surrogates(source), thread, value) for source, thread, value in zip(*columns, strict=True))

    return histories_of(rows("histories", "plan"), rows("steps", "entry"), options)


def _step_rows(history: History) -> Iterator[tuple[dict, list[dict]]]:
    """Return the rows of steps, and those of their checks."""
    of_history = {"history": history.label, "source": history.source, "thread": history.thread}
    evaluations = evaluate_history(history)
    for position, (record, evaluation) in enumerate(zip(history.records, evaluations, strict=True)):
        ids = {**of_history, "position": position, "function_name": record["step"]["function_name"]}
        ids["step_index"] = record["step_index"]
        checks = [ids | {name: check.get(name) for name in _FROM_CHECK} for check in evaluation["checks"]]
        yield {**evaluation, **record, **ids, **_of_step(record, evaluation, history.options)}, checks


def _of_step(record: StepRecord, evaluation: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Return the columns of a step that are neither keys of its record nor of every evaluation."""
    step: Mapping[str, Any] = record["step"]
    cut = record["result_metadata"].get("truncated")
    original = count(cut[0]) if isinstance(cut, (list, tuple)) and cut else None
    has_result = evaluation["verdict"] in ("success", SILENT) and record["result"] is not None
    stored = len(record["result"]) if isinstance(record["result"], str) else None
    return {
        **{key: None if step.get(key) is None else str(step[key]) for key in _FROM_STEP},
        "cell_type": cell_type_of(record),
        "error_category": evaluation.get("failure_evaluation", {}).get("error_category"),
        "stored_length": stored,
        "original_length": original if cut else stored,
        "discovery_status": evaluation.get("process_cells_evaluation", {}).get("discovery_status"),
        "total_significant": count(evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways")),
        "summary": summarise(record, evaluation["silent_failure_reason"], options) if has_result else None,
        "result_summary": record["result_summary"] or None,
        "parameters": json.dumps(to_jsonable(step["parameters"]), sort_keys=True, ensure_ascii=False),
    }


def _run_row(history: History) -> dict[str, Any]:
    """Return the row of a history; the other columns are known of none."""
    evaluations = evaluate_history(history)
    verdicts = Counter(evaluation["verdict"] for evaluation in evaluations)
    n = len(evaluations) - sum(verdicts[verdict] for verdict in NOT_JUDGED)
    counts = {"loops": len(find_loops(history)), "cut": sum(evaluation["truncated"] for evaluation in evaluations)}
    times = [time for record in history.records if (time := time_of(record))]
    raised = {
        "no_steps": not evaluations,
        "silent_failures": verdicts[SILENT],
        "critical_failures": verdicts[CRITICAL],
        "loops": counts["loops"],
        "cut_results": counts["cut"],
        "unknown_outcomes": verdicts["unknown"],
    }
    return {
        "kind": "steps",
        "source": history.source,
        "model_name": "unknown",
        **_ending(history),
        "score": verdicts["success"] / n if n else None,
        "started": min(times, default=None),
        "duration": (max(times) - min(times)).total_seconds() if len(times) > 1 else None,
        "turns": len(evaluations),
        "run_flags": [flag for flag in FLAGS if raised[flag]],
        "thread": history.thread,
        "history": history.label,
        "records": len(evaluations),
        "judged": n,
        "reported": verdicts["success"] + verdicts[SILENT],
        "confirmed": verdicts["success"],
        "silent_failures": verdicts[SILENT],
        "failures": verdicts["failure"] + verdicts[CRITICAL],
        **counts,
    }


def _ending(history: History) -> dict[str, Any]:
    """Return how the workflow's routers would have ended the run, and whether every planned step succeeded.

    Skipped steps don't count. Success is unknown without a plan and in an unfinished run, the status without records.
    """
    last = [row["from_step_evaluator"] or row["from_executor"] for row in simulate_routing(history) if row["reached"]]
    status = STATUS_OF_ROUTE[last[-1]] if last else None
    ended = {step.status for step in plan_adherence(history)} - {"skipped"}
    known = ended and "unknown" not in ended and status not in (None, "unfinished")
    return {"status": status, "is_successful": ended == {"success"} if known else None}
