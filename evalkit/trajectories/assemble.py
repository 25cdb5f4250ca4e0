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
from evalkit.trajectories.format import IS_MEASURED
from evalkit.trajectories.formats import table
from evalkit.trajectories.table import TABLES
from evalkit.trajectories.transcript import tool_calls_frame, turns_frame

OUTCOMES = ("success", "failure", "not measured")
_JOINED = ["model_name", "turns", "tokens_in", "tokens_cache", "tokens_out", "cost"]  # of a trial's own trajectory
_VERDICTS = {"resolved": 1.0, "unresolved": 0.0, "empty_patch": 0.0}  # others of SWE-bench's are no measurement


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames; options are `columns`, `score` and `outcomes`, as for `load`."""
    frames = {name: table_.to_pandas() for name, table_ in records.tables.items()}
    facts, scores = frames["facts"], frames["scores"]
    runs = frames["runs"].assign(score=np.nan, trajectory=None)
    runs["run_flags"] = [[] for _ in range(len(runs))]
    runs, notes = _with_tables(runs, options.get("columns") or ())
    runs = _joined(runs)
    runs["run_id"] = run_ids("trajectories", runs["source"], runs["part"])
    scores = scores.merge(runs[["source", "part", "run_id"]], on=["source", "part"])
    _add_shared(runs, facts)
    _score(runs, scores, facts, options.get("score") or "")
    _flag_repeated(runs, facts)
    _number(runs)
    if options.get("outcomes"):
        _overrule(runs, str(options["outcomes"]))
    runs = runs.assign(kind="trajectories", model_source="log", task_type=runs["dataset"])
    runs["model_name"] = runs["model_name"].fillna("unknown")
    runs = runs.sort_values(["source", "repetition"], kind="stable")
    made = {
        name: frame_of({column.name: made.get(column.name, [None] * len(made)) for column in TABLES[name]}, TABLES[name])
        for name, made in (("runs", runs), ("scores", scores))
    }
    planned = facts.loc[facts["fact"] == "planned"].assign(value=lambda rows: rows["value"].astype(int))
    more = {"planned": dict(zip(planned["source"], planned["value"], strict=True))}
    lazy = {"turns": partial(turns_frame, made["runs"]), "tool_calls": partial(tool_calls_frame, made["runs"])}
    return Assembled(made, notes, more, lazy)


def _with_tables(runs: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, list[Entry]]:
    """Fill in the runs of tables, whose columns are named in any way; note the tables that can't be understood."""
    given = {}
    for pair in columns:
        role, equals, name = pair.partition("=")
        if not equals:
            raise SourceError(f"column {pair!r}: write what it means and its name, such as score=reward")
        given[role.strip()] = name.strip()
    is_table = runs["format"].eq("table")
    notes, parts = [], [runs[~is_table]]
    for source, own in runs[is_table].groupby("source", sort=False):
        rows = [msgspec.json.decode(row) for row in own["extra"]]
        try:
            meaning = table.meanings(list(rows[0]), given)
        except SourceError as error:
            notes.append(Entry(str(source), "skipped", f"no table of runs: {error}"))
            continue
        made = table.mapped(rows, meaning).set_index(own.index)
        if "is_successful" not in made:
            made["is_successful"] = np.nan
        said = ", ".join(f"{role}: {name}" for role, name in meaning.items() if role != name)
        notes.append(Entry(str(source), "used", f"columns: {said}" if said else ""))
        rest = [{key: item for key, item in row.items() if key not in meaning.values()} for row in rows]
        extra = [msgspec.json.encode(row).decode() if row else None for row in rest]
        parts.append(own.drop(columns=list(made), errors="ignore").assign(extra=extra).join(made))
    if not any(map(len, parts)) and notes:
        raise SourceError(f"{notes[0].source}: {notes[0].reason}")
    return pd.concat(parts).sort_index(), notes


def _joined(runs: pd.DataFrame) -> pd.DataFrame:
    """Join trajectories to the trials that they belong to, and to those that they go on from."""
    place = {(row.source, row.part): at for at, row in zip(runs.index, runs.itertuples(), strict=True)}
    trial = {os.path.dirname(source): place[source, ""] for source in runs.loc[runs["format"] == "harbor", "source"]}
    dropped: list[Any] = []
    atif = runs[runs["format"] == "atif"]
    follows = {}
    for at, source, reference in atif[["source", "continues"]].itertuples(name=None):
        if isinstance(reference, str) and (next_ := _beside(source, reference, place)):
            follows[next_] = at
    for source, at in sorted(follows.items()):
        rest, first = place[source, ""], at
        while (before := follows.get(runs.at[first, "source"])) is not None and before != rest:
            first = before
        pairs = [(c, runs.at[first, c], runs.at[rest, c]) for c in _JOINED[1:]]
        pairs = [(column, own, later) for column, own, later in pairs if pd.notna(own) and pd.notna(later)]
        # a later file states the totals of all, or its own
        is_total = all(later >= own for column, own, later in pairs if column != "turns")
        for column, own, later in pairs:
            runs.at[first, column] = later if is_total and column != "turns" else own + later
        dropped.append(rest)
    for at, source in atif["source"].items():
        folder = os.path.dirname(source)
        if (of := trial.get(os.path.dirname(folder), trial.get(folder))) is not None:
            if at not in dropped:
                runs.at[of, "trajectory"] = source
                for column in _JOINED:
                    if pd.isna(runs.at[of, column]):
                        runs.at[of, column] = runs.at[at, column]
            dropped.append(at)
    return runs.drop(index=dropped).reset_index(drop=True)


def _beside(source: str, reference: str, place: Mapping[tuple[str, str], Any]) -> str:
    """Return the file that a trajectory goes on in: of that name, or of that ending, in its folder."""
    folder, name = os.path.split(source)
    stem = name.partition("trajectory.")[0]  # files of several runs in one folder have a name before it
    for path in (os.path.join(folder, reference), os.path.join(folder, stem + os.path.basename(reference))):
        if (os.path.normpath(path), "") in place:
            return os.path.normpath(path)
    return ""


def _add_shared(runs: pd.DataFrame, facts: pd.DataFrame) -> None:
    """Fill in what other files say of runs: of tau2-bench the results beside a folder, of SWE-bench who predicted."""
    for source, value in facts.loc[facts["fact"] == "info", ["source", "value"]].itertuples(index=False):
        inside = runs["source"].str.startswith(os.path.join(os.path.dirname(source), "simulations") + "/")
        for column, item in msgspec.json.decode(value).items():
            if item is not None:
                runs.loc[inside, column] = item
    models = facts[facts["fact"] == "model"]
    for at in runs.index[runs["model_name"].isna() & runs["task_id"].isin(models["task_id"])]:
        named = models[models["task_id"] == runs.at[at, "task_id"]]
        runs.at[at, "model_name"] = _nearest(runs.at[at, "source"], named)["value"]


def _nearest(source: str, facts: pd.DataFrame) -> pd.Series:
    """Return the fact of the file that shares the most folders with a run's."""
    shared = [len(os.path.commonpath([source, other])) for other in facts["source"]]
    return facts.iloc[int(np.argmax(shared))]


def _score(runs: pd.DataFrame, scores: pd.DataFrame, facts: pd.DataFrame, key: str) -> None:
    """Set score, success and status; a run that its log calls no measurement has neither score nor success."""
    if key and key not in set(scores["key"]):
        raise SourceError(f"no score is called {key!r}; there are {', '.join(sorted(set(scores['key']))) or 'none'}")
    preferred = scores["key"].eq(key) if key else scores["key"].eq("reward")
    firsts = scores.assign(rank=~preferred).sort_values("rank", kind="stable").drop_duplicates("run_id")
    firsts = firsts[~firsts["rank"]] if key else firsts
    chosen = firsts.set_index("run_id").reindex(runs["run_id"])
    runs["score_key"] = chosen["key"].to_numpy()
    runs["score"] = runs["score"].fillna(pd.Series(chosen["value"].to_numpy("float64"), runs.index))
    verdicts = facts[facts["fact"] == "outcome"]
    for at in runs.index[runs["task_id"].isin(verdicts["task_id"]) & runs["score"].isna()]:
        own = verdicts[verdicts["task_id"] == runs.at[at, "task_id"]]
        of_model = own["model_name"].str.replace("__", "/").eq(str(runs.at[at, "model_name"]))
        verdict = _nearest(runs.at[at, "source"], own[of_model] if of_model.any() else own)
        runs.at[at, "score"] = _VERDICTS.get(verdict["value"], np.nan)
        if verdict["value"] != "resolved":
            runs.at[at, "status"] = verdict["value"]
    is_measured = runs["status"].isin(IS_MEASURED) | runs["format"].eq("table")
    runs["score"] = runs["score"].where(is_measured)
    stated = runs["is_successful"] if "is_successful" in runs else pd.Series(np.nan, runs.index)
    # a score between 0 and 1 says how much, not whether: then no run of that score succeeds or fails
    whole = runs["score"].isna() | (runs["score"].sub(runs["score"].round()).abs() < 1e-6) & runs["score"].between(0, 1)
    binary = whole.groupby([runs["format"], runs["score_key"].fillna("")]).transform("all")
    told = stated.notna() | (binary & runs["score"].notna())
    success = stated.where(stated.notna(), (runs["score"] > 0.5).astype("float64"))
    runs["score"] = runs["score"].fillna(stated.astype("float64"))
    runs["is_successful"] = success.astype("boolean").where(told)
    no_outcome = runs["score"].isna() & runs["status"].eq("completed")
    for at in runs.index[no_outcome]:
        runs.at[at, "run_flags"] = [*runs.at[at, "run_flags"], "no_outcome"]


def _flag_repeated(runs: pd.DataFrame, facts: pd.DataFrame) -> None:
    """Flag the runs of an evaluation that a later log repeats."""
    created = facts.loc[facts["fact"] == "created"].set_index("source")["value"]
    logs = runs[runs["format"].eq("inspect_ai")].assign(created=lambda rows: rows["source"].map(created))
    again = logs.sort_values("created").duplicated(["experiment", "model_name", "task_id", "repetition"], keep="last")
    for at in again.index[again]:
        runs.at[at, "run_flags"] = [*runs.at[at, "run_flags"], "superseded"]


def _number(runs: pd.DataFrame) -> None:
    """Number repetitions where logs don't: in the order of their start."""
    identity = ["experiment", "dataset", "agent", "model_name", "task_id"]
    order = runs.sort_values(["started", "source", "part"], kind="stable")
    number = order.groupby([order[name].fillna("") for name in identity], sort=False).cumcount()
    runs["repetition"] = runs["repetition"].astype("Float64").fillna(number.reindex(runs.index).astype("Float64"))


def _overrule(runs: pd.DataFrame, path: str) -> None:
    """Set the outcomes that a file states: a CSV file of run_id, outcome and reason."""
    try:
        stated = pd.read_csv(path, dtype=str).rename(columns=str.strip)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error}") from None
    if missing := {"run_id", "outcome"} - set(stated.columns):
        raise SourceError(f"{path}: no column {' and '.join(sorted(missing))}; there are {', '.join(stated.columns)}")
    if len(other := stated.loc[~stated["outcome"].isin(OUTCOMES), "outcome"]):
        raise SourceError(f"{path}: {other.iloc[0]!r} is no outcome; there are {', '.join(OUTCOMES)}")
    if len(other := stated.loc[~stated["run_id"].isin(runs["run_id"]), "run_id"]):
        raise SourceError(f"{path}: no run {other.iloc[0]!r}")
    of_run = stated.set_index("run_id")
    for at in runs.index[runs["run_id"].isin(of_run.index)]:
        row = of_run.loc[runs.at[at, "run_id"]]
        runs.at[at, "is_successful"] = {"success": True, "failure": False}.get(row["outcome"], pd.NA)
        runs.at[at, "score"] = {"success": 1.0, "failure": 0.0}.get(row["outcome"], np.nan)
        runs.at[at, "status"] = "completed" if row["outcome"] != "not measured" else "overruled"
        runs.at[at, "exit_reason"] = row.get("reason", "")
        runs.at[at, "run_flags"] = [*runs.at[at, "run_flags"], "overruled"]
