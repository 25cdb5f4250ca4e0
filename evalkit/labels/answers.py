"""Read and write files of people's labels and judges' verdicts, and find the majority of several people."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from evalkit._text import as_list, did_you_mean
from evalkit.io import SourceError, check_path, read_file, resolve
from evalkit.io.text import cut_end
from evalkit.io.write import from_spreadsheet, to_spreadsheet
from evalkit.kinds.headers import fields, truths_or_numbers
from evalkit.trajectories.formats.table_of_runs import read_rows

COLUMNS = ("run_id", "turn", "question", "label", "who", "when", "note")
UNIT = ["run_id", "turn"]
MOST_JUDGES = 200


class Table(NamedTuple):
    """Rows of files of labels or verdicts."""

    rows: pd.DataFrame
    problems: list[str]  # descriptions of unused rows, each with file, row number and cause


def append_answer(path: str, unit: tuple[str, int | None], question: str, label: str, who: str, note: str = "") -> None:
    """Append one label to a file, and return when it is on disk; existing lines do not change.

    One system call writes the line, so that several people can share a file, and a killed process loses at most the
    current label. Raises SourceError if the file can't be written.
    """
    check_path(path)
    run_id, turn = unit
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cells = (run_id, "" if turn is None else turn, question, label, who, when, note)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    try:
        with open(path, "a+b", buffering=0) as file:
            if not file.tell():
                writer.writerow(COLUMNS)
            else:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    lines.write("\n")  # terminates a truncated line
            writer.writerow([to_spreadsheet(str(cell).replace("\r", " ").replace("\n", " ")) for cell in cells])
            file.write(lines.getvalue().encode(errors="replace"))
            os.fsync(file)
    except OSError as error:
        raise SourceError(f"{path}: can't be written: {error.strerror}") from error


def _read_table(
    paths: str | Sequence[str], needed: Sequence[str], optional: Sequence[str], columns: str | Iterable[str], yes: str
) -> Table:
    """Read rows with ids; column `value` is the label, or the score of a judge without labels."""
    called = {name: name for name in (*needed, *optional)}
    for pair in as_list(columns):
        role, equals, name = pair.partition("=")
        if not equals or role not in called:
            raise SourceError(f"--column {pair}: write ROLE=NAME; {did_you_mean(role, called)}")
        called[role] = name
    tables: list[pd.DataFrame] = []
    problems: list[str] = []
    if not as_list(paths):
        raise SourceError(f"no file with {' and '.join(needed)} is named")
    for path in as_list(paths):
        try:
            found, doubts = read_rows(read_file(str(resolve(path))), messages=False)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from error
        except ValueError as error:
            raise SourceError(f"{path}: can't be read: {error}") from error
        found = [{name.strip().lower(): value for name, value in fields(row)} for row in found]
        names = list(dict.fromkeys(name for row in found for name in row))
        for role, name in called.items():
            if found and name.lower() not in names and (role in needed or name != role):
                hint = f" (--column {role}=NAME)" if "judge" in called else ""  # the option is only for verdicts
                raise SourceError(f"{path}: no column {name!r}; {did_you_mean(name, names)}{hint}")
        file = os.path.basename(path)
        problems += [f"{file}: {doubt}" for doubt in doubts]
        cells = [{role: _text(row.get(name.lower())) for role, name in called.items()} for row in found]
        table = pd.DataFrame(cells, columns=list(called), dtype="object")
        table = table[table["run_id"].str.lower().ne(called["run_id"].lower())]  # repeated headers, if concatenated
        table = table.assign(file=file, row=table.index + 1)
        if "who" in table:
            table["who"] = table["who"].where(table["who"].ne(""), str(path))
        is_score = pd.Series(False, table.index)
        if "score" in table:
            is_score = table["label"].eq("").groupby(table["judge"]).transform("all")
        texts = table["label"].mask(is_score, table.get("score")).str.lower()
        if found and is_score.all() and texts.eq("").all():
            raise SourceError(f"{path}: no column label or score with any value (--column label=NAME names it)")
        values = truths_or_numbers(texts[~is_score])
        if yes:
            values = texts[~is_score].eq(yes.strip().lower()).astype("float64").where(texts.ne(""))
        values = pd.concat([values, truths_or_numbers(texts[is_score])])
        turn = pd.to_numeric(table["turn"], errors="coerce")
        turn = turn.where(turn.mod(1).eq(0))
        wrong = {
            "run_id": table["run_id"].eq(""),
            "turn": table["turn"].ne("") & turn.isna(),
            "label": ~is_score & texts.ne("") & values.isna(),
        }
        if "score" in table:
            wrong["score"] = is_score & texts.ne("") & values.isna()
        for name, is_wrong in wrong.items():
            for row, text in table.loc[is_wrong, ["row", name]].to_numpy():
                problems.append(f"{file}, row {row}: {name} {cut_end(text, 40)!r} is no {name}")
        table = table.assign(turn=turn.astype("Int64"), value=values)
        tables.append(table[~pd.DataFrame(wrong).any(axis=1)])
        if len(table) and tables[-1].empty:
            hint = " (--yes TEXT names the label that means yes)" if wrong["label"].all() else ""
            raise SourceError(f"{path}: no row can be used: {problems[-1]}{hint}")
    return Table(pd.concat(tables, ignore_index=True), problems)


def read_labels(paths: str | Sequence[str], columns: str | Iterable[str] = (), yes: str = "") -> Table:
    """Read people's labels: columns run_id, turn, question, label, who, when, note.

    If one person labelled a unit several times for the same question, the last label counts.

    Parameters
    ----------
    paths : str or sequence of str
        CSV, JSON or JSON lines with a row per label; run_id and label are required.
    columns : str or iterable of str
        Names of these columns in the files, such as ``label=answer``.
    yes : str
        The label that means yes, if it is not a usual word for yes; all other labels then mean no.

    Returns
    -------
    Table
        In `rows`, label is 1, 0, or NaN for undecided. `problems` describes unusable rows.

    Raises
    ------
    SourceError
        Without a file, or for a file that can't be read or lacks a required column.

    Examples
    --------
    >>> given = labels.read_labels("samples:judges/labels.csv")
    >>> len(given.rows), given.rows["who"].unique().tolist()
    (85, ['ann', 'bob'])
    """
    rows, problems = _read_table(paths, ("run_id", "label"), COLUMNS, columns, yes)
    rows["label"] = rows.pop("value")
    is_bad = ~rows["label"].isin([0.0, 1.0]) & rows["label"].notna()
    problems += [f"{row.file}, row {row.row}: a label is 0 or 1" for row in rows[is_bad].itertuples()]
    rows = rows[~is_bad].drop_duplicates([*UNIT, "question", "who"], keep="last")
    return Table(rows[list(COLUMNS)].reset_index(drop=True), problems)


def read_verdicts(paths: str | Sequence[str], columns: str | Iterable[str] = (), yes: str = "") -> Table:
    """Read the verdicts of one or more judges: run_id, turn (missing for a run), judge, verdict.

    Parameters
    ----------
    paths : str or sequence of str
        CSV, JSON or JSON lines with a row per verdict: run_id, turn (optional), judge (by default the name of the
        file), and label (yes or no, 1 or 0) or score (any number).
    columns : str or iterable of str
        Names of these columns in the files, such as ``label=verdict``.
    yes : str
        The label that means yes, if it is not a usual word for yes; all other labels then mean no.

    Returns
    -------
    Table
        In `rows`, one row per verdict. `problems` describes unusable rows.

    Raises
    ------
    SourceError
        For a file that can't be read, or has no column run_id, or neither labels nor scores.

    Examples
    --------
    >>> labels.read_verdicts("samples:judges/verdicts.csv").rows["judge"].value_counts().to_dict()
    {'judge-a': 240, 'judge-b': 240, 'judge-c': 240}
    """
    rows, problems = _read_table(paths, ("run_id",), ("turn", "judge", "label", "score"), columns, yes)
    stem = rows["file"].str.replace(r"(?<=.)\.[^.]*$", "", regex=True)
    rows["judge"] = rows["judge"].where(rows["judge"].ne(""), stem)
    judges = rows["judge"].unique()
    if len(judges) > MOST_JUDGES:
        first = cut_end(judges[0], 40)
        raise SourceError(f"{len(judges)} judges, such as {first!r}: --column judge=NAME selects another column")
    return Table(rows.rename(columns={"value": "verdict"})[[*UNIT, "judge", "verdict"]], problems)


def of_question(labels: pd.DataFrame, question: str = "") -> pd.DataFrame:
    """Select labels for one question or for none; SourceError if it is unknown, or missing with several questions."""
    questions = list(dict.fromkeys(filter(None, labels["question"])))
    if not question and len(questions) > 1:
        raise SourceError(f"labels for several questions, {did_you_mean('', questions)}: --question TEXT selects one")
    if question and questions and question not in questions:
        raise SourceError(f"no labels for the question {question!r}; {did_you_mean(question, questions)}")
    chosen = question or next(iter(questions), "")
    return labels[labels["question"].isin([chosen, ""])].reset_index(drop=True)


class Majority(NamedTuple):
    """The majority label of each unit, and how often people disagree."""

    rows: pd.DataFrame  # run_id, turn, label; one row per unit with a majority
    people: int  # number of people
    several: int  # number of units that several people labelled
    disagreed: int  # number of units with different labels
    ties: int  # number of units without a majority, which are excluded
    undecided: int  # number of units that nobody decided


def majority(labels: pd.DataFrame) -> Majority:
    """Return the majority label of each unit, and count the units without a majority, which are excluded."""
    units = labels.groupby(UNIT, dropna=False, sort=False)["label"].agg(["mean", "count", "nunique"])
    is_tie = units["mean"].eq(0.5)
    rows = units.assign(label=units["mean"].gt(0.5).astype("float64"))[units["count"].gt(0) & ~is_tie]
    return Majority(
        rows.reset_index()[[*UNIT, "label"]],
        labels["who"].nunique(),
        int(units["count"].gt(1).sum()),
        int(units["nunique"].gt(1).sum()),
        int(is_tie.sum()),
        int(units["count"].eq(0).sum()),
    )


def _text(value: Any) -> str:
    """Return a cell as text; empty if it is missing, an object or a list."""
    if value is None or value != value or isinstance(value, Mapping | list):
        return ""
    return str(from_spreadsheet(str(value))).strip()
