"""Compare versions of an agent on a fixed benchmark: which tasks the new one broke, and which it fixed."""

import numpy as np
import pandas as pd
from scipy import stats

from evalkit._text import check_columns
from evalkit.kinds import Outcomes, outcomes
from evalkit.stats.intervals import LEVEL
from evalkit.stats.pairs import holm

COLUMNS = ["model_name", "task", "change", "n_baseline", "n", "mean_baseline", "mean", "p_value", "p_adjusted", "shown"]


def changed_tasks(runs: pd.DataFrame | Outcomes, baseline: str, value: str = "") -> pd.DataFrame:
    """List the tasks that each model does better or worse than the baseline, the largest changes first.

    A task is broken where the model's rate is below the baseline's, and fixed where it is above; of scores, a task is
    lower or higher. Single tasks often
    change by chance: a change is `shown` only where Fisher's exact test of the runs of the task, corrected by Holm for
    the tasks of the model that changed, has p of at most 0.05, which takes several runs. Scores have no test.

    Columns are model_name, task, change, n_baseline and n (runs), mean_baseline, mean, p_value,
    p_adjusted, shown, run_ids_baseline and run_ids (the runs of both, as lists; those that show the change first).
    Tasks that only one of them ran, and those without a change, are left out; no rows without a baseline.
    """
    data = runs if isinstance(runs, Outcomes) else outcomes(runs, value)
    check_columns(data.table, "model_name", "task")
    rows = data.table.dropna(subset="value").sort_values("value", kind="stable")
    cells = rows.groupby(["model_name", "task", "condition"], observed=True).agg(
        n=("value", "size"), mean=("value", "mean"), total=("value", "sum"), run_ids=("run_id", list)
    )
    cells = cells.reset_index()
    base = cells[cells["model_name"] == baseline].drop(columns="model_name")
    both = cells[cells["model_name"] != baseline].merge(base, on=["task", "condition"], suffixes=("", "_baseline"))
    both = both[both["mean"] != both["mean_baseline"]].reset_index(drop=True)
    above, below = ("fixed", "broken") if data.kind == "proportion" else ("higher", "lower")
    both["change"] = np.where(both["mean"] > both["mean_baseline"], above, below)
    for side, change in (("run_ids", above), ("run_ids_baseline", below)):
        is_reversed = both["change"] == change
        both[side] = [ids[::-1] if turn else ids for ids, turn in zip(both[side], is_reversed, strict=True)]
    both["p_value"] = both["p_adjusted"] = float("nan")
    if data.kind == "proportion":
        for at, row in both.iterrows():
            passed = [row["total"], row["total_baseline"]]
            failed = [row["n"] - row["total"], row["n_baseline"] - row["total_baseline"]]
            both.loc[at, "p_value"] = stats.fisher_exact([passed, failed]).pvalue
        for _, own in both.groupby("model_name"):
            both.loc[own.index, "p_adjusted"] = holm(own["p_value"])
    both["shown"] = both["p_adjusted"] <= LEVEL
    both["size"] = (both["mean"] - both["mean_baseline"]).abs()
    order = ["model_name", "change", "size", "task"]
    both = both.sort_values(order, ascending=[True, True, False, True], kind="stable", ignore_index=True)
    return both[[*COLUMNS, "run_ids_baseline", "run_ids"]]
