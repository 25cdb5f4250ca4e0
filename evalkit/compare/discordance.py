"""Find tasks that one model solved and another did not: the pairs of runs that a comparison rests on."""

from itertools import combinations

import numpy as np
import pandas as pd

from evalkit.kinds import Example, Outcomes, outcomes
from evalkit.kinds.findings import MOST_EXAMPLES

COLUMNS = ["task", "model_a", "model_b", "repetition", "value_a", "value_b", "run_id_a", "run_id_b"]


def discordant(runs: pd.DataFrame, model_a: str = "", model_b: str = "", value: str = "") -> pd.DataFrame:
    """Find the tasks with opposite outcomes for two models, with the runs that had them.

    Runs of a task are paired by repetition, in the order of the repetitions. A run without an outcome is a failure
    if another run of its model has one, as in all comparisons. For scores, pairs that differ by more than half of the
    largest difference count as opposite.

    Parameters
    ----------
    runs, value
        As for `leaderboard`.
    model_a, model_b : str
        The models; if both are empty, every pair of models; if only one is given, that model against all others.

    Returns
    -------
    DataFrame
        task, model_a, model_b, repetition (of `model_a`), value_a, value_b, run_id_a, run_id_b; one row per pair of
        runs, sorted by models and task.
    """
    return discordant_of(outcomes(runs, value), model_a, model_b)


def discordant_of(scored: Outcomes, model_a: str = "", model_b: str = "") -> pd.DataFrame:
    """Find the tasks with opposite outcomes for two models; see `discordant`."""
    named = {name for name in (model_a, model_b) if name}
    table = scored.table.dropna(subset="value")
    table = table[table["model_name"].isin(named)] if len(named) == 2 else table
    table = table.sort_values(["model_name", "task", "repetition"], kind="stable", ignore_index=True)
    place = table.groupby(["model_name", "task"]).cumcount()
    models = sorted(table["model_name"].unique(), key=lambda name: (name != model_a, name == model_b, name))
    codes = table["model_name"].map({name: code for code, name in enumerate(models)}).to_numpy(int)
    units = table.assign(place=place).groupby(["task", "place"]).ngroup().to_numpy(int)  # what is paired, by task
    rows = np.full((len(models), units.max(initial=-1) + 1), -1)
    rows[codes, units] = np.arange(len(table))
    values = np.where(rows < 0, np.nan, table["value"].to_numpy(float)[rows]) if len(table) else rows.astype(float)
    found = [np.empty((2, 0), int)]
    for a, b in combinations(range(len(models)), 2):
        if named <= {models[a], models[b]}:
            differ = np.abs(values[a] - values[b]) > 0  # False for a missing value
            found.append(rows[[a, b]][:, differ])
    both = np.concatenate(found, axis=1)
    gaps = np.abs(np.subtract(*table["value"].to_numpy(float)[both]))
    both = both[:, gaps > gaps.max(initial=0) / 2]
    names = {"model_name": "model", "value": "value", "run_id": "run_id"}
    pairs = table[["task", "repetition"]].take(both[0]).reset_index(drop=True)
    for side, taken in zip("ab", both, strict=True):
        own = table[list(names)].take(taken).reset_index(drop=True)
        pairs[[f"{name}_{side}" for name in names.values()]] = own
    return pairs[COLUMNS]


def examples(pairs: pd.DataFrame) -> tuple[Example, ...]:
    """Return the first pairs of runs as examples, of different tasks if possible; `pairs` as from `discordant`."""
    rows = pairs.drop_duplicates(["task"]).head(MOST_EXAMPLES).to_dict("records")
    return tuple(
        Example(
            f"{row['task']}: {row['model_a']} {row['value_a']:.3g}, {row['model_b']} {row['value_b']:.3g}",
            row["run_id_a"],
            row["run_id_b"],
        )
        for row in rows
    )
