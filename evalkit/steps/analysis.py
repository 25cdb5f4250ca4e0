"""Frames of steps in, frames of estimates and counts out; and what the old storage would have lost."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit.io import Column, frame
from evalkit.stats import Estimate, estimate_by, proportion_interval
from evalkit.steps.cell_types import read_annotation
from evalkit.steps.contents import IDS, each_record, ids_of
from evalkit.steps.format import DEFAULTS, Options, StepRecord
from evalkit.steps.legacy import old_flat
from evalkit.steps.parse import History
from evalkit.steps.records import normalise_record, number
from evalkit.steps.results import content
from evalkit.steps.verdicts import VERDICTS

REPORTED, CONFIRMED = "reported", "confirmed"  # the record says success; and the result does not contradict it


def named(steps: pd.DataFrame) -> pd.DataFrame:
    """Add the column `history`, a short name of the file and thread of each row."""
    files = steps["source"].str.replace(r".*[/\\]", "", regex=True)
    threads = steps["thread"].map(lambda thread: f" · {thread}" if thread else "")
    return steps.assign(history=(files + threads).astype("str"))


def success_rates(steps: pd.DataFrame, by: str | Sequence[str] = "history") -> pd.DataFrame:
    """Estimate the share of steps that succeeded: as reported, and without silent failures.

    Skipped steps, and those whose record does not say, are left out; every attempt counts. Where steps of several
    histories are put together, intervals are robust to histories; within one history steps are taken as independent,
    which makes its interval too narrow where one failure causes the next.

    Parameters
    ----------
    steps : DataFrame
        As `steps_df` returns it.
    by : str or list of str
        Columns of the groups, ``history`` among those to choose from.

    Returns
    -------
    DataFrame
        The columns of `by`, `success` (reported or confirmed), n, n_clusters, estimate, low, high, method, warning.
    """
    by = [by] if isinstance(by, str) else list(by)
    counted = named(steps)[~steps["verdict"].isin(("skipped", "unknown")).to_numpy()]
    both = pd.concat(
        [
            counted.assign(success=REPORTED, value=counted["success"].astype("float64")),
            counted.assign(success=CONFIRMED, value=counted["verdict"].eq("success").astype("float64")),
        ]
    )
    several = "history" not in by and counted["history"].nunique() > 1
    return estimate_by(both, [*by, "success"], "value", clusters="history" if several else None)


def confirmed_success(steps: pd.DataFrame) -> Estimate:
    """Estimate the share of steps that succeeded without silent failures; see `success_rates`."""
    judged = steps[~steps["verdict"].isin(("skipped", "unknown")).to_numpy()]
    return proportion_interval(int(judged["verdict"].eq("success").sum()), len(judged))


def verdict_counts(steps: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each history: one row per history, one column per verdict."""
    table = named(steps)
    counts = pd.crosstab(table["history"], table["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    return counts.rename_axis(columns=None).reset_index()


def failure_kinds(steps: pd.DataFrame) -> pd.DataFrame:
    """Sort failures and silent failures by kind.

    The kind is the class of the error where it was recorded, else the message with its numbers and quoted names
    replaced, so that ``No cells of type 'B'`` and ``No cells of type 'T'`` are one.

    Returns
    -------
    DataFrame
        verdict, steps, kind, message (of the first), functions, error_category; most frequent first.
    """
    failed = named(steps)[steps["verdict"].isin(("failure", "critical failure", "silent failure")).to_numpy()]
    messages = failed["error"].where(failed["verdict"] != "silent failure", failed["silent_failure_reason"])
    failed = failed.assign(message=messages.fillna("unknown error").str.slice(0, 300))
    failed = failed.assign(kind=failed["error_type"].where(failed["error_type"].notna(), failed["message"].map(_kind)))
    rows = [
        {
            "verdict": verdict,
            "kind": kind,
            "error_category": part["error_category"].iloc[0],
            "steps": len(part),
            "functions": sorted(part["function_name"].dropna().unique()),
            "message": part["message"].iloc[0],
        }
        for (verdict, kind), part in failed.groupby(["verdict", "kind"], sort=True)
    ]
    return frame(sorted(rows, key=lambda row: -row["steps"]), _KIND_COLUMNS)


def storage_comparison(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Put the old storage on disk beside the new one, for the same executions: what survives of each result.

    For every successful step whose result was kept whole (shape B) the old storage is applied to the same result, and
    both are read back by the same reader.

    Returns
    -------
    DataFrame
        history, position, function_name; then numbers, items (terms, genes, named groups) and characters in the new
        storage, and what can be read of them from the old one; cut, result_type, cell_type.
    """
    rows = []
    for history, position, record in each_record(histories):
        if record["shape"] != "B" or record["result_type"] not in ("structured", "visualization"):
            continue
        if record["success"] is not True or not record["result"]:
            continue
        old = normalise_record(old_flat(record["step"], record["result"], True, options=options), options)
        kept = {"new": record, "old": old}
        rows.append(
            {
                **ids_of(history, position, record),
                "result_type": record["result_type"],
                "cut": bool(old["result_metadata"].get("truncated")),
                **{f"characters_{which}": len(str(one["result"])) for which, one in kept.items()},
                **{f"numbers_{which}": numbers_in(content(one)) for which, one in kept.items()},
                **{f"items_{which}": items_in(one) for which, one in kept.items()},
            }
        )
    return frame(rows, _STORAGE_COLUMNS)


def truncation(steps: pd.DataFrame) -> pd.DataFrame:
    """Estimate, for each history and type of result, the share of successful steps whose stored text is cut."""
    kept = named(steps)[steps["verdict"].isin(("success", "silent failure")).to_numpy()]
    shares = estimate_by(kept.assign(value=kept["truncated"].astype("float64")), ["history", "result_type"], "value")
    return shares.drop(columns="n_clusters")


_KIND_COLUMNS = (
    Column("verdict", "str", "failure, critical failure or silent failure"),
    Column("steps", "int", "steps that ended so"),
    Column("kind", "str", "class of the error, or its message without names and numbers"),
    Column("message", "str", "message of the first"),
    Column("functions", "object", "functions of the steps"),
    Column("error_category", "str", "system_error or analysis_error"),
)
_STORAGE_COLUMNS = (
    *IDS[:3],
    *(
        Column(f"{what}_{which}", "int", f"{what} in the {which} storage")
        for what in ("numbers", "items", "characters")
        for which in ("new", "old")
    ),
    Column("cut", "bool", "the old storage cuts this result"),
    Column("result_type", "str", "how the new storage keeps it"),
    IDS[3],
)


def numbers_in(value: Any) -> int:
    """Count the numbers in a structure, also those written as text."""
    if isinstance(value, Mapping):
        return sum(numbers_in(item) for item in value.values())
    if isinstance(value, list):
        return sum(numbers_in(item) for item in value)
    return int(number(value) is not None)


def items_in(record: StepRecord) -> int:
    """Count what a result lists: named groups of an annotation, else the texts in lists (terms, genes)."""
    if groups := read_annotation(record).groups:
        return len(groups)
    return _texts_in(content(record))


def _texts_in(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_texts_in(item) for item in value.values())
    return sum(1 if isinstance(item, str) else _texts_in(item) for item in value) if isinstance(value, list) else 0


def _kind(message: str) -> str:
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", message)
    return re.sub(r"\d+(?:\.\d+)?", "#", text)
