"""Put runs together from records: scores, models and outcomes that other files state, trajectories of trials."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._notes import NO_NOTES, note
from evalkit._text import as_list
from evalkit.io import SourceError, frame_of
from evalkit.kinds import Assembled, Records, find_runs, run_ids
from evalkit.kinds.runs import JUDGED, UNKNOWN
from evalkit.trajectories.calls import join_sessions
from evalkit.trajectories.formats import every_eval_ever, harbor, lm_eval, openhands, tau2, terminal_bench
from evalkit.trajectories.records import AGENT_FAILED, ENDED, Facts, Runs
from evalkit.trajectories.table import NAME, TABLES
from evalkit.trajectories.tables import join_tables
from evalkit.trajectories.transcript import messages_frame, tool_calls_frame

OUTCOMES = {"success": True, "failure": False, "not measured": None}
_STATING_SUCCESS = ("table", every_eval_ever.FORMAT)  # formats that state what they know of the success of runs
_WHOLE_REWARDS = {("tau-bench", "reward")}  # of which a part is a failure
_ROUNDING = 1e-6  # by which a score may differ from 0 or 1
# of runs that other files describe; the `join` of each module fills in what these state
JOINED_FORMATS = (harbor, tau2, lm_eval, openhands, terminal_bench)


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames; options are as for `load`."""
    facts = records.tables["facts"].to_pylist()
    scores = records.tables["scores"]
    logged = records.tables["runs"]
    runs: Runs = {name: logged[name].to_pylist() for name in logged.column_names if name != "started"}
    runs["started"] = logged["started"].to_numpy().tolist()  # of times, `to_pylist` takes a hundred times as long
    made = ("score", "score_key", "is_successful", "lower_is_better", "is_turned")
    runs |= {name: [None] * len(logged) for name in made}
    runs["trajectories"] = [[] for _ in range(len(logged))]
    runs["model_source"] = ["log"] * len(logged)
    reasons = dict(zip(records.files["source"].to_pylist(), records.files["reason"].to_pylist(), strict=True))
    published = records.tables["published"].to_pydict()
    of_tables = join_tables(runs, as_list(options.get("columns") or ()), reasons)
    of_sessions, counts = join_sessions(runs, facts, records.tables)
    joined = [of_tables, of_sessions, *(one.join(runs, facts, published) for one in JOINED_FORMATS)]
    chosen = sum((one.notes for one in joined), NO_NOTES)
    if score_names := {source: name_of for one in joined for source, name_of in one.score_names.items()}:
        rows = zip(scores["source"].to_pylist(), scores["key"].to_pylist(), strict=True)
        keys = [score_names[source](key) if source in score_names else key for source, key in rows]
        scores = scores.set_column(scores.column_names.index("key"), "key", pa.array(keys, pa.large_string()))
    left_out = {at for one in joined for at in one.left_out}
    plan_of_source = {source: plan for one in joined for source, plan in one.plan_of.items()}
    above = records.files.filter(records.files["context"])["source"].to_pylist()  # their plans are of other runs, too
    entries = [entry for one in joined for entry in one.entries if entry.source not in above]
    places = [at for at in range(len(logged)) if at not in left_out]
    runs = _taken(runs, sorted(places, key=runs["source"].__getitem__))
    runs["run_id"] = run_ids(NAME, runs["source"], runs["part"], records=records)
    models = _by_task(facts, "model")  # of SWE-bench's predictions
    for at, (task, model, source) in enumerate(_rows(runs, "task_id", "model_name", "source")):
        if model is None and task in models and runs["format"][at] != openhands.FORMAT:
            runs["model_name"][at] = _nearest(source, models[task])
    runs["model_name"] = [model or UNKNOWN for model in runs["model_name"]]
    run_of_score = pa.array(_score(runs, scores, facts, options.get("score") or ""), pa.large_string())
    scores = scores.append_column("run_id", run_of_score).filter(pc.is_valid(run_of_score))
    if used := [key for key in dict.fromkeys(runs["score_key"]) if key]:
        chosen += note("scorer", used=used, others=sorted(set(scores["key"].to_pylist()) - set(used)))
    if turned := sorted({key for key, was_turned in _rows(runs, "score_key", "is_turned") if was_turned}):
        chosen += note("turned", scores=turned)
    runs["task_version"] = _task_versions(runs)
    id_of = dict(zip(runs["source"], runs["run_id"], strict=True))
    counts = {name: table.assign(run_id=table["source"].map(id_of)) for name, table in counts.items()}
    named = counts["usage"][counts["usage"]["model_name"].ne(UNKNOWN)]
    models_of = named.groupby("run_id")["model_name"].nunique().to_dict()
    flags = _repeated(runs)
    flags["overruled"] = _overruled(runs, str(options.get("outcomes") or ""))
    flags[JUDGED] = runs["is_judged"]
    flags["no_outcome"] = [
        score is None and success is None and status in ENDED
        for score, success, status in _rows(runs, "score", "is_successful", "status")
    ]
    flags["several_models"] = [models_of.get(run_id, 0) > 1 for run_id in runs["run_id"]]
    raised_of = zip(*flags.values(), strict=True)
    runs["run_flags"] = [list(compress(flags, raised)) if any(raised) else [] for raised in raised_of]
    without_plan = {source for one in joined for source in one.without_plan}.union(above)
    stated = records.tables["plans"]
    stated = stated.filter(pc.invert(pc.is_in(stated["source"], pa.array(sorted(without_plan), pa.large_string()))))
    plans = _plans(runs, stated, plan_of_source)
    runs["task_type"] = runs["dataset"]
    runs["kind"] = [NAME] * len(places)
    runs["success_rate"] = [None] * len(places)  # the pipeline fills it in
    order = sorted(range(len(places)), key=list(_rows(runs, "source", "repetition")).__getitem__)
    runs = _taken(runs, order)
    tables: dict[str, Any] = {"runs": runs, "scores": scores, "plans": plans, "published": published, **counts}
    frames = {
        name: frame_of({column.name: tables[name][column.name] for column in columns}, columns)
        for name, columns in TABLES.items()
    }
    lazy = {
        "messages": partial(messages_frame, frames["runs"]),
        "tool_calls": partial(tool_calls_frame, frames["runs"]),
    }
    return Assembled(frames, entries, lazy=lazy, chosen=chosen)


def _taken(runs: Runs, places: list[int]) -> Runs:
    """Return the runs at some places, in their order."""
    return {name: [values[at] for at in places] for name, values in runs.items()}


def _rows(runs: Runs, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(runs[name] for name in columns), strict=True)


def _by_task(facts: Facts, name: str) -> dict[str, list[Mapping[str, Any]]]:
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    for fact in facts:
        if fact["fact"] == name:
            by_task.setdefault(fact["task_id"], []).append(fact)
    return by_task


def _nearest(source: str, facts: Facts) -> str:
    """Return the value of the fact in the file that shares the most folders with a run's."""
    shared = [len(os.path.commonpath([source, fact["source"]])) for fact in facts]
    return facts[shared.index(max(shared))]["value"]


def _score(runs: Runs, scores: pa.Table, facts: Facts, key: str) -> list[str | None]:
    """Set score, success and status of runs, where their agents ended them; return the id of the run of each score."""
    sources, parts, keys, values = (scores[name].to_pylist() for name in ("source", "part", "key", "value"))
    if key and key not in keys:
        raise SourceError(f"no score is named {key!r}; there are {', '.join(sorted(set(keys))) or 'none'}")
    places = {run: at for at, run in enumerate(_rows(runs, "source", "part"))}
    place_of_score = list(map(places.get, zip(sources, parts, strict=True)))
    score, score_key = runs["score"], runs["score_key"]
    wanted = key or "reward"
    of_dataset = {} if key else _scores_of_datasets(runs, place_of_score, keys, values)
    for at, name, value in zip(place_of_score, keys, values, strict=True):
        if at is None or (key and name != key):
            continue
        if runs["format"][at] == lm_eval.FORMAT and not key and of_dataset.get(runs["dataset"][at]) != name:
            continue
        if score_key[at] is None or (name == wanted and score_key[at] != wanted):
            score[at] = value
            score_key[at] = name
    _turn_lower_is_better(runs)
    _add_verdicts(runs, _by_task(facts, "outcome"))
    for at, (of_format, status) in enumerate(_rows(runs, "format", "status")):
        if of_format not in _STATING_SUCCESS and status not in AGENT_FAILED and status not in ENDED:
            score[at] = None
    _set_success(runs)
    every_eval_ever.set_success(runs)
    return [None if at is None else runs["run_id"][at] for at in place_of_score]


def _scores_of_datasets(
    runs: Runs, places: Sequence[int | None], keys: Sequence[str], values: Sequence[float | None]
) -> dict[Any, str]:
    """Return which score counts for each data set of lm-eval: the same for all its runs.

    Scores that are always 0 or 1 come before others, then the score that most runs have, then the first.
    """
    counts: dict[tuple[Any, str], int] = {}
    between = set[tuple[Any, str]]()
    for at, key, value in zip(places, keys, values, strict=True):
        if at is None or runs["format"][at] != lm_eval.FORMAT:
            continue
        name = (runs["dataset"][at], key)
        counts[name] = counts.get(name, 0) + (value is not None)
        if value not in (None, 0.0, 1.0):
            between.add(name)
    best: dict[Any, str] = {}
    for dataset, key in sorted(filter(counts.get, counts), key=lambda name: (name in between, -counts[name])):
        best.setdefault(dataset, key)
    return best


def _turn_lower_is_better(runs: Runs) -> None:
    """Turn scores of which lower is better, so that higher is: 1 - score if all are from 0 to 1, else -score."""
    turned: dict[tuple[Any, str], list[int]] = {}
    for at, (key, dataset, names) in enumerate(_rows(runs, "score_key", "dataset", "lower_is_better")):
        if key and names and key.rpartition(",")[0] in names and runs["score"][at] is not None:
            turned.setdefault((dataset, key), []).append(at)
    for places in turned.values():
        base = 1.0 if all(0 <= runs["score"][at] <= 1 for at in places) else 0.0
        for at in places:
            runs["score"][at] = base - runs["score"][at]
            runs["is_turned"][at] = True


def _add_verdicts(runs: Runs, verdicts: Mapping[str, Facts]) -> None:
    """Set score and status of the runs whose outcome a report of SWE-bench states."""
    if not verdicts:
        return
    for at, (task, model, source, status) in enumerate(_rows(runs, "task_id", "model_name", "source", "status")):
        if runs["score"][at] is not None or task not in verdicts:
            continue
        stated = verdicts[task]
        if runs["format"][at] == openhands.FORMAT:
            of_model = stated = [fact for fact in stated if openhands.is_report_of(fact["source"], source)]
        else:
            of_model = [fact for fact in stated if (fact["model_name"] or "").replace("__", "/") == model]
        if not stated:
            continue
        verdict = _nearest(source, of_model or stated)
        if verdict == "resolved":
            runs["score"][at] = 1.0
            runs["status"][at] = status if status in ENDED else "completed"
        elif status in ENDED:  # what something else ended is no measurement
            runs["score"][at] = 0.0 if verdict in ("unresolved", "empty_patch") else None
            runs["status"][at] = verdict


def _set_success(runs: Runs) -> None:
    """Set the success of runs by their scores; a run that its agent ended without a score has failed."""
    rows = list(_rows(runs, "format", "dataset", "score_key", "score", "status"))
    scorers: dict[tuple[str, Any], str] = {}  # the first scorer of each format and dataset
    graded = set[tuple[Any, ...]]()  # scores that are amounts: no run with one succeeds or fails
    for of_format, dataset, key, score, _ in rows:
        if key:
            scorers.setdefault((of_format, dataset), key)
        is_between = score is not None and min(abs(score), abs(score - 1)) > _ROUNDING
        if is_between and (of_format, key) not in _WHOLE_REWARDS:
            graded.add((of_format, dataset, key))
    for at, (of_format, dataset, key, score, status) in enumerate(rows):
        if of_format in _STATING_SUCCESS or (of_format, dataset, key or scorers.get((of_format, dataset))) in graded:
            continue
        if score is None and status in AGENT_FAILED:
            score = runs["score"][at] = 0.0
        if score is not None:
            is_whole = abs(score - 1) <= _ROUNDING
            runs["is_successful"][at] = is_whole if (of_format, key) in _WHOLE_REWARDS else score > 0.5


def _task_versions(runs: Runs) -> list[str | None]:
    """Return the digests of tasks of which there are several versions; None for the others."""
    if not any(runs["task_checksum"]):
        return [None] * len(runs["task_checksum"])
    versions = list(_rows(runs, "dataset", "task_id", "task_checksum"))
    counts = Counter((dataset, task) for dataset, task, version in set(versions) if version)
    return [version if counts[dataset, task] > 1 else None for dataset, task, version in versions]


def _repeated(runs: Runs) -> dict[str, list[bool]]:
    """Number repetitions by start, where logs don't; return which a later log repeats, or another file has, too."""
    groups: dict[tuple[Any, ...], int] = {}  # runs of one group are repetitions
    identities = _rows(runs, "experiment", "dataset", "agent", "model_name", "task_id")
    group = [groups.setdefault(identity, len(groups)) for identity in identities]
    number = runs["repetition"]
    numbered = zip(group, number, runs["created"], runs["format"], strict=True)
    stated = Counter((own, n) for own, n, created, of_format in numbered if not created and of_format != "table")
    clashing = {own for (own, n), count in stated.items() if n is not None and count > 1}
    if clashing:  # trials of several logs, each numbered from 0
        number[:] = [None if own in clashing else n for own, n in zip(group, number, strict=True)]
    if None in number:
        begun = [(started is None, started, *own) for started, *own in _rows(runs, "started", "source", "part")]
        before = Counter[int]()
        for at in sorted(range(len(group)), key=begun.__getitem__):
            if number[at] is None:
                number[at] = before[group[at]]
            before[group[at]] += 1
    trials = list(zip(group, number, strict=True))
    created = [when or "" for when in runs["created"]]
    latest = dict(sorted(zip(trials, created, strict=True), key=itemgetter(1)))  # the last of a trial stays
    superseded = [when != "" and when < latest[trial] for trial, when in zip(trials, created, strict=True)]
    ids = set(runs["run_id"])  # that an exported table of these runs states, too
    duplicate = [is_copy or log_id in ids for is_copy, log_id in _rows(runs, "is_copy", "log_id")]
    seen = set[tuple[Any, ...]]()
    for at, own in enumerate(_rows(runs, "log_id", "format", "task_id")):
        log_id, of_format, _ = own
        if log_id is not None and of_format != "table" and not superseded[at]:
            duplicate[at] = duplicate[at] or own in seen
            seen.add(own)
    return {"superseded": superseded, "duplicate": duplicate}


def _overruled(runs: Runs, path: str) -> list[bool]:
    """Set outcomes by a CSV file with run_id, outcome and, if any, reason and judge; return which runs it names."""
    if not path:
        return [False] * len(runs["run_id"])
    try:
        stated = pd.read_csv(path, dtype="str").rename(columns=str.strip)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error}") from None
    known = {"run_id": set(runs["run_id"]), "outcome": set(OUTCOMES)}
    wrong = [f"no column {name}; there are {', '.join(map(str, stated))}" for name in known if name not in stated]
    if not wrong:
        stated["run_id"] = find_runs(stated["run_id"], pd.Series(runs["run_id"])).fillna(stated["run_id"])
    wrong = wrong or [f"{text!r} is no {name}" for name in known for text in stated[name] if text not in known[name]]
    if wrong:
        raise SourceError(f"{path}: {wrong[0]}; outcomes are {', '.join(OUTCOMES)}")
    by_run = {row["run_id"]: row for row in stated.to_dict("records")}  # the last row of a run counts
    for at, run_id in enumerate(runs["run_id"]):
        if row := by_run.get(run_id):
            success = OUTCOMES[row["outcome"]]
            runs["is_successful"][at] = success
            runs["score"][at] = None if success is None else float(success)
            runs["status"][at] = "overruled" if success is None else "completed"
            runs["exit_reason"][at] = row.get("reason", runs["exit_reason"][at])
            runs["is_judged"][at] = bool(pd.notna(row.get("judge")))
    return [run_id in by_run for run_id in runs["run_id"]]


def _plans(runs: Runs, stated: pa.Table, plan_of_source: Mapping[str, str | None]) -> pa.Table:
    """Return what was planned, by file, model and task; set for each run the file with its plan."""
    plans = stated.to_pydict()
    jobs = {os.path.dirname(source): source for source, task in _rows(plans, "source", "task_id") if not task}
    plan_of = {source: source for source in plans["source"]}
    for source in plan_of:
        if os.path.basename(source) == "lock.json":  # a job's lock is part of the plan that its result states
            plan_of[source] = jobs.get(os.path.dirname(source), source)
    files, logs = set(plan_of.values()), set(runs["source"])
    by_folder = {os.path.dirname(source): source for source in files - logs}
    plan_of_log = {source: source if source in files else harbor.nearest_above(source, by_folder) for source in logs}
    plan_of_log |= plan_of_source
    runs["plan"] = list(map(plan_of_log.get, runs["source"]))
    plans["source"] = list(map(plan_of.get, plans["source"]))
    if None in plans["model_name"] or None in plans["dataset"]:
        _complete_plans(plans, runs)
    groups = pa.table(plans, stated.schema).group_by(stated.column_names[:4], use_threads=False)
    sums = groups.aggregate([(name, "sum") for name in stated.column_names[4:]])  # two names of a lock may be one task
    return sums.rename_columns(stated.column_names)


def _complete_plans(plans: Runs, runs: Runs) -> None:
    """Fill in models and datasets that plans leave out, from their runs."""
    first_of = dict[Any, tuple[Any, ...]]()  # the model and dataset of the first run of each plan
    known = dict[tuple[Any, ...], tuple[Any, ...]]()  # dataset and task of the runs of each plan, by the task's names
    for plan, model, dataset, task in _rows(runs, "plan", "model_name", "dataset", "task_id"):
        first_of.setdefault(plan, (model, dataset))
        known.setdefault((plan, task), (dataset, task))
        if task and "/" in task:  # a lock calls a task by its folder
            known.setdefault((plan, task.rpartition("/")[2]), (dataset, task))
    for at, (plan, task, model, dataset) in enumerate(_rows(plans, "source", "task_id", "model_name", "dataset")):
        if not task:
            continue  # all tasks together
        if dataset is None:
            dataset, plans["task_id"][at] = known.get((plan, task), (None, task))
        first_model, first_dataset = first_of.get(plan, (None, None))
        plans["model_name"][at] = model or first_model
        plans["dataset"][at] = dataset or first_dataset
