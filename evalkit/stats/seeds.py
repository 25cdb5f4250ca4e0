"""The variation between seeds that runs of several tasks share, such as trained checkpoints."""

from typing import Any, NamedTuple

import pandas as pd


class SeedSpread(NamedTuple):
    """The variance of a model's mean between its seeds, and its degrees of freedom; 0 where seeds are not crossed."""

    variance: float = 0.0
    freedom: int = 0
    total: float = 0.0  # with the noise of single runs, which `variance` lacks where it can be told apart


def seed_spreads(runs: pd.DataFrame, count: int) -> list[SeedSpread]:
    """Return the variance of each model's mean between its seeds (Cameron, Gelbach and Miller 2011).

    Seeds count where a model has several of them, and one of these ran several tasks. What a run deviates by is taken
    from the mean of its task, or, where the task has one seed, from the mean of the model.
    """
    spreads = [SeedSpread()] * count
    runs = runs[runs["seed"].notna()]
    if runs.empty:
        return spreads
    by_model = runs.groupby("model")
    most_tasks = runs.groupby(["model", "seed"])["row"].nunique().groupby("model").max()
    crossed = by_model["seed"].nunique().gt(1) & most_tasks.gt(1)
    of: Any
    for of, own in runs[runs["model"].map(crossed).astype(bool)].groupby("model"):
        by_task = own.groupby("row")
        centre = by_task["value"].transform("mean")
        centre = centre.where(by_task["seed"].transform("nunique") > 1, by_task["value"].mean().mean())
        share = 1 / (own["row"].nunique() * by_task["value"].transform("size"))
        deviations, tasks = own["value"] - centre, own["row"].nunique()
        sums = (deviations * share).groupby(own["seed"]).sum()
        factor = len(sums) / (len(sums) - 1)
        variance = total = float((sums**2).sum()) * factor
        if len(sums) > 2:  # the variance over tasks includes the noise of single runs
            noise = (deviations - deviations.groupby(own["seed"]).transform("mean")) * share
            variance -= float((noise**2).sum()) * factor * tasks / (tasks - 1)
        spreads[of] = SeedSpread(max(variance, 0.0), len(sums) - 1, total)
    return spreads
