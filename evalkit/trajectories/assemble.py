"""Put runs together from records: scores, models and outcomes that stand in other files, trajectories of trials."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from evalkit.io import Entry, SourceError, absolute, frame_of
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.kinds.columns import columns_of_runs, meanings
from evalkit.kinds.runs import UNKNOWN
from evalkit.trajectories.format import AGENT_FAILED, ENDED
from evalkit.trajectories.table import LAZY_TABLES, TABLES
from evalkit.trajectories.transcript import lazy_frame

OUTCOMES = {"success": 1.0, "failure": 0.0, "not measured": np.nan}
MOST_CONTINUED = 100  # files of one trajectory
_JOINED = ["model_name", "turns", "tokens_in", "tokens_cache", "tokens_out", "cost"]  # of a trial's own trajectory
_VERDICTS = {"resolved": 1.0, "unresolved": 0.0, "empty_patch": 0.0}  # others of SWE-bench's are no measurement
_IDENTITY = ["experiment", "dataset", "agent", "model_name", "task_id"]  # runs that share these are repetitions
_Facts = Sequence[Mapping[str, Any]]  # rows of the table of facts


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames; options are those of `load`."""
    facts, scores = records.tables["facts"].to_pylist(), records.tables["scores"].to_pandas()
    reasons = dict(zip(records.files["source"].to_pylist(), records.files["reason"].to_pylist(), strict=True))
    runs, notes, understood = _with_tables(_numbers(records.tables["runs"]), options.get("columns") or (), reasons)
    runs = _joined(runs, facts).sort_values("source", kind="stable", ignore_index=True)
    places = {source: absolute(source) for source in runs["source"].unique()}
    runs["run_id"] = run_ids("trajectories", map(places.get, runs["source"].to_numpy()), runs["part"].to_numpy())
    _add_shared(runs, facts)
    runs["model_name"] = runs["model_name"].fillna(UNKNOWN)
    scores["run_id"] = _score(runs, scores, facts, options.get("score") or "")
    checksums = runs["task_checksum"].groupby(_group(runs, ["dataset", "task_id"]))
    runs["task_version"] = runs["task_checksum"].where(checksums.transform("nunique") > 1)
    flags = _repeated(runs)
    stated = _overruled(runs, str(options["outcomes"])) if options.get("outcomes") else pd.Series(False, runs.index)
    flags |= {"overruled": stated, "no_outcome": runs["score"].isna() & runs["status"].isin(ENDED)}
    raised = zip(*(flag.to_list() for flag in flags.values()), strict=True)
    runs["run_flags"] = [list(compress(flags, row)) for row in raised]
    plans, runs["plan"] = _plans(runs, _numbers(records.tables["plans"]))
    runs = runs.assign(kind="trajectories", model_source="log", task_type=runs["dataset"])
    runs = runs.assign(**{f"flag_{name}": flag for name, flag in flags.items()})
    runs = runs.sort_values(["source", "repetition"], kind="stable")
    frames = {"runs": runs, "scores": scores.dropna(subset="run_id"), "plans": plans}
    for name, made in frames.items():
        values = {column.name: made.get(column.name, [None] * len(made)) for column in TABLES[name]}
        frames[name] = frame_of(values, TABLES[name])
    lazy = {name: partial(lazy_frame, frames["runs"], name) for name in LAZY_TABLES}
    return Assembled(frames, notes, {"understood": understood}, lazy)


def _numbers(table: pa.Table) -> pd.DataFrame:
    """Return a table as a frame whose whole numbers may be missing."""
    types = [pa.float64() if field.type == pa.int64() else field.type for field in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True)))).to_pandas()


def _group(runs: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return a number for each run, which those that share the values of columns have in common."""
    return runs.groupby(list(names), dropna=False, sort=False).ngroup()


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
    runs["score"], runs["is_successful"] = np.nan, np.nan
    notes, understood = list[Entry](), list[Entry]()
    tables = runs.loc[runs["format"] == "table", "source"]
    first_of = dict[tuple[str, ...], str]()  # the first file with these rows
    for source in tables.unique():
        own = runs.loc[tables.index[tables == source]]
        rows = [msgspec.json.decode(row) for row in own["extra"]]
        first = first_of.setdefault(tuple(own["extra"]), str(source))
        try:
            meaning = meanings(list(dict.fromkeys(name for row in rows for name in row)), given)
            made = columns_of_runs(pd.DataFrame(rows, index=own.index, dtype="object"), meaning)
        except SourceError as error:
            notes.append(Entry(str(source), "skipped", f"no table of runs: {error}"))
            understood.append(notes[-1])
            runs = runs.drop(own.index)
            continue
        rest = [{key: item for key, item in row.items() if key not in meaning.values()} for row in rows]
        made["extra"] = [msgspec.json.encode(row).decode() if row else None for row in rest]
        for column in map(str, made):
            runs.loc[own.index, column] = made[column].astype(runs[column].dtype)
        told = ", ".join(f"{role} = {name}" for role, name in meaning.items() if role != name)
        copied = f"the same rows as {os.path.basename(first)}, which count again" * (first != source)
        said = [copied, f"columns: {told}" * bool(told), reasons.get(str(source), "")]
        notes.append(Entry(str(source), "used", "; ".join(filter(None, said))))
        understood += [notes[-1]] * bool(copied or told)
    if runs.empty and notes:
        raise SourceError(f"{notes[0].source}: {notes[0].reason}")
    return runs, notes, understood


def _joined(runs: pd.DataFrame, facts: _Facts) -> pd.DataFrame:
    """Join trajectories to the trials that they belong to, and to those that they go on from, or are subagents of."""
    runs["trajectories"] = [[] for _ in runs.index]
    if not runs["format"].isin(["atif", "harbor"]).any():
        return runs
    of_file = runs[~runs["format"].isin(["table", "inspect_ai", "tau2-bench"])]  # one run each
    rows = {row["source"]: row for row in of_file.to_dict("records")}
    follows: dict[str, str] = {}  # the file that a trajectory goes on in: the one that it goes on from
    for source, row in rows.items():
        if isinstance(row["continues"], str):
            follows |= dict.fromkeys(_beside(source, row["continues"]), source)
    gone = set[str]()
    for fact in facts:
        if fact["fact"] == "subagent" and fact["source"] not in gone:
            gone.update(_beside(fact["source"], fact["value"]) - {fact["source"]})
    for source in sorted(follows.keys() & rows.keys()):
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
    trials = {os.path.dirname(source): row for source, row in rows.items() if row["format"] == "harbor"}
    others = runs.loc[runs["format"].ne("harbor") & ~runs["source"].isin(gone), ["format", "source"]].drop_duplicates()
    others = others.sort_values("source").sort_values("format", key=lambda name: name != "atif", kind="stable")
    for form, source in others.itertuples(index=False, name=None):
        folder = os.path.dirname(source)
        while folder not in trials and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        if trial := trials.get(folder):
            gone.add(source)
            if source in rows and (form == "atif" or not trial["trajectories"]):  # else the agent's own form of it
                trial["trajectories"].append(source)
                trial |= {column: rows[source][column] for column in _JOINED if pd.isna(trial[column])}
    for column in (*_JOINED, "trajectories"):
        made = pd.Series([row[column] for row in rows.values()], of_file.index, runs[column].dtype)
        runs.loc[of_file.index, column] = made
    return runs[~runs["source"].isin(gone)]


def _beside(source: str, name: str) -> set[str]:
    """Return where the file may be that a trajectory names: in its folder, where files of several runs share a name."""
    folder, own = os.path.split(source)
    return {os.path.join(folder, before + os.path.basename(name)) for before in ("", own.partition("trajectory.")[0])}


def _add_shared(runs: pd.DataFrame, facts: _Facts) -> None:
    """Fill in what other files say of runs: of tau2-bench the results beside a folder, of SWE-bench who predicted."""
    of_task = _by_task(facts, "model")
    for fact in facts:
        if fact["fact"] == "info":
            inside = runs["source"].str.startswith(os.path.join(os.path.dirname(fact["source"]), "simulations") + "/")
            for column, item in msgspec.json.decode(fact["value"]).items():
                if item not in (None, ""):
                    runs.loc[inside, column] = item
    if of_task:
        for at, task, source in runs.loc[runs["model_name"].isna(), ["task_id", "source"]].itertuples():
            if task in of_task:
                runs.at[at, "model_name"] = _nearest(source, of_task[task])


def _by_task(facts: _Facts, name: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for fact in facts:
        if fact["fact"] == name:
            found.setdefault(fact["task_id"], []).append(fact)
    return found


def _nearest(source: str, facts: _Facts) -> str:
    """Return the value of the fact in the file that shares the most folders with a run's."""
    return max(facts, key=lambda fact: len(os.path.commonpath([source, fact["source"]])))["value"]


def _score(runs: pd.DataFrame, scores: pd.DataFrame, facts: _Facts, key: str) -> pd.Series:
    """Set score, success and status; a run that something else than its agent ended has neither score nor success.

    Returns the id of the run of each score.
    """
    keys = scores["key"].to_numpy()
    if key and key not in set(keys):
        raise SourceError(f"no score is called {key!r}; there are {', '.join(sorted(set(keys))) or 'none'}")
    of_run, of_score = (pd.Index(table["source"] + "\0" + table["part"]) for table in (runs, scores))
    place = of_run.get_indexer(of_score)  # of the run of each score
    wanted = keys == (key or "reward")
    order = np.argsort(~wanted, kind="stable")
    order = order[(place[order] >= 0) & (wanted[order] | (not key))]
    found, first = np.unique(place[order], return_index=True)
    chosen = scores.iloc[order[first]].set_index(runs.index[found])
    runs["score_key"] = chosen["key"].reindex(runs.index)
    runs["score"] = runs["score"].fillna(chosen["value"])
    verdicts = _by_task(facts, "outcome")
    is_open = runs["score"].isna() & runs["task_id"].isin(list(verdicts))
    open_runs = runs.loc[is_open, ["task_id", "model_name", "source", "status"]]
    for at, task, model, source, status in open_runs.itertuples(name=None):
        of_model = [fact for fact in verdicts[task] if (fact["model_name"] or "").replace("__", "/") == model]
        verdict = _nearest(source, of_model or verdicts[task])
        if status in ENDED or verdict == "resolved":  # what something else ended is no measurement
            runs.at[at, "score"] = _VERDICTS.get(verdict, np.nan)
            runs.at[at, "status"] = verdict if verdict != "resolved" else status if status in ENDED else "completed"
    is_table, failed = runs["format"] == "table", runs["status"].isin(AGENT_FAILED)
    runs["score"] = score = runs["score"].where(failed | runs["status"].isin(ENDED) | is_table)
    # a score between 0 and 1 says how much, not whether: then no run with scores of this kind succeeds or fails
    of_data, scorer = _group(runs, ["format", "dataset"]), pd.Series(pd.factorize(runs["score_key"])[0], runs.index)
    scorer = scorer.where(scorer >= 0)
    scorer = scorer.fillna(scorer.groupby(of_data).transform("first")).fillna(-1)
    is_truth = score.isna() | (np.minimum(score.abs(), (score - 1).abs()) <= 1e-6)
    binary = is_truth.groupby([of_data, scorer]).transform("all")
    runs["score"] = score.mask(failed & score.isna() & binary, 0.0)
    told = (runs["score"] > 0.5).astype("float64").where(binary & runs["score"].notna() & ~is_table)
    runs["is_successful"] = runs["is_successful"].fillna(told).astype("boolean")
    return pd.Series(runs["run_id"].reindex(place).to_numpy(), scores.index, "str")


def _repeated(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Number repetitions in the order of their start, where logs don't; return which runs are repeated.

    Those are runs that a later log of the same evaluation repeats, and those that another file holds, too.
    """
    same = _group(runs, _IDENTITY)
    if runs["repetition"].isna().any():
        in_order = same.loc[runs.sort_values(["started", "source", "part"], kind="stable").index]
        runs["repetition"] = runs["repetition"].fillna(in_order.groupby(in_order).cumcount())
    created = pd.Series(pd.factorize(runs["created"], sort=True)[0], runs.index)  # -1: not told
    superseded = (created >= 0) & (created < created.groupby([same, runs["repetition"]]).transform("max"))
    ids = runs[~superseded & runs["log_id"].notna() & runs["format"].ne("table")]
    again = ids.duplicated(["format", "log_id", "task_id"])
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


def _plans(runs: pd.DataFrame, said: pd.DataFrame) -> tuple[pd.DataFrame, list[str | None]]:
    """Return what was planned, by file, model and task, and for each run the file with its plan."""
    is_task = said["task_id"].ne("")
    job = {os.path.dirname(source): source for source in said.loc[~is_task, "source"]}
    plan_of = {  # what a job's lock says is part of the plan that its result states
        source: job.get(folder, source) if name == "lock.json" else source
        for source in said["source"].unique()
        for folder, name in [os.path.split(source)]
    }
    whole = set(plan_of.values())
    above = {os.path.dirname(source): source for source in whole - set(runs["source"].unique())}
    of_source: dict[str, str | None] = {}
    for source in runs["source"].unique():
        folder = source
        while source not in whole and folder not in above and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        of_source[source] = source if source in whole else above.get(folder)
    of_run = [of_source[source] for source in runs["source"].to_numpy()]
    keys = ["source", "model_name", "dataset", "task_id"]
    planned = runs[keys[1:]].assign(source=pd.Series(of_run, runs.index, "str")).dropna(subset="source")
    said["source"] = said["source"].map(plan_of)
    if (is_lock := is_task & said["dataset"].isna()).any():  # it calls a task by its folder
        tasks = dict[tuple[str, str], tuple[str, str]]()
        for _, dataset, task, source in planned.itertuples(index=False):
            for name in (task, str(task).rpartition("/")[2]):
                tasks.setdefault((source, name), (dataset, task))
        for at, source, task in said.loc[is_lock, ["source", "task_id"]].itertuples(name=None):
            said.loc[at, ["dataset", "task_id"]] = tasks.get((source, task), (None, task))
    firsts = planned.drop_duplicates("source").set_index("source")
    for name in ("model_name", "dataset"):  # that of all its runs, if the plan does not say which
        said[name] = said[name].fillna(said["source"].map(firsts[name]).where(is_task))
    if is_lock.any():  # two of its names may be one task
        said = said.groupby(keys, dropna=False, sort=False).sum(min_count=1).reset_index()
    return said, of_run
