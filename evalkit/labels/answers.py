"""The file of labels that people gave: one line per label, written at once, and read by everything else."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from evalkit._text import as_list, did_you_mean
from evalkit.io import SourceError, check_path, read_file, resolve
from evalkit.io.write import from_spreadsheet
from evalkit.stats.intervals import numbers
from evalkit.trajectories.formats.table import read_rows

COLUMNS = ("run_id", "turn", "question", "label", "who", "when", "note")
MOST_PROBLEMS = 5  # that are named; others are counted
_WORDS = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "t"), 1.0),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "f"), 0.0),
}


class Table(NamedTuple):
    """Rows of files of labels or verdicts."""

    rows: pd.DataFrame
    problems: list[str]  # rows that were left out, each with its file, number and cause


def append_answer(path: str, unit: tuple[str, int | None], question: str, label: str, who: str, note: str = "") -> None:
    """Append one label to a file, and return once it is on the disk; what was written before stays as it is.

    The line is written by one call, so that several people can use one file, and a process that is killed loses at
    most the label that it writes. SourceError for a file that can't be written.
    """
    check_path(path)
    run_id, turn = unit
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cells = (run_id, "" if turn is None else turn, question, label, who, when, note)
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(handle).st_size
            lines = io.StringIO()
            writer = csv.writer(lines, lineterminator="\n")
            if not size:
                writer.writerow(COLUMNS)
            elif os.pread(handle, 1, size - 1) != b"\n":
                lines.write("\n")  # ends a line that was cut off
            writer.writerow([str(cell).replace("\r", " ").replace("\n", " ") for cell in cells])
            os.write(handle, lines.getvalue().encode(errors="replace"))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise SourceError(f"{path}: can't be written: {error.strerror}") from error


def read_table(
    paths: str | Sequence[str], needed: Sequence[str], columns: str | Iterable[str] = (), optional: Sequence[str] = ()
) -> Table:
    """Read CSV or JSON files of rows with an id, labels and more; a row that can't be used is named, others count.

    Parameters
    ----------
    needed, optional : sequence of str
        Columns, with the names that they get; files must have the needed ones.
    columns : iterable of str
        What columns of files are called, as in ``run_id=trajectory``.

    Raises
    ------
    SourceError
        For a file that can't be read, without a needed column, or without any usable row.
    """
    called = {name: name for name in (*needed, *optional)}
    for pair in as_list(columns):
        role, equals, name = pair.partition("=")
        if not equals or role not in called:
            raise SourceError(f"--column {pair}: write ROLE=NAME; {did_you_mean(role, called)}")
        called[role] = name
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    for path in as_list(paths):
        try:
            found, doubts = read_rows(read_file(str(resolve(path))), messages=False)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from error
        except ValueError as error:
            raise SourceError(f"{path}: can't be read: {error}") from error
        file = os.path.basename(path)
        names = list(dict.fromkeys(name for row in found for name in row))
        for role in needed:
            if found and called[role] not in names:
                hint = did_you_mean(called[role], names)
                raise SourceError(f"{path}: no column {called[role]!r}; {hint} (--column {role}=NAME)")
        problems += [f"{file}: {doubt}" for doubt in doubts]
        for number, row in enumerate(found, 1):
            own = {role: _text(row.get(name)) for role, name in called.items()}
            if not own["run_id"]:
                problems.append(f"{file}, row {number}: no run_id")
                continue
            rows.append({**own, "_at": f"{file}, row {number}"})
    table = pd.DataFrame(rows, columns=[*called, "_at"], dtype="object")
    if "turn" in table:
        turn = pd.to_numeric(table["turn"], errors="coerce")
        is_bad = table["turn"].ne("") & (turn.isna() | turn.mod(1).ne(0))
        problems += [f"{at}: turn {text!r} is no number" for at, text in table.loc[is_bad, ["_at", "turn"]].to_numpy()]
        table = table.assign(turn=turn.where(turn.mod(1).eq(0)).astype("Int64"))[~is_bad]
    return Table(table.reset_index(drop=True), problems)


def as_numbers(table: Table, column: str, yes: str = "") -> Table:
    """Turn the texts of a column into numbers: 0 and 1 for yes and no, other numbers as they are; "" is missing.

    With `yes`, a text that equals it is 1 and any other 0. Rows with another text are left out, and named.
    """
    texts = table.rows[column].str.strip().str.lower()
    if yes:
        values = texts.eq(yes.strip().lower()).astype("float64")
    else:
        values = texts.map(_WORDS).astype("float64")
        values = values.fillna(pd.Series(numbers(pd.to_numeric(texts, errors="coerce")), texts.index))
    values = values.where(texts.ne(""))
    is_bad = values.isna() & texts.ne("")
    named = table.rows.loc[is_bad, ["_at", column]].to_numpy()
    problems = [f"{at}: {column} {str(text)[:40]!r} is no label" for at, text in named]
    rows = table.rows.assign(**{column: values})[~is_bad].reset_index(drop=True)
    return Table(rows, table.problems + problems)


def read_labels(paths: str | Sequence[str], columns: str | Iterable[str] = (), yes: str = "") -> Table:
    """Read labels by people: columns run_id, turn, question, label (1, 0, or NaN for undecided), who, when, note.

    Of several labels that one person gave a unit for a question the last counts. Arguments and errors as of
    `read_table` and `as_numbers`.
    """
    optional = [name for name in COLUMNS if name not in ("run_id", "label")]
    table = as_numbers(read_table(paths, ("run_id", "label"), columns, optional), "label", yes)
    is_bad = table.rows["label"].notna() & ~table.rows["label"].isin([0.0, 1.0])
    problems = table.problems + [f"{at}: a label is 0 or 1" for at in table.rows.loc[is_bad, "_at"]]
    rows = table.rows[~is_bad].drop_duplicates(["run_id", "turn", "question", "who"], keep="last")
    return Table(rows.reset_index(drop=True), problems)


def of_question(labels: pd.DataFrame, question: str = "") -> pd.DataFrame:
    """Select the labels for one question, and those for none; SourceError if it is unknown, or one of several."""
    questions = list(dict.fromkeys(filter(None, labels["question"])))
    if not question and len(questions) > 1:
        raise SourceError(f"labels for several questions, {did_you_mean('', questions)}: --question TEXT selects one")
    if question and questions and question not in questions:
        raise SourceError(f"no labels for the question {question!r}; {did_you_mean(question, questions)}")
    chosen = question or next(iter(questions), "")
    return labels[labels["question"].isin([chosen, ""])].reset_index(drop=True)


class Majority(NamedTuple):
    """What people said together."""

    rows: pd.DataFrame  # run_id, turn, label; a row per unit with a majority
    people: int
    several: int  # units that several people labelled
    disagreed: int  # of these, units with different labels
    ties: int  # of these, units without a majority, which are left out
    undecided: int  # units that everyone who saw them left undecided


def majority(labels: pd.DataFrame) -> Majority:
    """Return the label of each unit by the majority of people; units without one are left out and counted."""
    units = labels.groupby(["run_id", "turn"], dropna=False, sort=False)["label"].agg(["mean", "count", "nunique"])
    is_tie = units["mean"].eq(0.5)
    rows = units.assign(label=units["mean"].gt(0.5).astype("float64"))[units["count"].gt(0) & ~is_tie]
    return Majority(
        rows.reset_index()[["run_id", "turn", "label"]],
        labels["who"].nunique(),
        int(units["count"].gt(1).sum()),
        int(units["nunique"].gt(1).sum()),
        int(is_tie.sum()),
        int(units["count"].eq(0).sum()),
    )


def _text(value: Any) -> str:
    """Return a cell as text; empty if it is missing."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Mapping | list):
        return ""
    return from_spreadsheet(str(value)).strip()
