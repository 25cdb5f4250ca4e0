"""Draw the runs or turns to label, in a random order of which any first part is a random sample."""

import hashlib
from typing import Any, NamedTuple

import pandas as pd

from evalkit.kinds import Logs, outcome_of, wherever
from evalkit.kinds.runs import UNKNOWN, counted

ACTED = ("assistant", "action")  # roles of an agent's turns, the only turns that people label


class Unit(NamedTuple):
    """A run or turn that gets one label."""

    run_id: str
    turn: int | None = None  # None for the whole run


def draw(logs: Logs, runs: pd.DataFrame | None = None, *, turns: bool = False, seed: int = 0) -> pd.DataFrame:
    """Return all units in a random order, in which any first part contains models and outcomes in proportion.

    The first units, however many, are a random sample: each unit has the same chance to be among them (stratified
    sampling with proportional allocation). The order depends only on the files and the seed, not on the location of the
    files.

    Parameters
    ----------
    logs : Logs
    runs : DataFrame, optional
        Rows of the first table of `logs`; by default all. Runs that are excluded from all rates are ignored.
    turns : bool
        Whether to draw turns of agents instead of runs.
    seed : int
        Seed of the random order.

    Returns
    -------
    DataFrame
        Columns run_id, turn (missing for a run), model_name, outcome and task; one row per unit.

    Examples
    --------
    >>> units = labels.draw(evalkit.load("samples:trajectories/table/runs.csv"))
    >>> len(units), units["model_name"].head(18).nunique()
    (36, 3)
    """
    runs = logs.runs if runs is None else runs
    runs = counted(runs, logs.kind)
    units = pd.DataFrame({
        "run_id": runs["run_id"],
        "model_name": runs["model_name"].fillna(UNKNOWN),
        "outcome": outcome_of(runs, logs.kind),
        "task": logs.kind.rates.task_of(runs).fillna(runs["run_id"]),
    })  # fmt: skip
    if turns:
        spoken = logs.turns.loc[logs.turns["role"].isin(ACTED), ["run_id", "turn"]]
        units = units.merge(spoken, on="run_id")
    else:
        units["turn"] = None
    units["turn"] = units["turn"].astype("Int64")
    content, turn = units["run_id"].map(wherever), units["turn"].astype("object")
    copies = units.groupby([content, turn], dropna=False).cumcount()  # several sources may contain equal runs
    units["_random"] = [_random(seed, *key) for key in zip(content, turn, copies, strict=True)]
    strata = units.groupby(["model_name", "outcome"])
    start = [_random(seed, *stratum) for stratum in zip(units["model_name"], units["outcome"], strict=True)]
    units["_place"] = (strata["_random"].rank() - 1 + start) / strata["_random"].transform("size")
    ordered = units.sort_values(["_place", "_random"], ignore_index=True)
    return ordered[["run_id", "turn", "model_name", "outcome", "task"]]


def units_in(table: pd.DataFrame) -> list[Unit]:
    """Return the unit of each row of a table with the columns run_id and turn."""
    turns = [None if pd.isna(turn) else int(turn) for turn in table["turn"]]
    return [Unit(run_id, turn) for run_id, turn in zip(table["run_id"], turns, strict=True)]


def _random(*keys: Any) -> float:
    """Return a number from 0 to 1 that depends only on the keys."""
    text = "\0".join(map(str, keys)).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) / 2**64
