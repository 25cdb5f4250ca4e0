"""Put runs together from records: scores, models and outcomes that stand in other files, trajectories of trials.

Runs are columns of plain values until the frames are made: most logs are few, and steps of frames take long for few.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._words import Notes, as_list, counted_noun, note
from evalkit.io import Entry, SourceError, absolute, frame_of
from evalkit.kinds import Assembled, Records, run_ids
from evalkit.kinds.headers import choices_of, columns_of_runs, meanings, unread_cells
from evalkit.kinds.runs import UNKNOWN
from evalkit.trajectories.format import AGENT_FAILED, ENDED, RUNS
from evalkit.trajectories.table import LAZY_TABLES, TABLES
from evalkit.trajectories.transcript import lazy_frame
from evalkit.trajectories.values import count_of

OUTCOMES = {"success": True, "failure": False, "not measured": None}
MOST_CONTINUED = 100  # files of one trajectory
_JOINED = ("model_name", "turns", "tokens_in", "tokens_cache", "tokens_out", "cost")  # of a trial's own trajectory
_VERDICTS = {"resolved": 1.0, "unresolved": 0.0, "empty_patch": 0.0}  # others of SWE-bench's are no measurement
_IDENTITY = ("experiment", "dataset", "agent", "model_name", "task_id")  # runs that share these are repetitions
_COUNTS = {column.name for column in RUNS if column.dtype == "int?"}
_CALLED_ID = re.compile(r"(run|trial|trajectory|log)[ _-]?(id|uuid)|uuid", re.IGNORECASE)  # the column of runs' ids
_Facts = Sequence[Mapping[str, Any]]  # rows of the table of facts


class _Runs(dict[str, list[Any]]):
    """Columns that are made or changed, as lists with None for what is missing; the others stay as they were logged."""

    def __init__(self, logged: pa.Table, columns: Mapping[str, list[Any]] = MappingProxyType({})) -> None:
        super().__init__(columns)
        self.logged, self._read = logged, dict[str, list[Any]]()

    def __missing__(self, name: str) -> list[Any]:
        self[name] = self.read(name)
        return self[name]

    def read(self, name: str) -> list[Any]:
        """Return a column that stays as it is."""
        if name not in self and name not in self._read:
            logged = self.logged[name]  # of times, `to_pylist` takes a hundred times as long
            self._read[name] = logged.to_numpy().tolist() if name == "started" else logged.to_pylist()
        return self[name] if name in self else self._read[name]

    def take(self, places: list[int]) -> "_Runs":
        """Return the runs at some places, in their order."""
        if places == list(range(len(self.logged))):
            return self
        return _Runs(self.logged.take(places), {name: [own[at] for at in places] for name, own in self.items()})


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames; options are those of `load`."""
    facts, logged, scores = records.tables["facts"].to_pylist(), records.tables["runs"], records.tables["scores"]
    runs = _Runs(logged)
    for name in ("score", "score_key", "is_successful", "success_rate"):
        runs[name] = [None] * len(logged)
    runs["trajectories"] = [[] for _ in range(len(logged))]
    reasons = dict(zip(records.files["source"].to_pylist(), records.files["reason"].to_pylist(), strict=True))
    notes, chosen = _fill_tables(runs, as_list(options.get("columns") or ()), reasons)
    gone = {note.source for note in notes if note.status == "skipped"} | _join(runs, facts)
    left = [at for at, source in enumerate(runs.read("source")) if source not in gone]
    runs = runs.take(sorted(left, key=runs.read("source").__getitem__))
    places = {source: absolute(source) for source in set(runs.read("source"))}
    runs["run_id"] = run_ids("trajectories", map(places.get, runs.read("source")), runs.read("part"))
    _add_shared(runs, facts)
    runs["model_name"] = [model or UNKNOWN for model in runs["model_name"]]
    of_score = pa.array(_score(runs, scores, facts, options.get("score") or ""), pa.large_string())
    scores = scores.append_column("run_id", of_score).filter(pc.is_valid(of_score))
    if used := [key for key in dict.fromkeys(runs["score_key"]) if key]:
        others = sorted(set(scores["key"].to_pylist()) - set(used))
        chosen += note("scorer", used=used, others=others)
    versions = list(_rows(runs, "dataset", "task_id", "task_checksum"))
    known = Counter((dataset, task) for dataset, task, version in set(versions) if version)
    several = {task for task, count in known.items() if count > 1}
    runs["task_version"] = [version if (dataset, task) in several else None for dataset, task, version in versions]
    flags = _repeated(runs)
    flags["overruled"] = _overruled(runs, str(options.get("outcomes") or ""))
    flags["no_outcome"] = [
        score is None and success is None and status in ENDED
        for score, success, status in _rows(runs, "score", "is_successful", "status")
    ]
    runs |= {f"flag_{name}": raised for name, raised in flags.items()}
    raised_of = zip(*flags.values(), strict=True)
    runs["run_flags"] = [list(compress(flags, raised)) if any(raised) else [] for raised in raised_of]
    plans, runs["plan"] = _plans(runs, records.tables["plans"])
    runs["task_type"] = runs.read("dataset")
    runs |= {"kind": ["trajectories"] * len(left), "model_source": ["log"] * len(left)}
    order = sorted(range(len(left)), key=list(_rows(runs, "source", "repetition")).__getitem__)
    runs = runs.take(order)
    tables: dict[str, Mapping[str, Any] | pa.Table] = {"scores": scores, "plans": plans}
    tables["runs"] = dict(zip(logged.column_names, runs.logged.columns, strict=True)) | runs
    frames = {
        name: frame_of({column.name: tables[name][column.name] for column in columns}, columns)
        for name, columns in TABLES.items()
    }
    lazy = {name: partial(lazy_frame, frames["runs"], name) for name in LAZY_TABLES}
    return Assembled(frames, notes, lazy=lazy, chosen=chosen)


def _rows(runs: _Runs, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*map(runs.read, columns), strict=True)


def _fill_tables(runs: _Runs, columns: Sequence[str], reasons: Mapping[str, str]) -> tuple[list[Entry], Notes]:
    """Fill in the runs of tables, whose columns are called anything.

    Returns the tables' entries of the ledger, with what columns were taken for, or why a table was not understood; and
    the same as notes: one for all tables with the same columns.
    """
    given = {}
    for pair in columns:
        role, equals, name = pair.partition("=")
        if not equals:
            raise SourceError(f"column {pair!r}: write what it means and its name, such as score=reward")
        given[role.strip()] = name.strip()
    extra, rows_of = runs["extra"], dict[str, list[dict[str, Any]]]()
    places: dict[str, list[int]] = {}  # of the rows of each table among the runs
    for at, (source, of_format) in enumerate(_rows(runs, "source", "format")):
        if of_format == "table":
            places.setdefault(source, []).append(at)
            rows_of.setdefault(source, []).append(msgspec.json.decode(extra[at]))
    alike: dict[tuple[str, ...], list[str]] = {}  # tables by the names of their columns
    for source, rows in rows_of.items():
        alike.setdefault(tuple(dict.fromkeys(name for row in rows for name in row)), []).append(source)
    entries, doubts, chosen = dict[str, Entry](), dict[str, Notes](), Notes()
    first_of, seen = dict[tuple[str, ...], str](), set[tuple[str, str]]()  # files by their rows; runs with ids
    runs["is_copy"] = [False] * len(extra)
    for sources in alike.values():
        rows = [row for source in sources for row in rows_of[source]]
        table = pd.DataFrame(rows, dtype="object")
        source_of = [source for source in sources for _ in rows_of[source]]
        try:
            meaning = meanings(table, given)
        except SourceError as error:
            entries |= {source: Entry(source, "skipped", f"no table of runs: {error}") for source in sources}
            continue
        made, unread = columns_of_runs(table, meaning, source_of)
        end, used = 0, list[str]()
        for source in sources:
            start, end = end, end + len(rows_of[source])
            own, file = table.iloc[start:end], os.path.basename(source)
            problems, unread_notes = list[str](), Notes()
            if len(unread.columns):
                try:
                    unread_notes = unread_cells(made.iloc[start:end], unread.iloc[start:end], meaning)
                except SourceError as error:
                    entries[source] = Entry(source, "skipped", f"no table of runs: {error}")
                    continue
            used.append(source)
            texts, ids = tuple(extra[at] for at in places[source]), _ids_of_rows(own)
            for at, text, run in zip(places[source], texts, ids, strict=True):
                if run:
                    runs["is_copy"][at] = (run, text) in seen
                    seen.add((run, text))
            first = first_of.setdefault(texts, source)
            if copies := sum(runs["is_copy"][at] for at in places[source]):
                rows_text = counted_noun(copies, "row")
                problems.append(f"{rows_text} with the id and values of another row: copies, which count in no rate")
            elif first != source and len(texts) > 1 and "model_name" in meaning:
                problems.append(f"the same rows as {os.path.basename(first)}: both count, as no column has ids of runs")
            problems += filter(None, [reasons.get(source, ""), str(unread_notes)])
            if problems:
                doubts[source] = note("table", file=file, doubts="; ".join(problems))
            entries[source] = Entry(source, "used", "; ".join([*problems, str(choices_of(own, meaning, file))]))
        rest = [{key: item for key, item in row.items() if key not in meaning.values()} for row in rows]
        made["extra"] = [msgspec.json.encode(row).decode() if row else None for row in rest]
        if "started" in made:
            made["started"] = made["started"].dt.tz_localize(None)
        at_of_rows = [at for source in sources for at in places[source]]
        for column in map(str, made):
            values = made[column].astype("object").where(made[column].notna(), None)
            for at, value in zip(at_of_rows, values, strict=True):
                runs[column][at] = count_of(value) if column in _COUNTS else value
        if used:
            files = os.path.basename(used[0])
            if len(used) > 1:
                files += f" and {counted_noun(len(used) - 1, 'other file')}"
            chosen += choices_of(table[pd.Series(source_of).isin(used)], meaning, files)
    in_order = [entries[source] for source in places]
    if in_order and {entry.source for entry in in_order if entry.status == "skipped"}.issuperset(runs.read("source")):
        raise SourceError(f"{in_order[0].source}: {in_order[0].reason}")
    for source in filter(doubts.__contains__, places):
        chosen += doubts[source]
    return in_order, chosen


def _ids_of_rows(table: pd.DataFrame) -> list[str]:
    """Return the id of each row of a table, or "": a column that calls itself one, and has each once but for copies."""
    for name in filter(_CALLED_ID.fullmatch, map(str, table)):
        ids = table[name].map(lambda value: "" if value is None else str(value).strip())
        if ids.ne("").all() and ids[~table.astype("str").duplicated()].is_unique:
            return ids.tolist()
    return [""] * len(table)


def _join(runs: _Runs, facts: _Facts) -> set[str]:
    """Join trajectories to the trials that they belong to, and to those that they go on from, or are subagents of.

    Returns the files of what is no run of its own.
    """
    formats = runs.read("format")
    if not {"atif", "harbor"} & set(formats):
        return set()
    of_many = ("table", "inspect_ai", "tau2-bench")
    place = {source: at for at, source in enumerate(runs.read("source")) if formats[at] not in of_many}
    follows: dict[str, str] = {}  # the file that a trajectory goes on in: the one that it goes on from
    for source, at in place.items():
        if following := runs["continues"][at]:
            follows |= dict.fromkeys(_beside(source, following), source)
    gone = set[str]()
    for fact in facts:
        if fact["fact"] == "subagent" and fact["source"] not in gone:
            gone.update(_beside(fact["source"], fact["value"]) - {fact["source"]})
    for source in sorted(follows.keys() & place.keys()):
        first, passed = source, 0
        while first in follows and passed < MOST_CONTINUED:
            first, passed = follows[first], passed + 1
        if first in follows:
            continue  # they go on in a circle
        gone.add(source)
        for column in _JOINED[1:]:
            own, later = (runs[column][place[one]] for one in (first, source))
            if own is not None and later is not None:  # a later file states the totals of all, or its own
                runs[column][place[first]] = later if later > own and column != "turns" else own + later
    trials = {os.path.dirname(source): at for source, at in place.items() if formats[at] == "harbor"}
    others = {(name != "atif", source) for name, source in _rows(runs, "format", "source") if name != "harbor"}
    for is_own_form, source in sorted(others):
        trial = _above(source, trials)
        if trial is None or source in gone:
            continue
        gone.add(source)
        if source in place and not (is_own_form and runs["trajectories"][trial]):
            runs["trajectories"][trial].append(source)
            for values in (runs[column] for column in _JOINED):
                values[trial] = values[place[source]] if values[trial] is None else values[trial]
    return gone


def _beside(source: str, name: str) -> set[str]:
    """Return where the file may be that a trajectory names: in its folder, where files of several runs share a name."""
    folder, own = os.path.split(source)
    return {os.path.join(folder, before + os.path.basename(name)) for before in ("", own.partition("trajectory.")[0])}


def _above(path: str, of_folders: Mapping[str, Any]) -> Any:
    """Return what is said of the nearest folder above a file; None if nothing is."""
    folder = os.path.dirname(path)
    while folder not in of_folders and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return of_folders.get(folder)


def _add_shared(runs: _Runs, facts: _Facts) -> None:
    """Fill in what other files say of runs: of tau2-bench the results beside a folder, of SWE-bench who predicted."""
    for fact in facts:
        if fact["fact"] == "info":
            folder = os.path.join(os.path.dirname(fact["source"]), "simulations") + "/"
            inside = [at for at, source in enumerate(runs.read("source")) if source.startswith(folder)]
            for column, value in msgspec.json.decode(fact["value"]).items():
                for at in inside if value not in (None, "") else ():
                    runs[column][at] = value
    of_task = _by_task(facts, "model")
    for at, (task, model, source) in enumerate(_rows(runs, "task_id", "model_name", "source")):
        if model is None and task in of_task:
            runs["model_name"][at] = _nearest(source, of_task[task])


def _by_task(facts: _Facts, name: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for fact in facts:
        if fact["fact"] == name:
            found.setdefault(fact["task_id"], []).append(fact)
    return found


def _nearest(source: str, facts: _Facts) -> str:
    """Return the value of the fact in the file that shares the most folders with a run's."""
    return max(facts, key=lambda fact: len(os.path.commonpath([source, fact["source"]])))["value"]


def _score(runs: _Runs, scores: pa.Table, facts: _Facts, key: str) -> list[str | None]:
    """Set score, success and status; a run that something else than its agent ended has neither score nor success.

    Returns the id of the run of each score.
    """
    sources, parts, keys, values = (scores[name].to_pylist() for name in ("source", "part", "key", "value"))
    if key and key not in keys:
        raise SourceError(f"no score is called {key!r}; there are {', '.join(sorted(set(keys))) or 'none'}")
    places = {run: at for at, run in enumerate(_rows(runs, "source", "part"))}
    of_score = [places.get(run) for run in zip(sources, parts, strict=True)]
    score, score_key, success = runs["score"], runs["score_key"], runs["is_successful"]
    wanted = key or "reward"
    for at, name, value in zip(of_score, keys, values, strict=True):
        if at is None or (key and name != key):
            continue
        if score_key[at] is None or name == wanted != score_key[at]:
            score[at], score_key[at] = value, name
    verdicts = _by_task(facts, "outcome")
    named = _rows(runs, "task_id", "model_name", "source", "status")
    for at, (task, model, source, status) in enumerate(named if verdicts else ()):
        if score[at] is None and task in verdicts:
            of_model = [fact for fact in verdicts[task] if (fact["model_name"] or "").replace("__", "/") == model]
            verdict = _nearest(source, of_model or verdicts[task])
            if status in ENDED or verdict == "resolved":  # what something else ended is no measurement
                score[at] = _VERDICTS.get(verdict)
                runs["status"][at] = verdict if verdict != "resolved" else status if status in ENDED else "completed"
    # a score between 0 and 1 says how much, not whether: then no run with scores of this kind succeeds or fails
    kinds: list[tuple] = list(_rows(runs, "format", "dataset"))
    between = []
    for at, (of_format, status, value) in enumerate(_rows(runs, "format", "status", "score")):
        if of_format != "table" and status not in AGENT_FAILED and status not in ENDED:
            score[at] = None
        elif value not in (None, 0.0, 1.0) and min(abs(value), abs(value - 1)) > 1e-6:
            between.append(at)
    if between:
        scorers = {own: name for own, name in zip(kinds[::-1], score_key[::-1], strict=True) if name}  # the first
        kinds = [(own, name or scorers.get(own)) for own, name in zip(kinds, score_key, strict=True)]
    graded = {kinds[at] for at in between}
    for at, (of_format, status) in enumerate(_rows(runs, "format", "status")):
        if kinds[at] not in graded:
            if of_format == "table":  # it states what it knows
                continue
            if score[at] is None and status in AGENT_FAILED:
                score[at] = 0.0
            if score[at] is not None:
                success[at] = score[at] > 0.5
    return [None if at is None else runs["run_id"][at] for at in of_score]


def _repeated(runs: _Runs) -> dict[str, list[bool]]:
    """Number repetitions in the order of their start, where logs don't; return which runs are repeated.

    Those are runs that a later log of the same evaluation repeats, and those that another file holds, too.
    """
    same, number = list(_rows(runs, *_IDENTITY)), runs["repetition"]
    if None in number:
        begun = [(started is None, started, *own) for started, *own in _rows(runs, "started", "source", "part")]
        before = Counter[tuple]()
        for at in sorted(range(len(same)), key=begun.__getitem__):
            number[at] = before[same[at]] if number[at] is None else number[at]
            before[same[at]] += 1
    trials = zip(same, number, strict=True)
    created = [(trial, when or "") for trial, when in zip(trials, runs.read("created"), strict=True)]
    latest = dict(sorted(created, key=itemgetter(1)))
    superseded = ["" != when < latest[trial] for trial, when in created]
    duplicate, seen, ids = list(runs["is_copy"]), set[tuple](), list(_rows(runs, "log_id", "format", "task_id"))
    for at, own in enumerate(ids if len(set(ids)) < len(ids) else ()):
        if own[0] is not None and own[1] != "table" and not superseded[at]:
            duplicate[at] = own in seen
            seen.add(own)
    return {"superseded": superseded, "duplicate": duplicate}


def _overruled(runs: _Runs, path: str) -> list[bool]:
    """Set the outcomes that a file states, a CSV file of run_id, outcome and reason; return whose they are."""
    if not path:
        return [False] * len(runs["run_id"])
    try:
        stated = pd.read_csv(path, dtype="str").rename(columns=str.strip)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {type(error).__name__}: {error}") from None
    known = {"run_id": set(runs["run_id"]), "outcome": set(OUTCOMES)}
    wrong = [f"no column {name}; there are {', '.join(map(str, stated))}" for name in known if name not in stated]
    wrong = wrong or [f"{text!r} is no {name}" for name in known for text in stated[name] if text not in known[name]]
    if wrong:
        raise SourceError(f"{path}: {wrong[0]}; outcomes are {', '.join(OUTCOMES)}")
    of_run = {row["run_id"]: row for row in stated.to_dict("records")}  # the last row of a run counts
    for at, run_id in enumerate(runs["run_id"]):
        if row := of_run.get(run_id):
            success = OUTCOMES[row["outcome"]]
            runs["is_successful"][at], runs["score"][at] = success, None if success is None else float(success)
            runs["status"][at] = "overruled" if success is None else "completed"
            runs["exit_reason"][at] = row.get("reason", runs["exit_reason"][at])
    return [run_id in of_run for run_id in runs["run_id"]]


def _plans(runs: _Runs, said: pa.Table) -> tuple[pa.Table, list[str | None]]:
    """Return what was planned, by file, model and task, and for each run the file with its plan."""
    sources, models, datasets, tasks = (column.to_pylist() for column in said.columns[:4])
    job = {os.path.dirname(source): source for source, task in zip(sources, tasks, strict=True) if not task}
    plan_of = {  # what a job's lock says is part of the plan that its result states
        source: job.get(folder, source) if name == "lock.json" else source
        for source in set(sources)
        for folder, name in [os.path.split(source)]
    }
    whole, logs = set(plan_of.values()), set(runs.read("source"))
    above = {os.path.dirname(source): source for source in whole - logs}
    of_source = {source: source if source in whole else _above(source, above) for source in logs}
    plans, of_run = [plan_of[source] for source in sources], [of_source[source] for source in runs.read("source")]
    if None in models or None in datasets:  # what a plan leaves out, its runs tell
        firsts, known = dict[Any, tuple](), dict[tuple, tuple]()
        for plan, (model, dataset, task) in zip(of_run, _rows(runs, "model_name", "dataset", "task_id"), strict=True):
            firsts.setdefault(plan, (model, dataset))
            known.setdefault((plan, task), (dataset, task))
            if task and "/" in task:  # a lock calls a task by its folder
                known.setdefault((plan, task.rpartition("/")[2]), (dataset, task))
        for at, (plan, task) in enumerate(zip(plans, tasks, strict=True)):
            if task and datasets[at] is None:
                datasets[at], tasks[at] = known.get((plan, task), (None, task))
            if task:  # that of all its runs, if the plan does not say which
                model, dataset = firsts.get(plan, (None, None))
                models[at], datasets[at] = models[at] or model, datasets[at] or dataset
    stated = pa.table([plans, models, datasets, tasks, *said.columns[4:]], said.schema)
    groups = stated.group_by(said.column_names[:4], use_threads=False)  # two names of a lock may be one task
    sums = groups.aggregate([(name, "sum") for name in said.column_names[4:]])
    return sums.rename_columns(said.column_names), of_run
