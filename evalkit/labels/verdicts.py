"""Verdicts of judges, or events of detectors, in any table; and the units that labels and verdicts are about."""

import os
from collections.abc import Iterable, Sequence

import msgspec
import pandas as pd

from evalkit._text import as_list
from evalkit.io import SourceError
from evalkit.labels.answers import Table, as_numbers, read_table


def read_verdicts(paths: str | Sequence[str], columns: str | Iterable[str] = (), yes: str = "") -> Table:
    """Read the verdicts of one or more judges: run_id, turn (missing for a run), judge, verdict.

    Parameters
    ----------
    paths : str or sequence of str
        CSV, JSON or JSON lines with a row per verdict: run_id, turn (optional), judge (by default the name of the
        file), and label (yes or no, 1 or 0) or score (any number).
    columns : iterable of str
        What these columns are called in the files, as in ``label=verdict``.
    yes : str
        The text of a label that means yes, where it is none of the usual words; any other then means no.

    Returns
    -------
    Table
        Of several verdicts of a judge on a unit, the mean. Rows that can't be used are in `problems`.
    """
    tables: list[pd.DataFrame] = []
    problems: list[str] = []
    for path in as_list(paths):
        table = read_table(path, ("run_id",), columns, ("turn", "judge", "label", "score"))
        column = "label" if table.rows["label"].ne("").any() else "score"
        if len(table.rows) and table.rows[column].eq("").all():
            raise SourceError(f"{path}: no column label or score with any value (--column label=NAME names it)")
        table = as_numbers(table, column, yes if column == "label" else "")
        problems += table.problems
        judge = table.rows["judge"].mask(table.rows["judge"].eq(""), os.path.basename(path).rpartition(".")[0] or path)
        tables.append(table.rows.assign(judge=judge, verdict=table.rows[column].astype("float64")))
    rows = pd.concat(tables)[["run_id", "turn", "judge", "verdict"]]
    return Table(rows.groupby(["run_id", "turn", "judge"], dropna=False, sort=False, as_index=False).mean(), problems)


def run_ids_of(ids: pd.Series, runs: pd.DataFrame) -> pd.Series:
    """Return the run_id of each id, which may also be the own id of a table of runs; missing where none has it.

    An own id is a column of the runs, or of the table that they were read from, with another value in each row.
    """
    known = pd.Series(runs["run_id"].to_numpy(), runs["run_id"].to_numpy())
    best = ids.map(known)
    candidates = {str(name): runs[name].astype("str") for name in runs if runs[name].dtype in (object, "str", "string")}
    if "extra" in candidates:
        candidates |= _cells_of(runs)
    for values in candidates.values():
        if best.notna().all():
            break
        if values.ne("").all() and values.is_unique:
            own = ids.map(pd.Series(runs["run_id"].to_numpy(), values.to_numpy()))
            if own.notna().sum() > best.notna().sum():
                best = own
    return best.astype("object")


def _cells_of(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the cells of a table of runs that evalkit has no column for, as texts by their names."""
    rows = [msgspec.json.decode(text) if isinstance(text, str) else {} for text in runs["extra"]]
    names = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
    cells = {}
    for name in names:
        values = [row.get(name) for row in rows]
        texts = ["" if value is None or isinstance(value, list | dict) else str(value).strip() for value in values]
        cells[f"extra {name}"] = pd.Series(texts, runs.index)
    return cells
