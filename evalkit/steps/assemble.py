"""Assemble records of histories into frames: every record is normalised once and judged once, by the user's options."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import pandas as pd

from evalkit.io import absolute, frame, paused_gc, short_paths
from evalkit.io.text import UniqueNames
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.steps.format import CRITICAL, DEFAULTS, SILENT, Options, StepRecord, cell_type_of, count
from evalkit.steps.judge import History, find_loops, plan_adherence
from evalkit.steps.normalise import normalise_record, number_steps
from evalkit.steps.table import CHECKS, FLAGS, RUNS, STEPS
from evalkit.steps.workflow import end_of_route

STATUS_OF_ROUTE = {"complete": "completed", "abort": "aborted", "continue": "unfinished"}
_DECODER = msgspec.json.Decoder()


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of runs (one per history), steps and checks, and the histories; options as for `load`."""
    plans = records.tables["histories"].select(["source", "thread", "plan"]).to_pydict().values()
    steps = records.tables["steps"].select(["source", "thread", "entry"]).to_pydict().values()
    histories = histories_of(zip(*plans, strict=True), zip(*steps, strict=True), options.get("options") or DEFAULTS)
    return Assembled(frames_of(histories), attributes={"histories": histories})


def histories_of(histories: Iterable[tuple], steps: Iterable[tuple], options: Options = DEFAULTS) -> list[History]:
    """Build histories from rows (source, thread, plan) and (source, thread, entry) of `table.RECORDS`.

    The label of one is the shortest end of its path that no other file has, and the thread: ``run_07/h.json``,
    ``c.sqlite · thread-1``.
    """
    plans, entries = dict[tuple[str, str], Any](), defaultdict[tuple[str, str], list[StepRecord]](list)
    for source, thread, plan in histories:
        plans[source, thread] = None if plan is None else _DECODER.decode(plan)
    for source, thread, entry in steps:
        entries[source, thread].append(normalise_record(_DECODER.decode(entry), options))
    paths, unique, found = short_paths([source for source, _ in plans]), UniqueNames("{} #{}"), list[History]()
    for (source, thread), plan in plans.items():
        label = unique(f"{paths[source]} · {thread}" if thread else paths[source])
        found.append(History(source, thread, number_steps(entries[source, thread]), plan, label, options))
    return found


def frames_of(histories: Sequence[History]) -> dict[str, pd.DataFrame]:
    """Build the frames of histories."""
    ids_of_runs = run_ids("steps", [absolute(h.source) for h in histories], [h.thread for h in histories])
    runs, steps, checks = list[dict](), list[dict](), list[dict]()
    for run_id, history in zip(ids_of_runs, histories, strict=True):
        runs.append({"run_id": run_id, **_run(history)})
        each = zip(history.records, history.evaluations, history.readings, strict=True)
        for position, (record, evaluation, reading) in enumerate(each):
            step, result = record["step"], record["result"]
            ids = {"history": history.label, "source": history.source, "thread": history.thread, "position": position}
            ids |= {"step_index": record["step_index"], "function_name": step["function_name"]}
            checks += [made | ids for made in evaluation["checks"]]

            cut = record["result_metadata"].get("truncated")
            original = count(cut[0]) if isinstance(cut, (list, tuple)) and cut else None
            stored = len(result) if isinstance(result, str) else None
            has_result = evaluation["verdict"] in ("success", SILENT) and result is not None
            found = {
                "cell_type": cell_type_of(record),
                "error_category": evaluation.get("failure_evaluation", {}).get("error_category"),
                "stored_length": stored,
                "original_length": original if cut else stored,
                "discovery_status": evaluation.get("process_cells_evaluation", {}).get("discovery_status"),
                "total_significant": count(
                    evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways")
                ),
                "summary": reading.summary if has_result else None,
                "result_summary": record["result_summary"] or None,
                "parameters": json.dumps(step["parameters"], sort_keys=True, ensure_ascii=False),
            }
            for key in ("step_type", "description", "skip_reason"):
                found[key] = None if step.get(key) is None else str(step[key])
            steps.append({**evaluation, **record, **ids, **found})
    return {"runs": frame(runs, RUNS), "steps": frame(steps, STEPS), "checks": frame(checks, CHECKS)}


def _run(history: History) -> dict[str, Any]:
    """Return the row of a history; the other columns are known of none.

    The status is how the workflow's routers would have ended the run, unknown without records. The run is successful
    if every planned step that was not skipped succeeded; that is unknown without a plan and in an unfinished run.
    """
    verdicts, cut, times = Counter[str](), 0, list[datetime]()
    for record, evaluation in zip(history.records, history.evaluations, strict=True):
        verdicts[evaluation["verdict"]] += 1
        cut += evaluation["truncated"]
        with suppress(ValueError, OverflowError):  # not a time; one without a zone is in UTC
            time = datetime.fromisoformat(record["timestamp"] or "")
            times.append((time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC))
    records, loops = len(history.records), len(find_loops(history))
    n = records - verdicts["skipped"] - verdicts["unknown"]
    status = STATUS_OF_ROUTE.get(end_of_route(history)[0])
    ended = {step.status for step in plan_adherence(history)} - {"skipped"}
    is_known = ended and "unknown" not in ended and status not in (None, "unfinished")
    raised = {
        "no_steps": not records,
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
        "turns": records,
        "run_flags": list(filter(raised.get, FLAGS)),
        "thread": history.thread,
        "history": history.label,
        "records": records,
        "judged": n,
        "reported": verdicts["success"] + verdicts[SILENT],
        "confirmed": verdicts["success"],
        "silent_failures": verdicts[SILENT],
        "failures": verdicts["failure"] + verdicts[CRITICAL],
        "loops": loops,
        "cut": cut,
    }
