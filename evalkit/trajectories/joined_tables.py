"""Complete the runs of tables: interpret columns, mark copies of rows, and write reasons for the ledger."""

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import counted_noun, listed
from evalkit.io import Entry, SourceError
from evalkit.kinds import headers
from evalkit.kinds.runs import JUDGED
from evalkit.trajectories.json_values import count_of
from evalkit.trajectories.records import Joined, Rows, Runs
from evalkit.trajectories.table import RUNS

_COUNTS = {column.name for column in RUNS if column.dtype == "int?"}
_SUMMARY = re.compile(r"average|avg|mean|total|overall|all|sum|summary", re.IGNORECASE)  # not a task: a summary row
_MOST_UNUSED = 2  # maximum number of notes on tables that are not used
_CALLED_ID = re.compile(r"((run|trial|trajectory|log)[ ._-]?)?(id|uuid)", re.IGNORECASE)  # columns of run ids


def _given_meanings(columns: Sequence[str]) -> tuple[dict[str, str], dict[str, float | None]]:
    """Return the column of each role, and the value of each word, that the option ``columns`` states."""
    given = {}
    words = dict[str, float | None]()
    for pair in columns:
        role, equals, name = pair.partition("=")
        if not equals:
            raise SourceError(f"column {pair!r}: write ROLE=NAME, such as score=reward")
        if role.strip() in headers.WORDS:
            words |= {word.strip().lower(): headers.WORDS[role.strip()] for word in name.split(",")}
        else:
            given[role.strip()] = name.strip()
    return given, words


def join_tables(
    all_runs: Runs, columns: Sequence[str], reasons: Mapping[str, str], score: str, named: Collection[str]
) -> Joined:
    """Complete the runs of tables from their rows, which are in `extra`, and note how columns were interpreted.

    Tables with the same columns are read as one. `columns` are meanings in the form ``ROLE=NAME``; they apply to tables
    with this column. ``yes=WORD,WORD`` (or no, missing) states what words in scores and outcomes mean. `reasons`
    contains the text that the ledger already has for each file. If a table has a row for each score of a run, only the
    rows of `score` count. Raises SourceError for other forms, if no file contains runs, and if one of `named` does not.
    """
    given, words = _given_meanings(columns)
    runs = [run for run in all_runs if run.format == "table"]
    rows = [msgspec.json.decode(run.extra or "{}") for run in runs]
    places: dict[str, list[int]] = {}  # positions of the rows of each file
    for at, run in enumerate(runs):
        places.setdefault(run.source, []).append(at)
    alike: dict[tuple[str, ...], list[str]] = {}  # files by the names of their columns
    for source, own in places.items():
        alike.setdefault(tuple(dict.fromkeys(name for at in own for name in rows[at])), []).append(source)
    entries: dict[str, Entry] = {}
    doubts: dict[str, Notes] = {}
    chosen = Notes()
    read = list[tuple[pd.DataFrame, dict[str, str]]]()
    everywhere = {name for names in alike for name in names}
    for names, sources in alike.items():
        of_files = [at for source in sources for at in places[source]]
        table = pd.DataFrame([rows[at] for at in of_files], index=of_files, dtype="object")
        try:
            here = {role: name for role, name in given.items() if name in names or name not in everywhere}
            meaning = headers.meanings(table, here)
            for name in (name for role, name in meaning.items() if words and role in ("score", "is_successful")):
                table[name] = table[name].map(lambda cell: words.get(str(cell).strip().lower(), cell))
            made, unread = headers.columns_of_runs(table, meaning, [runs[at].source for at in of_files])
            models, tasks = made.get("model_name", pd.Series("the only one", made.index)).fillna(""), made["task_id"]
            # rows with such a name and without a model or task, and rows without a task of a model that has tasks
            is_summary = (models + "\n" + tasks.fillna("")).str.strip().str.fullmatch(_SUMMARY)
            if "counts_as" not in meaning:  # each row of an exported table is a run
                is_summary |= tasks.isna() & tasks.notna().groupby(models).transform("any")
            summaries = made.index[is_summary]
            others = headers.other_scores(made, score).union(summaries)
        except SourceError as error:
            entries |= {source: Entry(source, "skipped", f"no table of runs: {error}") for source in sources}
            continue
        for at in others:
            runs[at].is_left_out = True
        table, made, unread = (frame.drop(index=others) for frame in (table, made, unread))
        for source in sources:
            places[source] = [at for at in places[source] if at in made.index]
        of_sources = {source: places[source] for source in sources}
        copies, reused, first_with = _mark_copies(runs, rows, of_sources, meaning)
        for source in sources:
            own, file = places[source], os.path.basename(source)
            try:
                unread_notes = headers.unread_cells(made.loc[own], unread.loc[own], meaning)
            except SourceError as error:
                entries[source] = Entry(source, "skipped", f"no table of runs: {error}")
                continue
            is_numbered = "repetition" in meaning and all(runs[at].log_id is None for at in own)
            repeats = len(own) - len({runs[at].extra for at in own}) if is_numbered else 0
            counts = {
                "with the id and values of another row: copies, which rates exclude": copies[source],
                "equal to others with this repetition: all count (no column has run ids)": repeats,
                "without a task: each counts as a task of its own": made.loc[own, "task_id"].isna().sum(),
                "without a task left out: a summary of other rows": sum(runs[at].source == source for at in summaries),
            }
            problems = [f"{counted_noun(count, 'row')} {what}" for what, count in counts.items() if count]
            if count := reused[source]:
                ids = f"{counted_noun(count, 'id')} {'is' if count == 1 else 'are'}"
                problems.append(f"{ids} shared by rows with different values, which count as different runs")
            if source in first_with and "model_name" in meaning and not copies[source]:
                first = os.path.basename(first_with[source])
                problems.append(f"the same rows as {first}: both count, because no column has ids of runs")
            if meaning["task_id"] == headers.OWN_TASK and len(own) > 1:
                problems.append("no column is the task, so each row is one of its own (--column task_id=NAME)")
            for role, what in {"task_id": "tasks", "model_name": "models"}.items():
                if sums := sorted(filter(_SUMMARY.fullmatch, set(made.get(role, pd.Series()).reindex(own).dropna()))):
                    problems.append(f"rows of {listed(sums)} count as {what}; --where {role}!={sums[0]} excludes them")
            problems += filter(None, [reasons.get(source, ""), str(unread_notes)])
            if problems:
                doubts[source] = note("table", file=file, doubts="; ".join(problems))
            choices = str(headers.choices_of(table.loc[own], meaning, file, here))
            entries[source] = Entry(source, "used", "; ".join([*problems, choices]))
        if used := [source for source in sources if entries[source].status == "used"]:
            files = os.path.basename(used[0])
            if len(used) > 1:
                files += f" and {counted_noun(len(used) - 1, 'other file')}"
            of_used = [at for source in used for at in places[source]]
            chosen += headers.told_apart(made.loc[of_used], table.loc[of_used], meaning, files)
            chosen += headers.choices_of(table.loc[of_used], meaning, files, here, n_files=len(used))
        read.append((made, meaning))
    headers.add_outcomes([made for made, _ in read], are_alone=len(runs) == len(all_runs))
    for made, meaning in read:
        _fill_columns(runs, rows, made, meaning)
    in_order = [entries[source] for source in places]
    for entry in in_order:
        for at in places[entry.source]:
            runs[at].is_left_out = entry.status == "skipped"
    skipped = [entry for entry in in_order if entry.status == "skipped"]
    has_runs = not all(run.is_left_out for run in all_runs)
    for entry in skipped:
        if entry.source in named or not has_runs:
            raise SourceError(f"{entry.source}: {entry.reason}")
    for one in reversed(skipped[:_MOST_UNUSED]):
        chosen = note("table", file=os.path.basename(one.source), doubts=f"not used: {one.reason}") + chosen
    for source in filter(doubts.__contains__, places):
        chosen += doubts[source]
    return Joined(entries=in_order, notes=chosen)


def _fill_columns(runs: Runs, rows: Rows, made: pd.DataFrame, meaning: Mapping[str, str]) -> None:
    """Set the columns of runs from a table; `extra` keeps the cells of other columns."""
    for at in made.index:
        rest = {name: cell for name, cell in rows[at].items() if name not in meaning.values()}
        runs[at].extra = None  # frees the text, which may be long, before its successor takes as much
        if rest:
            runs[at].extra = msgspec.json.encode(rest).decode()
    if "started" in made:
        made["started"] = made["started"].dt.tz_localize(None)
    if "counts_as" in made:
        made["is_copy"] = made.pop("counts_as").eq("excluded")
    if "run_flags" in made:
        made["is_judged"] = made.pop("run_flags").str.contains(JUDGED, na=False)
    for column in map(str, made):
        values = made[column].astype("object").where(made[column].notna(), None)
        for at, value in zip(made.index, values, strict=True):
            setattr(runs[at], column, count_of(value) if column in _COUNTS else value)


def _mark_copies(
    runs: Runs, rows: Rows, places: Mapping[str, Sequence[int]], meaning: Mapping[str, str]
) -> tuple[Counter[str], Counter[str], dict[str, str]]:
    """Set the ids of runs, and mark rows that repeat an earlier row.

    Returns for each file the number of copies, the number of ids shared by rows with different values, and the first
    file with exactly the same rows.
    """
    seen = set[tuple[str, str]]()  # ids and values of rows
    copies, reused = Counter[str](), Counter[str]()
    first_of: dict[tuple[str, ...], str] = {}  # the first file with the same rows
    first_with: dict[str, str] = {}
    for source, own in places.items():
        texts = tuple(runs[at].extra or "" for at in own)
        ids = _ids_of_rows([rows[at] for at in own], texts, meaning)
        texts_of_ids = Counter(run_id for run_id, _ in set(zip(ids, texts, strict=False)))
        shared = {run_id for run_id, n in texts_of_ids.items() if n > 1}
        reused[source] = len(shared)
        for at, text, run_id in zip(own, texts, ids, strict=False):
            runs[at].log_id = None if run_id in shared else run_id
            runs[at].is_copy = (run_id, text) in seen
            copies[source] += runs[at].is_copy
            seen.add((run_id, text))
        first = first_of.setdefault(texts, source)
        if first != source and len(texts) > 1:
            first_with[source] = first
    return copies, reused, first_with


def _ids_of_rows(rows: Sequence[Mapping[str, Any]], texts: Sequence[str], meaning: Mapping[str, str]) -> list[str]:
    """Return the id of each row from a column named like an id; no ids if many different rows share one."""
    names = (name for row in rows for name in row if name not in meaning.values())
    for name in filter(_CALLED_ID.fullmatch, dict.fromkeys(names)):
        ids = ["" if row.get(name) is None else str(row[name]).strip() for row in rows]
        if all(ids) and len(set(ids)) > len(set(texts)) * 2 / 3:
            return ids
    return []
