"""Execution histories as a kind of log: their frames, and shortcuts to these.

Every record is normalised once and judged once, by the user's options.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Unpack

import pandas as pd

from evalkit import kinds
from evalkit.io import Source, absolute, decode_start, frame, paused_gc
from evalkit.kinds import (
    Assembled,
    Command,
    FileRules,
    LoadOptions,
    LogKind,
    Logs,
    Option,
    RateRules,
    Records,
    RunFiles,
    run_ids,
)
from evalkit.steps.judge import History, as_history, end_of_route, find_loops, histories_of, plan_adherence
from evalkit.steps.parse import companions, is_history, parse_file
from evalkit.steps.record import CRITICAL, DEFAULTS, SILENT, Options, cell_types_of
from evalkit.steps.table import FLAGS, LABELS, QUANTITY, RECORDS, TABLES
from evalkit.steps.terminal import describe, progress
from evalkit.steps.transcript import transcript
from evalkit.steps.values import as_count

STATUS_OF_ROUTE = {"complete": "completed", "abort": "aborted", "continue": "unfinished"}
_TITLE = "execution history"
_STATE = re.compile(rb'\ASQLite format 3|"execution_history"\s*:\s*\[')


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of runs (one per history), steps, checks, results, and the histories; options as for `load`."""
    plans = records.tables["histories"].select(["source", "thread", "plan"]).to_pydict().values()
    steps = records.tables["steps"].select(["source", "thread", "entry"]).to_pydict().values()
    histories = histories_of(zip(*plans, strict=True), zip(*steps, strict=True), options.get("options") or DEFAULTS)
    return Assembled(frames_of(histories), attributes={"histories": histories})


def frames_of(histories: Sequence[History]) -> dict[str, pd.DataFrame]:
    """Build the frames of histories."""
    ids_of_runs = run_ids("steps", [absolute(h.source) for h in histories], [h.thread for h in histories])
    runs, steps, checks, results = list[dict](), list[dict](), list[dict](), list[dict]()
    for run_id, history in zip(ids_of_runs, histories, strict=True):
        runs.append({"run_id": run_id, **_run(history)})
        each = zip(history.records, history.evaluations, history.readings, strict=True)
        for position, (record, evaluation, reading) in enumerate(each):
            step, result = record["step"], record["result"]
            ids = {"history": history.label, "source": history.source, "thread": history.thread, "position": position}
            ids |= {"copy_of": history.copy_of, "step_index": record["step_index"]}
            ids["function_name"] = step["function_name"]
            checks += [made | ids for made in evaluation["checks"]]

            cut = record["result_metadata"].get("truncated")
            original = as_count(cut[0]) if isinstance(cut, (list, tuple)) and cut else None
            stored = len(result) if isinstance(result, str) else None
            has_result = evaluation["verdict"] in ("success", SILENT) and result is not None
            found = {
                "cell_type": ", ".join(cell_types_of(record)) or None,
                "error_category": evaluation.get("failure_evaluation", {}).get("error_category"),
                "stored_length": stored,
                "original_length": original if cut else stored,
                "discovery_status": evaluation.get("process_cells_evaluation", {}).get("discovery_status"),
                "total_significant": as_count(
                    evaluation.get("enrichment_evaluation", {}).get("total_significant_pathways")
                ),
                "summary": reading.summary if has_result else None,
                "result_summary": record["result_summary"] or None,
                "parameters": json.dumps(step["parameters"], sort_keys=True, ensure_ascii=False),
            }
            for key in ("step_type", "description", "skip_reason"):
                found[key] = None if step.get(key) is None else str(step[key])
            steps.append({**evaluation, **record, **ids, **found})
            if evaluation["verdict"] == "success":
                ids["cell_type"] = found["cell_type"]
                results += [ids | dict(zip(QUANTITY, row, strict=True)) for row in reading.quantities]
    rows = {"runs": runs, "steps": steps, "checks": checks, "results": results}
    return {name: frame(rows[name], columns) for name, columns in TABLES.items()}


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
        "duplicate": history.copy_of,
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
        "copy_of": history.copy_of,
        "records": records,
        "judged": n,
        "reported": verdicts["success"] + verdicts[SILENT],
        "confirmed": verdicts["success"],
        "silent_failures": verdicts[SILENT],
        "failures": verdicts["failure"] + verdicts[CRITICAL],
        "loops": loops,
        "cut": cut,
    }


KIND = LogKind(
    name="steps",
    title=_TITLE,
    records=RECORDS,
    tables=TABLES,
    labels=LABELS,
    parse=parse_file,
    recognises=lambda head: _TITLE if _STATE.search(head) or is_history(decode_start(head)) else "",
    files=FileRules(companions=companions),
    assemble=assemble,
    rates=RateRules(outcome_of={"unfinished": "not measured"}, excluding_flags=("duplicate",)),
    settings=("options",),
    transcript=transcript,
    run_files=lambda logs, run: RunFiles([run["source"]], run["thread"] or ""),
    command=Command(
        summary="Verdicts on the steps of a plan-and-execute analysis agent.",
        help="""Judge the steps of an analysis agent.

    SOURCE is a file (JSON, JSONL, SQLite checkpoint), a folder, a quoted glob, a URL or a dataset of `collect`.

    One history is shown step by step. Several are summarised: a row per history, the lowest confirmed success first,
    and a row for all of them together; --all adds the steps of each.

    Records and steps count from 1 here and in reports, from 0 in the columns position and step_index of written files.
    With --follow, a history that has not changed for --idle seconds (60) counts as finished.
    """,
        views=(Option("checks", bool, False, "Show every check of every step.", followed=False),),
        describe=describe,
        progress=progress,
    ),
)


def load(source: Source, options: Options = DEFAULTS, **others: Unpack[LoadOptions]) -> Logs:
    """Read and judge histories: JSON, JSONL, LangGraph's SQLite checkpoints, or ``samples:steps``.

    By `options` steps are read and judged on each load, with the evaluators registered at that time; the other
    parameters are those of `evalkit.load`. Returns the frames runs (one row per history), steps, checks (one row per
    step and check), results (one row per number or name that a step found) and ledger, with the columns in `table`,
    and histories, a list of `History`.
    """
    return kinds.load(source, KIND, options=options, **others)


def steps_df(source: Any, options: Options = DEFAULTS) -> pd.DataFrame:
    """Return the frame of steps of a source, or of a list of records; see `load` and `table.STEPS`."""
    return _frame(source, options, "steps")


def checks_df(source: Any, options: Options = DEFAULTS) -> pd.DataFrame:
    """Return the frame of checks of a source, or of a list of records; see `load` and `table.CHECKS`."""
    return _frame(source, options, "checks")


def _frame(source: Any, options: Options, which: str) -> pd.DataFrame:
    if isinstance(source, Mapping) or (isinstance(source, list) and any(isinstance(x, Mapping) for x in source)):
        return frames_of([as_history(source, options)])[which]
    return getattr(load(source, options), which)
