"""Assemble records of histories into frames: every record is normalised once and judged once, by the user's options."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd

from evalkit.io import absolute, frame, paused_gc, unescape_surrogates
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.steps.format import CRITICAL, DEFAULTS, NOT_JUDGED, SILENT, Options, cell_type_of, count
from evalkit.steps.judge import History, find_loops, plan_adherence
from evalkit.steps.normalise import normalise_record, number_steps, time_of, unique_labels
from evalkit.steps.table import CHECKS, FLAGS, IDS, RUNS, STEPS
from evalkit.steps.workflow import simulate_routing

STATUS_OF_ROUTE = {"complete": "completed", "abort": "aborted", "continue": "unfinished"}
_DECODER = msgspec.json.Decoder()
_FROM_CHECK = tuple(column.name for column in CHECKS[len(IDS) :])


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of runs (one per history), steps and checks, and the histories; options as for `load`."""
    histories = read_histories(records, options.get("options") or DEFAULTS)
    return Assembled(frames_of(histories), attributes={"histories": histories})


def read_histories(records: Records, options: Options = DEFAULTS) -> list[History]:
    """Return the histories of records, each with a distinct label."""
    tables = records.tables
    return histories_of(
        zip(*(tables["histories"][name].to_pylist() for name in ("source", "thread", "plan")), strict=True),
        zip(*(tables["steps"][name].to_pylist() for name in ("source", "thread", "entry")), strict=True),
        options,
    )


def histories_of(
    histories: Iterable[tuple[str, str, str | None]],
    steps: Iterable[tuple[str, str, str]],
    options: Options = DEFAULTS,
) -> list[History]:
    """Build histories from rows (source, thread, plan) and (source, thread, entry) of `table.RECORDS`."""
    plans = {(unescape_surrogates(source), thread): plan for source, thread, plan in histories}
    entries: dict[tuple[str, str], list] = {key: [] for key in plans}
    for source, thread, entry in steps:
        record = normalise_record(_DECODER.decode(entry), options)
        entries[unescape_surrogates(source), thread].append(record)
    labels, found = unique_labels(plans), list[History]()
    for key, plan in plans.items():
        decoded = None if plan is None else _DECODER.decode(plan)
        found.append(History(*key, number_steps(entries[key]), decoded, labels[key], options))
    return found


def frames_of(histories: Sequence[History]) -> dict[str, pd.DataFrame]:
    """Build the frames of histories."""
    ids = run_ids("steps", [absolute(h.source) for h in histories], [h.thread for h in histories])
    runs, steps, checks = list[dict](), list[dict](), list[dict]()
    for run_id, history in zip(ids, histories, strict=True):
        runs.append({"run_id": run_id, **_run(history)})
        for position, evaluation in enumerate(history.evaluations):
            row = _step(history, position)
            steps.append(row)
            ids_of_step = {column.name: row[column.name] for column in IDS}
            checks += [ids_of_step | {name: made.get(name) for name in _FROM_CHECK} for made in evaluation["checks"]]
    return {"runs": frame(runs, RUNS), "steps": frame(steps, STEPS), "checks": frame(checks, CHECKS)}


def _step(history: History, position: int) -> dict[str, Any]:
    """Return the row of a step; what is in no column is left out by the frame."""
    record, evaluation = history.records[position], history.evaluations[position]
    step: Mapping[str, Any] = record["step"]
    cut = record["result_metadata"].get("truncated")
    original = count(cut[0]) if isinstance(cut, (list, tuple)) and cut else None
    has_result = evaluation["verdict"] in ("success", SILENT) and record["result"] is not None
    stored = len(record["result"]) if isinstance(record["result"], str) else None
    return {
        **evaluation,
        **record,
        "history": history.label,
        "source": history.source,
        "thread": history.thread,
        "position": position,
        "function_name": step["function_name"],
        **{
            key: None if step.get(key) is None else str(step[key])
            for key in ("step_type", "description", "skip_reason")
        },
        "cell_type": cell_type_of(record),
        "error_category": evaluation.get("failure_evaluation", {}).get("error_category"),
        "stored_length": stored,
        "original_length": original if cut else stored,
        "discovery_status": evaluation.get("process_cells_evaluation", {}).get("discovery_status"),
        "total_significant": count(evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways")),
        "summary": history.readings[position].summary if has_result else None,
        "result_summary": record["result_summary"] or None,
        "parameters": json.dumps(step["parameters"], sort_keys=True, ensure_ascii=False),
    }


def _run(history: History) -> dict[str, Any]:
    """Return the row of a history; the other columns are known of none.

    The status is how the workflow's routers would have ended the run, unknown without records. The run is successful
    if every planned step that was not skipped succeeded; that is unknown without a plan and in an unfinished run.
    """
    evaluations = history.evaluations
    verdicts = Counter(evaluation["verdict"] for evaluation in evaluations)
    n = len(evaluations) - sum(verdicts[verdict] for verdict in NOT_JUDGED)
    times = [time for record in history.records if (time := time_of(record))]
    loops, cut = len(find_loops(history)), sum(evaluation["truncated"] for evaluation in evaluations)
    reached = [row for row in simulate_routing(history) if row["reached"]]
    status = STATUS_OF_ROUTE[reached[-1]["from_step_evaluator"] or reached[-1]["from_executor"]] if reached else None
    ended = {step.status for step in plan_adherence(history)} - {"skipped"}
    is_known = ended and "unknown" not in ended and status not in (None, "unfinished")
    raised = {
        "no_steps": not evaluations,
        "silent_failures": verdicts[SILENT],
        "critical_failures": verdicts[CRITICAL],
        "loops": loops,
        "cut_results": cut,
        "unknown_outcomes": verdicts["unknown"],
    }
    return {
        "kind": "steps",
        "source": history.source,
        "model_name": "unknown",
        "status": status,
        "is_successful": ended == {"success"} if is_known else None,
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
        "loops": loops,
        "cut": cut,
    }
