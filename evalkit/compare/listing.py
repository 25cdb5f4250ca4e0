"""The results of each model in a report, as a table that the list of all reports is built from."""

import hashlib

import pandas as pd

from evalkit.compare.ranks import Leaderboard, rank_table
from evalkit.kinds.runs import UNKNOWN, kind_of
from evalkit.stats import format_interval

COLUMNS = ["kind", "outcome", "model_name", "n", "n_tasks", "estimate", "low", "high", "text", "rank", "task_set"]


def standings(board: Leaderboard, runs: pd.DataFrame) -> pd.DataFrame:
    """List the results of each model, for the page that lists the models of all reports.

    Parameters
    ----------
    board : Leaderboard
    runs : DataFrame
        The runs it was computed from.

    Returns
    -------
    DataFrame
        kind, outcome (what the estimates are, with their unit), model_name, n (runs), n_tasks, estimate, low, high,
        text (these three, formatted), rank (the range that the data leave open, among the report's models), task_set
        (the same for models that ran the same tasks, in every report; empty if tasks are not known). Models without a
        name or an estimate are left out.
    """
    named = board.table["model_name"].ne(UNKNOWN) & board.table["estimate"].notna()
    table = board.table[named]
    if table.empty:
        return pd.DataFrame(columns=COLUMNS)
    bounds = zip(table["estimate"], table["low"], table["high"], strict=True)
    counted = board.outcomes.table.dropna(subset="value")
    known = counted["task"].where(counted["task"] != counted["run_id"])  # a run without a task is one of its own
    tasks = known.groupby(counted["model_name"]).agg(_digest)
    ranks = rank_table(board).loc[named, "rank"]
    return table.assign(
        kind=kind_of(runs).name,
        outcome=board.outcomes.title,
        text=[format_interval(*interval, percent=board.outcomes.is_share) for interval in bounds],
        rank=ranks + f" of {len(table)}" if len(table) > 1 else "",
        task_set=table["model_name"].map(tasks),
    )[COLUMNS].reset_index(drop=True)


def _digest(tasks: pd.Series) -> str:
    """Return a short digest that identifies a set of tasks; empty if the task of a run is not known."""
    if tasks.isna().any():
        return ""
    return hashlib.blake2b("\0".join(sorted(map(str, set(tasks)))).encode(errors="replace"), digest_size=6).hexdigest()
