"""Assemble runs from records, and complete them with scores, models, outcomes and trajectories from other files."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._notes import NO_NOTES, note
from evalkit._text import as_list
from evalkit.io import SourceError, frame_of, reason_of
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.kinds.runs import JUDGED, UNKNOWN
from evalkit.kinds.selection import run_ids_of
from evalkit.trajectories.calls import join_sessions
from evalkit.trajectories.formats import every_eval_ever, harbor, lm_eval, openhands, tau2, terminal_bench
from evalkit.trajectories.joined_tables import join_tables
from evalkit.trajectories.records import AGENT_FAILED, ENDED, LOGGED, OF_RUNS, Rows, Run, Runs
from evalkit.trajectories.table import NAME, TABLES
from evalkit.trajectories.transcript import messages_frame, tool_calls_frame

OUTCOMES = {"success": True, "failure": False, "not measured": None}
_STATING_SUCCESS = ("table", every_eval_ever.FORMAT)  # formats whose success is not derived from the score here
_WHOLE_REWARDS = {("tau-bench", "reward")}  # scores of which any value below 1 is a failure
_ROUNDING = 1e-6  # maximum difference of a score from 0 or 1 that counts as rounding
# formats in which other files describe runs; `join` of the module completes the runs and may return a `Joined`
JOINED_FORMATS: Sequence[Any] = (harbor, tau2, lm_eval, openhands, terminal_bench)


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames; `options` are keywords of `load`."""
    facts, published = (records.tables[name].to_pylist() for name in ("facts", "published"))
    scores = records.tables["scores"]
    logged = {name: records.tables["runs"][name] for name in LOGGED}
    columns = {name: values.to_pylist() for name, values in logged.items() if name != "started"}
    columns["started"] = logged["started"].to_numpy().tolist()  # `to_pylist` takes a hundred times as long for times
    runs: Runs = list(map(Run, *(columns.pop(name) for name in LOGGED)))
    reasons = dict(zip(records.files["source"].to_pylist(), records.files["reason"].to_pylist(), strict=True))
    score = str(options.get("score") or "")
    of_tables = join_tables(runs, as_list(options.get("columns") or ()), reasons, score, records.listing.named)
    counts = join_sessions(runs, facts, records.tables)
    joined = [of_tables, *filter(None, (one.join(runs, facts, published) for one in JOINED_FORMATS))]
    chosen = sum((one.notes for one in joined), NO_NOTES)
    if filters := {source: names for one in joined for source, names in one.filters.items()}:
        keys = scores["key"].to_pylist()
        for at, source in enumerate(scores["source"].to_pylist()):
            metric, comma, filtered = keys[at].rpartition(",")
            keys[at] = metric + comma + filters.get(source, {}).get(filtered, filtered)
        scores = scores.set_column(scores.column_names.index("key"), "key", pa.array(keys, pa.large_string()))
    plan_of_source = {source: plan for one in joined for source, plan in one.plan_of.items()}
    # context files, which the user did not name: their plans also cover other runs
    above = records.files.filter(records.files["context"])["source"].to_pylist()
    entries = [entry for one in joined for entry in one.entries if entry.source not in above]
    runs = sorted((run for run in runs if not run.is_left_out), key=attrgetter("source"))
    ids = run_ids(NAME, [run.source for run in runs], [run.part for run in runs], records=records)
    models = _by_task(facts, "model")  # from SWE-bench's predictions
    for run, run_id in zip(runs, ids, strict=True):
        run.run_id = run_id
        if run.model_name is None and run.task_id in models and run.format != openhands.FORMAT:
            run.model_name = _nearest(run.source, models[run.task_id])
        run.model_name = run.model_name or UNKNOWN
    run_of_score = pa.array(_score(runs, scores, facts, score), pa.large_string())
    scores = scores.append_column("run_id", run_of_score).filter(pc.is_valid(run_of_score))
    if score:  # of lm-eval, each data set has metrics of its own
        of_lm_eval = {run.dataset for run in runs if run.format == lm_eval.FORMAT}
        if without := of_lm_eval - {run.dataset for run in runs if run.score_key}:
            runs = [run for run in runs if run.format != lm_eval.FORMAT or run.dataset not in without]
            chosen += note("without_score", datasets=sorted(filter(None, without)))
    if used := list(dict.fromkeys(run.score_key for run in runs if run.score_key and run.format != "table")):
        chosen += note("scorer", used=used, others=sorted(set(scores["key"].to_pylist()) - set(used)))
    if turned := sorted({run.score_key for run in runs if run.score_key and run.is_turned}):
        chosen += note("turned", scores=turned)
    if unknown := _by_task(facts, "unknown"):
        counted = {name: sum(int(one["value"]) for one in own) for name, own in unknown.items()}
        chosen += note("unknown_records", counts=counted)
    _distinguish_tasks(runs)
    id_of = {run.source: run.run_id for run in runs}
    counts = {name: table.assign(run_id=table["source"].map(id_of)) for name, table in counts.items()}
    usage = zip(counts["usage"]["run_id"], counts["usage"]["model_name"], strict=True)
    models_of = Counter(run_id for run_id, model in usage if model != UNKNOWN)
    _number_repetitions(runs)
    _flag_duplicates(runs)
    _overrule(runs, str(options.get("outcomes") or ""))
    amounts = {run.dataset for run in runs if run.score is not None and (run.score < 0 or run.score > 1)}
    for run in runs:
        run.is_share = run.dataset not in amounts
        if run.is_judged:
            run.run_flags.append(JUDGED)
        if run.score is None and run.is_successful is None and run.status in ENDED:
            run.run_flags.append("no_outcome")
        if models_of[run.run_id] > 1:
            run.run_flags.append("several_models")
        run.task_type = run.dataset
    without_plan = {source for one in joined for source in one.without_plan}.union(above)
    stated = [plan for plan in records.tables["plans"].to_pylist() if plan["source"] not in without_plan]
    plans = _plans(runs, stated, records.tables["plans"].schema, plan_of_source)
    runs.sort(key=attrgetter("source", "repetition"))
    of_runs = {column.name: map(attrgetter(column.name), runs) for column in OF_RUNS}
    for figure in published:
        figure["task_type"] = figure["dataset"]
    figures = {column.name: map(itemgetter(column.name), published) for column in TABLES["published"]}
    tables: dict[str, Any] = {"scores": scores, "plans": plans, "published": figures, **counts}
    frames = {"runs": frame_of(of_runs, OF_RUNS)}
    for name, table in tables.items():
        frames[name] = frame_of({column.name: table[column.name] for column in TABLES[name]}, TABLES[name])
    lazy = {
        "messages": partial(messages_frame, frames["runs"]),
        "tool_calls": partial(tool_calls_frame, frames["runs"]),
    }
    return Assembled(frames, entries, lazy=lazy, chosen=chosen)


def _by_task(facts: Rows, name: str) -> dict[str, list[dict[str, Any]]]:
    by_task: dict[str, list[dict[str, Any]]] = {}
    for fact in facts:
        if fact["fact"] == name:
            by_task.setdefault(fact["task_id"], []).append(fact)
    return by_task


def _nearest(source: str, facts: Rows) -> str:
    """Return the value of the fact whose file shares the most parent folders with a run's file."""
    shared = [len(os.path.commonpath([source, fact["source"]])) for fact in facts]
    return facts[shared.index(max(shared))]["value"]


def _score(runs: Runs, scores: pa.Table, facts: Rows, key: str) -> list[str | None]:
    """Set the score, success and status of runs; return the run id of each score, None for a score without a run."""
    sources, parts, keys, values = (scores[name].to_pylist() for name in ("source", "part", "key", "value"))
    known = {*keys, *(run.score_key for run in runs if run.score_key)}
    if key and key not in known:
        raise SourceError(f"no score is named {key!r}; there are {', '.join(sorted(known)) or 'none'}")
    by_place = {(run.source, run.part): run for run in runs}
    run_of_score = list(map(by_place.get, zip(sources, parts, strict=True)))
    wanted = key or "reward"
    of_dataset = {} if key else _scores_of_datasets(run_of_score, keys, values)
    for run, name, value in zip(run_of_score, keys, values, strict=True):
        if run is None or (key and name != key):
            continue
        if run.format == lm_eval.FORMAT and not key and of_dataset.get(run.dataset) != name:
            continue
        if run.score_key is None or (name == wanted and run.score_key != wanted):
            run.score, run.score_key = value, name
    _turn_lower_is_better(runs)
    _add_verdicts(runs, _by_task(facts, "outcome"))
    for run in runs:
        if run.format not in _STATING_SUCCESS and run.status not in AGENT_FAILED and run.status not in ENDED:
            run.score = None
    _set_success(runs)
    every_eval_ever.set_success(runs)
    return [None if run is None else run.run_id for run in run_of_score]


def _scores_of_datasets(
    runs: Sequence[Run | None], keys: Sequence[str], values: Sequence[float | None]
) -> dict[Any, str]:
    """Return the score that counts for each dataset of lm-eval, the same for all its runs.

    Scores that are always 0 or 1 come first, then the score that most runs have, then the first one logged.
    """
    counts = Counter[tuple[Any, str]]()
    between = set[tuple[Any, str]]()
    for run, key, value in zip(runs, keys, values, strict=True):
        if run is not None and run.format == lm_eval.FORMAT and value is not None:
            counts[run.dataset, key] += 1
            if value not in (0.0, 1.0):
                between.add((run.dataset, key))
    best: dict[Any, str] = {}
    for dataset, key in sorted(counts, key=lambda name: (name in between, -counts[name])):
        best.setdefault(dataset, key)
    return best


def _turn_lower_is_better(runs: Runs) -> None:
    """Invert scores for which lower is better: 1 - score if all are from 0 to 1, else -score."""
    turned: dict[tuple[str | None, str], list[tuple[Run, float]]] = {}
    for run in runs:
        if run.score is None or run.score_key is None or not run.lower_is_better:
            continue
        if run.score_key.rpartition(",")[0] in run.lower_is_better:
            turned.setdefault((run.dataset, run.score_key), []).append((run, run.score))
    for own in turned.values():
        base = 1.0 if all(0 <= score <= 1 for _, score in own) else 0.0
        for run, score in own:
            run.score = base - score
            run.is_turned = True


def _add_verdicts(runs: Runs, verdicts: Mapping[str, Rows]) -> None:
    """Set the score and status of runs whose outcome a SWE-bench report states."""
    for run in runs:
        if run.score is not None or run.task_id not in verdicts:
            continue
        stated = verdicts[run.task_id]
        if run.format == openhands.FORMAT:
            stated = [fact for fact in stated if openhands.is_report_of(fact["source"], run.source)]
            of_model = stated
        else:
            of_model = [fact for fact in stated if (fact["model_name"] or "").replace("__", "/") == run.model_name]
        if not stated:
            continue
        verdict = _nearest(run.source, of_model or stated)
        if verdict == "resolved":
            run.score = 1.0
            run.status = run.status if run.status in ENDED else "completed"
        elif run.status in ENDED:  # a run that something other than the agent ended is not measured
            run.score = 0.0 if verdict in ("unresolved", "empty_patch") else None
            run.status = verdict


def _set_success(runs: Runs) -> None:
    """Set the success of runs from their scores; a run without a score that its agent ended has failed."""
    scorers: dict[tuple[str, Any], str] = {}  # the first scorer of each format and dataset
    graded = set[tuple[Any, ...]]()  # scores that are amounts: runs with these scores neither succeed nor fail
    for run in runs:
        if run.score_key:
            scorers.setdefault((run.format, run.dataset), run.score_key)
        is_between = run.score is not None and min(abs(run.score), abs(run.score - 1)) > _ROUNDING
        if is_between and (run.format, run.score_key) not in _WHOLE_REWARDS:
            graded.add((run.format, run.dataset, run.score_key))
    for run in runs:
        key = run.score_key or scorers.get((run.format, run.dataset))
        if run.format in _STATING_SUCCESS or (run.format, run.dataset, key) in graded:
            continue
        if run.score is None and run.status in AGENT_FAILED:
            run.score = 0.0
        if run.score is not None:
            is_whole = abs(run.score - 1) <= _ROUNDING
            run.is_successful = is_whole if (run.format, run.score_key) in _WHOLE_REWARDS else run.score > 0.5


def _distinguish_tasks(runs: Runs) -> None:
    """Set the version of tasks with several versions, and add a digest to equal ids of different documents."""
    for run in _of_several(runs, "task_checksum"):
        run.task_version = run.task_checksum
    for run in _of_several(runs, "document_hash"):
        run.task_id = f"{run.task_id} {(run.document_hash or '')[:8]}"


def _of_several(runs: Runs, name: str) -> Runs:
    """Return the runs with a value in a column that has several values for their task."""
    known = [run for run in runs if getattr(run, name)]
    values = {(run.dataset, run.task_id, getattr(run, name)) for run in known}
    counts = Counter((dataset, task) for dataset, task, _ in values)
    return [run for run in known if counts[run.dataset, run.task_id] > 1]


def _number_repetitions(runs: Runs) -> None:
    """Number repetitions by start time where logs don't number them, and flag runs that a later log repeats."""
    repeated: dict[tuple[Any, ...], list[Any]] = {}
    for run in runs:
        task = (run.experiment, run.dataset, run.agent, run.model_name, run.task_id)
        repeated.setdefault(task, []).append(run)
    for own in repeated.values():
        if len(own) == 1:
            own[0].repetition = own[0].repetition or 0
            continue
        numbers = [run.repetition for run in own if not run.created and run.format != "table"]
        stated = [number for number in numbers if number is not None]
        if len(set(stated)) < len(stated):  # several logs each number their trials from 0
            for run in own:
                run.repetition = None
        if any(run.repetition is None for run in own):
            own.sort(key=_begun)
            for number, run in enumerate(own):
                if run.repetition is None:
                    run.repetition = number
        latest: dict[int, str] = {}
        for run in own:
            latest[run.repetition] = max(latest.get(run.repetition, ""), run.created or "")
        for run in own:
            if run.created and run.created < latest[run.repetition]:
                run.run_flags.append("superseded")


def _begun(run: Any) -> tuple[Any, ...]:
    """Return the sort key of repetitions: runs without a start time come last."""
    return run.started is None, run.started, run.source, len(run.part), run.part  # row 9 comes before row 10


def _flag_duplicates(runs: Runs) -> None:
    """Flag runs that another file also contains."""
    ids = {run.run_id for run in runs}  # a table exported from these runs also contains their ids
    seen = set[tuple[Any, ...]]()
    for run in runs:
        is_duplicate = run.is_copy or run.log_id in ids
        if run.log_id is not None and run.format != "table" and "superseded" not in run.run_flags:
            own = (run.log_id, run.format, run.task_id)
            is_duplicate = is_duplicate or own in seen
            seen.add(own)
        if is_duplicate:
            run.run_flags.append("duplicate")


def _overrule(runs: Runs, path: str) -> None:
    """Set outcomes from a CSV file, and flag them. Its columns: run_id, outcome, optionally reason and judge."""
    if not path:
        return
    try:
        stated = pd.read_csv(path, dtype="str").rename(columns=str.strip)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {reason_of(error)}") from None
    for name in ("run_id", "outcome"):
        if name not in stated:
            raise SourceError(f"{path}: no column {name}; there are {', '.join(map(str, stated))}")
    names = ("run_id", "log_id", "task_id", "extra")
    known = pd.DataFrame({name: [getattr(run, name) for run in runs if not run.is_copy] for name in names})
    [found] = run_ids_of([stated["run_id"]], known)
    if not (missing := stated.loc[found.isna(), "run_id"]).empty:
        raise SourceError(f"{path}: no run has the id {missing.iloc[0]!r}")
    stated["run_id"] = found
    if not (others := stated.loc[~stated["outcome"].isin(list(OUTCOMES)), "outcome"]).empty:
        raise SourceError(f"{path}: {others.iloc[0]!r} is no outcome; outcomes are {', '.join(OUTCOMES)}")
    by_run = {row["run_id"]: row for row in stated.to_dict("records")}  # the last row for a run counts
    for run in runs:
        if row := by_run.get(run.run_id):
            success = OUTCOMES[row["outcome"]]
            run.is_successful = success
            run.score = None if success is None else float(success)
            run.status = "overruled" if success is None else "completed"
            run.exit_reason = row.get("reason", run.exit_reason)
            run.is_judged = bool(pd.notna(row.get("judge")))
            run.run_flags.append("overruled")


def _plans(runs: Runs, stated: Rows, schema: pa.Schema, plan_of_source: Mapping[str, str | None]) -> pa.Table:
    """Return the number of planned trials by file, model and task, and set the file with the plan of each run."""
    jobs = {os.path.dirname(plan["source"]): plan["source"] for plan in stated if not plan["task_id"]}
    for plan in stated:
        if os.path.basename(plan["source"]) == "lock.json":  # a job's lock is part of the plan that its result states
            plan["source"] = jobs.get(os.path.dirname(plan["source"]), plan["source"])
    files, logs = {plan["source"] for plan in stated}, {run.source for run in runs}
    by_folder = {os.path.dirname(source): source for source in files - logs}
    plan_of_log = {source: source if source in files else harbor.nearest_above(source, by_folder) for source in logs}
    plan_of_log |= plan_of_source
    for run in runs:
        run.plan = plan_of_log[run.source]
    if any(None in (plan["model_name"], plan["dataset"]) for plan in stated):
        _complete_plans(stated, runs)
    table = pa.Table.from_pylist(stated, schema)
    # summed, because a lock may list one task under two names
    sums = table.group_by(schema.names[:4], use_threads=False).aggregate([(name, "sum") for name in schema.names[4:]])
    return sums.rename_columns([column.name for column in TABLES["plans"]])


def _complete_plans(plans: Rows, runs: Runs) -> None:
    """Fill in the models and datasets that plans omit, from their runs."""
    first_of: dict[Any, Any] = {}  # the first run of each plan
    known: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # dataset and task by plan and name of the task
    for run in runs:
        first_of.setdefault(run.plan, run)
        known.setdefault((run.plan, run.task_id), (run.dataset, run.task_id))
        if run.task_id and "/" in run.task_id:  # a lock names a task by its folder
            known.setdefault((run.plan, run.task_id.rpartition("/")[2]), (run.dataset, run.task_id))
    for plan in plans:
        if not plan["task_id"]:
            continue  # this plan covers all tasks together
        if plan["dataset"] is None:
            plan["dataset"], plan["task_id"] = known.get((plan["source"], plan["task_id"]), (None, plan["task_id"]))
        if first := first_of.get(plan["source"]):
            plan["model_name"] = plan["model_name"] or first.model_name
            plan["dataset"] = plan["dataset"] or first.dataset
