"""Put runs together from records: scores, models and outcomes that stand in other files, trajectories of trials."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from evalkit.io import Entry, SourceError, frame_of
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.kinds.columns import columns_of_runs, is_binary, meanings
from evalkit.kinds.runs import UNKNOWN
from evalkit.trajectories.format import AGENT_FAILED, ENDED, FACTS, RUNS
from evalkit.trajectories.table import LAZY_TABLES, TABLES
from evalkit.trajectories.transcript import lazy_frame

OUTCOMES = {"success": 1.0, "failure": 0.0, "not measured": np.nan}
MOST_CONTINUED = 100  # files of one trajectory
_JOINED = ["model_name", "turns", "tokens_in", "tokens_cache", "tokens_out", "cost"]  # of a trial's own trajectory
_VERDICTS = {"resolved": 1.0, "unresolved": 0.0, "empty_patch": 0.0}  # others of SWE-bench's are no measurement
_DTYPES = {"int?": "float64", "float": "float64", "time": "datetime64[us, UTC]"}
_IDENTITY = ["experiment", "dataset", "agent", "model_name", "task_id"]  # runs that share these are repetitions


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames; options are those of `load`."""
    frames = {name: table.to_pandas() for name, table in records.tables.items()}
    facts, scores = frames["facts"], frames["scores"]
    reasons = dict(zip(records.files["source"].to_pylist(), records.files["reason"].to_pylist(), strict=True))
    runs, notes, understood = _with_tables(frames["runs"], options.get("columns") or (), reasons)
    runs = _joined(runs)
    runs["run_id"] = run_ids("trajectories", runs["source"], runs["part"])
    scores = scores.merge(runs[["source", "part", "run_id"]], on=["source", "part"])
    _add_shared(runs, facts)
    runs["model_name"] = runs["model_name"].fillna(UNKNOWN)
    _score(runs, scores, facts, options.get("score") or "")
    # repetitions are numbered in the order of their start, where logs don't
    order = runs.sort_values(["started", "source", "part"], kind="stable")
    number = order.groupby([order[name].fillna("") for name in _IDENTITY], sort=False).cumcount().astype("float64")
    runs["repetition"] = runs["repetition"].fillna(number)
    checksums = runs.groupby(["dataset", "task_id"], dropna=False)["task_checksum"]
    runs["task_version"] = runs["task_checksum"].where(checksums.transform("nunique") > 1)
    stated = _overruled(runs, str(options["outcomes"])) if options.get("outcomes") else pd.Series(False, runs.index)
    flags = {**_repeated(runs), "overruled": stated, "no_outcome": runs["score"].isna() & runs["status"].isin(ENDED)}
    raised = pd.DataFrame(flags)
    named: Any = [[name for name in flags if row[name]] for row in raised.to_dict("records")]
    runs["run_flags"] = named
    plans, runs["plan"] = _plans(runs, facts)
    runs = runs.assign(kind="trajectories", model_source="log", task_type=runs["dataset"])
    runs = runs.assign(**{f"flag_{name}": raised[name] for name in raised})
    runs = runs.sort_values(["source", "repetition"], kind="stable")
    made = {
        name: frame_of(
            {column.name: made.get(column.name, [None] * len(made)) for column in TABLES[name]}, TABLES[name]
        )
        for name, made in (("runs", runs), ("scores", scores), ("plans", plans))
    }
    lazy = {name: partial(lazy_frame, made["runs"], name) for name in LAZY_TABLES}
    return Assembled(made, notes, {"understood": understood}, lazy)


def _with_tables(
    runs: pd.DataFrame, columns: Sequence[str], reasons: Mapping[str, str]
) -> tuple[pd.DataFrame, list[Entry], list[Entry]]:
    """Fill in the runs of tables, whose columns are called anything; also return their entries of the ledger.

    The last are those of them that say what columns were taken for, or why a table could not be understood.
    """
    given = {}
    for pair in columns:
        role, equals, name = pair.partition("=")
        if not equals:
            raise SourceError(f"column {pair!r}: write what it means and its name, such as score=reward")
        given[role.strip()] = name.strip()
    dtypes = {column.name: _DTYPES.get(column.dtype, "str") for column in RUNS}
    runs, is_table = runs.astype(dtypes).assign(score=np.nan, is_successful=np.nan), runs["format"].eq("table")
    if not is_table.any():
        return runs, [], []
    notes, understood, parts = list[Entry](), list[Entry](), [runs[~is_table]]
    for source, own in runs[is_table].groupby("source", sort=False):
        rows = [msgspec.json.decode(row) for row in own["extra"]]
        cells = pd.DataFrame(rows, index=own.index, dtype="object")
        try:
            meaning = meanings(list(rows[0]), given)
        except SourceError as error:
            notes.append(Entry(str(source), "skipped", f"no table of runs: {error}"))
            understood.append(notes[-1])
            continue
        made = columns_of_runs(cells, meaning)
        told = ", ".join(f"{role} = {name}" for role, name in meaning.items() if role != name)
        said = [f"columns: {told}" * bool(told), reasons.get(str(source), "")]
        notes.append(Entry(str(source), "used", "; ".join(filter(None, said))))
        understood += [notes[-1]] * bool(told)
        rest = [{key: item for key, item in row.items() if key not in meaning.values()} for row in rows]
        made["extra"] = [msgspec.json.encode(row).decode() if row else None for row in rest]
        parts.append(own.drop(columns=list(made)).join(made))
    if not any(map(len, parts)) and notes:
        raise SourceError(f"{notes[0].source}: {notes[0].reason}")
    whole = pd.concat([part.astype("object") for part in parts]).sort_index()
    return whole.astype({**dtypes, "score": "float64", "is_successful": "float64"}), notes, understood


def _joined(runs: pd.DataFrame) -> pd.DataFrame:
    """Join trajectories to the trials that they belong to, and to those that they go on from."""
    is_file = runs["format"].isin(["atif", "harbor"])  # of one run each
    rows: dict[str, Any] = {row["source"]: {**row, "trajectories": []} for row in runs[is_file].to_dict("records")}
    follows = {}  # the file that a trajectory goes on in: the one that it goes on from
    for source, reference in runs.loc[runs["continues"].notna(), ["source", "continues"]].itertuples(index=False):
        folder, name = os.path.split(source)
        for before in ("", name.partition("trajectory.")[0]):  # of files of several runs in one folder
            if (path := os.path.join(folder, before + os.path.basename(reference))) in rows:
                follows[path] = source
    trials = {os.path.dirname(source): row for source, row in rows.items() if row["format"] == "harbor"}
    gone = set()
    for source in sorted(follows):
        first, passed = source, 0
        while first in follows and passed < MOST_CONTINUED:
            first, passed = follows[first], passed + 1
        if first in follows:
            continue  # they go on in a circle
        gone.add(source)
        for column in _JOINED[1:]:
            own, later = rows[first][column], rows[source][column]
            if pd.notna(own) and pd.notna(later):  # a later file states the totals of all, or its own
                rows[first][column] = later if later > own and column != "turns" else own + later
    for source, row in rows.items():
        folder = os.path.dirname(source)
        while folder not in trials and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        if row["format"] == "atif" and source not in gone and (trial := trials.get(folder)) is not None:
            trial["trajectories"].append(source)
            trial |= {column: row[column] for column in _JOINED if pd.isna(trial[column])}
            gone.add(source)
    joined = pd.DataFrame([row for source, row in rows.items() if source not in gone], columns=[*runs, "trajectories"])
    joined["started"] = pd.to_datetime(joined["started"], utc=True)  # where all are missing, pandas knows no zone
    none: Any = [[] for _ in range(int((~is_file).sum()))]
    return pd.concat([runs[~is_file].assign(trajectories=none), joined.astype(runs.dtypes)], ignore_index=True)


def _add_shared(runs: pd.DataFrame, facts: pd.DataFrame) -> None:
    """Fill in what other files say of runs: of tau2-bench the results beside a folder, of SWE-bench who predicted."""
    for source, value in facts.loc[facts["fact"] == "info", ["source", "value"]].itertuples(index=False):
        inside = runs["source"].str.startswith(os.path.join(os.path.dirname(source), "simulations") + "/")
        for column, item in msgspec.json.decode(value).items():
            if item not in (None, ""):
                runs.loc[inside, column] = item
    of_task = dict(iter(facts[facts["fact"] == "model"].groupby("task_id")))
    for at, task, source in runs.loc[runs["model_name"].isna(), ["task_id", "source"]].itertuples():
        if task in of_task:
            runs.at[at, "model_name"] = _nearest(source, of_task[task])


def _nearest(source: str, facts: pd.DataFrame) -> str:
    """Return the value of the fact in the file that shares the most folders with a run's."""
    shared = [len(os.path.commonpath([source, other])) for other in facts["source"]]
    return str(facts["value"].iloc[int(np.argmax(shared))])


def _score(runs: pd.DataFrame, scores: pd.DataFrame, facts: pd.DataFrame, key: str) -> None:
    """Set score, success and status; a run that something else than its agent ended has neither score nor success."""
    if key and key not in set(scores["key"]):
        raise SourceError(f"no score is called {key!r}; there are {', '.join(sorted(set(scores['key']))) or 'none'}")
    wanted = scores["key"].eq(key or "reward")
    firsts = scores[wanted] if key else scores.assign(other=~wanted).sort_values("other", kind="stable")
    chosen = firsts.drop_duplicates("run_id").set_index("run_id").reindex(runs["run_id"])
    runs["score_key"] = chosen["key"].to_numpy()
    runs["score"] = runs["score"].astype("float64").fillna(pd.Series(chosen["value"].to_numpy("float64"), runs.index))
    verdicts = dict(iter(facts[facts["fact"] == "outcome"].groupby("task_id")))
    open_runs = runs.loc[
        runs["score"].isna() & runs["task_id"].isin(verdicts), ["task_id", "model_name", "source", "status"]
    ]
    for at, task, model, source, status in open_runs.itertuples(name=None):
        of_model = verdicts[task]["model_name"].str.replace("__", "/").eq(model)
        verdict = _nearest(source, verdicts[task][of_model] if of_model.any() else verdicts[task])
        if status in ENDED or verdict == "resolved":  # what something else ended is no measurement
            runs.at[at, "score"] = _VERDICTS.get(verdict, np.nan)
            runs.at[at, "status"] = verdict if verdict != "resolved" else status if status in ENDED else "completed"
    failed, stated = runs["status"].isin(AGENT_FAILED), runs["is_successful"].astype("float64")
    runs["score"] = runs["score"].where(failed | runs["status"].isin(ENDED) | runs["format"].eq("table"))
    # a score between 0 and 1 says how much, not whether: then no run with scores of this kind succeeds or fails
    groups = [runs[name].fillna("") for name in ("format", "dataset")]
    key_of = runs["score_key"].fillna(runs["score_key"].groupby(groups).transform("first")).fillna("")
    binary = runs["score"].groupby([*groups, key_of]).transform(is_binary).astype(bool)
    runs["score"] = runs["score"].mask(failed & runs["score"].isna() & binary, 0.0)
    told = (runs["score"] > 0.5).astype("float64").where(binary & runs["score"].notna() & runs["format"].ne("table"))
    runs["is_successful"] = stated.fillna(told).astype("boolean")


def _repeated(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return which runs a later log of the same evaluation repeats, and which another file holds, too."""
    same = runs.groupby([runs[name].fillna("") for name in (*_IDENTITY, "repetition")])["created"]
    superseded = runs["created"].notna() & (runs["created"] < same.transform("max"))
    ids = runs.loc[~superseded & runs["log_id"].notna()].sort_values("source", kind="stable")
    again = ids.duplicated(["format", "log_id", "task_id"]) & ids["format"].ne("table")
    return {"superseded": superseded, "duplicate": again.reindex(runs.index, fill_value=False)}


def _overruled(runs: pd.DataFrame, path: str) -> pd.Series:
    """Set the outcomes that a file states, a CSV file of run_id, outcome and reason; return whose they are."""
    try:
        stated = pd.read_csv(path, dtype="str").rename(columns=str.strip)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error}") from None
    known = {"run_id": set(runs["run_id"]), "outcome": set(OUTCOMES)}
    wrong = [f"no column {name}; there are {', '.join(map(str, stated))}" for name in known if name not in stated]
    wrong = wrong or [f"{text!r} is no {name}" for name in known for text in stated[name] if text not in known[name]]
    if wrong:
        raise SourceError(f"{path}: {wrong[0]}; outcomes are {', '.join(OUTCOMES)}")
    own = (
        stated.drop_duplicates("run_id", keep="last").set_index("run_id").reindex(runs["run_id"]).set_index(runs.index)
    )
    given, value = own["outcome"].notna(), own["outcome"].map(OUTCOMES)
    runs.loc[given, "score"] = value
    runs.loc[given, "is_successful"] = value.astype("boolean")
    runs.loc[given, "status"] = value.isna().map({True: "overruled", False: "completed"})
    if "reason" in own:
        runs.loc[given, "exit_reason"] = own["reason"]
    return given


def _plans(runs: pd.DataFrame, facts: pd.DataFrame) -> tuple[pd.DataFrame, list[str | None]]:
    """Return what was planned, by file, model and task, and for each run the file with its plan."""
    said = facts[facts["fact"].isin(["planned", "retried"])]
    job = {os.path.dirname(source): source for source in said.loc[said["task_id"].eq(""), "source"]}
    plan_of = {  # what a job's lock says is part of the plan that its result states
        source: job.get(folder, source) if name == "lock.json" else source
        for source in said["source"].unique()
        for folder, name in [os.path.split(source)]
    }
    whole = set(plan_of.values())
    above = {os.path.dirname(source): source for source in whole - set(runs["source"])}
    of_run, models, tasks = [], dict[Any, Any](), dict[Any, Any]()
    for source, model, dataset, task in runs[["source", "model_name", "dataset", "task_id"]].itertuples(index=False):
        folder = source
        while source not in whole and folder not in above and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        plan = source if source in whole else above.get(folder)
        of_run.append(plan)
        models.setdefault(plan, (model, dataset))
        for name in (task, str(task).rpartition("/")[2]):  # a lock calls a task by its folder
            tasks.setdefault((plan, name), (dataset, task))
    plans = dict[tuple, dict[str, int]]()
    for source, fact, task, model, value in said[["source", *(one.name for one in FACTS)]].itertuples(index=False):
        plan = plan_of[source]
        own, dataset = models.get(plan, (None, None))  # that of all its runs, if the plan does not say which
        dataset, name = tasks.get((plan, task), (dataset, task))
        counts = plans.setdefault((plan, model or own, dataset, name) if task else (plan, None, None, ""), {})
        counts[fact] = counts.get(fact, 0) + int(value)
    names = ("source", "model_name", "dataset", "task_id")
    table = [dict(zip(names, key, strict=True)) | counts for key, counts in plans.items()]
    return pd.DataFrame(table, columns=[*names, "planned", "retried"]), of_run
