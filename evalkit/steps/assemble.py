"""Build the frames of histories from records: each record is normalised and judged once, with the user's options."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pandas as pd

from evalkit.io import frame
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.steps.format import CRITICAL, DEFAULTS, SILENT, cell_types_of, time_of
from evalkit.steps.judge import History, end_of_route, find_loops, histories_of, plan_adherence
from evalkit.steps.literals import as_count
from evalkit.steps.table import FLAGS, TABLES


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the histories and the frames runs (a row per history), steps, checks and results; options as for `load`."""
    plans = records.tables["histories"].select(["source", "thread", "plan"]).to_pydict().values()
    steps = records.tables["steps"].select(["source", "thread", "entry"]).to_pydict().values()
    histories = histories_of(zip(*plans, strict=True), zip(*steps, strict=True), options.get("options") or DEFAULTS)
    sources, threads = [one.source for one in histories], [one.thread for one in histories]
    ids = run_ids("steps", sources, threads, records=records)
    histories = [replace(history, run_id=run_id) for history, run_id in zip(histories, ids, strict=True)]
    return Assembled(frames_of(histories), attributes={"histories": histories})


def frames_of(histories: Sequence[History]) -> dict[str, pd.DataFrame]:
    """Build the frames of histories that `TABLES` lists."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for history in histories:
        rows["runs"].append(_run_row(history))
        judged = zip(history.records, history.evaluations, history.readings, strict=True)
        for position, (record, evaluation, reading) in enumerate(judged):
            ids = {
                "run_id": history.run_id,
                "history": history.label,
                "copy_of": history.copy_of,
                "source": history.source,
                "thread": history.thread,
                "position": position,
                "turn": history.turns_of_results[position],
                "step_index": record["step_index"],
                "function_name": record["step"]["function_name"],
            }
            step, result = record["step"], record["result"]
            stored_length = original_length = len(result) if isinstance(result, str) else None
            if cut := record["result_metadata"].get("truncated"):
                original_length = as_count(cut[0]) if isinstance(cut, (list, tuple)) else None
            is_explained = record["error"] and evaluation["verdict"] not in ("success", SILENT)
            enrichment = evaluation.get("enrichment_evaluation", {})
            row = {
                "cell_type": ", ".join(cell_types_of(record)) or None,
                "error_category": evaluation.get("failure_evaluation", {}).get("error_category"),
                "stored_length": stored_length,
                "original_length": original_length,
                "discovery_status": evaluation.get("process_cells_evaluation", {}).get("discovery_status"),
                "total_significant": as_count(enrichment.get("total_significant_pathways")),
                "summary": None if is_explained or result is None else reading.summary,
                "result_summary": record["result_summary"] or None,
                "parameters": json.dumps(step["parameters"], sort_keys=True, ensure_ascii=False),
            }
            for key in ("step_type", "description", "skip_reason"):
                row[key] = None if step.get(key) is None else str(step[key])
            rows["steps"].append({**evaluation, **record, **row, **ids})
            rows["checks"] += [check | ids for check in evaluation["checks"]]
            if evaluation["verdict"] == "success":
                ids |= {"cell_type": row["cell_type"], "parameters": row["parameters"]}
                rows["results"] += [ids | quantity._asdict() for quantity in reading.quantities]
    return {name: frame(rows[name], columns) for name, columns in TABLES.items()}


def _run_row(history: History) -> dict[str, Any]:
    """Return the row of a history. It is successful if all planned steps succeeded or were skipped, None if unknown."""
    verdicts = Counter[str]()
    cut = 0
    times = list[datetime]()
    for record, evaluation in zip(history.records, history.evaluations, strict=True):
        verdicts[evaluation["verdict"]] += 1
        cut += evaluation["truncated"]
        if time := time_of(record):
            times.append(time)
    records, loops = len(history.records), len(find_loops(history))
    n = records - verdicts["skipped"] - verdicts["unknown"]
    statuses = {"complete": "completed", "abort": "aborted", "continue": "unfinished"}
    status = statuses.get(end_of_route(history)[0])
    ended = {step.status for step in plan_adherence(history)} - {"skipped"}
    is_known = ended and "unknown" not in ended and status not in (None, "unfinished")
    raised = {
        "no_steps": not records,
        "silent_failures": verdicts[SILENT],
        "critical_failures": verdicts[CRITICAL],
        "loops": loops,
        "cut_results": cut,
        "unknown_outcomes": verdicts["unknown"],
        "duplicate": history.copy_of,
    }
    return {
        "run_id": history.run_id,
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
        "copy_of": history.copy_of,
        "judged": n,
        "reported": verdicts["success"] + verdicts[SILENT],
        "confirmed": verdicts["success"],
        "silent_failures": verdicts[SILENT],
        "failures": verdicts["failure"] + verdicts[CRITICAL],
        "loops": loops,
        "cut": cut,
    }
